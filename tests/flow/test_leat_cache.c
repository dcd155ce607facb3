/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_cache.c - what two mounts of one export see of each other, and what it costs in calls
 *
 * Mounts `a` and `b` have a clock that the test moves; calls are counted as they are sent.
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

#include "base/clock.h"
#include "base/log.h"
#include "handle.h"
#include "leat_flow.h"

LOG_DEFINE("test_leat_cache");

#define FILE_LIFE 3  /* seconds; see cache.h */
#define DIR_LIFE 30
#define LONG 61

static struct leat_flow flow;
static struct leat *a, *b;
static uint64_t now_ns; /* ahead of the real one */

static uint64_t fake_clock(void)
{
	return now_ns;
}

static void pass(unsigned seconds)
{
	now_ns += seconds * NS_PER_S;
}

static struct leat *mount_with(const char *base, const char *options)
{
	struct leat *m = leat_flow_mount(base, options);

	/* what was learnt by the other clock is of no use */
	now_ns = MAX(now_ns, clock_now_ns()) + LONG * NS_PER_S;
	m->clock = fake_clock;
	return m;
}

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

static int setup(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/d", flow.export);
	assert_int_equal(mkdir(path, 0755), 0);
	a = mount_with(flow.local_url, NULL);
	b = mount_with(flow.tcp_url, "cache=none");
	return 0;
}

static int teardown(void **state)
{
	char path[128];

	(void)state;
	leat_umount(a);
	leat_umount(b);
	snprintf(path, sizeof(path), "%s/d", flow.export);
	leat_flow_remove(path);
	return 0;
}

/* Calls of @m since the last time. */
static unsigned calls(struct leat *m)
{
	static uint64_t was[2];
	uint64_t now = leat_flow_stat(m, "calls");
	unsigned n;

	n = (unsigned)(now - was[m == a]);
	was[m == a] = now;
	return n;
}

static void put(struct leat *m, const char *path, const char *text)
{
	struct leat_file *f;

	assert_int_equal(leat_open(m, path, O_WRONLY | O_CREAT | O_TRUNC, 0644, &f), 0);
	assert_int_equal(leat_pwrite(f, text, strlen(text), 0), strlen(text));
	assert_int_equal(leat_close(f), 0);
}

static void check(struct leat *m, const char *path, const char *want)
{
	char text[64] = "";
	struct leat_file *f;

	assert_int_equal(leat_open(m, path, O_RDONLY, 0, &f), 0);
	assert_int_equal(leat_read(f, text, sizeof(text) - 1), strlen(want));
	assert_string_equal(text, want);
	assert_int_equal(leat_close(f), 0);
}

static int64_t size_of(struct leat *m, const char *path)
{
	struct stat st;
	int rc = leat_stat(m, path, &st);

	return rc ? rc : st.st_size;
}

static void what_stats_cost(void **state)
{
	(void)state;
	put(b, "d/f", "four");
	calls(a);
	calls(b);
	assert_int_equal(size_of(a, "d/f"), 4);
	assert_int_equal(calls(a), 2); /* a LOOKUP each */
	for (int i = 0; i < 100; i++)
		assert_int_equal(size_of(a, "d/f"), 4);
	assert_int_equal(calls(a), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(size_of(b, "d/f"), 4);
	assert_int_equal(calls(b), 200);
	/* the file's attributes alone are too old */
	pass(FILE_LIFE);
	assert_int_equal(size_of(a, "d/f"), 4);
	assert_int_equal(calls(a), 1);
	assert_int_equal(size_of(a, "d/f"), 4);
	assert_int_equal(calls(a), 0);
	/* it has been the same for 23 seconds, so that is how long it is believed */
	pass(20);
	assert_int_equal(size_of(a, "d/f"), 4);
	assert_int_equal(calls(a), 1);
	pass(20);
	calls(a);
	assert_int_equal(leat_access(a, "/d", F_OK), 0);
	assert_int_equal(calls(a), 1); /* and the directories are too old by now */
	/* what is not there costs no more */
	for (int i = 0; i < 100; i++)
		assert_int_equal(size_of(a, "d/none"), -ENOENT);
	assert_int_equal(calls(a), 1);
	assert_non_null(strstr(leat_error(a), "cached"));
	for (int i = 0; i < 100; i++)
		assert_int_equal(size_of(b, "d/none"), -ENOENT);
	assert_int_equal(calls(b), 200);
}

static void other_options(void **state)
{
	(void)state;
	put(b, "d/f", "four");
	leat_umount(a);
	a = mount_with(flow.tcp_url, "acmax=1");
	assert_int_equal(size_of(a, "d/f"), 4);
	calls(a);
	assert_int_equal(size_of(a, "d/f"), 4);
	assert_int_equal(calls(a), 0);
	pass(1);
	assert_int_equal(size_of(a, "d/f"), 4);
	assert_int_equal(calls(a), 2);
}

/* What is in a directory that was read is known; but for the directory itself nothing is asked. */
static void a_directory_that_was_read(void **state)
{
	const struct leat_dirent *e;
	struct leat_dir *dir;
	char name[32];

	(void)state;
	/* more than one answer takes */
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "d/a-file-%d", i);
		assert_int_equal(leat_mknod(a, name, S_IFREG | 0644, 0), 0);
	}
	put(b, "d/f", "four");
	put(b, "d/g", "threes");
	assert_int_equal(leat_opendir(a, "d", &dir), 0);
	while (leat_readdir(dir, &e) == 1)
		;
	leat_closedir(dir);
	calls(a);
	assert_int_equal(size_of(a, "d/f"), 4);
	assert_int_equal(size_of(a, "d/g"), 6);
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "d/a-file-%d", i);
		assert_int_equal(size_of(a, name), 0);
	}
	assert_int_equal(calls(a), 0);
}

static void close_to_open(void **state)
{
	struct leat_file *f;
	struct stat st;

	(void)state;
	put(b, "d/f", "old");
	assert_int_equal(size_of(a, "d/f"), 3);
	check(a, "d/f", "old");
	/* in between, for so long as the model says, the old is seen */
	put(b, "d/f", "newer");
	assert_int_equal(size_of(a, "d/f"), 3);
	/* but not by an open, nor by any call after it */
	check(a, "d/f", "newer");
	assert_int_equal(size_of(a, "d/f"), 5);
	/* the other way round: closed here, seen there */
	put(a, "d/f", "from a");
	check(b, "d/f", "from a");
	assert_int_equal(size_of(b, "d/f"), 6);
	/* without an open: when the attributes are too old */
	assert_int_equal(leat_open(a, "d/f", O_RDONLY, 0, &f), 0);
	put(b, "d/f", "longer still");
	assert_int_equal(leat_fstat(f, &st), 0);
	assert_int_equal(st.st_size, 6);
	pass(LONG);
	assert_int_equal(leat_fstat(f, &st), 0);
	assert_int_equal(st.st_size, 12);
	/* a seek to the end of the file gets the new size */
	put(b, "d/f", "1");
	assert_int_equal(leat_lseek(f, 0, SEEK_END), 1);
	assert_int_equal(leat_close(f), 0);
	/* another client's file is not there, or there, within the life of its directory */
	assert_int_equal(size_of(a, "d/g"), -ENOENT);
	put(b, "d/g", "g");
	assert_int_equal(size_of(a, "d/g"), -ENOENT);
	check(a, "d/g", "g");
	assert_int_equal(size_of(a, "d/g"), 1);
	assert_int_equal(leat_unlink(b, "d/g"), 0);
	assert_int_equal(size_of(a, "d/g"), 1);
	assert_int_equal(leat_open(a, "d/g", O_RDONLY, 0, &f), -ENOENT);
	assert_int_equal(size_of(a, "d/g"), -ENOENT);
	put(b, "d/g", "g");
	pass(DIR_LIFE);
	assert_int_equal(size_of(a, "d/g"), 1);
	assert_int_equal(leat_unlink(b, "d/g"), 0);
	pass(DIR_LIFE);
	assert_int_equal(size_of(a, "d/g"), -ENOENT);
}

static void renamed_over(void **state)
{
	(void)state;
	put(b, "d/f", "old");
	assert_int_equal(size_of(a, "d/f"), 3);
	put(b, "d/new", "replaced");
	assert_int_equal(leat_rename(b, "d/new", "d/f"), 0);
	check(a, "d/f", "replaced");
	assert_int_equal(size_of(a, "d/f"), 8);
	/* known by a name that is another's: stale, and looked up again */
	put(b, "d/new", "once more");
	assert_int_equal(leat_rename(b, "d/new", "d/f"), 0);
	pass(FILE_LIFE);
	assert_int_equal(size_of(a, "d/f"), 9);
	assert_int_equal(leat_chmod(a, "d/f", 0600), 0);
	put(b, "d/new", "the last one");
	assert_int_equal(leat_rename(b, "d/new", "d/f"), 0);
	assert_int_equal(leat_truncate(a, "d/f", 2), 0);
	assert_int_equal(size_of(b, "d/f"), 2);
}

static void remake_dir(const char *text)
{
	assert_int_equal(leat_unlink(b, "/d/f"), 0);
	assert_int_equal(leat_rmdir(b, "/d"), 0);
	assert_int_equal(leat_mkdir(b, "/d", 0755), 0);
	put(b, "/d/f", text);
}

static void stale_directories(void **state)
{
	struct leat_file *f;
	struct leat *inside;
	struct stat st;
	char url[256];

	(void)state;
	put(b, "d/f", "old");
	snprintf(url, sizeof(url), "%s/d", flow.local_url);
	inside = mount_with(url, NULL);
	assert_int_equal(size_of(a, "d/f"), 3);
	assert_int_equal(size_of(inside, "f"), 3);
	remake_dir("newer");
	check(a, "d/f", "newer");
	check(inside, "f", "newer");
	remake_dir("newest");
	assert_int_equal(leat_rename(a, "d/f", "d/g"), 0);
	assert_int_equal(leat_rename(inside, "g", "f"), 0);
	assert_int_equal(size_of(b, "d/f"), 6);
	/* an open file or a name that was removed fails, after one more request */
	assert_int_equal(leat_open(a, "d/f", O_RDONLY, 0, &f), 0);
	assert_int_equal(leat_unlink(b, "d/f"), 0);
	pass(LONG);
	assert_int_equal(leat_fstat(f, &st), -ESTALE);
	assert_int_equal(leat_rmdir(b, "d"), 0);
	assert_int_equal(size_of(inside, "f"), -ENOENT);
	assert_int_equal(size_of(a, "d/f"), -ENOENT);
	assert_int_equal(leat_mkdir(b, "d", 0755), 0);
	assert_int_equal(leat_close(f), 0);
	leat_umount(inside);
}

/* Our own changes are seen at once, whatever is cached, and whether the server is asked or not. */
static void own_changes(void **state)
{
	struct stat st, other;
	struct leat_file *f;

	(void)state;
	assert_int_equal(size_of(a, "d/f"), -ENOENT);
	put(a, "d/f", "four");
	assert_int_equal(size_of(a, "d/f"), 4);
	assert_int_equal(leat_chmod(a, "d/f", 0640), 0);
	assert_int_equal(leat_stat(a, "d/f", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(leat_truncate(a, "d/f", 2), 0);
	assert_int_equal(size_of(a, "d/f"), 2);
	assert_int_equal(leat_stat(a, "d/f", &st), 0);
	assert_int_equal(leat_link(a, "d/f", "d/g"), 0);
	assert_int_equal(leat_stat(a, "d/f", &st), 0);
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(leat_stat(a, "d/g", &other), 0);
	assert_int_equal(other.st_ino, st.st_ino);
	assert_int_equal(leat_rename(a, "d/g", "d/h"), 0);
	assert_int_equal(size_of(a, "d/g"), -ENOENT);
	assert_int_equal(size_of(a, "d/h"), 2);
	/* one name of a file goes, which shows in the other; known by that name or not */
	assert_int_equal(leat_unlink(a, "d/h"), 0);
	assert_int_equal(leat_stat(a, "d/f", &st), 0);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(size_of(a, "d/h"), -ENOENT);
	assert_int_equal(leat_link(b, "d/f", "d/h"), 0);
	pass(LONG);
	assert_int_equal(leat_stat(a, "d/f", &st), 0);
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(leat_unlink(a, "d/h"), 0);
	assert_int_equal(leat_stat(a, "d/f", &st), 0);
	assert_int_equal(st.st_nlink, 1);
	/* what takes another's name */
	put(a, "d/g", "ggg");
	assert_int_equal(size_of(a, "d/f"), 2);
	assert_int_equal(leat_rename(a, "d/g", "d/f"), 0);
	assert_int_equal(size_of(a, "d/f"), 3);
	assert_int_equal(leat_mkdir(a, "d/e", 0755), 0);
	assert_int_equal(leat_symlink(a, "../f", "d/e/s"), 0);
	assert_int_equal(size_of(a, "d/e/s"), 3);
	assert_int_equal(leat_unlink(a, "d/e/s"), 0);
	assert_int_equal(leat_rmdir(a, "d/e"), 0);
	assert_int_equal(size_of(a, "d/e"), -ENOENT);
	/* through an open file */
	assert_int_equal(leat_open(a, "d/f", O_RDWR, 0, &f), 0);
	for (int i = 4; i < 50; i++) {
		assert_int_equal(leat_pwrite(f, "x", 1, (uint64_t)i - 1), 1);
		assert_int_equal(leat_fstat(f, &st), 0);
		assert_int_equal(st.st_size, i);
		assert_int_equal(size_of(a, "d/f"), i);
	}
	assert_int_equal(leat_ftruncate(f, 1), 0);
	assert_int_equal(size_of(a, "d/f"), 1);
	assert_int_equal(leat_close(f), 0);
}

static void on_written(void *arg, int64_t result)
{
	assert_int_equal(result, 100);
	--*(unsigned *)arg;
}

/* Many writes and looks at once: their replies come in any order, the truth is known after them. */
static void many_at_once(void **state)
{
	static char block[100];
	unsigned flying = 0;
	struct leat_file *f;
	struct stat st, mid;

	(void)state;
	leat_umount(a);
	a = mount_with(flow.tcp_url, "conns=4");
	assert_int_equal(leat_open(a, "d/f", O_RDWR | O_CREAT, 0644, &f), 0);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 50; i++) {
			const struct leat_cb cb = { .fn = on_written, .user_data = &flying };

			flying++;
			assert_int_equal(leat_aio_pwrite(f, block, 100, (round * 50 + i) * 100, cb), 0);
			if (i % 10 == 9)
				assert_int_equal(leat_stat(a, "d/f", &mid), 0);
		}
		while (flying)
			leat_poll(leat_session(a), -1);
		assert_int_equal(leat_stat(a, "d/f", &st), 0);
		assert_int_equal(st.st_size, (round + 1) * 5000);
		assert_true(mid.st_size <= st.st_size);
	}
	assert_int_equal(leat_close(f), 0);
}

/* Read @count bytes that must all be @c. */
static void read_on(struct leat_file *f, size_t count, char c)
{
	static char buf[65536];

	assert_true(count <= sizeof(buf));
	assert_int_equal(leat_read(f, buf, count), count);
	for (size_t i = 0; i < count; i++) {
		if (buf[i] != c)
			fail_msg("byte %zu is '%c' where '%c' was written", i, buf[i], c);
	}
}

static void fill(struct leat *m, char c)
{
	static char buf[1 << 20];
	struct leat_file *f;

	memset(buf, c, sizeof(buf));
	assert_int_equal(leat_open(m, "d/f", O_WRONLY | O_CREAT, 0644, &f), 0);
	assert_int_equal(leat_pwrite(f, buf, sizeof(buf), 0), sizeof(buf));
	/* two changes within a tick of the clock: the size tells */
	assert_int_equal(leat_ftruncate(f, sizeof(buf) + (unsigned char)c), 0);
	assert_int_equal(leat_close(f), 0);
}

static void what_is_read_ahead(void **state)
{
	struct leat_file *f;

	(void)state;
	fill(b, 'a');
	assert_int_equal(leat_open(a, "d/f", O_RDONLY, 0, &f), 0);
	for (int i = 0; i < 4; i++)
		read_on(f, 4096, 'a');
	calls(a);
	read_on(f, 4096, 'a');
	assert_int_equal(calls(a), 0); /* it was read ahead */
	/* written here, through another open file: seen at once */
	fill(a, 'b');
	for (int i = 0; i < 4; i++)
		read_on(f, 4096, 'b');
	calls(a);
	read_on(f, 4096, 'b');
	assert_int_equal(calls(a), 0);
	/* written there: seen when what was read ahead is too old */
	fill(b, 'c');
	pass(LONG);
	for (int i = 0; i < 4; i++)
		read_on(f, 4096, 'c');
	/* or when its attributes are seen, for whatever reason */
	fill(b, 'd');
	pass(FILE_LIFE);
	assert_int_equal(size_of(a, "d/f"), (1 << 20) + 'd');
	read_on(f, 4096, 'd');
	assert_int_equal(leat_close(f), 0);
	/* nothing is read ahead where nothing is cached */
	assert_int_equal(leat_open(b, "d/f", O_RDONLY, 0, &f), 0);
	calls(b);
	for (int i = 0; i < 8; i++)
		read_on(f, 4096, 'd');
	assert_int_equal(calls(b), 8);
	assert_int_equal(leat_close(f), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_stats_cost),
		TEST(other_options),
		TEST(a_directory_that_was_read),
		TEST(close_to_open),
		TEST(renamed_over),
		TEST(stale_directories),
		TEST(own_changes),
		TEST(many_at_once),
		TEST(what_is_read_ahead),
	};
#undef TEST

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
