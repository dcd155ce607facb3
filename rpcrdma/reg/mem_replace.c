/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mem_replace.c - replace the pages of a buffer while a server's disk operation still uses the old ones
 *
 * Operation:  A server on this host reads a disk directly into rpcrdma_mem_alloc() memory: it maps the
 *             region's memfd. Nothing can stop such a read before it ends. When its call is
 *             given up, rr_mem_replace() creates a new memfd with the same content and maps it over
 *             the whole pages of the call's range, in one system call (mremap). The disk operation
 *             then ends in the old memfd, which the program no longer maps.
 *
 *             The region then consists of up to three parts: before, in and after the range. Each part is a
 *             struct rr_mem with its own file and registrations. A call that spans several parts gets one
 *             segment in each (rr_mem_span). Earlier registrations still reach the old pages. They are
 *             outdated: no new call uses them.
 * Memory:     The old memfd is freed when its last part is replaced or freed and the server has unmapped it.
 *             Replacing the same range again frees the previous memfd. So the extra memory is at most the size
 *             of the region, however many calls are given up.
 * Threads:    Any. Holds the domain's lock while it copies the range. No other call may be receiving data into
 *             the range.
 * Errors:     -ENOMEM, -ENOENT. A range in several parts may be replaced in some of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reg_int.h"

/* Returns [start, end) of @x as a separate extent, which owns @fd. */
static struct rr_extent part_of(const struct rr_extent *x, uintptr_t start, uintptr_t end, int fd)
{
	struct rr_extent part = *x;

	part.mem = part.map = (void *)start;
	part.bytes = part.map_bytes = end - start;
	part.fd_off += start - (uintptr_t)x->mem;
	part.fd = fd;
	return part;
}

/* Maps a new memfd with the same content over [start, end). */
static int make_copy(uintptr_t start, uintptr_t end, struct rr_extent *ret)
{
	size_t bytes = end - start;
	int rc = rr_extent_get(&rr_mem_kind_memfd, NULL, bytes, ret);

	if (rc)
		return rc;
	memcpy(ret->mem, (void *)start, bytes);
	if (mremap(ret->mem, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start) ==
	    MAP_FAILED) {
		rr_extent_put(ret);
		return -ENOMEM;
	}
	ret->mem = ret->map = (void *)start;
	return 0;
}

/* Replaces the pages of [start, end), which is page-aligned and inside @mem. The lock is held. */
static int replace_in(struct rpcrdma_domain *d, struct rr_mem *mem, uintptr_t start, uintptr_t end)
{
	uintptr_t begin = (uintptr_t)mem->x.mem, over = begin + mem->x.bytes;
	bool has_head = start > begin, has_tail = end < over;
	struct rr_mem *mid = has_head ? rr_mem_new(d) : mem, *tail = has_tail ? rr_mem_new(d) : NULL;
	struct rr_extent old = mem->x, x;
	int fd = old.fd, rc = -ENOMEM;

	if (!mid || (has_tail && !tail))
		goto fail;
	if (has_head && has_tail) {
		fd = fcntl(old.fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			goto fail;
	}
	rc = make_copy(start, end, &x);
	if (rc)
		goto fail_close;
	rr_reg_slab_outdate(mem);
	rr_svc_mem_forget(d, mem->x.mem, mem->x.bytes);
	if (has_head || has_tail)
		atomic_store_explicit(&d->mems_parted, true, memory_order_relaxed);
	if (has_head)
		mem->x = part_of(&old, begin, start, old.fd);
	mid->x = x;
	if (has_tail)
		tail->x = part_of(&old, end, over, fd);
	if (!has_head && !has_tail)
		close(old.fd);
	return 0;
fail_close:
	if (fd != old.fd)
		close(fd);
fail:
	if (has_head && mid)
		rr_mem_drop(mid);
	if (tail)
		rr_mem_drop(tail);
	return rc;
}

int rr_mem_replace(struct rpcrdma_domain *d, const void *addr, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = ((uintptr_t)addr + page - 1) & ~(page - 1);
	uintptr_t end = ((uintptr_t)addr + len) & ~(page - 1);
	int rc = 0;

	pthread_mutex_lock(&d->lock);
	while (at < end && !rc) {
		struct rr_mem *mem = rr_mem_find(d, (void *)at, 1);
		uintptr_t to;

		if (!mem || mem->x.fd < 0) {
			rc = -ENOENT;
			break;
		}
		to = MIN(end, (uintptr_t)mem->x.mem + mem->x.bytes);
		rc = replace_in(d, mem, at, to);
		at = to;
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
}

size_t rr_mem_span_parted(struct rpcrdma_domain *d, const void *addr, size_t len)
{
	const struct rr_mem *mem;

	pthread_mutex_lock(&d->lock);
	mem = rr_mem_find(d, addr, 1);
	if (mem)
		len = MIN(len, mem->x.bytes - ((uintptr_t)addr - (uintptr_t)mem->x.mem));
	pthread_mutex_unlock(&d->lock);
	return len;
}
