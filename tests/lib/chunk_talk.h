/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * chunk_talk.h - a peer over the local fabric whose calls have any chunk lists, for services of any kind
 */
#ifndef TESTS_CHUNK_TALK_H
#define TESTS_CHUNK_TALK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/wire.h"
#include "chunk.h"
#include "raw_peer.h"
#include "rpc_msg.h"

#define XID 0x1234u

static const struct rr_priv priv4k = { .present = true, .send_bytes = 4096, .recv_bytes = 4096 };

static inline void connect_to(struct raw_peer *p, struct rpcrdma_engine *server, const char *path)
{
	const struct raw_opts opts = { .priv = &priv4k };

	assert_int_equal(raw_open(p, server, path, &opts), 0);
}

struct region {
	uint8_t *mem;
	size_t len;
	struct rr_mr *mr;
};

#define READABLE (RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_READ)
#define WRITABLE (RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE)

static inline struct region offer(struct raw_peer *p, size_t len, unsigned access)
{
	struct rr_mr_attr a = { .len = len, .access = access, .fd = -1 };
	struct region r = { .mem = malloc(len), .len = len };

	assert_non_null(r.mem);
	memset(r.mem, 0xee, len);
	a.addr = r.mem;
	assert_int_equal(rr_mr_reg(p->pd, &a, &r.mr), 0);
	return r;
}

static inline void withdraw(struct region *r)
{
	if (r->mr)
		assert_int_equal(rr_mr_dereg(r->mr), 0);
	free(r->mem);
	*r = (struct region){ .mem = NULL };
}

static inline struct rr_segment seg(const struct region *r, size_t off, size_t len)
{
	return (struct rr_segment){ .handle = r->mr->rkey, .length = (uint32_t)len, .offset = (uint64_t)(uintptr_t)r->mem + off };
}

static struct rr_hdr hdr;          /* of the next call */
static uint8_t head[64];           /* RPC header of a call */
static size_t head_len;

static inline void begin(uint32_t proc)
{
	struct rr_rpc_call c = { .xid = XID, .rpcvers = 2, .prog = 0x20c5fff0, .vers = 1, .proc = 3 };
	struct wire_put p;

	rr_hdr_init(&hdr, XID, 32, proc);
	wire_put_init(&p, head, sizeof(head));
	rr_rpc_put_call(&p, &c);
	assert_true(wire_put_ok(&p));
	head_len = wire_put_len(&p);
}

static inline void add_read(uint32_t position, struct rr_segment s)
{
	hdr.reads[hdr.nreads++] = (struct rr_read_seg){ position, s };
}

/* A region in three segments of odd sizes. */
static inline void add_reads(uint32_t position, const struct region *r, size_t len)
{
	size_t a = len / 3, b = len / 2;

	add_read(position, seg(r, 0, a));
	add_read(position, seg(r, a, b - a));
	add_read(position, seg(r, b, len - b));
}

static inline void add_chunk(struct rr_chunk *c, const struct region *r, size_t len)
{
	size_t a = len / 3, b = len / 2;

	c->segs[c->nsegs++] = seg(r, 0, a);
	c->segs[c->nsegs++] = seg(r, a, b - a);
	c->segs[c->nsegs++] = seg(r, b, len - b);
}

static inline void offer_write(const struct region *r, size_t len)
{
	hdr.nwrites = 1;
	hdr.writes[0].nsegs = 0;
	add_chunk(&hdr.writes[0], r, len);
}

static inline void offer_reply(const struct region *r, size_t len)
{
	hdr.has_reply = true;
	hdr.reply.nsegs = 0;
	add_chunk(&hdr.reply, r, len);
}

static inline void say(struct raw_peer *p, const void *inline_args, size_t len, bool may_fail)
{
	enum rr_wc_status sent;
	uint8_t msg[4096];
	size_t n;

	assert_int_equal(rr_hdr_encode(&hdr, msg, sizeof(msg), &n), 0);
	if (hdr.proc == RR_MSG) {
		memcpy(msg + n, head, head_len);
		n += head_len;
		if (len)
			memcpy(msg + n, inline_args, len);
		n += len;
	}
	sent = raw_send(p, msg, n);
	assert_true(sent == RR_WC_OK || may_fail);
}

static struct rr_hdr reply;
static const uint8_t *body;
static uint32_t body_len;

static inline bool hear(struct raw_peer *p)
{
	const uint8_t *msg;
	uint32_t len;
	size_t n;

	msg = raw_recv(p, &len);
	if (!msg)
		return false;
	assert_int_equal(rr_hdr_decode(msg, len, &reply, &n), 0);
	assert_int_equal(reply.xid, XID);
	body = msg + n;
	body_len = len - (uint32_t)n;
	return true;
}

static inline void hear_error(struct raw_peer *p)
{
	assert_true(hear(p));
	assert_int_equal(reply.proc, RR_ERROR);
	assert_int_equal(reply.err, RR_ERR_CHUNK);
}

static inline void check_rpc(const uint8_t *p, size_t len)
{
	assert_true(len >= RR_RPC_REPLY_HDR_BYTES);
	assert_int_equal(get_be32(p), XID);
	assert_int_equal(get_be32(p + 4), RR_RPC_REPLY);
	assert_int_equal(get_be32(p + 20), RR_SUCCESS);
}

#endif
