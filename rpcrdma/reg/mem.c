/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mem.c - rpcrdma_mem_alloc(), _register(): memory suitable for long-lived registrations
 *
 * Operation:  A region is a memfd (mem_kind.c) of fixed size, sealed, mapped as a whole and populated. Because
 *             it is a file, a server on this host can map it too. Because it cannot shrink, this process cannot
 *             make that server fault. Because the library owns it, the program does not unmap it while it is
 *             registered. With an arena, regions are parts of one large region with one registration. A region
 *             may have become several adjacent ones (mem_replace.c).
 *
 *             Memory of the program is a region too, if the program promises to keep it mapped.
 * Memory:     Regions are found by address and live until rpcrdma_mem_free() or the domain's end. Freeing one
 *             first deregisters it on every connection.
 * Threads:    Any; the domain's lock.
 * Errors:     -ENOMEM also means a limit of memory files or locked memory.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "reg_int.h"

static void given_put(struct rr_extent *x)
{
	(void)x; /* the program owns it */
}

static const struct rr_mem_kind given_kind = { .name = "given", .put = given_put };

static void unmake(struct rr_mem *mem)
{
	rr_extent_put(&mem->x);
	free(mem);
}

static struct rr_mem *make(void)
{
	struct rr_mem *mem = calloc(1, sizeof(*mem));

	if (mem)
		list_init(&mem->mrs);
	return mem;
}

struct rr_mem *rr_mem_new(struct rpcrdma_domain *d)
{
	struct rr_mem *mem = make();

	if (mem)
		list_add_tail(&d->mems, &mem->link);
	return mem;
}

void rr_mem_drop(struct rr_mem *mem)
{
	list_del(&mem->link);
	free(mem);
}

static int make_region(struct rpcrdma_domain *d, size_t bytes, struct rr_mem **ret)
{
	struct rr_mem *mem = make();
	int rc;

	if (!mem)
		return -ENOMEM;
	rc = rr_extent_get(&rr_mem_kind_memfd, NULL, bytes, &mem->x);
	if (rc) {
		free(mem);
		return rc;
	}
	mem->whole_bytes = bytes;
	pthread_mutex_lock(&d->lock);
	list_add_tail(&d->mems, &mem->link);
	pthread_mutex_unlock(&d->lock);
	*ret = mem;
	return 0;
}

static int whole_pages(size_t bytes, size_t *ret)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!add_size(bytes, page - 1, ret))
		return -ENOMEM;
	*ret &= ~(page - 1);
	return 0;
}

int rr_mem_init(struct rpcrdma_domain *d)
{
	size_t bytes;
	int rc;

	if (!d->attr.arena_bytes)
		return 0;
	rc = whole_pages(d->attr.arena_bytes, &bytes);
	if (rc)
		return rc;
	rr_ranges_init(&d->arena_ranges, bytes);
	return make_region(d, bytes, &d->arena);
}

/* ---- the arena ------------------------------------------------------------------------------ */

static int arena_alloc(struct rpcrdma_domain *d, size_t bytes, void **ret)
{
	size_t off;
	int rc;

	pthread_mutex_lock(&d->lock);
	rc = rr_ranges_alloc(&d->arena_ranges, bytes, 1, &off);
	pthread_mutex_unlock(&d->lock);
	if (rc)
		return -ENOMEM;
	*ret = (char *)d->arena->x.mem + off;
	return 0;
}

/* The caller holds the lock. */
static bool arena_free(struct rpcrdma_domain *d, const void *addr)
{
	uintptr_t off = (uintptr_t)addr - (uintptr_t)(d->arena ? d->arena->x.mem : NULL);

	return d->arena && off < d->arena->whole_bytes && rr_ranges_free(&d->arena_ranges, off);
}

/* ---- alloc and free ------------------------------------------------------------------------- */

int rpcrdma_mem_alloc(struct rpcrdma_domain *d, size_t bytes, void **ret)
{
	struct rr_mem *mem;
	size_t rounded;
	int rc;

	if (!bytes)
		return -EINVAL;
	rc = whole_pages(bytes, &rounded);
	if (!rc && d->arena)
		return arena_alloc(d, rounded, ret);
	if (!rc)
		rc = make_region(d, rounded, &mem);
	if (!rc)
		*ret = mem->x.mem;
	return rc;
}

struct rr_mem *rr_mem_find(struct rpcrdma_domain *d, const void *addr, size_t len)
{
	uintptr_t at = (uintptr_t)addr;

	list_for_each(node, &d->mems) {
		struct rr_mem *mem = list_entry(node, struct rr_mem, link);
		uintptr_t start = (uintptr_t)mem->x.mem;

		if (at >= start && range_fits(at - start, len, mem->x.bytes))
			return mem;
	}
	return NULL;
}

/* The caller holds the lock. Afterwards no peer can access the region, and no lookup finds it. */
static void unlist(struct rpcrdma_domain *d, struct rr_mem *mem)
{
	list_del(&mem->link);
	rr_reg_slab_forget(mem);
	rr_svc_mem_forget(d, mem->x.mem, mem->x.bytes);
}

/* Removes all parts of the allocation at @addr. The caller holds the lock. */
static void unlist_whole(struct rpcrdma_domain *d, const void *addr, struct list *to)
{
	struct rr_mem *mem = rr_mem_find(d, addr, 1);
	size_t left = mem ? mem->whole_bytes : 0;

	assert(left && mem != d->arena && mem->x.mem == addr && !mem->given);
	while (left) {
		unlist(d, mem);
		list_add_tail(to, &mem->link);
		left -= mem->x.bytes;
		mem = rr_mem_find(d, (char *)mem->x.mem + mem->x.bytes, 1);
	}
}

void rpcrdma_mem_free(struct rpcrdma_domain *d, void *addr)
{
	struct list parts = LIST_INIT(parts), *node;

	if (!addr)
		return;
	pthread_mutex_lock(&d->lock);
	if (!arena_free(d, addr))
		unlist_whole(d, addr, &parts);
	pthread_mutex_unlock(&d->lock);
	while ((node = list_pop(&parts)))
		unmake(list_entry(node, struct rr_mem, link));
}

/* ---- memory of others ----------------------------------------------------------------------- */

static bool is_mapped(const void *addr, size_t bytes)
{
	uintptr_t start, end;

	return pages_around((uintptr_t)addr, bytes, (size_t)sysconf(_SC_PAGESIZE), &start, &end) &&
	       !msync((void *)start, end - start, MS_ASYNC);
}

static bool overlaps(const struct rr_mem *mem, const void *addr, size_t bytes)
{
	uintptr_t a = (uintptr_t)addr, b = (uintptr_t)mem->x.mem;

	return a < b + mem->x.bytes && b < a + bytes;
}

int rpcrdma_mem_register(struct rpcrdma_domain *d, void *addr, size_t bytes)
{
	struct rr_mem *mem;
	int rc = 0;

	if (!bytes)
		return -EINVAL;
	if (!is_mapped(addr, bytes))
		return -EFAULT;
	mem = make();
	if (!mem)
		return -ENOMEM;
	mem->given = true;
	mem->x = (struct rr_extent){ .kind = &given_kind, .mem = addr, .bytes = bytes, .fd = -1 };
	pthread_mutex_lock(&d->lock);
	list_for_each(node, &d->mems)
		if (overlaps(list_entry(node, struct rr_mem, link), addr, bytes))
			rc = -EEXIST;
	if (!rc)
		list_add_tail(&d->mems, &mem->link);
	pthread_mutex_unlock(&d->lock);
	if (rc)
		unmake(mem);
	return rc;
}

int rpcrdma_mem_unregister(struct rpcrdma_domain *d, void *addr)
{
	struct rr_mem *mem;
	int rc = 0;

	pthread_mutex_lock(&d->lock);
	mem = rr_mem_find(d, addr, 1);
	if (!mem || mem->x.mem != addr || !mem->given)
		rc = -ENOENT;
	else if (atomic_load_explicit(&mem->out, memory_order_acquire) || rr_svc_mem_busy(d, addr, mem->x.bytes))
		rc = -EBUSY;
	else
		unlist(d, mem);
	pthread_mutex_unlock(&d->lock);
	if (!rc)
		unmake(mem);
	return rc;
}

/* ---- memory of a call ----------------------------------------------------------------------- */

unsigned rr_mem_segments(struct rpcrdma_domain *d, const struct iovec *iov, int iovcnt, uint64_t len)
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

/* Populates pages, as the copy will. EINVAL also means an old kernel or a mapping of a device. */
static bool can_populate(void *start, size_t bytes, bool write)
{
	return !madvise(start, bytes, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

static bool is_range_there(void *addr, size_t len, bool write)
{
	uintptr_t start, end;

	if (!pages_around((uintptr_t)addr, len, (size_t)sysconf(_SC_PAGESIZE), &start, &end))
		return false;
	if (can_populate((void *)start, end - start, write))
		return true;
	if (write && errno == EINVAL && can_populate((void *)start, end - start, false))
		return false; /* it is read-only */
	return errno != ENOMEM && errno != EFAULT;
}

bool rr_mem_is_there(const struct iovec *iov, int iovcnt, uint64_t len, bool write)
{
	for (int i = 0; i < iovcnt && len; i++) {
		size_t take = (size_t)MIN(len, (uint64_t)iov[i].iov_len);

		if (take && !is_range_there(iov[i].iov_base, take, write))
			return false;
		len -= take;
	}
	return true;
}

/** rr_mem_fini - frees the regions that the users of a domain did not free */
void rr_mem_fini(struct rpcrdma_domain *d)
{
	struct list *node;

	rr_ranges_fini(&d->arena_ranges);
	while ((node = list_pop(&d->mems))) {
		struct rr_mem *mem = list_entry(node, struct rr_mem, link);

		unlist(d, mem);
		unmake(mem);
	}
}
