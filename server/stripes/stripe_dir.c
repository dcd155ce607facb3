/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_dir.c - a directory of stripes: its marker, its lock, and what it keeps of its volume
 *
 * Operation: The directory itself is locked with flock(), so that it needs no file for that. The marker is written last:
 *            a directory with a marker has objects/. What is below comes with the objects (stripe_disk.c). The kind of
 *            record is chosen once, when the marker is written. Otherwise records that a leatd of root wrote would be
 *            invisible to one of another user.
 * Memory:    struct stripe_dir has descriptors only.
 * Threads:   Any.
 * Errors:    A text for the user.
 */
#include "stripe_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/opt.h"
#include "base/text.h"
#include "small_file.h"

#define MARKER "leat-stripes"
#define MARKER_HEAD "leat-stripes 1\n"
#define TEXT_MAX 256u
#define RECORD_ROOT "trusted.leat"
#define RECORD_USER "user.leat"

/* ---- names ---------------------------------------------------------------------------------- */

void stripe_dir_path(const stripe_name *name, char ret[STRIPE_PATH_BYTES])
{
	char object[2 * STRIPE_OBJECT_BYTES + 1];

	text_put_hex(name->object, STRIPE_OBJECT_BYTES, object);
	(void)snprintf(ret, STRIPE_PATH_BYTES, "%.2s/%s.%" PRIu32, object, object, name->stripe);
}

int stripe_dir_name(unsigned fan, const char *file, stripe_name *ret)
{
	char again[STRIPE_PATH_BYTES];
	stripe_name name;
	unsigned long n;

	if (!text_take_hex(file, STRIPE_OBJECT_BYTES, name.object))
		return -EINVAL;
	file += STRIPE_OBJECT_BYTES * 2;
	errno = 0;
	n = *file == '.' && file[1] >= '0' && file[1] <= '9' ? strtoul(file + 1, NULL, 10) : ULONG_MAX;
	if (errno || n > UINT32_MAX || (unsigned char)name.object[0] != fan)
		return -EINVAL;
	name.stripe = (uint32_t)n;
	stripe_dir_path(&name, again); /* only one way to write it */
	if (strcmp(strchr(again, '.'), file))
		return -EINVAL;
	*ret = name;
	return 0;
}

/* ---- the marker ----------------------------------------------------------------------------- */

static int try_record(int fd, const char *name)
{
	static const char value[36];
	int err = fsetxattr(fd, name, value, sizeof(value), 0) ? -errno : 0;

	if (!err)
		(void)fremovexattr(fd, name);
	return err;
}

/* Finds the extended attribute that this process may set. Return: 0; -EOPNOTSUPP: none; -errno */
static int choose_record(struct stripe_dir *d)
{
	int err = try_record(d->objects, RECORD_ROOT);

	d->record = err ? RECORD_USER : RECORD_ROOT;
	return err ? try_record(d->objects, RECORD_USER) : 0;
}

static void print_marker(const struct stripe_dir *d, char ret[TEXT_MAX])
{
	(void)snprintf(ret, TEXT_MAX, MARKER_HEAD "volume = %016" PRIx64 "\nserver = %" PRIu32 "\nrecord = %s\n", d->volume,
		       d->server, d->record);
}

static int check_empty(const struct stripe_dir *d, char *why, size_t why_bytes)
{
	static const char *const allowed[] = { ".", "..", "lost+found", "objects", MARKER ".new" };
	DIR *dir = dir_list(d->fd, ".");
	const struct dirent *e;
	int err = 0;

	if (!dir)
		return opt_fail(-errno, why, why_bytes, "%s", strerror(errno));
	while (!err && (e = readdir(dir)) != NULL) {
		bool ok = false;

		for (unsigned i = 0; i < ARRAY_SIZE(allowed) && !ok; i++)
			ok = !strcmp(e->d_name, allowed[i]);
		if (!ok)
			err = opt_fail(-EINVAL, why, why_bytes, "it has no stripes yet, and is not empty: %.80s", e->d_name);
	}
	closedir(dir);
	return err;
}

/* Makes objects/, durably. Return: 0 or -errno */
static int make_objects(struct stripe_dir *d)
{
	d->objects = dir_make(d->fd, "objects");
	if (d->objects < 0)
		return d->objects;
	return fsync(d->fd) ? -errno : 0;
}

static int no_record(int err, char *why, size_t why_bytes)
{
	return opt_fail(err, why, why_bytes, "its file system keeps no extended attributes: %s", strerror(-err));
}

static int make_dir(struct stripe_dir *d, char *why, size_t why_bytes)
{
	char text[TEXT_MAX];
	int err = check_empty(d, why, why_bytes);

	if (err)
		return err;
	err = make_objects(d);
	if (err)
		return opt_fail(err, why, why_bytes, "%s", strerror(-err));
	err = choose_record(d);
	if (err)
		return no_record(err, why, why_bytes);
	print_marker(d, text);
	err = small_file_replace(d->fd, MARKER, text, strlen(text));
	return err ? opt_fail(err, why, why_bytes, "%s", strerror(-err)) : 0;
}

/* Is the marker that of @d, with one of the records? */
static bool is_ours(struct stripe_dir *d, const char *marker)
{
	static const char *const records[] = { RECORD_ROOT, RECORD_USER };
	char text[TEXT_MAX];

	for (unsigned i = 0; i < ARRAY_SIZE(records); i++) {
		d->record = records[i];
		print_marker(d, text);
		if (!strcmp(text, marker))
			return true;
	}
	return false;
}

static int check_marker(struct stripe_dir *d, const char *marker, char *why, size_t why_bytes)
{
	unsigned long long volume;
	unsigned long server;
	int err;

	if (!is_ours(d, marker)) {
		if (sscanf(marker, MARKER_HEAD "volume = %llx\nserver = %lu\n", &volume, &server) != 2)
			return opt_fail(-EINVAL, why, why_bytes, "its " MARKER " is not of this version, or damaged");
		return opt_fail(-EINVAL, why, why_bytes, "it is of server %lu of volume %016llx, not of server %" PRIu32
				" of volume %016" PRIx64, server, volume, d->server, d->volume);
	}
	d->objects = openat(d->fd, "objects", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (d->objects < 0)
		return opt_fail(-errno, why, why_bytes, "objects: %s", strerror(errno));
	err = try_record(d->objects, d->record);
	if (err == -EPERM)
		return opt_fail(err, why, why_bytes, "its objects have records that only root can read, " RECORD_ROOT);
	return err ? no_record(err, why, why_bytes) : 0;
}

/* ---- the directory -------------------------------------------------------------------------- */

static int open_dir(const char *path, struct stripe_dir *d, char *why, size_t why_bytes)
{
	char marker[TEXT_MAX];
	struct stat st;
	int err;

	d->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->fd < 0 || fstat(d->fd, &st))
		return opt_fail(-errno, why, why_bytes, "%s", strerror(errno));
	d->dev = st.st_dev;
	d->ino = st.st_ino;
	if (flock(d->fd, LOCK_EX | LOCK_NB))
		return opt_fail(-EBUSY, why, why_bytes, "%s",
				errno == EWOULDBLOCK ? "another leatd uses it" : strerror(errno));
	err = small_file_read(d->fd, MARKER, marker, sizeof(marker));
	if (err == -ENOENT)
		return make_dir(d, why, why_bytes);
	if (err)
		return opt_fail(err, why, why_bytes, MARKER ": %s", strerror(-err));
	return check_marker(d, marker, why, why_bytes);
}

int stripe_dir_open(const char *path, uint64_t volume, uint32_t server, struct stripe_dir *ret, char *why, size_t why_bytes)
{
	struct stripe_dir d = { .fd = -1, .objects = -1, .volume = volume, .server = server };
	char reason[256] = "";
	int err = open_dir(path, &d, reason, sizeof(reason));

	if (err) {
		stripe_dir_close(&d);
		return opt_fail(err, why, why_bytes, "%s: %s", path, reason);
	}
	*ret = d;
	return 0;
}

void stripe_dir_close(struct stripe_dir *d)
{
	if (d->objects > 0)
		close(d->objects);
	if (d->fd > 0)
		close(d->fd);
	d->fd = d->objects = -1;
}
