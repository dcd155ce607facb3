/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * capture.c - writes a pcap file with the packets that a RoCEv2 network would carry
 *
 * Operation:  The local fabric reports the operations of its queue pairs. This file writes the
 *             Ethernet/IPv4/UDP frames that a RoCEv2 NIC would send: the connection manager's REQ, REP
 *             and RTU datagrams, then packets of path MTU 4096 (First, Middle, Last, or Only) with
 *             RETH, AETH and IETH headers, and an acknowledgement for each message. Thus tshark, an
 *             independent implementation, decodes our RPC-over-RDMA headers and chunks. It needs the
 *             connection datagrams to distinguish replies from calls, and the packet sequence numbers
 *             to match RDMA Read responses with their requests.
 *             The side that dialled is 10.0.0.1, the other one 10.0.0.2; connections differ by
 *             queue pair number. The invariant CRC is zero.
 * Memory:     One frame, on the stack; the FILE's buffer.
 * Threads:    Any; the lock is held for a whole message, so its packets are contiguous.
 * Errors:     Opening returns an errno. A write error ends the capture silently: a debugging aid must
 *             not change what it observes.
 * See:        InfiniBand architecture volume 1, 9.2-9.3 (BTH), 12.6 (CM), annex A17 (RoCEv2).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/wire.h"
#include "capture.h"

#define MTU 4096u
#define HEADERS_MAX 96u
#define MAD_BYTES 256u
#define ROCE_PORT 4791
#define NFS_RDMA_PORT 20049
#define PSN_MASK 0xffffffu

/* BTH opcodes: reliable connection, then the one datagram */
enum {
	RC_SEND = 0x00,  /* + 0 first, 1 middle, 2 last, 4 only */
	RC_WRITE = 0x06, /* likewise: 6, 7, 8, 10; with immediate: 9 for 8, 11 for 10 */
	RC_READ_REQUEST = 0x0c,
	RC_READ_FIRST = 0x0d,
	RC_READ_MIDDLE = 0x0e,
	RC_READ_LAST = 0x0f,
	RC_READ_ONLY = 0x10,
	RC_ACK = 0x11,
	RC_SEND_LAST_INV = 0x16,
	RC_SEND_ONLY_INV = 0x17,
	UD_SEND_ONLY = 0x64,
};

struct rr_capture {
	pthread_mutex_t lock;
	FILE *file;
	uint16_t ip_id;
};

struct pcap_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, sigfigs, snaplen, linktype;
};

struct pcap_record {
	uint32_t sec, usec, caplen, len;
};

/* Bytes of a message that are not written yet. */
struct rest {
	const uint8_t *at;
	size_t left;
};

int rr_capture_open(const char *path, struct rr_capture **ret)
{
	const struct pcap_header h = { .magic = 0xa1b2c3d4, .major = 2, .minor = 4,
				       .snaplen = 65535, .linktype = 1 };
	struct rr_capture *c = calloc(1, sizeof(*c));
	int rc, fd;

	if (!c)
		return -ENOMEM;
	/* the file contains the data of users: readable by its owner only, and never through a symbolic link */
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		goto out_free;
	c->file = fdopen(fd, "w");
	if (!c->file) {
		rc = errno;
		close(fd);
		errno = rc;
		goto out_free;
	}
	if (fwrite(&h, sizeof(h), 1, c->file) != 1 || fflush(c->file))
		goto out_close;
	rc = pthread_mutex_init(&c->lock, NULL);
	if (rc) {
		errno = rc;
		goto out_close;
	}
	*ret = c;
	return 0;

out_close:
	rc = errno;
	fclose(c->file);
	errno = rc;
out_free:
	rc = errno ? -errno : -EIO;
	free(c);
	return rc;
}

void rr_capture_close(struct rr_capture *c)
{
	if (!c)
		return;
	fclose(c->file);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static uint16_t ip_checksum(const uint8_t *p)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += get_be16(p + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	return (uint16_t)~sum;
}

/* Writes Ethernet, IPv4 and UDP headers for @ib_bytes of InfiniBand packet (its CRC included). */
static uint8_t *put_ip(struct rr_capture *c, uint8_t *p, bool from_active, uint32_t qpn,
		       size_t ib_bytes)
{
	static const uint8_t mac[2][6] = { { 2, 0, 10, 0, 0, 1 }, { 2, 0, 10, 0, 0, 2 } };
	uint8_t *ip = p + 14, *udp = p + 34;
	int src = from_active ? 0 : 1;

	memcpy(p, mac[!src], 6);
	memcpy(p + 6, mac[src], 6);
	put_be16(p + 12, 0x0800);
	memset(ip, 0, 20);
	ip[0] = 0x45;
	put_be16(ip + 2, (uint16_t)(28 + ib_bytes));
	put_be16(ip + 4, c->ip_id++);
	put_be16(ip + 6, 0x4000); /* do not fragment */
	ip[8] = 64;
	ip[9] = 17;
	put_be32(ip + 12, 0x0a000001u + (uint32_t)src);
	put_be32(ip + 16, 0x0a000001u + (uint32_t)!src);
	put_be16(ip + 10, ip_checksum(ip));
	put_be16(udp, (uint16_t)(0xc000 | (qpn & 0x3fff)));
	put_be16(udp + 2, ROCE_PORT);
	put_be16(udp + 4, (uint16_t)(8 + ib_bytes));
	put_be16(udp + 6, 0);
	return udp + 8;
}

static uint8_t *put_bth(uint8_t *p, uint8_t opcode, size_t pad, uint32_t dest_qpn, bool ack,
			uint32_t psn)
{
	p[0] = opcode;
	p[1] = (uint8_t)(pad << 4);
	put_be16(p + 2, 0xffff);
	put_be32(p + 4, dest_qpn & 0xffffff);
	put_be32(p + 8, (psn & PSN_MASK) | (ack ? 0x80000000u : 0));
	return p + 12;
}

static void write_frame(struct rr_capture *c, const uint8_t *frame, size_t len)
{
	struct timespec ts;
	struct pcap_record r = { .caplen = (uint32_t)len, .len = (uint32_t)len };

	clock_gettime(CLOCK_REALTIME, &ts);
	r.sec = (uint32_t)ts.tv_sec;
	r.usec = (uint32_t)(ts.tv_nsec / 1000);
	(void)fwrite(&r, sizeof(r), 1, c->file); /* see Errors above */
	(void)fwrite(frame, len, 1, c->file);
}

/* One direction of a connection, as the frames identify it. */
struct dir {
	bool from_active;
	uint32_t src, dest;
	uint32_t *psn, *msn;
};

static struct dir direction(struct rr_capture_conn *conn, bool out)
{
	return (struct dir){ .from_active = conn->active == out,
			     .src = out ? conn->qpn : conn->peer_qpn,
			     .dest = out ? conn->peer_qpn : conn->qpn,
			     .psn = out ? &conn->psn : &conn->peer_psn,
			     .msn = out ? &conn->msn : &conn->peer_msn };
}

/* Writes a packet: transport headers beyond the BTH are in @ext; payload comes from @r, if any. */
static void packet(struct rr_capture *c, const struct dir *d, uint8_t opcode, uint32_t psn,
		   bool ack, const uint8_t *ext, size_t ext_len, struct rest *r)
{
	uint8_t frame[HEADERS_MAX + MTU + 8], *p;
	size_t len = r ? MIN(r->left, (size_t)MTU) : 0, pad = -len & 3;

	p = put_ip(c, frame, d->from_active, d->src, 12 + ext_len + len + pad + 4);
	p = put_bth(p, opcode, pad, d->dest, ack, psn);
	if (ext_len)
		memcpy(p, ext, ext_len);
	p += ext_len;
	if (len) {
		memcpy(p, r->at, len);
		r->at += len;
		r->left -= len;
	}
	p += len;
	memset(p, 0, pad + 4);
	write_frame(c, frame, (size_t)(p - frame) + pad + 4);
}

static void put_reth(uint8_t *p, uint64_t raddr, uint32_t rkey, size_t len)
{
	put_be64(p, raddr);
	put_be32(p + 8, rkey);
	put_be32(p + 12, (uint32_t)len);
}

static void put_aeth(uint8_t *p, uint32_t msn)
{
	put_be32(p, 0x1f000000u | (msn & 0xffffff)); /* no credit limit */
}

static void acknowledge(struct rr_capture *c, const struct dir *d)
{
	struct dir back = { .from_active = !d->from_active, .src = d->dest, .dest = d->src };
	uint8_t aeth[4];

	put_aeth(aeth, ++*d->msn);
	packet(c, &back, RC_ACK, *d->psn - 1, false, aeth, sizeof(aeth), NULL);
}

void rr_capture_send(struct rr_capture *c, struct rr_capture_conn *conn, bool out, const void *data, size_t len,
		     bool with_inv, uint32_t inv_rkey)
{
	struct dir d = direction(conn, out);
	struct rest r = { .at = data, .left = len };
	bool first = true, last;
	uint8_t ieth[4];

	put_be32(ieth, inv_rkey);
	pthread_mutex_lock(&c->lock);
	do {
		uint8_t opcode = RC_SEND + 1;

		last = r.left <= MTU;
		if (last && with_inv)
			opcode = first ? RC_SEND_ONLY_INV : RC_SEND_LAST_INV;
		else if (last)
			opcode = first ? RC_SEND + 4 : RC_SEND + 2;
		else if (first)
			opcode = RC_SEND;
		packet(c, &d, opcode, (*d.psn)++, last, ieth, last && with_inv ? 4 : 0, &r);
		first = false;
	} while (!last);
	acknowledge(c, &d);
	(void)fflush(c->file);
	pthread_mutex_unlock(&c->lock);
}

void rr_capture_write(struct rr_capture *c, struct rr_capture_conn *conn, const void *data, size_t len, uint64_t raddr,
		      uint32_t rkey, const uint32_t *imm)
{
	struct dir d = direction(conn, true);
	struct rest r = { .at = data, .left = len };
	bool first = true, last;
	uint8_t ext[20];

	put_reth(ext, raddr, rkey, r.left);
	pthread_mutex_lock(&c->lock);
	do {
		uint8_t opcode = RC_WRITE + 1;
		size_t ext_len = first ? 16 : 0;

		last = r.left <= MTU;
		if (last)
			opcode = (uint8_t)((first ? RC_WRITE + 4 : RC_WRITE + 2) + !!imm);
		else if (first)
			opcode = RC_WRITE;
		if (last && imm) {
			put_be32(ext + ext_len, *imm);
			ext_len += 4;
		}
		packet(c, &d, opcode, (*d.psn)++, last, ext, ext_len, &r);
		first = false;
	} while (!last);
	acknowledge(c, &d);
	(void)fflush(c->file);
	pthread_mutex_unlock(&c->lock);
}

void rr_capture_read(struct rr_capture *c, struct rr_capture_conn *conn, const void *data, size_t len, uint64_t raddr,
		     uint32_t rkey)
{
	struct dir d = direction(conn, true);
	struct dir back = { .from_active = !d.from_active, .src = d.dest, .dest = d.src };
	struct rest r = { .at = data, .left = len };
	bool first = true, last;
	uint8_t reth[16], aeth[4];

	put_reth(reth, raddr, rkey, r.left);
	put_aeth(aeth, ++*d.msn);
	pthread_mutex_lock(&c->lock);
	packet(c, &d, RC_READ_REQUEST, *d.psn, true, reth, sizeof(reth), NULL);
	/* the responses use sequence numbers of the request's direction */
	do {
		uint8_t opcode = RC_READ_MIDDLE;

		last = r.left <= MTU;
		if (last)
			opcode = first ? RC_READ_ONLY : RC_READ_LAST;
		else if (first)
			opcode = RC_READ_FIRST;
		packet(c, &back, opcode, (*d.psn)++, false, aeth, first || last ? 4 : 0, &r);
		first = false;
	} while (!last);
	(void)fflush(c->file);
	pthread_mutex_unlock(&c->lock);
}

static void put_ip4_gid(uint8_t *p, uint32_t addr)
{
	memset(p, 0, 10);
	put_be16(p + 10, 0xffff);
	put_be32(p + 12, addr);
}

static void put_req(uint8_t *p, uint32_t comm, uint32_t qpn, uint32_t psn, const void *priv,
		    size_t len)
{
	put_be32(p, comm);
	put_be64(p + 8, UINT64_C(0x01060000) + NFS_RDMA_PORT); /* RDMA_PS_TCP, port */
	put_be64(p + 16, UINT64_C(0x02000afffe000001));         /* GUID of the adapter */
	put_be32(p + 32, qpn << 8 | 16);                        /* Reads that it serves at once */
	put_be32(p + 40, 0x14u << 3);                           /* time-outs */
	put_be32(p + 44, (psn & PSN_MASK) << 8 | 0x14u << 3 | 7);
	put_be16(p + 48, 0xffff);
	p[50] = 5 << 4; /* path MTU 4096 */
	p[51] = 0xf0;
	put_be32(p + 52, 0xffffffff); /* no LIDs */
	put_ip4_gid(p + 56, 0x0a000001);
	put_ip4_gid(p + 72, 0x0a000002);
	p[93] = 64; /* hops */
	/* header of the IP annex, then the private data */
	p[141] = 4 << 4;
	put_be16(p + 142, (uint16_t)(0xc000 | (qpn & 0x3fff)));
	put_be32(p + 156, 0x0a000001);
	put_be32(p + 172, 0x0a000002);
	if (len)
		memcpy(p + 176, priv, MIN(len, (size_t)56));
}

static void put_rep(uint8_t *p, uint32_t comm, uint32_t remote_comm, uint32_t qpn, uint32_t psn,
		    const void *priv, size_t len)
{
	put_be32(p, comm);
	put_be32(p + 4, remote_comm);
	put_be32(p + 12, qpn << 8);
	put_be32(p + 20, (psn & PSN_MASK) << 8);
	p[24] = 0; /* Reads that it serves, Reads that it requests */
	p[25] = 16;
	p[27] = 0; /* no retry when the receiver has no receive posted */
	put_be64(p + 28, UINT64_C(0x02000afffe000002));
	if (len)
		memcpy(p + 36, priv, MIN(len, (size_t)196));
}

void rr_capture_cm(struct rr_capture *c, const struct rr_capture_conn *conn,
		   enum rr_capture_cm what, const void *priv, size_t priv_len)
{
	static const uint16_t attribute[] = { [RR_CAPTURE_REQ] = 0x10, [RR_CAPTURE_REP] = 0x13,
					      [RR_CAPTURE_RTU] = 0x14 };
	bool from_active = what != RR_CAPTURE_REP, mine = from_active == conn->active;
	uint32_t qpn = mine ? conn->qpn : conn->peer_qpn;
	uint32_t psn = mine ? conn->peer_psn : conn->psn; /* first PSN of the other side's packets */
	uint32_t active_qpn = conn->active ? conn->qpn : conn->peer_qpn;
	uint32_t comm = 0x10000000u | active_qpn, passive_comm = 0x20000000u | active_qpn;
	uint8_t frame[HEADERS_MAX + MAD_BYTES], *p, *mad, *cm;

	memset(frame, 0, sizeof(frame));
	pthread_mutex_lock(&c->lock);
	p = put_ip(c, frame, from_active, 1, 12 + 8 + MAD_BYTES + 4);
	p = put_bth(p, UD_SEND_ONLY, 0, 1, true, what == RR_CAPTURE_RTU);
	put_be32(p, 0x80010000); /* the well-known key, and queue pair 1 */
	put_be32(p + 4, 1);
	mad = p + 8;
	mad[0] = 1; /* MAD header: communication management, version 2, Send */
	mad[1] = 7;
	mad[2] = 2;
	mad[3] = 3;
	put_be64(mad + 8, comm);
	put_be16(mad + 16, attribute[what]);
	cm = mad + 24;
	if (what == RR_CAPTURE_REQ) {
		put_req(cm, comm, qpn, psn, priv, priv_len);
	} else if (what == RR_CAPTURE_REP) {
		put_rep(cm, passive_comm, comm, qpn, psn, priv, priv_len);
	} else {
		put_be32(cm, comm);
		put_be32(cm + 4, passive_comm);
	}
	write_frame(c, frame, (size_t)(mad + MAD_BYTES + 4 - frame));
	(void)fflush(c->file);
	pthread_mutex_unlock(&c->lock);
}
