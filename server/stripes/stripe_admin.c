/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_admin.c - the commands of the manager: INFO, STAT, FENCE, REMOVE, LIST, SET_ASIDE
 *
 * Operation: A command of an older term than the newest one is refused, and told the newest one. One of a newer term
 *            first makes its term durable, and waits for commands of older terms that a worker executes, and for their
 *            WRITEs. INFO changes nothing: its term does not matter.
 *            FENCE and REMOVE have three steps: the durable record with what is to be cut off; then operations that began
 *            before have to end; then the cut. The connections of those that do not end soon are closed. If they do not end
 *            in time, the record stays, and so does the cut: the same command again goes on from there, and so does the next
 *            operation of the new epoch.
 * Memory:    Part of the request; LIST: its scratch memory.
 * Threads:   The reactor's.
 * Errors:    -errno, of which stripe_refuse() makes a status.
 */
#include <errno.h>
#include <string.h>

#include "stripe_service.h"

/* Under the lock. Return: PROG_MOVE: the command may begin; else as prog_proc.begin, PROG_REPLY with @ret_err */
static enum prog_begin enter(struct stripe_call *call, int *ret_err)
{
	call->is_command = true;
	*ret_err = stripe_turn_end(call);
	return *ret_err ? PROG_REPLY : stripe_turn_term(call, ret_err);
}

/* Replies to a command of an older term than @term, or with another error. @term: the newest one */
static enum prog_begin refuse(struct req *r, int err, uint64_t term)
{
	struct stripe_call *call = stripe_call(r);

	stripe_refuse(r, err);
	if (err == -EOWNERDEAD && stripe_order_of(r).proc == STRIPEPROC_LIST)
		call->res.list.STRIPELISTres_u.term = term;
	else if (err == -EOWNERDEAD)
		call->res.stat.STRIPESTATres_u.term = term;
	return PROG_REPLY;
}

/* ---- without an object ---------------------------------------------------------------------- */

enum prog_begin stripe_info_begin(struct req *r)
{
	struct stripe_call *call = stripe_call(r);
	STRIPEINFOresok *ok = &call->res.info.STRIPEINFOres_u.resok;
	enum prog_begin next = PROG_MOVE;
	int err;

	pthread_mutex_lock(&call->vol->lock);
	err = stripe_turn_end(call);
	if (!err && !(call->done & STRIPE_WORK_INFO))
		next = stripe_turn_take(call, STRIPE_WORK_INFO);
	ok->term = call->vol->manager.era;
	pthread_mutex_unlock(&call->vol->lock);
	if (err)
		return stripe_reply(r, err);
	if (next != PROG_MOVE)
		return next;
	call->res.info.status = STRIPE_OK;
	ok->verf = atomic_load(&call->vol->verf);
	return PROG_REPLY;
}

enum prog_begin stripe_list_begin(struct req *r)
{
	struct stripe_call *call = stripe_call(r);
	enum prog_begin next;
	uint64_t term;
	int err;

	pthread_mutex_lock(&call->vol->lock);
	next = enter(call, &err);
	if (next == PROG_MOVE && !(call->done & STRIPE_WORK_LIST))
		next = stripe_turn_take(call, STRIPE_WORK_LIST);
	term = call->vol->manager.era;
	pthread_mutex_unlock(&call->vol->lock);
	if (next == PROG_REPLY)
		return refuse(r, err, term);
	if (next != PROG_MOVE)
		return next;
	stripe_call(r)->res.list.status = STRIPE_OK;
	return PROG_REPLY;
}

/* ---- with one ------------------------------------------------------------------------------- */

static void on_time_out(struct rpcrdma_timer *t)
{
	struct stripe_call *call = container_of(t, struct stripe_call, timer);

	call->timed_out = true;
	if (stripe_unwait(call))
		req_resume(call->req);
}

/* The time to wait begins when there is something to wait for. */
static enum prog_begin wait_for_operations(struct stripe_call *call)
{
	if (!call->timer.fn) {
		stripe_count(call->req->reactor, stripe_fence_waits);
		call->timer.fn = on_time_out;
		rpcrdma_timer_set(call->req->reactor->loop.engine, &call->timer, stripe_times.drain_ns);
	}
	call->done = 0; /* they may change what STAT said */
	return stripe_turn_drain(call, &call->o->waiters);
}

/* The record is durable: what is left to do. */
static enum prog_begin settle(struct stripe_call *call, int *ret_err)
{
	const struct stripe_object *o = call->o;

	if (stripe_ops_older(&o->ops)) {
		*ret_err = call->timed_out ? -ETIMEDOUT : 0;
		return *ret_err ? PROG_REPLY : wait_for_operations(call);
	}
	if (o->rec.cut != STRIPE_NO_CUT)
		return stripe_turn_take(call, STRIPE_WORK_CUT | STRIPE_WORK_STAT);
	return call->done & STRIPE_WORK_STAT ? PROG_MOVE : stripe_turn_take(call, STRIPE_WORK_STAT);
}

/* Makes call->next durable. */
static enum prog_begin change(struct stripe_call *call)
{
	const struct stripe_object *o = call->o;
	unsigned cut = stripe_ops_any(&o->ops) ? 0 : STRIPE_WORK_CUT;

	stripe_count(call->req->reactor, stripe_fences);
	return stripe_turn_take(call, STRIPE_WORK_RECORD | cut | STRIPE_WORK_STAT);
}

static enum prog_begin step_stat(struct stripe_call *call, int *ret_err)
{
	(void)ret_err;
	return call->done & STRIPE_WORK_STAT ? PROG_MOVE : stripe_turn_take(call, STRIPE_WORK_STAT);
}

static enum prog_begin step_fence(struct stripe_call *call, int *ret_err)
{
	const STRIPEFENCEargs *a = &call->args.fence;
	const struct stripe_object *o = call->o;

	if (o->rec.removed || a->epoch < o->rec.epoch) {
		*ret_err = -ESTALE;
		return PROG_REPLY;
	}
	if (a->epoch == o->rec.epoch)
		return settle(call, ret_err);
	call->next = o->rec;
	call->next.epoch = a->epoch;
	if (a->cut && o->exists && a->bytes < call->next.cut) /* what an earlier cut has not done yet is still to be done */
		call->next.cut = a->bytes;
	return change(call);
}

static enum prog_begin step_remove(struct stripe_call *call, int *ret_err)
{
	const struct stripe_object *o = call->o;
	uint64_t until = call->args.remove.until;

	if (o->rec.removed && until <= o->rec.until)
		return settle(call, ret_err);
	call->next = o->rec;
	call->next.removed = true;
	call->next.until = MAX(until, o->rec.until);
	if (o->exists)
		call->next.cut = 0;
	return change(call);
}

/* An object in use is not set aside. One that was is a tombstone. */
static enum prog_begin step_aside(struct stripe_call *call, int *ret_err)
{
	const struct stripe_object *o = call->o;

	if (!o->exists || o->rec.removed)
		return step_stat(call, ret_err);
	if (stripe_ops_any(&o->ops)) {
		*ret_err = -ETIMEDOUT;
		return PROG_REPLY;
	}
	stripe_count(call->req->reactor, stripe_fences);
	return stripe_turn_take(call, STRIPE_WORK_ASIDE);
}

static enum prog_begin run_step(struct req *r, const stripe_name *name,
				enum prog_begin (*step)(struct stripe_call *call, int *ret_err))
{
	struct stripe_call *call = stripe_call(r);
	enum prog_begin next;
	uint64_t term;
	int err;

	pthread_mutex_lock(&call->vol->lock);
	next = enter(call, &err);
	if (next == PROG_MOVE) {
		next = stripe_turn_object(call, name);
		err = next == PROG_REPLY ? -ENOMEM : 0;
	}
	if (next == PROG_MOVE)
		next = step(call, &err);
	term = call->vol->manager.era;
	pthread_mutex_unlock(&call->vol->lock);
	if (next == PROG_REPLY)
		return refuse(r, err, term);
	if (next != PROG_MOVE)
		return next;
	call->res.stat.status = STRIPE_OK;
	call->res.stat.STRIPESTATres_u.stat = call->stat;
	return PROG_REPLY;
}

enum prog_begin stripe_stat_begin(struct req *r)
{
	return run_step(r, &stripe_call(r)->args.stat.name, step_stat);
}

enum prog_begin stripe_fence_begin(struct req *r)
{
	const STRIPEFENCEargs *a = &stripe_call(r)->args.fence;

	if (a->epoch < 2 || (a->cut && a->bytes > INT64_MAX))
		return stripe_reply(r, -EINVAL);
	return run_step(r, &a->name, step_fence);
}

enum prog_begin stripe_remove_begin(struct req *r)
{
	return run_step(r, &stripe_call(r)->args.remove.name, step_remove);
}

enum prog_begin stripe_aside_begin(struct req *r)
{
	return run_step(r, &stripe_call(r)->args.aside.name, step_aside);
}
