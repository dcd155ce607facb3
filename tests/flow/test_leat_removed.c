/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_removed.c - files that are removed while they are open, against a leatd
 */
#include <dirent.h>
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
#include "base/util.h"
#include "leat_flow.h"

LOG_DEFINE("test_leat_removed");

static struct leat_flow flow;
static struct leat *m, *other;
static char hidden[256]; /* a name that the last count() has seen */

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

static const char *at(const char *name)
{
	static char path[600];

	snprintf(path, sizeof(path), "%s/d/%s", flow.export, name);
	return path;
}

static int setup(void **state)
{
	(void)state;
	assert_int_equal(mkdir(at(""), 0755), 0);
	m = leat_flow_mount(flow.local_url, NULL);
	other = leat_flow_mount(flow.tcp_url, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_umount(m);
	leat_umount(other);
	leat_flow_remove(at(""));
	return 0;
}

/* Counts the names in the directory, and those of the pattern. */
static unsigned count(unsigned *ret_hidden)
{
	const struct dirent *e;
	DIR *d = opendir(at(""));
	unsigned n = 0;

	assert_non_null(d);
	*ret_hidden = 0;
	while ((e = readdir(d)) != NULL) {
		if (!strncmp(e->d_name, ".leat-removed-", 14)) {
			assert_int_equal(strspn(e->d_name + 14, "0123456789abcdef"), 16);
			assert_int_equal(strlen(e->d_name), 30);
			snprintf(hidden, sizeof(hidden), "%s", e->d_name);
			++*ret_hidden;
		} else if (e->d_name[0] != '.') {
			n++;
		}
	}
	closedir(d);
	return n;
}

static void expect(unsigned names, unsigned hidden_names)
{
	unsigned n;

	assert_int_equal(count(&n), names);
	assert_int_equal(n, hidden_names);
}

static struct leat_file *open_new(struct leat *mount, const char *path, const char *text)
{
	struct leat_file *f;

	assert_int_equal(leat_open(mount, path, O_RDWR | O_CREAT | O_TRUNC, 0644, &f), 0);
	assert_int_equal(leat_pwrite(f, text, strlen(text), 0), strlen(text));
	assert_int_equal(leat_fsync(f), 0);
	return f;
}

static void check(struct leat_file *f, const char *want)
{
	char text[64] = "";

	assert_int_equal(leat_pread(f, text, sizeof(text) - 1, 0), strlen(want));
	assert_string_equal(text, want);
}

static uint64_t calls(void)
{
	uint64_t n;

	assert_int_equal(leat_stat_value(m, "calls", &n), 0);
	return n;
}

static void unlinked(void **state)
{
	struct leat_file *f;
	struct stat st;

	(void)state;
	f = open_new(m, "d/f", "before");
	assert_int_equal(leat_unlink(m, "d/f"), 0);
	assert_int_equal(leat_stat(m, "d/f", &st), -ENOENT);
	expect(0, 1);
	check(f, "before");
	assert_int_equal(leat_pwrite(f, "after!", 6, 0), 6);
	check(f, "after!");
	assert_int_equal(leat_fstat(f, &st), 0);
	assert_int_equal(st.st_size, 6);
	assert_int_equal(leat_ftruncate(f, 2), 0);
	check(f, "af");
	/* the directory is not empty as long as it is open */
	assert_int_equal(leat_rmdir(m, "d"), -ENOTEMPTY);
	/* another file can have the name */
	assert_int_equal(leat_close(open_new(m, "d/f", "another")), 0);
	expect(1, 1);
	check(f, "af");
	assert_int_equal(leat_close(f), 0);
	expect(1, 0);
}

static void several_opens(void **state)
{
	struct leat_file *f, *g;

	(void)state;
	f = open_new(m, "d/f", "text");
	assert_int_equal(leat_open(m, "d/f", O_RDONLY, 0, &g), 0);
	assert_int_equal(leat_unlink(m, "d/f"), 0);
	assert_int_equal(leat_close(f), 0);
	expect(0, 1);
	check(g, "text");
	assert_int_equal(leat_close(g), 0);
	expect(0, 0);
}

/* With another name, nothing is hidden; a removal of that one is the last. */
static void two_names(void **state)
{
	struct leat_file *f;

	(void)state;
	f = open_new(m, "d/f", "text");
	assert_int_equal(leat_link(m, "d/f", "d/g"), 0);
	assert_int_equal(leat_unlink(m, "d/f"), 0);
	expect(1, 0);
	check(f, "text");
	assert_int_equal(leat_unlink(m, "d/g"), 0);
	expect(0, 1);
	check(f, "text");
	assert_int_equal(leat_close(f), 0);
	expect(0, 0);
}

static void renamed_onto(void **state)
{
	struct leat_file *f, *g;

	(void)state;
	f = open_new(m, "d/f", "old");
	assert_int_equal(leat_close(open_new(m, "d/new", "new")), 0);
	assert_int_equal(leat_rename(m, "d/new", "d/f"), 0);
	expect(1, 1);
	check(f, "old");
	assert_int_equal(leat_open(m, "d/f", O_RDONLY, 0, &g), 0);
	check(g, "new");
	assert_int_equal(leat_close(f), 0);
	expect(1, 0);
	check(g, "new");
	/* onto itself: it keeps its name */
	assert_int_equal(leat_rename(m, "d/f", "d/f"), 0);
	expect(1, 0);
	/* refused: as before */
	assert_int_equal(leat_mkdir(m, "d/dir", 0755), 0);
	assert_int_equal(leat_rename(m, "d/dir", "d/f"), -ENOTDIR);
	expect(2, 0);
	check(g, "new");
	assert_int_equal(leat_close(g), 0);
	expect(2, 0);
}

/* Without an open file unlink is one call; with another one it looks. */
static void cost(void **state)
{
	struct leat_file *f, *dir;
	uint64_t n;

	(void)state;
	assert_int_equal(leat_close(open_new(m, "d/f", "text")), 0);
	assert_int_equal(leat_close(open_new(m, "d/g", "text")), 0);
	assert_int_equal(leat_open(m, "d", O_PATH | O_DIRECTORY, 0, &dir), 0);
	n = calls();
	assert_int_equal(leat_unlink(m, "d/f"), 0);
	assert_int_equal(calls(), n + 1);
	assert_int_equal(leat_close(dir), 0);
	f = open_new(m, "d/h", "text");
	n = calls();
	assert_int_equal(leat_unlink(m, "d/g"), 0);
	assert_int_equal(calls(), n + 2);
	expect(1, 0);
	assert_int_equal(leat_close(f), 0);
}

/* A file that only another mount has open. */
static void not_ours(void **state)
{
	char text[8];
	struct leat_file *f, *g;

	(void)state;
	f = open_new(other, "d/f", "text");
	g = open_new(m, "d/g", "text");
	assert_int_equal(leat_unlink(m, "d/f"), 0);
	expect(1, 0);
	assert_int_equal(leat_pread(f, text, sizeof(text), 0), -ESTALE);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_close(g), 0);
}

static void unmounted(void **state)
{
	(void)state;
	open_new(m, "d/f", "text");
	assert_int_equal(leat_unlink(m, "d/f"), 0);
	open_new(m, "d/g", "text");
	expect(1, 1);
	leat_umount(m);
	m = NULL;
	expect(1, 0);
}

/* Others take the hidden name away, or give it to another directory. */
static void taken_away(void **state)
{
	char from[600], to[600];
	struct leat_file *f;
	unsigned n;

	(void)state;
	f = open_new(m, "d/f", "text");
	assert_int_equal(leat_unlink(m, "d/f"), 0);
	count(&n);
	snprintf(from, sizeof(from), "%s", at(hidden));
	snprintf(to, sizeof(to), "%s", at("rescued"));
	assert_int_equal(rename(from, to), 0);
	check(f, "text");
	assert_int_equal(leat_close(f), 0);
	expect(1, 0);

	f = open_new(m, "d/f", "text");
	assert_int_equal(leat_unlink(m, "d/f"), 0);
	count(&n);
	assert_int_equal(unlink(at(hidden)), 0);
	assert_int_equal(leat_close(f), 0);
	expect(1, 0);
}

/* The hidden name is in use, also for a program that finds it. */
static void found(void **state)
{
	struct leat_file *f, *g;
	char path[512];
	unsigned n;

	(void)state;
	f = open_new(m, "d/f", "text");
	assert_int_equal(leat_unlink(m, "d/f"), 0);
	count(&n);
	snprintf(path, sizeof(path), "d/%s", hidden);
	assert_int_equal(leat_unlink(m, path), -EBUSY);
	expect(0, 1);
	/* opened by this name, it is the same file */
	assert_int_equal(leat_open(m, path, O_RDONLY, 0, &g), 0);
	assert_int_equal(leat_close(f), 0);
	expect(0, 1);
	check(g, "text");
	assert_int_equal(leat_close(g), 0);
	expect(0, 0);
	/* a file that is not open may have such a name */
	f = open_new(m, "d/.leat-removed-0123456789abcdef", "text");
	assert_int_equal(leat_close(f), 0);
	expect(0, 1);
	assert_int_equal(leat_unlink(m, "d/.leat-removed-0123456789abcdef"), 0);
	expect(0, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(unlinked), TEST(several_opens), TEST(two_names), TEST(renamed_onto), TEST(cost),
		TEST(not_ours), TEST(unmounted),     TEST(taken_away), TEST(found),
	};
#undef TEST

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
