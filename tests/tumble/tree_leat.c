/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tree_leat.c - a tree of names by libleat
 *
 * Operation:  The URL's last component is the tree's root, what is before it is mounted.
 * Memory:     struct leat_tree, gone with destroy().
 * Threads:    One.
 * Errors:     Those of libleat.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "leat.h"
#include "tree.h"

struct leat_tree {
	struct tree tree;
	struct leat *m;
	char *root;
	char path[2][PATH_MAX];
};

static struct leat *mount_of(struct tree *t)
{
	return container_of(t, struct leat_tree, tree)->m;
}

static const char *full(struct tree *t, int which, const char *path)
{
	struct leat_tree *p = container_of(t, struct leat_tree, tree);

	snprintf(p->path[which], PATH_MAX, "%s%s%s", p->root, *path ? "/" : "", path);
	return p->path[which];
}

static int remote_create(struct tree *t, const char *path, bool excl)
{
	struct leat_file *f;
	int rc = leat_open(mount_of(t), full(t, 0, path), O_WRONLY | O_CREAT | (excl ? O_EXCL : 0),
			   0644, &f);

	return rc ? rc : leat_close(f);
}

static int remote_mkdir(struct tree *t, const char *path)
{
	return leat_mkdir(mount_of(t), full(t, 0, path), 0755);
}

static int remote_symlink(struct tree *t, const char *target, const char *path)
{
	return leat_symlink(mount_of(t), target, full(t, 0, path));
}

static int remote_link(struct tree *t, const char *from, const char *to)
{
	return leat_link(mount_of(t), full(t, 0, from), full(t, 1, to));
}

static int remote_rename(struct tree *t, const char *from, const char *to)
{
	return leat_rename(mount_of(t), full(t, 0, from), full(t, 1, to));
}

static int remote_unlink(struct tree *t, const char *path)
{
	return leat_unlink(mount_of(t), full(t, 0, path));
}

static int remote_rmdir(struct tree *t, const char *path)
{
	return leat_rmdir(mount_of(t), full(t, 0, path));
}

static int remote_chmod(struct tree *t, const char *path, mode_t mode)
{
	return leat_chmod(mount_of(t), full(t, 0, path), mode);
}

static int remote_set_mtime(struct tree *t, const char *path, int64_t seconds)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = seconds } };

	return leat_utimens(mount_of(t), full(t, 0, path), times);
}

static int remote_truncate(struct tree *t, const char *path, uint64_t size)
{
	return leat_truncate(mount_of(t), full(t, 0, path), size);
}

static int remote_lstat(struct tree *t, const char *path, struct stat *ret)
{
	return leat_lstat(mount_of(t), full(t, 0, path), ret);
}

static int remote_readlink(struct tree *t, const char *path, char *buf, size_t room)
{
	ssize_t n = leat_readlink(mount_of(t), full(t, 0, path), buf, room - 1);

	if (n < 0)
		return (int)n;
	buf[n] = '\0';
	return 0;
}

static int remote_list(struct tree *t, const char *path, void (*each)(void *arg, const char *name),
		       void *arg)
{
	const struct leat_dirent *e;
	struct leat_dir *dir;
	int rc = leat_opendir(mount_of(t), full(t, 0, path), &dir);

	if (rc)
		return rc;
	while ((rc = leat_readdir(dir, &e)) == 1) {
		if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
			each(arg, e->name);
	}
	leat_closedir(dir);
	return rc;
}

static void remote_destroy(struct tree *t)
{
	struct leat_tree *p = container_of(t, struct leat_tree, tree);

	leat_umount(p->m);
	free(p->root);
	free(p);
}

static const struct tree_ops tree_leat_ops = {
	.name = "leat",
	.create = remote_create,
	.mkdir = remote_mkdir,
	.symlink = remote_symlink,
	.link = remote_link,
	.rename = remote_rename,
	.unlink = remote_unlink,
	.rmdir = remote_rmdir,
	.chmod = remote_chmod,
	.set_mtime = remote_set_mtime,
	.truncate = remote_truncate,
	.lstat = remote_lstat,
	.readlink = remote_readlink,
	.list = remote_list,
	.destroy = remote_destroy,
};

/** tree_leat_create - below the directory at @url, which may be missing
 * @why: of @room bytes: what is wrong
 *
 * Return: 0, -EINVAL, -ENOMEM, what leat_mount() returns.
 */
int tree_leat_create(const char *url, struct tree **ret, char *why, size_t room)
{
	struct leat_tree *p = calloc(1, sizeof(*p));
	char *dir = NULL;
	int rc = p ? back_leat_split(url, &dir, &p->root) : -ENOMEM;

	if (rc) {
		snprintf(why, room, "%s",
			 rc == -EINVAL ? "a URL has to end in the name of a directory"
				       : strerror(-rc));
		free(p);
		return rc;
	}
	rc = leat_mount(dir, NULL, &p->m);
	free(dir);
	if (rc) {
		snprintf(why, room, "%s", leat_error(NULL));
		free(p->root);
		free(p);
		return rc;
	}
	p->tree.ops = &tree_leat_ops;
	*ret = &p->tree;
	return 0;
}
