/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * timers.h - armed timers in order of their due times
 *
 * Operation:  A skew heap: the first timer is at the root, and each timer is due before its children. Merging two
 *             heaps exchanges the children of each node on the way, which keeps the way short: adding and removing
 *             a timer take O(log n) on average. Timers due at the same time stay in the order in which they were
 *             added. A binary heap in an array would have to allocate memory when a timer is set.
 * Memory:     The links are in struct rpcrdma_timer: nothing is allocated. An armed timer must stay in place.
 * Threads:    The user's.
 * Errors:     None.
 */
#ifndef RR_TIMERS_H
#define RR_TIMERS_H

#include "base/util.h"
#include "rpcrdma.h"

struct rr_timers {
	struct rpcrdma_timer *first; /* NULL: no timer is armed */
	uint64_t added;
};

/** rr_timers_add - arms @t, whose due_ns is set; it is not armed */
void rr_timers_add(struct rr_timers *all, struct rpcrdma_timer *t);

/** rr_timers_del - disarms @t; does nothing if it is not armed */
void rr_timers_del(struct rpcrdma_timer *t);

/** rr_timer_is_armed - whether @t is in a heap */
static inline bool rr_timer_is_armed(const struct rpcrdma_timer *t)
{
	return t->link != NULL;
}

#endif
