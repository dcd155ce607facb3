/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * loop.h - an engine's thread, as the parts of the server see it that run there and use workers
 */
#ifndef LEAT_SERVER_LOOP_H
#define LEAT_SERVER_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "rpcrdma.h"
#include "worker.h"

/* Part of a reactor. Only its thread uses it, or any thread before that one starts and after it has ended. */
struct loop {
	struct rpcrdma_engine *engine;
	struct worker_pool *workers;
	atomic_uint *asking; /* operations, of all reactors, that wait for other servers, or for this one itself, and of which
			      * another thread may call an engine: no reactor ends meanwhile */
	unsigned flushing; /* work in progress for no call: syncs, close batches, access times, ended exports */
	bool stop;	   /* the thread has ended, or ends now: no completion runs any more */
};

/** loop_submit - worker_submit() for a job of this thread; job->done() runs on it */
static inline void loop_submit(struct loop *l, struct worker_job *job)
{
	worker_submit(l->workers, l->engine, job);
}

#endif
