/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * itree.c - an interval tree: a treap ordered by start, with the greatest end of each subtree
 *
 * Operation:  A treap is a search tree by its keys and a heap by random weights. Random weights keep it
 *             balanced: its depth is about twice the logarithm of its size. Ranges with the same start are
 *             ordered by the addresses of their nodes. The search skips a subtree with no end beyond the start
 *             of the range.
 * Memory:     The nodes' own.
 * Threads:    None of its own; recursion is as deep as the tree.
 * Errors:     None.
 */
#include <assert.h>
#include <stddef.h>

#include "itree.h"

void rr_itree_init(struct rr_itree *t)
{
	*t = (struct rr_itree){ .random = 2463534242u };
}

static uint32_t next_random(struct rr_itree *t)
{
	/* xorshift: balances the tree, no security purpose */
	t->random ^= t->random << 13;
	t->random ^= t->random >> 17;
	t->random ^= t->random << 5;
	return t->random;
}

static bool before(const struct rr_inode *a, const struct rr_inode *b)
{
	return a->start != b->start ? a->start < b->start : (uintptr_t)a < (uintptr_t)b;
}

static void update(struct rr_inode *n)
{
	n->max = n->end;
	if (n->left)
		n->max = MAX(n->max, n->left->max);
	if (n->right)
		n->max = MAX(n->max, n->right->max);
}

/* Splits @n into the nodes before @at and the others. */
static void split(struct rr_inode *n, const struct rr_inode *at, struct rr_inode **left,
		  struct rr_inode **right)
{
	if (!n) {
		*left = *right = NULL;
		return;
	}
	if (before(n, at)) {
		split(n->right, at, &n->right, right);
		*left = n;
	} else {
		split(n->left, at, left, &n->left);
		*right = n;
	}
	update(n);
}

static struct rr_inode *join(struct rr_inode *left, struct rr_inode *right)
{
	if (!left || !right)
		return left ? left : right;
	if (left->weight > right->weight) {
		left->right = join(left->right, right);
		update(left);
		return left;
	}
	right->left = join(left, right->left);
	update(right);
	return right;
}

static struct rr_inode *insert(struct rr_inode *n, struct rr_inode *node)
{
	if (!n || n->weight < node->weight) {
		split(n, node, &node->left, &node->right);
		n = node;
	} else if (before(node, n)) {
		n->left = insert(n->left, node);
	} else {
		n->right = insert(n->right, node);
	}
	update(n);
	return n;
}

void rr_itree_insert(struct rr_itree *t, struct rr_inode *node)
{
	assert(node->start < node->end);
	node->weight = next_random(t);
	t->root = insert(t->root, node);
}

static struct rr_inode *erase(struct rr_inode *n, struct rr_inode *node)
{
	assert(n);
	if (n == node)
		return join(n->left, n->right);
	if (before(node, n))
		n->left = erase(n->left, node);
	else
		n->right = erase(n->right, node);
	update(n);
	return n;
}

void rr_itree_remove(struct rr_itree *t, struct rr_inode *node)
{
	t->root = erase(t->root, node);
	node->left = node->right = NULL;
}

static struct rr_inode *find(struct rr_inode *n, uintptr_t start, uintptr_t end, rr_itree_fn fn,
			     void *arg)
{
	struct rr_inode *found;

	if (!n || n->max <= start)
		return NULL;
	found = find(n->left, start, end, fn, arg);
	if (found)
		return found;
	if (n->start >= end)
		return NULL;
	if (n->end > start && (!fn || fn(n, arg)))
		return n;
	return find(n->right, start, end, fn, arg);
}

struct rr_inode *rr_itree_find(const struct rr_itree *t, uintptr_t start, uintptr_t end,
			       rr_itree_fn fn, void *arg)
{
	return find(t->root, start, end, fn, arg);
}
