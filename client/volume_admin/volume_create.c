/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_create.c - creates the key, the first map, the directories and the configurations of a volume
 *
 * Operation: All is in one new directory. Its entries are created in a fixed order, each of them only if it does not exist;
 *            after a failure those that were created are removed in the opposite order.
 * Memory:    The text of one file at a time. The text of the key is cleared.
 * Threads:   Any.
 * Errors:    -errno with a text for the administrator.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/opt.h"
#include "base/util.h"
#include "layout.h"
#include "leat_volume.h"
#include "rpcrdma_addr.h"
#include "stripe_key.h"
#include "volume_map.h"
#include "volume_maps.h"

#define LEAT_SCHEME "leat://"
#define FIRST_ENTRIES 4u /* entries of the directory that are of no server */

struct maker {
	struct leat_volume_plan plan;
	struct volume_map map;
	char path[PATH_MAX]; /* of the directory, absolute */
	int fd;
	char *why;
	size_t why_bytes;
};

struct entry {
	char name[32]; /* "": none */
	mode_t mode;
	bool is_dir;
	int (*print)(const struct maker *m, uint32_t id, FILE *f); /* of a file. Return: 0, -errno */
	uint32_t id;
};

/* ---- the plan -------------------------------------------------------------------------------- */

/* May it stand in a line of a configuration, and mean nothing else there? */
static bool is_plain(const char *text)
{
	for (const char *p = text; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f || strchr(";#]", *p))
			return false;
	}
	return *text && *text != ' ';
}

static bool is_local(const char *url)
{
	return !strncmp(url, "local://", 8);
}

static int check_listen(const struct maker *m)
{
	struct rpcrdma_addr addr;
	bool all_local = !m->plan.listen || is_local(m->plan.listen);

	if (m->plan.listen && (!is_plain(m->plan.listen) || rpcrdma_addr_parse(m->plan.listen, &addr)))
		return opt_fail(-EINVAL, m->why, m->why_bytes, "listen: '%.200s' is not tcp://, rdma:// or local:///PATH", m->plan.listen);
	for (unsigned i = 0; i < m->map.n; i++)
		all_local = all_local && is_local(m->map.servers[i].url);
	if (!all_local && !m->plan.clients)
		return opt_fail(-EINVAL, m->why, m->why_bytes,
				"the volume is used over a network: say which clients may use it (clients)");
	return 0;
}

static int check_plan(struct maker *m)
{
	const struct leat_volume_plan *p = &m->plan;
	const struct layout l = { p->stripe ? p->stripe : LAYOUT_UNIT_MIN, p->width ? p->width : 1 };

	if (!p->name || strlen(p->name) > 63 || strchr(p->name, '/') || !is_plain(p->name))
		return opt_fail(-EINVAL, m->why, m->why_bytes, "a name of a volume has 1 to 63 bytes and no slash");
	if (!p->servers || !p->nservers || p->nservers > VOLUME_SERVERS_MAX)
		return opt_fail(-EINVAL, m->why, m->why_bytes, "a volume has 1 to %d servers", VOLUME_SERVERS_MAX);
	if (p->clients && !is_plain(p->clients))
		return opt_fail(-EINVAL, m->why, m->why_bytes, "clients: not a list of clients");
	if (!layout_valid(&l))
		return opt_fail(-EINVAL, m->why, m->why_bytes, "a stripe unit is a power of two from 64K to 16M");
	if (p->width > p->nservers)
		return opt_fail(-EINVAL, m->why, m->why_bytes, "width %" PRIu32 ": there %s %zu server%s", p->width,
				p->nservers == 1 ? "is" : "are", p->nservers, p->nservers == 1 ? "" : "s");
	return 0;
}

/* Reads its own text, and so checks URLs as all readers of the map do. */
static int make_map(struct maker *m)
{
	struct volume_map plain = { .version = 1, .n = (unsigned)m->plan.nservers };
	char reason[200] = "", *text;
	int err;

	do {
		if (getrandom(&plain.volume, sizeof(plain.volume), 0) != sizeof(plain.volume))
			return opt_fail(-EIO, m->why, m->why_bytes, "no random numbers");
	} while (!plain.volume);
	for (unsigned i = 0; i < plain.n; i++) {
		const char *url = m->plan.servers[i];

		if (!is_plain(url))
			return opt_fail(-EINVAL, m->why, m->why_bytes, "'%.200s' is not a URL", url);
		for (unsigned k = 0; k < i; k++)
			if (!strcmp(url, m->plan.servers[k]))
				return opt_fail(-EINVAL, m->why, m->why_bytes, "two servers have the URL %.200s", url);
		plain.servers[i] = (volume_server){ .id = i + 1, .url = (char *)(uintptr_t)url };
	}
	err = volume_map_print(&plain, &text);
	if (err)
		return opt_fail(err, m->why, m->why_bytes, "out of memory");
	err = volume_map_parse(text, strlen(text), &m->map, reason, sizeof(reason));
	free(text);
	return err ? opt_fail(err, m->why, m->why_bytes, "servers: as a map: %s", reason) : 0;
}

/* ---- the files ------------------------------------------------------------------------------- */

static int print_key(const struct maker *m, uint32_t id, FILE *f)
{
	uint64_t key[2];

	(void)id;
	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		return -EIO;
	fprintf(f, "volume = %016" PRIx64 "\nkey = %016" PRIx64 "%016" PRIx64 "\n", m->map.volume, key[0], key[1]);
	explicit_bzero(key, sizeof(key));
	return 0;
}

static int print_map(const struct maker *m, uint32_t id, FILE *f)
{
	char *text;
	int err = volume_map_print(&m->map, &text);

	(void)id;
	if (err)
		return err;
	fputs(text, f);
	free(text);
	return 0;
}

static void print_listen(FILE *f, const char *url)
{
	if (strncmp(url, LEAT_SCHEME, strlen(LEAT_SCHEME)))
		fprintf(f, "listen = %s\n", url);
	else
		fprintf(f, "listen = tcp://%s\n# where there is RDMA, add: listen = rdma://HOST\n", url + strlen(LEAT_SCHEME));
}

static void print_clients(const struct maker *m, FILE *f)
{
	if (m->plan.clients)
		fprintf(f, "clients = %s\n", m->plan.clients);
}

static int print_manager(const struct maker *m, uint32_t id, FILE *f)
{
	(void)id;
	fprintf(f, "# manager of volume %s, %016" PRIx64 "\n[server]\n", m->plan.name, m->map.volume);
	if (m->plan.listen)
		print_listen(f, m->plan.listen);
	else
		fprintf(f, "listen = local://%s/sock\n", m->path);
	fprintf(f, "\n[volume %s]\npath = %s/names\nkey = %s/key\nmap = %s/map\n", m->plan.name, m->path, m->path, m->path);
	if (m->plan.stripe)
		fprintf(f, "stripe = %" PRIu32 "\n", m->plan.stripe);
	if (m->plan.width)
		fprintf(f, "width = %" PRIu32 "\n", m->plan.width);
	print_clients(m, f);
	if (!geteuid() && (!m->plan.listen || is_local(m->plan.listen)))
		fprintf(f, "# the kernel identifies callers of this socket, so root stays root\nroot_squash = no\n");
	return 0;
}

static int print_server(const struct maker *m, uint32_t id, FILE *f)
{
	const char *url = m->map.servers[id - 1].url;

	fprintf(f, "# server %" PRIu32 " of volume %s, %016" PRIx64 "\n", id, m->plan.name, m->map.volume);
	if (!is_local(url))
		fprintf(f, "# It needs the key (mode 0600) and an empty directory at these paths, on its own machine.\n");
	fprintf(f, "[server]\n");
	print_listen(f, url);
	fprintf(f, "\n[stripes %s]\npath = %s/stripes-%" PRIu32 "\nkey = %s/key\nid = %" PRIu32 "\n", m->plan.name, m->path, id,
		m->path, id);
	print_clients(m, f);
	return 0;
}

static unsigned count_entries(const struct maker *m)
{
	return FIRST_ENTRIES + 2 * m->map.n;
}

static struct entry entry_of(const struct maker *m, unsigned i)
{
	static const struct entry first[FIRST_ENTRIES] = {
		{ .name = "names", .mode = 0755, .is_dir = true },
		{ .name = "key", .mode = 0600, .print = print_key },
		{ .name = "map", .mode = 0644, .print = print_map },
		{ .name = "manager.conf", .mode = 0644, .print = print_manager },
	};
	struct entry e = { .mode = 0700, .is_dir = true };

	if (i < FIRST_ENTRIES)
		return first[i];
	e.id = (i - FIRST_ENTRIES) / 2 + 1;
	if ((i - FIRST_ENTRIES) % 2) {
		(void)snprintf(e.name, sizeof(e.name), "server-%" PRIu32 ".conf", e.id);
		e.mode = 0644;
		e.is_dir = false;
		e.print = print_server;
	} else if (is_local(m->map.servers[e.id - 1].url)) {
		(void)snprintf(e.name, sizeof(e.name), "stripes-%" PRIu32, e.id);
	}
	return e;
}

/* ---- on disk --------------------------------------------------------------------------------- */

int lt_volume_write(int fd, const char *text, size_t n)
{
	while (n) {
		ssize_t done = write(fd, text, n);

		if (done < 0)
			return -errno;
		text += done;
		n -= (size_t)done;
	}
	return fsync(fd) ? -errno : 0;
}

static int write_file(const struct maker *m, const struct entry *e)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	int err, fd;

	if (!f)
		return -errno;
	err = e->print(m, e->id, f);
	if (fclose(f) && !err)
		err = -ENOMEM;
	fd = err ? -1 : openat(m->fd, e->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, e->mode);
	if (!err && fd < 0)
		err = -errno;
	if (fd >= 0) {
		err = fchmod(fd, e->mode) ? -errno : lt_volume_write(fd, text, n);
		close(fd);
		if (err)
			(void)unlinkat(m->fd, e->name, 0);
	}
	if (text)
		explicit_bzero(text, n);
	free(text);
	return err;
}

static int make_dir(const struct maker *m, const struct entry *e)
{
	if (mkdirat(m->fd, e->name, e->mode))
		return -errno;
	if (!fchmodat(m->fd, e->name, e->mode, 0)) /* whatever the umask is */
		return 0;
	(void)unlinkat(m->fd, e->name, AT_REMOVEDIR);
	return -EIO;
}

static void remove_entries(const struct maker *m, unsigned n)
{
	while (n) {
		struct entry e = entry_of(m, --n);

		if (*e.name)
			(void)unlinkat(m->fd, e.name, e.is_dir ? AT_REMOVEDIR : 0);
	}
}

static int fill(const struct maker *m)
{
	unsigned n = count_entries(m);
	int err = 0;

	for (unsigned i = 0; i < n; i++) {
		struct entry e = entry_of(m, i);

		if (!*e.name)
			continue;
		err = e.is_dir ? make_dir(m, &e) : write_file(m, &e);
		if (err) {
			remove_entries(m, i);
			return opt_fail(err, m->why, m->why_bytes, "cannot create %s/%s: %s", m->path, e.name, strerror(-err));
		}
	}
	if (!fsync(m->fd))
		return 0;
	err = -errno;
	remove_entries(m, n);
	return opt_fail(err, m->why, m->why_bytes, "%s: %s", m->path, strerror(-err));
}

static bool is_empty(int fd)
{
	DIR *d = dir_list(fd, ".");
	const struct dirent *e;
	unsigned n = 0;

	if (!d)
		return false;
	while ((e = readdir(d)) != NULL)
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return !n;
}

/* Where other users may write to the parent, one of them could have replaced the directory since it was made. */
static bool is_as_made(const struct maker *m)
{
	struct stat st, named;

	return !fstat(m->fd, &st) && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)) && is_empty(m->fd) &&
	       !lstat(m->path, &named) && named.st_dev == st.st_dev && named.st_ino == st.st_ino;
}

static int make_contents(struct maker *m, const char *dir)
{
	int err;

	m->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (m->fd < 0 || !realpath(dir, m->path))
		err = opt_fail(-errno, m->why, m->why_bytes, "%s: %s", dir, strerror(errno));
	else if (!is_as_made(m))
		err = opt_fail(-EPERM, m->why, m->why_bytes, "%s: another user has replaced the new directory", dir);
	else if (!is_plain(m->path))
		err = opt_fail(-EINVAL, m->why, m->why_bytes, "%s: a configuration cannot name this path", dir);
	else
		err = fill(m);
	if (m->fd >= 0)
		close(m->fd);
	return err;
}

int leat_volume_create(const char *dir, const struct leat_volume_plan *plan, uint64_t *ret_volume, char *why,
		       size_t why_bytes)
{
	struct maker m = { .why = why, .why_bytes = why_bytes };
	int err;

	if (!dir || !*dir || plan->size < sizeof(plan->size))
		return opt_fail(-EINVAL, why, why_bytes, "no directory, or no plan");
	memcpy(&m.plan, plan, MIN(plan->size, sizeof(m.plan)));
	err = check_plan(&m);
	if (!err)
		err = make_map(&m);
	if (err)
		return err;
	err = check_listen(&m);
	if (!err && mkdir(dir, 0755))
		err = opt_fail(-errno, why, why_bytes, "cannot create %s: %s", dir, strerror(errno));
	if (!err) {
		err = make_contents(&m, dir);
		if (err)
			(void)rmdir(dir);
		else if (ret_volume)
			*ret_volume = m.map.volume;
	}
	volume_map_fini(&m.map);
	return err;
}
