/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * vfs.h - file operations with NFS semantics, on descriptors and the *at() calls
 */
#ifndef LEAT_SERVER_VFS_H
#define LEAT_SERVER_VFS_H

#include <stdbool.h>
#include <stdint.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "posix_acl.h"
#include "base/util.h"
#include "creds.h"
#include "dir_watch.h"
#include "fh.h"

#define VFS_NAME_MAX 255

enum { /* struct vfs_sattr.set */
       VFS_SET_MODE = 1u << 0,
       VFS_SET_UID = 1u << 1,
       VFS_SET_GID = 1u << 2,
       VFS_SET_SIZE = 1u << 3,
       VFS_SET_ATIME = 1u << 4, /* tv_nsec may be UTIME_NOW */
       VFS_SET_MTIME = 1u << 5,
};

struct vfs_sattr {
	unsigned set;
	uint32_t mode, uid, gid;
	uint64_t size;
	struct timespec atime, mtime;
	const void *how; /* of a new file: for export.made */
};

enum vfs_create {
	VFS_UNCHECKED, /* an existing file is accepted */
	VFS_GUARDED,   /* -EEXIST if it exists */
	VFS_EXCLUSIVE, /* -EEXIST, except for a file created by an earlier transmission of this call */
};

#define VFS_VERF_BYTES 8

/* Result of an operation that creates a file: the file found, and for new regular files a descriptor open for reading
 * and writing, else -1. The mode of the file may not allow a later open. */
struct vfs_made {
	struct fh_obj obj;
	int fd;
};

/** vfs_init - checks that /proc is available to reopen descriptors; Return: 0 or -errno */
int must_check vfs_init(void);

/** vfs_stat - gets the attributes of an open file, O_PATH or not */
static inline int must_check vfs_stat(int fd, struct statx *ret)
{
	return dir_watch_statx(fd, "", AT_EMPTY_PATH, ret);
}

/** vfs_check_name - checks a name; Return: 0; -EACCES (empty, or contains '/'), -ENAMETOOLONG: RFC 1813 section 4.6 */
int must_check vfs_check_name(const char *name);

/** vfs_access - which of R_OK, W_OK, X_OK in @mask does the caller have? The kernel decides, including ACLs */
int must_check vfs_access(const struct fh_obj *o, const struct creds *cr, int mask, int *ret);

/** vfs_may_io - may the caller READ or WRITE this regular file?
 *
 * Its owner always may, because the owner could have opened it before removing the permission. Execute permission
 * implies read permission (RFC 1813 section 4.4).
 *
 * Return: 0, -EACCES, -EINVAL: not a regular file.
 */
int must_check vfs_may_io(const struct fh_obj *o, const struct creds *cr, bool write);

/** vfs_open_io - opens the contents of a regular file, with the server's own rights
 *
 * Return: a descriptor, or -errno.
 */
int must_check vfs_open_io(const struct fh_obj *o, bool write);

/** vfs_open_dir - opens a directory for listing; -EACCES if the caller may not read it */
int must_check vfs_open_dir(const struct fh_obj *o, const struct creds *cr);

/** vfs_lookup - runs fh_lookup() with the caller's rights
 * @ret: the caller closes it with fh_close()
 *
 * Return: 0; -EACCES, -ENAMETOOLONG as vfs_check_name(); -EPERM as creds_assume(); or as fh_lookup().
 */
int must_check vfs_lookup(struct fh_set *s, const struct fh_obj *dir, const char *name,
			  const struct creds *cr, struct fh_obj *ret);

/** vfs_readlink - reads the target of a symbolic link
 * @buf: receives *ret_len bytes, without a NUL
 *
 * Return: 0; -EINVAL: not a symbolic link; -ENAMETOOLONG: the target has @cap bytes or more; -errno.
 */
int must_check vfs_readlink(const struct fh_obj *o, char *buf, size_t cap, uint32_t *ret_len);

/* Changes by the following functions are on disk when they return 0, except in an async export. */

/** vfs_setattr - changes attributes
 *
 * Return: as vfs_apply(), vfs_sync().
 */
int must_check vfs_setattr(const struct fh_obj *o, const struct vfs_sattr *sa,
			   const struct creds *cr);

/** vfs_may_own - may the caller do what only the owner may? Return: 0; -EPERM; as creds_assume() */
int must_check vfs_may_own(const struct fh_obj *o, const struct creds *cr);

/** vfs_create - creates a regular file
 * @sa: attributes; not for VFS_EXCLUSIVE. On a file that exists already only the size is set
 * @verf: VFS_EXCLUSIVE only
 * @ret: release it with vfs_made_close(); fd is -1 if the file existed
 *
 * Return: 0; -EEXIST as enum vfs_create says, also for an object of another type, "." and ".."; -ENOTDIR: @dir is not a
 * directory; -EACCES, -ENAMETOOLONG as vfs_check_name(); -ESTALE: another file has the name by now; as vfs_apply(),
 * vfs_sync(); -errno. If its attributes cannot be set, the new file is removed.
 */
int must_check vfs_create(struct fh_set *s, const struct fh_obj *dir, const char *name,
			  enum vfs_create how, const struct vfs_sattr *sa,
			  const uint8_t verf[VFS_VERF_BYTES], const struct creds *cr,
			  struct vfs_made *ret);

/* An object to be created that is no regular file. */
struct vfs_new {
	uint32_t type;	    /* S_IFDIR, S_IFLNK, S_IFCHR, S_IFBLK, S_IFSOCK or S_IFIFO */
	const char *target; /* S_IFLNK: stored as it is */
	dev_t rdev;	    /* S_IFCHR, S_IFBLK */
};

/** vfs_make - creates an object; the size in @sa is ignored, and the mode of a symbolic link
 * @ret: release it with vfs_made_close(); fd is -1
 *
 * Return: 0; -EEXIST, also for "." and ".."; -ENOTDIR: @dir is not a directory; -EACCES, -ENAMETOOLONG as
 * vfs_check_name(); as vfs_apply(), vfs_sync(); -errno. If its attributes cannot be set, the new object is removed.
 */
int must_check vfs_make(struct fh_set *s, const struct fh_obj *dir, const char *name, const struct vfs_new *what,
			const struct vfs_sattr *sa, const struct creds *cr, struct vfs_made *ret);

/** vfs_made_close - closes both descriptors; one that is -1 is skipped */
void vfs_made_close(struct vfs_made *m);

/* A file that lost its last name by an operation: caches must not keep it open. */
struct vfs_gone {
	bool gone;
	uint64_t dev, ino;
};

/** vfs_remove - removes a name: REMOVE, or RMDIR if @is_dir (RFC 1813 sections 3.3.12, 3.3.13)
 * @ret: set when the name is removed, even if the sync then fails
 *
 * Return: 0; as vfs_lookup(), vfs_sync(); -EISDIR: REMOVE of a directory, "." or ".."; -EINVAL: RMDIR of "."; -EEXIST:
 * RMDIR of ".."; -errno.
 */
int must_check vfs_remove(struct fh_set *s, const struct fh_obj *dir, const char *name, bool is_dir,
			  const struct creds *cr, struct vfs_gone *ret);

/** vfs_rename - renames an object; an earlier object of the new name is replaced
 * @replaces: false: it is not. File systems that cannot tell replace it all the same
 * @ret: that object, if this was its last name; set when the rename is done, even if the sync then fails
 *
 * Return: 0; -EINVAL: "." or ".."; -EXDEV: directories of two exports; -EEXIST; as vfs_lookup(), vfs_sync(); -errno.
 */
int must_check vfs_rename(struct fh_set *s, const struct fh_obj *from, const char *from_name,
			  const struct fh_obj *to, const char *to_name, bool replaces, const struct creds *cr,
			  struct vfs_gone *ret);

/** vfs_link - adds a name to a file
 *
 * Return: 0; -EEXIST, also for "." and ".."; -ENOTDIR: @dir is not a directory; -EISDIR: @o is a directory; -EXDEV: two
 * exports; -EACCES, -ENAMETOOLONG as vfs_check_name(); -EPERM as creds_assume(); as vfs_sync(); -errno.
 */
int must_check vfs_link(struct fh_set *s, const struct fh_obj *o, const struct fh_obj *dir,
			const char *name, const struct creds *cr);

/* vfs_space.c */

/** vfs_allocate - allocates or frees the space of a range; on disk when it returns 0
 * @mode: as of fallocate()
 *
 * Return: 0; -EFBIG: beyond the largest offset; -EINVAL: @len is 0; as vfs_may_io(); -EPERM as creds_assume();
 * -EOPNOTSUPP: the file system does not support it; -errno.
 */
int must_check vfs_allocate(const struct fh_obj *o, int mode, uint64_t off, uint64_t len, const struct creds *cr);

/** vfs_seek - finds the first byte at or after @off that is data or, if @hole, in a hole or the end
 *
 * Return: 0; -ENXIO: none, or @off is not inside the file; as vfs_may_io(); -errno.
 */
int must_check vfs_seek(const struct fh_obj *o, bool hole, uint64_t off, const struct creds *cr, uint64_t *ret);

/* vfs_acl.c */

/** vfs_get_acl - gets a list of the file; its size is 0 if there is no list
 * @dflt: the list for new files in this directory, instead of its own
 *
 * Return: 0; -EOPNOTSUPP: such files have no lists here; -EIO: more entries than NFSACL supports.
 */
int must_check vfs_get_acl(const struct fh_obj *o, bool dflt, struct acl_xattr *ret);

/** vfs_set_acl - sets lists, or removes them if their size is 0; on disk when it returns 0
 * @access, @dflt: NULL: keep the list
 *
 * Return: 0; -EINVAL: a default list for an object that is not a directory; -EOPNOTSUPP; -EPERM; -errno.
 */
int must_check vfs_set_acl(const struct fh_obj *o, const struct acl_xattr *access,
			   const struct acl_xattr *dflt, const struct creds *cr);

#endif
