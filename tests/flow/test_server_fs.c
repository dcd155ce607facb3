/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_fs.c - what leatd says of files and of their file system, held against what the kernel says
 *
 * Holes, sizes, times, links, devices, FSSTAT, FSINFO, PATHCONF; and that an answer says of a directory what
 * it was like before, and never of a file. Everything runs over TCP and over the local fabric.
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

#include "kernel_has.h"
#include "nfs_peer.h"

#define HIM 4711u
#define GIB (UINT64_C(1) << 30)

static const char *const options[] = { "rw,no_root_squash", NULL };

NFS_PEER_SETUPS(options)

static struct stat local(struct nfs_peer *p, const char *name)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "e0/%s", name);
	assert_int_equal(lstat(tmp_dir_path(&p->dir, path), &st), 0);
	return st;
}

static fattr3 attr(struct nfs_peer *p, const struct nfs_fh *f)
{
	GETATTR3args a = { .object = nfs_peer_fh(f) };
	GETATTR3res res = { 0 };

	NFS_PEER_CALL(p, GETATTR, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	return res.GETATTR3res_u.resok.obj_attributes;
}

static nfsstat3 set_attr(struct nfs_peer *p, const struct nfs_fh *f, const sattr3 *sa)
{
	SETATTR3args a = { .object = nfs_peer_fh(f), .new_attributes = *sa };
	SETATTR3res res = { 0 };

	NFS_PEER_CALL(p, SETATTR, &a, &res, NULL, 0);
	return res.status;
}

static nfsstat3 set_size(struct nfs_peer *p, const struct nfs_fh *f, uint64_t size)
{
	sattr3 sa = { .size = { .set_it = TRUE, .set_size3_u.size = size } };

	return set_attr(p, f, &sa);
}

/* as the kernel says, in each member */
static void same(const fattr3 *a, const struct stat *st)
{
	assert_int_equal(a->mode, st->st_mode & 07777);
	assert_int_equal(a->nlink, st->st_nlink);
	assert_int_equal(a->uid, st->st_uid);
	assert_int_equal(a->gid, st->st_gid);
	assert_true(a->size == (uint64_t)st->st_size);
	assert_true(a->used == (uint64_t)st->st_blocks * 512);
	assert_true(a->fileid == st->st_ino);
	assert_int_equal(a->mtime.seconds, (uint32_t)st->st_mtim.tv_sec);
	assert_int_equal(a->mtime.nseconds, st->st_mtim.tv_nsec);
	assert_int_equal(a->ctime.seconds, (uint32_t)st->st_ctim.tv_sec);
	assert_int_equal(a->ctime.nseconds, st->st_ctim.tv_nsec);
	assert_int_equal(a->atime.seconds, (uint32_t)st->st_atim.tv_sec);
}

static FSINFO3resok fsinfo(struct nfs_peer *p)
{
	FSINFO3args a = { nfs_peer_fh(&p->root) };
	FSINFO3res res = { 0 };

	NFS_PEER_CALL(p, FSINFO, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	return res.FSINFO3res_u.resok;
}

/* ---- files ---- */

static void holes(void **state)
{
	struct nfs_peer *p = *state;
	uint8_t in[8192], zero[8192] = { 0 };
	struct nfs_fh f;
	struct stat st;
	fattr3 a;
	uint32_t got;
	bool eof;

	assert_int_equal(nfs_peer_create_file(p, &p->root, "f", &f), NFS3_OK);
	assert_int_equal(set_size(p, &f, 3 * GIB), NFS3_OK);
	/* far beyond the end, and at no boundary */
	assert_int_equal(nfs_peer_write(p, &f, 5 * GIB + 777, "end", 3, FILE_SYNC, NULL), NFS3_OK);
	a = attr(p, &f);
	st = local(p, "f");
	same(&a, &st);
	assert_true(a.size == 5 * GIB + 780);
	assert_true(a.used < GIB);
	for (int i = 0; i < 3; i++) {
		memset(in, 0xee, sizeof(in));
		assert_int_equal(nfs_peer_read(p, &f, 2 * (uint64_t)i * GIB + 1, in, sizeof(in), &got,
					       &eof),
				 NFS3_OK);
		assert_int_equal(got, sizeof(in));
		assert_false(eof);
		assert_memory_equal(in, zero, sizeof(in));
	}
	memset(in, 0xee, sizeof(in));
	assert_int_equal(nfs_peer_read(p, &f, 5 * GIB, in, sizeof(in), &got, &eof), NFS3_OK);
	assert_int_equal(got, 780);
	assert_true(eof);
	assert_memory_equal(in, zero, 777);
	assert_memory_equal(in + 777, "end", 3);
	/* cut off and made longer again, what was there is gone */
	assert_int_equal(set_size(p, &f, 5 * GIB + 778), NFS3_OK);
	assert_int_equal(set_size(p, &f, 5 * GIB + 780), NFS3_OK);
	assert_int_equal(nfs_peer_read(p, &f, 5 * GIB + 777, in, 3, &got, &eof), NFS3_OK);
	assert_memory_equal(in, "e\0\0", 3);
}

static void at_the_limit(void **state)
{
	struct nfs_peer *p = *state;
	uint64_t max = fsinfo(p).maxfilesize;
	struct nfs_fh f;
	WRITE3resok ok;
	fattr3 a;
	char in[8];
	uint32_t got;
	bool eof;

	assert_int_equal(nfs_peer_create_file(p, &p->root, "f", &f), NFS3_OK);
	assert_int_equal(set_size(p, &f, max), NFS3_OK);
	a = attr(p, &f);
	assert_true(a.size == max);
	if (max < INT64_MAX)
		assert_int_equal(set_size(p, &f, max + 1), NFS3ERR_FBIG);
	assert_int_equal(set_size(p, &f, UINT64_MAX), NFS3ERR_FBIG);
	assert_int_equal(nfs_peer_read(p, &f, max - 4, in, 8, &got, &eof), NFS3_OK);
	assert_int_equal(got, 4);
	assert_true(eof);
	/* the last byte that there can be, and one that there cannot */
	assert_int_equal(nfs_peer_write(p, &f, max - 1, "x", 1, FILE_SYNC, &ok), NFS3_OK);
	assert_int_equal(ok.count, 1);
	assert_int_equal(nfs_peer_write(p, &f, max, "x", 1, FILE_SYNC, &ok), NFS3ERR_FBIG);
	a = attr(p, &f);
	assert_true(a.size == max);
}

static void times(void **state)
{
	/* what a client can say: from 1970 to 2106 */
	static const uint32_t seconds[] = { 0, 1, 1000000001, INT32_MAX };
	struct nfs_peer *p = *state;
	FSINFO3resok info = fsinfo(p);
	uint64_t step = info.time_delta.seconds * UINT64_C(1000000000) + info.time_delta.nseconds;
	struct timespec before[2] = { { .tv_sec = -86400 }, { .tv_sec = -1 } };
	struct nfs_fh f;
	struct stat st;
	fattr3 a;

	assert_true(info.properties & FSF3_CANSETTIME);
	assert_true(step > 0);
	assert_int_equal(nfs_peer_create_file(p, &p->root, "f", &f), NFS3_OK);
	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
		nfstime3 t = { seconds[i], 123456789 };
		sattr3 sa = { .mtime = { .set_it = SET_TO_CLIENT_TIME, .set_mtime_u.mtime = t } };
		uint64_t want = (seconds[i] * UINT64_C(1000000000) + 123456789) / step * step;

		assert_int_equal(set_attr(p, &f, &sa), NFS3_OK);
		a = attr(p, &f);
		assert_true(a.mtime.seconds * UINT64_C(1000000000) + a.mtime.nseconds == want);
		st = local(p, "f");
		same(&a, &st);
	}
	/* the upper limit: attributes show what the file system stores, which may be less */
	{
		sattr3 sa = { .mtime = { .set_it = SET_TO_CLIENT_TIME,
					 .set_mtime_u.mtime = { UINT32_MAX, 0 } } };

		assert_int_equal(set_attr(p, &f, &sa), NFS3_OK);
		a = attr(p, &f);
		st = local(p, "f");
		same(&a, &st);
	}
	/* times that do not fit 32 bits wrap, as in every NFSv3 server */
	assert_int_equal(utimensat(AT_FDCWD, tmp_dir_path(&p->dir, "e0/f"), before, 0), 0);
	a = attr(p, &f);
	assert_int_equal(a.mtime.seconds, UINT32_MAX);
	assert_int_equal(a.atime.seconds, UINT32_MAX - 86399);
}

static void links_across_directories(void **state)
{
	struct nfs_peer *p = *state;
	LINK3args la;
	LINK3res lres = { 0 };
	struct nfs_fh d, f, g;
	struct stat st;
	fattr3 a;

	tmp_dir_mkdir(&p->dir, "e0/d");
	assert_int_equal(nfs_peer_lookup(p, &p->root, "d", &d), NFS3_OK);
	assert_int_equal(nfs_peer_create_file(p, &p->root, "f", &f), NFS3_OK);
	la.file = nfs_peer_fh(&f);
	la.link = (diropargs3){ nfs_peer_fh(&d), (char[]){ "g" } };
	NFS_PEER_CALL(p, LINK, &la, &lres, NULL, 0);
	assert_int_equal(lres.status, NFS3_OK);
	assert_int_equal(
		lres.LINK3res_u.resok.file_attributes.post_op_attr_u.attributes.nlink, 2);
	assert_int_equal(nfs_peer_lookup(p, &d, "g", &g), NFS3_OK);
	/* one file, one handle */
	assert_int_equal(g.len, f.len);
	assert_memory_equal(g.data, f.data, f.len);
	st = local(p, "d/g");
	a = attr(p, &f);
	same(&a, &st);
	/* the first name goes, and the file stays */
	assert_int_equal(unlink(tmp_dir_path(&p->dir, "e0/f")), 0);
	a = attr(p, &f);
	assert_int_equal(a.nlink, 1);
	assert_int_equal(nfs_peer_write(p, &f, 0, "x", 1, FILE_SYNC, NULL), NFS3_OK);
	st = local(p, "d/g");
	assert_int_equal(st.st_size, 1);
}

static nfsstat3 make_node(struct nfs_peer *p, const char *name, ftype3 type, uint32_t major,
			  uint32_t minor, fattr3 *ret)
{
	MKNOD3args a = { .where = { nfs_peer_fh(&p->root), (char *)(uintptr_t)name },
			 .what.type = type };
	sattr3 *sa = &a.what.mknoddata3_u.pipe_attributes;
	MKNOD3res res = { 0 };
	nfsstat3 status;

	if (type == NF3CHR || type == NF3BLK) {
		a.what.mknoddata3_u.device.spec = (specdata3){ major, minor };
		sa = &a.what.mknoddata3_u.device.dev_attributes;
	}
	sa->mode.set_it = TRUE;
	sa->mode.set_mode3_u.mode = 0626;
	NFS_PEER_CALL(p, MKNOD, &a, &res, NULL, 0);
	status = res.status;
	if (status == NFS3_OK) {
		const MKNOD3resok *ok = &res.MKNOD3res_u.resok;
		struct stat st = local(p, name);

		assert_true(ok->obj.handle_follows);
		*ret = ok->obj_attributes.post_op_attr_u.attributes;
		same(ret, &st);
		assert_int_equal(ret->type, type);
		assert_int_equal(ret->mode, 0626);
		assert_int_equal(ret->rdev.specdata1, major(st.st_rdev));
		assert_int_equal(ret->rdev.specdata2, minor(st.st_rdev));
	}
	xdr_free((xdrproc_t)xdr_MKNOD3res, (char *)&res);
	return status;
}

/* the four types, by root and by another user */
static void special_files(void **state)
{
	struct nfs_peer *p = *state;
	bool root = !geteuid();
	fattr3 a;

	assert_int_equal(chmod(tmp_dir_path(&p->dir, "e0"), 0777), 0);
	assert_int_equal(make_node(p, "pipe", NF3FIFO, 0, 0, &a), NFS3_OK);
	assert_int_equal(make_node(p, "sock", NF3SOCK, 0, 0, &a), NFS3_OK);
	if (root) {
		assert_int_equal(make_node(p, "chr", NF3CHR, 1, 3, &a), NFS3_OK);
		assert_int_equal(a.rdev.specdata1, 1);
		assert_int_equal(a.rdev.specdata2, 3);
		assert_int_equal(make_node(p, "blk", NF3BLK, 4095, 0xfffff, &a), NFS3_OK);
		assert_int_equal(a.rdev.specdata1, 4095);
		assert_int_equal(a.rdev.specdata2, 0xfffff);
		/* not some other device with a few bits less */
		assert_int_equal(make_node(p, "no", NF3CHR, 4096 + 1, 3, &a), NFS3ERR_INVAL);
		assert_int_equal(make_node(p, "no", NF3CHR, 1, 0x100000 + 3, &a), NFS3ERR_INVAL);
		assert_int_equal(make_node(p, "no", NF3BLK, UINT32_MAX, UINT32_MAX, &a),
				 NFS3ERR_INVAL);
		p->cred.uid = p->cred.gid = HIM;
	}
	assert_int_equal(make_node(p, "no", NF3CHR, 1, 3, &a), NFS3ERR_PERM);
	assert_int_equal(make_node(p, "no", NF3BLK, 8, 0, &a), NFS3ERR_PERM);
	assert_int_equal(access(tmp_dir_path(&p->dir, "e0/no"), F_OK), -1);
	assert_int_equal(make_node(p, "his pipe", NF3FIFO, 0, 0, &a), NFS3_OK);
	assert_int_equal(a.uid, root ? HIM : geteuid());
	assert_int_equal(make_node(p, "his sock", NF3SOCK, 0, 0, &a), NFS3_OK);
}

/* ---- the file system ---- */

static void file_system(void **state)
{
	struct nfs_peer *p = *state;
	FSSTAT3args sa = { nfs_peer_fh(&p->root) };
	PATHCONF3args pa = { nfs_peer_fh(&p->root) };
	FSSTAT3res sres = { 0 };
	PATHCONF3res pres = { 0 };
	const FSSTAT3resok *s = &sres.FSSTAT3res_u.resok;
	const PATHCONF3resok *c = &pres.PATHCONF3res_u.resok;
	FSINFO3resok info = fsinfo(p);
	struct fs_limits lim;
	struct statvfs v;
	int fd = open(tmp_dir_path(&p->dir, "e0"), O_RDONLY | O_DIRECTORY);

	assert_true(fd >= 0);
	assert_int_equal(fstatvfs(fd, &v), 0);
	fs_limits_find(fd, true, &lim);
	close(fd);
	NFS_PEER_CALL(p, FSSTAT, &sa, &sres, NULL, 0);
	assert_int_equal(sres.status, NFS3_OK);
	assert_true(s->tbytes == (uint64_t)v.f_blocks * v.f_frsize);
	assert_true(s->tfiles == v.f_files || !v.f_files);
	/* others write there, too */
	assert_true(s->fbytes <= s->tbytes && s->abytes <= s->fbytes);
	assert_true(s->afiles <= s->ffiles);
	assert_int_equal(s->invarsec, 0);

	assert_true(info.maxfilesize == lim.file_max_bytes);
	assert_int_equal(info.time_delta.seconds, lim.time_s);
	assert_int_equal(info.time_delta.nseconds, lim.time_ns);
	assert_int_equal(!!(info.properties & FSF3_LINK), lim.has_links);
	assert_int_equal(!!(info.properties & FSF3_SYMLINK), lim.has_symlinks);
	assert_true(info.properties & FSF3_HOMOGENEOUS);

	NFS_PEER_CALL(p, PATHCONF, &pa, &pres, NULL, 0);
	assert_int_equal(pres.status, NFS3_OK);
	assert_int_equal(c->linkmax, lim.links_max);
	assert_int_equal(c->name_max, v.f_namemax < 255 ? v.f_namemax : 255);
	assert_int_equal(c->case_insensitive, lim.ignores_case);
	assert_true(c->no_trunc && c->chown_restricted && c->case_preserving);
}

/* ---- weak cache consistency ---- */

static void after_only(const wcc_data *w)
{
	assert_false(w->before.attributes_follow);
	assert_true(w->after.attributes_follow);
}

/* until the server knows all that happened to the directory since it has its ctime */
static void make_known(struct nfs_peer *p)
{
	bool known = !kernel_has_watches(p->dir.path);

	for (unsigned i = 0; !known; i++) {
		MKDIR3args a = { .where = { nfs_peer_fh(&p->root), (char[]){ "known" } } };
		RMDIR3args b = { .object = a.where };
		MKDIR3res made = { 0 };
		RMDIR3res gone = { 0 };

		assert_true(i < 10000);
		NFS_PEER_CALL(p, MKDIR, &a, &made, NULL, 0);
		assert_int_equal(made.status, NFS3_OK);
		xdr_free((xdrproc_t)xdr_MKDIR3res, (char *)&made);
		NFS_PEER_CALL(p, RMDIR, &b, &gone, NULL, 0);
		assert_int_equal(gone.status, NFS3_OK);
		known = gone.RMDIR3res_u.resok.dir_wcc.before.attributes_follow;
	}
}

/* Of a directory: as it was before, which is as it was after the change before this. */
static void before_too(const struct nfs_peer *p, const wcc_data *w, nfsstat3 status, fattr3 *last)
{
	const wcc_attr *before = &w->before.pre_op_attr_u.attributes;
	const fattr3 *after = &w->after.post_op_attr_u.attributes;

	assert_true(w->after.attributes_follow);
	if (!kernel_has_watches(p->dir.path)) {
		assert_false(w->before.attributes_follow);
		return;
	}
	/* what fails before it is tried may be without */
	assert_true(status != NFS3_OK || w->before.attributes_follow);
	if (w->before.attributes_follow) {
		assert_memory_equal(&before->ctime, &last->ctime, sizeof(before->ctime));
		assert_memory_equal(&before->mtime, &last->mtime, sizeof(before->mtime));
		assert_true(before->size == last->size);
	}
	if (status != NFS3_OK)
		assert_memory_equal(&after->ctime, &last->ctime, sizeof(after->ctime));
	*last = *after;
}

/* Each procedure that changes something, when it does and when it cannot. */
static void before_and_after(void **state)
{
	struct nfs_peer *p = *state;
	fattr3 last;
	diropargs3 f = { nfs_peer_fh(&p->root), (char[]){ "f" } };
	diropargs3 g = { nfs_peer_fh(&p->root), (char[]){ "g" } };
	diropargs3 d = { nfs_peer_fh(&p->root), (char[]){ "d" } };
	struct nfs_fh fh;

	make_known(p);
	last = attr(p, &p->root);

#define DIR(w, status) before_too(p, w, status, &last)
#define FILE_(w, status) after_only(w)
#define DO(PROC, args, want, wcc, IS)                                                              \
	do {                                                                                       \
		PROC##3res res = { 0 };                                                            \
                                                                                                   \
		NFS_PEER_CALL(p, PROC, args, &res, NULL, 0);                                       \
		assert_int_equal(res.status, want);                                                \
		if (want == NFS3_OK)                                                               \
			IS(&res.PROC##3res_u .resok.wcc, want);                                    \
		else                                                                               \
			IS(&res.PROC##3res_u .resfail.wcc, want);                                  \
		xdr_free((xdrproc_t)xdr_##PROC##3res, (char *)&res);                               \
	} while (0)
	{
		CREATE3args a = { .where = f, .how.mode = GUARDED };

		DO(CREATE, &a, NFS3_OK, dir_wcc, DIR);
		DO(CREATE, &a, NFS3ERR_EXIST, dir_wcc, DIR);
	}
	assert_int_equal(nfs_peer_lookup(p, &p->root, "f", &fh), NFS3_OK);
	{
		MKDIR3args a = { .where = d };

		DO(MKDIR, &a, NFS3_OK, dir_wcc, DIR);
		DO(MKDIR, &a, NFS3ERR_EXIST, dir_wcc, DIR);
	}
	{
		struct iovec iov = { .iov_base = (char[]){ "x" }, .iov_len = 1 };
		SYMLINK3args a = { .where = g };

		a.symlink.symlink_data = (nfspath_payload){ .length = 1, .iov = &iov, .iovcnt = 1 };
		DO(SYMLINK, &a, NFS3_OK, dir_wcc, DIR);
		DO(SYMLINK, &a, NFS3ERR_EXIST, dir_wcc, DIR);
	}
	{
		MKNOD3args a = { .where = { nfs_peer_fh(&p->root), (char[]){ "n" } },
				 .what.type = NF3FIFO };

		DO(MKNOD, &a, NFS3_OK, dir_wcc, DIR);
		DO(MKNOD, &a, NFS3ERR_EXIST, dir_wcc, DIR);
	}
	{
		SETATTR3args a = { .object = nfs_peer_fh(&fh) };

		a.new_attributes.mode.set_it = TRUE;
		DO(SETATTR, &a, NFS3_OK, obj_wcc, FILE_);
		a.guard.check = TRUE;
		DO(SETATTR, &a, NFS3ERR_NOT_SYNC, obj_wcc, FILE_);
	}
	{
		COMMIT3args a = { .file = nfs_peer_fh(&fh) };
		WRITE3resok ok;

		assert_int_equal(nfs_peer_write(p, &fh, 0, "x", 1, UNSTABLE, &ok), NFS3_OK);
		after_only(&ok.file_wcc);
		assert_int_equal(nfs_peer_write(p, &fh, 0, "x", 1, FILE_SYNC, &ok), NFS3_OK);
		after_only(&ok.file_wcc);
		DO(COMMIT, &a, NFS3_OK, file_wcc, FILE_);
	}
	{
		LINK3args a = { .file = nfs_peer_fh(&fh),
				.link = { nfs_peer_fh(&p->root), (char[]){ "l" } } };

		DO(LINK, &a, NFS3_OK, linkdir_wcc, DIR);
		DO(LINK, &a, NFS3ERR_EXIST, linkdir_wcc, DIR);
	}
	{
		RENAME3args a = { .from = g, .to = { nfs_peer_fh(&p->root), (char[]){ "h" } } };

		DO(RENAME, &a, NFS3_OK, fromdir_wcc, DIR);
		DO(RENAME, &a, NFS3ERR_NOENT, todir_wcc, DIR);
	}
	{
		REMOVE3args a = { .object = f };

		DO(REMOVE, &a, NFS3_OK, dir_wcc, DIR);
		DO(REMOVE, &a, NFS3ERR_NOENT, dir_wcc, DIR);
	}
	{
		RMDIR3args a = { .object = d };

		DO(RMDIR, &a, NFS3_OK, dir_wcc, DIR);
		DO(RMDIR, &a, NFS3ERR_NOENT, dir_wcc, DIR);
	}
#undef DO
#undef FILE_
#undef DIR
}

#define BOTH(f)                                                                                    \
	{ #f " (tcp)", f, setup_tcp, nfs_peer_teardown, NULL },                                             \
	{                                                                                          \
#f " (local)", f, setup_local, nfs_peer_teardown, NULL                                      \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(holes),	    BOTH(at_the_limit),	 BOTH(times),	      BOTH(links_across_directories),
		BOTH(special_files), BOTH(file_system),	 BOTH(before_and_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
