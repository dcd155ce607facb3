/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * keep.c - an attachment that is not used for a while keeps its volume
 *
 * Operation:  The server considers a holder silent when no connection of its lanes is up, and a lane is known by its calls.
 *             librpcrdma connects again when there is a call. So an attachment reads no bytes every KEEP_NS: when the
 *             server was restarted, or the connection was lost, the holder is back before another one may take its place.
 * Memory:     Part of the attachment, which is freed when lt_block_keep_stop() has called back: a call on a connection of
 *             another thread ends later than it is cancelled.
 * Threads:    The owner's. It needs leat_poll() or the service thread, as all that happens without a call.
 * Errors:     After -ESTALE there is nothing to keep. Others are those of the next call.
 */
#include <errno.h>

#include "lt_block.h"

uint64_t lt_block_keep_ns = 20 * NS_PER_S;

static void arm(struct leat_block *b)
{
	rpcrdma_timer_set(b->m->session->engine, &b->keep.timer, lt_block_keep_ns);
}

static void on_done(struct rpcrdma_call *rpc, int err)
{
	struct lt_call *call = lt_call_ended(rpc, &err);
	struct leat_block *b;

	if (!call)
		return;
	b = container_of(call, struct leat_block, keep.call);
	b->keep.flying = false;
	if (b->keep.ended.fn)
		b->keep.ended.fn(b->keep.ended.user_data, 0);
	else if (err != -ESTALE && !b->keep.stopped)
		arm(b);
}

static void on_timer(struct rpcrdma_timer *t)
{
	struct leat_block *b = container_of(t, struct leat_block, keep.timer);
	BLOCKREADargs *a = &b->keep.args;

	lt_call_init(&b->keep.call, b->m, NULL);
	*a = (BLOCKREADargs){ .count = 0 };
	lt_block_set_at(b, &a->at);
	b->keep.flying = true;
	lt_call_start_block(&b->keep.call, BLOCKPROC_READ, a, &a->at.lane, &b->keep.res, NULL, 0, on_done);
}

void lt_block_keep(void *of, void *arg)
{
	struct leat_block *b = of;

	(void)arg;
	b->keep.timer.fn = on_timer;
	arm(b);
}

void lt_block_keep_stop(void *of, void *arg)
{
	struct leat_block *b = of;
	const struct leat_cb *ended = arg;

	b->keep.stopped = true;
	rpcrdma_timer_cancel(b->m->session->engine, &b->keep.timer);
	if (b->keep.flying)
		lt_call_cancel(&b->keep.call);
	if (b->keep.flying)
		b->keep.ended = *ended;
	else
		ended->fn(ended->user_data, 0);
}
