/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_bounce.c - bounce buffers: memory of the transport that offers use instead of the caller's
 *
 * Operation:  An offer takes the smallest idle buffer that is large enough, or a new one. If the strategy keeps
 *             registrations, the buffer is registered for its lifetime, in memory that a server on this host can
 *             map. But each such region costs both sides a descriptor, so their number per connection is limited.
 *             Otherwise it is registered with each offer.
 * Memory:     The connection owns them; idle ones are on rc->bounces, others belong to their offer. Payload recurs,
 *             so its memory stays, up to 8 MiB. Long messages are rare (a mount requests the list of exports), so their
 *             memory is freed instead of staying pinned.
 * Threads:    The engine's.
 * Errors:     -ENOMEM.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "reg_int.h"

#define BYTES_MIN 4096u
#define MAPPED_MAX 16u
#define MESSAGE_KEEP_MAX ((size_t)128 << 10)
#define PAYLOAD_KEEP_MAX ((size_t)8 << 20)

struct rr_reg_bounce {
	struct list link;             /* rc->bounces when idle */
	uint8_t *mem;
	size_t bytes;
	struct rr_reg_seg rseg;       /* kept: covers all of it, and lives as long as the memory */
	bool kept;
	bool given;                   /* kept, but a server on this host cannot map it */
	bool message;                 /* offered for a message, not for payload */
};

/* Memory that is registered with each offer that uses it. */
static int bounce_map(struct rr_reg_bounce *b)
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
static int bounce_alloc(struct rr_reg_conn *rc, struct rr_reg_bounce *b)
{
	struct rpcrdma_domain *d = rc->engine->domain;
	void *mem;
	int err;

	if (d->arena || rc->mapped_bounces < MAPPED_MAX) {
		err = rpcrdma_mem_alloc(d, b->bytes, &mem);
		if (err)
			return err;
		b->mem = mem;
		rc->mapped_bounces++;
		return 0;
	}
	err = bounce_map(b);
	if (err)
		return err;
	b->given = true;
	err = rpcrdma_mem_register(d, b->mem, b->bytes);
	if (err)
		munmap(b->mem, b->bytes);
	return err;
}

static void bounce_free(struct rr_reg_conn *rc, struct rr_reg_bounce *b)
{
	struct rpcrdma_domain *d = rc->engine->domain;
	int err;

	if (!b->given) {
		rpcrdma_mem_free(d, b->mem);
		rc->mapped_bounces--;
		return;
	}
	err = rpcrdma_mem_unregister(d, b->mem);
	assert(!err); /* none of it is offered */
	(void)err;
	munmap(b->mem, b->bytes);
}

/* Registers the memory for its lifetime. */
static int bounce_keep(struct rr_reg_conn *rc, struct rr_reg_bounce *b)
{
	unsigned access = RR_ACCESS_LOCAL_WRITE |
			  (rc->windows ? (unsigned)RR_ACCESS_MW_BIND : RR_ACCESS_REMOTE);
	int err = bounce_alloc(rc, b);

	if (err)
		return err;
	err = rr_reg_slab.get(rc, b->mem, b->bytes, access, &b->rseg);
	if (err)
		bounce_free(rc, b);
	b->kept = !err;
	return err;
}

static int bounce_create(struct rr_reg_conn *rc, size_t bytes, struct rr_reg_bounce **ret)
{
	struct rr_reg_bounce *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->bytes = BYTES_MIN;
	while (b->bytes < bytes)
		b->bytes *= 2;
	list_init(&b->link);
	err = rr_reg_keeps(rc) ? bounce_keep(rc, b) : bounce_map(b);
	if (err) {
		free(b);
		return err;
	}
	*ret = b;
	return 0;
}

/* Afterwards the peer cannot access the memory any more, unless it is part of an arena. */
static void bounce_destroy(struct rr_reg_conn *rc, struct rr_reg_bounce *b)
{
	list_del(&b->link);
	if (b->kept) {
		(void)b->rseg.kind->end(rc, &b->rseg, RR_END_DONE);
		bounce_free(rc, b);
	} else {
		munmap(b->mem, b->bytes);
	}
	free(b);
}

static int bounce_get(struct rr_reg_conn *rc, size_t bytes, struct rr_reg_bounce **ret)
{
	struct rr_reg_bounce *best = NULL;

	list_for_each(node, &rc->bounces) {
		struct rr_reg_bounce *b = list_entry(node, struct rr_reg_bounce, link);

		if (b->bytes >= bytes && (!best || b->bytes < best->bytes))
			best = b;
	}
	if (!best)
		return bounce_create(rc, bytes, ret);
	list_del(&best->link);
	*ret = best;
	return 0;
}

/* ---- a segment of kept memory ------------------------------------------------------------------- */

/* The registration remains, except that of a call that is given up, and that of pages that have been replaced. */
static int kept_end(struct rr_reg_conn *rc, struct rr_reg_seg *rseg, enum rr_reg_end how)
{
	struct rr_offer *o = container_of(rseg, struct rr_offer, segs[0]);

	if (how != RR_END_GIVEN_UP && !rseg->replaced)
		return 0;
	if (how == RR_END_GIVEN_UP && rc->engine->domain->arena)
		return -ECONNABORTED; /* other calls use the same region */
	bounce_destroy(rc, o->bounce);
	o->bounce = NULL;
	o->mem = NULL;
	return 0;
}

static const struct rr_reg_kind kept_kind = { .name = "kept", .end = kept_end };

/* Offers the first @bytes of a kept registration. */
static int kept_get(struct rr_reg_conn *rc, const struct rr_reg_bounce *b, size_t bytes, unsigned access,
		    struct rr_reg_seg *ret)
{
	ret->kind = &kept_kind;
	ret->mr = b->rseg.mr;
	ret->seg = b->rseg.seg;
	ret->seg.length = (uint32_t)bytes;
	return rr_reg_window(rc, ret, access);
}

/* ---- offers ------------------------------------------------------------------------------------- */

int rr_reg_bounce(struct rr_reg_conn *rc, struct rr_offer *o, size_t bytes, unsigned access, bool message)
{
	struct rr_reg_seg *rseg = &o->segs[0];
	struct rr_reg_bounce *b;
	int err = bounce_get(rc, bytes, &b);

	if (err)
		return err;
	rseg->win = NULL;
	rseg->replaced = false;
	err = b->kept ? kept_get(rc, b, bytes, access, rseg) :
			rr_reg_dynamic.get(rc, b->mem, bytes, access, rseg);
	if (err) {
		list_add_head(&rc->bounces, &b->link);
		return err;
	}
	b->message = message;
	o->bounce = b;
	o->mem = b->mem;
	o->n = 1;
	return 0;
}

void rr_reg_bounce_put(struct rr_reg_conn *rc, struct rr_offer *o)
{
	struct rr_reg_bounce *b = o->bounce;

	o->bounce = NULL;
	o->mem = NULL;
	list_add_head(&rc->bounces, &b->link);
	/* a connection that ends frees them all, after its queue pair is destroyed */
	if (b->bytes > (b->message ? MESSAGE_KEEP_MAX : PAYLOAD_KEEP_MAX) && !(rc->ep && rr_ep_is_ending(rc->ep)))
		bounce_destroy(rc, b);
}

void rr_reg_bounce_fini(struct rr_reg_conn *rc)
{
	list_for_each_safe(node, &rc->bounces)
		bounce_destroy(rc, list_entry(node, struct rr_reg_bounce, link));
}
