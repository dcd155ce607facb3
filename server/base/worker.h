/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * worker.h - threads for what may block
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

/* A client as the pool knows it; embedded in what outlives its jobs. Private, under the pool's lock. */
struct worker_client {
	struct worker_pool *pool;
	struct fair_client turn;
	struct list queues;	   /* worker_queue.link: allocated as they are needed, reused when empty */
	struct worker_queue spare; /* for want of memory */
	unsigned jobs;		   /* that wait or run */
	unsigned running;
};

/* Blocking work; embedded in what it is about. The submitter must not touch what run() touches until
 * done() runs. */
struct worker_job {
	void (*run)(struct worker_job *job);  /* on a worker */
	void (*done)(struct worker_job *job); /* then, on the engine it came from */
	struct worker_client *client; /* that it is done for; NULL: for the server itself */
	bool prompt;		      /* of the server's: requests wait for it */
	/* st_dev of the file system that it may block in; 0: none of the exports'. Jobs with 0 count as one file
	 * system. */
	uint64_t dev;
	/* private from here */
	struct rpcrdma_engine *engine;
	struct list link;
	struct worker_queue *queue;
	struct rpcrdma_msg msg;
};

/** worker_pool_create - starts the threads
 * @threads: that work at once; while some of them are stuck in the kernel there may be up to four times as many
 *
 * Return: 0, -ENOMEM, -EAGAIN (no more threads).
 */
int must_check worker_pool_create(unsigned threads, struct worker_pool **ret);

/** worker_pool_destroy - finishes what was submitted, then ends the threads. NULL is fine. */
void worker_pool_destroy(struct worker_pool *p);

/** worker_client_init - a client without jobs; @p may be NULL if it never has any */
void worker_client_init(struct worker_client *c, struct worker_pool *p);

/** worker_client_fini - frees what it took; none of its jobs waits or runs */
void worker_client_fini(struct worker_client *c);

/** worker_submit - has @job run when its turn comes; any thread
 * @engine: where job->done() is to run: the caller's
 *
 * Clients take turns, and so do the file systems of a client. While others wait, no client has more than
 * its part of the threads. No file system ever has more than half of them, and no more than a quarter for the
 * server's own jobs, but at least one. A file system is a st_dev: each btrfs subvolume and each partition of a disk counts as one.
 */
void worker_submit(struct worker_pool *p, struct rpcrdma_engine *engine, struct worker_job *job);

/** worker_cancel - takes back a job that no thread has begun; where it was submitted
 *
 * Return: whether it was; then neither run() nor done() runs.
 */
bool must_check worker_cancel(struct worker_pool *p, struct worker_job *job);

struct worker_stats {
	uint64_t jobs;	    /* submitted */
	uint64_t waits;	    /* of them, with no idle worker at the time */
	uint64_t depth_max; /* most that waited at once */
	uint64_t replaced;  /* threads that were started because others were stuck */
};

void worker_pool_stats(struct worker_pool *p, struct worker_stats *ret);

#endif
