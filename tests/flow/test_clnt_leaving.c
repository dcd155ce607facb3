/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_clnt_leaving.c - a server that stops in the middle of a copy to or from a call's memory
 *
 * A copy goes by address, so nothing but its end makes the memory its caller's again. Until then the call is
 * kept, and its client; other clients of the same engine and all timers go on. The mark that a server sets for
 * the time of a copy is set and cleared by the test.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "clnt_rdma.h"
#include "local_int.h"
#include "rpc_pair.h"

#define BYTES 30000u

static _Atomic uint32_t *busy, *key;
static uint32_t mark;

/* The server is in the middle of the sink of the only call that is out. @how: BUSY_COPY, BUSY_PAGES */
static void stop_in(struct rpc_pair *p, uint32_t how)
{
	const struct rr_link *l = p->clnt->xprt;
	const struct rr_rcall *rc = list_first_entry(&l->calls, struct rr_rcall, link);
	const struct local_qp *qp = to_qp(l->ep->qp);
	uint32_t bits = 0, handle;
	struct shm_key *k;

	assert_non_null(rc);
	handle = rc->sink.segs[0].seg.handle;
	while (1u << bits < qp->my_nkeys)
		bits++;
	k = &qp->my_keys[handle >> 8 & ((1u << bits) - 1)];
	assert_int_equal(atomic_load(&k->key), handle);
	atomic_fetch_add(&k->busy, how);
	mark = how;
	busy = &k->busy;
	key = &k->key;
}

static void go_on(void)
{
	atomic_fetch_sub(busy, mark);
}

static unsigned fired;

static void on_timer(struct rpcrdma_timer *t)
{
	(void)t;
	fired++;
}

/* A timer of the engine's, and a call of another client, to their ends. */
static void others_go_on(struct rpc_pair *p, struct rpc_pair *other)
{
	struct rpcrdma_timer t = { .fn = on_timer };
	unsigned want = fired + 1;

	rpcrdma_timer_set(p->clnt_engine, &t, 20 * NS_PER_MS);
	rpc_pair_until(p, &fired, want);
	echo_run(other, 100, 0);
}

static struct rpc_pair *open_pair(const char *registration)
{
	struct rpc_pair_attr a = {
		.transport = RPCRDMA_LOCAL,
		.clnt = { .registration = registration, .monitor = "none", .no_bounce = true },
	};

	return rpc_pair_create(&a);
}

static void start_held_in(struct rpc_pair *p, struct echo_call *c, uint32_t how, struct rpcrdma_room *room)
{
	echo_run(p, 10, 0);
	p->hold = true;
	echo_init(c, p, ECHO_BOTH, BYTES, BYTES, 1, 0);
	c->call.room = room;
	c->call.reply_max += room ? BYTES : 0; /* with a room it counts what a peer may not place in the sink */
	echo_start(c);
	rpc_pair_until(p, &p->nheld, 1);
	stop_in(p, how);
}

static void start_held(struct rpc_pair *p, struct echo_call *c)
{
	start_held_in(p, c, BUSY_COPY, NULL);
}

/* The connection ends, or the call, which is wrong. */
static void until_ending(struct rpc_pair *p, const struct echo_call *c)
{
	while (!((struct rr_link *)p->clnt->xprt)->ending && !c->done)
		rpc_pair_poll(p);
	assert_int_equal(c->done, 0);
}

/* Its deadline is now: it is given up, and the connection with it. */
static void pass_deadline(struct rpc_pair *p, struct echo_call *c)
{
	struct rr_call *call = c->call.priv[0];

	call->deadline_ns = clock_now_ns();
	rr_clnt_due(p->clnt, call->deadline_ns);
	until_ending(p, c);
}

static const char *const registrations[] = { "dynamic", "cache", "window" };

/* Its deadline passes, and a caller that waits in line behind it is not kept by it. */
static void deadline(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(registrations); i++) {
		struct rpc_pair *p = open_pair(registrations[i]), *other = open_pair(NULL);
		struct echo_call c, late;

		start_held(p, &c);
		pass_deadline(p, &c);
		others_go_on(p, other);
		assert_int_equal(c.done, 0); /* and yet */
		echo_init(&late, p, ECHO_BOTH, 10, 10, 1, 0);
		late.call.deadline_ms = 20;
		echo_start(&late);
		rpc_pair_until(p, &late.done, 1);
		echo_check(&late, -ETIMEDOUT);
		assert_int_equal(c.done, 0);
		go_on();
		rpc_pair_until(p, &c.done, 1);
		echo_check(&c, -ETIMEDOUT);
		rpc_pair_release(p);
		echo_run(p, 1000, 0);
		echo_fini(&late);
		echo_fini(&c);
		rpc_pair_destroy(other);
		rpc_pair_destroy(p);
	}
}

/* No answer: the call goes out again, but not before the copy has ended. */
static void repaired(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(registrations); i++) {
		struct rpc_pair *p = open_pair(registrations[i]), *other = open_pair(NULL);
		struct echo_call c;

		start_held(p, &c);
		p->clnt->attr.timeout_ms = 1;
		rr_clnt_due(p->clnt, clock_now_ns());
		until_ending(p, &c);
		p->clnt->attr.timeout_ms = 60000;
		others_go_on(p, other);
		assert_int_equal(p->nlog, 2);
		assert_int_equal(c.done, 0);
		go_on();
		rpc_pair_release(p);
		rpc_pair_until(p, &c.done, 1);
		echo_check(&c, 0);
		assert_int_equal(p->log[p->nlog - 1], p->log[1]);
		echo_fini(&c);
		rpc_pair_destroy(other);
		rpc_pair_destroy(p);
	}
}

/* The copy ends when the client withdraws the key of its memory. */
static void *end_when_withdrawn(void *arg)
{
	(void)arg;
	while (atomic_load(key))
		sched_yield();
	go_on();
	return NULL;
}

/* cancel() and destroy() promise that the call is done when they return: they wait. */
static void waited_for(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(registrations) * 2; i++) {
		struct rpc_pair *p = open_pair(registrations[i / 2]);
		struct echo_call c;
		pthread_t t;

		start_held(p, &c);
		assert_int_equal(pthread_create(&t, NULL, end_when_withdrawn, NULL), 0);
		if (i % 2) {
			rpcrdma_clnt_cancel(p->clnt, &c.call);
		} else {
			rpcrdma_clnt_destroy(p->clnt);
			p->clnt = NULL;
		}
		assert_int_equal(atomic_load(busy), 0);
		echo_check(&c, -ECANCELED);
		assert_int_equal(pthread_join(t, NULL), 0);
		if (p->clnt) {
			rpc_pair_release(p);
			echo_run(p, 1000, 0);
		}
		echo_fini(&c);
		rpc_pair_destroy(p);
	}
}

static unsigned released;

static void on_released(struct rpcrdma_room *room)
{
	(void)room;
	released++;
}

/* A call with a room: that is given back once, by the time that cancel() returns. */
static void room_waits_too(void **state)
{
	static uint64_t mem[8192];

	(void)state;
	for (int late = 0; late < 2; late++) {
		struct rpcrdma_room room = { .mem = mem, .bytes = sizeof(mem), .released = on_released };
		struct rpc_pair *p = open_pair("dynamic");
		struct echo_call c;
		pthread_t t;

		released = 0;
		start_held_in(p, &c, BUSY_COPY, &room);
		if (late)
			pass_deadline(p, &c);
		assert_int_equal(pthread_create(&t, NULL, end_when_withdrawn, NULL), 0);
		rpcrdma_clnt_cancel(p->clnt, &c.call);
		assert_int_equal(atomic_load(busy), 0);
		assert_int_equal(released, 1);
		echo_check(&c, late ? -ETIMEDOUT : -ECANCELED);
		assert_int_equal(pthread_join(t, NULL), 0);
		rpc_pair_release(p);
		echo_run(p, 1000, 0);
		assert_int_equal(released, 1);
		echo_fini(&c);
		rpc_pair_destroy(p);
	}
}

/* A call that is cancelled a second time, by a caller that cannot wait for the end of the connection. */
static void cancelled_while_leaving(void **state)
{
	struct rpc_pair *p = open_pair("dynamic");
	struct echo_call c;

	(void)state;
	start_held(p, &c);
	pass_deadline(p, &c);
	assert_int_equal(c.done, 0);
	go_on();
	rpcrdma_clnt_cancel(p->clnt, &c.call);
	echo_check(&c, -ETIMEDOUT);
	rpc_pair_release(p);
	echo_run(p, 1000, 0);
	echo_fini(&c);
	rpc_pair_destroy(p);
}

/* A disk of the server still writes to the transport's memory of a cancelled call. The next call does not use that
 * memory by the old file, which the disk has. */
static void copied_while_disk_works(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(registrations); i++) {
		struct rpc_pair_attr a = {
			.transport = RPCRDMA_LOCAL,
			.clnt = { .registration = registrations[i], .monitor = "none", .bounce_bytes = 2 * BYTES },
		};
		struct rpc_pair *p;
		struct echo_call c;

		if (!strcmp(registrations[i], "dynamic"))
			continue; /* its memory has no file */
		p = rpc_pair_create(&a);
		start_held_in(p, &c, BUSY_PAGES, NULL);
		rpcrdma_clnt_cancel(p->clnt, &c.call);
		echo_check(&c, -ECANCELED);
		go_on();
		p->hold = false; /* the late reply would end the connection */
		echo_run(p, BYTES, 0);
		assert_int_equal(p->nconns, 1);
		rpc_pair_release(p);
		echo_fini(&c);
		rpc_pair_destroy(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deadline),
		cmocka_unit_test(repaired),
		cmocka_unit_test(waited_for),
		cmocka_unit_test(room_waits_too),
		cmocka_unit_test(cancelled_while_leaving),
		cmocka_unit_test(copied_while_disk_works),
	};

	return cmocka_run_group_tests_name("clnt_leaving", tests, NULL, NULL);
}
