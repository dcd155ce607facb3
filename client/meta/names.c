/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * names.c - creates, removes and renames: mkdir, rmdir, unlink, rename, link, symlink, mknod
 *
 * Operation:  Each: walk to the directory of the last component, check that component, then one call. A
 *             kernel refuses some paths by their text alone (".", "..", the root, a slash after the name
 *             of a file). These are refused here with the same errnos, because a server sees only a
 *             directory handle and a name. A path that begins at a node must have a name.
 *             Functions that create an object return a node of it if the caller wants one.
 * Memory:     op.c's.
 * Threads:    The public functions any (task.h); the steps the owner's.
 * Errors:     As the system calls of the same names.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "attr.h"
#include "handle.h"
#include "node.h"
#include "op.h"
#include "removed.h"

/* A path that begins at a node must have a name. */
static int check_name(struct lt_from from, const char *path)
{
	if (!from.node || (path && *path))
		return 0;
	return path ? -ENOENT : -EINVAL;
}

static int create_name_op(struct lt_from from, const char *verb, const char *path, const char *path2,
			  struct leat_cb cb, struct lt_op **ret)
{
	int rc = check_name(from, path);

	return rc ? lt_task_refuse(cb, rc) : lt_op_create_from(from, verb, path, path2, cb, ret);
}

/* Creates an operation that returns what it creates. */
static int create_making_op(struct lt_from from, const char *verb, const char *path, const char *path2,
			    struct leat_node **ret_node, struct stat *ret_st, struct leat_cb cb,
			    struct lt_op **ret)
{
	int rc = create_name_op(from, verb, path, path2, cb, ret);

	if (rc)
		return rc;
	(*ret)->ret_node = ret_node;
	(*ret)->ret_st = ret_st;
	return 0;
}

/* The object exists: is a node or are attributes of it wanted? */
static void made(struct lt_op *op, int err)
{
	if (err || (!op->ret_node && !op->ret_st))
		lt_op_finish(op, err);
	else
		lt_walk_made(op, lt_node_return);
}

/* The directory and last name of the walk, as arguments of the call. */
static diropargs3 last_name(struct lt_op *op)
{
	diropargs3 d = { .dir = lt_fh_wire(&op->walk.fh), .name = op->walk.part.name };

	return d;
}

/* Did the walk find a directory and a name in it? If not, finishes @op.
 * @refusal: error if the path ends in "." or "..", or is the root
 */
static bool has_last_name(struct lt_op *op, int err, int refusal)
{
	if (!err && op->walk.part.kind != LT_PATH_NAME)
		err = refusal;
	if (err)
		lt_op_finish(op, err);
	return !err;
}

/* ---- mkdir ---- */

static void mkdir_walked(struct lt_op *op, int err)
{
	if (!has_last_name(op, err, -EEXIST))
		return;
	op->args.mkdir.where = last_name(op);
	op->args.mkdir.attributes = lt_attr_mode(op->mode);
	lt_op_call(op, NFSPROC3_MKDIR, made);
}

static int submit_mkdir(struct lt_from from, const char *path, mode_t mode, struct leat_node **ret_node,
			struct stat *ret_st, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = create_making_op(from, "mkdir", path, NULL, ret_node, ret_st, cb, &op);

	if (rc)
		return rc;
	op->mode = mode;
	return lt_walk_submit(op, LT_WALK_PARENT, mkdir_walked);
}

int leat_aio_mkdir(struct leat *m, const char *path, mode_t mode, struct leat_cb cb)
{
	return submit_mkdir(lt_from_mount(m), path, mode, NULL, NULL, cb);
}

int leat_aio_node_mkdir(struct leat_node *at, const char *path, mode_t mode, struct leat_node **ret_node,
			struct stat *ret_st, struct leat_cb cb)
{
	return submit_mkdir(lt_from_node(at), path, mode, ret_node, ret_st, cb);
}

/* ---- rmdir ---- */

static void rmdir_walked(struct lt_op *op, int err)
{
	static const int refusals[] = {
		[LT_PATH_END] = -EBUSY,
		[LT_PATH_NAME] = 0,
		[LT_PATH_DOT] = -EINVAL,
		[LT_PATH_DOTDOT] = -ENOTEMPTY,
	};

	if (!has_last_name(op, err, refusals[op->walk.part.kind]))
		return;
	op->args.rmdir.object = last_name(op);
	lt_op_call(op, NFSPROC3_RMDIR, lt_op_end);
}

static int submit_rmdir(struct lt_from from, const char *path, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = create_name_op(from, "rmdir", path, NULL, cb, &op);

	return rc ? rc : lt_walk_submit(op, LT_WALK_PARENT, rmdir_walked);
}

int leat_aio_rmdir(struct leat *m, const char *path, struct leat_cb cb)
{
	return submit_rmdir(lt_from_mount(m), path, cb);
}

int leat_aio_node_rmdir(struct leat_node *at, const char *path, struct leat_cb cb)
{
	return submit_rmdir(lt_from_node(at), path, cb);
}

/* ---- unlink ---- */

/* With a trailing slash, unlink fails in any case; the type of the object selects the errno. */
static void unlink_slash(struct lt_op *op, int err)
{
	const post_op_attr *a = &op->res.lookup.LOOKUP3res_u.resok.obj_attributes;

	if (!err)
		err = a->attributes_follow && a->post_op_attr_u.attributes.type == NF3DIR ?
			-EISDIR : -ENOTDIR;
	lt_op_finish(op, err);
}

static void unlink_call(struct lt_op *op)
{
	op->args.remove.object = last_name(op);
	lt_op_call(op, NFSPROC3_REMOVE, lt_op_end);
}

static void unlink_hidden(struct lt_op *op, int err)
{
	if (op->call.status == NFS3_OK) {
		lt_removed_keep(op, err); /* done, or failed in transit */
		return;
	}
	if (!lt_removed_cannot(op)) {
		lt_op_finish(op, err); /* the plain call would destroy the data of an open file */
		return;
	}
	lt_removed_forget(op);
	unlink_call(op);
}

static void unlink_looked(struct lt_op *op, int err)
{
	(void)err; /* always 0 */
	if (op->removed)
		lt_removed_rename(op, unlink_hidden);
	else
		unlink_call(op);
}

static void unlink_walked(struct lt_op *op, int err)
{
	if (!has_last_name(op, err, -EISDIR))
		return;
	if (op->walk.part.slash) {
		op->args.lookup.what = last_name(op);
		lt_op_call(op, NFSPROC3_LOOKUP, unlink_slash);
		return;
	}
	lt_removed_look(op, unlink_looked);
}

static int submit_unlink(struct lt_from from, const char *path, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = create_name_op(from, "unlink", path, NULL, cb, &op);

	return rc ? rc : lt_walk_submit(op, LT_WALK_PARENT, unlink_walked);
}

int leat_aio_unlink(struct leat *m, const char *path, struct leat_cb cb)
{
	return submit_unlink(lt_from_mount(m), path, cb);
}

int leat_aio_node_unlink(struct leat_node *at, const char *path, struct leat_cb cb)
{
	return submit_unlink(lt_from_node(at), path, cb);
}

/* ---- rename ---- */

static void rename_done(struct lt_op *op, int err)
{
	if (!op->removed)
		lt_op_finish(op, err);
	else if (op->call.status == NFS3_OK)
		lt_removed_keep(op, err); /* done, or failed in transit */
	else
		lt_removed_undo(op, err);
}

static void rename_send(struct lt_op *op)
{
	op->args.rename.from.dir = lt_fh_wire(&op->fh2);
	op->args.rename.from.name = op->name2;
	op->args.rename.to = last_name(op);
	lt_op_call(op, NFSPROC3_RENAME, rename_done);
}

static void rename_linked(struct lt_op *op, int err)
{
	if (err && op->call.status == NFS3_OK) {
		lt_removed_keep(op, err); /* failed in transit */
		return;
	}
	if (err && !lt_removed_cannot(op)) {
		lt_op_finish(op, err);
		return;
	}
	if (err)
		lt_removed_forget(op);
	else
		op->created = true; /* the hidden name */
	rename_send(op);
}

static void rename_looked(struct lt_op *op, int err)
{
	(void)err; /* always 0 */
	if (op->removed)
		lt_removed_link(op, rename_linked);
	else
		rename_send(op);
}

static void rename_call(struct lt_op *op)
{
	if (lt_fh_is_equal(&op->fh2, &op->walk.fh) && !strcmp(op->name2, op->walk.part.name))
		rename_send(op);
	else
		lt_removed_look(op, rename_looked);
}

/* With a slash after either name, the source must be a directory. */
static void rename_typed(struct lt_op *op, int err)
{
	const post_op_attr *a = &op->res.lookup.LOOKUP3res_u.resok.obj_attributes;

	if (!err && a->attributes_follow && a->post_op_attr_u.attributes.type != NF3DIR)
		err = -ENOTDIR;
	if (err)
		lt_op_finish(op, err);
	else
		rename_call(op);
}

static void rename_walked_new(struct lt_op *op, int err)
{
	if (!has_last_name(op, err, -EBUSY))
		return;
	if (op->walk.part.slash || op->flags) {
		op->args.lookup.what.dir = lt_fh_wire(&op->fh2);
		op->args.lookup.what.name = op->name2;
		lt_op_call(op, NFSPROC3_LOOKUP, rename_typed);
		return;
	}
	rename_call(op);
}

static void rename_walked_old(struct lt_op *op, int err)
{
	if (!has_last_name(op, err, -EBUSY))
		return;
	op->fh2 = op->walk.fh;
	memcpy(op->name2, op->walk.part.name, sizeof(op->name2));
	op->flags = op->walk.part.slash;
	lt_walk_start_second(op, LT_WALK_PARENT, rename_walked_new);
}

/* Creates an operation that walks to @path2, the new name, as well. */
static int create_pair_op(struct lt_from from, struct lt_from to, const char *verb, const char *path,
			  const char *path2, struct leat_cb cb, struct lt_op **ret)
{
	int rc = path2 ? check_name(to, path2) : -EINVAL;

	if (rc)
		return lt_task_refuse(cb, rc);
	rc = lt_op_create_from(from, verb, path, path2, cb, ret);
	return rc ? rc : lt_op_set_target(*ret, to);
}

static int submit_rename(struct lt_from from, const char *path, struct lt_from to, const char *path2,
			 struct leat_cb cb)
{
	struct lt_op *op;
	int rc = check_name(from, path);

	if (rc)
		return lt_task_refuse(cb, rc);
	rc = create_pair_op(from, to, "rename", path, path2, cb, &op);
	return rc ? rc : lt_walk_submit(op, LT_WALK_PARENT, rename_walked_old);
}

int leat_aio_rename(struct leat *m, const char *from, const char *to, struct leat_cb cb)
{
	return submit_rename(lt_from_mount(m), from, lt_from_mount(m), to, cb);
}

int leat_aio_node_rename(struct leat_node *at, const char *from, struct leat_node *at2, const char *to,
			 struct leat_cb cb)
{
	return submit_rename(lt_from_node(at), from, lt_from_node(at2), to, cb);
}

/* ---- names without a trailing slash: link, symlink, mknod ---- */

static void slash_looked_up(struct lt_op *op, int err)
{
	lt_op_finish(op, err ? err : -EEXIST);
}

/* Can the last component of the walk become a file? If not, finishes @op. */
static bool is_new_file_name(struct lt_op *op, int err)
{
	if (!has_last_name(op, err, -EEXIST))
		return false;
	if (op->walk.part.slash) {
		op->args.lookup.what = last_name(op);
		lt_op_call(op, NFSPROC3_LOOKUP, slash_looked_up);
		return false;
	}
	return true;
}

static void link_walked_new(struct lt_op *op, int err)
{
	if (!is_new_file_name(op, err))
		return;
	op->args.link.file = lt_fh_wire(&op->fh2);
	op->args.link.link = last_name(op);
	lt_op_call(op, NFSPROC3_LINK, lt_op_end);
}

static void link_walked_old(struct lt_op *op, int err)
{
	if (err) {
		lt_op_finish(op, err);
		return;
	}
	op->fh2 = op->walk.fh;
	lt_walk_start_second(op, LT_WALK_PARENT, link_walked_new);
}

static int submit_link(struct lt_from from, const char *path, struct lt_from to, const char *path2,
		       struct leat_cb cb)
{
	struct lt_op *op;
	int rc = create_pair_op(from, to, "link", path, path2, cb, &op);

	return rc ? rc : lt_walk_submit(op, LT_WALK_NOFOLLOW, link_walked_old);
}

/* If @from is a symbolic link, the link itself gets the new name. */
int leat_aio_link(struct leat *m, const char *from, const char *to, struct leat_cb cb)
{
	return submit_link(lt_from_mount(m), from, lt_from_mount(m), to, cb);
}

int leat_aio_node_link(struct leat_node *n, struct leat_node *at, const char *path, struct leat_cb cb)
{
	return submit_link(lt_from_node(n), NULL, lt_from_node(at), path, cb);
}

static void symlink_walked(struct lt_op *op, int err)
{
	SYMLINK3args *args = &op->args.symlink;

	if (!is_new_file_name(op, err))
		return;
	args->where = last_name(op);
	args->symlink.symlink_attributes = lt_attr_mode(0777);
	/* set only now: a READLINK during the walk may have used op->iov */
	op->iov.iov_base = op->path2_copy;
	op->iov.iov_len = strlen(op->path2_copy);
	args->symlink.symlink_data.length = (uint32_t)op->iov.iov_len;
	args->symlink.symlink_data.iov = &op->iov;
	args->symlink.symlink_data.iovcnt = 1;
	lt_op_call(op, NFSPROC3_SYMLINK, made);
}

static int submit_symlink(struct lt_from from, const char *target, const char *path, struct leat_node **ret_node,
			  struct stat *ret_st, struct leat_cb cb)
{
	struct lt_op *op;
	int rc;

	if (!target)
		return lt_task_refuse(cb, -EINVAL);
	if (!*target)
		return lt_task_refuse(cb, -ENOENT);
	rc = create_making_op(from, "symlink", path, target, ret_node, ret_st, cb, &op);
	return rc ? rc : lt_walk_submit(op, LT_WALK_PARENT, symlink_walked);
}

int leat_aio_symlink(struct leat *m, const char *target, const char *path, struct leat_cb cb)
{
	return submit_symlink(lt_from_mount(m), target, path, NULL, NULL, cb);
}

int leat_aio_node_symlink(struct leat_node *at, const char *target, const char *path, struct leat_node **ret_node,
			  struct stat *ret_st, struct leat_cb cb)
{
	return submit_symlink(lt_from_node(at), target, path, ret_node, ret_st, cb);
}

/* ---- mknod ---- */

static void mknod_walked(struct lt_op *op, int err)
{
	MKNOD3args *args = &op->args.mknod;
	sattr3 attr = lt_attr_mode(op->mode);

	if (!is_new_file_name(op, err))
		return;
	args->where = last_name(op);
	switch (op->mode & S_IFMT) {
	case S_IFIFO:
		args->what.type = NF3FIFO;
		args->what.mknoddata3_u.pipe_attributes = attr;
		break;
	case S_IFSOCK:
		args->what.type = NF3SOCK;
		args->what.mknoddata3_u.pipe_attributes = attr;
		break;
	default:
		args->what.type = S_ISCHR(op->mode) ? NF3CHR : NF3BLK;
		args->what.mknoddata3_u.device.dev_attributes = attr;
		args->what.mknoddata3_u.device.spec.specdata1 = major(op->dev);
		args->what.mknoddata3_u.device.spec.specdata2 = minor(op->dev);
		break;
	}
	lt_op_call(op, NFSPROC3_MKNOD, made);
}

/* mknod(2) of a regular file is a CREATE. */
static void mknod_walked_file(struct lt_op *op, int err)
{
	if (!is_new_file_name(op, err))
		return;
	op->args.create.where = last_name(op);
	op->args.create.how.mode = GUARDED;
	op->args.create.how.createhow3_u.obj_attributes = lt_attr_mode(op->mode);
	lt_op_call(op, NFSPROC3_CREATE, made);
}

static int submit_mknod(struct lt_from from, const char *path, mode_t mode, dev_t dev, struct leat_node **ret_node,
			struct stat *ret_st, struct leat_cb cb)
{
	lt_op_step walked = mknod_walked;
	struct lt_op *op;
	int rc;

	switch (mode & S_IFMT) {
	case 0:
	case S_IFREG:
		walked = mknod_walked_file;
		break;
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		break;
	default:
		return lt_task_refuse(cb, S_ISDIR(mode) ? -EPERM : -EINVAL);
	}
	rc = create_making_op(from, "mknod", path, NULL, ret_node, ret_st, cb, &op);
	if (rc)
		return rc;
	op->mode = mode;
	op->dev = dev;
	return lt_walk_submit(op, LT_WALK_PARENT, walked);
}

/* Return: as the others; -EINVAL: a type that mknod(2) does not make; -EPERM: a directory. */
int leat_aio_mknod(struct leat *m, const char *path, mode_t mode, dev_t dev, struct leat_cb cb)
{
	return submit_mknod(lt_from_mount(m), path, mode, dev, NULL, NULL, cb);
}

int leat_aio_node_mknod(struct leat_node *at, const char *path, mode_t mode, dev_t dev, struct leat_node **ret_node,
			struct stat *ret_st, struct leat_cb cb)
{
	return submit_mknod(lt_from_node(at), path, mode, dev, ret_node, ret_st, cb);
}
