/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_aside.c - moves an object that no file has to lost+found/ of the directory of stripes
 *
 * Operation: The file gets its second name in lost+found/, durably. Then a new file with the record of a tombstone replaces its
 *            first name. So the contents have a name at any time, and a crash leaves the object as it was, with the second name,
 *            or the tombstone. The same command again goes on from there. The record of the file stays as it was.
 * Memory:    None.
 * Threads:   A worker's, with the turn of the object, which no operation uses.
 * Errors:    -errno; then the object has to be loaded again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/dir.h"
#include "stripe_vol.h"

#define ASIDE "lost+found"
#define TEMP_BYTES (STRIPE_PATH_BYTES + sizeof(".new"))

/* The name of the file of an object in its directory */
static const char *base_of(const char *path)
{
	return strrchr(path, '/') + 1;
}

static int open_aside(const struct stripe_vol *v)
{
	int fd = dir_make(v->dir.fd, ASIDE);

	if (fd < 0)
		return fd;
	if (!fsync(v->dir.fd)) /* a name that was there may not be durable yet */
		return fd;
	close(fd);
	return -EIO;
}

/* Return: 0: the file has the name; -EEXIST: another one has; -errno */
static int add_name(const struct stripe_vol *v, const struct stripe_object *o, int aside, const char *path)
{
	struct stat mine, other;

	if (linkat(v->dir.objects, path, aside, base_of(path), 0)) {
		if (errno != EEXIST)
			return -errno;
		if (fstat(o->fd, &mine) || fstatat(aside, base_of(path), &other, AT_SYMLINK_NOFOLLOW))
			return -errno;
		if (mine.st_ino != other.st_ino || mine.st_dev != other.st_dev)
			return -EEXIST;
	}
	return fsync(o->fd) || fsync(aside) ? -errno : 0;
}

static int write_tombstone(const struct stripe_vol *v, const struct stripe_record *rec, int dir, const char *name)
{
	uint8_t bytes[STRIPE_RECORD_BYTES];
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600), err = 0;

	if (fd < 0)
		return -errno;
	stripe_record_encode(rec, bytes);
	if (fsetxattr(fd, v->dir.record, bytes, sizeof(bytes), 0) || fsync(fd))
		err = -errno;
	close(fd);
	return err;
}

static int replace_name(struct stripe_vol *v, const struct stripe_object *o, uint64_t until, int aside, const char *path)
{
	const struct stripe_record rec = { .epoch = o->rec.epoch, .cut = STRIPE_NO_CUT, .removed = true, .until = until };
	char temp[TEMP_BYTES];
	int err;

	(void)snprintf(temp, sizeof(temp), "%s.new", base_of(path));
	err = write_tombstone(v, &rec, aside, temp);
	if (!err && renameat(aside, temp, v->dir.objects, path))
		err = -errno;
	return err;
}

static int set_aside(struct stripe_vol *v, struct stripe_object *o, uint64_t mtime, uint64_t until)
{
	char path[STRIPE_PATH_BYTES];
	stripe_stat stat;
	int aside, err = stripe_disk_stat(o, &stat);

	if (!err && stat.mtime != mtime)
		err = -ESTALE;
	if (err)
		return err;
	stripe_dir_path(&o->name, path);
	aside = open_aside(v);
	if (aside < 0)
		return aside;
	err = add_name(v, o, aside, path);
	if (!err)
		err = replace_name(v, o, until, aside, path);
	close(aside);
	return err ? err : stripe_disk_sync_name(v, o);
}

int stripe_disk_set_aside(struct stripe_vol *v, struct stripe_object *o, uint64_t mtime, uint64_t until)
{
	int err = set_aside(v, o, mtime, until);

	if (err == -EEXIST)
		log_err("stripes %s: lost+found has another file of the name of an object that is to be set aside", v->name);
	stripe_disk_close(v, o);
	o->loaded = false;
	o->doubtful = true;
	return err ? err : stripe_disk_load(v, o);
}
