/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_clnt_window.c - memory windows of the requester (window.c), seen from a responder that
 *                      invalidates, or writes late, as the test wants
 *
 * The numbers are those of the checklist in doc/protocol.md. What the local fabric does not forgive
 * (bounds, a second invalidation, another queue pair) ends the connection here as on a NIC.
 */
#include <sys/mman.h>

#include "inside.h"
#include "window_talk.h"

/* ---- counted -------------------------------------------------------------------------------- */

/* Windows of calls that are answered together are taken back together. */
static void one_chain_for_many(void **state)
{
	static struct talk_call c[32];
	static struct answer answers[32];
	struct rpcrdma_stats was, is;

	(void)state;
	begin_way(NULL, BY_CLIENT);
	for (unsigned i = 0; i < 32; i++) {
		start_get(&c[i], 9001);
		raw_server_settle(&srv);
	}
	for (unsigned i = 0; i < 32; i++) {
		hear();
		answer_begin(RR_MSG);
		answer_word(0);
		fill_chunk(&heard.writes[0], 9001);
		rr_chunk_return(&heard.writes[0], 9001, &ans.hdr.writes[0]);
		answer_word(9001);
		answer_encode();
		answers[i] = ans;
	}
	was = stats();
	for (unsigned i = 0; i < 32; i++) /* the client does not run in between */
		assert_int_equal(raw_server_send(&srv, answers[i].raw, answers[i].raw_len), RR_WC_OK);
	for (unsigned i = 0; i < 32; i++) {
		ended(&c[i], 0);
		assert_pattern(c[i].mem, 9001);
		talk_fini(&c[i]);
	}
	is = stats();
	assert_int_equal(is.local_invs - was.local_invs, 32);
	assert_in_range(is.posts - was.posts, 2, 4);
	close_both();
}

/* ---- out of reach: items 63, 68 ------------------------------------------------------------- */

/* Chaos delays an invalidation that was posted: the call waits for it, not for its post. */
static void item63_done_is_out_of_reach(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 60; seed++) {
		struct rr_local_attr local = { .filters = HOOKS(.chaos_seed = seed) };
		struct rr_segment s;
		struct talk_call c;

		begin_way(&local, seed % 2 ? BY_CLIENT : NO_R);
		start_get(&c, 9001);
		hear();
		s = heard.writes[0].segs[0];
		answer_get(9001);
		while (!c.done)
			raw_server_poll(&srv);
		assert_pattern(c.mem, 9001);
		assert_int_equal(raw_server_write(&srv, &s, 0, "too late", 8), RR_WC_REM_ACCESS);
		assert_pattern(c.mem, 9001);
		talk_fini(&c);
		close_both();
	}
}

/* A call is given up, or its client, while its answer is here and waits for its windows. */
static void given_up_while_taken_back(void **state)
{
	unsigned waited = 0;

	(void)state;
	for (uint64_t seed = 1; seed < 40; seed++) {
		struct rr_local_attr local = { .filters = HOOKS(.chaos_seed = seed) };
		bool destroyed = seed % 3 == 0;
		struct rpcrdma_stats was;
		struct rr_segment s;
		struct talk_call c;

		begin_way(&local, BY_CLIENT);
		was = stats();
		start_get(&c, 9001);
		hear();
		s = heard.writes[0].segs[0];
		answer_get(9001);
		while (!c.done && stats().local_invs == was.local_invs)
			rpcrdma_engine_poll(engine);
		waited += !c.done;
		if (destroyed) {
			rpcrdma_clnt_destroy(clnt);
			clnt = NULL;
		} else if (!c.done) {
			rpcrdma_clnt_cancel(clnt, &c.call);
		}
		assert_int_equal(c.done, 1);
		memset(c.mem, 0xee, 9001);
		assert_int_not_equal(raw_server_write(&srv, &s, 0, "too late", 8), RR_WC_OK);
		assert_untouched(&c, 0);
		if (!destroyed)
			still_works();
		talk_fini(&c);
		close_both();
	}
	assert_true(waited > 5);
}

/* A call whose requests are with the device, and perhaps not carried out: its binds, above all. */
static void given_up_on_its_way(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 40; seed++) {
		struct rr_local_attr local = { .filters = HOOKS(.chaos_seed = seed) };
		struct talk_call c, other;
		uint32_t xid = 0;

		begin_way(&local, seed % 2 ? BY_ANSWER : NO_R);
		raw_server_settle(&srv);
		start_get(&other, 9001);
		start_get(&c, 9001);
		for (uint64_t i = 0; i < seed % 7; i++)
			rpcrdma_engine_poll(engine);
		rpcrdma_clnt_cancel(clnt, &c.call);
		ended(&c, -ECANCELED);
		talk_fini(&c);
		raw_server_settle(&srv);
		while (!other.done) { /* on this connection, or the next */
			if (!hear_one())
				continue;
			xid = xid ? xid : heard.xid;
			if (heard.xid == xid && srv.up && srv.got[srv.taken - 1].conn == srv.conns)
				answer_get(9001);
		}
		assert_pattern(other.mem, 9001);
		talk_fini(&other);
		raw_server_settle(&srv);
		while (hear_one())
			;
		still_works();
		close_both();
	}
}

static void start_put_pieces(struct talk_call *c)
{
	talk_init(c, WIRE_PUT, 16000);
	for (unsigned i = 0; i < 8; i++)
		c->iov[i] = (struct iovec){ c->mem + (size_t)i * 2000, 2000 };
	c->put_args = (struct wire_put_args){
		.data = { .length = 16000, .iov = c->iov, .iovcnt = 8 },
	};
	c->call.encode = (xdrproc_t)xdr_wire_put_args;
	c->call.args = &c->put_args;
	c->call.decode = (xdrproc_t)xdr_wire_put_res;
	c->call.res = &c->put_res;
	c->call.reply_max = 8;
	talk_go(c);
}

#define IN_LINE 9u /* the last two have to wait */

/* A call whose Send waits for room in the queue: nothing of it ever goes out. */
static void given_up_in_line(void **state)
{
	struct rr_local_attr local = { .filters = HOOKS(.chaos_seed = 11) };
	struct rpcrdma_clnt_attr ca = { .credits = 16 };
	struct rpcrdma_stats was, is;
	struct talk_call c[IN_LINE];

	(void)state;
	begin(&local, &ca);
	still_works();
	raw_server_settle(&srv);
	was = stats();
	for (unsigned i = 0; i < IN_LINE; i++)
		start_put_pieces(&c[i]); /* nine requests each, of 70; nothing moves in between */
	is = stats();
	assert_int_equal(is.sq_waits - was.sq_waits, 2);
	assert_int_equal(is.posts - was.posts, IN_LINE - 2);
	rpcrdma_clnt_cancel(clnt, &c[IN_LINE - 2].call);
	assert_false(c[IN_LINE - 2].call.sent);
	ended(&c[IN_LINE - 2], -ECANCELED);
	for (unsigned i = 0; i < IN_LINE - 1; i++) {
		hear();
		assert_int_equal(heard.nreads, 8);
		answer_put(16000);
	}
	assert_false(hear_one());
	for (unsigned i = 0; i < IN_LINE; i++) {
		if (i != IN_LINE - 2)
			ended(&c[i], 0);
		talk_fini(&c[i]);
	}
	for (unsigned i = 0; i < 20; i++)
		still_works(); /* and its credit is back */
	assert_int_equal(srv.conns, 1);
	close_both();
}

/* A server answers what it has not heard yet, and the client finds that before its call has left: the
 * windows of it have a place in the line. */
static void answered_in_line(void **state)
{
	struct rr_local_attr local = { .filters = HOOKS(.chaos_seed = 11) };
	struct rpcrdma_clnt_attr ca = { .credits = 16 };
	struct rpcrdma_stats was;
	struct talk_call c[IN_LINE];

	(void)state;
	begin(&local, &ca);
	still_works();
	raw_server_settle(&srv);
	was = stats();
	for (unsigned i = 0; i < IN_LINE; i++)
		start_put_pieces(&c[i]); /* as above */
	assert_int_equal(stats().sq_waits - was.sq_waits, 2);
	heard = (struct rr_hdr){ .xid = heard.xid + IN_LINE };
	answer_put(16000);
	ended(&c[IN_LINE - 1], -EPROTO);
	assert_non_null(strstr(c[IN_LINE - 1].call.why, "had not been sent"));
	raw_server_until(&srv, &srv.conns, 2);
	for (unsigned i = 0; i < IN_LINE - 1; i++) { /* over the next one, all that is said again */
		do
			hear();
		while (srv.got[srv.taken - 1].conn != 2);
		answer_put(16000);
	}
	for (unsigned i = 0; i < IN_LINE; i++) {
		ended(&c[i], i == IN_LINE - 1 ? -EPROTO : 0);
		talk_fini(&c[i]);
	}
	still_works();
	close_both();
}

/* ---- only what was offered, only once, and only if it was said: items 62, 64 ----------------- */

static const struct rr_fabric_ops *true_ops;
static struct rr_fabric_ops watched_ops;
static unsigned remote_regs;

static int watch_reg(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret)
{
	remote_regs += (attr->access & RR_ACCESS_REMOTE) != 0;
	return true_ops->mr_reg(pd, attr, ret);
}

/* Every shape of a call, and memory that may only be read: with R said not one key of a registration. */
static void item62_nothing_but_windows(void **state)
{
	uint8_t *ro = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(ro, MAP_FAILED);
	for (uint32_t i = 0; i < 9001; i++)
		ro[i] = wire_byte(i);
	assert_int_equal(mprotect(ro, 12288, PROT_READ), 0);
	for (int r = 0; r < 2; r++) {
		struct rr_segment seg;
		struct talk_call c;
		uint8_t copy[9001];
		void *slab;

		begin_way(NULL, r ? BY_ANSWER : NO_R);
		true_ops = fabric->ops;
		watched_ops = *true_ops;
		watched_ops.mr_reg = watch_reg;
		fabric->ops = &watched_ops;
		remote_regs = 0;
		start_put(&c, 9001);
		hear();
		answer_put(9001);
		ended(&c, 0);
		talk_fini(&c);
		start_big(&c, 20000);
		hear();
		answer_begin(RR_NOMSG);
		answer_big(20000);
		into_reply_chunk();
		reply();
		ended(&c, 0);
		talk_fini(&c);
		still_works();
		assert_int_equal(rpcrdma_mem_alloc(domain, 10000, &slab), 0);
		get_init(&c, slab, 9001);
		talk_go(&c);
		hear();
		answer_get(9001);
		ended(&c, 0);
		assert_int_equal(remote_regs, 0);
		/* a source that may not be written: a window cannot be had over it */
		talk_init(&c, WIRE_PUT, 9001);
		c.iov[0] = (struct iovec){ ro, 9001 };
		c.put_args = (struct wire_put_args){
			.data = { .length = 9001, .iov = c.iov, .iovcnt = 1 },
		};
		c.call.encode = (xdrproc_t)xdr_wire_put_args;
		c.call.args = &c.put_args;
		c.call.decode = (xdrproc_t)xdr_wire_put_res;
		c.call.res = &c.put_res;
		c.call.reply_max = 8;
		talk_go(&c);
		hear();
		assert_int_equal(heard.nreads, 1);
		seg = heard.reads[0].seg;
		assert_int_equal(seg.offset == (uintptr_t)ro, !r); /* with R it goes by a copy */
		assert_int_equal(raw_server_read(&srv, &seg, 0, copy, 9001), RR_WC_OK);
		assert_pattern(copy, 9001);
		taken_back(r ? BY_ANSWER : NO_R);
		answer_put(9001);
		ended(&c, 0);
		talk_fini(&c);
		assert_out_of_reach(&seg, ro, 9001);
		fabric->ops = true_ops;
		close_both();
	}
	munmap(ro, 12288);
}

static void item64_wrong_invalidations(void **state)
{
	(void)state;
	for (enum wrong wrong = 0; wrong < WRONGS; wrong++)
		wrong_invalidation(wrong);
}

/* Answered without it, and then invalidated all the same, before we could: not once more by us. */
static void item64_invalidated_after_the_answer(void **state)
{
	struct rpcrdma_stats was;
	struct talk_call c;

	(void)state;
	begin_way(NULL, BY_ANSWER);
	was = stats();
	start_get(&c, 9001);
	hear();
	answer_get(9001);
	taken_back(BY_ANSWER);
	answer_send();
	ended(&c, 0);
	assert_pattern(c.mem, 9001);
	talk_fini(&c);
	raw_server_until(&srv, &srv.conns, 2);
	assert_int_equal(stats().local_invs, was.local_invs);
	still_works();
	close_both();
}

/* The same answer twice, and the first still waits for its windows. */
static void item64_answered_twice(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 20; seed++) {
		struct rr_local_attr local = { .filters = HOOKS(.chaos_seed = seed) };
		struct talk_call c;

		begin_way(&local, BY_CLIENT);
		start_get(&c, 9001);
		hear();
		answer_get(9001);
		answer_send();
		ended(&c, 0);
		assert_pattern(c.mem, 9001);
		talk_fini(&c);
		raw_server_settle(&srv);
		still_works();
		assert_int_equal(srv.conns, 1);
		close_both();
	}
}

/* ---- shortage, and devices without ----------------------------------------------------------- */

/* No window can be allocated: the call waits for one, or fails if no call holds one. No other key is sent. */
static void shortage_queues(void **state)
{
	struct talk_call c[3];

	(void)state;
	begin_way(NULL, BY_ANSWER);
	/* two windows are there by now, the trial's first and that of a call, or one */
	start_get(&c[0], 9001);
	hear();
	inv_key = heard.writes[0].segs[0].handle;
	faults_of(fabric)->fail_window = 1;
	start_get(&c[1], 9001);
	assert_false(hear_one());
	faults_of(fabric)->fail_window = 0;
	answer_get(9001);
	ended(&c[0], 0);
	hear();
	taken_back(BY_ANSWER);
	answer_get(9001);
	ended(&c[1], 0);
	assert_pattern(c[1].mem, 9001);
	assert_int_equal(srv.conns, 1);
	for (unsigned i = 0; i < 2; i++)
		talk_fini(&c[i]);
	close_both();
}

static void falls_back_without(void **state)
{
	struct rr_local_attr local = { .filters = HOOKS(.no_windows = true) };

	(void)state;
	begin(&local, NULL);
	still_works();
	assert_string_equal(info().registration, "auto");
	assert_string_equal(info().fallback, "the device has no memory windows");
	assert_non_null(strstr(info().kept, info().fallback)); /* as leat ping tells it */
	assert_false(info().remote_inv);
	assert_false(srv.client_priv.remote_inv);
	assert_int_equal(srv.conns, 1);
	close_both();
}

/* They are there, and the first bind fails: found out before the first call, once for the device. */
static void falls_back_when_broken(void **state)
{
	struct rr_local_attr local = { .filters = HOOKS(.fail_bind = 1) };

	(void)state;
	begin(&local, NULL);
	still_works();
	assert_int_equal(srv.conns, 2);
	assert_string_equal(info().registration, "auto");
	assert_string_equal(info().fallback, "memory windows of the device do not work");
	assert_false(srv.client_priv.remote_inv);
	assert_int_equal(info().reconnects, 0);
	rpcrdma_clnt_destroy(clnt);
	connect_clnt(&(struct rpcrdma_clnt_attr){ .registration = "window" });
	raw_server_until(&srv, &srv.conns, 3);
	still_works();
	assert_int_equal(srv.conns, 3);
	assert_string_equal(info().registration, "auto");
	close_both();
}

/* The same, but the device does not even accept the request. */
static void falls_back_when_refused(void **state)
{
	struct rr_local_attr local = { .filters = HOOKS(.refuse_binds = true) };

	(void)state;
	begin(&local, NULL);
	still_works();
	assert_int_equal(srv.conns, 2);
	assert_string_equal(info().fallback, "memory windows of the device do not work");
	assert_int_equal(info().reconnects, 0);
	close_both();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		clnt_test_bare(one_bind_and_one_end),
		clnt_test_bare(one_chain_for_many),
		clnt_test_bare(late_after_the_reply),
		clnt_test_bare(item63_done_is_out_of_reach),
		clnt_test_bare(given_up_and_used_again),
		clnt_test_bare(given_up_while_taken_back),
		clnt_test_bare(given_up_on_its_way),
		clnt_test_bare(given_up_in_line),
		clnt_test_bare(answered_in_line),
		clnt_test_bare(item62_nothing_but_windows),
		clnt_test_bare(item64_wrong_invalidations),
		clnt_test_bare(item64_invalidated_after_the_answer),
		clnt_test_bare(item64_answered_twice),
		clnt_test_bare(shortage_queues),
		clnt_test_bare(falls_back_without),
		clnt_test_bare(falls_back_when_broken),
		clnt_test_bare(falls_back_when_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
