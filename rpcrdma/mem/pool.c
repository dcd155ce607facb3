/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * pool.c - the pool of data buffers: zones, size classes, segments registered once
 *
 * Operation:  The pool has zones, each with its own part of the limit. They are ordered as one request may
 *             allocate from them: its own message, that of a long call, data, the reply message, a long reply.
 *             A request that waits in one zone holds memory of earlier zones only, and one that holds memory of
 *             the last zone waits for none. So there is no circular wait, however small the pool is. Messages
 *             have a separate limit, because every connection needs them: many connections leave as much memory
 *             for data as few.
 *
 *             Memory comes in segments of buffers of one class (4 KiB ... 4 MiB, limited so that a zone holds
 *             several of its largest). Segments are populated, in huge pages if available, and registered with
 *             every open device for local access only: no steering tag of the pool exists. At a zone's limit,
 *             completely free segments of its other classes are freed first; then the request waits for its turn
 *             (pool_wait.c). Completely free segments that are unused for a while are freed too: a burst does not
 *             pin memory for ever.
 *
 *             A segment that is split into several buffers costs one registration and is in huge pages. But a
 *             single lent buffer keeps the segment from the other classes, and the client is charged for that
 *             buffer only. So at most half of a zone is split; beyond that each segment is one buffer. Idle bytes
 *             of segments in use count as used when a client's share is checked (rr_budget.idle): clients share
 *             only what is available. All receives are in split segments: they are of one class, and stay with a
 *             connection, which packs them (srv_credit.c). All of an arena is split too, in small segments: they
 *             cost no registrations.
 *
 *             A domain may accept calls longer than the largest class (rpcrdma_domain_attr.call_bytes_max). Half of
 *             its pool is then for calls, and longer buffers have segments of their own. Their sizes are rounded up
 *             by at most an eighth, so that a free one can be used again. No magazine caches them.
 *
 *             If the domain was given a device's memory (a dma-buf), there is one more zone: a single segment of
 *             buffers that the CPU must not access, lent only on explicit request.
 * Memory:     Owns segments. A buffer belongs to its user until it is returned, on any engine.
 * Threads:    Any; the caller of every function with a pool parameter holds domain->lock.
 * Errors:     -ENOBUFS: shortage (wait), -EMSGSIZE: larger than any buffer, -ENOMEM: from the kernel.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine_int.h"
#include "pool.h"

#define SEGMENT_BYTES ((size_t)4 << 20)
#define TRIM_MOST 256u /* upper bound of the segments freed in one pass: the lock is held */
#define SMALL_SEGMENT_BYTES ((size_t)64 << 10) /* for messages: a single connection pins little; and for an arena */
#define HUGE_BYTES ((size_t)2 << 20)
#define OF_THE_FREE 3u /* a client may hold the free part times this: alone two thirds of the pool, ... */
#define OF_THE_FREE_CONNS 3u /* ... and three quarters of the initial needs of connections */
#define KEPT_OF_POOL 8u /* 1/KEPT_OF_POOL is reserved for clients with little */
#define KEPT_OF_MSGS 4u
/* Per zone. Single buffers without neighbours are separate mappings, and a process may have 65,530
 * (vm.max_map_count). */
#define SINGLES_MAX 24576u
#define LONG_EIGHTHS 3u /* of the pool, in addition to the share of calls: half of the pool */
#define LONG_STEPS 16u
#define LONG_SEVERAL 2u /* no call may need all of the memory of calls */
#define TRIM_MORE_NS (10 * NS_PER_MS)
/* A zone holds at least this many buffers of its largest class. */
static const unsigned several[RR_ZONES] = {
	[RR_ZONE_RECVS] = 12, [RR_ZONE_CALLS] = 1,   [RR_ZONE_DATA] = 4,
	[RR_ZONE_SENDS] = 4,  [RR_ZONE_REPLIES] = 1, [RR_ZONE_FAR] = 1,
};
/* Share of the limit in eighths (message zones: of the limit for messages). */
static const unsigned eighths[RR_ZONES] = {
	[RR_ZONE_RECVS] = 6, [RR_ZONE_CALLS] = 1,   [RR_ZONE_DATA] = 6,
	[RR_ZONE_SENDS] = 2, [RR_ZONE_REPLIES] = 1, [RR_ZONE_FAR] = 0,
};

static size_t class_bytes(unsigned class)
{
	return (size_t)4096 << (2 * class);
}

/* Share of a zone in a domain whose services accept calls longer than any class. */
static unsigned eighths_of(const struct rpcrdma_domain *d, enum rr_zone zone)
{
	unsigned moved = d->attr.call_bytes_max > RPCRDMA_BUF_MAX ? LONG_EIGHTHS : 0;

	return eighths[zone] + (zone == RR_ZONE_CALLS ? moved : 0) - (zone == RR_ZONE_DATA ? moved : 0);
}

/* Size of a buffer for @bytes that no class holds: sixteen sizes for each power of two. */
static size_t long_bytes(size_t bytes)
{
	size_t step = (size_t)RPCRDMA_BUF_MAX / LONG_STEPS;

	while (step * LONG_STEPS < bytes)
		step *= 2;
	return round_up_pow2(bytes, step);
}

_Static_assert(RPCRDMA_BUF_MAX == 4096u << (2 * (RR_POOL_CLASSES - 1)), "classes up to the maximum");
_Static_assert(RPCRDMA_POOL_BYTES_MIN / 8 >= RPCRDMA_BUF_LEAST, "every zone has one of these");
_Static_assert(RPCRDMA_MSG_BYTES_MIN / 8 * 2 >= 4 * RPCRDMA_BUF_LEAST, "the longest message fits");

unsigned rr_pool_class(const struct rr_pool *pool, size_t bytes)
{
	unsigned class = pool->far ? pool->classes - 1 : 0;

	while (class < pool->classes && class_bytes(class) < bytes)
		class ++;
	return class < pool->classes ? class : bytes <= pool->long_max ? RR_POOL_LONG : RR_POOL_NONE;
}

size_t rr_pool_buf_max(const struct rr_pool *pool)
{
	return pool->long_max ? pool->long_max : pool->classes ? class_bytes(pool->classes - 1) : 0;
}

size_t rr_pool_round(const struct rr_pool *pool, size_t bytes)
{
	unsigned class = rr_pool_class(pool, bytes);

	return class < RR_POOL_CLASSES ? class_bytes(class) : class == RR_POOL_LONG ? long_bytes(bytes) : 0;
}

/* ---- segments ---- */

static int segment_register(struct rr_pool_segment *c, struct rr_dev *dev)
{
	if (c->pool->arena)
		return 0; /* the arena is registered */
	return rr_extent_reg(&c->x, dev->pd, RR_ACCESS_LOCAL_WRITE, &c->mr[dev->idx]);
}

/* Bytes of a zone, including other uses of its budget. */
static size_t used_of(const struct rr_pool *pool)
{
	return pool->budget ? atomic_load_explicit(&pool->budget->used, memory_order_relaxed) : pool->bytes;
}

static bool is_split(const struct rr_pool_segment *c)
{
	return c->n > 1;
}

static struct list *list_of(const struct rr_pool_segment *c)
{
	return &c->pool->segments[c->class + (is_split(c) ? 0 : RR_POOL_CLASSES)]; /* longer ones: the last list */
}

static void count_bytes(const struct rr_pool_segment *c, size_t add, size_t sub)
{
	struct rr_pool *pool = c->pool;

	__atomic_store_n(&pool->bytes, pool->bytes + add - sub, __ATOMIC_RELAXED);
	pool->bytes_split += is_split(c) ? add - sub : 0;
	if (pool->budget)
		atomic_fetch_add_explicit(&pool->budget->used, add - sub, memory_order_relaxed);
}

static void put_extent(struct rr_pool *pool, struct rr_extent *x)
{
	if (!rr_pool_part_give(pool, x))
		rr_extent_put(x);
}

static void segment_free(struct rr_pool_segment *c)
{
	struct rr_pool *pool = c->pool;

	for (unsigned i = 0; i < RR_DEVS_MAX; i++)
		rr_mr_dereg(c->mr[i]);
	list_del(&c->link);
	pool->bufs[c->class] -= c->n;
	count_bytes(c, 0, c->x.bytes);
	pool->bytes_huge -= c->x.kind == &rr_mem_kind_huge ? c->x.bytes : 0;
	put_extent(pool, &c->x);
	free(c);
}

/* Frees a completely free segment of any class, large ones first, so that few are freed. Return: false: no such segment */
static bool give_back_one(struct rr_pool *pool)
{
	for (unsigned i = 0; i < RR_POOL_LISTS; i++) {
		unsigned k = i < RR_POOL_CLASSES ? i : RR_POOL_LISTS - 1 - (i - RR_POOL_CLASSES);

		list_for_each(n, &pool->segments[k]) {
			struct rr_pool_segment *c = list_entry(n, struct rr_pool_segment, link);

			if (!c->nfree)
				break; /* as those after it */
			if (c->nfree < c->n)
				continue;
			segment_free(c);
			pool->given_back++;
			return true;
		}
	}
	return false;
}

/* Frees completely free segments of other classes to make room; the caller holds the lock. */
static bool make_room(struct rr_pool *pool, size_t bytes)
{
	while (used_of(pool) + bytes > pool->bytes_max)
		if (!give_back_one(pool))
			return false;
	return true;
}

/* Smallest segment of the half that is not split: a single buffer, except in a zone of more than 192 MiB. */
static size_t single_bytes(const struct rr_pool *pool)
{
	size_t bytes = class_bytes(0);

	while (pool->bytes_max / 2 / bytes > SINGLES_MAX)
		bytes *= 2;
	return bytes;
}

/* The smaller classes grow by segments of which the limit allows several, while segments may be split. */
static size_t segment_size_for(const struct rr_pool *pool, unsigned class)
{
	bool small = pool->msgs || pool->arena;
	size_t bytes = MAX(small ? SMALL_SEGMENT_BYTES : SEGMENT_BYTES, class_bytes(class));

	if (pool->far)
		return pool->bytes_max;
	while (bytes > class_bytes(class) && bytes > pool->bytes_max / 16)
		bytes /= 2;
	/* the reserve for clients with little is not split either: they would find segments in use */
	if (pool->half_split && (pool->bytes_split + bytes > pool->bytes_max / 2 ||
			       pool->bytes + bytes > pool->bytes_max - pool->bytes_max / KEPT_OF_POOL))
		return MAX(class_bytes(class), single_bytes(pool));
	return bytes;
}

/* Allocates the memory of a segment, if the limit allows it. */
static int get_extent(struct rr_pool *pool, size_t bytes, struct rr_extent *ret)
{
	if (!make_room(pool, bytes))
		return -ENOBUFS;
	if (pool->arena) {
		int rc;

		do /* the free memory may be fragmented */
			rc = rr_pool_part_get(pool, bytes, ret);
		while (rc == -ENOBUFS && give_back_one(pool));
		return rc;
	}
	if (pool->far)
		return rr_extent_get(&rr_mem_kind_dmabuf, &pool->source, bytes, ret);
	if (!(bytes % HUGE_BYTES) && !rr_extent_get(&rr_mem_kind_huge, NULL, bytes, ret))
		return 0;
	return rr_extent_get(&rr_mem_kind_anonymous, NULL, bytes, ret);
}

static void segment_split(struct rr_pool_segment *c)
{
	size_t size = c->size;

	for (unsigned i = c->n; i-- > 0;) {
		struct rr_buf *b = &c->bufs[i];

		b->pub.addr = (void *)((uintptr_t)c->x.mem + i * size);
		b->pub.bytes = size;
		b->pub.far = c->x.kind->dmabuf;
		b->segment = c;
		b->next = c->free;
		c->free = b;
	}
	c->nfree = c->n;
	c->pool->bufs[c->class] += c->n;
}

/* Adds a segment of buffers of @size in @x, which it owns from now on, even on failure. */
static int segment_init(struct rpcrdma_domain *d, struct rr_pool *pool, unsigned class, size_t size, struct rr_extent x,
			struct rr_pool_segment **ret)
{
	unsigned n = (unsigned)(x.bytes / size);
	struct rr_pool_segment *c = calloc(1, sizeof(*c) + n * sizeof(c->bufs[0]));
	int rc = 0;

	if (!c) {
		put_extent(pool, &x);
		return -ENOMEM;
	}
	c->pool = pool;
	c->class = class;
	c->size = size;
	c->n = n;
	c->x = x;
	list_init(&c->link);
	list_add_head(list_of(c), &c->link);
	segment_split(c);
	count_bytes(c, c->x.bytes, 0);
	pool->bytes_most = MAX(pool->bytes_most, pool->bytes);
	pool->bytes_huge += c->x.kind == &rr_mem_kind_huge ? c->x.bytes : 0;
	for (unsigned i = 0; !rc && i < d->ndevs; i++)
		rc = segment_register(c, &d->devs[i]);
	if (rc) {
		segment_free(c);
		return rc;
	}
	*ret = c;
	return 0;
}

static int segment_add(struct rpcrdma_domain *d, struct rr_pool *pool, unsigned class,
		       struct rr_pool_segment **ret)
{
	size_t bytes = segment_size_for(pool, class), least = MAX(class_bytes(class), single_bytes(pool));
	struct rr_extent x;
	int rc;

	rc = get_extent(pool, bytes, &x);
	if (rc == -ENOBUFS && bytes > least) /* a smaller one may fit */
		rc = get_extent(pool, least, &x);
	return rc ? rc : segment_init(d, pool, class, class_bytes(class), x, ret);
}

static int segment_add_long(struct rpcrdma_domain *d, struct rr_pool *pool, size_t bytes,
			    struct rr_pool_segment **ret)
{
	struct rr_extent x;
	int rc = get_extent(pool, bytes, &x);

	return rc ? rc : segment_init(d, pool, RR_POOL_LONG, bytes, x, ret);
}

/* ---- the pool ---- */

static void zone_init(struct rr_pool *pool, enum rr_zone zone, size_t bytes_max)
{
	pool->bytes_max = bytes_max;
	pool->msgs = rr_zone_is_msgs(zone);
	list_init(&pool->line);
	for (unsigned k = 0; k < RR_POOL_LISTS; k++)
		list_init(&pool->segments[k]);
	for (unsigned k = 0; k < RR_POOL_CLASSES; k++)
		if (class_bytes(k) <= bytes_max / several[zone])
			pool->classes = k + 1;
}

/* Messages and requests outside the pool use the same limit as receives. Where receives are pinned at start
 * (arena), they use a separate quarter of it. */
static void share_msgs(struct rpcrdma_domain *d)
{
	struct rr_pool *recvs = &d->pools[RR_ZONE_RECVS];
	struct rr_budget *b = &d->clients.budgets[RR_SHARE_MSGS];

	b->max = d->attr.pool_arena ? recvs->bytes_max / 4 : recvs->bytes_max;
	if (!d->attr.pool_arena)
		recvs->budget = b;
}

/* Reply messages are counted from the half of their zone on (srv_buf.c): the half that is not split. */
static void share_zone(struct rpcrdma_domain *d, enum rr_zone zone)
{
	struct rr_budget *b = &d->clients.budgets[rr_zone_share(zone)];
	struct rr_pool *pool = &d->pools[zone];

	b->max = pool->bytes_max / (zone == RR_ZONE_SENDS ? 2 : 1);
	b->factor = OF_THE_FREE;
	b->kept = KEPT_OF_POOL;
	b->even = true;
	if (d->attr.pool_arena)
		return;
	pool->half_split = true;
	if (zone != RR_ZONE_SENDS)
		pool->shares = b;
}

/* Return: false: the pool is too small for such calls */
static bool long_init(struct rpcrdma_domain *d)
{
	struct rr_pool *calls = &d->pools[RR_ZONE_CALLS];

	if (d->attr.call_bytes_max <= RPCRDMA_BUF_MAX)
		return true;
	calls->long_max = d->attr.call_bytes_max;
	return d->attr.call_bytes_max <= RPCRDMA_CALL_BYTES_MAX &&
	       LONG_SEVERAL * long_bytes(calls->long_max) <= calls->bytes_max;
}

int rr_pool_init(struct rpcrdma_domain *d)
{
	size_t max = d->attr.pool_bytes_max, msgs = d->attr.msg_bytes_max;
	struct rr_pool *far = &d->pools[RR_ZONE_FAR];
	struct rr_pool_segment *c;
	int rc;

	d->pool_idle_ns = RR_POOL_IDLE_NS;
	for (unsigned z = 0; z < RR_ZONES; z++) {
		zone_init(&d->pools[z], (enum rr_zone)z,
			  (rr_zone_is_msgs((enum rr_zone)z) ? msgs : max) / 8 * eighths_of(d, (enum rr_zone)z));
		if (rr_zone_share((enum rr_zone)z) < RR_SHARES)
			share_zone(d, (enum rr_zone)z);
	}
	share_msgs(d);
	d->clients.budgets[RR_SHARE_MSGS].kept = KEPT_OF_MSGS;
	d->clients.budgets[RR_SHARE_RECVS].max = d->pools[RR_ZONE_RECVS].bytes_max;
	d->clients.budgets[RR_SHARE_RECVS].factor = OF_THE_FREE_CONNS;
	d->clients.budgets[RR_SHARE_RECVS].kept = KEPT_OF_MSGS;
	d->clients.budgets[RR_SHARE_OWN].max = max;
	d->clients.budgets[RR_SHARE_OWN].factor = OF_THE_FREE_CONNS;
	if (max < RPCRDMA_POOL_BYTES_MIN || msgs < RPCRDMA_MSG_BYTES_MIN || !long_init(d))
		return -EINVAL;
	rc = rr_pool_arena_init(d);
	if (rc || !d->attr.dmabuf_bytes)
		return rc;
	if (d->attr.dmabuf_bytes < class_bytes(0))
		return -EINVAL;
	zone_init(far, RR_ZONE_FAR, d->attr.dmabuf_bytes);
	far->far = true;
	far->bytes_max -= far->bytes_max % rr_pool_buf_max(far);
	far->source = (struct rr_source){ .fd = d->attr.dmabuf_fd, .bytes = far->bytes_max };
	return segment_add(d, far, far->classes - 1, &c);
}

void rr_pool_fini(struct rpcrdma_domain *d)
{
	for (unsigned z = 0; z < RR_ZONES; z++)
		for (unsigned k = 0; k < RR_POOL_LISTS; k++)
			list_for_each_safe(n, &d->pools[z].segments[k])
				segment_free(list_entry(n, struct rr_pool_segment, link));
	rr_pool_arena_fini(d);
}

static int attach_zone(struct rr_pool *pool, struct rr_dev *dev)
{
	for (unsigned k = 0; k < RR_POOL_LISTS; k++) {
		list_for_each(n, &pool->segments[k]) {
			int rc = segment_register(list_entry(n, struct rr_pool_segment, link), dev);

			if (rc)
				return rc;
		}
	}
	return 0;
}

/* the device is closed again: undo the registrations made before one failed */
static void detach_all(struct rpcrdma_domain *d, unsigned idx)
{
	rr_pool_arena_detach(d, idx);
	for (unsigned z = 0; z < RR_ZONES; z++) {
		for (unsigned k = 0; k < RR_POOL_LISTS; k++) {
			list_for_each(n, &d->pools[z].segments[k]) {
				struct rr_pool_segment *c = list_entry(n, struct rr_pool_segment, link);

				rr_mr_dereg(c->mr[idx]);
				c->mr[idx] = NULL;
			}
		}
	}
}

int rr_pool_attach(struct rpcrdma_domain *d, struct rr_dev *dev)
{
	int rc = rr_pool_arena_attach(d, dev);

	for (unsigned z = 0; !rc && z < RR_ZONES; z++)
		rc = attach_zone(&d->pools[z], dev);
	if (rc)
		detach_all(d, dev->idx);
	return rc;
}

struct rr_mr *rr_buf_mr(const struct rpcrdma_buf *buf, const struct rr_dev *dev)
{
	const struct rr_buf *b = container_of(buf, struct rr_buf, pub);
	const struct rr_pool_segment *c = b->segment;

	if (b->own)
		return b->own->mr;
	return c->pool->arena ? c->pool->arena->mr[dev->idx] : c->mr[dev->idx];
}

/* Free bytes of a segment in use, which therefore cannot be freed. */
static size_t idle_of(const struct rr_pool_segment *c)
{
	return c->nfree < c->n ? c->nfree * c->size : 0;
}

static void count_idle(const struct rr_pool *pool, size_t before, size_t now)
{
	if (pool->shares && before != now)
		atomic_fetch_add_explicit(&pool->shares->idle, now - before, memory_order_relaxed);
}

static struct rr_buf *take_from(struct rr_pool_segment *c)
{
	size_t idle = idle_of(c);
	struct rr_buf *b = c->free;

	c->free = b->next;
	c->pool->lent[c->class]++;
	if (!--c->nfree) {
		list_del(&c->link);
		list_add_tail(list_of(c), &c->link);
	}
	count_idle(c->pool, idle, idle_of(c));
	return b;
}

/* Can another segment be split within the limit? Huge pages are preferred to free single buffers. */
static bool has_room_to_split(const struct rr_pool *pool, unsigned class)
{
	size_t bytes = segment_size_for(pool, class);

	return bytes > class_bytes(class) && used_of(pool) + bytes <= pool->bytes_max;
}

static struct rr_pool_segment *first_free(const struct list *segments)
{
	struct rr_pool_segment *c = list_first_entry(segments, struct rr_pool_segment, link);

	return c && c->nfree ? c : NULL;
}

/* In an arena a new segment costs nothing, and begins at the lowest free address: free ones must not split the memory.
 * Return: NULL: none is free */
static struct rr_pool_segment *free_long(const struct rr_pool *pool, size_t bytes)
{
	list_for_each_safe(n, &pool->segments[RR_POOL_LISTS - 1]) {
		struct rr_pool_segment *c = list_entry(n, struct rr_pool_segment, link);

		if (!c->nfree)
			break;
		if (pool->arena)
			segment_free(c);
		else if (c->size == bytes)
			return c;
	}
	return NULL;
}

static int take_long(struct rpcrdma_domain *d, struct rr_pool *pool, size_t bytes, struct rr_buf **ret)
{
	struct rr_pool_segment *c = free_long(pool, bytes);
	int rc = 0;

	if (!c)
		rc = segment_add_long(d, pool, bytes, &c);
	if (!rc)
		*ret = take_from(c);
	return rc;
}

/* fully lent segments are last in their list */
int rr_pool_take(struct rpcrdma_domain *d, struct rr_pool *pool, unsigned class, size_t bytes, struct rr_buf **ret)
{
	const struct list *split = &pool->segments[class], *single = split + RR_POOL_CLASSES;
	struct rr_pool_segment *c;
	int rc = 0;

	if (class == RR_POOL_LONG)
		return take_long(d, pool, long_bytes(bytes), ret);
	c = first_free(split);
	if (!c && !has_room_to_split(pool, class))
		c = first_free(single);
	if (!c) {
		rc = segment_add(d, pool, class, &c);
		if (rc)
			c = first_free(single);
		if (!c)
			return rc;
	}
	*ret = take_from(c);
	return 0;
}

struct rr_buf *rr_pool_take_denser(const struct rr_buf *than)
{
	struct rr_pool *pool = than->segment->pool;
	struct rr_pool_segment *best = NULL;

	list_for_each(n, &pool->segments[than->segment->class]) {
		struct rr_pool_segment *c = list_entry(n, struct rr_pool_segment, link);

		if (!c->nfree)
			break;
		if (c != than->segment && c->nfree <= than->segment->nfree &&
		    (!best || c->nfree < best->nfree))
			best = c;
	}
	return best ? take_from(best) : NULL;
}

void rr_pool_give(struct rr_buf *b)
{
	struct rr_pool_segment *c = b->segment;
	size_t idle = idle_of(c);

	b->next = c->free;
	c->free = b;
	c->pool->lent[c->class]--;
	if (!c->nfree++) {
		list_del(&c->link);
		list_add_head(list_of(c), &c->link);
	}
	count_idle(c->pool, idle, idle_of(c));
	if (c->nfree == c->n)
		c->idle_since_ns = clock_now_ns();
}

uint64_t rr_pool_trim(struct rpcrdma_domain *d)
{
	uint64_t now = clock_now_ns(), again = 0;
	unsigned left = TRIM_MOST;

	for (unsigned z = 0; z < RR_ZONE_FAR && !d->pools[z].arena; z++) {
		for (unsigned k = 0; k < RR_POOL_LISTS; k++) {
			list_for_each_safe(n, &d->pools[z].segments[k]) {
				struct rr_pool_segment *c = list_entry(n, struct rr_pool_segment, link);

				if (!c->nfree)
					break;
				if (c->nfree < c->n)
					continue;
				if (now - c->idle_since_ns < d->pool_idle_ns) {
					again = d->pool_idle_ns;
					continue;
				}
				if (!left--)
					return TRIM_MORE_NS;
				d->pools[z].given_back++;
				segment_free(c);
			}
		}
	}
	return again;
}

/* ---- figures ---- */

/* buffers in the engines' magazines count as used: they are not available to others */
void rpcrdma_domain_pool_stats_sized(struct rpcrdma_domain *d, struct rpcrdma_pool_stats *ret, size_t bytes)
{
	struct rpcrdma_pool_stats s = { .limit = d->attr.pool_bytes_max,
					.msgs_limit = d->attr.msg_bytes_max,
					.shared_limit = d->attr.shared_bytes_max };

	if (d->attr.pool_arena)
		s.calls_limit = d->clients.budgets[RR_SHARE_MSGS].max;
	pthread_mutex_lock(&d->lock);
	for (unsigned z = 0; z < RR_ZONE_FAR; z++) {
		const struct rr_pool *pool = &d->pools[z];

		s.given_back += pool->given_back;
		if (pool->msgs) {
			s.msgs += pool->arena ? pool->ranges.bytes : pool->bytes;
			s.msgs_most += pool->arena ? pool->ranges.bytes : pool->bytes_most;
			continue;
		}
		s.pinned += pool->arena ? pool->ranges.bytes : pool->bytes;
		s.most += pool->arena ? pool->ranges.bytes : pool->bytes_most;
		s.huge += pool->bytes_huge;
		for (unsigned k = 0; k < RR_POOL_CLASSES; k++) {
			s.classes[k].free += pool->bufs[k] - pool->lent[k];
			s.classes[k].used += pool->lent[k];
		}
	}
	for (unsigned k = 0; k < RR_POOL_CLASSES; k++)
		s.classes[k].bytes = class_bytes(k);
	if (d->pool_arena.x.kind == &rr_mem_kind_huge)
		s.huge = s.pinned;
	s.far = d->pools[RR_ZONE_FAR].bytes;
	pthread_mutex_unlock(&d->lock);
	rr_sized_out(ret, bytes, &s, sizeof(s));
}
