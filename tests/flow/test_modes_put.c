/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_modes_put.c - fast-write and hybrid at the responder, against a peer that says exactly what the test wants
 *
 * What such a peer does wrong ends its connection, and nothing else: every test ends with another peer,
 * without any mode, being served. All of it with memory windows and without; what they are for is in
 * test_modes_window.c.
 */
#include "inside.h"
#include "mode_talk.h"
#include "lab.h"

/* ---- fast-write --------------------------------------------------------------------------- */

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

/* The key in such a call's Read chunk is the responder's own: it is not sent back to be invalidated. */
static void own_keys_are_not_sent_back(void **state)
{
	static const struct rr_priv inv = { .present = true, .remote_inv = true, .send_bytes = 4096,
					    .recv_bytes = 4096 };
	struct rr_segment s;
	uint32_t key;

	(void)state;
	connect_as(&inv, RPCRDMA_FAST_WRITE);
	s = fast_put(0, 5001);
	assert_int_equal(fast(&s, 0, 5001, 0), RR_WC_OK);
	expect_put(5001);
	assert_false(raw_last_inv(&peer, &key));
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

/* A call that gets no reply leaves its slot, too. */
static void slot_of_a_dropped_call(void **state)
{
	struct rr_segment s;

	(void)state;
	connect_with(RPCRDMA_FAST_WRITE);
	svc.drop_puts = true;
	for (unsigned i = 0; i < 3; i++) {
		s = fast_put(1, 1000);
		assert_int_equal(fast(&s, 1, 1000, 0), RR_WC_OK);
		expect_nothing();
	}
	assert_int_equal(svc.drops, 3);
	svc.drop_puts = false;
	s = fast_put(1, 1000);
	assert_int_equal(fast(&s, 1, 1000, 0), RR_WC_OK);
	expect_put(1000);
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

static void here(const struct rr_segment *s, uint32_t declared)
{
	here_for(0x1234, s, declared);
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
	want(0x1234, given.grant_max + 1); /* too long: the want is refused, and the payload goes another way */
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

/* Room is short: wants wait in order, and none starves; they are bounded as calls are. */
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

/* A refusal ends when it is sent: the peer may ask again before the responder sees the completion. */
static void refused_again_and_again(void **state)
{
	const struct rpcrdma_svc_attr one = { .lab = LAB(.modes = RPCRDMA_MODES_ALL), .credits = 1 };

	(void)state;
	serve_with(NULL, &one);
	assert_int_equal(chaos_push(local_fabric(svc.domain), 1), 0);
	connect_with(RPCRDMA_HYBRID);
	for (uint32_t xid = 0; xid < 100; xid++) {
		want(xid, given.grant_max + 1);
		assert_int_equal(granted(xid).length, 0);
	}
	assert_int_equal(stats().mode_cuts, 0);
}

/* Without windows there is only the connection to be taken away. */
static void room_never_used(void **state)
{
	const struct rpcrdma_svc_attr hasty = { .lab = LAB(.modes = RPCRDMA_MODES_ALL), .stall_ms = 30 };
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;

	(void)state;
	serve_modes(&hasty);
	connect_with(RPCRDMA_HYBRID);
	want(0x99, 5000);
	while (!is_let_go_by(end)) { /* others do not make up for it */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		modes_test(fast_and_right),
		modes_test(own_keys_are_not_sent_back),
		modes_test(fast_and_wrong),
		modes_test(fast_without_its_chunk),
		modes_test(fast_but_not_here),
		modes_test(slot_in_use),
		modes_test(slot_of_a_dropped_call),
		modes_test(beside_the_slots),
		modes_test(slots_are_not_for_reading),
		modes_test(room_and_right),
		modes_test(room_and_wrong),
		modes_test(room_in_line),
		modes_test(refused_again_and_again),
		modes_test(room_is_only_for_writing),
		/* and once more by keys of registrations */
		plain_test(fast_and_right),
		plain_test(fast_and_wrong),
		plain_test(fast_without_its_chunk),
		plain_test(fast_but_not_here),
		plain_test(slot_in_use),
		plain_test(slot_of_a_dropped_call),
		plain_test(beside_the_slots),
		plain_test(slots_are_not_for_reading),
		plain_test(room_and_right),
		plain_test(room_and_wrong),
		plain_test(room_in_line),
		plain_test(room_is_only_for_writing),
		plain_test(room_never_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
