/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_item_readlink.c - READLINK by Write chunk, by Reply chunk and inline: item 73 of the checklist
 *                        in doc/protocol.md
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs_peer.h"

/* Results whose path is no payload: then only the Reply chunk can carry a long one. */
struct plain_res {
	nfsstat3 status;
	post_op_attr attr;
	u_int len;
	char path[4096];
};

static bool_t xdr_plain_res(XDR *xdrs, struct plain_res *r)
{
	char *path = r->path;

	return xdr_nfsstat3(xdrs, &r->status) && xdr_post_op_attr(xdrs, &r->attr) &&
	       (r->status || xdr_bytes(xdrs, &path, &r->len, sizeof(r->path)));
}

static struct rpcrdma_stats stats(const struct nfs_peer *p)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(p->domain, &s);
	return s;
}

static void item73_readlink_every_way(void **state)
{
	static const char *const options[] = { "rw,no_root_squash", NULL };
	static const uint32_t lens[] = { 1, 3, 1001, 3999, 4095 };
	static struct nfs_peer p;
	char target[4096], back[4096];

	(void)state;
	nfs_peer_create(&p, RPCRDMA_LOCAL, options);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		struct rpcrdma_stats before, after;
		struct plain_res plain;
		READLINK3res res = { 0 };
		READLINK3args a;
		struct nfs_fh fh;
		char name[16];

		memset(target, (int)('a' + i), lens[i]);
		target[lens[i]] = '\0';
		snprintf(name, sizeof(name), "e0/l%zu", i);
		assert_int_equal(symlink(target, tmp_dir_path(&p.dir, name)), 0);
		assert_int_equal(nfs_peer_lookup(&p, &p.root, name + 3, &fh), NFS3_OK);
		a.symlink = nfs_peer_fh(&fh);

		before = stats(&p);
		NFS_PEER_CALL(&p, READLINK, &a, &res, back, sizeof(back)); /* a Write chunk for the path */
		after = stats(&p);
		assert_int_equal(after.chunks_write, before.chunks_write + 1);
		assert_int_equal(res.status, NFS3_OK);
		assert_int_equal(res.READLINK3res_u.resok.data.length, lens[i]);
		assert_memory_equal(back, target, lens[i]);

		memset(&plain, 0, sizeof(plain)); /* a Reply chunk for all of it, as Linux does */
		assert_int_equal(nfs_peer_rpc(&p, NFS_PROGRAM, NFS_V3, NFSPROC3_READLINK,
					      (xdrproc_t)xdr_READLINK3args, &a,
					      (xdrproc_t)xdr_plain_res, &plain, NULL, 0), 0);
		assert_int_equal(stats(&p).chunks_reply, after.chunks_reply + 1);
		assert_int_equal(stats(&p).chunks_write, after.chunks_write);
		assert_int_equal(plain.status, NFS3_OK);
		assert_int_equal(plain.len, lens[i]);
		assert_memory_equal(plain.path, target, lens[i]);
	}
	nfs_peer_destroy(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(item73_readlink_every_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
