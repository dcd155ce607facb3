/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * slab.h - interface between slab.c (chunks of the pool) and slab_line.c (magazines and waiters)
 *
 * Threads:  the caller holds the domain's lock.
 */
#ifndef RR_SLAB_H
#define RR_SLAB_H

#include "engine_int.h"

#define RR_POOL_IDLE_NS (10 * NS_PER_S) /* how long a completely free chunk is kept */

struct rr_pool_chunk {
	struct list link;            /* pool->chunks[] */
	struct rr_pool *pool;
	unsigned class, n, nfree;
	uint64_t idle_since_ns;      /* while nfree == n */
	struct rr_extent x;
	struct rr_mr *mr[RR_DEVS_MAX];
	struct rr_buf *free;
	struct rr_buf bufs[];
};

unsigned rr_pool_class(const struct rr_pool *pool, size_t bytes);
must_check int rr_pool_take(struct rpcrdma_domain *d, struct rr_pool *pool, unsigned class,
			    struct rr_buf **ret);
struct rr_buf *rr_pool_take_denser(const struct rr_buf *than);
void rr_pool_give(struct rr_buf *b);
must_check uint64_t rr_pool_trim(struct rpcrdma_domain *d);

/* slab_arena.c */
must_check int rr_pool_arena_init(struct rpcrdma_domain *d);
void rr_pool_arena_fini(struct rpcrdma_domain *d);
must_check int rr_pool_arena_attach(struct rpcrdma_domain *d, struct rr_dev *dev);
void rr_pool_arena_detach(struct rpcrdma_domain *d, unsigned idx);
must_check int rr_pool_part_get(struct rr_pool *pool, size_t bytes, struct rr_extent *ret);
bool rr_pool_part_give(struct rr_pool *pool, const struct rr_extent *x);

#endif
