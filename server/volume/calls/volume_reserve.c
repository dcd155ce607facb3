/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_reserve.c - ranges at the end of a file, for clients that append
 *
 * Operation: A range becomes a part of the file before its client writes there. So the size of the inode, which is durable,
 *            is all that keeps two ranges apart, and a client that appends needs no lease. Others may write without a
 *            range: while one of them has a lease, the stripe servers are asked for the size first. What others
 *            write between question and range is concurrent with it: NFS promises no more.
 * Memory:    The stack.
 * Threads:   Workers.
 * Errors:    -errno. A range whose size could not be made durable is lost: it reads as zeroes.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "vfs_int.h"
#include "volume_calls.h"

/* Under the lock. */
static int find_layout(const struct volume_file *f, const struct volume_range *r, struct file_layout *ret)
{
	int err = volume_layout_complete(f, ret);

	return err ? err : volume_handle_check(&r->handle, ret);
}

int volume_reserve_asks(const struct fh_obj *o, const struct volume_range *r, char ret[STRIPE_OBJECT_BYTES])
{
	struct volume_file f = volume_file_of(o);
	struct file_layout l;
	int rc;

	volume_file_lock(&f);
	rc = find_layout(&f, r, &l);
	volume_file_unlock(&f);
	if (rc)
		return rc;
	memcpy(ret, l.object, sizeof(l.object));
	return volume_lease_others(f.m->dir->leases, l.object, r->instance);
}

/* Under the lock. */
static int take_range(const struct fh_obj *o, const struct volume_file *f, const struct volume_range *r, int *ret_fd,
		      uint64_t *ret_off)
{
	struct file_layout l;
	struct statx stx;
	uint64_t end;
	int err = find_layout(f, r, &l);

	if (!err)
		err = vfs_stat(f->fd, &stx);
	if (err)
		return err;
	*ret_off = MAX((uint64_t)stx.stx_size, r->after);
	if (!add_u64(*ret_off, r->bytes, &end) || end > INT64_MAX)
		return -EFBIG;
	return volume_raise_size(o, end, r->creds, ret_fd, &end);
}

int volume_reserve(const struct fh_obj *o, const struct volume_range *r, uint64_t *ret_off)
{
	struct volume_file f = volume_file_of(o);
	int fd = -1, err;

	volume_file_lock(&f); /* of two ranges, one comes first */
	err = take_range(o, &f, r, &fd, ret_off);
	volume_file_unlock(&f);
	if (!err)
		err = vfs_sync_fd(o, fd);
	if (!err)
		atomic_fetch_add(&f.m->dir->ranges, 1);
	if (fd >= 0)
		close(fd);
	return err;
}
