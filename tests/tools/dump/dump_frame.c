/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump_frame.c - extracts the InfiniBand packet from a captured packet
 *
 * Operation:  Link header (Ethernet with VLAN tags, Linux cooked 1 and 2, none), IPv4 or IPv6, UDP to port
 *             4791, Base Transport Header. Other packets return false. IPv4 fragments and IPv6 extension
 *             headers are not parsed: RoCEv2 uses neither.
 * Memory:     The frame points into the packet.
 * Threads:    Pure.
 * Errors:     None. A packet that was not captured completely is `cut`, and ends where the capture does.
 * See:        InfiniBand architecture volume 1, 9.2 (BTH), annex A17 (RoCEv2).
 */
#include <arpa/inet.h>
#include <string.h>

#include "base/wire.h"
#include "dump.h"

#define ROCE_PORT 4791
#define UDP_PROTO 17
#define BTH_BYTES 12u
#define ICRC_BYTES 4u

/* of pcap-linktype(7) */
enum {
	LINK_ETHERNET = 1,
	LINK_RAW_BSD = 12, /* used by libpcap before it had its own numbers */
	LINK_RAW_OPENBSD = 14,
	LINK_RAW = 101,
	LINK_SLL = 113,
	LINK_IPV4 = 228,
	LINK_IPV6 = 229,
	LINK_SLL2 = 276,
};

enum { TYPE_IPV4 = 0x0800, TYPE_VLAN = 0x8100, TYPE_IPV6 = 0x86dd, TYPE_QINQ = 0x88a8 };

static uint16_t take_be16(struct wire_get *g)
{
	const uint8_t *p = wire_get_bytes(g, 2);

	return p ? get_be16(p) : 0;
}

/* Skips the link header; Return: the EtherType, 0 if the IP header has the version, or for other packets. */
static uint16_t link_type(struct wire_get *g, uint32_t link)
{
	uint16_t type = 0;

	switch (link) {
	case LINK_ETHERNET:
		(void)wire_get_bytes(g, 12);
		type = take_be16(g);
		while (type == TYPE_VLAN || type == TYPE_QINQ) {
			(void)wire_get_bytes(g, 2);
			type = take_be16(g);
		}
		break;
	case LINK_SLL:
		(void)wire_get_bytes(g, 14);
		type = take_be16(g);
		break;
	case LINK_SLL2:
		type = take_be16(g);
		(void)wire_get_bytes(g, 18);
		break;
	case LINK_RAW:
	case LINK_RAW_BSD:
	case LINK_RAW_OPENBSD:
	case LINK_IPV4:
	case LINK_IPV6:
		if (wire_get_left(g) < 1)
			g->bad = true;
		else
			type = *g->at >> 4 == 6 ? TYPE_IPV6 : TYPE_IPV4;
		break;
	default:
		g->bad = true;
	}
	return type;
}

static void map_ipv4(struct dump_addr *a, const uint8_t *p)
{
	memset(a->bytes, 0, 10);
	memset(a->bytes + 10, 0xff, 2);
	memcpy(a->bytes + 12, p, 4);
}

static bool ipv4(struct wire_get *g, struct dump_frame *f)
{
	const uint8_t *p = wire_get_bytes(g, 20);
	size_t head;

	if (!p)
		return false;
	head = (size_t)(p[0] & 0xf) * 4;
	/* more fragments, or not the first */
	if (p[0] >> 4 != 4 || head < 20 || p[9] != UDP_PROTO || get_be16(p + 6) & 0x3fff)
		return false;
	map_ipv4(&f->src, p + 12);
	map_ipv4(&f->dst, p + 16);
	return wire_get_bytes(g, head - 20) != NULL;
}

static bool ipv6(struct wire_get *g, struct dump_frame *f)
{
	const uint8_t *p = wire_get_bytes(g, 40);

	if (!p || p[0] >> 4 != 6 || p[6] != UDP_PROTO)
		return false;
	memcpy(f->src.bytes, p + 8, 16);
	memcpy(f->dst.bytes, p + 24, 16);
	return true;
}

bool dump_frame_parse(const struct dump_packet *p, struct dump_frame *ret)
{
	struct dump_frame f = { .ns = p->ns };
	const uint8_t *udp, *bth;
	struct wire_get g;
	uint16_t type;
	size_t len, tail;

	wire_get_init(&g, p->data, p->len);
	type = link_type(&g, p->link);
	if (g.bad || !(type == TYPE_IPV4 ? ipv4(&g, &f) : type == TYPE_IPV6 && ipv6(&g, &f)))
		return false;
	udp = wire_get_bytes(&g, 8);
	if (!udp || get_be16(udp + 2) != ROCE_PORT)
		return false;
	/* captured bytes may exceed the packet: Ethernet pads */
	len = get_be16(udp + 4);
	if (len < 8 + BTH_BYTES + ICRC_BYTES)
		return false;
	len -= 8;
	f.cut = wire_get_left(&g) < len;
	len = MIN(len, wire_get_left(&g));
	bth = wire_get_bytes(&g, BTH_BYTES);
	if (!bth)
		return false;
	f.opcode = bth[0];
	f.qpn = get_be32(bth + 4) & 0xffffff;
	f.psn = get_be32(bth + 8) & 0xffffff;
	f.body = bth + BTH_BYTES;
	f.len = len - BTH_BYTES;
	tail = (bth[1] >> 4 & 3) + ICRC_BYTES;
	if (!f.cut) {
		if (f.len < tail)
			return false;
		f.len -= tail;
	}
	*ret = f;
	return true;
}

const char *dump_addr_print(const struct dump_addr *a, char buf[DUMP_ADDR_TEXT])
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	bool v4 = !memcmp(a->bytes, mapped, sizeof(mapped));

	if (!inet_ntop(v4 ? AF_INET : AF_INET6, a->bytes + (v4 ? 12 : 0), buf, DUMP_ADDR_TEXT))
		strcpy(buf, "?");
	return buf;
}
