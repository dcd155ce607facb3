/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_start.c - how a call of a CLIENT becomes a call of the transport
 *
 * Operation:  Arguments are bytes already, and results are left as bytes: the filters of the program run on its own
 *             threads only, never inside of the engine.
 * Memory:     The transport has two references to a call: until done(), and until released().
 * Threads:    The engine's.
 */
#include "cl_int.h"

static void on_released(struct rpcrdma_room *room)
{
	struct rt_call *c = container_of(room, struct rt_call, room);

	c->handle->unreleased--;
	rt_cl_drop(c);
}

static void on_done(struct rpcrdma_call *call, int err)
{
	rt_cl_ended(container_of(call, struct rt_call, call), err, call->why);
}

void rt_cl_start(struct rt_call *c)
{
	struct rt_handle *h = c->handle;
	struct rpcrdma_call *call = &c->call;
	int rc;

	call->no_resend = !h->resend;
	call->cred = &c->cred;
	call->verf = &c->verf;
	call->status = &c->status;
	call->ready = rt_cl_args(c);
	call->room = &c->room;
	call->sink = c->sink.iov_len ? &c->sink : NULL;
	call->sinkcnt = c->sink.iov_len > 0;
	call->done = on_done;
	c->room.released = on_released;
	rt_cl_batch_tend(h);
	if (h->copied)
		rpcrdma_count_copied(h->engine, atomic_exchange(&h->copied, 0));
	c->status.reply_stat = RT_NO_REPLY;
	h->in_flight++;
	h->unreleased++;
	rt_cl_hold(c);
	rc = h->clnt ? 0 : rpcrdma_clnt_open(h->engine, &h->attr, &h->clnt);
	if (!rc)
		rc = rpcrdma_clnt_call(h->clnt, call);
	if (rc) {
		on_released(&c->room);
		rt_cl_ended(c, rc, call->why);
		return;
	}
	h->xid = call->xid;
	rt_cl_batch_started(c);
}
