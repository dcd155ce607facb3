/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tool_dir.c - directories as the leat command reads them, from a libleat that fails as told
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/tools/tool.c"

int fake_opendir(struct leat *m, const char *path, struct leat_dir **ret);
int fake_readdir(struct leat_dir *d, const struct leat_dirent **ret);
int fake_rewinddir(struct leat_dir *d);
void fake_closedir(struct leat_dir *d);
int fake_lstat(struct leat *m, const char *path, struct stat *ret_st);

#define leat_opendir fake_opendir
#define leat_readdir fake_readdir
#define leat_rewinddir fake_rewinddir
#define leat_closedir fake_closedir
#define leat_lstat fake_lstat
#include "client/tools/tool_dir.c"

LOG_DEFINE("test_tool_dir");

static unsigned entries, at;
static unsigned stale_at, stale_times; /* position that is refused, and how often */
static bool no_stat;
static unsigned removed;               /* entry that lstat does not find */
static unsigned bad = UINT32_MAX;      /* entry of which lstat fails with bad_err */
static int bad_err;
static unsigned opened, asked;

bool tool_interrupted(void)
{
	return false;
}

void signals_mount_add(struct leat *m)
{
	(void)m;
}

void signals_mount_del(struct leat *m)
{
	(void)m;
}

int fake_opendir(struct leat *m, const char *path, struct leat_dir **ret)
{
	(void)m;
	(void)path;
	(void)ret;
	at = 0;
	opened++;
	return 0;
}

void fake_closedir(struct leat_dir *d)
{
	(void)d;
	opened--;
}

int fake_rewinddir(struct leat_dir *d)
{
	(void)d;
	at = 0;
	return 0;
}

/* ".", then names that descend, "..", and an end. */
int fake_readdir(struct leat_dir *d, const struct leat_dirent **ret)
{
	static struct leat_dirent e;
	static char name[16];

	(void)d;
	if (at == stale_at && stale_times) {
		stale_times--;
		return -ESTALE;
	}
	if (at == entries + 2)
		return 0;
	snprintf(name, sizeof(name), "n%06u", entries - at);
	e = (struct leat_dirent){ .name = !at ? "." : at > entries ? ".." : name, .has_stat = !no_stat };
	e.st.st_ino = entries - at++;
	*ret = &e;
	return 1;
}

int fake_lstat(struct leat *m, const char *path, struct stat *ret_st)
{
	unsigned n;

	(void)m;
	asked++;
	assert_int_equal(sscanf(path, "/dir/n%u", &n), 1);
	if (n == removed)
		return -ENOENT;
	if (n == bad)
		return bad_err;
	ret_st->st_ino = n;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	entries = 10;
	stale_at = stale_times = asked = 0;
	removed = bad = UINT32_MAX;
	entries_max = TOOL_ENTRIES_MAX;
	no_stat = false;
	return 0;
}

static void check_sorted(const struct tool_entries *e, unsigned n)
{
	assert_int_equal(e->count, n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(e->v[i].st.st_ino, i);
}

static void whole(void **state)
{
	struct tool_entries e;

	(void)state;
	assert_int_equal(tool_list(NULL, "/dir", &e), 0);
	check_sorted(&e, entries);
	assert_string_equal(e.v[9].name, "n000009");
	tool_entries_fini(&e);
	assert_int_equal(opened, 0);
	assert_int_equal(asked, 0);
}

static void without_attributes(void **state)
{
	struct tool_entries e;

	(void)state;
	no_stat = true;
	removed = 9;
	assert_int_equal(tool_list(NULL, "/dir", &e), 0);
	check_sorted(&e, 9);
	assert_int_equal(asked, 10);
	tool_entries_fini(&e);
}

/* The order has changed: from the beginning, with nothing twice; but not for ever. */
static void begun_again(void **state)
{
	struct tool_entries e;

	(void)state;
	stale_at = 7;
	stale_times = 3;
	assert_int_equal(tool_list(NULL, "/dir", &e), 0);
	check_sorted(&e, entries);
	tool_entries_fini(&e);
	stale_times = 4;
	assert_int_equal(tool_list(NULL, "/dir", &e), -ESTALE);
	assert_int_equal(e.count, 0);
	assert_int_equal(opened, 0);
}

/* A directory with more entries than wanted: the rest follows, each of them once. */
static void too_many(void **state)
{
	const struct tool_entry *next;
	struct tool_entries e;
	struct tool_dir *d;

	(void)state;
	assert_int_equal(tool_dir_open(NULL, "/dir", &d), 0);
	assert_int_equal(tool_dir_list(d, 4, &e), 1);
	assert_int_equal(e.count, 5);
	assert_int_equal(e.v[0].st.st_ino, 9);
	assert_int_equal(e.v[4].st.st_ino, 5);
	tool_entries_fini(&e);
	for (unsigned i = 5; i-- > 0;) {
		assert_int_equal(tool_dir_next(d, &next), 1);
		assert_int_equal(next->st.st_ino, i);
	}
	assert_int_equal(tool_dir_next(d, &next), 0);
	tool_dir_close(d);

	assert_int_equal(tool_dir_open(NULL, "/dir", &d), 0);
	assert_int_equal(tool_dir_list(d, 10, &e), 0);
	check_sorted(&e, 10);
	tool_entries_fini(&e);
	tool_dir_close(d);
}

/* One entry fails, the others are listed; no failure of an entry rejects the position in the directory. */
static void one_is_bad(void **state)
{
	static const int errs[] = { -EACCES, -EIO, -ESTALE, -EREMOTEIO };
	struct tool_entries e;

	(void)state;
	no_stat = true;
	bad = 3;
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		asked = 0;
		bad_err = errs[i];
		assert_int_equal(tool_list(NULL, "/dir", &e), 0);
		assert_int_equal(e.count, 10);
		assert_int_equal(asked, 10);
		assert_string_equal(e.v[3].name, "n000003");
		assert_int_equal(e.v[3].err, bad_err);
		assert_int_equal(e.v[4].err, 0);
		assert_int_equal(e.v[4].st.st_ino, 4);
		tool_entries_fini(&e);
	}
	bad_err = -ETIMEDOUT; /* the others would take as long */
	assert_int_equal(tool_list(NULL, "/dir", &e), -ETIMEDOUT);
	assert_int_equal(e.count, 0);
}

/* A directory that does not end, in one list or in those of all its ancestors. */
static void endless(void **state)
{
	struct tool_entries above, e;

	(void)state;
	entries_max = 1000;
	entries = 100;
	assert_int_equal(tool_list(NULL, "/dir", &above), 0);
	entries = 900;
	assert_int_equal(tool_list(NULL, "/dir", &e), 0);
	tool_entries_fini(&e);
	entries = UINT32_MAX - 2;
	assert_int_equal(tool_list(NULL, "/dir", &e), TOOL_TOO_MANY);
	assert_int_equal(at, 902); /* not read any further */
	assert_int_equal(e.count, 0);
	tool_entries_fini(&above);
	assert_int_equal(held, 0);
	assert_int_equal(opened, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(whole, setup),
		cmocka_unit_test_setup(without_attributes, setup),
		cmocka_unit_test_setup(begun_again, setup),
		cmocka_unit_test_setup(too_many, setup),
		cmocka_unit_test_setup(one_is_bad, setup),
		cmocka_unit_test_setup(endless, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
