/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_cancel.c - operations that are cancelled at random, from everywhere, while the server's disk is slow
 *
 * `make check` runs some thousand operations. LEAT_TEST_CANCELS=100000 sets their number for each test.
 * cancel_ops.h says what must hold.
 */
#include <sched.h>
#include <signal.h>
#include <sys/time.h>

#include "base/clock.h"
#include "cancel_ops.h"
#include "test_leat_mount.h"

LOG_DEFINE("test_leat_cancel");

#define OPS 3000u
#define THREADS 2u
#define RESTARTS 3u
#define SLOW_DISK ",store=sim:members=2:chunk=64K:rate=400M:latency=200us"

static unsigned ops_wanted(void)
{
	const char *value = getenv("LEAT_TEST_CANCELS");

	return value ? (unsigned)strtoul(value, NULL, 10) : OPS;
}

/* A server with a slow disk: calls are in flight inside it. */
static int setup_slow(void **state)
{
	(void)state;
	leat_flow_create(&flow);
	leat_flow_stop(&flow);
	flow.options = SLOW_DISK;
	leat_flow_start(&flow);
	return 0;
}

/* ---- one thread, which runs the loop itself ---- */

static void step(struct cancel_test *t, uint64_t *random)
{
	struct cancel_slot *s = &t->slots[cancel_random(random, CANCEL_SLOTS)];

	switch (cancel_random(random, 8)) {
	case 0:
		cancel_test_cancel(s);
		break;
	case 1:
		if (!cancel_random(random, 100))
			cancel_test_cancel_all(t, s->m);
		break;
	case 2:
	case 3:
		assert_true(leat_poll(t->session, 0) >= 0);
		break;
	default:
		if (!atomic_load(&s->busy))
			(void)cancel_test_start(s);
	}
}

static void run_own_loop(struct cancel_test *t, unsigned ops)
{
	uint64_t random = 1;

	while (atomic_load(&t->started) < ops)
		step(t, &random);
}

/* ---- several threads, with the service thread ---- */

struct worker {
	struct cancel_test *t;
	unsigned id;
};

static void *start_and_cancel(void *arg)
{
	const struct worker *w = arg;
	struct cancel_test *t = w->t;
	uint64_t random = 100 + w->id;

	while (atomic_load(&t->started) < t->ops_max) {
		struct cancel_slot *mine = &t->slots[cancel_random(&random, CANCEL_SLOTS / THREADS) * THREADS + w->id];

		if (!atomic_load(&mine->busy))
			(void)cancel_test_start(mine);
		if (!cancel_random(&random, 2))
			cancel_test_cancel(&t->slots[cancel_random(&random, CANCEL_SLOTS)]);
		if (!cancel_random(&random, 400))
			cancel_test_cancel_all(t, mine->m);
	}
	return NULL;
}

/* Stops the server while operations are in flight, lets the clients go on without it, and starts it again. */
static void restart_server(struct cancel_test *t)
{
	unsigned started;

	atomic_store(&t->restarted, true);
	leat_flow_stop(&flow);
	started = atomic_load(&t->started);
	atomic_fetch_add(&t->may_cancel, 4 * (int)CANCEL_SLOTS);
	while (atomic_load(&t->started) < started + CANCEL_SLOTS && atomic_load(&t->started) < t->ops_max)
		sched_yield();
	leat_flow_start(&flow);
}

static void run_served(struct cancel_test *t, bool restarts)
{
	unsigned first = atomic_load(&t->started), ops = t->ops_max - first;
	struct worker workers[THREADS];
	pthread_t threads[THREADS];

	assert_int_equal(leat_service_start(t->session), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ t, i };
		assert_int_equal(pthread_create(&threads[i], NULL, start_and_cancel, &workers[i]), 0);
	}
	for (unsigned i = 1; restarts && i <= RESTARTS; i++) {
		while (atomic_load(&t->started) < first + ops / (RESTARTS + 1) * i)
			sched_yield();
		restart_server(t);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	while (cancel_test_is_busy(t))
		sched_yield();
	leat_service_stop(t->session);
}

static void run(const char *url, const char *first, const char *second)
{
	const char *const options[CANCEL_MOUNTS] = { first, second };
	struct cancel_test *t;

	t = cancel_test_create(url, options, flow.export, ops_wanted());
	run_own_loop(t, t->ops_max / 2);
	run_served(t, true);
	cancel_test_check(t);
	cancel_test_destroy(t);
}

static void local(void **state)
{
	(void)state;
	run(flow.local_url, "conns=3&rsize=64k&wsize=64k", "cache=none&credits=8");
}

static void local_registrations(void **state)
{
	(void)state;
	run(flow.local_url, "registration=window&bounce=0&rsize=256k&wsize=64k", "registration=dynamic&conns=2");
}

static void local_caches(void **state)
{
	(void)state;
	run(flow.local_url, "registration=cache&bounce=0&rsize=32k", "registration=batch&conns=2&wsize=32k");
}

static void tcp(void **state)
{
	(void)state;
	run(flow.tcp_url, "conns=3&rsize=64k&wsize=64k", "cache=none&credits=8");
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(local, setup_slow, teardown),
	cmocka_unit_test_setup_teardown(local_registrations, setup_slow, teardown),
	cmocka_unit_test_setup_teardown(local_caches, setup_slow, teardown),
	cmocka_unit_test_setup_teardown(tcp, setup_slow, teardown),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
