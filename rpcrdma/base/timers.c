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

static void link_at(struct rpcrdma_timer **at, struct rpcrdma_timer *t)
{
	*at = t;
	if (t)
		t->link = at;
}

/* Merges the heaps @a and @b into *@at, down their right edges. What was left of a node goes right. */
static void meld(struct rpcrdma_timer **at, struct rpcrdma_timer *a, struct rpcrdma_timer *b)
{
	while (a && b) {
		struct rpcrdma_timer *top = is_before(a, b) ? a : b;

		if (top == a)
			a = top->right;
		else
			b = top->right;
		link_at(&top->right, top->left);
		link_at(at, top);
		at = &top->left;
	}
	link_at(at, a ? a : b);
}

void rr_timers_add(struct rr_timers *all, struct rpcrdma_timer *t)
{
	t->serial = all->added++;
	t->left = t->right = NULL;
	meld(&all->first, all->first, t);
}

void rr_timers_del(struct rpcrdma_timer *t)
{
	if (t->link)
		meld(t->link, t->left, t->right);
	t->link = NULL;
}
