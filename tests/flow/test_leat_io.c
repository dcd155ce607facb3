/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_io.c - bytes that libleat writes and reads against those in the exported directory
 *
 * Each test runs over TCP, over the local fabric, and over both with other sizes and several
 * connections.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "leat_flow.h"

LOG_DEFINE("test_leat_io");

#define BIG (leat_flow_rdma() ? 6u << 20 : 24u << 20) /* more than any part that a test takes of it */

static struct leat_flow flow;
static struct leat *m;
static uint8_t *big, *back;

static int local_open(const char *name, int flags)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", flow.export, name);
	fd = open(path, flags, 0644);
	assert_true(fd >= 0);
	return fd;
}

/* The exported file as the local file system shows it equals @want. */
static void check_file(const char *name, const void *want, size_t len)
{
	uint8_t *mem = malloc(len + 1);
	int fd = local_open(name, O_RDONLY);
	size_t got = 0;
	ssize_t n;

	assert_non_null(mem);
	while (got < len + 1 && (n = read(fd, mem + got, len + 1 - got)) > 0)
		got += (size_t)n;
	close(fd);
	assert_int_equal(got, len);
	assert_memory_equal(mem, want, len);
	free(mem);
}

static void make_file(const char *name, const void *data, size_t len)
{
	int fd = local_open(name, O_WRONLY | O_CREAT | O_TRUNC);

	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

static struct leat_file *open_file(const char *name, int flags)
{
	struct leat_file *f;
	int rc = leat_open(m, name, flags, 0644, &f);

	if (rc)
		fail_msg("%s", leat_error(m));
	return f;
}

static void big_write_and_read(void **state)
{
	struct leat_file *f = open_file("big", O_RDWR | O_CREAT);
	struct stat st;

	(void)state;
	assert_int_equal(leat_pwrite(f, big, BIG, 0), BIG);
	assert_int_equal(leat_fsync(f), 0);
	check_file("big", big, BIG);
	assert_int_equal(leat_fstat(f, &st), 0);
	assert_int_equal(st.st_size, BIG);
	memset(back, 0, BIG);
	assert_int_equal(leat_pread(f, back, BIG + 4096, 0), BIG);
	assert_memory_equal(big, back, BIG);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_unlink(m, "big"), 0);
}

/* Lengths and offsets around every boundary that matters on the way. */
static void odd_sizes(void **state)
{
	static const size_t around[] = { 1, 512, 1024, 3700, 4096, 65536, 1 << 20 };
	struct leat_file *f;
	uint8_t *copy = calloc(1, 4 << 20);
	size_t size = 0;

	(void)state;
	make_file("odd", "", 0);
	f = open_file("odd", O_RDWR);
	for (size_t i = 0; i < ARRAY_SIZE(around); i++) {
		for (size_t d = 0; d < 9; d++) {
			size_t len = around[i] + d - MIN(around[i] - 1, 4u), off = d * 1021;

			leat_flow_fill(copy + off, len, (unsigned)(i * 10 + d));
			assert_int_equal(leat_pwrite(f, copy + off, len, off), len);
			size = MAX(size, off + len);
			memset(back, 0x55, len + 1);
			assert_int_equal(leat_pread(f, back, len, off), len);
			assert_memory_equal(back, copy + off, len);
			assert_int_equal(back[len], 0x55);
			/* over the end */
			assert_int_equal(leat_pread(f, back, 100, size - 1), 1);
			assert_int_equal(leat_pread(f, back, 100, size), 0);
		}
		check_file("odd", copy, size);
	}
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_unlink(m, "odd"), 0);
	free(copy);
}

static void random_pieces(void **state)
{
	struct leat_file *f;
	unsigned seed = 7;

	(void)state;
	make_file("rand", big, BIG);
	f = open_file("rand", O_RDONLY);
	for (unsigned i = 0; i < leat_flow_fewer(200); i++) {
		size_t off, len;

		seed = seed * 1664525u + 1013904223u;
		off = (seed >> 4) % BIG;
		len = (seed >> 7) % (3 << 20);
		assert_int_equal(leat_pread(f, back, len, off), MIN(len, BIG - off));
		assert_memory_equal(back, big + off, MIN(len, BIG - off));
	}
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_unlink(m, "rand"), 0);
}

static void vectors(void **state)
{
	struct leat_file *f = open_file("vec", O_RDWR | O_CREAT);
	struct iovec iov[40];
	size_t total = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(iov); i++) {
		iov[i].iov_base = big + total;
		iov[i].iov_len = i * 997 % 70001;
		total += iov[i].iov_len;
	}
	assert_int_equal(leat_pwritev(f, iov, ARRAY_SIZE(iov), 0), total);
	check_file("vec", big, total);
	memset(back, 0, total);
	for (size_t i = 0; i < ARRAY_SIZE(iov); i++)
		iov[i].iov_base = back + ((uint8_t *)iov[i].iov_base - big);
	assert_int_equal(leat_preadv(f, iov, ARRAY_SIZE(iov), 0), total);
	assert_memory_equal(big, back, total);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_unlink(m, "vec"), 0);
}

static void leat_buffers(void **state)
{
	struct leat_file *f = open_file("buf", O_RDWR | O_CREAT);
	void *buf;

	(void)state;
	assert_int_equal(leat_buf_alloc(leat_session(m), 0, &buf), -EINVAL);
	assert_int_equal(leat_buf_alloc(leat_session(m), 3 << 20, &buf), 0);
	memcpy(buf, big, 3 << 20);
	assert_int_equal(leat_pwrite(f, buf, 3 << 20, 0), 3 << 20);
	check_file("buf", big, 3 << 20);
	memset(buf, 0, 3 << 20);
	assert_int_equal(leat_pread(f, (char *)buf + 5, 1000001, 3), 1000001);
	assert_memory_equal((char *)buf + 5, big + 3, 1000001);
	assert_int_equal(((char *)buf)[4], 0);
	assert_int_equal(((char *)buf)[5 + 1000001], 0);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_unlink(m, "buf"), 0);
	leat_buf_free(leat_session(m), buf);
	leat_buf_free(leat_session(m), NULL);
}

static void sequential(void **state)
{
	struct leat_file *f;
	size_t got = 0;

	(void)state;
	make_file("seq", big, 5000001);
	f = open_file("seq", O_RDONLY);
	for (size_t i = 0;; i++) {
		ssize_t n = leat_read(f, back + got, 1 + i * 7919 % 150000);

		assert_true(n >= 0);
		if (!n)
			break;
		got += (size_t)n;
	}
	assert_int_equal(got, 5000001);
	assert_memory_equal(big, back, got);
	assert_int_equal(leat_lseek(f, -1, SEEK_END), 5000000);
	assert_int_equal(leat_read(f, back, 10), 1);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_unlink(m, "seq"), 0);
}

static void appending(void **state)
{
	struct leat_file *f = open_file("log", O_WRONLY | O_CREAT | O_APPEND), *g;

	(void)state;
	assert_int_equal(leat_write(f, "one ", 4), 4);
	g = open_file("log", O_WRONLY | O_APPEND);
	assert_int_equal(leat_write(g, "two ", 4), 4);
	assert_int_equal(leat_write(f, "three", 5), 5);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_close(g), 0);
	check_file("log", "one two three", 13);
	assert_int_equal(leat_unlink(m, "log"), 0);
}

static void holes_and_truncation(void **state)
{
	struct leat_file *f = open_file("hole", O_RDWR | O_CREAT | O_SYNC);
	static uint8_t zeros[100000];

	(void)state;
	assert_int_equal(leat_pwrite(f, "end", 3, 99997), 3);
	assert_int_equal(leat_pread(f, back, 100000, 0), 100000);
	assert_memory_equal(back, zeros, 99997);
	assert_memory_equal(back + 99997, "end", 3);
	assert_int_equal(leat_ftruncate(f, 50000), 0);
	assert_int_equal(leat_pread(f, back, 100000, 0), 50000);
	assert_int_equal(leat_ftruncate(f, 60000), 0);
	assert_int_equal(leat_pread(f, back, 100000, 0), 60000);
	assert_memory_equal(back, zeros, 60000);
	/* beyond 4 GiB */
	assert_int_equal(leat_pwrite(f, "far", 3, 5000000000), 3);
	assert_int_equal(leat_pread(f, back, 10, 4999999999), 4);
	assert_memory_equal(back, "\0far", 4);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_unlink(m, "hole"), 0);
}

static void wrong_use(void **state)
{
	struct leat_file *f = open_file("wrong", O_WRONLY | O_CREAT), *d = open_file("/", O_RDONLY);
	char c = 0;

	(void)state;
	assert_int_equal(leat_pread(f, &c, 1, 0), -EBADF);
	assert_int_equal(leat_pread(d, &c, 1, 0), -EISDIR);
	assert_int_equal(leat_pwrite(d, &c, 1, 0), -EISDIR);
	assert_int_equal(leat_ftruncate(d, 1), -EINVAL);
	assert_int_equal(leat_unlink(m, "wrong"), 0);
	assert_int_equal(leat_close(d), 0);
	assert_int_equal(leat_close(f), 0);
}

static int group_setup(void **state)
{
	(void)state;
	big = malloc(BIG + 4096);
	back = malloc(BIG + 4096);
	assert_non_null(big);
	assert_non_null(back);
	leat_flow_fill(big, BIG, 1);
	leat_flow_create(&flow);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	leat_flow_destroy(&flow);
	free(big);
	free(back);
	return 0;
}

static void all(const char *url, const char *options)
{
	static void (*const tests[])(void **) = {
		big_write_and_read, odd_sizes, random_pieces, vectors, leat_buffers, sequential,
		appending, holes_and_truncation, wrong_use,
	};

	m = leat_flow_mount(url, options);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tests[i](NULL);
	leat_umount(m);
}

static void tcp(void **state)
{
	(void)state;
	all(flow.tcp_url, NULL);
}

static void tcp_small_four(void **state)
{
	(void)state;
	all(flow.tcp_url, "conns=4&rsize=64k&wsize=32k&credits=3&readahead=256k");
}

static void local(void **state)
{
	(void)state;
	all(flow.local_url, NULL);
}

static void local_1024(void **state)
{
	(void)state;
	all(flow.local_url, "inline=1024&conns=3&poll=event");
}

static void local_65536(void **state)
{
	(void)state;
	all(flow.local_url, "inline=64k&conns=2&credits=2&readahead=0&rsize=100000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tcp),
		cmocka_unit_test(tcp_small_four),
		cmocka_unit_test(local),
		cmocka_unit_test(local_1024),
		cmocka_unit_test(local_65536),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
