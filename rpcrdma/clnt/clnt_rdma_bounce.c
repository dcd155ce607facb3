/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_rdma_bounce.c - memory of a requester's own, which goes into chunks in place of its callers'
 *
 * Operation:  rr_bounce_get() finds one that is idle, the smallest that is big enough, or makes one.
 *             Where the strategy keeps registrations, it is registered once and for all, and is memory
 *             that a server on this host can map; but each such region costs both ends a descriptor, so
 *             that there are only so many for one connection.
 * Memory:     A link's; idle ones wait on link->bounces, others belong to the offer they are part of.
 *             Payload comes again and again, so its memory stays. A message that long is the exception
 *             (a mount asks for the list of exports): its memory would stay pinned for nothing.
 * Threads:    The engine's.
 * Errors:     -ENOMEM.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "clnt_rdma.h"

#define BYTES_MIN 4096u
#define MAPPED_MAX 16u
#define MESSAGE_KEEP_MAX ((size_t)128 << 10)

/* Of this call alone, to be registered with each one that uses it. */
static int bounce_map(struct rr_bounce *b)
{
	void *map = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (map == MAP_FAILED)
		return -ENOMEM;
	b->mem = map;
	return 0;
}

/* Memory that a registration may be kept for: such as a server on this host can map, or, where that
 * would take too many descriptors, as it cannot. */
static int bounce_alloc(struct rr_link *l, struct rr_bounce *b)
{
	struct rpcrdma_domain *d = l->engine->domain;
	void *mem;
	int rc;

	if (d->arena || l->mapped_bounces < MAPPED_MAX) {
		rc = rpcrdma_mem_alloc(d, b->bytes, &mem);
		if (rc)
			return rc;
		b->mem = mem;
		l->mapped_bounces++;
		return 0;
	}
	rc = bounce_map(b);
	if (rc)
		return rc;
	b->given = true;
	rc = rpcrdma_mem_register(d, b->mem, b->bytes);
	if (rc)
		munmap(b->mem, b->bytes);
	return rc;
}

static void bounce_free(struct rr_link *l, struct rr_bounce *b)
{
	struct rpcrdma_domain *d = l->engine->domain;
	int rc;

	if (!b->given) {
		rpcrdma_mem_free(d, b->mem);
		l->mapped_bounces--;
		return;
	}
	rc = rpcrdma_mem_unregister(d, b->mem);
	assert(!rc); /* nothing of it is offered */
	(void)rc;
	munmap(b->mem, b->bytes);
}

/* Registered as long as it is there. */
static int bounce_keep(struct rr_link *l, struct rr_bounce *b)
{
	int rc = bounce_alloc(l, b);

	if (rc)
		return rc;
	rc = rr_reg_keep(&l->reg, b->mem, b->bytes, &b->piece);
	if (rc) {
		bounce_free(l, b);
		return rc;
	}
	b->keeps = true;
	return 0;
}

static int bounce_create(struct rr_link *l, size_t bytes, struct rr_bounce **ret)
{
	struct rr_bounce *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return -ENOMEM;
	b->bytes = BYTES_MIN;
	while (b->bytes < bytes)
		b->bytes *= 2;
	list_init(&b->link);
	rc = rr_reg_keeps(&l->reg) ? bounce_keep(l, b) : bounce_map(b);
	if (rc) {
		free(b);
		return rc;
	}
	*ret = b;
	return 0;
}

void rr_bounce_destroy(struct rr_link *l, struct rr_bounce *b)
{
	list_del(&b->link);
	if (b->keeps) {
		(void)rr_reg_put(&l->reg, &b->piece, 1);
		bounce_free(l, b);
	} else {
		munmap(b->mem, b->bytes);
	}
	free(b);
}

void rr_bounce_put(struct rr_link *l, struct rr_bounce *b, bool message)
{
	list_add_head(&l->bounces, &b->link);
	/* a connection that ends takes them all, when its queue pair has let go of them */
	if (message && b->bytes > MESSAGE_KEEP_MAX && !l->ending)
		rr_bounce_destroy(l, b);
}

int rr_bounce_get(struct rr_link *l, size_t bytes, struct rr_bounce **ret)
{
	struct rr_bounce *best = NULL;

	list_for_each(node, &l->bounces) {
		struct rr_bounce *b = list_entry(node, struct rr_bounce, link);

		if (b->bytes >= bytes && (!best || b->bytes < best->bytes))
			best = b;
	}
	if (!best)
		return bounce_create(l, bytes, ret);
	list_del(&best->link);
	*ret = best;
	return 0;
}
