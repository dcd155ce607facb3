/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_modes_srv.c - modes: what a responder makes of a suffix, and read-read, against a peer that says exactly
 *                    what the test wants
 *
 * What such a peer does wrong ends its connection, and nothing else: every test ends with another peer,
 * without any mode, being served.
 */
#include "engine_int.h"
#include "mode_talk.h"
#include "lab.h"

/* ---- the suffix --------------------------------------------------------------------------- */

static void no_suffix_no_difference(void **state)
{
	const struct rr_segment none = { 0 };
	struct region *r;

	(void)state;
	connect_peer(&opts4k);
	assert_int_equal(peer.server_raw_len, RR_PRIV_BYTES);
	assert_int_equal(peer.reads_by_server, 0);
	r = offer(20000, WRITABLE);
	get_args(20000, WIRE_PLACE);
	add_write_seg(0, seg(r, 0, 20000));
	say();
	expect_accepted(RR_SUCCESS);
	assert_int_equal(heard.nreads, 0);
	assert_pattern(r->mem, 0, 20000);
	/* the other procedures are unknown ones, RDMA_DONE fits no request, an immediate is ignored */
	for (uint32_t proc = RR_WANT; proc <= RR_HERE; proc++) {
		begin(RR_MSG);
		rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
		finish_msg();
		put_be32(m.raw + 12, proc);
		assert_int_equal(raw_send(&peer, m.raw, m.raw_len), RR_WC_OK);
		expect_err_chunk();
	}
	done(0x1234);
	expect_nothing();
	assert_int_equal(raw_rdma(&peer, RR_WR_WRITE_IMM, NULL, 0, none.offset, none.handle, 7), RR_WC_OK);
	expect_nothing();
	still_serves();
	assert_int_equal(stats().mode_cuts, 0);
}

static void other_suffixes_are_none(void **state)
{
	static const struct {
		unsigned at;
		uint8_t value;
	} rows[] = { { 0, 'L' }, { 3, 0 }, { 4, 0 }, { 4, 1 }, { 4, 3 }, { 5, 31 }, { 5, 48 }, { 6, 8 },
		     { 6, 0x81 }, { 14, 1 }, { 15, 0xff } };
	const struct rr_suffix want = { .modes = RPCRDMA_READ_READ };
	uint8_t suffix[RR_PRIV_MAX - RR_PRIV_BYTES] = { 0 };
	struct raw_opts o = { .priv = &priv4k, .suffix = suffix };

	(void)state;
	for (size_t len = 1; len <= sizeof(suffix); len++) {
		rr_suffix_encode(&want, suffix);
		memset(suffix + RR_SUFFIX_BYTES, 0, sizeof(suffix) - RR_SUFFIX_BYTES);
		o.suffix_len = len;
		connect_peer(&o);
		assert_int_equal(peer.server_raw_len,
				 RR_PRIV_BYTES + (len < RR_SUFFIX_BYTES ? 0 : RR_SUFFIX_BYTES));
		still_serves();
		close_peer();
	}
	o.suffix_len = RR_SUFFIX_BYTES;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		rr_suffix_encode(&want, suffix);
		suffix[rows[i].at] = rows[i].value;
		connect_peer(&o);
		assert_int_equal(peer.server_raw_len, RR_PRIV_BYTES);
		still_serves();
		close_peer();
	}
	/* one that asks for nothing is answered with nothing; slots that are none, with none */
	for (unsigned modes = 0; modes <= RPCRDMA_FAST_WRITE; modes += RPCRDMA_FAST_WRITE) {
		const struct rr_suffix odd = { .modes = modes };

		rr_suffix_encode(&odd, suffix);
		connect_peer(&o);
		assert_true(rr_suffix_decode(peer.server_raw, peer.server_raw_len, &given));
		assert_int_equal(given.modes, 0);
		assert_int_not_equal(given.status, RR_SUFFIX_OK);
		assert_int_equal(given.handle, 0);
		still_serves();
		close_peer();
	}
	connect_peer(&opts4k);
}

static void greedy_suffix_is_bounded(void **state)
{
	const struct rr_suffix want = { .modes = RPCRDMA_FAST_WRITE, .slot_bytes = UINT32_MAX,
					.slots = UINT16_MAX };
	uint8_t suffix[RR_SUFFIX_BYTES];
	const struct raw_opts o = { .priv = &priv4k, .suffix = suffix, .suffix_len = sizeof(suffix) };

	(void)state;
	rr_suffix_encode(&want, suffix);
	connect_peer(&o);
	assert_true(rr_suffix_decode(peer.server_raw, peer.server_raw_len, &given));
	assert_int_equal(given.slots, RR_SLOTS_MAX);
	assert_int_equal(given.slot_bytes, RPCRDMA_FAST_WRITE_MAX);
	still_serves();
}

/* There is no memory for a mode. The engine that the connection would have gone to has a thread of its own, and
 * the responder does not touch that engine's state. */
static void refused_beside_another_engine(void **state)
{
	const struct rpcrdma_domain_attr poor = { .pool_bytes_max = 2 << 20 };
	const struct rr_suffix want = { .modes = RPCRDMA_READ_READ };
	struct rpcrdma_msg *const poison = (struct rpcrdma_msg *)(uintptr_t)64;
	uint8_t suffix[RR_SUFFIX_BYTES];
	const struct raw_opts o = { .priv = &priv4k, .suffix = suffix, .suffix_len = sizeof(suffix) };
	struct rpcrdma_engine *other;

	(void)state;
	serve_with(&poor, &all_modes);
	assert_int_equal(rpcrdma_engine_create(svc.domain, NULL, &other), 0);
	svc.conn_engine = other;
	rr_suffix_encode(&want, suffix);
	other->deferred = poison;
	connect_peer(&o);
	assert_ptr_equal(other->deferred, poison);
	other->deferred = NULL;
	assert_true(rr_suffix_decode(peer.server_raw, peer.server_raw_len, &given));
	assert_int_equal(given.status, RR_SUFFIX_NO_MEMORY);
	peer.server = other;
	still_serves();
	raw_close(&peer);
	for (int idle = 0; idle < 1000; idle++)
		if (rpcrdma_engine_poll(other))
			idle = 0;
	svc.conn_engine = NULL;
	rpcrdma_engine_destroy(other);
	connect_peer(&opts4k);
}

/* What one client's connections have for themselves leaves room for another client's. */
static void clients_share_the_memory(void **state)
{
	const struct rpcrdma_client_id id = { .kind = RPCRDMA_CLIENT_IPV4, .key = 1 };
	const struct rpcrdma_domain_attr small = { .pool_bytes_max = 32 << 20 };
	const struct rr_suffix want = { .modes = RPCRDMA_READ_READ };
	static struct raw_peer many[8];
	uint8_t suffix[RR_SUFFIX_BYTES];
	const struct raw_opts o = { .priv = &priv4k, .suffix = suffix, .suffix_len = sizeof(suffix) };
	struct rr_client *other;
	struct rr_budget *b;
	size_t each = 0;
	unsigned n = 0;

	(void)state;
	serve_with(&small, &all_modes);
	b = &svc.domain->clients.budgets[RR_SHARE_OWN];
	rr_suffix_encode(&want, suffix);
	do {
		assert_true(n < ARRAY_SIZE(many));
		assert_int_equal(raw_open(&many[n], svc.engine, path, &o), 0);
		assert_true(rr_suffix_decode(many[n].server_raw, many[n].server_raw_len, &given));
		each = each ? each : b->used;
		n++;
	} while (given.status == RR_SUFFIX_OK);
	assert_int_equal(given.status, RR_SUFFIX_NO_MEMORY);
	assert_int_equal(b->used, (n - 1) * each); /* the last one is served without */
	assert_true(n > 1 && b->used <= b->max / 4 * 3);
	assert_int_equal(rr_client_get(&svc.domain->clients, &id, &other), 0);
	assert_int_equal(rr_client_charge(other, RR_SHARE_OWN, each), 0);
	rr_client_uncharge(other, RR_SHARE_OWN, each);
	rr_client_put(other);
	while (n)
		raw_close(&many[--n]);
	connect_peer(&opts4k);
	still_serves();
	assert_int_equal(b->used, 0);
}

/* ---- read-read ---------------------------------------------------------------------------- */

static struct rr_segment ask_for(uint32_t bytes, enum wire_mode how)
{
	get_args(bytes, how);
	say();
	expect_accepted(RR_SUCCESS);
	assert_int_equal(heard.nreads, 1);
	assert_int_equal(heard.reads[0].seg.length, bytes);
	assert_int_equal(heard.reads[0].position, 32); /* header of the reply, status, length word */
	assert_int_equal(word(7), bytes);
	return heard.reads[0].seg;
}

static void offered_and_read(void **state)
{
	static const enum wire_mode how[] = { WIRE_PLACE, WIRE_PLACE_PIECES, WIRE_IOV, WIRE_SINK };
	static uint8_t data[40001];

	(void)state;
	connect_with(RPCRDMA_READ_READ);
	svc.grain = 5000;
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		struct rr_segment s = ask_for(sizeof(data), how[i]);

		memset(data, 0, sizeof(data));
		assert_int_equal(raw_rdma(&peer, RR_WR_READ, data, sizeof(data), s.offset, s.handle, 0),
				 RR_WC_OK);
		assert_pattern(data, 0, sizeof(data));
		done(0x1234);
	}
	/* the service reports half of the payload, and half is offered; it reports none, and none is offered */
	get_args(20000, WIRE_SHORT);
	say();
	expect_accepted(RR_SUCCESS);
	assert_int_equal(heard.reads[0].seg.length, 10000);
	done(0x1234);
	get_args(20000, WIRE_ERROR);
	say();
	expect_accepted(RR_SUCCESS);
	assert_int_equal(heard.nreads, 0);
	/* what fits goes with the reply; and a Write chunk is used as ever */
	get_args(100, WIRE_PLACE);
	say();
	expect_accepted(RR_SUCCESS);
	assert_int_equal(heard.nreads, 0);
	{
		struct region *r = offer(9000, WRITABLE);

		get_args(9000, WIRE_PLACE);
		add_write_seg(0, seg(r, 0, 9000));
		say();
		expect_accepted(RR_SUCCESS);
		assert_int_equal(heard.nreads, 0);
		assert_pattern(r->mem, 0, 9000);
	}
	raw_settle(&peer);
	assert_int_equal(stats().mode_cuts, 0);
}

static void done_twice(void **state)
{
	(void)state;
	connect_with(RPCRDMA_READ_READ);
	(void)ask_for(10000, WIRE_PLACE);
	done(0x1234);
	still_serves();
	done(0x1234);
	is_cut();
}

static void done_for_another(void **state)
{
	(void)state;
	connect_with(RPCRDMA_READ_READ);
	(void)ask_for(10000, WIRE_PLACE);
	done(0x1235);
	is_cut();
}

static void done_for_a_reply_without(void **state)
{
	(void)state;
	connect_with(RPCRDMA_MODES_ALL);
	still_serves();
	done(0x1234);
	is_cut();
}

/* More is asked for than there is memory: it waits, till RDMA_DONE makes room. */
static void memory_comes_back(void **state)
{
	(void)state;
	connect_with(RPCRDMA_READ_READ);
	for (unsigned i = 0; i < 9; i++) {
		get_args(1048576, WIRE_PLACE);
		say();
	}
	for (unsigned i = 0; i < 9; i++) {
		listen_for();
		assert_int_equal(heard.nreads, 1);
		if (i == 3) /* four have all there is */
			expect_nothing();
		if (i >= 3)
			done(0x1234);
	}
	for (unsigned i = 0; i < 3; i++)
		done(0x1234);
	raw_settle(&peer);
	assert_int_equal(stats().mode_cuts, 0);
	assert_int_equal(stats().offers, 9);
	still_serves();
}

static void never_done(void **state)
{
	const struct rpcrdma_svc_attr hasty = { .lab = LAB(.modes = RPCRDMA_MODES_ALL), .stall_ms = 30 };
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;

	(void)state;
	serve_with(NULL, &hasty);
	connect_with(RPCRDMA_READ_READ);
	(void)ask_for(10000, WIRE_PLACE);
	/* others do not make up for it */
	while (!is_let_go_by(end)) {
		get_args(9000, WIRE_PLACE);
		m.hdr.xid = 0x77;
		put_be32(m.rpc, 0x77);
		finish_msg();
		if (raw_send(&peer, m.raw, m.raw_len) == RR_WC_OK)
			done(0x77);
	}
	assert_int_equal(stats().mode_timeouts, 1);
	assert_int_equal(stats().mode_cuts, 0);
}

/* With a Reply chunk of many segments there is no room for a Read list in the reply: its payload goes by
 * the Reply chunk, and leaves alone what lies behind its buffer. */
static void no_room_for_an_offer(void **state)
{
	static const struct rr_priv small = { .present = true, .send_bytes = 4096, .recv_bytes = 1024 };
	static uint8_t data[4090]; /* with the rest of the reply it is more than a page */
	struct rr_segment behind;
	struct region *r;

	(void)state;
	connect_as(&small, RPCRDMA_READ_READ);
	(void)ask_for(sizeof(data), WIRE_IOV);
	behind = ask_for(sizeof(data), WIRE_IOV);
	done(0x1234); /* the first of them */
	r = offer(59 * 100, WRITABLE);
	get_args(sizeof(data), WIRE_IOV);
	for (unsigned i = 0; i < 59; i++)
		add_reply_seg(seg(r, i * 100, 100));
	say();
	listen_for();
	assert_int_equal(heard.proc, RR_NOMSG);
	assert_int_equal(heard.nreads, 0);
	assert_pattern(r->mem + 32, 0, sizeof(data));
	assert_int_equal(raw_rdma(&peer, RR_WR_READ, data, sizeof(data), behind.offset, behind.handle, 0),
			 RR_WC_OK);
	assert_pattern(data, 0, sizeof(data));
	done(0x1234);
	still_serves();
	assert_int_equal(stats().mode_cuts, 0);
}

/* What is on offer is the one connection's, to read; nothing else can be done with its key. */
static void out_of_reach(void **state)
{
	struct raw_peer other;
	struct rr_segment s;
	uint8_t data[4096] = { 0 };

	(void)state;
	connect_with(RPCRDMA_READ_READ);
	s = ask_for(10000, WIRE_PLACE);
	assert_int_equal(raw_open(&other, svc.engine, path, &opts4k), 0);
	assert_int_not_equal(raw_rdma(&other, RR_WR_READ, data, sizeof(data), s.offset, s.handle, 0),
			     RR_WC_OK);
	raw_close(&other);
	assert_int_equal(raw_rdma(&peer, RR_WR_READ, data, sizeof(data), s.offset, s.handle, 0), RR_WC_OK);
	assert_pattern(data, 0, sizeof(data));
	assert_int_equal(raw_rdma(&peer, RR_WR_WRITE, data, sizeof(data), s.offset, s.handle, 0),
			 RR_WC_REM_ACCESS);
	assert_false(raw_alive(&peer));
}

static void read_beyond(void **state)
{
	struct rr_segment s;
	uint8_t data[4096];

	(void)state;
	connect_with(RPCRDMA_READ_READ);
	s = ask_for(10000, WIRE_PLACE);
	assert_int_equal(raw_rdma(&peer, RR_WR_READ, data, sizeof(data), s.offset + (16u << 20), s.handle,
				  0), RR_WC_REM_ACCESS);
	assert_false(raw_alive(&peer));
}

/* A peer that goes with much on offer leaves nothing behind. */
static void gone_with_offers(void **state)
{
	(void)state;
	connect_with(RPCRDMA_READ_READ);
	for (unsigned i = 0; i < 7; i++) {
		get_args(900000, WIRE_PLACE);
		say();
	}
	close_peer();
	connect_with(RPCRDMA_READ_READ);
	assert_int_equal(svc.closed + 1, svc.conns);
	(void)ask_for(900000, WIRE_PLACE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		modes_test(no_suffix_no_difference),
		modes_test(other_suffixes_are_none),
		modes_test(greedy_suffix_is_bounded),
		modes_test(refused_beside_another_engine),
		modes_test(clients_share_the_memory),
		modes_test(offered_and_read),
		modes_test(done_twice),
		modes_test(done_for_another),
		modes_test(done_for_a_reply_without),
		modes_test(memory_comes_back),
		modes_test(never_done),
		modes_test(no_room_for_an_offer),
		modes_test(out_of_reach),
		modes_test(read_beyond),
		modes_test(gone_with_offers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
