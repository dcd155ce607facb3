/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reactor.h - a thread with an engine, and the state that its connections share
 *
 * Threads: reactor_create(), reactor_run(), reactor_join() and reactor_destroy() run on the thread of server_start() or
 *          server_stop(). Other functions run on the reactor's thread, unless they say otherwise.
 * Units:   times in ns are CLOCK_MONOTONIC.
 */
#ifndef LEAT_SERVER_REACTOR_H
#define LEAT_SERVER_REACTOR_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "fair.h"
#include "latency.h"
#include "loop.h"
#include "place.h"
#include "prog.h"
#include "rpcrdma.h"
#include "store.h"

struct server;

/* Counters of one reactor: SUM(name) is added up over the reactors.
 *
 *   reqs             calls accepted
 *   admit_waits      calls that waited for admission
 *   admit_wait_max   maximum number of calls that waited on a reactor
 *   run_waits        submissions of calls to workers
 *   quick            calls answered by the fast path, without a worker
 * The programs have counters of their own: nfs.h. */
#define REACTOR_COUNTERS(SUM, MAX)                                                                 \
	SUM(reqs) SUM(admit_waits) MAX(admit_wait_max) SUM(run_waits) SUM(quick)

/* Only the thread of the reactor writes; any thread may read. */
struct reactor_counters {
	REACTOR_COUNTERS(STORE_COUNTER, STORE_COUNTER)
	struct store_counters store;
};

#define reactor_count(r, field)                                                                    \
	atomic_fetch_add_explicit(&(r)->counters.field, 1, memory_order_relaxed)

/* Owned by its own thread from reactor_create() until that thread ends, except atomic members and those that
 * reactor_stop() and reactor_join() use. */
struct reactor {
	struct server *srv;
	unsigned idx;
	struct loop loop;
	void *service[SERVICES]; /* states of the services on this reactor: prog.h */
	struct served_use *uses[SERVICES]; /* what they serve to new requests */
	size_t req_bytes;    /* of a request, with the program's part */
	struct list free_reqs;	 /* recycled requests */
	struct place_pool units; /* of their payloads */
	struct fair admission;	 /* requests waiting for a slot */
	unsigned nadmission;
	unsigned live;		 /* slots held: admitted requests */
	unsigned taken;		 /* requests in use, admitted or not */
	unsigned taken_most;	 /* maximum of `taken` since reactor_trim() */
	unsigned nreqs;		 /* allocated requests, free or in use */
	unsigned partial;	 /* requests in use with a call that has not fully arrived */
	_Atomic unsigned nconns; /* the listener's thread increments it before it hands over a connection */
	bool admitting;		 /* inside admit_next() */
	bool draining;		 /* drops new calls */
	bool closing;		 /* rpcrdma_engine_close_conns() was called */
	struct rpcrdma_timer trim;
	struct rpcrdma_timer drain;
	struct rpcrdma_msg stop_msg;
	uint64_t drain_until_ns;
	struct reactor_counters counters;
	struct latency_reactor latency;
	pthread_t thread;
	bool running;
	sem_t ended; /* posted by the thread at its end */
};

/** reactor_create - creates a reactor with engine, caches and stores, but without a thread
 * @ret: owned by the caller, until reactor_destroy()
 *
 * Return: 0 or -errno.
 */
int must_check reactor_create(struct server *srv, unsigned idx, enum rpcrdma_poll poll, struct reactor **ret);

/** reactor_run - starts the reactor's thread; Return: 0, -EAGAIN (no more threads) */
int must_check reactor_run(struct reactor *r);

/** reactor_stop - asks a running reactor to finish its requests and end; call once, any thread
 * @until_ns: when to close connections even if requests are in progress
 */
void reactor_stop(struct reactor *r, uint64_t until_ns);

/** reactor_join - waits until the reactor's thread has ended
 * @until_ns: when to give up
 *
 * Return: 0, also if it never ran; -ETIMEDOUT: work that cannot be cancelled is in progress.
 */
int must_check reactor_join(struct reactor *r, uint64_t until_ns);

/** reactor_inline_max - returns the longest data of a READ that is sent inside the reply, instead of a separate chunk
 * With a low limit of buffer memory it is less than @io_max, the longest data of any READ. A multiple of 4096.
 */
uint32_t reactor_inline_max(const struct reactor *r, uint32_t io_max);

/** reactor_trim - frees recycled requests that were not needed since the previous call */
void reactor_trim(struct reactor *r);

/** reactor_destroy - frees a reactor; its thread has ended or never ran, and no worker runs. NULL is fine. */
void reactor_destroy(struct reactor *r);

#endif
