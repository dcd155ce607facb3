/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * hash.h - intrusive hash table
 *
 * Operation:  Nodes with the same low bits of their hash are in one chain, the newest first. The caller computes
 *             the hash. If a peer chooses the keys, it must be a keyed hash with a random key (siphash.h), so that
 *             the peer cannot put all its keys into one chain. If the keys are numbers that this process chose in
 *             sequence, the number is its own hash.
 *
 *             The table keeps its size unless the caller grows it. hash_first() and hash_next() return the nodes
 *             of one hash; the caller compares the keys.
 *
 *             These tables are not of this kind. server/fs/dir_ctime.c keeps one number for all directories of a bucket.
 *             rpcrdma/base/account.c is searched under the lock of all connections and by keys that a peer may
 *             choose; a tree needs no secret for that. rpcrdma/verbs/verbs_mem.c has lists by key, of a few each.
 * Memory:     The array of chains. Nodes are embedded in their owners' structures, which the table never owns.
 * Threads:    The user serializes access.
 * Errors:     -ENOMEM at creation. A table that cannot grow still works, but slower.
 */
#ifndef LEAT_BASE_HASH_H
#define LEAT_BASE_HASH_H

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"

struct hash_node {
	struct hash_node *next;
	uint64_t hash;
};

struct hash {
	struct hash_node **chains;
	size_t mask, n; /* n: nodes */
};

/** hash_init - creates an empty table for about @n nodes; Return: 0, -ENOMEM */
static inline int must_check hash_init(struct hash *t, size_t n)
{
	size_t chains = 1;

	while (chains < n)
		chains *= 2;
	*t = (struct hash){ .chains = calloc(chains, sizeof(*t->chains)), .mask = chains - 1 };
	return t->chains ? 0 : -ENOMEM;
}

/** hash_fini - frees the array of chains, not the nodes. A zeroed table is fine. */
static inline void hash_fini(struct hash *t)
{
	free(t->chains);
	*t = (struct hash){ 0 };
}

/** hash_chain - the place of the chain for @hash; any number selects one */
static inline struct hash_node **hash_chain(const struct hash *t, uint64_t hash)
{
	return &t->chains[hash & t->mask];
}

static inline struct hash_node *hash_equal_from(struct hash_node *n, uint64_t hash)
{
	while (n && n->hash != hash)
		n = n->next;
	return n;
}

/** hash_first - the newest node with @hash, or NULL */
static inline struct hash_node *hash_first(const struct hash *t, uint64_t hash)
{
	return hash_equal_from(*hash_chain(t, hash), hash);
}

/** hash_next - the next node with the same hash, or NULL */
static inline struct hash_node *hash_next(const struct hash_node *n)
{
	return hash_equal_from(n->next, n->hash);
}

/** hash_add - adds a node that is in no table */
static inline void hash_add(struct hash *t, struct hash_node *n, uint64_t hash)
{
	struct hash_node **chain = hash_chain(t, hash);

	n->hash = hash;
	n->next = *chain;
	*chain = n;
	t->n++;
}

/** hash_del - removes a node, which is in the table */
static inline void hash_del(struct hash *t, struct hash_node *n)
{
	struct hash_node **at = hash_chain(t, n->hash);

	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	t->n--;
}

/** hash_step - walks over all nodes: returns the one after @n, the first one for NULL, NULL at the end
 *
 * Nodes before the returned one may be removed.
 */
static inline struct hash_node *hash_step(const struct hash *t, const struct hash_node *n)
{
	struct hash_node *next = n ? n->next : NULL;

	for (size_t i = n ? (n->hash & t->mask) + 1 : 0; !next && i <= t->mask; i++)
		next = t->chains[i];
	return next;
}

/** hash_grow - doubles the number of chains if there are more nodes than chains */
static inline void hash_grow(struct hash *t)
{
	struct hash to;

	if (t->n <= t->mask || hash_init(&to, 2 * (t->mask + 1)))
		return;
	for (struct hash_node *n = hash_step(t, NULL), *next; n; n = next) {
		next = hash_step(t, n);
		hash_add(&to, n, n->hash);
	}
	free(t->chains);
	*t = to;
}

/* all nodes with a hash; the body must not remove the current one */
#define hash_for_each_equal(node, table, hash)                                                 \
	for (struct hash_node *node = hash_first(table, hash); node; node = hash_next(node))

#endif
