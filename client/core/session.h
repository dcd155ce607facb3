/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * session.h - what mounts share: one event loop, the thread that runs it, registered memory, servers
 */
#ifndef LT_SESSION_H
#define LT_SESSION_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/util.h"
#include "io_thread.h"
#include "leat.h"
#include "opts.h"
#include "rpcrdma.h"

struct lt_bulk;
struct lt_subreq;
struct lt_stage;

/* Bytes in flight of several operations together. An operation that finds them used up waits in turn (lt_bulk.c).
 * Owner's thread only. */
struct lt_budget {
	uint64_t max, used;
	struct list waiting;               /* struct lt_bulk */
	uint64_t replies;                  /* of a server: so far */
};

struct leat_session {
	/* set by lt_session_create(), constant afterwards */
	struct leat_opts opts;             /* of mounts without options of their own */
	struct lt_url conf;                /* the settings of the session itself: no server, no path */
	struct rpcrdma_domain *domain;
	struct rpcrdma_engine *engine;
	struct lt_io_thread more[LT_THREADS_MAX - 1]; /* the first conf.threads - 1 are in use */
	const uint32_t *owner;             /* a page that fork() clears in the child: 1 in the process that created the
	                                    * session, 0 in its children */
	bool is_private;                   /* created by leat_mount(), destroyed by leat_umount() */
	bool is_abandoned;                 /* in a child: its copies of the sockets are closed */

	/* owner's thread only */
	struct list servers;               /* struct lt_server */
	unsigned mounts;
	unsigned servers_away;             /* those that do not reply: their next reply runs leat_set_away()'s function */
	bool in_callback;
	bool in_cancel;                    /* tasks that end do so by a message */
	struct lt_subreq *free_subreqs;
	struct lt_stage *free_stages;
	unsigned free_stages_count;
	struct lt_budget stages;           /* memory of staging buffers in use (split/lt_stage.h) */

	/* the service thread */
	atomic_bool has_service;           /* changed only by start and stop, which the caller must not run
	                                    * concurrently */
	pthread_t service;
	bool service_stop;                 /* set and read by the service thread only */
	struct rpcrdma_msg service_msg;

	atomic_uint buffers;               /* of leat_buf_alloc() and leat_buf_register(); any thread */
	pthread_mutex_t lock;              /* protects the members below; a leaf lock */
	struct lt_bulk *free_bulks;
	unsigned free_bulks_count;
};

/** lt_session_create - creates a session with an event loop and without servers
 * @conf: its settings: polling, registered memory
 * @opts: as of leat_mount(), or NULL
 *
 * Return: 0, -ENOMEM, or the errno of opening devices or the capture file.
 */
must_check int lt_session_create(const struct lt_url *conf, const struct leat_opts *opts, struct leat_session **ret);

/** lt_session_destroy - destroys a session without mounts, also a partly built one. NULL is fine. */
void lt_session_destroy(struct leat_session *s);

/** lt_session_conflict - names the setting of @u or @opts that only the session can have and has otherwise; NULL: none
 * @opts: those of the mount, or NULL
 */
const char *lt_session_conflict(const struct leat_session *s, const struct lt_url *u, const struct leat_opts *opts);

/** lt_session_is_serving - is this the service thread of the session? */
bool lt_session_is_serving(const struct leat_session *s);

/** lt_session_is_mine - may the calling thread touch the members of the owner's thread? */
static inline bool lt_session_is_mine(const struct leat_session *s)
{
	return !atomic_load_explicit(&s->has_service, memory_order_acquire) || lt_session_is_serving(s);
}

/** lt_session_visit - makes this thread the owner's until lt_session_leave(), if the service thread sleeps
 * Callbacks of the program still run on the service thread: lt_task_end() sees to that.
 * @ret_serves: for lt_session_leave(): the session that this thread serves otherwise, or NULL
 *
 * Return: false: the service thread does not sleep, post a message
 */
must_check bool lt_session_visit(struct leat_session *s, const struct leat_session **ret_serves);
void lt_session_leave(struct leat_session *s, const struct leat_session *serves);

/** lt_session_is_visited - is the calling thread, which owns the session now, not its service thread? */
static inline bool lt_session_is_visited(const struct leat_session *s)
{
	return rpcrdma_engine_is_visited(s->engine);
}

/** lt_session_check - may this process use the session?
 * Return: 0; -EINVAL: no session; -EOWNERDEAD: a child of the process that created it */
static inline int lt_session_check(const struct leat_session *s)
{
	if (unlikely(!s))
		return -EINVAL;
	return likely(*s->owner) ? 0 : -EOWNERDEAD;
}

/** lt_session_abandon - ends the session in a child process: closes its copies of the sockets, and touches nothing else */
void lt_session_abandon(struct leat_session *s);

#endif
