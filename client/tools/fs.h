/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fs.h - one set of names for files here and files on a server, for `leat cp`
 *
 * Everywhere: @m is a mount, or NULL for the files of this machine. Return: 0 or -errno.
 */
#ifndef LEAT_TOOL_FS_H
#define LEAT_TOOL_FS_H

#include "tool.h"

/* An open file of either kind. */
struct fs_file {
	struct leat *m;
	struct leat_file *remote;
	int fd;
};

must_check int fs_open(struct leat *m, const char *path, int flags, mode_t mode, struct fs_file *ret);
/** fs_close - Return: also the error of data that did not become stable */
must_check int fs_close(struct fs_file *f);

must_check int fs_stat(struct leat *m, const char *path, struct stat *ret);
must_check int fs_lstat(struct leat *m, const char *path, struct stat *ret);
must_check int fs_mkdir(struct leat *m, const char *path, mode_t mode);
int fs_unlink(struct leat *m, const char *path);
must_check int fs_rename(struct leat *m, const char *from, const char *to);
must_check int fs_symlink(struct leat *m, const char *target, const char *path);
/** fs_readlink - @buf is NUL-terminated; -ENAMETOOLONG if it does not fit */
must_check int fs_readlink(struct leat *m, const char *path, char *buf, size_t cap);
must_check int fs_mknod(struct leat *m, const char *path, mode_t mode, dev_t dev);
must_check int fs_chmod(struct leat *m, const char *path, mode_t mode);
must_check int fs_lchown(struct leat *m, const char *path, uid_t uid, gid_t gid);
must_check int fs_utimens(struct leat *m, const char *path, const struct timespec times[2]);
/** fs_list - as tool_list(), in no order on this machine */
must_check int fs_list(struct leat *m, const char *path, struct tool_entries *ret);

#endif
