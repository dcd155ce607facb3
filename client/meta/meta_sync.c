/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * meta_sync.c - the functions of names and attributes by path that wait
 *
 * Operation:  core/sync.h waits for the asynchronous ones.
 * Memory:     None.
 * Threads:    Any with the service thread, else the owner's.
 * Errors:     Those of the asynchronous functions; -EDEADLK inside a callback; -EINTR after leat_interrupt().
 */
#include "sync.h"

int leat_stat(struct leat *m, const char *path, struct stat *ret_st)
{
	return (int)LT_WAIT_FOR(m, leat_aio_stat(m, path, ret_st, w.cb));
}

int leat_lstat(struct leat *m, const char *path, struct stat *ret_st)
{
	return (int)LT_WAIT_FOR(m, leat_aio_lstat(m, path, ret_st, w.cb));
}

int leat_truncate(struct leat *m, const char *path, uint64_t size)
{
	return (int)LT_WAIT_FOR(m, leat_aio_truncate(m, path, size, w.cb));
}

int leat_mkdir(struct leat *m, const char *path, mode_t mode)
{
	return (int)LT_WAIT_FOR(m, leat_aio_mkdir(m, path, mode, w.cb));
}

int leat_rmdir(struct leat *m, const char *path)
{
	return (int)LT_WAIT_FOR(m, leat_aio_rmdir(m, path, w.cb));
}

int leat_unlink(struct leat *m, const char *path)
{
	return (int)LT_WAIT_FOR(m, leat_aio_unlink(m, path, w.cb));
}

int leat_rename(struct leat *m, const char *from, const char *to)
{
	return (int)LT_WAIT_FOR(m, leat_aio_rename(m, from, to, w.cb));
}

int leat_link(struct leat *m, const char *from, const char *to)
{
	return (int)LT_WAIT_FOR(m, leat_aio_link(m, from, to, w.cb));
}

int leat_symlink(struct leat *m, const char *target, const char *path)
{
	return (int)LT_WAIT_FOR(m, leat_aio_symlink(m, target, path, w.cb));
}

ssize_t leat_readlink(struct leat *m, const char *path, char *buf, size_t cap)
{
	return (ssize_t)LT_WAIT_FOR(m, leat_aio_readlink(m, path, buf, cap, w.cb));
}

int leat_mknod(struct leat *m, const char *path, mode_t mode, dev_t dev)
{
	return (int)LT_WAIT_FOR(m, leat_aio_mknod(m, path, mode, dev, w.cb));
}

int leat_chmod(struct leat *m, const char *path, mode_t mode)
{
	return (int)LT_WAIT_FOR(m, leat_aio_chmod(m, path, mode, w.cb));
}

int leat_chown(struct leat *m, const char *path, uid_t uid, gid_t gid)
{
	return (int)LT_WAIT_FOR(m, leat_aio_chown(m, path, uid, gid, w.cb));
}

int leat_utimens(struct leat *m, const char *path, const struct timespec times[2])
{
	return (int)LT_WAIT_FOR(m, leat_aio_utimens(m, path, times, w.cb));
}

int leat_lutimens(struct leat *m, const char *path, const struct timespec times[2])
{
	return (int)LT_WAIT_FOR(m, leat_aio_lutimens(m, path, times, w.cb));
}

int leat_access(struct leat *m, const char *path, int mode)
{
	return (int)LT_WAIT_FOR(m, leat_aio_access(m, path, mode, w.cb));
}

int leat_statvfs(struct leat *m, const char *path, struct statvfs *ret_st)
{
	return (int)LT_WAIT_FOR(m, leat_aio_statvfs(m, path, ret_st, w.cb));
}

int leat_null(struct leat *m)
{
	return (int)LT_WAIT_FOR(m, leat_aio_null(m, w.cb));
}

int leat_opendir(struct leat *m, const char *path, struct leat_dir **ret)
{
	return (int)LT_WAIT_FOR(m, leat_aio_opendir(m, path, ret, w.cb));
}
