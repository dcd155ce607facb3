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

struct rt_wait {
	bool done;
	struct rpcrdma_conn *conn;  /* it stays while the request is not done */
	struct rpcrdma_timer limit;
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
	rpcrdma_timer_cancel(rt_svc.engine, &w->limit);
	pthread_mutex_lock(&lock);
	w->done = true;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&lock);
}

static void wait_here(const struct rt_wait *w)
{
	while (!w->done)
		(void)rpcrdma_engine_wait(rt_svc.engine, -1);
}

static void wait_for_loop(const struct rt_wait *w)
{
	pthread_mutex_lock(&lock);
	while (!w->done)
		pthread_cond_wait(&cond, &lock);
	pthread_mutex_unlock(&lock);
}

/* ---- sending ---- */

static void on_limit(struct rpcrdma_timer *t)
{
	rpcrdma_conn_close(container_of(t, struct rt_wait, limit)->conn);
}

/* On the engine. */
static void finish(struct rt_req *r)
{
	struct rt_wait *w = r->wait;

	if (w) {
		w->conn = r->conn->conn;
		w->limit.fn = on_limit;
		rpcrdma_timer_set(rt_svc.engine, &w->limit, LIMIT_NS);
	}
	rt_req_finish(r);
}

static void on_message(struct rpcrdma_msg *msg)
{
	finish(container_of(msg, struct rt_req, msg));
}

static void pass_to_engine(struct rt_req *r)
{
	struct rpcrdma_engine *e = rt_svc.engine;

	if (rpcrdma_engine_enter(e)) {
		finish(r);
		rpcrdma_engine_leave(e);
	} else {
		r->msg.fn = on_message;
		rpcrdma_engine_post(e, &r->msg);
	}
}

void rt_send(struct rt_req *r)
{
	bool waits = r->end.kind == RT_END_RESULTS && r->enc.bulk.base && !r->item, here = rt_loop_is_here();
	struct rt_wait w = { 0 };

	r->wait = waits ? &w : NULL;
	if (here)
		finish(r);
	else
		pass_to_engine(r);
	if (waits && here)
		wait_here(&w);
	else if (waits)
		wait_for_loop(&w);
	/* a loop sleeps next: the engine, armed or kicked before, has work now, or wait_here() has undone both */
	if (here && rt_svc.is_idle)
		rt_svc_kick();
}
