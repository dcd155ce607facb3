/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * itree.c - an interval tree: a treap ordered by start, with the greatest end of each subtree
 *
 * Operation:  Ranges with the same start are ordered by the addresses of their nodes. The search skips a subtree with
 *             no end beyond the start of the range.
 * Memory:     The nodes' own.
 * Threads:    None of its own; recursion is as deep as the tree.
 * Errors:     None.
 */
#include <assert.h>
#include <stddef.h>

#include "itree.h"

static struct rr_inode *inode_of(struct treap_node *n)
{
	return container_of(n, struct rr_inode, tree);
}

static bool before(const struct treap_node *left, const struct treap_node *right)
{
	const struct rr_inode *a = container_of(left, const struct rr_inode, tree);
	const struct rr_inode *b = container_of(right, const struct rr_inode, tree);

	return a->start != b->start ? a->start < b->start : (uintptr_t)a < (uintptr_t)b;
}

static void update(struct treap_node *node)
{
	struct rr_inode *n = inode_of(node);

	n->max = n->end;
	if (node->left)
		n->max = MAX(n->max, inode_of(node->left)->max);
	if (node->right)
		n->max = MAX(n->max, inode_of(node->right)->max);
}

void rr_itree_init(struct rr_itree *t)
{
	t->nodes = (struct treap){ .before = before, .update = update };
}

void rr_itree_insert(struct rr_itree *t, struct rr_inode *node)
{
	assert(node->start < node->end);
	treap_insert(&t->nodes, &node->tree);
}

void rr_itree_remove(struct rr_itree *t, struct rr_inode *node)
{
	treap_remove(&t->nodes, &node->tree);
}

static struct rr_inode *find(struct treap_node *node, const struct rr_inode *after, uintptr_t start, uintptr_t end)
{
	struct rr_inode *n = node ? inode_of(node) : NULL, *found;

	if (!n || n->max <= start)
		return NULL;
	if (!after || before(&after->tree, node)) {
		found = find(node->left, after, start, end);
		if (found || n->start >= end)
			return found;
		if (n->end > start)
			return n;
	}
	return find(node->right, after, start, end);
}

struct rr_inode *rr_itree_next(const struct rr_itree *t, const struct rr_inode *after, uintptr_t start, uintptr_t end)
{
	return find(t->nodes.root, after, start, end);
}
