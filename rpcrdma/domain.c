/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * domain.c - what a process opens once: devices, the buffer pool, and the sum of the counters
 *
 * Operation:  Devices are opened when a client or a listener first needs one and closed with the
 *             domain. Opening one registers the pool with it, so that every data buffer is good for
 *             every device and a request need not know which it came by.
 * Memory:     Owns devices, pool and rpcrdma_mem_alloc() regions.
 * Threads:    Any; domain->lock. Nothing here is on the data path.
 * Errors:     A device that is not there is -ENODEV for the one who asked by name, nothing else.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_int.h"
#include "local.h"
#ifdef HAVE_VERBS
#include "verbs.h"
#endif

#define POOL_BYTES_DEFAULT ((size_t)256 << 20)

int rpcrdma_domain_create(const struct rpcrdma_domain_attr *attr, struct rpcrdma_domain **ret)
{
	struct rpcrdma_domain *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return -ENOMEM;
	if (attr)
		d->attr = *attr;
	if (!d->attr.pool_bytes_max)
		d->attr.pool_bytes_max = POOL_BYTES_DEFAULT;
	pthread_mutex_init(&d->lock, NULL);
	list_init(&d->engines);
	list_init(&d->mems);
	rr_pool_init(d);
	if (d->attr.capture) {
		struct rr_dev *dev;

		d->capture = strdup(d->attr.capture);
		d->attr.capture = d->capture;
		/* opened at once: a capture file that cannot be written is an error now, not later */
		rc = d->capture ? rr_domain_dev(d, RPCRDMA_LOCAL, &dev) : -ENOMEM;
		if (rc) {
			rpcrdma_domain_destroy(d);
			return rc;
		}
	}
	*ret = d;
	return 0;
}

void rpcrdma_domain_destroy(struct rpcrdma_domain *d)
{
	if (!d)
		return;
	rr_mem_fini(d);
	rr_pool_fini(d);
	for (unsigned i = 0; i < d->ndevs; i++) {
		rr_pd_destroy(d->devs[i].pd);
		rr_fabric_close(d->devs[i].fabric);
	}
	pthread_mutex_destroy(&d->lock);
	free(d->capture);
	free(d);
}

static int open_fabric(struct rpcrdma_domain *d, enum rpcrdma_transport transport,
		       struct rr_fabric **ret)
{
	struct rr_local_attr local = { 0 };

#ifdef HAVE_VERBS
	if (transport == RPCRDMA_RDMA)
		return rr_verbs_open(NULL, ret);
#endif
	if (transport != RPCRDMA_LOCAL)
		return -EOPNOTSUPP;
	if (d->attr.local)
		local = *d->attr.local;
	if (!local.capture)
		local.capture = d->attr.capture;
	if (!local.socket_mode)
		local.socket_mode = d->attr.socket_mode;
	return rr_local_open(&local, ret);
}

static int open_dev(struct rpcrdma_domain *d, enum rpcrdma_transport transport, struct rr_dev *dev)
{
	int rc = open_fabric(d, transport, &dev->fabric);

	if (rc)
		return rc;
	rc = rr_pd_create(dev->fabric, &dev->pd);
	if (rc)
		goto out_close;
	rc = rr_pool_attach(d, dev);
	if (rc)
		goto out_pd;
	return 0;
out_pd:
	rr_pd_destroy(dev->pd);
out_close:
	rr_fabric_close(dev->fabric);
	return rc;
}

int rr_domain_dev(struct rpcrdma_domain *d, enum rpcrdma_transport transport, struct rr_dev **ret)
{
	struct rr_dev *dev;
	int rc = 0;

	pthread_mutex_lock(&d->lock);
	for (dev = d->devs; dev < d->devs + d->ndevs; dev++)
		if (dev->transport == transport)
			break;
	if (dev == d->devs + d->ndevs) {
		if (d->ndevs == RR_DEVS_MAX) {
			rc = -ENODEV;
			goto out;
		}
		*dev = (struct rr_dev){ .idx = d->ndevs, .transport = transport };
		rc = open_dev(d, transport, dev);
		if (rc)
			goto out;
		d->ndevs++;
	}
	*ret = dev;
out:
	pthread_mutex_unlock(&d->lock);
	return rc;
}

/* The counters are a struct of uint64_t and nothing else, so sums go by index. */
#define NCOUNTERS (sizeof(struct rpcrdma_stats) / sizeof(uint64_t))
_Static_assert(sizeof(struct rpcrdma_stats) % sizeof(uint64_t) == 0, "only uint64_t counters");

static void add_stats(struct rpcrdma_stats *sum, const struct rpcrdma_stats *s)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)s;
	uint64_t low = sum->credits_low;
	uint64_t s_low = __atomic_load_n(&s->credits_low, __ATOMIC_RELAXED);

	for (size_t i = 0; i < NCOUNTERS; i++)
		to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	/* the one that is a minimum */
	sum->credits_low = !low ? s_low : !s_low ? low : MIN(low, s_low);
}

void rpcrdma_domain_stats(struct rpcrdma_domain *d, struct rpcrdma_stats *ret)
{
	pthread_mutex_lock(&d->lock);
	*ret = d->gone;
	list_for_each(n, &d->engines)
		add_stats(ret, &list_entry(n, struct rpcrdma_engine, link)->stats);
	/* on the local fabric a CPU is the NIC: what it copies is copied */
	for (unsigned i = 0; i < d->ndevs; i++)
		if (d->devs[i].transport == RPCRDMA_LOCAL)
			ret->bytes_copied += rr_local_counters(d->devs[i].fabric).bytes_copied;
	pthread_mutex_unlock(&d->lock);
}

void rr_domain_add_engine(struct rpcrdma_domain *d, struct rpcrdma_engine *e)
{
	pthread_mutex_lock(&d->lock);
	list_add_tail(&d->engines, &e->link);
	pthread_mutex_unlock(&d->lock);
}

void rr_domain_del_engine(struct rpcrdma_domain *d, struct rpcrdma_engine *e)
{
	pthread_mutex_lock(&d->lock);
	list_del(&e->link);
	add_stats(&d->gone, &e->stats);
	pthread_mutex_unlock(&d->lock);
}
