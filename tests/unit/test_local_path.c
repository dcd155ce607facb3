/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_path.c - which local sockets are safe: the rule for a directory, the walk along a path, and
 * which listener is trusted
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "local_int.h"
#include "local_path.h"

#define STRANGER 1001u
#define UNMAPPED 65534u

static char top[64];    /* what the tests do is below this */

static char *at(const char *name)
{
	static char path[4][200];
	static unsigned next;

	next = (next + 1) % 4;
	snprintf(path[next], sizeof(path[next]), "%s/%s", top, name);
	return path[next];
}

static void make_dir(const char *name, mode_t mode)
{
	assert_int_equal(mkdir(at(name), 0700), 0);
	assert_int_equal(chmod(at(name), mode), 0);
}

static int make_socket(const char *name)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_true(strlen(at(name)) < sizeof(sun.sun_path));
	strcpy(sun.sun_path, at(name));
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

/* Walks to @path, trusting root and the own user. Return: as rr_local_path_open(). */
static int walk_to(const char *path, char *why)
{
	struct rr_trust t;
	struct stat st;
	int fd = -1, rc;

	rr_trust_init(&t, 0);
	rc = rr_local_path_open(path, &t, &fd);
	if (why)
		memcpy(why, t.why, sizeof(t.why));
	if (rc) {
		assert_int_equal(fd, -1);
		assert_true(rc != -EPERM || t.why[0]);
		return rc;
	}
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	close(fd);
	return 0;
}

static void rule(void **state)
{
	static const struct {
		uid_t owner;
		mode_t mode;
		enum rr_dir_safety safety;
	} rows[] = {
		{ 0, 0755, RR_DIR_SAFE },
		{ 0, 0700, RR_DIR_SAFE },
		{ 7, 0755, RR_DIR_SAFE },
		{ 9, 0755, RR_DIR_SAFE },
		{ 8, 0755, RR_DIR_OWNER },
		{ 8, 01777, RR_DIR_OWNER },
		{ 8, 0500, RR_DIR_OWNER },
		{ 65534, 0755, RR_DIR_OWNER },
		{ 0, 01777, RR_DIR_STICKY },
		{ 7, 01770, RR_DIR_STICKY },
		{ 0, 01755, RR_DIR_SAFE },
		{ 0, 0777, RR_DIR_WRITABLE },
		{ 0, 0775, RR_DIR_WRITABLE },
		{ 7, 0757, RR_DIR_WRITABLE },
		{ 0, 02775, RR_DIR_WRITABLE },
	};
	const struct rr_trust t = { .uids = { 0, 7, 9 }, .nuids = 3 };
	struct rr_trust mine;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stat st = { .st_uid = rows[i].owner, .st_mode = S_IFDIR | rows[i].mode };

		assert_int_equal(rr_dir_judge(&t, &st), rows[i].safety);
	}
	rr_trust_init(&mine, 0);
	assert_true(rr_trust_has(&mine, 0));
	assert_true(rr_trust_has(&mine, geteuid()) || geteuid() == 65534);
	assert_false(rr_trust_has(&mine, STRANGER + 1));
	rr_trust_init(&mine, STRANGER + 1);
	assert_true(rr_trust_has(&mine, STRANGER + 1));
}

static void ways(void **state)
{
	char why[128];
	int fd;

	(void)state;
	make_dir("safe", 0755);
	make_dir("safe/in", 0700);
	fd = make_socket("safe/in/sock");
	assert_int_equal(walk_to(at("safe/in/sock"), NULL), 0);
	assert_int_equal(walk_to(at("safe/./in//../in/sock"), NULL), 0);
	/* no socket */
	assert_int_equal(walk_to(at("safe/in/none"), NULL), -ENOENT);
	assert_int_equal(walk_to(at("safe/none/sock"), NULL), -ENOENT);
	assert_int_equal(walk_to(at("safe/in"), NULL), -ENOTSOCK);
	assert_int_equal(walk_to("/", NULL), -ENOTSOCK);
	assert_int_equal(walk_to(at("safe/in/sock/x"), NULL), -ENOTDIR);
	assert_int_equal(walk_to("safe/in/sock", NULL), -EINVAL);
	/* others may write to a directory of the path, the first or the last */
	assert_int_equal(chmod(at("safe/in"), 0722), 0);
	assert_int_equal(walk_to(at("safe/in/sock"), why), -EPERM);
	assert_non_null(strstr(why, "others could replace the socket, by mode 0722 of /"));
	assert_non_null(strstr(why, "/safe/in"));
	assert_int_equal(chmod(at("safe/in"), 0755), 0);
	assert_int_equal(chmod(at("safe"), 0770), 0);
	assert_int_equal(walk_to(at("safe/in/sock"), why), -EPERM);
	/* they may, but not to what is ours */
	assert_int_equal(chmod(at("safe"), 01777), 0);
	assert_int_equal(walk_to(at("safe/in/sock"), NULL), 0);
	close(fd);
}

static void links(void **state)
{
	char target[200], why[128];
	int fd;

	(void)state;
	make_dir("real", 0755);
	make_dir("open", 0777);
	make_dir("links", 0755);
	fd = make_socket("real/sock");
	assert_int_equal(symlink(at("real/sock"), at("links/absolute")), 0);
	assert_int_equal(symlink("../real/sock", at("links/relative")), 0);
	assert_int_equal(symlink("../real", at("links/dir")), 0);
	assert_int_equal(symlink("loop", at("links/loop")), 0);
	assert_int_equal(symlink("nowhere", at("links/dead")), 0);
	assert_int_equal(walk_to(at("links/absolute"), NULL), 0);
	assert_int_equal(walk_to(at("links/relative"), NULL), 0);
	assert_int_equal(walk_to(at("links/dir/sock"), NULL), 0);
	assert_int_equal(walk_to(at("links/dir/../real/sock"), NULL), 0);
	assert_int_equal(walk_to(at("links/loop"), NULL), -ELOOP);
	assert_int_equal(walk_to(at("links/dead"), NULL), -ENOENT);
	/* what a link leads through counts as well */
	assert_int_equal(symlink("../links", at("open/way")), 0);
	assert_int_equal(symlink("../open/way/relative", at("links/through")), 0);
	assert_int_equal(walk_to(at("links/through"), why), -EPERM);
	assert_non_null(strstr(why, "/open"));
	snprintf(target, sizeof(target), "%s/open/../real/sock", top);
	assert_int_equal(symlink(target, at("links/past")), 0);
	assert_int_equal(walk_to(at("links/past"), NULL), -EPERM);
	close(fd);
}

/* Directories and entries of another user. */
static void strangers(void **state)
{
	char why[128];
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip(); /* only root can give files away */
	make_dir("theirs", 0755);
	make_dir("tmp", 01777);
	fd = make_socket("theirs/sock");
	assert_int_equal(chown(at("theirs"), STRANGER, STRANGER), 0);
	assert_int_equal(walk_to(at("theirs/sock"), why), -EPERM);
	assert_non_null(strstr(why, "uid 1001 could replace the socket, as owner of /"));
	assert_non_null(strstr(why, "/theirs"));
	/* what a container shows for every user that it does not map */
	assert_int_equal(chown(at("theirs"), UNMAPPED, UNMAPPED), 0);
	assert_int_equal(walk_to(at("theirs/sock"), why), -EPERM);
	assert_non_null(strstr(why, "uid 65534 (nobody, or unmapped here) could replace the socket, as owner of "));
	assert_string_equal(why + strlen(why) - strlen("/theirs"), "/theirs");
	close(fd);
	/* in a sticky directory: a socket, a link, a directory */
	fd = make_socket("tmp/sock");
	assert_int_equal(walk_to(at("tmp/sock"), NULL), 0);
	assert_int_equal(chown(at("tmp/sock"), STRANGER, STRANGER), 0);
	assert_int_equal(walk_to(at("tmp/sock"), why), -EPERM);
	assert_non_null(strstr(why, "uid 1001 could replace"));
	assert_non_null(strstr(why, "/tmp/sock"));
	close(fd);
	make_dir("mine", 0755);
	fd = make_socket("mine/sock");
	assert_int_equal(symlink("../mine/sock", at("tmp/link")), 0);
	assert_int_equal(walk_to(at("tmp/link"), NULL), 0);
	assert_int_equal(lchown(at("tmp/link"), STRANGER, STRANGER), 0);
	assert_int_equal(walk_to(at("tmp/link"), NULL), -EPERM);
	/* in a directory that only root can write, the owner of the socket does not matter: root has put it there */
	assert_int_equal(chown(at("mine/sock"), STRANGER, STRANGER), 0);
	assert_int_equal(walk_to(at("mine/sock"), NULL), 0);
	close(fd);
}

/* Connects, trusting root, the own user and @other. Return: 0 or a negative errno */
static int dial(const char *name, uid_t other, char *why)
{
	struct rr_trust t;
	int fd, rc;

	rr_trust_init(&t, other);
	rc = rr_local_sock_dial_trusted(at(name), &t, &fd);
	if (why)
		memcpy(why, t.why, sizeof(t.why));
	if (!rc)
		close(fd);
	return rc;
}

static void listeners(void **state)
{
	int fd, status, ready[2];
	char why[128];
	pid_t pid;

	(void)state;
	make_dir("dial", 0755);
	fd = make_socket("dial/sock");
	assert_int_equal(dial("dial/sock", 0, NULL), -ECONNREFUSED);
	assert_int_equal(dial("dial/none", 0, NULL), -ECONNREFUSED);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(dial("dial/sock", 0, NULL), 0);
	close(fd);
	if (geteuid() != 0)
		skip(); /* the rest takes another user */
	/* root has made the socket, and another user listens on it */
	assert_int_equal(pipe(ready), 0);
	fd = make_socket("dial/handed");
	pid = fork();
	if (!pid) {
		if (setresuid(STRANGER, STRANGER, STRANGER) || listen(fd, 4) ||
		    write(ready[1], "x", 1) != 1)
			_exit(1);
		(void)pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], why, 1), 1);
	close(ready[0]);
	assert_int_equal(dial("dial/handed", 0, why), -EPERM);
	assert_non_null(strstr(why, "the listener's uid 1001 is neither root"));
	assert_int_equal(dial("dial/handed", STRANGER, NULL), 0);
	close(fd);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static int set_up(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	(void)umask(0);
	/* what is said has room for the whole of a path from there */
	snprintf(top, sizeof(top), "%s/leat-path.XXXXXX", tmp && strlen(tmp) < 24 ? tmp : "/tmp");
	return mkdtemp(top) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule),
		cmocka_unit_test(ways),
		cmocka_unit_test(links),
		cmocka_unit_test(strangers),
		cmocka_unit_test(listeners),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
