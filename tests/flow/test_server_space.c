/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_space.c - ALLOCATE and SEEK of a leatd: who may, and what no client should send
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs_peer.h"
#include "space.h"

#define OTHER 4711u
#define MIB (1u << 20)

static const char *const options[] = { "rw,no_root_squash", "ro,no_root_squash", NULL };

NFS_PEER_SETUPS(options)

static nfsstat3 allocate(struct nfs_peer *p, const struct nfs_fh *fh, uint32_t change, uint64_t off, uint64_t len)
{
	ALLOCATE3args a = { nfs_peer_fh(fh), (space_change)change, off, len };
	ALLOCATE3res res = { 0 };

	assert_int_equal(nfs_peer_rpc(p, LEAT_SPACE, LEAT_SPACE_V1, SPACEPROC_ALLOCATE,
				      (xdrproc_t)xdr_ALLOCATE3args, &a, (xdrproc_t)xdr_ALLOCATE3res, &res, NULL, 0),
			 0);
	return res.status;
}

static nfsstat3 seek(struct nfs_peer *p, const struct nfs_fh *fh, uint64_t off, bool hole, uint64_t *ret)
{
	SEEK3args a = { nfs_peer_fh(fh), off, hole };
	SEEK3res res = { 0 };

	assert_int_equal(nfs_peer_rpc(p, LEAT_SPACE, LEAT_SPACE_V1, SPACEPROC_SEEK, (xdrproc_t)xdr_SEEK3args, &a,
				      (xdrproc_t)xdr_SEEK3res, &res, NULL, 0),
			 0);
	*ret = res.SEEK3res_u.resok.offset;
	return res.status;
}

static int64_t size_of(struct nfs_peer *p, const char *name)
{
	struct stat st;

	assert_int_equal(stat(tmp_dir_path(&p->dir, name), &st), 0);
	return st.st_size;
}

static void make(struct nfs_peer *p, struct nfs_fh *ret)
{
	assert_int_equal(nfs_peer_create_file(p, &p->root, "f", ret), NFS3_OK);
}

static void limits(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh f;
	uint64_t at;

	assert_int_equal(nfs_peer_null(p, LEAT_SPACE, LEAT_SPACE_V1, SPACEPROC_NULL), 0);
	make(p, &f);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, 0, MIB), NFS3_OK);
	assert_int_equal(size_of(p, "e0/f"), MIB);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, 0, 0), NFS3ERR_INVAL);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, INT64_MAX, 1), NFS3ERR_FBIG);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, UINT64_MAX, UINT64_MAX), NFS3ERR_FBIG);
	assert_int_equal(allocate(p, &f, SPACE_ZERO_KEEP + 1, 0, 1), NFS3ERR_INVAL);
	assert_int_equal(allocate(p, &f, UINT32_MAX, 0, 1), NFS3ERR_INVAL);
	assert_int_equal(size_of(p, "e0/f"), MIB);
	assert_int_equal(seek(p, &f, 0, true, &at), NFS3_OK);
	assert_int_equal(seek(p, &f, MIB, true, &at), NFS3ERR_NXIO);
	assert_int_equal(seek(p, &f, MIB, false, &at), NFS3ERR_NXIO);
	assert_int_equal(seek(p, &f, UINT64_MAX, false, &at), NFS3ERR_NXIO);
	/* no regular file, no file */
	assert_int_equal(allocate(p, &p->root, SPACE_ALLOCATE, 0, 1), NFS3ERR_INVAL);
	assert_int_equal(seek(p, &p->root, 0, false, &at), NFS3ERR_INVAL);
	f.len = 1;
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, 0, 1), NFS3ERR_BADHANDLE);
	assert_int_equal(seek(p, &f, 0, true, &at), NFS3ERR_BADHANDLE);
}

static void read_only(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh root, f;
	uint64_t at;
	FILE *file = fopen(tmp_dir_path(&p->dir, "e1/f"), "w");

	assert_non_null(file);
	fputs("text", file);
	fclose(file);
	assert_int_equal(nfs_peer_mount(p, "/e1", &root), MNT3_OK);
	assert_int_equal(nfs_peer_lookup(p, &root, "f", &f), NFS3_OK);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, 0, MIB), NFS3ERR_ROFS);
	assert_int_equal(allocate(p, &f, SPACE_PUNCH, 0, MIB), NFS3ERR_ROFS);
	assert_int_equal(size_of(p, "e1/f"), 4);
	assert_int_equal(seek(p, &f, 0, true, &at), NFS3_OK);
	assert_int_equal(at, 4);
}

/* As READ and WRITE: the owner may in any case, others with permission. */
static void permissions(void **state)
{
	struct nfs_peer *p = *state;
	const char *path = tmp_dir_path(&p->dir, "e0/f");
	struct nfs_fh f;
	uint64_t at;
	char name[256];

	if (geteuid() || p->clnt == NULL)
		skip();
	snprintf(name, sizeof(name), "%s", path);
	make(p, &f);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, 0, 4096), NFS3_OK);
	nfs_peer_disconnect(p);
	p->cred.uid = p->cred.gid = OTHER;
	nfs_peer_connect(p, RPCRDMA_TCP, 0);
	assert_int_equal(chmod(name, 0600), 0);
	assert_int_equal(allocate(p, &f, SPACE_PUNCH, 0, 4096), NFS3ERR_ACCES);
	assert_int_equal(seek(p, &f, 0, true, &at), NFS3ERR_ACCES);
	assert_int_equal(chmod(name, 0604), 0);
	assert_int_equal(allocate(p, &f, SPACE_PUNCH, 0, 4096), NFS3ERR_ACCES);
	assert_int_equal(seek(p, &f, 0, true, &at), NFS3_OK);
	assert_int_equal(chmod(name, 0606), 0);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, 0, 8192), NFS3_OK);
	assert_int_equal(size_of(p, "e0/f"), 8192);
	assert_int_equal(chmod(name, 0), 0);
	assert_int_equal(chown(name, OTHER, OTHER), 0);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, 0, 12288), NFS3_OK);
}

int main(void)
{
#define BOTH(test)                                                                                                   \
	{ #test ", TCP", test, setup_tcp, nfs_peer_teardown, NULL },                                                 \
	{                                                                                                            \
		#test ", local", test, setup_local, nfs_peer_teardown, NULL                                          \
	}
	const struct CMUnitTest tests[] = {
		BOTH(limits),
		BOTH(read_only),
		{ "permissions", permissions, setup_tcp, nfs_peer_teardown, NULL },
	};
#undef BOTH

	return cmocka_run_group_tests(tests, NULL, NULL);
}
