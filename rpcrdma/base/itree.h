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

#include "base/util.h"

struct rr_inode {
	uintptr_t start, end;         /* set before insertion; start < end */
	uintptr_t max;                /* the greatest end in this subtree */
	uint32_t weight;              /* heap order: no child has a greater one */
	struct rr_inode *left, *right;
};

struct rr_itree {
	struct rr_inode *root;
	uint32_t random;
};

/* Tests one node; Return: true: it matches, stop. It must not change the tree. */
typedef bool (*rr_itree_fn)(struct rr_inode *node, void *arg);

/** rr_itree_init - makes @t an empty tree, which needs no cleanup */
void rr_itree_init(struct rr_itree *t);

/** rr_itree_insert - inserts @node; its range may equal or overlap others */
void rr_itree_insert(struct rr_itree *t, struct rr_inode *node);

/** rr_itree_remove - removes @node, which must be in the tree */
void rr_itree_remove(struct rr_itree *t, struct rr_inode *node);

/** rr_itree_find - returns the first node, by start, that overlaps [@start, @end) and that @fn accepts; NULL
 * accepts all
 * Return: NULL: no node matches */
struct rr_inode *rr_itree_find(const struct rr_itree *t, uintptr_t start, uintptr_t end,
			       rr_itree_fn fn, void *arg);

#endif
