/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_acl.c - access control lists by libleat, and what is changed by an open file
 *
 * Everything runs over the local fabric and over TCP. Lists are skipped where the file system of the test
 * has none.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "kernel_has.h"
#include "leat_flow.h"

LOG_DEFINE("test_leat_acl");

#define SOMEONE 4711u
#define ACCESS_XATTR "system.posix_acl_access"
#define DEFAULT_XATTR "system.posix_acl_default"

static struct leat_flow flow;

static const struct leat_acl_entry plain[] = {
	{ LEAT_ACL_USER_OBJ, 6, 0 }, { LEAT_ACL_GROUP_OBJ, 4, 0 }, { LEAT_ACL_OTHER, 0, 0 } };
/* the file's group has no right, but its mode bits, which are the mask's, say otherwise */
static const struct leat_acl_entry list[] = { { LEAT_ACL_USER_OBJ, 6, 0 },
					      { LEAT_ACL_USER, 6, SOMEONE },
					      { LEAT_ACL_GROUP_OBJ, 0, 0 },
					      { LEAT_ACL_MASK, 6, 0 },
					      { LEAT_ACL_OTHER, 0, 0 } };

static char *at(const char *name)
{
	static char paths[2][160]; /* two in one call */
	static unsigned turn;
	char *path = paths[turn++ % 2];

	snprintf(path, sizeof(paths[0]), "%s/%s", flow.export, name);
	return path;
}

static struct stat stat_of(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(at(name), &st), 0);
	return st;
}

static void make_file(const char *name)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC, 0640);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0640), 0);
	close(fd);
}

static bool has_lists(void)
{
	make_file("f");
	return kernel_has_acls(at("f"));
}

static void assert_list(const struct leat_acl_entry *v, ssize_t n, const struct leat_acl_entry *want,
			size_t want_n)
{
	assert_int_equal(n, want_n);
	for (size_t i = 0; i < want_n; i++) {
		assert_int_equal(v[i].tag, want[i].tag);
		assert_int_equal(v[i].perm, want[i].perm);
		assert_int_equal(v[i].id, want[i].id);
	}
}

static void lists_by_path(struct leat *m)
{
	struct leat_acl_entry v[8], open_mask[4];
	struct stat st;

	/* a file without a list has its mode */
	assert_list(v, leat_acl_get(m, "f", v, 8), plain, 3);
	assert_int_equal(leat_stat(m, "f", &st), 0);
	assert_int_equal(leat_acl_set(m, "f", list, 5), 0);
	assert_list(v, leat_acl_get(m, "f", v, 8), list, 5);
	assert_int_equal(getxattr(at("f"), ACCESS_XATTR, NULL, 0), 4 + 5 * 8);
	assert_int_equal(stat_of("f").st_mode & 07777, 0660);
	assert_int_equal(leat_stat(m, "f", &st), 0); /* what was cached of its mode is not true any more */
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(leat_acl_get(m, "f", v, 4), -ERANGE);
	/* a mask that takes something from the group is kept; one that does not is none */
	memcpy(open_mask, plain, sizeof(plain));
	open_mask[3] = (struct leat_acl_entry){ LEAT_ACL_MASK, 0, 0 };
	assert_int_equal(leat_acl_set(m, "f", open_mask, 4), 0);
	assert_int_equal(leat_acl_get(m, "f", v, 8), 4);
	open_mask[3].perm = 4;
	assert_int_equal(leat_acl_set(m, "f", open_mask, 4), 0);
	assert_list(v, leat_acl_get(m, "f", v, 8), plain, 3);
	assert_int_equal(leat_acl_set(m, "f", list, 5), 0);
	assert_int_equal(leat_acl_set(m, "f", plain, 3), 0);
	assert_list(v, leat_acl_get(m, "f", v, 3), plain, 3);
	assert_int_equal(getxattr(at("f"), ACCESS_XATTR, NULL, 0), -1);
	assert_int_equal(stat_of("f").st_mode & 07777, 0640);
}

static void no_lists(struct leat *m)
{
	struct leat_acl_entry v[8], bad[3];

	memcpy(bad, plain, sizeof(bad));
	assert_int_equal(leat_acl_set(m, "f", plain, 0), -EINVAL);
	assert_int_equal(leat_acl_set(m, "f", NULL, 3), -EINVAL);
	assert_int_equal(leat_acl_set(m, "f", plain, LEAT_ACL_MAX + 1), -EINVAL);
	assert_int_equal(leat_acl_set(m, "f", plain, 2), -EINVAL);
	bad[1].tag = 3;
	assert_int_equal(leat_acl_set(m, "f", bad, 3), -EINVAL);
	bad[1] = plain[1];
	bad[1].perm = 8;
	assert_int_equal(leat_acl_set(m, "f", bad, 3), -EINVAL);
	assert_int_equal(leat_acl_set(m, NULL, plain, 3), -EINVAL);
	assert_int_equal(leat_acl_set(m, "none", plain, 3), -ENOENT);
	assert_int_equal(leat_acl_get(m, "none", v, 8), -ENOENT);
	assert_int_equal(leat_acl_get(NULL, "f", v, 8), -EINVAL);
	assert_int_equal(leat_facl_get(NULL, v, 8), -EINVAL);
	assert_int_equal(leat_facl_set(NULL, plain, 3), -EINVAL);
}

/* Setting the access list of a directory keeps its default list. */
static void lists_of_directories(struct leat *m)
{
	struct leat_acl_entry v[8];
	uint8_t before[64], after[64];
	ssize_t n;

	assert_int_equal(mkdir(at("d"), 0750), 0);
	assert_int_equal(leat_acl_set(m, "d", list, 5), 0);
	n = getxattr(at("d"), ACCESS_XATTR, before, sizeof(before));
	assert_int_equal(n, 4 + 5 * 8);
	assert_int_equal(setxattr(at("d"), DEFAULT_XATTR, before, (size_t)n, 0), 0);
	assert_int_equal(leat_acl_set(m, "d", plain, 3), 0);
	assert_list(v, leat_acl_get(m, "d", v, 8), plain, 3);
	assert_int_equal(getxattr(at("d"), DEFAULT_XATTR, after, sizeof(after)), n);
	assert_memory_equal(before, after, (size_t)n);
	assert_int_equal(rmdir(at("d")), 0);
}

static void lists_by_file(struct leat *m)
{
	struct leat_acl_entry v[8];
	struct leat_file *f;

	assert_int_equal(leat_open(m, "f", O_RDWR, 0, &f), 0);
	assert_int_equal(rename(at("f"), at("g")), 0); /* the name is nothing to it */
	assert_int_equal(leat_facl_set(f, list, 5), 0);
	assert_list(v, leat_facl_get(f, v, 8), list, 5);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(getxattr(at("g"), ACCESS_XATTR, NULL, 0), 4 + 5 * 8);
	assert_int_equal(unlink(at("g")), 0);
}

static void lists(const char *url)
{
	if (!has_lists())
		skip();
	flow.m = leat_flow_mount(url, NULL);
	lists_by_path(flow.m);
	no_lists(flow.m);
	lists_of_directories(flow.m);
	lists_by_file(flow.m);
}

static void lists_local(void **state)
{
	(void)state;
	lists(flow.local_url);
}

static void lists_tcp(void **state)
{
	(void)state;
	lists(flow.tcp_url);
}

/* As many entries as there may be: more than a message holds. */
static void long_lists(const char *url)
{
	struct leat_acl_entry *v = calloc(LEAT_ACL_MAX, sizeof(*v)), *got = calloc(LEAT_ACL_MAX, sizeof(*v));
	uint32_t n = 400; /* ext4 keeps about 500 in a block */
	ssize_t rc;

	if (!has_lists())
		skip();
	assert_non_null(v);
	assert_non_null(got);
	v[0] = list[0];
	for (uint32_t i = 1; i <= n - 4; i++)
		v[i] = (struct leat_acl_entry){ LEAT_ACL_USER, 4, SOMEONE + i };
	memcpy(&v[n - 3], &list[2], 3 * sizeof(*v));
	flow.m = leat_flow_mount(url, NULL);
	rc = leat_acl_set(flow.m, "f", v, n);
	if (rc == -ENOSPC)
		skip();
	assert_int_equal(rc, 0);
	assert_list(got, leat_acl_get(flow.m, "f", got, LEAT_ACL_MAX), v, n);
	free(v);
	free(got);
}

static void long_lists_local(void **state)
{
	(void)state;
	long_lists(flow.local_url);
}

static void long_lists_tcp(void **state)
{
	(void)state;
	long_lists(flow.tcp_url);
}

/* fchmod, fchown, futimens: of the file that is open, whatever has its name by now */
static void by_file(void **state)
{
	const struct timespec times[2] = { { .tv_sec = 1000000 }, { .tv_sec = 2000000, .tv_nsec = 500 } };
	const struct timespec early[2] = { { .tv_sec = -1 }, { .tv_sec = 0 } };
	struct leat_file *f;
	struct stat st;

	(void)state;
	make_file("f");
	flow.m = leat_flow_mount(flow.local_url, NULL);
	assert_int_equal(leat_open(flow.m, "f", O_RDONLY, 0, &f), 0);
	assert_int_equal(rename(at("f"), at("g")), 0);
	make_file("f");
	assert_int_equal(leat_fchmod(f, 0604), 0);
	assert_int_equal(leat_fchown(f, (uid_t)-1, getgid()), 0);
	assert_int_equal(leat_futimens(f, times), 0);
	assert_int_equal(leat_futimens(f, early), -EOVERFLOW);
	assert_int_equal(leat_fstat(f, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0604);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(stat_of("g").st_mode & 07777, 0604);
	assert_int_equal(stat_of("g").st_mtim.tv_sec, 2000000);
	assert_int_equal(stat_of("g").st_atim.tv_sec, 1000000);
	assert_int_equal(stat_of("f").st_mode & 07777, 0640);
	assert_int_equal(leat_fchmod(NULL, 0), -EINVAL);
	assert_int_equal(leat_fchown(NULL, 0, 0), -EINVAL);
	assert_int_equal(leat_futimens(NULL, times), -EINVAL);
	/* and of a link, not of what it points at */
	assert_int_equal(symlink("f", at("l")), 0);
	assert_int_equal(leat_lutimens(flow.m, "l", times), 0);
	assert_int_equal(leat_lutimens(flow.m, "l", early), -EOVERFLOW);
	assert_int_equal(stat_of("l").st_mtim.tv_sec, 2000000);
	assert_int_not_equal(stat_of("f").st_mtim.tv_sec, 2000000);
	assert_int_equal(unlink(at("l")), 0);
	assert_int_equal(unlink(at("g")), 0);
}

static int end_mount(void **state)
{
	(void)state;
	leat_umount(flow.m);
	flow.m = NULL;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	leat_flow_create(&flow);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_flow_destroy(&flow);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(lists_local, end_mount),
		cmocka_unit_test_teardown(lists_tcp, end_mount),
		cmocka_unit_test_teardown(long_lists_local, end_mount),
		cmocka_unit_test_teardown(long_lists_tcp, end_mount),
		cmocka_unit_test_teardown(by_file, end_mount),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
