/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * treap.c - an ordered tree of embedded nodes
 *
 * Operation, memory, threads, errors: base/treap.h
 */
#include "base/treap.h"

#include <assert.h>
#include <stddef.h>

#include "base/random.h"

static void update(const struct treap *t, struct treap_node *n)
{
	if (t->update)
		t->update(n);
}

/* Splits @n into the nodes before @at and the others. */
static void split(const struct treap *t, struct treap_node *n, const struct treap_node *at,
		  struct treap_node **left, struct treap_node **right)
{
	if (!n) {
		*left = *right = NULL;
		return;
	}
	if (t->before(n, at)) {
		split(t, n->right, at, &n->right, right);
		*left = n;
	} else {
		split(t, n->left, at, left, &n->left);
		*right = n;
	}
	update(t, n);
}

static struct treap_node *join(const struct treap *t, struct treap_node *left, struct treap_node *right)
{
	if (!left || !right)
		return left ? left : right;
	if (left->weight > right->weight) {
		left->right = join(t, left->right, right);
		update(t, left);
		return left;
	}
	right->left = join(t, left, right->left);
	update(t, right);
	return right;
}

static struct treap_node *insert(const struct treap *t, struct treap_node *n, struct treap_node *node)
{
	if (!n || n->weight < node->weight) {
		split(t, n, node, &node->left, &node->right);
		n = node;
	} else if (t->before(node, n)) {
		n->left = insert(t, n->left, node);
	} else {
		n->right = insert(t, n->right, node);
	}
	update(t, n);
	return n;
}

void treap_insert(struct treap *t, struct treap_node *node)
{
	node->weight = (uint32_t)random_next(&t->random);
	t->root = insert(t, t->root, node);
}

static struct treap_node *erase(const struct treap *t, struct treap_node *n, struct treap_node *node)
{
	assert(n);
	if (n == node)
		return join(t, n->left, n->right);
	if (t->before(node, n))
		n->left = erase(t, n->left, node);
	else
		n->right = erase(t, n->right, node);
	update(t, n);
	return n;
}

void treap_remove(struct treap *t, struct treap_node *node)
{
	t->root = erase(t, t->root, node);
	node->left = node->right = NULL;
}
