/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_names.c - names of the files of a volume that go, or come
 *
 * Operation: Before a file may lose its last name it gets a link in pending/, durably. The locks of the inodes keep names and
 *            links as they are meanwhile.
 * Memory:    The stack.
 * Threads:   Workers.
 * Errors:    -errno.
 */
#include <errno.h>

#include "vfs_int.h"
#include "volume_calls.h"
#include "volume_pending.h"
#include "volume_todo.h"

static int begin_unlink(const struct volume_file *f)
{
	struct file_layout l;
	struct statx stx;
	int err = vfs_stat(f->fd, &stx);

	if (err || stx.stx_nlink > 2) /* one of the links may be that in pending/ */
		return err;
	err = volume_layout_complete(f, &l);
	if (volume_layout_is_invalid(err))
		return 0; /* nothing is known of its objects */
	return err ? err : volume_todo_link(f, &l);
}

int volume_unlink_begin(const struct fh_obj *o)
{
	struct volume_file f = volume_file_of(o);
	int err = volume_pending_may(f.m->dir->pending);

	return err ? err : begin_unlink(&f);
}

void volume_lock_names(const struct fh_obj *a, const struct fh_obj *b)
{
	struct volume_file f = volume_file_of(a), g = volume_file_of(b->fd < 0 ? a : b);

	volume_file_lock_both(&f, &g);
}

void volume_unlock_names(const struct fh_obj *a, const struct fh_obj *b)
{
	struct volume_file f = volume_file_of(a), g = volume_file_of(b->fd < 0 ? a : b);

	volume_file_unlock(&f);
	volume_file_unlock(&g);
}

int volume_link_begin(const struct fh_obj *o)
{
	struct volume_file f = volume_file_of(o);
	struct file_layout l;
	int err;

	volume_file_lock(&f);
	err = volume_layout_read(&f, &l);
	if (!err)
		err = volume_layout_removed(&f, &l);
	else if (volume_layout_is_invalid(err))
		err = 0;
	if (err)
		volume_file_unlock(&f);
	return err == 1 ? -ESTALE : err;
}

void volume_link_end(const struct fh_obj *o)
{
	struct volume_file f = volume_file_of(o);

	volume_file_unlock(&f);
}
