/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_file.h - the inode of a file or directory of a volume: its lock, its length, and its extended attribute
 *
 * Functions block, and do not run inside of creds_assume().
 */
#ifndef LEAT_SERVER_VOLUME_FILE_H
#define LEAT_SERVER_VOLUME_FILE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/util.h"
#include "export.h"
#include "fh.h"
#include "volume_manager.h"

/* A file or directory of a volume, by any descriptor. */
struct volume_file {
	struct volume_manager *m;
	int fd;
	uint64_t ino;
};

static inline struct volume_file volume_file_of(const struct fh_obj *o)
{
	return (struct volume_file){ .m = o->exp->manager, .fd = o->fd, .ino = o->stx.stx_ino };
}

/** volume_file_lock - takes the lock of the inode: struct volume_dir has what it is for, and the order of locks
 * volume_file_lock_both - those of two inodes, which may be one; volume_file_unlock() of both follows */
void volume_file_lock(const struct volume_file *f);
void volume_file_unlock(const struct volume_file *f);
void volume_file_lock_both(const struct volume_file *f, const struct volume_file *g);

/** volume_file_resize - under the lock: sets the size of the inode, not durably; Return: 0, -errno */
int must_check volume_file_resize(const struct volume_file *f, uint64_t bytes);

/** volume_file_sync - makes attributes durable, unless the export is async; Return: 0, -errno */
int must_check volume_file_sync(const struct volume_file *f);

/** volume_attribute_get - reads the attribute of layouts and defaults; Return: its length; -ENODATA; -EBADMSG: longer; -errno */
ssize_t must_check volume_attribute_get(const struct volume_file *f, void *bytes, size_t n);

/** volume_attribute_set - sets or replaces it, durably; volume_attribute_replace - replaces it: fails with -ENODATA without one */
int must_check volume_attribute_set(const struct volume_file *f, void *bytes, size_t n);
int must_check volume_attribute_replace(const struct volume_file *f, void *bytes, size_t n);

/** volume_attribute_add - sets it unless the file has one; Return: 0; 1: it was set, not durable yet; -errno */
int must_check volume_attribute_add(const struct volume_file *f, void *bytes, size_t n);

#endif
