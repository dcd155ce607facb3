/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_node.c - what the functions of nodes do to the files of an export, and which errors they return
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "leat_flow.h"

LOG_DEFINE("test_leat_node");

#define NAME51 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define NAME255 NAME51 NAME51 NAME51 NAME51 NAME51
_Static_assert(sizeof(NAME255) == 256, "the longest name");

static struct leat_flow flow;
static struct leat *m;
static struct leat_node *top; /* of the directory "t", which each test fills */

static const char *at(const char *name)
{
	static char paths[4][1024];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/t/%s", flow.export, name);
	return path;
}

static struct stat stat_at(const char *name)
{
	struct stat st = { 0 };

	if (lstat(at(name), &st))
		fail_msg("no %s", name);
	return st;
}

static bool is_there(const char *name)
{
	struct stat st;

	return !lstat(at(name), &st);
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(at(name), "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static struct leat_node *lookup(struct leat_node *dir, const char *path)
{
	struct leat_node *n = NULL;
	int rc = leat_node_lookup(dir, path, &n, NULL);

	if (rc)
		fail_msg("%s: %d", path ? path : "the node", rc);
	return n;
}

/* The attributes of @name as the server's file system has them are those in @st. */
static void assert_stat(const char *name, const struct stat *st)
{
	struct stat want = stat_at(name);

	assert_int_equal(st->st_ino, want.st_ino);
	assert_int_equal(st->st_mode, want.st_mode);
	assert_int_equal(st->st_size, want.st_size);
	assert_int_equal(st->st_nlink, want.st_nlink);
	assert_int_equal(st->st_uid, want.st_uid);
	assert_int_equal(st->st_mtim.tv_sec, want.st_mtim.tv_sec);
	assert_int_equal(st->st_mtim.tv_nsec, want.st_mtim.tv_nsec);
}

/* @n is the object called @name. Drops the reference. */
static void assert_node(const char *name, struct leat_node *n)
{
	struct stat st;

	assert_non_null(n);
	assert_int_equal(leat_node_getattr(n, NULL, &st), 0);
	assert_int_equal(st.st_ino, stat_at(name).st_ino);
	leat_node_put(n);
}

static void lookups(void **state)
{
	struct leat_node *n, *d;
	struct stat st;

	(void)state;
	assert_int_equal(mkdir(at("d"), 0755), 0);
	assert_int_equal(mkdir(at("d/e"), 0755), 0);
	write_file("d/e/f", "file");
	assert_int_equal(symlink("d/e", at("l")), 0);
	d = lookup(top, "d");
	assert_node("d", leat_node_ref(d));
	assert_int_equal(leat_node_lookup(d, "e/f", &n, &st), 0);
	assert_stat("d/e/f", &st);
	assert_node("d/e/f", n);
	assert_node("d/e/f", lookup(d, "../l/../e/./f"));
	assert_node("d", lookup(d, ""));
	assert_node("d", lookup(d, NULL));
	assert_node("d", lookup(d, "/t/d"));
	/* a link in the last component is not followed, one on the way is */
	assert_int_equal(leat_node_lookup(top, "l", &n, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(leat_node_lookup(n, "f", &(struct leat_node *){ NULL }, NULL), -ENOTDIR);
	assert_node("l", n);
	assert_node("d/e", lookup(top, "l/"));
	assert_node("d/e/f", lookup(top, "l/f"));
	assert_int_equal(leat_node_get(m, "t/l", &n), 0);
	assert_node("d/e", n);
	/* neither output is needed */
	assert_int_equal(leat_node_lookup(d, "e", NULL, NULL), 0);
	assert_int_equal(leat_node_lookup(d, "none", NULL, NULL), -ENOENT);
	assert_int_equal(leat_node_lookup(d, "none/x", NULL, NULL), -ENOENT);
	assert_int_equal(leat_node_lookup(d, NAME255, NULL, NULL), -ENOENT);
	assert_int_equal(leat_node_lookup(d, NAME255 "n", NULL, NULL), -ENAMETOOLONG);
	/* what is no directory */
	n = lookup(d, "e/f");
	assert_int_equal(leat_node_lookup(n, "x", NULL, NULL), -ENOTDIR);
	assert_int_equal(leat_node_lookup(n, ".", NULL, NULL), -ENOTDIR);
	assert_int_equal(leat_node_mkdir(n, "x", 0755, NULL, NULL), -ENOTDIR);
	leat_node_put(n);
	leat_node_put(d);
}

/* ".." ends at the root of the export. */
static void root(void **state)
{
	struct leat_node *n, *up, *again;
	struct stat st, want;

	(void)state;
	assert_int_equal(stat(flow.export, &want), 0);
	assert_int_equal(leat_node_get(m, "/", &n), 0);
	assert_int_equal(leat_node_lookup(n, "..", &up, &st), 0);
	assert_int_equal(st.st_ino, want.st_ino);
	assert_int_equal(leat_node_lookup(up, "../../t/..", &again, &st), 0);
	assert_int_equal(st.st_ino, want.st_ino);
	leat_node_put(again);
	leat_node_put(up);
	assert_int_equal(leat_node_getattr(top, "../..", &st), 0);
	assert_int_equal(st.st_ino, want.st_ino);
	assert_int_equal(leat_node_rmdir(n, ".."), -ENOTEMPTY);
	assert_int_equal(leat_node_rmdir(n, "/"), -EBUSY);
	leat_node_put(n);
}

/* A node stays what it is when its name changes. */
static void renamed(void **state)
{
	struct leat_node *d;

	(void)state;
	assert_int_equal(mkdir(at("d"), 0755), 0);
	assert_int_equal(mkdir(at("elsewhere"), 0755), 0);
	d = lookup(top, "d");
	assert_int_equal(rename(at("d"), at("moved")), 0);
	assert_int_equal(symlink("elsewhere", at("d")), 0);
	assert_int_equal(leat_node_mkdir(d, "x", 0755, NULL, NULL), 0);
	assert_true(is_there("moved/x"));
	assert_int_equal(leat_node_rename(d, "x", top, "y"), 0);
	assert_true(is_there("y"));
	leat_node_put(d);
}

static void makes(void **state)
{
	struct leat_node *d, *n, *f;
	char target[8] = "";
	struct stat st;

	(void)state;
	assert_int_equal(leat_node_mkdir(top, "d", 0751, &d, &st), 0);
	assert_stat("d", &st);
	assert_int_equal(st.st_mode, S_IFDIR | 0751);
	assert_int_equal(leat_node_mkdir(top, "d", 0751, &n, &st), -EEXIST);
	assert_int_equal(leat_node_symlink(d, "target", "s", &n, &st), 0);
	assert_stat("d/s", &st);
	assert_int_equal(leat_node_readlink(n, NULL, target, sizeof(target)), 6);
	assert_string_equal(target, "target");
	assert_node("d/s", n);
	assert_int_equal(leat_node_readlink(d, "s", target, 3), 3);
	assert_int_equal(leat_node_readlink(d, "", target, 3), -EINVAL);
	assert_int_equal(leat_node_mknod(d, "fifo", S_IFIFO | 0600, 0, &n, &st), 0);
	assert_stat("d/fifo", &st);
	assert_true(S_ISFIFO(st.st_mode));
	assert_node("d/fifo", n);
	assert_int_equal(leat_node_mknod(d, "plain", S_IFREG | 0604, 0, &n, NULL), 0);
	assert_node("d/plain", n);
	assert_int_equal(leat_node_mknod(d, "x", S_IFDIR | 0604, 0, NULL, NULL), -EPERM);
	/* another name, of a file and of a link */
	f = lookup(d, "plain");
	assert_int_equal(leat_node_link(f, top, "hard"), 0);
	assert_int_equal(leat_node_link(f, top, "hard"), -EEXIST);
	assert_int_equal(stat_at("hard").st_ino, stat_at("d/plain").st_ino);
	leat_node_put(f);
	f = lookup(d, "s");
	assert_int_equal(leat_node_link(f, d, "s2"), 0);
	assert_true(S_ISLNK(stat_at("d/s2").st_mode));
	leat_node_put(f);
	assert_int_equal(leat_node_rename(d, "s2", top, "../t/s3"), 0);
	assert_true(is_there("s3") && !is_there("d/s2"));
	assert_int_equal(leat_node_unlink(top, "s3"), 0);
	assert_int_equal(leat_node_unlink(top, "s3"), -ENOENT);
	assert_int_equal(leat_node_unlink(top, "d"), -EISDIR);
	assert_int_equal(leat_node_rmdir(top, "d"), -ENOTEMPTY);
	assert_int_equal(leat_node_rmdir(top, "hard"), -ENOTDIR);
	assert_int_equal(leat_node_mkdir(d, "sub/", 0700, NULL, NULL), 0);
	assert_int_equal(leat_node_rmdir(d, "sub"), 0);
	assert_false(is_there("d/sub"));
	assert_int_equal(leat_node_symlink(d, "x", "new/", NULL, NULL), -ENOENT);
	leat_node_put(d);
}

/* Functions that need a name do not accept the node itself. */
static void names(void **state)
{
	static const char *const none[] = { "", NULL };

	(void)state;
	for (int i = 0; i < 2; i++) {
		int want = i ? -EINVAL : -ENOENT;
		struct leat_file *f;

		assert_int_equal(leat_node_mkdir(top, none[i], 0755, NULL, NULL), want);
		assert_int_equal(leat_node_symlink(top, "x", none[i], NULL, NULL), want);
		assert_int_equal(leat_node_mknod(top, none[i], S_IFIFO, 0, NULL, NULL), want);
		assert_int_equal(leat_node_unlink(top, none[i]), want);
		assert_int_equal(leat_node_rmdir(top, none[i]), want);
		assert_int_equal(leat_node_link(top, top, none[i]), want);
		assert_int_equal(leat_node_rename(top, none[i], top, "x"), want);
		assert_int_equal(leat_node_rename(top, "x", top, none[i]), want);
		assert_int_equal(leat_node_create(top, none[i], O_RDWR, 0644, NULL, NULL, &f), want);
	}
	assert_int_equal(leat_node_mkdir(top, ".", 0755, NULL, NULL), -EEXIST);
	assert_int_equal(leat_node_mkdir(top, NAME255, 0755, NULL, NULL), 0);
	assert_int_equal(leat_node_mkdir(top, NAME255 "n", 0755, NULL, NULL), -ENAMETOOLONG);
	assert_int_equal(leat_node_rmdir(top, NAME255), 0);
	assert_int_equal(leat_node_mkdir(NULL, "x", 0755, NULL, NULL), -EINVAL);
	assert_int_equal(leat_node_lookup(NULL, NULL, NULL, NULL), -EINVAL);
	assert_int_equal(leat_node_rename(top, "x", NULL, "x"), -EINVAL);
	assert_int_equal(leat_node_get(NULL, "x", NULL), -EINVAL);
	assert_int_equal(leat_node_get(m, NULL, NULL), -EINVAL);
}

static void opens(void **state)
{
	struct leat_node *n, *same, *l;
	struct leat_file *f;
	char text[8] = "";
	struct stat st;

	(void)state;
	assert_int_equal(leat_node_create(top, "f", O_RDWR | O_EXCL, 0640, &n, &st, &f), 0);
	assert_stat("f", &st);
	assert_int_equal(st.st_mode, S_IFREG | 0640);
	assert_int_equal(leat_pwrite(f, "hello", 5, 0), 5);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_node_create(top, "f", O_RDWR | O_EXCL, 0640, &same, &st, &f), -EEXIST);
	assert_int_equal(leat_node_create(top, "f", O_RDONLY, 0640, &same, &st, &f), 0);
	assert_stat("f", &st);
	assert_node("f", same);
	assert_int_equal(leat_pread(f, text, 8, 0), 5);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_node_create(top, "f", O_RDWR | O_TRUNC, 0, NULL, &st, &f), 0);
	assert_stat("f", &st);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_node_create(top, "g", O_RDWR, 0604, &same, &st, &f), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0604);
	assert_node("g", same);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_node_create(top, "h", O_PATH, 0604, &same, &st, &f), -EINVAL);
	/* by the node alone, whatever its name is by now */
	assert_int_equal(rename(at("f"), at("moved")), 0);
	assert_int_equal(leat_node_open(n, NULL, O_WRONLY, 0, &f), 0);
	assert_int_equal(leat_pwrite(f, "again", 5, 0), 5);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(stat_at("moved").st_size, 5);
	assert_int_equal(leat_node_open(n, NULL, O_RDWR | O_CREAT | O_EXCL, 0, &f), -EEXIST);
	assert_int_equal(leat_node_open(top, "", O_RDONLY | O_DIRECTORY, 0, &f), 0);
	assert_int_equal(leat_fchdir(m, f), 0);
	assert_int_equal(leat_stat(m, "moved", &st), 0);
	assert_int_equal(leat_fchdir(m, NULL), 0);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_node_open(top, "", O_WRONLY, 0, &f), -EISDIR);
	/* openat(2): links are followed, but a node of a link is not */
	assert_int_equal(symlink("moved", at("l")), 0);
	assert_int_equal(leat_node_open(top, "l", O_RDONLY, 0, &f), 0);
	assert_int_equal(leat_pread(f, text, 8, 0), 5);
	assert_memory_equal(text, "again", 5);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_node_open(top, "l", O_RDONLY | O_NOFOLLOW, 0, &f), -ELOOP);
	l = lookup(top, "l");
	assert_int_equal(leat_node_open(l, NULL, O_RDONLY, 0, &f), -ELOOP);
	leat_node_put(l);
	leat_node_put(n);
}

static const struct leat_setattr none = { .size = sizeof(none) };

static void sets(void **state)
{
	struct leat_setattr s = none;
	struct leat_node *n;
	struct stat st;

	(void)state;
	write_file("f", "text");
	n = lookup(top, "f");
	assert_int_equal(leat_node_getattr(n, NULL, &st), 0);
	s.mask = LEAT_SET_MODE | LEAT_SET_SIZE | LEAT_SET_MTIME | LEAT_SET_ATIME | LEAT_SET_UID | LEAT_SET_GID |
		 LEAT_SET_GUARD;
	s.mode = 0604;
	s.uid = geteuid();
	s.gid = getegid();
	s.file_size = 100;
	s.mtime = (struct timespec){ 1000000000, 5 };
	s.atime = (struct timespec){ 1000000001, 6 };
	/* the guard has another ctime: nothing changes */
	s.guard_ctime = st.st_ctim;
	s.guard_ctime.tv_sec--;
	assert_int_equal(leat_node_setattr(n, NULL, &s, &st), -EBUSY);
	assert_int_equal(stat_at("f").st_size, 4);
	s.guard_ctime.tv_sec++;
	assert_int_equal(leat_node_setattr(n, NULL, &s, &st), 0);
	assert_stat("f", &st);
	assert_int_equal(st.st_mode, S_IFREG | 0604);
	assert_int_equal(st.st_size, 100);
	assert_int_equal(st.st_mtim.tv_sec, 1000000000);
	assert_int_equal(st.st_atim.tv_sec, 1000000001);
	assert_int_equal(st.st_atim.tv_nsec, 6);
	/* only what the mask has */
	s = none;
	s.mask = LEAT_SET_MODE;
	s.mode = 0600;
	s.file_size = 7;
	assert_int_equal(leat_node_setattr(top, "f", &s, NULL), 0);
	assert_stat("f", &(struct stat){ .st_ino = st.st_ino, .st_mode = S_IFREG | 0600, .st_size = 100, .st_nlink = 1,
					 .st_uid = geteuid(), .st_mtim = { 1000000000, 5 } });
	s.mask = LEAT_SET_MTIME;
	s.mtime.tv_nsec = UTIME_NOW;
	assert_int_equal(leat_node_setattr(n, "", &s, &st), 0);
	assert_true(st.st_mtim.tv_sec > 1000000000);
	/* a link is changed itself */
	assert_int_equal(symlink("f", at("l")), 0);
	s.mtime = (struct timespec){ 1200000000, 0 };
	assert_int_equal(leat_node_setattr(top, "l", &s, &st), 0);
	assert_stat("l", &st);
	assert_int_equal(stat_at("l").st_mtim.tv_sec, 1200000000);
	s.mask = 0;
	assert_int_equal(leat_node_setattr(n, NULL, &s, &st), 0);
	assert_stat("f", &st);
	leat_node_put(n);
}

static void refused_sets(void **state)
{
	struct {
		struct leat_setattr s;
		uint64_t more[2];
	} newer = { .s = { .size = sizeof(newer), .mask = LEAT_SET_MODE, .mode = 0611 } };
	struct leat_setattr s = none;
	struct leat_node *n;

	(void)state;
	write_file("f", "text");
	n = lookup(top, "f");
	assert_int_equal(leat_node_setattr(n, NULL, NULL, NULL), -EINVAL);
	s.size--;
	assert_int_equal(leat_node_setattr(n, NULL, &s, NULL), -EINVAL);
	s.size = 0;
	assert_int_equal(leat_node_setattr(n, NULL, &s, NULL), -EINVAL);
	s.size = SIZE_MAX;
	assert_int_equal(leat_node_setattr(n, NULL, &s, NULL), -E2BIG);
	s = none;
	s.mask = 2 * LEAT_SET_GUARD;
	assert_int_equal(leat_node_setattr(n, NULL, &s, NULL), -EINVAL);
	s.mask = LEAT_SET_UID;
	s.uid = (uid_t)-1;
	assert_int_equal(leat_node_setattr(n, NULL, &s, NULL), -EINVAL);
	s.mask = LEAT_SET_SIZE;
	s.file_size = UINT64_MAX;
	assert_int_equal(leat_node_setattr(n, NULL, &s, NULL), -EINVAL);
	s.file_size = 1;
	assert_int_equal(leat_node_setattr(top, NULL, &s, NULL), -EISDIR);
	s.mask = LEAT_SET_ATIME;
	s.atime.tv_nsec = 1000000000;
	assert_int_equal(leat_node_setattr(n, NULL, &s, NULL), -EINVAL);
	s.atime = (struct timespec){ -1, 0 };
	assert_int_equal(leat_node_setattr(n, NULL, &s, NULL), -EOVERFLOW);
	s.mask = LEAT_SET_GUARD;
	s.guard_ctime.tv_nsec = UTIME_OMIT;
	assert_int_equal(leat_node_setattr(n, NULL, &s, NULL), -EINVAL);
	assert_int_equal(leat_node_setattr(n, NULL, &newer.s, NULL), 0);
	assert_int_equal(stat_at("f").st_mode, S_IFREG | 0611);
	newer.more[1] = 1;
	assert_int_equal(leat_node_setattr(n, NULL, &newer.s, NULL), -E2BIG);
	leat_node_put(n);
}

static void others(void **state)
{
	struct leat_acl_entry v[8];
	const struct leat_dirent *e;
	struct statvfs vfs, want;
	struct leat_node *d;
	struct leat_dir *dir;
	struct stat st;
	unsigned found = 0;

	(void)state;
	assert_int_equal(mkdir(at("d"), 0755), 0);
	write_file("d/f", "text");
	assert_int_equal(symlink("d", at("l")), 0);
	d = lookup(top, "d");
	assert_int_equal(leat_node_access(d, NULL, R_OK | X_OK), 0);
	assert_int_equal(leat_node_access(d, "f", X_OK), -EACCES);
	assert_int_equal(leat_node_access(d, "g", F_OK), -ENOENT);
	assert_int_equal(leat_node_access(d, "f", 8), -EINVAL);
	assert_int_equal(leat_node_statvfs(d, "f", &vfs), 0);
	assert_int_equal(statvfs(flow.export, &want), 0);
	assert_int_equal(vfs.f_files, want.f_files);
	assert_int_equal(leat_node_opendir(top, "l", &dir), 0);
	while (leat_readdir(dir, &e) == 1)
		found += !strcmp(e->name, "f");
	assert_int_equal(found, 1);
	leat_closedir(dir);
	assert_int_equal(leat_node_opendir(d, NULL, &dir), 0);
	leat_closedir(dir);
	assert_int_equal(leat_node_opendir(d, "f", &dir), -ENOTDIR);
	assert_int_equal(leat_node_acl_get(d, "f", v, 8), 3);
	assert_int_equal(v[0].tag, LEAT_ACL_USER_OBJ);
	v[0].perm = 4;
	assert_int_equal(leat_node_acl_set(d, "f", v, 3), 0);
	assert_int_equal(stat_at("d/f").st_mode & 0700, 0400);
	assert_int_equal(leat_node_acl_set(d, "f", v, 0), -EINVAL);
	assert_int_equal(leat_node_acl_get(d, "none", v, 8), -ENOENT);
	assert_int_equal(leat_node_getattr(top, "l", &st), 0);
	assert_stat("l", &st);
	leat_node_put(d);
}

/* Removes @name below @depth directories called @part. */
static void remove_deep(const char *part, unsigned depth, const char *name)
{
	char path[1024];
	size_t len = (size_t)snprintf(path, sizeof(path), "%s", at(""));

	for (unsigned n = 0; n < depth; n++)
		len += (size_t)snprintf(path + len, sizeof(path) - len, "%s", part);
	snprintf(path + len, sizeof(path) - len, "%s", name);
	assert_int_equal(unlink(path), 0);
}

/* Messages have the path at which the node was found. */
static void messages(void **state)
{
	struct leat_node *n = leat_node_ref(top), *below;
	struct leat_file *f;

	(void)state;
	assert_int_equal(leat_node_unlink(top, "none"), -ENOENT);
	assert_non_null(strstr(leat_error(m), "/x/t/none: "));
	assert_int_equal(leat_node_rename(top, "none", top, "other"), -ENOENT);
	assert_non_null(strstr(leat_error(m), "/x/t/none to /t/other: "));
	/* of a long path, the last components */
	for (int i = 0; i < 8; i++) {
		assert_int_equal(leat_node_mkdir(n, NAME51, 0755, &below, NULL), 0);
		leat_node_put(n);
		n = below;
	}
	assert_int_equal(leat_node_unlink(n, "none"), -ENOENT);
	assert_non_null(strstr(leat_error(m), "/" NAME51 "/" NAME51 "/none: "));
	assert_null(strstr(leat_error(m), "/t/"));
	assert_int_equal(leat_node_create(n, "f", O_RDONLY, 0644, NULL, NULL, &f), 0);
	remove_deep("/" NAME51, 8, "/f"); /* not by this mount, which would keep it */
	assert_int_equal(leat_fchmod(f, 0600), -ESTALE);
	assert_non_null(strstr(leat_error(m), "/" NAME51 "/f: "));
	assert_int_equal(leat_close(f), 0);
	leat_node_put(n);
}

/* ---- each of them over each transport ---- */

static struct {
	const char *base, *options;
} way;

static int begin(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/t", flow.export);
	assert_int_equal(mkdir(path, 0755), 0);
	m = leat_flow_mount(way.base, way.options);
	assert_int_equal(leat_node_get(m, "t", &top), 0);
	return 0;
}

static int end(void **state)
{
	char path[128];

	(void)state;
	leat_node_put(top);
	leat_umount(m);
	snprintf(path, sizeof(path), "%s/t", flow.export);
	leat_flow_remove(path);
	return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(lookups), TEST(root),         TEST(renamed), TEST(makes),	  TEST(names),
		TEST(opens),   TEST(sets),         TEST(refused_sets), TEST(others), TEST(messages),
	};
	int failed = 0;

	leat_flow_create(&flow);
	for (int i = 0; i < 4; i++) {
		way.base = i % 2 ? flow.tcp_url : flow.local_url;
		way.options = i < 2 ? NULL : "cache=none";
		failed += cmocka_run_group_tests_name(way.base, tests, NULL, NULL);
	}
	leat_flow_destroy(&flow);
	return failed;
}
