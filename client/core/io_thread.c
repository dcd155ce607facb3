/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * io_thread.c - additional threads of a session (threads=N)
 *
 * Operation:  Connections of a server are spread over the session's engine and the engines of these threads. A READ or
 *             WRITE on such a connection is passed to its thread by a message, and back by another (call.c). So the
 *             copies of several connections run in parallel. All other work stays on the thread that owns the session.
 * Memory:     struct lt_io_thread is part of the session.
 * Threads:    The thread runs its engine only. It sees calls between the two messages, and nothing of mounts.
 * Errors:     None while it runs.
 */
#include <errno.h>
#include <pthread.h>

#include "base/thread.h"
#include "base/util.h"
#include "io_thread.h"

static void *thread_main(void *arg)
{
	struct lt_io_thread *t = arg;

	while (!t->stop)
		(void)rpcrdma_engine_wait(t->engine, -1); /* 0 after a signal: wait again */
	return NULL;
}

static void stop_thread(struct rpcrdma_msg *msg)
{
	container_of(msg, struct lt_io_thread, msg)->stop = true;
}

int lt_io_thread_start(struct lt_io_thread *t, struct rpcrdma_domain *d, const struct rpcrdma_engine_attr *attr)
{
	int rc = rpcrdma_engine_create(d, attr, &t->engine);

	if (!rc)
		rc = thread_start(&t->thread, NULL, thread_main, t);
	t->runs = !rc;
	return rc;
}

void lt_io_thread_stop(struct lt_io_thread *t)
{
	if (t->runs) {
		t->msg.fn = stop_thread;
		rpcrdma_engine_post(t->engine, &t->msg);
		pthread_join(t->thread, NULL);
	}
	rpcrdma_engine_destroy(t->engine);
}
