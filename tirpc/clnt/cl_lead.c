/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_lead.c - threads that share a CLIENT: one of them runs the engine, the others sleep
 *
 * Operation:  A thread that finds no other one leads: it runs the engine until its own call has ended. Then it passes the
 *             role to a thread whose call has not. The others follow: they sleep on the flags of their call, until it has
 *             ended or until they lead.
 *
 *             A follower starts its call as a visitor of the engine, so that the leader sleeps on, or else by a message.
 *             It is listed before it sends the message. So a leader that goes finds it and passes the role to it, and
 *             no message is left without a thread to run it.
 *
 *             Before it sleeps, a follower yields the CPU for a while: a reply that comes meanwhile needs no wakeup.
 *
 *                 led   followers        truth
 *                 false none             no thread is inside of the engine
 *                 true  any              exactly one thread runs the engine, or is about to
 * Memory:     A thread that wakes another one up has a reference to its call, or the lock.
 * Threads:    Any.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "cl_int.h"

static void sleep_while(struct rt_call *c, uint32_t flags)
{
	syscall(SYS_futex, &c->flags, FUTEX_WAIT_PRIVATE, flags, NULL, NULL, 0);
}

void rt_cl_tell(struct rt_call *c, enum rt_call_flag flag)
{
	uint32_t before = atomic_fetch_or_explicit(&c->flags, flag, memory_order_acq_rel);

	if (before & RT_CALL_SLEEPS)
		syscall(SYS_futex, &c->flags, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static bool has_flag(struct rt_call *c, uint32_t flags)
{
	return atomic_load_explicit(&c->flags, memory_order_acquire) & flags;
}

void rt_cl_ended(struct rt_call *c, int err, const char *why)
{
	c->err = err;
	c->why[0] = '\0';
	if (err && why)
		snprintf(c->why, sizeof(c->why), "%s", why);
	c->handle->in_flight--;
	rt_cl_batch_ended(c);
	rt_cl_tell(c, RT_CALL_DONE);
	rt_cl_drop(c);
}

bool rt_cl_try_lead(struct rt_handle *h)
{
	bool leads;

	pthread_mutex_lock(&h->lock);
	leads = !h->led;
	h->led = true;
	pthread_mutex_unlock(&h->lock);
	return leads;
}

void rt_cl_pass_role(struct rt_handle *h)
{
	struct rt_call *next = NULL;

	pthread_mutex_lock(&h->lock);
	list_for_each(node, &h->followers) {
		next = list_entry(node, struct rt_call, link);
		if (!has_flag(next, next->goal))
			break;
		next = NULL;
	}
	h->led = next != NULL;
	if (next) {
		list_del(&next->link);
		rt_cl_tell(next, RT_CALL_LEADS); /* with the lock: else its thread might go, and the call be another one's */
	}
	pthread_mutex_unlock(&h->lock);
}

static void lead(struct rt_call *c)
{
	struct rt_handle *h = c->handle;

	while (!has_flag(c, c->goal)) {
		(void)rpcrdma_engine_wait(h->engine, -1);
		rt_cl_batch_tend(h);
	}
	rt_cl_reclaim_own(h);
	rt_cl_pass_role(h);
}

/* Yields before a follower sleeps, however long they take: while other threads have something to do, one of them is the
 * leader. */
#define YIELDS_MIN 4u
#define FUTILE_MAX 255u

/* A sleep and a wakeup cost more than some yields. Where replies take longer than this waits, followers try it ever more
 * rarely. Return: true: the sleep is not necessary */
static bool yield_for(struct rt_call *c)
{
	struct rt_handle *h = c->handle;
	uint64_t until = clock_now_ns() + h->spin_ns;
	uint32_t futile;

	if (!h->spin_ns)
		return false;
	if (h->sleeps_left) {
		h->sleeps_left--; /* approximately: others may change it meanwhile */
		return false;
	}
	for (unsigned i = 1; i <= YIELDS_MIN || clock_now_ns() < until; i++) {
		sched_yield();
		if (has_flag(c, c->goal | RT_CALL_LEADS)) {
			h->futile = h->futile / 2;
			return true;
		}
	}
	futile = MIN(2 * h->futile + 1, FUTILE_MAX);
	h->futile = futile;
	h->sleeps_left = futile;
	return false;
}

static void sleep_for(struct rt_call *c)
{
	for (;;) {
		uint32_t flags = atomic_fetch_or_explicit(&c->flags, RT_CALL_SLEEPS, memory_order_acq_rel);

		if (flags & (c->goal | RT_CALL_LEADS))
			break;
		sleep_while(c, flags | RT_CALL_SLEEPS);
	}
	atomic_fetch_and_explicit(&c->flags, ~(uint32_t)RT_CALL_SLEEPS, memory_order_relaxed);
}

static void follow(struct rt_call *c)
{
	struct rt_handle *h = c->handle;
	bool leads;

	if (!yield_for(c))
		sleep_for(c);
	if (!has_flag(c, RT_CALL_LEADS)) {
		pthread_mutex_lock(&h->lock);
		leads = has_flag(c, RT_CALL_LEADS);
		if (!leads)
			list_del(&c->link);
		pthread_mutex_unlock(&h->lock);
		if (!leads)
			return;
	}
	lead(c);
}

static void start_posted(struct rpcrdma_msg *msg)
{
	rt_cl_start(container_of(msg, struct rt_call, start));
}

/* Another thread leads. */
static void start_beside(struct rt_call *c)
{
	struct rpcrdma_engine *e = c->handle->engine;

	if (rpcrdma_engine_enter(e)) {
		rt_cl_start(c);
		rpcrdma_engine_leave(e);
		return;
	}
	c->start.fn = start_posted;
	rpcrdma_engine_post(e, &c->start);
}

void rt_cl_run(struct rt_call *c)
{
	struct rt_handle *h = c->handle;
	bool leads;

	rt_cl_hold(c);
	atomic_store_explicit(&c->flags, 0, memory_order_relaxed);
	pthread_mutex_lock(&h->lock);
	leads = !h->led;
	h->led = true;
	if (!leads)
		list_add_tail(&h->followers, &c->link);
	pthread_mutex_unlock(&h->lock);
	if (leads) {
		rt_cl_start(c);
		lead(c);
	} else {
		start_beside(c);
		follow(c);
	}
}
