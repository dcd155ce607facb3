/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * timers.c - armed timers in order of their due times
 *
 * Operation, memory, threads, errors: timers.h
 */
#include "timers.h"

static bool is_before(const struct rpcrdma_timer *a, const struct rpcrdma_timer *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->serial < b->serial;
}

/* Puts @t first at *@at, a root or a list of siblings. */
static void link_at(struct rpcrdma_timer **at, struct rpcrdma_timer *t)
{
	t->next = *at;
	t->link = at;
	*at = t;
	if (t->next)
		t->next->link = &t->next;
}

static void unlink_timer(struct rpcrdma_timer *t)
{
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	t->next = NULL;
	t->link = NULL;
}

/* Joins the heap @b to the one at *@at. Neither root has siblings. */
static void join(struct rpcrdma_timer **at, struct rpcrdma_timer *b)
{
	struct rpcrdma_timer *a = *at;

	if (a && is_before(a, b)) {
		link_at(&a->child, b);
		return;
	}
	if (a) {
		unlink_timer(a);
		link_at(&b->child, a);
	}
	link_at(at, b);
}

void rr_timers_add(struct rr_timers *all, struct rpcrdma_timer *t)
{
	t->serial = all->added++;
	t->child = NULL;
	join(&all->first, t);
}

/* Moves the root of the heap at *@from to the front of the list at *@to; does nothing without one. */
static void move_root(struct rpcrdma_timer **from, struct rpcrdma_timer **to)
{
	struct rpcrdma_timer *t = *from;

	if (!t)
		return;
	unlink_timer(t);
	link_at(to, t);
}

void rr_timers_del(struct rpcrdma_timer *t)
{
	struct rpcrdma_timer **at = t->link, *pairs = NULL, *heap = NULL, *c;

	if (!at)
		return;
	unlink_timer(t);
	while (t->child) {
		struct rpcrdma_timer *pair = NULL;

		for (int i = 0; i < 2 && (c = t->child) != NULL; i++) {
			unlink_timer(c);
			join(&pair, c);
		}
		move_root(&pair, &pairs);
	}
	while ((c = pairs) != NULL) {
		unlink_timer(c);
		join(&heap, c);
	}
	move_root(&heap, at);
}
