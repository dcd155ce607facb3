/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_map_int.h - shared by fh_map.c and fh_map_old.c; call with the lock held
 */
#ifndef LEAT_SERVER_FH_MAP_INT_H
#define LEAT_SERVER_FH_MAP_INT_H

#include <pthread.h>

#include "base/hash.h"
#include "base/siphash.h"
#include "fh_map.h"

struct fh_map_node;

struct fh_map_name {
	struct fh_map_name *next; /* of the same node, most recently seen first */
	struct fh_map_node *parent;
	size_t len;
	char text[];
};

struct fh_map_node {
	struct hash_node by_key, by_id;
	struct fh_map_key key;
	uint64_t serial; /* 0, except for files without a generation */
	uint64_t id;	 /* 0: removed */
	struct fh_map_name *names;
	size_t names_inside; /* names of other nodes with this one as parent */
	bool is_root;
	bool missed; /* no name led to it at the last check */
};

struct fh_map {
	pthread_mutex_t lock; /* protects everything below */
	struct siphash_key hash_key;
	struct fh_log *log;    /* NULL: for this process only */
	struct hash by_key, by_id; /* an id is its own hash: this process counts them */
	size_t nnames;
	uint64_t last_id;
	/* checks for removed files: fh_map_old.c */
	size_t keep; /* this many nodes and names are not checked */
	size_t due;  /* number of nodes to check */
	size_t hand; /* position of the last check: chain of by_id, and id */
	uint64_t hand_id;
};

/** fh_map_node - Return: the node with an id, or NULL */
struct fh_map_node *fh_map_node(const struct fh_map *m, uint64_t id);

/** fh_map_end_node - removes a node, in the journal, too; not for roots */
void fh_map_end_node(struct fh_map *m, struct fh_map_node *n);

/** fh_map_end_name - removes the name *@at of @n */
void fh_map_end_name(struct fh_map *m, struct fh_map_name **at);

/** fh_map_grown - counts a new node or name: an older one will be checked for it */
void fh_map_grown(struct fh_map *m);

#endif
