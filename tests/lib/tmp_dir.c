/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tmp_dir.c - a directory for one test
 *
 * Operation:  create, use, destroy.
 * Memory:     The caller's structure; a few static buffers for paths.
 * Threads:    One.
 * Errors:     Asserted with cmocka.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tmp_dir.h"

void tmp_dir_create(struct tmp_dir *t)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(t->path, sizeof(t->path), "%s/leat-tmp.XXXXXX",
		 tmp && strlen(tmp) < 64 ? tmp : "/tmp");
	assert_non_null(mkdtemp(t->path));
	assert_int_equal(chmod(t->path, 0755), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (type == FTW_D || type == FTW_DNR) {
		(void)chmod(path, 0700);
		return 0;
	}
	return type == FTW_DP ? 0 : unlink(path);
}

static int remove_dir(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	return type == FTW_DP ? rmdir(path) : 0;
}

void tmp_dir_destroy(struct tmp_dir *t)
{
	assert_int_equal(nftw(t->path, remove_one, 16, FTW_PHYS), 0);
	assert_int_equal(nftw(t->path, remove_dir, 16, FTW_DEPTH | FTW_PHYS), 0);
}

const char *tmp_dir_path(const struct tmp_dir *t, const char *name)
{
	static char bufs[8][4096];
	static unsigned next;
	char *buf = bufs[next++ % 8];

	snprintf(buf, sizeof(bufs[0]), "%s/%s", t->path, name);
	return buf;
}

void tmp_dir_write(const struct tmp_dir *t, const char *name, const char *text)
{
	int fd = open(tmp_dir_path(t, name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

void tmp_dir_mkdir(const struct tmp_dir *t, const char *name)
{
	assert_int_equal(mkdir(tmp_dir_path(t, name), 0755), 0);
}

bool tmp_dir_has_direct(void)
{
	struct tmp_dir t;
	int fd;

	tmp_dir_create(&t);
	fd = open(tmp_dir_path(&t, "probe"), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
	if (fd >= 0) {
		close(fd);
	} else {
		assert_int_equal(errno, EINVAL);
		printf("SKIP: files below TMPDIR cannot be opened with O_DIRECT\n");
	}
	tmp_dir_destroy(&t);
	return fd >= 0;
}

unsigned tmp_dir_open_below(const char *path)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = strlen(path);
	const struct dirent *ent;
	unsigned found = 0;
	char to[512];

	assert_non_null(d);
	while ((ent = readdir(d))) {
		ssize_t len = readlinkat(dirfd(d), ent->d_name, to, sizeof(to) - 1);

		to[len > 0 ? len : 0] = '\0';
		found += !strncmp(to, path, n) && (!to[n] || to[n] == '/');
	}
	closedir(d);
	return found;
}
