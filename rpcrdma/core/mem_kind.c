/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mem_kind.c - the kinds of memory for buffers
 *
 * Operation:  anonymous  from the kernel; extents of 2 MiB or more are aligned to 2 MiB, and in huge pages if
 *                        the kernel has some free
 *             huge       from the huge pages reserved with vm.nr_hugepages; fails unless the whole extent is in
 *                        huge pages
 *             memfd      a file in memory, sealed against shrinking, that a server of this host can map;
 *                        extents of 2 MiB or more are aligned to 2 MiB, and in huge pages from Linux 6.1 on
 *             dmabuf     exported by a device (a GPU, a disk's memory buffer): no address, only offsets; the
 *                        CPU never accesses it
 *
 *             A local client's memory, which the server's kernel reads into during one request, is none of
 *             these kinds, because this process does not own it. It comes from rr_qp_direct().
 * Memory:     get() populates all memory (from Linux 5.14 on; else it is populated at first use). A dma-buf's
 *             fd stays its user's.
 * Threads:    Any.
 * Errors:     -ENOMEM, -EOPNOTSUPP.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "mem_kind.h"
#include "shm_map.h"

#define HUGE_BYTES ((size_t)2 << 20)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
#define HUGE_2MIB (21 << 26) /* MAP_HUGE_2MB, whatever this machine's default size is */

/* munmap() fails if it would split a mapping and the process has reached its limit of mappings. The pages are
 * freed nevertheless. */
static void unmap(struct rr_extent *x)
{
	if (munmap(x->map, x->map_bytes))
		(void)madvise(x->map, x->map_bytes, MADV_DONTNEED);
}

/* ---- anonymous ---- */

static int anonymous_get(const struct rr_source *src, size_t bytes, struct rr_extent *ret)
{
	size_t align = bytes < HUGE_BYTES ? 1 : HUGE_BYTES, map_bytes;
	void *map;

	(void)src;
	if (!add_size(bytes, align - 1, &map_bytes))
		return -ENOMEM;
	map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return -ENOMEM;
	*ret = (struct rr_extent){ .mem = (void *)round_up_pow2((size_t)map, align),
				   .bytes = bytes, .fd = -1, .map = map, .map_bytes = map_bytes };
	/* Both are optional: small pages and later page faults also work, only slower. */
	if (bytes >= HUGE_BYTES)
		(void)madvise(ret->mem, bytes, MADV_HUGEPAGE);
	(void)madvise(ret->mem, bytes, MADV_POPULATE_WRITE);
	return 0;
}

const struct rr_mem_kind rr_mem_kind_anonymous = {
	.name = "anonymous",
	.get = anonymous_get,
	.put = unmap,
};

/* ---- huge ---- */

static int huge_get(const struct rr_source *src, size_t bytes, struct rr_extent *ret)
{
	void *map;

	(void)src;
	if (bytes % HUGE_BYTES)
		return -EOPNOTSUPP;
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | HUGE_2MIB, -1, 0);
	if (map == MAP_FAILED)
		return -EOPNOTSUPP;
	/* a reservation does not populate: a later access that gets no page (limit of the control group) would
	 * be a SIGBUS, this is an error */
	if (madvise(map, bytes, MADV_POPULATE_WRITE)) {
		munmap(map, bytes);
		return -EOPNOTSUPP;
	}
	*ret = (struct rr_extent){ .mem = map, .bytes = bytes, .fd = -1, .map = map,
				   .map_bytes = bytes };
	return 0;
}

const struct rr_mem_kind rr_mem_kind_huge = {
	.name = "huge",
	.get = huge_get,
	.put = unmap,
};

/* ---- memfd ---- */

/* Populates all of it or fails: a later access without memory would be a SIGBUS. */
static int touch(void *mem, size_t bytes)
{
	if (!madvise(mem, bytes, MADV_POPULATE_WRITE) || errno == EINVAL) /* before Linux 5.14 */
		return 0;
	return -ENOMEM;
}

/* Uses huge pages whatever the setting for shared memory is: a disk that reads into single pages needs one
 * descriptor per page, and splits requests with more of them than it supports. Failure is ignored. The first
 * page of each huge page is populated before: MADV_COLLAPSE does not work on a hole, and it copies all
 * populated pages. */
static void make_huge(void *mem, size_t bytes)
{
	size_t huge = bytes / HUGE_BYTES * HUGE_BYTES;

	for (size_t at = 0; at < huge; at += HUGE_BYTES)
		if (touch((char *)mem + at, 4096))
			return;
	if (huge)
		(void)madvise(mem, huge, MADV_COLLAPSE);
}

static int memfd_get(const struct rr_source *src, size_t bytes, struct rr_extent *ret)
{
	int fd = rr_shm_create("rpcrdma-mem", bytes);
	void *map;

	(void)src;
	if (fd < 0)
		return -ENOMEM;
	map = rr_shm_map(fd, bytes);
	if (map == MAP_FAILED)
		goto out_close;
	make_huge(map, bytes);
	if (touch(map, bytes)) {
		munmap(map, bytes);
		goto out_close;
	}
	*ret = (struct rr_extent){ .mem = map, .bytes = bytes, .fd = fd, .map = map,
				   .map_bytes = bytes };
	return 0;
out_close:
	close(fd);
	return -ENOMEM;
}

static void memfd_put(struct rr_extent *x)
{
	unmap(x);
	close(x->fd);
}

const struct rr_mem_kind rr_mem_kind_memfd = {
	.name = "memfd",
	.get = memfd_get,
	.put = memfd_put,
};

/* ---- dmabuf ---- */

static int dmabuf_get(const struct rr_source *src, size_t bytes, struct rr_extent *ret)
{
	if (bytes > src->bytes)
		return -ENOMEM;
	*ret = (struct rr_extent){ .mem = NULL, .bytes = bytes, .fd = src->fd };
	return 0;
}

static void dmabuf_put(struct rr_extent *x)
{
	(void)x; /* the fd belongs to its user */
}

const struct rr_mem_kind rr_mem_kind_dmabuf = {
	.name = "dmabuf",
	.dmabuf = true,
	.get = dmabuf_get,
	.put = dmabuf_put,
};
