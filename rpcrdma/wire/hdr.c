/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * hdr.c - encodes and decodes the transport header and its chunk lists (RFC 8166 section 4)
 *
 * Operation:  srv_recv.c and clnt_rdma_reply.c call rr_hdr_decode() on every received message. Senders fill a struct
 *             rr_hdr and call rr_hdr_encode(). Decoding takes two passes over untrusted bytes: check_lists()
 *             walks the lists to their end and checks every count, boolean and bound but stores nothing;
 *             build_lists() then copies and relies on the first pass. So callers never see a half-built list.
 *
 *                 fixed: xid | vers | credits | proc
 *                 reads: { 1 | position | handle | length | offset(8) } ... 0
 *                 writes:{ 1 | n | { handle | length | offset(8) } * n } ... 0
 *                 reply: 0   or   1 | n | { handle | length | offset(8) } * n
 *                 error: 1 | low | high   or   2
 *
 * Memory:     Never allocates. Reads nothing outside the message.
 * Threads:    Pure functions.
 * Errors:     hdr.h lists the errors of decoding and the reply to each. An RDMA_ERROR or RDMA_DONE that does
 *             not parse gets no reply; check h->proc.
 * See:        protocol.md sections 1.1, 1.5, 3.2.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/wire.h"
#include "hdr.h"

/* A private data size byte n means (n + 1) KiB (RFC 8797 section 4). */
#define PRIV_UNIT 1024u
#define PRIV_BYTES_MAX (256u * PRIV_UNIT)

void rr_hdr_init(struct rr_hdr *h, uint32_t xid, uint32_t credits, uint32_t proc)
{
	h->xid = xid;
	h->vers = RR_VERS;
	h->credits = credits;
	h->proc = proc;
	h->nreads = 0;
	h->nwrites = 0;
	h->has_reply = false;
	h->reply.nsegs = 0;
	h->err = 0;
	h->vers_low = 0;
	h->vers_high = 0;
}

/* First pass: checks the grammar and our limits. */

/* XDR optional: 1 is followed by the item, 0 by nothing, other values are malformed. Returns false once the
 * cursor is bad, so the loops over lists stop at the end of the message. */
static bool get_present(struct wire_get *g)
{
	uint32_t word = wire_get_u32(g);

	if (word > 1)
		g->bad = true;
	return word == 1;
}

static bool check_chunk(struct wire_get *g)
{
	uint32_t n = wire_get_u32(g);

	/* the limit also keeps the product small */
	return n <= RR_CHUNK_SEGS_MAX && wire_get_bytes(g, n * RR_SEGMENT_BYTES);
}

static bool check_lists(struct wire_get *g)
{
	unsigned n;

	for (n = 0; get_present(g); n++) {
		if (n == RR_READ_SEGS_MAX || wire_get_u32(g) % 4)
			return false;
		if (!wire_get_bytes(g, RR_SEGMENT_BYTES))
			return false;
	}
	for (n = 0; get_present(g); n++)
		if (n == RR_WRITE_CHUNKS_MAX || !check_chunk(g))
			return false;
	if (get_present(g) && !check_chunk(g))
		return false;
	return wire_get_ok(g);
}

static int check_error(struct wire_get *g)
{
	switch (wire_get_u32(g)) {
	case RR_ERR_VERS:
		return wire_get_bytes(g, 8) ? 0 : -EBADMSG;
	case RR_ERR_CHUNK:
		return 0;
	default:
		return -EBADMSG; /* unknown error, or the message ended before it */
	}
}

/* Second pass: copies. Relies on check_lists() or check_error() having accepted the same bytes. */

static void build_segment(struct wire_get *g, struct rr_segment *s)
{
	s->handle = wire_get_u32(g);
	s->length = wire_get_u32(g);
	s->offset = wire_get_u64(g);
}

static void build_chunk(struct wire_get *g, struct rr_chunk *c)
{
	c->nsegs = wire_get_u32(g);
	for (uint32_t i = 0; i < c->nsegs; i++)
		build_segment(g, &c->segs[i]);
}

static void build_lists(struct wire_get *g, struct rr_hdr *h)
{
	while (get_present(g)) {
		struct rr_read_seg *r = &h->reads[h->nreads++];

		r->position = wire_get_u32(g);
		build_segment(g, &r->seg);
	}
	while (get_present(g))
		build_chunk(g, &h->writes[h->nwrites++]);
	h->has_reply = get_present(g);
	if (h->has_reply)
		build_chunk(g, &h->reply);
}

static void build_error(struct wire_get *g, struct rr_hdr *h)
{
	h->err = wire_get_u32(g);
	if (h->err == RR_ERR_VERS) {
		h->vers_low = wire_get_u32(g);
		h->vers_high = wire_get_u32(g);
	}
}

int rr_hdr_decode(const void *buf, size_t len, struct rr_hdr *h, size_t *ret_len)
{
	const uint8_t *start = buf;
	struct wire_get g, again;

	wire_get_init(&g, buf, len);
	rr_hdr_init(h, 0, 0, 0);
	h->vers = 0;
	/* a get past the end yields the 0 that hdr.h promises */
	h->xid = wire_get_u32(&g);
	h->vers = wire_get_u32(&g);
	h->credits = wire_get_u32(&g);
	h->proc = wire_get_u32(&g);
	if (len < 8)
		return -EMSGSIZE;
	if (!wire_get_ok(&g))
		return -ENODATA;
	if (h->vers != RR_VERS)
		return -EPROTONOSUPPORT;

	again = g;
	switch (h->proc) {
	case RR_MSG:
	case RR_NOMSG:
		if (!check_lists(&g))
			return -EBADMSG;
		build_lists(&again, h);
		break;
	case RR_ERROR:
		if (check_error(&g))
			return -EBADMSG;
		build_error(&again, h);
		break;
	case RR_DONE:
		break;
	default:
		return -EOPNOTSUPP;
	}
	assert(again.at == g.at && wire_get_ok(&again));
	*ret_len = (size_t)(g.at - start);
	return 0;
}

size_t rr_hdr_bytes(const struct rr_hdr *h)
{
	size_t n = RR_HDR_MIN + h->nreads * (size_t)RR_READ_SEG_BYTES;

	switch (h->proc) {
	case RR_MSG:
	case RR_NOMSG:
		for (uint32_t i = 0; i < h->nwrites; i++)
			n += RR_CHUNK_HEAD_BYTES + h->writes[i].nsegs * (size_t)RR_SEGMENT_BYTES;
		/* the Reply chunk's discriminator is one of the three words of RR_HDR_MIN */
		if (h->has_reply)
			n += 4 + h->reply.nsegs * (size_t)RR_SEGMENT_BYTES;
		return n;
	case RR_ERROR:
		return h->err == RR_ERR_VERS ? RR_ERR_VERS_BYTES : RR_ERR_CHUNK_BYTES;
	default:
		return RR_HDR_FIXED;
	}
}

static void put_segment(struct wire_put *p, const struct rr_segment *s)
{
	wire_put_u32(p, s->handle);
	wire_put_u32(p, s->length);
	wire_put_u64(p, s->offset);
}

static void put_chunk(struct wire_put *p, const struct rr_chunk *c)
{
	assert(c->nsegs <= RR_CHUNK_SEGS_MAX);
	wire_put_u32(p, 1);
	wire_put_u32(p, c->nsegs);
	for (uint32_t i = 0; i < c->nsegs; i++)
		put_segment(p, &c->segs[i]);
}

static void put_lists(struct wire_put *p, const struct rr_hdr *h)
{
	assert(h->nreads <= RR_READ_SEGS_MAX && h->nwrites <= RR_WRITE_CHUNKS_MAX);
	for (uint32_t i = 0; i < h->nreads; i++) {
		assert(h->reads[i].position % 4 == 0);
		wire_put_u32(p, 1);
		wire_put_u32(p, h->reads[i].position);
		put_segment(p, &h->reads[i].seg);
	}
	wire_put_u32(p, 0);
	for (uint32_t i = 0; i < h->nwrites; i++)
		put_chunk(p, &h->writes[i]);
	wire_put_u32(p, 0);
	if (h->has_reply)
		put_chunk(p, &h->reply);
	else
		wire_put_u32(p, 0);
}

int rr_hdr_encode(const struct rr_hdr *h, void *buf, size_t cap, size_t *ret_len)
{
	struct wire_put p;

	assert(h->proc == RR_MSG || h->proc == RR_NOMSG || h->proc == RR_DONE ||
	       h->proc == RR_ERROR);
	wire_put_init(&p, buf, cap);
	wire_put_u32(&p, h->xid);
	wire_put_u32(&p, h->vers);
	wire_put_u32(&p, h->credits);
	wire_put_u32(&p, h->proc);
	if (h->proc == RR_MSG || h->proc == RR_NOMSG) {
		put_lists(&p, h);
	} else if (h->proc == RR_ERROR) {
		wire_put_u32(&p, h->err);
		if (h->err == RR_ERR_VERS) {
			wire_put_u32(&p, h->vers_low);
			wire_put_u32(&p, h->vers_high);
		}
	}
	if (!wire_put_ok(&p))
		return -EMSGSIZE;
	*ret_len = wire_put_len(&p);
	return 0;
}

int rr_hdr_encode_error(uint32_t xid, uint32_t vers, uint32_t credits, enum rr_err err, void *buf,
			size_t cap, size_t *ret_len)
{
	struct rr_hdr h;

	rr_hdr_init(&h, xid, credits, RR_ERROR);
	h.vers = vers;
	h.err = err;
	h.vers_low = RR_VERS;
	h.vers_high = RR_VERS;
	return rr_hdr_encode(&h, buf, cap, ret_len);
}

void rr_priv_encode(const struct rr_priv *p, uint8_t out[RR_PRIV_BYTES])
{
	assert(p->send_bytes % PRIV_UNIT == 0 && p->recv_bytes % PRIV_UNIT == 0);
	assert(p->send_bytes >= PRIV_UNIT && p->send_bytes <= PRIV_BYTES_MAX);
	assert(p->recv_bytes >= PRIV_UNIT && p->recv_bytes <= PRIV_BYTES_MAX);
	put_be32(out, RR_PRIV_MAGIC);
	out[4] = RR_PRIV_VERSION;
	out[5] = p->remote_inv ? RR_PRIV_REMOTE_INV : 0;
	out[6] = (uint8_t)(p->send_bytes / PRIV_UNIT - 1);
	out[7] = (uint8_t)(p->recv_bytes / PRIV_UNIT - 1);
}

void rr_priv_decode(const void *data, size_t len, struct rr_priv *ret)
{
	const uint8_t *b = data;

	*ret = (struct rr_priv){
		.send_bytes = RR_INLINE_DEFAULT,
		.recv_bytes = RR_INLINE_DEFAULT,
	};
	if (len < RR_PRIV_BYTES || get_be32(b) != RR_PRIV_MAGIC || b[4] != RR_PRIV_VERSION)
		return;
	ret->present = true;
	ret->remote_inv = b[5] & RR_PRIV_REMOTE_INV; /* later versions define other flags */
	ret->send_bytes = (b[6] + 1u) * PRIV_UNIT;
	ret->recv_bytes = (b[7] + 1u) * PRIV_UNIT;
}
