/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tree.h - a tree of names, by the kernel or by libleat, and the tester of it
 */
#ifndef TESTS_TUMBLE_TREE_H
#define TESTS_TUMBLE_TREE_H

#include "tumble.h"

struct tree;

/* All take paths below the tree's root, "" for the root itself, and return 0 or -errno. */
struct tree_ops {
	const char *name;
	int (*create)(struct tree *t, const char *path, bool excl);
	int (*mkdir)(struct tree *t, const char *path);
	int (*symlink)(struct tree *t, const char *target, const char *path);
	int (*link)(struct tree *t, const char *from, const char *to);
	int (*rename)(struct tree *t, const char *from, const char *to);
	int (*unlink)(struct tree *t, const char *path);
	int (*rmdir)(struct tree *t, const char *path);
	int (*chmod)(struct tree *t, const char *path, mode_t mode);
	int (*set_mtime)(struct tree *t, const char *path, int64_t seconds);
	int (*truncate)(struct tree *t, const char *path, uint64_t size);
	int (*lstat)(struct tree *t, const char *path, struct stat *ret);
	/* NUL-terminated */
	int (*readlink)(struct tree *t, const char *path, char *buf, size_t room);
	/* calls @each for every name but "." and ".." */
	int (*list)(struct tree *t, const char *path, void (*each)(void *arg, const char *name),
		    void *arg);
	void (*destroy)(struct tree *t);
};

struct tree {
	const struct tree_ops *ops;
};

int tree_posix_create(const char *path, struct tree **ret, char *why, size_t room);
int tree_leat_create(const char *url, struct tree **ret, char *why, size_t room);

/* @ret_done: operations that changed something, and that failed as they should */
int tumble_names(struct tree *t, const struct tumble_opts *o, FILE *out, uint64_t ret_done[2]);

#endif
