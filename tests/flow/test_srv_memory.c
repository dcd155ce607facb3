/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_srv_memory.c - the responder's memory and its peers': keys, hostile peers, bounds, counters
 *
 * The numbers are those of the checklist in doc/protocol.md.
 */
#include "base/clock.h"
#include "engine_int.h"
#include "srv_talk.h"

/* ---- memory: items 65-67 ---- */

static void item65_invalidation(void **state)
{
	static const struct rr_priv with_r = { .present = true, .remote_inv = true, .send_bytes = 4096,
					       .recv_bytes = 4096 };
	static const struct raw_opts o = { .priv = &with_r };
	struct region *r, *plain;
	struct rr_segment win[2];
	struct rr_mw *mw[2];
	uint32_t key;

	(void)state;
	plain = offer(4096, WRITABLE); /* without R: never, whatever is offered */
	get_args(4000, WIRE_PLACE);
	add_write_seg(0, seg(plain, 0, 4096));
	say();
	expect_accepted(RR_SUCCESS);
	assert_false(raw_last_inv(&peer, &key));
	drop_regions();
	close_peer();

	connect_peer(&o);
	r = offer(65536, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_MW_BIND);
	for (unsigned form = 0; form < 6; form++) {
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(rr_mw_create(peer.pd, &mw[i]), 0);
			assert_int_equal(raw_bind(&peer, mw[i], r->mr, r->mem + i * 8192, 8192,
						  RR_ACCESS_REMOTE_READ | RR_ACCESS_REMOTE_WRITE),
					 RR_WC_OK);
			win[i] = (struct rr_segment){ mw[i]->rkey, 8192,
						      (uint64_t)(uintptr_t)r->mem + i * 8192 };
		}
		switch (form) {
		case 0: /* Write chunk with a pad segment behind: the first one, and only that */
			get_args(8001, WIRE_PLACE);
			add_write_seg(0, win[0]);
			win[1].length = 4;
			add_write_seg(0, win[1]);
			break;
		case 1: /* Read chunk */
			pattern(r->mem, 8001);
			win[0].length = 8001;
			add_read(put_args(RR_MSG, 8001), win[0]);
			break;
		case 2: /* Reply chunk */
			big_args(8000);
			add_reply_seg(win[0]);
			break;
		case 3: /* no chunk, nothing to invalidate */
			begin(RR_MSG);
			rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
			break;
		case 4: /* an RDMA_ERROR takes nothing along */
			get_args(16000, WIRE_PLACE);
			add_write_seg(0, win[0]);
			break;
		case 5: /* an RPC error is a reply like any other */
			begin(RR_MSG);
			rpc_call(WIRE_PROG, WIRE_VERS, 999);
			add_write_seg(0, win[0]);
			break;
		}
		say();
		listen_for();
		assert_int_equal(heard.proc, form == 2 ? RR_NOMSG : form == 4 ? RR_ERROR : RR_MSG);
		if (form == 3 || form == 4) {
			assert_false(raw_last_inv(&peer, &key));
		} else {
			assert_true(raw_last_inv(&peer, &key));
			assert_int_equal(key, win[0].handle);
		}
		assert_true(raw_alive(&peer));
		rr_mw_destroy(mw[0]);
		rr_mw_destroy(mw[1]);
	}
	drop_regions();
	close_peer();

	{ /* told not to */
		struct rpcrdma_svc_attr attr = { .no_remote_inv = true };

		serve_with(NULL, &attr);
		connect_peer(&o);
		plain = offer(4096, WRITABLE);
		get_args(4000, WIRE_PLACE);
		add_write_seg(0, seg(plain, 0, 4096));
		say();
		expect_accepted(RR_SUCCESS);
		assert_false(raw_last_inv(&peer, &key));
	}
}

static const struct rr_fabric_ops *true_ops;
static struct rr_fabric_ops watched_ops;
static unsigned regs_seen, remote_regs, windows_seen;

static int watch_reg(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret)
{
	regs_seen++;
	remote_regs += (attr->access & (RR_ACCESS_REMOTE | RR_ACCESS_MW_BIND)) != 0;
	return true_ops->mr_reg(pd, attr, ret);
}

static int watch_window(struct rr_pd *pd, struct rr_mw **ret)
{
	windows_seen++;
	return true_ops->mw_create(pd, ret);
}

/* Whatever the server registers from its first breath on goes through here. */
static void watch_domain(struct rpcrdma_domain *d)
{
	struct rr_dev *dev;

	assert_int_equal(rr_domain_dev(d, RPCRDMA_LOCAL, &dev), 0);
	true_ops = dev->fabric->ops;
	watched_ops = *true_ops;
	watched_ops.mr_reg = watch_reg;
	watched_ops.mw_create = watch_window;
	dev->fabric->ops = &watched_ops;
}

static void item66_no_remote_rights(void **state)
{
	struct region *r, *head;
	uint32_t pos;

	(void)state;
	wire_svc_on_domain = watch_domain;
	serve_with(NULL, NULL);
	wire_svc_on_domain = NULL;
	connect_peer(&opts4k);
	r = offer(1 << 20, READABLE | WRITABLE);
	for (uint32_t mode = WIRE_PLACE; mode <= WIRE_ERROR; mode++) {
		get_args(1 << 20, mode);
		add_write_seg(0, seg(r, 0, 1 << 20));
		say();
		expect_accepted(RR_SUCCESS);
	}
	pattern(r->mem, r->len);
	add_read(put_args(RR_MSG, 1 << 20), seg(r, 0, 1 << 20));
	say();
	expect_put(1 << 20);
	pos = put_args(RR_NOMSG, 5000);
	head = offer(pos, READABLE);
	memcpy(head->mem, m.rpc, pos);
	add_read(0, seg(head, 0, pos));
	add_read(pos, seg(r, 0, 5000));
	say();
	expect_put(5000);
	big_args(20000);
	add_reply_seg(seg(r, 0, 65536));
	say();
	listen_for();
	assert_int_equal(heard.proc, RR_NOMSG);
	svc.hold = true;
	for (unsigned i = 0; i < 8; i++) { /* more receives: one more registration */
		get_args(16, WIRE_PLACE);
		m.hdr.credits = 1000;
		finish_msg();
		assert_int_equal(raw_send(&peer, m.raw, m.raw_len), RR_WC_OK);
	}
	raw_settle(&peer);
	wire_svc_release(&svc);
	assert_true(regs_seen >= 3);
	assert_int_equal(remote_regs, 0);
	assert_int_equal(windows_seen, 0);
	drop_regions();
	close_peer();
	wire_svc_close(&svc);
	assert_int_equal(wire_svc_open(&svc, url, NULL, NULL), 0);
	connect_peer(&opts4k);
}

static void item67_keys_of_another_connection(void **state)
{
	static struct raw_peer thief;
	struct region *r = offer(8192, READABLE | WRITABLE);
	uint32_t len;

	(void)state;
	for (unsigned form = 0; form < 2; form++) {
		assert_int_equal(raw_open(&thief, svc.engine, path, &opts4k), 0);
		svc.put_bytes = 0;
		if (form) {
			add_read(put_args(RR_MSG, 8000), seg(r, 0, 8000));
		} else {
			get_args(8000, WIRE_PLACE);
			add_write_seg(0, seg(r, 0, 8192));
		}
		assert_null(ask(&thief, &len));
		assert_false(raw_alive(&thief));
		assert_untouched(r->mem, 8192);
		assert_int_equal(svc.put_bytes, 0);
		raw_close(&thief);
	}
	get_args(8000, WIRE_PLACE); /* its owner may use it as before */
	add_write_seg(0, seg(r, 0, 8192));
	say();
	expect_accepted(RR_SUCCESS);
	assert_pattern(r->mem, 0, 8000);
}

/* ---- hostile peers: items 83-85 ---- */

static uint64_t dice = 88172645463325252u;

static uint32_t roll(uint32_t n)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)(dice >> 33) % n;
}

/* A good message of some form, over the region, and then a few of its bytes and its length changed. */
static void build_nonsense(const struct region *r)
{
	switch (roll(5)) {
	case 0:
		get_args(roll(9000), roll(6));
		add_write_seg(0, seg(r, 0, 4000));
		add_write_seg(0, seg(r, 4000, 4000));
		break;
	case 1:
		add_read(put_args(RR_MSG, 5000), seg(r, 0, 5000));
		break;
	case 2:
		put_args(RR_NOMSG, 400);
		memcpy(r->mem, m.rpc, m.rpc_len);
		add_read(0, seg(r, 0, m.rpc_len + 400));
		break;
	case 3:
		big_args(roll(30000));
		add_reply_seg(seg(r, 0, 20000));
		break;
	default:
		begin(RR_MSG);
		rpc_call(WIRE_PROG, WIRE_VERS, roll(8));
		break;
	}
	finish_msg();
	for (uint32_t n = roll(4); n > 0; n--) {
		uint32_t at = roll((uint32_t)m.raw_len);

		m.raw[at] = (uint8_t)(roll(3) ? roll(256) : m.raw[at] ^ 1u << roll(8));
	}
	if (!roll(4))
		m.raw_len = roll((uint32_t)m.raw_len + 1);
}

static void item83_nonsense_beside_a_good_peer(void **state)
{
	static struct raw_peer bad;
	struct region *r, *good = offer(9001, WRITABLE);
	unsigned lost = 0;

	(void)state;
	assert_int_equal(raw_open(&bad, svc.engine, path, &opts4k), 0);
	r = &regions[nregions++];
	*r = (struct region){ 0 };
	for (unsigned i = 0; i < 3000; i++) {
		struct rr_mr_attr a = { .len = 65536, .access = READABLE | WRITABLE, .fd = -1 };

		if (!r->mr) { /* memory of the bad peer, which goes with its connection */
			r->mem = r->mem ? r->mem : malloc(65536);
			assert_non_null(r->mem);
			r->len = 65536;
			a.addr = r->mem;
			assert_int_equal(rr_mr_reg(bad.pd, &a, &r->mr), 0);
		}
		build_nonsense(r);
		if (raw_send(&bad, m.raw, m.raw_len) != RR_WC_OK || bad.flushed) {
			raw_settle(&bad);
			rr_mr_dereg(r->mr);
			r->mr = NULL;
			raw_close(&bad);
			assert_int_equal(raw_open(&bad, svc.engine, path, &opts4k), 0);
			lost++;
		}
		bad.taken = bad.ngot;
		if (i % 20)
			continue;
		memset(good->mem, 0xee, 9001);
		get_args(9001, WIRE_PLACE);
		add_write_seg(0, seg(good, 0, 9001));
		say();
		expect_accepted(RR_SUCCESS);
		assert_returned(&m.hdr.writes[0], &heard.writes[0], 9001);
		assert_pattern(good->mem, 0, 9001);
	}
	assert_in_range(lost, 10, 2000);
	raw_settle(&bad);
	if (r->mr)
		rr_mr_dereg(r->mr);
	r->mr = NULL;
	raw_close(&bad);
}

static void item84_no_more_than_so_many(void **state)
{
	struct rpcrdma_svc_attr attr = { .conns_max = 3, .credits = 16 };
	static const struct raw_opts o = { .priv = &priv4k, .recvs = 64 };
	static struct raw_peer more[3];

	(void)state;
	serve_with(NULL, &attr);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(raw_open(&more[i], svc.engine, path, &opts4k), 0);
	assert_int_equal(svc.refused, 0);
	assert_int_equal(raw_open(&peer, svc.engine, path, &opts4k), -ECONNREFUSED);
	assert_int_equal(svc.refused, 1); /* the service can say why */
	assert_int_equal(svc.refused_err, -EUSERS);
	raw_close(&peer);
	raw_close(&more[1]);
	connect_peer(&o);
	still_serves();
	raw_close(&more[0]);
	raw_close(&more[2]);
	/* whatever is asked for, credits and the receives behind them end somewhere */
	for (unsigned round = 0; round < 4; round++) {
		uint32_t n = heard.credits;

		svc.hold = true;
		for (uint32_t i = 0; i < n; i++) {
			get_args(16, WIRE_PLACE);
			m.hdr.credits = UINT32_MAX;
			finish_msg();
			assert_int_equal(raw_send(&peer, m.raw, m.raw_len), RR_WC_OK);
		}
		raw_settle(&peer);
		wire_svc_release(&svc);
		for (uint32_t i = 0; i < n; i++)
			expect_accepted(RR_SUCCESS);
	}
	assert_int_equal(heard.credits, 16);
}

static void item84_silent_peers_are_let_go(void **state)
{
	struct rpcrdma_svc_attr attr = { .first_call_ms = 30 };
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;
	static struct raw_peer talker;
	uint32_t len;

	(void)state;
	serve_with(NULL, &attr);
	connect_peer(&opts4k);
	begin(RR_MSG);
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
	finish_msg();
	assert_int_equal(raw_open(&talker, svc.engine, path, &opts4k), 0);
	/* on a busy machine the time may be up before we have said it */
	while (raw_send(&talker, m.raw, m.raw_len) != RR_WC_OK || !raw_recv(&talker, &len)) {
		assert_true(clock_now_ns() < end);
		raw_close(&talker);
		assert_int_equal(raw_open(&talker, svc.engine, path, &opts4k), 0);
	}
	while (raw_alive(&peer))
		assert_true(clock_now_ns() < end);
	assert_true(raw_alive(&talker)); /* one call is enough */
	raw_close(&talker);
	serve_with(NULL, NULL); /* and tear_down() is in no hurry */
}

static void item84_memory_of_the_pool_ends(void **state)
{
	/* of which an eighth is for long calls */
	struct rpcrdma_domain_attr domain = { .pool_bytes_max = 32u << 20 };
	struct region *r;
	struct rpcrdma_stats st;

	(void)state;
	serve_with(&domain, NULL);
	connect_peer(&opts4k);
	r = offer(1 << 20, READABLE);
	memset(r->mem, 0, 1 << 20);
	svc.hold = true;
	/* long calls without a reply hold buffers; beyond the pool's end they wait for them */
	for (unsigned i = 0; i < 8; i++) {
		uint32_t pos = put_args(RR_NOMSG, 500000);
		struct region *head = i ? &regions[1] : offer(pos, READABLE);

		if (!i)
			memcpy(head->mem, m.rpc, pos);
		add_read(0, seg(head, 0, pos));
		add_read(0, seg(r, 0, 500000));
		say();
	}
	raw_settle(&peer);
	rpcrdma_domain_stats(svc.domain, &st);
	assert_true(st.buf_waits > 0);
	assert_int_equal(st.calls < 8, 1);
	assert_true(raw_alive(&peer));
	drop_regions();
	close_peer(); /* and goes while some of them wait */
	wire_svc_release(&svc);
	connect_peer(&opts4k);
}

/* An answer that is given from inside its own pull's callback, and has to wait for memory. */
static void answer_waits_for_memory(void **state)
{
	struct rpcrdma_domain_attr domain = { .pool_bytes_max = 8u << 20 };
	static const struct raw_opts without = { .priv = NULL };
	struct rpcrdma_buf *small, *taken[64];
	struct region *w, *r;
	unsigned n = 0;

	(void)state;
	serve_with(&domain, NULL);
	connect_peer(&without);
	assert_int_equal(rpcrdma_buf_get(svc.engine, 4096, &small), 0);
	while (rr_buf_get(svc.engine, RR_ZONE_REPLIES, 200000, &taken[n]) == 0)
		n++;
	w = offer(5900, WRITABLE);
	r = offer(200000, WRITABLE);
	put_args(RR_MSG, 16);
	for (uint32_t i = 0; i < 16; i++)
		m.rpc[m.rpc_len++] = wire_byte(i);
	for (unsigned i = 0; i < 59; i++) /* leaves no room inline */
		add_write_seg(0, seg(w, i * 100, 100));
	add_reply_seg(seg(r, 0, 200000));
	say();
	expect_nothing();
	assert_int_equal(svc.put_bytes, 16); /* pulled, answered, not sent */
	rpcrdma_buf_put(svc.engine, taken[--n]);
	listen_for();
	assert_int_equal(heard.proc, RR_NOMSG);
	assert_returned(&m.hdr.reply, &heard.reply, 32);
	assert_int_equal(get_be32(r->mem), 0x1234);
	while (n > 0)
		rpcrdma_buf_put(svc.engine, taken[--n]);
	rpcrdma_buf_put(svc.engine, small);
}

/* Buffers that held other data show none of it: not in pads, not behind the end, not in errors. */
static void item85_no_stale_bytes(void **state)
{
	struct region *dirt = offer(1 << 20, READABLE), *r;

	(void)state;
	memset(dirt->mem, 0xdd, dirt->len);
	for (unsigned i = 0; i < 4; i++) {
		add_read(put_args(RR_MSG, 1 << 20), seg(dirt, 0, 1 << 20));
		say();
		expect_accepted(RR_SUCCESS);
		big_args(4000); /* and the send buffers */
		say();
		expect_accepted(RR_SUCCESS);
	}
	r = offer(16384, WRITABLE);
	for (uint32_t len = 1; len <= 5; len++) {
		get_args(len, WIRE_PLACE); /* inline: pads are zero, and there is nothing more */
		say();
		expect_accepted(RR_SUCCESS);
		assert_int_equal(body_len, 32 + round_up4(len));
		assert_pattern(body + 32, 0, len);
		for (uint32_t i = len; i < round_up4(len); i++)
			assert_int_equal(body[32 + i], 0);
		get_args(8000 + len, WIRE_PLACE); /* in the Reply chunk */
		add_reply_seg(seg(r, 0, 16384));
		say();
		listen_for();
		assert_int_equal(heard.proc, RR_NOMSG);
		assert_returned(&m.hdr.reply, &heard.reply, 32 + round_up4(8000 + len));
		assert_pattern(r->mem + 32, 0, 8000 + len);
		for (size_t i = 8000 + len; i < round_up4(8000 + len); i++)
			assert_int_equal(r->mem[32 + i], 0);
		assert_untouched(r->mem + 32 + round_up4(8000 + len), 100);
		memset(r->mem, 0xee, r->len);
		get_args(len, WIRE_PLACE); /* in the Write chunk: not even a pad */
		add_write_seg(0, seg(r, 0, 16384));
		say();
		expect_accepted(RR_SUCCESS);
		assert_untouched(r->mem + len, 16384 - len);
		memset(r->mem, 0xee, r->len);
	}
	get_args(20000, WIRE_PLACE); /* an error is 20 bytes */
	say();
	expect_err_chunk();
}

/* ---- item 90 ---- */

static void item90_counters(void **state)
{
	struct rpcrdma_stats a, b;
	struct region *r = offer(65536, READABLE | WRITABLE), *head;
	uint32_t pos;

	(void)state;
	still_serves();
	rpcrdma_domain_stats(svc.domain, &a);
	assert_int_equal(a.conns, 1);
	get_args(4000, WIRE_PLACE);
	add_write_seg(0, seg(r, 0, 4096));
	say();
	expect_accepted(RR_SUCCESS);
	pattern(r->mem, 5000);
	add_read(put_args(RR_MSG, 5000), seg(r, 0, 5000));
	say();
	expect_put(5000);
	pos = put_args(RR_NOMSG, 300);
	head = offer(pos + 300, READABLE);
	memcpy(head->mem, m.rpc, pos);
	pattern(head->mem + pos, 300);
	add_read(0, seg(head, 0, pos + 300));
	say();
	expect_put(300);
	big_args(20000);
	add_reply_seg(seg(r, 0, 65536));
	say();
	listen_for();
	get_args(20000, WIRE_PLACE); /* nowhere to go: ERR_CHUNK */
	say();
	expect_err_chunk();
	add_read(put_args(RR_MSG, 77), seg(r, 0, 5000)); /* GARBAGE_ARGS */
	say();
	expect_accepted(RR_GARBAGE_ARGS);
	begin(RR_MSG); /* a reply without a call */
	memset(m.rpc, 0, 24);
	put_be32(m.rpc + 4, RR_RPC_REPLY);
	m.rpc_len = 24;
	say();
	expect_nothing();
	begin(RR_MSG); /* ERR_VERS */
	finish_msg();
	put_be32(m.raw + 4, 9);
	assert_int_equal(raw_send(&peer, m.raw, m.raw_len), RR_WC_OK);
	assert_non_null(raw_recv(&peer, &send_len));
	rpcrdma_domain_stats(svc.domain, &b);
	assert_int_equal(b.calls - a.calls, 6);
	assert_int_equal(b.chunks_write - a.chunks_write, 1);
	assert_int_equal(b.chunks_read - a.chunks_read, 2);
	assert_int_equal(b.chunks_reply - a.chunks_reply, 1);
	assert_int_equal(b.long_calls - a.long_calls, 1);
	assert_int_equal(b.inline_msgs - a.inline_msgs, 5);
	assert_int_equal(b.err_chunk - a.err_chunk, 1);
	assert_int_equal(b.err_vers - a.err_vers, 1);
	assert_int_equal(b.garbage - a.garbage, 1);
	assert_int_equal(b.dropped - a.dropped, 1);
	assert_int_equal(b.bytes_placed - a.bytes_placed, 4000 + 24 + 4 + 20000);
	assert_int_equal(b.bytes_pulled - a.bytes_pulled, 5000 + pos + 300);
	assert_int_equal(b.invalidations, 0);
	assert_int_equal(b.rnr, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		wire_test(item65_invalidation),
		wire_test(item66_no_remote_rights),
		wire_test(item67_keys_of_another_connection),
		wire_test(item83_nonsense_beside_a_good_peer),
		wire_test(item84_no_more_than_so_many),
		wire_test(item84_silent_peers_are_let_go),
		wire_test(item84_memory_of_the_pool_ends),
		wire_test(answer_waits_for_memory),
		wire_test(item85_no_stale_bytes),
		wire_test(item90_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
