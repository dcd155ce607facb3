/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_nfs.c - leatd as a client sees it that does not mean well: statuses, limits, refusals
 *
 * Everything runs over TCP and over the local fabric.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "leat.h"
#include "nfs_peer.h"
#include "nfsacl.h"

static const char *const options[] = { "rw,no_root_squash", "ro,no_root_squash",
				       "rw,clients=192.0.2.1",
				       "rw,all_squash,anonuid=4711,anongid=4712" };

NFS_PEER_SETUPS(options)

/* ---- RPC ---- */

static void rpc_refusals(void **state)
{
	struct nfs_peer *p = *state;
	struct rpcrdma_cred cred = p->cred;

	assert_int_equal(nfs_peer_null(p, NFS_PROGRAM, NFS_V3, 0), 0);
	assert_int_equal(nfs_peer_null(p, MOUNT_PROGRAM, MOUNT_V3, 0), 0);
	assert_int_equal(nfs_peer_null(p, LEAT_CTL, LEAT_CTL_V1, 0), 0);
	assert_int_equal(nfs_peer_null(p, NFSACL_PROGRAM, NFSACL_V3, 0), 0);
	assert_int_equal(nfs_peer_null(p, 100021, 4, 0), -EPROTONOSUPPORT); /* NLM */
	assert_int_equal(nfs_peer_null(p, NFSACL_PROGRAM, 2, 0), -EPROTONOSUPPORT);
	assert_int_equal(nfs_peer_null(p, NFS_PROGRAM, 4, 0), -EPROTONOSUPPORT);
	assert_int_equal(nfs_peer_null(p, MOUNT_PROGRAM, 1, 0), -EPROTONOSUPPORT);
	assert_int_equal(nfs_peer_null(p, NFS_PROGRAM, NFS_V3, 22), -EOPNOTSUPP);
	assert_int_equal(nfs_peer_null(p, NFSACL_PROGRAM, NFSACL_V3, 3), -EOPNOTSUPP);
	assert_int_equal(nfs_peer_null(p, MOUNT_PROGRAM, MOUNT_V3, 6), -EOPNOTSUPP);
	/* arguments missing */
	for (uint32_t proc = 1; proc < 22; proc++)
		assert_int_equal(nfs_peer_null(p, NFS_PROGRAM, NFS_V3, proc), -EINVAL);
	for (uint32_t proc = 1; proc < 3; proc++)
		assert_int_equal(nfs_peer_null(p, NFSACL_PROGRAM, NFSACL_V3, proc), -EINVAL);
	assert_int_equal(nfs_peer_null(p, MOUNT_PROGRAM, MOUNT_V3, MOUNTPROC3_MNT), -EINVAL);
	p->cred.ngids = 16;
	assert_int_equal(nfs_peer_null(p, NFS_PROGRAM, NFS_V3, 0), 0);
	p->cred = cred;
	p->cred.none = true;
	assert_int_equal(nfs_peer_null(p, NFS_PROGRAM, NFS_V3, 0), 0);
}

static void mounts(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh fh, sub;
	mountexports list = NULL;
	mountlist who = NULL;
	char path[200];
	unsigned n = 0;

	tmp_dir_mkdir(&p->dir, "e0/d");
	tmp_dir_mkdir(&p->dir, "e0/d/e");
	tmp_dir_write(&p->dir, "e0/f", "x");
	assert_int_equal(symlink("/", tmp_dir_path(&p->dir, "e0/l")), 0);
	assert_int_equal(nfs_peer_mount(p, "/e0/", &fh), MNT3_OK);
	assert_int_equal(fh.len, p->root.len);
	assert_memory_equal(fh.data, p->root.data, fh.len);
	assert_int_equal(nfs_peer_mount(p, "/e0/d//e", &sub), MNT3_OK);
	assert_int_equal(nfs_peer_mount(p, "/e0/f", &fh), MNT3ERR_NOTDIR);
	assert_int_equal(nfs_peer_mount(p, "/e0/l", &fh), MNT3ERR_NOTDIR);
	assert_int_equal(nfs_peer_mount(p, "/e0/none", &fh), MNT3ERR_NOENT);
	assert_int_equal(nfs_peer_mount(p, "/e0/../e0", &fh), MNT3ERR_ACCES);
	assert_int_equal(nfs_peer_mount(p, "/none", &fh), MNT3ERR_NOENT);
	assert_int_equal(nfs_peer_mount(p, "/", &fh), MNT3ERR_NOENT);
	assert_int_equal(nfs_peer_mount(p, "", &fh), MNT3ERR_NOENT);
	assert_int_equal(nfs_peer_mount(p, "e0", &fh), MNT3ERR_NOENT);
	snprintf(path, sizeof(path), "%s/e0", p->dir.path);
	assert_int_equal(nfs_peer_mount(p, path, &fh), MNT3ERR_NOENT);

	assert_int_equal(nfs_peer_rpc(p, MOUNT_PROGRAM, MOUNT_V3, MOUNTPROC3_EXPORT,
				      (xdrproc_t)nfs_peer_xdr_nothing, NULL, (xdrproc_t)xdr_mountexports,
				      &list, NULL, 0),
			 0);
	for (mountexports e = list; e; e = e->ex_next)
		n++;
	assert_int_equal(n, 4);
	xdr_free((xdrproc_t)xdr_mountexports, (char *)&list);

	assert_int_equal(nfs_peer_rpc(p, MOUNT_PROGRAM, MOUNT_V3, MOUNTPROC3_DUMP,
				      (xdrproc_t)nfs_peer_xdr_nothing, NULL, (xdrproc_t)xdr_mountlist, &who,
				      NULL, 0),
			 0);
	assert_non_null(who);
	xdr_free((xdrproc_t)xdr_mountlist, (char *)&who);
	assert_int_equal(nfs_peer_null(p, MOUNT_PROGRAM, MOUNT_V3, MOUNTPROC3_UMNTALL), 0);
	assert_int_equal(nfs_peer_rpc(p, MOUNT_PROGRAM, MOUNT_V3, MOUNTPROC3_DUMP,
				      (xdrproc_t)nfs_peer_xdr_nothing, NULL, (xdrproc_t)xdr_mountlist, &who,
				      NULL, 0),
			 0);
	assert_null(who);
}

/* Return: how often @path is in the list of mounts. */
static unsigned mounted(struct nfs_peer *p, const char *path)
{
	mountlist who = NULL;
	unsigned n = 0;

	assert_int_equal(nfs_peer_rpc(p, MOUNT_PROGRAM, MOUNT_V3, MOUNTPROC3_DUMP,
				      (xdrproc_t)nfs_peer_xdr_nothing, NULL, (xdrproc_t)xdr_mountlist, &who,
				      NULL, 0),
			 0);
	for (mountlist l = who; l; l = l->ml_next)
		n += !strcmp(l->ml_directory, path);
	xdr_free((xdrproc_t)xdr_mountlist, (char *)&who);
	return n;
}

/* A mount by libleat is in the list until it ends, and ends without the server, too. */
static void libleat_unmounts(void **state)
{
	struct nfs_peer *p = *state;
	const struct rpcrdma_addr *ways[] = { &p->tcp, &p->local };
	char addr[300], url[400];
	struct leat *m;

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		snprintf(url, sizeof(url), "%s/e1",
			 rpcrdma_addr_print(ways[i], addr, sizeof(addr)));
		assert_int_equal(leat_mount(url, NULL, &m), 0);
		assert_int_equal(mounted(p, "/e1"), 1);
		leat_umount(m);
		assert_int_equal(mounted(p, "/e1"), 0);
	}
	assert_int_equal(leat_mount(url, NULL, &m), 0);
	nfs_peer_disconnect(p);
	nfs_peer_stop(p);
	leat_umount(m);
	nfs_peer_start(p);
	nfs_peer_connect(p, RPCRDMA_TCP, 0);
}

/* ---- READ, WRITE, COMMIT ---- */

static void read_and_write(void **state)
{
	static const uint32_t lens[] = { 0,    1,    3,	   4,	 5,	100,	 1023,
					 1024, 1025, 4000, 4096, 65535, 1048575, 1048576 };
	struct nfs_peer *p = *state;
	uint8_t *out = malloc(1 << 20), *in = malloc(1 << 20);
	struct nfs_fh fh;
	WRITE3resok ok;
	uint32_t got;
	bool eof;

	for (uint32_t i = 0; i < 1 << 20; i++)
		out[i] = (uint8_t)(i * 7 + i / 251);
	assert_int_equal(nfs_peer_create_file(p, &p->root, "f", &fh), NFS3_OK);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		stable_how how = (stable_how)(i % 3);

		assert_int_equal(nfs_peer_write(p, &fh, 12345, out, lens[i], how, &ok), NFS3_OK);
		assert_int_equal(ok.count, lens[i]);
		assert_true(ok.committed >= how);
		assert_false(ok.file_wcc.before.attributes_follow);
		assert_true(ok.file_wcc.after.attributes_follow);
		memset(in, 0xee, 1 << 20);
		assert_int_equal(nfs_peer_read(p, &fh, 12345, in, lens[i], &got, &eof), NFS3_OK);
		assert_int_equal(got, lens[i]);
		assert_memory_equal(in, out, lens[i]);
		assert_int_equal(eof, ok.file_wcc.after.post_op_attr_u.attributes.size <=
					      12345 + lens[i]);
	}
	/* over the end, at the end, beyond */
	assert_int_equal(nfs_peer_read(p, &fh, 12345 + (1 << 20) - 10, in, 100, &got, &eof),
			 NFS3_OK);
	assert_int_equal(got, 10);
	assert_true(eof);
	assert_int_equal(nfs_peer_read(p, &fh, 12345 + (1 << 20), in, 100, &got, &eof), NFS3_OK);
	assert_int_equal(got, 0);
	assert_true(eof);
	assert_int_equal(nfs_peer_read(p, &fh, UINT64_MAX - 5, in, 100, &got, &eof), NFS3_OK);
	assert_int_equal(got, 0);
	assert_true(eof);
	/* more than rtmax is cut short, not refused */
	free(in);
	in = malloc(2 << 20);
	assert_int_equal(nfs_peer_read(p, &fh, 0, in, 2 << 20, &got, &eof), NFS3_OK);
	assert_int_equal(got, 1 << 20);
	assert_false(eof);
	free(in);
	free(out);
}

static void write_refusals(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh f, d, l;
	uint8_t byte = 1;
	uint32_t got;
	bool eof;

	tmp_dir_mkdir(&p->dir, "e0/d");
	assert_int_equal(symlink("f", tmp_dir_path(&p->dir, "e0/l")), 0);
	assert_int_equal(nfs_peer_create_file(p, &p->root, "f", &f), NFS3_OK);
	assert_int_equal(nfs_peer_lookup(p, &p->root, "d", &d), NFS3_OK);
	assert_int_equal(nfs_peer_lookup(p, &p->root, "l", &l), NFS3_OK);
	assert_int_equal(nfs_peer_write(p, &d, 0, &byte, 1, FILE_SYNC, NULL), NFS3ERR_INVAL);
	assert_int_equal(nfs_peer_write(p, &l, 0, &byte, 1, FILE_SYNC, NULL), NFS3ERR_INVAL);
	assert_int_equal(nfs_peer_read(p, &d, 0, &byte, 1, &got, &eof), NFS3ERR_INVAL);
	assert_int_equal(nfs_peer_read(p, &l, 0, &byte, 1, &got, &eof), NFS3ERR_INVAL);
	assert_int_equal(nfs_peer_write(p, &f, INT64_MAX, &byte, 1, FILE_SYNC, NULL), NFS3ERR_FBIG);
	assert_int_equal(nfs_peer_write(p, &f, UINT64_MAX, &byte, 1, FILE_SYNC, NULL),
			 NFS3ERR_FBIG);
	assert_int_equal(unlink(tmp_dir_path(&p->dir, "e0/f")), 0);
	/* the descriptor is open, the file is gone all the same */
	assert_int_equal(nfs_peer_write(p, &f, 0, &byte, 1, FILE_SYNC, NULL), NFS3ERR_STALE);
	assert_int_equal(nfs_peer_read(p, &f, 0, &byte, 1, &got, &eof), NFS3ERR_STALE);
	f.data[f.len - 1] ^= 1;
	assert_int_equal(nfs_peer_read(p, &f, 0, &byte, 1, &got, &eof), NFS3ERR_BADHANDLE);
	f.len = 0;
	assert_int_equal(nfs_peer_read(p, &f, 0, &byte, 1, &got, &eof), NFS3ERR_BADHANDLE);
}

static void commits(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh f;
	COMMIT3args a = { 0 };
	COMMIT3res res = { 0 };
	WRITE3resok ok, later;

	assert_int_equal(nfs_peer_create_file(p, &p->root, "f", &f), NFS3_OK);
	assert_int_equal(nfs_peer_write(p, &f, 0, "abc", 3, UNSTABLE, &ok), NFS3_OK);
	a.file = nfs_peer_fh(&f);
	NFS_PEER_CALL(p, COMMIT, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	assert_memory_equal(res.COMMIT3res_u.resok.verf, ok.verf, NFS3_WRITEVERFSIZE);
	assert_true(res.COMMIT3res_u.resok.file_wcc.after.attributes_follow);
	/* another server, another verifier, and the same file by the same handle if it can be */
	nfs_peer_disconnect(p);
	nfs_peer_stop(p);
	nfs_peer_start(p);
	nfs_peer_connect(p, RPCRDMA_TCP, 0);
	if (nfs_peer_write(p, &f, 0, "abc", 3, UNSTABLE, &later) != NFS3_OK) {
		assert_int_not_equal(geteuid(), 0);
		assert_int_equal(nfs_peer_mount(p, "/e0", &p->root), MNT3_OK);
		assert_int_equal(nfs_peer_lookup(p, &p->root, "f", &f), NFS3_OK);
		assert_int_equal(nfs_peer_write(p, &f, 0, "abc", 3, UNSTABLE, &later), NFS3_OK);
	}
	assert_memory_not_equal(later.verf, ok.verf, NFS3_WRITEVERFSIZE);
}

/* ---- directories ---- */

#define NAMES 300

static void fill_dir(struct nfs_peer *p, struct nfs_fh *ret)
{
	char name[300];

	tmp_dir_mkdir(&p->dir, "e0/many");
	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "e0/many/%0*d", 1 + i % 200, i);
		tmp_dir_write(&p->dir, name, "");
	}
	assert_int_equal(nfs_peer_lookup(p, &p->root, "many", ret), NFS3_OK);
}

static size_t encoded(xdrproc_t proc, void *res)
{
	char *buf = malloc(4 << 20);
	size_t n;
	XDR x;

	xdrmem_create(&x, buf, 4 << 20, XDR_ENCODE);
	assert_true(((bool_t(*)(XDR *, void *))proc)(&x, res));
	n = xdr_getpos(&x);
	free(buf);
	return n;
}

static unsigned list(struct nfs_peer *p, const struct nfs_fh *dir, uint32_t count,
		     unsigned *ret_calls)
{
	READDIR3args a = { .dir = nfs_peer_fh(dir), .count = count };
	unsigned n = 0;
	bool eof = false;

	for (*ret_calls = 0; !eof; ++*ret_calls) {
		READDIR3res res = { 0 };
		READDIR3resok *ok = &res.READDIR3res_u.resok;

		NFS_PEER_CALL(p, READDIR, &a, &res, NULL, 0);
		assert_int_equal(res.status, NFS3_OK);
		assert_true(encoded((xdrproc_t)xdr_READDIR3res, &res) - 4 <= count);
		for (entry3 *e = ok->reply.entries; e; e = e->nextentry) {
			a.cookie = e->cookie;
			n++;
		}
		eof = ok->reply.eof;
		assert_true(eof || ok->reply.entries);
		xdr_free((xdrproc_t)xdr_READDIR3res, (char *)&res);
	}
	return n;
}

static unsigned list_plus(struct nfs_peer *p, const struct nfs_fh *dir, uint32_t dircount,
			  uint32_t maxcount, bool change)
{
	READDIRPLUS3args a = { .dir = nfs_peer_fh(dir),
			       .dircount = dircount,
			       .maxcount = maxcount };
	unsigned n = 0, calls = 0;
	bool eof = false;

	while (!eof) {
		READDIRPLUS3res res = { 0 };
		READDIRPLUS3resok *ok = &res.READDIRPLUS3res_u.resok;

		NFS_PEER_CALL(p, READDIRPLUS, &a, &res, NULL, 0);
		assert_int_equal(res.status, NFS3_OK);
		assert_true(encoded((xdrproc_t)xdr_READDIRPLUS3res, &res) - 4 <= maxcount);
		for (entryplus3 *e = ok->reply.entries; e; e = e->nextentry) {
			a.cookie = e->cookie;
			n++;
			if (!strcmp(e->name, ".."))
				continue;
			assert_true(e->name_attributes.attributes_follow);
			assert_true(e->name_handle.handle_follows);
			assert_true(e->name_attributes.post_op_attr_u.attributes.fileid ==
				    e->fileid);
			if (change && e->name[0] == '0') {
				char name[400];

				snprintf(name, sizeof(name), "e0/many/%s", e->name);
				assert_int_equal(unlink(tmp_dir_path(&p->dir, name)), 0);
			}
		}
		eof = ok->reply.eof;
		assert_true(++calls < 1000);
		xdr_free((xdrproc_t)xdr_READDIRPLUS3res, (char *)&res);
	}
	return n;
}

static void listings(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh d;
	unsigned calls;

	fill_dir(p, &d);
	assert_int_equal(list(p, &d, 1 << 20, &calls), NAMES + 2);
	assert_int_equal(calls, 1);
	assert_int_equal(list(p, &d, 4096, &calls), NAMES + 2);
	assert_true(calls > 5);
	assert_int_equal(list(p, &d, 512, &calls), NAMES + 2);
	assert_int_equal(list_plus(p, &d, 1 << 20, 1 << 20, false), NAMES + 2);
	assert_int_equal(list_plus(p, &d, 512, 8192, false), NAMES + 2);
	assert_int_equal(list_plus(p, &d, 0, 1024, false), NAMES + 2);
	/* names that are removed meanwhile do not change the position of the others */
	assert_int_equal(list_plus(p, &d, 1024, 4096, true), NAMES + 2);
}

static void listing_refusals(void **state)
{
	struct nfs_peer *p = *state;
	READDIR3args a = { .dir = nfs_peer_fh(&p->root), .count = 100 };
	READDIRPLUS3args plus = { .dir = nfs_peer_fh(&p->root), .dircount = 8192, .maxcount = 130 };
	READDIR3res res = { 0 };
	READDIRPLUS3res plusres = { 0 };
	struct nfs_fh f;

	NFS_PEER_CALL(p, READDIR, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3ERR_TOOSMALL);
	a.count = 0;
	NFS_PEER_CALL(p, READDIR, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3ERR_TOOSMALL);
	NFS_PEER_CALL(p, READDIRPLUS, &plus, &plusres, NULL, 0);
	assert_int_equal(plusres.status, NFS3ERR_TOOSMALL);
	a.count = 4096;
	a.cookie = UINT64_MAX;
	NFS_PEER_CALL(p, READDIR, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3ERR_BAD_COOKIE);
	assert_int_equal(nfs_peer_create_file(p, &p->root, "f", &f), NFS3_OK);
	a.dir = nfs_peer_fh(&f);
	a.cookie = 0;
	NFS_PEER_CALL(p, READDIR, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3ERR_NOTDIR);
}

/* ---- names ---- */

static void odd_names(void **state)
{
	struct nfs_peer *p = *state;
	char name[300], path[320];
	struct nfs_fh f;

	memset(name, 'n', 255);
	name[255] = '\0';
	assert_int_equal(nfs_peer_create_file(p, &p->root, name, &f), NFS3_OK);
	assert_int_equal(nfs_peer_lookup(p, &p->root, name, &f), NFS3_OK);
	name[255] = 'n';
	name[256] = '\0';
	assert_int_equal(nfs_peer_create_file(p, &p->root, name, &f), NFS3ERR_NAMETOOLONG);
	assert_int_equal(nfs_peer_lookup(p, &p->root, name, &f), NFS3ERR_NAMETOOLONG);
	for (int c = 1; c < 256; c++) {
		if (c == '/')
			continue;
		snprintf(name, sizeof(name), "b%c", (char)c);
		assert_int_equal(nfs_peer_create_file(p, &p->root, name, &f), NFS3_OK);
		snprintf(path, sizeof(path), "e0/%s", name);
		assert_int_equal(access(tmp_dir_path(&p->dir, path), F_OK), 0);
	}
	assert_int_equal(nfs_peer_create_file(p, &p->root, "a/b", &f), NFS3ERR_ACCES);
	assert_int_equal(nfs_peer_create_file(p, &p->root, "", &f), NFS3ERR_ACCES);
	assert_int_equal(nfs_peer_create_file(p, &p->root, "..", &f), NFS3ERR_EXIST);
	assert_int_equal(nfs_peer_lookup(p, &p->root, "", &f), NFS3ERR_ACCES);
	assert_int_equal(nfs_peer_lookup(p, &p->root, "../e1", &f), NFS3ERR_ACCES);
	assert_int_equal(nfs_peer_lookup(p, &p->root, "..", &f), NFS3_OK);
	assert_int_equal(f.len, p->root.len);
	assert_memory_equal(f.data, p->root.data, f.len);
	assert_int_equal(nfs_peer_lookup(p, &f, ".", &f), NFS3_OK);
	assert_memory_equal(f.data, p->root.data, f.len);
}

static void symlinks(void **state)
{
	static const uint32_t lens[] = { 1, 100, 700, 1000, 3000, 4000, 4095 };
	struct nfs_peer *p = *state;
	char *target = malloc(4096), *back = malloc(4096);

	memset(target, 't', 4096);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		struct iovec iov = { .iov_base = target, .iov_len = lens[i] };
		SYMLINK3args a = { .where = { nfs_peer_fh(&p->root), (char[]){ "l?" } } };
		READLINK3args r;
		SYMLINK3res res = { 0 };
		READLINK3res rl = { 0 };
		struct nfs_fh fh;

		a.where.name[1] = (char)('0' + i);
		a.symlink.symlink_data =
			(nfspath_payload){ .length = lens[i], .iov = &iov, .iovcnt = 1 };
		NFS_PEER_CALL(p, SYMLINK, &a, &res, NULL, 0);
		assert_int_equal(res.status, NFS3_OK);
		assert_int_equal(nfs_peer_lookup(p, &p->root, a.where.name, &fh), NFS3_OK);
		r.symlink = nfs_peer_fh(&fh);
		memset(back, 0, 4096);
		NFS_PEER_CALL(p, READLINK, &r, &rl, back, 4096);
		assert_int_equal(rl.status, NFS3_OK);
		assert_int_equal(rl.READLINK3res_u.resok.data.length, lens[i]);
		assert_memory_equal(back, target, lens[i]);
		xdr_free((xdrproc_t)xdr_SYMLINK3res, (char *)&res);
		/* a NUL inside is no path */
		target[lens[i] / 2] = '\0';
		a.where.name[0] = 'm';
		memset(&res, 0, sizeof(res));
		NFS_PEER_CALL(p, SYMLINK, &a, &res, NULL, 0);
		assert_int_equal(res.status, NFS3ERR_INVAL);
		target[lens[i] / 2] = 't';
	}
	free(back);
	free(target);
}

static void exclusive_retry(void **state)
{
	struct nfs_peer *p = *state;
	CREATE3args a = { .where = { nfs_peer_fh(&p->root), (char[]){ "x" } } };
	CREATE3res res = { 0 };

	a.how.mode = EXCLUSIVE;
	memcpy(a.how.createhow3_u.verf, "\xf1\x02\x03\x04\x85\x06\x07\x08", 8);
	for (int i = 0; i < 2; i++) {
		NFS_PEER_CALL(p, CREATE, &a, &res, NULL, 0);
		assert_int_equal(res.status, NFS3_OK);
		xdr_free((xdrproc_t)xdr_CREATE3res, (char *)&res);
		memset(&res, 0, sizeof(res));
	}
	a.how.createhow3_u.verf[0] ^= (char)0x80;
	NFS_PEER_CALL(p, CREATE, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3ERR_EXIST);
}

static void guarded_setattr(void **state)
{
	struct nfs_peer *p = *state;
	SETATTR3args a = { 0 };
	SETATTR3res res = { 0 };
	struct nfs_fh f;

	assert_int_equal(nfs_peer_create_file(p, &p->root, "f", &f), NFS3_OK);
	a.object = nfs_peer_fh(&f);
	a.new_attributes.mode.set_it = TRUE;
	a.new_attributes.mode.set_mode3_u.mode = 0600;
	a.guard.check = TRUE;
	NFS_PEER_CALL(p, SETATTR, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3ERR_NOT_SYNC);
	a.guard.sattrguard3_u.obj_ctime =
		res.SETATTR3res_u.resfail.obj_wcc.after.post_op_attr_u.attributes.ctime;
	NFS_PEER_CALL(p, SETATTR, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	assert_int_equal(res.SETATTR3res_u.resok.obj_wcc.after.post_op_attr_u.attributes.mode,
			 0600);
	a.guard.check = FALSE;
	a.new_attributes.mtime.set_it = SET_TO_CLIENT_TIME;
	a.new_attributes.mtime.set_mtime_u.mtime.nseconds = 1000000000;
	NFS_PEER_CALL(p, SETATTR, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3ERR_INVAL);
}

static void file_system(void **state)
{
	struct nfs_peer *p = *state;
	FSINFO3args a = { nfs_peer_fh(&p->root) };
	FSSTAT3args sa = { nfs_peer_fh(&p->root) };
	PATHCONF3args pa = { nfs_peer_fh(&p->root) };
	FSINFO3res res = { 0 };
	FSSTAT3res sres = { 0 };
	PATHCONF3res pres = { 0 };

	NFS_PEER_CALL(p, FSINFO, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	assert_int_equal(res.FSINFO3res_u.resok.rtmax, 1 << 20);
	assert_int_equal(res.FSINFO3res_u.resok.wtmax, 1 << 20);
	assert_int_equal(res.FSINFO3res_u.resok.dtpref, 1 << 20);
	NFS_PEER_CALL(p, FSSTAT, &sa, &sres, NULL, 0);
	assert_int_equal(sres.status, NFS3_OK);
	assert_true(sres.FSSTAT3res_u.resok.tbytes >= sres.FSSTAT3res_u.resok.fbytes);
	NFS_PEER_CALL(p, PATHCONF, &pa, &pres, NULL, 0);
	assert_int_equal(pres.status, NFS3_OK);
	assert_int_equal(pres.PATHCONF3res_u.resok.name_max, 255);
}

#define BOTH(f)                                                                                    \
	{ #f " (tcp)", f, setup_tcp, nfs_peer_teardown, NULL },                                             \
	{                                                                                          \
#f " (local)", f, setup_local, nfs_peer_teardown, NULL                                      \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(rpc_refusals),	BOTH(mounts),	       BOTH(read_and_write),
		BOTH(write_refusals),	BOTH(commits),	       BOTH(listings),
		BOTH(listing_refusals), BOTH(odd_names),       BOTH(symlinks),
		BOTH(exclusive_retry),	BOTH(guarded_setattr), BOTH(file_system),
		BOTH(libleat_unmounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
