/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * monitor.h - reports when memory of this process loses its pages
 *
 * Operation:  A registration pins pages, not addresses: after munmap() and mmap() the same address is other
 *             memory, and a cached registration would transfer the old bytes. The monitor sees munmap, mmap
 *             over a mapping, mremap, brk, MADV_DONTNEED, _FREE and _REMOVE of watched ranges, by any code of
 *             the process, before the call returns. It notifies the users that keep registrations.
 *
 *             To avoid stale registrations, users that keep them by address follow these rules:
 *               look up   under the lock, and use a result only if rr_monitor_settle() returns true
 *               insert    watch, register, insert last, under the lock; not if gone() reported the range in between
 *               drop      gone() only moves entries to a list of dead ones; they are deregistered without the
 *                         lock, when unused
 *               give up   unlink, deregister, and unwatch ranges not reported as gone: a partly watched mapping
 *                         counts as several, and their number per process is limited
 * Memory:     The monitor does not allocate or free under the lock, and users must not either: both may unmap
 *             watched memory, and then wait for the monitor, which waits for the lock.
 * Threads:    Any. One lock for all users. The monitor's thread takes it before it lets an unmapping call continue.
 * Errors:     If the kernel or a seccomp filter refuses, there is no monitor, and registrations cannot be cached.
 */
#ifndef RR_MONITOR_H
#define RR_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/util.h"

struct rr_monitor;

/* A user that keeps registrations. */
struct rr_monitor_user {
	/* [start, end) has lost its pages. Runs on any thread under the lock: no malloc(), no free(), no
	 * deregistration, no call that may unmap. */
	void (*gone)(struct rr_monitor_user *u, uintptr_t start, uintptr_t end);
	/* Does the user still need events of any of [start, end)? Same restrictions. */
	bool (*keeps)(struct rr_monitor_user *u, uintptr_t start, uintptr_t end);
	struct list link; /* the monitor's */
};

/** rr_monitor_get - returns the monitor of this process with a new reference
 *
 * Return: 0; -EPERM, -ENOSYS: the kernel or a seccomp filter refuses; -ENOMEM, -EMFILE, -EAGAIN: no memory,
 * descriptor or thread available.
 */
must_check int rr_monitor_get(struct rr_monitor **ret);

/** rr_monitor_put - releases a reference; the last one ends all watching */
void rr_monitor_put(struct rr_monitor *m);

/** rr_monitor_add - starts notifications of @u */
void rr_monitor_add(struct rr_monitor *m, struct rr_monitor_user *u);

/** rr_monitor_del - stops notifications; on return gone() does not run and will not */
void rr_monitor_del(struct rr_monitor *m, struct rr_monitor_user *u);

/** rr_monitor_lock - takes the lock for lookups */
void rr_monitor_lock(struct rr_monitor *m);
void rr_monitor_unlock(struct rr_monitor *m);

/** rr_monitor_settle - delivers all changes made before this call; call with the lock held
 *
 * A thread that unmaps is blocked until its change is delivered. Meanwhile another thread may get the same
 * address. This call delivers pending changes.
 *
 * Return: false: a change is still in progress; results may be stale, do not use them.
 */
must_check bool rr_monitor_settle(struct rr_monitor *m);

/** rr_monitor_watch - watches the pages of [@start, @end); call without the lock
 *
 * Return: 0; -EINVAL: not private anonymous memory, or not mapped (others can change shared memory without an
 * event); -EBUSY: another userfaultfd watches there; -ENOMEM: too many mappings. Except with -EBUSY, a part may
 * be watched after an error: unwatch it after giving up the entry.
 */
must_check int rr_monitor_watch(struct rr_monitor *m, uintptr_t start, uintptr_t end);

/** rr_monitor_unwatch - stops watching, if no user keeps any of it; call with the lock held */
void rr_monitor_unwatch(struct rr_monitor *m, uintptr_t start, uintptr_t end);

/** rr_monitor_is_off - is the monitor inactive? Then do not look up
 *
 * True in a forked child, where put() and all other calls do nothing, and after the program closed a descriptor
 * that it does not own. It stays inactive; a child may get a new monitor.
 */
bool rr_monitor_is_off(const struct rr_monitor *m);

#endif
