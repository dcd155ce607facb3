/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_inside.c - checks whether a file is inside its export now
 *
 * Operation: /proc gives the path of a descriptor at one moment, without a rename in between; it must be
 *            below the export's root. The path of the root is read in the same way: resolving the
 *            configured path could block on a file system above it. If a path is too long for the system,
 *            a worker climbs to a directory above with a shorter path, by at most CLIMB_MAX levels. So a
 *            handle of the end of a long chain of directories does not occupy a worker for long. A deeper
 *            file, or a file in an export with a path near the length limit, is stale.
 * Memory:    none.
 * Threads:   any, with any rights: /proc shows a process its own descriptors.
 * Errors:    a file that cannot be shown to be inside counts as outside.
 */
#include "fh_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLIMB_MAX 4096u /* levels: twice what one path can name */
#define CLIMB_STEP 1024u

int fh_inside_open(void)
{
	int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Gets the path of a descriptor from the kernel. The text is for comparison only. */
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

/* Return: a descriptor @levels above @fd, or -errno */
static int go_up(int fd, unsigned levels)
{
	char path[3 * CLIMB_STEP + 1];
	int up;

	for (unsigned i = 0; i < levels; i++)
		memcpy(path + (size_t)3 * i, "../", 3);
	path[(size_t)3 * levels] = '\0';
	up = openat(fd, path, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
	return up < 0 ? -errno : up;
}

/* For a directory with a path that is too long: finds a directory above it with a shorter path. The step is halved
 * after it has led above the root. */
static int climb(int proc_fd, const char *root, int dir)
{
	unsigned step = CLIMB_STEP, left = CLIMB_MAX;
	char path[PATH_MAX];
	int fd = dir, err = 0;

	while (step && !err) {
		int up = go_up(fd, step);

		err = up < 0 ? up : fd_path(proc_fd, up, path, sizeof(path));
		if (!err && is_below(path, root)) {
			close(up);
			break;
		}
		if (err == -ENAMETOOLONG && left > step) {
			left -= step;
			if (fd != dir)
				close(fd);
			fd = up;
			err = 0;
			continue;
		}
		if (up >= 0)
			close(up);
		step /= 2;
	}
	if (fd != dir)
		close(fd);
	return step && err != -ENAMETOOLONG ? err : -ESTALE;
}

/* Has a file lost the name under which it was found? The kernel then appends a word to its path, which may also be
 * the end of a real name. A directory has one name, and no links without it. */
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

/* Return: 0; -ESTALE; -ENAMETOOLONG: the path is too long for the system; -errno */
static int check(int proc_fd, const char *root, int fd, const char *name)
{
	char path[PATH_MAX];
	int err = fd_path(proc_fd, fd, path, sizeof(path));

	if (err)
		return err;
	return !is_deleted(path, fd, name) && is_below(path, root) ? 0 : -ESTALE;
}

int fh_inside_now(int proc_fd, const struct export *exp, int fd, const char *name)
{
	char root[PATH_MAX];
	int err = fd_path(proc_fd, exp->root_fd, root, sizeof(root));

	if (!err)
		err = check(proc_fd, root, fd, name);
	return err == -ENAMETOOLONG ? -EAGAIN : err;
}

int fh_inside(int proc_fd, const struct export *exp, int dir, int fd, const char *name)
{
	char root[PATH_MAX];
	int err = fd_path(proc_fd, exp->root_fd, root, sizeof(root));

	if (err)
		return err == -ENAMETOOLONG ? -ESTALE : err;
	err = check(proc_fd, root, fd, name);
	if (err == -ENAMETOOLONG && fd != dir)
		err = check(proc_fd, root, dir, NULL);
	return err == -ENAMETOOLONG ? climb(proc_fd, root, dir) : err;
}
