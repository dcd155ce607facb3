/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_status.c - every status that NFS and MOUNT have, as leatd comes to say it
 *
 * doc/protocol.md has a table of them, and scripts/check-protocol.sh holds it against this file. What
 * only a file system or a kernel in trouble would say is put into its mouth: the program is linked with
 * --wrap=mkdirat, --wrap=fsync and --wrap=statx.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs_peer.h"

#define HIM 4711u

static const char *const options[] = { "rw,no_root_squash", "ro,no_root_squash",
				       "rw,no_root_squash,clients=192.0.2.1", "rw", NULL };

/* ---- what the kernel is made to say ---- */

static atomic_int mkdir_says, fsync_says, statx_says; /* errno, or 0: what is true */

int __real_mkdirat(int dir, const char *path, mode_t mode);
int __wrap_mkdirat(int dir, const char *path, mode_t mode);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret);
int __wrap_statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret);

static bool lies(atomic_int *says)
{
	int err = atomic_load(says);

	if (err)
		errno = err;
	return err;
}

int __wrap_mkdirat(int dir, const char *path, mode_t mode)
{
	return lies(&mkdir_says) ? -1 : __real_mkdirat(dir, path, mode);
}

int __wrap_fsync(int fd)
{
	return lies(&fsync_says) ? -1 : __real_fsync(fd);
}

int __wrap_statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret)
{
	return lies(&statx_says) ? -1 : __real_statx(dir, path, flags, mask, ret);
}

/* ---- a server ---- */

static int setup(void **state)
{
	struct nfs_peer *p = malloc(sizeof(*p));

	nfs_peer_create(p, RPCRDMA_TCP, options);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	atomic_store(&mkdir_says, 0);
	atomic_store(&fsync_says, 0);
	atomic_store(&statx_says, 0);
	nfs_peer_destroy(*state);
	free(*state);
	return 0;
}

/* ---- calls, of which only the status counts ---- */

static diropargs3 at(const struct nfs_fh *dir, const char *name)
{
	return (diropargs3){ nfs_peer_fh(dir), (char *)(uintptr_t)name };
}

static nfsstat3 make_dir(struct nfs_peer *p, const struct nfs_fh *dir, const char *name)
{
	MKDIR3args a = { .where = at(dir, name) };

	NFS_PEER_RETURN_CALL(p, MKDIR, &a);
}

static nfsstat3 make_node(struct nfs_peer *p, const struct nfs_fh *dir, const char *name, ftype3 type)
{
	MKNOD3args a = { .where = at(dir, name), .what.type = type };

	if (type == NF3CHR || type == NF3BLK) /* 0, 0 is a whiteout, which any user may make */
		a.what.mknoddata3_u.device.spec = (specdata3){ 1, 3 };
	NFS_PEER_RETURN_CALL(p, MKNOD, &a);
}

static nfsstat3 remove_file(struct nfs_peer *p, const struct nfs_fh *dir, const char *name)
{
	REMOVE3args a = { .object = at(dir, name) };

	NFS_PEER_RETURN_CALL(p, REMOVE, &a);
}

static nfsstat3 remove_dir(struct nfs_peer *p, const struct nfs_fh *dir, const char *name)
{
	RMDIR3args a = { .object = at(dir, name) };

	NFS_PEER_RETURN_CALL(p, RMDIR, &a);
}

static nfsstat3 rename_to(struct nfs_peer *p, const struct nfs_fh *from, const char *name,
			  const struct nfs_fh *to, const char *to_name)
{
	RENAME3args a = { .from = at(from, name), .to = at(to, to_name) };

	NFS_PEER_RETURN_CALL(p, RENAME, &a);
}

static nfsstat3 link_to(struct nfs_peer *p, const struct nfs_fh *f, const struct nfs_fh *dir,
			const char *name)
{
	LINK3args a = { .file = nfs_peer_fh(f), .link = at(dir, name) };

	NFS_PEER_RETURN_CALL(p, LINK, &a);
}

static nfsstat3 set_attr(struct nfs_peer *p, const struct nfs_fh *f, const sattr3 *sa, bool guard)
{
	SETATTR3args a = { .object = nfs_peer_fh(f), .new_attributes = *sa, .guard.check = guard };

	NFS_PEER_RETURN_CALL(p, SETATTR, &a);
}

static nfsstat3 set_size(struct nfs_peer *p, const struct nfs_fh *f, uint64_t size)
{
	sattr3 sa = { .size = { .set_it = TRUE, .set_size3_u.size = size } };

	return set_attr(p, f, &sa, false);
}

static nfsstat3 list(struct nfs_peer *p, const struct nfs_fh *dir, uint64_t cookie, uint32_t count)
{
	READDIR3args a = { .dir = nfs_peer_fh(dir), .cookie = cookie, .count = count };

	NFS_PEER_RETURN_CALL(p, READDIR, &a);
}

static nfsstat3 read_link(struct nfs_peer *p, const struct nfs_fh *f)
{
	READLINK3args a = { .symlink = nfs_peer_fh(f) };

	NFS_PEER_RETURN_CALL(p, READLINK, &a);
}

static nfsstat3 get_attr(struct nfs_peer *p, const struct nfs_fh *f)
{
	GETATTR3args a = { .object = nfs_peer_fh(f) };

	NFS_PEER_RETURN_CALL(p, GETATTR, &a);
}

static struct nfs_fh find(struct nfs_peer *p, const char *name)
{
	struct nfs_fh fh;

	assert_int_equal(nfs_peer_lookup(p, &p->root, name, &fh), NFS3_OK);
	return fh;
}

/* ---- tests ---- */

static void names(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh d, f, other;
	char longer[257];

	tmp_dir_mkdir(&p->dir, "e0/d");
	tmp_dir_write(&p->dir, "e0/d/in", "x");
	tmp_dir_write(&p->dir, "e0/f", "x");
	d = find(p, "d");
	f = find(p, "f");
	memset(longer, 'n', 256);
	longer[256] = '\0';
	assert_int_equal(nfs_peer_mount(p, "/e3", &other), MNT3_OK);

	assert_int_equal(nfs_peer_lookup(p, &p->root, "none", NULL), NFS3ERR_NOENT);
	assert_int_equal(remove_file(p, &p->root, "none"), NFS3ERR_NOENT);
	assert_int_equal(nfs_peer_lookup(p, &p->root, "a/b", NULL), NFS3ERR_ACCES);
	assert_int_equal(make_dir(p, &p->root, "d"), NFS3ERR_EXIST);
	assert_int_equal(make_node(p, &p->root, "f", NF3FIFO), NFS3ERR_EXIST);
	assert_int_equal(rename_to(p, &p->root, "f", &other, "f"), NFS3ERR_XDEV);
	assert_int_equal(link_to(p, &f, &other, "f"), NFS3ERR_XDEV);
	assert_int_equal(nfs_peer_lookup(p, &f, "x", NULL), NFS3ERR_NOTDIR);
	assert_int_equal(remove_dir(p, &p->root, "f"), NFS3ERR_NOTDIR);
	assert_int_equal(remove_file(p, &p->root, "d"), NFS3ERR_ISDIR);
	assert_int_equal(link_to(p, &d, &p->root, "e"), NFS3ERR_ISDIR);
	assert_int_equal(rename_to(p, &p->root, "d", &d, "e"), NFS3ERR_INVAL);
	assert_int_equal(make_dir(p, &p->root, longer), NFS3ERR_NAMETOOLONG);
	assert_int_equal(remove_dir(p, &p->root, "d"), NFS3ERR_NOTEMPTY);
	assert_int_equal(make_node(p, &p->root, "n", NF3REG), NFS3ERR_BADTYPE);
	assert_int_equal(make_node(p, &p->root, "n", NF3LNK), NFS3ERR_BADTYPE);
}

static void files(void **state)
{
	struct nfs_peer *p = *state;
	sattr3 mode = { .mode = { .set_it = TRUE, .set_mode3_u.mode = 0600 } };
	secattr none = { .mask = NFS_ACL };
	struct nfs_fh d, f, l, ro;
	char byte = 0;

	tmp_dir_mkdir(&p->dir, "e0/d");
	tmp_dir_write(&p->dir, "e0/f", "x");
	tmp_dir_write(&p->dir, "e1/f", "x");
	assert_int_equal(symlink("f", tmp_dir_path(&p->dir, "e0/l")), 0);
	d = find(p, "d");
	f = find(p, "f");
	l = find(p, "l");
	assert_int_equal(nfs_peer_mount(p, "/e1", &ro), MNT3_OK);

	assert_int_equal(set_size(p, &d, 0), NFS3ERR_ISDIR);
	assert_int_equal(read_link(p, &f), NFS3ERR_INVAL);
	assert_int_equal(set_size(p, &f, (uint64_t)1 << 63), NFS3ERR_FBIG);
	assert_int_equal(nfs_peer_write(p, &f, INT64_MAX, &byte, 1, UNSTABLE, NULL), NFS3ERR_FBIG);
	assert_int_equal(make_dir(p, &ro, "d"), NFS3ERR_ROFS);
	assert_int_equal(set_attr(p, &f, &mode, true), NFS3ERR_NOT_SYNC);
	assert_int_equal(list(p, &d, UINT64_MAX, 4096), NFS3ERR_BAD_COOKIE);
	assert_int_equal(list(p, &d, 0, 64), NFS3ERR_TOOSMALL);
	assert_int_equal(nfs_peer_setacl(p, &l, &none), NFS3ERR_NOTSUPP);
	assert_int_equal(unlink(tmp_dir_path(&p->dir, "e0/f")), 0);
	assert_int_equal(get_attr(p, &f), NFS3ERR_STALE);
	f.data[f.len - 1] ^= 1;
	assert_int_equal(get_attr(p, &f), NFS3ERR_BADHANDLE);
}

/* Only root may make devices, and the caller is not root. */
static void not_his(void **state)
{
	struct nfs_peer *p = *state;
	sattr3 mode = { .mode = { .set_it = TRUE, .set_mode3_u.mode = 0600 } };
	struct nfs_fh f;

	tmp_dir_write(&p->dir, "e0/f", "x");
	assert_int_equal(chmod(tmp_dir_path(&p->dir, "e0"), 0777), 0);
	f = find(p, "f");
	if (!geteuid())
		p->cred.uid = p->cred.gid = HIM;
	assert_int_equal(make_node(p, &p->root, "n", NF3CHR), NFS3ERR_PERM);
	assert_int_equal(make_node(p, &p->root, "n", NF3BLK), NFS3ERR_PERM);
	if (p->cred.uid == HIM)
		assert_int_equal(set_attr(p, &f, &mode, false), NFS3ERR_PERM);
}

/* as a file system may say */
static void of_the_file_system(void **state)
{
	static const struct {
		int err;
		nfsstat3 status;
	} said[] = {
		{ EIO, NFS3ERR_IO },
		{ EUCLEAN, NFS3ERR_IO }, /* and what has no name */
		{ ENXIO, NFS3ERR_NXIO },
		{ ENODEV, NFS3ERR_NODEV },
		{ ENOSPC, NFS3ERR_NOSPC },
		{ EMLINK, NFS3ERR_MLINK },
		{ EDQUOT, NFS3ERR_DQUOT },
		{ EREMOTE, NFS3ERR_REMOTE },
		{ EREMOTEIO, NFS3ERR_SERVERFAULT },
		{ EOPNOTSUPP, NFS3ERR_NOTSUPP },
		{ ENOMEM, NFS3ERR_JUKEBOX },
	};
	struct nfs_peer *p = *state;

	for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
		atomic_store(&mkdir_says, said[i].err);
		assert_int_equal(make_dir(p, &p->root, "d"), said[i].status);
	}
	atomic_store(&mkdir_says, 0);
	atomic_store(&fsync_says, EIO);
	assert_int_equal(make_dir(p, &p->root, "d"), NFS3ERR_IO);
	atomic_store(&fsync_says, 0);
	assert_int_equal(remove_dir(p, &p->root, "d"), NFS3_OK);
}

/* Return: the limit that was; now there are none to be had */
static struct rlimit no_descriptors(void)
{
	struct rlimit old, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){ 0, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	return old;
}

/* when there are none, it is to be asked for again */
static void out_of_descriptors(void **state)
{
	struct nfs_peer *p = *state;
	struct rlimit old;
	struct nfs_fh f;
	char byte;
	uint32_t got;
	bool eof;

	tmp_dir_write(&p->dir, "e0/f", "x");
	f = find(p, "f");
	old = no_descriptors();
	assert_int_equal(nfs_peer_lookup(p, &p->root, "f", NULL), NFS3ERR_JUKEBOX);
	assert_int_equal(nfs_peer_read(p, &f, 0, &byte, 1, &got, &eof), NFS3ERR_JUKEBOX);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(nfs_peer_read(p, &f, 0, &byte, 1, &got, &eof), NFS3_OK);
}

static void mounting(void **state)
{
	struct nfs_peer *p = *state;
	struct rlimit old;
	struct nfs_fh fh;
	char longer[300] = "/e0/";

	tmp_dir_write(&p->dir, "e0/f", "x");
	memset(longer + 4, 'n', 256);
	assert_int_equal(nfs_peer_mount(p, "/none", &fh), MNT3ERR_NOENT);
	assert_int_equal(nfs_peer_mount(p, "/e0/none", &fh), MNT3ERR_NOENT);
	assert_int_equal(nfs_peer_mount(p, "/e2", &fh), MNT3ERR_ACCES);
	assert_int_equal(nfs_peer_mount(p, "/e0/f", &fh), MNT3ERR_NOTDIR);
	assert_int_equal(nfs_peer_mount(p, longer, &fh), MNT3ERR_NAMETOOLONG);
	old = no_descriptors();
	assert_int_equal(nfs_peer_mount(p, "/e0", &fh), MNT3ERR_SERVERFAULT);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	atomic_store(&statx_says, EIO);
	assert_int_equal(nfs_peer_mount(p, "/e0", &fh), MNT3ERR_IO);
}

/* ---- a file system that is really full ---- */

static int setup_full(void **state)
{
	struct nfs_peer *p = malloc(sizeof(*p));

	*state = NULL;
	if (geteuid() || unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
		free(p);
		return 0;
	}
	/* the export is what is mounted when the server starts */
	nfs_peer_create(p, RPCRDMA_TCP, options);
	nfs_peer_disconnect(p);
	nfs_peer_stop(p);
	if (mount("small", tmp_dir_path(&p->dir, "e0"), "tmpfs", 0, "size=64k,nr_inodes=20")) {
		nfs_peer_start(p);
		nfs_peer_connect(p, RPCRDMA_TCP, 0);
		nfs_peer_destroy(p);
		free(p);
		return 0;
	}
	nfs_peer_start(p);
	nfs_peer_connect(p, RPCRDMA_TCP, 0);
	assert_int_equal(nfs_peer_mount(p, "/e0", &p->root), MNT3_OK);
	*state = p;
	return 0;
}

static int teardown_full(void **state)
{
	struct nfs_peer *p = *state;

	if (!p)
		return 0;
	nfs_peer_disconnect(p);
	nfs_peer_stop(p);
	assert_int_equal(umount(tmp_dir_path(&p->dir, "e0")), 0);
	nfs_peer_start(p);
	nfs_peer_connect(p, RPCRDMA_TCP, 0);
	return teardown(state);
}

static void full(void **state)
{
	struct nfs_peer *p = *state;
	static const char data[65536 + 4096];
	FSSTAT3args a;
	FSSTAT3res res = { 0 };
	nfsstat3 status = NFS3_OK;
	struct nfs_fh f, g;
	WRITE3resok ok;
	char name[16];

	if (!p) {
		print_message("SKIP: no right to mount a file system here\n");
		skip();
	}
	assert_int_equal(nfs_peer_create_file(p, &p->root, "f", &f), NFS3_OK);
	/* what fits is written, and said to be; the rest is refused */
	assert_int_equal(nfs_peer_write(p, &f, 0, data, sizeof(data), FILE_SYNC, &ok), NFS3_OK);
	assert_in_range(ok.count, 4096, 65536);
	assert_int_equal(nfs_peer_write(p, &f, ok.count, data, sizeof(data) - ok.count, FILE_SYNC, NULL),
			 NFS3ERR_NOSPC);
	a.fsroot = nfs_peer_fh(&p->root);
	NFS_PEER_CALL(p, FSSTAT, &a, &res, NULL, 0);
	assert_int_equal(res.FSSTAT3res_u.resok.tbytes, 65536);
	assert_int_equal(res.FSSTAT3res_u.resok.abytes, 0);
	for (int i = 0; i < 40 && status == NFS3_OK; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		status = nfs_peer_create_file(p, &p->root, name, &g);
	}
	assert_int_equal(status, NFS3ERR_NOSPC);
	assert_int_equal(set_size(p, &f, 0), NFS3_OK);
	assert_int_equal(nfs_peer_write(p, &f, 0, data, 4096, FILE_SYNC, &ok), NFS3_OK);
}

#define WITH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(names),
		WITH(files),
		WITH(not_his),
		WITH(of_the_file_system),
		WITH(out_of_descriptors),
		WITH(mounting),
		cmocka_unit_test_setup_teardown(full, setup_full, teardown_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
