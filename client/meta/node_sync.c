/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * node_sync.c - the blocking functions of nodes
 *
 * Operation:  As meta_sync.c: the asynchronous function, then a wait.
 * Memory:     None. The operation holds its nodes, also while the caller waits.
 * Threads:    As core/sync.c.
 * Errors:     Those of the asynchronous functions; -EDEADLK inside a callback; -ESTALE after leat_umount().
 */
#include <errno.h>

#include "node.h"
#include "sync.h"

/* As LT_WAIT_FOR(), for the mount of @node. The mount is needed for the wait before the operation can refuse. */
#define WAIT_AT(node, start)                                                                                 \
	__extension__({                                                                                      \
		struct leat *mount_ = (node) ? lt_node_mount(node) : NULL;                                   \
		!mount_ && (node) ? -ESTALE : LT_WAIT_FOR(mount_, start);                                    \
	})

int leat_node_get(struct leat *m, const char *path, struct leat_node **ret_node)
{
	return (int)LT_WAIT_FOR(m, leat_aio_node_get(m, path, ret_node, w.cb));
}

int leat_node_lookup(struct leat_node *at, const char *path, struct leat_node **ret_node, struct stat *ret_st)
{
	return (int)WAIT_AT(at, leat_aio_node_lookup(at, path, ret_node, ret_st, w.cb));
}

int leat_node_open(struct leat_node *at, const char *path, int flags, mode_t mode, struct leat_file **ret)
{
	return (int)WAIT_AT(at, leat_aio_node_open(at, path, flags, mode, ret, w.cb));
}

int leat_node_create(struct leat_node *at, const char *path, int flags, mode_t mode,
		     struct leat_node **ret_node, struct stat *ret_st, struct leat_file **ret_file)
{
	return (int)WAIT_AT(at, leat_aio_node_create(at, path, flags, mode, ret_node, ret_st, ret_file, w.cb));
}

int leat_node_mkdir(struct leat_node *at, const char *path, mode_t mode, struct leat_node **ret_node,
		    struct stat *ret_st)
{
	return (int)WAIT_AT(at, leat_aio_node_mkdir(at, path, mode, ret_node, ret_st, w.cb));
}

int leat_node_symlink(struct leat_node *at, const char *target, const char *path, struct leat_node **ret_node,
		      struct stat *ret_st)
{
	return (int)WAIT_AT(at, leat_aio_node_symlink(at, target, path, ret_node, ret_st, w.cb));
}

int leat_node_mknod(struct leat_node *at, const char *path, mode_t mode, dev_t dev, struct leat_node **ret_node,
		    struct stat *ret_st)
{
	return (int)WAIT_AT(at, leat_aio_node_mknod(at, path, mode, dev, ret_node, ret_st, w.cb));
}

int leat_node_link(struct leat_node *n, struct leat_node *at, const char *path)
{
	return (int)WAIT_AT(n, leat_aio_node_link(n, at, path, w.cb));
}

int leat_node_unlink(struct leat_node *at, const char *path)
{
	return (int)WAIT_AT(at, leat_aio_node_unlink(at, path, w.cb));
}

int leat_node_rmdir(struct leat_node *at, const char *path)
{
	return (int)WAIT_AT(at, leat_aio_node_rmdir(at, path, w.cb));
}

int leat_node_rename(struct leat_node *at, const char *from, struct leat_node *at2, const char *to)
{
	return (int)WAIT_AT(at, leat_aio_node_rename(at, from, at2, to, w.cb));
}

ssize_t leat_node_readlink(struct leat_node *at, const char *path, char *buf, size_t cap)
{
	return (ssize_t)WAIT_AT(at, leat_aio_node_readlink(at, path, buf, cap, w.cb));
}

int leat_node_getattr(struct leat_node *at, const char *path, struct stat *ret_st)
{
	return (int)WAIT_AT(at, leat_aio_node_getattr(at, path, ret_st, w.cb));
}

int leat_node_setattr(struct leat_node *at, const char *path, const struct leat_setattr *set,
		      struct stat *ret_st)
{
	return (int)WAIT_AT(at, leat_aio_node_setattr(at, path, set, ret_st, w.cb));
}

int leat_node_access(struct leat_node *at, const char *path, int mode)
{
	return (int)WAIT_AT(at, leat_aio_node_access(at, path, mode, w.cb));
}

int leat_node_statvfs(struct leat_node *at, const char *path, struct statvfs *ret_st)
{
	return (int)WAIT_AT(at, leat_aio_node_statvfs(at, path, ret_st, w.cb));
}

int leat_node_opendir(struct leat_node *at, const char *path, struct leat_dir **ret)
{
	return (int)WAIT_AT(at, leat_aio_node_opendir(at, path, ret, w.cb));
}

ssize_t leat_node_acl_get(struct leat_node *at, const char *path, struct leat_acl_entry *v, size_t cap)
{
	return (ssize_t)WAIT_AT(at, leat_aio_node_acl_get(at, path, v, cap, w.cb));
}

int leat_node_acl_set(struct leat_node *at, const char *path, const struct leat_acl_entry *v, size_t n)
{
	return (int)WAIT_AT(at, leat_aio_node_acl_set(at, path, v, n, w.cb));
}
