/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * bufreg.c - registered memory for zero-copy I/O
 *
 * Operation:  rpcrdma_mem_alloc() allocates pages that are registered once with every device and that a
 *             server on the same host can map. rpcrdma_mem_register() does the same registration for pages
 *             of the caller. Unregistering waits until the memory is no longer in use; it polls, because
 *             it is not urgent.
 * Memory:     The caller's from leat_buf_alloc() to leat_buf_free(), which must come before the end of the
 *             session: the memory belongs to its domain.
 * Threads:    Any, with or without the service thread: a domain has its own lock. Unregistering runs on
 *             the owner's thread, like every call that waits.
 * Errors:     -ENOMEM, -EINVAL (0 bytes), -EFAULT, -EEXIST, -ENOENT.
 */
#include <errno.h>

#include "base/clock.h"
#include "sync.h"

#define LOOK_AGAIN_MS 1u

int leat_buf_alloc(struct leat_session *s, size_t bytes, void **ret)
{
	int rc = lt_session_check(s);

	if (!rc)
		rc = rpcrdma_mem_alloc(s->domain, bytes, ret);
	if (!rc)
		atomic_fetch_add(&s->buffers, 1);
	return rc;
}

int leat_buf_register(struct leat_session *s, void *mem, size_t bytes)
{
	int rc = lt_session_check(s);

	if (!rc)
		rc = rpcrdma_mem_register(s->domain, mem, bytes);
	if (!rc)
		atomic_fetch_add(&s->buffers, 1);
	return rc;
}

/* A request to unregister, passed from the caller to the owner's thread. */
struct unregister {
	struct rpcrdma_msg msg;
	struct rpcrdma_timer timer;
	struct lt_wait wait;
	void *mem;
};

static void unregister(struct unregister *u)
{
	int rc = rpcrdma_mem_unregister(u->wait.session->domain, u->mem);

	if (rc == -EBUSY)
		rpcrdma_timer_set(u->wait.session->engine, &u->timer, LOOK_AGAIN_MS * NS_PER_MS);
	else
		u->wait.cb.fn(u->wait.cb.user_data, rc);
}

static void on_timer(struct rpcrdma_timer *t)
{
	unregister(container_of(t, struct unregister, timer));
}

static void on_msg(struct rpcrdma_msg *msg)
{
	unregister(container_of(msg, struct unregister, msg));
}

int leat_buf_unregister(struct leat_session *s, void *mem)
{
	struct unregister u = { .msg.fn = on_msg, .timer.fn = on_timer, .mem = mem };
	int rc = lt_sync_begin(&u.wait, s);

	if (rc)
		return rc;
	rpcrdma_engine_post(s->engine, &u.msg);
	rc = (int)lt_sync_end(&u.wait, 0);
	if (!rc)
		atomic_fetch_sub(&s->buffers, 1);
	return rc;
}

void leat_buf_free(struct leat_session *s, void *buf)
{
	if (!buf || lt_session_check(s))
		return;
	rpcrdma_mem_free(s->domain, buf);
	atomic_fetch_sub(&s->buffers, 1);
}
