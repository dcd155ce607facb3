/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_fs_limits.c - what is said of a file system is what it does
 *
 * Of the one below $TMPDIR, and of tmpfs. tests/interop/filesystems.sh runs this on others.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include <cmocka.h>

#include "base/util.h"
#include "fs_limits.h"
#include "tmp_dir.h"

struct ctx {
	struct tmp_dir dir;
	int fd, file;
	struct fs_limits lim;
};

static int enter(void **state, const char *below)
{
	struct ctx *c = calloc(1, sizeof(*c));
	const char *old = getenv("TMPDIR");
	char *keep = old ? strdup(old) : NULL;

	if (below)
		setenv("TMPDIR", below, 1);
	tmp_dir_create(&c->dir);
	if (keep)
		setenv("TMPDIR", keep, 1);
	else
		unsetenv("TMPDIR");
	free(keep);
	c->fd = open(c->dir.path, O_RDONLY | O_DIRECTORY);
	c->file = openat(c->fd, "file", O_RDWR | O_CREAT, 0644);
	assert_true(c->file >= 0);
	fs_limits_find(c->fd, true, &c->lim);
	*state = c;
	return 0;
}

static int setup(void **state)
{
	return enter(state, NULL);
}

static int setup_tmpfs(void **state)
{
	return enter(state, access("/dev/shm", W_OK) ? NULL : "/dev/shm");
}

static int teardown(void **state)
{
	struct ctx *c = *state;

	close(c->file);
	close(c->fd);
	tmp_dir_destroy(&c->dir);
	free(c);
	return 0;
}

static bool can_be_tried(int dir)
{
	int fd = openat(dir, ".", O_TMPFILE | O_RDWR, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* as large as that, and, but where it cannot be tried, no larger */
static void size(void **state)
{
	struct ctx *c = *state;

	assert_true(c->lim.file_max_bytes > INT32_MAX);
	/* one that knows no holes has no room for it, but does not call it too large */
	if (ftruncate(c->file, (off_t)c->lim.file_max_bytes))
		assert_int_equal(errno, ENOSPC);
	if (c->lim.file_max_bytes < INT64_MAX && can_be_tried(c->fd)) {
		assert_int_equal(ftruncate(c->file, (off_t)c->lim.file_max_bytes + 1), -1);
		assert_int_equal(errno, EFBIG);
	}
	assert_int_equal(ftruncate(c->file, 0), 0);
}

static void size_for_this_process(void **state)
{
	struct ctx *c = *state;
	struct fs_limits lim;
	struct rlimit old, few;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	few = (struct rlimit){ 8192, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	fs_limits_find(c->fd, true, &lim);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(lim.file_max_bytes, 8192);
}

static uint64_t step_ns(const struct fs_limits *lim)
{
	return lim->time_s * UINT64_C(1000000000) + lim->time_ns;
}

/* cut to just these steps: not to larger ones, not to smaller ones */
static void times(void **state)
{
	static const struct timespec ts[] = { { 1000000000, 1 },	 { 1000000001, 999999999 },
					      { 1234567891, 100 },	 { 1600000000, 10000000 },
					      { 1600000003, 123456789 }, { 2000000001, 1000 } };
	struct ctx *c = *state;
	uint64_t step = step_ns(&c->lim);
	struct stat st;

	assert_true(step > 0 && step <= UINT64_C(2000000000));
	for (size_t i = 0; i < ARRAY_SIZE(ts); i++) {
		const struct timespec both[2] = { ts[i], ts[i] };
		uint64_t want, have;

		assert_int_equal(futimens(c->file, both), 0);
		assert_int_equal(fstat(c->file, &st), 0);
		want = (uint64_t)ts[i].tv_sec * 1000000000u + (uint64_t)ts[i].tv_nsec;
		have = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
		assert_true(have == want / step * step);
	}
}

static void links(void **state)
{
	struct ctx *c = *state;

	assert_true(c->lim.links_max >= 1);
	assert_int_equal(!linkat(c->fd, "file", c->fd, "second", 0), c->lim.has_links);
	assert_int_equal(!symlinkat("file", c->fd, "link"), c->lim.has_symlinks);
	assert_int_equal(!faccessat(c->fd, "FILE", F_OK, 0), c->lim.ignores_case);
}

/* Return: "yes" or "no", whether /proc/fs/jbd2 shows a journal; NULL: not ext4, or not a block device */
static const char *orders_here(const struct ctx *c)
{
	char link[64], target[PATH_MAX], journal[PATH_MAX + 32];
	struct statfs fs;
	struct stat st;
	glob_t found;
	ssize_t n;
	int rc;

	assert_int_equal(fstatfs(c->fd, &fs), 0);
	assert_int_equal(fstat(c->fd, &st), 0);
	(void)snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
	n = readlink(link, target, sizeof(target) - 1);
	if (fs.f_type != EXT4_SUPER_MAGIC || n <= 0)
		return NULL;
	target[n] = '\0';
	(void)snprintf(journal, sizeof(journal), "/proc/fs/jbd2/%s-*", strrchr(target, '/') + 1);
	rc = glob(journal, 0, NULL, &found);
	globfree(&found);
	return rc ? "no" : "yes";
}

/* tests/interop/filesystems.sh says in $ORDERS whether it is known to: yes or no */
static void order(void **state)
{
	struct ctx *c = *state;
	const char *orders = getenv("ORDERS");

	if (!orders)
		orders = orders_here(c);
	if (!orders) {
		print_message("SKIP: needs ORDERS=yes or no, or ext4 below $TMPDIR\n");
		skip();
	}
	assert_int_equal(c->lim.orders_names, !strcmp(orders, "yes"));
}

static void order_of_memory(void **state)
{
	struct ctx *c = *state;

	if (access("/dev/shm", W_OK)) {
		print_message("SKIP: no /dev/shm\n");
		skip();
	}
	assert_true(c->lim.orders_names);
}

/* Reactors ask only file systems that answer from memory; of the others /proc is one that is everywhere. */
static void answers(void **state)
{
	struct ctx *c = *state;
	int proc = open("/proc", O_RDONLY | O_DIRECTORY);
	struct fs_limits lim;
	struct statfs fs;

	fs_limits_find(proc, false, &lim);
	assert_false(lim.answers_at_once);
	assert_false(lim.in_memory);
	close(proc);
	assert_int_equal(fstatfs(c->fd, &fs), 0);
	assert_int_equal(c->lim.in_memory, fs.f_type == TMPFS_MAGIC);
	if (fs.f_type == TMPFS_MAGIC || fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC)
		assert_true(c->lim.answers_at_once);
	if (fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == FUSE_SUPER_MAGIC || fs.f_type == NFS_SUPER_MAGIC)
		assert_false(c->lim.answers_at_once);
}

/* fs_limits_find() leaves no trace */
static void no_trace(void **state)
{
	struct ctx *c = *state;
	struct stat before, after;
	struct fs_limits lim;

	assert_int_equal(fstat(c->fd, &before), 0);
	for (int i = 0; i < 3; i++)
		fs_limits_find(c->fd, true, &lim);
	assert_int_equal(fstat(c->fd, &after), 0);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
	assert_memory_equal(&before.st_ctim, &after.st_ctim, sizeof(before.st_ctim));
	assert_int_equal(before.st_nlink, after.st_nlink);
	assert_int_equal(lseek(c->fd, 0, SEEK_CUR), 0);
	/* without a file of its own it knows no less of times, and promises no smaller files */
	fs_limits_find(c->fd, false, &lim);
	assert_int_equal(step_ns(&lim), step_ns(&c->lim));
	assert_true(lim.file_max_bytes >= c->lim.file_max_bytes);
}

#define BOTH(f)                                                                                    \
	{ #f, f, setup, teardown, NULL },                                                          \
	{                                                                                          \
#f " (tmpfs)", f, setup_tmpfs, teardown, NULL                                      \
	}

/* Of a file they are those of its directory, as far as they are about contents. */
static void of_a_file(void **state)
{
	struct ctx *c = *state;
	struct fs_limits lim;

	fs_limits_find_file(c->file, &lim);
	assert_int_equal(lim.answers_at_once, c->lim.answers_at_once);
	assert_int_equal(lim.in_memory, c->lim.in_memory);
	assert_int_equal(lim.atime, c->lim.atime);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(size), BOTH(size_for_this_process), BOTH(times), BOTH(links), BOTH(no_trace), BOTH(answers),
		BOTH(of_a_file),
		cmocka_unit_test_setup_teardown(order, setup, teardown),
		cmocka_unit_test_setup_teardown(order_of_memory, setup_tmpfs, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
