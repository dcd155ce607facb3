/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lt_bulk.h - a read or write of any length: split into calls, several of them in flight, results combined
 *
 * lt_bulk.c knows neither files nor volumes. What differs is in struct lt_bulk_ops: io/io.c has that of files,
 * io/striped_io.c that of files in stripes, block/block_rw.c that of block volumes.
 */
#ifndef LT_BULK_H
#define LT_BULK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"
#include "block.h"
#include "call.h"
#include "leat.h"
#include "nfs3.h"
#include "session.h"
#include "task.h"

#define LT_BULK_PARTS_MAX 64 /* iovecs of one call */

struct leat_volume_written;
struct lt_bulk;
struct lt_stage;

/* A subrequest: one call. */
struct lt_subreq {
	struct lt_call call;
	struct lt_bulk *bulk;
	struct list link;           /* in bulk->sent or bulk->stopped, while it is in flight */
	struct lt_subreq *next;     /* in session->free_subreqs */
	uint64_t off;
	uint32_t len;               /* bytes not yet transferred */
	uint64_t mark;              /* of the ops; of stripes: the offset in the object */
	uint32_t stripe;            /* of stripes: number in the layout */
	uint64_t epoch;             /* of stripes: with which it was sent */
	unsigned tries;             /* of stripes: how often it was sent again with a new layout */
	uint64_t refused_epoch;     /* of stripes: the one that was refused last */
	bool asked_again;           /* of stripes: see lt_layout_take() */
	struct lt_server *server;   /* of stripes: where the stripe is */
	struct lt_budget *share;    /* of ops->split: the budget of the server; NULL: none */
	uint32_t held;              /* bytes of bulk->budget and of it */
	int iov_first, iov_cnt;     /* used: iov[iov_first, iov_first + iov_cnt) */
	struct iovec iov[LT_BULK_PARTS_MAX];
	/* lt_stage.h: */
	struct lt_stage *stage;     /* NULL: none */
	uint32_t staged;            /* bytes of the call that go through it */
	int from_at;                /* position of the call in bulk->iov */
	size_t from_off;
	uint32_t from_len;          /* all of its bytes */
	union {
		READ3args read;
		WRITE3args write;
		BLOCKREADargs block_read;
		BLOCKWRITEargs block_write;
		BLOCKINFOargs block_info;
		STRIPEREADargs stripe_read;
		STRIPEWRITEargs stripe_write;
		GETATTR3args getattr;
		VOLMAPargs volmap;
		VOLLAYOUTargs vollayout;
		VOLREPORTargs volreport;
	} args;
	union {
		READ3res read;
		WRITE3res write;
		BLOCKREADres block_read;
		BLOCKCHANGEres block_write;
		BLOCKINFOres block_info;
		STRIPEREADres stripe_read;
		STRIPECHANGEres stripe_write;
		GETATTR3res getattr;
		VOLMAPres volmap;
		VOLLAYOUTres vollayout;
		VOLREPORTres volreport;
	} res;
};

/* All functions run on the owner's thread. */
struct lt_bulk_ops {
	int parts;                 /* maximum iovecs of one call, at most LT_BULK_PARTS_MAX */
	bool stages;               /* small parts are copied: lt_stage.h */
	bool is_whole;             /* the result is the size or an error; false: a short count is a result */
	/* The operation starts. It may send a call of its own first (lt_bulk_ask()). */
	void (*begin)(struct lt_bulk *b);
	/* Assigns the next part of the range to @p: off, len and memory, and advances b->next. NULL: in the order of offsets.
	 * Return: false: nothing is left below b->end; b->next has reached it */
	bool (*split)(struct lt_bulk *b, struct lt_subreq *p);
	/* With split: takes back what the last split() has assigned to @p */
	void (*unsplit)(struct lt_bulk *b, struct lt_subreq *p);
	/* Sends the call for p->off, p->len and the memory of @p, with lt_bulk_done. */
	void (*send)(struct lt_subreq *p);
	/* Takes the results of a call without error. Return: true: @p is finished; false: it was sent again */
	bool (*replied)(struct lt_subreq *p);
	/* A call ended with an error. It may be replaced by another one, which is explained then. NULL: leave it.
	 * Return: true: the call was sent again, or another one for it */
	bool (*failed)(struct lt_subreq *p, int *err);
	/* All subrequests of a write have ended; the result may still be changed (lt_bulk_stop). NULL: leave it.
	 * Return: true: another call was sent (lt_bulk_ask); this runs again when it has ended */
	bool (*ending)(struct lt_bulk *b);
	/* The operation has been freed, its callback follows. NULL: nothing is left to do */
	void (*release)(void *object);
};

/* The members up to `object` are the caller's: see lt_bulk_get(). */
struct lt_bulk {
	struct lt_task task;
	const struct lt_bulk_ops *ops;
	void *object;              /* struct leat_file or struct leat_block */
	bool write;
	unsigned how;              /* of the ops: stable_how, or flags of a volume */
	uint32_t unit;             /* maximum bytes of a call; calls end at multiples of it */
	uint32_t grain;            /* ... and at multiples of this, however their memory is divided; 1: none */
	uint64_t off, size;        /* as requested */
	struct lt_budget *budget;  /* NULL: credits limit what is in flight. lt_stage.h: that of staging buffers, too */
	struct leat_volume_written *written; /* of leat_volume_aio_pwritev(): the caller's memory; else NULL */
	uint64_t epoch;            /* of stripes: of the range that is appended, no other handles may write; 0: any */

	/* private to lt_bulk.c and the ops */
	struct lt_bulk *next_free;
	uint64_t next;             /* first byte not yet covered by a subrequest */
	uint64_t end;              /* lowest offset at which a subrequest met the end of file or an error */
	int end_err;               /* errno at `end`; 0: end of file */
	struct list sent, stopped; /* subrequests in flight; those of them that are cancelled */
	unsigned flying, window;
	bool has_first;            /* `first` is not in use */
	bool staged;               /* there are small parts */
	bool changed;              /* a WRITE has been or may have been executed */
	bool is_waiting;           /* in the list of a budget, by `waits` */
	struct list waits;
	struct {                   /* the last wait that was in vain, or has just ended */
		const struct lt_budget *at;
		uint64_t since_ns, replies; /* of lt_handle_now(); at->replies at that time */
	} waited;
	unsigned phase;            /* of the ops; 0 at the start */
	struct lt_split {          /* of ops->split: see stripe_split.c */
		uint64_t from, end;
		uint32_t nth, round, done;
		bool is_open;
	} split;
	struct lt_subreq first;
	/* cursor in the caller's memory: position of `next` */
	const struct iovec *iov;
	int iov_at, iov_cnt;
	size_t iov_off;
	struct iovec one, *many;   /* own copy of the iovecs: `one`, or allocated */
};

/** lt_bulk_sum - adds up the parts of an iovec
 * Return: 0; -EINVAL: @cnt is negative, or the sum exceeds 64 bits
 */
must_check int lt_bulk_sum(const struct iovec *iov, int cnt, uint64_t *ret);

/** lt_bulk_get - returns an operation on @m, to be filled in and passed to lt_bulk_submit()
 * @iov: copied; the memory that it points to is not
 *
 * Sets the members of the task that lt_bulk_submit() and the caller do not: see there.
 *
 * Return: NULL: no memory
 */
struct lt_bulk *lt_bulk_get(struct leat *m, const struct iovec *iov, int cnt);

/** lt_bulk_submit - starts the operation
 * The caller has set task.cb, .verb, .path, .file, .internal and the first members of @b.
 */
void lt_bulk_submit(struct lt_bulk *b);

/** lt_bulk_stop - the result ends at @off, unless it ends below: with the error @err, or, if 0, with a short count */
static inline void lt_bulk_stop(struct lt_bulk *b, uint64_t off, int err)
{
	if (off < b->end) {
		b->end = off;
		b->end_err = err;
	}
}

/** lt_bulk_ask - returns the subrequest for a call that begin() sends before any other, or ending() behind all others,
 * without memory and with len 0
 * The others wait for it: replied() may stop the operation.
 */
struct lt_subreq *lt_bulk_ask(struct lt_bulk *b);

/** lt_bulk_advance - advances @p by @n bytes that were transferred */
void lt_bulk_advance(struct lt_subreq *p, uint32_t n);

/** lt_bulk_patience - how long a call may wait for its server: @ms, less the time that its operation has waited for the server's
 * share while the server replied to nothing
 * @ms: 0: without end
 *
 * Return: milliseconds; 0, unless @ms is 0: it has waited long enough.
 */
must_check uint32_t lt_bulk_patience(const struct lt_subreq *p, uint32_t ms);

/** lt_bulk_may_continue - may the rest of @p be sent? Stops the operation if it is cancelled. */
must_check bool lt_bulk_may_continue(struct lt_subreq *p);

/** lt_bulk_done - the lt_call_done of every subrequest */
void lt_bulk_done(struct rpcrdma_call *rpc, int err);

/** lt_bulk_free_pools - frees recycled operations of a session; nothing may be in flight */
void lt_bulk_free_pools(struct leat_session *s);

#endif
