/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * slab.c - the pool of data buffers: size classes, registered once, lent to engines
 *
 * Operation:  Memory comes in chunks, each cut into buffers of one class (4 KiB ... 4 MiB), mapped
 *             2 MiB-aligned, pre-faulted, with huge pages where the kernel has them, and registered
 *             with every open device for local access only: no steering tag of the pool exists. An
 *             engine keeps a few buffers of each class in a magazine, so the usual get and put take
 *             no lock. At the limit, wholly free chunks of other classes are given back first; then
 *             the asker waits its turn.
 *
 *             Nobody starves on another engine's magazine: the first waiter tells every engine to
 *             give up what it holds, and while anyone waits puts go straight to the pool and ring.
 * Memory:     Owns chunks; a buffer belongs to its getter until it is put, on any engine.
 * Threads:    Any; domain->lock. Magazines and waiters are their engine's own.
 * Errors:     -ENOBUFS is shortage (wait), -ENOMEM is the machine's no.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine_int.h"

#define HUGE_BYTES ((size_t)2 << 20)
#define CHUNK_BYTES ((size_t)4 << 20)

struct rr_pool_chunk {
	struct list link;            /* pool->chunks[class] */
	unsigned class, n, nfree;
	void *map, *mem;
	size_t map_bytes;
	struct rr_mr *mr[RR_DEVS_MAX];
	struct rr_buf *free;
	struct rr_buf bufs[];
};

static size_t class_bytes(unsigned class)
{
	return (size_t)4096 << (2 * class);
}

_Static_assert(RPCRDMA_BUF_MAX == 4096u << (2 * (RR_POOL_CLASSES - 1)), "classes up to the maximum");

static unsigned class_of(size_t bytes)
{
	unsigned class = 0;

	while (class_bytes(class) < bytes)
		class ++;
	return class;
}

static size_t chunk_bytes(const struct rr_pool_chunk *c)
{
	return c->n * class_bytes(c->class);
}

static int chunk_register(struct rr_pool_chunk *c, struct rr_dev *dev)
{
	struct rr_mr_attr attr = { .addr = c->mem,
				   .len = chunk_bytes(c),
				   .access = RR_ACCESS_LOCAL_WRITE,
				   .fd = -1 };

	return rr_mr_reg(dev->pd, &attr, &c->mr[dev->idx]);
}

static void chunk_free(struct rr_pool *pool, struct rr_pool_chunk *c)
{
	for (unsigned i = 0; i < RR_DEVS_MAX; i++)
		rr_mr_dereg(c->mr[i]);
	list_del(&c->link);
	pool->bytes -= chunk_bytes(c);
	munmap(c->map, c->map_bytes);
	free(c);
}

/* Whole free chunks of other classes make room; the caller holds the lock. */
static bool make_room(struct rr_pool *pool, size_t bytes)
{
	for (unsigned k = 0; k < RR_POOL_CLASSES; k++) {
		list_for_each_safe(n, &pool->chunks[k]) {
			struct rr_pool_chunk *c = list_entry(n, struct rr_pool_chunk, link);

			if (pool->bytes + bytes <= pool->bytes_max)
				return true;
			if (c->nfree == c->n)
				chunk_free(pool, c);
		}
	}
	return pool->bytes + bytes <= pool->bytes_max;
}

/* The smaller classes grow in chunks that the limit can bear several of. */
static size_t chunk_size_for(const struct rr_pool *pool, unsigned class)
{
	size_t bytes = CHUNK_BYTES;

	while (bytes > class_bytes(class) && bytes > pool->bytes_max / 16)
		bytes /= 2;
	return bytes;
}

static int chunk_add(struct rpcrdma_domain *d, unsigned class)
{
	struct rr_pool *pool = &d->pool;
	size_t bytes = chunk_size_for(pool, class), size = class_bytes(class);
	unsigned n = (unsigned)(bytes / size);
	struct rr_pool_chunk *c;
	int rc = 0;

	if (!make_room(pool, bytes))
		return -ENOBUFS;
	c = calloc(1, sizeof(*c) + n * sizeof(c->bufs[0]));
	if (!c)
		return -ENOMEM;
	c->class = class;
	c->n = n;
	list_init(&c->link);
	c->map_bytes = bytes + HUGE_BYTES;
	c->map = mmap(NULL, c->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c->map == MAP_FAILED) {
		free(c);
		return -ENOMEM;
	}
	c->mem = (void *)round_up_pow2((size_t)c->map, HUGE_BYTES);
	/* Neither is more than a wish: small pages and later faults work as well, only slower. */
	(void)madvise(c->mem, bytes, MADV_HUGEPAGE);
	(void)madvise(c->mem, bytes, MADV_POPULATE_WRITE);
	list_add_head(&pool->chunks[class], &c->link);
	pool->bytes += bytes;
	for (unsigned i = 0; !rc && i < d->ndevs; i++)
		rc = chunk_register(c, &d->devs[i]);
	if (rc) {
		chunk_free(pool, c);
		return rc;
	}
	for (unsigned i = n; i-- > 0;) {
		struct rr_buf *b = &c->bufs[i];

		b->pub.addr = (char *)c->mem + i * size;
		b->pub.bytes = size;
		b->chunk = c;
		b->next = c->free;
		c->free = b;
	}
	c->nfree = n;
	return 0;
}

void rr_pool_init(struct rpcrdma_domain *d)
{
	d->pool.bytes_max = MAX(d->attr.pool_bytes_max, (size_t)RPCRDMA_BUF_MAX);
	for (unsigned k = 0; k < RR_POOL_CLASSES; k++)
		list_init(&d->pool.chunks[k]);
}

void rr_pool_fini(struct rpcrdma_domain *d)
{
	for (unsigned k = 0; k < RR_POOL_CLASSES; k++)
		list_for_each_safe(n, &d->pool.chunks[k])
			chunk_free(&d->pool, list_entry(n, struct rr_pool_chunk, link));
}

int rr_pool_attach(struct rpcrdma_domain *d, struct rr_dev *dev)
{
	for (unsigned k = 0; k < RR_POOL_CLASSES; k++) {
		list_for_each(n, &d->pool.chunks[k]) {
			int rc = chunk_register(list_entry(n, struct rr_pool_chunk, link), dev);

			if (rc)
				return rc;
		}
	}
	return 0;
}

struct rr_mr *rr_buf_mr(const struct rpcrdma_buf *buf, const struct rr_dev *dev)
{
	return container_of(buf, struct rr_buf, pub)->chunk->mr[dev->idx];
}

/* Takes the lock. */
static int pool_get(struct rpcrdma_domain *d, unsigned class, struct rr_buf **ret)
{
	struct rr_pool *pool = &d->pool;
	int rc = 0;

	pthread_mutex_lock(&d->lock);
	for (;;) {
		list_for_each(n, &pool->chunks[class]) {
			struct rr_pool_chunk *c = list_entry(n, struct rr_pool_chunk, link);

			if (!c->free)
				continue;
			*ret = c->free;
			c->free = c->free->next;
			c->nfree--;
			goto out;
		}
		rc = chunk_add(d, class);
		if (rc)
			goto out;
	}
out:
	pthread_mutex_unlock(&d->lock);
	return rc;
}

/* Have @e give up its magazine and see to its waiters; at most one message is under way. */
static void ring(struct rpcrdma_engine *e)
{
	if (!atomic_exchange(&e->pool_msg_out, true))
		rpcrdma_engine_post(e, &e->pool_msg);
}

static void pool_put(struct rpcrdma_domain *d, struct rr_buf *b)
{
	pthread_mutex_lock(&d->lock);
	b->next = b->chunk->free;
	b->chunk->free = b;
	b->chunk->nfree++;
	if (d->pool.waiting)
		list_for_each(n, &d->engines)
			ring(list_entry(n, struct rpcrdma_engine, link));
	pthread_mutex_unlock(&d->lock);
}

int rpcrdma_buf_get(struct rpcrdma_engine *e, size_t bytes, struct rpcrdma_buf **ret)
{
	struct rr_buf *b;
	unsigned class;
	int rc;

	if (bytes > RPCRDMA_BUF_MAX)
		return -ENOMEM;
	if (e->waiters && !e->pool_running)
		return -ENOBUFS; /* nobody overtakes those who wait */
	class = class_of(bytes);
	b = e->magazine[class];
	if (b) {
		e->magazine[class] = b->next;
		e->in_magazine[class]--;
	} else {
		rc = pool_get(e->domain, class, &b);
		if (rc)
			return rc;
	}
	b->next = NULL;
	b->conn = NULL;
	*ret = &b->pub;
	return 0;
}

void rpcrdma_buf_put(struct rpcrdma_engine *e, struct rpcrdma_buf *buf)
{
	struct rr_buf *b = container_of(buf, struct rr_buf, pub);
	struct rpcrdma_conn *conn = b->conn;
	unsigned class = b->chunk->class;

	b->conn = NULL;
	if (conn)
		rr_conn_buf_put(conn, buf->bytes);
	if (e->in_magazine[class] < RR_MAGAZINE &&
	    !__atomic_load_n(&e->domain->pool.waiting, __ATOMIC_RELAXED)) {
		b->next = e->magazine[class];
		e->magazine[class] = b;
		e->in_magazine[class]++;
		return;
	}
	pool_put(e->domain, b);
}

void rr_pool_drain(struct rpcrdma_engine *e)
{
	for (unsigned k = 0; k < RR_POOL_CLASSES; k++) {
		while (e->magazine[k]) {
			struct rr_buf *b = e->magazine[k];

			e->magazine[k] = b->next;
			pool_put(e->domain, b);
		}
		e->in_magazine[k] = 0;
	}
}

/* An engine with waiters is counted once in pool->waiting; the first to wait rings all the others,
 * whose magazines may hold what is missing. */
static void note_waiting(struct rpcrdma_engine *e)
{
	struct rpcrdma_domain *d = e->domain;
	bool waiting = e->waiters != NULL;

	if (waiting == e->pool_waiting)
		return;
	e->pool_waiting = waiting;
	pthread_mutex_lock(&d->lock);
	__atomic_store_n(&d->pool.waiting, d->pool.waiting + (waiting ? 1u : -1u),
			 __ATOMIC_RELAXED);
	if (waiting)
		list_for_each(n, &d->engines)
			ring(list_entry(n, struct rpcrdma_engine, link));
	pthread_mutex_unlock(&d->lock);
}

void rpcrdma_buf_wait(struct rpcrdma_engine *e, struct rpcrdma_buf_waiter *w)
{
	rr_count(e, buf_waits, 1);
	if (e->pool_retry == w) {
		/* it was its turn and there was still not enough: it keeps its place */
		rr_waiter_link(&e->waiters_tail, &e->waiters, w);
		e->pool_retry = NULL;
	} else {
		rr_waiter_link(&e->waiters_tail, e->waiters_tail, w);
	}
	if (!e->pool_running)
		note_waiting(e);
}

void rpcrdma_buf_unwait(struct rpcrdma_engine *e, struct rpcrdma_buf_waiter *w)
{
	if (!w->link)
		return;
	rr_waiter_unlink(&e->waiters_tail, w);
	if (!e->pool_running)
		note_waiting(e);
}

/* Runs on the engine: waiters try in turn until one has to wait again. */
void rr_pool_msg(struct rpcrdma_msg *msg)
{
	struct rpcrdma_engine *e = container_of(msg, struct rpcrdma_engine, pool_msg);
	struct rpcrdma_buf_waiter *w;

	atomic_store(&e->pool_msg_out, false);
	rr_pool_drain(e);
	e->pool_running = true;
	while ((w = e->waiters) != NULL) {
		rr_waiter_unlink(&e->waiters_tail, w);
		e->pool_retry = w;
		w->fn(w); /* may free w: from here on it is only compared */
		if (!e->pool_retry)
			break;
	}
	e->pool_retry = NULL;
	e->pool_running = false;
	note_waiting(e);
}
