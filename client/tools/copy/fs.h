/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fs.h - common functions for local files and files on a server, for `leat cp`
 *
 * In all functions @b is the start of relative paths. Return: 0 or -errno.
 */
#ifndef LEAT_TOOL_FS_H
#define LEAT_TOOL_FS_H

#include "tool.h"

/* The start of paths: a mount, a local directory (m is NULL), or a directory of a mount. */
struct fs_base {
	struct leat *m;
	struct leat_file *remote; /* directory of @m; NULL: paths begin with '/' */
	int dir;        /* start of local relative paths; AT_FDCWD */
	bool no_links;  /* links in the last component of a path are not followed */
};

/** fs_base - @m, or the current directory of this process; follows links */
struct fs_base fs_base(struct leat *m);

/** fs_mount - b.m, for calls with relative paths that begin in @b; each thread has its own mounts */
struct leat *fs_mount(struct fs_base b);

/* An open file of either kind. */
struct fs_file {
	struct leat *m;
	struct leat_file *remote;
	int fd;
	bool is_stream; /* standard input or output: read and written at its current position */
	bool is_object; /* of fs_open_object() */
};

/** fs_open - opens @path with @flags and @mode of open(2), and O_NOFOLLOW if b.no_links; fs_close() releases @ret */
must_check int fs_open(struct fs_base b, const char *path, int flags, mode_t mode,
		       struct fs_file *ret);
/** fs_open_object - opens the object that @path now means, of any type, even a link, to access its attributes; needs
 * no read permission
 * The name could mean another object by the next call.
 */
must_check int fs_open_object(struct fs_base b, const char *path, struct fs_file *ret);
/** fs_open_inside - opens the directory @b for its attributes; for reading if permitted, which makes them available
 * without /proc
 */
must_check int fs_open_inside(struct fs_base b, struct fs_file *ret);
/** fs_open_regular - opens for reading a regular file or, on a server, a directory; else -ENXIO
 *
 * A pipe or device that replaced the file is not opened, because that may block or have side effects.
 */
must_check int fs_open_regular(struct fs_base b, const char *path, struct fs_file *ret);
/** fs_std - duplicates @fd, STDIN_FILENO or STDOUT_FILENO, which stays open */
must_check int fs_std(int fd, struct fs_file *ret);
/** fs_close - closes, in any case; Return: also the error of data that did not become stable */
must_check int fs_close(struct fs_file *f);
/** fs_drop - closes a file of which nothing was written, or whose error is known */
void fs_drop(struct fs_file *f);
/** fs_fsync - writes the data and attributes of @f to stable storage */
must_check int fs_fsync(struct fs_file *f);
/** fs_fstat - gets the attributes of @f */
must_check int fs_fstat(struct fs_file *f, struct stat *ret);
/** fs_ftruncate - sets the size of @f, in bytes */
must_check int fs_ftruncate(struct fs_file *f, uint64_t size);
/** fs_fchmod - sets the permission bits of @f */
must_check int fs_fchmod(struct fs_file *f, mode_t mode);
/** fs_fchown - sets owner and group of @f; -1 keeps one */
must_check int fs_fchown(struct fs_file *f, uid_t uid, gid_t gid);
/** fs_futimens - sets atime, times[0], and mtime, times[1], as futimens(3) */
must_check int fs_futimens(struct fs_file *f, const struct timespec times[2]);

/** fs_stat - gets the attributes of @path; follows a link in the last component unless b.no_links */
must_check int fs_stat(struct fs_base b, const char *path, struct stat *ret);
/** fs_lstat - gets the attributes of @path, of a link itself */
must_check int fs_lstat(struct fs_base b, const char *path, struct stat *ret);
/** fs_mkdir - creates a directory */
must_check int fs_mkdir(struct fs_base b, const char *path, mode_t mode);
/** fs_unlink - removes a name that is not a directory; as a cleanup, an earlier signal does not end it: TOOL_AGAIN() */
int fs_unlink(struct fs_base b, const char *path);
/** fs_rmdir - removes an empty directory */
must_check int fs_rmdir(struct fs_base b, const char *path);
/** fs_rename - renames @from to @to, replacing @to; both are relative to @b */
must_check int fs_rename(struct fs_base b, const char *from, const char *to);
/** fs_symlink - creates the link @path to @target, which is stored as it is */
must_check int fs_symlink(struct fs_base b, const char *target, const char *path);
/** fs_readlink - @buf is NUL-terminated; -ENAMETOOLONG if it does not fit */
must_check int fs_readlink(struct fs_base b, const char *path, char *buf, size_t cap);
/** fs_mknod - creates a device, socket or pipe; the type is part of @mode */
must_check int fs_mknod(struct fs_base b, const char *path, mode_t mode, dev_t dev);
/** fs_list - lists the directory @b as tool_list() does, unsorted if it is local */
must_check int fs_list(struct fs_base b, struct tool_entries *ret);

/* ---- fs_acl.c ---- */

/* An access control list, with three entries if the file has none. */
struct fs_acl {
	size_t n;
	struct leat_acl_entry v[LEAT_ACL_MAX];
};

/** fs_acl_from_mode - the entries of a file that has only mode bits */
void fs_acl_from_mode(mode_t mode, struct fs_acl *ret);

/** fs_acl_mode - mode bits that grant owner, group and others what the list grants them, and no other user more */
mode_t fs_acl_mode(const struct fs_acl *acl);

/** fs_facl_get - -EOPNOTSUPP: the server does not return lists */
must_check int fs_facl_get(struct fs_file *f, struct fs_acl *ret);
/** fs_facl_set - replaces list and mode; -EOPNOTSUPP: more than three entries, but no support for lists */
must_check int fs_facl_set(struct fs_file *f, const struct fs_acl *acl);

/* ---- fs.c ---- */

#define FS_PROC_BYTES 32

/** fs_proc_path - a name in /proc for @f, a local file, which other users cannot redirect: for calls that refuse the
 * descriptor of an object; Return: @buf
 */
const char *fs_proc_path(const struct fs_file *f, char buf[FS_PROC_BYTES]);

/** fs_enter - a base inside a directory, where links are not followed
 * It must be a directory; if @b follows no links, it must not be a link to one. fs_leave() releases it. */
must_check int fs_enter(struct fs_base b, const char *path, struct fs_base *ret);
/** fs_leave - closes the directory of fs_enter(); @b begins at its mount or the current directory again */
void fs_leave(struct fs_base *b);

#endif
