/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_req_bytes.c - the transport charges a call for all of its memory, with the program's part
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ctl_where.h"
#include "nfs.h"
#include "nfs_peer.h"

static size_t told; /* to the last listener */

int __real_rpcrdma_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr,
			  const struct rpcrdma_svc_attr *attr, const struct rpcrdma_svc_ops *ops, void *ctx,
			  struct rpcrdma_listener **ret);
int __wrap_rpcrdma_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr,
			  const struct rpcrdma_svc_attr *attr, const struct rpcrdma_svc_ops *ops, void *ctx,
			  struct rpcrdma_listener **ret);

int __wrap_rpcrdma_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr,
			  const struct rpcrdma_svc_attr *attr, const struct rpcrdma_svc_ops *ops, void *ctx,
			  struct rpcrdma_listener **ret)
{
	told = attr->req_bytes;
	return __real_rpcrdma_listen(e, addr, attr, ops, ctx, ret);
}

static void all_of_a_request(void **state)
{
	static const char *const options[] = { "rw", NULL };
	size_t program = MAX(sizeof(struct nfs_call), sizeof(struct ctl_call));
	struct nfs_peer p = { 0 };

	(void)state;
	nfs_peer_create(&p, RPCRDMA_LOCAL, options);
	assert_true(told >= sizeof(struct req) + program);
	assert_int_equal(p.srv->reactors[0]->req_bytes, told); /* what it allocates */
	nfs_peer_destroy(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_a_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
