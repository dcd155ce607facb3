/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_leases.h - which clients may have written what the manager of a volume does not know yet
 *
 * A client that writes has a lease of the file's object. It ends with the client's last report. If it lapses instead, the
 * client may be gone: the object is due, and the thread of pending work asks the stripe servers for the size.
 *
 * As long as an object has leases, or is due, there is a marker: a symbolic link writers/OBJECT whose text is what
 * fh_strip() leaves of the file handle, in hexadecimal digits: 26 of them for a file of ext4, which keeps up to 59 bytes in the
 * inode. Making and removing a longer one takes thirty times as long. A marker is not synced: it outlives the manager, and a power
 * cut unless it was made in the last seconds before. A manager that starts takes each marker for a lease of an unknown client.
 *
 * Any thread. The caller has the lock of the inode where a function says so, so that table and markers change together.
 */
#ifndef LEAT_SERVER_VOLUME_LEASES_H
#define LEAT_SERVER_VOLUME_LEASES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "fh.h"
#include "rpcrdma_svc.h"
#include "stripes.h"

#define VOLUME_LEASES_MAX 16384u	/* of all objects, those that are due included */
#define VOLUME_LEASES_OBJECT 64u	/* of one object; the oldest ones become one of an unknown client */

struct volume_leases;

/* A client that calls. */
struct volume_lessee {
	uint64_t instance, number;	 /* of struct volume_lease; instance 0: it wants no lease */
	struct rpcrdma_client_id client; /* whose share is used */
	struct fh fh;			 /* of the file: fh_strip() */
};

/* An object whose stripe servers are to be asked. */
struct volume_due {
	char object[STRIPE_OBJECT_BYTES];
	struct fh fh;
};

/** volume_leases_create - finds the markers in @dir, which stays the caller's; Return: 0, -ENOMEM, -errno */
int must_check volume_leases_create(int dir, struct volume_leases **ret);
void volume_leases_destroy(struct volume_leases *t); /* NULL is fine; markers stay */

/** volume_lease_take - begins or renews a lease, under the lock of the inode
 * A client gets no more leases than are left free.
 *
 * Return: 0; 1: no lease was running, so the thread of pending work has no time set: wake it; -EAGAIN: the client has its share;
 * -ENOMEM; -errno of making the marker.
 */
int must_check volume_lease_take(struct volume_leases *t, const char object[STRIPE_OBJECT_BYTES], const struct volume_lessee *by);

/** volume_lease_end - ends a lease, under the lock of the inode, unless a newer call has renewed it */
void volume_lease_end(struct volume_leases *t, const char object[STRIPE_OBJECT_BYTES], const struct volume_lessee *by);

/** volume_lease_others - may another client than @instance have written what was not reported? */
bool volume_lease_others(struct volume_leases *t, const char object[STRIPE_OBJECT_BYTES], uint64_t instance);

/* Since the manager started; now: that exist. */
struct volume_leases_stats {
	uint64_t now, given, lapsed, refused;
};

/** volume_leases_count - adds what @t has to @ret */
void volume_leases_count(struct volume_leases *t, struct volume_leases_stats *ret);

/* ---- for the thread of pending work ---- */

/** volume_leases_lapse - objects with leases that have lapsed are due
 * Return: when the next one lapses; UINT64_MAX: no lease exists */
uint64_t volume_leases_lapse(struct volume_leases *t);

/** volume_leases_due - Return: how many objects are due */
unsigned volume_leases_due(struct volume_leases *t);

/** volume_leases_next - the object that is due for the longest time; it moves behind all others
 * Return: false: none is due */
bool volume_leases_next(struct volume_leases *t, struct volume_due *ret);

/** volume_leases_settle - the size is known: drops the leases of an object that have lapsed, under the lock of the inode */
void volume_leases_settle(struct volume_leases *t, const struct volume_due *due);

#endif
