/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_batch.c - calls with a time-out of zero: sent in order, and not waited for
 *
 * Operation:  The thread of a batched call waits until the call has been sent. What then ends the call is its reply, if the
 *             service sends one, or the end of the connection.
 *
 *             A call without a reply holds a credit. When such calls hold half of the credits, the next one first makes the
 *             NULL call of its program: a service of libtirpc executes the calls of a connection in order, so its reply
 *             says that the batched calls before it have been executed. These are then given up. Only another connection
 *             gives their credits back: so the connection is replaced, if no other call needs it. How many credits the new
 *             one has is known after a NULL call on it, and no batched call is sent before.
 * Memory:     A batched call has encoded all its arguments: its thread's memory is not used after the call returns.
 * Threads:    As cl_lead.c.
 */
#include <errno.h>

#include "cl_int.h"

#define LEAST_FLUSH_S 25 /* time-out of the NULL call, if the handle's own is zero */

/* @granted is 0: the credits of the connection are not known. */
static bool must_flush(const struct rt_handle *h)
{
	return h->granted < 2 || h->unanswered >= h->granted / 2;
}

static uint32_t credits_now(const struct rt_handle *h)
{
	struct rpcrdma_clnt_info info;

	rpcrdma_clnt_info(h->clnt, &info);
	return MIN(h->credits, info.credits);
}

/* Makes a NULL call of the program. Return: RPC_SUCCESS: it has a reply, whatever that is; or as clnt_call() */
static enum clnt_stat flush_once(struct rt_handle *h, struct rt_outcome *o)
{
	struct rt_call *c = rt_cl_get(h);
	enum clnt_stat stat;

	if (!c)
		return rt_cl_fail(o, RPC_SYSTEMERROR, -ENOMEM, "no memory");
	c->call = (struct rpcrdma_call){ .prog = h->prog, .vers = h->vers, .deadline_ms = LEAST_FLUSH_S * 1000 };
	c->flushes = true;
	rt_enc_init(&c->enc, c->small, h->inline_bytes, h->inline_bytes, NULL, NULL);
	stat = rt_cl_room(c, NULL, NULL, 0, o);
	if (!stat)
		stat = rt_cl_exchange(c, o);
	rt_cl_put(c);
	switch (stat) {
	case RPC_CANTSEND:
	case RPC_CANTRECV:
	case RPC_TIMEDOUT:
	case RPC_SYSTEMERROR:
		return stat;
	default:
		return RPC_SUCCESS;
	}
}

enum clnt_stat rt_cl_flush(struct rt_handle *h, struct rt_outcome *o)
{
	enum clnt_stat stat = RPC_SUCCESS;

	/* the second time on the connection that replaced the first */
	for (int i = 0; i < 2 && !stat && must_flush(h); i++)
		stat = flush_once(h, o);
	return stat;
}

void rt_cl_batch_started(struct rt_call *c)
{
	struct rt_handle *h = c->handle;

	if (!c->batched)
		return;
	list_add_tail(&h->batch, &c->in_batch);
	h->unanswered++;
	if (c->call.sent)
		rt_cl_tell(c, RT_CALL_SENT);
}

void rt_cl_batch_ended(struct rt_call *c)
{
	struct rt_handle *h = c->handle;

	if (list_is_linked(&c->in_batch)) {
		list_del(&c->in_batch);
		h->unanswered--;
	}
	if (c->flushes && !c->err) {
		h->forget = true;
		h->granted = credits_now(h);
	}
}

static void tell_sent(struct rt_handle *h)
{
	list_for_each(node, &h->batch) {
		struct rt_call *c = list_entry(node, struct rt_call, in_batch);

		if (c->call.sent && !(atomic_load(&c->flags) & RT_CALL_SENT))
			rt_cl_tell(c, RT_CALL_SENT);
	}
}

static bool are_all_sent(const struct rt_handle *h)
{
	list_for_each(node, &h->batch)
		if (!list_entry(node, struct rt_call, in_batch)->call.sent)
			return false;
	return true;
}

void rt_cl_batch_tend(struct rt_handle *h)
{
	if (list_is_empty(&h->batch)) {
		h->forget = false;
		return;
	}
	tell_sent(h);
	h->granted = MIN(h->granted, credits_now(h)); /* any reply may lower it */
	/* A server that grants one credit leaves none for the NULL call: nothing can tell whether the call was executed. */
	if (h->granted == 1 && h->unanswered)
		h->forget = true;
	if (!h->forget || h->in_flight != h->unanswered || !are_all_sent(h))
		return;
	h->forget = false;
	rt_cl_reopen(h);
}
