/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_cache.c - the pin-down cache: registrations by address, least recently used ones make room
 *
 * Operation:  rr_cache_get() looks for an entry that covers the range with the rights: an interval
 *             tree. If there is none, an entry is made of the range together with the idle entries
 *             that it overlaps and with idle neighbours of the same rights; they are replaced. Those
 *             that are larger than it has become so far are left alone, so that while a region grows
 *             together each page is registered anew some log n times and not n. Where the union
 *             cannot be registered, for a hole in it or a page that may not be written, the range
 *             alone is, with no more than the rights asked.
 *
 *             An entry dies when it is evicted (limits), replaced, or when its memory goes. A dead
 *             one is in no tree: nobody finds it. As soon as nobody holds it either, it is put on the
 *             dead list, for the reaper: a thread that deregisters all that is there when so many
 *             have gathered (the watermark), or the first one has waited for REAP_MS. Only what is
 *             evicted by a cache that does not defer is deregistered by who needs the room.
 * Memory:     Entries come from a pool made at the beginning: as many as may be kept, lent, and dead.
 * Threads:    Any. lock() guards the tree, the lists, references and counts. Under it nothing is
 *             allocated, freed or deregistered, for that may unmap memory, and who unmaps memory that
 *             is watched waits for him who takes this lock to hear of it. Registering, deregistering
 *             and all system calls are done outside; entries on their way are in the tree, but not
 *             ready: nobody finds them, and the loss of their memory finds them.
 *             In a forked child the cache is off, for registrations are the parent's.
 * Errors:     -ENOMEM of the device or of RLIMIT_MEMLOCK: all that is idle is given back and it is
 *             tried once more.
 */
#include <assert.h>
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "itree.h"
#include "reg_cache.h"

#define UNION_BYTES_MAX ((size_t)64 << 20)
#define DIRTY_BYTES_MAX ((size_t)64 << 20)
#define REAP_MS 100u
/* Entries beside those that may be kept: for what is lent to more calls than that at once, and, so many
 * times the watermark, for the dead. When they are used up whoever wants one helps the reaper. */
#define ENTRIES_SPARE 64u
#define ENTRIES_DEAD 16u

struct rr_cache_entry {
	struct rr_inode node;     /* in the tree until it dies */
	struct list link;         /* free, lru or dead: the one it is in; in none while it is lent */
	struct list refs;         /* rr_cache_ref */
	unsigned nrefs;
	struct rr_mr *mr;         /* NULL: not yet, or recalled */
	unsigned access;
	bool ready, in_tree;
};

struct rr_cache {
	struct rr_pd *pd;
	struct rr_cache_attr attr;
	size_t page;
	unsigned long forks;      /* of this process when it was made */

	pthread_mutex_t lock;
	struct rr_itree tree;
	struct list lru;          /* idle; the oldest first */
	struct list dead;         /* to be deregistered */
	struct list free;
	unsigned live;            /* entries in the tree or lent */
	size_t live_bytes;
	unsigned ndead;
	size_t dead_bytes;
	uint64_t dead_ns;         /* when the first of them came */

	bool has_reaper, stop;
	pthread_t reaper;
	sem_t wake;

	/* atomic: some of it is counted outside the lock */
	atomic_ullong hits, misses, invalidated, evicted, deferred, flushes, uncacheable;
	atomic_ullong regs, deregs, reaped, pinned;

	unsigned nentries;
	struct rr_cache_entry *entries;
};

static void count(atomic_ullong *counter, unsigned long long n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* ---- forks -------------------------------------------------------------------------------- */

static unsigned long forks; /* that lie between the first process and this one */
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void on_fork_child(void)
{
	forks++;
}

static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, on_fork_child); /* without it a child is not kept from folly */
}

static bool is_off(const struct rr_cache *c)
{
	return c->forks != forks;
}

/* ---- entries ------------------------------------------------------------------------------ */

static void lock(struct rr_cache *c)
{
	pthread_mutex_lock(&c->lock);
}

static void unlock(struct rr_cache *c)
{
	pthread_mutex_unlock(&c->lock);
}

static struct rr_cache_entry *entry_of(struct rr_inode *node)
{
	return node ? container_of(node, struct rr_cache_entry, node) : NULL;
}

static size_t size_of(const struct rr_cache_entry *e)
{
	return e->node.end - e->node.start;
}

static void put_free(struct rr_cache *c, struct rr_cache_entry *e)
{
	assert(!e->in_tree && !e->nrefs && !e->mr);
	list_add_tail(&c->free, &e->link);
}

static void tree_add(struct rr_cache *c, struct rr_cache_entry *e)
{
	rr_itree_insert(&c->tree, &e->node);
	e->in_tree = true;
	c->live++;
	c->live_bytes += size_of(e);
}

/* It is lent to nobody, nor found by anybody. */
static void forget_live(struct rr_cache *c, struct rr_cache_entry *e)
{
	c->live--;
	c->live_bytes -= size_of(e);
}

/* To the reaper, who has to be told if it is the first one or the watermark is reached. */
static void bury(struct rr_cache *c, struct rr_cache_entry *e)
{
	size_t bytes = size_of(e);
	bool full = c->ndead >= c->attr.dirty_watermark || c->dead_bytes >= DIRTY_BYTES_MAX;

	if (!c->ndead)
		c->dead_ns = clock_now_ns();
	list_add_tail(&c->dead, &e->link);
	c->ndead++;
	c->dead_bytes += bytes;
	count(&c->deferred, 1);
	if (c->ndead == 1 || (!full && (c->ndead >= c->attr.dirty_watermark ||
					c->dead_bytes >= DIRTY_BYTES_MAX)))
		sem_post(&c->wake);
}

/* Nobody finds it any more. @idle: where it goes if nobody has it; NULL: to the reaper */
static void kill_entry(struct rr_cache *c, struct rr_cache_entry *e, struct list *idle)
{
	assert(e->in_tree);
	rr_itree_remove(&c->tree, &e->node);
	e->in_tree = false;
	if (e->nrefs)
		return;
	list_del(&e->link);
	forget_live(c, e);
	if (idle)
		list_add_tail(idle, &e->link);
	else
		bury(c, e);
}

/* @list: entries that are in no other; they end up free */
static void dereg_all(struct rr_cache *c, struct list *list, atomic_ullong *counter)
{
	unsigned long long n = 0, bytes = 0;

	list_for_each(node, list) {
		struct rr_cache_entry *e = list_entry(node, struct rr_cache_entry, link);
		int rc = rr_mr_dereg(e->mr);

		assert(!rc); /* windows are unbound before what they are over is given back */
		(void)rc;
		e->mr = NULL;
		bytes += size_of(e);
		n++;
	}
	count(&c->deregs, n);
	if (counter)
		count(counter, n);
	atomic_fetch_sub_explicit(&c->pinned, bytes, memory_order_relaxed);
	if (!n)
		return;
	lock(c);
	list_splice_tail(&c->free, list);
	unlock(c);
}

static void take_dead(struct rr_cache *c, struct list *to)
{
	if (c->ndead)
		count(&c->flushes, 1);
	list_splice_tail(to, &c->dead);
	c->ndead = 0;
	c->dead_bytes = 0;
}

/* ---- the reaper --------------------------------------------------------------------------- */

/* Sleep until there is something to do, or @due_ns; 0: for ever. */
static void reaper_sleep(struct rr_cache *c, uint64_t due_ns)
{
	struct timespec at = { .tv_sec = (time_t)(due_ns / NS_PER_S),
			       .tv_nsec = (long)(due_ns % NS_PER_S) };

	if (due_ns)
		(void)sem_clockwait(&c->wake, CLOCK_MONOTONIC, &at); /* it looks for itself */
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
		lock(c);
		stop = c->stop;
		due_ns = c->ndead ? c->dead_ns + REAP_MS * NS_PER_MS : 0;
		if (due_ns && (stop || due_ns <= clock_now_ns() ||
			       c->ndead >= c->attr.dirty_watermark ||
			       c->dead_bytes >= DIRTY_BYTES_MAX)) {
			take_dead(c, &dead);
			due_ns = 0;
		}
		unlock(c);
		dereg_all(c, &dead, &c->reaped);
	} while (!stop);
	return NULL;
}

/* With the first entry, for before it there is nothing to do. Signals are for the program's threads.
 * Return: 0, -EAGAIN: no thread to be had */
static int start_reaper(struct rr_cache *c)
{
	sigset_t all, old;
	bool mine;
	int rc;

	lock(c);
	mine = !c->has_reaper;
	c->has_reaper = true;
	unlock(c);
	if (!mine)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&c->reaper, NULL, reaper_main, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc)
		return 0;
	lock(c);
	c->has_reaper = false;
	unlock(c);
	return -rc;
}

/* ---- finding ------------------------------------------------------------------------------ */

struct wanted {
	uintptr_t start, end;
	unsigned access;
};

static bool covers(struct rr_inode *node, void *arg)
{
	const struct rr_cache_entry *e = entry_of(node);
	const struct wanted *w = arg;

	return e->ready && node->start <= w->start && node->end >= w->end &&
	       (e->access & w->access) == w->access;
}

/* The range's pages, and nothing of the address space beyond them. */
static bool whole_pages(const struct rr_cache *c, const void *addr, size_t len, struct wanted *ret)
{
	uintptr_t end;

	if (__builtin_add_overflow((uintptr_t)addr, len, &end) ||
	    __builtin_add_overflow(end, c->page - 1, &end))
		return false;
	ret->start = (uintptr_t)addr & ~(c->page - 1);
	ret->end = end & ~(c->page - 1);
	return true;
}

static void lend(struct rr_cache_entry *e, const void *addr, size_t len, struct rr_cache_ref *ref)
{
	*ref = (struct rr_cache_ref){ .entry = e, .mr = e->mr, .start = (uintptr_t)addr,
				      .end = (uintptr_t)addr + len };
	list_add_tail(&e->refs, &ref->link);
	if (!e->nrefs++)
		list_del(&e->link); /* no more idle */
}

/* ---- making ------------------------------------------------------------------------------- */

static bool is_idle(const struct rr_cache_entry *e)
{
	return e->ready && !e->nrefs;
}

struct growth {
	const struct wanted *now;
	size_t bytes_max;
};

/* Does it belong to the entry that is to be made? One that is overlapped does whatever its rights. */
static bool grows(struct rr_inode *node, void *arg)
{
	const struct rr_cache_entry *e = entry_of(node);
	const struct growth *g = arg;
	const struct wanted *w = g->now;
	bool overlaps = node->start < w->end && node->end > w->start;

	return is_idle(e) && size_of(e) <= w->end - w->start &&
	       MAX(node->end, w->end) - MIN(node->start, w->start) <= g->bytes_max &&
	       (overlaps || e->access == w->access);
}

/* Replace what is idle and overlaps @w or adjoins it; @w becomes the union. */
static void take_in(struct rr_cache *c, struct wanted *w, struct list *idle)
{
	struct growth g = { .now = w, .bytes_max = MIN(UNION_BYTES_MAX, c->attr.bytes) };
	struct rr_cache_entry *e;

	/* neighbours are found by looking one byte further on either side */
	while ((e = entry_of(rr_itree_find(&c->tree, w->start - !!w->start,
					   w->end + (w->end < UINTPTR_MAX), grows, &g)))) {
		w->start = MIN(w->start, e->node.start);
		w->end = MAX(w->end, e->node.end);
		w->access |= e->access;
		kill_entry(c, e, idle);
	}
}

/* Return: false: even with all that is idle gone there is no room */
static bool make_room(struct rr_cache *c, size_t bytes, struct list *idle)
{
	while (c->live + 1 > c->attr.entries || bytes > c->attr.bytes ||
	       c->live_bytes > c->attr.bytes - bytes) {
		struct list *oldest = list_first(&c->lru);

		if (!oldest)
			return false;
		kill_entry(c, list_entry(oldest, struct rr_cache_entry, link), idle);
		count(&c->evicted, 1);
	}
	return true;
}

static struct rr_cache_entry *take_free(struct rr_cache *c)
{
	struct list *node = list_pop(&c->free);
	struct rr_cache_entry *e;

	if (!node)
		return NULL;
	e = list_entry(node, struct rr_cache_entry, link);
	list_init(&e->link);
	return e;
}

/* Everything idle and dead, to @to. */
static void take_idle(struct rr_cache *c, struct list *to)
{
	struct list *oldest;

	while ((oldest = list_first(&c->lru)))
		kill_entry(c, list_entry(oldest, struct rr_cache_entry, link), to);
	take_dead(c, to);
}

/** rr_cache_flush - see reg_cache.h */
void rr_cache_flush(struct rr_cache *c)
{
	struct list idle = LIST_INIT(idle);

	lock(c);
	take_idle(c, &idle);
	unlock(c);
	dereg_all(c, &idle, NULL);
}

/* An entry for @w in the tree, not ready, lent to @ref. What has to go for it is dead by then, and by
 * now out of reach if it is not to be deferred.
 * Return: 0; -ENOMEM: no room; -ENOBUFS: no entry */
static int reserve(struct rr_cache *c, const struct wanted *w, const void *addr, size_t len,
		   struct rr_cache_ref *ref)
{
	struct list evicted = LIST_INIT(evicted);
	struct list *idle = c->attr.deferred ? NULL : &evicted;
	struct rr_cache_entry *e = NULL;
	bool helped;
	int rc = -ENOMEM;

	lock(c);
	if (make_room(c, w->end - w->start, idle)) {
		e = take_free(c);
		rc = e ? 0 : -ENOBUFS;
	}
	if (rc == -ENOBUFS)
		take_dead(c, &evicted); /* and try again */
	if (e) {
		e->node.start = w->start;
		e->node.end = w->end;
		e->access = w->access;
		e->ready = false;
		tree_add(c, e);
		lend(e, addr, len, ref);
	}
	unlock(c);
	helped = !list_is_empty(&evicted);
	dereg_all(c, &evicted, NULL);
	return rc == -ENOBUFS && helped ? reserve(c, w, addr, len, ref) : rc;
}

static int reg_entry(struct rr_cache *c, struct rr_cache_entry *e)
{
	const struct rr_mr_attr attr = { .addr = (void *)e->node.start, .len = size_of(e),
					 .access = e->access, .fd = -1 };
	struct rr_mr *mr;
	int rc;

	rc = rr_mr_reg(c->pd, &attr, &mr);
	if (rc == -ENOMEM) {
		rr_cache_flush(c);
		rc = rr_mr_reg(c->pd, &attr, &mr);
	}
	if (rc)
		return rc;
	count(&c->regs, 1);
	count(&c->pinned, size_of(e));
	e->mr = mr;
	e->access = mr->access; /* a device may have had to do with less */
	return 0;
}

/* It came to nothing. */
static void unreserve(struct rr_cache *c, struct rr_cache_ref *ref)
{
	struct rr_cache_entry *e = ref->entry;

	lock(c);
	if (e->in_tree)
		kill_entry(c, e, NULL);
	list_del(&ref->link);
	e->nrefs--;
	forget_live(c, e);
	put_free(c, e);
	unlock(c);
}

static int make(struct rr_cache *c, const struct wanted *w, const void *addr, size_t len,
		struct rr_cache_ref *ref)
{
	int rc = reserve(c, w, addr, len, ref);

	if (rc)
		return rc;
	rc = reg_entry(c, ref->entry);
	if (rc) {
		unreserve(c, ref);
		return rc;
	}
	lock(c);
	ref->mr = ref->entry->mr;
	ref->entry->ready = true; /* if it is dead by now nobody finds it all the same */
	unlock(c);
	return 0;
}

/* ---- lending ------------------------------------------------------------------------------ */

/** rr_cache_get - see reg_cache.h */
int rr_cache_get(struct rr_cache *c, void *addr, size_t len, unsigned access,
		 struct rr_cache_ref *ref)
{
	struct list evicted = LIST_INIT(evicted);
	struct wanted exact = { .access = access }, all;
	struct rr_cache_entry *e;
	int rc;

	if (!whole_pages(c, addr, len, &exact))
		return -EFAULT;
	if (is_off(c) || exact.end - exact.start > c->attr.bytes) {
		count(&c->uncacheable, 1);
		return -ENOENT;
	}
	lock(c);
	e = entry_of(rr_itree_find(&c->tree, exact.start, exact.end, covers, &exact));
	if (e)
		lend(e, addr, len, ref);
	all = exact;
	if (!e)
		take_in(c, &all, c->attr.deferred ? NULL : &evicted);
	unlock(c);
	if (e) {
		count(&c->hits, 1);
		return 0;
	}
	count(&c->misses, 1);
	dereg_all(c, &evicted, NULL);
	rc = start_reaper(c);
	if (rc)
		return rc == -EAGAIN ? -ENOMEM : rc;
	rc = make(c, &all, addr, len, ref);
	if (rc && (all.start != exact.start || all.end != exact.end || all.access != exact.access))
		rc = make(c, &exact, addr, len, ref);
	if (rc != -ENOBUFS)
		return rc;
	count(&c->uncacheable, 1);
	return -ENOENT;
}

/* The lock is held. Return: nobody has it any more */
static bool unlend(struct rr_cache_ref *ref)
{
	list_del(&ref->link);
	return !--ref->entry->nrefs;
}

/* The lock is held; the last user of @e is gone. */
static void rest(struct rr_cache *c, struct rr_cache_entry *e)
{
	if (e->in_tree) {
		list_add_tail(&c->lru, &e->link);
		return;
	}
	forget_live(c, e);
	if (e->mr)
		bury(c, e);
	else
		put_free(c, e);
}

/** rr_cache_put - see reg_cache.h */
bool rr_cache_put(struct rr_cache *c, struct rr_cache_ref *ref)
{
	lock(c);
	if (unlend(ref))
		rest(c, ref->entry);
	unlock(c);
	return !ref->gone;
}

/** rr_cache_drop - see reg_cache.h */
void rr_cache_drop(struct rr_cache *c, struct rr_cache_ref *ref)
{
	struct rr_cache_entry *e = ref->entry;

	lock(c);
	if (e->in_tree)
		kill_entry(c, e, NULL); /* it is lent still: to us */
	if (unlend(ref))
		rest(c, e);
	unlock(c);
}

/** rr_cache_recall - see reg_cache.h */
bool rr_cache_recall(struct rr_cache *c, struct rr_cache_ref *ref)
{
	struct rr_cache_entry *e = ref->entry;
	struct rr_mr *mr;
	bool alone;
	int rc;

	lock(c);
	if (e->in_tree)
		kill_entry(c, e, NULL);
	mr = e->mr; /* NULL: someone else was faster */
	e->mr = NULL;
	unlock(c);
	if (mr) {
		rc = rr_mr_dereg(mr);
		assert(!rc);
		(void)rc;
		count(&c->deregs, 1);
		atomic_fetch_sub_explicit(&c->pinned, size_of(e), memory_order_relaxed);
	}
	lock(c);
	alone = unlend(ref);
	if (alone)
		rest(c, e);
	unlock(c);
	return alone;
}

/* ---- life --------------------------------------------------------------------------------- */

/* Does RLIMIT_MEMLOCK hold for this process? */
static bool is_limited(void)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &hdr, data))
		return true;
	return !(data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK));
}

/** rr_cache_bytes_default - see reg_cache.h */
size_t rr_cache_bytes_default(bool limited)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t bytes = pages > 0 ? (uint64_t)pages * (uint64_t)page / 4 : (uint64_t)1 << 30;
	struct rlimit lim;

	if (limited && is_limited() && !getrlimit(RLIMIT_MEMLOCK, &lim) &&
	    lim.rlim_cur != RLIM_INFINITY)
		bytes = MIN(bytes, (uint64_t)lim.rlim_cur);
	return (size_t)MIN(bytes / 2, (uint64_t)SIZE_MAX / 4);
}

static void init_entries(struct rr_cache *c)
{
	for (unsigned i = 0; i < c->nentries; i++) {
		struct rr_cache_entry *e = &c->entries[i];

		list_init(&e->link);
		list_init(&e->refs);
		put_free(c, e);
	}
}

/** rr_cache_create - see reg_cache.h */
int rr_cache_create(struct rr_pd *pd, const struct rr_cache_attr *attr, struct rr_cache **ret)
{
	struct rr_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->pd = pd;
	c->attr = *attr;
	c->page = (size_t)sysconf(_SC_PAGESIZE);
	if (!c->attr.entries)
		c->attr.entries = RR_CACHE_ENTRIES;
	if (!c->attr.bytes)
		c->attr.bytes = rr_cache_bytes_default(true);
	if (!c->attr.dirty_watermark)
		c->attr.dirty_watermark = RR_CACHE_DIRTY;
	rr_itree_init(&c->tree);
	list_init(&c->lru);
	list_init(&c->dead);
	list_init(&c->free);
	c->nentries = c->attr.entries + ENTRIES_DEAD * c->attr.dirty_watermark + ENTRIES_SPARE;
	c->entries = calloc(c->nentries, sizeof(*c->entries));
	if (!c->entries || sem_init(&c->wake, 0, 0)) {
		int rc = c->entries ? -EAGAIN : -ENOMEM;

		free(c->entries);
		free(c);
		return rc;
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_once(&forks_once, watch_forks);
	c->forks = forks;
	init_entries(c);
	*ret = c;
	return 0;
}

/** rr_cache_destroy - see reg_cache.h */
void rr_cache_destroy(struct rr_cache *c, struct rpcrdma_stats *gone)
{
	if (!c)
		return;
	if (!is_off(c)) {
		lock(c);
		c->stop = true;
		unlock(c);
		if (c->has_reaper) {
			sem_post(&c->wake);
			pthread_join(c->reaper, NULL);
		}
		rr_cache_flush(c);
		assert(!c->live);
	}
	if (gone)
		rr_cache_count(c, gone);
	sem_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c->entries);
	free(c);
}

/** rr_cache_count - see reg_cache.h */
void rr_cache_count(struct rr_cache *c, struct rpcrdma_stats *sum)
{
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
