/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma_tirpc.h - handles of libtirpc over RDMA, the same-host fabric and TCP (librpcrdma_tirpc)
 *
 * A program whose stubs rpcgen made creates its handle here and leaves the rest as it is.
 *
 * Errors:   Those of libtirpc: enum clnt_stat, and rpc_createerr of a constructor.
 */
#ifndef RPCRDMA_TIRPC_H
#define RPCRDMA_TIRPC_H

#include <rpc/rpc.h>

#include "rpcrdma_loop.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** rpcrdma_tirpc_domain - the domain of the handles of this process; any thread
 *
 * Bulk data moves without a copy from and to memory of rpcrdma_mem_alloc() in it. It lives as long as the process. A
 * child of fork() has a domain of its own.
 *
 * Return: NULL: no memory or no descriptors.
 */
struct rpcrdma_domain *rpcrdma_tirpc_domain(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
