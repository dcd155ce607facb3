/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reactor.c - a thread with an engine, and the state that its connections share
 *
 * Operation: the thread only runs rpcrdma_engine_wait(), which calls the handlers of calls, completions,
 *            messages of workers and timers. At shutdown it drops new calls, and waits until calls in
 *            progress are answered or their time is up. Then it closes connections. The loop ends when
 *            the last connection has closed and no work is in progress.
 * Memory:    owns its engine, its recycled requests and pieces.
 * Threads:   one; other threads use rpcrdma_engine_post().
 * Errors:    at creation only.
 */
#include "reactor.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "req.h"
#include "server_int.h"
#include "services.h"

#define TRIM_EVERY_NS (10 * NS_PER_S)
#define DRAIN_EVERY_NS (2 * NS_PER_MS)
#define REPLY_HEAD 1024u /* upper bound of the other results in a reply */

void reactor_trim(struct reactor *re)
{
	struct list *n;

	while (re->nreqs > re->taken_most && (n = list_pop(&re->free_reqs)) != NULL) {
		free(list_entry(n, struct req, link));
		re->nreqs--;
	}
	re->taken_most = re->taken;
}

uint32_t reactor_inline_max(const struct reactor *r, uint32_t io_max)
{
	size_t max = rpcrdma_domain_reply_max(r->srv->domain) - REPLY_HEAD;

	return (uint32_t)MIN(max, (size_t)io_max) & ~4095u;
}

static void on_trim(struct rpcrdma_timer *t)
{
	struct reactor *r = container_of(t, struct reactor, trim);

	reactor_trim(r);
	place_pool_fini(&r->units); /* few requests have more than one unit, so units are allocated again on demand */
	rpcrdma_timer_set(r->loop.engine, t, TRIM_EVERY_NS);
}

int reactor_create(struct server *srv, unsigned idx, enum rpcrdma_poll poll, struct reactor **ret)
{
	const struct rpcrdma_engine_attr attr = { .poll = poll };
	struct reactor *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->srv = srv;
	r->idx = idx;
	r->loop.workers = srv->workers;
	r->loop.asking = &srv->asking;
	r->req_bytes = service_req_bytes(srv);
	sem_init(&r->ended, 0, 0);
	list_init(&r->free_reqs);
	list_init(&r->units.free);
	r->latency.tracer = &srv->tracer;
	fair_init(&r->admission);
	r->trim.fn = on_trim;
	err = rpcrdma_engine_create(srv->domain, &attr, &r->loop.engine);
	r->units.engine = r->loop.engine;
	if (!err)
		err = service_create_reactor(r);
	if (err) {
		reactor_destroy(r);
		return err;
	}
	*ret = r;
	return 0;
}

static void *reactor_main(void *arg)
{
	struct reactor *r = arg;

	creds_stay();
	rpcrdma_timer_set(r->loop.engine, &r->trim, TRIM_EVERY_NS);
	service_start_reactor(r);
	while (!r->loop.stop)
		(void)rpcrdma_engine_wait(r->loop.engine, -1);
	rpcrdma_timer_cancel(r->loop.engine, &r->trim);
	service_stop_reactor(r);
	sem_post(&r->ended);
	return NULL;
}

int reactor_run(struct reactor *r)
{
	int err = -pthread_create(&r->thread, NULL, reactor_main, r);

	r->running = !err;
	return err;
}

/* Runs one step of the shutdown at a time. Jobs on workers and operations of the transport cannot be cancelled:
 * reactor_join() stops waiting for them, this timer does not. */
static void on_drain(struct rpcrdma_timer *t)
{
	struct reactor *r = container_of(t, struct reactor, drain);
	/* work in progress that may have no request waiting for it */
	bool working = r->loop.flushing || service_is_busy(r);
	/* another reactor may call this one */
	bool asking = atomic_load(r->loop.asking), busy = r->taken > r->partial || working || asking;

	if (!r->closing && (!busy || clock_now_ns() >= r->drain_until_ns)) {
		r->closing = true;
		(void)rpcrdma_engine_close_conns(r->loop.engine);
	}
	if (r->closing && !r->taken && !working && !asking && !atomic_load(&r->nconns))
		r->loop.stop = true;
	else
		rpcrdma_timer_set(r->loop.engine, t, DRAIN_EVERY_NS);
}

static void on_stop(struct rpcrdma_msg *msg)
{
	struct reactor *r = container_of(msg, struct reactor, stop_msg);

	r->draining = true;
	r->drain.fn = on_drain;
	on_drain(&r->drain);
}

void reactor_stop(struct reactor *r, uint64_t until_ns)
{
	r->drain_until_ns = until_ns;
	r->stop_msg.fn = on_stop;
	rpcrdma_engine_post(r->loop.engine, &r->stop_msg);
}

int reactor_join(struct reactor *r, uint64_t until_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(until_ns / NS_PER_S),
		.tv_nsec = (long)(until_ns % NS_PER_S),
	};

	if (!r->running)
		return 0;
	while (sem_clockwait(&r->ended, CLOCK_MONOTONIC, &ts)) {
		if (errno != EINTR)
			return -ETIMEDOUT;
	}
	pthread_join(r->thread, NULL);
	r->running = false;
	return 0;
}

void reactor_destroy(struct reactor *r)
{
	if (!r)
		return;
	r->loop.stop = true; /* if it never ran */
	/* process the messages that other threads have posted; there will be no more */
	while (r->loop.engine && rpcrdma_engine_poll(r->loop.engine) > 0)
		;
	r->taken_most = 0;
	reactor_trim(r);
	place_pool_fini(&r->units);
	service_destroy_reactor(r); /* before the engine: stores may have watches on it */
	rpcrdma_engine_destroy(r->loop.engine);
	sem_destroy(&r->ended);
	free(r);
}
