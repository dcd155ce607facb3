/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * op.h - a metadata operation: a few calls in sequence
 *
 * An operation is a chain of static functions, its steps. The first step is that of lt_op_submit(), or the walk of
 * lt_walk_submit(). Each step receives the outcome of what the previous step started, and ends in exactly one of
 *     lt_op_call(op, PROC, next)    -> next(op, err) after the reply; if the operation has been cancelled,
 *                                      next(op, -ECANCELED) inside lt_op_call()
 *     lt_walk_start(op, ..., next)  -> next(op, err) after the path walk
 *     lt_op_finish(op, result)      -> the caller's callback; op is freed
 * Read the steps of an operation from the bottom of its file upwards.
 */
#ifndef LT_OP_H
#define LT_OP_H

#include "base/list.h"
#include "call.h"
#include "leat.h"
#include "nfs_types.h"
#include "path.h"
#include "task.h"

struct lt_op;
struct leat_file;
struct leat_dir;
struct leat_block;
struct lt_removed;
struct lt_stripe_sync;
struct lt_striped;

typedef void (*lt_op_step)(struct lt_op *op, int err);

/* Arguments and results of the current call. Calls are sequential, so they share this memory. */
union lt_op_args {
	NFS_TYPES(NFS_ARGS)
	READDIR3args readdir;
	READDIRPLUS3args readdirplus;
	BLOCKLISTargs block_list;
	BLOCKINFOargs block_info;
	BLOCKATTACHargs block_attach;
	BLOCKATargs block_at;
	BLOCKRANGEargs block_range;
	BLOCKZEROargs block_zero;
};

union lt_op_res {
	NFS_TYPES(NFS_RES)
	READDIR3res readdir;
	READDIRPLUS3res readdirplus;
	BLOCKLISTres block_list;
	BLOCKINFOres block_info;
	BLOCKATTACHres block_attach;
	BLOCKDETACHres block_detach;
	BLOCKCHANGEres block_change;
	BLOCKEXTENTSres block_extents;
};

enum lt_walk_mode {
	LT_WALK_FOLLOW,   /* to the object, following a symbolic link in the last component */
	LT_WALK_NOFOLLOW, /* to the object, or to the link itself unless a slash follows it */
	LT_WALK_PARENT,   /* to the directory of the last component, which may be missing */
};

/* A path walk and its outcome; see walk.c. */
struct lt_walk {
	enum lt_walk_mode mode;
	char *text;               /* own copy of the path to walk, or NULL */
	size_t at;
	unsigned links;
	lt_op_step next, after_attr;
	struct lt_fh dir;         /* directory in which fh was looked up */

	struct lt_fh fh;          /* current position; at the end the object, or its directory (PARENT) */
	bool has_attr;
	fattr3 attr;              /* of fh */
	struct lt_path_part part; /* the current component */
	bool missing;             /* -ENOENT: only the last component is missing; fh is its directory */
};

/* Arguments of an operation on a block volume: see block/. */
struct lt_op_volume {
	struct leat_block *of;
	void *ret;                /* results, or another argument */
	size_t cap, count;        /* elements of an array there */
	uint64_t off, end;        /* range that is left */
	bool changes, keep;
	lt_op_step next;          /* of lt_block_fit() */
};

/* A layout that is asked for: io/striped_layout.c. */
struct lt_op_layout {
	lt_op_step next;
	unsigned use;             /* enum lt_striped_use */
	bool asked_again;
};

/* A call of a program that this folder does not know. */
struct lt_op_asked {
	uint32_t proc;            /* its number */
	const struct lt_proc *p;
	const void *args;
	void *res;
	struct lt_server *server; /* NULL: that of the mount */
	uint32_t patience_ms;     /* as of lt_call_prog() */
};

struct lt_op {
	struct lt_task task;
	struct lt_call call;
	lt_op_step first, next;
	bool fresh;                    /* look the last component up at the server, not in the cache */
	bool walked, again;            /* walked: by a path; again: restart after ESTALE, without the cache */
	union lt_op_args args;
	union lt_op_res res;
	char fh_room[NFS3_FHSIZE];
	struct lt_walk walk;
	enum lt_walk_mode first_mode;  /* of lt_walk_submit() */
	lt_op_step walked_next, typed_next;
	lt_op_step resize_next;
	char *path_copy, *path2_copy;  /* as given by the caller */
	struct leat_node *node, *node2; /* where the paths begin, or NULL: see node.h. The operation holds them */
	char *place, *place2;          /* paths from the root of the export, for messages, if there are nodes */
	char *link_text;               /* NFS3_PATH_MAX + 1 bytes, allocated at the first READLINK */
	struct iovec iov;              /* of the payload of READLINK or SYMLINK */

	/* arguments of the operation; each operation uses some of them */
	struct leat_file **ret_file;
	struct leat_dir *dir;
	struct leat_dir **ret_dir;
	struct leat_node **ret_node;
	struct stat *ret_st;
	struct statvfs *ret_vfs;
	char *buf;                     /* readlink */
	const struct lt_op_asked *asked; /* see lt_op_call_prog() */
	void *ret_any;                 /* results of volume_admin/ */
	size_t cap;
	struct lt_acl_room *acl;       /* lists of NFSACL */
	struct leat_acl_entry *acl_entries;
	size_t acl_count;
	sattr3 sattr;
	sattrguard3 guard;
	int flags;
	mode_t mode;
	dev_t dev;
	unsigned tries;
	uint64_t refused_epoch;        /* of lt_striped_may_retry() */
	bool created;                  /* something was created: the operation is neither repeated nor undone */
	uint64_t range_end;            /* fallocate: end of the range; append: its bytes */
	uint64_t seq;                  /* fsync: unstable writes that the COMMIT covers; flush: changes; append: epoch */
	struct lt_op_volume block;
	struct lt_op_layout layout;
	struct lt_fh fh2;              /* rename: directory of the old name; link: the file */
	char name2[LT_NAME_MAX + 1];
	void (*stop_others)(struct lt_op *op); /* cancels calls in flight other than op->call; NULL: there are none */
	struct lt_striped *striped;    /* of a report: see striped.h */
	struct lt_range *range;        /* of an append: see striped_io.h */
	struct list waits;             /* for such a report */
	struct lt_stripe_sync *sync;   /* calls to several stripe servers: striped_sync.c */
	struct lt_removed *removed;    /* hidden name of a file that is open; see removed.h. The operation owns it */
	struct list opening;           /* in m->opening, if is_opening */
	bool is_opening;
};

/** lt_op_create - creates an operation, with copies of its paths
 * @path, @path2: may be NULL
 *
 * On failure @cb has been consumed.
 *
 * Return: 0, -EINVAL (no handle), -ENAMETOOLONG, -ENOMEM.
 */
must_check int lt_op_create(struct leat *m, const char *verb, const char *path, const char *path2,
			    struct leat_cb cb, struct lt_op **ret);

/** lt_op_free - frees an operation that is not submitted */
void lt_op_free(struct lt_op *op);

/** lt_op_submit - starts the operation at @first(op, 0)
 * An operation that walked a path and ends in -ESTALE restarts there once.
 * Return: 0, so that a public function can return it.
 */
int lt_op_submit(struct lt_op *op, lt_op_step first);

/** lt_op_stop - cancels what the operation has in flight: the usual lt_task.stop */
void lt_op_stop(struct lt_op *op);

/** lt_op_call - makes the NFS call @proc with op->args; results go to op->res
 * If the operation has been cancelled, it makes no call, and next(op, -ECANCELED) runs before it returns. So a step
 * does not touch @op after it, and does not loop over it.
 */
void lt_op_call(struct lt_op *op, uint32_t proc, lt_op_step next);

/** lt_op_call_prog - as lt_op_call(), for op->asked */
void lt_op_call_prog(struct lt_op *op, lt_op_step next);

/** lt_op_call_of - as lt_op_call(), for table[proc]: lt_acl_procs, where lists in results go to op->acl; lt_space_procs */
void lt_op_call_of(struct lt_op *op, const struct lt_proc *table, uint32_t proc, lt_op_step next);

/** lt_op_call_block - as lt_op_call(), for BLOCK of a leatd; @lane as for lt_call_start_block()
 * The next step calls lt_op_free_results() when it has used the results.
 */
void lt_op_call_block(struct lt_op *op, uint32_t proc, block_lane *lane, lt_op_step next);

/** lt_op_call_volume - as lt_op_call(), for VOLUME of the manager of a striped volume; lt_op_free_results() follows */
void lt_op_call_volume(struct lt_op *op, uint32_t proc, lt_op_step next);

/** lt_op_free_results - frees what the results of the last call refer to; also if there was no call. For BLOCK and VOLUME */
void lt_op_free_results(struct lt_op *op);

/** lt_op_call_dir - as lt_op_call(), for READDIR and READDIRPLUS with at most @reply_bytes of results */
void lt_op_call_dir(struct lt_op *op, uint32_t proc, uint32_t reply_bytes, lt_op_step next);

/** lt_op_call_setattr - SETATTR of @fh: op->sattr, if op->guard permits it */
void lt_op_call_setattr(struct lt_op *op, struct lt_fh *fh, lt_op_step next);

/** lt_op_call_readlink - READLINK of @fh; op->link_text receives the target, NUL-terminated */
void lt_op_call_readlink(struct lt_op *op, struct lt_fh *fh, lt_op_step next);

/** lt_op_judge_access - the outcome of ACCESS; Return: @err; -EACCES, explained: the server grants less than was asked for */
int lt_op_judge_access(struct lt_op *op, int err);

/** lt_op_finish - ends the operation and frees @op */
void lt_op_finish(struct lt_op *op, int64_t result);

/** lt_op_end - last step: ends the operation with the outcome of the previous step */
void lt_op_end(struct lt_op *op, int err);

/** lt_op_end_results - the same behind lt_op_free_results() */
void lt_op_end_results(struct lt_op *op, int err);

/** lt_op_name - copies the path of the operation, for messages of the object that it opens
 * The copy is valid wherever relative paths start later. Return: 0, -ENOMEM; or -ENAMETOOLONG, as lt_path_join().
 */
must_check int lt_op_name(const struct lt_op *op, char **ret);

/* walk.c */

/** lt_walk_start - walks the path of the operation
 * A relative path starts at op->node or, without a node, at the path of the URL or the directory of leat_fchdir(); an absolute
 * path starts at the root.
 * next(0): see struct lt_walk; next(-errno): -ENOENT, -ENOTDIR, -ELOOP, -ENAMETOOLONG, ...
 */
void lt_walk_start(struct lt_op *op, enum lt_walk_mode mode, lt_op_step next);

/** lt_walk_start_second - walks the second path of the operation, which starts at op->node2 if it starts at a node */
void lt_walk_start_second(struct lt_op *op, enum lt_walk_mode mode, lt_op_step next);

/** lt_walk_submit - starts the operation with the walk of its path; then next(op, err) as of lt_walk_start()
 *
 * Return: 0; -EINVAL: the operation has no path. It is freed, and cb.free has run.
 */
int lt_walk_submit(struct lt_op *op, enum lt_walk_mode mode, lt_op_step next);

/** lt_walk_submit_typed - as lt_walk_submit(); after a walk without error, walk.attr is valid */
int lt_walk_submit_typed(struct lt_op *op, enum lt_walk_mode mode, lt_op_step next);

/** lt_op_attr - gets the attributes of @fh from the cache
 * Return: false: they are not cached, or this operation must not use the cache.
 */
bool lt_op_attr(struct lt_op *op, struct lt_fh *fh, fattr3 *ret);

/** lt_walk_made - moves the walk from a directory to the object just created there
 * op->res: of CREATE, MKDIR, SYMLINK or MKNOD. If it has no handle (RFC 1813 section 3.3.8), the name is looked up.
 */
void lt_walk_made(struct lt_op *op, lt_op_step next);

/** lt_walk_set_attr - replaces the attributes of the object of the walk by those of a reply, or by none */
void lt_walk_set_attr(struct lt_walk *w, const post_op_attr *a);

/** lt_walk_getattr - makes sure that walk.attr is valid, then calls next(op, err) */
void lt_walk_getattr(struct lt_op *op, lt_op_step next);

#endif
