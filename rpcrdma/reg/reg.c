/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg.c - registration strategies by name, offers of memory, and their ends
 *
 * Operation:  reg.h. A strategy is a preset: a list of kinds, and properties. The first kind that accepts a segment
 *             handles it:
 *
 *               slab     memory of rpcrdma_mem_alloc() or _register(): registered at first use and kept as long as the
 *                        protection domain (reg_slab.c); part of an arena, if there is one (mem.c)
 *               cached   a cached registration (reg_cache.c)
 *               dynamic  a registration for each segment, deregistered with the call
 *
 *               deferred  a thread deregisters evicted entries of the cache in batches
 *               window    the peer gets no key of the registrations: each segment of a call has a memory window, if
 *                         the device supports it (window.c)
 *               bounce    smaller payloads that would be dynamic are copied instead
 *
 *             Memory that no kind accepts is copied, and so are payloads below the client's own threshold, unless they
 *             are in a slab. Each entry of an iov is one segment, or several (mem_replace.c).
 *
 *             An offer's end depends on its cause. REPLIED invalidates the windows that the reply did not, waits for
 *             that, and returns the registrations. GIVEN_UP and LOST cannot wait. They first withdraw the keys from the
 *             local fabric, which replaces pages that a server's disk operation uses (settle). Then they destroy the
 *             windows. GIVEN_UP also deregisters what is accessible without a window, for all calls if there is no
 *             other way.
 *
 *             Connections that keep registrations share a protection domain, a struct rr_shared_pd. They belong to one
 *             domain, device and server, and have the same settings. Keys given to one server do not work for another,
 *             unless they trust each other (rpcrdma_clnt_attr.shares). Other connections have a PD of their own.
 * Memory:     The caller owns the offers. If one fails, its segments have ended.
 * Threads:    The connection's. Slab registrations are also found by their memory, under the domain's lock, so that
 *             rpcrdma_mem_free() can deregister them from any thread.
 * Errors:     As the kinds return. -ENOENT and -ENOBUFS (too many segments) mean: copy.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reg_int.h"

/* Every segment of @n offers. */
#define for_each_seg(rseg, offers, n)                                                              \
	for (struct rr_offer *each = (offers); each < (offers) + (n); each++)                      \
		for (unsigned at_ = 0; at_ < each->n; at_++)                                       \
			for (struct rr_reg_seg *rseg = rr_offer_seg(each, at_); rseg; rseg = NULL)

static const struct rr_reg_kind *const kinds[] = { &rr_reg_slab, &rr_reg_cached, &rr_reg_dynamic };

enum {
	SLAB = 1u << 0, /* index in kinds */
	CACHED = 1u << 1,
	DYNAMIC = 1u << 2,
};

struct rr_reg_strategy {
	const char *name;
	unsigned kinds; /* tried in the order of their table */
	bool deferred, window;
	bool arena;     /* requires an arena */
	size_t bounce;
};

/* the first one is the default, and the substitute of those whose windows are not available */
static const struct rr_reg_strategy strategies[] = {
	{ "auto", .kinds = SLAB | CACHED | DYNAMIC, .deferred = true, .bounce = 16384 },
	{ "dynamic", .kinds = DYNAMIC },
	{ "cache", .kinds = SLAB | CACHED | DYNAMIC },
	{ "batch", .kinds = SLAB | CACHED | DYNAMIC, .deferred = true },
	{ "slab", .kinds = SLAB },
	{ "arena", .kinds = SLAB, .arena = true },
	{ "window", .kinds = SLAB | CACHED | DYNAMIC, .deferred = true, .window = true, .bounce = 16384 },
};

static const char *const monitors[] = { "uffd", "explicit", "none" };

/* ---- names -------------------------------------------------------------------------------------- */

static const struct rr_reg_strategy *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(strategies); i++)
		if (!name || !strcmp(strategies[i].name, name))
			return &strategies[i];
	return NULL;
}

static const char *find_monitor(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(monitors); i++)
		if (!name || !strcmp(monitors[i], name))
			return monitors[i];
	return NULL;
}

const char *rpcrdma_registration(size_t n)
{
	return n < ARRAY_SIZE(strategies) ? strategies[n].name : NULL;
}

int rr_reg_check(const struct rpcrdma_domain *d, struct rpcrdma_clnt_attr *a)
{
	const struct rr_reg_strategy *s = find(a->registration);

	a->monitor = find_monitor(a->monitor);
	if (!s || !a->monitor || (s->window && a->lab->modes) ||
	    (s->arena && !d->arena && a->addr.transport != RPCRDMA_TCP))
		return -EINVAL;
	a->registration = s->name;
	return 0;
}

/* ---- a connection ------------------------------------------------------------------------------- */

/* Decides about windows before connecting, because the private data of the connect tells the peer whether it may
 * invalidate. The first bind on a device is a trial. */
static int use_windows(struct rr_reg_conn *rc, bool private_data)
{
	const struct rr_fabric_attr *f = &rc->dev->fabric->attr;
	const struct rr_mr_attr attr = { .addr = rc->trial_mem, .len = sizeof(rc->trial_mem), .fd = -1,
					 .access = RR_ACCESS_LOCAL_WRITE | RR_ACCESS_MW_BIND };
	int err, known = atomic_load(&rc->dev->windows);

	if (!f->windows || known == RR_WINDOWS_BROKEN) {
		rc->strategy = &strategies[0];
		rc->pub.fallback = f->windows ? "memory windows of the device do not work" :
						"the device has no memory windows";
		return 0;
	}
	rc->pub.windows = true;
	rc->pub.remote_inv = f->remote_inv && private_data;
	err = rr_windows_create(rc->engine, rc->pub.pd, rc->pub.remote_inv, &rc->windows);
	if (!err && known == RR_WINDOWS_UNTRIED)
		err = rr_mr_reg(rc->pub.pd, &attr, &rc->trial_mr);
	return err;
}

bool rr_reg_keeps(const struct rr_reg_conn *rc)
{
	return rc->strategy->kinds & SLAB;
}

static void describe(struct rr_reg_conn *rc)
{
	const struct rr_shared_pd *sp = rc->shared;
	const struct rr_mem *arena = rc->engine->domain->arena;
	size_t mib = sp->attr.bytes >> 20, cap = sizeof(rc->pub.kept);
	char *text = rc->pub.kept;

	rc->pub.name = rc->strategy->name;
	if (sp->cache)
		snprintf(text, cap, "up to %u registrations, %zu %s, %s", sp->attr.entries,
			 mib ? mib : sp->attr.bytes >> 10, mib ? "MiB" : "KiB",
			 !strcmp(sp->monitor, "none") ? "right or not (monitor=none)"
						      : "watched by userfaultfd");
	else if (sp->monitor_err)
		snprintf(text, cap, "leat_buf memory only: there is no monitor (userfaultfd: %s)",
			 strerror(-sp->monitor_err));
	else
		snprintf(text, cap, rr_reg_keeps(rc) ? "leat_buf memory only" : "nothing");
	if (rc->pub.fallback)
		snprintf(text + strlen(text), cap - strlen(text), "; %s", rc->pub.fallback);
	if (sp->cache)
		rc->pub.bytes = sp->attr.bytes;
	else if (arena && rr_reg_keeps(rc))
		rc->pub.bytes = arena->whole_bytes;
}

static int get_pd(struct rr_reg_conn *rc, const char *peer, const struct rpcrdma_clnt_attr *attr)
{
	const struct rr_reg_strategy *s = rc->strategy;
	struct rr_shared_pd like = {
		.engine = rc->engine,
		.strategy = s,
		.attr = { .entries = attr->reg_entries ? attr->reg_entries : RR_CACHE_ENTRIES,
			  .bytes = attr->reg_bytes, .deferred = s->deferred,
			  .dirty_watermark = attr->dirty_watermark },
		.caches = s->kinds & CACHED && strcmp(attr->monitor, "explicit") != 0,
		.monitor = attr->monitor,
	};
	int err;

	if (!like.attr.bytes) /* on the local fabric no memory is really pinned */
		like.attr.bytes = rr_cache_bytes_default(rc->dev->transport != RPCRDMA_LOCAL);
	snprintf(like.peer, sizeof(like.peer), "%s", peer);
	err = rr_shared_pd_get(rc->engine->domain, rc->dev->fabric, &like, s->kinds & (CACHED | SLAB), &rc->shared);
	if (!err)
		rc->pub.pd = rc->shared->pd;
	return err;
}

int rr_reg_open(struct rpcrdma_engine *e, struct rr_dev *dev, const char *peer,
		const struct rpcrdma_clnt_attr *attr, struct rr_reg **ret)
{
	struct rr_reg_conn *rc = calloc(1, sizeof(*rc));
	int err;

	if (!rc)
		return -ENOMEM;
	rc->engine = e;
	rc->dev = dev;
	rc->strategy = find(attr->registration);
	if (!attr->no_bounce) {
		rc->bounce = attr->bounce_bytes;
		rc->bounce_dynamic = rc->bounce ? 0 : rc->strategy->bounce;
	}
	list_init(&rc->bounces);
	err = get_pd(rc, peer, attr);
	if (!err && rc->strategy->window)
		err = use_windows(rc, !attr->lab->no_private_data);
	if (err) {
		rr_reg_close(&rc->pub);
		return err;
	}
	describe(rc);
	*ret = &rc->pub;
	return 0;
}

int rr_reg_start(struct rr_reg *reg, struct rr_ep *ep, void (*ready)(void *ctx), void *ctx)
{
	struct rr_reg_conn *rc = rr_reg_conn_of(reg);

	rc->ep = ep;
	if (rc->windows)
		rr_windows_on(rc->windows, ep);
	if (rc->trial_mr)
		return rr_windows_try(rc->windows, rc->trial_mr, ready, ctx);
	ready(ctx);
	return 0;
}

static void revoke_kinds(struct rr_reg_conn *rc)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (rc->strategy->kinds & 1u << i && kinds[i]->revoke)
			kinds[i]->revoke(rc);
}

void rr_reg_revoke(struct rr_reg *reg)
{
	if (!reg)
		return;
	rr_windows_revoke(rr_reg_conn_of(reg)->windows);
	revoke_kinds(rr_reg_conn_of(reg));
}

void rr_reg_close(struct rr_reg *reg)
{
	struct rr_reg_conn *rc = reg ? rr_reg_conn_of(reg) : NULL;

	if (!rc)
		return;
	rr_windows_destroy(rc->windows);
	rr_mr_dereg(rc->trial_mr);
	rr_reg_bounce_fini(rc);
	if (rc->shared) {
		revoke_kinds(rc);
		rr_shared_pd_put(rc->engine->domain, rc->shared);
	}
	free(rc);
}

/* ---- one segment -------------------------------------------------------------------------------- */

/* Is it better to copy a payload of @len bytes than to pass it to @kind? Never for slab memory. */
static bool is_small(const struct rr_reg_conn *rc, const struct rr_reg_kind *kind, uint64_t len)
{
	if (kind == &rr_reg_slab)
		return false;
	if (len < rc->bounce)
		return true;
	return kind == &rr_reg_dynamic && len < rc->bounce_dynamic;
}

int rr_reg_window(struct rr_reg_conn *rc, struct rr_reg_seg *rseg, unsigned access)
{
	rseg->win = NULL;
	if (!rc->windows)
		return 0;
	return rr_window_take(rc->windows, rseg->mr, (void *)(uintptr_t)rseg->seg.offset,
			      rseg->seg.length, access, &rseg->win, &rseg->seg.handle);
}

/* A window cannot be bound to read-only memory: use a key of its registration. Where only windows may be
 * offered, the caller copies the memory, if it is mapped. */
static int get_read_only(struct rr_reg_conn *rc, void *addr, size_t len, unsigned access,
			 struct rr_reg_seg *ret)
{
	if (rc->pub.remote_inv)
		return -ENOENT;
	return rr_reg_dynamic.get(rc, addr, len, access, ret);
}

/* Devices require memory under windows to be writable, whatever the windows allow.
 * @payload: bytes of the whole payload */
static int get_seg(struct rr_reg_conn *rc, void *addr, size_t len, uint64_t payload, unsigned access,
		   struct rr_reg_seg *ret)
{
	unsigned under = rc->windows ? RR_ACCESS_LOCAL_WRITE | RR_ACCESS_MW_BIND : access;
	int err = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(kinds) && err == -ENOENT; i++) {
		if (!(rc->strategy->kinds & 1u << i))
			continue;
		if (is_small(rc, kinds[i], payload))
			break;
		err = kinds[i]->get(rc, addr, len, under, ret);
	}
	if (err == -EFAULT && rc->windows && !(access & RR_ACCESS_LOCAL_WRITE)) {
		ret->win = NULL;
		err = get_read_only(rc, addr, len, access, ret);
	} else if (!err) {
		err = rr_reg_window(rc, ret, access);
		if (err)
			(void)ret->kind->end(rc, ret, RR_END_DONE);
	}
	ret->replaced = false;
	assert(err || (ret->kind && ret->seg.length == len && ret->seg.handle));
	return err;
}

/* Without its window, the registration is not accessible. */
static int end_seg(struct rr_reg_conn *rc, struct rr_reg_seg *rseg, enum rr_reg_end how)
{
	if (rseg->win) {
		rr_window_put(rc->windows, rseg->win);
		rseg->win = NULL;
		if (how != RR_END_REPLIED)
			how = RR_END_DONE;
	}
	return rseg->kind->end(rc, rseg, how);
}

/* Withdraws a key from a server on this host. Return: true: no access reaches the memory any more */
static bool settle(struct rr_reg_conn *rc, struct rr_reg_seg *rseg)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const struct rr_segment *seg = &rseg->seg;
	unsigned reach = rc->ep ? rr_qp_withdraw(rc->ep->qp, seg->handle) : 0; /* no peer yet */

	if (!reach)
		return true;
	if (!(reach & RR_REACH_FILE))
		return false;
	if (!rseg->replaced &&
	    rr_mem_replace(rc->engine->domain, (void *)(uintptr_t)seg->offset, seg->length))
		return false;
	rseg->replaced = true;
	/* partial pages at both ends were not replaced: a copy may still access those */
	return reach & RR_REACH_PAGES || !((seg->offset | seg->length) % page);
}

/* ---- offers ------------------------------------------------------------------------------------- */

static int get_segs(struct rr_reg_conn *rc, const struct iovec *iov, int iovcnt, uint64_t len,
		    unsigned access, struct rr_offer *o)
{
	struct rpcrdma_domain *d = rc->engine->domain;
	unsigned limit = o->limit ? o->limit : RR_REG_SEGS_MAX, wanted = rr_mem_segments(d, iov, iovcnt, len);
	uint64_t left = len;
	int err = 0;

	assert(limit <= RR_REG_SEGS_MANY);
	if (wanted > limit)
		return -ENOBUFS;
	if (wanted > RR_REG_SEGS_MAX && !o->more)
		o->more = calloc(RR_REG_SEGS_MANY - RR_REG_SEGS_MAX, sizeof(*o->more));
	if (!o->more)
		limit = MIN(limit, RR_REG_SEGS_MAX);
	for (int i = 0; i < iovcnt && left && !err; i++) {
		char *at = iov[i].iov_base;
		size_t take = (size_t)MIN(left, (uint64_t)iov[i].iov_len), step;

		left -= take;
		for (; take && !err; take -= step, at += step) {
			step = rr_mem_span(d, at, take);
			err = o->n < limit ? get_seg(rc, at, step, len, access, rr_offer_seg(o, o->n)) : -ENOBUFS;
			o->n += !err;
		}
	}
	if (err) /* the peer does not know of them */
		(void)rr_reg_end(&rc->pub, o, 1, RR_END_DONE, NULL);
	return err;
}

int rr_reg_offer(struct rr_reg *reg, struct rr_offer *o, const struct iovec *iov, int iovcnt,
		 uint64_t len, unsigned access, bool wait)
{
	struct rr_reg_conn *rc = rr_reg_conn_of(reg);
	int err;

	assert(!o->n && !o->mem);
	if (!iov)
		return rr_reg_bounce(rc, o, (size_t)len, access, true);
	err = get_segs(rc, iov, iovcnt, len, access, o);
	if (err == -ENOENT || err == -ENOBUFS || (err == -ENOMEM && !wait)) {
		err = -EFAULT;
		if (rr_mem_is_there(iov, iovcnt, len, access & RR_ACCESS_REMOTE_WRITE))
			err = rr_reg_bounce(rc, o, (size_t)len, access, false);
		if (!err)
			rr_count(rc->engine, reg_bounced, 1);
	}
	return err;
}

unsigned rr_reg_bind(struct rr_reg *reg, struct rr_offer *offers, unsigned n, struct rr_wr ***tail)
{
	struct rr_reg_conn *rc = rr_reg_conn_of(reg);
	unsigned binds = 0;

	for_each_seg(rseg, offers, n) {
		if (!rseg->win)
			continue;
		**tail = rr_window_bind(rc->windows, rseg->win);
		*tail = &(**tail)->next;
		binds++;
	}
	return binds;
}

bool rr_reg_reminv(struct rr_reg *reg, struct rr_offer *offers, unsigned n, uint32_t key)
{
	for_each_seg(rseg, offers, n)
		if (rseg->win && rr_window_taken_back(rr_reg_conn_of(reg)->windows, rseg->win, key))
			return true;
	return false;
}

/* Invalidates all windows that are still valid. */
static void invalidate(struct rr_reg_conn *rc, struct rr_offer *offers, unsigned n,
		       struct rr_closing *closing)
{
	for_each_seg(rseg, offers, n)
		if (rseg->win)
			rr_window_replied(rc->windows, rseg->win, closing);
}

int rr_reg_end(struct rr_reg *reg, struct rr_offer *offers, unsigned n, enum rr_reg_end how,
	       struct rr_closing *closing)
{
	struct rr_reg_conn *rc = rr_reg_conn_of(reg);
	bool is_settled = true, is_shared = false, is_lost = false;

	if (how == RR_END_REPLIED) {
		invalidate(rc, offers, n, closing);
		if (closing->n)
			return -EINPROGRESS;
	}
	if (how == RR_END_GIVEN_UP || how == RR_END_LOST)
		for_each_seg(rseg, offers, n)
			is_settled &= settle(rc, rseg);
	if (!is_settled)
		return -EAGAIN;
	for (struct rr_offer *o = offers; o < offers + n; o++) {
		for (; o->n; o->n--) {
			int err = end_seg(rc, rr_offer_seg(o, o->n - 1), how);

			is_shared |= err == -ECONNABORTED;
			is_lost |= err == -EFAULT && how == RR_END_REPLIED;
		}
		if (how == RR_END_DONE && o->bounce)
			rr_reg_bounce_put(rc, o);
	}
	if (is_shared) {
		if (rc->ep) /* registrations that others use stay: the peer's access ends with the connection */
			rr_qp_disconnect(rc->ep->qp);
		revoke_kinds(rc);
	}
	return is_shared ? -ECONNABORTED : is_lost ? -EFAULT : 0;
}
