/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_vfs_rights.c - permissions of changes, and that a refused change leaves all as it was
 */
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "test_vfs.h"
#include "vfs_int.h"

/* chown() clears set-id bits; the file gets them nevertheless, because CREATE asked for them */
static void given_away(void **state)
{
	struct vfs_sattr sa = { .set = VFS_SET_MODE | VFS_SET_UID, .mode = 06755, .uid = 4711 };
	struct ctx *c = *state;
	struct stat st;

	if (geteuid())
		skip();
	assert_int_equal(create(c, "f", VFS_GUARDED, &sa, NULL, &c->me, &st), 0);
	assert_int_equal(st.st_uid, 4711);
	assert_int_equal(st.st_mode & 07777, 06755);
}

/* The owner may write a read-only file (RFC 1813 section 4.4). */
static void owner_override(void **state)
{
	struct ctx *c = *state;
	struct vfs_sattr cut = { .set = VFS_SET_SIZE, .size = 1 };
	struct fh_obj o;
	struct stat st;
	int fd;

	tmp_dir_write(&c->dir, "f", "xyz");
	assert_int_equal(chmod(tmp_dir_path(&c->dir, "f"), 0400), 0);
	o = find(c, "f");
	assert_int_equal(vfs_may_io(&o, &c->me, true), 0);
	fd = vfs_open_io(&o, true);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "Z", 1, 0), 1);
	close(fd);
	assert_int_equal(vfs_setattr(&o, &cut, &c->me), 0);
	assert_int_equal(stat(tmp_dir_path(&c->dir, "f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0400);
	assert_int_equal(st.st_size, 1);
	fh_close(&o);
}

/* ---- a server that is not root, and its own file without mode bits ---- */

#define ROUNDS 3000

static struct fh_obj own;

static void *open_own(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		int fd = vfs_open_io(&own, true);

		if (fd < 0)
			_exit(2);
		close(fd);
	}
	return arg;
}

static uint32_t mode_of_own(void)
{
	struct statx stx;

	return vfs_stat(own.fd, &stx) ? UINT32_MAX : stx.stx_mode & 07777u;
}

static void *change_mode(void *arg)
{
	struct ctx *c = arg;
	struct vfs_sattr none = { .set = VFS_SET_MODE }, both = { .set = VFS_SET_MODE, .mode = 0600 };

	for (unsigned i = 0; i < ROUNDS; i++) {
		if (vfs_apply(&own, &both, &c->me) || mode_of_own() != 0600)
			_exit(3);
		if (vfs_apply(&own, &none, &c->me))
			_exit(4);
	}
	return arg;
}

static void in_threads(void *(*first)(void *), void *(*second)(void *), void *arg)
{
	pthread_t t[2];

	if (pthread_create(&t[0], NULL, first, arg) || pthread_create(&t[1], NULL, second, arg) || pthread_join(t[0], NULL) ||
	    pthread_join(t[1], NULL))
		_exit(5);
}

/* Return: an exit status: 0: the mode is always the file's own */
static int use_own_file(struct ctx *c)
{
	uid_t uid = geteuid() ? geteuid() : 65534;

	if (setresuid(uid, uid, uid) || prctl(PR_SET_DUMPABLE, 1) || creds_init())
		return 77;
	in_threads(open_own, open_own, c);
	if (mode_of_own())
		return 1;
	in_threads(open_own, change_mode, c);
	return mode_of_own() ? 1 : 0;
}

static void own_mode_is_kept(void **state)
{
	struct ctx *c = *state;
	int status;
	pid_t pid;

	tmp_dir_write(&c->dir, "f", "xyz");
	assert_int_equal(chmod(tmp_dir_path(&c->dir, "f"), 0), 0);
	if (!geteuid())
		assert_int_equal(chown(tmp_dir_path(&c->dir, "f"), 65534, 65534), 0);
	own = find(c, "f");
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(use_own_file(c));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fh_close(&own);
}

static void rights_of_others(void **state)
{
	struct ctx *c = *state;
	struct vfs_sattr sa = { .set = VFS_SET_MODE | VFS_SET_UID, .mode = 0600, .uid = 4711 };
	struct vfs_sattr steal = { .set = VFS_SET_UID, .uid = 4711 };
	struct vfs_gone gone;
	struct fh_obj o;
	struct stat st;
	int got;

	if (geteuid())
		skip();
	tmp_dir_write(&c->dir, "roots", "x");
	assert_int_equal(chmod(tmp_dir_path(&c->dir, "roots"), 0644), 0);
	assert_int_equal(create(c, "new", VFS_GUARDED, &sa, NULL, &c->other, NULL), -EACCES);
	assert_int_equal(vfs_remove(c->s, &c->root, "roots", false, &c->other, &gone), -EACCES);
	o = find(c, "roots");
	assert_int_equal(vfs_access(&o, &c->other, R_OK | W_OK | X_OK, &got), 0);
	assert_int_equal(got, R_OK);
	assert_int_equal(vfs_may_io(&o, &c->other, false), 0);
	assert_int_equal(vfs_may_io(&o, &c->other, true), -EACCES);
	assert_int_equal(vfs_setattr(&o, &steal, &c->other), -EPERM);
	fh_close(&o);

	/* a user that may execute a file may read it */
	assert_int_equal(chmod(tmp_dir_path(&c->dir, "roots"), 0711), 0);
	o = find(c, "roots");
	assert_int_equal(vfs_may_io(&o, &c->other, false), 0);
	fh_close(&o);

	assert_int_equal(chmod(c->dir.path, 0777), 0);
	assert_int_equal(create(c, "new", VFS_GUARDED, &sa, NULL, &c->other, &st), 0);
	assert_int_equal(st.st_uid, 4711);
	assert_int_equal(st.st_gid, 4712);
	assert_int_equal(st.st_mode & 07777, 0600);

	/* a directory that the caller may not search */
	tmp_dir_mkdir(&c->dir, "closed");
	tmp_dir_write(&c->dir, "closed/f", "x");
	assert_int_equal(chmod(tmp_dir_path(&c->dir, "closed"), 0700), 0);
	o = find(c, "closed");
	assert_int_equal(vfs_open_dir(&o, &c->other), -EACCES);
	{
		struct fh_obj f;

		assert_int_equal(vfs_lookup(c->s, &o, "f", &c->other, &f), -EACCES);
	}
	fh_close(&o);
}

struct attempt {
	struct vfs_sattr sa;
	int err;
};

#define NOW { .tv_nsec = UTIME_NOW }

static void check_attempts(struct ctx *c, const struct creds *cr, const struct attempt *v, size_t n)
{
	const struct timespec past[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct fh_obj o = find(c, "f");
	struct stat was, is;

	for (size_t i = 0; i < n; i++) {
		const struct vfs_sattr *sa = &v[i].sa;

		assert_int_equal(truncate(tmp_dir_path(&c->dir, "f"), 100), 0);
		assert_int_equal(utimensat(AT_FDCWD, tmp_dir_path(&c->dir, "f"), past, 0), 0);
		assert_int_equal(stat(tmp_dir_path(&c->dir, "f"), &was), 0);
		assert_int_equal(vfs_setattr(&o, sa, cr), v[i].err);
		assert_int_equal(stat(tmp_dir_path(&c->dir, "f"), &is), 0);
		if (v[i].err) { /* a refused SETATTR changes nothing */
			assert_memory_equal(&is, &was, sizeof(is));
			continue;
		}
		assert_int_equal(is.st_size, sa->set & VFS_SET_SIZE ? sa->size : 100);
		assert_int_equal(is.st_atim.tv_sec == 1000, !(sa->set & VFS_SET_ATIME));
		assert_int_equal(is.st_mtim.tv_sec == 1000,
				 !(sa->set & (VFS_SET_MTIME | VFS_SET_SIZE)));
	}
	fh_close(&o);
}

/* SETATTRs of a member of the group that may write */
static void setattr_of_a_writer(void **state)
{
	static const struct attempt v[] = {
		/* what Linux sends for open(O_TRUNC) and ftruncate() */
		{ { .set = VFS_SET_SIZE | VFS_SET_MTIME, .mtime = NOW }, 0 },
		{ { .set = VFS_SET_SIZE | VFS_SET_ATIME, .size = 7, .atime = NOW }, 0 },
		{ { .set = VFS_SET_SIZE | VFS_SET_ATIME | VFS_SET_MTIME, .atime = NOW, .mtime = NOW }, 0 },
		{ { .set = VFS_SET_ATIME | VFS_SET_MTIME, .atime = NOW, .mtime = NOW }, 0 },
		{ { .set = VFS_SET_MTIME, .mtime = NOW }, 0 },
		{ { .set = VFS_SET_ATIME, .atime = NOW }, 0 },
		{ { .set = VFS_SET_SIZE | VFS_SET_MTIME, .mtime = { .tv_sec = 5 } }, -EPERM },
		{ { .set = VFS_SET_ATIME | VFS_SET_MTIME, .atime = NOW, .mtime = { .tv_sec = 5 } },
		  -EPERM },
		{ { .set = VFS_SET_SIZE | VFS_SET_MODE, .mode = 0666 }, -EPERM },
		{ { .set = VFS_SET_SIZE | VFS_SET_UID, .uid = 4711 }, -EPERM },
		{ { .set = VFS_SET_SIZE | VFS_SET_UID, .uid = 0 }, -EPERM },
		{ { .set = VFS_SET_SIZE | VFS_SET_GID, .gid = 4712 }, -EPERM },
		{ { .set = VFS_SET_UID | VFS_SET_MTIME, .uid = 4711, .mtime = NOW }, -EPERM },
		{ { .set = VFS_SET_MTIME, .mtime = { .tv_sec = 5 } }, -EPERM },
	};
	struct ctx *c = *state;

	if (geteuid())
		skip();
	tmp_dir_write(&c->dir, "f", "x");
	assert_int_equal(chown(tmp_dir_path(&c->dir, "f"), 0, 4713), 0);
	assert_int_equal(chmod(tmp_dir_path(&c->dir, "f"), 0664), 0);
	check_attempts(c, &c->other, v, ARRAY_SIZE(v));
}

static void setattr_of_others(void **state)
{
	static const struct attempt reader[] = {
		{ { .set = VFS_SET_SIZE | VFS_SET_MTIME, .mtime = NOW }, -EACCES },
		{ { .set = VFS_SET_ATIME | VFS_SET_MTIME, .atime = NOW, .mtime = NOW }, -EACCES },
		{ { .set = VFS_SET_MTIME, .mtime = NOW }, -EACCES },
		{ { .set = VFS_SET_ATIME, .atime = NOW }, -EACCES },
	};
	static const struct attempt owner[] = {
		{ { .set = VFS_SET_SIZE | VFS_SET_GID, .gid = 1 }, -EPERM },
		{ { .set = VFS_SET_MODE | VFS_SET_GID, .gid = 1 }, -EPERM },
		{ { .set = VFS_SET_SIZE | VFS_SET_UID, .uid = 1 }, -EPERM },
		{ { .set = VFS_SET_SIZE | VFS_SET_UID | VFS_SET_GID | VFS_SET_MODE | VFS_SET_MTIME,
		    .uid = 4711, .gid = 4713, .mode = 0600, .mtime = { .tv_sec = 5 } }, 0 },
		{ { .set = VFS_SET_SIZE | VFS_SET_UID, .uid = UINT32_MAX }, -EINVAL },
	};
	struct ctx *c = *state;

	if (geteuid())
		skip();
	tmp_dir_write(&c->dir, "f", "x");
	assert_int_equal(chmod(tmp_dir_path(&c->dir, "f"), 0644), 0);
	check_attempts(c, &c->other, reader, ARRAY_SIZE(reader));
	assert_int_equal(chown(tmp_dir_path(&c->dir, "f"), 4711, 4712), 0);
	check_attempts(c, &c->other, owner, ARRAY_SIZE(owner));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(given_away, setup, teardown),
		cmocka_unit_test_setup_teardown(owner_override, setup, teardown),
		cmocka_unit_test_setup_teardown(own_mode_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(rights_of_others, setup, teardown),
		cmocka_unit_test_setup_teardown(setattr_of_a_writer, setup, teardown),
		cmocka_unit_test_setup_teardown(setattr_of_others, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
