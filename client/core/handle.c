/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * handle.c - creates and destroys handles; the service thread; the last error
 *
 * Operation:  mount.c creates a handle with lt_handle_create() and fills it. Each handle has its own
 *             domain and engine, so two mounts of a process share nothing.
 * Memory:     lt_handle_destroy() releases everything in reverse order.
 * Threads:    Without the service thread, the caller's thread owns the engine. leat_service_start() passes
 *             ownership to the service thread. leat_service_stop() returns it after all messages posted so
 *             far.
 * Errors:     leat_error() gives each thread its own copy, so the text does not change while the thread reads it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "cache.h"
#include "handle.h"
#include "io.h"
#include "mount_ref.h"
#include "opts.h"
#include "rpcrdma_lab.h"

#define ARENA_BYTES ((size_t)64 << 20)

/* keeps long names from pushing the reason off the line */
#define URL_TOLD_MAX 256
#define PATH_TOLD_MAX 300u
#define PATH2_TOLD_MAX 150u

/* In a service thread: the handle that it serves. */
static _Thread_local const struct leat *serving;

/* Adds the first of the process's groups; AUTH_SYS limits their number. getgroups() returns all groups or none. */
static int add_groups(struct rpcrdma_cred *cred)
{
	int n = getgroups(0, NULL);
	gid_t *groups = calloc((size_t)MAX(n, 0) + 1, sizeof(*groups));

	if (!groups)
		return -ENOMEM;
	n = getgroups(MAX(n, 0), groups);
	for (int i = 0; i < n && cred->ngids < ARRAY_SIZE(cred->gids); i++)
		cred->gids[cred->ngids++] = groups[i];
	free(groups);
	return 0;
}

/* Fills the AUTH_SYS credentials of this process. The stamp distinguishes two handles of one host in the server's
 * duplicate request cache. */
static int fill_cred(struct leat *m)
{
	struct rpcrdma_cred *cred = &m->cred;

	if (getrandom(&cred->stamp, sizeof(cred->stamp), 0) != sizeof(cred->stamp))
		cred->stamp = (uint32_t)getpid();
	if (gethostname(cred->machine, sizeof(cred->machine) - 1) < 0)
		snprintf(cred->machine, sizeof(cred->machine), "unknown");
	cred->uid = m->url.has_uid ? m->url.uid : geteuid();
	cred->gid = m->url.has_gid ? m->url.gid : getegid();
	if (m->url.has_uid || m->url.has_gid)
		return 0; /* another user: the groups of this process do not apply */
	return add_groups(cred);
}

static size_t arena_bytes(const struct lt_url *url)
{
	if (strcmp(url->registration, "arena") != 0)
		return 0;
	return url->reg_bytes ? (size_t)url->reg_bytes
			      : MIN(rpcrdma_reg_bytes_default(), ARENA_BYTES);
}

static int create_engine(struct leat *m, const struct leat_opts *opts)
{
	struct rpcrdma_lab lab = { .unsafe_inv = m->url.unsafe_inv };
	struct rpcrdma_domain_attr domain_attr = { .arena_bytes = arena_bytes(&m->url), .lab = &lab };
	struct rpcrdma_engine_attr attr = { .poll = m->url.poll, .spin_us = m->url.spin_us };
	int rc;

	if (opts) {
		m->away = opts->away;
		m->away_ctx = opts->away_ctx;
		lab.capture = opts->capture;
		lab.reg_cost = opts->reg_cost;
	}
	rc = rpcrdma_domain_create(&domain_attr, &m->domain);
	if (rc)
		return rc;
	return rpcrdma_engine_create(m->domain, &attr, &m->engine);
}

/* Return: 0, -ENOMEM, or the errno of opening devices or the capture file. */
int lt_handle_create(const struct lt_url *url, const struct leat_opts *opts, struct leat **ret)
{
	struct leat *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	m->url = *url;
	m->timeo_ms = url->timeo_ms;
	list_init(&m->files);
	atomic_init(&m->has_service, false);
	rc = -pthread_mutex_init(&m->lock, NULL);
	if (rc) {
		free(m);
		return rc;
	}
	m->ref = lt_mount_ref_create(m);
	rc = m->ref ? fill_cred(m) : -ENOMEM;
	if (!rc)
		rc = create_engine(m, opts);
	if (!rc && !url->no_cache)
		rc = lt_cache_create(url->acmax_s, &m->cache);
	if (rc) {
		lt_handle_destroy(m);
		return rc;
	}
	*ret = m;
	return 0;
}

void lt_handle_destroy(struct leat *m)
{
	if (!m)
		return;
	for (unsigned i = m->clnts; i-- > 0;)
		rpcrdma_clnt_destroy(m->clnt[i]);
	lt_mount_ref_end(m->ref);
	lt_io_free_pools(m);
	lt_cache_destroy(m->cache);
	rpcrdma_engine_destroy(m->engine);
	rpcrdma_domain_destroy(m->domain);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

bool lt_handle_is_serving(const struct leat *m)
{
	return serving == m;
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
	return m->is_leatd || m->cred.uid ? m->runs_as : "the server may squash root";
}

void lt_handle_tell(struct leat *m, const char *path, const char *path2, const char *what, int err,
		    const char *cause)
{
	char place[URL_TOLD_MAX + PATH_TOLD_MAX + 8], place2[PATH2_TOLD_MAX + 8] = "";
	const char *reason = strerror(-err), *squashed = squashing(m, err, cause);
	const char *cwd;
	size_t len;

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
	if (!strcmp(cause, reason))
		cause = "";
	pthread_mutex_lock(&m->lock);
	snprintf(m->error, sizeof(m->error), "%s%s%s: %s: %s%s%s%s%s%s", place,
		 place2[0] ? " to " : "", place2, what, reason, cause[0] ? " (" : "", cause,
		 squashed[0] ? "; " : "", squashed, cause[0] ? ")" : "");
	pthread_mutex_unlock(&m->lock);
}

char *lt_thread_error(void)
{
	static _Thread_local char text[LT_ERROR_BYTES];

	return text;
}

const char *leat_error(const struct leat *m)
{
	static _Thread_local char copy[sizeof(m->error)];
	struct leat *w = (struct leat *)(uintptr_t)m; /* the lock is not part of the const promise */

	if (!m)
		return lt_thread_error();
	pthread_mutex_lock(&w->lock);
	memcpy(copy, m->error, sizeof(copy));
	pthread_mutex_unlock(&w->lock);
	return copy;
}

static void *service_main(void *arg)
{
	struct leat *m = arg;

	serving = m;
	while (!m->service_stop)
		(void)rpcrdma_engine_wait(m->engine, -1); /* 0 after a signal: wait again */
	return NULL;
}

static void service_stopped(struct rpcrdma_msg *msg)
{
	container_of(msg, struct leat, service_msg)->service_stop = true;
}

/* Return: 0; -EALREADY: already running; -EDEADLK: from a callback; -EAGAIN: no thread available. */
int leat_service_start(struct leat *m)
{
	int rc;

	if (atomic_load(&m->has_service))
		return -EALREADY;
	if (m->in_callback)
		return -EDEADLK;
	m->service_stop = false;
	atomic_store(&m->has_service, true);
	rc = pthread_create(&m->service, NULL, service_main, m);
	if (rc)
		atomic_store(&m->has_service, false);
	return -rc;
}

/* Does nothing if the thread is not running, or from a callback. */
void leat_service_stop(struct leat *m)
{
	if (!atomic_load(&m->has_service) || lt_handle_is_mine(m))
		return;
	m->service_msg.fn = service_stopped;
	rpcrdma_engine_post(m->engine, &m->service_msg);
	pthread_join(m->service, NULL);
	atomic_store(&m->has_service, false);
}

const char *leat_registration(size_t n)
{
	return rpcrdma_registration(n);
}

const char *leat_version(void)
{
	return LEAT_VERSION;
}
