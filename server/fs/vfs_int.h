/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * vfs_int.h - what vfs.c and vfs_name.c share
 */
#ifndef LEAT_SERVER_VFS_INT_H
#define LEAT_SERVER_VFS_INT_H

#include "vfs.h"

#define VFS_PROC_PATH 32

/** vfs_after - an error that was met when something was changed already
 *
 * A shortage would be told as NFS3ERR_JUKEBOX, which promises that nothing was, and has the call done
 * again (once.c).
 *
 * Return: @err; -EIO in place of a shortage.
 */
int must_check vfs_after(int err);

const char *vfs_proc_path(int fd, char buf[VFS_PROC_PATH]);
int must_check vfs_reopen(int path_fd, int flags);
int must_check vfs_sync_fd(const struct fh_obj *o, int fd);
int must_check vfs_sync(const struct fh_obj *o);
int must_check vfs_apply(const struct fh_obj *o, const struct vfs_sattr *sa,
			 const struct creds *cr);

#endif
