/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_manager.c - opens the manager of a volume: key file, map, and directory
 *
 * Operation: Everything is read and checked before anything is changed, so that a reload with a wrong map changes nothing.
 *            The directory is locked with flock(), so that it has one manager. The name of the extended attribute is
 *            chosen once, when the root directory gets its defaults. Otherwise layouts that a leatd of root wrote would be
 *            invisible to one of another user.
 * Memory:    A manager owns its map. struct volume_dir is counted.
 * Threads:   That of server_start(), or a reload.
 * Errors:    A text for the user.
 */
#include "volume_manager.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/opt.h"
#include "export.h"
#include "file_layout.h"
#include "leat_volume.h"
#include "stripe_key.h"
#include "volume_leases.h"
#include "volume_pending.h"
#include "volume_reach.h"

/* ---- the directory -------------------------------------------------------------------------- */

static bool has_attribute(int fd, const char *name)
{
	return fgetxattr(fd, name, NULL, 0) >= 0;
}

static int set_defaults(int fd, const char *name)
{
	uint8_t bytes[DIR_DEFAULTS_BYTES];

	dir_defaults_encode(&(struct dir_defaults){ 0, 0 }, bytes);
	return fsetxattr(fd, name, bytes, sizeof(bytes), XATTR_CREATE) ? -errno : 0;
}

/* Only root can have set the first one, so it counts, whatever another user may add. */
static int choose_attribute(struct volume_dir *d, int files_fd, char *why, size_t why_bytes)
{
	int err = 0;

	d->attribute = FILE_LAYOUT_ROOT;
	if (has_attribute(files_fd, d->attribute))
		return 0;
	d->attribute = FILE_LAYOUT_USER;
	if (has_attribute(files_fd, d->attribute))
		return 0;
	if (set_defaults(files_fd, FILE_LAYOUT_ROOT))
		err = set_defaults(files_fd, FILE_LAYOUT_USER);
	else
		d->attribute = FILE_LAYOUT_ROOT;
	if (!err && fsync(files_fd))
		err = -errno;
	return err ? opt_fail(err, why, why_bytes, "its file system keeps no extended attributes: %s", strerror(-err)) : 0;
}

static int fill_dir(struct volume_dir *d, int root_fd, char *why, size_t why_bytes)
{
	struct stat st;

	d->fd = openat(root_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->fd < 0 || fstat(root_fd, &st))
		return opt_fail(-errno, why, why_bytes, "%s", strerror(errno));
	d->dev = st.st_dev;
	d->ino = st.st_ino;
	if (flock(d->fd, LOCK_EX | LOCK_NB))
		return opt_fail(-EBUSY, why, why_bytes, "%s", errno == EWOULDBLOCK ? "another leatd manages it" : strerror(errno));
	d->pending_fd = dir_make(d->fd, "pending");
	if (d->pending_fd < 0)
		return opt_fail(d->pending_fd, why, why_bytes, "pending: %s", strerror(-d->pending_fd));
	d->writers_fd = dir_make(d->fd, "writers");
	if (d->writers_fd < 0)
		return opt_fail(d->writers_fd, why, why_bytes, "writers: %s", strerror(-d->writers_fd));
	return choose_attribute(d, root_fd, why, why_bytes);
}

static void put_dir(struct volume_dir *d)
{
	if (!d || atomic_fetch_sub(&d->refs, 1) != 1)
		return;
	volume_reach_stop(d->reach); /* it wakes the thread of pending work, which uses what it knows */
	volume_pending_destroy(d->pending);
	volume_reach_destroy(d->reach);
	volume_leases_destroy(d->leases);
	if (d->writers_fd >= 0)
		close(d->writers_fd);
	if (d->pending_fd >= 0)
		close(d->pending_fd);
	if (d->fd >= 0)
		close(d->fd);
	for (unsigned i = 0; i < VOLUME_LOCKS; i++)
		pthread_mutex_destroy(&d->locks[i]);
	pthread_mutex_destroy(&d->log_lock);
	free(d);
}

static int open_dir(int root_fd, uint64_t volume, struct volume_dir **ret, char *why, size_t why_bytes)
{
	struct volume_dir *d = calloc(1, sizeof(*d));
	pthread_mutexattr_t recursive;
	struct siphash_key random;
	int err;

	if (!d)
		return opt_fail(-ENOMEM, why, why_bytes, "out of memory");
	atomic_init(&d->refs, 1);
	d->fd = d->pending_fd = d->writers_fd = -1;
	d->volume = volume;
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	for (unsigned i = 0; i < VOLUME_LOCKS; i++)
		pthread_mutex_init(&d->locks[i], &recursive);
	pthread_mutexattr_destroy(&recursive);
	pthread_mutex_init(&d->log_lock, NULL);
	d->refusals = d->damages = d->sizes = (struct log_limit)LOG_LIMIT_INIT;
	err = siphash_key_random(&random);
	if (err)
		random = (struct siphash_key){ 0, 0 };
	atomic_init(&d->turn, (unsigned)random.k0); /* a restart need not begin at the first server again */
	atomic_init(&d->moves_begun, random.k1);
	atomic_init(&d->moves_ended, random.k1);
	err = fill_dir(d, root_fd, why, why_bytes);
	if (!err) {
		err = volume_leases_create(d->writers_fd, &d->leases);
		if (!err)
			err = volume_reach_create(d, &d->reach);
		if (!err)
			err = volume_pending_create(d, &d->pending);
		if (err)
			(void)opt_fail(err, why, why_bytes, "%s", strerror(-err));
	}
	if (err)
		put_dir(d);
	else
		*ret = d;
	return err;
}

/* ---- the map -------------------------------------------------------------------------------- */

static int read_map(const char *path, char *text, size_t *ret_bytes, char *why, size_t why_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = 0;
	struct stat st;
	ssize_t n = 0;

	*ret_bytes = 0;
	if (fd < 0)
		return opt_fail(-errno, why, why_bytes, "%s", strerror(errno));
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	while (!err && *ret_bytes <= VOLUME_MAP_FILE_MAX &&
	       (n = read(fd, text + *ret_bytes, VOLUME_MAP_FILE_MAX + 1 - *ret_bytes)) > 0)
		*ret_bytes += (size_t)n;
	if (n < 0)
		err = -errno;
	close(fd);
	return err ? opt_fail(err, why, why_bytes, "%s", err == -EINVAL ? "not a regular file" : strerror(-err)) : 0;
}

static int load_map(const char *path, struct volume_map *ret, char *why, size_t why_bytes)
{
	char *text = malloc(VOLUME_MAP_FILE_MAX + 1), reason[256] = "";
	size_t bytes;
	int err;

	if (!text)
		return opt_fail(-ENOMEM, why, why_bytes, "out of memory");
	err = read_map(path, text, &bytes, reason, sizeof(reason));
	if (!err)
		err = volume_map_parse(text, bytes, ret, reason, sizeof(reason));
	free(text);
	return err ? opt_fail(err, why, why_bytes, "map %s: %s", path, reason) : 0;
}

static bool same_servers(const struct volume_map *a, const struct volume_map *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++) {
		const volume_server *x = &a->servers[i], *y = &b->servers[i];

		if (x->id != y->id || x->state != y->state || strcmp(x->url, y->url))
			return false;
	}
	return true;
}

/* Clients keep a map until they hear of a newer version. */
static int check_version(const struct volume_map *now, const struct volume_map *old, char *why, size_t why_bytes)
{
	if (now->version < old->version)
		return opt_fail(-EINVAL, why, why_bytes, "its version, %" PRIu64 ", is older than the one in force, %" PRIu64,
				now->version, old->version);
	if (now->version == old->version && !same_servers(now, old))
		return opt_fail(-EINVAL, why, why_bytes, "its servers have changed, and its version, %" PRIu64 ", has not",
				now->version);
	return 0;
}

/* ---- the manager ---------------------------------------------------------------------------- */

unsigned volume_manager_full(const struct volume_manager *m, unsigned ret[VOLUME_SERVERS_MAX])
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->map.n; i++) {
		if (m->map.servers[i].state == VOLUME_SERVER_FULL)
			ret[n++] = i;
	}
	return n;
}

static const struct volume_manager *find_old(const struct export_table *old, const struct export *e)
{
	for (size_t i = 0; old && i < old->n; i++) {
		const struct volume_manager *m = old->v[i].manager;

		if (m && m->dir->dev == e->backing.dev && m->dir->ino == e->backing.ino)
			return m;
	}
	return NULL;
}

static int share_dir(const struct export *e, uint64_t volume, const struct volume_manager *old, struct volume_manager *m,
		     char *why, size_t why_bytes)
{
	char reason[256] = "";
	int err = check_version(&m->map, &old->map, reason, sizeof(reason));

	if (err)
		return opt_fail(err, why, why_bytes, "map %s: %s", e->conf.map, reason);
	if (old->dir->volume != volume)
		return opt_fail(-EBUSY, why, why_bytes, "%s: until now it is of volume %016" PRIx64, e->conf.path, old->dir->volume);
	m->dir = old->dir;
	atomic_fetch_add(&m->dir->refs, 1);
	return 0;
}

static int open_manager(const struct export *e, const struct volume_manager *old, struct volume_manager *m, char *why,
			size_t why_bytes)
{
	const struct export_conf *c = &e->conf;
	char reason[256] = "";
	uint64_t volume = 0;
	int err;

	m->name = strdup(c->name);
	if (!m->name)
		return opt_fail(-ENOMEM, why, why_bytes, "out of memory");
	m->async = c->async;
	err = stripe_key_load(c->key, &volume, &m->keys, why, why_bytes);
	if (!err)
		err = leat_volume_key_read(c->key, &m->key, why, why_bytes);
	if (!err)
		err = load_map(c->map, &m->map, why, why_bytes);
	if (err)
		return err;
	if (m->map.volume != volume)
		return opt_fail(-EINVAL, why, why_bytes, "map %s: it is of volume %016" PRIx64 ", and the key of %016" PRIx64, c->map,
				m->map.volume, volume);
	if (c->width > m->map.n)
		return opt_fail(-EINVAL, why, why_bytes, "width=%u: there are %u servers", c->width, m->map.n);
	m->unit = c->stripe;
	m->stripe_timeo_ms = c->stripe_timeo_ms;
	m->start_free = c->start == EXPORT_START_FREE;
	m->width = c->width ? c->width : m->map.n;
	if (old)
		return share_dir(e, volume, old, m, why, why_bytes);
	err = open_dir(e->root_fd, volume, &m->dir, reason, sizeof(reason));
	return err ? opt_fail(err, why, why_bytes, "%s: %s", c->path, reason) : 0;
}

/* Return: an earlier export that manages the same volume; NULL: none */
static const struct export *find_twin(const struct export_table *t, const struct export *e)
{
	for (const struct export *other = t->v; other < e; other++) {
		if (other->manager && other->manager->dir->volume == e->manager->dir->volume)
			return other;
	}
	return NULL;
}

int volume_managers_open(struct export_table *now, const struct export_table *old, char *why, size_t why_bytes)
{
	for (size_t i = 0; i < now->n; i++) {
		struct export *e = &now->v[i];
		const struct export *twin = NULL;
		char reason[512] = "";
		int err;

		if (!e->conf.key)
			continue;
		e->manager = calloc(1, sizeof(*e->manager));
		if (!e->manager)
			return opt_fail(-ENOMEM, why, why_bytes, "out of memory");
		atomic_init(&e->manager->refs, 1);
		err = open_manager(e, find_old(old, e), e->manager, reason, sizeof(reason));
		if (!err)
			twin = find_twin(now, e);
		if (twin)
			err = opt_fail(-EINVAL, reason, sizeof(reason), "%s is of the same volume, %016" PRIx64, twin->conf.name,
				       e->manager->dir->volume);
		if (err)
			return opt_fail(err, why, why_bytes, "volume %s: %s", e->conf.name + 1, reason);
	}
	return 0;
}

void volume_managers_use(const struct export_table *t, struct fh_set *fhs)
{
	for (size_t i = 0; i < t->n; i++) {
		struct volume_manager *m = t->v[i].manager;

		if (!m)
			continue;
		volume_reach_use(m->dir->reach, m);
		volume_pending_use(m->dir->pending, m, fhs, t->v[i].id);
	}
}

void volume_manager_put(struct volume_manager *m)
{
	if (!m || atomic_fetch_sub(&m->refs, 1) != 1)
		return;
	volume_map_fini(&m->map);
	explicit_bzero(&m->keys, sizeof(m->keys));
	leat_volume_key_free(m->key);
	free(m->name);
	free(m);
}

void volume_managers_count(const struct export_table *t, struct volume_counts *ret)
{
	struct volume_leases_stats leases = { 0 };

	*ret = (struct volume_counts){ 0 };
	for (size_t i = 0; i < t->n; i++) {
		const struct volume_manager *m = t->v[i].manager;

		if (!m)
			continue;
		volume_leases_count(m->dir->leases, &leases);
		ret->ranges += atomic_load(&m->dir->ranges);
		ret->length_queries += atomic_load(&m->dir->length_queries);
	}
	ret->leases = leases.now;
	ret->leases_given = leases.given;
	ret->leases_lapsed = leases.lapsed;
	ret->leases_refused = leases.refused;
}

void volume_managers_close(struct export_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct volume_manager *m = t->v[i].manager;
		struct volume_dir *d = m ? m->dir : NULL;

		if (d)
			volume_pending_leave(d->pending, m);
		volume_manager_put(m);
		put_dir(d);
		t->v[i].manager = NULL;
	}
}
