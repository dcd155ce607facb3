/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_slab.c - memory of rpcrdma_mem_alloc() and _register(), registered once per protection domain
 *
 * Operation:  The first use of a region in a protection domain registers all of it, for both directions. Later uses, by
 *             whatever connection, look it up by address, most recently used first. On the local fabric the region's memfd
 *             is registered too, so that the servers can map it.
 *             A connection that ends deregisters what no other one uses.
 * Memory:     A slab_mr belongs to its region and to its protection domain; the first of them to end deregisters it.
 *             It is freed with its last segment.
 * Threads:    The domain's lock guards both lists and the check whether a region is in use: any thread may
 *             deregister an unused one.
 * Errors:     -ENOENT for memory not known to the library; -ENOMEM; -EFAULT for _register() memory that is not
 *             mapped, or not writable.
 */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "reg_int.h"

struct rr_slab_mr {
	struct list by_mem; /* rr_mem.mrs */
	struct list by_pd;  /* rr_shared_pd.slabs */
	struct rr_mem *mem;
	struct rr_mr *mr;
	atomic_uint refs;   /* one for the lists, one for each segment */
	bool windows;       /* it is accessible by windows only */
	atomic_bool outdated; /* the region has got other pages since */
};

static bool covers(const struct rr_slab_mr *s, const void *addr, size_t len)
{
	uintptr_t at = (uintptr_t)addr, start = (uintptr_t)s->mr->addr;

	return at >= start && at - start <= s->mr->len && len <= s->mr->len - (at - start);
}

static void unref(struct rr_slab_mr *s)
{
	if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
		free(s);
}

/* Deregisters it. Under the lock. */
static void slab_dereg(struct rr_slab_mr *s)
{
	int err = rr_mr_dereg(s->mr);

	assert(!err); /* no window is bound to it: windows end with their calls */
	(void)err;
	list_del(&s->by_mem);
	list_del(&s->by_pd);
	unref(s);
}

static int slab_add(struct rr_reg_conn *rc, struct rr_mem *mem, struct rr_slab_mr **ret)
{
	unsigned access = RR_ACCESS_LOCAL_WRITE |
			  (rc->windows ? (unsigned)RR_ACCESS_MW_BIND : RR_ACCESS_REMOTE);
	struct rr_slab_mr *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	err = rr_extent_reg(&mem->x, rc->pub.pd, access, &s->mr);
	if (err == -EFAULT && mem->given && !rc->windows) /* it may be mapped read-only */
		err = rr_extent_reg(&mem->x, rc->pub.pd, RR_ACCESS_REMOTE_READ, &s->mr);
	if (err) {
		free(s);
		return err;
	}
	rr_count(rc->engine, regs, 1);
	s->mem = mem;
	s->windows = rc->windows;
	atomic_init(&s->refs, 1);
	list_add_tail(&mem->mrs, &s->by_mem);
	list_add_head(&rc->shared->slabs, &s->by_pd);
	*ret = s;
	return 0;
}

/* Returns the registration of the region that contains the range. Under the lock. */
static int slab_find(struct rr_reg_conn *rc, const void *addr, size_t len, struct rr_slab_mr **ret)
{
	struct rr_mem *mem;

	list_for_each(node, &rc->shared->slabs) {
		struct rr_slab_mr *s = list_entry(node, struct rr_slab_mr, by_pd);

		if (!s->outdated && s->windows == !!rc->windows && covers(s, addr, len)) {
			list_del(&s->by_pd);
			list_add_head(&rc->shared->slabs, &s->by_pd);
			*ret = s;
			return 0;
		}
	}
	mem = rr_mem_find(rc->engine->domain, addr, len);
	return mem ? slab_add(rc, mem, ret) : -ENOENT;
}

static int slab_get(struct rr_reg_conn *rc, void *addr, size_t len, unsigned access,
		    struct rr_reg_seg *ret)
{
	struct rr_slab_mr *s;
	int err;

	pthread_mutex_lock(&rc->engine->domain->lock);
	err = slab_find(rc, addr, len, &s);
	if (!err && (s->mr->access & access) != access)
		err = -EFAULT;
	if (!err) {
		atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&s->mem->out, 1, memory_order_relaxed);
		ret->slab = s;
		rr_reg_seg_set(ret, &rr_reg_slab, s->mr, addr, len);
	}
	pthread_mutex_unlock(&rc->engine->domain->lock);
	return err;
}

/* Its last call ends: others use the protection domain for long. */
static void end_outdated(struct rr_reg_conn *rc, struct rr_slab_mr *s)
{
	pthread_mutex_lock(&rc->engine->domain->lock);
	if (list_is_linked(&s->by_mem) && atomic_load_explicit(&s->refs, memory_order_acquire) == 2) {
		slab_dereg(s);
		rr_count(rc->engine, deregs, 1);
	}
	pthread_mutex_unlock(&rc->engine->domain->lock);
}

/* The program promised to keep the memory mapped. */
static int slab_end(struct rr_reg_conn *rc, struct rr_reg_seg *rseg, enum rr_reg_end how)
{
	rseg->mr = NULL;
	if (unlikely(atomic_load_explicit(&rseg->slab->outdated, memory_order_relaxed)))
		end_outdated(rc, rseg->slab);
	atomic_fetch_sub_explicit(&rseg->slab->mem->out, 1, memory_order_release);
	unref(rseg->slab);
	return how == RR_END_GIVEN_UP ? -ECONNABORTED : 0; /* other calls may use the region */
}

static void slab_revoke(struct rr_reg_conn *rc)
{
	pthread_mutex_lock(&rc->engine->domain->lock);
	list_for_each_safe(node, &rc->shared->slabs) {
		if (!rr_shared_pd_is_alone(rc->shared))
			break;
		slab_dereg(list_entry(node, struct rr_slab_mr, by_pd));
		rr_count(rc->engine, deregs, 1);
	}
	pthread_mutex_unlock(&rc->engine->domain->lock);
}

/* not counted, because the thread may not run an engine */
void rr_reg_slab_forget(struct rr_mem *mem)
{
	list_for_each_safe(node, &mem->mrs)
		slab_dereg(list_entry(node, struct rr_slab_mr, by_mem));
}

void rr_reg_slab_outdate(struct rr_mem *mem)
{
	list_for_each_safe(node, &mem->mrs) {
		struct rr_slab_mr *s = list_entry(node, struct rr_slab_mr, by_mem);

		s->outdated = true;
		if (atomic_load_explicit(&s->refs, memory_order_acquire) == 1)
			slab_dereg(s);
	}
}

const struct rr_reg_kind rr_reg_slab = {
	.name = "slab",
	.get = slab_get,
	.end = slab_end,
	.revoke = slab_revoke,
};
