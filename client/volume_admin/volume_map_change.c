/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_map_change.c - changes the file of a map
 *
 * Operation: The new map is written to FILE.new, which replaces FILE when it is complete and durable. FILE.new also keeps
 *            two changes from being made at once: it must not exist, and the map is read behind its creation.
 * Memory:    The map, and its text.
 * Threads:   Any.
 * Errors:    -errno with a text for the administrator; then FILE is as before, and FILE.new is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/opt.h"
#include "base/util.h"
#include "leat_volume.h"
#include "lt_sized.h"
#include "volume_map.h"
#include "volume_maps.h"

static char *copy_url(const char *url, char **freed)
{
	free(*freed);
	*freed = strdup(url);
	return *freed;
}

/* Return: the server to change, which may be new; NULL, with @err */
static volume_server *find_or_add(struct volume_map *m, uint32_t id, int *err)
{
	volume_server *s = NULL;
	uint32_t last = 0;

	for (unsigned i = 0; i < m->n; i++) {
		last = MAX(last, m->servers[i].id);
		if (m->servers[i].id == id)
			s = &m->servers[i];
	}
	if (s || id) {
		*err = s ? 0 : -ENOENT;
		return s;
	}
	if (m->n == VOLUME_SERVERS_MAX || last == UINT32_MAX) {
		*err = -ENOSPC;
		return NULL;
	}
	s = &m->servers[m->n++];
	*s = (volume_server){ .id = last + 1 };
	return s;
}

/* Return: 0 with the id of the server; -errno with @why */
static int change_map(struct volume_map *m, const struct leat_volume_change *c, uint32_t *ret_id, char *why, size_t why_bytes)
{
	int err = 0;
	volume_server *s = find_or_add(m, c->server, &err);

	if (err)
		return opt_fail(err, why, why_bytes, err == -ENOENT ? "it has no such server" : "it has no room for more servers");
	if (c->url && c->url[strcspn(c->url, "\r\n")])
		return opt_fail(-EINVAL, why, why_bytes, "a URL is one line");
	if (c->url && !copy_url(c->url, &s->url))
		return opt_fail(-ENOMEM, why, why_bytes, "out of memory");
	if (!s->url)
		return opt_fail(-EINVAL, why, why_bytes, "a new server needs a URL");
	if (c->state != LEAT_VOLUME_KEEP)
		s->state = c->state == LEAT_VOLUME_OUT ? VOLUME_SERVER_OUT : VOLUME_SERVER_FULL;
	m->version++;
	*ret_id = s->id;
	return 0;
}

/* With the owner and the mode of the file that it replaces. The manager may have to read it as that user. */
static int write_text(int fd, const struct stat *old, const char *text, char *why, size_t why_bytes)
{
	int err;

	if (fchown(fd, old->st_uid, old->st_gid))
		return opt_fail(-errno, why, why_bytes, "cannot keep its owner %u:%u: %s", (unsigned)old->st_uid,
				(unsigned)old->st_gid, strerror(errno));
	err = fchmod(fd, old->st_mode & 07777) ? -errno : lt_volume_write(fd, text, strlen(text));
	return err ? opt_fail(err, why, why_bytes, "%s", strerror(-err)) : 0;
}

/* Makes a rename durable. */
static int sync_dir_of(const char *file)
{
	const char *slash = strrchr(file, '/');
	char dir[PATH_MAX];
	int fd, err;

	(void)snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - file + 1) : 1, slash ? file : ".");
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = fsync(fd) ? -errno : 0;
	close(fd);
	return err;
}

/* Return: 0; -errno, with @why */
static int replace(const char *file, const char *temp, int fd, const struct leat_volume_change *c, uint32_t *ret_id,
		   char *why, size_t why_bytes)
{
	struct volume_map m;
	char *text = NULL;
	struct stat st;
	int err = lt_volume_map_load(file, &m, &st, why, why_bytes);

	if (err)
		return err;
	err = change_map(&m, c, ret_id, why, why_bytes);
	if (!err)
		err = lt_volume_map_text(&m, &text, why, why_bytes);
	volume_map_fini(&m);
	if (err)
		return err;
	err = write_text(fd, &st, text, why, why_bytes);
	free(text);
	if (!err && rename(temp, file))
		err = opt_fail(-errno, why, why_bytes, "%s", strerror(errno));
	return err;
}

int leat_volume_map_change(const char *file, const struct leat_volume_change *change, uint32_t *ret_server, char *why,
			   size_t why_bytes)
{
	struct leat_volume_change c = { .size = 0 };
	char temp[PATH_MAX], reason[256] = "";
	uint32_t id = 0;
	int fd, err;

	if (lt_sized_check(change) || (size_t)snprintf(temp, sizeof(temp), "%s.new", file) >= sizeof(temp))
		return opt_fail(-EINVAL, why, why_bytes, "map %s: no change, or a path that is too long", file);
	memcpy(&c, change, MIN(change->size, sizeof(c)));
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return opt_fail(-errno, why, why_bytes, "cannot create %s: %s%s", temp, strerror(errno),
				errno == EEXIST ? ": another change is being made, or was interrupted" : "");
	err = replace(file, temp, fd, &c, &id, reason, sizeof(reason));
	close(fd);
	if (err) {
		(void)unlink(temp);
		return opt_fail(err, why, why_bytes, "map %s: %s", file, reason);
	}
	err = sync_dir_of(file);
	if (err)
		return opt_fail(err, why, why_bytes, "map %s: it is changed, but perhaps not durably: %s", file, strerror(-err));
	if (ret_server)
		*ret_server = id;
	return 0;
}
