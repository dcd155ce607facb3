/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_kinds.c - kinds of registration for any memory: cached, and for one call
 *
 * Operation:  cached: a segment borrows a registration from the cache that its connection shares with the others to
 *             the same server. dynamic: the segment has a registration of its own, the baseline for measuring other
 *             strategies: expensive, and exact.
 * Memory:     A cached registration outlives the call: the server may access the memory until the entry is evicted
 *             or its pages are gone. A call that is given up deregisters it at once. With dynamic the peer can
 *             access exactly the offered memory, with the offered right, during the call.
 * Threads:    The connection's; the cache has its own lock. Deregistration waits for remote accesses in progress.
 * Errors:     As rr_cache_get() and rr_mr_reg().
 */
#include <assert.h>
#include <errno.h>

#include "reg_int.h"

static int cached_get(struct rr_reg_conn *rc, void *addr, size_t len, unsigned access,
		      struct rr_reg_seg *ret)
{
	int err;

	if (!rc->shared->cache)
		return -ENOENT;
	err = rr_cache_get(rc->shared->cache, addr, len, access, &ret->ref);
	if (err)
		return err;
	rr_reg_seg_set(ret, &rr_reg_cached, ret->ref.mr, addr, len);
	return 0;
}

static int cached_end(struct rr_reg_conn *rc, struct rr_reg_seg *rseg, enum rr_reg_end how)
{
	struct rr_cache *c = rc->shared->cache;

	rseg->mr = NULL;
	if (how == RR_END_GIVEN_UP)
		return rr_cache_recall(c, &rseg->ref) ? 0 : -ECONNABORTED;
	if (how != RR_END_LOST)
		return rr_cache_put(c, &rseg->ref) ? 0 : -EFAULT;
	rr_cache_drop(c, &rseg->ref);
	return 0;
}

static void cached_revoke(struct rr_reg_conn *rc)
{
	const struct rr_shared_pd *sp = rc->shared;

	pthread_mutex_lock(&rc->engine->domain->lock);
	if (sp->cache && rr_shared_pd_is_alone(sp))
		rr_cache_flush(sp->cache);
	pthread_mutex_unlock(&rc->engine->domain->lock);
}

const struct rr_reg_kind rr_reg_cached = {
	.name = "cache",
	.get = cached_get,
	.end = cached_end,
	.revoke = cached_revoke,
};

static int dynamic_get(struct rr_reg_conn *rc, void *addr, size_t len, unsigned access,
		       struct rr_reg_seg *ret)
{
	const struct rr_mr_attr attr = { .addr = addr, .len = len, .access = access, .fd = -1 };
	struct rr_mr *mr;
	int err;

	err = rr_mr_reg(rc->pub.pd, &attr, &mr);
	if (err)
		return err;
	rr_count(rc->engine, regs, 1);
	rr_reg_seg_set(ret, &rr_reg_dynamic, mr, addr, len);
	return 0;
}

/* Not monitored: an unmapping is detected only if the range is still unmapped. */
static int dynamic_end(struct rr_reg_conn *rc, struct rr_reg_seg *rseg, enum rr_reg_end how)
{
	const struct iovec iov = { rseg->mr->addr, rseg->mr->len };
	bool is_there = how != RR_END_REPLIED || rr_mem_is_there(&iov, 1, iov.iov_len, false);
	int err = rr_mr_dereg(rseg->mr);

	assert(!err); /* -EBUSY needs a bound window, and that was put before */
	(void)err;
	rseg->mr = NULL;
	rr_count(rc->engine, deregs, 1);
	return is_there ? 0 : -EFAULT;
}

const struct rr_reg_kind rr_reg_dynamic = {
	.name = "dynamic",
	.get = dynamic_get,
	.end = dynamic_end,
};
