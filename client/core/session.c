/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * session.c - creates and destroys sessions; their event loop and service thread; processes that fork
 *
 * Operation:  leat_session_create() makes a session, leat_session_mount() adds mounts to it. leat_mount() makes a
 *             private session for one mount. Sessions share nothing: each has its own domain and engine.
 *
 *             An application adds leat_fd() to poll(2) or epoll(7). When it becomes readable, the application calls
 *             leat_poll(s, 0) until it returns 0. That call arms the descriptor, and the loop may sleep again.
 * Memory:     The session owns the domain with its registered memory, and recycled I/O structures of its mounts.
 * Threads:    Without the service thread, the caller's thread owns the engine. leat_service_start() passes
 *             ownership to the service thread. leat_service_stop() returns it after all messages posted so
 *             far. While the service thread sleeps, a thread that starts an operation takes its place for that
 *             moment (lt_session_visit()), so that only the reply wakes the service thread, if any.
 * Errors:     -EBUSY: the service thread owns the engine, or mounts are left; -EDEADLK: from inside a callback.
 *             -EOWNERDEAD: fork() has copied the session into this process. The rings, sockets and registrations
 *             belong to the parent, so the child uses none of them; it may close the handles and mount again. The
 *             child keeps its copy of their memory: it may have been copied while the service thread was changing it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/thread.h"
#include "lt_bulk.h"
#include "lt_stage.h"
#include "rpcrdma_lab.h"
#include "session.h"
#include "sync.h"

#define ARENA_BYTES ((size_t)64 << 20)

/* In a service thread, and in a thread that takes its place for a moment: the session that it serves. */
static _Thread_local const struct leat_session *serving;

static size_t arena_bytes(const struct lt_url *conf)
{
	if (strcmp(conf->registration, "arena") != 0)
		return 0;
	return conf->reg_bytes ? (size_t)conf->reg_bytes
			       : MIN(rpcrdma_reg_bytes_default(), ARENA_BYTES);
}

static int create_engine(struct leat_session *s, const struct leat_opts *opts)
{
	struct rpcrdma_lab lab = { .unsafe_inv = s->conf.unsafe_inv };
	struct rpcrdma_domain_attr domain_attr = { .arena_bytes = arena_bytes(&s->conf), .lab = &lab };
	struct rpcrdma_engine_attr attr = { .poll = s->conf.poll, .spin_us = s->conf.spin_us };
	int rc;

	if (opts) {
		lab.capture = opts->capture;
		lab.reg_cost = opts->reg_cost;
	}
	rc = rpcrdma_domain_create(&domain_attr, &s->domain);
	if (!rc)
		rc = rpcrdma_engine_create(s->domain, &attr, &s->engine);
	for (unsigned i = 0; i + 1 < s->conf.threads && !rc; i++)
		rc = lt_io_thread_start(&s->more[i], s->domain, &attr);
	return rc;
}

/* Allocates the page that tells a child from its parent. The kernel clears it in the child, whatever call forks. */
static int mark_owner(struct leat_session *s)
{
	uint32_t *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -ENOMEM;
	s->owner = page;
	if (madvise(page, sizeof(*page), MADV_WIPEONFORK) < 0)
		return -errno;
	*page = 1;
	return 0;
}

int lt_session_create(const struct lt_url *conf, const struct leat_opts *opts, struct leat_session **ret)
{
	struct leat_session *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	s->conf = *conf;
	lt_opts_init(&s->opts, opts);
	s->opts.capture = NULL; /* the caller's */
	list_init(&s->servers);
	list_init(&s->stages.waiting);
	s->stages.max = (uint64_t)LT_STAGES_MAX * LT_STAGE_BYTES;
	atomic_init(&s->has_service, false);
	rc = -pthread_mutex_init(&s->lock, NULL);
	if (rc) {
		free(s);
		return rc;
	}
	rc = mark_owner(s);
	if (!rc)
		rc = create_engine(s, opts);
	if (rc) {
		lt_session_destroy(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void lt_session_destroy(struct leat_session *s)
{
	if (!s)
		return;
	lt_bulk_free_pools(s);
	for (unsigned i = 0; i + 1 < s->conf.threads; i++)
		lt_io_thread_stop(&s->more[i]);
	rpcrdma_engine_destroy(s->engine);
	rpcrdma_domain_destroy(s->domain);
	pthread_mutex_destroy(&s->lock);
	if (s->owner)
		(void)munmap((void *)(uintptr_t)s->owner, sizeof(*s->owner));
	free(s);
}

/* Does @cost ask for something that differs from @own? */
static bool is_other_cost(const struct rpcrdma_reg_cost *cost, const struct rpcrdma_reg_cost *own)
{
	static const struct rpcrdma_reg_cost none;

	return memcmp(cost, &none, sizeof(none)) && memcmp(cost, own, sizeof(none));
}

const char *lt_session_conflict(const struct leat_session *s, const struct lt_url *u, const struct leat_opts *opts)
{
	const struct lt_url *own = &s->conf;

	if (u->poll != own->poll && u->poll)
		return "poll";
	if (u->threads > own->threads)
		return "threads";
	if (u->spin_us != own->spin_us && u->spin_us != LT_SPIN_US_DEFAULT)
		return "spin";
	if (u->unsafe_inv && !own->unsafe_inv)
		return "unsafe_inv";
	if (!strcmp(u->registration, "arena") && strcmp(own->registration, "arena") != 0)
		return "registration";
	if (opts && opts->capture)
		return "capture";
	if (opts && is_other_cost(&opts->reg_cost, &s->opts.reg_cost))
		return "reg_cost";
	return NULL;
}

bool lt_session_is_serving(const struct leat_session *s)
{
	return serving == s;
}

bool lt_session_visit(struct leat_session *s, const struct leat_session **ret_serves)
{
	static const bool once = true;

	if (!rpcrdma_engine_enter(s->engine))
		return false;
	if (s->servers_away) { /* the next reply runs a callback of the program: leat_set_away() */
		rpcrdma_engine_leave(s->engine);
		return false;
	}
	*ret_serves = serving;
	serving = s;
	rpcrdma_engine_linger(s->engine, &once);
	return true;
}

void lt_session_leave(struct leat_session *s, const struct leat_session *serves)
{
	rpcrdma_engine_leave(s->engine);
	serving = serves;
}

/* ---- processes that fork ---- */

void lt_session_abandon(struct leat_session *s)
{
	if (s->is_abandoned)
		return;
	s->is_abandoned = true;
	rpcrdma_engine_abandon(s->engine);
	for (unsigned i = 0; i + 1 < s->conf.threads; i++)
		rpcrdma_engine_abandon(s->more[i].engine);
}

/* ---- the event loop ---- */

int leat_fd(const struct leat_session *s)
{
	int rc = lt_session_check(s);

	return rc ? rc : rpcrdma_engine_fd(s->engine);
}

int leat_poll(struct leat_session *s, int timeout_ms)
{
	int n = lt_session_check(s);

	if (n)
		return n;
	if (atomic_load(&s->has_service))
		return -EBUSY;
	if (s->in_callback)
		return -EDEADLK;
	if (timeout_ms)
		return rpcrdma_engine_wait(s->engine, timeout_ms);
	for (;;) {
		n = rpcrdma_engine_poll(s->engine);
		if (n || !rpcrdma_engine_arm(s->engine))
			return n;
	}
}

/* ---- the service thread ---- */

static void *service_main(void *arg)
{
	struct leat_session *s = arg;

	serving = s;
	while (!s->service_stop)
		(void)rpcrdma_engine_wait(s->engine, -1); /* 0 after a signal: wait again */
	return NULL;
}

static void service_stopped(struct rpcrdma_msg *msg)
{
	container_of(msg, struct leat_session, service_msg)->service_stop = true;
}

int leat_service_start(struct leat_session *s)
{
	int rc = lt_session_check(s);

	if (rc)
		return rc;
	if (atomic_load(&s->has_service))
		return -EALREADY;
	if (s->in_callback)
		return -EDEADLK;
	s->service_stop = false;
	atomic_store(&s->has_service, true);
	rc = thread_start(&s->service, NULL, service_main, s);
	if (rc)
		atomic_store(&s->has_service, false);
	return rc;
}

void leat_service_stop(struct leat_session *s)
{
	if (lt_session_check(s) || !atomic_load(&s->has_service) || lt_session_is_mine(s))
		return;
	s->service_msg.fn = service_stopped;
	rpcrdma_engine_post(s->engine, &s->service_msg);
	pthread_join(s->service, NULL);
	atomic_store(&s->has_service, false);
}

static void count_mounts(void *of, void *arg)
{
	*(unsigned *)arg = ((struct leat_session *)of)->mounts;
}

int leat_session_free(struct leat_session *s)
{
	unsigned mounts = 0;
	int rc;

	if (!s)
		return 0;
	rc = lt_session_check(s);
	if (rc) {
		lt_session_abandon(s);
		return rc;
	}
	rc = lt_sync_run(s, count_mounts, s, &mounts);
	if (rc)
		return rc;
	if (lt_session_is_mine(s) && (s->in_callback || atomic_load(&s->has_service)))
		return -EDEADLK;
	if (mounts || atomic_load(&s->buffers))
		return -EBUSY;
	leat_service_stop(s);
	lt_session_destroy(s);
	return 0;
}
