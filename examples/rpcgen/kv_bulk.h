/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * kv_bulk.h - which data of kv.x travels by chunk, directly between the memory of client and server
 */
#include <rpcrdma_tirpc.h>

static const struct rpcrdma_bulk kv_bulk[] = {
	/* kv_pair: the key is the first item, the value the second */
	{ .prog = KV_PROGRAM, .vers = KV_VERSION, .proc = KV_PUT, .args = 2, .reply_max = 4 },
	{ .prog = KV_PROGRAM, .vers = KV_VERSION, .proc = KV_GET, .results = 1, .data_max = KV_VALUE_MAX, .reply_max = 8 },
};
static const struct rpcrdma_tirpc_attr kv_attr = { .bulk = kv_bulk, .nbulk = 2, .max_bytes = KV_VALUE_MAX + 1024 };
