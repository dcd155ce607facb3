/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_map.h - maps files to names, for handles if kernel handles cannot be opened
 *
 * Invariants: a node is one file of one export. `gen` distinguishes it from a later file with the same
 *             inode number; if the file system has no such attribute, a random serial number does. Its id
 *             is never reused, but is only valid in this process. A directory has at most one name, the
 *             one seen last; any other file has all names seen and not yet found wrong. A node lives until
 *             its file is known to be removed, even if memory is scarce: a handle held by a client must
 *             not become invalid because other handles were made. So the map grows with the number of
 *             existing files that clients have looked up, by about 150 bytes and a name each. Files
 *             removed by other processes are found by checking nodes (fh_map_next). They are at most about
 *             half as many as the existing ones, beyond the first few thousand, which are not checked.
 */
#ifndef LEAT_SERVER_FH_MAP_H
#define LEAT_SERVER_FH_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

struct fh_map;

/* Identity of a file. */
struct fh_map_key {
	uint64_t dev, ino, gen; /* dev 0: gen is sufficient, or it is the device of the root */
	uint64_t exp;		/* id of the export */
};

/* Path to a file: names separated by slashes, from the export's root; "" is the root. */
struct fh_map_path {
	char *text; /* the caller frees it */
	size_t len;
	struct fh_map_key key;
	uint64_t parent;  /* node of the directory of the last name */
	const char *last; /* the last name, inside text */
};

/** fh_map_create - creates an empty map, for this process only; Return: 0, -ENOMEM */
int must_check fh_map_create(struct fh_map **ret);

/** fh_map_open - opens the map in @dir, initially empty; changes are kept there
 *
 * Return: 0; -EBUSY: another process uses it; -EINVAL: not a map; -ENOMEM, or the errno of reading or writing.
 */
int must_check fh_map_open(const char *dir, struct fh_map **ret);

/** fh_map_keep - writes all changes so far; they survive this process */
void fh_map_keep(struct fh_map *m);

/** fh_map_destroy - writes pending changes and frees a map that is no longer used. NULL is fine. */
void fh_map_destroy(struct fh_map *m);

/** fh_map_root - adds the root of an export
 *
 * Return: 0, -ENOMEM.
 */
int must_check fh_map_root(struct fh_map *m, const struct fh_map_key *key, uint64_t *ret_id);

/** fh_map_add - records that @name in directory @parent is file @key
 *
 * Return: 0; -ESTALE: the parent was removed; -ENOMEM.
 */
int must_check fh_map_add(struct fh_map *m, uint64_t parent, const char *name, bool is_dir,
			  const struct fh_map_key *key, uint64_t *ret_id);

/** fh_map_find - Return: the node of @key with this serial number, or 0 */
uint64_t fh_map_find(struct fh_map *m, const struct fh_map_key *key, uint64_t serial);

/** fh_map_key_of - gets key and serial number of node @id; Return: 0, -ESTALE */
int must_check fh_map_key_of(struct fh_map *m, uint64_t id, struct fh_map_key *ret,
			     uint64_t *ret_serial);

/** fh_map_path - builds the @nth path to node @id; path 0 is the one seen last
 *
 * Return: 0; -ESTALE: no such node; -ENOENT: no more paths; -ENOTDIR: this path is broken, the next one may work;
 * -ENOMEM.
 */
int must_check fh_map_path(struct fh_map *m, uint64_t id, unsigned nth, struct fh_map_path *ret);

/** fh_map_parent - Return: node of the directory in which a node was last seen, or 0 */
uint64_t fh_map_parent(struct fh_map *m, uint64_t id);

/** fh_map_drop - records that @name in @parent is not node @id, or no longer */
void fh_map_drop(struct fh_map *m, uint64_t id, uint64_t parent, const char *name);

/** fh_map_gone - records that the file of node @id does not exist any more */
void fh_map_gone(struct fh_map *m, uint64_t id);

/** fh_map_due - how many nodes must be checked now, with fh_map_next(), because the map has grown */
size_t fh_map_due(struct fh_map *m);

/** fh_map_next - selects a node to check: does one of its names still lead to its file?
 * @ret_exp: receives the id of its export
 *
 * Return: its id, or 0: none.
 */
uint64_t fh_map_next(struct fh_map *m, uint64_t *ret_exp);

/** fh_map_looked - records the result of the check
 * @found: a name leads to the file. If not, the node is removed: at once if that loses only its wrong name. A
 * directory with names in it, and a file that would get another handle, are removed when this is reported for the
 * second time
 */
void fh_map_looked(struct fh_map *m, uint64_t id, bool found);

#endif
