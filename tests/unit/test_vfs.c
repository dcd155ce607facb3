/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_vfs.c - what NFS does to files, in terms of files: kinds of create, attributes, names, rights
 *
 * As root the callers are other users, and the kernel decides about them; as anybody else all is done
 * as oneself, and what needs two users is skipped. The program is linked with --wrap=fsync and
 * --wrap=syncfs, to see what is synced.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/posix_acl.h>

#include "tmp_dir.h"
#include "vfs.h"

struct ctx {
	struct tmp_dir dir;
	struct export_table t;
	struct fh_set *s;
	struct fh_obj root;
	struct creds me, other;
};

static const uint8_t verf_a[8] = { 0xff, 1, 2, 3, 0x80, 5, 6, 7 };
static const uint8_t verf_b[8] = { 0x7f, 1, 2, 3, 0x80, 5, 6, 7 };

static int enter(void **state, enum fh_kind kind)
{
	struct ctx *c = calloc(1, sizeof(*c));
	struct siphash_key key;
	struct export_conf conf;
	char why[256];

	creds_init();
	umask(0);
	assert_int_equal(vfs_init(), 0);
	tmp_dir_create(&c->dir);
	export_conf_init(&conf);
	conf.name = (char[]){ "/e" };
	conf.path = c->dir.path;
	assert_int_equal(siphash_key_random(&key), 0);
	assert_int_equal(export_table_open(&conf, 1, &c->t, why, sizeof(why)), 0);
	assert_int_equal(fh_set_create(&c->t, &(struct fh_keys){ .v = { key }, .n = 1 }, kind, NULL, NULL, &c->s),
			 0);
	assert_int_equal(fh_open_root(c->s, &c->t.v[0], &c->root), 0);
	c->me = (struct creds){ .uid = geteuid(), .gid = getegid() };
	c->other = (struct creds){ .uid = 4711, .gid = 4712, .ngroups = 1, .groups = { 4713 } };
	*state = c;
	return 0;
}

static int setup(void **state)
{
	return enter(state, 0);
}

static int setup_map(void **state)
{
	return enter(state, FH_MAP);
}

static int teardown(void **state)
{
	struct ctx *c = *state;

	fh_close(&c->root);
	fh_set_destroy(c->s);
	export_table_close(&c->t);
	tmp_dir_destroy(&c->dir);
	free(c);
	return 0;
}

static uint64_t synced[16]; /* inodes */
static unsigned nsynced, nsynced_fs;
static int fsync_says;

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_syncfs(int fd);
int __wrap_syncfs(int fd);

int __wrap_fsync(int fd)
{
	struct stat st;

	if (nsynced < 16 && !fstat(fd, &st))
		synced[nsynced++] = st.st_ino;
	errno = fsync_says;
	return fsync_says ? -1 : __real_fsync(fd);
}

int __wrap_syncfs(int fd)
{
	nsynced_fs++;
	return __real_syncfs(fd);
}

static bool was_synced(uint64_t ino)
{
	for (unsigned i = 0; i < nsynced; i++) {
		if (synced[i] == ino)
			return true;
	}
	return false;
}

static int create(struct ctx *c, const char *name, enum vfs_create how, const struct vfs_sattr *sa,
		  const uint8_t *verf, const struct creds *cr, struct stat *ret)
{
	struct vfs_sattr none = { 0 };
	struct vfs_made m;
	int err = vfs_create(c->s, &c->root, name, how, sa ? sa : &none, verf, cr, &m);

	if (err)
		return err;
	if (ret)
		assert_int_equal(stat(tmp_dir_path(&c->dir, name), ret), 0);
	assert_true(S_ISREG(m.obj.stx.stx_mode));
	vfs_made_close(&m);
	return 0;
}

static struct fh_obj find(struct ctx *c, const char *name)
{
	struct fh_obj o;

	assert_int_equal(vfs_lookup(c->s, &c->root, name, &c->me, &o), 0);
	return o;
}

static void names(void **state)
{
	char name[300];

	(void)state;
	assert_int_equal(vfs_check_name("a"), 0);
	assert_int_equal(vfs_check_name(""), -EACCES);
	assert_int_equal(vfs_check_name("a/b"), -EACCES);
	assert_int_equal(vfs_check_name("/"), -EACCES);
	assert_int_equal(vfs_check_name("\x01\xff\n"), 0);
	memset(name, 'x', sizeof(name));
	name[255] = '\0';
	assert_int_equal(vfs_check_name(name), 0);
	name[255] = 'x';
	name[256] = '\0';
	assert_int_equal(vfs_check_name(name), -ENAMETOOLONG);
}

/* Whoever made the file may have died before it was on disk: who comes again and is told that all is
 * well relies on it. */
static void create_again_is_durable(void **state)
{
	static const enum vfs_create kinds[] = { VFS_UNCHECKED, VFS_EXCLUSIVE };
	struct ctx *c = *state;
	struct stat st;

	for (unsigned i = 0; i < 2; i++) {
		const char *name = i ? "excl" : "file";

		c->t.v[0].volume.limits.orders_names = true;
		nsynced = 0;
		assert_int_equal(create(c, name, kinds[i], NULL, verf_a, &c->me, &st), 0);
		/* the verifier is set after the file is made */
		assert_int_equal(was_synced(st.st_ino), kinds[i] == VFS_EXCLUSIVE);
		assert_true(was_synced(c->root.stx.stx_ino));
		nsynced = 0;
		assert_int_equal(create(c, name, kinds[i], NULL, verf_a, &c->me, &st), 0);
		assert_true(was_synced(st.st_ino) && was_synced(c->root.stx.stx_ino));
	}
}

static unsigned synced_at(uint64_t ino)
{
	unsigned i = 0;

	while (i < nsynced && synced[i] != ino)
		i++;
	return i;
}

static uint64_t ino_of(struct ctx *c, const char *name)
{
	struct stat st;

	assert_int_equal(lstat(tmp_dir_path(&c->dir, name), &st), 0);
	return st.st_ino;
}

/* Without a journal a directory's fsync() leaves the inodes of its names behind: they go first. With one
 * they need none of their own. */
static void made_is_durable(void **state)
{
	struct vfs_sattr none = { 0 };
	struct ctx *c = *state;

	for (int ordered = 0; ordered < 2; ordered++) {
		static const char *const names[2][5] = { { "d", "f", "l", "p", "d2" },
							 { "D", "F", "L", "P", "D2" } };
		const char *const *n = names[ordered];
		uint64_t root = c->root.stx.stx_ino;
		struct vfs_gone gone;
		struct vfs_made m;
		struct fh_obj d;

		c->t.v[0].volume.limits.orders_names = ordered;
		nsynced = nsynced_fs = 0;
		assert_int_equal(vfs_mkdir(c->s, &c->root, n[0], &none, &c->me, &m), 0);
		vfs_made_close(&m);
		assert_int_equal(was_synced(ino_of(c, n[0])), !ordered);
		assert_int_equal(synced_at(root), !ordered);
		nsynced = 0;
		assert_int_equal(create(c, n[1], VFS_GUARDED, NULL, NULL, &c->me, NULL), 0);
		assert_int_equal(was_synced(ino_of(c, n[1])), !ordered);
		assert_int_equal(synced_at(root), !ordered);
		/* what cannot be opened goes with its file system */
		assert_int_equal(nsynced_fs, 0);
		assert_int_equal(vfs_symlink(c->s, &c->root, n[2], "x", &none, &c->me, &m), 0);
		vfs_made_close(&m);
		assert_int_equal(nsynced_fs, !ordered);
		assert_int_equal(vfs_mknod(c->s, &c->root, n[3], S_IFIFO, 0, &none, &c->me, &m), 0);
		vfs_made_close(&m);
		assert_int_equal(nsynced_fs, 2 * !ordered);
		/* a directory that moves has another ".." */
		assert_int_equal(vfs_mkdir(c->s, &c->root, n[4], &none, &c->me, &m), 0);
		vfs_made_close(&m);
		d = find(c, n[0]);
		nsynced = 0;
		assert_int_equal(vfs_rename(c->s, &c->root, n[4], &d, "in", &c->me, &gone), 0);
		assert_int_equal(nsynced, ordered ? 2 : 3);
		nsynced = 0;
		assert_int_equal(vfs_rename(c->s, &d, "in", &d, "here", &c->me, &gone), 0);
		assert_int_equal(nsynced, 1);
		fh_close(&d);
	}
}

/* a list is on disk when it is answered, and so is that there is none any more */
static void lists_are_durable(void **state)
{
	static const aclent v[] = { { ACL_USER_OBJ, 0, 6 }, { ACL_USER, 4711, 6 }, { ACL_GROUP_OBJ, 0, 0 },
				    { ACL_MASK, 0, 6 },	    { ACL_OTHER, 0, 0 } };
	struct acl_xattr x, none = { .bytes = 0 }, back;
	struct ctx *c = *state;
	struct fh_obj o;
	int err;

	assert_int_equal(acl_to_xattr(v, 5, false, &x), 0);
	tmp_dir_write(&c->dir, "f", "x");
	o = find(c, "f");
	for (int i = 0; i < 2; i++) {
		nsynced = 0;
		err = vfs_set_acl(&o, i ? &none : &x, NULL, &c->me);
		if (err == -EOPNOTSUPP) {
			print_message("SKIP: no access control lists in this file system\n");
			skip();
		}
		assert_int_equal(err, 0);
		assert_true(was_synced(o.stx.stx_ino));
		assert_int_equal(vfs_get_acl(&o, false, &back), 0);
		assert_int_equal(back.bytes, i ? 0 : x.bytes);
	}
	assert_int_equal(vfs_set_acl(&o, NULL, &x, &c->me), -EINVAL);
	assert_int_equal(vfs_set_acl(&o, &x, &x, &c->me), -EINVAL);
	assert_int_equal(vfs_get_acl(&o, false, &back), 0);
	assert_int_equal(back.bytes, 0);
	fh_close(&o);
}

/* a new owner takes set-id bits away; they were asked for all the same */
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

static void create_kinds(void **state)
{
	struct ctx *c = *state;
	struct vfs_sattr sa = { .set = VFS_SET_MODE, .mode = 0640 };
	struct vfs_sattr cut = { .set = VFS_SET_SIZE | VFS_SET_MODE, .size = 0, .mode = 0600 };
	struct stat st;

	assert_int_equal(create(c, "f", VFS_GUARDED, &sa, NULL, &c->me, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(create(c, "f", VFS_GUARDED, &sa, NULL, &c->me, NULL), -EEXIST);
	tmp_dir_write(&c->dir, "f", "contents");
	assert_int_equal(create(c, "f", VFS_UNCHECKED, &sa, NULL, &c->me, &st), 0);
	assert_int_equal(st.st_size, 8);
	/* of an existing file only the size is set */
	assert_int_equal(create(c, "f", VFS_UNCHECKED, &cut, NULL, &c->me, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	tmp_dir_mkdir(&c->dir, "d");
	assert_int_equal(create(c, "d", VFS_UNCHECKED, &sa, NULL, &c->me, NULL), -EEXIST);
	assert_int_equal(create(c, "d", VFS_EXCLUSIVE, NULL, verf_a, &c->me, NULL), -EEXIST);
	assert_int_equal(symlink("nowhere", tmp_dir_path(&c->dir, "l")), 0);
	assert_int_equal(create(c, "l", VFS_UNCHECKED, &sa, NULL, &c->me, NULL), -EEXIST);
	assert_int_equal(create(c, ".", VFS_UNCHECKED, &sa, NULL, &c->me, NULL), -EEXIST);
	assert_int_equal(create(c, "..", VFS_UNCHECKED, &sa, NULL, &c->me, NULL), -EEXIST);
	assert_int_equal(create(c, "a/b", VFS_UNCHECKED, &sa, NULL, &c->me, NULL), -EACCES);
	assert_int_equal(create(c, "", VFS_UNCHECKED, &sa, NULL, &c->me, NULL), -EACCES);
}

static void exclusive(void **state)
{
	struct ctx *c = *state;

	assert_int_equal(create(c, "x", VFS_EXCLUSIVE, NULL, verf_a, &c->me, NULL), 0);
	/* the answer was lost, the client asks again */
	assert_int_equal(create(c, "x", VFS_EXCLUSIVE, NULL, verf_a, &c->me, NULL), 0);
	/* another client; and one that differs in the last bit there is */
	assert_int_equal(create(c, "x", VFS_EXCLUSIVE, NULL, verf_b, &c->me, NULL), -EEXIST);
	tmp_dir_write(&c->dir, "x", "used");
	assert_int_equal(create(c, "x", VFS_EXCLUSIVE, NULL, verf_a, &c->me, NULL), -EEXIST);
}

static void attributes(void **state)
{
	struct ctx *c = *state;
	struct vfs_sattr sa = {
		.set = VFS_SET_MODE | VFS_SET_SIZE | VFS_SET_ATIME | VFS_SET_MTIME,
		.mode = 04751,
		.size = 12345,
		.atime = { .tv_sec = 100 },
		.mtime = { .tv_sec = 200, .tv_nsec = 7 },
	};
	struct vfs_sattr big = { .set = VFS_SET_SIZE, .size = (uint64_t)1 << 63 };
	struct vfs_sattr now = { .set = VFS_SET_MTIME, .mtime = { .tv_nsec = UTIME_NOW } };
	struct fh_obj o, d;
	struct stat st;

	tmp_dir_write(&c->dir, "f", "x");
	o = find(c, "f");
	assert_int_equal(vfs_setattr(&o, &sa, &c->me), 0);
	assert_int_equal(stat(tmp_dir_path(&c->dir, "f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 04751);
	assert_int_equal(st.st_size, 12345);
	assert_int_equal(st.st_atim.tv_sec, 100);
	assert_int_equal(st.st_mtim.tv_sec, 200);
	assert_int_equal(vfs_setattr(&o, &big, &c->me), -EFBIG);
	assert_int_equal(vfs_setattr(&o, &now, &c->me), 0);
	assert_int_equal(stat(tmp_dir_path(&c->dir, "f"), &st), 0);
	assert_true(st.st_mtim.tv_sec > 1000000);
	assert_int_equal(st.st_atim.tv_sec, 100);
	fh_close(&o);

	tmp_dir_mkdir(&c->dir, "d");
	d = find(c, "d");
	sa.set = VFS_SET_SIZE;
	assert_int_equal(vfs_setattr(&d, &sa, &c->me), -EISDIR);
	sa.set = VFS_SET_MODE;
	sa.mode = 0700;
	assert_int_equal(vfs_setattr(&d, &sa, &c->me), 0);
	fh_close(&d);

	assert_int_equal(symlink("f", tmp_dir_path(&c->dir, "l")), 0);
	o = find(c, "l");
	sa.set = VFS_SET_MTIME | VFS_SET_MODE;
	sa.mtime.tv_sec = 300;
	assert_int_equal(vfs_setattr(&o, &sa, &c->me), 0);
	assert_int_equal(lstat(tmp_dir_path(&c->dir, "l"), &st), 0);
	assert_int_equal(st.st_mtim.tv_sec, 300);
	assert_int_equal(stat(tmp_dir_path(&c->dir, "f"), &st), 0);
	assert_int_not_equal(st.st_mtim.tv_sec, 300);
	fh_close(&o);
}

static void made(void **state)
{
	struct ctx *c = *state;
	struct vfs_sattr sa = { .set = VFS_SET_MODE, .mode = 01750 };
	struct fh_obj l;
	struct vfs_made m;
	struct stat st;
	char buf[64];
	uint32_t len;

	assert_int_equal(vfs_mkdir(c->s, &c->root, "d", &sa, &c->me, &m), 0);
	vfs_made_close(&m);
	assert_int_equal(stat(tmp_dir_path(&c->dir, "d"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 01750);
	assert_int_equal(vfs_mkdir(c->s, &c->root, "d", &sa, &c->me, &m), -EEXIST);
	assert_int_equal(vfs_mkdir(c->s, &c->root, "..", &sa, &c->me, &m), -EEXIST);

	assert_int_equal(vfs_symlink(c->s, &c->root, "l", "any where/at all", &sa, &c->me, &m), 0);
	vfs_made_close(&m);
	l = find(c, "l");
	assert_int_equal(vfs_readlink(&l, buf, sizeof(buf), &len), 0);
	assert_int_equal(len, 16);
	assert_memory_equal(buf, "any where/at all", 16);
	assert_int_equal(vfs_readlink(&l, buf, 16, &len), -ENAMETOOLONG);
	assert_int_equal(vfs_readlink(&c->root, buf, sizeof(buf), &len), -EINVAL);
	fh_close(&l);

	sa.mode = 0600;
	assert_int_equal(vfs_mknod(c->s, &c->root, "p", S_IFIFO, 0, &sa, &c->me, &m), 0);
	vfs_made_close(&m);
	assert_int_equal(vfs_mknod(c->s, &c->root, "s", S_IFSOCK, 0, &sa, &c->me, &m), 0);
	vfs_made_close(&m);
	assert_int_equal(stat(tmp_dir_path(&c->dir, "p"), &st), 0);
	assert_int_equal(st.st_mode, S_IFIFO | 0600);
}

static void removed(void **state)
{
	struct ctx *c = *state;
	struct vfs_gone gone;
	struct stat st;

	tmp_dir_write(&c->dir, "f", "x");
	assert_int_equal(link(tmp_dir_path(&c->dir, "f"), tmp_dir_path(&c->dir, "g")), 0);
	assert_int_equal(stat(tmp_dir_path(&c->dir, "f"), &st), 0);
	tmp_dir_mkdir(&c->dir, "d");
	tmp_dir_write(&c->dir, "d/x", "x");
	assert_int_equal(vfs_remove(c->s, &c->root, "f", true, &c->me, &gone), -ENOTDIR);
	assert_int_equal(vfs_remove(c->s, &c->root, "f", false, &c->me, &gone), 0);
	assert_false(gone.gone);
	assert_int_equal(vfs_remove(c->s, &c->root, "g", false, &c->me, &gone), 0);
	assert_true(gone.gone);
	assert_true(gone.ino == st.st_ino && gone.dev == st.st_dev);
	assert_int_equal(vfs_remove(c->s, &c->root, "g", false, &c->me, &gone), -ENOENT);
	assert_int_equal(vfs_remove(c->s, &c->root, "d", false, &c->me, &gone), -EISDIR);
	assert_int_equal(vfs_remove(c->s, &c->root, "d", true, &c->me, &gone), -ENOTEMPTY);
	assert_int_equal(unlink(tmp_dir_path(&c->dir, "d/x")), 0);
	assert_int_equal(vfs_remove(c->s, &c->root, "d", true, &c->me, &gone), 0);
	assert_int_equal(vfs_remove(c->s, &c->root, ".", true, &c->me, &gone), -EINVAL);
	assert_int_equal(vfs_remove(c->s, &c->root, "..", true, &c->me, &gone), -EEXIST);
	assert_int_equal(vfs_remove(c->s, &c->root, "..", false, &c->me, &gone), -EISDIR);
}

static void renamed(void **state)
{
	struct ctx *c = *state;
	struct vfs_gone gone;
	struct fh_obj d;

	tmp_dir_write(&c->dir, "a", "a");
	tmp_dir_write(&c->dir, "b", "b");
	tmp_dir_mkdir(&c->dir, "d");
	d = find(c, "d");
	assert_int_equal(vfs_rename(c->s, &c->root, "a", &d, "a", &c->me, &gone), 0);
	assert_false(gone.gone);
	assert_int_equal(vfs_rename(c->s, &d, "a", &c->root, "b", &c->me, &gone), 0);
	assert_true(gone.gone);
	assert_int_equal(vfs_rename(c->s, &c->root, "none", &d, "x", &c->me, &gone), -ENOENT);
	assert_int_equal(vfs_rename(c->s, &c->root, "d", &d, "x", &c->me, &gone), -EINVAL);
	assert_int_equal(vfs_rename(c->s, &c->root, ".", &d, "x", &c->me, &gone), -EINVAL);
	assert_int_equal(vfs_rename(c->s, &c->root, "b", &d, "..", &c->me, &gone), -EINVAL);
	assert_int_equal(vfs_rename(c->s, &c->root, "b", &c->root, "d", &c->me, &gone), -EISDIR);
	assert_int_equal(vfs_rename(c->s, &c->root, "d", &c->root, "b", &c->me, &gone), -ENOTDIR);
	fh_close(&d);
}

/* A rename between two names of one file does nothing, and both lead to it: its handle knows both */
static void renamed_to_itself(void **state)
{
	struct ctx *c = *state;
	struct vfs_gone gone;
	struct fh_obj o;
	struct fh fh;

	tmp_dir_write(&c->dir, "a", "x");
	assert_int_equal(link(tmp_dir_path(&c->dir, "a"), tmp_dir_path(&c->dir, "b")), 0);
	o = find(c, "a");
	assert_int_equal(fh_make(c->s, &o, &fh), 0);
	fh_close(&o);
	assert_int_equal(vfs_rename(c->s, &c->root, "a", &c->root, "b", &c->me, &gone), 0);
	assert_false(gone.gone);
	assert_int_equal(vfs_remove(c->s, &c->root, "b", false, &c->me, &gone), 0);
	assert_false(gone.gone);
	assert_int_equal(fh_open(c->s, fh.data, fh.len, &o), 0);
	fh_close(&o);
	/* over another name of another file, which lives on */
	tmp_dir_write(&c->dir, "new", "y");
	assert_int_equal(link(tmp_dir_path(&c->dir, "a"), tmp_dir_path(&c->dir, "c")), 0);
	o = find(c, "c");
	fh_close(&o);
	assert_int_equal(vfs_rename(c->s, &c->root, "new", &c->root, "c", &c->me, &gone), 0);
	assert_false(gone.gone);
	assert_int_equal(fh_open(c->s, fh.data, fh.len, &o), 0);
	fh_close(&o);
	assert_int_equal(vfs_remove(c->s, &c->root, "a", false, &c->me, &gone), 0);
	assert_true(gone.gone);
	assert_int_equal(fh_open(c->s, fh.data, fh.len, &o), -ESTALE);
}

static void linked(void **state)
{
	struct ctx *c = *state;
	struct fh_obj f, d;
	struct stat st;

	tmp_dir_write(&c->dir, "f", "x");
	tmp_dir_mkdir(&c->dir, "d");
	f = find(c, "f");
	d = find(c, "d");
	assert_int_equal(vfs_link(c->s, &f, &d, "g", &c->me), 0);
	assert_int_equal(stat(tmp_dir_path(&c->dir, "d/g"), &st), 0);
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(vfs_link(c->s, &f, &d, "g", &c->me), -EEXIST);
	assert_int_equal(vfs_link(c->s, &d, &c->root, "dd", &c->me), -EISDIR);
	assert_int_equal(vfs_link(c->s, &f, &f, "x", &c->me), -ENOTDIR);
	fh_close(&d);
	fh_close(&f);
}

/* its owner may write a file that he has made read-only (RFC 1813 section 4.4) */
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

static void rights_of_others(void **state)
{
	struct ctx *c = *state;
	struct vfs_sattr sa = { .set = VFS_SET_MODE | VFS_SET_UID, .mode = 0600, .uid = 4711 };
	struct vfs_sattr steal = { .set = VFS_SET_UID, .uid = 4711 };
	struct vfs_gone gone;
	struct fh_obj o;
	struct stat st;
	int got;

	if (!creds_can_assume())
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

	/* who may execute may read */
	assert_int_equal(chmod(tmp_dir_path(&c->dir, "roots"), 0711), 0);
	o = find(c, "roots");
	assert_int_equal(vfs_may_io(&o, &c->other, false), 0);
	fh_close(&o);

	assert_int_equal(chmod(c->dir.path, 0777), 0);
	assert_int_equal(create(c, "new", VFS_GUARDED, &sa, NULL, &c->other, &st), 0);
	assert_int_equal(st.st_uid, 4711);
	assert_int_equal(st.st_gid, 4712);
	assert_int_equal(st.st_mode & 07777, 0600);

	/* a directory that he may not search */
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
		if (v[i].err) { /* then nothing has changed */
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

/* what a group writer may do with one SETATTR, and that a refused one changes nothing */
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

	if (!creds_can_assume())
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

	if (!creds_can_assume())
		skip();
	tmp_dir_write(&c->dir, "f", "x");
	assert_int_equal(chmod(tmp_dir_path(&c->dir, "f"), 0644), 0);
	check_attempts(c, &c->other, reader, ARRAY_SIZE(reader));
	assert_int_equal(chown(tmp_dir_path(&c->dir, "f"), 4711, 4712), 0);
	check_attempts(c, &c->other, owner, ARRAY_SIZE(owner));
}

static int mkdir_there(struct ctx *c, const char *name)
{
	struct vfs_sattr none = { 0 };
	struct vfs_made m;
	int err = vfs_mkdir(c->s, &c->root, name, &none, &c->me, &m);

	if (!err)
		vfs_made_close(&m);
	return err;
}

/* @n and no more descriptors can be had, 0 or 1; Return: the limit that was */
static struct rlimit leave_descriptors(unsigned n)
{
	struct rlimit old, few;
	int next = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = (struct rlimit){ (rlim_t)next + n, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	return old;
}

/* NFS3ERR_JUKEBOX says that nothing happened, and has the call done again: not of what did happen */
static void short_of_descriptors(void **state)
{
	struct ctx *c = *state;
	struct vfs_gone gone;
	struct rlimit old;
	int made, again, created, removed;

	tmp_dir_write(&c->dir, "f", "x");
	nsynced_fs = 0;
	old = leave_descriptors(0);
	made = mkdir_there(c, "d");
	again = mkdir_there(c, "d");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	old = leave_descriptors(1);
	created = create(c, "new", VFS_GUARDED, NULL, NULL, &c->me, NULL);
	removed = vfs_remove(c->s, &c->root, "f", false, &c->me, &gone);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(made, -EIO);
	assert_int_equal(again, -EEXIST);
	assert_int_equal(created, -EIO);
	/* with no descriptor left to sync the directory by */
	assert_int_equal(removed, 0);
	assert_int_equal(nsynced_fs, 1);
	assert_int_equal(access(tmp_dir_path(&c->dir, "f"), F_OK), -1);
}

/* and neither where it is a sync that finds no memory */
static void short_of_memory(void **state)
{
	struct vfs_sattr mode = { .set = VFS_SET_MODE, .mode = 0600 };
	struct ctx *c = *state;
	struct vfs_gone gone;
	struct fh_obj o;

	tmp_dir_write(&c->dir, "f", "x");
	o = find(c, "f");
	fsync_says = ENOMEM;
	assert_int_equal(mkdir_there(c, "d"), -EIO);
	assert_int_equal(create(c, "x", VFS_EXCLUSIVE, NULL, verf_a, &c->me, NULL), -EIO);
	assert_int_equal(vfs_setattr(&o, &mode, &c->me), -EIO);
	assert_int_equal(vfs_link(c->s, &o, &c->root, "g", &c->me), -EIO);
	assert_int_equal(vfs_remove(c->s, &c->root, "f", false, &c->me, &gone), -EIO);
	fsync_says = 0;
	fh_close(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test_setup_teardown(create_kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(create_again_is_durable, setup, teardown),
		cmocka_unit_test_setup_teardown(made_is_durable, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_are_durable, setup, teardown),
		cmocka_unit_test_setup_teardown(given_away, setup, teardown),
		cmocka_unit_test_setup_teardown(exclusive, setup, teardown),
		cmocka_unit_test_setup_teardown(attributes, setup, teardown),
		cmocka_unit_test_setup_teardown(made, setup, teardown),
		cmocka_unit_test_setup_teardown(removed, setup, teardown),
		cmocka_unit_test_setup_teardown(renamed, setup, teardown),
		cmocka_unit_test_setup_teardown(renamed_to_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(renamed_to_itself, setup_map, teardown),
		cmocka_unit_test_setup_teardown(linked, setup, teardown),
		cmocka_unit_test_setup_teardown(owner_override, setup, teardown),
		cmocka_unit_test_setup_teardown(rights_of_others, setup, teardown),
		cmocka_unit_test_setup_teardown(setattr_of_a_writer, setup, teardown),
		cmocka_unit_test_setup_teardown(setattr_of_others, setup, teardown),
		cmocka_unit_test_setup_teardown(short_of_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(short_of_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
