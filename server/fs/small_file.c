/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * small_file.c - small files that leatd keeps for itself
 *
 * Operation: What replaces a file is written to a temporary file, which is synced and renamed. Then the directory is synced.
 * Memory:    The stack.
 * Threads:   Any.
 * Errors:    -errno.
 */
#include "small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TERM "term"
#define TERM_BYTES 32u

int small_file_read(int dir, const char *name, char *text, size_t bytes)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), err = 0;
	size_t n = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	while (n < bytes && (got = read(fd, text + n, bytes - n)) != 0) {
		if (got < 0) {
			err = -errno;
			break;
		}
		n += (size_t)got;
	}
	close(fd);
	if (err)
		return err;
	if (n == bytes || memchr(text, '\0', n))
		return -EINVAL;
	text[n] = '\0';
	return 0;
}

static int write_synced(int fd, const char *data, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t n = write(fd, data + at, bytes - at);

		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return fsync(fd) ? -errno : 0;
}

int small_file_replace(int dir, const char *name, const void *data, size_t bytes)
{
	char new[NAME_MAX + 1];
	int fd, err;

	if (snprintf(new, sizeof(new), "%s.new", name) >= (int)sizeof(new))
		return -ENAMETOOLONG; /* cut off, it could be the name itself */
	fd = openat(dir, new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	err = write_synced(fd, data, bytes);
	if (close(fd) && !err)
		err = -errno;
	if (!err && (renameat(dir, new, dir, name) || fsync(dir)))
		err = -errno;
	return err;
}

int term_load(int dir, uint64_t *ret)
{
	char text[TERM_BYTES], *end;
	int err = small_file_read(dir, TERM, text, sizeof(text));
	uint64_t term;

	*ret = 0;
	if (err)
		return err == -ENOENT ? 0 : err == -EINVAL ? -EBADMSG : err;
	errno = 0;
	term = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || strcmp(end, "\n"))
		return -EBADMSG;
	*ret = term;
	return 0;
}

int term_save(int dir, uint64_t term)
{
	char text[TERM_BYTES];
	int n = snprintf(text, sizeof(text), "%" PRIu64 "\n", term);

	return small_file_replace(dir, TERM, text, (size_t)n);
}
