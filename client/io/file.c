/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * file.c - open files: unstable writes, fsync, close, and calls by handle
 *
 * Operation:  For files of a striped volume see striped_io.c and striped_sync.c. For others:
 *             Writes are UNSTABLE (FILE_SYNC or DATA_SYNC for O_SYNC and O_DSYNC): the server may keep the
 *             data in memory. Each reply carries the server's write verifier. It changes when the server
 *             may have lost such data (RFC 1813 section 4.8). fsync and close send COMMIT and compare the
 *             verifiers. The library keeps no copy of written data, so it cannot write again after a loss.
 *             Instead it reports EIO at the next fsync, at each later fsync until the file is closed, and
 *             at close. A program that still has the data can write it again through a newly opened file.
 *
 *             clean --WRITE unstable--> has_unstable --COMMIT, same verifier--> clean
 *                                             `-- any other verifier --> lost (for good)
 * Memory:     struct leat_file lives from open to the end of close.
 * Threads:    The owner's, except for the public functions.
 * Errors:     close waits for I/O in flight on the file; the callbacks of that I/O run first.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "attr.h"
#include "file.h"
#include "handle.h"
#include "op.h"
#include "readahead.h"
#include "removed.h"
#include "striped_io.h"
#include "sync.h"

static void go_on_closing(struct rpcrdma_msg *msg);

void lt_file_close_later(struct leat_file *f)
{
	f->close_op->task.msg.fn = go_on_closing;
	rpcrdma_engine_post(f->m->session->engine, &f->close_op->task.msg);
}

int lt_file_wrote(struct leat_file *f, stable_how asked, const WRITE3resok *ok)
{
	if (ok->committed < asked || ok->committed > FILE_SYNC)
		return -EIO;
	if (asked != UNSTABLE || ok->committed == FILE_SYNC)
		return 0; /* already as stable as the open flags require */
	if (f->has_unstable && memcmp(f->verf, ok->verf, sizeof(f->verf)) != 0)
		f->lost = true; /* earlier writes went to an earlier server instance */
	memcpy(f->verf, ok->verf, sizeof(f->verf));
	f->has_unstable = true;
	f->unstable_seq++;
	return 0;
}

static int explain_loss(struct lt_op *op)
{
	lt_task_explain(&op->task, -EIO, NULL,
			"the server lost data that was written but not yet stable");
	return -EIO;
}

static void start_commit(struct lt_op *op, lt_op_step next)
{
	struct leat_file *f = op->task.file;

	op->seq = f->unstable_seq;
	op->args.commit.file = lt_fh_wire(&f->fh);
	op->args.commit.offset = 0;
	op->args.commit.count = 0; /* the whole file */
	lt_op_call(op, NFSPROC3_COMMIT, next);
}

/* Evaluates COMMIT: is everything stable that was written before it was sent? */
static int judge_commit(struct lt_op *op, int err)
{
	struct leat_file *f = op->task.file;
	const COMMIT3resok *ok = &op->res.commit.COMMIT3res_u.resok;

	if (err == -ECANCELED)
		return err; /* a later COMMIT tells */
	if (err) {
		f->lost = f->lost || f->has_unstable;
		return err;
	}
	if (f->has_unstable && memcmp(f->verf, ok->verf, sizeof(f->verf)) != 0)
		f->lost = true;
	if (op->seq == f->unstable_seq)
		f->has_unstable = false;
	return f->lost ? explain_loss(op) : 0;
}

void lt_file_finish(struct lt_op *op, int64_t result)
{
	struct leat_file *f = op->task.file;

	lt_op_finish(op, result);
	if (f)
		lt_file_release(f);
}

static void fsync_end(struct lt_op *op, int err)
{
	lt_file_finish(op, err);
}

static void fsync_done(struct lt_op *op, int err)
{
	lt_file_finish(op, judge_commit(op, err));
}

static void fsync_start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	lt_file_hold(op->task.file);
	if (op->task.m->volume)
		lt_striped_commit(op, fsync_end);
	else
		start_commit(op, fsync_done);
}

int lt_file_op(struct leat_file *f, const char *verb, struct leat_cb cb, struct lt_op **ret)
{
	int rc;

	if (!f)
		return lt_task_refuse(cb, -EBADF);
	rc = lt_op_create(f->m, verb, NULL, NULL, cb, ret);
	if (rc)
		return rc;
	(*ret)->task.path = f->path;
	(*ret)->task.file = f;
	return 0;
}

/* Covers all writes that have run their callbacks. */
int leat_aio_fsync(struct leat_file *f, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_file_op(f, "fsync", cb, &op);

	if (rc)
		return rc;
	/* A server may refuse COMMIT to a reader, and a reader has nothing to commit. */
	return lt_op_submit(op, lt_file_can_write(f) ? fsync_start : lt_op_end);
}

void lt_file_drop(struct leat_file *f)
{
	list_del(&f->link);
	lt_readahead_destroy(f);
	lt_striped_close(f);
	pthread_mutex_destroy(&f->pos_lock);
	free(f->path);
	free(f);
}

static void close_finish(struct lt_op *op, int err)
{
	struct leat_file *f = op->task.file;
	struct lt_fh fh = f->fh;

	/* keep the file's path with the operation, for error messages */
	op->path2_copy = f->path;
	f->path = NULL;
	op->task.file = NULL;
	lt_file_drop(f);
	lt_removed_settle(op, &fh, err);
}

static void close_committed(struct lt_op *op, int err)
{
	close_finish(op, judge_commit(op, err));
}

static void close_idle(struct lt_op *op)
{
	struct leat_file *f = op->task.file;

	if (f->m->volume && !f->unstable)
		lt_striped_commit(op, close_finish);
	else if (f->has_unstable)
		start_commit(op, close_committed);
	else
		close_finish(op, f->lost ? explain_loss(op) : 0);
}

static void go_on_closing(struct rpcrdma_msg *msg)
{
	struct lt_op *op = container_of(msg, struct lt_op, task.msg);

	op->task.file->close_op = NULL;
	close_idle(op);
}

static void close_start(struct lt_op *op, int err)
{
	struct leat_file *f = op->task.file;

	(void)err; /* a first step */
	f->is_closing = true;
	if (f->busy)
		f->close_op = op;
	else
		close_idle(op);
}

/* A close that waits for other operations on its file cancels these: cancelling waits for no server. */
static void stop_close(struct lt_task *t)
{
	struct lt_op *op = container_of(t, struct lt_op, task);

	if (op->task.file && op->task.file->close_op == op)
		(void)lt_task_cancel(t->m, lt_task_is_of_file, op->task.file);
	else
		lt_op_stop(op);
}

/* The file must not be used again, whatever the outcome. */
int leat_aio_close(struct leat_file *f, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_file_op(f, "close", cb, &op);

	if (rc)
		return rc;
	op->task.stop = stop_close;
	return lt_op_submit(op, close_start);
}

static void setattr_done(struct lt_op *op, int err)
{
	struct lt_striped *s = op->task.file->striped;

	if (!err && s && op->sattr.size.set_it)
		lt_striped_resized(s);
	lt_file_finish(op, err);
}

static void send_setattr(struct lt_op *op, int err)
{
	if (err)
		setattr_done(op, err);
	else
		lt_op_call_setattr(op, &op->task.file->fh, setattr_done);
}

static void wait_report(struct lt_op *op, int err)
{
	if (err)
		setattr_done(op, err);
	else
		lt_striped_wait_report(op->task.file->striped, op, send_setattr);
}

/* In a striped volume a report raises the size and sets the time of the last change. One that came later would replace
 * what the caller sets. */
static bool comes_after_reports(const struct lt_op *op)
{
	return op->task.file->striped && (op->sattr.size.set_it || op->sattr.mtime.set_it != DONT_CHANGE);
}

static void setattr_start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	lt_file_hold(op->task.file);
	lt_readahead_drop(op->task.file);
	if (comes_after_reports(op))
		lt_striped_commit(op, wait_report);
	else
		send_setattr(op, 0);
}

static int submit_setattr(struct leat_file *f, const char *verb, const sattr3 *sattr, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_file_op(f, verb, cb, &op);

	if (rc)
		return rc;
	op->sattr = *sattr;
	return lt_op_submit(op, setattr_start);
}

int leat_aio_ftruncate(struct leat_file *f, uint64_t size, struct leat_cb cb)
{
	const sattr3 sattr = lt_attr_size(size);

	if (f && (!lt_file_can_write(f) || f->is_dir || size > INT64_MAX))
		return lt_task_refuse(cb, -EINVAL);
	return submit_setattr(f, "ftruncate", &sattr, cb);
}

/* Works with any access mode of the file. */
int leat_aio_fchmod(struct leat_file *f, mode_t mode, struct leat_cb cb)
{
	const sattr3 sattr = lt_attr_mode(mode);

	return submit_setattr(f, "fchmod", &sattr, cb);
}

int leat_aio_fchown(struct leat_file *f, uid_t uid, gid_t gid, struct leat_cb cb)
{
	const sattr3 sattr = lt_attr_owner(uid, gid);

	return submit_setattr(f, "fchown", &sattr, cb);
}

/* Return: as leat_aio_utimens() */
int leat_aio_futimens(struct leat_file *f, const struct timespec times[2], struct leat_cb cb)
{
	sattr3 sattr;
	int rc = lt_attr_times(times, &sattr);

	if (rc)
		return lt_task_refuse(cb, rc);
	return submit_setattr(f, "futimens", &sattr, cb);
}

static void fstat_done(struct lt_op *op, int err)
{
	if (!err)
		lt_attr_stat_of(op->task.m, &op->walk.fh, &op->walk.attr, op->ret_st);
	lt_file_finish(op, err);
}

static void fstat_start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	lt_file_hold(op->task.file);
	op->walk.fh = op->task.file->fh;
	lt_walk_getattr(op, fstat_done);
}

static int submit_fstat(struct leat_file *f, bool fresh, struct stat *ret_st, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_file_op(f, "fstat", cb, &op);

	if (rc)
		return rc;
	op->fresh = fresh;
	op->ret_st = ret_st;
	return lt_op_submit(op, fstat_start);
}

int leat_aio_fstat(struct leat_file *f, struct stat *ret_st, struct leat_cb cb)
{
	return submit_fstat(f, false, ret_st, cb);
}

int lt_file_stat_now(struct leat_file *f, struct stat *ret_st, struct leat_cb cb)
{
	return submit_fstat(f, true, ret_st, cb);
}

static void change_dir(void *of, void *arg)
{
	struct leat *m = of;
	const struct leat_file *dir = *(const struct leat_file **)arg;
	const int half = (int)sizeof(m->cwd_path) / 2 - 2;

	m->has_cwd = dir != NULL;
	if (dir)
		m->cwd = dir->fh;
	pthread_mutex_lock(&m->lock);
	m->cwd_path[0] = '\0';
	if (dir && dir->path[0] == '/')
		snprintf(m->cwd_path, sizeof(m->cwd_path), "%.*s", 2 * half, dir->path);
	else if (dir)
		snprintf(m->cwd_path, sizeof(m->cwd_path), "/%.*s/%.*s", half, m->path, half, dir->path);
	pthread_mutex_unlock(&m->lock);
}

int leat_fchdir(struct leat *m, const struct leat_file *dir)
{
	int rc = m ? lt_session_check(m->session) : -EINVAL;

	if (rc)
		return rc;
	lt_handle_untold();
	rc = dir && !dir->is_dir ? -ENOTDIR : lt_sync_run(m->session, change_dir, m, &dir);
	return lt_sync_refused(m, __func__, rc);
}
