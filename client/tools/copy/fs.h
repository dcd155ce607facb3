/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fs.h - one set of names for files here and files on a server, for `leat cp`
 *
 * Everywhere: @b says where paths begin. Return: 0 or -errno.
 */
#ifndef LEAT_TOOL_FS_H
#define LEAT_TOOL_FS_H

#include "tool.h"

/* A mount, or for the files of this machine (m is NULL) a directory; or a directory of a mount. */
struct fs_base {
	struct leat *m;
	struct leat_file *remote; /* the same with @m; NULL: paths begin with '/' */
	int dir;        /* paths that do not begin with '/' begin here; AT_FDCWD */
	bool no_links;  /* here a path's last component is what it is: a link is not followed */
};

/** fs_base - @m, or where this process is; links are followed */
struct fs_base fs_base(struct leat *m);

/** fs_mount - b.m, for calls whose relative paths begin in @b; each thread has mounts of its own */
struct leat *fs_mount(struct fs_base b);

/* An open file of either kind. */
struct fs_file {
	struct leat *m;
	struct leat_file *remote;
	int fd;
	bool is_stream; /* read and written where its descriptor stands: standard input and output */
	bool is_object; /* of fs_open_object() */
};

must_check int fs_open(struct fs_base b, const char *path, int flags, mode_t mode,
		       struct fs_file *ret);
/** fs_open_object - what @path itself means now, of whatever type, a link too: for its attributes, which the name
 * could give to another object by the next call; it takes no right to read it
 */
must_check int fs_open_object(struct fs_base b, const char *path, struct fs_file *ret);
/** fs_open_inside - the directory that @b is, for its attributes; to read where that is permitted, for then they
 * are to be had without /proc
 */
must_check int fs_open_inside(struct fs_base b, struct fs_file *ret);
/** fs_open_regular - to read, if it is a regular file or, on a server, a directory; else -ENXIO
 *
 * A pipe or device that took the name is not opened, since that may wait, or do something.
 */
must_check int fs_open_regular(struct fs_base b, const char *path, struct fs_file *ret);
/** fs_std - the open file behind @fd, STDIN_FILENO or STDOUT_FILENO, which itself stays open */
must_check int fs_std(int fd, struct fs_file *ret);
/** fs_close - Return: also the error of data that did not become stable */
must_check int fs_close(struct fs_file *f);
must_check int fs_fsync(struct fs_file *f);
must_check int fs_fstat(struct fs_file *f, struct stat *ret);
must_check int fs_ftruncate(struct fs_file *f, uint64_t size);
must_check int fs_fchmod(struct fs_file *f, mode_t mode);
must_check int fs_fchown(struct fs_file *f, uid_t uid, gid_t gid);
must_check int fs_futimens(struct fs_file *f, const struct timespec times[2]);

must_check int fs_stat(struct fs_base b, const char *path, struct stat *ret);
must_check int fs_lstat(struct fs_base b, const char *path, struct stat *ret);
must_check int fs_mkdir(struct fs_base b, const char *path, mode_t mode);
int fs_unlink(struct fs_base b, const char *path);
must_check int fs_rmdir(struct fs_base b, const char *path);
must_check int fs_rename(struct fs_base b, const char *from, const char *to);
must_check int fs_symlink(struct fs_base b, const char *target, const char *path);
/** fs_readlink - @buf is NUL-terminated; -ENAMETOOLONG if it does not fit */
must_check int fs_readlink(struct fs_base b, const char *path, char *buf, size_t cap);
must_check int fs_mknod(struct fs_base b, const char *path, mode_t mode, dev_t dev);
/** fs_list - as tool_list(), in no order on this machine */
must_check int fs_list(struct fs_base b, const char *path, struct tool_entries *ret);

/* ---- fs_acl.c ---- */

/* An access control list, with three entries if the file has none. */
struct fs_acl {
	size_t n;
	struct leat_acl_entry v[LEAT_ACL_MAX];
};

/** fs_acl_from_mode - the entries of a file that has only mode bits */
void fs_acl_from_mode(mode_t mode, struct fs_acl *ret);

/** fs_acl_mode - mode bits that give owner, group and others what the list gives them, and no one more */
mode_t fs_acl_mode(const struct fs_acl *acl);

/** fs_facl_get - -EOPNOTSUPP: a server that does not tell */
must_check int fs_facl_get(struct fs_file *f, struct fs_acl *ret);
/** fs_facl_set - replace list and mode; -EOPNOTSUPP: more than three entries, where there are no lists */
must_check int fs_facl_set(struct fs_file *f, const struct fs_acl *acl);

/* ---- fs.c ---- */

#define FS_PROC_BYTES 32

/** fs_proc_path - a name for @f, a file of this machine, which no one can give to another: for calls that refuse
 * the descriptor of an object; Return: @buf
 */
const char *fs_proc_path(const struct fs_file *f, char buf[FS_PROC_BYTES]);

/** fs_enter - a base inside a directory, where links are not followed; it must be a directory, and
 * where @b follows no links not a link to one. fs_leave() gives back what it took. */
must_check int fs_enter(struct fs_base b, const char *path, struct fs_base *ret);
void fs_leave(struct fs_base *b);

#endif
