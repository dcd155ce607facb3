/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_cache_life.c - creates and destroys a cache of registrations; its limits and counters
 *
 * Operation:  All entries are allocated with the cache: as many as may be cached, and some more for lent and
 *             dead ones.
 * Memory:     One block of entries; the kernel provides pages as they are touched. A monitor in the attributes
 *             is released with the cache.
 * Threads:    Any; no other thread uses a cache during creation and destruction. In a forked child a cache is
 *             off, because the parent owns the registrations; it is destroyed without touching them.
 * Errors:     -ENOMEM.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/caps.h"
#include "reg_cache_int.h"

/* Entries in addition to the cached ones: for entries replaced while lent, and, as a multiple of the watermark,
 * for dead ones. When they are used up, the thread that needs one does the reaper's work. */
#define ENTRIES_SPARE 64u
#define ENTRIES_DEAD 16u

/* ---- forks -------------------------------------------------------------------------------- */

static unsigned long forks; /* number of forks between the first process and this one */
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void on_fork_child(void)
{
	forks++;
}

static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, on_fork_child); /* without it a child is not protected */
}

bool rr_cache_is_forked(const struct rr_cache *c)
{
	return c->forks != forks;
}

/* ---- limits ------------------------------------------------------------------------------- */

size_t rr_cache_bytes_default(bool pinned)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t bytes = pages > 0 ? (uint64_t)pages * (uint64_t)page / 4 : (uint64_t)1 << 30;
	struct rlimit lim;

	if (pinned && !caps_has(CAP_IPC_LOCK, false) && !getrlimit(RLIMIT_MEMLOCK, &lim) &&
	    lim.rlim_cur != RLIM_INFINITY)
		bytes = MIN(bytes, (uint64_t)lim.rlim_cur);
	return (size_t)MIN(bytes / 2, (uint64_t)SIZE_MAX / 4);
}

size_t rpcrdma_reg_bytes_default(void)
{
	return rr_cache_bytes_default(true);
}

/* ---- life --------------------------------------------------------------------------------- */

static int make_entries(struct rr_cache *c)
{
	c->nentries = c->attr.entries + ENTRIES_DEAD * c->attr.dirty_watermark + ENTRIES_SPARE;
	c->entries = calloc(c->nentries, sizeof(*c->entries));
	if (!c->entries)
		return -ENOMEM;
	for (unsigned i = 0; i < c->nentries; i++) {
		struct rr_cache_entry *e = &c->entries[i];

		list_init(&e->link);
		list_init(&e->refs);
		list_add_tail(&c->free, &e->link);
	}
	return 0;
}

int rr_cache_create(struct rr_pd *pd, const struct rr_cache_attr *attr, struct rr_cache **ret)
{
	struct rr_cache *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	c->pd = pd;
	c->attr = *attr;
	if (!c->attr.dirty_watermark)
		c->attr.dirty_watermark = RR_CACHE_DIRTY;
	c->page = (size_t)sysconf(_SC_PAGESIZE);
	rr_itree_init(&c->tree);
	list_init(&c->lru);
	list_init(&c->orphans);
	list_init(&c->dead);
	list_init(&c->free);
	rc = make_entries(c);
	if (rc) {
		free(c);
		return rc;
	}
	sem_init(&c->wake, 0, 0); /* fails only for values beyond SEM_VALUE_MAX */
	pthread_mutex_init(&c->recalls, NULL);
	pthread_mutex_init(&c->lock, NULL);
	pthread_once(&forks_once, watch_forks);
	c->forks = forks;
	c->user.gone = rr_cache_gone;
	c->user.keeps = rr_cache_keeps;
	list_init(&c->user.link);
	if (c->attr.monitor)
		rr_monitor_add(c->attr.monitor, &c->user);
	*ret = c;
	return 0;
}

void rr_cache_destroy(struct rr_cache *c, struct rpcrdma_stats *gone)
{
	if (!c)
		return;
	if (!rr_cache_is_forked(c)) {
		rr_cache_stop_reaper(c);
		rr_cache_flush(c);
		assert(!c->live && list_is_empty(&c->orphans));
	}
	if (gone)
		rr_cache_count(c, gone);
	if (c->attr.monitor && !rr_cache_is_forked(c)) {
		rr_monitor_del(c->attr.monitor, &c->user);
		rr_monitor_put(c->attr.monitor);
	}
	sem_destroy(&c->wake);
	pthread_mutex_destroy(&c->recalls);
	pthread_mutex_destroy(&c->lock);
	free(c->entries);
	free(c);
}

static void sync_with_events(struct rr_cache *c)
{
	if (rr_cache_is_forked(c))
		return;
	/* an unmapping call may return before its effect is counted, but the counting thread holds the lock
	 * until then */
	rr_cache_lock(c);
	rr_cache_unlock(c);
}

/* includes all earlier unmapping calls */
void rr_cache_count(struct rr_cache *c, struct rpcrdma_stats *sum)
{
	if (!c)
		return;
	sync_with_events(c);
	sum->regs += atomic_load_explicit(&c->regs, memory_order_relaxed);
	sum->deregs += atomic_load_explicit(&c->deregs, memory_order_relaxed);
	sum->reg_reaped += atomic_load_explicit(&c->reaped, memory_order_relaxed);
	sum->reg_hits += atomic_load_explicit(&c->hits, memory_order_relaxed);
	sum->reg_misses += atomic_load_explicit(&c->misses, memory_order_relaxed);
	sum->reg_invalidated += atomic_load_explicit(&c->invalidated, memory_order_relaxed);
	sum->reg_evicted += atomic_load_explicit(&c->evicted, memory_order_relaxed);
	sum->reg_deferred += atomic_load_explicit(&c->deferred, memory_order_relaxed);
	sum->reg_flushes += atomic_load_explicit(&c->flushes, memory_order_relaxed);
	sum->reg_uncacheable += atomic_load_explicit(&c->uncacheable, memory_order_relaxed);
	sum->reg_pinned += atomic_load_explicit(&c->pinned, memory_order_relaxed);
}
