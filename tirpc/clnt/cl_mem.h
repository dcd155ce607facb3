/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_mem.h - memory that peers access for calls of all CLIENTs of a process: bounded, and registered once
 */
#ifndef RT_CL_MEM_H
#define RT_CL_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/util.h"
#include "rpcrdma_addr.h"

/* A segment. */
struct rt_mem {
	void *addr;       /* page-aligned */
	size_t bytes;     /* at least what was asked for and RT_MEM_HEAD */
	size_t charged;   /* part of the limit */
	struct rpcrdma_addr server; /* whose calls it is for: no other server has access to it */
	struct list link;
};

#define RT_MEM_HEAD 1024u /* beyond the bytes of a message: for the RPC header of a reply */

/** rt_mem_limit - raises the limit to @bytes, and to @least: for one call; before the first rt_mem_get(); any thread */
void rt_mem_limit(size_t bytes, size_t least);

/** rt_mem_get - gets a segment for a message of @bytes to or from @server; waits in order while the limit is reached; any thread
 * @until_ns: when to give up; UINT64_MAX: never; 0: at once
 *
 * Return: 0; -EMSGSIZE: more than the limit; -ETIMEDOUT; -ENOMEM.
 */
must_check int rt_mem_get(size_t bytes, const struct rpcrdma_addr *server, uint64_t until_ns, struct rt_mem **ret);

/** rt_mem_put - returns a segment, which is kept for the next call; any thread. NULL is fine. */
void rt_mem_put(struct rt_mem *m);

/** rt_mem_is_short - does a call wait for memory? */
bool rt_mem_is_short(void);

/** rt_mem_count_too_long - counts results that were longer than their call accepts */
void rt_mem_count_too_long(void);

#endif
