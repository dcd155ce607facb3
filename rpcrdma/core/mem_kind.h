/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mem_kind.h - kinds of memory for buffers: one table for each kind
 *
 * Memory:  An extent belongs to the caller of rr_extent_get() until rr_extent_put(). Deregister it before the
 *          put.
 * Threads: Any; the user of a source guards it.
 */
#ifndef RR_MEM_KIND_H
#define RR_MEM_KIND_H

#include "fabric.h"

struct rr_mem_kind;

/* Existing memory that is given out in parts. Kinds that allocate from the kernel ignore it. */
struct rr_source {
	int fd;
	uint64_t bytes;
};

/* One contiguous range of memory of one kind. */
struct rr_extent {
	const struct rr_mem_kind *kind;
	void *mem;        /* the address for SGEs; without a CPU address, the offset in the fd */
	size_t bytes;
	int fd;           /* backs it from fd_off on, or -1 */
	uint64_t fd_off;
	void *map;        /* own mapping, to unmap, or NULL */
	size_t map_bytes;
};

struct rr_mem_kind {
	const char *name;
	/* fd is a dma-buf, which is registered as such, not by an address. The CPU cannot access it: it is never zeroed,
	 * poisoned, copied or checksummed, and only callers that accept this get it. */
	bool dmabuf;
	/* -ENOMEM; -EOPNOTSUPP: unsupported size, or this machine has no memory of the kind */
	int (*get)(const struct rr_source *src, size_t bytes, struct rr_extent *ret);
	void (*put)(struct rr_extent *x);
};

extern const struct rr_mem_kind rr_mem_kind_anonymous; /* huge pages if the kernel provides them */
extern const struct rr_mem_kind rr_mem_kind_huge;      /* from reserved huge pages */
extern const struct rr_mem_kind rr_mem_kind_memfd;     /* mappable by the peer on this host */
extern const struct rr_mem_kind rr_mem_kind_dmabuf;    /* a device's memory as a dma-buf */

/** rr_extent_get - allocates @bytes of memory, page-aligned and populated if the kernel supports it
 * @src: for kinds that need a source; otherwise NULL
 */
static inline must_check int rr_extent_get(const struct rr_mem_kind *kind,
					   const struct rr_source *src, size_t bytes,
					   struct rr_extent *ret)
{
	int rc;

	assert(bytes > 0 && bytes % 4096 == 0);
	rc = kind->get(src, bytes, ret);
	if (!rc)
		ret->kind = kind;
	assert(rc <= 0 && (rc || (ret->bytes == bytes && (uintptr_t)ret->mem % 4096 == 0)));
	return rc;
}

static inline void rr_extent_put(struct rr_extent *x)
{
	x->kind->put(x);
}

/** rr_extent_reg - registers a whole extent
 *
 * Return: as rr_mr_reg(); -EOPNOTSUPP: this device cannot reach memory of this kind.
 */
static inline must_check int rr_extent_reg(const struct rr_extent *x, struct rr_pd *pd,
					   unsigned access, struct rr_mr **ret)
{
	const struct rr_mr_attr attr = { .addr = x->mem, .len = x->bytes, .access = access,
					 .fd = x->fd, .fd_off = x->fd_off, .dmabuf = x->kind->dmabuf };

	return rr_mr_reg(pd, &attr, ret);
}

#endif
