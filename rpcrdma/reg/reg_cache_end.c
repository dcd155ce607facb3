/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_cache_end.c - removes cache entries and deregisters them in the background
 *
 * Operation:  An entry dies when it is evicted, replaced, dropped, or when its memory is gone: it is removed
 *             from the tree, so that lookups do not find it. When it has no user either, it is put on the dead
 *             list for the reaper. This thread deregisters all dead entries when the watermark is reached, or
 *             when the first one has waited for REAP_MS. Exception: without deferral, the thread that needs
 *             the room deregisters the entries that it evicts.
 * Memory:     Entries return to the pool.
 * Threads:    Any. The reaper takes the lock, but not while it deregisters. It blocks all signals: the
 *             program's own threads handle them.
 * Errors:     None: an entry is only returned after the windows on it are unbound.
 */
#include <assert.h>
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "reg_cache_int.h"

#define DIRTY_BYTES_MAX ((size_t)64 << 20)
#define REAP_MS 100u

/* ---- the end of an entry ------------------------------------------------------------------ */

static bool is_full(const struct rr_cache *c)
{
	return c->ndead >= c->attr.dirty_watermark || c->dead_bytes >= DIRTY_BYTES_MAX;
}

/* Passes an entry to the reaper, and wakes it for the first entry and at the watermark. */
static void destroy_later(struct rr_cache *c, struct rr_cache_entry *e)
{
	bool full = is_full(c);

	if (!c->ndead)
		c->dead_ns = clock_now_ns();
	list_add_tail(&c->dead, &e->link);
	c->ndead++;
	c->dead_bytes += rr_cache_size_of(e);
	rr_cache_add(&c->deferred, 1);
	if (c->ndead == 1 || (!full && is_full(c)))
		sem_post(&c->wake);
}

/* Uncounts an entry that is neither lent nor found any more. */
static void forget_live(struct rr_cache *c, const struct rr_cache_entry *e)
{
	c->live--;
	c->live_bytes -= rr_cache_size_of(e);
}

void rr_cache_kill(struct rr_cache *c, struct rr_cache_entry *e, struct list *idle)
{
	assert(e->in_tree);
	rr_itree_remove(&c->tree, &e->node);
	e->in_tree = false;
	if (e->nrefs) {
		list_add_tail(&c->orphans, &e->link);
		return;
	}
	list_del(&e->link);
	forget_live(c, e);
	if (idle)
		list_add_tail(idle, &e->link);
	else
		destroy_later(c, e);
}

/* Skips lost memory: another user may watch it by now. The caller holds the lock. */
static void unwatch(struct rr_cache *c, const struct rr_cache_entry *e)
{
	if (c->attr.monitor && !e->lost)
		rr_monitor_unwatch(c->attr.monitor, e->node.start, e->node.end);
}

void rr_cache_retire(struct rr_cache *c, struct rr_cache_entry *e)
{
	assert(!e->nrefs && !e->in_tree);
	list_del(&e->link);
	forget_live(c, e);
	if (e->mr) {
		destroy_later(c, e);
	} else { /* never registered, or recalled */
		unwatch(c, e);
		list_add_tail(&c->free, &e->link);
	}
}

static void mark_refs(struct rr_cache_entry *e, uintptr_t start, uintptr_t end)
{
	list_for_each(node, &e->refs) {
		struct rr_cache_ref *ref = list_entry(node, struct rr_cache_ref, link);

		ref->gone |= ref->start < end && ref->end > start;
	}
}

static bool overlaps(const struct rr_cache_entry *e, uintptr_t start, uintptr_t end)
{
	return e->node.start < end && e->node.end > start;
}

void rr_cache_gone(struct rr_monitor_user *u, uintptr_t start, uintptr_t end)
{
	struct rr_cache *c = container_of(u, struct rr_cache, user);
	struct rr_cache_entry *e;

	list_for_each(node, &c->orphans) {
		e = list_entry(node, struct rr_cache_entry, link);
		mark_refs(e, start, end);
		e->lost |= overlaps(e, start, end);
	}
	list_for_each(node, &c->dead) {
		e = list_entry(node, struct rr_cache_entry, link);
		e->lost |= overlaps(e, start, end);
	}
	while ((e = rr_cache_entry_of(rr_itree_next(&c->tree, NULL, start, end)))) {
		mark_refs(e, start, end);
		e->lost = true;
		rr_cache_add(&c->invalidated, e->ready); /* not entries being created */
		rr_cache_kill(c, e, NULL);
	}
}

bool rr_cache_keeps(struct rr_monitor_user *u, uintptr_t start, uintptr_t end)
{
	struct rr_cache *c = container_of(u, struct rr_cache, user);

	list_for_each(node, &c->orphans) {
		if (overlaps(list_entry(node, struct rr_cache_entry, link), start, end))
			return true;
	}
	return rr_itree_next(&c->tree, NULL, start, end) != NULL;
}

/* ---- deregistration ----------------------------------------------------------------------- */

void rr_cache_take_dead(struct rr_cache *c, struct list *to)
{
	if (c->ndead)
		rr_cache_add(&c->flushes, 1);
	list_splice_tail(to, &c->dead);
	c->ndead = 0;
	c->dead_bytes = 0;
}

void rr_cache_dereg(struct rr_cache *c, struct list *list, atomic_ullong *counter)
{
	unsigned long long n = 0, bytes = 0;

	list_for_each(node, list) {
		struct rr_cache_entry *e = list_entry(node, struct rr_cache_entry, link);
		int rc = rr_mr_dereg(e->mr);

		assert(!rc); /* windows are unbound before their registration is returned */
		(void)rc;
		e->mr = NULL;
		bytes += rr_cache_size_of(e);
		n++;
	}
	if (!n)
		return;
	rr_cache_add(&c->deregs, n);
	if (counter)
		rr_cache_add(counter, n);
	atomic_fetch_sub_explicit(&c->pinned, bytes, memory_order_relaxed);
	rr_cache_lock(c);
	list_for_each(node, list)
		unwatch(c, list_entry(node, struct rr_cache_entry, link));
	list_splice_tail(&c->free, list);
	rr_cache_unlock(c);
}

void rr_cache_flush(struct rr_cache *c)
{
	struct list idle = LIST_INIT(idle);
	struct list *oldest;

	rr_cache_lock(c);
	while ((oldest = list_first(&c->lru)))
		rr_cache_kill(c, list_entry(oldest, struct rr_cache_entry, link), &idle);
	rr_cache_take_dead(c, &idle);
	rr_cache_unlock(c);
	rr_cache_dereg(c, &idle, NULL);
}

/* ---- the reaper --------------------------------------------------------------------------- */

/* Sleeps until it is woken, or until @due_ns; 0: no timeout. */
static void reaper_sleep(struct rr_cache *c, uint64_t due_ns)
{
	struct timespec at = { .tv_sec = (time_t)(due_ns / NS_PER_S),
			       .tv_nsec = (long)(due_ns % NS_PER_S) };

	if (due_ns)
		(void)sem_clockwait(&c->wake, CLOCK_MONOTONIC, &at); /* the caller checks the time itself */
	else
		(void)sem_wait(&c->wake);
}

static void *reaper_main(void *arg)
{
	struct list dead = LIST_INIT(dead);
	struct rr_cache *c = arg;
	uint64_t due_ns = 0;
	bool stop;

	do {
		reaper_sleep(c, due_ns);
		rr_cache_lock(c);
		stop = c->stop;
		due_ns = c->ndead ? c->dead_ns + REAP_MS * NS_PER_MS : 0;
		if (due_ns && (stop || is_full(c) || due_ns <= clock_now_ns())) {
			rr_cache_take_dead(c, &dead);
			due_ns = 0;
		}
		rr_cache_unlock(c);
		rr_cache_dereg(c, &dead, &c->reaped);
	} while (!stop);
	return NULL;
}

int rr_cache_start_reaper(struct rr_cache *c)
{
	bool is_there;
	int rc;

	rr_cache_lock(c);
	is_there = c->has_reaper;
	c->has_reaper = true;
	rr_cache_unlock(c);
	if (is_there)
		return 0;
	rc = thread_start(&c->reaper, NULL, reaper_main, c);
	if (!rc)
		return 0;
	rr_cache_lock(c);
	c->has_reaper = false;
	rr_cache_unlock(c);
	return -EAGAIN;
}

/** rr_cache_stop_reaper - stops the thread, which first deregisters the dead entries */
void rr_cache_stop_reaper(struct rr_cache *c)
{
	rr_cache_lock(c);
	c->stop = true;
	rr_cache_unlock(c);
	if (!c->has_reaper)
		return;
	sem_post(&c->wake);
	pthread_join(c->reaper, NULL);
	c->has_reaper = false;
}
