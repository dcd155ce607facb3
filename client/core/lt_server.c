/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lt_server.c - finds, creates and releases servers of a session
 *
 * Operation:  A mount asks lt_server_get() for its server. If the session is connected to the same address with the
 *             same settings, the mount shares these connections, their credits and their XIDs. Otherwise choose.c
 *             connects a new server, and lt_server_share() makes it available to later mounts.
 * Memory:     A server lives until its last mount ends.
 * Threads:    The owner's.
 * Errors:     -ENOMEM only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "handle.h"
#include "lt_server.h"
#include "rpcrdma_lab.h"
#include "sync.h"

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

/* Fills the AUTH_SYS credentials of this process. The stamp distinguishes two servers of one host in the server's
 * duplicate request cache. */
static int fill_cred(struct rpcrdma_cred *cred, const struct lt_url *u)
{
	if (getrandom(&cred->stamp, sizeof(cred->stamp), 0) != sizeof(cred->stamp))
		cred->stamp = (uint32_t)getpid();
	if (gethostname(cred->machine, sizeof(cred->machine) - 1) < 0)
		strcpy(cred->machine, "unknown");
	cred->uid = u->has_uid ? u->uid : geteuid();
	cred->gid = u->has_gid ? u->gid : getegid();
	if (u->has_uid || u->has_gid)
		return 0; /* another user: the groups of this process do not apply */
	return add_groups(cred);
}

static bool same_address(const struct rpcrdma_addr *a, const struct rpcrdma_addr *b)
{
	return a->transport == b->transport && a->port == b->port && !strcmp(a->host, b->host);
}

/* Would the connections of @a serve @b as well? */
static bool same_settings(const struct lt_url *a, const struct lt_url *b)
{
	return a->scheme == b->scheme && a->conns == b->conns && a->credits == b->credits &&
	       a->inline_bytes == b->inline_bytes && a->timeo_ms == b->timeo_ms && a->modes == b->modes &&
	       a->fast_write_bytes == b->fast_write_bytes && a->bounce_bytes == b->bounce_bytes &&
	       a->no_bounce == b->no_bounce && a->reg_entries == b->reg_entries && a->reg_bytes == b->reg_bytes &&
	       a->dirty_watermark == b->dirty_watermark && a->socket_uid == b->socket_uid &&
	       !strcmp(a->shares, b->shares) && !strcmp(a->registration, b->registration) && !strcmp(a->monitor, b->monitor);
}

/* The process may have changed its user since the connection was made. */
static bool same_identity(const struct rpcrdma_cred *a, const struct rpcrdma_cred *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->ngids == b->ngids &&
	       !memcmp(a->gids, b->gids, a->ngids * sizeof(a->gids[0]));
}

int lt_server_get(struct leat_session *s, const struct lt_url *u, const struct rpcrdma_addr *named, enum lt_server_kind kind,
		  struct lt_server **ret)
{
	struct rpcrdma_cred cred = { 0 };
	struct lt_server *srv;
	int rc = fill_cred(&cred, u);

	if (rc)
		return rc;
	list_for_each(node, &s->servers) {
		srv = list_entry(node, struct lt_server, link);
		if (same_address(&srv->named, named) && same_settings(&srv->url, u) && srv->kind == kind &&
		    same_identity(&srv->cred, &cred)) {
			srv->refs++;
			*ret = srv;
			return 0;
		}
	}
	srv = calloc(1, sizeof(*srv));
	if (!srv)
		return -ENOMEM;
	if (getrandom(&srv->lane_instance, sizeof(srv->lane_instance), 0) != sizeof(srv->lane_instance)) {
		free(srv);
		return -ENOMEM;
	}
	srv->session = s;
	srv->refs = 1;
	srv->url = *u;
	srv->named = srv->addr = *named;
	srv->cred = cred;
	srv->kind = kind;
	list_init(&srv->link);
	list_init(&srv->mounts);
	for (size_t i = 0; i < ARRAY_SIZE(srv->watch); i++)
		srv->watch[i].server = srv;
	*ret = srv;
	return 0;
}

static void share(void *of, void *arg)
{
	struct lt_server *s = of;

	(void)arg;
	if (!list_is_linked(&s->link))
		list_add_tail(&s->session->servers, &s->link);
}

void lt_server_share(struct lt_server *s)
{
	(void)lt_sync_run(s->session, share, s, NULL);
}

void lt_server_put(struct lt_server *s)
{
	if (!s || --s->refs)
		return;
	for (unsigned i = s->clnts; i-- > 0;)
		lt_server_close(s, s->clnt[i]);
	list_del(&s->link);
	free(s);
}

/* Tells the mounts when the first connection becomes silent, and when none is silent any more. */
static void on_away(void *ctx, bool silent, const char *why)
{
	struct lt_watch *of = ctx;
	struct lt_server *s = of->server;
	bool any = false;

	of->silent = silent;
	for (size_t i = 0; i < ARRAY_SIZE(s->watch); i++)
		any |= s->watch[i].silent;
	if (any == s->is_away)
		return;
	s->is_away = any;
	s->session->servers_away += any ? 1u : -1u;
	list_for_each(node, &s->mounts) {
		struct leat *m = list_entry(node, struct leat, link);

		m->away(m->away_ctx, any, why);
	}
}

/* Calls are sent after this. */
static void on_state(void *ctx, enum rpcrdma_clnt_state state, const char *why)
{
	struct lt_watch *of = ctx;

	(void)why;
	if (state == RPCRDMA_CLNT_UP && of->index < LT_CONNS_MAX)
		atomic_fetch_add_explicit(&of->server->incarnation[of->index], 1, memory_order_relaxed);
}

static struct lt_watch *watch_of(struct lt_server *s, const struct rpcrdma_clnt *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->watch); i++)
		if (s->watch[i].clnt == c)
			return &s->watch[i];
	return NULL;
}

struct open_conn {
	struct rpcrdma_engine *engine;
	unsigned index;
	struct rpcrdma_clnt_attr attr;
	struct rpcrdma_clnt **ret;
	int err;
};

static void open_conn(void *of, void *arg)
{
	struct lt_server *s = of;
	struct open_conn *o = arg;
	struct lt_watch *watch = watch_of(s, NULL);

	o->err = -ENOBUFS;
	if (!watch)
		return;
	watch->index = o->index;
	o->attr.state = on_state;
	o->attr.ctx = watch;
	/* the mounts may be told on the session's thread only */
	if (s->kind == LT_SERVER_WATCHED && o->engine == s->session->engine)
		o->attr.away = on_away;
	o->err = rpcrdma_clnt_open(o->engine, &o->attr, o->ret);
	if (!o->err)
		watch->clnt = *o->ret;
}

struct rpcrdma_engine *lt_server_engine(const struct lt_server *s, unsigned index)
{
	unsigned thread = index == LT_CONN_OTHER ? 0 : index % s->session->conf.threads;

	return thread ? s->session->more[thread - 1].engine : NULL;
}

int lt_server_open(struct lt_server *s, unsigned index, const struct rpcrdma_clnt_attr *attr, struct rpcrdma_clnt **ret)
{
	struct rpcrdma_engine *e = lt_server_engine(s, index);
	struct open_conn o = { .engine = e ? e : s->session->engine, .index = index, .attr = *attr, .ret = ret };
	int rc = lt_sync_run_at(s->session, o.engine, open_conn, s, &o);

	return rc ? rc : o.err;
}

int lt_server_dial(struct lt_server *s, unsigned index, const struct rpcrdma_addr *addr, uint32_t connect_ms,
		   struct rpcrdma_clnt **ret)
{
	const struct rpcrdma_lab lab = {
		/* a TCP connection has no modes: it may serve only for discovery or for MOUNT */
		.modes = addr->transport == RPCRDMA_TCP ? 0 : s->url.modes,
		.fast_write_bytes = s->url.fast_write_bytes,
	};
	const struct rpcrdma_clnt_attr attr = {
		.size = sizeof(attr),
		.addr = *addr,
		.lab = &lab,
		.cred = s->cred,
		.inline_bytes = s->url.inline_bytes,
		.credits = s->url.credits,
		.timeout_ms = s->url.timeo_ms,
		.connect_ms = connect_ms,
		.registration = s->url.registration[0] ? s->url.registration : NULL,
		.monitor = s->url.monitor[0] ? s->url.monitor : NULL,
		.bounce_bytes = s->url.bounce_bytes,
		.no_bounce = s->url.no_bounce,
		.reg_entries = s->url.reg_entries,
		.reg_bytes = (size_t)s->url.reg_bytes,
		.dirty_watermark = s->url.dirty_watermark,
		/* the user chose the path of a local:// URL; that of leat://, or of a stripe server, came from a server */
		.check_socket = s->url.scheme == LT_SCHEME_LEAT || s->kind == LT_SERVER_STRIPES,
		.socket_uid = s->url.socket_uid,
		.shares = s->url.shares[0] ? s->url.shares : NULL,
	};

	return lt_server_open(s, index, &attr, ret);
}

static void close_conn(void *of, void *arg)
{
	struct lt_watch *watch = watch_of(of, arg);

	rpcrdma_clnt_destroy(arg);
	if (!watch)
		return;
	watch->clnt = NULL;
	if (watch->silent)
		on_away(watch, false, "");
}

void lt_server_close(struct lt_server *s, struct rpcrdma_clnt *c)
{
	if (!c)
		return;
	(void)lt_sync_run_at(s->session, rpcrdma_clnt_engine(c), close_conn, s, c);
}

static void look_conn(void *of, void *arg)
{
	rpcrdma_clnt_info(of, arg);
}

void lt_server_look(struct lt_server *s, struct rpcrdma_clnt *c, struct rpcrdma_clnt_info *ret)
{
	if (!c || lt_sync_run_at(s->session, rpcrdma_clnt_engine(c), look_conn, c, ret))
		memset(ret, 0, sizeof(*ret));
}
