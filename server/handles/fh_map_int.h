/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_map_int.h - what fh_map.c and fh_map_old.c share; the lock is held
 */
#ifndef LEAT_SERVER_FH_MAP_INT_H
#define LEAT_SERVER_FH_MAP_INT_H

#include <pthread.h>

#include "fh_map.h"
#include "siphash.h"

struct fh_map_node;

struct fh_map_name {
	struct fh_map_name *next; /* of the same node, the one seen last first */
	struct fh_map_node *parent;
	size_t len;
	char text[];
};

struct fh_map_node {
	struct fh_map_node *hash_next, *id_next;
	struct fh_map_key key;
	uint64_t serial; /* 0, but for files without a generation */
	uint64_t id;	 /* 0: gone */
	struct fh_map_name *names;
	size_t names_inside; /* names of other nodes with this one as parent */
	bool is_root;
	bool missed; /* no name led to it when it was last looked at */
};

struct fh_map {
	pthread_mutex_t lock; /* over everything below */
	struct siphash_key hash_key;
	struct fh_log *log;    /* NULL: for this process only */
	struct fh_map_node **buckets; /* by key */
	struct fh_map_node **by_id;   /* as many, by id */
	size_t nbuckets, nnodes, nnames;
	uint64_t last_id;
	/* forgetting: fh_map_old.c */
	size_t keep; /* as many nodes and names are kept unlooked at */
	size_t due;  /* nodes to look at */
	size_t hand; /* bucket of the last one that was, and its id */
	uint64_t hand_id;
};

/** fh_map_node - Return: the node with an id, or NULL */
struct fh_map_node *fh_map_node(const struct fh_map *m, uint64_t id);

/** fh_map_end_node - forget a node, in the journal, too; it is no root */
void fh_map_end_node(struct fh_map *m, struct fh_map_node *n);

/** fh_map_end_name - forget the name of @n that *@at is */
void fh_map_end_name(struct fh_map *m, struct fh_map_name **at);

/** fh_map_grown - one node or name more: an older one is looked at for it */
void fh_map_grown(struct fh_map *m);

#endif
