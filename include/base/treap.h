/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * treap.h - an ordered tree of embedded nodes
 *
 * Operation:  A treap is a search tree in the order of its owner and a heap by random weights. The weights keep it
 *             balanced: its depth is about twice the logarithm of its size. The owner searches it by following
 *             `left` (before) and `right`. Implemented in rpcrdma/base/treap.c.
 * Memory:     The nodes' own: nothing is allocated, so it may be used where malloc() is forbidden.
 * Threads:    The user serializes access; recursion is as deep as the tree.
 * Errors:     None.
 */
#ifndef LEAT_BASE_TREAP_H
#define LEAT_BASE_TREAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

struct treap_node {
	struct treap_node *left, *right;
	uint32_t weight; /* no child has a greater one */
};

struct treap {
	struct treap_node *root;
	uint64_t random; /* state of the weights */
	bool (*before)(const struct treap_node *a, const struct treap_node *b); /* false if @a is @b; no two are equal */
	void (*update)(struct treap_node *n); /* the children of @n have changed; or NULL */
};

/** treap_insert - adds a node that is not in the tree
 *
 * Nodes in the order of their weights make the tree a list. A peer that chooses their order could do so if it knew the
 * weights: the owner begins with an unpredictable `random`.
 */
void treap_insert(struct treap *t, struct treap_node *node);

/** treap_remove - removes a node, which must be in the tree */
void treap_remove(struct treap *t, struct treap_node *node);

#endif
