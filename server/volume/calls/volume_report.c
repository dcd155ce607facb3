/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_report.c - what clients, and the manager itself, have written: it raises the size of a file
 *
 * Operation: Of a report and a cut, or of two reports, one comes first: each has the lock of the inode. The size is raised as
 *            the caller, so that the kernel takes set-id bits as it does for a write.
 * Memory:    The stack.
 * Threads:   Workers.
 * Errors:    -errno.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vfs_int.h"
#include "volume_calls.h"
#include "volume_pending.h"

/* Under the lock, by a descriptor that is open for writing. */
static int raise_open(int fd, uint64_t bytes, const struct creds *cr, uint64_t *ret_bytes)
{
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	*ret_bytes = MAX((uint64_t)st.st_size, bytes);
	err = creds_assume(cr);
	if (err)
		return err;
	/* also of an unchanged size it sets mtime, and takes set-id bits and capabilities, as a write does */
	err = ftruncate(fd, (off_t)*ret_bytes) ? -errno : 0;
	creds_resume();
	return err;
}

int volume_raise_size(const struct fh_obj *o, uint64_t bytes, const struct creds *cr, int *ret_fd, uint64_t *ret_bytes)
{
	*ret_fd = vfs_open_io(o, true);
	return *ret_fd < 0 ? *ret_fd : raise_open(*ret_fd, bytes, cr, ret_bytes);
}

int volume_handle_check(const struct stripe_handle *h, const struct file_layout *l)
{
	if (h->volume != l->volume || !(h->rights & STRIPE_MAY_WRITE))
		return -EACCES;
	if (stripe_expired(h->expiry, (uint64_t)time(NULL)))
		return -ETIME;
	if (memcmp(h->name.object, l->object, sizeof(l->object)) || h->name.stripe >= l->at.width ||
	    h->server != l->servers[h->name.stripe])
		return -EACCES;
	return h->epoch == l->epoch ? 0 : -ETIME;
}

/* Under the lock. Return: as volume_lease_take(); the report counts in any case */
static int report_lease(const struct volume_file *f, const struct file_layout *l, const struct volume_report *r)
{
	if (!r->last)
		return volume_lease_begin(f, l, &r->by);
	volume_lease_end(f->m->dir->leases, l->object, &r->by);
	return 0;
}

/* Under the lock. Return: 0; -errno */
static int take_report(const struct fh_obj *o, const struct volume_file *f, const struct volume_report *r, int *ret_fd,
		       uint64_t *ret_bytes, int *ret_lease)
{
	struct file_layout l;
	struct statx stx;
	int err = volume_layout_complete(f, &l);

	if (!err)
		err = volume_handle_check(&r->handle, &l);
	if (!err && r->wrote)
		err = volume_raise_size(o, r->bytes, r->creds, ret_fd, ret_bytes);
	else if (!err)
		err = vfs_stat(f->fd, &stx);
	if (err)
		return err;
	if (!r->wrote)
		*ret_bytes = stx.stx_size;
	*ret_lease = report_lease(f, &l, r);
	return 0;
}

int volume_report(const struct fh_obj *o, const struct volume_report *r, uint64_t *ret_bytes, bool *ret_leased)
{
	struct volume_file f = volume_file_of(o);
	int fd = -1, lease = 0, err;

	*ret_leased = false;
	if (r->bytes > INT64_MAX)
		return -EFBIG;
	volume_file_lock(&f); /* of a report and a cut, or of two reports, one comes first */
	err = take_report(o, &f, r, &fd, ret_bytes, &lease);
	volume_file_unlock(&f);
	if (lease == 1)
		volume_pending_wake(f.m->dir->pending);
	*ret_leased = lease >= 0 && !r->last && r->by.instance;
	if (!err && r->wrote)
		err = vfs_sync_fd(o, fd);
	if (fd >= 0)
		close(fd);
	return err;
}

int volume_wrote(const struct volume_file *f, uint64_t epoch, uint64_t end, const struct creds *cr)
{
	struct file_layout l;
	uint64_t bytes;
	int err;

	volume_file_lock(f); /* as of a report */
	err = volume_layout_complete(f, &l);
	if (!err && l.epoch == epoch)
		err = raise_open(f->fd, end, cr, &bytes);
	volume_file_unlock(f);
	return err;
}

int volume_take_ids(const struct fh_obj *o, const struct creds *cr)
{
	struct volume_file f = volume_file_of(o);
	uint64_t bytes;
	int fd = -1, err;

	volume_file_lock(&f);
	err = volume_raise_size(o, 0, cr, &fd, &bytes);
	volume_file_unlock(&f);
	if (fd >= 0)
		close(fd);
	return err;
}
