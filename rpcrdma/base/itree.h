/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * itree.h - a set of address ranges, which may overlap, with search by address range
 *
 * Memory:   Nodes are embedded in the objects with ranges, and belong to the tree while they are in it. The
 *           tree never allocates, so it may be used where malloc() is forbidden.
 * Threads:  The user serializes access.
 */
#ifndef RR_ITREE_H
#define RR_ITREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/treap.h"
#include "base/util.h"

struct rr_inode {
	uintptr_t start, end;         /* set before insertion; start < end */
	uintptr_t max;                /* the greatest end in this subtree */
	struct treap_node tree;
};

struct rr_itree {
	struct treap nodes;
};

/** rr_itree_init - makes @t an empty tree, which needs no cleanup */
void rr_itree_init(struct rr_itree *t);

/** rr_itree_insert - inserts @node; its range may equal or overlap others */
void rr_itree_insert(struct rr_itree *t, struct rr_inode *node);

/** rr_itree_remove - removes @node, which must be in the tree */
void rr_itree_remove(struct rr_itree *t, struct rr_inode *node);

/** rr_itree_next - returns the next node, by start, that overlaps [@start, @end); NULL: no more
 * @after: in the tree; NULL: the first node
 */
struct rr_inode *rr_itree_next(const struct rr_itree *t, const struct rr_inode *after, uintptr_t start, uintptr_t end);

#define rr_itree_for_each(n, t, start, end)                                                                  \
	for (struct rr_inode *n = rr_itree_next(t, NULL, start, end); n; n = rr_itree_next(t, n, start, end))

#endif
