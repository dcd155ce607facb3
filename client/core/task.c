/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * task.c - starts operations on the thread that owns the mount, cancels them, and runs their callbacks
 *
 * Operation:  lt_task_submit() -> start() ... -> lt_task_finish() -> release() -> fn() -> free(). Both are inline, so
 *             that start() and release(), which their callers name, are direct calls. If the
 *             library's service thread owns the handle and another thread calls, the start is sent as a
 *             message; messages keep their order. If the service thread sleeps, the caller starts the task in
 *             its place instead, and a synchronous caller polls for the reply before it sleeps itself.
 *             A task that is cancelled ends with an error of its call, or with its result if it has ended in the
 *             meantime. Its callback runs by a message, never inside leat_cancel(); so do those of other tasks which
 *             end there, since a credit that becomes free lets their calls go, and fail.
 * Memory:     The task frees itself with release() before its callback runs, so a callback must not
 *             unmount but may start any operation.
 * Threads:    submit from any thread after leat_service_start(); everything else on the owner's.
 * Errors:     A callback never runs inside the function that started its operation. An operation that
 *             finishes while it starts (nothing to send, bad path) is finished by a message to the owner's
 *             thread.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "handle.h"
#include "sync.h"
#include "task.h"

/* Callbacks of the program run on the service thread, but the end of a synchronous call wakes its caller from any
 * thread. An internal callback may end a task in its turn, which comes here. */
static bool ends_elsewhere(const struct lt_task *t)
{
	return lt_session_is_visited(t->m->session) && !lt_sync_waits_for(t) && !t->internal;
}

static void run_start(struct rpcrdma_msg *msg)
{
	struct lt_task *t = container_of(msg, struct lt_task, msg);
	struct leat *m = t->m;
	bool defer = ends_elsewhere(t);

	list_add_tail(&m->tasks, &t->link);
	t->cancelled = atomic_load_explicit(&m->ending, memory_order_relaxed);
	t->deferred = defer;
	t->step(t);
	if (defer)
		t->deferred = false;
	if (unlikely(atomic_load(&m->interrupted))) /* its message may have come before this one */
		lt_sync_interrupt_now(m, NULL);
}

static void tell(const struct lt_task *t)
{
	bool known = t->explained == (int)t->result;

	lt_handle_tell(t->m, t->path, t->path2, known && t->what[0] ? t->what : t->verb,
		       (int)t->result, known ? t->cause : "");
}

void lt_task_call_back(struct leat *m, struct leat_cb cb, int64_t result)
{
	struct leat_session *s = m->session;
	bool nested = s->in_callback;

	s->in_callback = true;
	if (cb.fn)
		cb.fn(cb.user_data, result);
	if (cb.free)
		cb.free(cb.user_data);
	s->in_callback = nested;
	if (m->drain && list_is_empty(&m->tasks)) {
		struct leat_cb drained = m->drain->cb;

		m->drain = NULL;
		drained.fn(drained.user_data, 0);
	}
}

static void run_finish(struct rpcrdma_msg *msg)
{
	struct lt_task *t = container_of(msg, struct lt_task, msg);

	lt_task_finish(t, t->result, t->step);
}

/* Starts a task in the place of the service thread, if that sleeps; waits for its reply a while if this thread has
 * nothing else to do. */
static bool start_visiting(struct lt_task *t)
{
	struct leat_session *s = t->m->session;
	const struct lt_wait *w = lt_sync_waits_for(t) ? t->cb.user_data : NULL;
	const struct leat_session *serves;

	if (!lt_session_visit(s, &serves))
		return false;
	run_start(&t->msg);
	if (w)
		rpcrdma_engine_linger(s->engine, &w->done);
	lt_session_leave(s, serves);
	return true;
}

bool lt_task_begin(struct lt_task *t, void (*start)(struct lt_task *t))
{
	struct leat *m = t->m;

	t->explained = 0;
	t->cancelled = t->ended = false;
	t->deferred = lt_handle_is_mine(m);
	if (t->deferred) {
		list_add_tail(&m->tasks, &t->link);
		return true;
	}
	t->step = start;
	t->msg.fn = run_start;
	if (!start_visiting(t))
		rpcrdma_engine_post(m->session->engine, &t->msg);
	return false;
}

bool lt_task_end(struct lt_task *t, int64_t result, void (*release)(struct lt_task *t))
{
	t->result = result;
	if (t->deferred || t->m->session->in_cancel || ends_elsewhere(t)) {
		t->ended = true;
		t->step = release;
		t->msg.fn = run_finish;
		rpcrdma_engine_post(t->m->session->engine, &t->msg);
		return false;
	}
	if (result < 0)
		tell(t);
	list_del(&t->link);
	return true;
}

static void cancel_task(struct lt_task *t)
{
	struct leat_session *s = t->m->session;
	bool nested = s->in_cancel;

	t->cancelled = true;
	s->in_cancel = true;
	t->stop(t);
	s->in_cancel = nested;
}

bool lt_task_is_of_file(const struct lt_task *t, const void *arg)
{
	return t->file == arg;
}

bool lt_task_has_data(const struct lt_task *t, const void *arg)
{
	return t->cb.user_data == arg && !t->background;
}

static bool goes_on(const struct lt_task *t)
{
	return !t->cancelled && !t->ended;
}

/* Moves the tasks that match to @chosen. */
static void choose(struct leat *m, bool (*match)(const struct lt_task *t, const void *arg), const void *arg,
		   struct list *chosen)
{
	list_init(chosen);
	list_for_each_safe(node, &m->tasks) {
		struct lt_task *t = list_entry(node, struct lt_task, link);

		if (!goes_on(t) || (match && !match(t, arg)))
			continue;
		list_del(&t->link);
		list_add_tail(chosen, &t->link);
	}
}

/* Cancelling one may end others, and start some that match, too. So the search is separate, and begins again. */
size_t lt_task_cancel(struct leat *m, bool (*match)(const struct lt_task *t, const void *arg), const void *arg)
{
	struct list chosen;
	size_t n = 0;

	for (choose(m, match, arg, &chosen); !list_is_empty(&chosen); choose(m, match, arg, &chosen)) {
		while (!list_is_empty(&chosen)) {
			struct lt_task *t = list_entry(chosen.next, struct lt_task, link);

			list_del(&t->link);
			list_add_tail(&m->tasks, &t->link);
			if (!goes_on(t))
				continue;
			cancel_task(t);
			n++;
		}
	}
	return n;
}

static bool is_background(const struct lt_task *t, const void *arg)
{
	(void)arg;
	return t->background;
}

void lt_task_stop_background(void *of, void *arg)
{
	struct leat *m = of;

	(void)arg;
	if (m->session->in_callback)
		return; /* there leat_umount() fails */
	m->no_background = true;
	(void)lt_task_cancel(m, is_background, NULL);
}

struct cancel {
	bool (*match)(const struct lt_task *t, const void *arg);
	const void *user_data;
	size_t count;
};

static void cancel_there(void *of, void *arg)
{
	struct cancel *c = arg;

	c->count = lt_task_cancel(of, c->match, c->user_data);
}

static int cancel_tasks(struct leat *m, struct cancel c)
{
	int rc = m ? lt_sync_run(m->session, cancel_there, m, &c) : -EINVAL;

	return rc ? rc : c.count ? 0 : -ENOENT;
}

int leat_cancel(struct leat *m, const void *user_data)
{
	return cancel_tasks(m, (struct cancel){ .match = lt_task_has_data, .user_data = user_data });
}

int leat_cancel_all(struct leat *m)
{
	return cancel_tasks(m, (struct cancel){ 0 });
}

void lt_task_explain(struct lt_task *t, int err, const char *what, const char *fmt, ...)
{
	va_list ap;

	t->explained = err;
	snprintf(t->what, sizeof(t->what), "%s", what ? what : "");
	va_start(ap, fmt);
	vsnprintf(t->cause, sizeof(t->cause), fmt, ap);
	va_end(ap);
}

int lt_task_refuse(struct leat_cb cb, int err)
{
	if (cb.free)
		cb.free(cb.user_data);
	return err;
}
