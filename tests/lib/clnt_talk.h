/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_talk.h - a client and a responder beside it that says exactly what a test wants
 *
 * One program, one client at a time: start_get() and its like make a call, hear() looks at what the
 * client sent for it, answer_*() build a reply, reply() sends it. Every message that is heard is held
 * against items 1, 2 and 46 of the checklist in doc/protocol.md.
 */
#ifndef TESTS_CLNT_TALK_H
#define TESTS_CLNT_TALK_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/wire.h"
#include "chunk.h"
#include "local.h"
#include "raw_server.h"
#include "rpc_msg.h"
#include "wire_svc.h"

#define SINK_MAX (1u << 20)

static char path[64];
static struct raw_server srv;
static struct rpcrdma_domain *domain;
static struct rpcrdma_engine *engine;
static struct rpcrdma_clnt *clnt;
static uint8_t priv4k[RR_PRIV_BYTES];
static struct rpcrdma_addr talk_addr; /* where the responder is, if that is not the socket @path */

/* ---- the client ---- */

static inline void connect_clnt(const struct rpcrdma_clnt_attr *attr)
{
	struct rpcrdma_clnt_attr a = { .backoff_ms = 1 };

	if (attr)
		a = *attr;
	a.backoff_ms = 1;
	a.addr.transport = RPCRDMA_LOCAL;
	snprintf(a.addr.host, sizeof(a.addr.host), "%s", path);
	if (talk_addr.host[0])
		a.addr = talk_addr;
	assert_int_equal(rpcrdma_clnt_open(engine, &a, &clnt), 0);
}

static inline void open_both(const struct raw_server_opts *so, const struct rpcrdma_clnt_attr *ca)
{
	raw_server_open(&srv, engine, path, so);
	connect_clnt(ca);
	raw_server_until(&srv, &srv.conns, 1);
}

static inline void close_both(void)
{
	rpcrdma_clnt_destroy(clnt);
	clnt = NULL;
	if (srv.fabric)
		raw_server_settle(&srv);
	raw_server_close(&srv);
	unlink(path);
}

static inline int set_up_engine(void **state)
{
	static const struct rr_priv p = { .present = true, .send_bytes = 4096, .recv_bytes = 4096 };
	static unsigned serial;

	(void)state;
	rr_priv_encode(&p, priv4k);
	snprintf(path, sizeof(path), "/tmp/leat-clnt-wire-%d.%u", (int)getpid(), serial++);
	return rpcrdma_domain_create(NULL, &domain) || rpcrdma_engine_create(domain, NULL, &engine);
}

static inline int set_up(void **state)
{
	static const struct raw_server_opts so = { .priv = priv4k, .priv_len = sizeof(priv4k) };

	if (set_up_engine(state))
		return -1;
	open_both(&so, NULL);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	close_both();
	for (int idle = 0; idle < 1000; idle++)
		if (rpcrdma_engine_poll(engine))
			idle = 0;
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(domain);
	return 0;
}

/* ---- its calls ---- */

struct talk_call {
	struct rpcrdma_call call;
	struct wire_get_args get_args;
	struct wire_put_args put_args;
	uint32_t big_args;
	struct wire_get_res get_res;
	struct wire_put_res put_res;
	struct wire_big_res big_res;
	struct iovec iov[8], sink;
	uint8_t *mem;               /* of the sink, or what is put */
	size_t bytes;
	unsigned done;
	int err;
};

static inline void talk_done(struct rpcrdma_call *call, int err)
{
	struct talk_call *c = container_of(call, struct talk_call, call);

	c->done++;
	c->err = err;
}

static inline bool_t xdr_no_args(XDR *xdrs, void *none)
{
	(void)xdrs;
	(void)none;
	return TRUE;
}

static inline void talk_init(struct talk_call *c, uint32_t proc, size_t bytes)
{
	memset(c, 0, sizeof(*c));
	c->bytes = bytes;
	c->mem = malloc(bytes + 1);
	assert_non_null(c->mem);
	memset(c->mem, 0xee, bytes + 1);
	c->call = (struct rpcrdma_call){ .prog = WIRE_PROG, .vers = WIRE_VERS, .proc = proc,
					 .done = talk_done,
					 .encode = (xdrproc_t)xdr_no_args,
					 .decode = (xdrproc_t)xdr_no_args };
}

static inline void talk_go(struct talk_call *c)
{
	c->done = 0;
	assert_int_equal(rpcrdma_clnt_call(clnt, &c->call), 0);
}

static inline void start_null(struct talk_call *c)
{
	talk_init(c, WIRE_NULL, 0);
	talk_go(c);
}

/* A GET into @mem, of at least a byte more, or into memory of its own where that is NULL. */
static inline void get_init(struct talk_call *c, void *mem, uint32_t bytes)
{
	talk_init(c, WIRE_GET, bytes);
	if (mem) {
		free(c->mem);
		c->mem = mem;
		memset(mem, 0xee, bytes + 1);
	}
	c->get_args.count = bytes;
	c->sink = (struct iovec){ c->mem, bytes };
	c->call.encode = (xdrproc_t)xdr_wire_get_args;
	c->call.args = &c->get_args;
	c->call.decode = (xdrproc_t)xdr_wire_get_res;
	c->call.res = &c->get_res;
	c->call.sink = &c->sink;
	c->call.sinkcnt = bytes ? 1 : 0;
	c->call.reply_max = 8;
}

static inline void start_get(struct talk_call *c, uint32_t bytes)
{
	get_init(c, NULL, bytes);
	talk_go(c);
}

/* BIG results have no payload: the longest reply is 24 + 4 + bytes */
static inline void start_big(struct talk_call *c, uint32_t bytes)
{
	talk_init(c, WIRE_BIG, 0);
	c->big_args = bytes;
	c->call.encode = (xdrproc_t)xdr_u_int;
	c->call.args = &c->big_args;
	c->call.decode = (xdrproc_t)xdr_wire_big_res;
	c->call.res = &c->big_res;
	c->call.reply_max = 4 + bytes;
	talk_go(c);
}

static inline void start_put(struct talk_call *c, uint32_t bytes)
{
	talk_init(c, WIRE_PUT, bytes);
	for (uint32_t i = 0; i < bytes; i++)
		c->mem[i] = wire_byte(i);
	c->iov[0] = (struct iovec){ c->mem, bytes };
	c->put_args = (struct wire_put_args){ .tag = 7, .data = { .length = bytes, .iov = c->iov,
								  .iovcnt = 1 } };
	c->call.encode = (xdrproc_t)xdr_wire_put_args;
	c->call.args = &c->put_args;
	c->call.decode = (xdrproc_t)xdr_wire_put_res;
	c->call.res = &c->put_res;
	c->call.reply_max = 8;
	talk_go(c);
}

/* It ended with @err; then its memory may be looked at and goes. */
static inline void ended(struct talk_call *c, int err)
{
	raw_server_until(&srv, &c->done, 1);
	assert_int_equal(c->done, 1);
	if (c->err != err)
		fail_msg("call ended with %d (%s), not %d", c->err, c->call.why, err);
	assert_int_equal(c->mem[c->bytes], 0xee);
}

static inline void talk_fini(struct talk_call *c)
{
	free(c->mem);
	c->mem = NULL;
}

static inline void assert_pattern(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != wire_byte(i))
			fail_msg("byte %zu is 0x%02x", i, p[i]);
}

static inline void assert_untouched(const struct talk_call *c, size_t from)
{
	for (size_t i = from; i <= c->bytes; i++)
		if (c->mem[i] != 0xee)
			fail_msg("byte %zu was written", i);
}

/* ---- what is heard ---- */

static struct rr_hdr heard;
static const uint8_t *body;
static uint32_t body_len, send_len;

static inline bool hear_one(void)
{
	struct rpcrdma_clnt_info info;
	const uint8_t *got = raw_server_recv(&srv, &send_len);
	size_t hdr_len = 0;

	if (!got)
		return false;
	assert_int_equal(rr_hdr_decode(got, send_len, &heard, &hdr_len), 0);
	body = got + hdr_len;
	body_len = send_len - (uint32_t)hdr_len;
	/* item 1 */
	assert_true(heard.proc == RR_MSG || heard.proc == RR_NOMSG);
	assert_true(send_len >= RR_HDR_MIN);
	if (heard.proc == RR_MSG) {
		assert_true(body_len >= 40);
		assert_int_equal(get_be32(body), heard.xid);
		assert_int_equal(get_be32(body + 4), RR_RPC_CALL);
	} else {
		assert_int_equal(body_len, 0);
	}
	assert_int_not_equal(heard.credits, 0); /* item 2 */
	rpcrdma_clnt_info(clnt, &info);
	assert_in_range(send_len, RR_HDR_MIN, info.send_inline); /* item 46 */
	return true;
}

static inline void hear(void)
{
	assert_true(hear_one());
}

/* ---- what is answered ---- */

struct answer {
	struct rr_hdr hdr;
	uint8_t rpc[131072];
	size_t rpc_len;
	uint8_t raw[196608];
	size_t raw_len;
};

static struct answer ans;

static inline void answer_word(uint32_t v)
{
	put_be32(ans.rpc + ans.rpc_len, v);
	ans.rpc_len += 4;
}

/* A reply to what was heard last: every chunk returned, nothing used, RPC header of success. */
static inline void answer_begin(uint32_t proc)
{
	struct rr_rpc_reply head = { .xid = heard.xid, .stat = RR_ACCEPTED, .accept = RR_SUCCESS };
	struct wire_put p;

	rr_hdr_init(&ans.hdr, heard.xid, 32, proc);
	ans.hdr.nwrites = heard.nwrites;
	for (unsigned i = 0; i < heard.nwrites; i++)
		rr_chunk_return(&heard.writes[i], 0, &ans.hdr.writes[i]);
	ans.hdr.has_reply = heard.has_reply;
	if (heard.has_reply)
		rr_chunk_return(&heard.reply, 0, &ans.hdr.reply);
	wire_put_init(&p, ans.rpc, sizeof(ans.rpc));
	rr_rpc_put_reply(&p, &head);
	assert_true(wire_put_ok(&p));
	ans.rpc_len = wire_put_len(&p);
}

static inline void answer_opaque(uint32_t len)
{
	answer_word(len);
	for (uint32_t i = 0; i < round_up4(len); i++)
		ans.rpc[ans.rpc_len++] = i < len ? wire_byte(i) : 0;
}

static inline void answer_big(uint32_t bytes)
{
	answer_word(bytes);
	for (uint32_t i = 0; i < bytes; i += 4)
		answer_word(i * 2654435761u);
}

static inline void answer_encode(void)
{
	assert_int_equal(rr_hdr_encode(&ans.hdr, ans.raw, sizeof(ans.raw), &ans.raw_len), 0);
	if (ans.hdr.proc == RR_MSG) {
		memcpy(ans.raw + ans.raw_len, ans.rpc, ans.rpc_len);
		ans.raw_len += ans.rpc_len;
	}
}

/* The key to be invalidated with the next answer; 0: none */
static uint32_t inv_key;

static inline void answer_send(void)
{
	uint32_t key = inv_key;

	inv_key = 0;
	assert_int_equal(key ? raw_server_send_inv(&srv, ans.raw, ans.raw_len, key) :
			       raw_server_send(&srv, ans.raw, ans.raw_len), RR_WC_OK);
}

static inline void reply(void)
{
	answer_encode();
	answer_send();
}

/* Pattern into a chunk that was offered. */
static inline void fill_chunk(const struct rr_chunk *offered, uint32_t len)
{
	uint32_t at = 0;

	for (unsigned i = 0; i < offered->nsegs && at < len; i++) {
		uint32_t n = MIN(offered->segs[i].length, len - at);
		uint8_t *bytes = malloc(n);

		assert_non_null(bytes);
		for (uint32_t k = 0; k < n; k++)
			bytes[k] = wire_byte(at + k);
		assert_int_equal(raw_server_write(&srv, &offered->segs[i], 0, bytes, n), RR_WC_OK);
		free(bytes);
		at += n;
	}
	assert_int_equal(at, len);
}

/* The whole, right answer to a GET: by Write chunk if there is one, else inline. */
static inline void answer_get(uint32_t len)
{
	answer_begin(RR_MSG);
	answer_word(0);
	if (heard.nwrites) {
		fill_chunk(&heard.writes[0], len);
		rr_chunk_return(&heard.writes[0], len, &ans.hdr.writes[0]);
		answer_word(len);
	} else {
		answer_opaque(len);
	}
	reply();
}

static inline void answer_put(uint32_t len)
{
	answer_begin(RR_MSG);
	answer_word(len);
	answer_word(0);
	reply();
}

/* Put the RPC reply that was built into the Reply chunk; the caller says RR_NOMSG in answer_begin() */
static inline void into_reply_chunk(void)
{
	uint32_t at = 0, len = (uint32_t)ans.rpc_len;

	for (unsigned i = 0; i < heard.reply.nsegs && at < len; i++) {
		uint32_t n = MIN(heard.reply.segs[i].length, len - at);

		assert_int_equal(raw_server_write(&srv, &heard.reply.segs[i], 0, ans.rpc + at, n),
				 RR_WC_OK);
		at += n;
	}
	assert_int_equal(at, len);
	rr_chunk_return(&heard.reply, len, &ans.hdr.reply);
}

/* A call from its start to its end, all well: the client is in order. */
static inline void still_works(void)
{
	struct talk_call c;

	start_get(&c, 9001);
	hear();
	answer_get(9001);
	ended(&c, 0);
	assert_pattern(c.mem, 9001);
	talk_fini(&c);
}

#define clnt_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
/* ... that opens both ends as it likes, and more than once */
#define clnt_test_bare(f) cmocka_unit_test_setup_teardown(f, set_up_engine, tear_down)

#endif
