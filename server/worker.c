/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * worker.c - threads for what may block
 *
 * Operation: reactors submit, a worker runs, the result goes back as a message to the engine it
 *            came from. One queue for all, so that a slow file holds up one worker, not a share of
 *            the work.
 * Memory:    jobs are embedded in requests; the pool owns only its threads.
 * Threads:   one mutex over the queue and its counters.
 * Errors:    only at creation.
 */
#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct worker_pool {
	pthread_mutex_t lock; /* over everything below but threads and nthreads */
	pthread_cond_t more;
	struct worker_job *head, **tail;
	uint64_t depth;
	unsigned idle;
	unsigned woken; /* of them: told to come, and not here yet */
	bool stop;
	struct worker_stats stats;
	pthread_t *threads;
	unsigned nthreads;
};

static void on_engine(struct rpcrdma_msg *msg)
{
	struct worker_job *job = container_of(msg, struct worker_job, msg);

	job->done(job);
}

/* NULL: stop, and nothing is left */
static struct worker_job *take(struct worker_pool *p)
{
	struct worker_job *job;

	pthread_mutex_lock(&p->lock);
	while (!p->head && !p->stop) {
		p->idle++;
		pthread_cond_wait(&p->more, &p->lock);
		p->idle--;
		if (p->woken)
			p->woken--;
	}
	job = p->head;
	if (job) {
		p->head = job->next;
		if (!p->head)
			p->tail = &p->head;
		p->depth--;
	}
	pthread_mutex_unlock(&p->lock);
	return job;
}

static void *worker_main(void *arg)
{
	struct worker_pool *p = arg;
	struct worker_job *job;

	while ((job = take(p))) {
		job->run(job);
		job->msg.fn = on_engine;
		rpcrdma_engine_post(job->engine, &job->msg);
	}
	return NULL;
}

/** worker_pool_create - see worker.h; Return: 0, -ENOMEM, -EAGAIN (no more threads) */
int worker_pool_create(unsigned threads, struct worker_pool **ret)
{
	struct worker_pool *p = calloc(1, sizeof(*p));
	int err = 0;

	if (!p)
		return -ENOMEM;
	p->tail = &p->head;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->more, NULL);
	p->threads = calloc(threads, sizeof(*p->threads));
	if (!p->threads)
		err = -ENOMEM;
	while (!err && p->nthreads < threads) {
		err = -pthread_create(&p->threads[p->nthreads], NULL, worker_main, p);
		if (!err)
			p->nthreads++;
	}
	if (err) {
		worker_pool_destroy(p);
		return err;
	}
	*ret = p;
	return 0;
}

/** worker_pool_destroy - see worker.h */
void worker_pool_destroy(struct worker_pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->more);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->nthreads; i++)
		pthread_join(p->threads[i], NULL);
	free(p->threads);
	pthread_cond_destroy(&p->more);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/** worker_submit - see worker.h */
void worker_submit(struct worker_pool *p, struct rpcrdma_engine *engine, struct worker_job *job)
{
	bool wake;

	job->engine = engine;
	job->next = NULL;
	pthread_mutex_lock(&p->lock);
	*p->tail = job;
	p->tail = &job->next;
	p->depth++;
	p->stats.jobs++;
	if (p->depth > p->idle)
		p->stats.waits++;
	if (p->depth > p->stats.depth_max)
		p->stats.depth_max = p->depth;
	/* who is on his way takes it if nobody else does; and who is told while the lock is held wakes up
	 * to wait for it */
	wake = p->idle > p->woken;
	if (wake)
		p->woken++;
	pthread_mutex_unlock(&p->lock);
	if (wake)
		pthread_cond_signal(&p->more);
}

/** worker_pool_stats - see worker.h */
void worker_pool_stats(struct worker_pool *p, struct worker_stats *ret)
{
	pthread_mutex_lock(&p->lock);
	*ret = p->stats;
	pthread_mutex_unlock(&p->lock);
}
