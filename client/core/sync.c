/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * sync.c - how a synchronous call waits: it starts the asynchronous one, then runs the engine or sleeps
 *
 * Operation:  LT_WAIT_FOR(): lt_sync_begin() prepares a callback, the asynchronous function is called with
 *             it, lt_sync_end() waits. If the caller owns the handle, it runs the engine; otherwise it waits
 *             on a semaphore. Before that, it polls for the reply in the place of the service thread, if that sleeps
 *             and if polling is worth it (task.c); otherwise the service thread wakes the caller.
 * Memory:     struct lt_wait lies on the waiter's stack; the callback does not touch it after the
 *             sem_post() of `ended`.
 * Threads:    Any with the service thread, else the owner's.
 * Errors:     Those of the asynchronous functions; -EDEADLK inside a callback.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "sync.h"
#include "task.h"

static void wait_done(void *arg, int64_t result)
{
	struct lt_wait *w = arg;

	w->result = result;
	w->done = true;
	if (!w->service)
		return;
	atomic_store_explicit(&w->posted, true, memory_order_release);
	sem_post(&w->ended); /* the waiter may end before this returns */
}

/* A callback must not wait: it runs on the thread that would have to end the wait. */
bool lt_sync_in_callback(const struct leat_session *s)
{
	return lt_session_is_mine(s) && (s->in_callback || atomic_load(&s->has_service));
}

/* @elsewhere: another thread delivers the result */
static void init_wait(struct lt_wait *w, struct leat_session *s, bool elsewhere)
{
	w->session = s;
	w->cb = (struct leat_cb){ .fn = wait_done, .user_data = w };
	w->done = w->interrupted = false;
	w->service = elsewhere;
	w->seen = false;
	atomic_init(&w->posted, false);
	if (elsewhere)
		sem_init(&w->ended, 0, 0);
}

int lt_sync_begin(struct lt_wait *w, struct leat_session *s)
{
	int rc = lt_session_check(s);

	if (rc)
		return rc;
	if (lt_sync_in_callback(s))
		return -EDEADLK;
	init_wait(w, s, !lt_session_is_mine(s));
	return 0;
}

int lt_sync_begin_call(struct lt_wait *w, struct leat *m)
{
	int rc = lt_sync_begin(w, m ? m->session : NULL);

	lt_handle_untold();
	if (!rc && unlikely(atomic_exchange(&m->interrupted, false))) {
		(void)lt_sync_end(w, -EINTR);
		rc = -EINTR;
	}
	return rc;
}

/* The time left until @until_ns, rounded up; 0: it has passed. */
static int left_ms(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();

	return until_ns <= now_ns ? 0 : (int)MIN((until_ns - now_ns) / NS_PER_MS + 1, (uint64_t)INT_MAX);
}

/* Runs the engine of the caller until the result has arrived. */
static bool await_own(struct lt_wait *w, uint64_t until_ns)
{
	int ms = -1;

	while (!w->done) {
		if (until_ns) {
			ms = left_ms(until_ns);
			if (!ms)
				return false;
		}
		(void)rpcrdma_engine_wait(w->session->engine, ms); /* 0: a signal, or the time is up */
	}
	return true;
}

static bool await_service(struct lt_wait *w, uint64_t until_ns)
{
	const struct timespec until = { .tv_sec = (time_t)(until_ns / NS_PER_S),
					.tv_nsec = (long)(until_ns % NS_PER_S) };

	while (!w->seen) {
		int rc = until_ns ? sem_clockwait(&w->ended, CLOCK_MONOTONIC, &until) : sem_wait(&w->ended);

		w->seen = !rc && atomic_load_explicit(&w->posted, memory_order_acquire);
		if (rc && errno == ETIMEDOUT)
			return false;
	}
	return true;
}

/* Return: false: the time is up, and the result may still arrive */
static bool await(struct lt_wait *w, uint64_t until_ns)
{
	return w->service ? await_service(w, until_ns) : await_own(w, until_ns);
}

int lt_sync_refused(struct leat *m, const char *name, int rc)
{
	static const char prefix[] = "leat_";

	if (!m || rc >= 0 || rc == -EOWNERDEAD || lt_handle_is_told())
		return rc;
	if (!strncmp(name, prefix, strlen(prefix)))
		name += strlen(prefix);
	lt_handle_tell(m, NULL, NULL, name, rc, "");
	return rc;
}

int64_t lt_sync_end(struct lt_wait *w, int rc)
{
	if (!rc)
		(void)await(w, 0);
	if (w->service)
		sem_destroy(&w->ended);
	if (rc)
		return rc;
	return unlikely(w->interrupted) && w->result == -ECANCELED ? -EINTR : w->result;
}

int64_t lt_sync_end_call(struct lt_wait *w, struct leat *m, const char *name, int rc)
{
	int64_t result = lt_sync_end(w, rc);

	return rc ? lt_sync_refused(m, name, rc) : result;
}

static void rpc_done(struct rpcrdma_call *call, int err)
{
	wait_done(&container_of(call, struct lt_rpc, call)->wait, err);
}

static void rpc_start(struct rpcrdma_msg *msg)
{
	struct lt_rpc *rpc = container_of(msg, struct lt_rpc, msg);
	int rc = rpcrdma_clnt_call(rpc->clnt, &rpc->call);

	if (rc)
		wait_done(&rpc->wait, rc);
}

int lt_sync_rpc(struct lt_server *server, struct rpcrdma_clnt *c, struct lt_rpc *rpc)
{
	struct rpcrdma_engine *e = rpcrdma_clnt_engine(c);
	int rc = lt_sync_begin(&rpc->wait, server->session);

	if (rc)
		return rc;
	if (!rpc->wait.service && e != server->session->engine)
		init_wait(&rpc->wait, server->session, true);
	rpc->clnt = c;
	rpc->msg.fn = rpc_start;
	rpc->call.done = rpc_done;
	rpc->call.why = NULL;
	rpc->call.deadline_ms = rpc->patience_ms ? rpc->patience_ms : server->url.timeo_ms;
	if (rpc->wait.service)
		rpcrdma_engine_post(e, &rpc->msg);
	else
		rc = rpcrdma_clnt_call(c, &rpc->call);
	return (int)lt_sync_end(&rpc->wait, rc);
}

struct run_wait {
	struct rpcrdma_msg msg;
	struct lt_wait wait;
	void (*fn)(void *of, void *arg);
	void *of, *arg;
};

static void run_it(struct rpcrdma_msg *msg)
{
	struct run_wait *r = container_of(msg, struct run_wait, msg);

	r->fn(r->of, r->arg);
	wait_done(&r->wait, 0);
}

int lt_sync_run(struct leat_session *s, void (*fn)(void *of, void *arg), void *of, void *arg)
{
	struct run_wait r = { .fn = fn, .of = of, .arg = arg, .msg = { .fn = run_it } };
	int rc = lt_session_check(s);

	if (rc)
		return rc;
	if (lt_session_is_mine(s)) {
		fn(of, arg);
		return 0;
	}
	rc = lt_sync_begin(&r.wait, s);
	if (rc)
		return rc;
	rpcrdma_engine_post(s->engine, &r.msg);
	return (int)lt_sync_end(&r.wait, 0);
}

static void do_nothing(void *of, void *arg)
{
	(void)of;
	(void)arg;
}

void lt_sync_flush(struct leat_session *s)
{
	struct run_wait r = { .fn = do_nothing, .msg = { .fn = run_it } };

	if (lt_sync_begin(&r.wait, s))
		return;
	rpcrdma_engine_post(s->engine, &r.msg);
	(void)lt_sync_end(&r.wait, 0);
}

int lt_sync_run_at(struct leat_session *s, struct rpcrdma_engine *e, void (*fn)(void *of, void *arg), void *of, void *arg)
{
	struct run_wait r = { .fn = fn, .of = of, .arg = arg, .msg = { .fn = run_it } };
	int rc = lt_session_check(s);

	if (rc)
		return rc;
	if (e == s->engine)
		return lt_sync_run(s, fn, of, arg);
	init_wait(&r.wait, s, true); /* also in a callback: that thread waits for no callback */
	rpcrdma_engine_post(e, &r.msg);
	return (int)lt_sync_end(&r.wait, 0);
}

struct drain {
	struct lt_wait wait;
	bool was_empty;
};

static void begin_drain(void *of, void *arg)
{
	struct leat *m = of;
	struct drain *d = arg;

	d->was_empty = list_is_empty(&m->tasks);
	if (d->was_empty)
		wait_done(&d->wait, 0);
	else
		m->drain = &d->wait;
}

static void end_drain(void *of, void *arg)
{
	struct leat *m = of;
	struct lt_wait *w = arg;

	if (w->done)
		return;
	m->drain = NULL;
	wait_done(w, -ETIMEDOUT);
}

static int drain_once(struct leat *m, uint64_t until_ns, bool *ret_was_empty)
{
	struct drain d;
	int rc = lt_sync_begin(&d.wait, m->session);

	if (rc)
		return rc;
	(void)lt_sync_run(m->session, begin_drain, m, &d);
	if (!await(&d.wait, until_ns))
		(void)lt_sync_run(m->session, end_drain, m, &d.wait);
	*ret_was_empty = d.was_empty;
	return (int)lt_sync_end(&d.wait, 0);
}

/* While the callback of the last operation runs, another thread may post the start of the next one, before or behind our
 * message. The callback has returned when our message has run: a start that it waited for lies before the message after
 * that. */
int lt_sync_drain(struct leat *m, uint64_t until_ns)
{
	unsigned empty = 0;
	bool was_empty = false;
	int rc;

	do {
		rc = drain_once(m, until_ns, &was_empty);
		empty = was_empty ? empty + 1 : 0;
	} while (!rc && empty < 2);
	return rc;
}

bool lt_sync_waits_for(const struct lt_task *t)
{
	return t->cb.fn == wait_done;
}

static bool is_interrupted(const struct lt_task *t, const void *arg)
{
	(void)arg;
	return lt_sync_waits_for(t) && ((const struct lt_wait *)t->cb.user_data)->interrupted;
}

/* The waiters are on the stacks of their threads until wait_done(), which the cancelled tasks run later. */
void lt_sync_interrupt_now(void *of, void *arg)
{
	struct leat *m = of;
	bool any = false;

	(void)arg;
	if (!atomic_load(&m->interrupted))
		return; /* a call that began in the meantime has returned -EINTR */
	list_for_each(node, &m->tasks) {
		struct lt_task *t = list_entry(node, struct lt_task, link);

		if (lt_sync_waits_for(t) && !t->ended && !t->cancelled) {
			((struct lt_wait *)t->cb.user_data)->interrupted = true;
			any = true;
		}
	}
	if (!any)
		return;
	atomic_store(&m->interrupted, false);
	(void)lt_task_cancel(m, is_interrupted, NULL);
}

void lt_sync_interrupt(struct rpcrdma_msg *msg)
{
	struct leat *m = container_of(msg, struct leat, interrupt_msg);

	atomic_store(&m->interrupt_posted, false);
	lt_sync_interrupt_now(m, NULL);
}

void leat_interrupt(struct leat *m)
{
	if (!m || lt_session_check(m->session))
		return;
	atomic_store(&m->interrupted, true);
	if (!atomic_exchange(&m->interrupt_posted, true))
		rpcrdma_engine_post(m->session->engine, &m->interrupt_msg);
}
