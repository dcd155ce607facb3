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
	err = volume_layout_get(f, &l);
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

/* The locks of both, in the order of their addresses. They are recursive: both may be one. */
static void find_locks(const struct fh_obj *a, const struct fh_obj *b, pthread_mutex_t *ret[2])
{
	struct volume_file f = volume_file_of(a), g = volume_file_of(b->fd < 0 ? a : b);
	pthread_mutex_t *first = volume_file_lock(&f), *second = volume_file_lock(&g);

	ret[0] = MIN(first, second);
	ret[1] = MAX(first, second);
}

void volume_lock_names(const struct fh_obj *a, const struct fh_obj *b)
{
	pthread_mutex_t *locks[2];

	find_locks(a, b, locks);
	pthread_mutex_lock(locks[0]);
	pthread_mutex_lock(locks[1]);
}

void volume_unlock_names(const struct fh_obj *a, const struct fh_obj *b)
{
	pthread_mutex_t *locks[2];

	find_locks(a, b, locks);
	pthread_mutex_unlock(locks[1]);
	pthread_mutex_unlock(locks[0]);
}

int volume_link_begin(const struct fh_obj *o)
{
	struct volume_file f = volume_file_of(o);
	struct file_layout l;
	int err;

	pthread_mutex_lock(volume_file_lock(&f));
	err = volume_layout_look(&f, &l);
	if (!err)
		err = volume_layout_removed(&f, &l);
	else if (volume_layout_is_invalid(err))
		err = 0;
	if (err)
		pthread_mutex_unlock(volume_file_lock(&f));
	return err == 1 ? -ESTALE : err;
}

void volume_link_end(const struct fh_obj *o)
{
	struct volume_file f = volume_file_of(o);

	pthread_mutex_unlock(volume_file_lock(&f));
}
