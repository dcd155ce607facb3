/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg.c - registration strategies by name, and the loop over an iov
 *
 * Operation:  reg.h. Each entry of an iov is one segment. It is offered to the strategy's kinds in order, until
 *             one accepts it. With windows, the registrations serve only for binding (no key of them is
 *             usable), and each segment gets a window.
 * Memory:     The caller owns the segments. On failure those already made are put.
 * Threads:    The connection's.
 * Errors:     As the strategies return.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reg_window.h"

/* `auto` copies smaller payloads instead of registering them for one call. */
#define AUTO_BOUNCE 16384u

struct rr_reg_strategy {
	const char *name;
	const struct rr_reg_ops *ops[RR_REG_KINDS_MAX]; /* tried in order; NULL: end */
	bool cache;    /* shares a cache with others */
	bool deferred; /* ... that defers deregistration of evicted entries */
	bool keeps;    /* the transport's memory stays registered */
	bool spares;   /* copies small payloads instead of registering them for one call */
	bool windows;  /* uses windows */
};

#define CACHED_OPS { &rr_reg_slab_ops, &rr_reg_cached_ops, &rr_reg_dynamic_ops }

static const struct rr_reg_strategy strategies[] = {
	{ "auto", CACHED_OPS, .cache = true, .deferred = true, .keeps = true, .spares = true },
	{ "dynamic", { &rr_reg_dynamic_ops }, .keeps = false },
	{ "cache", CACHED_OPS, .cache = true, .keeps = true },
	{ "batch", CACHED_OPS, .cache = true, .deferred = true, .keeps = true },
	{ "slab", { &rr_reg_slab_ops }, .keeps = true },
	{ "arena", { &rr_reg_slab_ops }, .keeps = true },
	{ "window", CACHED_OPS, .cache = true, .deferred = true, .keeps = true, .spares = true,
	  .windows = true },
};

static const char *const monitors[] = { "uffd", "explicit", "none" };

static const struct rr_reg_strategy *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(strategies); i++)
		if (!strcmp(strategies[i].name, name))
			return &strategies[i];
	return NULL;
}

const char *rr_reg_canonical(const char *name)
{
	const struct rr_reg_strategy *s = find(name ? name : "auto");

	return s ? s->name : NULL;
}

const char *rpcrdma_registration(size_t n)
{
	return n < ARRAY_SIZE(strategies) ? strategies[n].name : NULL;
}

const char *rr_reg_monitor_canonical(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(monitors); i++)
		if (!name || !strcmp(monitors[i], name))
			return monitors[i];
	return NULL;
}

int rr_reg_init(struct rr_reg *reg, struct rpcrdma_engine *e, struct rr_dev *dev, const char *peer,
		const struct rpcrdma_clnt_attr *attr)
{
	const struct rr_reg_strategy *s = find(attr->registration);
	struct rr_shared_pd like = {
		.strategy = s,
		.attr = { .entries = attr->reg_entries ? attr->reg_entries : RR_CACHE_ENTRIES,
			  .bytes = attr->reg_bytes, .deferred = s->deferred,
			  .dirty_watermark = attr->dirty_watermark },
		.monitor = attr->monitor,
	};
	int rc;

	*reg = (struct rr_reg){ .engine = e, .strategy = s, .bounce = attr->bounce_bytes };
	if (attr->no_bounce)
		reg->bounce = 0;
	else if (s->spares && !reg->bounce)
		reg->bounce_dynamic = AUTO_BOUNCE;
	list_init(&reg->slabs);
	if (!like.attr.bytes) /* on the local fabric no memory is really pinned */
		like.attr.bytes = rr_cache_bytes_default(dev->transport != RPCRDMA_LOCAL);
	snprintf(like.peer, sizeof(like.peer), "%s", peer);
	rc = rr_shared_pd_get(e->domain, dev->fabric, &like,
			      s->cache && strcmp(attr->monitor, "explicit") != 0, &reg->shared);
	if (!rc)
		reg->pd = reg->shared->pd;
	return rc;
}

const char *rr_reg_name(const struct rr_reg *reg)
{
	return reg->strategy->name;
}

bool rr_reg_wants_windows(const struct rr_reg *reg)
{
	return reg->strategy->windows && !reg->windows;
}

int rr_reg_use_windows(struct rr_reg *reg, struct rr_ep *ep, bool remote)
{
	assert(rr_reg_wants_windows(reg) && list_is_empty(&reg->slabs));
	return rr_windows_create(reg->engine, reg->pd, ep, remote, &reg->windows);
}

void rr_reg_fall_back(struct rr_reg *reg, const char *why)
{
	reg->strategy = find("auto"); /* has the same kinds */
	reg->fallback = why;
}

void rr_reg_end_windows(struct rr_reg *reg)
{
	rr_windows_destroy(reg->windows);
	reg->windows = NULL;
}

void rr_reg_revoke(struct rr_reg *reg)
{
	for (size_t i = 0; i < RR_REG_KINDS_MAX && reg->strategy->ops[i]; i++)
		reg->strategy->ops[i]->revoke(reg);
}

void rr_reg_fini(struct rr_reg *reg)
{
	assert(!reg->windows);
	if (reg->shared)
		rr_reg_revoke(reg);
}

void rr_reg_close(struct rr_reg *reg)
{
	if (reg->shared)
		rr_shared_pd_put(reg->engine->domain, reg->shared);
	reg->shared = NULL;
}

bool rr_reg_keeps(const struct rr_reg *reg)
{
	return reg->strategy->keeps;
}

void rr_reg_tell(const struct rr_reg *reg, char *buf, size_t cap)
{
	const struct rr_shared_pd *sp = reg->shared;
	size_t mib = (sp ? sp->attr.bytes : 0) >> 20;

	if (!sp)
		snprintf(buf, cap, "nothing");
	else if (sp->cache)
		snprintf(buf, cap, "up to %u registrations, %zu %s, %s", sp->attr.entries,
			 mib ? mib : sp->attr.bytes >> 10, mib ? "MiB" : "KiB",
			 !strcmp(sp->monitor, "none") ? "right or not (monitor=none)"
						      : "watched by userfaultfd");
	else if (sp->monitor_err)
		snprintf(buf, cap, "leat_buf memory only: there is no monitor (userfaultfd: %s)",
			 strerror(-sp->monitor_err));
	else
		snprintf(buf, cap, reg->strategy->keeps ? "leat_buf memory only" : "nothing");
	if (reg->fallback)
		snprintf(buf + strlen(buf), cap - strlen(buf), "; %s", reg->fallback);
}

size_t rr_reg_bytes(const struct rr_reg *reg)
{
	const struct rr_mem *arena = reg->engine->domain->arena;

	if (reg->shared && reg->shared->cache)
		return reg->shared->attr.bytes;
	return arena && reg->strategy->keeps ? arena->whole_bytes : 0;
}

unsigned rr_reg_count(struct rpcrdma_domain *d, const struct iovec *iov, int iovcnt, uint64_t len)
{
	unsigned n = 0;

	for (int i = 0; i < iovcnt && len; i++) {
		const char *at = iov[i].iov_base;
		size_t left = (size_t)MIN(len, (uint64_t)iov[i].iov_len), step;

		len -= left;
		for (; left; left -= step, at += step, n++)
			step = rr_mem_span(d, at, left);
	}
	return n;
}

static bool is_range_there(void *addr, size_t len, bool write)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr & ~(page - 1), end;

	if (__builtin_add_overflow((uintptr_t)addr, len, &end) ||
	    __builtin_add_overflow(end, page - 1, &end))
		return false;
	/* populates the pages, as the copy will; other errors mean an old kernel or an unsupported mapping */
	return !madvise((void *)start, (end & ~(page - 1)) - start,
			write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) ||
	       (errno != ENOMEM && errno != EFAULT);
}

bool rr_reg_is_there(const struct iovec *iov, int iovcnt, uint64_t len, bool write)
{
	for (int i = 0; i < iovcnt && len; i++) {
		size_t take = (size_t)MIN(len, (uint64_t)iov[i].iov_len);

		if (take && !is_range_there(iov[i].iov_base, take, write))
			return false;
		len -= take;
	}
	return true;
}

/* Is it better to copy a payload of @len bytes than to pass it to @ops? Never for slab memory. */
static bool is_small(const struct rr_reg *reg, const struct rr_reg_ops *ops, uint64_t len)
{
	if (ops == &rr_reg_slab_ops)
		return false;
	if (len < reg->bounce)
		return true;
	return ops == &rr_reg_dynamic_ops && len < reg->bounce_dynamic;
}

/* ---- windows over segments ------------------------------------------------------------------ */

/* Access rights of memory registered for windows. Devices require it to be writable, whatever the windows allow. */
#define UNDER_WINDOWS (RR_ACCESS_LOCAL_WRITE | RR_ACCESS_MW_BIND)

static int add_window(struct rr_reg *reg, struct rr_reg_seg *rseg, unsigned access)
{
	rseg->win = NULL;
	return rr_window_take(reg->windows, rseg->mr, (void *)(uintptr_t)rseg->seg.offset,
			      rseg->seg.length, access, &rseg->win, &rseg->seg.handle);
}

/* Return: whether there was one */
static bool end_window(struct rr_reg *reg, struct rr_reg_seg *rseg)
{
	if (!rseg->win)
		return false;
	rr_window_put(reg->windows, rseg->win);
	rseg->win = NULL;
	return true;
}

/* A window cannot be bound to read-only memory: use a key of its registration. Where only windows may be
 * offered, the caller copies the memory, if it is mapped. */
static int get_read_only(struct rr_reg *reg, void *addr, size_t len, unsigned access,
			 struct rr_reg_seg *ret)
{
	if (rr_windows_remote(reg->windows))
		return -ENOENT;
	return rr_reg_dynamic_ops.get(reg, addr, len, access, ret);
}

int rr_reg_keep(struct rr_reg *reg, void *mem, size_t bytes, struct rr_reg_seg *ret)
{
	int rc = rr_reg_slab_ops.get(reg, mem, bytes,
				     reg->windows ? UNDER_WINDOWS :
						    RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, ret);

	ret->win = NULL;
	return rc;
}

int rr_reg_lend(struct rr_reg *reg, struct rr_reg_seg *rseg, size_t len, unsigned access)
{
	rseg->seg.length = (uint32_t)len;
	rseg->replaced = false;
	return reg->windows ? add_window(reg, rseg, access) : 0;
}

bool rr_reg_unlend(struct rr_reg *reg, struct rr_reg_seg *rseg)
{
	return end_window(reg, rseg);
}

unsigned rr_reg_bind(struct rr_reg *reg, struct rr_reg_seg *segs, unsigned n,
		     struct rr_wr ***tail)
{
	unsigned binds = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!segs[i].win)
			continue;
		**tail = rr_window_bind(reg->windows, segs[i].win);
		*tail = &(**tail)->next;
		binds++;
	}
	return binds;
}

bool rr_reg_taken_back(struct rr_reg *reg, struct rr_reg_seg *segs, unsigned n, uint32_t key)
{
	for (unsigned i = 0; i < n; i++)
		if (segs[i].win && rr_window_taken_back(reg->windows, segs[i].win, key))
			return true;
	return false;
}

void rr_reg_answered(struct rr_reg *reg, struct rr_reg_seg *segs, unsigned n,
		     struct rr_reg_closing *closing)
{
	for (unsigned i = 0; i < n; i++)
		if (segs[i].win)
			rr_window_answered(reg->windows, segs[i].win, closing);
}

/* ---- all of a chunk ------------------------------------------------------------------------- */

/* @payload: bytes of the whole payload */
static int get_seg(struct rr_reg *reg, void *addr, size_t len, uint64_t payload, unsigned access,
		   struct rr_reg_seg *ret)
{
	unsigned under = reg->windows ? UNDER_WINDOWS : access;
	int rc = -ENOENT;

	for (size_t i = 0; i < RR_REG_KINDS_MAX && rc == -ENOENT; i++) {
		const struct rr_reg_ops *ops = reg->strategy->ops[i];

		if (!ops || is_small(reg, ops, payload))
			break;
		rc = ops->get(reg, addr, len, under, ret);
	}
	if (rc == -EFAULT && reg->windows && !(access & RR_ACCESS_LOCAL_WRITE)) {
		rc = get_read_only(reg, addr, len, access, ret);
	} else if (!rc) {
		ret->win = NULL;
		if (reg->windows)
			rc = add_window(reg, ret, access);
		if (rc)
			(void)ret->ops->put(reg, ret);
	}
	ret->replaced = false;
	assert(rc || (ret->ops && ret->seg.length == len && ret->seg.handle));
	return rc;
}

int rr_reg_get(struct rr_reg *reg, const struct iovec *iov, int iovcnt, uint64_t len,
	       unsigned access, struct rr_reg_seg *segs, unsigned *ret_n)
{
	struct rpcrdma_domain *d = reg->engine->domain;
	uint64_t left = len;
	unsigned n = 0;
	int rc = 0;

	if (rr_reg_count(d, iov, iovcnt, len) > RR_REG_SEGS_MAX)
		return -ENOBUFS;
	for (int i = 0; i < iovcnt && left; i++) {
		char *at = iov[i].iov_base;
		size_t take = (size_t)MIN(left, (uint64_t)iov[i].iov_len), step;

		left -= take;
		for (; take && !rc; take -= step, at += step) {
			step = rr_mem_span(d, at, take);
			rc = n < RR_REG_SEGS_MAX ?
				     get_seg(reg, at, step, len, access, &segs[n]) : -ENOBUFS;
			n += !rc;
		}
		if (rc) {
			(void)rr_reg_put(reg, segs, n); /* the peer does not know of them */
			return rc;
		}
	}
	*ret_n = n;
	return 0;
}

bool rr_reg_put(struct rr_reg *reg, struct rr_reg_seg *segs, unsigned n)
{
	bool there = true;

	while (n-- > 0) {
		(void)end_window(reg, &segs[n]);
		there &= segs[n].ops->put(reg, &segs[n]);
	}
	return there;
}

bool rr_reg_recall(struct rr_reg *reg, struct rr_reg_seg *segs, unsigned n)
{
	bool out_of_reach = true;

	while (n-- > 0) {
		if (end_window(reg, &segs[n])) /* the registration itself was never accessible */
			(void)segs[n].ops->put(reg, &segs[n]);
		else
			out_of_reach &= segs[n].ops->recall(reg, &segs[n]);
	}
	return out_of_reach;
}

/* Return: as rr_reg_settle(), for one segment */
static bool settle(struct rr_reg *reg, struct rr_qp *qp, struct rr_reg_seg *rseg)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const struct rr_segment *seg = &rseg->seg;
	unsigned reach = rr_qp_withdraw(qp, seg->handle);

	if (!reach)
		return true;
	if (!(reach & RR_REACH_FILE))
		return false;
	if (!rseg->replaced &&
	    rr_mem_replace(reg->engine->domain, (void *)(uintptr_t)seg->offset, seg->length))
		return false;
	rseg->replaced = true;
	/* partial pages at both ends were not replaced: a copy may still access those */
	return reach & RR_REACH_PAGES || !((seg->offset | seg->length) % page);
}

bool rr_reg_settle(struct rr_reg *reg, struct rr_qp *qp, struct rr_reg_seg *segs, unsigned n)
{
	bool is_settled = true;

	for (unsigned i = 0; i < n; i++)
		is_settled &= settle(reg, qp, &segs[i]);
	return is_settled;
}

void rr_reg_drop(struct rr_reg *reg, struct rr_reg_seg *segs, unsigned n)
{
	while (n-- > 0) {
		if (end_window(reg, &segs[n]))
			(void)segs[n].ops->put(reg, &segs[n]);
		else
			segs[n].ops->drop(reg, &segs[n]);
	}
}
