/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * svc_run.c - svc_run() that spins before it sleeps
 *
 * Operation:  While requests arrive, the engine waits for them: it spins, then sleeps for at most a slice, and learns from
 *             both as for any program. After a slice without anything the loop sleeps in poll(), as svc_run() does: with
 *             the other transports of the program, until a signal or svc_exit().
 *
 *             The other transports get their turn when a slice has passed since they last had one.
 * Memory:     A copy of svc_pollfd.
 * Threads:    The thread that runs the loop. Other threads that reply to detached requests may take its place while it
 *             sleeps in the engine.
 * Errors:     No memory: logged; it returns, as svc_run() does.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "svc_int.h"

#define SLICE_MS 1

/* svc_pollfd as it was before a poll(). */
struct fds {
	struct pollfd *v;
	int n, cap;
};

/* After svc_exit(), as svc_run() finds it. */
static bool has_ended(void)
{
	return !svc_pollfd && !svc_max_pollfd;
}

static bool copy_fds(struct fds *f)
{
	int n = svc_max_pollfd;

	if (n > f->cap) {
		struct pollfd *v = realloc(f->v, (size_t)n * sizeof(*v));

		if (!v)
			return false;
		f->v = v;
		f->cap = n;
	}
	for (int i = 0; i < n; i++)
		f->v[i] = (struct pollfd){ .fd = svc_pollfd[i].fd, .events = svc_pollfd[i].events };
	f->n = n;
	return true;
}

/* Serves all transports that are ready, or become so within @timeout_ms. Return: false: no memory */
static bool serve_all(struct fds *f, int timeout_ms)
{
	int n;

	if (!copy_fds(f))
		return false;
	n = poll(f->v, (nfds_t)f->n, timeout_ms);
	if (n > 0)
		svc_getreq_poll(f->v, n);
	return n >= 0 || errno == EINTR || errno == ENOMEM;
}

/* Return: true: there was something to do in the engine */
static bool wait_in_engine(struct rt_svc *s)
{
	return rt_share_next() || rpcrdma_engine_wait(s->engine, SLICE_MS) > 0;
}

static bool is_past(uint64_t *due_ns)
{
	uint64_t now = clock_now_ns();

	if (now < *due_ns)
		return false;
	*due_ns = now + SLICE_MS * NS_PER_MS;
	return true;
}

/* Sleeps until anything is ready, unless the engine has work. */
static bool sleep_for_all(struct rt_svc *s, struct fds *f)
{
	bool sleeps = s->attr.poll != RPCRDMA_POLL_BUSY && !rpcrdma_engine_arm(s->engine);

	return serve_all(f, sleeps ? -1 : 0);
}

void rpcrdma_svc_run(void)
{
	struct rt_svc *s = &rt_svc;
	struct fds f = { 0 };
	uint64_t due_ns = 0;
	bool goes_on = true;

	if (!s->engine || s->attr.poll == RPCRDMA_POLL_EVENT) {
		svc_run();
		return;
	}
	s->runs = true;
	while (!has_ended() && goes_on) {
		svc_getreq_common(s->fd);
		if (has_ended())
			break;
		if (rt_fork_is_child()) /* it has no engine yet */
			goes_on = serve_all(&f, -1);
		else if (!wait_in_engine(s))
			goes_on = sleep_for_all(s, &f);
		else if (is_past(&due_ns))
			goes_on = serve_all(&f, 0);
	}
	s->runs = false;
	free(f.v);
	if (!goes_on)
		rt_svc_log("rpcrdma_svc_run: %s", strerror(errno));
	rt_svc_kick(); /* another loop of the program may follow */
}
