/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * worker.h - threads for what may block
 */
#ifndef LEAT_SERVER_WORKER_H
#define LEAT_SERVER_WORKER_H

#include <stdint.h>

#include "base/util.h"
#include "rpcrdma.h"

struct worker_pool;

/* A piece of blocking work; embedded in what it is about. The submitter must not touch what run()
 * touches until done() runs. */
struct worker_job {
	void (*run)(struct worker_job *job);  /* on a worker */
	void (*done)(struct worker_job *job); /* then, on the engine it came from */
	struct rpcrdma_engine *engine;
	struct worker_job *next; /* private from here */
	struct rpcrdma_msg msg;
};

int must_check worker_pool_create(unsigned threads, struct worker_pool **ret);

/** worker_pool_destroy - finishes what was submitted, then ends the threads. NULL is fine. */
void worker_pool_destroy(struct worker_pool *p);

/** worker_submit - first come, first served; any thread, no malloc
 * @engine: where job->done() is to run: the caller's
 */
void worker_submit(struct worker_pool *p, struct rpcrdma_engine *engine, struct worker_job *job);

struct worker_stats {
	uint64_t jobs;	    /* submitted */
	uint64_t waits;	    /* of them, with no idle worker at the time */
	uint64_t depth_max; /* most that waited at once */
};

void worker_pool_stats(struct worker_pool *p, struct worker_stats *ret);

#endif
