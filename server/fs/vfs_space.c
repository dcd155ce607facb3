/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * vfs_space.c - allocated space and holes of a file
 *
 * Operation: fallocate() and lseek() on a descriptor of its own. A change runs with the caller's ids, so that quotas
 *            apply and the kernel clears set-id bits as for a local caller. File systems that may not know of data
 *            before it is on disk (fs_limits.c) have it written back before the question where it is.
 * Memory:    the caller's.
 * Threads:   workers.
 * Errors:    -errno. A change that fails may have been made in part.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "fs_limits.h"
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
	struct fs_space space;
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
	fs_space_find(fd, &space);
	if (!space.tells_holes) /* it may report a hole where data is not on disk yet */
		err = vfs_write_back(o, fd);
	at = lseek(fd, (off_t)off, hole ? SEEK_HOLE : SEEK_DATA);
	if (!err || err == -EINVAL)
		err = at < 0 ? -errno : 0;
	close(fd);
	if (!err)
		*ret = (uint64_t)at;
	return err;
}
