/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * open.c - opens and creates files
 *
 * Operation:  NFS has no open call. The checks of open(2) are made with other calls:
 *
 *             without O_CREAT       walk -> check type -> ACCESS -> [truncate] -> file
 *             O_CREAT               walk -+-> as above
 *                                         `-> missing: CREATE GUARDED with the mode -> file
 *                                             (EEXIST: another client created it; walk again)
 *             O_CREAT | O_EXCL      walk to the directory -> CREATE EXCLUSIVE with a random
 *                                   verifier, so that a retransmitted call finds only its own
 *                                   file -> SETATTR mode -> file
 *
 *             As with open(2), a file that this operation created may be used whatever its mode: there is
 *             no ACCESS for it.
 *             The last component is always looked up at the server. Close-to-open consistency requires
 *             this: an open after another client's close sees the data which that client wrote.
 * Memory:     The file is allocated at the end; the caller sees nothing of it before.
 * Threads:    The steps on the owner's.
 * Errors:     As open(2): EACCES, EEXIST, EISDIR, ELOOP, ENOENT, ENOTDIR, ... The mode is used as given;
 *             the umask of the process is not applied.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>

#include "attr.h"
#include "file.h"
#include "handle.h"
#include "node.h"
#include "op.h"
#include "removed.h"

#define RACES_MAX 8u /* limit of retries if others create and remove the same name */

static void open_walk(struct lt_op *op, int err);

static bool wants_write(const struct lt_op *op)
{
	return (op->flags & O_ACCMODE) != O_RDONLY;
}

static int create_file(const struct lt_op *op, struct leat_file **ret)
{
	struct leat_file *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	err = lt_op_name(op, &f->path);
	if (!err) {
		err = -pthread_mutex_init(&f->pos_lock, NULL);
		if (err)
			free(f->path);
	}
	if (err) {
		free(f);
		return err;
	}
	f->m = op->task.m;
	f->fh = op->walk.fh;
	f->flags = op->flags;
	f->sequential_pos = UINT64_MAX;
	f->is_dir = op->walk.has_attr && op->walk.attr.type == NF3DIR;
	*ret = f;
	return 0;
}

/* Ends the open. The file may have got a hidden name meanwhile; a failed open removes it, as a close would. */
static void open_end(struct lt_op *op, int err)
{
	lt_removed_opened(op);
	if (err)
		lt_removed_settle(op, &op->walk.fh, err);
	else
		lt_op_finish(op, 0);
}

static void open_return(struct lt_op *op, int err)
{
	struct leat_node *node = NULL;
	struct leat_file *f = NULL;

	if (!err && op->ret_node)
		err = lt_node_of_walk(op, &node);
	if (!err)
		err = create_file(op, &f);
	if (err) {
		leat_node_put(node);
		open_end(op, err);
		return;
	}
	list_add_tail(&f->m->files, &f->link);
	*op->ret_file = f;
	if (node)
		*op->ret_node = node;
	if (op->ret_st)
		lt_attr_stat_of(f->m, &op->walk.fh, &op->walk.attr, op->ret_st);
	open_end(op, 0);
}

static void open_finish(struct lt_op *op, int err)
{
	if (!err && op->ret_st)
		lt_walk_getattr(op, open_return);
	else
		open_return(op, err);
}

/* After a SETATTR */
static void open_changed(struct lt_op *op, int err)
{
	op->created |= !err; /* changed, if not created */
	if (!err)
		lt_walk_set_attr(&op->walk, &op->res.setattr.SETATTR3res_u.resok.obj_wcc.after);
	open_finish(op, err);
}

static void open_cut(struct lt_op *op, int err)
{
	if (err) {
		open_finish(op, err);
		return;
	}
	op->sattr = lt_attr_size(0);
	lt_op_call_setattr(op, &op->walk.fh, open_changed);
}

static void open_truncate(struct lt_op *op, int err)
{
	if (err || !(op->flags & O_TRUNC) || op->created || op->walk.attr.type != NF3REG) {
		open_finish(op, err);
		return;
	}
	if (op->task.m->before_resize)
		op->task.m->before_resize(op, &op->walk.fh, open_cut);
	else
		open_cut(op, 0);
}

static void open_judge_access(struct lt_op *op, int err)
{
	open_truncate(op, lt_op_judge_access(op, err));
}

/* The object exists: checks whether it may be opened in this way. */
static void open_judge(struct lt_op *op, int err)
{
	ftype3 type = op->walk.attr.type;
	uint32_t access = 0;

	if (!err) {
		if (type == NF3LNK && (op->flags & O_DIRECTORY || !(op->flags & O_PATH)))
			err = -ELOOP; /* only with O_NOFOLLOW does a walk end at a link */
		else if (op->flags & O_DIRECTORY && type != NF3DIR)
			err = -ENOTDIR;
		else if (type == NF3DIR && (wants_write(op) || op->flags & (O_CREAT | O_TRUNC)))
			err = -EISDIR;
		else if (type != NF3DIR && type != NF3REG && !(op->flags & O_PATH))
			err = -ENXIO; /* pipes and devices work on their own host only */
	}
	if (err) {
		open_finish(op, err);
		return;
	}
	if (op->flags & O_PATH) {
		open_finish(op, 0);
		return;
	}
	if ((op->flags & O_ACCMODE) != O_WRONLY)
		access |= ACCESS3_READ;
	if (wants_write(op) || op->flags & O_TRUNC)
		access |= ACCESS3_MODIFY;
	op->args.access.object = lt_fh_wire(&op->walk.fh);
	op->args.access.access = access;
	lt_op_call(op, NFSPROC3_ACCESS, open_judge_access);
}

static void open_set_mode(struct lt_op *op, int err)
{
	if (err || !(op->flags & O_EXCL)) {
		open_finish(op, err);
		return;
	}
	/* with EXCLUSIVE the server sets the attributes; the times contain the verifier */
	op->sattr = lt_attr_mode(op->mode);
	op->sattr.atime.set_it = SET_TO_SERVER_TIME;
	op->sattr.mtime.set_it = SET_TO_SERVER_TIME;
	lt_op_call_setattr(op, &op->walk.fh, open_changed);
}

static void open_created(struct lt_op *op, int err)
{
	if (err == -EEXIST && !(op->flags & O_EXCL) && op->tries++ < RACES_MAX) {
		open_walk(op, 0);
		return;
	}
	if (err)
		open_finish(op, err);
	else
		lt_walk_made(op, open_set_mode);
}

static void open_create(struct lt_op *op)
{
	CREATE3args *args = &op->args.create;

	args->where.dir = lt_fh_wire(&op->walk.fh);
	args->where.name = op->walk.part.name;
	if (op->flags & O_EXCL) {
		args->how.mode = EXCLUSIVE;
		memcpy(args->how.createhow3_u.verf, op->name2, NFS3_CREATEVERFSIZE);
	} else {
		args->how.mode = GUARDED;
		args->how.createhow3_u.obj_attributes = lt_attr_mode(op->mode);
	}
	lt_op_call(op, NFSPROC3_CREATE, open_created);
}

static void open_walked(struct lt_op *op, int err)
{
	if (op->flags & O_CREAT) {
		if (op->walk.part.slash && op->walk.part.last && (!err || op->walk.missing))
			err = -EISDIR;
		else if (op->walk.missing && err == -ENOENT) {
			open_create(op);
			return;
		}
	}
	if (err) {
		open_end(op, err);
		return;
	}
	lt_walk_getattr(op, open_judge);
}

static void open_walked_excl(struct lt_op *op, int err)
{
	if (!err && op->walk.part.slash)
		err = -EISDIR;
	else if (!err && op->walk.part.kind != LT_PATH_NAME)
		err = -EEXIST;
	if (err)
		open_end(op, err);
	else
		open_create(op);
}

static void open_walk(struct lt_op *op, int err)
{
	bool excl = op->flags & O_CREAT && op->flags & O_EXCL;

	(void)err; /* a first step */
	lt_removed_opening(op);
	if (excl)
		lt_walk_start(op, LT_WALK_PARENT, open_walked_excl);
	else
		lt_walk_start(op, op->flags & O_NOFOLLOW ? LT_WALK_NOFOLLOW : LT_WALK_FOLLOW, open_walked);
}

/* Supported flags: the access mode, O_CREAT, O_EXCL, O_TRUNC, O_APPEND (by leat_write), O_DIRECTORY, O_NOFOLLOW,
 * O_SYNC, O_DSYNC.
 * O_PATH opens an object of any type, with O_NOFOLLOW also a link, for its attributes. A directory can then be passed
 * to leat_fchdir(), which needs no read permission. O_PATH ignores all flags except O_DIRECTORY and O_NOFOLLOW.
 * O_CLOEXEC, O_DIRECT, O_LARGEFILE, O_NOATIME, O_NOCTTY and O_NONBLOCK are accepted and have no effect.
 *
 * Return: 0; -EINVAL: access mode, or O_DIRECTORY with O_CREAT; -EOPNOTSUPP: O_TMPFILE; -ENAMETOOLONG, -ENOMEM. */
static int submit_open(struct lt_from from, const char *path, int flags, mode_t mode, struct leat_node **ret_node,
		       struct stat *ret_st, struct leat_file **ret_file, struct leat_cb cb)
{
	struct lt_op *op;
	int rc;

	if (flags & O_PATH)
		flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW;
	if ((!path && !from.node) || (flags & O_ACCMODE) == O_ACCMODE)
		return lt_task_refuse(cb, -EINVAL);
	if ((flags & O_TMPFILE) == O_TMPFILE)
		return lt_task_refuse(cb, -EOPNOTSUPP);
	if (flags & O_CREAT && flags & O_DIRECTORY)
		return lt_task_refuse(cb, -EINVAL);
	if (!(flags & O_CREAT))
		flags &= ~O_EXCL;
	rc = lt_op_create_from(from, "open", path, NULL, cb, &op);
	if (rc)
		return rc;
	op->flags = flags;
	op->mode = mode;
	op->fresh = true;
	op->ret_file = ret_file;
	op->ret_node = ret_node;
	op->ret_st = ret_st;
	if (flags & O_EXCL &&
	    getrandom(op->name2, NFS3_CREATEVERFSIZE, 0) != NFS3_CREATEVERFSIZE) {
		lt_op_free(op);
		return lt_task_refuse(cb, -EIO);
	}
	return lt_op_submit(op, open_walk);
}

int leat_aio_open(struct leat *m, const char *path, int flags, mode_t mode,
		  struct leat_file **ret_file, struct leat_cb cb)
{
	return submit_open(lt_from_mount(m), path, flags, mode, NULL, NULL, ret_file, cb);
}

int leat_aio_node_open(struct leat_node *at, const char *path, int flags, mode_t mode, struct leat_file **ret_file,
		       struct leat_cb cb)
{
	return submit_open(lt_from_node(at), path, flags, mode, NULL, NULL, ret_file, cb);
}

int leat_aio_node_create(struct leat_node *at, const char *path, int flags, mode_t mode, struct leat_node **ret_node,
			 struct stat *ret_st, struct leat_file **ret_file, struct leat_cb cb)
{
	if (flags & O_PATH || !path || !*path)
		return lt_task_refuse(cb, flags & O_PATH || !path ? -EINVAL : -ENOENT);
	return submit_open(lt_from_node(at), path, flags | O_CREAT, mode, ret_node, ret_st, ret_file, cb);
}
