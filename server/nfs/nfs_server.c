/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_server.c - the file service's part of a server
 *
 * Operation: Loads the keys of file handles, and creates what all reactors share: shared syncs, watched
 *            directories, mount table, write verifiers.
 * Memory:    struct nfs_server owns everything; nfs_server_destroy() frees it.
 * Threads:   The one that starts and stops the server; on_lost() any.
 * Errors:    Logged, and returned.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/log.h"
#include "mount_table.h"
#include "nfs.h"
#include "volume_manager.h"

#define FILES_MAX 16384u    /* limit of open files of one reactor */
#define DIRS_WATCHED_MAX 4096u /* limit per file system; each keeps an inode of about 1 KiB in memory */

static void on_lost(void *ctx, uint64_t dev)
{
	struct nfs_server *s = ctx;

	write_verf_change(&s->write_verf, dev);
}

/* Raises the limit of descriptors; Return: how many open files that allows per reactor */
static size_t raise_file_limit(unsigned nreactors)
{
	struct rlimit rl;
	size_t n = SERVER_FILES_RESERVED * 2;

	if (!getrlimit(RLIMIT_NOFILE, &rl)) {
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl); /* on failure, the limit stays */
		if (!getrlimit(RLIMIT_NOFILE, &rl))
			n = rl.rlim_cur > FILES_MAX * 8 ? FILES_MAX * 8 : (size_t)rl.rlim_cur;
	}
	/* half of them, two for each file: handles being opened need some temporarily, too */
	n = n > SERVER_FILES_RESERVED * 2 ? n - SERVER_FILES_RESERVED : SERVER_FILES_RESERVED;
	return MIN(MAX(n / 4 / nreactors, (size_t)16), (size_t)FILES_MAX);
}

static const char *key_trouble(int err)
{
	if (err == -EINVAL)
		return "its handle.key is not a key";
	if (err == -EKEYREJECTED)
		return "its handle.key must be its user's own, with mode 0600: with it, anyone "
		       "can make handles of any file";
	return strerror(-err);
}

/* For the default directory only: ~/.local/state may be missing. A failure shows later. */
static void make_parents(const char *dir)
{
	char *copy = strdup(dir);

	for (char *p = copy; p && (p = strchr(p + 1, '/')) != NULL; *p = '/') {
		*p = '\0';
		(void)mkdir(copy, 0700);
	}
	free(copy);
}

static int load_keys(const struct conf *conf, struct fh_keys *keys)
{
	int err;

	if (conf->state_dir) {
		err = fh_key_load(conf->state_dir, keys);
		if (!err && keys->n > 1)
			log_info("handles signed with %s/handle.key.old are accepted, too",
				 conf->state_dir);
		if (!err)
			return 0;
		if (!conf->state_dir_usual || err == -EKEYREJECTED) {
			log_err("state-dir %s: %s", conf->state_dir, key_trouble(err));
			return err;
		}
		log_warn("%s: %s; file handles will not outlive this run", conf->state_dir,
			 key_trouble(err));
	}
	keys->n = 1;
	keys->is_new = true;
	err = siphash_key_random(&keys->v[0]);
	if (err)
		log_err("no randomness for the key of file handles: %s", strerror(-err));
	return err;
}

static int create_handles(struct nfs_server *s, const struct conf *conf)
{
	static struct export_table none;
	struct fh_keys keys = { .n = 1 };
	int map_err = 0, err = 0;

	/* handles without a signature must not open files by number: a client could forge any number */
	s->fh_kind = conf->unsigned_handles ? FH_MAP : 0;
	s->state_dir_usual = conf->state_dir_usual;
	if (conf->state_dir) {
		s->state_dir = strdup(conf->state_dir);
		if (!s->state_dir) {
			log_err("out of memory");
			return -ENOMEM;
		}
		if (conf->state_dir_usual)
			make_parents(conf->state_dir);
	}
	if (conf->unsigned_handles)
		log_warn("sign-handles no: clients can make handles of files below directories "
			 "that their users may not search");
	else
		err = load_keys(conf, &keys); /* logs errors itself */
	if (err)
		return err;
	err = dir_watches_create(keys.is_new, DIRS_WATCHED_MAX, &s->dirs);
	if (!err)
		err = fh_set_create(&none, &keys, s->fh_kind, s->state_dir, &map_err, &s->fhs);
	if (err)
		log_err("file handles: %s", strerror(-err));
	return err;
}

static int create_all(struct nfs_server *s, const struct conf *conf)
{
	uint64_t verf;
	int err;

	if (getrandom(&verf, sizeof(verf), 0) != (ssize_t)sizeof(verf))
		return -EIO;
	write_verf_init(&s->write_verf, verf);
	err = vfs_init();
	if (err) {
		log_err("/proc is needed: %s", strerror(-err));
		return err;
	}
	err = fsync_batch_create(on_lost, s, &s->fsyncs);
	if (!err)
		err = mount_table_create(&s->mounts);
	if (err) {
		log_err("cannot start: %s", strerror(-err));
		return err;
	}
	return create_handles(s, conf); /* logs errors itself */
}

int nfs_server_create(struct server *srv, const struct conf *conf, unsigned nreactors)
{
	struct nfs_server *s = calloc(1, sizeof(*s));

	srv->service[SERVICE_NFS] = s;
	if (!s) {
		log_err("cannot start: out of memory");
		return -ENOMEM;
	}
	s->files_max = raise_file_limit(nreactors);
	s->room_max = nfs_room_max(conf->pinned_max, nreactors);
	s->manage_gids = conf->manage_gids && creds_can_assume();
	if (conf->manage_gids && !s->manage_gids)
		log_warn("manage-gids has no effect: leatd does not run as root");
	return create_all(s, conf);
}

void nfs_server_changed(struct server *srv, struct served *old, struct served *now)
{
	const struct exports *e = exports_from(now);

	(void)srv;
	exports_announce(exports_from(old), e);
	volume_managers_use(&e->table, e->fhs);
}

void nfs_server_destroy(struct server *srv)
{
	struct nfs_server *s = nfs_server(srv);

	mount_table_destroy(s->mounts);
	fh_set_destroy(s->fhs);
	dir_watches_destroy(s->dirs);
	fsync_batch_destroy(s->fsyncs);
	free(s->state_dir);
	free(s);
}
