/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_clnt_repair.c - what a client does when things go wrong: cut links, lost completions, slow
 * and absent servers, calls given up
 *
 * The promise under test: once connected, every call ends with its own results, sent again with the
 * XID it had; and a call that was given up leaves its memory alone, whatever the server does later.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "rpc_pair.h"

#define BATCH 6

static void one(struct rpc_pair *p)
{
	echo_run(p, 10, 0);
}

/* A mix: inline, Read and Write chunks, a long call with a long reply. */
static void start_batch(struct rpc_pair *p, struct echo_call *c)
{
	static const size_t bytes[BATCH] = { 100, 30000, 0, 1, 5000, 70001 };
	static const uint32_t heads[BATCH] = { 0, 0, 9000, 0, 6000, 0 };

	for (unsigned i = 0; i < BATCH; i++) {
		echo_init(&c[i], p, ECHO_BOTH, bytes[i], bytes[i], i, heads[i]);
		echo_start(&c[i]);
	}
}

static void finish_batch(struct rpc_pair *p, struct echo_call *c)
{
	for (unsigned i = 0; i < BATCH; i++) {
		rpc_pair_until(p, &c[i].done, 1);
		echo_check(&c[i], 0);
		echo_fini(&c[i]);
	}
}

/* Every XID that the server saw belongs to one of the calls: what was resent kept its own. */
static void same_xids(const struct rpc_pair *p, unsigned calls)
{
	for (unsigned i = 0; i < p->nlog; i++)
		assert_in_range(p->log[i] - p->log[0], 0, calls - 1);
}

static void batch_survives(const struct rpc_pair_attr *a, bool want_reconnect)
{
	struct rpc_pair *p = rpc_pair_create(a);
	struct echo_call c[BATCH];

	start_batch(p, c);
	finish_batch(p, c);
	same_xids(p, BATCH);
	if (want_reconnect)
		assert_true(p->ups > 1);
	rpc_pair_destroy(p);
}

static void cut_at_each_send(void **state)
{
	(void)state;
	for (uint64_t n = 1; n <= BATCH; n++)
		for (int how = 0; how < 8; how++) {
			struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL };
			struct rr_local_attr *side = how & 1 ? &a.svc_local : &a.clnt_local;

			side->filters = HOOKS(.cut_after_sends = n, .cut_delivers = how & 2,
					      .chaos_seed = how & 4 ? n * 8 + (uint64_t)how : 0);
			batch_survives(&a, false);
		}
}

static void failing_completions(void **state)
{
	(void)state;
	for (uint64_t n = 1; n <= 2 * BATCH; n++) {
		struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL };

		a.clnt_local.filters = HOOKS(.fail_completion = n);
		batch_survives(&a, true);
		a.clnt_local.filters = NULL;
		a.svc_local.filters = HOOKS(.fail_completion = n);
		batch_survives(&a, true);
	}
}

static void failing_posts(void **state)
{
	(void)state;
	/* the first receives are posted one by one: a failure there is a failed attempt */
	for (uint64_t n = 20; n <= 20 + BATCH; n++) {
		struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL };

		a.clnt_local.filters = HOOKS(.fail_post = n);
		batch_survives(&a, false);
	}
}

static void failing_registrations(void **state)
{
	(void)state;
	/* the first ones are of the connection itself */
	for (uint64_t n = getenv("LEAT_TEST_MODES") ? 3 : 2; n < 14; n++) {
		struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL };
		struct rpc_pair *p;
		struct echo_call c[BATCH];
		unsigned failed = 0;

		a.clnt_local.filters = HOOKS(.fail_reg = n);
		p = rpc_pair_create(&a);
		one(p); /* more credits, so that other calls are out */
		start_batch(p, c);
		for (unsigned i = 0; i < BATCH; i++) {
			rpc_pair_until(p, &c[i].done, 1);
			/* with nothing else out there is nothing to wait for */
			failed += c[i].err != 0;
			echo_check(&c[i], c[i].err ? -ENOMEM : 0);
			echo_fini(&c[i]);
		}
		assert_in_range(failed, 0, 1);
		rpc_pair_destroy(p);
	}
}

static void lost_completions(void **state)
{
	/* each takes the second that an endpoint is given to drain: a variant looks at a few */
	uint64_t step = getenv("LEAT_TEST_VARIANT") ? 4 : 1;

	(void)state;
	for (uint64_t n = 1; n <= 8; n += step) {
		struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL, .clnt.timeout_ms = 100 };

		a.clnt_local.filters = HOOKS(.drop_completion = n);
		batch_survives(&a, false);
	}
}

/* ---- time --------------------------------------------------------------------------------- */

static const struct rpc_pair_attr over_local = { .transport = RPCRDMA_LOCAL };
static const struct rpc_pair_attr over_tcp = { .transport = RPCRDMA_TCP };
static const struct rpc_pair_attr over_chaos = { .transport = RPCRDMA_LOCAL,
						 .clnt_local.filters = HOOKS(.chaos_seed = 5),
						 .svc_local.filters = HOOKS(.chaos_seed = 6) };

static void no_answer_in_time(void **state)
{
	struct rpc_pair_attr a = *(const struct rpc_pair_attr *)*state;
	struct rpc_pair *p;
	struct echo_call c[BATCH];
	unsigned seen;

	a.clnt.timeout_ms = 100;
	a.clnt.backoff_ms = 1;
	p = rpc_pair_create(&a);
	one(p);
	p->hold = true;
	start_batch(p, c);
	rpc_pair_until(p, &p->ups, 2);
	seen = p->nlog;
	rpc_pair_until(p, &p->nlog, seen + 1);
	rpc_pair_release(p);
	finish_batch(p, c);
	same_xids(p, BATCH + 1);
	assert_true(p->nlog > BATCH + 1);
	assert_true(rpc_pair_clnt_stats(p).timeouts >= 1);
	assert_true(rpc_pair_clnt_stats(p).reconnects >= 1);
	rpc_pair_destroy(p);
}

/* Given up by @give_up; the server answers afterwards. */
static void given_up(const struct rpc_pair_attr *a, bool by_deadline, bool slab)
{
	struct rpc_pair *p = rpc_pair_create(a);
	struct echo_call c[BATCH], *odd = &c[1];
	void *mem = NULL;

	one(p);
	p->hold = true;
	for (unsigned i = 0; i < BATCH; i++) {
		echo_init(&c[i], p, ECHO_BOTH, 30000 * i, 30000 * i, i, i % 2 ? 0 : 9000);
		if (slab && i == 1) {
			assert_int_equal(rpcrdma_mem_alloc(p->clnt_domain, 100000, &mem), 0);
			free(c[i].sink);
			free(c[i].arg);
			c[i].own = false;
			c[i].arg = mem;
			c[i].sink = (uint8_t *)mem + 40000;
			memset(c[i].sink, 0xee, 30001);
			echo_cut(&c[i], SIZE_MAX);
		}
		if (by_deadline && i % 2)
			c[i].call.deadline_ms = 30;
		echo_start(&c[i]);
	}
	rpc_pair_until(p, &p->nheld, 1);
	rpc_pair_settle(p);
	if (!by_deadline)
		for (unsigned i = 1; i < BATCH; i += 2)
			rpcrdma_clnt_cancel(p->clnt, &c[i].call);
	for (unsigned i = 1; i < BATCH; i += 2) {
		rpc_pair_until(p, &c[i].done, 1);
		echo_check(&c[i], by_deadline ? -ETIMEDOUT : -ECANCELED);
		rpcrdma_clnt_cancel(p->clnt, &c[i].call); /* of one that is done: nothing */
	}
	rpc_pair_release(p);
	for (unsigned i = 0; i < BATCH; i += 2) {
		rpc_pair_until(p, &c[i].done, 1);
		echo_check(&c[i], 0);
	}
	rpc_pair_settle(p);
	for (unsigned i = 1; i < BATCH; i += 2)
		for (size_t k = 0; k < c[i].sink_bytes; k++)
			assert_int_equal(c[i].sink[k], 0xee);
	one(p);
	assert_int_equal(odd->done, 1);
	for (unsigned i = 0; i < BATCH; i++)
		echo_check(&c[i], c[i].err);
	for (unsigned i = 0; i < BATCH; i++) {
		if (!c[i].own)
			c[i].arg = c[i].sink = NULL;
		echo_fini(&c[i]);
	}
	rpcrdma_mem_free(p->clnt_domain, mem);
	rpc_pair_destroy(p);
}

static void deadline(void **state)
{
	given_up(*state, true, false);
	given_up(*state, true, true);
}

static void cancel(void **state)
{
	given_up(*state, false, false);
	given_up(*state, false, true);
}

/* ---- servers that come and go ------------------------------------------------------------- */

static void no_server_yet(void **state)
{
	const struct rpc_pair_attr *a = *state;
	struct rpc_pair *p = rpc_pair_create(a);
	struct echo_call c[2];

	rpc_pair_unlisten(p);
	for (int i = 0; i < 2; i++) {
		echo_init(&c[i], p, ECHO_BOTH, 10, 10, 0, 0);
		echo_start(&c[i]);
	}
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 2; i++) {
			rpc_pair_until(p, &c[i].done, 1);
			assert_true(c[i].err == -ECONNREFUSED || c[i].err == -ENOENT);
			assert_non_null(c[i].call.why);
		}
		for (int i = 0; i < 2; i++)
			echo_start(&c[i]);
	}
	for (int i = 0; i < 2; i++)
		rpc_pair_until(p, &c[i].done, 1);
	rpc_pair_listen(p);
	for (int i = 0; i < 2; i++) {
		echo_start(&c[i]);
		rpc_pair_until(p, &c[i].done, 1);
		echo_check(&c[i], 0);
		echo_fini(&c[i]);
	}
	rpc_pair_destroy(p);
}

static void server_restarts(void **state)
{
	struct rpc_pair_attr a = *(const struct rpc_pair_attr *)*state;
	struct rpc_pair *p;
	struct echo_call c[BATCH];
	unsigned downs;

	a.clnt.backoff_ms = 1;
	p = rpc_pair_create(&a);
	one(p);
	p->hold = true;
	start_batch(p, c);
	rpc_pair_until(p, &p->nheld, 1);
	rpc_pair_unlisten(p);
	rpcrdma_conn_close(p->last_conn);
	downs = p->downs;
	rpc_pair_until(p, &p->downs, downs + 3); /* a few attempts come to nothing */
	rpc_pair_listen(p);
	rpc_pair_release(p);
	finish_batch(p, c);
	same_xids(p, BATCH + 1);
	one(p);
	rpc_pair_destroy(p);
}

/* A server that owes replies for too long is away, once, and it is back with its first reply. */
static void away_and_back(void **state)
{
	struct rpc_pair_attr a = *(const struct rpc_pair_attr *)*state;
	struct echo_call c[BATCH];
	struct rpc_pair *p;

	a.clnt.backoff_ms = a.clnt.away_ms = 1;
	p = rpc_pair_create(&a);
	one(p);
	assert_int_equal(p->backs, p->aways); /* a slow machine may have taken its time */
	p->backs = p->aways = 0;
	/* it has the calls, and keeps them */
	p->hold = true;
	start_batch(p, c);
	rpc_pair_until(p, &p->aways, 1);
	assert_int_equal(p->backs, 0);
	/* the connection goes, and no other can be made: nothing new */
	rpc_pair_unlisten(p);
	rpcrdma_conn_close(p->last_conn);
	rpc_pair_until(p, &p->downs, p->downs + 2);
	assert_int_equal(p->aways, 1);
	rpc_pair_listen(p);
	rpc_pair_release(p);
	finish_batch(p, c);
	assert_in_range(p->backs, 1, p->aways);

	/* while nothing is asked of it, it may be gone for as long as it likes */
	assert_int_equal(p->backs, p->aways);
	p->backs = p->aways = 0;
	rpc_pair_unlisten(p);
	rpcrdma_conn_close(p->last_conn);
	rpc_pair_until(p, &p->downs, p->downs + 5);
	assert_int_equal(p->aways, 0);
	/* until a call waits for it */
	echo_init(&c[0], p, ECHO_BOTH, 1, 1, 0, 0);
	echo_start(&c[0]);
	rpc_pair_until(p, &p->aways, 1);
	rpc_pair_listen(p);
	rpc_pair_until(p, &c[0].done, 1);
	echo_check(&c[0], 0);
	echo_fini(&c[0]);
	assert_int_equal(p->backs, 1);
	rpc_pair_destroy(p);
}

/* ---- done() as a place to do things ------------------------------------------------------- */

struct chain {
	struct echo_call c;
	unsigned left;
	struct echo_call *victim;
	void (*plain_done)(struct rpcrdma_call *call, int err);
};

static void done_and_go_on(struct rpcrdma_call *call, int err)
{
	struct chain *ch = container_of(call, struct chain, c.call);

	ch->plain_done(call, err);
	if (ch->victim)
		rpcrdma_clnt_cancel(ch->c.pair->clnt, &ch->victim->call);
	if (ch->left-- > 1) {
		assert_int_equal(rpcrdma_clnt_call(ch->c.pair->clnt, call), 0);
		ch->c.done--; /* counted when the chain is through */
	}
}

static void done_destroys(struct rpcrdma_call *call, int err)
{
	struct chain *ch = container_of(call, struct chain, c.call);

	ch->plain_done(call, err);
	rpcrdma_clnt_destroy(ch->c.pair->clnt);
	ch->c.pair->clnt = NULL;
}

static void calls_from_done(void **state)
{
	struct rpc_pair *p = rpc_pair_create(*state);
	struct chain ch[4];

	for (unsigned i = 0; i < 4; i++) {
		ch[i] = (struct chain){ .left = 50 };
		echo_init(&ch[i].c, p, ECHO_BOTH, 40 + i * 3000, 40 + i * 3000, 0, 0);
		ch[i].plain_done = ch[i].c.call.done;
		ch[i].c.call.done = done_and_go_on;
		echo_start(&ch[i].c);
	}
	for (unsigned i = 0; i < 4; i++) {
		rpc_pair_until(p, &ch[i].c.done, 1);
		echo_check(&ch[i].c, 0);
		echo_fini(&ch[i].c);
	}
	assert_int_equal(p->nlog, 200);
	rpc_pair_destroy(p);
}

static void cancel_from_done(void **state)
{
	struct rpc_pair *p = rpc_pair_create(*state);
	struct echo_call victims[BATCH];
	struct chain ch[BATCH];

	one(p);
	for (unsigned i = 0; i < BATCH; i++) {
		ch[i] = (struct chain){ .left = 1 };
		echo_init(&ch[i].c, p, ECHO_BOTH, 9000, 9000, 0, 0);
		ch[i].plain_done = ch[i].c.call.done;
		ch[i].c.call.done = done_and_go_on;
		ch[i].victim = &victims[i];
		echo_init(&victims[i], p, ECHO_BOTH, 200000, 200000, 0, 0);
		echo_start(&ch[i].c);
		echo_start(&victims[i]);
	}
	for (unsigned i = 0; i < BATCH; i++) {
		rpc_pair_until(p, &ch[i].c.done, 1);
		echo_check(&ch[i].c, 0);
		rpc_pair_until(p, &victims[i].done, 1);
		echo_check(&victims[i], victims[i].err ? -ECANCELED : 0);
		echo_fini(&ch[i].c);
		echo_fini(&victims[i]);
	}
	one(p);
	rpc_pair_destroy(p);
}

static void destroy_from_done(void **state)
{
	struct rpc_pair *p = rpc_pair_create(*state);
	struct echo_call c[BATCH];
	struct chain ch = { .left = 1 };

	one(p);
	echo_init(&ch.c, p, ECHO_BOTH, 100, 100, 0, 0);
	ch.plain_done = ch.c.call.done;
	ch.c.call.done = done_destroys;
	echo_start(&ch.c);
	start_batch(p, c);
	rpc_pair_until(p, &ch.c.done, 1);
	for (unsigned i = 0; i < BATCH; i++) {
		assert_int_equal(c[i].done, 1); /* before destroy returned */
		if (c[i].err)
			echo_check(&c[i], -ECANCELED);
		echo_fini(&c[i]);
	}
	echo_fini(&ch.c);
	rpc_pair_settle(p);
	rpc_pair_destroy(p);
}

static void destroy_with_calls_out(void **state)
{
	struct rpc_pair *p = rpc_pair_create(*state);
	struct echo_call c[BATCH];

	start_batch(p, c); /* not even connected */
	rpcrdma_clnt_destroy(p->clnt);
	for (unsigned i = 0; i < BATCH; i++) {
		echo_check(&c[i], -ECANCELED);
		echo_fini(&c[i]);
	}
	p->clnt = NULL;
	rpc_pair_destroy(p);

	p = rpc_pair_create(*state);
	one(p);
	p->hold = true;
	start_batch(p, c);
	rpc_pair_until(p, &p->nheld, 1);
	rpcrdma_clnt_destroy(p->clnt);
	for (unsigned i = 0; i < BATCH; i++) {
		echo_check(&c[i], -ECANCELED);
		echo_fini(&c[i]);
	}
	p->clnt = NULL;
	rpc_pair_destroy(p);
}

#define OVER(test, how) { #test " " #how, test, NULL, NULL, (void *)(uintptr_t)&how }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_at_each_send),
		cmocka_unit_test(failing_completions),
		cmocka_unit_test(failing_posts),
		cmocka_unit_test(failing_registrations),
		cmocka_unit_test(lost_completions),
		OVER(no_answer_in_time, over_local),
		OVER(no_answer_in_time, over_tcp),
		OVER(no_answer_in_time, over_chaos),
		OVER(deadline, over_local),
		OVER(deadline, over_tcp),
		OVER(deadline, over_chaos),
		OVER(cancel, over_local),
		OVER(cancel, over_tcp),
		OVER(cancel, over_chaos),
		OVER(no_server_yet, over_local),
		OVER(no_server_yet, over_tcp),
		OVER(server_restarts, over_local),
		OVER(server_restarts, over_tcp),
		OVER(away_and_back, over_local),
		OVER(away_and_back, over_tcp),
		OVER(calls_from_done, over_local),
		OVER(calls_from_done, over_tcp),
		OVER(calls_from_done, over_chaos),
		OVER(cancel_from_done, over_local),
		OVER(cancel_from_done, over_tcp),
		OVER(cancel_from_done, over_chaos),
		OVER(destroy_from_done, over_local),
		OVER(destroy_from_done, over_tcp),
		OVER(destroy_with_calls_out, over_local),
		OVER(destroy_with_calls_out, over_tcp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
