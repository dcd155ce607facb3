/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * pool_wait.c - allocates buffers of the pool: magazines, and queues of waiters
 *
 * Operation:  An engine caches a few buffers of each class in a magazine, so most get and put calls take no
 *             lock. A request that finds no buffer waits, on each engine in FIFO order. Engines with waiters
 *             form a queue and serve one waiter each in turn. While any request waits, later ones queue up
 *             after it, and buffers are returned to the pool instead of the magazines and wake the first engine
 *             in the queue.
 *
 *             No request starves because of another engine's magazine: an engine that enters the queue makes
 *             all others empty theirs. An engine without activity since the last check empties its own, and
 *             then frees the idle segments of the pool (rr_pool_trim).
 * Memory:     Waiters are embedded in the waiting objects. Magazines belong to their engine.
 * Threads:    The engine's own, except the queue of engines, which is under domain->lock.
 * Errors:     As pool.c.
 */
#include <errno.h>

#include "base/clock.h"
#include "pool.h"

static struct rr_pool *pool_of(const struct rr_buf_cache *t)
{
	return &t->engine->domain->pools[t->zone];
}

/* Makes @t empty its magazine and serve its waiters; at most one message is posted. */
static void ring(struct rr_buf_cache *t)
{
	if (!atomic_exchange(&t->msg_out, true))
		rpcrdma_engine_post(t->engine, &t->msg);
}

static void ring_all(struct rpcrdma_domain *d, enum rr_zone zone)
{
	list_for_each(n, &d->engines)
		ring(&list_entry(n, struct rpcrdma_engine, link)->buf_caches[zone]);
}

static struct rr_buf_cache *first_in_line(const struct rr_pool *pool)
{
	return list_first_entry(&pool->line, struct rr_buf_cache, link);
}

static void ring_first(const struct rr_pool *pool)
{
	struct rr_buf_cache *t = first_in_line(pool);

	if (t)
		ring(t);
}

/* ---- idling ---- */

static void on_idle(struct rpcrdma_timer *timer)
{
	struct rpcrdma_engine *e = container_of(timer, struct rpcrdma_engine, pool_timer);
	struct rpcrdma_domain *d = e->domain;
	uint64_t again, used = e->pool_used ? d->pool_idle_ns : 0;

	if (!e->pool_used)
		rr_pool_drain(e);
	e->pool_used = false;
	pthread_mutex_lock(&d->lock);
	again = rr_pool_trim(d);
	pthread_mutex_unlock(&d->lock);
	if (again || used)
		rpcrdma_timer_set(e, timer, again ? again : used);
}

/* ---- get, put ---- */

static void pool_put(struct rr_buf *b)
{
	struct rr_pool *pool = b->segment->pool;

	rr_pool_give(b);
	ring_first(pool);
}

static int take(struct rr_buf_cache *t, unsigned class, size_t bytes, struct rr_buf **ret)
{
	struct rpcrdma_domain *d = t->engine->domain;
	struct rr_buf *b = class == RR_POOL_LONG ? NULL : t->magazine[class];
	int rc = 0;

	if (b) {
		t->magazine[class] = b->next;
		t->in_magazine[class]--;
		*ret = b;
		return 0;
	}
	pthread_mutex_lock(&d->lock);
	rc = rr_pool_take(d, pool_of(t), class, bytes, ret);
	pthread_mutex_unlock(&d->lock);
	return rc;
}

int rr_buf_get(struct rpcrdma_engine *e, enum rr_zone zone, size_t bytes, struct rpcrdma_buf **ret)
{
	struct rr_buf_cache *t = &e->buf_caches[zone];
	unsigned class = rr_pool_class(pool_of(t), bytes);
	struct rr_buf *b;
	int rc;

	if (class == RR_POOL_NONE)
		return -EMSGSIZE;
	/* requests do not overtake waiters of this or another engine */
	if (!t->waiters.turn &&
	    (t->waiters.first || __atomic_load_n(&pool_of(t)->waiting, __ATOMIC_RELAXED)))
		return -ENOBUFS;
	rc = take(t, class, bytes, &b);
	if (rc)
		return rc;
	b->next = NULL;
	b->conn = NULL;
	*ret = &b->pub;
	return 0;
}

int rpcrdma_buf_get(struct rpcrdma_engine *e, size_t bytes, struct rpcrdma_buf **ret)
{
	return rr_buf_get(e, RR_ZONE_DATA, bytes, ret);
}

int rpcrdma_buf_get_far(struct rpcrdma_engine *e, size_t bytes, struct rpcrdma_buf **ret)
{
	if (!e->domain->pools[RR_ZONE_FAR].far)
		return -EOPNOTSUPP;
	return rr_buf_get(e, RR_ZONE_FAR, bytes, ret);
}

/* Receives stay with a connection for long, and are packed. */
static unsigned magazine_max(enum rr_zone zone)
{
	return zone == RR_ZONE_SENDS ? RR_MAGAZINE_SENDS : zone == RR_ZONE_RECVS ? 0 : RR_MAGAZINE;
}

/* Segments may become idle later. */
static void note_put(struct rpcrdma_engine *e)
{
	e->pool_used = true;
	if (!rr_timer_is_armed(&e->pool_timer)) {
		e->pool_timer.fn = on_idle;
		rpcrdma_timer_set(e, &e->pool_timer, e->domain->pool_idle_ns);
	}
}

void rpcrdma_buf_put(struct rpcrdma_engine *e, struct rpcrdma_buf *buf)
{
	struct rr_buf *b = container_of(buf, struct rr_buf, pub);
	struct rpcrdma_conn *conn = b->conn;
	struct rr_pool *pool;
	struct rr_buf_cache *t;
	unsigned class;

	if (b->own) {
		b->own->put(b->own, b);
		return;
	}
	pool = b->segment->pool;
	t = &e->buf_caches[pool - e->domain->pools];
	class = b->segment->class;
	b->conn = NULL;
	if (conn)
		rr_conn_buf_put(conn, t->zone, buf->bytes);
	note_put(e);
	if (class != RR_POOL_LONG && t->in_magazine[class] < magazine_max(t->zone) &&
	    !__atomic_load_n(&pool->waiting, __ATOMIC_RELAXED)) {
		b->next = t->magazine[class];
		t->magazine[class] = b;
		t->in_magazine[class]++;
		return;
	}
	pthread_mutex_lock(&e->domain->lock);
	pool_put(b);
	pthread_mutex_unlock(&e->domain->lock);
}

bool rr_buf_pack(struct rpcrdma_engine *e, struct rpcrdma_buf **buf)
{
	struct rr_buf *b = container_of(*buf, struct rr_buf, pub), *other;

	if (b->own)
		return false;
	pthread_mutex_lock(&e->domain->lock);
	other = rr_pool_take_denser(b);
	if (other)
		pool_put(b);
	pthread_mutex_unlock(&e->domain->lock);
	if (!other)
		return false;
	other->next = NULL;
	other->conn = NULL;
	*buf = &other->pub;
	note_put(e);
	return true;
}

static void drain(struct rr_buf_cache *t)
{
	struct rpcrdma_domain *d = t->engine->domain;

	pthread_mutex_lock(&d->lock);
	for (unsigned k = 0; k < RR_POOL_CLASSES; k++) {
		while (t->magazine[k]) {
			struct rr_buf *b = t->magazine[k];

			t->magazine[k] = b->next;
			pool_put(b);
		}
		t->in_magazine[k] = 0;
	}
	pthread_mutex_unlock(&d->lock);
}

void rr_pool_drain(struct rpcrdma_engine *e)
{
	for (unsigned z = 0; z < RR_ZONES; z++)
		drain(&e->buf_caches[z]);
}

/* ---- waiting ---- */

/* An engine with waiters is queued once. */
static void note_waiting(struct rr_buf_cache *t)
{
	struct rpcrdma_domain *d = t->engine->domain;
	struct rr_pool *pool = pool_of(t);
	bool waits = t->waiters.first != NULL;

	if (waits == t->in_line)
		return;
	t->in_line = waits;
	pthread_mutex_lock(&d->lock);
	__atomic_store_n(&pool->waiting, pool->waiting + (waits ? 1u : -1u), __ATOMIC_RELAXED);
	if (waits) {
		list_add_tail(&pool->line, &t->link);
		ring_all(d, t->zone);
	} else {
		list_del(&t->link);
		ring_first(pool);
	}
	pthread_mutex_unlock(&d->lock);
}

void rr_buf_wait(struct rpcrdma_engine *e, enum rr_zone zone, struct rpcrdma_buf_waiter *w)
{
	struct rr_buf_cache *t = &e->buf_caches[zone];

	if (rr_waiters_add(&t->waiters, w))
		rr_count(e, buf_waits, 1);
	if (!t->running)
		note_waiting(t);
}

void rpcrdma_buf_wait(struct rpcrdma_engine *e, struct rpcrdma_buf_waiter *w)
{
	rr_buf_wait(e, RR_ZONE_DATA, w);
}

void rpcrdma_buf_unwait(struct rpcrdma_engine *e, struct rpcrdma_buf_waiter *w)
{
	rr_buf_unwait(e, RR_ZONE_DATA, w);
}

void rr_buf_unwait(struct rpcrdma_engine *e, enum rr_zone zone, struct rpcrdma_buf_waiter *w)
{
	struct rr_buf_cache *t = &e->buf_caches[zone];

	if (!w->link)
		return;
	rr_waiters_del(&t->waiters, w);
	if (!t->running)
		note_waiting(t);
}

/* Does this engine have the turn? If it just had one and others wait, it goes to the end of the queue. */
static bool has_turn(struct rr_buf_cache *t, bool had_it)
{
	struct rpcrdma_domain *d = t->engine->domain;
	struct rr_pool *pool = pool_of(t);
	bool first;

	pthread_mutex_lock(&d->lock);
	if (had_it) {
		list_del(&t->link);
		list_add_tail(&pool->line, &t->link);
	}
	first = first_in_line(pool) == t;
	if (!first)
		ring_first(pool);
	pthread_mutex_unlock(&d->lock);
	return first;
}

/* Runs on the engine: its waiters retry in turn until one has to wait again, or the turn goes to another engine. */
static void on_ring(struct rpcrdma_msg *msg)
{
	struct rr_buf_cache *t = container_of(msg, struct rr_buf_cache, msg);
	bool had_it = false;

	atomic_store(&t->msg_out, false);
	drain(t);
	if (!t->in_line)
		return;
	t->running = true;
	while (t->waiters.first && has_turn(t, had_it) && rr_waiters_run(&t->waiters))
		had_it = true;
	t->running = false;
	note_waiting(t);
}

void rr_buf_cache_init(struct rpcrdma_engine *e)
{
	for (unsigned z = 0; z < RR_ZONES; z++) {
		struct rr_buf_cache *t = &e->buf_caches[z];

		t->engine = e;
		t->zone = (enum rr_zone)z;
		rr_waiters_init(&t->waiters);
		t->msg.fn = on_ring;
		list_init(&t->link);
	}
}
