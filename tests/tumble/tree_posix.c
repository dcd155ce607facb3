/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tree_posix.c - a tree of names by system calls, below a directory
 *
 * Operation:  Every path is put behind that of the directory.
 * Memory:     struct posix_tree, gone with destroy().
 * Threads:    One.
 * Errors:     -errno of the call.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "tree.h"

struct posix_tree {
	struct tree tree;
	char *root;
	char path[2][PATH_MAX];
};

static const char *full(struct tree *t, int which, const char *path)
{
	struct posix_tree *p = container_of(t, struct posix_tree, tree);

	snprintf(p->path[which], PATH_MAX, "%s%s%s", p->root, *path ? "/" : "", path);
	return p->path[which];
}

static int sys(int rc)
{
	return rc < 0 ? -errno : 0;
}

static int posix_create(struct tree *t, const char *path, bool excl)
{
	int fd = open(full(t, 0, path), O_WRONLY | O_CREAT | O_CLOEXEC | (excl ? O_EXCL : 0), 0644);

	return fd < 0 ? -errno : sys(close(fd));
}

static int posix_mkdir(struct tree *t, const char *path)
{
	return sys(mkdir(full(t, 0, path), 0755));
}

static int posix_symlink(struct tree *t, const char *target, const char *path)
{
	return sys(symlink(target, full(t, 0, path)));
}

static int posix_link(struct tree *t, const char *from, const char *to)
{
	return sys(link(full(t, 0, from), full(t, 1, to)));
}

static int posix_rename(struct tree *t, const char *from, const char *to)
{
	return sys(rename(full(t, 0, from), full(t, 1, to)));
}

static int posix_unlink(struct tree *t, const char *path)
{
	return sys(unlink(full(t, 0, path)));
}

static int posix_rmdir(struct tree *t, const char *path)
{
	return sys(rmdir(full(t, 0, path)));
}

static int posix_chmod(struct tree *t, const char *path, mode_t mode)
{
	return sys(chmod(full(t, 0, path), mode));
}

static int posix_set_mtime(struct tree *t, const char *path, int64_t seconds)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = seconds } };

	return sys(utimensat(AT_FDCWD, full(t, 0, path), times, 0));
}

static int posix_truncate(struct tree *t, const char *path, uint64_t size)
{
	return sys(truncate(full(t, 0, path), (off_t)size));
}

static int posix_lstat(struct tree *t, const char *path, struct stat *ret)
{
	return sys(lstat(full(t, 0, path), ret));
}

static int posix_readlink(struct tree *t, const char *path, char *buf, size_t room)
{
	ssize_t n = readlink(full(t, 0, path), buf, room - 1);

	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return 0;
}

static int posix_list(struct tree *t, const char *path, void (*each)(void *arg, const char *name),
		      void *arg)
{
	DIR *dir = opendir(full(t, 0, path));
	struct dirent *e;
	int rc;

	if (!dir)
		return -errno;
	while (errno = 0, (e = readdir(dir)) != NULL) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			each(arg, e->d_name);
	}
	rc = -errno;
	closedir(dir);
	return rc;
}

static void posix_destroy(struct tree *t)
{
	struct posix_tree *p = container_of(t, struct posix_tree, tree);

	free(p->root);
	free(p);
}

static const struct tree_ops tree_posix_ops = {
	.name = "posix",
	.create = posix_create,
	.mkdir = posix_mkdir,
	.symlink = posix_symlink,
	.link = posix_link,
	.rename = posix_rename,
	.unlink = posix_unlink,
	.rmdir = posix_rmdir,
	.chmod = posix_chmod,
	.set_mtime = posix_set_mtime,
	.truncate = posix_truncate,
	.lstat = posix_lstat,
	.readlink = posix_readlink,
	.list = posix_list,
	.destroy = posix_destroy,
};

/** tree_posix_create - below the directory @path, which may be missing
 * @why: of @room bytes: what is wrong
 *
 * Return: 0, -ENOMEM.
 */
int tree_posix_create(const char *path, struct tree **ret, char *why, size_t room)
{
	struct posix_tree *p = calloc(1, sizeof(*p));

	if (p)
		p->root = strdup(path);
	if (!p || !p->root) {
		free(p);
		snprintf(why, room, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	umask(0); /* modes are compared */
	p->tree.ops = &tree_posix_ops;
	*ret = &p->tree;
	return 0;
}
