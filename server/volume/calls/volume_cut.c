/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_cut.c - cuts of a file, and growth
 *
 * Operation: The steps of a cut are durable one by one: the link in pending/, the layout with the next epoch (FILE_CUT_SIZE),
 *            the size, the layout again (FILE_CUT_FENCE). A caller that finds FILE_CUT_SIZE completes the size first
 *            (volume_layout_complete()), so a half of a cut is not seen. Then the thread of pending work fences the
 *            objects. While servers are away, the layout remembers the earlier cuts that they may lack (file_layout.h).
 * Memory:    The stack.
 * Threads:   Workers. They wait for the thread of pending work.
 * Errors:    -errno.
 */
#include <errno.h>
#include <unistd.h>

#include "export.h"
#include "vfs_int.h"
#include "volume_calls.h"
#include "volume_pending.h"
#include "volume_todo.h"

static void log_too_many(const struct volume_file *f)
{
	struct volume_dir *d = f->m->dir;

	if (log_limit_ok_under(&d->log_lock, &d->refusals))
		log_warn("volume %s: inode %llu was cut too often while a stripe server is away", f->m->name + 1,
			 (unsigned long long)f->ino);
}

/* Under the lock. An earlier cut need not be complete. */
static int begin_cut(const struct volume_file *f, struct file_layout *l, uint64_t bytes)
{
	int err = volume_todo_link(f, l);

	if (err)
		return err;
	if (file_layout_cut(l, bytes)) {
		log_too_many(f);
		return -EIO; /* clients hang on a status that asks them to try again */
	}
	err = volume_layout_put(f, l);
	if (!err)
		err = volume_layout_complete(f, l);
	return err ? vfs_after(err) : 0;
}

/* Under the lock. @may_wait: else nothing is begun that servers have to be told. Return: 1: they are to be told; 0; -errno */
static int set_size(const struct fh_obj *o, const struct volume_file *f, uint64_t bytes, bool may_wait, const struct creds *cr,
		    struct file_layout *l)
{
	uint64_t now, raised;
	int fd = -1, err = volume_layout_ensure(f, !o->exp->conf.ro, l, &now);

	if (err)
		return err;
	if (!may_wait && (bytes < now || (l->cut == FILE_CUT_FENCE && l->cut_bytes == bytes)))
		return -EAGAIN;
	if (bytes >= now) {
		err = volume_raise_size(o, bytes, cr, &fd, &raised);
		if (fd >= 0)
			close(fd);
		if (!err)
			err = volume_file_sync(f);
		/* a cut once more, by a client that got no reply: servers in reach may not have it yet */
		return err ? err : l->cut == FILE_CUT_FENCE && l->cut_bytes == bytes;
	}
	err = begin_cut(f, l, bytes);
	return err ? err : 1;
}

static bool has_writers(const struct volume_file *f, struct file_layout *l)
{
	int err;

	volume_file_lock(f);
	err = volume_layout_complete(f, l);
	volume_file_unlock(f);
	return !err && volume_lease_others(f->m->dir->leases, l->object, 0);
}

bool volume_has_writers(const struct fh_obj *o)
{
	struct volume_file f = volume_file_of(o);
	struct file_layout l;

	return has_writers(&f, &l);
}

int volume_set_size(const struct fh_obj *o, uint64_t bytes, bool may_wait, const struct creds *cr)
{
	struct volume_file f = volume_file_of(o);
	struct file_layout l;
	int rc = vfs_may_io(o, cr, true);

	if (!rc)
		rc = bytes > INT64_MAX ? -EFBIG : volume_pending_may(f.m->dir->pending);
	if (!rc && has_writers(&f, &l)) {
		if (!may_wait)
			return -EAGAIN;
		rc = volume_pending_ask(f.m->dir->pending, &f, l.object);
	}
	if (rc && rc != -EAGAIN && rc != -EHOSTDOWN) /* it is cut at the same time, or a server is away: the rest counts */
		return rc;
	volume_file_lock(&f);
	rc = set_size(o, &f, bytes, may_wait, cr, &l);
	volume_file_unlock(&f);
	if (rc != 1)
		return rc;
	volume_pending_run(f.m->dir->pending, l.object);
	return volume_pending_may(f.m->dir->pending);
}
