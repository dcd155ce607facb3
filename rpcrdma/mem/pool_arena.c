/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * pool_arena.c - a pool that is allocated at start, as one region with one registration
 *
 * Operation:  Without an arena, segments come and go, each with a registration for every device. With an arena,
 *             the maximum memory of the pool is allocated at once and registered with each device when that is
 *             opened. Segments are parts of it. Each zone has its own range, so that long-lived buffers of one
 *             zone do not fragment the memory of another.
 * Memory:     Pinned from start to the domain's end; none of it is freed before.
 * Threads:    The domain's lock, as for all of the pool.
 * Errors:     -ENOBUFS: no gap is large enough. There is one when every segment of a zone is free.
 */
#include <errno.h>

#include "pool.h"

#define PAGE_BYTES ((size_t)4096)
#define HUGE_BYTES ((size_t)2 << 20)

static void part_put(struct rr_extent *x)
{
	(void)x; /* freed by rr_pool_part_give(), which knows the zone */
}

static const struct rr_mem_kind part_kind = { .name = "part", .put = part_put };

static bool has_part(const struct rr_pool *pool)
{
	return !pool->far && pool->bytes_max;
}

int rr_pool_arena_init(struct rpcrdma_domain *d)
{
	struct rr_pool_arena *a = &d->pool_arena;
	size_t bytes = 0, off = 0;
	int rc = -EOPNOTSUPP;

	if (!d->attr.pool_arena)
		return 0;
	for (unsigned z = 0; z < RR_ZONES; z++)
		if (has_part(&d->pools[z]))
			bytes += round_up_pow2(d->pools[z].bytes_max, PAGE_BYTES);
	bytes = round_up_pow2(bytes, HUGE_BYTES);
	rc = rr_extent_get(&rr_mem_kind_huge, NULL, bytes, &a->x);
	if (rc)
		rc = rr_extent_get(&rr_mem_kind_anonymous, NULL, bytes, &a->x);
	if (rc)
		return rc;
	for (unsigned z = 0; z < RR_ZONES; z++) {
		struct rr_pool *pool = &d->pools[z];

		if (!has_part(pool))
			continue;
		pool->arena = a;
		pool->base = (char *)a->x.mem + off;
		rr_ranges_init(&pool->ranges, round_up_pow2(pool->bytes_max, PAGE_BYTES));
		off += pool->ranges.bytes;
	}
	return 0;
}

int rr_pool_arena_attach(struct rpcrdma_domain *d, struct rr_dev *dev)
{
	struct rr_pool_arena *a = &d->pool_arena;

	if (!a->x.bytes)
		return 0;
	return rr_extent_reg(&a->x, dev->pd, RR_ACCESS_LOCAL_WRITE, &a->mr[dev->idx]);
}

void rr_pool_arena_detach(struct rpcrdma_domain *d, unsigned idx)
{
	rr_mr_dereg(d->pool_arena.mr[idx]);
	d->pool_arena.mr[idx] = NULL;
}

void rr_pool_arena_fini(struct rpcrdma_domain *d)
{
	if (!d->pool_arena.x.bytes)
		return;
	for (unsigned i = 0; i < RR_DEVS_MAX; i++)
		rr_pool_arena_detach(d, i);
	for (unsigned z = 0; z < RR_ZONES; z++)
		rr_ranges_fini(&d->pools[z].ranges);
	rr_extent_put(&d->pool_arena.x);
}

int rr_pool_part_get(struct rr_pool *pool, size_t bytes, struct rr_extent *ret)
{
	size_t off;
	int rc;

	/* Sizes are powers of two: with this alignment no part blocks the space of two larger ones. Only buffers longer
	 * than any class have other sizes, which are aligned to their largest power of two. */
	rc = rr_ranges_alloc(&pool->ranges, bytes, bytes & -bytes, &off);

	if (!rc)
		*ret = (struct rr_extent){ .kind = &part_kind, .mem = pool->base + off,
					   .bytes = bytes, .fd = -1 };
	return rc;
}

bool rr_pool_part_give(struct rr_pool *pool, const struct rr_extent *x)
{
	return x->kind == &part_kind &&
	       rr_ranges_free(&pool->ranges, (size_t)((char *)x->mem - pool->base));
}
