/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * pool.h - interface between pool.c (segments of the pool) and pool_wait.c (magazines and waiters)
 *
 * Threads:  the caller holds the domain's lock.
 */
#ifndef RR_POOL_H
#define RR_POOL_H

#include "engine_int.h"

#define RR_POOL_IDLE_NS (10 * NS_PER_S) /* how long a completely free segment is kept */

struct rr_pool_segment {
	struct list link;            /* pool->segments[] */
	struct rr_pool *pool;
	unsigned class, n, nfree;
	size_t size;                 /* of one buffer */
	uint64_t idle_since_ns;      /* while nfree == n */
	struct rr_extent x;
	struct rr_mr *mr[RR_DEVS_MAX];
	struct rr_buf *free;
	struct rr_buf bufs[];
};

/** rr_pool_class - returns the smallest class that holds @bytes
 *
 * Return: RR_POOL_LONG: longer than any class, but @pool has such buffers; RR_POOL_NONE: @pool has none.
 */
unsigned rr_pool_class(const struct rr_pool *pool, size_t bytes);

/** rr_pool_take - takes a buffer of @class out of a segment; adds a segment if needed
 * @bytes: size of the buffer that is needed; for RR_POOL_LONG
 *
 * Return: 0; -ENOBUFS: the pool is at its limit; -ENOMEM; errors of registering a new segment.
 */
must_check int rr_pool_take(struct rpcrdma_domain *d, struct rr_pool *pool, unsigned class, size_t bytes,
			    struct rr_buf **ret);

/** rr_pool_take_denser - takes a buffer of the class of @than, from the segment with the fewest free ones, but
 * not more than its own
 *
 * Return: NULL: no such segment.
 */
struct rr_buf *rr_pool_take_denser(const struct rr_buf *than);

/** rr_pool_give - returns a buffer to its segment */
void rr_pool_give(struct rr_buf *b);

/** rr_pool_trim - frees segments that were completely free for domain->pool_idle_ns
 *
 * Return: time until the next call is useful, in ns; 0: no other segment is completely free.
 */
must_check uint64_t rr_pool_trim(struct rpcrdma_domain *d);

/* pool_arena.c */
/** rr_pool_arena_init - creates the arena, if configured; call after setting up the zones
 *
 * Return: 0, -ENOMEM.
 */
must_check int rr_pool_arena_init(struct rpcrdma_domain *d);

/** rr_pool_arena_fini - frees the arena; its segments are already freed */
void rr_pool_arena_fini(struct rpcrdma_domain *d);

/** rr_pool_arena_attach - registers the arena with a device that is opened
 *
 * Return: 0, as rr_mr_reg().
 */
must_check int rr_pool_arena_attach(struct rpcrdma_domain *d, struct rr_dev *dev);

/** rr_pool_arena_detach - undoes rr_pool_arena_attach() for device @idx; nothing to undo is fine */
void rr_pool_arena_detach(struct rpcrdma_domain *d, unsigned idx);

/** rr_pool_part_get - allocates the memory of a segment from the arena
 *
 * Return: 0; -ENOBUFS, -ENOMEM.
 */
must_check int rr_pool_part_get(struct rr_pool *pool, size_t bytes, struct rr_extent *ret);

/** rr_pool_part_give - frees the memory of a segment; Return: false: it is not part of an arena */
bool rr_pool_part_give(struct rr_pool *pool, const struct rr_extent *x);

#endif
