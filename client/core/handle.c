/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * handle.c - creates and destroys mounts; the last error
 *
 * Operation:  mount.c creates a mount with lt_handle_create() and fills it.
 * Memory:     lt_handle_destroy() releases everything in reverse order.
 * Threads:    The owner's. lt_handle_tell() and leat_error(): any.
 * Errors:     leat_error() gives each thread its own copy, so the text does not change while the thread reads it.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cache.h"
#include "handle.h"
#include "mount_ref.h"
#include "opts.h"
#include "sync.h"

/* keeps long names from pushing the reason off the line */
#define URL_TOLD_MAX 256
#define PATH_TOLD_MAX 300u
#define PATH2_TOLD_MAX 150u

struct attach {
	const struct rpcrdma_addr *named;
	int err;
};

/* Makes @of a mount of its session and of a server. */
static void attach_mount(void *of, void *arg)
{
	struct leat *m = of;
	struct attach *a = arg;

	a->err = lt_server_get(m->session, &m->url, a->named, m->away ? LT_SERVER_WATCHED : LT_SERVER_PLAIN,
			       &m->server);
	if (a->err)
		return;
	list_add_tail(&m->server->mounts, &m->link);
	m->session->mounts++;
	if (m->server->is_away)
		m->away(m->away_ctx, true, "it does not reply to another mount");
}

static void detach_mount(void *of, void *arg)
{
	struct leat *m = of;

	(void)arg;
	rpcrdma_timer_cancel(m->session->engine, &m->touch_timer);
	list_del(&m->link);
	lt_server_put(m->server);
	m->session->mounts--;
}

static void free_mount(struct leat *m)
{
	lt_mount_ref_end(m->ref);
	lt_cache_destroy(m->cache);
	pthread_mutex_destroy(&m->lock);
	free(m->source);
	free(m);
}

int lt_handle_create(struct leat_session *s, const struct lt_url *url, const struct rpcrdma_addr *named,
		     const struct leat_opts *opts, struct leat **ret)
{
	struct leat *m = calloc(1, sizeof(*m));
	struct attach a = { .named = named };
	int rc;

	if (!m)
		return -ENOMEM;
	m->session = s;
	m->url = *url;
	m->timeo_ms = url->timeo_ms;
	if (opts) {
		m->away = opts->away;
		m->away_ctx = opts->away_ctx;
	}
	list_init(&m->link);
	list_init(&m->files);
	list_init(&m->grown);
	list_init(&m->opening);
	list_init(&m->removed);
	list_init(&m->tasks);
	atomic_init(&m->interrupted, false);
	atomic_init(&m->ending, false);
	atomic_init(&m->interrupt_posted, false);
	m->interrupt_msg.fn = lt_sync_interrupt;
	rc = -pthread_mutex_init(&m->lock, NULL);
	if (rc) {
		free(m);
		return rc;
	}
	m->ref = lt_mount_ref_create(m);
	if (!m->ref)
		rc = -ENOMEM;
	if (!rc && !url->no_cache)
		rc = lt_cache_create(url->acmax_s, &m->cache);
	if (!rc)
		rc = lt_sync_run(s, attach_mount, m, &a);
	if (!rc)
		rc = a.err;
	if (rc) {
		free_mount(m);
		return rc;
	}
	*ret = m;
	return 0;
}

void lt_handle_destroy(struct leat *m)
{
	struct leat_session *s = m->session;
	bool is_private = s->is_private; /* without this mount, another thread may free a shared session */

	assert(list_is_empty(&m->files) && list_is_empty(&m->tasks));
	(void)lt_sync_run(s, detach_mount, m, NULL);
	free_mount(m);
	if (is_private)
		lt_session_destroy(s);
}

struct leat_session *leat_session(const struct leat *m)
{
	return m ? m->session : NULL;
}

/* Appends "/A/B", the path @path below @dir, to @buf. Of a long path only the end is kept. */
static void add_path(char *buf, size_t cap, const char *dir, const char *path, size_t max)
{
	char text[2 * LT_PATH_MAX + 2];
	size_t at = strlen(buf), len;

	while (*path == '/')
		path++;
	snprintf(text, sizeof(text), "%.*s%s%.*s", LT_PATH_MAX, dir, dir[0] && path[0] ? "/" : "",
		 LT_PATH_MAX, path);
	len = strlen(text);
	if (len > max)
		snprintf(buf + at, cap - at, "/...%s", text + len - max);
	else if (len)
		snprintf(buf + at, cap - at, "/%s", text);
}

/* Hints why the server may refuse an operation that file permissions would allow (squashing); or "". */
static const char *squashing(const struct leat *m, int err, const char *cause)
{
	bool by_server = !strncmp(cause, "NFS3ERR_", 8) || !strcmp(cause, LT_NOT_GRANTED);

	if ((err != -EACCES && err != -EPERM) || !by_server)
		return "";
	return m->server->is_leatd || m->server->cred.uid ? m->runs_as : "the server may squash root";
}

static _Thread_local bool told;

void lt_handle_untold(void)
{
	told = false;
}

bool lt_handle_is_told(void)
{
	return told;
}

void lt_handle_tell(struct leat *m, const char *path, const char *path2, const char *what, int err,
		    const char *cause)
{
	char place[URL_TOLD_MAX + PATH_TOLD_MAX + 8], place2[PATH2_TOLD_MAX + 8] = "";
	const char *reason = strerror(-err), *squashed = squashing(m, err, cause);
	const char *cwd;
	size_t len;

	told = true;
	snprintf(place, sizeof(place), "%.*s", URL_TOLD_MAX, m->given_url);
	len = strlen(place);
	if (len && place[len - 1] == '/')
		place[len - 1] = '\0'; /* of the export "/" */
	pthread_mutex_lock(&m->lock);
	cwd = m->cwd_path + strspn(m->cwd_path, "/");
	if (path)
		add_path(place, sizeof(place), path[0] == '/' ? "" : m->cwd_path[0] ? cwd : m->path, path,
			 PATH_TOLD_MAX);
	pthread_mutex_unlock(&m->lock);
	if (path2)
		add_path(place2, sizeof(place2), "", path2, PATH2_TOLD_MAX);
	cause = text_without_url(cause, m->given_url);
	if (!strcmp(cause, reason))
		cause = "";
	pthread_mutex_lock(&m->lock);
	snprintf(m->error, sizeof(m->error), "%s%s%s: %s: %s%s%s%s%s%s", place,
		 place2[0] ? " to " : "", place2, what, reason, cause[0] ? " (" : "", cause,
		 squashed[0] ? "; " : "", squashed, cause[0] ? ")" : "");
	pthread_mutex_unlock(&m->lock);
}

const char *leat_error(const struct leat *m)
{
	static _Thread_local char copy[sizeof(m->error)];
	struct leat *w = (struct leat *)(uintptr_t)m; /* the lock is not part of the const promise */

	if (!m)
		return lt_thread_error();
	if (lt_session_check(m->session)) /* its lock may be locked for ever */
		return "this mount belongs to the parent of this process";
	pthread_mutex_lock(&w->lock);
	memcpy(copy, m->error, sizeof(copy));
	pthread_mutex_unlock(&w->lock);
	return copy;
}

const char *leat_registration(size_t n)
{
	return rpcrdma_registration(n);
}

const char *leat_version(void)
{
	return LEAT_VERSION;
}
