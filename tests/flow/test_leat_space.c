/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_space.c - space and holes of files on a leatd, beside what local calls show
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "leat_flow.h"

LOG_DEFINE("test_leat_space");

#define PAGE 65536u /* no file system has larger blocks */
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

static struct leat_flow flow;
static struct leat *m;
static struct leat_file *f;
static int fd; /* the same file */
static char buf[4 * PAGE], want[4 * PAGE];

static int group_setup(void **state)
{
	(void)state;
	leat_flow_create(&flow);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	leat_flow_destroy(&flow);
	return 0;
}

static int begin(const char *url)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/f", flow.export);
	m = leat_flow_mount(url, NULL);
	assert_int_equal(leat_open(m, "/f", O_RDWR | O_CREAT | O_TRUNC, 0644, &f), 0);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	leat_flow_fill(want, sizeof(want), 7);
	assert_int_equal(leat_pwrite(f, want, sizeof(want), 0), sizeof(want));
	return 0;
}

static int begin_local(void **state)
{
	(void)state;
	return begin(flow.local_url);
}

static int begin_tcp(void **state)
{
	(void)state;
	return begin(flow.tcp_url);
}

static int end(void **state)
{
	(void)state;
	close(fd);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_unlink(m, "/f"), 0);
	leat_umount(m);
	return 0;
}

static struct stat both_stat(void)
{
	struct stat here, there;

	assert_int_equal(fstat(fd, &here), 0);
	assert_int_equal(leat_fstat(f, &there), 0);
	assert_int_equal(here.st_size, there.st_size);
	assert_int_equal(here.st_blocks, there.st_blocks);
	return there;
}

static void check_data(void)
{
	assert_int_equal(leat_pread(f, buf, sizeof(buf), 0), sizeof(buf));
	assert_memory_equal(buf, want, sizeof(buf));
}

static void grown(void **state)
{
	(void)state;
	assert_int_equal(leat_fallocate(f, FALLOC_FL_KEEP_SIZE, 0, 16 * PAGE), 0);
	assert_int_equal(both_stat().st_size, sizeof(want));
	assert_true(both_stat().st_blocks >= 16 * PAGE / 512);
	assert_int_equal(leat_fallocate(f, 0, PAGE, 7 * PAGE), 0);
	assert_int_equal(both_stat().st_size, 8 * PAGE);
	check_data();
	assert_int_equal(leat_pread(f, buf, 1, 8 * PAGE - 1), 1);
	assert_int_equal(buf[0], 0);
}

static void punched(void **state)
{
	blkcnt_t before = both_stat().st_blocks;
	char half[100];

	(void)state;
	/* data that was read in advance does not survive */
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(leat_read(f, buf, PAGE / 4), PAGE / 4);
	assert_int_equal(leat_fallocate(f, PUNCH, PAGE, 2 * PAGE), 0);
	memset(want + PAGE, 0, 2 * PAGE);
	assert_int_equal(leat_read(f, half, sizeof(half)), sizeof(half));
	assert_memory_equal(half, want + PAGE, sizeof(half));
	check_data();
	assert_int_equal(both_stat().st_size, sizeof(want));
	assert_true(both_stat().st_blocks < before);

	for (uint64_t off = 0; off < sizeof(want); off += PAGE / 2) {
		assert_int_equal(leat_seek_data(f, off), lseek(fd, (off_t)off, SEEK_DATA));
		assert_int_equal(leat_seek_hole(f, off), lseek(fd, (off_t)off, SEEK_HOLE));
	}
	assert_int_equal(leat_seek_hole(f, 0), PAGE);
	assert_int_equal(leat_seek_data(f, PAGE), 3 * PAGE);
	assert_int_equal(leat_seek_hole(f, 3 * PAGE), sizeof(want));
	assert_int_equal(leat_seek_data(f, sizeof(want)), -ENXIO);
	assert_int_equal(leat_seek_hole(f, sizeof(want)), -ENXIO);
	assert_int_equal(leat_seek_data(f, UINT64_MAX), -ENXIO);
	/* these do not move the position, and lseek does */
	assert_int_equal(leat_lseek(f, 0, SEEK_CUR), PAGE + sizeof(half));
	assert_int_equal(leat_lseek(f, PAGE, SEEK_DATA), 3 * PAGE);
	assert_int_equal(leat_lseek(f, 0, SEEK_CUR), 3 * PAGE);
	assert_int_equal(leat_lseek(f, 5, SEEK_HOLE), PAGE);
	assert_int_equal(leat_lseek(f, -1, SEEK_HOLE), -ENXIO);
	assert_int_equal(leat_lseek(f, sizeof(want), SEEK_DATA), -ENXIO);
	assert_int_equal(leat_lseek(f, 0, SEEK_CUR), PAGE);
}

static void zeroed(void **state)
{
	int rc = leat_fallocate(f, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, PAGE, 8 * PAGE);

	(void)state;
	if (rc == -EOPNOTSUPP && fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, PAGE, 8 * PAGE))
		skip(); /* the same of a local file */
	assert_int_equal(rc, 0);
	memset(want + PAGE, 0, 3 * PAGE);
	check_data();
	assert_int_equal(both_stat().st_size, sizeof(want));
	assert_int_equal(leat_fallocate(f, FALLOC_FL_ZERO_RANGE, PAGE, 8 * PAGE), 0);
	assert_int_equal(both_stat().st_size, 9 * PAGE);
}

static void refused(void **state)
{
	struct leat_file *r, *w;

	(void)state;
	assert_int_equal(leat_fallocate(f, 0, 0, 0), -EINVAL);
	assert_int_equal(leat_fallocate(f, 0, INT64_MAX, 1), -EFBIG);
	assert_int_equal(leat_fallocate(f, 0, 1, UINT64_MAX), -EFBIG);
	assert_int_equal(leat_fallocate(f, FALLOC_FL_PUNCH_HOLE, 0, 1), -EOPNOTSUPP);
	assert_int_equal(leat_fallocate(f, 1 << 30, 0, 1), -EOPNOTSUPP);
	assert_int_equal(leat_fallocate(NULL, 0, 0, 1), -EINVAL);
	assert_int_equal(leat_seek_data(NULL, 0), -EINVAL);
	assert_int_equal(leat_open(m, "/f", O_RDONLY, 0, &r), 0);
	assert_int_equal(leat_fallocate(r, 0, 0, 1), -EBADF);
	assert_int_equal(leat_seek_data(r, 0), 0);
	assert_int_equal(leat_close(r), 0);
	assert_int_equal(leat_open(m, "/f", O_WRONLY, 0, &w), 0);
	assert_int_equal(leat_seek_hole(w, 0), -EBADF);
	assert_int_equal(leat_fallocate(w, FALLOC_FL_KEEP_SIZE, 0, 1), 0);
	assert_int_equal(leat_close(w), 0);
	assert_int_equal(leat_open(m, "/", O_RDONLY, 0, &r), 0);
	assert_int_equal(leat_seek_data(r, 0), -EINVAL);
	assert_int_equal(leat_close(r), 0);
	check_data();
}

int main(void)
{
#define BOTH(test)                                                                                                   \
	{ #test ", local", test, begin_local, end, NULL },                                                           \
	{                                                                                                            \
		#test ", TCP", test, begin_tcp, end, NULL                                                            \
	}
	const struct CMUnitTest tests[] = { BOTH(grown), BOTH(punched), BOTH(zeroed), BOTH(refused) };
#undef BOTH

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
