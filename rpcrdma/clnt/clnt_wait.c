/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_wait.c - calls that the caller waits for
 *
 * Operation:  The waiting thread runs the engine, so a call costs no switch to another thread.
 * Memory:     The state of the wait is on the stack; call->priv[1] points to it until done().
 * Threads:    The engine's.
 * Errors:     In a callback the engine cannot run: -EDEADLK. This includes callbacks of the client that run outside
 *             of the engine, since the client must not be freed before they return.
 */
#include <errno.h>

#include "clnt_int.h"

struct waiting {
	bool over;
	int err;
};

static void on_done(struct rpcrdma_call *call, int err)
{
	struct waiting *w = call->priv[1];

	*w = (struct waiting){ .over = true, .err = err };
}

int rpcrdma_clnt_call_wait(struct rpcrdma_clnt *c, struct rpcrdma_call *call)
{
	struct rpcrdma_engine *e = c->engine; /* a callback may destroy the client */
	void (*done)(struct rpcrdma_call *call, int err) = call->done;
	struct waiting w = { .over = false };
	int rc;

	call->why = "called from a callback of its own engine";
	if (rpcrdma_engine_is_running(e) || c->callbacks)
		return -EDEADLK;
	call->done = on_done;
	call->priv[1] = &w;
	rc = rpcrdma_clnt_call(c, call);
	while (!rc && !w.over)
		(void)rpcrdma_engine_wait(e, -1);
	call->done = done;
	call->priv[1] = NULL;
	return rc ? rc : w.err;
}
