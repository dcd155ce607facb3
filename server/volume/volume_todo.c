/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_todo.c - the links in pending/: which files have something to be done on stripe servers, and what
 *
 * Operation: A link has the name of the file's object. What is to be done is decided by the number of links and the layout.
 * Memory:    The stack.
 * Threads:   Any.
 * Errors:    -errno.
 */
#include "volume_todo.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs_int.h"
#include "volume_layout.h"

int volume_todo_link(const struct volume_file *f, const struct file_layout *l)
{
	char path[VFS_PROC_PATH], name[VOLUME_OBJECT_TEXT];
	int dir = f->m->dir->pending_fd;

	volume_object_text(l->object, name);
	if (linkat(AT_FDCWD, vfs_proc_path(f->fd, path), dir, name, AT_SYMLINK_FOLLOW) && errno != EEXIST)
		return -errno;
	return fsync(dir) ? vfs_after(-errno) : 0;
}

bool volume_todo_is_linked(const struct volume_file *f, const struct file_layout *l)
{
	char name[VOLUME_OBJECT_TEXT];
	struct stat st;

	volume_object_text(l->object, name);
	return !fstatat(f->m->dir->pending_fd, name, &st, AT_SYMLINK_NOFOLLOW);
}

int volume_todo_find(const struct volume_file *f, int (*layout)(const struct volume_file *f, struct file_layout *ret),
		     struct file_layout *ret)
{
	struct statx stx;
	int err = layout(f, ret);

	if (volume_layout_is_invalid(err))
		return VOLUME_TODO_DAMAGED;
	if (!err)
		err = vfs_stat(f->fd, &stx);
	if (err)
		return err;
	if (stx.stx_nlink <= 1)
		return VOLUME_TODO_REMOVE;
	return ret->cut == FILE_CUT_NONE ? VOLUME_TODO_NOTHING : VOLUME_TODO_CUT;
}
