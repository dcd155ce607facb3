/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * worker.h - threads for operations that may block
 */
#ifndef LEAT_SERVER_WORKER_H
#define LEAT_SERVER_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/util.h"
#include "fair.h"
#include "rpcrdma.h"

struct worker_pool;

/* A client's jobs for one file system; private. */
struct worker_queue {
	struct fair_flow flow;
	struct list link; /* worker_client->queues */
	uint64_t dev;
};

/* The pool's state of a client; embedded in an object that outlives its jobs. Private, under the pool's lock. */
struct worker_client {
	struct worker_pool *pool;
	struct fair_client turn;
	struct list queues;	   /* worker_queue.link: allocated on demand, reused when empty */
	struct worker_queue spare; /* used when no queue can be allocated */
	unsigned jobs;		   /* jobs that wait or run */
	unsigned running;
};

/* Blocking work; embedded in the object it works on. The submitter must not touch what run() touches until
 * done() runs. */
struct worker_job {
	void (*run)(struct worker_job *job);  /* on a worker */
	void (*done)(struct worker_job *job); /* then, on the submitter's engine */
	struct worker_client *client; /* the client it works for; NULL: the server itself, worker_submit() sets it */
	bool prompt;		      /* with client NULL: requests wait for this job */
	/* st_dev of the file system in which it may block; 0: no exported one. All jobs with 0 count as one file
	 * system. */
	uint64_t dev;
	/* private from here */
	struct rpcrdma_engine *engine;
	struct list link;
	struct worker_queue *queue;
	struct rpcrdma_msg msg;
};

/** worker_pool_create - creates a pool and starts its threads
 * @threads: number of threads; while some are stuck in the kernel, the pool starts up to four times as many
 * @ret: owned by the caller, until worker_pool_destroy()
 *
 * Return: 0, -ENOMEM, -EAGAIN (no more threads).
 */
int must_check worker_pool_create(unsigned threads, struct worker_pool **ret);

/** worker_pool_destroy - waits until all submitted jobs have run, then ends the threads. NULL is fine.
 *
 * No job may be submitted any more. The engines must still exist: the pool posts done() to them.
 */
void worker_pool_destroy(struct worker_pool *p);

/** worker_pool_threads - the number of threads that it was created with */
unsigned worker_pool_threads(const struct worker_pool *p);

/** worker_client_init - initialises a client without jobs; @p may be NULL if it never has any */
void worker_client_init(struct worker_client *c, struct worker_pool *p);

/** worker_client_fini - frees the queues of a client; none of its jobs may wait or run */
void worker_client_fini(struct worker_client *c);

/** worker_submit - queues @job for a worker; any thread
 * @engine: the caller's engine, which runs job->done()
 * @job: belongs to the pool until done() runs or worker_cancel() succeeds
 *
 * Clients take turns, and so do the file systems of a client. No client has more than its part of the threads while
 * other clients have jobs that may run. No file system has more than half of the threads, or more than a quarter for
 * the server's own jobs, but each may have one. A file system is a st_dev: each btrfs subvolume and each partition of
 * a disk counts as one.
 */
void worker_submit(struct worker_pool *p, struct rpcrdma_engine *engine, struct worker_job *job);

/** worker_cancel - cancels a job that no worker has begun; only on the thread that submitted it
 *
 * Return: true: cancelled, neither run() nor done() runs; false: a worker has begun it.
 */
bool must_check worker_cancel(struct worker_pool *p, struct worker_job *job);

/* Counters: `leat ctl stats` prints them as worker_NAME.
 *
 *   jobs       submitted
 *   waits      jobs submitted while no idle worker was left for them
 *   depth_max  maximum number of waiting jobs
 *   replaced   threads that were started because others were stuck */
#define WORKER_COUNTERS(X) X(jobs) X(waits) X(depth_max) X(replaced)

#define WORKER_COUNTER(name) uint64_t name;

struct worker_stats {
	WORKER_COUNTERS(WORKER_COUNTER)
};

/** worker_pool_stats - copies the statistics since worker_pool_create(), in jobs and threads; any thread */
void worker_pool_stats(struct worker_pool *p, struct worker_stats *ret);

#endif
