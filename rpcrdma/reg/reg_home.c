/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_home.c - protection domains, and their caches, shared by connections
 *
 * Operation:  The first connection to a server creates a home, later ones with the same settings share it, and
 *             the last one destroys it. So a single connection that is repaired starts with an empty cache, as
 *             it does with new keys.
 * Memory:     The connections of a home own it.
 * Threads:    Any; the domain's lock. Creation and destruction hold it; they are not part of a call.
 * Errors:     -ENOMEM and errors of the device.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "monitor.h"
#include "reg.h"

static bool is_like(const struct rr_reg_home *a, const struct rr_reg_home *b)
{
	return a->strategy == b->strategy && a->attr.entries == b->attr.entries &&
	       a->attr.bytes == b->attr.bytes && a->attr.deferred == b->attr.deferred &&
	       a->attr.dirty_watermark == b->attr.dirty_watermark && a->monitor == b->monitor &&
	       !strcmp(a->peer, b->peer);
}

static struct rr_reg_home *find(struct rpcrdma_domain *d, const struct rr_fabric *fabric,
				const struct rr_reg_home *like)
{
	list_for_each(node, &d->homes) {
		struct rr_reg_home *h = list_entry(node, struct rr_reg_home, link);

		if (h->pd->fabric == fabric && is_like(h, like))
			return h;
	}
	return NULL;
}

/* Without a monitor there is no cache: only memory that the program promised to keep stays registered. */
static int make_cache(struct rr_reg_home *h)
{
	int rc;

	if (!strcmp(h->monitor, "uffd")) {
		h->monitor_err = rr_monitor_get(&h->attr.monitor);
		if (h->monitor_err)
			return 0;
	}
	rc = rr_cache_create(h->pd, &h->attr, &h->cache);
	if (rc && h->attr.monitor)
		rr_monitor_put(h->attr.monitor);
	h->attr.monitor = NULL; /* the cache owns it */
	return rc;
}

static int create(struct rr_fabric *fabric, const struct rr_reg_home *like, bool shared,
		  struct rr_reg_home **ret)
{
	struct rr_reg_home *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return -ENOMEM;
	*h = *like;
	list_init(&h->link);
	rc = rr_pd_create(fabric, &h->pd);
	if (!rc && shared)
		rc = make_cache(h);
	if (rc) {
		rr_pd_destroy(h->pd);
		free(h);
		return rc;
	}
	*ret = h;
	return 0;
}

int rr_reg_home_get(struct rpcrdma_domain *d, struct rr_fabric *fabric,
		    const struct rr_reg_home *like, bool shared, struct rr_reg_home **ret)
{
	struct rr_reg_home *h = NULL;
	int rc = 0;

	pthread_mutex_lock(&d->lock);
	if (shared)
		h = find(d, fabric, like);
	if (!h) {
		rc = create(fabric, like, shared, &h);
		if (!rc && shared)
			list_add_tail(&d->homes, &h->link);
	}
	if (!rc) {
		h->refs++;
		*ret = h;
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
}

void rr_reg_home_put(struct rpcrdma_domain *d, struct rr_reg_home *h)
{
	pthread_mutex_lock(&d->lock);
	if (!--h->refs) {
		list_del(&h->link);
		rr_cache_destroy(h->cache, &d->gone);
		rr_pd_destroy(h->pd);
		free(h);
	}
	pthread_mutex_unlock(&d->lock);
}

void rr_reg_home_revoke(struct rpcrdma_domain *d, struct rr_reg_home *h)
{
	pthread_mutex_lock(&d->lock);
	if (h->cache && h->refs == 1)
		rr_cache_flush(h->cache);
	pthread_mutex_unlock(&d->lock);
}

void rr_reg_home_count(struct rpcrdma_domain *d, struct rpcrdma_stats *sum)
{
	list_for_each(node, &d->homes)
		rr_cache_count(list_entry(node, struct rr_reg_home, link)->cache, sum);
}
