/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * removed.c - keeps open files usable after this mount has removed their last name
 *
 * Operation:  NFS has no open files: a handle is stale when the last name is gone. So unlink renames an open file to
 *             a hidden name in the same directory. A rename onto an open file first links the file to a hidden name,
 *             so that the name always exists. The last close of the file, or a failed open, removes the hidden name.
 *
 *             unlink   LOOKUP -> [GETATTR] -> SETATTR -> RENAME to the hidden name -> kept
 *             rename   LOOKUP -> [GETATTR] -> SETATTR -> LINK to the hidden name -> RENAME -> kept
 *                                                                                     `-> refused: REMOVE of it
 *
 *             Without an open file there is no LOOKUP. A server that cannot RENAME or LINK gets the plain call.
 *
 *             The call that creates the hidden name cannot be taken back, and must not be overtaken: a REMOVE that
 *             the server executes first would find nothing, and the name would stay. So if the operation is cancelled
 *             then, its caller gets -EINPROGRESS at once, and it goes on without a caller until the reply. Only the
 *             end of the mount cancels it.
 *
 *             cancelled --> the callback moves to another operation, which ends
 *                   `-----> reply -> kept --last close--> REMOVE
 *
 *             A crash leaves hidden names behind; a mount that finds one may remove it after a day without a change
 *             (the sweep). The ctime of the file is the sign of life of the mount that has it open. RFC 1813 does
 *             not promise that RENAME moves it, so SETATTR sets the access time first, and again every TOUCH_S. A
 *             file whose times this user may not set gets a name with LT_REMOVED_KEEP, which no sweep removes.
 *
 *             A listing sweeps only for a mount that has hidden a name itself: a program that only reads removes
 *             nothing. Others use `leat rm --leftovers`. The sweep sends SETATTR of the access time with the listed
 *             ctime as a guard. The new ctime is the time of the server; the name goes only if a day has passed
 *             between the two. So neither the clock of the client nor a change meanwhile leads to an early removal.
 *             Files of other mounts of the session are not swept at any age.
 * Memory:     struct lt_removed, one allocation, belongs to the operation (op->removed), then to m->removed.
 * Threads:    The owner's. Sweeps, touches and removals after a cancel have no caller: leat_umount() cancels them. It
 *             waits for an operation that goes on without a caller, within its time limit.
 * Errors:     If a call that creates the hidden name fails in transit, or is cancelled for lack of memory, the name may
 *             exist: it is kept as if it did. A removal that fails, or that the server executes before a call that
 *             has timed out (retry=soft), leaves the name to a later sweep.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/text.h"
#include "file.h"
#include "handle.h"
#include "removed.h"

#define DAY_S 86400
#define TOUCH_S (6 * 3600) /* a failed attempt or two are no danger */
#define SWEEPS_MAX 16u     /* in flight; the names come from the server */

struct lt_removed {
	struct list link;      /* in m->removed */
	struct lt_fh dir, fh;
	char name[LT_REMOVED_BYTES];
	int64_t result;        /* of the operation that removes the name */
	bool detached;         /* which is one of its own */
	/* while a call creates the name */
	void (*stop)(struct lt_task *t); /* of the operation before and after it */
	bool posted;           /* a message runs go_on_alone() */
	bool replied;          /* before that message, with `err` */
	int err;
};

/* Exactly the pattern of a name that a sweep removes, and nothing else. */
static bool is_hidden_name(const char *name)
{
	return text_is_hex_name(name, LT_REMOVED_PREFIX);
}

/* ---- what is open ---- */

static bool is_any_open(const struct leat *m)
{
	list_for_each(node, &m->files) {
		if (!container_of(node, struct leat_file, link)->is_dir)
			return true;
	}
	return !list_is_empty(&m->opening);
}

static bool is_open(const struct leat *m, const struct lt_fh *fh)
{
	list_for_each(node, &m->files) {
		if (lt_fh_is_equal(&container_of(node, struct leat_file, link)->fh, fh))
			return true;
	}
	list_for_each(node, &m->opening) {
		if (lt_fh_is_equal(&container_of(node, struct lt_op, opening)->walk.fh, fh))
			return true;
	}
	return false;
}

void lt_removed_opening(struct lt_op *op)
{
	struct leat *m = op->task.m;

	if (op->is_opening || op->flags & O_DIRECTORY)
		return;
	op->is_opening = true;
	list_add_tail(&m->opening, &op->opening);
}

void lt_removed_opened(struct lt_op *op)
{
	if (op->is_opening)
		list_del(&op->opening);
	op->is_opening = false;
}

static struct lt_removed *find_removed(const struct leat *m, const struct lt_fh *fh)
{
	list_for_each(node, &m->removed) {
		struct lt_removed *r = container_of(node, struct lt_removed, link);

		if (lt_fh_is_equal(&r->fh, fh))
			return r;
	}
	return NULL;
}

/* ---- the ctime, sign of life of an open file ---- */

static void touch(struct lt_op *op, struct lt_fh *fh, lt_op_step next)
{
	op->sattr = (sattr3){ .atime = { .set_it = SET_TO_SERVER_TIME } };
	lt_op_call_setattr(op, fh, next);
}

static void end_background(struct lt_op *op, int err)
{
	(void)err; /* no caller: leat_error() is about the operations of the program */
	lt_op_finish(op, 0);
}

static void end_touch(struct lt_op *op, int err)
{
	op->task.m->touching--;
	end_background(op, err);
}

static void touch_start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	touch(op, &op->fh2, end_touch);
}

/* Return: an operation without a caller; NULL: no memory, or the mount ends */
static struct lt_op *create_background(struct leat *m, const char *verb)
{
	struct lt_op *op;

	if (m->no_background || lt_op_create(m, verb, NULL, NULL, (struct leat_cb){ 0 }, &op))
		return NULL;
	op->task.background = true;
	return op;
}

static void start_touch(struct leat *m, const struct lt_removed *r)
{
	struct lt_op *op = create_background(m, "touch");

	if (!op)
		return;
	m->touching++;
	op->fh2 = r->fh;
	(void)lt_op_submit(op, touch_start);
}

static void touch_all(struct rpcrdma_timer *t)
{
	struct leat *m = container_of(t, struct leat, touch_timer);
	bool is_silent = m->touching; /* the server: the calls in flight do the same when it replies */

	m->touches = false;
	list_for_each(node, &m->removed) {
		if (!is_silent)
			start_touch(m, container_of(node, struct lt_removed, link));
	}
	if (!list_is_empty(&m->removed))
		lt_removed_start_touching(m);
}

void lt_removed_start_touching(struct leat *m)
{
	if (m->touches)
		return;
	m->touches = true;
	m->touch_timer.fn = touch_all;
	rpcrdma_timer_set(m->session->engine, &m->touch_timer, TOUCH_S * NS_PER_S);
}

/* ---- does the last name of a walk need a hidden one? ---- */

void lt_removed_forget(struct lt_op *op)
{
	free(op->removed);
	op->removed = NULL;
}

/* Return: 0, -ENOMEM, -EIO: no random numbers */
static int create_removed(struct lt_op *op, const struct lt_fh *fh)
{
	struct lt_removed *r = malloc(sizeof(*r));
	uint64_t random;

	if (!r)
		return -ENOMEM;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random)) {
		free(r);
		return -EIO;
	}
	r->dir = op->walk.fh;
	r->fh = *fh;
	r->detached = r->posted = r->replied = false;
	snprintf(r->name, sizeof(r->name), LT_REMOVED_PREFIX "%016llx", (unsigned long long)random);
	op->removed = r;
	return 0;
}

bool lt_removed_cannot(const struct lt_op *op)
{
	switch (op->call.status) {
	case NFS3ERR_PERM:
	case NFS3ERR_NOENT:
	case NFS3ERR_ACCES:
	case NFS3ERR_ROFS:
	case NFS3ERR_MLINK:
	case NFS3ERR_NAMETOOLONG:
	case NFS3ERR_NOTSUPP:
		return true;
	default:
		return false;
	}
}

/* The file is about to get its hidden name, and has a new ctime. */
static void own_touched(struct lt_op *op, int err)
{
	if (err && !lt_removed_cannot(op)) {
		lt_op_finish(op, err == -EINPROGRESS ? -ECANCELED : err); /* of the change nothing is sent */
		return;
	}
	if (err)
		strcat(op->removed->name, LT_REMOVED_KEEP);
	op->typed_next(op, 0);
}

/* Is it the hidden name of a file that this mount has open? */
static bool is_own_hidden(const struct lt_op *op)
{
	const struct lt_removed *r = find_removed(op->task.m, &op->removed->fh);

	return r && !strcmp(r->name, op->walk.part.name);
}

static void judge(struct lt_op *op, const fattr3 *a)
{
	if (a->type != NF3REG || a->nlink != 1) {
		lt_removed_forget(op);
		op->typed_next(op, 0);
	} else if (is_own_hidden(op)) {
		lt_op_finish(op, -EBUSY);
	} else {
		touch(op, &op->removed->fh, own_touched);
	}
}

static void got_attr(struct lt_op *op, int err)
{
	if (!err) {
		judge(op, &op->res.getattr.GETATTR3res_u.resok.obj_attributes);
		return;
	}
	lt_removed_forget(op);
	op->typed_next(op, 0); /* the change itself reports what is wrong */
}

static void looked_up(struct lt_op *op, int err)
{
	const LOOKUP3resok *ok = &op->res.lookup.LOOKUP3res_u.resok;
	struct lt_fh fh;

	if (!err)
		lt_fh_take(&fh, &ok->object);
	else if (!lt_removed_cannot(op)) {
		lt_op_finish(op, err);
		return;
	}
	if (err || !is_open(op->task.m, &fh)) {
		op->typed_next(op, 0); /* the change itself reports what is wrong */
		return;
	}
	err = create_removed(op, &fh);
	if (err) {
		lt_op_finish(op, err);
	} else if (ok->obj_attributes.attributes_follow) {
		judge(op, &ok->obj_attributes.post_op_attr_u.attributes);
	} else {
		op->args.getattr.object = lt_fh_wire(&op->removed->fh);
		lt_op_call(op, NFSPROC3_GETATTR, got_attr);
	}
}

void lt_removed_look(struct lt_op *op, lt_op_step next)
{
	lt_removed_forget(op); /* of a first attempt */
	if (!is_any_open(op->task.m)) {
		next(op, 0);
		return;
	}
	op->typed_next = next;
	op->args.lookup.what.dir = lt_fh_wire(&op->walk.fh);
	op->args.lookup.what.name = op->walk.part.name;
	lt_op_call(op, NFSPROC3_LOOKUP, looked_up);
}

/* ---- the hidden name ---- */

static diropargs3 hidden_name(struct lt_removed *r)
{
	diropargs3 where;

	where.dir = lt_fh_wire(&r->dir);
	where.name = r->name;
	return where;
}

/* The step after the call. */
static void hid(struct lt_op *op, int err)
{
	struct lt_removed *r = op->removed;

	if (r->posted) {
		r->replied = true;
		r->err = err;
		return;
	}
	op->task.stop = r->stop;
	op->typed_next(op, err);
}

/* There is no caller any more. */
static void hid_alone(struct lt_op *op, int err)
{
	if (op->call.status == NFS3_OK && err != -ECANCELED)
		lt_removed_keep(op, 0); /* done, or failed in transit */
	else
		lt_op_finish(op, 0);
}

static void go_on_alone(struct rpcrdma_msg *msg)
{
	struct lt_op *op = container_of(msg, struct lt_op, task.msg);
	struct lt_removed *r = op->removed;

	r->posted = false;
	op->task.cancelled = atomic_load(&op->task.m->ending);
	if (r->replied)
		hid(op, r->err);
	else if (op->task.cancelled)
		lt_call_cancel(&op->call);
}

static void tell_start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	lt_task_explain(&op->task, -EINPROGRESS, lt_call_name(&op->call), "cancelled");
	lt_op_finish(op, -EINPROGRESS);
}

/* Moves the callback, and what an error message says, from @op to @to. */
static void move_caller(struct lt_op *to, struct lt_op *op)
{
	to->task.cb = op->task.cb;
	to->task.path = op->task.path;
	to->task.path2 = op->task.path2;
	to->path_copy = op->path_copy;
	to->path2_copy = op->path2_copy;
	to->place = op->place;
	to->place2 = op->place2;
	to->call.rpc.prog = op->call.rpc.prog;
	to->call.rpc.proc = op->call.rpc.proc;
	op->task.cb = (struct leat_cb){ 0 };
	op->task.path = op->task.path2 = NULL;
	op->path_copy = op->path2_copy = op->place = op->place2 = NULL;
}

/* Ends @op for its caller. Return: false: no memory, or the mount ends */
static bool let_caller_go(struct lt_op *op)
{
	struct lt_op *told;

	if (lt_op_create(op->task.m, op->task.verb, NULL, NULL, (struct leat_cb){ 0 }, &told))
		return false;
	move_caller(told, op);
	op->typed_next = hid_alone;
	op->call.cancelled = true; /* NFS3ERR_JUKEBOX: the server is not asked again */
	(void)lt_op_submit(told, tell_start);
	return true;
}

/* A message lets the operation go on as if it were not cancelled, or cancels it if the mount ends. Until then
 * lt_task_cancel() does not find it again. */
static void stop_hiding(struct lt_task *t)
{
	struct lt_op *op = container_of(t, struct lt_op, task);
	bool is_alone = op->typed_next == hid_alone;

	if (!is_alone && !(op->call.rpc.sent && let_caller_go(op))) {
		lt_call_cancel(&op->call);
		return;
	}
	op->removed->posted = true;
	t->msg.fn = go_on_alone;
	rpcrdma_engine_post(t->m->session->engine, &t->msg);
}

static void hide(struct lt_op *op, uint32_t proc, lt_op_step next)
{
	op->typed_next = next;
	op->removed->stop = op->task.stop;
	op->task.stop = stop_hiding;
	lt_op_call(op, proc, hid);
}

void lt_removed_rename(struct lt_op *op, lt_op_step next)
{
	op->args.rename.from.dir = lt_fh_wire(&op->walk.fh);
	op->args.rename.from.name = op->walk.part.name;
	op->args.rename.to = hidden_name(op->removed);
	hide(op, NFSPROC3_RENAME, next);
}

void lt_removed_link(struct lt_op *op, lt_op_step next)
{
	op->args.link.file = lt_fh_wire(&op->removed->fh);
	op->args.link.link = hidden_name(op->removed);
	hide(op, NFSPROC3_LINK, next);
}

void lt_removed_keep(struct lt_op *op, int64_t result)
{
	struct lt_removed *r = op->removed;

	op->removed = NULL;
	list_add_tail(&op->task.m->removed, &r->link);
	op->task.m->hides = true;
	lt_removed_start_touching(op->task.m);
	lt_removed_settle(op, &r->fh, result); /* it may have been closed meanwhile */
}

static void remove_start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	lt_removed_undo(op, 0);
}

/* Removes the name by an operation of its own, because @op is cancelled. If that one is cancelled too, as all are, the
 * name stays for a later sweep. Return: false: it cannot be started */
static bool detach(struct lt_op *op)
{
	struct lt_removed *r = op->removed;
	struct lt_op *own = r->detached ? NULL : create_background(op->task.m, "remove");

	if (!own)
		return false;
	r->detached = true;
	own->removed = r;
	op->removed = NULL;
	(void)lt_op_submit(own, remove_start);
	return true;
}

static void removed(struct lt_op *op, int err)
{
	struct lt_fh fh = op->removed->fh;
	int64_t result = op->removed->result;

	/* otherwise another client has removed or renamed it */
	if (err && op->task.cancelled && detach(op) && result == -ECANCELED)
		result = -EINPROGRESS;
	lt_removed_forget(op);
	lt_removed_settle(op, &fh, result);
}

void lt_removed_undo(struct lt_op *op, int64_t result)
{
	op->removed->result = result;
	op->args.remove.object = hidden_name(op->removed);
	lt_op_call(op, NFSPROC3_REMOVE, removed);
}

void lt_removed_settle(struct lt_op *op, const struct lt_fh *fh, int64_t result)
{
	struct leat *m = op->task.m;
	struct lt_removed *r = find_removed(m, fh);

	if (!r || is_open(m, fh)) {
		lt_op_finish(op, result);
		return;
	}
	list_del(&r->link);
	op->removed = r;
	lt_removed_undo(op, result);
}

void lt_removed_drop(struct leat *m)
{
	while (!list_is_empty(&m->removed))
		free(container_of(list_pop(&m->removed), struct lt_removed, link));
}

/* ---- hidden names that others have left behind ---- */

static void end_sweep(struct lt_op *op, int err)
{
	op->task.m->sweeps--;
	end_background(op, err);
}

static void touched(struct lt_op *op, int err)
{
	const post_op_attr *a = &op->res.setattr.SETATTR3res_u.resok.obj_wcc.after;
	const fattr3 *now = &a->post_op_attr_u.attributes;

	if (err || !a->attributes_follow || now->type != NF3REG ||
	    (int64_t)now->ctime.seconds - op->guard.sattrguard3_u.obj_ctime.seconds <= DAY_S) {
		end_sweep(op, err);
		return;
	}
	op->args.remove.object.dir = lt_fh_wire(&op->fh2);
	op->args.remove.object.name = op->name2;
	lt_op_call(op, NFSPROC3_REMOVE, end_sweep);
}

static void sweep_start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	touch(op, &op->walk.fh, touched);
}

static bool is_in_use(const struct leat *m, const struct lt_fh *fh)
{
	return is_open(m, fh) || find_removed(m, fh);
}

/* Handles of different servers may be equal by chance: that name stays. */
static bool is_in_use_in_session(const struct leat *m, const struct lt_fh *fh)
{
	list_for_each(node, &m->session->servers) {
		list_for_each(at, &container_of(node, struct lt_server, link)->mounts) {
			if (is_in_use(container_of(at, struct leat, link), fh))
				return true;
		}
	}
	return is_in_use(m, fh); /* its server may not be in the list yet */
}

/* Is it certainly not in use by this session, and old by the clock of the client? */
static bool is_left_behind(const struct leat *m, const entryplus3 *e, const struct lt_fh *fh)
{
	const fattr3 *a = &e->name_attributes.post_op_attr_u.attributes;

	return a->type == NF3REG && (int64_t)time(NULL) - a->ctime.seconds > DAY_S && !is_in_use_in_session(m, fh);
}

void lt_removed_sweep(struct leat *m, const struct lt_fh *dir, const entryplus3 *e)
{
	struct lt_op *op;
	struct lt_fh fh;

	if (!m->hides || m->sweeps >= SWEEPS_MAX || !is_hidden_name(e->name) ||
	    !e->name_attributes.attributes_follow || !e->name_handle.handle_follows)
		return;
	lt_fh_take(&fh, &e->name_handle.post_op_fh3_u.handle);
	op = is_left_behind(m, e, &fh) ? create_background(m, "sweep") : NULL;
	if (!op)
		return;
	m->sweeps++;
	op->walk.fh = fh;
	op->fh2 = *dir;
	strcpy(op->name2, e->name);
	op->guard.check = TRUE;
	op->guard.sattrguard3_u.obj_ctime = e->name_attributes.post_op_attr_u.attributes.ctime;
	(void)lt_op_submit(op, sweep_start);
}
