/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * svc_send.c - a reply goes from the thread that made it to the engine
 *
 * Operation:  The thread that runs the loop sends at once. Another one takes its place, if it sleeps in rpcrdma_svc_run();
 *             else it posts a message to the engine, whose descriptor wakes the loop.
 *
 *             A program may change the memory of its results when svc_sendreply() has returned. Messages are bytes of the
 *             library's own. Bulk data is not: so the call waits until the transport has moved it. The thread of the loop
 *             runs the engine meanwhile, which takes requests and dispatches none.
 * Memory:     struct rt_wait on the stack of the thread that waits.
 * Threads:    Any.
 * Errors:     A peer that does not take its data for LIMIT_NS loses its connection.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "svc_int.h"

#define LIMIT_NS (60 * NS_PER_S)
#define CHECK_MS 1000

struct rt_wait {
	bool done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of rt_wait.done, for other threads */
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

/* ---- the thread of the loop ---- */

static _Thread_local char me;
static _Atomic(char *) loop;

void rt_loop_enter(void)
{
	if (atomic_load_explicit(&loop, memory_order_relaxed) != &me)
		atomic_store(&loop, &me);
}

bool rt_loop_is_here(void)
{
	return atomic_load(&loop) == &me;
}

/* ---- waiting ---- */

void rt_send_done(struct rt_wait *w)
{
	pthread_mutex_lock(&lock);
	w->done = true;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&lock);
}

/* While the request is not done, its connection stays. */
static void wait_here(const struct rt_wait *w, struct rpcrdma_conn *conn)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;

	while (!w->done) {
		(void)rpcrdma_engine_wait(rt_svc.engine, CHECK_MS);
		if (w->done || !conn || clock_now_ns() < until)
			continue;
		rpcrdma_conn_close(conn);
		conn = NULL;
	}
}

static void wait_for_loop(const struct rt_wait *w)
{
	pthread_mutex_lock(&lock);
	while (!w->done)
		pthread_cond_wait(&cond, &lock);
	pthread_mutex_unlock(&lock);
}

/* ---- sending ---- */

static void on_message(struct rpcrdma_msg *msg)
{
	rt_req_finish(container_of(msg, struct rt_req, msg));
}

static void pass_to_engine(struct rt_req *r)
{
	struct rpcrdma_engine *e = rt_svc.engine;

	if (rpcrdma_engine_enter(e)) {
		rt_req_finish(r);
		rpcrdma_engine_leave(e);
	} else {
		r->msg.fn = on_message;
		rpcrdma_engine_post(e, &r->msg);
	}
}

void rt_send(struct rt_req *r)
{
	bool waits = r->end.kind == RT_END_RESULTS && r->enc.bulk.base && !r->item, here = rt_loop_is_here();
	struct rpcrdma_conn *conn = r->conn->conn;
	struct rt_wait w = { 0 };

	r->wait = waits ? &w : NULL;
	if (here)
		rt_req_finish(r);
	else
		pass_to_engine(r);
	if (waits && here)
		wait_here(&w, conn);
	else if (waits)
		wait_for_loop(&w);
	/* a loop sleeps next: the engine, armed or kicked before, has work now, or wait_here() has undone both */
	if (here && rt_svc.is_idle)
		rt_svc_kick();
}
