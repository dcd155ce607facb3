/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * vfs_int.h - shared by vfs.c, vfs_name.c, and what keeps more of a file than vfs.h knows of
 */
#ifndef LEAT_SERVER_VFS_INT_H
#define LEAT_SERVER_VFS_INT_H

#include "vfs.h"

#define VFS_PROC_PATH 32

/** vfs_after - converts an error that occurred after a change was made
 *
 * A shortage would be reported as NFS3ERR_JUKEBOX, which means that nothing was changed and that the client retries
 * the call (drc_check.c).
 *
 * Return: @err; -EIO instead of a shortage.
 */
int must_check vfs_after(int err);

/** vfs_proc_path - builds a path that leads to the file of @fd; Return: @buf */
const char *vfs_proc_path(int fd, char buf[VFS_PROC_PATH]);

/** vfs_reopen - opens the file of an O_PATH descriptor; only regular files and directories
 *
 * Return: a descriptor, which the caller closes, or -errno of open().
 */
int must_check vfs_reopen(int path_fd, int flags);

/** vfs_as_owner - runs @fn on an O_PATH descriptor; if it returns -EACCES, again with the mode bits of the owner
 * A leatd that is not root has no rights to its own files without these bits, and root needs none. Only the owner gains by
 * them while @fn runs; it must not change modes or lists.
 *
 * Return: that of @fn; -EACCES: another user owns the file; -errno.
 */
ssize_t vfs_as_owner(int fd, ssize_t (*fn)(int fd, void *arg), void *arg);

/** vfs_lock_modes - a change of a mode or of a list is between this and vfs_unlock_modes(), so that vfs_as_owner() does not
 * take its own bits for the file's; nothing else may block there */
void vfs_lock_modes(void);
void vfs_unlock_modes(void);

/** vfs_sync_fd - runs fsync() on @o, which @fd has open; does nothing in an async export
 *
 * Return: 0; -EINVAL: this file system does not support it; -errno, converted by vfs_after().
 */
int must_check vfs_sync_fd(const struct fh_obj *o, int fd);

/** vfs_write_back - as vfs_sync_fd(), also in an async export: for calls whose results depend on it */
int must_check vfs_write_back(const struct fh_obj *o, int fd);

/** vfs_sync - writes attributes, and names of a directory, to disk; does nothing in an async export
 *
 * Concurrent syncs of one directory are shared.
 *
 * Return: 0; -errno, converted by vfs_after().
 */
int must_check vfs_sync(const struct fh_obj *o);

/** vfs_apply - changes attributes, not yet on disk
 *
 * Permission failures are found before any change. Another failure (no space, a quota) stops at the first attribute
 * affected.
 *
 * Return: 0; -EINVAL: an id of UINT32_MAX, or the size of an object that is not a regular file; -EISDIR: the size of a
 * directory; -EFBIG; -EPERM, -EACCES: not permitted; -errno.
 */
int must_check vfs_apply(const struct fh_obj *o, const struct vfs_sattr *sa,
			 const struct creds *cr);

#endif
