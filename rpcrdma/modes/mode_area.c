/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_area.c - memory of a single connection, lent in pages
 *
 * Operation:  A connection with a mode has its own areas instead of the pool's zones. The pool's buffers are
 *             registered in another protection domain, and stay out of reach of such peers. A buffer is the
 *             first sufficiently long run of free pages (ranges.h). Without one, the request waits in a FIFO and
 *             is retried when buffers return. Later requests do not overtake it, so finally there is room for as
 *             much as an area may lend at once (buf_max).
 * Memory:     One extent (mem_kind.h), populated and registered when the connection is created. It was never used by
 *             others: a peer that reads it sees only its own data.
 * Threads:    The connection's engine; created on the engine that accepts.
 * Errors:     -ENOBUFS: wait. -ENOMEM.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "mode_area.h"

static struct rr_area *area_of(struct rr_own_zone *zone)
{
	return container_of(zone, struct rr_area, zone);
}

int rr_area_get(struct rr_own_zone *zone, size_t bytes, struct rpcrdma_buf **ret)
{
	struct rr_area *a = area_of(zone);
	size_t whole = round_up_pow2(MAX(bytes, (size_t)1), RR_AREA_PAGE), off;
	struct rr_buf *b;
	int rc;

	if (bytes > zone->buf_max)
		return -EMSGSIZE;
	if (!rr_waiters_may_try(&a->waiters))
		return -ENOBUFS;
	rc = rr_ranges_alloc(&a->pages, whole, RR_AREA_PAGE, &off);
	if (rc)
		return rc;
	b = &a->bufs[off / RR_AREA_PAGE];
	b->own = &zone->own;
	b->pub.addr = (uint8_t *)a->x.mem + off;
	b->pub.bytes = whole;
	*ret = &b->pub;
	return 0;
}

/* Waiters retry in turn until one has to wait again. */
static void on_msg(struct rpcrdma_msg *msg)
{
	struct rr_area *a = container_of(msg, struct rr_area, msg);
	struct rpcrdma_conn *c = a->conn;

	a->msg_out = false;
	c->reqs++; /* fn may end the last request; keep the connection until all have run */
	while (a->waiters.first && rr_waiters_run(&a->waiters))
		;
	rr_conn_unhold(c);
}

static void own_put(struct rr_own *own, struct rr_buf *b)
{
	struct rr_area *a = container_of(own, struct rr_area, zone.own);

	(void)rr_ranges_free(&a->pages, (size_t)(b - a->bufs) * RR_AREA_PAGE);
	if (!a->waiters.first || a->msg_out)
		return;
	a->msg_out = true;
	rr_engine_defer(a->conn->engine, &a->msg);
}

void rr_area_wait(struct rr_own_zone *zone, struct rpcrdma_buf_waiter *w)
{
	struct rr_area *a = area_of(zone);

	if (rr_waiters_add(&a->waiters, w))
		rr_count(a->conn->engine, buf_waits, 1);
}

static const struct rr_own_ops own_area_ops = {
	.get = rr_area_get,
	.wait = rr_area_wait,
};

int rr_area_init(struct rr_area *a, struct rpcrdma_conn *c, struct rr_pd *pd, size_t bytes,
		 size_t buf_max, unsigned access)
{
	int rc;

	assert(bytes % RR_AREA_PAGE == 0 && buf_max <= bytes);
	a->conn = c;
	a->zone.ops = &own_area_ops;
	a->zone.own.put = own_put;
	a->zone.buf_max = buf_max;
	rr_ranges_init(&a->pages, bytes);
	rr_waiters_init(&a->waiters);
	a->msg.fn = on_msg;
	a->bufs = calloc(bytes / RR_AREA_PAGE, sizeof(*a->bufs));
	rc = a->bufs ? rr_extent_get(&rr_mem_kind_anonymous, NULL, bytes, &a->x) : -ENOMEM;
	if (!rc)
		rc = rr_extent_reg(&a->x, pd, access | RR_ACCESS_LOCAL_WRITE, &a->zone.own.mr);
	if (rc)
		rr_area_fini(a);
	return rc;
}

void rr_area_fini(struct rr_area *a)
{
	assert(!a->pages.n && !a->waiters.first);
	if (a->msg_out) /* otherwise the engine may be running, on another thread */
		rr_engine_undefer(a->conn->engine, &a->msg);
	rr_mr_dereg(a->zone.own.mr);
	if (a->x.kind)
		rr_extent_put(&a->x);
	free(a->bufs);
	rr_ranges_fini(&a->pages);
	*a = (struct rr_area){ 0 };
}
