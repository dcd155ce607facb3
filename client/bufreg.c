/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * bufreg.c - memory that moves without copies
 *
 * Operation:  A thin name for rpcrdma_mem_alloc(): pages that are registered with every device
 *             once, and that a server on the same host maps.
 * Memory:     The caller's from leat_buf_alloc() to leat_buf_free(), which must come before
 *             leat_umount(): the memory belongs to the handle's domain.
 * Threads:    Any, with or without the service thread: a domain has a lock of its own.
 * Errors:     -ENOMEM, -EINVAL (0 bytes).
 */
#include <errno.h>

#include "handle.h"

/** leat_buf_alloc - see leat.h */
int leat_buf_alloc(struct leat *m, size_t bytes, void **ret)
{
	if (!m)
		return -EINVAL;
	return rpcrdma_mem_alloc(m->domain, bytes, ret);
}

/** leat_buf_free - see leat.h */
void leat_buf_free(struct leat *m, void *buf)
{
	if (buf)
		rpcrdma_mem_free(m->domain, buf);
}
