/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cp_pool.c - copies several files at once, each by a worker with its own connections
 *
 * Operation:  A small file takes a dozen sequential calls, mostly waiting. So the thread that walks a tree
 *             passes files to workers and continues. Workers are created on demand, up to WORKERS. The
 *             queue holds as many jobs, so that the walker does not run far ahead.
 * Memory:     Jobs belong to the pool from cp_pool_give() to run(), which frees them.
 * Threads:    One walker, and the workers. `lock` protects everything except start() and run().
 * Errors:     Failing to create a worker is not an error: other workers or the walker itself copy the file.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "cp_pool.h"

#define WORKERS 8u

struct item {
	struct cp_batch *batch;
	void *job;
};

struct worker {
	struct cp_pool *pool;
	pthread_t thread;
	void *own; /* result of start() */
};

struct cp_pool {
	const struct cp_pool_ops *ops;
	void *ctx;
	pthread_mutex_t lock;
	pthread_cond_t work, change; /* workers wait for `work`, the walker for `change` */
	struct item queue[WORKERS];
	unsigned first, queued, idle, workers;
	bool full, ended;            /* full: no more workers can be created; ended: no more jobs will come */
	struct worker worker[WORKERS];
};

int cp_pool_create(const struct cp_pool_ops *ops, void *ctx, struct cp_pool **ret)
{
	struct cp_pool *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->ops = ops;
	p->ctx = ctx;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	pthread_cond_init(&p->change, NULL);
	*ret = p;
	return 0;
}

void cp_pool_destroy(struct cp_pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->ended = true;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->workers; i++) {
		pthread_join(p->worker[i].thread, NULL);
		p->ops->stop(p->worker[i].own);
	}
	pthread_cond_destroy(&p->change);
	pthread_cond_destroy(&p->work);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct cp_pool *p = w->pool;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct item item;
		int status;

		if (!p->queued) {
			if (p->ended)
				break;
			p->idle++;
			pthread_cond_wait(&p->work, &p->lock);
			p->idle--;
			continue;
		}
		item = p->queue[p->first];
		p->first = (p->first + 1) % WORKERS;
		p->queued--;
		pthread_cond_signal(&p->change);
		pthread_mutex_unlock(&p->lock);
		status = p->ops->run(w->own, item.job);
		pthread_mutex_lock(&p->lock);
		item.batch->worst = MAX(item.batch->worst, status);
		if (!--item.batch->pending)
			pthread_cond_signal(&p->change);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Adds a worker if possible; called by the walker's thread only. */
static void add_worker(struct cp_pool *p)
{
	struct worker *w = &p->worker[p->workers];

	w->pool = p;
	w->own = p->ops->start(p->ctx);
	if (w->own && pthread_create(&w->thread, NULL, worker_main, w)) {
		p->ops->stop(w->own);
		w->own = NULL;
	}
	if (w->own)
		p->workers++;
	p->full = !w->own || p->workers == WORKERS;
}

bool cp_pool_give(struct cp_pool *p, struct cp_batch *batch, void *job)
{
	bool busy;

	pthread_mutex_lock(&p->lock);
	busy = p->idle <= p->queued;
	pthread_mutex_unlock(&p->lock);
	if (busy && !p->full)
		add_worker(p);
	if (!p->workers)
		return false;
	pthread_mutex_lock(&p->lock);
	while (p->queued == WORKERS)
		pthread_cond_wait(&p->change, &p->lock);
	p->queue[(p->first + p->queued++) % WORKERS] = (struct item){ batch, job };
	batch->pending++;
	pthread_cond_signal(&p->work);
	pthread_mutex_unlock(&p->lock);
	return true;
}

int cp_pool_wait(struct cp_pool *p, struct cp_batch *batch)
{
	int worst;

	pthread_mutex_lock(&p->lock);
	while (batch->pending)
		pthread_cond_wait(&p->change, &p->lock);
	worst = batch->worst;
	pthread_mutex_unlock(&p->lock);
	return worst;
}
