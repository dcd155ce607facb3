/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * worker.c - threads for operations that may block
 *
 * Operation: a reactor submits a job, a worker runs it, and a message to the reactor's engine runs done().
 *            Jobs wait in one queue that is fair between clients, and inside a client between file systems
 *            (fair.h), so that a job that may not run yet does not delay other jobs:
 *
 *            - A file system has at most half of the threads. If it is frozen, or its disk is gone, the
 *              other half serves other file systems. At most half of its threads run the server's own jobs
 *              (closing files, syncing files before that, setting access times), so that with four threads
 *              or more, calls can run beside those. Own jobs that requests wait for (`prompt`) take turns
 *              with the other own jobs. While calls wait, own jobs of all file systems together have at
 *              most half of the threads, stuck threads not counted.
 *            - While several clients have jobs, each has its part of the threads. Other clients may use
 *              what it does not use.
 *
 *            Two file systems that hang would still block all threads. So a thread that has run one job
 *            for stuck_ns is not counted. If jobs wait and no thread is idle, the watcher replaces stuck
 *            threads, up to REPLACED_MAX times the configured number. Surplus threads end when they find
 *            no job that may run.
 * Memory:    jobs are embedded in requests. Queues of a client are allocated when its jobs are for more file
 *            systems at once than before. The pool owns its threads. It does not touch a client after it has
 *            posted the message of the client's last job, so this job's done() may free the client.
 * Threads:   any; one mutex protects everything.
 * Errors:    only at creation. Without memory for another queue, file systems of a client share one. If a
 *            replacement thread cannot be started, the watcher tries again while jobs wait.
 */
#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cond.h"

#define REPLACED_MAX 4u

static uint64_t stuck_ns = NS_PER_S; /* only the test changes it */

struct worker {
	struct list link; /* pool->workers, then ->ended */
	struct worker_pool *pool;
	pthread_t thread;
	uint64_t since_ns; /* when its job began, CLOCK_MONOTONIC; 0: it has none */
	bool own;	   /* that job is the server's own */
};

/* A file system that has running jobs. */
struct busy_fs {
	uint64_t dev;
	unsigned running, own; /* all running jobs, and the server's own among them */
};

struct worker_pool {
	pthread_mutex_t lock;
	pthread_cond_t more;	   /* workers wait for a job, or the end of the pool */
	pthread_cond_t watch;	   /* the watcher waits for the same, or the end of a worker */
	struct fair queue;
	uint64_t depth;
	unsigned idle;
	/* Each signal is counted until one waiter has run: woken <= idle. A new signal is needed only if
	 * idle > woken. */
	unsigned woken;
	unsigned clients; /* clients that have jobs, the server itself not counted */
	struct busy_fs *busy;
	unsigned nbusy;
	bool stop;
	bool watching; /* the watcher sleeps until jobs wait and no thread is idle */
	struct worker_stats stats;
	struct worker_client own, prompt; /* the server's own jobs; prompt: those that requests wait for */
	struct list workers, ended;
	unsigned nworkers, threads; /* threads in `workers`, and their configured number */
	pthread_t watcher;
	bool has_watcher;
};

/* ---- shares ------------------------------------------------------------------------------- */

static struct busy_fs *find_busy(const struct worker_pool *p, uint64_t dev)
{
	for (unsigned i = 0; i < p->nbusy; i++) {
		if (p->busy[i].dev == dev)
			return &p->busy[i];
	}
	return NULL;
}

static bool is_own(const struct worker_client *c)
{
	return c == &c->pool->own || c == &c->pool->prompt;
}

/* busy[] has room for one file system per thread. */
static void fs_begins(struct worker_pool *p, const struct worker_job *job)
{
	struct busy_fs *fs = find_busy(p, job->dev);

	if (!fs) {
		fs = &p->busy[p->nbusy++];
		*fs = (struct busy_fs){ .dev = job->dev };
	}
	fs->running++;
	fs->own += is_own(job->client);
}

static void fs_ends(struct worker_pool *p, const struct worker_job *job)
{
	struct busy_fs *fs = find_busy(p, job->dev);

	fs->own -= is_own(job->client);
	if (!--fs->running)
		*fs = p->busy[--p->nbusy];
}

static struct worker_client *client_of(const struct fair_client *f)
{
	return container_of((struct fair_client *)(uintptr_t)f, struct worker_client, turn);
}

/* Half of the threads are reserved for clients. Stuck threads do not count: otherwise own jobs in a file system that
 * hangs would block own jobs in all others. */
static bool own_may(const struct worker_pool *p)
{
	uint64_t now = clock_now_ns();
	unsigned n = 0;

	list_for_each(l, &p->workers) {
		const struct worker *w = list_entry(l, struct worker, link);

		n += w->since_ns && w->own && now - w->since_ns < stuck_ns;
	}
	return n < MAX(p->threads / 2, 1u);
}

static bool client_may(const struct fair_client *f)
{
	const struct worker_client *c = client_of(f);

	if (is_own(c))
		return own_may(c->pool);
	return c->running < MAX(c->pool->threads / MAX(c->pool->clients, 1u), 1u);
}

static bool fs_may(const struct fair_flow *f)
{
	const struct worker_client *c = client_of(f->client);
	const struct worker_pool *p = c->pool;
	const struct worker_job *first = list_entry(list_first(&f->items), struct worker_job, link);
	const struct busy_fs *fs = find_busy(p, first->dev);

	if (!fs)
		return true;
	return fs->running < MAX(p->threads / 2, 1u) &&
	       (!is_own(c) || fs->own < MAX(p->threads / 4, 1u));
}

static const struct fair_limits fair = { .client = client_may, .flow = fs_may };
static const struct fair_limits full = { .flow = fs_may };

/* Return: the next job that may run, or NULL; a job of a client over its part only if no other job may run */
static struct worker_job *next_job(struct worker_pool *p)
{
	struct list *n = fair_pop(&p->queue, &fair);

	if (!n)
		n = fair_pop(&p->queue, &full);
	return n ? list_entry(n, struct worker_job, link) : NULL;
}

/* Return: the queue of @c for the file system @dev */
static struct worker_queue *queue_of(struct worker_client *c, uint64_t dev)
{
	struct worker_queue *q, *empty = NULL;

	list_for_each(n, &c->queues) {
		q = list_entry(n, struct worker_queue, link);
		if (q->dev == dev)
			return q;
		if (list_is_empty(&q->flow.items))
			empty = q;
	}
	if (!empty) {
		empty = malloc(sizeof(*empty));
		if (!empty)
			return &c->spare;
		fair_flow_init(&empty->flow, &c->turn);
		list_add_tail(&c->queues, &empty->link);
	}
	empty->dev = dev;
	return empty;
}

void worker_client_init(struct worker_client *c, struct worker_pool *p)
{
	*c = (struct worker_client){ .pool = p };
	fair_client_init(&c->turn);
	fair_flow_init(&c->spare.flow, &c->turn);
	list_init(&c->queues);
}

void worker_client_fini(struct worker_client *c)
{
	list_for_each_safe(n, &c->queues)
		free(list_entry(n, struct worker_queue, link));
	list_init(&c->queues);
}

/* ---- threads ------------------------------------------------------------------------------ */

static void on_engine(struct rpcrdma_msg *msg)
{
	struct worker_job *job = container_of(msg, struct worker_job, msg);

	job->done(job);
}

/* If jobs wait and no thread is idle, wakes the watcher to check for stuck threads. */
static void call_watcher(struct worker_pool *p)
{
	if (!p->watching || p->idle || !p->depth)
		return;
	p->watching = false;
	pthread_cond_signal(&p->watch);
}

static void begin(struct worker *w, struct worker_job *job)
{
	struct worker_pool *p = w->pool;

	p->depth--;
	job->client->running++;
	fs_begins(p, job);
	w->since_ns = clock_now_ns();
	w->own = is_own(job->client);
	call_watcher(p);
}

/* Only clients with jobs share the threads. */
static void add_job(struct worker_pool *p, struct worker_client *c)
{
	if (!c->jobs++ && !is_own(c))
		p->clients++;
}

static void remove_job(struct worker_pool *p, struct worker_client *c)
{
	if (!--c->jobs && !is_own(c))
		p->clients--;
}

static void end(struct worker *w, struct worker_job *job)
{
	struct worker_pool *p = w->pool;

	w->since_ns = 0;
	fs_ends(p, job);
	job->client->running--;
	remove_job(p, job->client);
}

static unsigned count_stuck(const struct worker_pool *p)
{
	uint64_t now = clock_now_ns();
	unsigned n = 0;

	list_for_each(l, &p->workers) {
		const struct worker *w = list_entry(l, struct worker, link);

		n += w->since_ns && now - w->since_ns >= stuck_ns;
	}
	return n;
}

/* Are there more threads than configured, stuck ones not counted? */
static bool is_surplus(const struct worker_pool *p)
{
	return p->nworkers > p->threads && p->nworkers - count_stuck(p) > p->threads;
}

/* Waits until a job may have come. Return: false: the thread must end, because it is surplus or the pool ends. */
static bool rest(struct worker_pool *p)
{
	if (is_surplus(p) || (p->stop && !p->depth))
		return false;
	p->idle++;
	pthread_cond_wait(&p->more, &p->lock);
	p->idle--;
	if (p->woken)
		p->woken--;
	return true;
}

/* The end of a job and the beginning of the next one are accounted for under one lock. Then the message of the first
 * is posted, and its client may be freed. */
static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct worker_pool *p = w->pool;
	struct worker_job *job, *ended = NULL;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		job = next_job(p);
		if (job)
			begin(w, job);
		else if (!ended && !rest(p))
			break;
		else if (!ended)
			continue;
		pthread_mutex_unlock(&p->lock);
		if (ended)
			rpcrdma_engine_post(ended->engine, &ended->msg);
		if (job)
			job->run(job);
		pthread_mutex_lock(&p->lock);
		if (job)
			end(w, job);
		if (job && p->stop) /* jobs may have waited for their share of its file system */
			pthread_cond_broadcast(&p->more);
		ended = job;
	}
	list_del(&w->link);
	list_add_tail(&p->ended, &w->link);
	p->nworkers--;
	pthread_cond_signal(&p->watch);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Return: 0, -ENOMEM, -EAGAIN */
static int add_worker(struct worker_pool *p)
{
	struct worker *w = calloc(1, sizeof(*w));
	int err = w ? 0 : -ENOMEM;

	if (!err) {
		w->pool = p;
		list_add_tail(&p->workers, &w->link);
		p->nworkers++;
		err = -pthread_create(&w->thread, NULL, worker_main, w);
	}
	if (err && w) {
		p->nworkers--;
		list_del(&w->link);
		free(w);
	}
	return err;
}

static void join_ended(struct worker_pool *p)
{
	struct list *n;

	while ((n = list_pop(&p->ended))) {
		struct worker *w = list_entry(n, struct worker, link);

		pthread_mutex_unlock(&p->lock);
		pthread_join(w->thread, NULL);
		free(w);
		pthread_mutex_lock(&p->lock);
	}
}

static void replace_stuck(struct worker_pool *p)
{
	unsigned stuck = count_stuck(p);

	while (p->nworkers - stuck < p->threads && p->nworkers < REPLACED_MAX * p->threads) {
		if (add_worker(p))
			return; /* the watcher tries again while jobs wait */
		p->stats.replaced++;
	}
}

static void *watcher_main(void *arg)
{
	struct worker_pool *p = arg;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		join_ended(p); /* releases the lock meanwhile */
		if (p->stop && !p->nworkers)
			break;
		p->watching = !p->depth || p->idle;
		if (p->watching)
			pthread_cond_wait(&p->watch, &p->lock);
		else
			(void)cond_wait_until(&p->watch, &p->lock, clock_now_ns() + stuck_ns / 4);
		p->watching = false;
		if (!p->idle && fair_has(&p->queue, &full))
			replace_stuck(p);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* ---- the pool ----------------------------------------------------------------------------- */

int worker_pool_create(unsigned threads, struct worker_pool **ret)
{
	struct worker_pool *p = calloc(1, sizeof(*p));
	int err = 0;

	if (!p)
		return -ENOMEM;
	fair_init(&p->queue);
	list_init(&p->workers);
	list_init(&p->ended);
	worker_client_init(&p->own, p);
	worker_client_init(&p->prompt, p);
	p->threads = threads;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->more, NULL);
	cond_init(&p->watch);
	p->busy = calloc((size_t)REPLACED_MAX * threads, sizeof(*p->busy));
	if (!p->busy)
		err = -ENOMEM;
	pthread_mutex_lock(&p->lock);
	while (!err && p->nworkers < threads)
		err = add_worker(p);
	if (!err) {
		err = -pthread_create(&p->watcher, NULL, watcher_main, p);
		p->has_watcher = !err;
	}
	pthread_mutex_unlock(&p->lock);
	if (err) {
		worker_pool_destroy(p);
		return err;
	}
	*ret = p;
	return 0;
}

void worker_pool_destroy(struct worker_pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->more);
	pthread_cond_signal(&p->watch);
	while (!p->has_watcher && p->nworkers) { /* worker_pool_create() failed */
		pthread_cond_wait(&p->watch, &p->lock);
		join_ended(p);
	}
	pthread_mutex_unlock(&p->lock);
	if (p->has_watcher)
		pthread_join(p->watcher, NULL);
	worker_client_fini(&p->own);
	worker_client_fini(&p->prompt);
	free(p->busy);
	pthread_cond_destroy(&p->more);
	pthread_cond_destroy(&p->watch);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void worker_submit(struct worker_pool *p, struct rpcrdma_engine *engine, struct worker_job *job)
{
	bool wake;

	job->engine = engine;
	job->msg.fn = on_engine;
	list_init(&job->link);
	if (!job->client)
		job->client = job->prompt ? &p->prompt : &p->own;
	pthread_mutex_lock(&p->lock);
	job->queue = queue_of(job->client, job->dev);
	fair_push(&p->queue, &job->queue->flow, &job->link);
	add_job(p, job->client);
	p->depth++;
	p->stats.jobs++;
	if (p->depth > p->idle)
		p->stats.waits++;
	if (p->depth > p->stats.depth_max)
		p->stats.depth_max = p->depth;
	/* If idle == woken, a thread that is already signalled takes the job. The signal is sent after unlocking,
	 * so that the thread does not block on the mutex. */
	wake = p->idle > p->woken;
	if (wake)
		p->woken++;
	call_watcher(p);
	pthread_mutex_unlock(&p->lock);
	if (wake)
		pthread_cond_signal(&p->more);
}

bool worker_cancel(struct worker_pool *p, struct worker_job *job)
{
	bool waits;

	pthread_mutex_lock(&p->lock);
	waits = list_is_linked(&job->link);
	if (waits) {
		fair_del(&job->queue->flow, &job->link);
		p->depth--;
		remove_job(p, job->client);
	}
	pthread_mutex_unlock(&p->lock);
	return waits;
}

unsigned worker_pool_threads(const struct worker_pool *p)
{
	return p->threads;
}

void worker_pool_stats(struct worker_pool *p, struct worker_stats *ret)
{
	pthread_mutex_lock(&p->lock);
	*ret = p->stats;
	pthread_mutex_unlock(&p->lock);
}
