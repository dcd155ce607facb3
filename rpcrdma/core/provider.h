/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * provider.h - where buffers' memory comes from: one table for every kind of it
 *
 * Memory:  An extent belongs to who got it until it is put; nothing of it may be registered then.
 * Threads: Any; a source is guarded by its user.
 */
#ifndef RR_PROVIDER_H
#define RR_PROVIDER_H

#include "fabric.h"

struct rr_provider_ops;

/* What is there once and is given out in parts; of no account to the kinds that ask the kernel. */
struct rr_source {
	int fd;
	uint64_t bytes;
};

/* Memory of one kind, in one piece. */
struct rr_extent {
	const struct rr_provider_ops *ops;
	void *mem;        /* as SGEs say it: an address; where the CPU has none, the offset in the fd */
	size_t bytes;
	int fd;           /* what backs it from fd_off on, or -1 */
	uint64_t fd_off;
	void *map;        /* its own, to unmap, or NULL */
	size_t map_bytes;
};

struct rr_provider_ops {
	const char *name;
	/* May the CPU touch it? If not it is never zeroed, poisoned, copied or summed, and lent only
	 * to those who said that they need none of that. */
	bool cpu;
	bool dmabuf; /* fd is a dma-buf: it is registered as such, not by an address */
	/* -ENOMEM; -EOPNOTSUPP: not in this size, or this machine has none of the kind */
	int (*get)(const struct rr_source *src, size_t bytes, struct rr_extent *ret);
	void (*put)(struct rr_extent *x);
};

extern const struct rr_provider_ops rr_provider_anonymous_ops; /* huge pages if the kernel likes */
extern const struct rr_provider_ops rr_provider_huge_ops;      /* of those that were set aside */
extern const struct rr_provider_ops rr_provider_memfd_ops;     /* the peer on this host can map it */
extern const struct rr_provider_ops rr_provider_dmabuf_ops;    /* a device's memory; all of it */

/** rr_provider_get - @bytes of memory, page-aligned and there: nobody waits for its first touch
 * @src: of a kind that has one; otherwise NULL
 */
static inline must_check int rr_provider_get(const struct rr_provider_ops *ops,
					     const struct rr_source *src, size_t bytes,
					     struct rr_extent *ret)
{
	int rc;

	assert(bytes > 0 && bytes % 4096 == 0);
	rc = ops->get(src, bytes, ret);
	if (!rc)
		ret->ops = ops;
	assert(rc <= 0 && (rc || (ret->bytes == bytes && (uintptr_t)ret->mem % 4096 == 0)));
	return rc;
}

static inline void rr_provider_put(struct rr_extent *x)
{
	x->ops->put(x);
}

/** rr_provider_reg - register all of an extent
 *
 * Return: as rr_mr_reg(); -EOPNOTSUPP: this device cannot reach memory of the kind.
 */
static inline must_check int rr_provider_reg(const struct rr_extent *x, struct rr_pd *pd,
					     unsigned access, struct rr_mr **ret)
{
	const struct rr_mr_attr attr = { .addr = x->mem, .len = x->bytes, .access = access,
					 .fd = x->fd, .fd_off = x->fd_off, .dmabuf = x->ops->dmabuf };

	return rr_mr_reg(pd, &attr, ret);
}

#endif
