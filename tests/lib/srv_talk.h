/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_talk.h - a responder and a peer beside it that says exactly what a test wants
 *
 * One program, one peer at a time: begin() and what follows build a message, say() sends it, the
 * expect_ functions look at the answer. set_up() opens the responder and connects the peer;
 * tear_down() ends with a second, well-behaved peer being served, whatever the first one did.
 */
#ifndef TESTS_SRV_TALK_H
#define TESTS_SRV_TALK_H

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
#include "raw_peer.h"
#include "rpc_msg.h"
#include "wire_svc.h"

static char path[64], url[80];
static struct wire_svc svc;
static struct raw_peer peer;
static const struct rr_priv priv4k = { .present = true, .send_bytes = 4096, .recv_bytes = 4096 };
static const struct raw_opts opts4k = { .priv = &priv4k };

/* ---- what is said ---- */

struct msg {
	struct rr_hdr hdr;
	uint8_t rpc[8192];
	size_t rpc_len;
	uint8_t raw[16384];
	size_t raw_len;
};

static struct msg m;

static inline void begin(uint32_t proc)
{
	rr_hdr_init(&m.hdr, 0x1234, 32, proc);
	m.rpc_len = 0;
}

static inline void rpc_call(uint32_t prog, uint32_t vers, uint32_t proc)
{
	struct rr_rpc_call c = { .xid = 0x1234, .rpcvers = 2, .prog = prog, .vers = vers, .proc = proc };
	struct wire_put p;

	wire_put_init(&p, m.rpc, sizeof(m.rpc));
	rr_rpc_put_call(&p, &c);
	assert_true(wire_put_ok(&p));
	m.rpc_len = wire_put_len(&p);
}

static inline void arg(uint32_t v)
{
	put_be32(m.rpc + m.rpc_len, v);
	m.rpc_len += 4;
}

static inline void finish_msg(void)
{
	assert_int_equal(rr_hdr_encode(&m.hdr, m.raw, sizeof(m.raw), &m.raw_len), 0);
	if (m.hdr.proc == RR_MSG) {
		memcpy(m.raw + m.raw_len, m.rpc, m.rpc_len);
		m.raw_len += m.rpc_len;
	}
}

static inline void say(void)
{
	finish_msg();
	assert_int_equal(raw_send(&peer, m.raw, m.raw_len), RR_WC_OK);
}

/* Memory of the peer that the server may reach. */
struct region {
	uint8_t *mem;
	size_t len;
	struct rr_mr *mr;
};

static struct region regions[8];
static unsigned nregions;

static inline struct region *offer(size_t len, unsigned access)
{
	struct region *r = &regions[nregions++];
	struct rr_mr_attr a = { .len = len, .access = access, .fd = -1 };

	assert_true(nregions <= 8);
	r->mem = malloc(len);
	assert_non_null(r->mem);
	memset(r->mem, 0xee, len);
	r->len = len;
	a.addr = r->mem;
	assert_int_equal(rr_mr_reg(peer.pd, &a, &r->mr), 0);
	return r;
}

#define READABLE (RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_READ)
#define WRITABLE (RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE)

static inline struct rr_segment seg(const struct region *r, size_t off, size_t len)
{
	return (struct rr_segment){ .handle = r->mr->rkey,
				    .length = (uint32_t)len,
				    .offset = (uint64_t)(uintptr_t)r->mem + off };
}

static inline void add_read(uint32_t position, struct rr_segment s)
{
	m.hdr.reads[m.hdr.nreads++] = (struct rr_read_seg){ position, s };
}

static inline void add_write_seg(unsigned chunk, struct rr_segment s)
{
	if (m.hdr.nwrites <= chunk) {
		m.hdr.nwrites = chunk + 1;
		m.hdr.writes[chunk].nsegs = 0;
	}
	m.hdr.writes[chunk].segs[m.hdr.writes[chunk].nsegs++] = s;
}

static inline void add_reply_seg(struct rr_segment s)
{
	if (!m.hdr.has_reply) {
		m.hdr.has_reply = true;
		m.hdr.reply.nsegs = 0;
	}
	m.hdr.reply.segs[m.hdr.reply.nsegs++] = s;
}

static inline void pattern(uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = wire_byte(i);
}

static inline void assert_pattern(const uint8_t *p, size_t off, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != wire_byte(off + i))
			fail_msg("byte %zu is 0x%02x", off + i, p[i]);
}

static inline void assert_untouched(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != 0xee)
			fail_msg("byte %zu was written", i);
}

/* ---- what is heard ---- */

static struct rr_hdr heard;
static const uint8_t *body;
static uint32_t body_len, send_len;

static inline void listen_for(void)
{
	size_t hdr_len;
	const uint8_t *got = raw_recv(&peer, &send_len);

	assert_non_null(got);
	assert_int_equal(rr_hdr_decode(got, send_len, &heard, &hdr_len), 0);
	assert_int_equal(heard.xid, 0x1234);
	assert_int_not_equal(heard.credits, 0); /* item 2 */
	body = got + hdr_len;
	body_len = send_len - (uint32_t)hdr_len;
	/* item 1: what answers a call has three lists and, inline, the RPC message's own XID first */
	assert_true(heard.proc == RR_ERROR || send_len >= RR_HDR_MIN);
	assert_true(heard.proc != RR_MSG || (body_len >= 20 && get_be32(body) == heard.xid));
}

static inline uint32_t word(unsigned i)
{
	assert_true(body_len >= 4 * (i + 1));
	return get_be32(body + 4 * i);
}

static inline void expect_accepted(uint32_t stat)
{
	listen_for();
	assert_int_equal(heard.proc, RR_MSG);
	assert_int_equal(word(0), 0x1234);
	assert_int_equal(word(1), RR_RPC_REPLY);
	assert_int_equal(word(2), RR_ACCEPTED);
	assert_int_equal(word(5), stat);
}

static inline void expect_err_chunk(void)
{
	listen_for();
	assert_int_equal(heard.proc, RR_ERROR);
	assert_int_equal(heard.err, RR_ERR_CHUNK);
	assert_int_equal(send_len, RR_ERR_CHUNK_BYTES);
}

static inline void expect_nothing(void)
{
	uint32_t len;

	assert_null(raw_recv(&peer, &len));
}

/* ---- around each test ---- */

static inline void close_peer(void)
{
	raw_close(&peer);
	while (nregions > 0) {
		struct region *r = &regions[--nregions];

		free(r->mem);
	}
}

/* the regions go before the protection domain does */
static inline void drop_regions(void)
{
	for (unsigned i = 0; i < nregions; i++) {
		assert_int_equal(rr_mr_dereg(regions[i].mr), 0);
		regions[i].mr = NULL;
	}
}

static inline void connect_peer(const struct raw_opts *o)
{
	assert_int_equal(raw_open(&peer, svc.engine, path, o), 0);
}

static inline int set_up(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/leat-wire-%d.sock", (int)getpid());
	snprintf(url, sizeof(url), "local://%s", path);
	if (wire_svc_open(&svc, url, NULL, NULL))
		return -1;
	connect_peer(&opts4k);
	return 0;
}

static inline void still_serves(void)
{
	begin(RR_MSG);
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
	say();
	expect_accepted(RR_SUCCESS);
}

static inline int tear_down(void **state)
{
	(void)state;
	drop_regions();
	close_peer();
	/* whatever the first one did, the next is served */
	connect_peer(&opts4k);
	still_serves();
	close_peer();
	wire_svc_close(&svc);
	return 0;
}

static inline void get_args(uint32_t count, uint32_t mode)
{
	begin(RR_MSG);
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_GET);
	arg(count);
	arg(mode);
}

/* PUT with the payload left to a chunk: position is that of the bytes in the un-reduced call */
static inline uint32_t put_args(uint32_t proc, uint32_t declared)
{
	begin(proc);
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_PUT);
	arg(77);
	arg(declared);
	return (uint32_t)m.rpc_len;
}

static inline void expect_put(uint32_t len)
{
	expect_accepted(RR_SUCCESS);
	assert_int_equal(word(6), len);
	assert_int_equal(svc.put_bytes, len);
	assert_pattern(svc.put_data, 0, len);
}

static inline void assert_returned(const struct rr_chunk *offered, const struct rr_chunk *got, uint64_t used)
{
	uint64_t n;

	assert_int_equal(rr_chunk_check_returned(offered, got, &n), 0);
	assert_int_equal(n, used);
}

static inline void big_args(uint32_t bytes)
{
	begin(RR_MSG);
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_BIG);
	arg(bytes);
}

/* Starts the responder again, with other attributes. */
static inline void serve_with(const struct rpcrdma_domain_attr *domain, const struct rpcrdma_svc_attr *attr)
{
	close_peer();
	wire_svc_close(&svc);
	assert_int_equal(wire_svc_open(&svc, url, domain, attr), 0);
}

/* Another peer's GET over the message that m holds; the caller checks its reply. */
static inline const uint8_t *ask(struct raw_peer *p, uint32_t *ret_len)
{
	finish_msg();
	assert_int_equal(raw_send(p, m.raw, m.raw_len), RR_WC_OK);
	return raw_recv(p, ret_len);
}

#define wire_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
