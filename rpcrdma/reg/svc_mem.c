/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * svc_mem.c - memory of rpcrdma_mem_alloc() and _register() in transfers of a service
 *
 * Operation:  The first transfer of a region over a device registers all of it, for local access only. It then looks
 *             like a buffer of the pool (struct rr_buf), so the transports need not know it. TCP has no device and
 *             registers nothing; its entries only count the requests that use it.
 * Memory:     An entry belongs to the domain's list until its memory is freed, unregistered, or gets other pages
 *             (mem_replace.c). Requests that still use it then keep it; the last one deregisters it.
 * Threads:    Any; the domain's lock.
 * Errors:     -EFAULT: not such memory, or it cannot be written; -ENOMEM and other errors of the device.
 */
#include <errno.h>
#include <stdlib.h>

#include "reg_int.h"

struct svc_mem {
	struct list link;    /* domain->svc_mems, or unlinked */
	struct rr_buf buf;
	struct rr_own own;
	const struct rr_dev *dev; /* NULL: none */
	unsigned refs;       /* one for the list, one for each request that uses it */
};

static struct svc_mem *svc_mem_of(struct rpcrdma_buf *buf)
{
	return container_of(container_of(buf, struct rr_buf, pub), struct svc_mem, buf);
}

/* The memory is not the pool's. */
static void keep(struct rr_own *own, struct rr_buf *b)
{
	(void)own;
	(void)b;
}

/* The caller holds the lock. */
static void unref(struct svc_mem *s)
{
	if (--s->refs)
		return;
	(void)rr_mr_dereg(s->own.mr); /* no window is bound to it */
	free(s);
}

/* Finds the region of [addr, addr+len), with adjacent parts of the same allocation. The caller holds the lock. */
static int find_region(struct rpcrdma_domain *d, const void *addr, size_t len, uintptr_t *ret_lo, uintptr_t *ret_hi)
{
	const struct rr_mem *mem = rr_mem_find(d, addr, 1);
	uintptr_t hi;

	if (!mem)
		return -EFAULT;
	*ret_lo = (uintptr_t)mem->x.mem;
	hi = *ret_lo + mem->x.bytes;
	while (hi - (uintptr_t)addr < len) {
		mem = rr_mem_find(d, (const void *)hi, 1);
		if (!mem || mem->given || mem->whole_bytes)
			return -EFAULT;
		hi += mem->x.bytes;
	}
	*ret_hi = hi;
	return 0;
}

static int register_local(struct rr_dev *dev, void *mem, size_t bytes, struct rr_mr **ret)
{
	struct rr_mr_attr attr = { .addr = mem, .len = bytes, .access = RR_ACCESS_LOCAL_WRITE, .fd = -1 };
	int rc = rr_mr_reg(dev->pd, &attr, ret);

	if (rc != -EFAULT)
		return rc;
	attr.access = 0; /* it may be mapped read-only */
	return rr_mr_reg(dev->pd, &attr, ret);
}

static int add(struct rpcrdma_domain *d, struct rr_dev *dev, void *addr, size_t len, struct svc_mem **ret)
{
	struct svc_mem *s;
	uintptr_t lo, hi;
	int rc = find_region(d, addr, len, &lo, &hi);

	if (rc)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	if (dev)
		rc = register_local(dev, (void *)lo, hi - lo, &s->own.mr);
	if (rc) {
		free(s);
		return rc;
	}
	s->own.put = keep;
	s->buf.own = &s->own;
	s->buf.pub = (struct rpcrdma_buf){ .addr = (void *)lo, .bytes = hi - lo };
	s->dev = dev;
	s->refs = 1;
	list_add_tail(&d->svc_mems, &s->link);
	*ret = s;
	return 0;
}

static struct svc_mem *find(struct rpcrdma_domain *d, const struct rr_dev *dev, const void *addr, size_t len)
{
	list_for_each(n, &d->svc_mems) {
		struct svc_mem *s = list_entry(n, struct svc_mem, link);
		uintptr_t off = (uintptr_t)addr - (uintptr_t)s->buf.pub.addr;

		if (s->dev == dev && off < s->buf.pub.bytes && len <= s->buf.pub.bytes - off)
			return s;
	}
	return NULL;
}

int rr_svc_mem_get(struct rpcrdma_domain *d, struct rr_dev *dev, void *addr, size_t len, bool write,
		   struct rpcrdma_buf **ret)
{
	struct svc_mem *s;
	int rc = 0;

	pthread_mutex_lock(&d->lock);
	s = find(d, dev, addr, len);
	if (!s)
		rc = add(d, dev, addr, len, &s);
	if (!rc && write && dev && !(s->own.mr->access & RR_ACCESS_LOCAL_WRITE))
		rc = -EFAULT;
	if (!rc) {
		s->refs++;
		*ret = &s->buf.pub;
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
}

void rr_svc_mem_put(struct rpcrdma_domain *d, struct rpcrdma_buf *buf)
{
	pthread_mutex_lock(&d->lock);
	unref(svc_mem_of(buf));
	pthread_mutex_unlock(&d->lock);
}

static bool overlaps(const struct svc_mem *s, const void *addr, size_t bytes)
{
	uintptr_t a = (uintptr_t)addr, b = (uintptr_t)s->buf.pub.addr;

	return a < b + s->buf.pub.bytes && b < a + bytes;
}

bool rr_svc_mem_busy(struct rpcrdma_domain *d, const void *addr, size_t bytes)
{
	list_for_each(n, &d->svc_mems) {
		const struct svc_mem *s = list_entry(n, struct svc_mem, link);

		if (s->refs > 1 && overlaps(s, addr, bytes))
			return true;
	}
	return false;
}

void rr_svc_mem_forget(struct rpcrdma_domain *d, const void *addr, size_t bytes)
{
	list_for_each_safe(n, &d->svc_mems) {
		struct svc_mem *s = list_entry(n, struct svc_mem, link);

		if (!overlaps(s, addr, bytes))
			continue;
		list_del(&s->link);
		unref(s);
	}
}
