/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_engine_visits.c - other threads that work in an engine while its own thread sleeps
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "test_engine.h"

#define PATIENCE_NS (20 * NS_PER_S)

static atomic_bool owner_ends;
static atomic_uint owner_ran;

static void *own(void *arg)
{
	(void)arg;
	while (!atomic_load(&owner_ends))
		(void)rpcrdma_engine_wait(e, -1);
	return NULL;
}

static pthread_t start_owner(void)
{
	pthread_t t;

	atomic_store(&owner_ends, false);
	atomic_store(&owner_ran, 0);
	assert_int_equal(pthread_create(&t, NULL, own, NULL), 0);
	return t;
}

static void on_end(struct rpcrdma_msg *msg)
{
	(void)msg;
	atomic_store(&owner_ends, true);
}

static void end_owner(pthread_t t)
{
	struct rpcrdma_msg msg = { .fn = on_end };

	rpcrdma_engine_post(e, &msg);
	pthread_join(t, NULL);
}

static void enter(void)
{
	uint64_t until = clock_now_ns() + PATIENCE_NS;

	while (!rpcrdma_engine_enter(e))
		assert_true(clock_now_ns() < until);
}

static void await_owner(unsigned times)
{
	uint64_t until = clock_now_ns() + PATIENCE_NS;

	while (atomic_load(&owner_ran) < times)
		assert_true(clock_now_ns() < until);
}

static void note_timer(struct rpcrdma_timer *t)
{
	(void)t;
	atomic_fetch_add(&owner_ran, 1);
}

static void note_msg(struct rpcrdma_msg *msg)
{
	(void)msg;
	atomic_fetch_add(&owner_ran, 1);
}

/* The owner has no timer, and sleeps without a limit. */
static void visitor_sets_a_timer(void **state)
{
	struct rpcrdma_timer timer = { .fn = note_timer }, later = { .fn = note_timer };
	pthread_t t = start_owner();

	(void)state;
	enter();
	rpcrdma_timer_set(e, &later, 3600 * NS_PER_S);
	rpcrdma_engine_leave(e);
	enter();
	rpcrdma_timer_set(e, &timer, NS_PER_MS);
	rpcrdma_engine_leave(e);
	await_owner(1);
	enter();
	rpcrdma_timer_cancel(e, &later);
	rpcrdma_engine_leave(e);
	end_owner(t);
	assert_int_equal(atomic_load(&owner_ran), 1);
}

static void visitor_defers_a_message(void **state)
{
	struct rpcrdma_msg msg = { .fn = note_msg };
	pthread_t t = start_owner();

	(void)state;
	enter();
	rr_engine_defer(e, &msg);
	rpcrdma_engine_leave(e);
	await_owner(1);
	end_owner(t);
}

static void count_event(struct rpcrdma_watch *watch, uint32_t events)
{
	(void)watch;
	(void)events;
	atomic_fetch_add(&owner_ran, 1);
}

/* The owner has got the event already, and waits for the visitor. */
static void visitor_ends_a_watch(void **state)
{
	struct rpcrdma_watch watch = { .fd = eventfd(1, EFD_CLOEXEC), .fn = count_event };
	pthread_t t = start_owner();
	uint64_t until = clock_now_ns() + PATIENCE_NS;

	(void)state;
	enter();
	assert_int_equal(rpcrdma_engine_watch(e, &watch, EPOLLIN), 0);
	while (atomic_load(&e->open))
		assert_true(clock_now_ns() < until);
	rpcrdma_engine_unwatch(e, &watch);
	rpcrdma_engine_leave(e);
	end_owner(t);
	assert_int_equal(atomic_load(&owner_ran), 0);
	close(watch.fd);
}

/* A message that wakes the owner runs when the visitor has left. */
static void visitor_and_messages(void **state)
{
	struct rpcrdma_msg msg = { .fn = note_msg };
	const bool never = false;
	pthread_t t = start_owner();
	uint64_t until = clock_now_ns() + PATIENCE_NS;

	(void)state;
	enter();
	assert_false(rpcrdma_engine_enter(e)); /* one at a time */
	rpcrdma_engine_post(e, &msg);
	rpcrdma_engine_linger(e, &never);
	while (atomic_load(&e->open))
		assert_true(clock_now_ns() < until);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	assert_int_equal(atomic_load(&owner_ran), 0);
	rpcrdma_engine_leave(e);
	await_owner(1);
	end_owner(t);
}

/* The owner has been called, but is not awake yet. */
static void visitor_waits_its_turn(void **state)
{
	struct note note = { .msg.fn = on_note, .n = 7 };

	(void)state;
	nseen = 0;
	assert_false(rpcrdma_engine_enter(e));
	atomic_store(&e->open, true);
	rpcrdma_engine_post(e, &note.msg);
	assert_false(rpcrdma_engine_enter(e));
	atomic_store(&e->open, false);
	assert_int_equal(rpcrdma_engine_poll(e), 1);
	assert_int_equal(nseen, 1);
}

/* A device would wake the owner for each completion of the visitor. */
static void visitor_and_devices(void **state)
{
	struct rr_fabric fabric = { .attr.quiet_polls = false };
	struct rr_cq cq = { .fabric = &fabric };

	(void)state;
	atomic_store(&e->open, true);
	atomic_store(&e->cq[0], &cq);
	atomic_store(&e->ncqs, 1);
	assert_true(rpcrdma_engine_enter(e)); /* it has no connections */
	rpcrdma_engine_leave(e);
	e->qps = 1;
	assert_false(rpcrdma_engine_enter(e));
	fabric.attr.quiet_polls = true;
	assert_true(rpcrdma_engine_enter(e));
	rpcrdma_engine_leave(e);
	e->qps = 0;
	atomic_store(&e->ncqs, 0);
	atomic_store(&e->cq[0], NULL);
	atomic_store(&e->open, false);
}

#define visit_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		visit_test(visitor_sets_a_timer),
		visit_test(visitor_defers_a_message),
		visit_test(visitor_ends_a_watch),
		visit_test(visitor_and_messages),
		visit_test(visitor_waits_its_turn),
		visit_test(visitor_and_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
