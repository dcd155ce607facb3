/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_cache.c - the pin-down cache: registrations by address, with LRU eviction
 *
 * Operation:  rr_cache_get() searches an interval tree for an entry that covers the range with the rights. If
 *             there is no such entry, it creates one for the union of the range, the idle entries that overlap
 *             it and idle neighbours with the same rights; it replaces them. Entries larger than the current
 *             union are left alone. So while a region grows together, each page is registered about log n
 *             times, not n times. If the union cannot be registered, because of a hole or a read-only page,
 *             only the range is, with only the requested rights.
 *
 *             The monitor (monitor.h) keeps the cache valid by reporting memory that has lost its pages. An
 *             entry is inserted into the tree, not yet ready, before its range is watched and registered:
 *             lookups do not find it, but reports do. The parts of a union are already watched. Deregistered
 *             ranges are unwatched, unless they belong to another entry, of this cache or another one of this
 *             process.
 * Memory:     Entries come from a pool (reg_cache_life.c).
 * Threads:    Any. The lock guards the tree, the lists, references and counts. Code under the lock must not
 *             allocate, free or deregister: that may unmap watched memory, and the unmapping thread waits for
 *             the monitor, which needs this lock. Watching, registering and deregistering are done without it.
 * Errors:     -ENOMEM of the device or of RLIMIT_MEMLOCK: frees all idle entries and retries once.
 */
#include <assert.h>
#include <errno.h>

#include "base/checked.h"
#include "reg_cache_int.h"

#define UNION_BYTES_MAX ((size_t)64 << 20)

/* ---- finding ------------------------------------------------------------------------------ */

/* Whole pages, and rights. */
struct wanted {
	uintptr_t start, end;
	unsigned access;
};

static bool covers(const struct rr_cache_entry *e, const struct wanted *w)
{
	return e->ready && e->node.start <= w->start && e->node.end >= w->end &&
	       (e->access & w->access) == w->access;
}

static struct rr_cache_entry *find_cover(const struct rr_cache *c, const struct wanted *w)
{
	rr_itree_for_each(n, &c->tree, w->start, w->end)
		if (covers(rr_cache_entry_of(n), w))
			return rr_cache_entry_of(n);
	return NULL;
}

static void lend(struct rr_cache_entry *e, struct rr_cache_ref *ref)
{
	ref->entry = e;
	ref->mr = e->mr;
	list_add_tail(&e->refs, &ref->link);
	if (!e->nrefs++)
		list_del(&e->link); /* no longer idle */
}

/* Return: 1: lent, 0: not found; -ENOENT: a result would not be reliable now */
static int find(struct rr_cache *c, struct wanted *w, struct rr_cache_ref *ref)
{
	struct rr_cache_entry *e;
	int rc = -ENOENT;

	rr_cache_lock(c);
	if (!c->attr.monitor || rr_monitor_settle(c->attr.monitor)) {
		e = find_cover(c, w);
		if (e)
			lend(e, ref);
		rc = e != NULL;
	}
	rr_cache_unlock(c);
	return rc;
}

/* ---- making ------------------------------------------------------------------------------- */

/* Should the new entry include it? An overlapping entry is included whatever its rights. */
static bool grows(const struct rr_cache *c, const struct rr_cache_entry *e, const struct wanted *w)
{
	const struct rr_inode *node = &e->node;
	size_t bytes_max = MIN(UNION_BYTES_MAX, c->attr.bytes);
	bool overlaps = node->start < w->end && node->end > w->start;

	return e->ready && !e->nrefs && rr_cache_size_of(e) <= w->end - w->start &&
	       MAX(node->end, w->end) - MIN(node->start, w->start) <= bytes_max &&
	       (overlaps || e->access == w->access);
}

static struct rr_cache_entry *find_growth(const struct rr_cache *c, const struct wanted *w)
{
	/* extends the search by one byte on either side to find neighbours */
	rr_itree_for_each(n, &c->tree, w->start - !!w->start, w->end + (w->end < UINTPTR_MAX))
		if (grows(c, rr_cache_entry_of(n), w))
			return rr_cache_entry_of(n);
	return NULL;
}

/* Replaces idle entries that overlap @w or adjoin it; @w becomes the union. */
static void take_in(struct rr_cache *c, struct wanted *w, struct list *idle)
{
	struct rr_cache_entry *e;

	while ((e = find_growth(c, w))) {
		w->start = MIN(w->start, e->node.start);
		w->end = MAX(w->end, e->node.end);
		w->access |= e->access;
		rr_cache_kill(c, e, idle);
	}
}

/* Return: false: no room even without all idle entries */
static bool make_room(struct rr_cache *c, size_t bytes, struct list *idle)
{
	while (c->live + 1 > c->attr.entries || bytes > c->attr.bytes ||
	       c->live_bytes > c->attr.bytes - bytes) {
		struct list *oldest = list_first(&c->lru);

		if (!oldest)
			return false;
		rr_cache_kill(c, list_entry(oldest, struct rr_cache_entry, link), idle);
		rr_cache_add(&c->evicted, 1);
	}
	return true;
}

/* Inserts an entry into the tree, not ready, and lends it; reports of lost memory apply from now on. */
static void place(struct rr_cache *c, struct list *node, const struct wanted *w,
		  struct rr_cache_ref *ref)
{
	struct rr_cache_entry *e = list_entry(node, struct rr_cache_entry, link);

	e->node.start = w->start;
	e->node.end = w->end;
	e->access = w->access;
	e->ready = false;
	e->lost = false;
	rr_itree_insert(&c->tree, &e->node);
	e->in_tree = true;
	c->live++;
	c->live_bytes += rr_cache_size_of(e);
	lend(e, ref);
}

/* Creates an entry for @w, lent to @ref, and not ready. Entries that it replaces or evicts are dead on return,
 * and deregistered unless that is deferred.
 * @unite: @w may grow by existing entries
 * Return: 0; -ENOMEM: no room; -ENOBUFS: no entry */
static int reserve(struct rr_cache *c, struct wanted *w, bool unite, struct rr_cache_ref *ref)
{
	struct list out = LIST_INIT(out);
	struct list *idle = c->attr.deferred ? NULL : &out, *node = NULL;
	bool helped;
	int rc = -ENOMEM;

	rr_cache_lock(c);
	if (unite)
		take_in(c, w, idle);
	if (make_room(c, w->end - w->start, idle)) {
		node = list_pop(&c->free);
		rc = node ? 0 : -ENOBUFS;
	}
	if (node)
		place(c, node, w, ref);
	else if (rc == -ENOBUFS)
		rr_cache_take_dead(c, &out); /* and try again */
	rr_cache_unlock(c);
	helped = !list_is_empty(&out);
	rr_cache_dereg(c, &out, NULL);
	return rc == -ENOBUFS && helped ? reserve(c, w, false, ref) : rc;
}

/* Returns an entry. Return: true: it was the last user, and the entry is idle or dead; the caller holds the lock */
static bool release_ref(struct rr_cache *c, struct rr_cache_ref *ref)
{
	list_del(&ref->link);
	if (--ref->entry->nrefs)
		return false;
	if (ref->entry->in_tree)
		list_add_tail(&c->lru, &ref->entry->link);
	else
		rr_cache_retire(c, ref->entry);
	return true;
}

/* @others: others watch the range; false: it is unwatched, too */
static void unreserve(struct rr_cache *c, struct rr_cache_ref *ref, bool others)
{
	rr_cache_lock(c);
	if (ref->entry->in_tree)
		rr_cache_kill(c, ref->entry, NULL);
	ref->entry->lost |= others;
	(void)release_ref(c, ref); /* no other user could find it */
	rr_cache_unlock(c);
}

static int reg_entry(struct rr_cache *c, struct rr_cache_entry *e)
{
	const struct rr_mr_attr attr = { .addr = (void *)e->node.start,
					 .len = rr_cache_size_of(e), .access = e->access,
					 .fd = -1 };
	struct rr_mr *mr;
	int rc;

	rc = rr_mr_reg(c->pd, &attr, &mr);
	if (rc == -ENOMEM) {
		rr_cache_flush(c);
		rc = rr_mr_reg(c->pd, &attr, &mr);
	}
	if (rc)
		return rc;
	rr_cache_add(&c->regs, 1);
	rr_cache_add(&c->pinned, rr_cache_size_of(e));
	e->mr = mr;
	e->access = mr->access; /* a device may have granted fewer rights */
	return 0;
}

/* @exact: the requested range; @w may be larger by ranges that are already watched */
static int make(struct rr_cache *c, const struct wanted *exact, struct wanted *w, bool unite,
		struct rr_cache_ref *ref)
{
	int rc = reserve(c, w, unite, ref), watch = 0;

	if (rc)
		return rc;
	if (c->attr.monitor)
		watch = rr_monitor_watch(c->attr.monitor, exact->start, exact->end);
	/* the range is of another kind, watched by others, or unmapped: a registration for the call will tell */
	rc = watch ? -ENOENT : reg_entry(c, ref->entry);
	if (rc) {
		unreserve(c, ref, watch == -EBUSY);
		return rc;
	}
	rr_cache_lock(c);
	ref->mr = ref->entry->mr;
	ref->entry->ready = true; /* if it was removed meanwhile, lookups still do not find it */
	rr_cache_unlock(c);
	return 0;
}

/* ---- lending ------------------------------------------------------------------------------ */

static int make_one(struct rr_cache *c, const struct wanted *exact, struct rr_cache_ref *ref)
{
	struct wanted all = *exact;
	int rc;

	rc = rr_cache_start_reaper(c);
	if (rc)
		return -ENOMEM;
	rc = make(c, exact, &all, true, ref);
	if (rc && rc != -ENOENT && (all.start != exact->start || all.end != exact->end ||
				    all.access != exact->access)) {
		all = *exact;
		rc = make(c, exact, &all, false, ref);
	}
	return rc == -ENOBUFS ? -ENOENT : rc;
}

/* A monitor is off in a forked child, too. */
static bool is_off(const struct rr_cache *c)
{
	return c->attr.monitor ? rr_monitor_is_off(c->attr.monitor) : rr_cache_is_forked(c);
}

int rr_cache_get(struct rr_cache *c, void *addr, size_t len, unsigned access,
		 struct rr_cache_ref *ref)
{
	struct wanted exact = { .access = access };
	int rc = -ENOENT;

	if (!pages_around((uintptr_t)addr, len, c->page, &exact.start, &exact.end))
		return -EFAULT;
	*ref = (struct rr_cache_ref){ .start = (uintptr_t)addr, .end = (uintptr_t)addr + len };
	list_init(&ref->link);
	if (!is_off(c) && exact.end - exact.start <= c->attr.bytes)
		rc = find(c, &exact, ref);
	if (rc == 1) {
		rr_cache_add(&c->hits, 1);
		return 0;
	}
	if (!rc) {
		rr_cache_add(&c->misses, 1);
		rc = make_one(c, &exact, ref);
	}
	if (rc == -ENOENT)
		rr_cache_add(&c->uncacheable, 1);
	return rc;
}

bool rr_cache_put(struct rr_cache *c, struct rr_cache_ref *ref)
{
	bool gone;

	rr_cache_lock(c);
	gone = ref->gone;
	(void)release_ref(c, ref);
	rr_cache_unlock(c);
	return !gone;
}

void rr_cache_drop(struct rr_cache *c, struct rr_cache_ref *ref)
{
	rr_cache_lock(c);
	if (ref->entry->in_tree)
		rr_cache_kill(c, ref->entry, NULL); /* it is lent still: to us */
	(void)release_ref(c, ref);
	rr_cache_unlock(c);
}

bool rr_cache_recall(struct rr_cache *c, struct rr_cache_ref *ref)
{
	struct rr_cache_entry *e = ref->entry;
	struct rr_mr *mr;
	bool alone;
	int rc;

	pthread_mutex_lock(&c->recalls); /* a second recall must not return before the first has deregistered */
	rr_cache_lock(c);
	if (e->in_tree)
		rr_cache_kill(c, e, NULL);
	mr = e->mr; /* NULL: another recall was first */
	e->mr = NULL;
	rr_cache_unlock(c);
	if (mr) {
		rc = rr_mr_dereg(mr);
		assert(!rc);
		(void)rc;
		rr_cache_add(&c->deregs, 1);
		atomic_fetch_sub_explicit(&c->pinned, rr_cache_size_of(e), memory_order_relaxed);
	}
	pthread_mutex_unlock(&c->recalls);
	rr_cache_lock(c);
	alone = release_ref(c, ref);
	rr_cache_unlock(c);
	return alone;
}
