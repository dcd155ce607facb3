/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fs.c - one set of names for files here and files on a server
 *
 * Operation:  Each function asks libleat or the kernel, and speaks -errno for both.
 * Memory:     As tool_list().
 * Threads:    One.
 * Errors:     0 or -errno, never told here.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs.h"

/* -errno of a call that returned -1 */
static int sys(int rc)
{
	return rc < 0 ? -errno : 0;
}

int fs_open(struct leat *m, const char *path, int flags, mode_t mode, struct fs_file *ret)
{
	struct fs_file f = { .m = m, .fd = -1 };
	int rc;

	if (m) {
		rc = leat_open(m, path, flags, mode, &f.remote);
		if (rc)
			return rc;
	} else {
		f.fd = open(path, flags | O_CLOEXEC, mode);
		if (f.fd < 0)
			return -errno;
	}
	*ret = f;
	return 0;
}

int fs_close(struct fs_file *f)
{
	return f->m ? leat_close(f->remote) : sys(close(f->fd));
}

int fs_stat(struct leat *m, const char *path, struct stat *ret)
{
	return m ? leat_stat(m, path, ret) : sys(stat(path, ret));
}

int fs_lstat(struct leat *m, const char *path, struct stat *ret)
{
	return m ? leat_lstat(m, path, ret) : sys(lstat(path, ret));
}

int fs_mkdir(struct leat *m, const char *path, mode_t mode)
{
	return m ? leat_mkdir(m, path, mode) : sys(mkdir(path, mode));
}

int fs_unlink(struct leat *m, const char *path)
{
	return m ? leat_unlink(m, path) : sys(unlink(path));
}

int fs_rename(struct leat *m, const char *from, const char *to)
{
	return m ? leat_rename(m, from, to) : sys(rename(from, to));
}

int fs_symlink(struct leat *m, const char *target, const char *path)
{
	return m ? leat_symlink(m, target, path) : sys(symlink(target, path));
}

int fs_readlink(struct leat *m, const char *path, char *buf, size_t cap)
{
	ssize_t n;

	if (m) {
		n = leat_readlink(m, path, buf, cap);
		if (n < 0)
			return (int)n;
	} else {
		n = readlink(path, buf, cap);
		if (n < 0)
			return -errno;
	}
	if ((size_t)n >= cap)
		return -ENAMETOOLONG;
	buf[n] = '\0';
	return 0;
}

int fs_mknod(struct leat *m, const char *path, mode_t mode, dev_t dev)
{
	return m ? leat_mknod(m, path, mode, dev) : sys(mknod(path, mode, dev));
}

int fs_chmod(struct leat *m, const char *path, mode_t mode)
{
	return m ? leat_chmod(m, path, mode) : sys(chmod(path, mode));
}

int fs_lchown(struct leat *m, const char *path, uid_t uid, gid_t gid)
{
	return m ? leat_chown(m, path, uid, gid) : sys(lchown(path, uid, gid));
}

int fs_utimens(struct leat *m, const char *path, const struct timespec times[2])
{
	return m ? leat_utimens(m, path, times) : sys(utimensat(AT_FDCWD, path, times, 0));
}

static int list_local(DIR *dir, struct tool_entries *ret)
{
	struct tool_entries e = { 0 };
	const struct dirent *ent;
	struct tool_entry *v;
	size_t cap = 0;
	int err;

	for (;;) {
		errno = 0;
		ent = readdir(dir);
		if (!ent) {
			if (errno)
				goto fail;
			break;
		}
		if (!strcmp(ent->d_name, ".") || !strcmp(ent->d_name, ".."))
			continue;
		if (e.count == cap) {
			cap = cap ? 2 * cap : 64;
			v = reallocarray(e.v, cap, sizeof(*v));
			if (!v)
				goto fail;
			e.v = v;
		}
		if (fstatat(dirfd(dir), ent->d_name, &e.v[e.count].st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno == ENOENT) /* gone since it was read */
				continue;
			goto fail;
		}
		e.v[e.count].name = strdup(ent->d_name);
		if (!e.v[e.count].name)
			goto fail;
		e.count++;
	}
	*ret = e;
	return 0;

fail:
	err = errno;
	tool_entries_fini(&e);
	return -err;
}

int fs_list(struct leat *m, const char *path, struct tool_entries *ret)
{
	DIR *dir;
	int rc;

	if (m)
		return tool_list(m, path, ret);
	dir = opendir(path);
	if (!dir)
		return -errno;
	rc = list_local(dir, ret);
	closedir(dir);
	return rc;
}
