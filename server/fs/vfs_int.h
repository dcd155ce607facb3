/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * vfs_int.h - shared by vfs.c and vfs_name.c
 */
#ifndef LEAT_SERVER_VFS_INT_H
#define LEAT_SERVER_VFS_INT_H

#include "vfs.h"

#define VFS_PROC_PATH 32

/** vfs_after - converts an error that occurred after a change was made
 *
 * A shortage would be reported as NFS3ERR_JUKEBOX, which means that nothing was changed and that the client retries
 * the call (once.c).
 *
 * Return: @err; -EIO instead of a shortage.
 */
int must_check vfs_after(int err);

const char *vfs_proc_path(int fd, char buf[VFS_PROC_PATH]);
int must_check vfs_reopen(int path_fd, int flags);
int must_check vfs_sync_fd(const struct fh_obj *o, int fd);
int must_check vfs_sync(const struct fh_obj *o);
int must_check vfs_apply(const struct fh_obj *o, const struct vfs_sattr *sa,
			 const struct creds *cr);

#endif
