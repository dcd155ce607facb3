/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_file.c - the inode of a file or directory of a volume: its lock, its length, and its extended attribute
 *
 * Operation: All are changed through /proc, as the owner where the kernel wants that. A new attribute is set with XATTR_CREATE:
 *            of two callers one sets it, and the other one finds it.
 * Memory:    The stack.
 * Threads:   Workers, and the thread of pending work.
 * Errors:    -errno.
 */
#include "volume_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vfs_int.h"

static pthread_mutex_t *lock_of(const struct volume_file *f)
{
	return &f->m->dir->locks[f->ino % VOLUME_LOCKS];
}

void volume_file_lock(const struct volume_file *f)
{
	pthread_mutex_lock(lock_of(f));
}

void volume_file_unlock(const struct volume_file *f)
{
	pthread_mutex_unlock(lock_of(f));
}

void volume_file_lock_both(const struct volume_file *f, const struct volume_file *g)
{
	pthread_mutex_t *a = lock_of(f), *b = lock_of(g);

	pthread_mutex_lock(MIN(a, b));
	pthread_mutex_lock(MAX(a, b));
}

int volume_file_sync(const struct volume_file *f)
{
	int fd, err;

	if (f->m->async)
		return 0;
	fd = vfs_reopen(f->fd, O_RDONLY);
	if (fd < 0) /* not permitted, or no descriptor */
		return vfs_after(syncfs(f->m->dir->fd) ? -errno : 0);
	err = fsync(fd) ? -errno : 0;
	close(fd);
	return vfs_after(err);
}

/* ---- the attribute -------------------------------------------------------------------------- */

/* What is done as the owner */
struct access {
	const char *attribute;
	void *bytes;
	size_t n;
	int flags;
};

static ssize_t get_bytes(int fd, void *arg)
{
	const struct access *a = arg;
	char buf[VFS_PROC_PATH];
	ssize_t got = getxattr(vfs_proc_path(fd, buf), a->attribute, a->bytes, a->n);

	if (got < 0)
		return errno == ERANGE ? -EBADMSG : -errno;
	return got;
}

static ssize_t set_bytes(int fd, void *arg)
{
	const struct access *a = arg;
	char buf[VFS_PROC_PATH];

	return setxattr(vfs_proc_path(fd, buf), a->attribute, a->bytes, a->n, a->flags) ? -errno : 0;
}

static ssize_t set_length(int fd, void *bytes)
{
	char buf[VFS_PROC_PATH];

	return truncate(vfs_proc_path(fd, buf), (off_t) * (const uint64_t *)bytes) ? -errno : 0;
}

/* @flags: of setxattr() */
static int set_attribute(const struct volume_file *f, void *bytes, size_t n, int flags)
{
	struct access a = { f->m->dir->attribute, bytes, n, flags };

	return (int)vfs_as_owner(f->fd, set_bytes, &a);
}

int volume_file_resize(const struct volume_file *f, uint64_t bytes)
{
	return (int)vfs_as_owner(f->fd, set_length, &bytes);
}

ssize_t volume_attribute_get(const struct volume_file *f, void *bytes, size_t n)
{
	struct access a = { f->m->dir->attribute, bytes, n, 0 };

	return vfs_as_owner(f->fd, get_bytes, &a);
}

int volume_attribute_replace(const struct volume_file *f, void *bytes, size_t n)
{
	int err = set_attribute(f, bytes, n, XATTR_REPLACE);

	return err ? err : volume_file_sync(f);
}

int volume_attribute_set(const struct volume_file *f, void *bytes, size_t n)
{
	int err = volume_attribute_replace(f, bytes, n);

	if (err != -ENODATA)
		return err;
	err = set_attribute(f, bytes, n, XATTR_CREATE);
	return err ? err : volume_file_sync(f);
}

int volume_attribute_add(const struct volume_file *f, void *bytes, size_t n)
{
	int err = set_attribute(f, bytes, n, XATTR_CREATE);

	return err == -EEXIST ? 0 : err ? err : 1;
}
