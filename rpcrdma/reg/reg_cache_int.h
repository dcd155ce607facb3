/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_cache_int.h - internals of the cache of registrations
 *
 *   reg_cache.c       finds, creates and lends entries
 *   reg_cache_end.c   removes and deregisters entries
 *   reg_cache_life.c  the cache itself: limits, counters, forks
 */
#ifndef RR_REG_CACHE_INT_H
#define RR_REG_CACHE_INT_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "itree.h"
#include "monitor.h"
#include "reg_cache.h"

struct rr_cache_entry {
	struct rr_inode node;     /* in the tree until it is removed */
	struct list link;         /* free, lru, orphans or dead; unlinked while lent and in the tree */
	struct list refs;         /* rr_cache_ref */
	unsigned nrefs;
	struct rr_mr *mr;         /* NULL: not yet, or recalled */
	unsigned access;
	bool ready, in_tree;
	bool lost;                /* lost some of its memory: do not unwatch */
};

struct rr_cache {
	struct rr_pd *pd;
	struct rr_cache_attr attr;
	size_t page;
	unsigned long forks;      /* forks counted by this process at creation */

	struct rr_monitor_user user;
	pthread_mutex_t recalls;  /* rr_cache_recall() takes it before the lock */
	pthread_mutex_t lock;     /* used without a monitor; otherwise the monitor's lock */
	struct rr_itree tree;
	struct list lru;          /* idle; the oldest first */
	struct list orphans;      /* lent, but removed from lookups */
	struct list dead;         /* to be deregistered */
	struct list free;
	unsigned live;            /* entries in the tree or lent */
	size_t live_bytes;
	unsigned ndead;
	size_t dead_bytes;
	uint64_t dead_ns;         /* when the first of them was added */

	bool has_reaper, stop;
	pthread_t reaper;
	sem_t wake;

	/* atomic: some are counted outside the lock */
	atomic_ullong hits, misses, invalidated, evicted, deferred, flushes, uncacheable;
	atomic_ullong regs, deregs, reaped, pinned;

	unsigned nentries;
	struct rr_cache_entry *entries;
};

static inline void rr_cache_add(atomic_ullong *counter, unsigned long long n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline size_t rr_cache_size_of(const struct rr_cache_entry *e)
{
	return e->node.end - e->node.start;
}

static inline struct rr_cache_entry *rr_cache_entry_of(struct rr_inode *node)
{
	return node ? container_of(node, struct rr_cache_entry, node) : NULL;
}

/** rr_cache_lock - takes the monitor's lock, if there is one, because events are delivered under it; else its own */
static inline void rr_cache_lock(struct rr_cache *c)
{
	if (c->attr.monitor)
		rr_monitor_lock(c->attr.monitor);
	else
		pthread_mutex_lock(&c->lock);
}

/** rr_cache_unlock - releases the lock of rr_cache_lock() */
static inline void rr_cache_unlock(struct rr_cache *c)
{
	if (c->attr.monitor)
		rr_monitor_unlock(c->attr.monitor);
	else
		pthread_mutex_unlock(&c->lock);
}

/* ---- reg_cache_life.c ------------------------------------------------------------------------ */

/** rr_cache_is_forked - is this a child of the process that created the cache? */
bool rr_cache_is_forked(const struct rr_cache *c);

/* ---- reg_cache_end.c; the first four with the lock held -------------------------------------- */

/** rr_cache_kill - removes @e from lookups
 * @idle: list for it if it is not lent; NULL: the reaper gets it */
void rr_cache_kill(struct rr_cache *c, struct rr_cache_entry *e, struct list *idle);

/** rr_cache_retire - after the last user of @e, which lookups no longer find: passes it to the reaper if it is registered */
void rr_cache_retire(struct rr_cache *c, struct rr_cache_entry *e);

/** rr_cache_take_dead - moves all entries that wait for the reaper to @to */
void rr_cache_take_dead(struct rr_cache *c, struct list *to);

/** rr_cache_gone, rr_cache_keeps - functions of rr_monitor_user */
void rr_cache_gone(struct rr_monitor_user *u, uintptr_t start, uintptr_t end);
bool rr_cache_keeps(struct rr_monitor_user *u, uintptr_t start, uintptr_t end);

/** rr_cache_dereg - deregisters the entries in @list, which are in no other list; call without the lock
 * @counter: counts them in addition to `deregs`; may be NULL */
void rr_cache_dereg(struct rr_cache *c, struct list *list, atomic_ullong *counter);

/** rr_cache_start_reaper - starts the reaper with the first entry, since it has no work before; call without
 * the lock
 * Return: 0, -EAGAIN: no thread available */
must_check int rr_cache_start_reaper(struct rr_cache *c);
void rr_cache_stop_reaper(struct rr_cache *c);

#endif
