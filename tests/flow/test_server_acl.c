/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_acl.c - NFSACL: lists that come back as they were set, that decide, and that no call can
 * break; and the cache of what callers were found to be allowed
 *
 * Everything runs over TCP and over the local fabric. What needs several users, or a file system that
 * has lists, is skipped without.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/posix_acl.h>

#include "kernel_has.h"
#include "nfs_peer.h"

#define HIM 4711u

static const char *const options[] = { "rw,no_root_squash", "ro,no_root_squash", NULL };

NFS_PEER_SETUPS(options)

/* ---- lists ---- */

#define DEF(type) (NFS_ACL_DEFAULT | (type))

/* user HIM has rights that the file's group has not */
static aclent for_him[] = { { ACL_USER_OBJ, 0, 6 }, { ACL_USER, HIM, 6 }, { ACL_GROUP_OBJ, 0, 0 },
			    { ACL_MASK, 0, 6 },	    { ACL_OTHER, 0, 0 } };
static aclent him_out[] = { { ACL_USER_OBJ, 0, 6 }, { ACL_USER, HIM, 0 }, { ACL_GROUP_OBJ, 0, 6 },
			    { ACL_MASK, 0, 6 },	    { ACL_OTHER, 0, 6 } };
static aclent for_new[] = { { DEF(ACL_USER_OBJ), 0, 7 }, { DEF(ACL_USER), HIM, 7 },
			    { DEF(ACL_GROUP_OBJ), 0, 5 }, { DEF(ACL_MASK), 0, 5 },
			    { DEF(ACL_OTHER), 0, 0 } };

static secattr access_list(aclent *v, uint32_t n)
{
	return (secattr){ .mask = NFS_ACL, .aclcnt = n, .acl = { n, v } };
}

static secattr default_list(aclent *v, uint32_t n)
{
	return (secattr){ .mask = NFS_DFACL, .dfaclcnt = n, .dfacl = { n, v } };
}

/* the bytes that the kernel keeps; Return: how many */
static size_t kept(struct nfs_peer *p, const char *name, bool dflt, uint8_t *buf, size_t cap)
{
	ssize_t n = getxattr(tmp_dir_path(&p->dir, name),
			     dflt ? "system.posix_acl_default" : "system.posix_acl_access", buf, cap);

	return n < 0 ? 0 : (size_t)n;
}

static mode_t mode_of(struct nfs_peer *p, const char *name)
{
	struct stat st;

	assert_int_equal(stat(tmp_dir_path(&p->dir, name), &st), 0);
	return st.st_mode & 07777;
}

/* Return: status; a file system without lists ends the test */
static void set(struct nfs_peer *p, const struct nfs_fh *fh, secattr acl)
{
	nfsstat3 status = nfs_peer_setacl(p, fh, &acl);

	if (status == NFS3ERR_NOTSUPP && !kernel_has_acls(p->dir.path))
		skip();
	assert_int_equal(status, NFS3_OK);
}

static void like(const aclent *have, u_int n, const aclent *want, u_int want_n)
{
	assert_int_equal(n, want_n);
	for (u_int i = 0; i < n; i++) {
		assert_int_equal(have[i].type, want[i].type);
		assert_int_equal(have[i].perm, want[i].perm);
		if (want[i].id)
			assert_int_equal(have[i].id, want[i].id);
	}
}

static void make_file(struct nfs_peer *p, const char *name, mode_t mode, struct nfs_fh *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "e0/%s", name);
	tmp_dir_write(&p->dir, path, "text");
	assert_int_equal(chmod(tmp_dir_path(&p->dir, path), mode), 0);
	assert_int_equal(nfs_peer_lookup(p, &p->root, name, ret), NFS3_OK);
}

/* ---- tests ---- */

static void mode_bits_as_a_list(void **state)
{
	static const aclent want[] = { { ACL_USER_OBJ, 0, 6 }, { ACL_GROUP_OBJ, 0, 4 },
				       { ACL_MASK, 0, 4 },     { ACL_OTHER, 0, 1 } };
	struct nfs_peer *p = *state;
	GETACL3res res;
	const secattr *acl = &res.GETACL3res_u.resok.acl;
	struct nfs_fh f, link;

	make_file(p, "f", 0641, &f);
	assert_int_equal(symlink("f", tmp_dir_path(&p->dir, "e0/l")), 0);
	assert_int_equal(nfs_peer_lookup(p, &p->root, "l", &link), NFS3_OK);
	for (uint32_t mask = 0; mask <= NFS_ACL_MASK_ALL; mask++) {
		uint32_t n = mask & (NFS_ACL | NFS_ACLCNT) ? 4 : 0;

		assert_int_equal(nfs_peer_getacl(p, &f, mask, &res), NFS3_OK);
		assert_true(res.GETACL3res_u.resok.obj_attributes.attributes_follow);
		assert_int_equal(acl->mask, mask);
		assert_int_equal(acl->aclcnt, n);
		assert_int_equal(acl->dfaclcnt, 0);
		assert_int_equal(acl->dfacl.dfacl_len, 0);
		like(acl->acl.acl_val, acl->acl.acl_len, want, mask & NFS_ACL ? 4 : 0);
		xdr_free((xdrproc_t)xdr_GETACL3res, (char *)&res);
	}
	assert_int_equal(nfs_peer_getacl(p, &f, NFS_ACL_MASK_ALL + 1, &res), NFS3ERR_INVAL);
	assert_true(res.GETACL3res_u.resfail.obj_attributes.attributes_follow);
	/* what has no list of its own, nor ever will */
	assert_int_equal(nfs_peer_getacl(p, &link, NFS_ACL, &res), NFS3_OK);
	assert_int_equal(acl->acl.acl_len, 4);
	xdr_free((xdrproc_t)xdr_GETACL3res, (char *)&res);
	{
		secattr none = access_list(for_him, 5);

		assert_int_equal(nfs_peer_setacl(p, &link, &none), NFS3ERR_NOTSUPP);
	}
	f.data[f.len - 1] ^= 1;
	assert_int_equal(nfs_peer_getacl(p, &f, NFS_ACL, &res), NFS3ERR_BADHANDLE);
}

static void there_and_back(void **state)
{
	struct nfs_peer *p = *state;
	uint8_t buf[4096];
	GETACL3res res;
	const secattr *acl = &res.GETACL3res_u.resok.acl;
	struct nfs_fh f, d;

	make_file(p, "f", 0600, &f);
	set(p, &f, access_list(for_him, 5));
	assert_int_equal(mode_of(p, "e0/f"), 0660); /* the group's bits are the mask now */
	assert_int_equal(kept(p, "e0/f", false, buf, sizeof(buf)), 4 + 8 * 5);
	assert_int_equal(nfs_peer_getacl(p, &f, NFS_ACL_MASK_ALL, &res), NFS3_OK);
	like(acl->acl.acl_val, acl->acl.acl_len, for_him, 5);
	assert_int_equal(acl->acl.acl_val[0].id, geteuid());
	xdr_free((xdrproc_t)xdr_GETACL3res, (char *)&res);

	tmp_dir_mkdir(&p->dir, "e0/d");
	assert_int_equal(nfs_peer_lookup(p, &p->root, "d", &d), NFS3_OK);
	set(p, &d, default_list(for_new, 5));
	assert_int_equal(mode_of(p, "e0/d"), 0755);
	assert_int_equal(nfs_peer_getacl(p, &d, NFS_ACL_MASK_ALL, &res), NFS3_OK);
	assert_int_equal(acl->acl.acl_len, 4);
	like(acl->dfacl.dfacl_val, acl->dfacl.dfacl_len, for_new, 5);
	xdr_free((xdrproc_t)xdr_GETACL3res, (char *)&res);
	assert_int_equal(nfs_peer_getacl(p, &d, NFS_DFACLCNT, &res), NFS3_OK);
	assert_int_equal(acl->aclcnt, 0);
	assert_int_equal(acl->dfaclcnt, 5);
	assert_int_equal(acl->dfacl.dfacl_len, 0);
	xdr_free((xdrproc_t)xdr_GETACL3res, (char *)&res);

	/* away with them; what is not there can be taken away as well */
	for (int i = 0; i < 2; i++) {
		set(p, &f, access_list(NULL, 0));
		assert_int_equal(kept(p, "e0/f", false, buf, sizeof(buf)), 0);
		set(p, &d, default_list(NULL, 0));
		assert_int_equal(kept(p, "e0/d", true, buf, sizeof(buf)), 0);
	}
	/* a mask of 0 asks for nothing */
	set(p, &f, (secattr){ 0 });
}

/* What a directory gives to new files is theirs, whatever mode they are asked for with. */
static void inherited(void **state)
{
	struct nfs_peer *p = *state;
	uint8_t buf[4096];
	MKDIR3args a = { .where.name = (char[]){ "sub" } };
	MKDIR3res res = { 0 };
	MKNOD3args na = { .where.name = (char[]){ "pipe" }, .what.type = NF3FIFO };
	MKNOD3res nres = { 0 };
	struct nfs_fh d, f;

	tmp_dir_mkdir(&p->dir, "e0/d");
	assert_int_equal(nfs_peer_lookup(p, &p->root, "d", &d), NFS3_OK);
	set(p, &d, default_list(for_new, 5));
	assert_int_equal(nfs_peer_create_file(p, &d, "f", &f), NFS3_OK); /* with 0644 */
	assert_int_equal(mode_of(p, "e0/d/f"), 0640);
	assert_int_equal(kept(p, "e0/d/f", false, buf, sizeof(buf)), 4 + 8 * 5);
	a.where.dir = na.where.dir = nfs_peer_fh(&d);
	a.attributes.mode.set_it = TRUE;
	a.attributes.mode.set_mode3_u.mode = 03777;
	NFS_PEER_CALL(p, MKDIR, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	assert_int_equal(mode_of(p, "e0/d/sub"), 03750);
	assert_true(kept(p, "e0/d/sub", true, buf, sizeof(buf)) > 0);
	xdr_free((xdrproc_t)xdr_MKDIR3res, (char *)&res);
	na.what.mknoddata3_u.pipe_attributes.mode.set_it = TRUE;
	na.what.mknoddata3_u.pipe_attributes.mode.set_mode3_u.mode = 0666;
	NFS_PEER_CALL(p, MKNOD, &na, &nres, NULL, 0);
	assert_int_equal(nres.status, NFS3_OK);
	assert_int_equal(mode_of(p, "e0/d/pipe"), 0640);
	xdr_free((xdrproc_t)xdr_MKNOD3res, (char *)&nres);
}

static void nonsense(void **state)
{
	static aclent no_mask[] = { { ACL_USER_OBJ, 0, 6 }, { ACL_USER, HIM, 6 },
				    { ACL_GROUP_OBJ, 0, 0 }, { ACL_OTHER, 0, 0 } };
	static aclent wide[] = { { ACL_USER_OBJ, 0, 6 }, { ACL_GROUP_OBJ, 0, 64 }, { ACL_OTHER, 0, 0 } };
	struct nfs_peer *p = *state;
	uint8_t before[4096], after[4096];
	secattr good, bad;
	struct nfs_fh f, d;
	size_t n;

	make_file(p, "f", 0600, &f);
	tmp_dir_mkdir(&p->dir, "e0/d");
	assert_int_equal(nfs_peer_lookup(p, &p->root, "d", &d), NFS3_OK);
	set(p, &f, access_list(for_him, 5));
	set(p, &d, default_list(for_new, 5));
	n = kept(p, "e0/f", false, before, sizeof(before));
	assert_true(n > 0);

	bad = access_list(no_mask, 4);
	assert_int_equal(nfs_peer_setacl(p, &f, &bad), NFS3ERR_INVAL);
	bad = access_list(wide, 3);
	assert_int_equal(nfs_peer_setacl(p, &f, &bad), NFS3ERR_INVAL);
	bad = access_list(him_out, 5);
	bad.aclcnt = 4; /* the count and what is there */
	assert_int_equal(nfs_peer_setacl(p, &f, &bad), NFS3ERR_INVAL);
	bad.aclcnt = UINT32_MAX;
	assert_int_equal(nfs_peer_setacl(p, &f, &bad), NFS3ERR_INVAL);
	bad = access_list(him_out, 5);
	bad.mask |= 16;
	assert_int_equal(nfs_peer_setacl(p, &f, &bad), NFS3ERR_INVAL);
	/* one good list and one bad: neither */
	bad = access_list(him_out, 5);
	bad.mask |= NFS_DFACL;
	bad.dfaclcnt = bad.dfacl.dfacl_len = 5;
	bad.dfacl.dfacl_val = for_new;
	assert_int_equal(nfs_peer_setacl(p, &f, &bad), NFS3ERR_INVAL);
	assert_int_equal(kept(p, "e0/f", false, after, sizeof(after)), n);
	assert_memory_equal(after, before, n);

	n = kept(p, "e0/d", true, before, sizeof(before));
	bad.dfaclcnt = bad.dfacl.dfacl_len = 3;
	assert_int_equal(nfs_peer_setacl(p, &d, &bad), NFS3ERR_INVAL);
	assert_int_equal(kept(p, "e0/d", true, after, sizeof(after)), n);
	assert_memory_equal(after, before, n);
	assert_int_equal(mode_of(p, "e0/d"), 0755);

	/* over the limit of the protocol, that is no call */
	good = access_list(calloc(NFS_ACL_MAX_ENTRIES + 1, sizeof(aclent)), 0);
	for (uint32_t i = 0; i <= NFS_ACL_MAX_ENTRIES; i++)
		good.acl.acl_val[i] = i < 5 ? for_him[i] : (aclent){ ACL_USER, 10000 + i, 6 };
	good.aclcnt = good.acl.acl_len = NFS_ACL_MAX_ENTRIES + 1;
	{
		SETACL3args a = { .object = nfs_peer_fh(&f), .acl = good };
		SETACL3res res = { 0 };

		/* our own encoder refuses, too: so it lies about the length of the other list */
		a.acl.acl.acl_len = NFS_ACL_MAX_ENTRIES;
		a.acl.aclcnt = NFS_ACL_MAX_ENTRIES;
		assert_int_equal(nfs_peer_rpc(p, NFSACL_PROGRAM, NFSACL_V3, NFSACLPROC3_SETACL,
					      (xdrproc_t)xdr_SETACL3args, &a,
					      (xdrproc_t)xdr_SETACL3res, &res, NULL, 0),
				 0);
		/* as many as there may be: the file system has room for them, or says so */
		assert_true(res.status == NFS3_OK || res.status == NFS3ERR_NOSPC);
	}
	free(good.acl.acl_val);
}

/* more than fits a message: a long call, and a long reply */
static void many(void **state)
{
	enum { N = 400 };
	struct nfs_peer *p = *state;
	GETACL3res res;
	const secattr *acl = &res.GETACL3res_u.resok.acl;
	struct nfs_fh f;
	aclent v[N];

	make_file(p, "f", 0600, &f);
	memcpy(v, for_him, sizeof(for_him));
	for (uint32_t i = 5; i < N; i++) /* the other way around */
		v[i] = (aclent){ ACL_USER, 9999 - i, i % 8 };
	set(p, &f, access_list(v, N));
	assert_int_equal(nfs_peer_getacl(p, &f, NFS_ACL_MASK_ALL, &res), NFS3_OK);
	assert_int_equal(acl->acl.acl_len, N);
	assert_int_equal(acl->acl.acl_val[1].id, HIM);
	for (uint32_t i = 2; i < N - 3; i++) {
		assert_int_equal(acl->acl.acl_val[i].type, ACL_USER);
		assert_int_equal(acl->acl.acl_val[i].id, 9999 - (N - 1) + i - 2);
		assert_int_equal(acl->acl.acl_val[i].perm, (9999 - acl->acl.acl_val[i].id) % 8);
	}
	xdr_free((xdrproc_t)xdr_GETACL3res, (char *)&res);
}

static void whose_it_is(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh f, ro_root, ro;
	secattr acl = access_list(for_him, 5);
	GETACL3res res;

	make_file(p, "f", 0644, &f);
	tmp_dir_write(&p->dir, "e1/f", "x");
	assert_int_equal(nfs_peer_mount(p, "/e1", &ro_root), MNT3_OK);
	assert_int_equal(nfs_peer_lookup(p, &ro_root, "f", &ro), NFS3_OK);
	assert_int_equal(nfs_peer_setacl(p, &ro, &acl), NFS3ERR_ROFS);
	assert_int_equal(nfs_peer_getacl(p, &ro, NFS_ACL, &res), NFS3_OK);
	xdr_free((xdrproc_t)xdr_GETACL3res, (char *)&res);
	set(p, &f, access_list(for_him, 5));
	if (geteuid()) {
		print_message("SKIP: several users need root\n");
		skip();
	}
	/* the right to write does not make HIM the owner */
	p->cred.uid = p->cred.gid = HIM;
	acl = access_list(him_out, 5);
	assert_int_equal(nfs_peer_setacl(p, &f, &acl), NFS3ERR_PERM);
	assert_int_equal(nfs_peer_getacl(p, &f, NFS_ACL, &res), NFS3_OK);
	xdr_free((xdrproc_t)xdr_GETACL3res, (char *)&res);
	assert_int_equal(chown(tmp_dir_path(&p->dir, "e0/f"), HIM, HIM), 0);
	assert_int_equal(nfs_peer_setacl(p, &f, &acl), NFS3_OK);
}

/* for READ, WRITE, LOOKUP, ACCESS */
static void it_decides(void **state)
{
	static aclent search[] = { { ACL_USER_OBJ, 0, 7 }, { ACL_USER, HIM, 1 }, { ACL_GROUP_OBJ, 0, 0 },
				   { ACL_MASK, 0, 1 },	   { ACL_OTHER, 0, 0 } };
	struct nfs_peer *p = *state;
	struct nfs_fh f, d, below;
	char byte = 0;
	uint32_t got;
	bool eof;

	if (geteuid()) {
		print_message("SKIP: several users need root\n");
		skip();
	}
	make_file(p, "f", 0600, &f);
	tmp_dir_mkdir(&p->dir, "e0/d");
	tmp_dir_write(&p->dir, "e0/d/below", "x");
	assert_int_equal(chmod(tmp_dir_path(&p->dir, "e0/d"), 0700), 0);
	assert_int_equal(nfs_peer_lookup(p, &p->root, "d", &d), NFS3_OK);
	for (int round = 0; round < 2; round++) {
		/* nothing, then all of it, then nothing again */
		p->cred.uid = p->cred.gid = HIM;
		assert_int_equal(nfs_peer_access(p, &f), 0);
		assert_int_equal(nfs_peer_read(p, &f, 0, &byte, 1, &got, &eof), NFS3ERR_ACCES);
		assert_int_equal(nfs_peer_write(p, &f, 0, "x", 1, UNSTABLE, NULL), NFS3ERR_ACCES);
		assert_int_equal(nfs_peer_access(p, &d), 0);
		assert_int_equal(nfs_peer_lookup(p, &d, "below", &below), NFS3ERR_ACCES);
		p->cred.uid = p->cred.gid = 0;
		set(p, &f, access_list(for_him, 5));
		set(p, &d, access_list(search, 5));
		p->cred.uid = p->cred.gid = HIM;
		assert_int_equal(nfs_peer_access(p, &f),
				 ACCESS3_READ | ACCESS3_MODIFY | ACCESS3_EXTEND);
		assert_int_equal(nfs_peer_read(p, &f, 0, &byte, 1, &got, &eof), NFS3_OK);
		assert_int_equal(nfs_peer_write(p, &f, 0, "x", 1, UNSTABLE, NULL), NFS3_OK);
		assert_int_equal(nfs_peer_access(p, &d), ACCESS3_LOOKUP);
		assert_int_equal(nfs_peer_lookup(p, &d, "below", &below), NFS3_OK);
		/* other users of HIM's group do not get that right */
		p->cred.uid = HIM + 1;
		assert_int_equal(nfs_peer_access(p, &f), 0);
		assert_int_equal(nfs_peer_read(p, &f, 0, &byte, 1, &got, &eof), NFS3ERR_ACCES);
		assert_int_equal(nfs_peer_lookup(p, &d, "below", &below), NFS3ERR_ACCES);
		p->cred.uid = p->cred.gid = 0;
		set(p, &f, access_list(him_out, 5));
		set(p, &d, access_list(him_out, 5));
	}
}

#define BOTH(f)                                                                                    \
	{ #f " (tcp)", f, setup_tcp, nfs_peer_teardown, NULL },                                             \
	{                                                                                          \
#f " (local)", f, setup_local, nfs_peer_teardown, NULL                                      \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(mode_bits_as_a_list), BOTH(there_and_back), BOTH(inherited), BOTH(nonsense),
		BOTH(many),		   BOTH(whose_it_is),	 BOTH(it_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
