/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh.h - file handles: what a client holds instead of a descriptor
 */
#ifndef LEAT_SERVER_FH_H
#define LEAT_SERVER_FH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/util.h"
#include "export.h"
#include "siphash.h"

#define FH_MAX 64 /* NFS3_FHSIZE */

enum fh_kind {
	FH_KERNEL = 1, /* name_to_handle_at(2), open_by_handle_at(2): follows a file anywhere */
	FH_MAP = 2,    /* a node of fh_map.c: no privilege */
};

struct fh {
	uint32_t len;
	uint8_t data[FH_MAX];
};

/* A file, found. Owned by whoever opened it until fh_close(). */
struct fh_obj {
	struct export *exp;
	int fd;		  /* O_PATH: gives no right to the contents */
	uint64_t node;	  /* FH_MAP */
	struct statx stx; /* as it was when found */
	struct dir_wcc *wcc; /* of a directory whose names are to be changed: what it was like; or NULL */
};

struct dir_wcc;
struct fh_set;

/* What signs handles: v[0]. The others were used before, and what they signed still passes. */
struct fh_keys {
	struct siphash_key v[2];
	unsigned n;
	bool is_new; /* there is no handle from before now that these accept */
};

/** fh_set_create - handles for the exports of @t, whose fh_kind is found out and set
 * @keys: the same keys at the next start keep handles valid
 * @kind: FH_KERNEL or FH_MAP to try no other, 0 for the best that works
 * @map_dir: keeps the map of FH_MAP, if an export needs one; NULL: in memory only
 *
 * Return: 0, -ENOMEM, -EOPNOTSUPP (@kind does not work here), or the errno of looking at a root;
 * what fh_map_open() says of @map_dir, if it is given, is in *@ret_map_err: then the map is in memory only.
 */
int must_check fh_set_create(struct export_table *t, const struct fh_keys *keys, enum fh_kind kind,
			     const char *map_dir, int *ret_map_err, struct fh_set **ret);

/** fh_set_view - the same for other exports, with the keys and the map of @base, which outlives it
 * @must_keep: a map that cannot be kept in the directory of @base is an error, and no map
 *
 * A handle that @base or another view of it has made is good here, too, if its export is in @t. The
 * map is opened for the first view that needs it. One thread at a time makes views of a base.
 *
 * Return: as above; with @must_keep also the error that is in *@ret_map_err.
 */
int must_check fh_set_view(struct fh_set *base, struct export_table *t, enum fh_kind kind,
			   bool must_keep, int *ret_map_err, struct fh_set **ret);
void fh_set_destroy(struct fh_set *s);

/** fh_kind_name - for people */
const char *fh_kind_name(enum fh_kind kind);

/** fh_export - which export is it in? Decides without looking at the file
 *
 * Return: 0; -EBADF: not a handle of ours (NFS3ERR_BADHANDLE); -ESTALE: it was one once.
 */
int must_check fh_export(struct fh_set *s, const void *data, uint32_t len, struct export **ret);

/** fh_open - find the file
 *
 * Return: 0; -EBADF and -ESTALE as above; or what the system says (-EMFILE, -EIO, -EACCES).
 */
int must_check fh_open(struct fh_set *s, const void *data, uint32_t len, struct fh_obj *ret);

/** fh_open_root - the root of an export */
int must_check fh_open_root(struct fh_set *s, struct export *exp, struct fh_obj *ret);

/** fh_lookup - the file called @name in a directory; no symlink is followed, no mount crossed
 * @name: one component. ".." of the export's root is the root itself
 *
 * The system looks with the rights of the calling thread.
 *
 * Return: 0; -ENOENT, -EACCES, ...; -EACCES also for a mount point; -ESTALE also for a directory
 * that a local process has moved out of the export.
 */
int must_check fh_lookup(struct fh_set *s, const struct fh_obj *dir, const char *name,
			 struct fh_obj *ret);

/** fh_lookup_cached - fh_lookup() of a kernel handle's file, for reactors: if the system need not wait to do it
 * @name: neither "." nor ".."
 * @ret: the caller closes what is open there (fd >= 0), whatever this returns: closing_add()
 *
 * Return: 0, or that it could not: whatever the reason, fh_lookup() tells it better.
 */
int must_check fh_lookup_cached(struct fh_set *s, const struct fh_obj *dir, const char *name,
				struct fh_obj *ret);

/** fh_close - NULL and what was never opened (fd < 0) are fine */
void fh_close(struct fh_obj *o);

/** fh_make - the handle of an open file */
int must_check fh_make(struct fh_set *s, const struct fh_obj *o, struct fh *ret);

/** fh_make_at - the handle of @name in @dir without opening it, for listings
 *
 * Whoever has made the last one calls fh_keep().
 *
 * @stx: what it was seen to be; with STATX_BTIME asked for
 */
int must_check fh_make_at(struct fh_set *s, const struct fh_obj *dir, const char *name,
			  const struct statx *stx, struct fh *ret);

/** fh_check_dir - is a directory, opened before, still in the export?
 *
 * Whoever lists it asks when he has read it.
 *
 * Return: 0; -ESTALE: a local process moved it out; or the errno of looking.
 */
int must_check fh_check_dir(struct fh_set *s, const struct fh_obj *dir);

/** fh_check_dir_now - fh_check_dir() for reactors; Return: as that, or -EAGAIN: it takes too long to say */
int must_check fh_check_dir_now(struct fh_set *s, const struct fh_obj *dir);

/** fh_keep - what fh_make_at() made so far may leave this process: the next one will know it */
void fh_keep(struct fh_set *s);

/* What the server did to names, so that the map learns of it. @o was found before. */
void fh_note_moved(struct fh_set *s, const struct fh_obj *o, const struct fh_obj *from,
		   const char *from_name, const struct fh_obj *to, const char *to_name);
void fh_note_unlinked(struct fh_set *s, const struct fh_obj *o, const struct fh_obj *dir,
		      const char *name, bool gone);

/** fh_key_load - the signing keys in @dir: handle.key, made on first use, and handle.key.old
 * @dir: created (mode 0700) if it does not exist
 *
 * Return: 0, or the errno of the first thing that failed; -EINVAL: a file is not a key; -EKEYREJECTED:
 * others than its owner may read or write it, or its owner is not us.
 */
int must_check fh_key_load(const char *dir, struct fh_keys *ret);

/** fh_key_random - a key for this run only */
int must_check fh_key_random(struct siphash_key *ret);

#define FH_STATX_MASK (STATX_BASIC_STATS | STATX_BTIME)

#endif
