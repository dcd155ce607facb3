/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * striped.h - a file of a striped volume, shared by its open files in a mount: where its stripes are, and its size
 */
#ifndef LT_STRIPED_H
#define LT_STRIPED_H

#include "grown.h"
#include "layout.h"
#include "lt_volume.h"
#include "op.h"

/* Handles of all stripes, with one right. */
struct lt_stripe_handles {
	char (*v)[STRIPE_HANDLE_BYTES]; /* one for each stripe; NULL: never asked for */
	uint64_t until_ns;              /* good before this time */
	uint64_t serial;                /* grows with each layout that was taken */
	uint64_t epoch;                 /* of that layout; the file's is newer if one with the other right was taken later */
};

/* Owner's thread only. */
struct lt_striped {
	struct list link;          /* in volume->nodes */
	struct lt_volume *v;
	unsigned refs;
	struct lt_fh fh;
	uint64_t instance;         /* of its leases. One of an earlier opening says that writes were not reported */

	/* as of the newest layout; width 0: none yet */
	struct layout layout;
	char object[STRIPE_OBJECT_BYTES];
	uint64_t epoch;
	uint32_t *servers;         /* id for each stripe */
	struct lt_stripe_handles reads, writes;
	uint64_t lease_ns;         /* local time until which a write needs no new LAYOUT; 0: no lease */
	unsigned writers;          /* open files that may write */
	uint64_t bytes;            /* a size that the file has at least, in this epoch */

	/* written in this epoch, and not reported */
	struct lt_grown grown;
	uint64_t wrote, reported;  /* numbers of writes: the last one, and the last one that a report covers */
	bool is_reporting;         /* by the timer */
	struct list waiting;       /* struct lt_op, by `waits`: for the end of that */
};

/** lt_striped_get - finds or creates the state of a file; drop it with lt_striped_put()
 * Return: NULL: no memory
 */
struct lt_striped *lt_striped_get(struct lt_volume *v, const struct lt_fh *fh);
void lt_striped_put(struct lt_striped *s);

/** lt_striped_hold - another reference */
static inline void lt_striped_hold(struct lt_striped *s)
{
	s->refs++;
}

/* What a LAYOUT is for. */
enum lt_striped_use {
	LT_STRIPED_READ,
	LT_STRIPED_WRITE,          /* of bytes that the manager may not know of: with a lease */
	LT_STRIPED_WRITE_NO_LEASE, /* commits, reports, and appends to a range that the manager has reserved */
};

/** lt_striped_handles - the handles with the right to read or write; NULL: ask for a layout first */
const struct lt_stripe_handles *lt_striped_handles(const struct lt_striped *s, bool write, uint64_t now_ns);

/** lt_striped_may - are there handles for this use? Otherwise ask for a layout first
 * Without a lease a write needs a layout. A client that cannot report, since the manager is away, goes on writing.
 */
bool lt_striped_may(const struct lt_striped *s, enum lt_striped_use use, uint64_t now_ns);

/** lt_striped_ask - the arguments of LAYOUT; they point into @s */
VOLLAYOUTargs lt_striped_ask(struct lt_striped *s, enum lt_striped_use use);

/** lt_striped_take - takes over what a LAYOUT returned
 * @sent_ns: when it was sent
 * @why: the cause of an error
 *
 * Return: 0; -EAGAIN: it is older than one that came first, and there are no handles yet: ask again; -EREMOTEIO: it is none,
 * or another one than before; -ENOMEM.
 */
must_check int lt_striped_take(struct lt_striped *s, bool write, const VOLLAYOUTresok *ok, uint64_t sent_ns, const char **why);

/** lt_striped_size - a size that the file has at least */
static inline uint64_t lt_striped_size(const struct lt_striped *s)
{
	return MAX(s->bytes, s->grown.bytes);
}

/** lt_striped_grew - the manager was asked in @epoch, and said that the file has @bytes
 * Of another epoch it means nothing: the file may have been cut since.
 */
static inline void lt_striped_grew(struct lt_striped *s, uint64_t epoch, uint64_t bytes)
{
	if (epoch == s->epoch)
		s->bytes = MAX(s->bytes, MIN(bytes, (uint64_t)INT64_MAX));
}

/** lt_striped_wrote - a write was acknowledged that ends at @end; a report follows within a second, unless it is made before */
void lt_striped_wrote(struct lt_striped *s, uint64_t end);

/** lt_striped_owes - are there writes that no report covers? */
static inline bool lt_striped_owes(const struct lt_striped *s)
{
	return s->wrote != s->reported;
}

/** lt_striped_wait_report - calls next(op, 0) when no report of the timer is in flight: at once, or later
 * next(-ECANCELED): the operation was cancelled
 */
void lt_striped_wait_report(struct lt_striped *s, struct lt_op *op, lt_op_step next);

/** lt_striped_before_resize - the lt_before_resize of striped volumes */
void lt_striped_before_resize(struct lt_op *op, const struct lt_fh *fh, lt_op_step next);

/** lt_striped_resized - this client has set the size of the file: the next read or write asks for the layout */
static inline void lt_striped_resized(struct lt_striped *s)
{
	s->bytes = 0;
	s->reads.until_ns = s->writes.until_ns = 0;
}

/** lt_striped_report - the arguments of REPORT; they point into @s. The handles to write are needed and present
 * @last: this client will need a new layout before it writes again
 */
VOLREPORTargs lt_striped_report(struct lt_striped *s, bool last);

/** lt_striped_reported - a REPORT was acknowledged that was sent at @sent_ns, and made when s->wrote was @upto */
void lt_striped_reported(struct lt_striped *s, uint64_t upto, const VOLREPORTresok *ok, uint64_t sent_ns);

/** lt_striped_leave - an open file that may write has been closed: without any other one, the lease ends */
void lt_striped_leave(struct lt_striped *s);

#endif
