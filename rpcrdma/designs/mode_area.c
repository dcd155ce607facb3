/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_area.c - memory of a single connection, lent in pages
 *
 * Operation:  A connection with a mode has its own areas instead of the pool's zones. The pool's buffers are
 *             registered in another protection domain, and stay out of reach of such peers. A buffer is the
 *             first sufficiently long run of free pages. Without one, the request waits in a FIFO and is
 *             retried when buffers return. Later requests do not overtake it, so finally there is room for as
 *             much as an area may lend at once (buf_max).
 * Memory:     One mapping, populated and registered when the connection is created. It was never used by
 *             others: a peer that reads it sees only its own data.
 * Threads:    The connection's engine; created on the engine that accepts.
 * Errors:     -ENOBUFS: wait.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "mode_area.h"

static struct rr_area *area_of(struct rr_own *own)
{
	return container_of(own, struct rr_area, own);
}

static bool is_used(const struct rr_area *a, unsigned page)
{
	return a->used[page / 64] >> (page % 64) & 1;
}

static void set_used(struct rr_area *a, unsigned page, unsigned n, bool used)
{
	for (unsigned i = page; i < page + n; i++) {
		uint64_t bit = UINT64_C(1) << (i % 64);

		a->used[i / 64] = used ? a->used[i / 64] | bit : a->used[i / 64] & ~bit;
	}
	a->nused += used ? n : -n;
}

/* Finds the first run of @n free pages. Return: its first page, or npages */
static unsigned find_run(const struct rr_area *a, unsigned n)
{
	unsigned run = 0;

	for (unsigned i = 0; i < a->npages; i++) {
		run = is_used(a, i) ? 0 : run + 1;
		if (run == n)
			return i + 1 - n;
	}
	return a->npages;
}

int rr_area_get(struct rr_area *a, size_t bytes, struct rpcrdma_buf **ret)
{
	unsigned n, at;
	struct rr_buf *b;

	if (bytes > a->own.buf_max)
		return -EMSGSIZE;
	if (!rr_waiters_may_try(&a->waiters))
		return -ENOBUFS;
	n = (unsigned)((MAX(bytes, (size_t)1) + RR_AREA_PAGE - 1) / RR_AREA_PAGE);
	at = find_run(a, n);
	if (at == a->npages)
		return -ENOBUFS;
	set_used(a, at, n, true);
	b = &a->bufs[at];
	b->own = &a->own;
	b->pub.addr = a->mem + (size_t)at * RR_AREA_PAGE;
	b->pub.bytes = (size_t)n * RR_AREA_PAGE;
	*ret = &b->pub;
	return 0;
}

static int own_get(struct rr_own *own, size_t bytes, struct rpcrdma_buf **ret)
{
	return rr_area_get(area_of(own), bytes, ret);
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
	struct rr_area *a = area_of(own);

	set_used(a, (unsigned)(b - a->bufs), (unsigned)(b->pub.bytes / RR_AREA_PAGE), false);
	if (!a->waiters.first || a->msg_out)
		return;
	a->msg_out = true;
	rr_engine_defer(a->conn->engine, &a->msg);
}

void rr_area_wait(struct rr_area *a, struct rpcrdma_buf_waiter *w)
{
	if (rr_waiters_add(&a->waiters, w))
		rr_count(a->conn->engine, buf_waits, 1);
}

static void own_wait(struct rr_own *own, struct rpcrdma_buf_waiter *w)
{
	rr_area_wait(area_of(own), w);
}

void rr_area_unwait(struct rr_area *a, struct rpcrdma_buf_waiter *w)
{
	rr_waiters_del(&a->waiters, w);
}

static const struct rr_own_ops own_area_ops = {
	.name = "area",
	.get = own_get,
	.put = own_put,
	.wait = own_wait,
};

int rr_area_init(struct rr_area *a, struct rpcrdma_conn *c, struct rr_pd *pd, size_t bytes,
		 size_t buf_max, unsigned access)
{
	struct rr_mr_attr attr = { .access = access | RR_ACCESS_LOCAL_WRITE, .fd = -1 };
	void *map;
	int rc;

	assert(bytes % RR_AREA_PAGE == 0 && buf_max <= bytes);
	a->conn = c;
	a->bytes = bytes;
	a->own.ops = &own_area_ops;
	a->own.buf_max = buf_max;
	a->npages = (unsigned)(bytes / RR_AREA_PAGE);
	rr_waiters_init(&a->waiters);
	a->msg.fn = on_msg;
	a->bufs = calloc(a->npages, sizeof(*a->bufs));
	a->used = calloc((a->npages + 63) / 64, sizeof(*a->used));
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
		   0);
	a->mem = map == MAP_FAILED ? NULL : map;
	attr.addr = a->mem;
	attr.len = bytes;
	rc = a->bufs && a->used && a->mem ? rr_mr_reg(pd, &attr, &a->own.mr) : -ENOMEM;
	if (rc)
		rr_area_fini(a);
	return rc;
}

void rr_area_fini(struct rr_area *a)
{
	assert(!a->nused && !a->waiters.first);
	if (a->msg_out) /* otherwise the engine may be running, on another thread */
		rr_engine_undefer(a->conn->engine, &a->msg);
	rr_mr_dereg(a->own.mr);
	if (a->mem)
		munmap(a->mem, a->bytes);
	free(a->bufs);
	free(a->used);
	*a = (struct rr_area){ 0 };
}
