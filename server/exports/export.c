/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * export.c - which directories are exported, to which clients, and with which squashing
 *
 * Operation: conf.c collects struct export_conf from the command line and the file. exports_create() turns
 *            them into the table, which is read-only for all other code.
 * Memory:    strings belong to their export_conf; the table owns deep copies and one descriptor for each
 *            directory.
 * Threads:   a table does not change after export_table_open(); a reload opens a new one.
 * Errors:    a text for the user; nothing is logged here.
 */
#include "export.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/kernel_handle.h"

void export_conf_fini(struct export_conf *c)
{
	free(c->name);
	free(c->path);
	free(c->key);
	free(c->map);
	c->name = c->path = c->key = c->map = NULL;
}

#define FLAG(...) SPEC_FLAG(struct export_conf, __VA_ARGS__)

static const struct opt opts[] = {
	FLAG("ro", NULL, "clients may change nothing", ro, 1, 0, EXPORT_GIVEN_RO),
	FLAG("rw", "yes", "clients may change files", ro, 0, 1, EXPORT_GIVEN_RO),
	FLAG("sync", "yes", "replies wait for the disk, as NFS requires", async, 0, 1, EXPORT_GIVEN_ASYNC),
	FLAG("async", NULL, "no reply waits for the disk: a crash may lose changes", async, 1, 0, EXPORT_GIVEN_ASYNC),
	FLAG("root_squash", "yes", "requests of root run as the anonymous user", squash, EXPORT_SQUASH_ROOT,
	     EXPORT_SQUASH_NONE, EXPORT_GIVEN_SQUASH),
	FLAG("no_root_squash", NULL, "requests of root run as root", squash, EXPORT_SQUASH_NONE, EXPORT_SQUASH_ROOT,
	     EXPORT_GIVEN_SQUASH),
	FLAG("all_squash", NULL, "all requests run as the anonymous user", squash, EXPORT_SQUASH_ALL,
	     EXPORT_SQUASH_ROOT, EXPORT_GIVEN_SQUASH),
	{ "anonuid", "N", OPT_STR(EXPORT_ANON_ID), "the anonymous user", NULL, OPT_NUMBER, 0, OPT_AT(struct export_conf, anonuid),
	  .max = UINT32_MAX - 1, .given = EXPORT_GIVEN_ANONUID }, /* (uint32_t)-1: "unchanged" to chown(), setfsuid() */
	{ "anongid", "N", OPT_STR(EXPORT_ANON_ID), "the anonymous group", NULL, OPT_NUMBER, 0, OPT_AT(struct export_conf, anongid),
	  .max = UINT32_MAX - 1, .given = EXPORT_GIVEN_ANONGID },
	/* of a volume only: */
	{ "key", "FILE", NULL, "the key file of the volume", NULL, OPT_TEXT, 0, OPT_AT(struct export_conf, key) },
	{ "map", "FILE", NULL, "the map of the volume: its stripe servers", NULL, OPT_TEXT, 0, OPT_AT(struct export_conf, map) },
	{ "stripe", "SIZE", "1M", "stripe unit of new files, a power of two", NULL, OPT_SIZE, 0, OPT_AT(struct export_conf, stripe),
	  .min = 64 << 10, .max = 16 << 20 },
	{ "width", "N", "all", "stripes of new files; all: as many as there are servers", "all", OPT_NUMBER, 0,
	  OPT_AT(struct export_conf, width), .min = 1, .max = 256 },
	{ "start", "HOW", "turn", "at which stripe server new files begin: in turn, or by free bytes", "turn free", OPT_WORD, 0,
	  OPT_AT(struct export_conf, start) },
	{ "stripe_timeo", "TIME", "10s", "time without a reply after which a stripe server is away", NULL, OPT_TIME, 0,
	  OPT_AT(struct export_conf, stripe_timeo_ms), .min = 10, .max = 600000, .unit = NS_PER_MS, .bare = NS_PER_MS },
};
#define VOLUME_OPTS 6u

void export_conf_init(struct export_conf *c)
{
	memset(c, 0, sizeof(*c));
	opt_init(opts, ARRAY_SIZE(opts), c);
	peers_init(&c->peers);
	data_conf_init(&c->data);
}

bool export_conf_same(const struct export_conf *a, const struct export_conf *b)
{
	for (const struct opt *o = opts; o < opts + ARRAY_SIZE(opts); o++) {
		if (!opt_same(o, a, b))
			return false;
	}
	return !strcmp(a->path, b->path) && peers_same(&a->peers, &b->peers) && data_conf_same(&a->data, &b->data);
}

static int finish(void *conf, char *why, size_t why_bytes)
{
	struct export_conf *c = conf;
	struct stat st;
	size_t n;
	int err;

	if (!c->path || !*c->path)
		return opt_fail(-EINVAL, why, why_bytes, "export%s%s: no directory given", c->name ? " " : "",
				c->name ? c->name : "");
	err = spec_resolve(&c->path, &st);
	if (err)
		return opt_fail(err, why, why_bytes, "%s: %s", c->path, strerror(-err));
	if (!S_ISDIR(st.st_mode))
		return opt_fail(-ENOTDIR, why, why_bytes, "%s: not a directory", c->path);
	if (!c->name) {
		c->name = strdup(c->path);
		if (!c->name)
			return -ENOMEM;
	}
	n = strlen(c->name);
	while (n > 1 && c->name[n - 1] == '/')
		c->name[--n] = '\0';
	if (c->name[0] != '/' || strstr(c->name, "//") || n > EXPORT_NAME_MAX)
		return opt_fail(-EINVAL, why, why_bytes, "export name '%s' is not an absolute path of at most %d bytes",
				c->name, EXPORT_NAME_MAX);
	return data_conf_check(&c->data, why, why_bytes);
}

static void init(void *conf)
{
	export_conf_init(conf);
}

const struct spec_kind export_conf_kind = {
	.section = "export",
	.what = "export",
	.opts = opts,
	.nopts = ARRAY_SIZE(opts) - VOLUME_OPTS,
	.init = init,
	.finish = finish,
	SPEC_MEMBERS(struct export_conf),
};

static int resolve_file(const struct export_conf *c, const char *what, char **path, char *why, size_t why_bytes)
{
	struct stat st;
	int err = *path ? spec_resolve(path, &st) : -EINVAL;

	if (!*path)
		return opt_fail(err, why, why_bytes, "volume %s: no %s given", c->name, what);
	return err ? opt_fail(err, why, why_bytes, "volume %s: %s %s: %s", c->name, what, *path, strerror(-err)) : 0;
}

static int finish_volume(void *conf, char *why, size_t why_bytes)
{
	struct export_conf *c = conf;
	char *name;
	int err;

	if (!c->name || !*c->name || strchr(c->name, '/'))
		return opt_fail(-EINVAL, why, why_bytes, "volume '%.80s': a name has no slash", c->name ? c->name : "");
	if (c->stripe & (c->stripe - 1))
		return opt_fail(-EINVAL, why, why_bytes, "volume %s: stripe=%u: must be a power of two", c->name, c->stripe);
	if (c->data.given & (DATA_GIVEN_READ | DATA_GIVEN_WRITE | DATA_GIVEN_STORE | DATA_GIVEN_TRUST))
		return opt_fail(-EINVAL, why, why_bytes,
				"volume %s: store, read, write and trust_clients mean nothing here: stripe servers have the data",
				c->name);
	err = resolve_file(c, "key", &c->key, why, why_bytes);
	if (!err)
		err = resolve_file(c, "map", &c->map, why, why_bytes);
	if (err)
		return err;
	if (asprintf(&name, "/%s", c->name) < 0)
		return -ENOMEM;
	free(c->name);
	c->name = name;
	return finish(conf, why, why_bytes);
}

const struct spec_kind volume_conf_kind = {
	.section = "volume",
	.what = "volume",
	.named = true,
	.opts = opts,
	.nopts = ARRAY_SIZE(opts),
	.init = init,
	.finish = finish_volume,
	SPEC_MEMBERS(struct export_conf),
};

/* FNV-1a: not secret, but it gives the same number at every start */
static uint32_t mix(uint32_t h, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n--)
		h = (h ^ *p++) * 16777619u;
	return h;
}

/* Mixes in an identity of the file system that survives mounts and reboots; device numbers do not. */
static uint32_t mix_fs(uint32_t h, int fd)
{
	struct statfs fs;
#ifdef FS_IOC_GETFSUUID
	struct fsuuid2 uuid = { 0 };

	if (!ioctl(fd, FS_IOC_GETFSUUID, &uuid) && uuid.len <= sizeof(uuid.uuid))
		return mix(h, uuid.uuid, uuid.len);
#endif
	return fstatfs(fd, &fs) ? h : mix(h, &fs.f_fsid, sizeof(fs.f_fsid));
}

/* An export is identified by its name and its directory. The directory may be renamed and the file system mounted
 * elsewhere. But another directory under the same name is another export, and handles of the first one are not valid
 * in it. */
static uint32_t identity(const struct export *e, const struct stat *st)
{
	union kernel_handle kh;
	uint64_t ino = st->st_ino;
	uint32_t h = mix(2166136261u, e->conf.name, strlen(e->conf.name) + 1);
	int mount_id;

	h = mix(mix_fs(h, e->root_fd), &ino, sizeof(ino));
	if (!kernel_handle_get(e->root_fd, "", &kh, &mount_id))
		h = mix(h, kh.h.f_handle, MIN(kh.h.handle_bytes, MAX_HANDLE_SZ));
	return h;
}

/* Return: 1: there is nothing in it; 0; -errno */
static int is_empty(int dir_fd)
{
	DIR *dir = dir_list(dir_fd, ".");
	const struct dirent *d;
	int rc = 1;

	if (!dir)
		return -errno;
	while (rc && (d = readdir(dir)) != NULL)
		rc = !strcmp(d->d_name, ".") || !strcmp(d->d_name, "..") || !strcmp(d->d_name, "lost+found") ||
		     !strcmp(d->d_name, "pending");
	closedir(dir);
	return rc;
}

/* "files" is made last: a directory that has it is complete. */
static int make_volume(int dir_fd)
{
	int rc = is_empty(dir_fd);

	if (rc != 1)
		return rc ? rc : -ENOTEMPTY;
	if (mkdirat(dir_fd, "pending", 0700) && errno != EEXIST)
		return -errno;
	if (fsync(dir_fd) || mkdirat(dir_fd, "files", 0755) || fsync(dir_fd))
		return -errno;
	return 0;
}

/* The directory of a volume has its files in a directory of their own, beside what its manager keeps. */
static int open_files(int dir_fd)
{
	int fd = openat(dir_fd, "files", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), err;

	if (fd >= 0 || errno != ENOENT)
		return fd >= 0 ? fd : -errno;
	err = make_volume(dir_fd);
	if (err)
		return err;
	fd = openat(dir_fd, "files", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 ? fd : -errno;
}

static int open_root(const struct export_conf *c)
{
	int fd = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), files;

	if (fd < 0 || !c->key)
		return fd >= 0 ? fd : -errno;
	files = open_files(fd);
	close(fd);
	return files;
}

static int open_one(const struct export_conf *conf, struct export *e)
{
	struct stat st;

	e->conf = *conf;
	e->conf.name = strdup(conf->name);
	e->conf.path = strdup(conf->path);
	e->conf.key = conf->key ? strdup(conf->key) : NULL;
	e->conf.map = conf->map ? strdup(conf->map) : NULL;
	if (!e->conf.name || !e->conf.path || (conf->key && !e->conf.key) || (conf->map && !e->conf.map))
		return -ENOMEM;
	e->root_fd = open_root(conf);
	if (e->root_fd < 0)
		return e->root_fd;
	if (fstat(e->root_fd, &st))
		return -errno;
	e->backing.name = e->conf.name;
	e->backing.path = e->conf.path;
	e->backing.data = &e->conf.data;
	e->backing.dev = st.st_dev;
	e->backing.ino = st.st_ino;
	e->id = identity(e, &st);
	fs_limits_find(e->root_fd, !conf->ro, &e->backing.limits);
	return 0;
}

/* Finds an export of equal name, or (one chance in four thousand million) of equal id. */
static const struct export *find_twin(const struct export_table *t, const struct export *e)
{
	for (const struct export *other = t->v; other < e; other++) {
		if (other->id == e->id || !strcmp(other->conf.name, e->conf.name))
			return other;
	}
	return NULL;
}

int export_table_open(const struct export_conf *confs, size_t n, struct export_table *ret,
		      char *why, size_t why_bytes)
{
	struct export_table t = { .v = calloc(n ? n : 1, sizeof(*t.v)) };
	int err = t.v ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		struct export *e = &t.v[i];
		const struct export *twin = NULL;

		e->root_fd = -1;
		e->idx = (unsigned)i;
		t.n = i + 1;
		err = open_one(&confs[i], e);
		if (err)
			(void)opt_fail(err, why, why_bytes, "export %s: %s: %s", confs[i].name, confs[i].path,
				       strerror(-err));
		else
			twin = find_twin(&t, e);
		if (twin)
			err = opt_fail(-EEXIST, why, why_bytes, "exports %s and %s: names clash, rename one",
				       twin->conf.name, e->conf.name);
	}
	if (err)
		export_table_close(&t);
	else
		*ret = t;
	return err;
}

void export_table_close(struct export_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->v[i].root_fd >= 0)
			close(t->v[i].root_fd);
		export_conf_fini(&t->v[i].conf);
	}
	free(t->v);
	t->v = NULL;
	t->n = 0;
}

struct export *export_find_path(const struct export_table *t, const char *path,
				const char **ret_rest)
{
	struct export *best = NULL;
	size_t best_len = 0;

	if (*path != '/') /* also a path with a NUL inside: xdr/name.c makes it empty */
		return NULL;
	for (size_t i = 0; i < t->n; i++) {
		const char *name = t->v[i].conf.name;
		size_t n = strlen(name);

		if (n == 1) /* "/" is a parent of every path */
			n = 0;
		if (strncmp(path, name, n) || (path[n] && path[n] != '/'))
			continue;
		if (!best || n > best_len) {
			best = &t->v[i];
			best_len = n;
		}
	}
	if (best) {
		*ret_rest = path + best_len;
		while (**ret_rest == '/')
			(*ret_rest)++;
	}
	return best;
}
