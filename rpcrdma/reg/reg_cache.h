/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_cache.h - registrations that outlive their calls, to be found again by address
 *
 * Operation:  rr_cache_get() lends a registration that covers a range with the rights wanted: one
 *             that is there (a hit), or a new one. rr_cache_put() gives it back; it stays, unused,
 *             until it has to make room, or until its memory changes under it.
 *
 *                 free --get--> made --> live, lent <--get/put--> live, idle (LRU)
 *                   ^                        |                         |
 *                   |             gone,      | replaced, recalled      | gone, evicted, replaced
 *                   |                        v                         v
 *                   '---- reaper <--- dead list <--put of the last-----'
 *
 * Memory:     Page-aligned ranges. Entries are made beforehand, as many as there may be.
 * Threads:    Any; see reg_cache.c for the lock.
 */
#ifndef RR_REG_CACHE_H
#define RR_REG_CACHE_H

#include "base/list.h"
#include "fabric.h"
#include "rpcrdma.h"

struct rr_cache;
struct rr_cache_entry;
struct rr_monitor;

/* What a user of a range holds while it does; it stays where it is. */
struct rr_cache_ref {
	struct rr_cache_entry *entry; /* private */
	struct rr_mr *mr;      /* covers the range; not to be used any more once it is recalled */
	struct list link;      /* the entry's; guarded by the lock */
	uintptr_t start, end;  /* what was asked for */
	bool gone;             /* some of it lost its pages meanwhile */
};

struct rr_cache_attr {
	unsigned entries;         /* most registrations kept; 0: RR_CACHE_ENTRIES */
	size_t bytes;             /* most bytes kept; 0: what the machine bears */
	bool deferred;            /* what has to make room waits for the reaper too (`batch`) */
	struct rr_monitor *monitor; /* says what is stale; it becomes the cache's. NULL: nobody does */
	unsigned dirty_watermark; /* dead entries that wake the reaper at once; 0: RR_CACHE_DIRTY */
};

#define RR_CACHE_ENTRIES 1024u
#define RR_CACHE_DIRTY 32u

/** rr_cache_bytes_default - what a cache keeps if nobody says: half of what may be pinned
 * @pinned: memory really is, and RLIMIT_MEMLOCK holds for most; where it does not, it is a quarter of
 * the machine's memory that is halved
 */
size_t rr_cache_bytes_default(bool pinned);

/** rr_cache_create - an empty cache of registrations in @pd
 * Return: 0, -ENOMEM, and then the monitor is the caller's still */
must_check int rr_cache_create(struct rr_pd *pd, const struct rr_cache_attr *attr,
			       struct rr_cache **ret);

/** rr_cache_destroy - nothing is lent any more; on return nothing is registered. NULL is fine.
 * @gone: what was counted is added to it; may be NULL */
void rr_cache_destroy(struct rr_cache *c, struct rpcrdma_stats *gone);

/** rr_cache_get - lend a registration of [addr, addr+len)
 * @access: rights it has to have, enum rr_access; it may have more
 *
 * Return: 0; -ENOENT: not memory for a cache, register it for the call; -ENOMEM: no room, for all
 * that is there is lent, or the machine's no; -EFAULT: not mapped, or not with that right.
 */
must_check int rr_cache_get(struct rr_cache *c, void *addr, size_t len, unsigned access,
			    struct rr_cache_ref *ref);

/** rr_cache_put - give it back
 * Return: false: the range lost its pages while it was lent, what came into it may be lost */
bool rr_cache_put(struct rr_cache *c, struct rr_cache_ref *ref);

/** rr_cache_recall - give it back, and have it deregistered before this returns
 * Return: false: others had borrowed it too, and they have lost it */
bool rr_cache_recall(struct rr_cache *c, struct rr_cache_ref *ref);

/** rr_cache_drop - give it back, and have nobody find it any more; it goes when nobody has it */
void rr_cache_drop(struct rr_cache *c, struct rr_cache_ref *ref);

/** rr_cache_flush - deregister all that is not lent, now */
void rr_cache_flush(struct rr_cache *c);

/** rr_cache_count - add this cache's counters to @sum */
void rr_cache_count(struct rr_cache *c, struct rpcrdma_stats *sum);

#endif
