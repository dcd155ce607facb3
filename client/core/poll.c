/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * poll.c - drives a handle from the event loop of an application
 *
 * Operation:  The application adds leat_fd() to poll(2) or epoll(7). When it becomes readable, the
 *             application calls leat_poll(m, 0) until it returns 0. That call arms the descriptor, and the
 *             loop may sleep again.
 * Memory:     None.
 * Threads:    The owner's; not while the service thread has the handle.
 * Errors:     -EBUSY: the service thread has it; -EDEADLK: from inside a callback.
 */
#include <errno.h>

#include "handle.h"

int leat_fd(const struct leat *m)
{
	return rpcrdma_engine_fd(m->engine);
}

int leat_poll(struct leat *m, int timeout_ms)
{
	int n;

	if (atomic_load(&m->has_service))
		return -EBUSY;
	if (m->in_callback)
		return -EDEADLK;
	if (timeout_ms)
		return rpcrdma_engine_wait(m->engine, timeout_ms);
	for (;;) {
		n = rpcrdma_engine_poll(m->engine);
		if (n || !rpcrdma_engine_arm(m->engine))
			return n;
	}
}
