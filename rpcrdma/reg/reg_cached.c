/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_cached.c - cached registrations of any memory: the strategies over reg_cache.c
 *
 * Operation:  A segment borrows a registration from the cache that its connection shares with the others to the
 *             same server.
 * Memory:     The registration outlives the call: the server may access the memory until the entry is evicted
 *             or its pages are gone. A call that is given up deregisters it at once.
 * Threads:    The connection's; the cache has its own lock.
 * Errors:     As rr_cache_get().
 */
#include <errno.h>

#include "reg.h"

static int cached_get(struct rr_reg *reg, void *addr, size_t len, unsigned access,
		      struct rr_reg_seg *ret)
{
	int rc;

	if (!reg->shared->cache)
		return -ENOENT;
	rc = rr_cache_get(reg->shared->cache, addr, len, access, &ret->ref);
	if (rc)
		return rc;
	ret->ops = &rr_reg_cached_ops;
	ret->mr = ret->ref.mr;
	ret->seg = (struct rr_segment){ .handle = ret->mr->rkey, .length = (uint32_t)len,
					.offset = (uintptr_t)addr };
	return 0;
}

static bool cached_put(struct rr_reg *reg, struct rr_reg_seg *rseg)
{
	rseg->mr = NULL;
	return rr_cache_put(reg->shared->cache, &rseg->ref);
}

static bool cached_recall(struct rr_reg *reg, struct rr_reg_seg *rseg)
{
	rseg->mr = NULL;
	return rr_cache_recall(reg->shared->cache, &rseg->ref);
}

static void cached_drop(struct rr_reg *reg, struct rr_reg_seg *rseg)
{
	rseg->mr = NULL;
	rr_cache_drop(reg->shared->cache, &rseg->ref);
}

static void cached_revoke(struct rr_reg *reg)
{
	rr_shared_pd_revoke(reg->engine->domain, reg->shared);
}

const struct rr_reg_ops rr_reg_cached_ops = {
	.name = "cache",
	.get = cached_get,
	.put = cached_put,
	.recall = cached_recall,
	.drop = cached_drop,
	.revoke = cached_revoke,
};
