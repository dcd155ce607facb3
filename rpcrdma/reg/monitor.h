/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * monitor.h - who is told when memory of this process loses its pages
 *
 * Operation:  A registration pins pages, not addresses: after munmap() and mmap() the same address is
 *             other memory, and a registration that was kept would move the bytes of the old. The
 *             monitor sees munmap, mmap over something, mremap, brk, MADV_DONTNEED, _FREE and _REMOVE
 *             of the ranges that it watches before the call returns to whoever made it, however it
 *             was made, and tells those who keep registrations.
 *
 *             Whoever keeps registrations by address goes by these rules, or keeps stale ones:
 *               look up   under the lock, and believe what is found only if rr_monitor_settle() is
 *                         true
 *               insert    watch, register, insert last, under the lock; and not if gone() was told of
 *                         the range in between
 *               drop      gone() unlinks to a list of the dead and nothing else; they are deregistered
 *                         without the lock, when nobody uses them
 *               give up   unlink, deregister, and unwatch what was not told to be gone: mappings that
 *                         are watched in part count as several, of which a process has so many only
 * Memory:     Nothing here is allocated or freed, nothing may be, while the lock is held: either may
 *             unmap memory that is watched, and then waits for the monitor, which waits for the lock.
 * Threads:    Any. One lock for everybody; the monitor's thread takes it before it lets an unmapping
 *             call go on.
 * Errors:     Where the kernel or a seccomp filter refuses there is no monitor, and nothing can be kept.
 */
#ifndef RR_MONITOR_H
#define RR_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/util.h"

struct rr_monitor;

/* One who keeps registrations. */
struct rr_monitor_user {
	/* [start, end) has lost its pages. Any thread, the lock held: no malloc(), no free(), no
	 * deregistration, no call that may unmap. */
	void (*gone)(struct rr_monitor_user *u, uintptr_t start, uintptr_t end);
	/* Does it still want to be told of any of [start, end)? Likewise. */
	bool (*keeps)(struct rr_monitor_user *u, uintptr_t start, uintptr_t end);
	struct list link; /* the monitor's */
};

/** rr_monitor_get - the monitor of this process, one more reference to it
 *
 * Return: 0; -EPERM, -ENOSYS: the kernel or a seccomp filter refuses; -ENOMEM, -EMFILE, -EAGAIN: no
 * memory, no descriptor, no thread to be had.
 */
must_check int rr_monitor_get(struct rr_monitor **ret);

/** rr_monitor_put - the reverse; with the last reference nothing is watched any more */
void rr_monitor_put(struct rr_monitor *m);

/** rr_monitor_add - tell @u, from now on, what is gone */
void rr_monitor_add(struct rr_monitor *m, struct rr_monitor_user *u);

/** rr_monitor_del - on return gone() does not run and will not */
void rr_monitor_del(struct rr_monitor *m, struct rr_monitor_user *u);

/** rr_monitor_lock - the lock that look-ups take */
void rr_monitor_lock(struct rr_monitor *m);
void rr_monitor_unlock(struct rr_monitor *m);

/** rr_monitor_settle - is everything told that happened before this call? with the lock held
 *
 * A thread that unmaps is held until it is told; another thread may be given the same address in the
 * meantime. What is pending is told by this call.
 *
 * Return: false: a change is still under way somewhere; what is found may be stale, do without.
 */
must_check bool rr_monitor_settle(struct rr_monitor *m);

/** rr_monitor_watch - watch the pages of [@start, @end); without the lock
 *
 * Return: 0; -EINVAL: not private anonymous memory, or not mapped (others may change what is shared
 * without our knowing); -EBUSY: somebody else's userfaultfd watches there; -ENOMEM: too many mappings.
 * Unless it is -EBUSY some of it may be watched: to be unwatched, when it has been given up.
 */
must_check int rr_monitor_watch(struct rr_monitor *m, uintptr_t start, uintptr_t end);

/** rr_monitor_unwatch - no longer, if nobody keeps any of it; with the lock held */
void rr_monitor_unwatch(struct rr_monitor *m, uintptr_t start, uintptr_t end);

/** rr_monitor_is_off - nobody watches: nothing may be looked up
 *
 * In a forked child, where put() and everything else is nothing; or when the program has closed a
 * descriptor that was not its own. It stays so; a child may get a monitor of its own. */
bool rr_monitor_is_off(const struct rr_monitor *m);

#endif
