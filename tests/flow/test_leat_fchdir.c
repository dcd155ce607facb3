/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_fchdir.c - relative paths that begin at an open directory, and commands that rely on it
 *
 * While leat rm -r and leat cp -r work in a directory, another user of that directory exchanges names in it with
 * symbolic links. Nothing outside of it may change, whichever of them is there at any moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "leat_flow.h"

LOG_DEFINE("test_leat_fchdir");

#define ROUNDS leat_flow_fewer(24)

extern char **environ;

static struct leat_flow flow;

static const char *at(const char *name)
{
	static char paths[4][200];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", flow.export, name);
	return path;
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static bool is_there(const char *name)
{
	struct stat st;

	return !lstat(at(name), &st);
}

static struct leat_file *open_dir(struct leat *m, const char *path)
{
	struct leat_file *d;

	assert_int_equal(leat_open(m, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, &d), 0);
	return d;
}

static void begins_there(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL), *other = leat_flow_mount(flow.tcp_url, NULL);
	struct leat_file *d, *e, *f;
	struct leat_dir *listing;
	struct stat st;

	(void)state;
	assert_int_equal(mkdir(at("d"), 0755), 0);
	assert_int_equal(mkdir(at("elsewhere"), 0755), 0);
	write_file(at("d/f"), "x");
	d = open_dir(m, "d");
	assert_int_equal(leat_fchdir(m, d), 0);
	assert_int_equal(leat_mkdir(m, "e", 0755), 0);
	assert_true(is_there("d/e"));
	/* its name may mean something else by now */
	assert_int_equal(rename(at("d"), at("moved")), 0);
	assert_int_equal(symlink("elsewhere", at("d")), 0);
	assert_int_equal(leat_mkdir(m, "e/x", 0755), 0);
	assert_true(is_there("moved/e/x"));
	assert_int_equal(leat_stat(m, "f", &st), 0);
	assert_int_equal(leat_stat(m, "/f", &st), -ENOENT);
	assert_int_equal(leat_stat(m, ".", &st), 0);
	assert_int_equal(leat_opendir(m, ".", &listing), 0);
	leat_closedir(listing);
	/* from there on to a directory below it; messages have the whole path */
	e = open_dir(m, "e");
	assert_int_equal(leat_fchdir(m, e), 0);
	assert_int_equal(leat_rmdir(m, "none"), -ENOENT);
	assert_non_null(strstr(leat_error(m), "/x/d/e/none: "));
	assert_int_equal(leat_rmdir(m, "x"), 0);
	assert_false(is_there("moved/e/x"));
	/* on another mount, and when it is closed */
	assert_int_equal(leat_fchdir(other, e), 0);
	assert_int_equal(leat_close(e), 0);
	assert_int_equal(leat_mkdir(other, "y", 0755), 0);
	assert_true(is_there("moved/e/y"));
	assert_int_equal(leat_fchdir(m, NULL), 0);
	assert_int_equal(leat_stat(m, "moved/e/y", &st), 0);
	/* what is no directory, or a link to one */
	assert_int_equal(leat_open(m, "moved/f", O_RDONLY, 0, &f), 0);
	assert_int_equal(leat_fchdir(m, f), -ENOTDIR);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_open(m, "moved/f", O_PATH | O_DIRECTORY, 0, &f), -ENOTDIR);
	assert_int_equal(leat_open(m, "d", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, &f), -ELOOP);
	assert_int_equal(leat_fchdir(NULL, d), -EINVAL);
	/* a directory that is gone is not looked for by its name */
	assert_int_equal(leat_fchdir(m, d), 0);
	leat_flow_remove(at("moved"));
	assert_int_equal(unlink(at("d")), 0);
	assert_int_equal(mkdir(at("d"), 0755), 0);
	assert_int_equal(leat_mkdir(m, "new", 0755), -ESTALE);
	assert_false(is_there("d/new"));
	assert_int_equal(leat_close(d), 0);
	leat_umount(other);
	leat_umount(m);
	assert_int_equal(rmdir(at("d")), 0);
	assert_int_equal(rmdir(at("elsewhere")), 0);
}

/* O_PATH opens an object of any type for its attributes, which stay those of that one. */
static void objects(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL);
	const struct timespec times[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	struct leat_file *pipe, *link, *f;
	struct stat st;
	char c = 'x';

	(void)state;
	write_file(at("f"), "x");
	assert_int_equal(mkfifo(at("p"), 0644), 0);
	assert_int_equal(symlink("f", at("l")), 0);
	assert_int_equal(leat_open(m, "p", O_RDONLY, 0, &pipe), -ENXIO);
	assert_int_equal(leat_open(m, "p", O_PATH | O_NOFOLLOW, 0, &pipe), 0);
	assert_int_equal(leat_open(m, "l", O_PATH | O_NOFOLLOW, 0, &link), 0);
	assert_int_equal(rename(at("p"), at("q")), 0);
	assert_int_equal(rename(at("l"), at("p")), 0);
	assert_int_equal(leat_fchmod(pipe, 0600), 0);
	assert_int_equal(leat_futimens(link, times), 0);
	assert_int_equal(leat_fstat(pipe, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(leat_fstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(lstat(at("q"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(lstat(at("p"), &st), 0);
	assert_int_equal(st.st_mtim.tv_sec, 1000000000);
	assert_int_equal(stat(at("f"), &st), 0);
	assert_int_not_equal(st.st_mtim.tv_sec, 1000000000);
	assert_int_equal(leat_close(pipe), 0);
	assert_int_equal(leat_close(link), 0);
	/* a link is followed without O_NOFOLLOW, and flags that would change something are ignored */
	assert_int_equal(leat_open(m, "p", O_PATH | O_RDWR | O_CREAT | O_EXCL | O_TRUNC, 0, &f), 0);
	assert_int_equal(leat_fstat(f, &st), 0);
	assert_true(S_ISREG(st.st_mode) && st.st_size == 1);
	/* but for its attributes it is good for nothing */
	assert_int_equal(leat_pread(f, &c, 1, 0), -EBADF);
	assert_int_equal(leat_pwrite(f, &c, 1, 0), -EBADF);
	assert_int_equal(leat_ftruncate(f, 0), -EINVAL);
	assert_int_equal(leat_fchdir(m, f), -ENOTDIR);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_open(m, "none", O_PATH | O_CREAT, 0644, &f), -ENOENT);
	leat_umount(m);
	assert_int_equal(unlink(at("f")), 0);
	assert_int_equal(unlink(at("p")), 0);
	assert_int_equal(unlink(at("q")), 0);
}

/* ---- commands ---- */

/* t/d, a directory, and t/l, a link to precious, change their places all the time. */
static atomic_bool stop;

static void *exchange(void *arg)
{
	char d[200], l[200];

	(void)arg;
	snprintf(d, sizeof(d), "%s/t/d", flow.export);
	snprintf(l, sizeof(l), "%s/t/l", flow.export);
	while (!atomic_load(&stop))
		(void)renameat2(AT_FDCWD, d, AT_FDCWD, l, RENAME_EXCHANGE);
	return NULL;
}

static const char *leat_program(void)
{
	return getenv("LEAT") ? getenv("LEAT") : "build/leat";
}

static void run_leat(const char *command, const char *from, const char *to)
{
	const char *argv[] = { "leat", command, "-r", from, to, NULL };
	posix_spawn_file_actions_t quiet;
	int status;
	pid_t pid;

	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	assert_int_equal(posix_spawn(&pid, leat_program(), &quiet, NULL, (char *const *)argv, environ), 0);
	posix_spawn_file_actions_destroy(&quiet);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status)); /* with an error, or without: that depends on which came first */
}

static void make_tree(void)
{
	assert_int_equal(mkdir(at("t"), 0755), 0);
	assert_int_equal(mkdir(at("t/d"), 0755), 0);
	write_file(at("t/d/f"), "t");
	assert_int_equal(symlink("../precious", at("t/l")), 0);
}

static void assert_precious(void)
{
	char text[16] = "";
	FILE *f = fopen(at("precious/f"), "r");

	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_string_equal(text, "precious");
	assert_false(is_there("precious/g"));
}

static void races(const char *command)
{
	char url[256], bait[128];
	pthread_t thread;

	if (access(leat_program(), X_OK))
		skip(); /* this test alone was built */
	snprintf(url, sizeof(url), "%s/t", flow.local_url);
	snprintf(bait, sizeof(bait), "%s/t", flow.twin);
	assert_int_equal(mkdir(at("precious"), 0755), 0);
	write_file(at("precious/f"), "precious");
	for (unsigned i = 0; i < ROUNDS; i++) {
		make_tree();
		atomic_store(&stop, false);
		assert_int_equal(pthread_create(&thread, NULL, exchange, NULL), 0);
		if (!strcmp(command, "rm"))
			run_leat("rm", url, NULL);
		else
			run_leat("cp", bait, flow.local_url);
		atomic_store(&stop, true);
		pthread_join(thread, NULL);
		assert_precious();
		if (is_there("t"))
			leat_flow_remove(at("t"));
	}
	leat_flow_remove(at("precious"));
}

static void rm_follows_no_link(void **state)
{
	(void)state;
	races("rm");
}

static void cp_follows_no_link(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/t", flow.twin);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/t/d", flow.twin);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/t/d/f", flow.twin);
	write_file(path, "new");
	snprintf(path, sizeof(path), "%s/t/d/g", flow.twin);
	write_file(path, "new");
	races("cp");
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
		cmocka_unit_test(begins_there), cmocka_unit_test(objects),
		cmocka_unit_test(rm_follows_no_link),
		cmocka_unit_test(cp_follows_no_link),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
