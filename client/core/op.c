/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * op.c - creates, runs and frees metadata operations
 *
 * Operation:  see op.h.
 * Memory:     One allocation for the operation, one per path. lt_op_free() frees all of it before the callback runs.
 * Threads:    lt_op_create() and lt_op_submit() run on the caller's thread, the steps on the owner's.
 * Errors:     A failed call leaves its explanation in the task; the task turns it into leat_error(). A
 *             handle from the cache or from an earlier LOOKUP may be stale because the name now belongs to
 *             another file. The operation then restarts once, without the cache. An operation that has
 *             already created something does not restart, because it would create it twice.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "handle.h"
#include "op.h"

void lt_op_free(struct lt_op *op)
{
	free(op->acl);
	free(op->walk.text);
	free(op->link_text);
	free(op->path_copy);
	free(op->path2_copy);
	free(op->place);
	free(op->place2);
	free(op->removed);
	leat_node_put(op->node);
	leat_node_put(op->node2);
	free(op);
}

static void release_op(struct lt_task *t)
{
	lt_op_free(container_of(t, struct lt_op, task));
}

static int copy_path(const char *path, char **ret)
{
	char *copy;

	if (!path)
		return 0;
	if (strnlen(path, LT_PATH_MAX) >= LT_PATH_MAX)
		return -ENAMETOOLONG;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

void lt_op_stop(struct lt_op *op)
{
	if (op->stop_others)
		op->stop_others(op);
	else
		lt_call_cancel(&op->call);
}

static void stop_op(struct lt_task *t)
{
	lt_op_stop(container_of(t, struct lt_op, task));
}

static void start_op(struct lt_task *t)
{
	struct lt_op *op = container_of(t, struct lt_op, task);

	op->next(op, 0);
}

int lt_op_create(struct leat *m, const char *verb, const char *path, const char *path2,
		 struct leat_cb cb, struct lt_op **ret)
{
	struct lt_op *op;
	int rc;

	rc = lt_handle_check(m);
	if (rc)
		return lt_task_refuse(cb, rc);
	op = calloc(1, sizeof(*op));
	if (!op)
		return lt_task_refuse(cb, -ENOMEM);
	rc = copy_path(path, &op->path_copy);
	if (!rc)
		rc = copy_path(path2, &op->path2_copy);
	if (rc) {
		lt_handle_tell(m, path, NULL, verb, rc, "");
		lt_op_free(op);
		return lt_task_refuse(cb, rc);
	}
	op->task.m = m;
	op->task.cb = cb;
	op->task.verb = verb;
	op->task.path = op->path_copy;
	lt_call_init(&op->call, m, op->fh_room);
	*ret = op;
	return 0;
}

int lt_op_submit(struct lt_op *op, lt_op_step first)
{
	op->first = op->next = first;
	if (!op->task.stop)
		op->task.stop = stop_op;
	lt_task_submit(&op->task, start_op);
	return 0;
}

static void go_on(struct lt_op *op, int err)
{
	/* a program without statuses: the operation says more than the procedure */
	const char *what = op->call.proc->program->name ? lt_call_name(&op->call) : NULL;

	if (err)
		lt_task_explain(&op->task, err, what, "%s", lt_call_cause(&op->call));
	op->next(op, err);
}

static void call_done(struct rpcrdma_call *rpc, int err)
{
	struct lt_call *c = lt_call_ended(rpc, &err);

	if (c)
		go_on(container_of(c, struct lt_op, call), err);
}

/* Sets the step after the next call. Return: false: the operation is cancelled, and that step has run. */
static bool may_call(struct lt_op *op, lt_op_step next)
{
	op->next = next;
	if (likely(!op->task.cancelled))
		return true;
	lt_task_explain(&op->task, -ECANCELED, NULL, "cancelled");
	next(op, -ECANCELED);
	return false;
}

void lt_op_call(struct lt_op *op, uint32_t proc, lt_op_step next)
{
	if (may_call(op, next))
		lt_call_start(&op->call, proc, &op->args, &op->res, 0, NULL, 0, call_done);
}

void lt_op_call_prog(struct lt_op *op, lt_op_step next)
{
	const struct lt_op_asked *a = op->asked;

	if (!may_call(op, next))
		return;
	if (a->server)
		op->call.server = a->server;
	op->call.laned = (struct lt_call_laned){ 0 };
	op->call.rpc = (struct rpcrdma_call){ .args = a->args, .res = a->res };
	op->call.done = call_done;
	lt_call_prog(&op->call, a->proc, a->p, a->patience_ms);
}

void lt_op_call_of(struct lt_op *op, const struct lt_proc *table, uint32_t proc, lt_op_step next)
{
	if (may_call(op, next))
		lt_call_start_of(&op->call, table, proc, &op->args, &op->res, call_done);
}

void lt_op_call_block(struct lt_op *op, uint32_t proc, block_lane *lane, lt_op_step next)
{
	memset(&op->res, 0, sizeof(op->res)); /* lt_op_free_results() follows even if a cancel prevents the call */
	if (may_call(op, next))
		lt_call_start_block(&op->call, proc, &op->args, lane, &op->res, NULL, 0, call_done);
}

void lt_op_call_volume(struct lt_op *op, uint32_t proc, lt_op_step next)
{
	memset(&op->res, 0, sizeof(op->res)); /* as above */
	lt_op_call_of(op, lt_volume_procs, proc, next);
}

void lt_op_free_results(struct lt_op *op)
{
	if (op->call.proc)
		lt_call_free(&op->call);
}

void lt_op_call_dir(struct lt_op *op, uint32_t proc, uint32_t reply_bytes, lt_op_step next)
{
	if (may_call(op, next))
		lt_call_start(&op->call, proc, &op->args, &op->res, reply_bytes, NULL, 0, call_done);
}

void lt_op_call_setattr(struct lt_op *op, struct lt_fh *fh, lt_op_step next)
{
	SETATTR3args *args = &op->args.setattr;

	args->object = lt_fh_wire(fh);
	args->new_attributes = op->sattr;
	args->guard = op->guard;
	lt_op_call(op, NFSPROC3_SETATTR, next);
}

static void readlink_done(struct rpcrdma_call *rpc, int err)
{
	struct lt_call *c = lt_call_ended(rpc, &err);
	struct lt_op *op;

	if (!c)
		return;
	op = container_of(c, struct lt_op, call);
	if (!err) {
		uint32_t len = op->res.readlink.READLINK3res_u.resok.data.length;

		op->link_text[len] = '\0'; /* len <= NFS3_PATH_MAX: checked by the codec */
		if (!len || strlen(op->link_text) != len) {
			lt_task_explain(&op->task, -EREMOTEIO, "READLINK",
					"an empty target, or a NUL in it");
			op->next(op, -EREMOTEIO);
			return;
		}
	}
	go_on(op, err);
}

void lt_op_call_readlink(struct lt_op *op, struct lt_fh *fh, lt_op_step next)
{
	if (!op->link_text) {
		op->link_text = malloc(NFS3_PATH_MAX + 1);
		if (!op->link_text) {
			next(op, -ENOMEM);
			return;
		}
	}
	if (!may_call(op, next))
		return;
	op->args.readlink.symlink = lt_fh_wire(fh);
	op->iov.iov_base = op->link_text;
	op->iov.iov_len = NFS3_PATH_MAX;
	lt_call_start(&op->call, NFSPROC3_READLINK, &op->args, &op->res, 0, &op->iov, 1,
		      readlink_done);
}

int lt_op_judge_access(struct lt_op *op, int err)
{
	if (err || !(op->args.access.access & ~op->res.access.ACCESS3res_u.resok.access))
		return err;
	lt_task_explain(&op->task, -EACCES, "ACCESS", LT_NOT_GRANTED);
	return -EACCES;
}

void lt_op_finish(struct lt_op *op, int64_t result)
{
	bool stale = result == -ESTALE && op->call.status == NFS3ERR_STALE;

	if (stale && op->walked && !op->again && !op->created) {
		op->again = true;
		op->first(op, 0);
		return;
	}
	if (result == -ECANCELED && op->created)
		result = -EINPROGRESS;
	lt_task_finish(&op->task, result, release_op);
}

bool lt_op_attr(struct lt_op *op, struct lt_fh *fh, fattr3 *ret)
{
	struct leat *m = op->task.m;

	return !op->fresh && !op->again &&
	       lt_cache_attr(m->cache, lt_fh_wire(fh), lt_handle_now(m), ret);
}

void lt_op_end(struct lt_op *op, int err)
{
	lt_op_finish(op, err);
}

void lt_op_end_results(struct lt_op *op, int err)
{
	lt_op_free_results(op);
	lt_op_finish(op, err);
}

int lt_op_name(const struct lt_op *op, char **ret)
{
	const struct leat *m = op->task.m;

	if (!op->place && op->path_copy[0] != '/' && m->has_cwd)
		return lt_path_join(m->cwd_path, op->path_copy, ret);
	*ret = strdup(op->place ? op->place : op->path_copy);
	return *ret ? 0 : -ENOMEM;
}
