/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_inside.c - is a file in its export now?
 *
 * Operation: the kernel tells where a descriptor is, at one moment, with no rename in between; that
 *            must be below the export's root. Paths too long for it are climbed instead.
 * Memory:    none.
 * Threads:   any, with whatever rights: /proc shows a process its own descriptors.
 * Errors:    who cannot be seen to be inside is not.
 */
#include "fh_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLIMB_MAX 65536u

/** fh_inside_open - see fh_inside.h */
int fh_inside_open(void)
{
	int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Where does the kernel say that a descriptor is? The text is for comparison only. */
static int fd_path(int proc_fd, int fd, char *buf, size_t cap)
{
	char link[16];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "%d", fd);
	n = readlinkat(proc_fd, link, buf, cap);
	if (n < 0 || (size_t)n >= cap)
		return n < 0 ? -errno : -ENAMETOOLONG;
	buf[n] = '\0';
	return 0;
}

static bool is_below(const char *path, const char *root)
{
	size_t n = strlen(root);

	if (n == 1)
		return *path == '/';
	return !strncmp(path, root, n) && (!path[n] || path[n] == '/');
}

/* The root is mostly where it was at the start, which is cheaper to see than to ask where it is. */
static bool is_at_start(const struct export *exp)
{
	struct stat st;

	return !stat(exp->conf.path, &st) && st.st_ino == exp->root_ino &&
	       st.st_dev == exp->root_dev;
}

/* for a directory whose path is longer than the system tells */
static int climb(const struct export *exp, int dir)
{
	uint64_t ino = 0, dev = 0;
	int fd = dir, err = 0;

	for (unsigned depth = 0; !err; depth++) {
		struct stat st;
		int up;

		if (fstat(fd, &st)) {
			err = -errno;
			break;
		}
		if (st.st_ino == exp->root_ino && st.st_dev == exp->root_dev)
			break;
		if ((st.st_ino == ino && st.st_dev == dev) || depth > CLIMB_MAX) {
			err = -ESTALE; /* above the root of all there is nothing */
			break;
		}
		ino = st.st_ino;
		dev = st.st_dev;
		up = openat(fd, "..", O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
		if (up < 0)
			err = -errno;
		if (fd != dir)
			close(fd);
		fd = up;
	}
	if (fd >= 0 && fd != dir)
		close(fd);
	return err;
}

/* Has a file lost the name under which it was found? The kernel adds a word to its path then, which may
 * as well be the end of a name. A directory has one name, and no links without it. */
static bool is_deleted(const char *path, int fd, const char *name)
{
	static const char word[] = " (deleted)";
	size_t n = strlen(path), word_len = sizeof(word) - 1;
	const char *slash = strrchr(path, '/');
	struct stat st;

	if (n < word_len || strcmp(path + n - word_len, word))
		return false;
	if (name && slash && !strcmp(slash + 1, name))
		return false;
	return fstat(fd, &st) || !S_ISDIR(st.st_mode) || !st.st_nlink;
}

/** fh_inside - see fh_inside.h */
int fh_inside(int proc_fd, const struct export *exp, int dir, int fd, const char *name)
{
	char root[PATH_MAX], path[PATH_MAX];
	int err = fd_path(proc_fd, fd, path, sizeof(path));

	if (err)
		return err == -ENAMETOOLONG ? climb(exp, dir) : err;
	if (is_deleted(path, fd, name))
		return -ESTALE;
	if (is_below(path, exp->conf.path) && is_at_start(exp))
		return 0;
	/* The root may have moved. A symbolic link in its place, or above it, is in no path that the kernel tells. */
	err = fd_path(proc_fd, exp->root_fd, root, sizeof(root));
	if (err)
		return err == -ENAMETOOLONG ? climb(exp, dir) : err;
	return is_below(path, root) ? 0 : -ESTALE;
}
