/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_rdma_bounce.c - bounce buffers: memory of a requester that chunks use instead of the caller's
 *
 * Operation:  rr_bounce_get() returns the smallest idle buffer that is large enough, or allocates one. If the
 *             strategy keeps registrations, the buffer is registered permanently, in memory that a server on
 *             this host can map. But each such region costs both sides a descriptor, so their number per
 *             connection is limited.
 * Memory:     The link owns them; idle ones are on link->bounces, others belong to their offer. Payload recurs,
 *             so its memory stays. Long messages are rare (a mount requests the list of exports), so their
 *             memory is freed instead of staying pinned.
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

/* Memory of this call only, registered with each call that uses it. */
static int bounce_map(struct rr_bounce *b)
{
	void *map = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (map == MAP_FAILED)
		return -ENOMEM;
	b->mem = map;
	return 0;
}

/* Allocates memory that may stay registered: mappable by a server on this host, or not mappable if that would
 * take too many descriptors. */
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
	assert(!rc); /* none of it is offered */
	(void)rc;
	munmap(b->mem, b->bytes);
}

/* Registers the memory for its lifetime. */
static int bounce_keep(struct rr_link *l, struct rr_bounce *b)
{
	int rc = bounce_alloc(l, b);

	if (rc)
		return rc;
	rc = rr_reg_keep(&l->reg, b->mem, b->bytes, &b->rseg);
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
		(void)rr_reg_put(&l->reg, &b->rseg, 1);
		bounce_free(l, b);
	} else {
		munmap(b->mem, b->bytes);
	}
	free(b);
}

void rr_bounce_put(struct rr_link *l, struct rr_bounce *b, bool message)
{
	list_add_head(&l->bounces, &b->link);
	/* a connection that ends frees them all, after its queue pair is destroyed */
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
