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

#include "base/opt.h"
#include "spec.h"

void export_conf_fini(struct export_conf *c)
{
	free(c->name);
	free(c->path);
	c->name = c->path = NULL;
}

/* Adds one address or network, or several separated by commas or blanks. */
static int add_clients(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	struct export_conf *c = to;

	(void)o;
	return peers_add(&c->peers, value, "clients", why, why_bytes);
}

static int set_path(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	struct export_conf *c = to;

	(void)o;
	if (c->path)
		return opt_fail(-EINVAL, why, why_bytes, "path: there is one already, %s", c->path);
	c->path = strdup(value ? value : "");
	return c->path ? 0 : -ENOMEM;
}

#define FLAG(name_, preset_, help_, member, yes, no, bit)                                                  \
	{                                                                                                  \
		.name = name_, .preset = preset_, .help = help_, .type = OPT_FLAG, .min = no, .max = yes,  \
		.given = bit, OPT_AT(struct export_conf, member),                                          \
	}

/* Two options with one bit have one member: the second one may not contradict the first. */
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
	FLAG("secure", NULL, "over TCP only from ports below 1024 (default if run by root)", peers.secure, 1, 0,
	     EXPORT_GIVEN_SECURE),
	FLAG("insecure", NULL, "from any port (default if not run by root)", peers.secure, 0, 1, EXPORT_GIVEN_SECURE),
	{ "anonuid", "N", OPT_STR(EXPORT_ANON_ID), "the anonymous user", NULL, OPT_NUMBER, 0, OPT_AT(struct export_conf, anonuid),
	  .max = UINT32_MAX - 1, .given = EXPORT_GIVEN_ANONUID }, /* (uint32_t)-1: "unchanged" to chown(), setfsuid() */
	{ "anongid", "N", OPT_STR(EXPORT_ANON_ID), "the anonymous group", NULL, OPT_NUMBER, 0, OPT_AT(struct export_conf, anongid),
	  .max = UINT32_MAX - 1, .given = EXPORT_GIVEN_ANONGID },
	{ "clients", "CIDR", NULL, "networks that may use it, several with commas; without it this host only", NULL,
	  OPT_OTHER, .set = add_clients },
	{ "path", "DIR", NULL, NULL, NULL, OPT_OTHER, .set = set_path }, /* a key of the file only */
};

/* If leatd runs as root, the ids that callers claim are used, so only reserved ports are accepted. Otherwise these
 * ids are not used, and the clients are ordinary users like leatd's own: requiring a port reserved for
 * root would exclude them. */
void export_conf_init(struct export_conf *c)
{
	memset(c, 0, sizeof(*c));
	opt_init(opts, ARRAY_SIZE(opts), c);
	c->peers.secure = geteuid() == 0;
	data_conf_init(&c->data);
}

static int unknown_option(const char *key, char *why, size_t why_bytes)
{
	char hint[OPT_HINT_BYTES] = "";
	size_t n;
	const struct opt *data_opts = data_conf_opts(&n);

	opt_hint(opts, ARRAY_SIZE(opts), key, hint);
	opt_hint(data_opts, n, key, hint);
	return opt_fail(-ENOENT, why, why_bytes, "no such export option: '%s'%s", key, hint);
}

int export_conf_option(struct export_conf *c, const char *key, const char *value, char *why,
		       size_t why_bytes)
{
	const struct opt *o = opt_find(opts, ARRAY_SIZE(opts), key);
	int err = o ? opt_set_once(o, c, &c->given, value, why, why_bytes)
		    : data_conf_option(&c->data, key, value, why, why_bytes);

	return err == -ENOENT ? unknown_option(key, why, why_bytes) : err;
}

const struct opt *export_opts(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(opts);
	return opts;
}

/* On the command line the directory is no option. */
static int set_option(void *to, const char *key, const char *value, char *why, size_t why_bytes)
{
	if (!strcmp(key, "path"))
		return opt_fail(-ENOENT, why, why_bytes, "no such export option: 'path'");
	return export_conf_option(to, key, value, why, why_bytes);
}

int export_conf_parse(const char *arg, struct export_conf *ret, char *why, size_t why_bytes)
{
	struct export_conf c;
	char *copy = strdup(arg), *dir = copy, *comma, *eq;
	int err = -ENOMEM;

	export_conf_init(&c);
	if (!copy)
		goto fail;
	comma = strchr(copy, ',');
	if (comma)
		*comma++ = '\0';
	eq = strchr(copy, '=');
	if (eq) {
		*eq = '\0';
		dir = eq + 1;
		c.name = strdup(copy);
		if (!c.name)
			goto fail;
	}
	err = export_conf_option(&c, "path", dir, why, why_bytes);
	if (!err)
		err = spec_options(comma, set_option, &c, why, why_bytes);
	if (!err)
		err = export_conf_finish(&c, why, why_bytes);
	if (err)
		goto fail;
	free(copy);
	*ret = c;
	return 0;

fail:
	if (err == -ENOMEM)
		(void)opt_fail(err, why, why_bytes, "out of memory");
	export_conf_fini(&c);
	free(copy);
	return err;
}

int export_conf_finish(struct export_conf *c, char *why, size_t why_bytes)
{
	struct stat st;
	char *real;
	size_t n;

	if (!c->path || !*c->path)
		return opt_fail(-EINVAL, why, why_bytes, "export%s%s: no directory given", c->name ? " " : "",
				c->name ? c->name : "");
	real = realpath(c->path, NULL);
	if (!real || stat(real, &st)) {
		int err = opt_fail(-errno, why, why_bytes, "%s: %s", c->path, strerror(errno));

		free(real);
		return err;
	}
	free(c->path);
	c->path = real;
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
	union {
		struct file_handle h;
		uint8_t room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} kh;
	uint64_t ino = st->st_ino;
	uint32_t h = mix(2166136261u, e->conf.name, strlen(e->conf.name) + 1);
	int mount_id;

	h = mix(mix_fs(h, e->root_fd), &ino, sizeof(ino));
	memset(&kh, 0, sizeof(kh));
	kh.h.handle_bytes = MAX_HANDLE_SZ;
	if (!name_to_handle_at(e->root_fd, "", &kh.h, &mount_id, AT_EMPTY_PATH))
		h = mix(h, kh.h.f_handle, MIN(kh.h.handle_bytes, MAX_HANDLE_SZ));
	return h;
}

static int open_one(const struct export_conf *conf, struct export *e)
{
	struct stat st;

	e->conf = *conf;
	e->conf.name = strdup(conf->name);
	e->conf.path = strdup(conf->path);
	if (!e->conf.name || !e->conf.path)
		return -ENOMEM;
	e->root_fd = open(conf->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (e->root_fd < 0 || fstat(e->root_fd, &st))
		return -errno;
	e->volume.name = e->conf.name;
	e->volume.path = e->conf.path;
	e->volume.data = &e->conf.data;
	e->volume.dev = st.st_dev;
	e->volume.ino = st.st_ino;
	e->id = identity(e, &st);
	fs_limits_find(e->root_fd, !conf->ro, &e->volume.limits);
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

/** export_table_close - closes the directories and frees the table */
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
