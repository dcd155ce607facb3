/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_shared_pd.c - protection domains, and their caches, shared by connections
 *
 * Operation:  The first connection to a server creates a shared PD, later ones with the same settings use it,
 *             and the last one destroys it. So a single connection that is repaired starts with an empty
 *             cache, as it does with new keys. Connections of different engines share none: a call that is given
 *             up deregisters memory at once, which another thread's call must not be using.
 * Memory:     The connections that use a shared PD own it.
 * Threads:    Any; the domain's lock. Creation and destruction hold it; they are not part of a call.
 * Errors:     -ENOMEM and errors of the device.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "monitor.h"
#include "reg_int.h"

/* The strategy and the monitor decide whether there is a cache, and whether it is deferred. */
static bool is_like(const struct rr_shared_pd *a, const struct rr_shared_pd *b)
{
	return a->engine == b->engine && a->strategy == b->strategy &&
	       a->attr.entries == b->attr.entries && a->attr.bytes == b->attr.bytes &&
	       a->attr.dirty_watermark == b->attr.dirty_watermark && a->monitor == b->monitor &&
	       !strcmp(a->peer, b->peer);
}

static struct rr_shared_pd *find(struct rpcrdma_domain *d, const struct rr_fabric *fabric,
				 const struct rr_shared_pd *like)
{
	list_for_each(node, &d->shared_pds) {
		struct rr_shared_pd *sp = list_entry(node, struct rr_shared_pd, link);

		if (sp->pd->fabric == fabric && is_like(sp, like))
			return sp;
	}
	return NULL;
}

/* Without a monitor there is no cache: only memory that the program promised to keep stays registered. */
static int make_cache(struct rr_shared_pd *sp)
{
	int rc;

	if (!strcmp(sp->monitor, "uffd")) {
		sp->monitor_err = rr_monitor_get(&sp->attr.monitor);
		if (sp->monitor_err)
			return 0;
	}
	rc = rr_cache_create(sp->pd, &sp->attr, &sp->cache);
	if (rc && sp->attr.monitor)
		rr_monitor_put(sp->attr.monitor);
	sp->attr.monitor = NULL; /* the cache owns it */
	return rc;
}

static int create(struct rr_fabric *fabric, const struct rr_shared_pd *like, struct rr_shared_pd **ret)
{
	struct rr_shared_pd *sp = calloc(1, sizeof(*sp));
	int rc;

	if (!sp)
		return -ENOMEM;
	*sp = *like;
	list_init(&sp->link);
	list_init(&sp->slabs);
	rc = rr_pd_create(fabric, &sp->pd);
	if (!rc && sp->caches)
		rc = make_cache(sp);
	if (rc) {
		rr_pd_destroy(sp->pd);
		free(sp);
		return rc;
	}
	*ret = sp;
	return 0;
}

int rr_shared_pd_get(struct rpcrdma_domain *d, struct rr_fabric *fabric,
		     const struct rr_shared_pd *like, bool shared, struct rr_shared_pd **ret)
{
	struct rr_shared_pd *sp = NULL;
	int rc = 0;

	pthread_mutex_lock(&d->lock);
	if (shared)
		sp = find(d, fabric, like);
	if (!sp) {
		rc = create(fabric, like, &sp);
		if (!rc && shared)
			list_add_tail(&d->shared_pds, &sp->link);
	}
	if (!rc) {
		sp->refs++;
		*ret = sp;
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
}

void rr_shared_pd_put(struct rpcrdma_domain *d, struct rr_shared_pd *sp)
{
	pthread_mutex_lock(&d->lock);
	if (!--sp->refs) {
		list_del(&sp->link);
		rr_cache_destroy(sp->cache, &d->gone);
		rr_pd_destroy(sp->pd);
		free(sp);
	}
	pthread_mutex_unlock(&d->lock);
}

void rr_reg_stats(struct rpcrdma_domain *d, struct rpcrdma_stats *sum)
{
	list_for_each(node, &d->shared_pds)
		rr_cache_count(list_entry(node, struct rr_shared_pd, link)->cache, sum);
}
