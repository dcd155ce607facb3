/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_engine.c - messages, timers and descriptors of an engine
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "test_engine.h"

static void messages_run_in_order(void **state)
{
	struct note notes[20];

	(void)state;
	nseen = 0;
	for (int i = 0; i < 20; i++) {
		notes[i] = (struct note){ .msg.fn = on_note, .n = i };
		rpcrdma_engine_post(e, &notes[i].msg);
	}
	assert_int_equal(nseen, 0); /* not inside the post */
	assert_true(rpcrdma_engine_poll(e) > 0);
	assert_int_equal(nseen, 20);
	for (int i = 0; i < 20; i++)
		assert_int_equal(seen[i], i);
	assert_int_equal(rpcrdma_engine_poll(e), 0);
}

static struct note again;
static int left;

static void on_again(struct rpcrdma_msg *msg)
{
	on_note(msg);
	if (left-- > 0)
		rr_engine_defer(e, msg);
}

static void deferred_wait_for_the_next_pass(void **state)
{
	struct note notes[3];

	(void)state;
	nseen = 0;
	left = 5;
	again = (struct note){ .msg.fn = on_again, .n = 9 };
	rr_engine_defer(e, &again.msg);
	for (int i = 0; i < 3; i++) {
		notes[i] = (struct note){ .msg.fn = on_note, .n = i };
		rr_engine_defer(e, &notes[i].msg);
	}
	rr_engine_undefer(e, &notes[1].msg);
	while (rpcrdma_engine_poll(e))
		;
	assert_int_equal(nseen, 8);
	assert_int_equal(seen[0], 9);
	assert_int_equal(seen[1], 0);
	assert_int_equal(seen[2], 2);
	for (int i = 3; i < 8; i++)
		assert_int_equal(seen[i], 9);
}

#define POSTS 20000

static struct note many[POSTS];

static void *poster(void *arg)
{
	(void)arg;
	for (int i = 0; i < POSTS; i++)
		rpcrdma_engine_post(e, &many[i].msg);
	return NULL;
}

static int in_order;

static void on_many(struct rpcrdma_msg *msg)
{
	in_order += container_of(msg, struct note, msg)->n == in_order;
}

/* A message wakes an engine that waits without a timeout. */
static void posts_wake_a_sleeper(void **state)
{
	pthread_t t;

	(void)state;
	in_order = 0;
	for (int i = 0; i < POSTS; i++)
		many[i] = (struct note){ .msg.fn = on_many, .n = i };
	assert_int_equal(pthread_create(&t, NULL, poster, NULL), 0);
	while (in_order < POSTS)
		assert_true(rpcrdma_engine_wait(e, -1) > 0);
	pthread_join(t, NULL);
	assert_int_equal(in_order, POSTS);
}

/* The same for programs that poll the descriptor in a loop of their own. */
static void posts_wake_a_foreign_loop(void **state)
{
	struct pollfd p = { .fd = rpcrdma_engine_fd(e), .events = POLLIN };
	pthread_t t;

	(void)state;
	in_order = 0;
	for (int i = 0; i < POSTS; i++)
		many[i] = (struct note){ .msg.fn = on_many, .n = i };
	assert_int_equal(pthread_create(&t, NULL, poster, NULL), 0);
	while (in_order < POSTS) {
		if (rpcrdma_engine_poll(e) || rpcrdma_engine_arm(e))
			continue;
		assert_int_equal(poll(&p, 1, -1), 1);
	}
	pthread_join(t, NULL);
}

struct alarm {
	struct rpcrdma_timer t;
	int n;
};

static void on_alarm(struct rpcrdma_timer *t)
{
	seen[nseen++] = container_of(t, struct alarm, t)->n;
}

static void timers_fire_in_order_of_time(void **state)
{
	struct alarm a[5] = { 0 };
	uint64_t start;

	(void)state;
	nseen = 0;
	do { /* their order is that of their times only if setting them takes none */
		start = clock_now_ns();
		for (int i = 0; i < 5; i++) {
			a[i].n = i;
			a[i].t.fn = on_alarm;
			rpcrdma_timer_set(e, &a[i].t, (uint64_t)(5 - i) * NS_PER_MS);
		}
	} while (clock_now_ns() - start >= NS_PER_MS);
	rpcrdma_timer_cancel(e, &a[3].t);
	rpcrdma_timer_cancel(e, &a[3].t);
	rpcrdma_timer_set(e, &a[4].t, 8 * NS_PER_MS); /* moved to the end */
	while (nseen < 4)
		rpcrdma_engine_wait(e, -1);
	assert_true(clock_now_ns() - start >= 8 * NS_PER_MS); /* no earlier than asked */
	assert_int_equal(seen[0], 2);
	assert_int_equal(seen[1], 1);
	assert_int_equal(seen[2], 0);
	assert_int_equal(seen[3], 4);
}

static void timers_wake_a_foreign_loop(void **state)
{
	struct pollfd p = { .fd = rpcrdma_engine_fd(e), .events = POLLIN };
	struct alarm a = { .t.fn = on_alarm, .n = 1 };

	(void)state;
	nseen = 0;
	rpcrdma_timer_set(e, &a.t, 3 * NS_PER_MS);
	while (!nseen) {
		if (rpcrdma_engine_poll(e) || rpcrdma_engine_arm(e))
			continue;
		assert_int_equal(poll(&p, 1, -1), 1);
	}
}

static struct rpcrdma_watch w[2];
static int fired[2];

static void on_fd(struct rpcrdma_watch *at, uint32_t events)
{
	int i = (int)(at - w);

	assert_true(events & EPOLLIN);
	fired[i]++;
	rpcrdma_engine_unwatch(e, &w[!i]); /* the other one is ready too, and must not run */
}

static void on_ring(struct rpcrdma_watch *ring, uint32_t events)
{
	(void)ring;
	(void)events;
	nseen++;
}

/* A foreign loop woke up: the pass that follows looks at the descriptors, whatever it did before. */
static void armed_pass_sees_descriptors(void **state)
{
	struct rpcrdma_watch ring = { .fd = eventfd(1, EFD_CLOEXEC), .fn = on_ring };

	(void)state;
	e->qps = 1; /* without queue pairs, every pass does */
	nseen = 0;
	assert_int_equal(rpcrdma_engine_watch(e, &ring, EPOLLIN), 0);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(rpcrdma_engine_arm(e), 0);
		(void)rpcrdma_engine_poll(e);
		assert_int_equal(nseen, i);
	}
	rpcrdma_engine_unwatch(e, &ring);
	close(ring.fd);
	e->qps = 0;
}

static void unwatched_means_silent(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		w[i] = (struct rpcrdma_watch){ .fd = eventfd(1, EFD_NONBLOCK), .fn = on_fd };
		assert_true(w[i].fd >= 0);
		assert_int_equal(rpcrdma_engine_watch(e, &w[i], EPOLLIN), 0);
		fired[i] = 0;
	}
	while (!(fired[0] + fired[1]))
		rpcrdma_engine_poll(e);
	assert_int_equal(fired[0] + fired[1], 1);
	rpcrdma_engine_unwatch(e, &w[fired[0] ? 0 : 1]);
	for (int i = 0; i < 100; i++)
		assert_int_equal(rpcrdma_engine_poll(e), 0);
	close(w[0].fd);
	close(w[1].fd);
}

static void counters_outlive_their_engine(void **state)
{
	struct rpcrdma_stats st;
	struct rpcrdma_engine *other;

	(void)state;
	assert_int_equal(rpcrdma_engine_create(d, NULL, &other), 0);
	rpcrdma_count_copied(other, 40);
	rpcrdma_count_copied(e, 2);
	rr_count_set(other, credits_low, 8);
	rr_count_set(e, credits_low, 3);
	rpcrdma_engine_destroy(other);
	rpcrdma_domain_stats(d, &st);
	assert_int_equal(st.bytes_copied, 42);
	assert_int_equal(st.credits_low, 3);
}

struct poller {
	struct rpcrdma_poller p;
	struct poller *kills; /* on its next turn; may be itself */
	int n, results;
};

static int on_poll(struct rpcrdma_poller *p)
{
	struct poller *me = container_of(p, struct poller, p);

	seen[nseen++] = me->n;
	if (me->kills)
		rpcrdma_engine_del_poller(e, &me->kills->p);
	me->kills = NULL;
	return me->results ? me->results-- : 0;
}

static void pollers_come_last_in_every_pass(void **state)
{
	struct note note = { .msg.fn = on_note, .n = 7 };
	struct poller p = { .p.fn = on_poll, .n = 1, .results = 1 };

	(void)state;
	nseen = 0;
	rpcrdma_engine_add_poller(e, &p.p);
	rpcrdma_engine_add_poller(e, &p.p); /* once is enough */
	rpcrdma_engine_post(e, &note.msg);
	assert_int_equal(rpcrdma_engine_poll(e), 2);
	assert_int_equal(nseen, 2);
	assert_int_equal(seen[0], 7);
	assert_int_equal(seen[1], 1);
	assert_int_equal(rpcrdma_engine_poll(e), 0); /* nothing ran, so the caller may sleep */
	assert_int_equal(nseen, 3);
	assert_int_equal(rpcrdma_engine_wait(e, 1), 0);
	assert_true(nseen > 3);
	rpcrdma_engine_del_poller(e, &p.p);
	rpcrdma_engine_del_poller(e, &p.p);
	nseen = 0;
	assert_int_equal(rpcrdma_engine_poll(e), 0);
	assert_int_equal(nseen, 0);
}

/* The last added runs first: 3, 2, 1. */
static void pollers_may_go_at_any_time(void **state)
{
	(void)state;
	for (int victim = 0; victim < 3; victim++) {
		struct poller p[3] = { 0 };

		for (int i = 0; i < 3; i++) {
			p[i] = (struct poller){ .p.fn = on_poll, .n = i + 1 };
			rpcrdma_engine_add_poller(e, &p[i].p);
		}
		p[1].kills = &p[victim];
		nseen = 0;
		assert_int_equal(rpcrdma_engine_poll(e), 0);
		assert_int_equal(nseen, victim ? 3 : 2);
		nseen = 0;
		assert_int_equal(rpcrdma_engine_poll(e), 0);
		assert_int_equal(nseen, 2);
		for (int i = 0; i < 2; i++)
			assert_int_not_equal(seen[i], victim + 1);
		for (int i = 0; i < 3; i++)
			rpcrdma_engine_del_poller(e, &p[i].p);
	}
}

/* Each sleep that a device ends soon doubles the spin time, up to a limit. Each sleep that a slow device ends
 * halves it, down to the time for any other wait. */
static void spinning_is_learnt(void **state)
{
	static const uint64_t least = 50000;
	uint64_t spin = least;

	(void)state;
	assert_int_equal(e->spin_ns, least);
	for (unsigned i = 1; i <= 6; i++) {
		spin = rr_spin_learnt(spin, least, true, 8 * least);
		assert_int_equal(spin, MIN(least << i, 8 * least));
	}
	for (unsigned i = 1; i <= 6; i++) {
		spin = rr_spin_learnt(spin, least, true, 8 * least + 1);
		assert_int_equal(spin, MAX(8 * least >> i, least));
	}
	assert_int_equal(rr_spin_learnt(least, least, true, UINT64_MAX), least);
}

/* Without a device: each sleep that spinning could not have covered halves the spin time, down to a sixteenth. One that
 * it could have covered restores it. */
static void vain_spinning_is_learnt(void **state)
{
	static const uint64_t usual = 50000;
	uint64_t spin = 8 * usual; /* learnt from a device before */

	(void)state;
	for (unsigned i = 1; i <= 6; i++) {
		spin = rr_spin_learnt(spin, usual, false, usual + 1);
		assert_int_equal(spin, MAX(usual >> i, usual / 16));
	}
	assert_int_equal(rr_spin_learnt(spin, usual, false, usual), usual);
	assert_int_equal(rr_spin_learnt(usual, usual, false, 0), usual);
}

/* A doze grows until it brings most of the replies. One that brings almost all, or almost none, makes the next ones rarer. */
static void dozing_is_learnt(void **state)
{
	struct rr_doze doze = { .ns = RR_DOZE_NS };

	(void)state;
	assert_false(rr_doze_is_due(&doze, RR_DOZE_AWAITED - 1));
	assert_true(rr_doze_is_due(&doze, RR_DOZE_AWAITED));
	for (unsigned i = 0; i < 20; i++)
		rr_doze_ended(&doze, 32, 8);
	assert_int_equal(doze.ns, RR_DOZE_MAX_NS);
	assert_true(rr_doze_is_due(&doze, 32));
	rr_doze_ended(&doze, 32, 20); /* about right */
	assert_int_equal(doze.ns, RR_DOZE_MAX_NS);

	for (unsigned i = 1; i <= 14; i++) {
		rr_doze_ended(&doze, 32, 28); /* the peer may have had nothing to do */
		assert_int_equal(doze.ns, RR_DOZE_MAX_NS >> i);
		assert_int_equal(doze.left, MIN((1u << i) - 1, RR_DOZE_TURN_MAX));
	}
	for (unsigned i = RR_DOZE_TURN_MAX; i > 1; i--)
		assert_false(rr_doze_is_due(&doze, 32));
	assert_true(rr_doze_is_due(&doze, 32));
	rr_doze_ended(&doze, 32, 3); /* replies take long */
	assert_int_equal(doze.left, RR_DOZE_TURN_MAX);
	doze.left = 0;
	for (unsigned i = 0; i < 12; i++)
		rr_doze_ended(&doze, 32, 4);
	rr_doze_ended(&doze, 32, 0);
	assert_int_equal(doze.left, 1);
}

/* The engine dozes only while it would spin, and many replies are due. */
static void dozes(void **state)
{
	(void)state;
	assert_int_equal(rpcrdma_engine_wait(e, 1), 0);
	e->awaited = RR_DOZE_AWAITED;
	assert_int_equal(rpcrdma_engine_wait(e, 1), 0); /* no queue pair */
	e->qps = 1;
	e->awaited = RR_DOZE_AWAITED - 1;
	assert_int_equal(rpcrdma_engine_wait(e, 1), 0);
	e->awaited = RR_DOZE_AWAITED;
	e->attr.poll = RPCRDMA_POLL_BUSY;
	assert_int_equal(rpcrdma_engine_wait(e, 1), 0);
	assert_int_equal(e->doze.turn, 0);
	e->attr.poll = RPCRDMA_POLL_ADAPTIVE;
	e->attr.spin_us = 1000000;
	e->spin_ns = NS_PER_S;
	e->contention.left = 0;
	assert_int_equal(rpcrdma_engine_wait(e, 1), 0);
	assert_int_not_equal(e->doze.turn, 0); /* it brought nothing */
	e->qps = 0;
	e->awaited = 0;
}

/* and it is what the engine goes by */
static void sleeps_teach(void **state)
{
	const uint64_t usual = e->attr.spin_us * NS_PER_US, long_spin = 4 * usual;
	struct poller p = { .p.fn = on_poll, .n = 1 };

	(void)state;
	nseen = 0;
	e->spin_ns = long_spin;
	rpcrdma_engine_add_poller(e, &p.p);
	assert_int_equal(rpcrdma_engine_wait(e, 1), 0); /* longer than is spun for anything */
	assert_in_range(e->spin_ns, usual, long_spin / 2);
	rpcrdma_engine_del_poller(e, &p.p);
	assert_int_equal(rpcrdma_engine_wait(e, 1), 0);
	assert_int_equal(e->spin_ns, usual / 2);
}

static uint64_t sleeps(void)
{
	struct rpcrdma_stats st;

	rpcrdma_domain_stats(d, &st);
	return st.sleeps;
}

/* After a yield that costs another thread's time slice the next waits do not spin; their number grows each time. */
static void crowded(void **state)
{
	struct rr_contention c = { 0 };
	uint64_t before;

	(void)state;
	rr_contention_yielded(&c, RR_HELD_UP_NS - 1);
	assert_int_equal(c.left, 0);
	for (unsigned i = 1; i <= 12; i++) {
		rr_contention_yielded(&c, RR_HELD_UP_NS);
		assert_int_equal(c.left, MIN((1u << i) - 1, RR_CONTENTION_MAX));
	}
	for (unsigned i = 1; i <= 10; i++)
		rr_contention_yielded(&c, 0);
	rr_contention_yielded(&c, UINT64_MAX);
	assert_int_equal(c.left, 1);

	e->qps = 1; /* worth spinning for */
	e->attr.spin_us = 1000000;
	e->contention.left = 3;
	before = sleeps();
	for (unsigned i = 3; i > 0; i--) {
		assert_int_equal(e->contention.left, i);
		assert_int_equal(rpcrdma_engine_wait(e, 1), 0);
	}
	assert_int_equal(sleeps() - before, 3);
	e->yield_after = UINT_MAX; /* a yield that is held up would end it */
	assert_int_equal(rpcrdma_engine_wait(e, 1), 0); /* and then it does */
	assert_int_equal(sleeps() - before, 3);
	e->qps = 0;
}

static void on_nothing(struct rpcrdma_timer *t)
{
	(void)t;
}

/* A wait that spinning has ended restores the time to spin. An attempt may come too late to spin at all. */
static void spinning_pays(void **state)
{
	struct rpcrdma_timer tick = { .fn = on_nothing };
	const uint64_t usual = 100 * NS_PER_S;

	(void)state;
	e->qps = 1;
	e->attr.spin_us = (unsigned)(usual / NS_PER_US);
	for (unsigned i = 0; i < 20 && e->spin_ns != usual; i++) {
		e->contention.left = 0;
		e->spin_ns = usual / 2;
		rpcrdma_timer_set(e, &tick, 5 * NS_PER_MS);
		assert_int_equal(rpcrdma_engine_wait(e, -1), 1);
	}
	assert_int_equal(e->spin_ns, usual);
	e->qps = 0;
}

static struct note from_handler = { .msg.fn = on_note };
static atomic_int ticks;

static void on_tick(int sig)
{
	(void)sig;
	if (atomic_fetch_add(&ticks, 1) == 4)
		rpcrdma_engine_post(e, &from_handler.msg);
}

static void signals_do_not_end_a_wait(void **state)
{
	const struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction act = { .sa_handler = on_tick }, old;

	(void)state;
	nseen = 0;
	ticks = 0;
	assert_int_equal(sigaction(SIGALRM, &act, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	assert_int_equal(rpcrdma_engine_wait(e, -1), 1);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
	assert_int_equal(nseen, 1);
	assert_true(ticks >= 5);
}

#define engine_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		engine_test(messages_run_in_order),
		engine_test(deferred_wait_for_the_next_pass),
		engine_test(posts_wake_a_sleeper),
		engine_test(posts_wake_a_foreign_loop),
		engine_test(timers_fire_in_order_of_time),
		engine_test(timers_wake_a_foreign_loop),
		engine_test(armed_pass_sees_descriptors),
		engine_test(unwatched_means_silent),
		engine_test(pollers_come_last_in_every_pass),
		engine_test(pollers_may_go_at_any_time),
		engine_test(spinning_is_learnt),
		engine_test(vain_spinning_is_learnt),
		engine_test(spinning_pays),
		engine_test(sleeps_teach), cmocka_unit_test(dozing_is_learnt), engine_test(dozes),
		engine_test(crowded),
		engine_test(signals_do_not_end_a_wait),
		engine_test(counters_outlive_their_engine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
