/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * exports.c - the exports in service, and their replacement
 *
 * Operation: export.c creates a table; exports.c adds file handles and connects it to the server. To replace the
 *            exports, a complete new set is created first, with stores for each reactor, so that nothing can fail
 *            once the first reactor switches. Each reactor gets a message and switches between two requests:
 *            requests decoded before keep the old exports, later ones see the new. The caller waits until all
 *            reactors have switched. Files that are open in an export that was removed, or now has another
 *            directory, are closed when their last request ends, after their unwritten data is synced.
 *            An export is identified by its name and its directory. One that comes back has its old handles.
 * Memory:    struct exports is held by all threads and has an atomic reference count. struct exports_use is held
 *            on one reactor and has a plain count, so that a request touches no shared cache line.
 * Threads:   As exports.h says for each function; exports_replace() holds srv->reload_lock.
 * Errors:    Occur only before anything has changed.
 */
#include "exports.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "conf.h"
#include "fh_log.h"
#include "nfs.h"
#include "store.h"

#define TROUBLE_BYTES 96

static const char *map_trouble(const char *dir, int err, char text[TROUBLE_BYTES])
{
	long pid = err == -EBUSY ? fh_log_user(dir) : 0;

	if (err == -EINVAL)
		return "its handles.map is not one, or of another version";
	if (err != -EBUSY)
		return strerror(-err);
	if (!pid)
		return "its handles.map is in use by another leatd";
	(void)snprintf(text, TROUBLE_BYTES, "its handles.map is in use by another leatd (process %ld)", pid);
	return text;
}

static int create_handles(struct nfs_server *srv, struct exports *e, char *why, size_t why_bytes)
{
	char trouble[TROUBLE_BYTES];
	int map_err = 0, err;

	err = fh_set_view(srv->fhs, &e->table, srv->fh_kind, !srv->state_dir_usual, &map_err,
			  &e->fhs);
	if (map_err && srv->state_dir_usual)
		log_warn("%s: %s; handles by name will not outlive this run", srv->state_dir,
			 map_trouble(srv->state_dir, map_err, trouble));
	if (err && map_err && !srv->state_dir_usual)
		(void)snprintf(why, why_bytes, "state-dir %s: %s", srv->state_dir,
			       map_trouble(srv->state_dir, map_err, trouble));
	else if (err)
		(void)snprintf(why, why_bytes, "file handles: %s", strerror(-err));
	return err;
}

/* Optional: without it, replies carry no directory attributes from before a change (wcc_data). */
static void watch_dirs(struct dir_watches *all, struct export *exp)
{
	int err = exp->volume.limits.tells_changes ? dir_watch_get(all, exp->volume.dev, &exp->dirs) : 0;

	if (err)
		log_warn("export %s: inotify: %s; clients look up names again after each change of theirs",
			 exp->conf.name, strerror(-err));
}

int exports_create(struct nfs_server *srv, const struct conf *conf, struct exports **ret, char *why,
		   size_t why_bytes)
{
	static _Atomic uint64_t serials;
	struct exports *e = calloc(1, sizeof(*e));
	int err = -ENOMEM;

	(void)snprintf(why, why_bytes, "out of memory");
	if (!e)
		return err;
	atomic_init(&e->refs, 1);
	e->serial = atomic_fetch_add(&serials, 1) + 1;
	err = export_table_open(conf->exports, conf->nexports, &e->table, why, why_bytes);
	for (size_t i = 0; i < e->table.n; i++) {
		e->table.v[i].volume.fsyncs = srv->fsyncs;
		watch_dirs(srv->dirs, &e->table.v[i]);
	}
	if (!err)
		err = create_handles(srv, e, why, why_bytes);
	if (err) {
		exports_put(e);
		return err;
	}
	*ret = e;
	return 0;
}

struct exports *exports_current(struct nfs_server *srv)
{
	struct exports *e;

	pthread_mutex_lock(&srv->exports_lock);
	e = srv->exports;
	atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
	pthread_mutex_unlock(&srv->exports_lock);
	return e;
}

/* May block: closing the last descriptor of a removed directory deletes it, and its file system may hang. */
static void exports_close(struct exports *e)
{
	fh_set_destroy(e->fhs);
	for (size_t i = 0; i < e->table.n; i++)
		dir_watch_put(e->table.v[i].dirs);
	export_table_close(&e->table);
}

void exports_put(struct exports *e)
{
	if (!e || atomic_fetch_sub(&e->refs, 1) != 1)
		return;
	exports_close(e);
	free(e);
}

static void run_end(struct worker_job *job)
{
	exports_close(container_of(job, struct exports, end));
}

static void done_end(struct worker_job *job)
{
	struct exports *e = container_of(job, struct exports, end);

	e->last->loop.flushing--;
	free(e);
}

/* As exports_put(), for a reference that a reactor held. */
static void put_by_worker(struct reactor *r, struct exports *e)
{
	if (atomic_fetch_sub(&e->refs, 1) != 1)
		return;
	if (r->loop.stop) { /* done_end() would not run */
		exports_close(e);
		free(e);
		return;
	}
	e->last = r;
	e->end = (struct worker_job){ .run = run_end, .done = done_end };
	r->loop.flushing++;
	worker_submit(r->loop.workers, r->loop.engine, &e->end);
}

/* ---- one reactor's ------------------------------------------------------------------------ */

void exports_use_free(struct exports_use *u)
{
	for (size_t i = 0; i < u->exports->table.n; i++)
		store_destroy(u->stores[i]);
	put_by_worker(u->reactor, u->exports);
	free(u);
}

int exports_use_create(struct reactor *r, struct exports *e, struct exports_use **ret)
{
	struct exports_use *u = calloc(1, sizeof(*u) + e->table.n * sizeof(u->stores[0]));
	const struct store_env env = { .loop = &r->loop, .counters = &r->counters.store };
	int err = 0;

	if (!u)
		return -ENOMEM;
	atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
	u->exports = e;
	u->reactor = r;
	u->holders = 1;
	for (size_t i = 0; i < e->table.n && !err; i++)
		err = store_make(&env, &e->table.v[i].volume, &u->stores[i]);
	if (err) {
		exports_use_free(u);
		return err;
	}
	*ret = u;
	return 0;
}

/* ---- replacement -------------------------------------------------------------------------- */

struct change {
	struct rpcrdma_msg msg;
	struct reactor *reactor;
	struct exports_use *use; /* the new one; the reactor takes it over */
	sem_t *changed;
};

/* Return: true if @now still has the export, with the same directory, kind of handles, atime setting and store. */
static bool is_kept(const struct export *e, const struct exports *now)
{
	const struct export *same = export_find_id(&now->table, e->id);

	return same && same->volume.dev == e->volume.dev && same->volume.ino == e->volume.ino &&
	       same->fh_kind == e->fh_kind && same->volume.limits.atime == e->volume.limits.atime &&
	       store_of(&same->volume) == store_of(&e->volume);
}

struct change_over {
	const struct exports *old, *now;
};

static bool file_is_gone(void *ctx, const struct fh *fh)
{
	const struct change_over *c = ctx;
	struct export *exp;

	return fh_export(c->old->fhs, fh->data, fh->len, &exp) || !is_kept(exp, c->now);
}

static void on_change(struct rpcrdma_msg *msg)
{
	struct change *c = container_of(msg, struct change, msg);
	struct nfs_reactor *r = nfs_reactor(c->reactor);
	struct exports_use *old = r->exports;
	struct change_over over = { old->exports, c->use->exports };
	bool all_kept = true;

	for (size_t i = 0; i < over.old->table.n; i++)
		all_kept &= is_kept(&over.old->table.v[i], over.now);
	r->exports = c->use;
	c->use = NULL;
	if (!all_kept) {
		fdcache_retire(r->files.io, file_is_gone, &over);
		fdcache_retire(r->files.paths, file_is_gone, &over);
		for (size_t i = 0; i < over.old->table.n; i++) /* an administrator may want to unmount it */
			closing_hurry(r->files.closer, over.old->table.v[i].volume.dev);
	}
	exports_use_put(old);
	sem_post(c->changed);
}

static void change_all(struct nfs_server *srv, struct exports *now, struct change *v)
{
	sem_t changed;

	sem_init(&changed, 0, 0);
	pthread_mutex_lock(&srv->exports_lock);
	srv->exports = now;
	pthread_mutex_unlock(&srv->exports_lock);
	for (unsigned i = 0; i < srv->srv->nreactors; i++) {
		v[i].msg.fn = on_change;
		v[i].changed = &changed;
		rpcrdma_engine_post(srv->srv->reactors[i]->loop.engine, &v[i].msg);
	}
	for (unsigned i = 0; i < srv->srv->nreactors; i++) {
		while (sem_wait(&changed))
			;
	}
	sem_destroy(&changed);
}

int exports_replace(struct nfs_server *srv, const struct conf *conf, char *why, size_t why_bytes)
{
	struct change *v = calloc(srv->srv->nreactors, sizeof(*v));
	struct exports *now = NULL, *old;
	int err = v ? 0 : -ENOMEM;

	pthread_mutex_lock(&srv->reload_lock);
	if (!err && srv->stopping)
		err = -ESHUTDOWN;
	(void)snprintf(why, why_bytes, "%s", err ? strerror(-err) : "");
	if (!err)
		err = exports_create(srv, conf, &now, why, why_bytes);
	for (unsigned i = 0; i < srv->srv->nreactors && !err; i++) {
		v[i].reactor = srv->srv->reactors[i];
		err = exports_use_create(v[i].reactor, now, &v[i].use);
		if (err)
			(void)snprintf(why, why_bytes, "%s", strerror(-err));
	}
	if (!err) {
		old = srv->exports;
		change_all(srv, now, v);
		exports_announce(old, now);
		exports_put(old);
	} else {
		for (unsigned i = 0; v && i < srv->srv->nreactors; i++)
			exports_use_put(v[i].use);
		exports_put(now);
	}
	pthread_mutex_unlock(&srv->reload_lock);
	free(v);
	return err;
}

/* ---- log ---------------------------------------------------------------------------------- */

static bool says_the_same(const struct export_conf *a, const struct export_conf *b)
{
	return !strcmp(a->path, b->path) && a->ro == b->ro && a->secure == b->secure &&
	       a->async == b->async &&
	       a->squash == b->squash && a->anonuid == b->anonuid && a->anongid == b->anongid &&
	       a->nclients == b->nclients &&
	       !memcmp(a->clients, b->clients, a->nclients * sizeof(a->clients[0])) &&
	       data_conf_same(&a->data, &b->data);
}

void exports_announce(const struct exports *old, const struct exports *now)
{
	for (size_t i = 0; old && i < old->table.n; i++) {
		const struct export *e = &old->table.v[i];

		if (!export_find_id(&now->table, e->id))
			log_info("export %s: not served any more", e->conf.name);
	}
	for (size_t i = 0; i < now->table.n; i++) {
		const struct export *e = &now->table.v[i], *was;
		const char *warning = store_spec_warning(&e->conf.data.store);
		char how[DATA_CONF_PRINT_BYTES];

		was = old ? export_find_id(&old->table, e->id) : NULL;
		if (was && is_kept(was, now) && says_the_same(&was->conf, &e->conf))
			continue;
		log_info("export %s: %s, %s%s%s, %s%s%s", e->conf.name, e->conf.path,
			 e->conf.ro ? "read-only" : "read and write",
			 e->conf.async ? ", not durable" : "",
			 e->conf.async || e->conf.ro || e->volume.limits.orders_names ?
				 "" : ", new files are synced one by one",
			 fh_kind_name((enum fh_kind)e->fh_kind),
			 data_conf_print(&e->conf.data, how, sizeof(how)),
			 e->conf.secure ? "" : ", from any port");
		if (warning)
			log_warn("export %s: %s", e->conf.name, warning);
	}
}
