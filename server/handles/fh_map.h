/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_map.h - which names lead to a file, for handles where the kernel's own may not be opened
 *
 * Invariants: a node is one file of one export, told from a later file with the same inode number
 * by `gen`, or, where the file system has nothing to tell them by, by a random serial number of its
 * own. Its id is never used again, but means nothing to the next process. A directory has at most one name, the one seen last; any
 * other file all names seen and not yet found wrong. A node lives until its file is known to be
 * gone, not until memory is scarce: a handle that a client holds must not die because others were
 * made. So the map grows with the number of living files that clients have looked up, by about
 * 150 bytes and a name each. Of files that others removed it learns by looking (fh_map_next): they are at
 * most about half as many as the living ones, beyond the first few thousand, which are not looked at.
 */
#ifndef LEAT_SERVER_FH_MAP_H
#define LEAT_SERVER_FH_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

struct fh_map;

/* Which file. */
struct fh_map_key {
	uint64_t dev, ino, gen; /* dev 0: gen says it all, or the device of the root */
	uint64_t exp;		/* id of the export */
};

/* How to get there: names with slashes between them, from the export's root; "" is the root. */
struct fh_map_path {
	char *text; /* the caller frees it */
	size_t len;
	struct fh_map_key key;
	uint64_t parent;  /* node of the directory of the last name */
	const char *last; /* the last name, inside text */
};

/** fh_map_create - an empty map, for this process only; Return: 0, -ENOMEM */
int must_check fh_map_create(struct fh_map **ret);

/** fh_map_open - the map that is kept in @dir, empty at first; what it learns is kept there
 *
 * Return: 0; -EBUSY: another process has it; -EINVAL: what is there is no map; -ENOMEM, or the
 * errno of reading or writing.
 */
int must_check fh_map_open(const char *dir, struct fh_map **ret);

/** fh_map_keep - what was learned so far is written and survives this process */
void fh_map_keep(struct fh_map *m);

void fh_map_destroy(struct fh_map *m);

/** fh_map_root - the root of an export
 *
 * Return: 0, -ENOMEM.
 */
int must_check fh_map_root(struct fh_map *m, const struct fh_map_key *key, uint64_t *ret_id);

/** fh_map_add - @name in directory @parent was seen to be file @key
 *
 * Return: 0; -ESTALE: the parent is gone; -ENOMEM.
 */
int must_check fh_map_add(struct fh_map *m, uint64_t parent, const char *name, bool is_dir,
			  const struct fh_map_key *key, uint64_t *ret_id);

/** fh_map_find - Return: the node of @key with this serial number, or 0 */
uint64_t fh_map_find(struct fh_map *m, const struct fh_map_key *key, uint64_t serial);

/** fh_map_key_of - what fh_map_find() finds node @id by; Return: 0, -ESTALE */
int must_check fh_map_key_of(struct fh_map *m, uint64_t id, struct fh_map_key *ret,
			     uint64_t *ret_serial);

/** fh_map_path - the @nth way to node @id, 0 being the one seen last
 *
 * Return: 0; -ESTALE: no such node; -ENOENT: it has no more ways; -ENOTDIR: this way leads nowhere any more, the
 * next one may; -ENOMEM.
 */
int must_check fh_map_path(struct fh_map *m, uint64_t id, unsigned nth, struct fh_map_path *ret);

/** fh_map_parent - the directory a node was last seen in; Return: its node, or 0 */
uint64_t fh_map_parent(struct fh_map *m, uint64_t id);

/** fh_map_drop - @name in @parent is not node @id, or not any more */
void fh_map_drop(struct fh_map *m, uint64_t id, uint64_t parent, const char *name);

/** fh_map_gone - the file of node @id does not exist any more */
void fh_map_gone(struct fh_map *m, uint64_t id);

/** fh_map_due - how many nodes are to be looked at now, because the map has grown; with fh_map_next() */
size_t fh_map_due(struct fh_map *m);

/** fh_map_next - a node that is to be looked at: does one of its names still lead to its file?
 * @ret_exp: gets the id of its export
 *
 * Return: its id, or 0: none.
 */
uint64_t fh_map_next(struct fh_map *m, uint64_t *ret_exp);

/** fh_map_looked - what came of it
 * @found: a name leads to the file. If not, it is forgotten: at once if it loses nothing by that but its
 *         name, which is wrong; a directory with names in it, and a file that would get another handle, when that
 *         is said for the second time
 */
void fh_map_looked(struct fh_map *m, uint64_t id, bool found);

/** fh_map_count - nodes alive */
size_t fh_map_count(struct fh_map *m);

#endif
