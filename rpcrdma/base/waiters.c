/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * waiters.c - a FIFO of requests that wait for memory; a waiter that still finds too little keeps its place
 *
 * Operation, memory, threads, errors: waiters.h
 */
#include "waiters.h"

void rr_waiters_init(struct rr_waiters *q)
{
	*q = (struct rr_waiters){ .tail = &q->first };
}

bool rr_waiters_add(struct rr_waiters *q, struct rpcrdma_buf_waiter *w)
{
	bool again = q->turn == w;
	struct rpcrdma_buf_waiter **at = again ? &q->first : q->tail;

	if (again)
		q->turn = NULL;
	w->next = *at;
	w->link = at;
	*at = w;
	*(w->next ? &w->next->link : &q->tail) = &w->next;
	return !again;
}

void rr_waiters_del(struct rr_waiters *q, struct rpcrdma_buf_waiter *w)
{
	if (!w->link)
		return;
	*w->link = w->next;
	*(w->next ? &w->next->link : &q->tail) = w->link;
	w->link = NULL;
}

bool rr_waiters_run(struct rr_waiters *q)
{
	struct rpcrdma_buf_waiter *w = q->first;
	bool served;

	if (!w)
		return true;
	rr_waiters_del(q, w);
	q->turn = w;
	w->fn(w); /* may free it: from here on only compared */
	served = q->turn != NULL;
	q->turn = NULL;
	return served;
}
