/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_names.c - every metadata function of leat.h against the same call on a local directory
 *
 * One script of steps is played twice: by libleat on the exported directory, and by the C library
 * in a twin directory. After each step the outcomes must be equal, and so must both trees as the
 * local file system shows them: names, types, modes, owners, links, sizes, link targets.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "leat_flow.h"

LOG_DEFINE("test_leat_names");

static struct leat_flow flow;

enum what { MKDIR, RMDIR, UNLINK, RENAME, LINK, SYMLINK, MKNOD, CHMOD, CHOWN, TRUNCATE, UTIMENS,
	    ACCESS, OPEN, STAT, LSTAT, READLINK };

struct step {
	enum what what;
	const char *a, *b;
	uint64_t n, n2; /* mode, size, uid and gid, open flags and mode */
};

#define NAME255 \
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" \
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" \
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" \
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
_Static_assert(sizeof(NAME255) == 256, "the longest name");
#define ODD "odd \t\n\\\"'*?\x01\x7f\x80\xff%"

static const struct step script[] = {
	{ MKDIR, "d", NULL, 0755, 0 },
	{ MKDIR, "d", NULL, 0755, 0 },
	{ MKDIR, "d/e/", NULL, 01777, 0 },
	{ MKDIR, "none/x", NULL, 0755, 0 },
	{ MKDIR, ".", NULL, 0755, 0 },
	{ MKDIR, "d/..", NULL, 0755, 0 },
	{ OPEN, "f", NULL, O_RDWR | O_CREAT, 0640 },
	{ OPEN, "f", NULL, O_RDWR | O_CREAT | O_EXCL, 0640 },
	{ OPEN, "x", NULL, O_WRONLY | O_CREAT | O_EXCL, 0444 },
	{ OPEN, "x/", NULL, O_RDONLY, 0 },
	{ OPEN, "d", NULL, O_RDONLY, 0 },
	{ OPEN, "d", NULL, O_WRONLY, 0 },
	{ OPEN, "f", NULL, O_RDONLY | O_DIRECTORY, 0 },
	{ OPEN, "none", NULL, O_RDONLY, 0 },
	{ OPEN, NAME255, NULL, O_RDWR | O_CREAT, 0600 },
	{ OPEN, NAME255 "n", NULL, O_RDWR | O_CREAT, 0600 },
	{ OPEN, ODD, NULL, O_RDWR | O_CREAT, 0600 },
	{ MKDIR, "f/x", NULL, 0755, 0 },
	{ TRUNCATE, "f", NULL, 12345, 0 },
	{ TRUNCATE, "f", NULL, 5000000000, 0 },
	{ TRUNCATE, "f", NULL, 1, 0 },
	{ TRUNCATE, "d", NULL, 1, 0 },
	{ TRUNCATE, "none", NULL, 1, 0 },
	{ OPEN, "f", NULL, O_RDWR | O_TRUNC, 0 },
	{ SYMLINK, "f", "s", 0, 0 },
	{ SYMLINK, "d/e", "sd", 0, 0 },
	{ SYMLINK, "nowhere", "dangling", 0, 0 },
	{ SYMLINK, "loop", "loop", 0, 0 },
	{ SYMLINK, "x", "s", 0, 0 },
	{ SYMLINK, "x", "new/", 0, 0 },
	{ SYMLINK, "../f", "d/up", 0, 0 },
	{ SYMLINK, "", "emptytarget", 0, 0 },
	{ READLINK, "s", NULL, 100, 0 },
	{ READLINK, "d/up", NULL, 100, 0 },
	{ READLINK, "d/up", NULL, 2, 0 },
	{ READLINK, "f", NULL, 100, 0 },
	{ READLINK, "none", NULL, 100, 0 },
	{ STAT, "s", NULL, 0, 0 },
	{ STAT, "d/up", NULL, 0, 0 },
	{ STAT, "sd/../../f", NULL, 0, 0 },
	{ STAT, "loop", NULL, 0, 0 },
	{ STAT, "dangling", NULL, 0, 0 },
	{ LSTAT, "dangling", NULL, 0, 0 },
	{ LSTAT, "sd", NULL, 0, 0 },
	{ LSTAT, "sd/", NULL, 0, 0 },
	{ STAT, "f/", NULL, 0, 0 },
	{ STAT, "f/.", NULL, 0, 0 },
	{ OPEN, "s", NULL, O_RDONLY | O_NOFOLLOW, 0 },
	{ OPEN, "dangling", NULL, O_WRONLY | O_CREAT, 0600 },
	{ OPEN, "loop", NULL, O_RDONLY, 0 },
	{ CHMOD, "f", NULL, 0700, 0 },
	{ CHMOD, "s", NULL, 0701, 0 },
	{ CHMOD, "d", NULL, 0750, 0 },
	{ CHMOD, "none", NULL, 0750, 0 },
	{ CHOWN, "f", NULL, 12, 34 },
	{ CHOWN, "s", NULL, 56, UINT64_MAX },
	{ CHOWN, "f", NULL, UINT64_MAX, 78 },
	{ CHOWN, "f", NULL, 0, 0 },
	{ UTIMENS, "f", NULL, 1000000000, 123456789 },
	{ UTIMENS, "d", NULL, 4294967295, 999999999 },
	{ UTIMENS, "f", NULL, 5, 1000000000 },
	{ UTIMENS, "none", NULL, 5, 5 },
	{ ACCESS, "f", NULL, F_OK, 0 },
	{ ACCESS, "f", NULL, R_OK | W_OK, 0 },
	{ ACCESS, "x", NULL, X_OK, 0 },
	{ ACCESS, "d", NULL, R_OK | W_OK | X_OK, 0 },
	{ ACCESS, "none", NULL, F_OK, 0 },
	{ LINK, "f", "hard", 0, 0 },
	{ LINK, "f", "hard", 0, 0 },
	{ LINK, "s", "hardsym", 0, 0 },
	{ LINK, "none", "hard2", 0, 0 },
	{ LINK, "f", "d/e/hard3", 0, 0 },
	{ MKNOD, "fifo", NULL, S_IFIFO | 0600, 0 },
	{ MKNOD, "sock", NULL, S_IFSOCK | 0600, 0 },
	{ MKNOD, "plain", NULL, S_IFREG | 0604, 0 },
	{ MKNOD, "fifo", NULL, S_IFIFO | 0600, 0 },
	{ RENAME, "hard", "moved", 0, 0 },
	{ RENAME, "moved", "d/moved", 0, 0 },
	{ RENAME, "f", "d/moved", 0, 0 },
	{ RENAME, "d", "d/e/in", 0, 0 },
	{ RENAME, "d/moved", "d/e", 0, 0 },
	{ RENAME, "d/e", "x", 0, 0 },
	{ RENAME, "none", "y", 0, 0 },
	{ RENAME, "x/", "y", 0, 0 },
	{ RENAME, "d/.", "y", 0, 0 },
	{ RENAME, "d/e/", "ee/", 0, 0 },
	{ RENAME, "ee", "d/e", 0, 0 },
	{ RMDIR, "d", NULL, 0, 0 },
	{ RMDIR, "x", NULL, 0, 0 },
	{ RMDIR, "none", NULL, 0, 0 },
	{ RMDIR, "d/.", NULL, 0, 0 },
	{ RMDIR, "d/e/..", NULL, 0, 0 },
	{ UNLINK, "d", NULL, 0, 0 },
	{ UNLINK, "x/", NULL, 0, 0 },
	{ UNLINK, "none", NULL, 0, 0 },
	{ UNLINK, "s", NULL, 0, 0 },
	{ UNLINK, "loop", NULL, 0, 0 },
	{ UNLINK, "fifo", NULL, 0, 0 },
	{ UNLINK, ODD, NULL, 0, 0 },
	{ UNLINK, NAME255, NULL, 0, 0 },
	{ UNLINK, "d/e/hard3", NULL, 0, 0 },
	{ RMDIR, "d/e/", NULL, 0, 0 },
	{ RMDIR, "sd/", NULL, 0, 0 },
};

/* What stat shows that must be equal in both places. */
static void print_stat(char *buf, size_t cap, const struct stat *st)
{
	snprintf(buf, cap, "%o %ju %u %u %jd", st->st_mode, (uintmax_t)st->st_nlink, st->st_uid,
		 st->st_gid, S_ISDIR(st->st_mode) ? 0 : (intmax_t)st->st_size);
}

static int64_t play_leat(struct leat *m, const struct step *s, char *text, size_t cap)
{
	struct timespec times[2] = { { (time_t)s->n, 0 }, { (time_t)s->n, (long)s->n2 } };
	struct leat_file *f;
	struct stat st;
	int64_t rc;

	switch (s->what) {
	case MKDIR:
		return leat_mkdir(m, s->a, (mode_t)s->n);
	case RMDIR:
		return leat_rmdir(m, s->a);
	case UNLINK:
		return leat_unlink(m, s->a);
	case RENAME:
		return leat_rename(m, s->a, s->b);
	case LINK:
		return leat_link(m, s->a, s->b);
	case SYMLINK:
		return leat_symlink(m, s->a, s->b);
	case MKNOD:
		return leat_mknod(m, s->a, (mode_t)s->n, 0);
	case CHMOD:
		return leat_chmod(m, s->a, (mode_t)s->n);
	case CHOWN:
		return leat_chown(m, s->a, (uid_t)s->n, (gid_t)s->n2);
	case TRUNCATE:
		return leat_truncate(m, s->a, s->n);
	case UTIMENS:
		return leat_utimens(m, s->a, times);
	case ACCESS:
		return leat_access(m, s->a, (int)s->n);
	case OPEN:
		rc = leat_open(m, s->a, (int)s->n, (mode_t)s->n2, &f);
		return rc ? rc : leat_close(f);
	case STAT:
	case LSTAT:
		rc = s->what == STAT ? leat_stat(m, s->a, &st) : leat_lstat(m, s->a, &st);
		if (!rc)
			print_stat(text, cap, &st);
		return rc;
	case READLINK:
		memset(text, 0, cap);
		return leat_readlink(m, s->a, text, s->n);
	}
	return -ENOSYS;
}

static int64_t play_local(const struct step *s, char *text, size_t cap)
{
	struct timespec times[2] = { { (time_t)s->n, 0 }, { (time_t)s->n, (long)s->n2 } };
	struct stat st;
	int64_t rc = -1;

	switch (s->what) {
	case MKDIR:
		rc = mkdir(s->a, (mode_t)s->n);
		break;
	case RMDIR:
		rc = rmdir(s->a);
		break;
	case UNLINK:
		rc = unlink(s->a);
		break;
	case RENAME:
		rc = rename(s->a, s->b);
		break;
	case LINK:
		rc = link(s->a, s->b);
		break;
	case SYMLINK:
		rc = symlink(s->a, s->b);
		break;
	case MKNOD:
		rc = mknod(s->a, (mode_t)s->n, 0);
		break;
	case CHMOD:
		rc = chmod(s->a, (mode_t)s->n);
		break;
	case CHOWN:
		rc = lchown(s->a, (uid_t)s->n, (gid_t)s->n2);
		break;
	case TRUNCATE:
		rc = truncate(s->a, (off_t)s->n);
		break;
	case UTIMENS:
		rc = utimensat(AT_FDCWD, s->a, times, 0);
		break;
	case ACCESS:
		rc = faccessat(AT_FDCWD, s->a, (int)s->n, AT_EACCESS);
		break;
	case OPEN:
		rc = open(s->a, (int)s->n, (mode_t)s->n2);
		if (rc >= 0)
			rc = close((int)rc);
		break;
	case STAT:
	case LSTAT:
		rc = s->what == STAT ? stat(s->a, &st) : lstat(s->a, &st);
		if (!rc)
			print_stat(text, cap, &st);
		break;
	case READLINK:
		memset(text, 0, cap);
		rc = readlink(s->a, text, s->n);
		break;
	}
	return rc < 0 ? -errno : rc;
}

/* A tree as text: a sorted line for each object. */
static char *tree_text;
static size_t tree_len, tree_root;

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void print_tree(const char *dir)
{
	struct dirent **names;
	int n = scandir(dir, &names, NULL, compare_names);

	assert_true(n >= 0);
	for (int i = 0; i < n; i++) {
		char path[1024], target[256] = "", stat_text[128];
		struct stat st;

		if (strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0) {
			snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
			assert_int_equal(lstat(path, &st), 0);
			print_stat(stat_text, sizeof(stat_text), &st);
			if (S_ISLNK(st.st_mode))
				assert_true(readlink(path, target, sizeof(target) - 1) >= 0);
			tree_len += (size_t)snprintf(tree_text + tree_len, 65536 - tree_len,
						     "%s %s %s\n", path + tree_root, stat_text,
						     target);
			assert_true(tree_len < 65536);
			if (S_ISDIR(st.st_mode))
				print_tree(path);
		}
		free(names[i]);
	}
	free(names);
}

static char *describe(const char *dir)
{
	tree_text = calloc(1, 65536);
	tree_len = 0;
	tree_root = strlen(dir);
	print_tree(dir);
	return tree_text;
}

static void play(struct leat *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(script); i++) {
		const struct step *s = &script[i];
		char left[512] = "", right[512] = "", *tree_left, *tree_right;
		int64_t l = play_leat(m, s, left, sizeof(left)), r = play_local(s, right, sizeof(right));

		if (l != r || strcmp(left, right) != 0)
			fail_msg("step %zu (%d \"%s\" \"%s\"): leat %lld \"%s\", here %lld \"%s\"",
				 i, s->what, s->a, s->b ? s->b : "", (long long)l, left,
				 (long long)r, right);
		tree_left = describe(flow.export);
		tree_right = describe(flow.twin);
		if (strcmp(tree_left, tree_right) != 0)
			fail_msg("after step %zu (%d \"%s\"): served\n%shere\n%s", i, s->what, s->a,
				 tree_left, tree_right);
		free(tree_left);
		free(tree_right);
	}
}

static void play_over(const char *url, const char *options)
{
	struct leat *m = leat_flow_mount(url, options);

	play(m);
	leat_umount(m);
	/* the export's directory itself stays: the server holds on to it */
	for (int i = 0; i < 2; i++) {
		char cmd[256];

		snprintf(cmd, sizeof(cmd), "find '%s' -mindepth 1 -delete",
			 i ? flow.export : flow.twin);
		assert_int_equal(system(cmd), 0);
	}
}

static void over_tcp(void **state)
{
	(void)state;
	play_over(flow.tcp_url, NULL);
}

static void over_local(void **state)
{
	(void)state;
	play_over(flow.local_url, NULL);
}

static void over_local_small(void **state)
{
	(void)state;
	play_over(flow.local_url, "inline=1024&conns=2");
}

/* The times that utimens sets, and the special ones. */
static void times(void **state)
{
	struct timespec t[2] = { { 11, 0 }, { 22, 0 } };
	struct leat *m = leat_flow_mount(flow.tcp_url, NULL);
	char path[256];
	struct stat st;

	(void)state;
	snprintf(path, sizeof(path), "%s/t", flow.export);
	assert_int_equal(leat_mknod(m, "t", S_IFREG | 0600, 0), 0);
	assert_int_equal(leat_utimens(m, "t", t), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_atim.tv_sec, 11);
	assert_int_equal(st.st_mtim.tv_sec, 22);
	t[0].tv_nsec = UTIME_OMIT;
	t[1].tv_sec = 33;
	t[1].tv_nsec = 44;
	assert_int_equal(leat_utimens(m, "t", t), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_atim.tv_sec, 11);
	assert_int_equal(st.st_mtim.tv_sec, 33);
	assert_int_equal(st.st_mtim.tv_nsec, 44);
	assert_int_equal(leat_stat(m, "t", &st), 0);
	assert_int_equal(st.st_mtim.tv_nsec, 44);
	t[1].tv_nsec = UTIME_NOW;
	assert_int_equal(leat_utimens(m, "t", t), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_atim.tv_sec, 11);
	assert_true(st.st_mtim.tv_sec > 1000000);
	assert_int_equal(leat_utimens(m, "t", NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_atim.tv_sec > 1000000);
	assert_int_equal(leat_unlink(m, "t"), 0);
	leat_umount(m);
}

static void file_system(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL);
	struct statvfs here, there;

	(void)state;
	assert_int_equal(statvfs(flow.export, &here), 0);
	assert_int_equal(leat_statvfs(m, "/", &there), 0);
	assert_int_equal(here.f_blocks * here.f_frsize / 4096, there.f_blocks);
	assert_int_equal(here.f_namemax, there.f_namemax);
	assert_int_equal(here.f_files, there.f_files);
	assert_int_equal(leat_statvfs(m, "/none", &there), -ENOENT);
	leat_umount(m);
}

/* Directories of several sizes, with and without attributes, against what readdir here shows. */
static void directories(void **state)
{
	static const unsigned sizes[] = { 0, 1, 100, 3000 };
	struct leat *m = leat_flow_mount(flow.local_url, NULL);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		static bool seen[3000];
		const struct leat_dirent *e;
		struct leat_dir *d;
		unsigned found = 0, dots = 0;
		char name[512];

		memset(seen, 0, sizeof(seen));
		assert_int_equal(leat_mkdir(m, "dir", 0700), 0);
		for (unsigned n = 0; n < sizes[i]; n++) {
			int fd;

			snprintf(name, sizeof(name), "%s/dir/%u-%.*s", flow.export, n,
				 (int)(n % 200), NAME255);
			fd = open(name, O_WRONLY | O_CREAT, 0640);
			assert_true(fd >= 0);
			close(fd);
		}
		assert_int_equal(leat_opendir(m, "dir/", &d), 0);
		while (leat_readdir(d, &e) == 1) {
			struct stat st;
			unsigned n;

			if (e->name[0] == '.') {
				dots++;
				continue;
			}
			assert_int_equal(sscanf(e->name, "%u-", &n), 1);
			assert_true(n < sizes[i] && !seen[n]);
			assert_int_equal(strspn(strchr(e->name, '-') + 1, "n"), n % 200);
			seen[n] = true;
			found++;
			snprintf(name, sizeof(name), "%s/dir/%s", flow.export, e->name);
			assert_int_equal(lstat(name, &st), 0);
			assert_int_equal(st.st_ino, e->ino);
			if (e->has_stat)
				assert_int_equal(st.st_mode, e->st.st_mode);
		}
		assert_int_equal(found, sizes[i]);
		assert_int_equal(dots, 2);
		leat_closedir(d);
		snprintf(name, sizeof(name), "%s/dir", flow.export);
		leat_flow_remove(name);
	}
	assert_int_equal(leat_opendir(m, "none", &(struct leat_dir *){ NULL }), -ENOENT);
	leat_umount(m);
}

static int setup(void **state)
{
	(void)state;
	leat_flow_create(&flow);
	return chdir(flow.twin);
}

static int teardown(void **state)
{
	(void)state;
	if (chdir("/"))
		return -1;
	leat_flow_destroy(&flow);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_tcp),
		cmocka_unit_test(over_local),
		cmocka_unit_test(over_local_small),
		cmocka_unit_test(times),
		cmocka_unit_test(file_system),
		cmocka_unit_test(directories),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
