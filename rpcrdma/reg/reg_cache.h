/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_cache.h - registrations that outlive their calls, found by address
 *
 * Operation:  rr_cache_get() lends a registration that covers a range with the requested rights: an existing
 *             one (a hit), or a new one. rr_cache_put() returns it. It stays cached, idle, until it is evicted,
 *             or until its memory changes.
 *
 *                 free --get--> made --> live, lent <--get/put--> live, idle (LRU)
 *                   ^                        |                         |
 *                   |             gone,      | replaced, recalled      | gone, evicted, replaced
 *                   |                        v                         v
 *                   '---- reaper <--- dead list <--put of the last-----'
 *
 * Memory:     Page-aligned ranges. All entries are allocated in advance.
 * Threads:    Any; see reg_cache.c for the lock.
 */
#ifndef RR_REG_CACHE_H
#define RR_REG_CACHE_H

#include "base/list.h"
#include "reg.h"

struct rr_cache;
struct rr_monitor;

struct rr_cache_attr {
	unsigned entries;         /* upper bound of cached registrations */
	size_t bytes;             /* upper bound of cached bytes */
	bool deferred;            /* evicted entries wait for the reaper too (`batch`) */
	struct rr_monitor *monitor; /* reports stale entries; owned by the cache. NULL: not monitored */
	unsigned dirty_watermark; /* number of dead entries that wakes the reaper at once; 0: RR_CACHE_DIRTY */
};

#define RR_CACHE_ENTRIES 1024u /* default of the users */
#define RR_CACHE_DIRTY 32u

/** rr_cache_bytes_default - returns the default limit of cached bytes: half of the memory that may be pinned
 * @pinned: the fabric really pins, so RLIMIT_MEMLOCK applies unless the process is exempt; in any case at most
 * half of a quarter of the machine's memory
 */
size_t rr_cache_bytes_default(bool pinned);

/** rr_cache_create - creates an empty cache of registrations in @pd
 * Return: 0, -ENOMEM: the caller still owns the monitor */
must_check int rr_cache_create(struct rr_pd *pd, const struct rr_cache_attr *attr,
			       struct rr_cache **ret);

/** rr_cache_destroy - frees a cache with no lent entries; deregisters everything. NULL is ignored.
 * @gone: the counters are added to it; may be NULL */
void rr_cache_destroy(struct rr_cache *c, struct rpcrdma_stats *gone);

/** rr_cache_get - lends a registration of [addr, addr+len)
 * @access: required rights, enum rr_access; it may have more
 *
 * Return: 0; -ENOENT: not suitable for a cache, register it for the call; -ENOMEM: no room, because all entries
 * are lent, or from the device; -EFAULT: not mapped, or not with that right.
 */
must_check int rr_cache_get(struct rr_cache *c, void *addr, size_t len, unsigned access,
			    struct rr_cache_ref *ref);

/** rr_cache_put - returns a registration
 * Return: false: the range lost its pages while it was lent, and data written into it may be lost */
bool rr_cache_put(struct rr_cache *c, struct rr_cache_ref *ref);

/** rr_cache_recall - returns a registration and deregisters it before it returns
 * Return: false: other users had borrowed it too, and lost it */
bool rr_cache_recall(struct rr_cache *c, struct rr_cache_ref *ref);

/** rr_cache_drop - returns a registration and removes it from lookups; deregistered after its last user */
void rr_cache_drop(struct rr_cache *c, struct rr_cache_ref *ref);

/** rr_cache_flush - deregisters all entries that are not lent, now */
void rr_cache_flush(struct rr_cache *c);

/** rr_cache_count - adds this cache's counters to @sum */
void rr_cache_count(struct rr_cache *c, struct rpcrdma_stats *sum);

#endif
