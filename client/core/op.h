/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * op.h - a metadata operation: a few calls, one after the other
 *
 * An operation is a chain of static functions, its steps. A step looks at the outcome of what the
 * step before began and ends in exactly one of
 *     lt_op_call(op, PROC, next)    -> next(op, err) when the reply is there
 *     lt_walk_start(op, ..., next)  -> next(op, err) when the path has been walked
 *     lt_op_finish(op, result)      -> the caller's callback; op is gone
 * so the steps of an operation, read from the bottom of its file upwards, are what it does.
 */
#ifndef LT_OP_H
#define LT_OP_H

#include "call.h"
#include "leat.h"
#include "nfsacl.h"
#include "path.h"
#include "task.h"

struct lt_op;
struct leat_file;
struct leat_dir;

typedef void (*lt_op_step)(struct lt_op *op, int err);

/* Arguments and results of the call that is out; one at a time, so they share their place. */
union lt_op_args {
	GETATTR3args getattr;
	SETATTR3args setattr;
	LOOKUP3args lookup;
	ACCESS3args access;
	READLINK3args readlink;
	CREATE3args create;
	MKDIR3args mkdir;
	SYMLINK3args symlink;
	MKNOD3args mknod;
	REMOVE3args remove;
	RMDIR3args rmdir;
	RENAME3args rename;
	LINK3args link;
	READDIR3args readdir;
	READDIRPLUS3args readdirplus;
	FSSTAT3args fsstat;
	COMMIT3args commit;
	GETACL3args getacl;
	SETACL3args setacl;
};

union lt_op_res {
	GETATTR3res getattr;
	SETATTR3res setattr;
	LOOKUP3res lookup;
	ACCESS3res access;
	READLINK3res readlink;
	CREATE3res create;
	MKDIR3res mkdir;
	SYMLINK3res symlink;
	MKNOD3res mknod;
	REMOVE3res remove;
	RMDIR3res rmdir;
	RENAME3res rename;
	LINK3res link;
	READDIR3res readdir;
	READDIRPLUS3res readdirplus;
	FSSTAT3res fsstat;
	COMMIT3res commit;
	GETACL3res getacl;
	SETACL3res setacl;
};

enum lt_walk_mode {
	LT_WALK_FOLLOW,   /* to the object, through a symbolic link at the end */
	LT_WALK_NOFOLLOW, /* to the object, or the link itself unless a slash follows it */
	LT_WALK_PARENT,   /* to the directory of the last component, which need not exist */
};

/* A walk and its outcome; see walk.c. */
struct lt_walk {
	enum lt_walk_mode mode;
	char *text;               /* own copy of what is walked, or NULL */
	size_t at;
	unsigned links;
	lt_op_step next, after_attr;
	struct lt_fh dir;         /* where fh was looked up */

	struct lt_fh fh;          /* where it stands; the object, or its directory (PARENT) */
	bool has_attr;
	fattr3 attr;              /* of fh */
	struct lt_path_part part; /* the last component looked at */
	bool missing;             /* -ENOENT: only the last component is; fh is its directory */
};

struct lt_op {
	struct lt_task task;
	struct lt_call call;
	lt_op_step first, next;
	bool fresh;                    /* what it is about is asked of the server: the last component */
	bool walked, again;            /* by a path; ESTALE, and nothing but the server's word now */
	union lt_op_args args;
	union lt_op_res res;
	char fh_room[NFS3_FHSIZE];
	struct lt_walk walk;
	char *path_copy, *path2_copy;  /* what the user gave */
	char *link_text;               /* NFS3_PATH_MAX + 1 bytes, once a READLINK was needed */
	struct iovec iov;              /* of the payload of READLINK or SYMLINK */

	/* what the operation was asked for; each uses its own few */
	struct leat_file *file;
	struct leat_file **ret_file;
	struct leat_dir *dir;
	struct leat_dir **ret_dir;
	struct stat *ret_st;
	struct statvfs *ret_vfs;
	char *buf;                     /* readlink */
	size_t cap;
	struct lt_acl_room *acl;       /* lists of NFSACL */
	struct leat_acl_entry *acl_entries;
	size_t acl_count;
	sattr3 sattr;
	int flags;
	mode_t mode;
	dev_t dev;
	unsigned tries;
	bool created;
	uint64_t seq;                  /* fsync: unstable writes that the COMMIT covers */
	struct lt_fh fh2;              /* rename: directory of the old name; link: the file */
	char name2[LT_NAME_MAX + 1];
};

/** lt_op_create - an operation with copies of its paths
 * @path, @path2: may be NULL
 *
 * On failure @cb has been consumed.
 *
 * Return: 0, -EINVAL (no handle), -ENAMETOOLONG, -ENOMEM.
 */
must_check int lt_op_create(struct leat *m, const char *verb, const char *path, const char *path2,
			    struct leat_cb cb, struct lt_op **ret);

/** lt_op_submit - start at @first(op, 0); Return: 0, so that a public function can end with it
 * An operation that walked a path and ends in -ESTALE starts there once more.
 */
int lt_op_submit(struct lt_op *op, lt_op_step first);

/** lt_op_call - make the NFS call @proc with op->args; results in op->res */
void lt_op_call(struct lt_op *op, uint32_t proc, lt_op_step next);

/** lt_op_call_acl - the same for a call of NFSACL; lists in results go to op->acl */
void lt_op_call_acl(struct lt_op *op, uint32_t proc, lt_op_step next);

/** lt_op_call_dir - the same for READDIR and READDIRPLUS, whose results may take @reply_bytes */
void lt_op_call_dir(struct lt_op *op, uint32_t proc, uint32_t reply_bytes, lt_op_step next);

/** lt_op_call_readlink - READLINK of @fh; its target, NUL-terminated, will be in op->link_text */
void lt_op_call_readlink(struct lt_op *op, struct lt_fh *fh, lt_op_step next);

/** lt_op_finish - the end; @op is gone */
void lt_op_finish(struct lt_op *op, int64_t result);

/** lt_op_end - a last step: the outcome of the step before is that of the operation */
void lt_op_end(struct lt_op *op, int err);

/* walk.c */

/** lt_walk_start - walk @path from the root, or if relative from the path of the URL
 * next(0): see struct lt_walk; next(-errno): -ENOENT, -ENOTDIR, -ELOOP, -ENAMETOOLONG, ...
 */
void lt_walk_start(struct lt_op *op, const char *path, enum lt_walk_mode mode, lt_op_step next);

/** lt_op_attr - may attributes of @fh be taken from the cache, and are there any? */
bool lt_op_attr(struct lt_op *op, struct lt_fh *fh, fattr3 *ret);

/** lt_walk_getattr - make sure that walk.attr is known; then next(op, err) */
void lt_walk_getattr(struct lt_op *op, lt_op_step next);

#endif
