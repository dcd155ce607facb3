/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_set.h - the block volumes in service, with their options, and their descriptors on each reactor
 */
#ifndef LEAT_SERVER_BLOCK_SET_H
#define LEAT_SERVER_BLOCK_SET_H

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "block_conf.h"
#include "block_volume.h"
#include "served.h"
#include "store.h"

struct conf;

/* A volume with its options. Read-only. */
struct block_entry {
	struct block_volume *vol; /* a reference */
	struct block_conf conf;
	struct backing backing; /* what its stores serve */
	struct store_caps caps;
	uint32_t block;	      /* bytes: the block size */
	unsigned idx;
};

/* The volumes of one configuration, in the order of their names. Shared, read-only. */
struct block_set {
	struct served served;
	struct block_entry v[]; /* served.n */
};

/** block_set_create - opens the volumes of @conf; the caller holds the result: served_put()
 * @old: volumes that it has, too, are taken over from there; NULL: none
 * @state_dir: NULL: keeps nothing
 * @why: gets the reason of a failure
 *
 * Return: 0; -EBUSY: a volume of @old that @conf lacks has a holder; -errno.
 */
int must_check block_set_create(const struct conf *conf, struct block_set *old, const char *state_dir,
				struct served **ret, char *why, size_t why_bytes);

/** block_set_stay - the volumes of @s stay in service after all: block_set_create() has kept holders out of those that were
 * to leave */
void block_set_stay(struct block_set *s);

/** block_set_announce - logs which volumes are new, changed, or no longer served
 * @old: NULL: none
 */
void block_set_announce(const struct block_set *old, const struct block_set *now);

/** block_set_from - returns the volumes of which @s is a part; NULL: NULL */
static inline struct block_set *block_set_from(struct served *s)
{
	return s ? container_of(s, struct block_set, served) : NULL;
}

/** block_set_of - returns the volumes that a request, or a reactor, uses */
static inline struct block_set *block_set_of(const struct served_use *u)
{
	return container_of(u->served, struct block_set, served);
}

/** block_set_file - returns the reactor's open file of a volume */
static inline struct store_file *block_set_file(const struct served_use *u, const struct block_entry *e)
{
	return (struct store_file *)u->state + e->idx;
}

/** block_set_find - finds a volume by name; block_set_find_id - by its id. NULL: not found */
const struct block_entry *block_set_find(const struct block_set *s, const char *name);
const struct block_entry *block_set_find_id(const struct block_set *s, uint64_t id);

/** block_entry_bytes - returns the size of a volume: whole blocks */
static inline uint64_t block_entry_bytes(const struct block_entry *e)
{
	uint64_t bytes = atomic_load_explicit(&e->vol->bytes, memory_order_relaxed);

	return bytes - bytes % e->block;
}

/** block_entry_admits - may a peer use the volume?
 *
 * Over the local fabric, `users` decides by the kernel's credentials of the peer; over a network, `clients` and
 * `secure`.
 */
bool block_entry_admits(const struct block_entry *e, const struct rpcrdma_peer *peer);

/** block_entry_may_take_over - may a peer that it admits take it over? */
bool block_entry_may_take_over(const struct block_entry *e, const struct rpcrdma_peer *peer);

#endif
