/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tumble_names.c - the random tester of names finds what it is for: a directory of this machine, by
 * calls one of which lies now and then
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/tmp_dir.h"
#include "tests/tumble/tree.h"

static const struct tree_ops *honest;
static unsigned calls;

/* Is this the time? */
static bool lies(void)
{
	return ++calls % 7 == 0;
}

static int lose_unlink(struct tree *t, const char *path)
{
	struct stat st;

	return !honest->lstat(t, path, &st) && !S_ISDIR(st.st_mode) && lies()
		       ? 0
		       : honest->unlink(t, path);
}

static int lose_rename(struct tree *t, const char *from, const char *to)
{
	struct stat a, b;
	int rc = honest->lstat(t, from, &a);

	/* of two names of one file nothing is renamed anyway */
	if (!rc && (honest->lstat(t, to, &b) || b.st_ino != a.st_ino) && lies())
		return 0;
	return honest->rename(t, from, to);
}

static int copy_link(struct tree *t, const char *from, const char *to)
{
	return lies() ? honest->create(t, to, true) : honest->link(t, from, to);
}

static int other_target(struct tree *t, const char *target, const char *path)
{
	return honest->symlink(t, lies() ? "elsewhere" : target, path);
}

static int taken_name(struct tree *t, const char *path)
{
	int rc = honest->mkdir(t, path);

	return rc == -EEXIST && lies() ? 0 : rc;
}

static int no_such_file(struct tree *t, const char *path, struct stat *ret)
{
	return lies() ? -ENOENT : honest->lstat(t, path, ret);
}

static int other_inode(struct tree *t, const char *path, struct stat *ret)
{
	int rc = honest->lstat(t, path, ret);

	if (!rc && lies())
		ret->st_ino++;
	return rc;
}

static int lose_chmod(struct tree *t, const char *path, mode_t mode)
{
	int rc = lies() ? 0 : honest->chmod(t, path, mode);

	return rc;
}

static int lose_time(struct tree *t, const char *path, int64_t seconds)
{
	return lies() ? 0 : honest->set_mtime(t, path, seconds);
}

static int lose_truncate(struct tree *t, const char *path, uint64_t size)
{
	return lies() ? 0 : honest->truncate(t, path, size);
}

struct skip {
	void (*each)(void *arg, const char *name);
	void *arg;
};

static void skip_some(void *arg, const char *name)
{
	const struct skip *s = arg;

	if (!lies())
		s->each(s->arg, name);
}

static void repeat_some(void *arg, const char *name)
{
	const struct skip *s = arg;

	s->each(s->arg, name);
	if (lies())
		s->each(s->arg, name);
}

static int list_less(struct tree *t, const char *path, void (*each)(void *arg, const char *name),
		     void *arg)
{
	struct skip s = { each, arg };

	return honest->list(t, path, skip_some, &s);
}

static int list_more(struct tree *t, const char *path, void (*each)(void *arg, const char *name),
		     void *arg)
{
	struct skip s = { each, arg };

	return honest->list(t, path, repeat_some, &s);
}

static int run(const struct tmp_dir *tmp, const struct tree_ops *lie, uint64_t seed, char *told,
	       size_t room)
{
	const struct tumble_opts o = { .seed = seed, .count = 800, .check_every = 50 };
	char path[256], why[100];
	uint64_t done[2];
	struct tree *t;
	FILE *out = fmemopen(told, room, "w");
	int rc;

	assert_non_null(out);
	snprintf(path, sizeof(path), "%s/tree-%u", tmp->path, calls++);
	assert_int_equal(tree_posix_create(path, &t, why, sizeof(why)), 0);
	if (lie)
		t->ops = lie;
	rc = tumble_names(t, &o, out, done);
	if (!rc)
		assert_true(done[0] > 300 && done[1] > 100);
	t->ops->destroy(t);
	fclose(out);
	return rc;
}

static void lies_are_found(void **state)
{
	static char told[16384];
	struct tree_ops lie[12];
	struct tmp_dir tmp;
	struct tree *t;
	char why[100];

	(void)state;
	tmp_dir_create(&tmp);
	assert_int_equal(tree_posix_create(tmp.path, &t, why, sizeof(why)), 0);
	honest = t->ops;
	t->ops->destroy(t);
	for (uint64_t seed = 1; seed <= 3; seed++)
		assert_int_equal(run(&tmp, NULL, seed, told, sizeof(told)), 0);
	for (size_t i = 0; i < 12; i++)
		lie[i] = *honest;
	lie[0].unlink = lose_unlink;
	lie[1].rename = lose_rename;
	lie[2].link = copy_link;
	lie[3].symlink = other_target;
	lie[4].mkdir = taken_name;
	lie[5].lstat = no_such_file;
	lie[6].lstat = other_inode;
	lie[7].chmod = lose_chmod;
	lie[8].set_mtime = lose_time;
	lie[9].truncate = lose_truncate;
	lie[10].list = list_less;
	lie[11].list = list_more;
	for (size_t i = 0; i < 12; i++) {
		for (uint64_t seed = 1; seed <= 3; seed++) {
			int rc = run(&tmp, &lie[i], seed, told, sizeof(told));

			if (rc != 1)
				print_error("lie %zu, seed %d: %d\n", i, (int)seed, rc);
			assert_int_equal(rc, 1);
			assert_non_null(strstr(told, "WRONG in operation"));
		}
	}
	tmp_dir_destroy(&tmp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lies_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
