/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_modes_srv.c - the responder's modes against a peer that says exactly what the test wants
 *
 * What such a peer does wrong ends its connection, and nothing else: every test ends with another peer,
 * without any mode, being served.
 */
#include "mode.h"
#include "srv_talk.h"

static struct rr_suffix given;

static const struct rpcrdma_svc_attr all_modes = { .modes = RPCRDMA_MODES_ALL };

static struct rpcrdma_stats stats(void)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(svc.domain, &s);
	return s;
}

static int set_up_modes(void **state)
{
	if (set_up(state))
		return -1;
	serve_with(NULL, &all_modes);
	return 0;
}

/* A peer that asks for @modes, and has them. */
static void connect_with(unsigned modes)
{
	const struct rr_suffix want = { .modes = modes, .slot_bytes = 8192, .slots = 3 };
	uint8_t suffix[RR_SUFFIX_BYTES];
	const struct raw_opts o = { .priv = &priv4k, .suffix = suffix, .suffix_len = sizeof(suffix) };

	rr_suffix_encode(&want, suffix);
	close_peer();
	connect_peer(&o);
	assert_true(rr_suffix_decode(peer.server_raw, peer.server_raw_len, &given));
	assert_int_equal(given.modes, modes);
	assert_int_equal(given.status, RR_SUFFIX_OK);
}

/* It is gone; the counters say why. */
static void is_cut(void)
{
	assert_false(raw_alive(&peer));
	assert_int_equal(stats().mode_cuts, 1);
	assert_int_equal(stats().mode_timeouts, 0);
}

static void send_words(const uint32_t *words, unsigned n)
{
	uint8_t bytes[64];

	for (unsigned i = 0; i < n; i++)
		put_be32(bytes + 4 * i, words[i]);
	(void)raw_send(&peer, bytes, 4 * n);
}

static void done(uint32_t xid)
{
	const uint32_t words[] = { xid, 1, 1, RR_DONE };

	send_words(words, 4);
}

static void want(uint32_t xid, uint32_t bytes)
{
	const uint32_t words[] = { xid, 1, 1, RR_WANT, bytes };

	send_words(words, 5);
}

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
	/* the other procedures are unknown ones, RDMA_DONE is for nobody, an immediate says nothing */
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
	} rows[] = { { 0, 'L' }, { 3, 0 }, { 4, 0 }, { 4, 2 }, { 5, 31 }, { 5, 48 }, { 6, 8 },
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
	/* half of it is told, and half offered; none is told, and nothing offered */
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
	const struct rpcrdma_svc_attr hasty = { .modes = RPCRDMA_MODES_ALL, .stall_ms = 30 };

	(void)state;
	serve_with(NULL, &hasty);
	connect_with(RPCRDMA_READ_READ);
	(void)ask_for(10000, WIRE_PLACE);
	/* others do not make up for it */
	while (peer.up && !peer.flushed) {
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

/* ---- fast-write --------------------------------------------------------------------------- */

#define PUT_AT 48u /* position of the bytes in a PUT */

/* A PUT for slot @slot; the message is in m, ready for fast(). */
static struct rr_segment fast_put(unsigned slot, uint32_t bytes)
{
	struct rr_segment s = { .handle = given.handle, .length = bytes,
				.offset = given.offset +
					  slot * (uint64_t)(RR_SLOT_HEAD + given.slot_bytes) +
					  RR_SLOT_HEAD };

	put_args(RR_MSG, bytes);
	assert_int_equal(m.rpc_len, PUT_AT);
	add_read(PUT_AT, s);
	return s;
}

static enum rr_wc_status fast(const struct rr_segment *s, unsigned slot, uint32_t bytes, uint32_t imm)
{
	static uint8_t data[65536];

	finish_msg();
	put_be32(m.raw + 12, RR_HERE);
	memcpy(data, m.raw, m.raw_len);
	pattern(data + m.raw_len, bytes);
	return raw_rdma(&peer, RR_WR_WRITE_IMM, data, m.raw_len + bytes, s->offset - m.raw_len, s->handle,
			imm ? imm : slot << 16 | (uint32_t)m.raw_len);
}

static void fast_and_right(void **state)
{
	static const uint32_t lengths[] = { 1, 2, 3, 4, 4096, 5001, 8191, 8192 };

	(void)state;
	connect_with(RPCRDMA_FAST_WRITE);
	assert_int_equal(given.slots, 3);
	assert_int_equal(given.slot_bytes, 8192);
	for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct rr_segment s = fast_put(i % 3, lengths[i]);

		assert_int_equal(fast(&s, i % 3, lengths[i], 0), RR_WC_OK);
		expect_put(lengths[i]);
	}
	assert_int_equal(stats().fast_writes, ARRAY_SIZE(lengths));
	assert_int_equal(stats().bytes_pulled, 0);
	/* ordinary calls go beside it, Read chunks too */
	{
		struct region *r = offer(9000, READABLE);

		pattern(r->mem, 9000);
		put_args(RR_MSG, 9000);
		add_read(PUT_AT, seg(r, 0, 9000));
		say();
		expect_put(9000);
	}
	still_serves();
}

/* Everything that the words can say wrong, one at a time. */
static void fast_and_wrong(void **state)
{
	static const struct {
		uint32_t imm;      /* 0: the right one */
		uint32_t declared; /* of the Read chunk */
		uint32_t off, handle;
		uint32_t bytes;
	} rows[] = {
		{ .imm = 3u << 16 | 100 },          /* no such slot */
		{ .imm = 0xffffffff },
		{ .imm = 27 },                      /* no header is so short */
		{ .imm = 1 },
		{ .imm = 5000 },                    /* nor so long */
		{ .imm = 4096 },                    /* nor longer than all that came */
		{ .declared = 999 },                /* the chunk says less, or more, than came */
		{ .declared = 1001 },
		{ .off = 4 },                       /* or another place */
		{ .handle = 1 },
		{ .bytes = 8193 },                  /* longer than a slot */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint32_t bytes = rows[i].bytes ? rows[i].bytes : 1000;
		struct rr_segment s;

		connect_with(RPCRDMA_FAST_WRITE);
		s = fast_put(0, bytes);
		if (rows[i].declared)
			m.hdr.reads[0].seg.length = rows[i].declared;
		m.hdr.reads[0].seg.offset += rows[i].off;
		m.hdr.reads[0].seg.handle += rows[i].handle;
		(void)fast(&s, 0, bytes, rows[i].imm);
		assert_false(raw_alive(&peer));
		assert_int_equal(stats().mode_cuts, i + 1);
		assert_int_equal(svc.calls, 0);
		close_peer();
	}
	connect_peer(&opts4k);
}

static void fast_without_its_chunk(void **state)
{
	struct rr_segment s;

	(void)state;
	connect_with(RPCRDMA_FAST_WRITE);
	s = fast_put(0, 1000);
	m.hdr.nreads = 0;
	(void)fast(&s, 0, 1000, 0);
	is_cut();
}

static void fast_but_not_here(void **state)
{
	struct rr_segment s;
	static uint8_t data[4096];

	(void)state;
	connect_with(RPCRDMA_FAST_WRITE);
	s = fast_put(0, 1000);
	finish_msg(); /* says RDMA_MSG */
	memcpy(data, m.raw, m.raw_len);
	(void)raw_rdma(&peer, RR_WR_WRITE_IMM, data, m.raw_len + 1000, s.offset - m.raw_len, s.handle,
		       (uint32_t)m.raw_len);
	is_cut();
}

static void slot_in_use(void **state)
{
	struct rr_segment s;

	(void)state;
	connect_with(RPCRDMA_FAST_WRITE);
	svc.hold = true;
	s = fast_put(1, 1000);
	assert_int_equal(fast(&s, 1, 1000, 0), RR_WC_OK);
	s = fast_put(2, 1000);
	assert_int_equal(fast(&s, 2, 1000, 0), RR_WC_OK);
	raw_settle(&peer);
	assert_int_equal(svc.calls, 2);
	s = fast_put(1, 1000);
	(void)fast(&s, 1, 1000, 0);
	is_cut();
	assert_int_equal(svc.calls, 2);
	wire_svc_release(&svc);
}

static void beside_the_slots(void **state)
{
	uint8_t data[8] = { 0 };
	uint64_t end;

	(void)state;
	connect_with(RPCRDMA_FAST_WRITE);
	end = given.offset + 3 * (uint64_t)(RR_SLOT_HEAD + given.slot_bytes);
	assert_int_equal(raw_rdma(&peer, RR_WR_WRITE, data, 8, end - 8, given.handle, 0), RR_WC_OK);
	assert_int_equal(raw_rdma(&peer, RR_WR_WRITE, data, 8, end - 4, given.handle, 0), RR_WC_REM_ACCESS);
	assert_false(raw_alive(&peer));
}

static void slots_are_not_for_reading(void **state)
{
	uint8_t data[8];

	(void)state;
	connect_with(RPCRDMA_FAST_WRITE);
	assert_int_equal(raw_rdma(&peer, RR_WR_READ, data, 8, given.offset, given.handle, 0),
			 RR_WC_REM_ACCESS);
	assert_false(raw_alive(&peer));
}

/* ---- hybrid ------------------------------------------------------------------------------- */

static struct rr_segment granted(uint32_t xid)
{
	const uint8_t *got = raw_recv(&peer, &send_len);

	assert_non_null(got);
	assert_int_equal(send_len, RR_GRANT_BYTES);
	assert_int_equal(get_be32(got), xid);
	assert_int_not_equal(get_be32(got + 8), 0);
	assert_int_equal(get_be32(got + 12), RR_GRANT);
	return (struct rr_segment){ .handle = get_be32(got + 16), .length = get_be32(got + 20),
				    .offset = get_be64(got + 24) };
}

static void here(const struct rr_segment *s, uint32_t declared)
{
	put_args(RR_MSG, declared);
	add_read(PUT_AT, *s);
	finish_msg();
	put_be32(m.raw + 12, RR_HERE);
	(void)raw_send(&peer, m.raw, m.raw_len);
}

static void room_and_right(void **state)
{
	static uint8_t data[50001];

	(void)state;
	connect_with(RPCRDMA_HYBRID);
	pattern(data, sizeof(data));
	for (unsigned i = 0; i < 5; i++) {
		struct rr_segment s;

		want(0x1234, sizeof(data));
		s = granted(0x1234);
		assert_int_equal(s.length, sizeof(data));
		if (i == 2) { /* not wanted any more */
			done(0x1234);
			continue;
		}
		assert_int_equal(raw_rdma(&peer, RR_WR_WRITE, data, sizeof(data), s.offset, s.handle, 0),
				 RR_WC_OK);
		s.length -= i; /* less than there is room for is fine */
		here(&s, s.length);
		expect_put(s.length);
	}
	want(0x1234, given.grant_max + 1); /* never: it is told so, and goes another way */
	assert_int_equal(granted(0x1234).length, 0);
	assert_int_equal(stats().mode_cuts, 0);
	assert_int_equal(stats().bytes_pulled, 0);
	still_serves();
}

static void room_and_wrong(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 12; how++) {
		struct rr_segment s = { .handle = 1, .length = 100, .offset = 1 };

		connect_with(RPCRDMA_HYBRID);
		if (how > 1) {
			want(0x1234, how == 2 ? 0 : 5000);
			if (how > 2)
				s = granted(0x1234);
		}
		switch (how) {
		case 0: /* a call in room that was not given */
			here(&s, 100);
			break;
		case 1: /* given back, what was not given */
			done(0x1234);
			break;
		case 2: /* room for nothing */
			break;
		case 3: /* twice for one call */
			want(0x1234, 5000);
			break;
		case 4: /* given back twice */
			done(0x1234);
			done(0x1234);
			break;
		case 5: /* used when it was given back */
			done(0x1234);
			here(&s, 5000);
			break;
		case 6: /* more than there is */
			s.length++;
			here(&s, 5001);
			break;
		case 7: /* elsewhere */
			s.offset += 8;
			s.length -= 8;
			here(&s, 4992);
			break;
		case 8: /* another's key */
			s.handle ^= 0x100;
			here(&s, 5000);
			break;
		case 9: /* none of it */
			s.length = 0;
			here(&s, 0);
			break;
		case 10: /* no chunk at all */
			begin(RR_MSG);
			rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
			finish_msg();
			put_be32(m.raw + 12, RR_HERE);
			(void)raw_send(&peer, m.raw, m.raw_len);
			break;
		case 11: { /* a question of another length */
			const uint32_t words[] = { 0x99, 1, 1, RR_WANT, 5, 5 };

			send_words(words, 6);
			break;
		}
		}
		assert_false(raw_alive(&peer));
		assert_int_equal(stats().mode_cuts, how + 1);
		assert_int_equal(svc.calls, 0);
		close_peer();
	}
	connect_peer(&opts4k);
}

/* Room is short: it is waited for in line, and nobody starves; wants are bounded as calls are. */
static void room_in_line(void **state)
{
	struct rr_segment s[6];
	uint32_t xid = 0;

	(void)state;
	connect_with(RPCRDMA_HYBRID);
	for (uint32_t i = 0; i < 6; i++)
		want(i, given.grant_max);
	for (unsigned i = 0; i < 4; i++)
		s[i] = granted(i);
	expect_nothing(); /* four megabytes are all there is */
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < i; k++)
			assert_true(s[i].offset != s[k].offset);
	done(2);
	assert_true(granted(4).offset == s[2].offset);
	done(0);
	assert_true(granted(5).offset == s[0].offset);
	for (xid = 100; xid < 300 && !peer.flushed; xid++)
		want(xid, given.grant_max);
	is_cut();
}

static void room_never_used(void **state)
{
	const struct rpcrdma_svc_attr hasty = { .modes = RPCRDMA_MODES_ALL, .stall_ms = 30 };

	(void)state;
	serve_with(NULL, &hasty);
	connect_with(RPCRDMA_HYBRID);
	want(0x99, 5000);
	while (peer.up && !peer.flushed) { /* others do not make up for it */
		begin(RR_MSG);
		rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
		finish_msg();
		(void)raw_send(&peer, m.raw, m.raw_len);
	}
	assert_int_equal(stats().mode_timeouts, 1);
}

static void room_is_only_for_writing(void **state)
{
	struct rr_segment s;
	uint8_t data[8];

	(void)state;
	connect_with(RPCRDMA_HYBRID);
	want(0x1234, 5000);
	s = granted(0x1234);
	assert_int_equal(raw_rdma(&peer, RR_WR_READ, data, 8, s.offset, s.handle, 0), RR_WC_REM_ACCESS);
	assert_false(raw_alive(&peer));
}

#define modes_test(f) cmocka_unit_test_setup_teardown(f, set_up_modes, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		modes_test(no_suffix_no_difference),
		modes_test(other_suffixes_are_none),
		modes_test(greedy_suffix_is_bounded),
		modes_test(offered_and_read),
		modes_test(done_twice),
		modes_test(done_for_another),
		modes_test(done_for_a_reply_without),
		modes_test(memory_comes_back),
		modes_test(never_done),
		modes_test(out_of_reach),
		modes_test(read_beyond),
		modes_test(gone_with_offers),
		modes_test(fast_and_right),
		modes_test(fast_and_wrong),
		modes_test(fast_without_its_chunk),
		modes_test(fast_but_not_here),
		modes_test(slot_in_use),
		modes_test(beside_the_slots),
		modes_test(slots_are_not_for_reading),
		modes_test(room_and_right),
		modes_test(room_and_wrong),
		modes_test(room_in_line),
		modes_test(room_never_used),
		modes_test(room_is_only_for_writing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
