/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_modes_window.c - fast-write and hybrid at the responder: what a peer writes by is a window, of so
 *                       many bytes and for so long, and can be taken back
 *
 * A Write that is refused ends the connection of its sender, and no other: every test ends with another
 * peer being served.
 */
#include "engine_int.h"
#include "inside.h"
#include "local_int.h"
#include "mode_talk.h"
#include "lab.h"

#define BIG (1u << 20) /* the most that is given: a fourth of the room */

static uint8_t data[16384];

static enum rr_wc_status write_to(const struct rr_segment *s, uint64_t off, size_t len)
{
	return raw_rdma(&peer, RR_WR_WRITE, data, len, s->offset + off, s->handle, 0);
}

static struct rr_segment room_for(uint32_t xid, uint32_t bytes)
{
	want(xid, bytes);
	return granted(xid);
}

/* It was refused, and its connection is gone by that, not by a rule. */
static void is_refused(enum rr_wc_status status)
{
	assert_int_equal(status, RR_WC_REM_ACCESS);
	assert_false(raw_alive(&peer));
	assert_int_equal(stats().mode_cuts, 0);
}

static struct rr_dev *device(struct rpcrdma_domain *d)
{
	struct rr_dev *dev;

	assert_int_equal(rr_domain_dev(d, RPCRDMA_LOCAL, &dev), 0);
	return dev;
}

static struct hooks *hooks(void)
{
	return faults_of(device(svc.domain)->fabric);
}

/* ---- whose keys they are ------------------------------------------------------------------ */

static const struct rr_fabric_ops *true_ops;
static struct rr_fabric_ops watched_ops;
static unsigned remote_regs, window_regs, nwindows;
static uint32_t window_keys[16], reg_key;
static enum rr_wr_op posted[64];
static unsigned nposted;

static int watch_reg(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret)
{
	int rc = true_ops->mr_reg(pd, attr, ret);

	remote_regs += (attr->access & RR_ACCESS_REMOTE) != 0;
	window_regs += (attr->access & RR_ACCESS_MW_BIND) != 0;
	if (!rc && attr->access & RR_ACCESS_REMOTE)
		reg_key = (*ret)->rkey;
	return rc;
}

static int watch_window(struct rr_pd *pd, struct rr_mw **ret)
{
	int rc = true_ops->mw_create(pd, ret);

	if (!rc && nwindows < ARRAY_SIZE(window_keys))
		window_keys[nwindows++] = (*ret)->rkey;
	return rc;
}

static int watch_send(struct rr_qp *qp, const struct rr_wr *wr)
{
	for (const struct rr_wr *w = wr; w && nposted < ARRAY_SIZE(posted); w = w->next)
		posted[nposted++] = w->op;
	return true_ops->post_send(qp, wr);
}

static void watch_domain(struct rpcrdma_domain *d)
{
	struct rr_fabric *f = device(d)->fabric;

	true_ops = f->ops;
	watched_ops = *true_ops;
	watched_ops.mr_reg = watch_reg;
	watched_ops.mw_create = watch_window;
	watched_ops.post_send = watch_send;
	f->ops = &watched_ops;
	remote_regs = window_regs = nwindows = nposted = 0;
}

static void serve_watched(void)
{
	wire_svc_on_domain = watch_domain;
	serve_modes(&all_modes);
	wire_svc_on_domain = NULL;
}

static void keys_are_windows(void **state)
{
	struct rr_segment s;

	(void)state;
	serve_watched();
	connect_with(RPCRDMA_FAST_WRITE | RPCRDMA_HYBRID);
	assert_int_equal(remote_regs, 0);
	assert_int_equal(window_regs, 2);
	assert_int_equal(nwindows, 1);
	assert_int_equal(given.handle, rr_mw_next_rkey(window_keys[0]));
	s = room_for(1, 5000);
	assert_int_equal(nwindows, 2);
	assert_int_equal(s.handle, rr_mw_next_rkey(window_keys[1]));
	/* a peer that never asked uses none */
	close_peer();
	connect_peer(&opts4k);
	still_serves();
	close_peer();
	connect_with(RPCRDMA_READ_READ);
	assert_int_equal(window_regs, 2);
	assert_int_equal(nwindows, 2);
}

static void keys_are_of_registrations(void **state)
{
	(void)state;
	serve_watched();
	connect_with(RPCRDMA_FAST_WRITE);
	assert_int_equal(remote_regs, 1);
	assert_int_equal(window_regs + nwindows, 0);
	assert_int_equal(given.handle, reg_key);
	connect_with(RPCRDMA_HYBRID);
	assert_int_equal(remote_regs, 2);
	assert_int_equal(room_for(1, 5000).handle, reg_key);
	assert_int_equal(room_for(2, 5000).handle, reg_key);
	assert_int_equal(stats().binds + stats().local_invs, 0);
}

/* There are machines that a second invalidation crashes, and a peer that knows a key can do both. */
static void not_where_peers_may_not_invalidate(void **state)
{
	(void)state;
	serve_watched();
	device(svc.domain)->fabric->attr.remote_inv = false;
	connect_with(RPCRDMA_FAST_WRITE | RPCRDMA_HYBRID);
	assert_int_equal(nwindows + window_regs, 0);
	assert_int_equal(remote_regs, 2);
	assert_int_equal(room_for(1, 5000).handle, reg_key);
}

static void were_posted(unsigned from, enum rr_wr_op first, enum rr_wr_op second)
{
	assert_int_equal(nposted, from + 2);
	assert_int_equal(posted[from], first);
	assert_int_equal(posted[from + 1], second);
}

/* In front of what tells of it, and gone in front of the answer: in that order they are carried out. */
static void in_line_with_the_messages(void **state)
{
	struct rr_segment s;

	(void)state;
	pattern(data, sizeof(data));
	serve_watched();
	connect_with(RPCRDMA_FAST_WRITE | RPCRDMA_HYBRID);
	were_posted(0, RR_WR_BIND, RR_WR_SEND);
	s = room_for(0x1234, 5000);
	were_posted(2, RR_WR_BIND, RR_WR_SEND);
	assert_int_equal(write_to(&s, 0, 5000), RR_WC_OK);
	here_for(0x1234, &s, 5000);
	expect_put(5000);
	were_posted(4, RR_WR_LOCAL_INV, RR_WR_SEND);
	/* in one chain, once it is known that the device binds */
	raw_settle(&peer);
	s = room_for(0x1234, 5000);
	assert_int_equal(stats().binds, 3);
	were_posted(6, RR_WR_BIND, RR_WR_SEND);
	/* also in front of an answer that is there at once */
	put_args(RR_MSG, 5000);
	put_be32(m.rpc + 16, WIRE_VERS + 1);
	add_read(PUT_AT, s);
	finish_msg();
	put_be32(m.raw + 12, RR_HERE);
	(void)raw_send(&peer, m.raw, m.raw_len);
	expect_accepted(RR_PROG_MISMATCH);
	were_posted(8, RR_WR_LOCAL_INV, RR_WR_SEND);
}

/* ---- how far they reach, and how long ------------------------------------------------------ */

static void slots_after_the_first_message(void **state)
{
	struct rr_segment s;

	(void)state;
	connect_silent(RPCRDMA_FAST_WRITE);
	s = fast_put(0, 1000);
	is_refused(fast(&s, 0, 1000, 0));
	assert_int_equal(svc.calls, 0);
	close_peer();
	connect_with(RPCRDMA_FAST_WRITE);
	s = fast_put(0, 1000);
	assert_int_equal(fast(&s, 0, 1000, 0), RR_WC_OK);
	expect_put(1000);
}

/* Within the room, and even within the page; and what another call was given. */
static void beside_a_grant(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 4; how++) {
		struct rr_segment first, s;

		connect_with(RPCRDMA_HYBRID);
		first = room_for(1, 5000);
		s = room_for(2, 5000);
		assert_int_equal(write_to(&s, 4992, 8), RR_WC_OK);
		switch (how) {
		case 0:
			is_refused(write_to(&s, 4993, 8));
			break;
		case 1:
			is_refused(write_to(&s, (uint64_t)-8, 8));
			break;
		case 2:
			s.handle = first.handle;
			is_refused(write_to(&s, 0, 8));
			break;
		case 3: /* and all there is between */
			is_refused(write_to(&s, first.offset - s.offset, 16384));
			break;
		}
		close_peer();
	}
	connect_peer(&opts4k);
}

static void until_the_call_is_here(void **state)
{
	(void)state;
	pattern(data, sizeof(data));
	for (unsigned how = 0; how < 3; how++) {
		struct rr_segment s;

		connect_with(RPCRDMA_HYBRID);
		s = room_for(0x1234, 5000);
		assert_int_equal(write_to(&s, 0, 5000), RR_WC_OK);
		svc.hold = how == 1;
		if (how < 2)
			here_for(0x1234, &s, 5000);
		else
			done(0x1234);
		if (how == 0) /* answered, and nothing was waited for */
			expect_put(5000);
		else
			raw_settle(&peer);
		is_refused(write_to(&s, 0, 8));
		wire_svc_release(&svc);
		close_peer();
	}
	connect_peer(&opts4k);
}

static void one_bind_and_one_invalidation(void **state)
{
	struct rr_segment s;

	(void)state;
	pattern(data, sizeof(data));
	connect_with(RPCRDMA_FAST_WRITE | RPCRDMA_HYBRID);
	assert_int_equal(stats().binds, 1);
	for (unsigned i = 0; i < 5; i++) {
		s = fast_put(i % 3, 5000);
		assert_int_equal(fast(&s, i % 3, 5000, 0), RR_WC_OK);
		expect_put(5000);
	}
	assert_int_equal(stats().binds, 1);
	assert_int_equal(stats().local_invs, 0);
	for (uint32_t i = 1; i <= 300; i++) { /* a key comes again */
		s = room_for(0x1234, 5000 + i);
		assert_int_equal(s.length, 5000 + i);
		if (i % 4 == 0) {
			done(0x1234);
		} else {
			assert_int_equal(write_to(&s, 0, s.length), RR_WC_OK);
			here_for(0x1234, &s, s.length);
			expect_put(s.length);
		}
		raw_settle(&peer);
		assert_int_equal(stats().binds, 1 + i);
		assert_int_equal(stats().local_invs, i);
	}
	/* what is out when the peer goes is not invalidated */
	s = room_for(7, 5000);
	close_peer();
	connect_peer(&opts4k);
	assert_int_equal(stats().binds, 302);
	assert_int_equal(stats().local_invs, 300);
	assert_int_equal(stats().mode_cuts, 0);
}

/* A peer may not end what is ours. */
static void invalidated_by_the_peer(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		uint32_t key;

		connect_with(RPCRDMA_FAST_WRITE | RPCRDMA_HYBRID);
		key = i ? room_for(1, 5000).handle : given.handle;
		begin(RR_MSG);
		rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
		finish_msg();
		(void)raw_send_inv(&peer, m.raw, m.raw_len, key);
		assert_false(raw_alive(&peer));
		assert_int_equal(stats().mode_cuts, i + 1);
		assert_int_equal(svc.calls, 0);
		close_peer();
	}
	connect_peer(&opts4k);
}

/* ---- revoked ------------------------------------------------------------------------------ */

/* Waits until @n grants were not used in time; the connection lives. */
static void revoked_by_now(unsigned n)
{
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;

	while (stats().mode_timeouts < n) {
		if (clock_now_ns() > end)
			fail_msg("%u grants were revoked", (unsigned)stats().mode_timeouts);
		still_serves(); /* calls do not make up for it */
	}
	assert_true(raw_alive(&peer));
}

static void serve_hasty(uint32_t credits)
{
	const struct rpcrdma_svc_attr hasty = { .lab = LAB(.modes = RPCRDMA_MODES_ALL), .stall_ms = 30,
						.credits = credits };

	serve_modes(&hasty);
	connect_with(RPCRDMA_HYBRID);
}

static void not_used_and_revoked(void **state)
{
	struct rr_segment s;

	(void)state;
	pattern(data, sizeof(data));
	serve_hasty(0);
	for (unsigned i = 1; i <= 3; i++) {
		s = room_for(i, 5000);
		revoked_by_now(i);
	}
	assert_int_equal(stats().binds, 3);
	assert_int_equal(stats().local_invs, 3);
	assert_int_equal(stats().mode_cuts, 0);
	is_refused(write_to(&s, 0, 8));
	/* the same XIDs are for other calls now */
	close_peer();
	connect_with(RPCRDMA_HYBRID);
	(void)room_for(0x1234, 5000);
	revoked_by_now(4);
	s = room_for(0x1234, 6000);
	assert_int_equal(s.length, 6000);
	done(0x1234);
	assert_true(raw_alive(&peer));
	assert_int_equal(stats().mode_cuts, 0);
}

/* What was written before the revocation is there: the call may come as late as it likes. */
static void written_and_then_revoked(void **state)
{
	struct rr_segment s;
	unsigned tries = 1;

	(void)state;
	pattern(data, sizeof(data));
	serve_hasty(0);
	/* where the machine is slow the responder may be first */
	for (; s = room_for(0x1234, 5000), write_to(&s, 0, 5000) != RR_WC_OK; tries++) {
		close_peer();
		connect_with(RPCRDMA_HYBRID);
	}
	revoked_by_now(tries);
	here_for(0x1234, &s, 5000);
	expect_put(5000);
	assert_true(raw_alive(&peer));
	assert_int_equal(stats().mode_cuts, 0);
	assert_int_equal(stats().local_invs, tries);
	here_for(0x1234, &s, 5000); /* but once */
	assert_false(raw_alive(&peer));
	assert_int_equal(stats().mode_cuts, 1);
}

static void given_back_when_revoked(void **state)
{
	(void)state;
	serve_hasty(0);
	(void)room_for(1, 5000);
	revoked_by_now(1);
	done(1);
	assert_true(raw_alive(&peer));
	assert_int_equal(stats().mode_cuts, 0);
	done(1);
	assert_false(raw_alive(&peer));
	assert_int_equal(stats().mode_cuts, 1);
}

/* Four have all of the room: those in line have it then. */
static void memory_of_the_revoked(void **state)
{
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;
	struct rr_segment s[6];

	(void)state;
	serve_hasty(0);
	for (uint32_t i = 0; i < 6; i++)
		want(i, BIG);
	for (uint32_t i = 0; i < 4; i++)
		s[i] = granted(i);
	for (uint32_t i = 4; i < 6; i++) {
		while (peer.taken == peer.ngot && clock_now_ns() < end)
			raw_settle(&peer);
		s[i] = granted(i);
		assert_int_equal(s[i].length, BIG);
	}
	assert_in_range(stats().mode_timeouts, 2, 6);
	assert_true(raw_alive(&peer));
}

/* Its memory belongs to another grant by now, so the announcement does not match a grant. */
static void revoked_and_gone(void **state)
{
	struct rr_segment s, other = { 0 };
	unsigned before;

	(void)state;
	serve_hasty(0);
	s = room_for(100, BIG);
	revoked_by_now(1);
	for (uint32_t i = 1; i <= 4; i++)
		other = room_for(i, BIG);
	assert_int_equal(other.offset, s.offset);
	here_for(100, &s, BIG);
	assert_false(raw_alive(&peer));
	assert_int_equal(stats().mode_cuts, 1);
	/* to say so is fine */
	close_peer();
	connect_with(RPCRDMA_HYBRID);
	before = (unsigned)stats().mode_timeouts;
	(void)room_for(100, BIG);
	revoked_by_now(before + 1);
	for (uint32_t i = 1; i <= 4; i++)
		(void)room_for(i, BIG);
	done(100);
	assert_true(raw_alive(&peer));
	assert_int_equal(stats().mode_cuts, 1);
}

/* As many are remembered as calls may be out. */
static void revoked_and_forgotten(void **state)
{
	(void)state;
	serve_hasty(2);
	for (uint32_t i = 1; i <= 3; i++) {
		(void)room_for(i, 5000);
		revoked_by_now(i);
	}
	done(2);
	done(3);
	assert_true(raw_alive(&peer));
	done(1);
	assert_false(raw_alive(&peer));
	assert_int_equal(stats().mode_cuts, 1);
}

/* A peer that speaks of room before it has been told of it: its message, and its bind, stand in line. */
static void before_it_was_told(void **state)
{
	const struct rr_local_attr narrow = { .limits.sq_max = 4 };
	const struct rpcrdma_domain_attr domain = { .lab = LAB(.local = &narrow) };

	(void)state;
	serve_with(&domain, &all_modes);
	connect_with(RPCRDMA_HYBRID);
	rr_local_attr(device(svc.domain)->fabric)->link.rate_bytes_s = 1;
	for (uint32_t i = 1; i <= 4; i++)
		want(i, 5000);
	done(4);
	is_cut();
	rr_local_attr(device(svc.domain)->fabric)->link.rate_bytes_s = 0;
}

/* The invalidation is behind an answer that takes its time: so are the pages. */
static void pages_wait_for_it(void **state)
{
	(void)state;
	connect_with(RPCRDMA_HYBRID);
	for (uint32_t i = 1; i <= 4; i++)
		(void)room_for(i, BIG);
	rr_local_attr(device(svc.domain)->fabric)->link.rate_bytes_s = 1;
	begin(RR_MSG);
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
	say();
	done(1);
	want(5, 5000);
	raw_settle(&peer);
	assert_int_equal(stats().local_invs, 1);
	assert_int_equal(stats().grants, 4);
	assert_true(raw_alive(&peer));
	rr_local_attr(device(svc.domain)->fabric)->link.rate_bytes_s = 0;
}

/* ---- shortage ----------------------------------------------------------------------------- */

static void no_window_for_slots(void **state)
{
	const struct rr_suffix ask = { .modes = RPCRDMA_FAST_WRITE, .slot_bytes = 8192, .slots = 3 };
	uint8_t suffix[RR_SUFFIX_BYTES];
	const struct raw_opts o = { .priv = &priv4k, .suffix = suffix, .suffix_len = sizeof(suffix) };

	(void)state;
	close_peer();
	hooks()->fail_window = 1;
	rr_suffix_encode(&ask, suffix);
	connect_peer(&o);
	assert_true(rr_suffix_decode(peer.server_raw, peer.server_raw_len, &given));
	assert_int_equal(given.modes, 0);
	assert_int_equal(given.status, RR_SUFFIX_NO_MEMORY);
	assert_int_equal(given.handle, 0);
	still_serves();
	connect_with(RPCRDMA_FAST_WRITE);
}

static void no_window_for_a_grant(void **state)
{
	struct rr_segment s;

	(void)state;
	pattern(data, sizeof(data));
	connect_with(RPCRDMA_HYBRID);
	hooks()->fail_window = 1;
	s = room_for(0x1234, BIG);
	assert_int_equal(s.length, 0);
	assert_int_equal(s.handle, 0);
	for (unsigned i = 0; i < 5; i++) { /* nothing stayed taken */
		s = room_for(0x1234, BIG);
		assert_int_equal(s.length, BIG);
		assert_int_equal(write_to(&s, 0, 5000), RR_WC_OK);
		s.length = 5000;
		here_for(0x1234, &s, 5000);
		expect_put(5000);
	}
	assert_int_equal(stats().mode_cuts, 0);
}

/* A device that says that it can bind, and cannot: one connection pays for finding out. */
static void binds_that_fail(void **state)
{
	struct rr_segment s;

	(void)state;
	pattern(data, sizeof(data));
	for (unsigned how = 0; how < 2; how++) {
		serve_modes(&all_modes);
		if (how) {
			connect_with(RPCRDMA_HYBRID);
			hooks()->fail_bind = 1;
			want(0x1234, 5000);
		} else {
			connect_silent(RPCRDMA_FAST_WRITE);
			hooks()->fail_bind = 1;
			begin(RR_MSG);
			rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
			finish_msg();
			(void)raw_send(&peer, m.raw, m.raw_len);
		}
		assert_false(raw_alive(&peer));
		assert_int_equal(atomic_load(&device(svc.domain)->windows), RR_WINDOWS_BROKEN);
		connect_with(RPCRDMA_FAST_WRITE | RPCRDMA_HYBRID);
		s = room_for(0x1234, 5000);
		assert_int_equal(write_to(&s, 0, 5000), RR_WC_OK);
		here_for(0x1234, &s, 5000);
		expect_put(5000);
		s = fast_put(0, 1000);
		assert_int_equal(fast(&s, 0, 1000, 0), RR_WC_OK);
		expect_put(1000);
		assert_int_equal(stats().binds, 1);
		assert_int_equal(stats().mode_cuts, 0);
	}
}

/* Once it has worked, a bind that fails is that connection's alone; it goes with what follows it. */
static void a_bind_that_fails(void **state)
{
	(void)state;
	connect_with(RPCRDMA_HYBRID);
	(void)room_for(1, 5000);
	raw_settle(&peer);
	assert_int_equal(atomic_load(&device(svc.domain)->windows), RR_WINDOWS_WORK);
	hooks()->fail_bind = 1;
	want(2, 5000);
	expect_nothing();
	assert_false(raw_alive(&peer));
	assert_int_equal(atomic_load(&device(svc.domain)->windows), RR_WINDOWS_WORK);
	connect_with(RPCRDMA_HYBRID);
	assert_int_equal(room_for(2, 5000).length, 5000);
}

/* A peer that marks itself as copying to the responder's memory, and never clears the mark: the responder
 * does not depend on it, and other peers are served. */
static void a_mark_left_behind(void **state)
{
	struct local_qp *q;
	uint32_t bits = 0;

	(void)state;
	for (int i = 0; i < 4; i++) {
		connect_with(RPCRDMA_FAST_WRITE);
		q = to_qp(peer.qp);
		for (bits = 0; 1u << bits < q->peer_nkeys; bits++)
			;
		atomic_fetch_add(&q->peer_keys[given.handle >> 8 & ((1u << bits) - 1)].busy, BUSY_COPY);
		still_serves();
		close_peer();
	}
	connect_with(RPCRDMA_FAST_WRITE);
	still_serves();
	assert_int_equal(rr_local_counters(device(svc.domain)->fabric).hostile, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		modes_test(keys_are_windows),
		plain_test(keys_are_of_registrations),
		modes_test(not_where_peers_may_not_invalidate),
		modes_test(in_line_with_the_messages),
		modes_test(slots_after_the_first_message),
		modes_test(beside_a_grant),
		modes_test(until_the_call_is_here),
		modes_test(one_bind_and_one_invalidation),
		modes_test(invalidated_by_the_peer),
		modes_test(a_mark_left_behind),
		modes_test(not_used_and_revoked),
		modes_test(written_and_then_revoked),
		modes_test(given_back_when_revoked),
		modes_test(memory_of_the_revoked),
		modes_test(revoked_and_gone),
		modes_test(revoked_and_forgotten),
		modes_test(before_it_was_told),
		modes_test(pages_wait_for_it),
		modes_test(no_window_for_slots),
		modes_test(no_window_for_a_grant),
		modes_test(binds_that_fail),
		modes_test(a_bind_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
