/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_worker.c - shares of the worker threads: between clients, and between file systems
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker.c"

#define THREADS 4u
#define FROZEN_A 0xau
#define FROZEN_B 0xbu
#define ALIVE 0xcu
#define FROZEN_C 0xdu

struct rig {
	struct rpcrdma_domain *domain;
	struct rpcrdma_engine *engine;
	struct worker_pool *pool;
	struct worker_client one, two;
	/* what hangs does so until it is thawed */
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool thawed;
	const struct worker_client *may_go; /* one job of this client may go on */
	unsigned gone, hanging, begun, max_of[16], now_of[16];
};

struct task {
	struct worker_job job;
	struct rig *rig;
	bool hangs;
	unsigned done, nth; /* in the order in which they began */
};

static int set_up(void **state)
{
	struct rig *g = calloc(1, sizeof(*g));

	stuck_ns = NS_PER_S / 20;
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->change, NULL);
	assert_int_equal(rpcrdma_domain_create(NULL, &g->domain), 0);
	assert_int_equal(rpcrdma_engine_create(g->domain, NULL, &g->engine), 0);
	assert_int_equal(worker_pool_create(THREADS, &g->pool), 0);
	worker_client_init(&g->one, g->pool);
	worker_client_init(&g->two, g->pool);
	*state = g;
	return 0;
}

static void thaw(struct rig *g)
{
	pthread_mutex_lock(&g->lock);
	g->thawed = true;
	pthread_cond_broadcast(&g->change);
	pthread_mutex_unlock(&g->lock);
}

static int tear_down(void **state)
{
	struct rig *g = *state;

	thaw(g); /* a test that failed has left something */
	worker_pool_destroy(g->pool);
	worker_client_fini(&g->one);
	worker_client_fini(&g->two);
	rpcrdma_engine_destroy(g->engine);
	rpcrdma_domain_destroy(g->domain);
	pthread_cond_destroy(&g->change);
	pthread_mutex_destroy(&g->lock);
	free(g);
	return 0;
}

static void run(struct worker_job *job)
{
	struct task *t = container_of(job, struct task, job);
	struct rig *g = t->rig;
	unsigned fs = (unsigned)job->dev;

	pthread_mutex_lock(&g->lock);
	t->nth = ++g->begun;
	if (++g->now_of[fs] > g->max_of[fs])
		g->max_of[fs] = g->now_of[fs];
	if (t->hangs) {
		g->hanging++;
		pthread_cond_broadcast(&g->change);
		while (!g->thawed && g->may_go != job->client)
			pthread_cond_wait(&g->change, &g->lock);
		g->may_go = NULL;
		g->gone++;
		g->hanging--;
		pthread_cond_broadcast(&g->change);
	}
	g->now_of[fs]--;
	pthread_mutex_unlock(&g->lock);
}

static void done(struct worker_job *job)
{
	container_of(job, struct task, job)->done++;
}

static void submit(struct rig *g, struct task *t, struct worker_client *c, uint64_t dev, bool hangs)
{
	*t = (struct task){ .rig = g, .hangs = hangs,
			    .job = { .run = run, .done = done, .client = c, .dev = dev } };
	worker_submit(g->pool, g->engine, &t->job);
}

static void until_hanging(struct rig *g, unsigned n)
{
	pthread_mutex_lock(&g->lock);
	while (g->hanging < n)
		pthread_cond_wait(&g->change, &g->lock);
	pthread_mutex_unlock(&g->lock);
}

/* a test that hangs is ended by its time limit */
static void until_done(struct rig *g, const struct task *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		while (!t[i].done)
			(void)rpcrdma_engine_wait(g->engine, -1);
		assert_int_equal(t[i].done, 1);
	}
}

/* a file system that hangs has half of the threads, however many clients ask for it; the other half serves
 * all others, those of the same clients too */
static void frozen_file_system(void **state)
{
	struct rig *g = *state;
	static struct task stuck[40], ok[40];

	for (unsigned i = 0; i < 40; i++)
		submit(g, &stuck[i], i % 2 ? &g->one : &g->two, FROZEN_A, true);
	until_hanging(g, THREADS / 2);
	for (unsigned i = 0; i < 40; i++)
		submit(g, &ok[i], i % 2 ? &g->one : NULL, ALIVE, false);
	until_done(g, ok, 40);
	assert_int_equal(g->max_of[FROZEN_A], THREADS / 2);
	assert_int_equal(g->max_of[FROZEN_B], 0);
	thaw(g);
	until_done(g, stuck, 40);
	assert_int_equal(g->max_of[FROZEN_A], THREADS / 2);
}

/* What the server does for no call leaves threads for calls to the same file system, which may well be able to answer
 * from memory. */
static void own_jobs_that_hang(void **state)
{
	struct rig *g = *state;
	static struct task stuck[40], ok[40];

	for (unsigned i = 0; i < 40; i++)
		submit(g, &stuck[i], NULL, FROZEN_A, true);
	until_hanging(g, THREADS / 4);
	(void)alarm(20); /* or this would wait for ever */
	for (unsigned i = 0; i < 40; i++)
		submit(g, &ok[i], i % 2 ? &g->one : &g->two, FROZEN_A, false);
	until_done(g, ok, 40);
	(void)alarm(0);
	assert_int_equal(g->hanging, THREADS / 4);
	thaw(g);
	until_done(g, stuck, 40);
	assert_int_equal(g->max_of[FROZEN_A], THREADS / 2);
}

/* threads that are stuck are replaced, up to a bound: two file systems that hang do not stop a third */
static void stuck_threads(void **state)
{
	static struct task stuck[40], ok[4];
	struct worker_stats s;
	struct rig *g = *state;

	for (unsigned i = 0; i < 40; i++)
		submit(g, &stuck[i], &g->one, i % 2 ? FROZEN_A : FROZEN_B, true);
	until_hanging(g, THREADS);
	for (unsigned i = 0; i < 4; i++)
		submit(g, &ok[i], &g->two, ALIVE, false);
	until_done(g, ok, 4);
	worker_pool_stats(g->pool, &s);
	assert_in_range(s.replaced, 1, THREADS);
	thaw(g);
	until_done(g, stuck, 40);
}

/* as many more threads as there may be, and not one more */
static void no_more_threads(void **state)
{
	enum { N = 4 * THREADS };
	static struct task stuck[2 * N], last;
	struct rig *g = *state;
	struct worker_stats s;

	for (unsigned i = 0; i < 2 * N; i++)
		submit(g, &stuck[i], &g->one, i % 15, true);
	until_hanging(g, N);
	submit(g, &last, &g->two, 15, false);
	assert_false(last.done);
	assert_int_equal(g->hanging, N);
	pthread_mutex_lock(&g->pool->lock);
	stuck_ns = 0; /* all of them are */
	replace_stuck(g->pool);
	pthread_mutex_unlock(&g->pool->lock);
	worker_pool_stats(g->pool, &s);
	assert_int_equal(s.replaced, N - THREADS);
	thaw(g);
	until_done(g, stuck, 2 * N);
	until_done(g, &last, 1);
}

static unsigned order[64], norder; /* of the two's jobs; under rig->lock */

static void run_noted(struct worker_job *job)
{
	struct rig *g = container_of(job, struct task, job)->rig;

	pthread_mutex_lock(&g->lock);
	order[norder++] = job->client == &g->two;
	pthread_mutex_unlock(&g->lock);
}

static void submit_noted(struct rig *g, struct task *t, struct worker_client *c)
{
	*t = (struct task){ .rig = g, .job = { .run = run_noted, .done = done, .client = c, .dev = ALIVE } };
	worker_submit(g->pool, g->engine, &t->job);
}

/* clients take turns: few jobs of one are not behind many of another */
static void turns(void **state)
{
	static struct task first, one[20], two[5];
	struct rig *g = *state;

	/* one thread, so that they run in one order */
	worker_pool_destroy(g->pool);
	assert_int_equal(worker_pool_create(1, &g->pool), 0);
	worker_client_init(&g->one, g->pool);
	worker_client_init(&g->two, g->pool);
	stuck_ns = UINT64_MAX / 2; /* and no more threads */
	norder = 0;
	submit(g, &first, NULL, FROZEN_A, true);
	until_hanging(g, 1);
	for (unsigned i = 0; i < 20; i++)
		submit_noted(g, &one[i], &g->one);
	for (unsigned i = 0; i < 5; i++)
		submit_noted(g, &two[i], &g->two);
	thaw(g);
	until_done(g, &first, 1);
	until_done(g, one, 20);
	until_done(g, two, 5);
	for (unsigned i = 0; i < 25; i++)
		assert_int_equal(order[i], i < 10 ? i % 2 : 0);
}

/* while another client waits, none has more than its part of the threads */
static void parts(void **state)
{
	static struct task one[20], two[20];
	struct rig *g = *state;

	stuck_ns = UINT64_MAX / 2; /* no more threads here */
	for (unsigned i = 0; i < 20; i++)
		submit(g, &one[i], &g->one, i % 5, true);
	until_hanging(g, THREADS); /* alone it has all of them */
	assert_int_equal(g->one.running, THREADS);
	for (unsigned i = 0; i < 20; i++)
		submit(g, &two[i], &g->two, 5 + i % 5, true);
	/* one after the other of its jobs ends: the other client gets what is its own, and no more */
	for (unsigned i = 0; i < 2 * THREADS; i++) {
		unsigned gone;

		pthread_mutex_lock(&g->lock);
		gone = g->gone;
		g->may_go = &g->one;
		pthread_cond_broadcast(&g->change);
		while (g->gone == gone)
			pthread_cond_wait(&g->change, &g->lock);
		pthread_mutex_unlock(&g->lock);
		until_hanging(g, THREADS);
	}
	assert_int_equal(g->one.running, THREADS / 2);
	assert_int_equal(g->two.running, THREADS / 2);
	thaw(g);
	until_done(g, one, 20);
	until_done(g, two, 20);
}

/* the queues of a client are reused: as many as file systems at once */
static void queues(void **state)
{
	struct rig *g = *state;
	static struct task t;
	unsigned n = 0;

	for (uint64_t dev = 1; dev < 16; dev++) {
		submit(g, &t, &g->one, dev, false);
		until_done(g, &t, 1);
	}
	list_for_each(l, &g->one.queues)
		n++;
	assert_int_equal(n, 1);
}

/* what no thread has begun can be taken back, and never runs */
static void cancelled(void **state)
{
	static struct task t[THREADS];
	struct rig *g = *state;
	unsigned begun = THREADS / 2;

	for (unsigned i = 0; i < begun; i++)
		submit(g, &t[i], &g->one, FROZEN_A, true);
	until_hanging(g, begun);
	for (unsigned i = begun; i < THREADS; i++)
		submit(g, &t[i], &g->two, FROZEN_A, true);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(worker_cancel(g->pool, &t[i].job), i >= begun);
	assert_int_equal(g->two.jobs, 0);
	assert_false(worker_cancel(g->pool, &t[begun].job));
	submit(g, &t[begun], &g->two, FROZEN_A, false);
	thaw(g);
	until_done(g, t, begun + 1);
	assert_int_equal(t[begun + 1].done, 0);
	assert_int_equal(g->gone, begun);
}

static void until_stuck(struct rig *g, unsigned n)
{
	unsigned stuck;

	do {
		pthread_mutex_lock(&g->pool->lock);
		stuck = count_stuck(g->pool);
		pthread_mutex_unlock(&g->pool->lock);
	} while (stuck < n);
}

/* Lets one job of @c go on that hangs. */
static void release(struct rig *g, const struct worker_client *c)
{
	unsigned gone;

	pthread_mutex_lock(&g->lock);
	gone = g->gone;
	g->may_go = c;
	pthread_cond_broadcast(&g->change);
	while (g->gone == gone)
		pthread_cond_wait(&g->change, &g->lock);
	pthread_mutex_unlock(&g->lock);
}

/* The server's own jobs that are slow in many file systems leave half of the threads to the clients. */
static void own_jobs_leave_half(void **state)
{
	static struct task first[THREADS], own[THREADS], prompt[THREADS], later[THREADS];
	struct rig *g = *state;
	unsigned running;

	stuck_ns = 100 * NS_PER_S;
	for (unsigned i = 0; i < THREADS; i++)
		submit(g, &first[i], &g->one, ALIVE + i / 2, true);
	until_hanging(g, THREADS);
	for (unsigned i = 0; i < THREADS; i++) {
		submit(g, &own[i], NULL, 1 + i, true);
		prompt[i] = (struct task){ .rig = g, .hangs = true,
					   .job = { .run = run, .done = done, .prompt = true, .dev = 5 + i } };
		worker_submit(g->pool, g->engine, &prompt[i].job);
	}
	for (unsigned i = 0; i < THREADS; i++)
		submit(g, &later[i], &g->one, 1 + i, true);
	for (unsigned i = 0; i < THREADS; i++) {
		release(g, &g->one);
		until_hanging(g, THREADS);
	}
	pthread_mutex_lock(&g->pool->lock);
	running = g->pool->own.running + g->pool->prompt.running;
	pthread_mutex_unlock(&g->pool->lock);
	assert_int_equal(running, THREADS / 2);
	thaw(g);
	until_done(g, first, THREADS);
	until_done(g, own, THREADS);
	until_done(g, prompt, THREADS);
	until_done(g, later, THREADS);
}

/* The server's own jobs that hang in some file systems do not keep those in another one from their turns. */
static void own_jobs_elsewhere(void **state)
{
	static struct task stuck[4], of_one[1], of_two[41], own;
	struct rig *g = *state;

	for (unsigned i = 0; i < ARRAY_SIZE(stuck); i++)
		submit(g, &stuck[i], NULL, i % 2 ? FROZEN_A : FROZEN_B, true);
	until_hanging(g, 2);
	for (unsigned i = 0; i < ARRAY_SIZE(of_one); i++)
		submit(g, &of_one[i], &g->one, FROZEN_C, true);
	/* two jobs are the share of their file system: the others there wait until one of them goes on, however soon a
	 * thread is replaced */
	for (unsigned i = 0; i < 2; i++)
		submit(g, &of_two[i], &g->two, ALIVE, true);
	until_hanging(g, THREADS + 1);
	until_stuck(g, THREADS + 1);
	for (unsigned i = 2; i < ARRAY_SIZE(of_two); i++)
		submit(g, &of_two[i], &g->two, ALIVE, false);
	submit(g, &own, NULL, ALIVE, false);
	release(g, &g->two);
	until_done(g, &of_two[2], ARRAY_SIZE(of_two) - 2);
	until_done(g, &own, 1);
	assert_in_range(own.nth, THREADS + 2, ARRAY_SIZE(of_two) / 2);
	thaw(g);
	until_done(g, of_two, 2);
	until_done(g, stuck, ARRAY_SIZE(stuck));
	until_done(g, of_one, ARRAY_SIZE(of_one));
}

/* Of the server's own jobs in a file system those that requests wait for have turns beside the others. */
static void prompt_jobs(void **state)
{
	static struct task first, own[40], prompt;
	struct rig *g = *state;

	submit(g, &first, NULL, FROZEN_A, true);
	until_hanging(g, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(own); i++)
		submit(g, &own[i], NULL, FROZEN_A, false);
	prompt = (struct task){ .rig = g, .job = { .run = run, .done = done, .prompt = true, .dev = FROZEN_A } };
	worker_submit(g->pool, g->engine, &prompt.job);
	thaw(g);
	until_done(g, own, ARRAY_SIZE(own));
	until_done(g, &prompt, 1);
	assert_in_range(prompt.nth, 2, 4);
	until_done(g, &first, 1);
}

/* the end of a pool waits for all that was submitted */
static void end_of_a_pool(void **state)
{
	struct rig *g = *state;
	static struct task t[40];

	for (unsigned i = 0; i < 40; i++)
		submit(g, &t[i], i % 2 ? &g->one : NULL, FROZEN_A, true);
	until_hanging(g, THREADS / 2);
	thaw(g);
	worker_pool_destroy(g->pool);
	g->pool = NULL;
	until_done(g, t, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(frozen_file_system, set_up, tear_down),
		cmocka_unit_test_setup_teardown(own_jobs_that_hang, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stuck_threads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_more_threads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(turns, set_up, tear_down),
		cmocka_unit_test_setup_teardown(parts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(queues, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cancelled, set_up, tear_down),
		cmocka_unit_test_setup_teardown(own_jobs_leave_half, set_up, tear_down),
		cmocka_unit_test_setup_teardown(own_jobs_elsewhere, set_up, tear_down),
		cmocka_unit_test_setup_teardown(prompt_jobs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(end_of_a_pool, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
