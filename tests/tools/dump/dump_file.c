/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump_file.c - reads the records of a capture: pcap and pcapng
 *
 * Operation:  dump_file_init() detects the format and its byte order from the first bytes;
 *             dump_file_next() then returns the packets. In pcapng, blocks other than packets are skipped,
 *             and so are options other than the unit of time.
 * Memory:     One buffer for one record, as large as the largest so far, RECORD_MAX at most.
 * Threads:    One.
 * Errors:     A record that claims more than RECORD_MAX, or less than its own header, is -EBADMSG. An
 *             incomplete record is -ENODATA, as when the writer was stopped.
 * See:        pcap-savefile(5); draft-ietf-opsawg-pcapng.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"

#define RECORD_MAX (1u << 20)
#define NS_PER_SECOND UINT64_C(1000000000)

#define MAGIC_US 0xa1b2c3d4u
#define MAGIC_NS 0xa1b23c4du
#define MAGIC_SECTION 0x0a0d0d0au /* the same in both byte orders */
#define MAGIC_ORDER 0x1a2b3c4du

enum { BLOCK_INTERFACE = 1, BLOCK_SIMPLE = 3, BLOCK_PACKET = 6 };
enum { OPTION_END = 0, OPTION_RESOLUTION = 9 };
enum { RESOLUTION_US = 6, RESOLUTION_NS = 9 };

static uint32_t word(const struct dump_file *f, const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return f->swapped ? __builtin_bswap32(v) : v;
}

static uint16_t half(const struct dump_file *f, const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return f->swapped ? __builtin_bswap16(v) : v;
}

/* Return: 1; 0 at the end if @may_end; -ENODATA, -EIO */
static int get(struct dump_file *f, void *to, size_t len, bool may_end)
{
	size_t n = fread(to, 1, len, f->in);

	if (n == len)
		return 1;
	if (ferror(f->in))
		return -EIO;
	return n || !may_end ? -ENODATA : 0;
}

static int get_record(struct dump_file *f, size_t len)
{
	uint8_t *more;

	if (len > f->cap) {
		more = realloc(f->buf, len);
		if (!more)
			return -ENOMEM;
		f->buf = more;
		f->cap = len;
	}
	return len ? get(f, f->buf, len, false) : 1;
}

static uint64_t to_ns(uint64_t t, uint8_t resolution)
{
	unsigned n = resolution & 0x7f;
	uint64_t part;

	if (resolution & 0x80) {
		if (n > 63)
			return 0;
		part = n ? t & (UINT64_MAX >> (64 - n)) : 0;
		part = n > 32 ? (part >> (n - 32)) * NS_PER_SECOND >> 32 : part * NS_PER_SECOND >> n;
		return (t >> n) * NS_PER_SECOND + part;
	}
	for (; n < RESOLUTION_NS; n++)
		t *= 10;
	for (; n > RESOLUTION_NS && t; n--)
		t /= 10;
	return t;
}

/* ---- pcap -------------------------------------------------------------------------------------- */

static int classic_init(struct dump_file *f, uint32_t magic)
{
	uint8_t head[20];
	int rc = get(f, head, sizeof(head), false);

	if (rc < 0)
		return rc;
	/* the upper bits of the last word are about Ethernet checksums */
	f->ifaces[0] = (struct dump_iface){ .link = word(f, head + 16) & 0x0fffffff,
					    .resolution = magic == MAGIC_NS ? RESOLUTION_NS :
									      RESOLUTION_US };
	f->nifaces = 1;
	return 0;
}

static int classic_next(struct dump_file *f, struct dump_packet *ret)
{
	uint8_t head[16];
	uint32_t len;
	int rc = get(f, head, sizeof(head), true);

	if (rc <= 0)
		return rc;
	len = word(f, head + 8);
	if (len > RECORD_MAX)
		return -EBADMSG;
	rc = get_record(f, len);
	if (rc < 0)
		return rc;
	*ret = (struct dump_packet){
		.ns = word(f, head) * NS_PER_SECOND + to_ns(word(f, head + 4), f->ifaces[0].resolution),
		.link = f->ifaces[0].link,
		.data = f->buf,
		.len = len,
	};
	return 1;
}

/* ---- pcapng ---------------------------------------------------------------------------------------- */

/* Reads the rest of a section header after its type. Interfaces belong to a section. */
static int section(struct dump_file *f)
{
	uint8_t head[8];
	uint32_t order, len;
	int rc = get(f, head, sizeof(head), false);

	if (rc < 0)
		return rc;
	memcpy(&order, head + 4, sizeof(order));
	if (order != MAGIC_ORDER && order != __builtin_bswap32(MAGIC_ORDER))
		return -EBADMSG;
	f->swapped = order != MAGIC_ORDER;
	f->nifaces = 0;
	len = word(f, head);
	if (len < 28 || len % 4 || len > RECORD_MAX)
		return -EBADMSG;
	return get_record(f, len - 12);
}

static int interface(struct dump_file *f, const uint8_t *p, size_t len)
{
	struct dump_iface i = { .resolution = RESOLUTION_US };

	if (len < 8 || f->nifaces == DUMP_INTERFACES_MAX)
		return -EBADMSG;
	i.link = half(f, p);
	p += 8;
	len -= 8;
	while (len >= 4) {
		uint16_t code = half(f, p), bytes = half(f, p + 2);

		if (code == OPTION_END || round_up4(bytes) > len - 4)
			break;
		if (code == OPTION_RESOLUTION && bytes == 1)
			i.resolution = p[4];
		p += 4 + round_up4(bytes);
		len -= 4 + round_up4(bytes);
	}
	f->ifaces[f->nifaces++] = i;
	return 0;
}

static int packet(struct dump_file *f, const uint8_t *p, size_t len, struct dump_packet *ret)
{
	uint32_t iface, caplen;

	if (len < 20)
		return -EBADMSG;
	iface = word(f, p);
	caplen = word(f, p + 12);
	if (iface >= f->nifaces || caplen > len - 20)
		return -EBADMSG;
	*ret = (struct dump_packet){
		.ns = to_ns((uint64_t)word(f, p + 4) << 32 | word(f, p + 8),
			    f->ifaces[iface].resolution),
		.link = f->ifaces[iface].link,
		.data = p + 20,
		.len = caplen,
	};
	return 1;
}

/* A packet without a time; its length is that on the wire, limited by the record. */
static int simple(struct dump_file *f, const uint8_t *p, size_t len, struct dump_packet *ret)
{
	if (len < 4 || !f->nifaces)
		return -EBADMSG;
	*ret = (struct dump_packet){ .link = f->ifaces[0].link, .data = p + 4,
				     .len = MIN((size_t)word(f, p), len - 4) };
	return 1;
}

static int ng_next(struct dump_file *f, struct dump_packet *ret)
{
	uint8_t head[4];
	uint32_t type, len;
	int rc;

	for (;;) {
		rc = get(f, head, sizeof(head), true);
		if (rc <= 0)
			return rc;
		type = word(f, head);
		if (type == MAGIC_SECTION) {
			rc = section(f);
			if (rc < 0)
				return rc;
			continue;
		}
		rc = get(f, head, sizeof(head), false);
		if (rc < 0)
			return rc;
		len = word(f, head);
		if (len < 12 || len % 4 || len > RECORD_MAX)
			return -EBADMSG;
		/* the content, and the repeated length */
		rc = get_record(f, len - 8);
		if (rc < 0)
			return rc;
		len -= 12;
		if (type == BLOCK_PACKET)
			return packet(f, f->buf, len, ret);
		if (type == BLOCK_SIMPLE)
			return simple(f, f->buf, len, ret);
		rc = type == BLOCK_INTERFACE ? interface(f, f->buf, len) : 0;
		if (rc)
			return rc;
	}
}

/* ---- both -------------------------------------------------------------------------------------------- */

int dump_file_init(struct dump_file *f, FILE *in)
{
	uint32_t magic;
	int rc;

	memset(f, 0, sizeof(*f));
	f->in = in;
	rc = get(f, &magic, sizeof(magic), false);
	if (rc < 0)
		return rc == -ENODATA ? -EBADMSG : rc;
	if (magic == MAGIC_SECTION) {
		f->ng = true;
		rc = section(f);
	} else {
		f->swapped = magic == __builtin_bswap32(MAGIC_US) ||
			     magic == __builtin_bswap32(MAGIC_NS);
		magic = f->swapped ? __builtin_bswap32(magic) : magic;
		rc = magic == MAGIC_US || magic == MAGIC_NS ? classic_init(f, magic) : -EBADMSG;
	}
	if (rc >= 0)
		return 0;
	dump_file_fini(f);
	return rc == -ENODATA ? -EBADMSG : rc;
}

/** dump_file_fini - frees the buffer; the stream stays open */
void dump_file_fini(struct dump_file *f)
{
	free(f->buf);
	f->buf = NULL;
}

int dump_file_next(struct dump_file *f, struct dump_packet *ret)
{
	return f->ng ? ng_next(f, ret) : classic_next(f, ret);
}
