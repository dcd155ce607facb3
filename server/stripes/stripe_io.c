/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_io.c - READ, WRITE and COMMIT of stripes
 *
 * Operation: enter() is the last thing before data moves. Under one lock it compares the handle's epoch with the object's,
 *            its connection with the newest of its lane, and counts the operation. What waited in the transport, for
 *            admission or for buffers is refused there, if its time, its epoch or its connection has ended meanwhile.
 *            Handles with a term are the manager's own, which is checked first, as that of a command.
 *            A READ or COMMIT of an object that does not exist needs no file; a WRITE creates it.
 * Durability: The name of an object is durable before a WRITE with sync or a COMMIT of it is acknowledged. A failed sync
 *            changes the verifier before it is reported. A WRITE returns the verifier that was in force before it took
 *            data, a COMMIT the one after its sync, so no change is missed between them.
 * Memory:    Part of the request.
 * Threads:   The reactor's.
 * Errors:    -errno, of which stripe_refuse() makes a status.
 */
#include <errno.h>
#include <string.h>

#include "client.h"
#include "stripe_service.h"

/* What a call needs besides its object */
struct need {
	bool changes; /* a WRITE: creates the object */
	bool named;   /* its name is to be durable */
};

/* Does the handle have the epoch of the object? Return: 0, -ESTALE: older; -EBUSY: newer */
static int check_epoch(const struct stripe_call *call)
{
	const struct stripe_record *rec = &call->o->rec;

	if (rec->removed || call->handle.epoch < rec->epoch)
		return -ESTALE;
	return call->handle.epoch > rec->epoch ? -EBUSY : 0;
}

/* The work that a worker has to do before the operation can begin; 0: none */
static unsigned missing(const struct stripe_call *call, const struct need *need)
{
	const struct stripe_object *o = call->o;
	unsigned work = 0;

	if (!o->exists && !need->changes)
		return 0;
	if (!o->exists)
		work |= STRIPE_WORK_CREATE;
	if (!o->files[call->req->reactor->idx])
		work |= STRIPE_WORK_OPEN;
	if (need->named && (!o->exists || !o->named))
		work |= STRIPE_WORK_NAME;
	return work;
}

static int enter_lane(struct stripe_call *call, bool changes)
{
	return stripe_lane_enter(&stripe_server(call->req->srv)->lanes, &call->args.at.lane,
				 stripe_peer(call->req->conn)->conn, changes, &call->waiter, &call->pass);
}

/* Under the lock. Return: PROG_MOVE: the operation has begun, or, if the object does not exist, has nothing to do;
 * PROG_REPLY: @ret_err */
static enum prog_begin try_enter(struct stripe_call *call, const struct need *need, int *ret_err)
{
	enum prog_begin next;
	unsigned work;

	*ret_err = stripe_turn_end(call);
	if (!*ret_err && stripe_expired(call->handle.expiry, stripe_now()))
		*ret_err = -ETIME;
	if (*ret_err)
		return PROG_REPLY;
	next = call->handle.term ? stripe_turn_term(call, ret_err) : PROG_MOVE;
	if (next != PROG_MOVE)
		return next;
	next = stripe_turn_object(call, &call->handle.name);
	*ret_err = next == PROG_REPLY ? -ENOMEM : next == PROG_MOVE ? check_epoch(call) : 0;
	if (next != PROG_MOVE || *ret_err)
		return *ret_err ? PROG_REPLY : next;
	if (call->o->rec.cut != STRIPE_NO_CUT) {
		if (!stripe_ops_older(&call->o->ops))
			return stripe_turn_take(call, STRIPE_WORK_CUT);
		*ret_err = -EBUSY;
		return PROG_REPLY;
	}
	work = missing(call, need);
	if (work)
		return stripe_turn_take(call, work);
	*ret_err = enter_lane(call, need->changes);
	if (*ret_err)
		return *ret_err == -EINPROGRESS ? PROG_WAIT : PROG_REPLY;
	call->covers = stripe_ops_any(&call->o->ops) ? UINT64_MAX : call->o->writes;
	call->o->written |= need->changes;
	call->o->writes += need->changes;
	call->file = call->o->exists ? call->o->files[call->req->reactor->idx] : NULL; /* another call may create it */
	stripe_op_enter(call, need->changes);
	return PROG_MOVE;
}

static enum prog_begin enter(struct req *r, const struct need *need)
{
	struct stripe_call *call = stripe_call(r);
	enum prog_begin next;
	int err;

	pthread_mutex_lock(&call->vol->lock);
	next = try_enter(call, need, &err);
	pthread_mutex_unlock(&call->vol->lock);
	if (err == -EINPROGRESS)
		stripe_count(r->reactor, stripe_lane_waits);
	if (next == PROG_REPLY)
		return stripe_reply(r, err);
	if (next != PROG_MOVE)
		return next;
	call->verf = atomic_load(&call->vol->verf);
	r->plan.store = call->use->stores[call->member->idx];
	r->plan.file = call->file;
	r->plan.client = &r->conn->client->workers;
	return PROG_MOVE;
}

/* ---- READ ----------------------------------------------------------------------------------- */

enum prog_begin stripe_read_begin(struct req *r)
{
	struct stripe_call *call = stripe_call(r);
	const STRIPEREADargs *a = &call->args.read;
	uint32_t bytes = MIN(a->count, (uint32_t)STRIPE_IO_MAX);
	enum prog_begin next;

	if (!a->count || a->offset > INT64_MAX - STRIPE_IO_MAX)
		return stripe_reply(r, -EINVAL);
	next = enter(r, &(struct need){ .changes = false });
	if (next != PROG_MOVE)
		return next;
	if (!call->file) {
		stripe_op_end(call);
		call->res.read.status = STRIPE_OK;
		call->res.read.STRIPEREADres_u.resok.eof = true;
		return PROG_REPLY;
	}
	/* data inside the reply has to fit one buffer; data by chunk has no such limit */
	if (!r->rpc->by_chunk)
		bytes = MIN(bytes, call->re->inline_max);
	r->plan.off = a->offset;
	r->plan.bytes = bytes;
	r->plan.size_hint = a->offset + bytes;
	return PROG_MOVE;
}

void stripe_read_finish(struct req *r)
{
	struct stripe_call *call = stripe_call(r);
	const struct place *pl = &r->place;

	if (!call->begun) /* it had nothing to do */
		return;
	stripe_op_end(call);
	if (pl->err) {
		stripe_refuse(r, pl->err);
		return;
	}
	call->res.read.status = STRIPE_OK;
	call->res.read.STRIPEREADres_u.resok.eof = pl->good < r->plan.bytes;
	call->res.read.STRIPEREADres_u.resok.data.length = pl->good;
}

/* ---- WRITE, COMMIT -------------------------------------------------------------------------- */

int stripe_write_payload(struct req *r)
{
	struct stripe_call *call = stripe_call(r);
	STRIPEWRITEargs *a = &call->args.write;

	r->plan = (struct place_plan){
		.store = call->use->stores[call->member->idx],
		.data = &a->data,
		.off = a->offset,
		.bytes = a->data.length,
	};
	if (!a->data.length)
		return -EINVAL;
	return a->offset > INT64_MAX - STRIPE_IO_MAX ? -EFBIG : 0;
}

enum prog_begin stripe_write_begin(struct req *r)
{
	const STRIPEWRITEargs *a = &stripe_call(r)->args.write;
	enum prog_begin next = enter(r, &(struct need){ .changes = true, .named = a->sync });

	if (next == PROG_MOVE)
		r->plan.stable = a->sync ? STORE_DATA_SYNC : STORE_UNSTABLE;
	return next;
}

enum prog_begin stripe_commit_begin(struct req *r)
{
	struct stripe_call *call = stripe_call(r);
	enum prog_begin next = enter(r, &(struct need){ .named = true });

	if (next != PROG_MOVE)
		return next;
	if (!call->file) {
		stripe_op_end(call);
		call->res.change.status = STRIPE_OK;
		call->res.change.STRIPECHANGEres_u.verf = call->verf;
		return PROG_REPLY;
	}
	r->plan.op = STORE_SYNC;
	return PROG_MOVE;
}

/* All that was written is stable: closing the object needs no sync. */
static void note_synced(struct stripe_call *call)
{
	pthread_mutex_lock(&call->vol->lock);
	if (call->o->writes == call->covers)
		call->o->written = false;
	pthread_mutex_unlock(&call->vol->lock);
}

void stripe_change_finish(struct req *r)
{
	struct stripe_call *call = stripe_call(r);
	bool commits = r->proc->move == PLACE_STORE, syncs = commits || call->args.write.sync;
	uint64_t now = atomic_load(&call->vol->verf);
	int err = r->place.err;

	if (!call->begun)
		return;
	/* of two syncs of a file at the same time the kernel may tell one of a loss: the other one sees the verifier change */
	if (!err && !commits && syncs && now != call->verf)
		err = -EIO;
	if (!err && commits)
		note_synced(call);
	stripe_op_end(call);
	if (err) {
		stripe_refuse(r, err);
		return;
	}
	call->res.change.status = STRIPE_OK;
	call->res.change.STRIPECHANGEres_u.verf = commits ? now : call->verf;
}
