/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * striped_sync.c - files of a striped volume: their unstable writes, commits and reports
 *
 * Operation:  lt_striped_commit(): a new layout (striped_layout.c), if the handles are not good any more -> COMMIT of each stripe
 *             with unstable writes, and REPORT to the manager, all at once. Each stripe has write verifiers of its own
 *             (split/verfs.h). The promise is that of other files (file.c): after a loss, EIO until the file is closed.
 *             The size may be stable before the data is: if a stripe server crashes in between, the file has zeroes there,
 *             and fsync fails. Reports by the timer are not behind commits either.
 *
 *             If servers refuse handles, there is another round with a new layout: once, or more often if the epoch rises.
 *             A COMMIT that ends without reply says nothing about a loss: the next one does.
 *             Files of leat_volume_open() share what is unstable with other sessions (stripes/unstable.c), have no sizes
 *             to report, and promise nothing after a loss, which the program hears of.
 * Memory:     The calls of a round, for as long as it lasts; verifiers for as long as the file is open.
 * Threads:    The owner's.
 * Errors:     As file.c; a stripe server that is away is -EIO with its URL.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"
#include "op.h"
#include "striped_io.h"
#include "striped_layout.h"
#include "unstable.h"
#include "verfs.h"

#define LOST "a stripe server lost data that was written but not yet stable"

struct commit {
	struct lt_call call;
	struct lt_stripe_sync *of;
	uint32_t stripe;
	uint64_t upto;
	STRIPECOMMITargs args;
	STRIPECHANGEres res;
};

struct lt_stripe_sync {
	struct lt_op *op;
	lt_op_step next;
	unsigned tries;         /* rounds after the first one: lt_striped_may_retry() */
	uint64_t epoch;         /* of this round */
	uint64_t refused_epoch; /* of the last round that was refused */
	bool must_retry;        /* a server, or the manager, refused a handle, and there may be another round */
	bool is_reporting;      /* op->call is in flight */
	int err;
	unsigned flying;        /* of all calls, and 1 while they are sent */
	unsigned n;
	struct commit *commits;
};

int lt_striped_open(struct leat_file *f)
{
	if (f->striped)
		return 0;
	f->striped = lt_striped_get(f->m->volume, &f->fh);
	if (!f->striped)
		return -ENOMEM;
	f->striped->writers += lt_file_can_write(f);
	return 0;
}

void lt_striped_close(struct leat_file *f)
{
	if (f->striped && lt_file_can_write(f))
		lt_striped_leave(f->striped);
	lt_striped_put(f->striped);
	f->striped = NULL;
	free(f->verfs);
	f->verfs = NULL;
}

int lt_striped_wrote_unstable(struct leat_file *f, uint32_t stripe, uint64_t verf)
{
	if (f->unstable)
		return lt_unstable_wrote(f->unstable, f->striped->layout.width, stripe, verf);
	if (!f->verfs)
		f->verfs = calloc(f->striped->layout.width, sizeof(*f->verfs));
	if (!f->verfs) {
		f->lost = true; /* no one could tell */
		return -ENOMEM;
	}
	lt_verfs_changed(&f->verfs[stripe], verf);
	return 0;
}

/* Does the stripe need a COMMIT? @ret_upto: the last write that it would cover */
static bool is_unstable(const struct leat_file *f, uint32_t stripe, uint64_t *ret_upto)
{
	if (f->unstable)
		return lt_unstable_has(f->unstable, stripe, ret_upto);
	*ret_upto = f->verfs ? f->verfs[stripe].count : 0;
	return f->verfs && (f->verfs[stripe].n || f->verfs[stripe].lost);
}

static bool is_any_unstable(const struct leat_file *f)
{
	bool any = false;
	uint64_t upto;

	if (f->unstable) /* perhaps of another session: the layout may not be known here */
		return leat_volume_unstable_any(f->unstable);
	for (uint32_t i = 0; i < f->striped->layout.width && !any; i++)
		any = is_unstable(f, i, &upto);
	return any;
}

bool lt_striped_is_dirty(const struct leat_file *f)
{
	return f->striped && lt_file_can_write(f) && (is_any_unstable(f) || lt_striped_owes(f->striped));
}

/* ---- the end ---- */

static void finish(struct lt_stripe_sync *sync, int err)
{
	struct lt_op *op = sync->op;
	lt_op_step next = sync->next;
	struct leat_file *f = op->task.file;

	op->sync = NULL;
	op->stop_others = NULL;
	free(sync->commits);
	free(sync);
	if (!err && f->lost) {
		err = -EIO;
		lt_task_explain(&op->task, err, NULL, LOST);
	}
	next(op, err);
}

static void start_round(struct lt_op *op, int err);

static bool may_retry(struct lt_stripe_sync *sync)
{
	return sync->must_retry || lt_striped_may_retry(&sync->tries, &sync->refused_epoch, sync->epoch);
}

/* A call of a round has ended. The last one ends the round. */
static void end_call(struct lt_stripe_sync *sync)
{
	if (--sync->flying)
		return;
	sync->op->stop_others = NULL;
	if (sync->err || sync->op->task.cancelled) {
		finish(sync, sync->err ? sync->err : -ECANCELED);
	} else if (sync->must_retry) {
		sync->must_retry = false;
		lt_layout_refresh(sync->op, LT_STRIPED_WRITE_NO_LEASE, start_round);
	} else {
		finish(sync, 0);
	}
}

/* ---- the report ---- */

static void reported(struct lt_op *op, int err)
{
	struct lt_striped *s = op->task.file->striped;
	struct lt_stripe_sync *sync = op->sync;
	bool is_old = err && op->call.status == VOLUME_ERR_OLDEPOCH;

	sync->is_reporting = false;
	if (!err)
		lt_striped_reported(s, op->seq, &op->res.volreport.VOLREPORTres_u.resok, op->call.sent_ns);
	else if (is_old && may_retry(sync))
		sync->must_retry = true;
	else if (!sync->err)
		sync->err = err;
	lt_op_free_results(op);
	end_call(sync);
}

static void send_report(struct lt_stripe_sync *sync)
{
	struct lt_op *op = sync->op;
	const struct leat_file *f = op->task.file;
	struct lt_striped *s = f->striped;

	if (!lt_striped_owes(s))
		return;
	op->seq = s->wrote;
	op->args.volreport = lt_striped_report(s, f->is_closing && s->writers == 1);
	sync->flying++;
	sync->is_reporting = true;
	lt_op_call_volume(op, VOLUMEPROC_REPORT, reported);
}

/* ---- commits ---- */

static void take_commit(struct commit *c, int err)
{
	struct lt_stripe_sync *sync = c->of;
	struct lt_op *op = sync->op;
	struct leat_file *f = op->task.file;
	int first = err;

	if (!err) {
		if (f->unstable)
			lt_unstable_synced(f->unstable, c->stripe, c->res.STRIPECHANGEres_u.verf, c->upto);
		else if (lt_verfs_synced(&f->verfs[c->stripe], c->res.STRIPECHANGEres_u.verf, c->upto, true))
			f->lost = true;
		return;
	}
	if (lt_striped_needs_layout(c->call.status) && may_retry(sync)) {
		sync->must_retry = true;
		return;
	}
	err = lt_striped_away(&op->task, f->striped, c->stripe, &c->call, "COMMIT", err);
	if (err == first)
		lt_task_explain(&op->task, err, "COMMIT", "%s", lt_call_cause(&c->call));
	f->lost = f->lost || (c->call.status && err == first && !f->unstable);
	if (!sync->err)
		sync->err = err;
}

static void commit_done(struct rpcrdma_call *rpc, int err)
{
	struct lt_call *call = lt_call_ended(rpc, &err);
	struct lt_stripe_sync *sync;
	struct commit *c;

	if (!call)
		return;
	c = container_of(call, struct commit, call);
	sync = c->of;
	take_commit(c, err);
	c->of = NULL; /* has ended */
	end_call(sync);
}

static void stop_calls(struct lt_op *op)
{
	struct lt_stripe_sync *sync = op->sync;

	sync->flying++; /* the end of the last one frees them */
	for (unsigned i = 0; i < sync->n; i++) {
		if (sync->commits[i].of)
			lt_call_cancel(&sync->commits[i].call);
	}
	if (sync->is_reporting)
		lt_call_cancel(&op->call);
	end_call(sync);
}

/* Return: false: there is no server for the stripe */
static bool send_commit(struct lt_stripe_sync *sync, struct commit *c)
{
	struct leat_file *f = sync->op->task.file;
	struct lt_striped *s = f->striped;
	char why[120];
	struct lt_server *server;
	int rc = lt_volume_server(s->v, s->servers[c->stripe], &server, why, sizeof(why));

	if (rc) {
		sync->err = rc;
		lt_task_explain(&sync->op->task, rc, "COMMIT", "%s", why);
		return false;
	}
	c->of = sync;
	lt_call_init(&c->call, f->m, NULL);
	memcpy(c->args.at.handle, s->writes.v[c->stripe], sizeof(c->args.at.handle));
	sync->flying++;
	lt_call_start_stripes(&c->call, server, STRIPEPROC_COMMIT, &c->args, &c->args.at.lane, &c->res, NULL, 0,
			      f->m->url.stripe_timeo_ms, commit_done);
	return true;
}

static void send_round(struct lt_stripe_sync *sync)
{
	struct leat_file *f = sync->op->task.file;
	uint32_t width = f->striped->layout.width;

	free(sync->commits);
	sync->epoch = f->striped->writes.epoch;
	sync->n = 0;
	sync->commits = width ? calloc(width, sizeof(*sync->commits)) : NULL;
	if (width && !sync->commits) {
		finish(sync, -ENOMEM);
		return;
	}
	sync->op->stop_others = stop_calls;
	sync->flying = 1;
	for (uint32_t i = 0; i < width; i++) {
		struct commit *c = &sync->commits[sync->n];

		if (!is_unstable(f, i, &c->upto))
			continue;
		c->stripe = i;
		sync->n++;
		if (!send_commit(sync, c))
			break;
	}
	if (!sync->err)
		send_report(sync);
	end_call(sync);
}

/* ---- the beginning ---- */

static void start_round(struct lt_op *op, int err)
{
	if (err)
		finish(op->sync, err);
	else
		send_round(op->sync);
}

void lt_striped_commit(struct lt_op *op, lt_op_step next)
{
	struct leat_file *f = op->task.file;
	struct lt_stripe_sync *sync;

	if (f->unstable && lt_striped_open(f)) {
		next(op, -ENOMEM);
		return;
	}
	if (!lt_striped_is_dirty(f) && !f->lost) {
		next(op, 0);
		return;
	}
	sync = calloc(1, sizeof(*sync));
	if (!sync) {
		next(op, -ENOMEM);
		return;
	}
	sync->op = op;
	sync->next = next;
	op->sync = sync;
	if (lt_striped_is_dirty(f) && !lt_striped_handles(f->striped, true, lt_handle_now(f->m)))
		lt_layout_refresh(op, LT_STRIPED_WRITE_NO_LEASE, start_round);
	else
		send_round(sync);
}
