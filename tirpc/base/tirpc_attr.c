/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tirpc_attr.c - attributes that a program passes
 *
 * Operation:  A structure begins with its size, as rpcrdma.h explains.
 * Memory:     The table of bulk data stays the program's; a handle that keeps it copies it.
 */
#include <errno.h>
#include <string.h>

#include "tirpc_attr.h"

#define CREDITS 32u
#define INLINE_LEAST 1024u
#define INLINE_MOST 65536u

/* Size in the first release. */
#define FIRST (offsetof(struct rpcrdma_tirpc_attr, row_bytes) + sizeof(((struct rpcrdma_tirpc_attr *)0)->row_bytes))

int rt_attr_get(const struct rpcrdma_tirpc_attr *attr, struct rpcrdma_tirpc_attr *ret)
{
	size_t given = attr && attr->size ? attr->size : FIRST;
	struct rpcrdma_tirpc_attr a = { 0 };

	if (given < FIRST)
		return -EINVAL;
	for (size_t i = sizeof(a); attr && i < given; i++)
		if (((const uint8_t *)attr)[i])
			return -E2BIG;
	if (attr)
		memcpy(&a, attr, MIN(given, sizeof(a)));
	a.size = sizeof(a);
	if (!a.max_bytes)
		a.max_bytes = RT_MAX_BYTES;
	if (!a.credits)
		a.credits = CREDITS;
	if (a.max_bytes > RPCRDMA_TIRPC_MAX_BYTES || (a.nbulk && !a.bulk) || a.poll > RPCRDMA_POLL_EVENT ||
	    (a.inline_bytes && (a.inline_bytes < INLINE_LEAST || a.inline_bytes > INLINE_MOST)))
		return -EINVAL;
	*ret = a;
	return 0;
}
