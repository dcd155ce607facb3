/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_vfs.c - what NFS does to files, in terms of files: kinds of create, attributes, names
 *
 * As root the callers are other users, and the kernel decides about them; otherwise all calls
 * run as the own user, and cases with two users are skipped. The program is linked with --wrap=fsync and
 * --wrap=syncfs, to see what is synced.
 */
#include "test_vfs.h"

static const uint8_t verf_a[8] = { 0xff, 1, 2, 3, 0x80, 5, 6, 7 };
static const uint8_t verf_b[8] = { 0x7f, 1, 2, 3, 0x80, 5, 6, 7 };

static int setup_map(void **state)
{
	return enter(state, FH_MAP);
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

/* The first CREATE may have been interrupted before the file was on disk. The client that repeats it
 * relies on its reply, so that the second CREATE syncs as well. */
static void create_again_is_durable(void **state)
{
	static const enum vfs_create kinds[] = { VFS_UNCHECKED, VFS_EXCLUSIVE };
	struct ctx *c = *state;
	struct stat st;

	for (unsigned i = 0; i < 2; i++) {
		const char *name = i ? "excl" : "file";

		c->t.v[0].backing.limits.orders_names = true;
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

static int make(struct ctx *c, const char *name, struct vfs_new what, const struct vfs_sattr *sa, struct vfs_made *m)
{
	return vfs_make(c->s, &c->root, name, &what, sa, &c->me, m);
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

		c->t.v[0].backing.limits.orders_names = ordered;
		nsynced = nsynced_fs = 0;
		assert_int_equal(make(c, n[0], (struct vfs_new){ .type = S_IFDIR }, &none, &m), 0);
		vfs_made_close(&m);
		assert_int_equal(was_synced(ino_of(c, n[0])), !ordered);
		assert_int_equal(synced_at(root), !ordered);
		nsynced = 0;
		assert_int_equal(create(c, n[1], VFS_GUARDED, NULL, NULL, &c->me, NULL), 0);
		assert_int_equal(was_synced(ino_of(c, n[1])), !ordered);
		assert_int_equal(synced_at(root), !ordered);
		/* what cannot be opened goes with its file system */
		assert_int_equal(nsynced_fs, 0);
		assert_int_equal(make(c, n[2], (struct vfs_new){ .type = S_IFLNK, .target = "x" }, &none, &m), 0);
		vfs_made_close(&m);
		assert_int_equal(nsynced_fs, !ordered);
		assert_int_equal(make(c, n[3], (struct vfs_new){ .type = S_IFIFO }, &none, &m), 0);
		vfs_made_close(&m);
		assert_int_equal(nsynced_fs, 2 * !ordered);
		/* a directory that moves has another ".." */
		assert_int_equal(make(c, n[4], (struct vfs_new){ .type = S_IFDIR }, &none, &m), 0);
		vfs_made_close(&m);
		d = find(c, n[0]);
		nsynced = 0;
		assert_int_equal(vfs_rename(c->s, &c->root, n[4], &d, "in", true, &c->me, &gone), 0);
		assert_int_equal(nsynced, ordered ? 2 : 3);
		nsynced = 0;
		assert_int_equal(vfs_rename(c->s, &d, "in", &d, "here", true, &c->me, &gone), 0);
		assert_int_equal(nsynced, 1);
		fh_close(&d);
	}
}

/* An ACL is on disk when the reply is sent, and so is its removal. */
static void lists_are_durable(void **state)
{
	static const aclent v[] = { { ACL_USER_OBJ, 0, 6 }, { ACL_USER, 4711, 6 }, { ACL_GROUP_OBJ, 0, 0 },
				    { ACL_MASK, 0, 6 },	    { ACL_OTHER, 0, 0 } };
	struct acl_xattr x, none = { .bytes = 0 }, back;
	struct ctx *c = *state;
	struct fh_obj o;

	assert_int_equal(acl_to_xattr(v, 5, false, &x), 0);
	tmp_dir_write(&c->dir, "f", "x");
	if (!kernel_has_acls(tmp_dir_path(&c->dir, "f")))
		skip();
	o = find(c, "f");
	for (int i = 0; i < 2; i++) {
		nsynced = 0;
		assert_int_equal(vfs_set_acl(&o, i ? &none : &x, NULL, &c->me), 0);
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

	assert_int_equal(make(c, "d", (struct vfs_new){ .type = S_IFDIR }, &sa, &m), 0);
	vfs_made_close(&m);
	assert_int_equal(stat(tmp_dir_path(&c->dir, "d"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 01750);
	assert_int_equal(make(c, "d", (struct vfs_new){ .type = S_IFDIR }, &sa, &m), -EEXIST);
	assert_int_equal(make(c, "..", (struct vfs_new){ .type = S_IFDIR }, &sa, &m), -EEXIST);

	assert_int_equal(make(c, "l", (struct vfs_new){ .type = S_IFLNK, .target = "any where/at all" }, &sa, &m), 0);
	vfs_made_close(&m);
	l = find(c, "l");
	assert_int_equal(vfs_readlink(&l, buf, sizeof(buf), &len), 0);
	assert_int_equal(len, 16);
	assert_memory_equal(buf, "any where/at all", 16);
	assert_int_equal(vfs_readlink(&l, buf, 16, &len), -ENAMETOOLONG);
	assert_int_equal(vfs_readlink(&c->root, buf, sizeof(buf), &len), -EINVAL);
	fh_close(&l);

	sa.mode = 0600;
	assert_int_equal(make(c, "p", (struct vfs_new){ .type = S_IFIFO }, &sa, &m), 0);
	vfs_made_close(&m);
	assert_int_equal(make(c, "s", (struct vfs_new){ .type = S_IFSOCK }, &sa, &m), 0);
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
	assert_int_equal(vfs_rename(c->s, &c->root, "a", &d, "a", true, &c->me, &gone), 0);
	assert_false(gone.gone);
	assert_int_equal(vfs_rename(c->s, &d, "a", &c->root, "b", true, &c->me, &gone), 0);
	assert_true(gone.gone);
	assert_int_equal(vfs_rename(c->s, &c->root, "none", &d, "x", true, &c->me, &gone), -ENOENT);
	assert_int_equal(vfs_rename(c->s, &c->root, "d", &d, "x", true, &c->me, &gone), -EINVAL);
	assert_int_equal(vfs_rename(c->s, &c->root, ".", &d, "x", true, &c->me, &gone), -EINVAL);
	assert_int_equal(vfs_rename(c->s, &c->root, "b", &d, "..", true, &c->me, &gone), -EINVAL);
	assert_int_equal(vfs_rename(c->s, &c->root, "b", &c->root, "d", true, &c->me, &gone), -EISDIR);
	assert_int_equal(vfs_rename(c->s, &c->root, "d", &c->root, "b", true, &c->me, &gone), -ENOTDIR);
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
	assert_int_equal(vfs_rename(c->s, &c->root, "a", &c->root, "b", true, &c->me, &gone), 0);
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
	assert_int_equal(vfs_rename(c->s, &c->root, "new", &c->root, "c", true, &c->me, &gone), 0);
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

static int mkdir_there(struct ctx *c, const char *name)
{
	struct vfs_sattr none = { 0 };
	struct vfs_made m;
	int err = make(c, name, (struct vfs_new){ .type = S_IFDIR }, &none, &m);

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
		cmocka_unit_test_setup_teardown(exclusive, setup, teardown),
		cmocka_unit_test_setup_teardown(attributes, setup, teardown),
		cmocka_unit_test_setup_teardown(made, setup, teardown),
		cmocka_unit_test_setup_teardown(removed, setup, teardown),
		cmocka_unit_test_setup_teardown(renamed, setup, teardown),
		cmocka_unit_test_setup_teardown(renamed_to_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(renamed_to_itself, setup_map, teardown),
		cmocka_unit_test_setup_teardown(linked, setup, teardown),
		cmocka_unit_test_setup_teardown(short_of_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(short_of_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
