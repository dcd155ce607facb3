/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * vfs_space.c - allocated space and holes of a file
 *
 * Operation: fallocate() and lseek() on a descriptor of its own. A change runs with the caller's ids, so that quotas
 *            apply and the kernel clears set-id bits as for a local caller.
 * Memory:    the caller's.
 * Threads:   workers.
 * Errors:    -errno. A change that fails may have been made in part.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "vfs_int.h"

int vfs_allocate(const struct fh_obj *o, int mode, uint64_t off, uint64_t len, const struct creds *cr)
{
	int fd, err;

	if (!len || off > INT64_MAX || len > INT64_MAX - off)
		return len ? -EFBIG : -EINVAL;
	err = vfs_may_io(o, cr, true);
	if (err)
		return err;
	fd = vfs_open_io(o, true);
	if (fd < 0)
		return fd;
	err = creds_assume(cr);
	if (!err) {
		err = fallocate(fd, mode, (off_t)off, (off_t)len) ? -errno : 0;
		creds_resume();
	}
	if (!err)
		err = vfs_sync_fd(o, fd);
	close(fd);
	return err;
}

int vfs_seek(const struct fh_obj *o, bool hole, uint64_t off, const struct creds *cr, uint64_t *ret)
{
	off_t at;
	int fd, err;

	if (off > INT64_MAX)
		return -ENXIO;
	err = vfs_may_io(o, cr, false);
	if (err)
		return err;
	fd = vfs_open_io(o, false);
	if (fd < 0)
		return fd;
	at = lseek(fd, (off_t)off, hole ? SEEK_HOLE : SEEK_DATA);
	err = at < 0 ? -errno : 0;
	close(fd);
	if (!err)
		*ret = (uint64_t)at;
	return err;
}
