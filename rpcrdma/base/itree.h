/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * itree.h - a set of address ranges, which may overlap, that answers "who is in [start, end)?"
 *
 * Memory:   Nodes are embedded in what has a range, and are the tree's while they are in it. Nothing
 *           is allocated: it may be used where malloc() may not.
 * Threads:  Whoever guards the tree.
 */
#ifndef RR_ITREE_H
#define RR_ITREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

struct rr_inode {
	uintptr_t start, end;         /* set before it is inserted; start < end */
	uintptr_t max;                /* the greatest end below and here */
	uint32_t weight;              /* no child's is greater */
	struct rr_inode *left, *right;
};

struct rr_itree {
	struct rr_inode *root;
	uint32_t random;
};

/* Looks at one node; Return: true: this is it, look no further. It may not change the tree. */
typedef bool (*rr_itree_fn)(struct rr_inode *node, void *arg);

void rr_itree_init(struct rr_itree *t);

/** rr_itree_insert - put @node in; ranges that are there already do not matter */
void rr_itree_insert(struct rr_itree *t, struct rr_inode *node);

/** rr_itree_remove - take @node out, which is in */
void rr_itree_remove(struct rr_itree *t, struct rr_inode *node);

/** rr_itree_find - the first node, by its start, of those with an address of [@start, @end) that
 * @fn likes; all are liked if it is NULL
 * Return: NULL: there is none */
struct rr_inode *rr_itree_find(const struct rr_itree *t, uintptr_t start, uintptr_t end,
			       rr_itree_fn fn, void *arg);

#endif
