/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_error.c - functions that fail without a call: leat_error() names them, and no failure before
 */
#include <fcntl.h>

#include "test_leat_mount.h"

LOG_DEFINE("test_leat_error");

static struct leat *m;
static struct leat_file *rd, *wr;
static struct leat_node *n;

/* Fails with a text that has "MARK" in it. */
static void mark(void)
{
	struct stat st;

	assert_int_equal(leat_stat(m, "MARK", &st), -ENOENT);
	assert_non_null(strstr(leat_error(m), "MARK"));
}

static void check(int64_t rc, int err, const char *name)
{
	const char *text = leat_error(m);

	if (rc != err || strstr(text, "MARK") || !strstr(text, name) || !strstr(text, strerror(-err)))
		fail_msg("%s: %lld, \"%s\"", name, (long long)rc, text);
}

#define CHECK(err, name, call)            \
	do {                              \
		mark();                   \
		check((call), err, name); \
	} while (0)

static void files(void **state)
{
	char buf[8];

	(void)state;
	CHECK(-EBADF, "fallocate", leat_fallocate(rd, 0, 0, 1));
	CHECK(-EINVAL, "fallocate", leat_fallocate(wr, 0, 0, 0));
	CHECK(-EBADF, "read", leat_pread(wr, buf, sizeof(buf), 0));
	CHECK(-EBADF, "read", leat_read(wr, buf, sizeof(buf)));
	CHECK(-EBADF, "write", leat_pwrite(rd, buf, sizeof(buf), 0));
	CHECK(-EINVAL, "lseek", leat_lseek(rd, -1, SEEK_SET));
	CHECK(-EINVAL, "lseek", leat_lseek(rd, 0, 99));
	CHECK(-ENOTDIR, "fchdir", leat_fchdir(m, rd));
}

static void names(void **state)
{
	static const struct timespec early[2] = { { -5, 0 }, { -5, 0 } };
	struct leat_file *f;

	(void)state;
	CHECK(-EOPNOTSUPP, "open", leat_open(m, "t", O_TMPFILE | O_RDWR, 0600, &f));
	CHECK(-EINVAL, "access", leat_access(m, "wr", 99));
	CHECK(-EOVERFLOW, "utimens", leat_utimens(m, "wr", early));
}

static void nodes(void **state)
{
	static const struct leat_setattr unknown = { .size = sizeof(unknown), .mask = 4096 };
	struct leat_node *made;
	char buf[10] = { 0 };

	(void)state;
	CHECK(-EINVAL, "node_import", leat_node_import(m, buf, sizeof(buf), &made));
	CHECK(-ERANGE, "node_export", leat_node_export(n, buf, 2));
	CHECK(-EINVAL, "node_setattr", leat_node_setattr(n, NULL, &unknown, NULL));
}

static void counters(void **state)
{
	uint64_t value;

	(void)state;
	CHECK(-ENOENT, "stat_value", leat_stat_value(m, "none", &value));
}

static int setup_files(void **state)
{
	setup(state);
	m = leat_flow_mount(flow.local_url, NULL);
	assert_int_equal(leat_open(m, "wr", O_WRONLY | O_CREAT, 0600, &wr), 0);
	assert_int_equal(leat_open(m, "wr", O_RDONLY, 0, &rd), 0);
	assert_int_equal(leat_node_get(m, "wr", &n), 0);
	return 0;
}

static int teardown_files(void **state)
{
	leat_node_put(n);
	leat_umount(m);
	return teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files),
		cmocka_unit_test(names),
		cmocka_unit_test(nodes),
		cmocka_unit_test(counters),
	};

	return cmocka_run_group_tests(tests, setup_files, teardown_files);
}
