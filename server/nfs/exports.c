/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * exports.c - the exports in service, and what happens to open files when others replace them
 *
 * Operation: export.c creates a table; exports.c adds file handles and connects it to the server. served.c replaces it.
 *            An export is identified by its name and its directory. One that comes back has its old handles.
 * Memory:    struct exports, by served.c.
 * Threads:   As exports.h says for each function.
 * Errors:    Occur only before anything has changed.
 */
#include "exports.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "conf.h"
#include "fh_log.h"
#include "nfs.h"
#include "store.h"
#include "store_volume.h"
#include "volume_defaults.h"
#include "volume_manager.h"

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
	int err = exp->backing.limits.tells_changes ? dir_watch_get(all, exp->backing.dev, &exp->dirs) : 0;

	if (err)
		log_warn("export %s: inotify: %s; clients look up names again after each change of theirs",
			 exp->conf.name, strerror(-err));
}

static struct backing *backing_of(struct served *s, size_t i)
{
	return &container_of(s, struct exports, served)->table.v[i].backing;
}

static unsigned judge(struct served *s, size_t i, const struct rpcrdma_peer *peer)
{
	return peers_admit(&exports_from(s)->table.v[i].conf.peers, peer);
}

/* Closing the last descriptor of a removed directory deletes it, and its file system may hang. */
static void close_exports(struct served *s)
{
	struct exports *e = container_of(s, struct exports, served);

	volume_managers_close(&e->table);
	fh_set_destroy(e->fhs);
	for (size_t i = 0; i < e->table.n; i++)
		dir_watch_put(e->table.v[i].dirs);
	export_table_close(&e->table);
}

static int open_managers(const struct exports *old, struct exports *e, char *why, size_t why_bytes)
{
	int err = volume_managers_open(&e->table, old ? &old->table : NULL, why, why_bytes);

	for (size_t i = 0; i < e->table.n; i++) {
		if (!e->table.v[i].manager)
			continue;
		e->table.v[i].made = volume_layout_made;
		e->table.v[i].backing.store = &store_volume_ops;
	}
	return err;
}

int exports_create(struct server *srv, const struct conf *conf, struct served *old, struct served **ret, char *why,
		   size_t why_bytes)
{
	struct nfs_server *s = nfs_server(srv);
	struct exports *e = calloc(1, sizeof(*e));
	int err = -ENOMEM;

	(void)snprintf(why, why_bytes, "out of memory");
	if (!e)
		return err;
	served_init(&e->served, 0, backing_of, close_exports);
	e->served.judge = judge;
	err = export_table_open(conf->exports, conf->nexports, &e->table, why, why_bytes);
	e->served.n = e->table.n;
	for (size_t i = 0; i < e->table.n; i++) {
		e->table.v[i].backing.fsyncs = s->fsyncs;
		watch_dirs(s->dirs, &e->table.v[i]);
	}
	if (!err)
		err = open_managers(exports_from(old), e, why, why_bytes);
	if (!err)
		err = create_handles(s, e, why, why_bytes);
	if (err) {
		served_put(&e->served);
		return err;
	}
	*ret = &e->served;
	return 0;
}

/* ---- replacement -------------------------------------------------------------------------- */

/* Return: true if @now still has the export, with the same directory, kind of handles, atime setting and store. */
static bool is_kept(const struct export *e, const struct exports *now)
{
	const struct export *same = export_find_id(&now->table, e->id);

	return same && same->backing.dev == e->backing.dev && same->backing.ino == e->backing.ino &&
	       same->fh_kind == e->fh_kind && same->backing.limits.atime == e->backing.limits.atime &&
	       store_of(&same->backing) == store_of(&e->backing);
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

void exports_change_over(struct reactor *re, const struct served_use *old, const struct served_use *now)
{
	struct nfs_reactor *r = nfs_reactor(re);
	struct change_over over = { exports_of(old), exports_of(now) };
	bool all_kept = true;

	for (size_t i = 0; i < over.old->table.n; i++)
		all_kept &= is_kept(&over.old->table.v[i], over.now);
	if (all_kept)
		return;
	fdcache_retire(r->files.io, file_is_gone, &over);
	fdcache_retire(r->files.paths, file_is_gone, &over);
	for (size_t i = 0; i < over.old->table.n; i++) /* an administrator may want to unmount it */
		closing_hurry(r->files.closer, over.old->table.v[i].backing.dev);
}

/* ---- log ---------------------------------------------------------------------------------- */

/* Return: the version of its volume's map; 0: it is not the directory of a volume */
static uint64_t map_version(const struct export *e)
{
	return e->manager ? e->manager->map.version : 0;
}

static void announce_volume(const struct export *e)
{
	const struct volume_manager *m = e->manager;

	if (m)
		log_info("volume %s: %016" PRIx64 ", version %" PRIu64 " of its map with %u server%s, new files have %u stripe%s of %u KiB",
			 e->conf.name + 1, m->dir->volume, m->map.version, m->map.n, m->map.n == 1 ? "" : "s", m->width,
			 m->width == 1 ? "" : "s", m->unit >> 10);
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
		if (was && is_kept(was, now) && export_conf_same(&was->conf, &e->conf) && map_version(was) == map_version(e))
			continue;
		log_info("export %s: %s, %s%s%s, %s%s%s", e->conf.name, e->conf.path,
			 e->conf.ro ? "read-only" : "read and write",
			 e->conf.async ? ", not durable" : "",
			 e->conf.async || e->conf.ro || e->backing.limits.orders_names ?
				 "" : ", new files are synced one by one",
			 fh_kind_name((enum fh_kind)e->fh_kind),
			 data_conf_print(&e->conf.data, how, sizeof(how)),
			 e->conf.peers.secure ? "" : ", from any port");
		announce_volume(e);
		if (warning)
			log_warn("export %s: %s", e->conf.name, warning);
	}
}
