/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_pending.h - what is still to be done on the stripe servers of a volume: cuts, removals, and sizes to ask for
 *
 * Before a file is cut, or may lose its last name, it gets a link pending/OBJECT, durably. What is to be done follows from
 * the state of the file, so a crash at any point needs no journal:
 *
 * - It has no other link: it was removed. REMOVE on every server of its layout, then the link goes, and the inode with it.
 * - Its layout says FILE_CUT_SIZE: the inode gets the new size first, and the layout says FILE_CUT_FENCE.
 * - Its layout says FILE_CUT_FENCE: FENCE on every server, then the layout says FILE_CUT_NONE.
 * - Else nothing is to be done, and the link goes.
 *
 * A file whose writer has gone (volume_leases.h) gets its size from the lengths of its objects.
 *
 * A thread per directory does this: at start, when it is woken, also by a server that is back (volume_reach.h), and again
 * after a while. It alone sends commands, one after another. Before the first one, and before data moves, it takes a new term,
 * which is newer than its own last one and those that the servers in reach have obeyed. A server that has obeyed a newer one
 * then means that another manager is at work: the thread sends no more commands until leatd is started again.
 */
#ifndef LEAT_SERVER_VOLUME_PENDING_H
#define LEAT_SERVER_VOLUME_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/util.h"
#include "stripes.h"
#include "volume_leases.h"

struct fh_set;
struct volume_dir;
struct volume_file;
struct volume_manager;
struct volume_pending;

/* How long things last, if not by stripe_timeo of the volume; for tests, which set them before they start a server. */
struct volume_times {
	const char *server; /* time in which a server has to reply, as an option of leat_set(); NULL: stripe_timeo */
	uint64_t probe_ns;  /* stripe servers are asked again whether they are in reach after as long; 0: a half of
			     * stripe_timeo, at most 5 seconds */
	uint64_t retry_ns;  /* pending work is tried again after as long; 0: a half of stripe_timeo */
	uint64_t lease_ns;  /* a client that writes has to report within that time; 0: 30 seconds */
};
extern struct volume_times volume_times;

/** volume_lease_ns - how long a lease lasts (volume_leases.h) */
static inline uint64_t volume_lease_ns(void)
{
	return volume_times.lease_ns ? volume_times.lease_ns : 30 * NS_PER_S;
}

/** volume_pending_create - starts the thread, without a manager; Return: 0 or -errno */
int must_check volume_pending_create(struct volume_dir *d, struct volume_pending **ret);

/** volume_pending_destroy - ends the thread; what is pending stays so. Waits for a command in progress. NULL is fine */
void volume_pending_destroy(struct volume_pending *p);

/** volume_pending_use - from now on work is done by @m: its map and keys; wakes the thread
 * @id: of its export
 * @fhs: the handles of its exports, until volume_pending_leave() or another volume_pending_use() */
void volume_pending_use(struct volume_pending *p, struct volume_manager *m, struct fh_set *fhs, uint32_t id);

/** volume_pending_leave - @m is about to go; the thread may open a file meanwhile, for which this waits */
void volume_pending_leave(struct volume_pending *p, const struct volume_manager *m);

/** volume_pending_wake - there may be work */
void volume_pending_wake(struct volume_pending *p);

/** volume_pending_run - has the thread do what is pending for @object now, and waits until each server in reach has it
 * A worker may wait here; the thread may wait for workers of this leatd, if it stores stripes too. */
void volume_pending_run(struct volume_pending *p, const char object[STRIPE_OBJECT_BYTES]);

/* A caller that waits for the size of a file. */
struct volume_asker {
	struct list link;     /* private, until done() */
	struct volume_due of; /* the file; without a handle if it is open: */
	const struct volume_file *file; /* open until done() runs; NULL: the thread opens it */
	int err;              /* as of volume_size_ask(); -ESTALE: the file is gone; -EIO: nothing is asked any more */
	void (*done)(struct volume_asker *a); /* on the thread of pending work, which does not look at @a any more */
};

/** volume_pending_queue - has the thread ask the stripe servers of a file for its size
 * All callers that wait for one file when the first message is sent share the replies.
 * @a: of, file and done are set; stays until done() runs
 */
void volume_pending_queue(struct volume_pending *p, struct volume_asker *a);

/** volume_pending_ask - volume_pending_queue() for a file that is open, and waits for that
 * A worker may wait here, as in volume_pending_run(). Return: as volume_asker.err */
int must_check volume_pending_ask(struct volume_pending *p, const struct volume_file *f, const char object[STRIPE_OBJECT_BYTES]);

/** volume_pending_term - the term of this manager, for handles by which it moves data itself; any thread
 * Return: 0; -EINPROGRESS: the thread takes it now; -errno: it could not. */
int must_check volume_pending_term(struct volume_pending *p, uint64_t *ret);

/** volume_pending_may - may files be cut and removed? Return: 0; -EIO: another manager is at work */
int must_check volume_pending_may(struct volume_pending *p);

#endif
