/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * waiters.h - a FIFO of requests that wait for memory; a waiter that still finds too little keeps its place
 *
 * Operation:  A request that finds no memory calls rr_waiters_add(). While others wait, a new request must not try
 *             (rr_waiters_may_try()). When memory was returned, the owner of the memory calls rr_waiters_run(): the
 *             first waiter has the turn and tries again. If it calls rr_waiters_add() in its turn, it is first
 *             again, and the owner stops until more memory is returned. So no request overtakes one that needs
 *             more.
 *
 *                 waiting --rr_waiters_run--> has the turn --rr_waiters_add--> waiting, first
 *                                                 |
 *                                                 '--> served, or given up
 *
 *             The queues of the pool (pool_wait.c), of a connection's share (srv_buf.c), and of the memory of a
 *             single connection (mode_area.c) are of this kind. The queue of a client's connections (account.h)
 *             is not: it spans engines, under a lock, and a turn there lasts until it is ended.
 * Memory:     Waiters are embedded in the waiting objects: nothing is allocated.
 * Threads:    One engine's.
 * Errors:     None.
 */
#ifndef RR_WAITERS_H
#define RR_WAITERS_H

#include <stdbool.h>

#include "base/util.h"
#include "rpcrdma.h"

struct rr_waiters {
	struct rpcrdma_buf_waiter *first, **tail;
	const struct rpcrdma_buf_waiter *turn; /* its fn runs, and has not added it again; only compared */
};

/** rr_waiters_init - makes @q an empty queue */
void rr_waiters_init(struct rr_waiters *q);

/** rr_waiters_add - appends @w, or puts it first if it has the turn; Return: true: it is new in the queue */
bool rr_waiters_add(struct rr_waiters *q, struct rpcrdma_buf_waiter *w);

/** rr_waiters_del - removes @w, if it waits in @q */
void rr_waiters_del(struct rr_waiters *q, struct rpcrdma_buf_waiter *w);

/** rr_waiters_run - gives the first waiter, if any, the turn: runs its fn, which may free it
 *
 * @q must outlive the call.
 *
 * Return: true: the next one may have a turn; false: the waiter kept its place.
 */
bool rr_waiters_run(struct rr_waiters *q);

/** rr_waiters_may_try - no request waits, or the one with the turn asks */
static inline bool rr_waiters_may_try(const struct rr_waiters *q)
{
	return !q->first || q->turn;
}

#endif
