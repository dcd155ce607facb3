/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_reclaim.c - memory of calls that timed out, which late replies may still reach
 *
 * Operation:  Such memory comes back with the late reply, or with the end of the connection. If no thread uses the CLIENT,
 *             none runs its engine, and neither is noticed. So a thread that lacks memory runs the engines of unused
 *             CLIENTs, and replaces their connections if that does not help. The last thread of a CLIENT that others
 *             wait for does the same when it leaves.
 * Threads:    Any. The lock of the list is taken before those of handles; a handle in the list is not destroyed.
 */
#include "cl_int.h"
#include "process.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list handles = LIST_INIT(handles);
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void lock_it(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_it(void)
{
	pthread_mutex_unlock(&lock);
}

/* The parent's handles are not the child's to run. They stay linked among each other. */
static void begin_child(void)
{
	list_init(&handles);
	pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
	pthread_atfork(lock_it, unlock_it, begin_child);
}

void rt_cl_enlist(struct rt_handle *h)
{
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	list_add_tail(&handles, &h->link);
	pthread_mutex_unlock(&lock);
}

void rt_cl_delist(struct rt_handle *h)
{
	pthread_mutex_lock(&lock);
	list_del(&h->link);
	pthread_mutex_unlock(&lock);
}

void rt_cl_reclaim_own(struct rt_handle *h)
{
	if (h->unreleased && !h->in_flight && rt_mem_is_short())
		rt_cl_reopen(h);
}

void rt_cl_reclaim(void)
{
	pthread_mutex_lock(&lock);
	list_for_each(node, &handles) {
		struct rt_handle *h = list_entry(node, struct rt_handle, link);

		if (!h->unreleased || !rt_cl_try_lead(h))
			continue;
		while (rpcrdma_engine_poll(h->engine) > 0)
			;
		if (h->unreleased && !h->in_flight)
			rt_cl_reopen(h);
		rt_cl_pass_role(h);
	}
	pthread_mutex_unlock(&lock);
}
