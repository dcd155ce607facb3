/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mem.c - rpcrdma_mem_alloc(): memory that a registration can be kept for
 *
 * Operation:  A region is a memfd (provider.c), sealed against shrinking, mapped whole and touched at once.
 *             Because it is a file, a server on this host can map it too; because it cannot shrink,
 *             that server cannot be made to fault by us. Because it comes from here, nobody unmaps
 *             it behind the back of a registration.
 * Memory:     Regions are found by address and live until rpcrdma_mem_free() or the domain's end.
 *             Freeing one takes back its registrations on every connection first.
 * Threads:    Any; the domain's lock.
 * Errors:     -ENOMEM also stands for a limit on memory files or locked memory.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/checked.h"
#include "reg.h"

static void unmake(struct rr_mem *mem)
{
	rr_provider_put(&mem->x);
	free(mem);
}

/** rpcrdma_mem_alloc - see rpcrdma.h */
int rpcrdma_mem_alloc(struct rpcrdma_domain *d, size_t bytes, void **ret)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), rounded;
	static uint64_t ids;
	struct rr_mem *mem;
	int rc;

	if (!bytes)
		return -EINVAL;
	if (!add_size(bytes, page - 1, &rounded))
		return -ENOMEM;
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	list_init(&mem->mrs);
	rc = rr_provider_get(&rr_provider_memfd_ops, NULL, rounded & ~(page - 1), &mem->x);
	if (rc) {
		free(mem);
		return rc;
	}
	mem->id = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&d->lock);
	list_add_tail(&d->mems, &mem->link);
	pthread_mutex_unlock(&d->lock);
	*ret = mem->x.mem;
	return 0;
}

/** rr_mem_find_locked - rr_mem_find() for those who hold the lock */
struct rr_mem *rr_mem_find_locked(struct rpcrdma_domain *d, const void *addr, size_t len)
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

/** rr_mem_find - see engine_int.h */
struct rr_mem *rr_mem_find(struct rpcrdma_domain *d, const void *addr, size_t len)
{
	struct rr_mem *mem;

	pthread_mutex_lock(&d->lock);
	mem = rr_mem_find_locked(d, addr, len);
	pthread_mutex_unlock(&d->lock);
	return mem;
}

/** rpcrdma_mem_free - see rpcrdma.h */
void rpcrdma_mem_free(struct rpcrdma_domain *d, void *addr)
{
	struct rr_mem *mem;

	if (!addr)
		return;
	pthread_mutex_lock(&d->lock);
	mem = rr_mem_find_locked(d, addr, 1);
	assert(mem && mem->x.mem == addr);
	list_del(&mem->link);
	rr_reg_slab_forget(mem);
	pthread_mutex_unlock(&d->lock);
	unmake(mem);
}

/** rr_mem_fini - free what the users of a domain did not */
void rr_mem_fini(struct rpcrdma_domain *d)
{
	struct list *node;

	while ((node = list_pop(&d->mems))) {
		struct rr_mem *mem = list_entry(node, struct rr_mem, link);

		rr_reg_slab_forget(mem);
		unmake(mem);
	}
}
