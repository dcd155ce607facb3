/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * meta.c - reads and changes the attributes of an object: stat, access, chmod, ... statvfs
 *
 * Operation:  Each: walk the path, then one call on the object found. See op.h for the form. The functions that take
 *             a mount and those that take a node differ in where the path begins (struct lt_from), and in whether
 *             they follow a symbolic link in the last component.
 * Memory:     op.c's.
 * Threads:    The public functions any (task.h); the steps the owner's.
 * Errors:     As the system calls of the same names.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "attr.h"
#include "handle.h"
#include "node.h"
#include "op.h"

/* ---- stat ---- */

int leat_aio_stat(struct leat *m, const char *path, struct stat *ret_st, struct leat_cb cb)
{
	return lt_node_submit_lookup(lt_from_mount(m), "stat", path, LT_WALK_FOLLOW, NULL, ret_st, cb);
}

int leat_aio_lstat(struct leat *m, const char *path, struct stat *ret_st, struct leat_cb cb)
{
	return lt_node_submit_lookup(lt_from_mount(m), "lstat", path, LT_WALK_NOFOLLOW, NULL, ret_st, cb);
}

int leat_aio_node_getattr(struct leat_node *at, const char *path, struct stat *ret_st, struct leat_cb cb)
{
	return lt_node_submit_lookup(lt_from_node(at), "getattr", path, LT_WALK_NOFOLLOW, NULL, ret_st, cb);
}

/* ---- attributes: truncate, chmod, chown, utimens, setattr ---- */

static void setattr_done(struct lt_op *op, int err)
{
	if (!err && op->ret_st) {
		lt_walk_set_attr(&op->walk, &op->res.setattr.SETATTR3res_u.resok.obj_wcc.after);
		op->created = true; /* no second attempt: the guard would refuse it */
	}
	lt_node_return(op, err);
}

static void setattr_call(struct lt_op *op, int err)
{
	if (err)
		lt_op_finish(op, err);
	else
		lt_op_call_setattr(op, &op->walk.fh, setattr_done);
}

static void setattr_typed(struct lt_op *op, int err)
{
	if (!err && op->walk.attr.type != NF3REG)
		err = op->walk.attr.type == NF3DIR ? -EISDIR : -EINVAL;
	if (err)
		lt_op_finish(op, err);
	else if (op->task.m->before_resize)
		op->task.m->before_resize(op, &op->walk.fh, setattr_call);
	else
		setattr_call(op, 0);
}

static void setattr_walked(struct lt_op *op, int err)
{
	if (err)
		lt_op_finish(op, err);
	else if (op->sattr.size.set_it)
		lt_walk_getattr(op, setattr_typed);
	else
		setattr_call(op, 0);
}

struct change {
	sattr3 sattr;
	sattrguard3 guard;
	struct stat *ret_st; /* receives the attributes afterwards, or NULL */
};

static int submit_setattr(struct lt_from from, const char *verb, const char *path, enum lt_walk_mode mode,
			  struct change change, struct leat_cb cb)
{
	struct lt_op *op;
	int rc;

	rc = lt_op_create_from(from, verb, path, NULL, cb, &op);
	if (rc)
		return rc;
	op->sattr = change.sattr;
	op->guard = change.guard;
	op->ret_st = change.ret_st;
	return lt_walk_submit(op, mode, setattr_walked);
}

/* Return: as the others, and the errors of lt_attr_set() */
int leat_aio_node_setattr(struct leat_node *at, const char *path, const struct leat_setattr *set,
			  struct stat *ret_st, struct leat_cb cb)
{
	struct change change = { .ret_st = ret_st };
	int rc = lt_attr_set(set, &change.sattr, &change.guard);

	if (rc)
		return lt_task_refuse(cb, rc);
	return submit_setattr(lt_from_node(at), "setattr", path, LT_WALK_NOFOLLOW, change, cb);
}

int leat_aio_truncate(struct leat *m, const char *path, uint64_t size, struct leat_cb cb)
{
	if (size > INT64_MAX)
		return lt_task_refuse(cb, -EINVAL);
	return submit_setattr(lt_from_mount(m), "truncate", path, LT_WALK_FOLLOW,
			      (struct change){ .sattr = lt_attr_size(size) }, cb);
}

int leat_aio_chmod(struct leat *m, const char *path, mode_t mode, struct leat_cb cb)
{
	return submit_setattr(lt_from_mount(m), "chmod", path, LT_WALK_FOLLOW,
			      (struct change){ .sattr = lt_attr_mode(mode) }, cb);
}

/* Changes a symbolic link itself, not its target. */
int leat_aio_chown(struct leat *m, const char *path, uid_t uid, gid_t gid, struct leat_cb cb)
{
	return submit_setattr(lt_from_mount(m), "chown", path, LT_WALK_NOFOLLOW,
			      (struct change){ .sattr = lt_attr_owner(uid, gid) }, cb);
}

static int submit_utimens(struct leat *m, const char *verb, const char *path, enum lt_walk_mode mode,
			  const struct timespec times[2], struct leat_cb cb)
{
	struct change change = { .ret_st = NULL };
	int rc = lt_attr_times(times, &change.sattr);

	return rc ? lt_task_refuse(cb, rc) : submit_setattr(lt_from_mount(m), verb, path, mode, change, cb);
}

/* Return: as the others; -EINVAL: nanoseconds out of range; -EOVERFLOW: before 1970 or after 2106. */
int leat_aio_utimens(struct leat *m, const char *path, const struct timespec times[2],
		     struct leat_cb cb)
{
	return submit_utimens(m, "utimens", path, LT_WALK_FOLLOW, times, cb);
}

/* Return: as leat_aio_utimens() */
int leat_aio_lutimens(struct leat *m, const char *path, const struct timespec times[2],
		      struct leat_cb cb)
{
	return submit_utimens(m, "lutimens", path, LT_WALK_NOFOLLOW, times, cb);
}

/* ---- access ---- */

static void access_judge(struct lt_op *op, int err)
{
	lt_op_finish(op, lt_op_judge_access(op, err));
}

static void access_ask(struct lt_op *op, int err)
{
	bool is_dir = op->walk.attr.type == NF3DIR;
	uint32_t want = 0;

	if (err || op->mode == F_OK) {
		lt_op_finish(op, err);
		return;
	}
	if (op->mode & R_OK)
		want |= ACCESS3_READ;
	if (op->mode & W_OK)
		want |= ACCESS3_MODIFY | ACCESS3_EXTEND;
	if (op->mode & X_OK)
		want |= is_dir ? ACCESS3_LOOKUP : ACCESS3_EXECUTE;
	op->args.access.object = lt_fh_wire(&op->walk.fh);
	op->args.access.access = want;
	lt_op_call(op, NFSPROC3_ACCESS, access_judge);
}

static int submit_access(struct lt_from from, const char *path, int mode, struct leat_cb cb)
{
	struct lt_op *op;
	int rc;

	if (mode & ~(R_OK | W_OK | X_OK))
		return lt_task_refuse(cb, -EINVAL);
	rc = lt_op_create_from(from, "access", path, NULL, cb, &op);
	if (rc)
		return rc;
	op->mode = (mode_t)mode;
	return lt_walk_submit_typed(op, LT_WALK_FOLLOW, access_ask);
}

/* Checks access for the user that the mount authenticates as. */
int leat_aio_access(struct leat *m, const char *path, int mode, struct leat_cb cb)
{
	return submit_access(lt_from_mount(m), path, mode, cb);
}

int leat_aio_node_access(struct leat_node *at, const char *path, int mode, struct leat_cb cb)
{
	return submit_access(lt_from_node(at), path, mode, cb);
}

/* ---- readlink ---- */

static void readlink_got(struct lt_op *op, int err)
{
	size_t len;

	if (err) {
		lt_op_finish(op, err);
		return;
	}
	len = MIN(strlen(op->link_text), op->cap);
	memcpy(op->buf, op->link_text, len);
	lt_op_finish(op, (int64_t)len);
}

static void readlink_typed(struct lt_op *op, int err)
{
	if (!err && op->walk.attr.type != NF3LNK)
		err = -EINVAL;
	if (err)
		lt_op_finish(op, err);
	else
		lt_op_call_readlink(op, &op->walk.fh, readlink_got);
}

static int submit_readlink(struct lt_from from, const char *path, char *buf, size_t cap, struct leat_cb cb)
{
	struct lt_op *op;
	int rc;

	if (!cap)
		return lt_task_refuse(cb, -EINVAL);
	rc = lt_op_create_from(from, "readlink", path, NULL, cb, &op);
	if (rc)
		return rc;
	op->buf = buf;
	op->cap = cap;
	return lt_walk_submit_typed(op, LT_WALK_NOFOLLOW, readlink_typed);
}

/* Truncates at @cap, as readlink(2) does. */
int leat_aio_readlink(struct leat *m, const char *path, char *buf, size_t cap, struct leat_cb cb)
{
	return submit_readlink(lt_from_mount(m), path, buf, cap, cb);
}

int leat_aio_node_readlink(struct leat_node *at, const char *path, char *buf, size_t cap, struct leat_cb cb)
{
	return submit_readlink(lt_from_node(at), path, buf, cap, cb);
}

/* ---- statvfs ---- */

static void statvfs_done(struct lt_op *op, int err)
{
	if (!err)
		lt_attr_statvfs(&op->res.fsstat.FSSTAT3res_u.resok, op->task.m->name_max,
				op->ret_vfs);
	lt_op_finish(op, err);
}

static void statvfs_walked(struct lt_op *op, int err)
{
	if (err) {
		lt_op_finish(op, err);
		return;
	}
	op->args.fsstat.fsroot = lt_fh_wire(&op->walk.fh);
	lt_op_call(op, NFSPROC3_FSSTAT, statvfs_done);
}

static int submit_statvfs(struct lt_from from, const char *path, struct statvfs *ret_st, struct leat_cb cb)
{
	struct lt_op *op;
	int rc;

	rc = lt_op_create_from(from, "statvfs", path, NULL, cb, &op);
	if (rc)
		return rc;
	op->ret_vfs = ret_st;
	return lt_walk_submit(op, LT_WALK_FOLLOW, statvfs_walked);
}

int leat_aio_statvfs(struct leat *m, const char *path, struct statvfs *ret_st, struct leat_cb cb)
{
	return submit_statvfs(lt_from_mount(m), path, ret_st, cb);
}

int leat_aio_node_statvfs(struct leat_node *at, const char *path, struct statvfs *ret_st, struct leat_cb cb)
{
	return submit_statvfs(lt_from_node(at), path, ret_st, cb);
}

/* ---- the NULL procedure ---- */

static void null_start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	lt_op_call(op, NFSPROC3_NULL, lt_op_end);
}

int leat_aio_null(struct leat *m, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_op_create(m, "null", NULL, NULL, cb, &op);

	return rc ? rc : lt_op_submit(op, null_start);
}
