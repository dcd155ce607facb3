/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * domain.c - per-process state: devices, the buffer pool, and the sum of the counters
 *
 * Operation:  A device is opened when a client, a listener or a request first needs it and closed with the
 *             domain. Opening it registers the pool with it, so every data buffer works with every device, and
 *             a request need not know its device. The address determines the RDMA device (rr_verbs_device_of);
 *             requests to a listener on all addresses may arrive on any of them.
 * Memory:     Owns devices, pool and rpcrdma_mem_alloc() regions.
 * Threads:    Any; domain->lock. Not on the data path.
 * Errors:     A missing device is -ENODEV, only for a caller that asked for it by name.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_int.h"
#include "filter.h"
#include "local.h"
#include "mode.h"
#include "reg.h"
#ifdef HAVE_VERBS
#include "verbs.h"
#endif

#define POOL_BYTES_DEFAULT ((size_t)256 << 20)
#define MSG_BYTES_DEFAULT ((size_t)64 << 20)
#define SHARED_BYTES_DEFAULT ((size_t)8 << 30)

int rpcrdma_domain_create(const struct rpcrdma_domain_attr *attr, struct rpcrdma_domain **ret)
{
	struct rpcrdma_domain *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return -ENOMEM;
	rc = RR_SIZED_IN(&d->attr, attr, lab);
	if (!rc)
		rc = RR_SIZED_IN(&d->lab, d->attr.lab, local);
	if (rc) {
		free(d);
		return rc;
	}
	if (!d->attr.pool_bytes_max)
		d->attr.pool_bytes_max = POOL_BYTES_DEFAULT;
	if (!d->attr.msg_bytes_max)
		d->attr.msg_bytes_max = MSG_BYTES_DEFAULT;
	if (!d->attr.shared_bytes_max)
		d->attr.shared_bytes_max = SHARED_BYTES_DEFAULT;
	pthread_mutex_init(&d->lock, NULL);
	rr_clients_init(&d->clients);
	list_init(&d->engines);
	list_init(&d->mems);
	list_init(&d->svc_mems);
	list_init(&d->shared_pds);
	d->clnt_modes = &rr_mode_requester;
	d->srv_modes = &rr_mode_responder;
	rc = rr_pool_init(d);
	if (!rc)
		rc = rr_mem_init(d);
	if (rc) {
		rpcrdma_domain_destroy(d);
		return rc;
	}
	if (d->lab.capture) {
		struct rr_dev *dev;

		d->capture = strdup(d->lab.capture);
		d->lab.capture = d->capture;
		/* opened now, so that an unwritable capture file is an error here, not later */
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
	rr_clients_fini(&d->clients);
	pthread_mutex_destroy(&d->lock);
	free(d->capture);
	free(d);
}

#ifdef HAVE_VERBS
static int get_dev(struct rpcrdma_domain *d, enum rpcrdma_transport transport, const char *device,
		   struct rr_dev **ret);

/* Opens a device that was not used before, for a request that arrived on it. */
static int sibling(void *ctx, const char *device, struct rr_fabric **ret)
{
	struct rr_dev *dev;
	int rc = get_dev(ctx, RPCRDMA_RDMA, device, &dev);

	if (!rc)
		*ret = dev->fabric;
	return rc;
}
#endif

/* @device: NULL for any, or a verbs device */
static int open_fabric(struct rpcrdma_domain *d, enum rpcrdma_transport transport,
		       const char *device, struct rr_fabric **ret)
{
	struct rr_local_attr local = { 0 };
	struct rr_fabric *fabric;
	int rc;

#ifdef HAVE_VERBS
	if (transport == RPCRDMA_RDMA) {
		const struct rr_verbs_attr verbs = { .device = device, .sibling = sibling, .ctx = d,
						     .unsafe_inv = d->lab.unsafe_inv };

		return rr_verbs_open(&verbs, ret);
	}
#endif
	(void)device;
	if (transport != RPCRDMA_LOCAL)
		return -EOPNOTSUPP;
	if (d->lab.local)
		local = *d->lab.local;
	local.clients = &d->clients;
	if (!local.limits.mapped_bytes_max)
		local.limits.mapped_bytes_max = d->attr.shared_bytes_max / 2;
	if (!local.limits.ring_bytes_max)
		local.limits.ring_bytes_max = d->attr.shared_bytes_max / 2;
	if (!local.socket_mode)
		local.socket_mode = d->attr.socket_mode;
	rc = rr_local_open(&local, &fabric);
	if (rc)
		return rc;
	if (d->lab.capture)
		rc = rr_capture_push(fabric, d->lab.capture);
	if (!rc)
		rc = rr_cost_push(fabric, &d->lab.reg_cost);
	if (rc)
		rr_fabric_close(fabric);
	else
		*ret = fabric;
	return rc;
}

static int open_dev(struct rpcrdma_domain *d, const char *device, struct rr_dev *dev)
{
	int rc = open_fabric(d, dev->transport, device, &dev->fabric);

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

static int get_dev(struct rpcrdma_domain *d, enum rpcrdma_transport transport, const char *device,
		   struct rr_dev **ret)
{
	struct rr_dev *dev;
	int rc = 0;

	pthread_mutex_lock(&d->lock);
	for (dev = d->devs; dev < d->devs + d->ndevs; dev++)
		if (dev->transport == transport &&
		    (!device || !strcmp(dev->fabric->attr.device, device)))
			break;
	if (dev == d->devs + d->ndevs) {
		if (d->ndevs == RR_DEVS_MAX) {
			rc = -ENOSPC;
			goto out;
		}
		*dev = (struct rr_dev){ .idx = d->ndevs, .transport = transport };
		rc = open_dev(d, device, dev);
		if (rc)
			goto out;
		d->ndevs++;
	}
	*ret = dev;
out:
	pthread_mutex_unlock(&d->lock);
	return rc;
}

int rr_domain_dev(struct rpcrdma_domain *d, enum rpcrdma_transport transport, struct rr_dev **ret)
{
	return get_dev(d, transport, NULL, ret);
}

int rr_domain_dev_at(struct rpcrdma_domain *d, enum rpcrdma_transport transport, const char *where,
		     bool passive, struct rr_dev **ret)
{
#ifdef HAVE_VERBS
	char device[sizeof(((struct rr_fabric_attr *)0)->device)];
	int rc;

	if (transport == RPCRDMA_RDMA) {
		rc = rr_verbs_device_of(where, passive, device, sizeof(device));
		return rc ? rc : get_dev(d, transport, *device ? device : NULL, ret);
	}
#endif
	(void)where;
	(void)passive;
	return get_dev(d, transport, NULL, ret);
}

int rr_domain_has_dev(enum rpcrdma_transport transport)
{
#ifdef HAVE_VERBS
	if (transport == RPCRDMA_RDMA)
		return rr_verbs_any_device() ? 0 : -ENODEV;
#endif
	return transport == RPCRDMA_LOCAL ? 0 : -EOPNOTSUPP;
}

struct rr_dev *rr_domain_dev_of(struct rpcrdma_domain *d, const struct rr_fabric *fabric)
{
	struct rr_dev *dev;

	pthread_mutex_lock(&d->lock);
	for (dev = d->devs; dev->fabric != fabric; dev++)
		assert(dev < d->devs + d->ndevs);
	pthread_mutex_unlock(&d->lock);
	return dev;
}

/* The counters are a struct of uint64_t only, so sums go by index. */
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
	/* the only minimum */
	sum->credits_low = !low ? s_low : !s_low ? low : MIN(low, s_low);
}

void rpcrdma_domain_stats_sized(struct rpcrdma_domain *d, struct rpcrdma_stats *ret, size_t bytes)
{
	struct rpcrdma_stats s;

	pthread_mutex_lock(&d->lock);
	s = d->gone;
	list_for_each(n, &d->engines)
		add_stats(&s, &list_entry(n, struct rpcrdma_engine, link)->stats);
	rr_reg_stats(d, &s);
	/* on the local fabric a CPU acts as the NIC: count what it copies */
	for (unsigned i = 0; i < d->ndevs; i++)
		if (d->devs[i].transport == RPCRDMA_LOCAL)
			s.bytes_copied += rr_local_counters(d->devs[i].fabric).bytes_copied;
	pthread_mutex_unlock(&d->lock);
	rr_sized_out(ret, bytes, &s, sizeof(s));
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
