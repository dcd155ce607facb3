/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg.c - registration strategies by name, and the loop over an iov
 *
 * Operation:  reg.h. Each entry of an iov is one piece and one segment; the kinds that a strategy is
 *             made of are asked piece by piece, each for what those before it do not take.
 * Memory:     Pieces are the caller's; on failure those already made are put back.
 * Threads:    The connection's.
 * Errors:     As the strategies say.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "reg.h"

/* What `auto` copies rather than register it for one call. */
#define AUTO_BOUNCE 16384u

struct rr_reg_strategy {
	const char *name;
	const struct rr_reg_ops *ops[RR_REG_KINDS_MAX]; /* tried in order; NULL: no more */
	bool cache;    /* shares one with others */
	bool deferred; /* ... whose evicted entries wait to be deregistered */
	bool keeps;    /* memory of ours stays registered */
};

static const struct rr_reg_strategy strategies[] = {
	{ "auto", { &rr_reg_slab_ops, &rr_reg_cached_ops, &rr_reg_dynamic_ops }, true, true, true },
	{ "dynamic", { &rr_reg_dynamic_ops }, false, false, false },
	{ "cache", { &rr_reg_slab_ops, &rr_reg_cached_ops, &rr_reg_dynamic_ops }, true, false, true },
	{ "batch", { &rr_reg_slab_ops, &rr_reg_cached_ops, &rr_reg_dynamic_ops }, true, true, true },
	{ "slab", { &rr_reg_slab_ops }, false, false, true },
	{ "arena", { &rr_reg_slab_ops }, false, false, true },
};

static const char *const monitors[] = { "uffd", "explicit", "none" };

static const struct rr_reg_strategy *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(strategies); i++)
		if (!strcmp(strategies[i].name, name))
			return &strategies[i];
	return NULL;
}

/** rr_reg_canonical - see reg.h */
const char *rr_reg_canonical(const char *name)
{
	const struct rr_reg_strategy *s = find(name ? name : "auto");

	return s ? s->name : NULL;
}

/** rr_reg_monitor_canonical - see reg.h */
const char *rr_reg_monitor_canonical(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(monitors); i++)
		if (!name || !strcmp(monitors[i], name))
			return monitors[i];
	return NULL;
}

/** rr_reg_init - see reg.h */
int rr_reg_init(struct rr_reg *reg, struct rpcrdma_engine *e, struct rr_dev *dev, const char *peer,
		const struct rpcrdma_clnt_attr *attr)
{
	const struct rr_reg_strategy *s = find(attr->registration);
	struct rr_reg_home like = {
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
	else if (s == &strategies[0] && !reg->bounce)
		reg->bounce_dynamic = AUTO_BOUNCE;
	list_init(&reg->slabs);
	if (!like.attr.bytes) /* on the local fabric nothing is pinned in truth */
		like.attr.bytes = rr_cache_bytes_default(dev->transport != RPCRDMA_LOCAL);
	snprintf(like.peer, sizeof(like.peer), "%s", peer);
	rc = rr_reg_home_get(e->domain, dev->fabric, &like,
			     s->cache && strcmp(attr->monitor, "explicit") != 0, &reg->home);
	if (!rc)
		reg->pd = reg->home->pd;
	return rc;
}

/** rr_reg_revoke - see reg.h */
void rr_reg_revoke(struct rr_reg *reg)
{
	for (size_t i = 0; i < RR_REG_KINDS_MAX && reg->strategy->ops[i]; i++)
		reg->strategy->ops[i]->revoke(reg);
}

/** rr_reg_fini - see reg.h */
void rr_reg_fini(struct rr_reg *reg)
{
	if (reg->home)
		rr_reg_revoke(reg);
}

/** rr_reg_close - see reg.h */
void rr_reg_close(struct rr_reg *reg)
{
	if (reg->home)
		rr_reg_home_put(reg->engine->domain, reg->home);
	reg->home = NULL;
}

/** rr_reg_keeps - see reg.h */
bool rr_reg_keeps(const struct rr_reg *reg)
{
	return reg->strategy->keeps;
}

/** rr_reg_tell - see reg.h */
void rr_reg_tell(const struct rr_reg *reg, char *buf, size_t cap)
{
	const struct rr_reg_home *h = reg->home;
	size_t mib = (h ? h->attr.bytes : 0) >> 20;

	if (!h)
		snprintf(buf, cap, "nothing");
	else if (h->cache)
		snprintf(buf, cap, "up to %u registrations, %zu %s, %s", h->attr.entries,
			 mib ? mib : h->attr.bytes >> 10, mib ? "MiB" : "KiB",
			 !strcmp(h->monitor, "none") ? "right or not (monitor=none)"
						     : "watched by userfaultfd");
	else if (h->monitor_err)
		snprintf(buf, cap, "leat_buf memory only: there is no monitor (userfaultfd: %s)",
			 strerror(-h->monitor_err));
	else
		snprintf(buf, cap, reg->strategy->keeps ? "leat_buf memory only" : "nothing");
}

/** rr_reg_bytes - see reg.h */
size_t rr_reg_bytes(const struct rr_reg *reg)
{
	const struct rr_mem *arena = reg->engine->domain->arena;

	if (reg->home && reg->home->cache)
		return reg->home->attr.bytes;
	return arena && reg->strategy->keeps ? arena->x.bytes : 0;
}

/** rr_reg_count - see reg.h */
unsigned rr_reg_count(const struct iovec *iov, int iovcnt, uint64_t len)
{
	unsigned n = 0;

	for (int i = 0; i < iovcnt && len; i++) {
		n += iov[i].iov_len > 0;
		len -= MIN(len, (uint64_t)iov[i].iov_len);
	}
	return n;
}

/* Is a payload of @len bytes better copied than given to @ops? Never what is registered already. */
static bool is_small(const struct rr_reg *reg, const struct rr_reg_ops *ops, uint64_t len)
{
	if (ops == &rr_reg_slab_ops)
		return false;
	if (len < reg->bounce)
		return true;
	return ops == &rr_reg_dynamic_ops && len < reg->bounce_dynamic;
}

/* @payload: all that the piece is part of */
static int get_piece(struct rr_reg *reg, void *addr, size_t len, uint64_t payload, unsigned access,
		     struct rr_reg_piece *ret)
{
	int rc = -ENOENT;

	for (size_t i = 0; i < RR_REG_KINDS_MAX && rc == -ENOENT; i++) {
		const struct rr_reg_ops *ops = reg->strategy->ops[i];

		if (!ops || is_small(reg, ops, payload))
			break;
		rc = ops->get(reg, addr, len, access, ret);
	}
	assert(rc || (ret->ops && ret->seg.length == len && ret->seg.handle));
	return rc;
}

/** rr_reg_get - see reg.h */
int rr_reg_get(struct rr_reg *reg, const struct iovec *iov, int iovcnt, uint64_t len,
	       unsigned access, struct rr_reg_piece *pieces, unsigned *ret_n)
{
	uint64_t left = len;
	unsigned n = 0;
	int rc;

	if (rr_reg_count(iov, iovcnt, len) > RR_REG_PIECES_MAX)
		return -ENOBUFS;
	for (int i = 0; i < iovcnt && left; i++) {
		size_t take = (size_t)MIN(left, (uint64_t)iov[i].iov_len);

		if (!take)
			continue;
		rc = get_piece(reg, iov[i].iov_base, take, len, access, &pieces[n]);
		if (rc) {
			(void)rr_reg_put(reg, pieces, n); /* nobody was told of it */
			return rc;
		}
		n++;
		left -= take;
	}
	*ret_n = n;
	return 0;
}

/** rr_reg_put - see reg.h */
bool rr_reg_put(struct rr_reg *reg, struct rr_reg_piece *pieces, unsigned n)
{
	bool there = true;

	while (n-- > 0)
		there &= pieces[n].ops->put(reg, &pieces[n]);
	return there;
}

/** rr_reg_recall - see reg.h */
bool rr_reg_recall(struct rr_reg *reg, struct rr_reg_piece *pieces, unsigned n)
{
	bool out_of_reach = true;

	while (n-- > 0)
		out_of_reach &= pieces[n].ops->recall(reg, &pieces[n]);
	return out_of_reach;
}

/** rr_reg_drop - see reg.h */
void rr_reg_drop(struct rr_reg *reg, struct rr_reg_piece *pieces, unsigned n)
{
	while (n-- > 0)
		pieces[n].ops->drop(reg, &pieces[n]);
}
