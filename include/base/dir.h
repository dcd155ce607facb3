/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dir.h - directories by the descriptor of the one above
 */
#ifndef LEAT_BASE_DIR_H
#define LEAT_BASE_DIR_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/** dir_list - opens directory @name of @dir for readdir(); "." is @dir itself, from its beginning. closedir() follows
 * Return: NULL with errno
 */
static inline DIR *dir_list(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), err;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (fd < 0 || d)
		return d;
	err = errno;
	close(fd);
	errno = err;
	return NULL;
}

/** dir_make - opens directory @name of @dir, which is made, with mode 0700, if it does not exist; not durably
 * Return: a descriptor; -errno
 */
static inline int dir_make(int dir, const char *name)
{
	int fd;

	if (mkdirat(dir, name, 0700) && errno != EEXIST)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

#endif
