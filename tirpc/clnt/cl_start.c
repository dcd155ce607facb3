/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_start.c - how a call of a CLIENT becomes a call of the transport
 *
 * Operation:  Arguments are bytes already, and results are left as bytes: the filters of the program run on its own
 *             threads only, never inside of the engine.
 * Threads:    The engine's.
 */
#include <errno.h>
#include <stdlib.h>

#include "cl_int.h"

static bool_t put_args(XDR *x, struct rt_call *c)
{
	return XDR_PUTBYTES(x, (const char *)c->enc.buf, (u_int)c->enc.len);
}

/* Bytes that are left in a stream that does not say so. */
static u_int bytes_left(XDR *x)
{
	u_int start = XDR_GETPOS(x), least = start, most = start + (64u << 20);

	while (least < most) {
		u_int mid = least + (most - least + 1) / 2;

		if (XDR_SETPOS(x, mid))
			least = mid;
		else
			most = mid - 1;
	}
	(void)XDR_SETPOS(x, start);
	return least - start;
}

static bool_t take_results(XDR *x, struct rt_call *c)
{
	u_int n = bytes_left(x);

	free(c->room);
	c->room = malloc(n + 1);
	c->results = c->room;
	c->results_bytes = n;
	return c->room && XDR_GETBYTES(x, c->room, n);
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
	call->encode = (xdrproc_t)put_args;
	call->args = c;
	call->decode = (xdrproc_t)take_results;
	call->res = c;
	call->reply_max = MIN(call->reply_max, 1u << 20); /* until results have a room */
	call->done = on_done;
	rt_cl_batch_tend(h);
	h->in_flight++;
	rc = h->clnt ? 0 : rpcrdma_clnt_open(h->engine, &h->attr, &h->clnt);
	if (!rc)
		rc = rpcrdma_clnt_call(h->clnt, call);
	if (rc) {
		rt_cl_ended(c, rc, call->why);
		return;
	}
	h->xid = call->xid;
	rt_cl_batch_started(c);
}
