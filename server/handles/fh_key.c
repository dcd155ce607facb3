/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_key.c - the key that signs file handles, kept in the state directory
 *
 * Operation: the key is read, or created once: written to a temporary file, synced, then linked under its
 *            name. So two servers that start at once end with the same key. To change the key, the
 *            administrator renames handle.key to handle.key.old and restarts the server. A new key is
 *            created and signs; signatures of the old one are accepted until its file is removed.
 * Memory:    none.
 * Threads:   at start only.
 * Errors:    returned; the caller decides whether to continue with a key for this run.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fh.h"

static int read_key(const char *path, struct siphash_key *ret)
{
	struct siphash_key key;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), err = 0;
	struct stat st;

	if (fd < 0)
		return errno == ELOOP ? -EINVAL : -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_size != (off_t)sizeof(key))
		err = -EINVAL;
	else if (st.st_mode & 077 || st.st_uid != geteuid())
		err = -EKEYREJECTED; /* other users can read it, so they can forge handles */
	else if (read(fd, &key, sizeof(key)) != (ssize_t)sizeof(key))
		err = -EINVAL;
	close(fd);
	if (!err)
		*ret = key;
	return err;
}

static int write_key(const char *path, const struct siphash_key *key)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, key, sizeof(*key)) != (ssize_t)sizeof(*key))
		err = -EIO;
	else if (fsync(fd))
		err = -errno;
	close(fd);
	return err;
}

static int sync_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (fsync(fd))
		err = -errno;
	close(fd);
	return err;
}

/* also sync the parent: the directory's own name must survive as well */
static int make_dir(const char *dir)
{
	char parent[PATH_MAX];

	if (mkdir(dir, 0700))
		return errno == EEXIST ? 0 : -errno;
	if (snprintf(parent, sizeof(parent), "%s/..", dir) >= (int)sizeof(parent))
		return -ENAMETOOLONG;
	return sync_dir(parent);
}

static int make_key(const char *dir, const char *path, bool *ret_made)
{
	char tmp[PATH_MAX];
	struct siphash_key key;
	int err = siphash_key_random(&key);

	if (err)
		return err;
	if (snprintf(tmp, sizeof(tmp), "%s/handle.key.%ld", dir, (long)getpid()) >=
	    (int)sizeof(tmp))
		return -ENAMETOOLONG;
	(void)unlink(tmp); /* left by a server that crashed here with the same process id */
	err = write_key(tmp, &key);
	if (!err && link(tmp, path)) /* another server was faster: its key may have been used already */
		err = errno == EEXIST ? 0 : -errno;
	else
		*ret_made = !err;
	(void)unlink(tmp);
	if (err)
		return err;
	return sync_dir(dir);
}

static int load_now(const char *dir, const char *path, struct siphash_key *ret, bool *ret_made)
{
	int err = read_key(path, ret);

	if (err != -ENOENT)
		return err;
	err = make_dir(dir);
	if (!err)
		err = make_key(dir, path, ret_made);
	return err ? err : read_key(path, ret);
}

int fh_key_load(const char *dir, struct fh_keys *ret)
{
	struct fh_keys keys = { .n = 1 };
	char path[PATH_MAX];
	int err;

	if (snprintf(path, sizeof(path), "%s/handle.key.old", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	err = read_key(path, &keys.v[1]);
	if (!err)
		keys.n = 2;
	else if (err != -ENOENT && err != -ENOTDIR)
		return err;
	path[strlen(path) - strlen(".old")] = '\0';
	err = load_now(dir, path, &keys.v[0], &keys.is_new);
	keys.is_new &= keys.n == 1;
	if (!err)
		*ret = keys;
	return err;
}
