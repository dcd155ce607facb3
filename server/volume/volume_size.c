/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_size.c - the size of a file whose writer may be gone
 *
 * Operation: The layout is read, the servers are asked without a lock, and the size is raised under the lock of the inode if
 *            the layout is still the same. Objects of older epochs do not count: their cut is not done yet.
 *            The clocks of stripe servers decide nothing but mtime: it becomes that of an object which was written
 *            after the last change of the inode. So a time that a client has set after its last write stays.
 * Memory:    The stack.
 * Threads:   That of pending work.
 * Errors:    As volume_size_ask() says.
 */
#include "volume_size.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "vfs_int.h"
#include "volume_layout.h"
#include "volume_send.h"

static uint64_t ns_of(const struct statx_timestamp *t)
{
	return t->tv_sec < 0 ? 0 : (uint64_t)t->tv_sec * NS_PER_S + t->tv_nsec;
}

static int put_mtime(const struct volume_file *f, uint64_t ns)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   { .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) } };
	char path[VFS_PROC_PATH];

	return utimensat(AT_FDCWD, vfs_proc_path(f->fd, path), times, 0) ? -errno : 0;
}

/* Under the lock. */
static int raise_size(const struct volume_file *f, const struct volume_lengths *got)
{
	uint64_t mtime, written = MIN(got->mtime_ns, clock_real_ns());
	struct statx stx;
	bool grows, is_later;
	int err = vfs_stat(f->fd, &stx);

	if (err)
		return err;
	grows = got->bytes > stx.stx_size;
	mtime = ns_of(&stx.stx_mtime);
	is_later = written > (grows ? mtime : ns_of(&stx.stx_ctime));
	if (!grows && !is_later)
		return 0;
	if (grows)
		err = volume_file_resize(f, got->bytes);
	if (!err)
		err = put_mtime(f, is_later ? written : mtime);
	if (!err)
		err = volume_file_sync(f);
	if (!err && grows && log_limit_ok(&f->m->dir->sizes))
		log_info("volume %s: inode %llu: its writer has not reported %llu bytes at its end", f->m->name + 1,
			 (unsigned long long)f->ino, (unsigned long long)(got->bytes - stx.stx_size));
	return err;
}

/* Under the lock. Return: 1: the servers can be asked; 0: there is nothing to ask; -errno */
static int find_layout(const struct volume_file *f, struct file_layout *ret)
{
	int rc = volume_layout_complete(f, ret);

	if (volume_layout_is_invalid(rc))
		return 0;
	if (!rc)
		rc = volume_layout_removed(f, ret);
	return rc < 0 ? rc : !rc;
}

static int take_lengths(const struct volume_file *f, const struct file_layout *asked, const struct volume_lengths *got)
{
	struct file_layout l;
	int rc;

	volume_file_lock(f);
	rc = find_layout(f, &l);
	if (rc == 1)
		rc = l.epoch == asked->epoch && !memcmp(l.object, asked->object, sizeof(l.object)) ? raise_size(f, got) : -EAGAIN;
	volume_file_unlock(f);
	return rc;
}

int volume_size_ask(struct volume_send *s, const struct volume_file *f)
{
	struct volume_lengths got;
	struct file_layout l;
	int rc, err;

	volume_file_lock(f);
	rc = find_layout(f, &l);
	volume_file_unlock(f);
	if (rc != 1)
		return rc;
	atomic_fetch_add(&f->m->dir->length_queries, 1);
	rc = volume_send_stat(s, f->m, &l, &got);
	if (rc && rc != -EAGAIN)
		return rc;
	err = take_lengths(f, &l, &got);
	if (err)
		return err;
	return rc == -EAGAIN ? -EHOSTDOWN : 0;
}
