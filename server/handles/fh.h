/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh.h - file handles: they identify files for clients
 */
#ifndef LEAT_SERVER_FH_H
#define LEAT_SERVER_FH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/siphash.h"
#include "base/util.h"
#include "export.h"

#define FH_MAX 64 /* NFS3_FHSIZE */

enum fh_kind {
	FH_KERNEL = 1, /* name_to_handle_at(2), open_by_handle_at(2): finds a file wherever it was moved */
	FH_MAP = 2,    /* a node of fh_map.c: needs no privilege */
};

struct fh {
	uint32_t len;
	uint8_t data[FH_MAX];
};

/* A file that was found. Owned by the function that opened it, until fh_close(). */
struct fh_obj {
	struct export *exp;
	int fd;		  /* O_PATH: gives no access to the contents */
	uint64_t node;	  /* FH_MAP */
	struct statx stx; /* attributes when found */
	struct dir_wcc *wcc; /* of a directory with a name change in progress: its attributes before and after; or
	                      * NULL */
};

struct dir_wcc;
struct fh_set;

/* Keys that sign handles. v[0] signs; the others are older, and their signatures are still accepted. */
struct fh_keys {
	struct siphash_key v[2];
	unsigned n;
	bool is_new; /* no earlier handle exists that these accept */
};

/** fh_set_create - creates handles for the exports of @t; determines and sets their fh_kind
 * @keys: the same keys at the next start keep handles valid
 * @kind: FH_KERNEL or FH_MAP to try no other, 0 for the best that works
 * @map_dir: directory for the map of FH_MAP, if an export needs one; NULL: in memory only
 *
 * *@ret_map_err receives the result of fh_map_open() on @map_dir, if given; on failure the map is in memory only.
 * Return: 0, -ENOMEM, -EOPNOTSUPP (@kind does not work here), or the errno of accessing a root.
 */
int must_check fh_set_create(struct export_table *t, const struct fh_keys *keys, enum fh_kind kind,
			     const char *map_dir, int *ret_map_err, struct fh_set **ret);

/** fh_set_view - as fh_set_create() for other exports, with the keys and the map of @base, which must outlive it
 * @must_keep: if the map cannot be kept in the directory of @base, fail
 *
 * A handle made by @base or another view of it is valid here, too, if its export is in @t. The map is opened for the
 * first view that needs it. Only one thread at a time may create views of a base.
 *
 * Return: as above; with @must_keep also the error in *@ret_map_err.
 */
int must_check fh_set_view(struct fh_set *base, struct export_table *t, enum fh_kind kind,
			   bool must_keep, int *ret_map_err, struct fh_set **ret);

/** fh_set_destroy - destroys a set; NULL is fine */
void fh_set_destroy(struct fh_set *s);

/** fh_kind_name - name for messages */
const char *fh_kind_name(enum fh_kind kind);

/** fh_export - finds the export of a handle, without accessing the file
 *
 * Return: 0; -EBADF: not a handle of this server (NFS3ERR_BADHANDLE); -ESTALE: no longer valid.
 */
int must_check fh_export(struct fh_set *s, const void *data, uint32_t len, struct export **ret);

/** fh_open - finds the file of a handle
 *
 * Return: 0; -EBADF and -ESTALE as above; or an errno of the system (-EMFILE, -EIO, -EACCES).
 */
int must_check fh_open(struct fh_set *s, const void *data, uint32_t len, struct fh_obj *ret);

/** fh_strip - what a handle says of its file alone: it outlives the keys, and the name of the export
 * @h: a handle that fh_export() accepts
 */
void fh_strip(const struct fh *h, struct fh *ret);

/** fh_open_stripped - finds the file of what fh_strip() returned
 * It has no signature. With FH_KERNEL it finds any file of the file system, so the caller has to check that it is one of the
 * export.
 * @id: of the export
 *
 * Return: as fh_open(); -EBADMSG: it is not from fh_strip(), or from a handle of another kind than those of @s.
 */
int must_check fh_open_stripped(struct fh_set *s, uint32_t id, const struct fh *h, struct fh_obj *ret);

/** fh_open_root - opens the root of an export */
int must_check fh_open_root(struct fh_set *s, struct export *exp, struct fh_obj *ret);

/** fh_lookup - finds @name in a directory; follows no symlink, crosses no mount
 * @name: one component. ".." of the export's root is the root itself
 *
 * The lookup uses the rights of the calling thread.
 *
 * Return: 0; -ENOENT, -EACCES, ...; -EACCES also for a mount point; -ESTALE also for a directory that a local process
 * has moved out of the export.
 */
int must_check fh_lookup(struct fh_set *s, const struct fh_obj *dir, const char *name,
			 struct fh_obj *ret);

/** fh_lookup_cached - fh_lookup() on the file of a kernel handle, for reactors: succeeds only if the system can do it
 * without waiting
 * @name: neither "." nor ".."
 * @ret: the caller closes an open descriptor in it (fd >= 0) in every case: closing_add()
 *
 * Return: 0, or an error; fh_lookup() then reports the actual reason.
 */
int must_check fh_lookup_cached(struct fh_set *s, const struct fh_obj *dir, const char *name,
				struct fh_obj *ret);

/** fh_close - NULL and objects that were never opened (fd < 0) are fine */
void fh_close(struct fh_obj *o);

/** fh_make - makes the handle of an open file */
int must_check fh_make(struct fh_set *s, const struct fh_obj *o, struct fh *ret);

/** fh_make_at - makes the handle of @name in @dir without opening it, for listings
 *
 * Call fh_keep() after the last one.
 *
 * @stx: its attributes, requested with STATX_BTIME
 */
int must_check fh_make_at(struct fh_set *s, const struct fh_obj *dir, const char *name,
			  const struct statx *stx, struct fh *ret);

/** fh_check_dir - is a directory, opened before, still in the export?
 *
 * Call it after reading the directory.
 *
 * Return: 0; -ESTALE: a local process moved it out; or the errno of checking.
 */
int must_check fh_check_dir(struct fh_set *s, const struct fh_obj *dir);

/** fh_check_dir_now - fh_check_dir() for reactors; Return: the same, or -EAGAIN: the check would take too long */
int must_check fh_check_dir_now(struct fh_set *s, const struct fh_obj *dir);

/** fh_has_name - does @name in @dir lead to @o? Uses the rights of the calling thread */
bool fh_has_name(const struct fh_obj *o, const struct fh_obj *dir, const char *name);

/** fh_keep - makes sure that the next process knows the handles of fh_make_at(); call before they are sent */
void fh_keep(struct fh_set *s);

/* Tell the map about name changes made by the server. @o was found before the change. */
void fh_note_moved(struct fh_set *s, const struct fh_obj *o, const struct fh_obj *from,
		   const char *from_name, const struct fh_obj *to, const char *to_name);
void fh_note_unlinked(struct fh_set *s, const struct fh_obj *o, const struct fh_obj *dir,
		      const char *name, bool gone);

/** fh_key_load - loads the signing keys in @dir: handle.key, created on first use, and handle.key.old
 * @dir: created (mode 0700) if it does not exist
 *
 * Return: 0, or the errno of the first failure; -EINVAL: a file is not a key; -EKEYREJECTED: other users than its
 * owner may read or write it, or its owner is not this process's user.
 */
int must_check fh_key_load(const char *dir, struct fh_keys *ret);

/** stx_dev - the st_dev that stat() reports for the file */
static inline uint64_t stx_dev(const struct statx *stx)
{
	return makedev(stx->stx_dev_major, stx->stx_dev_minor);
}

#define FH_STATX_MASK (STATX_BASIC_STATS | STATX_BTIME)

#endif
