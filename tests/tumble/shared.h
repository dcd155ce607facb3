/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * shared.h - what a file may contain that several clients change at the same time, while servers fail
 */
#ifndef TESTS_TUMBLE_SHARED_H
#define TESTS_TUMBLE_SHARED_H

#include "base/list.h"
#include "tumble.h"

enum shared_kind {
	SHARED_READ,
	SHARED_WRITE,
	SHARED_TRUNCATE,
	SHARED_STAT,
	SHARED_FSYNC,
	SHARED_CLOSE,
	SHARED_OPEN,
	SHARED_UNLINK,
	SHARED_RENAME,
	SHARED_DIE,                /* a client ends without a word, and comes back as another one */
	SHARED_FAULT,              /* of a server */
	SHARED_CHECK,              /* all servers run, all is closed, and each client reads everything */
	SHARED_KINDS
};

#define SHARED_CLIENTS_MAX 8u
#define SHARED_WIDTH_MAX 8u
#define NEVER UINT64_MAX

/* ---- spans.c: the bytes ------------------------------------------------------------------ */

/* What one operation writes to one stripe. A time is the number of an event. */
struct change {
	struct list link;          /* in spans->changes */
	unsigned refs;             /* candidates, and the operation in progress */
	bool zero;                 /* by a cut; else the pattern of `key` */
	bool done;                 /* the cut was acknowledged */
	uint64_t key;
	uint64_t lane;             /* of the client: its later calls are executed behind this one. 0: none */
	unsigned stripe;
	uint64_t start, failed;    /* failed: NEVER: it has not */
	uint64_t end;              /* it takes no effect afterwards; NEVER: it may */
};

struct candidate {
	struct change *by;
	uint64_t dead;             /* reads that begin later do not see it; NEVER: they may */
};

struct span {
	uint64_t from;
	struct candidate *v;
	unsigned n;
};

/* All bytes of a file, also those behind its end. */
struct spans {
	struct list changes;
	struct span *v;            /* ordered; each ends where the next one begins, the last one at max */
	size_t n, room;
	uint64_t max;
	struct change *hole;       /* what no one wrote */
};

/* A read that is to be judged */
struct look {
	uint64_t lane;
	uint64_t start, now;
	const struct change *cut;  /* what it must have seen; NULL: nothing */
	uint64_t cut_from;
};

int spans_init(struct spans *s, uint64_t max);
void spans_fini(struct spans *s);
struct change *change_create(struct spans *s, uint64_t start);
void change_put(struct change *c);
int spans_add(struct spans *s, struct change *c, uint64_t from, uint64_t to);
void spans_done(struct spans *s, const struct change *c, uint64_t from, uint64_t to, uint64_t now);
void spans_undone(struct spans *s, const struct change *c, uint64_t now);
void spans_fenced(struct spans *s, const struct change *cut, uint64_t from, uint64_t now);
int spans_judge(struct spans *s, const struct look *look, uint64_t off, const uint8_t *got, uint64_t len, uint64_t *ret_wrong);
void spans_tidy(struct spans *s, uint64_t oldest);

/* ---- shared.c: the file ------------------------------------------------------------------ */

/* One operation of a client, from its beginning to its end. */
struct shared_op {
	struct list link;          /* in shared->ops */
	enum shared_kind kind;
	unsigned client;
	uint64_t lane;             /* another one for each life of a client; not 0 */
	bool partial;              /* fsync, close: the client has the file open once more, and may have written there */
	bool sync;                 /* a write that is stable when it ends */
	uint64_t off, len, key;    /* truncate: len is the new size */
	uint64_t start, generation;
	uint64_t low, high;        /* bounds of the size, of all moments */
	uint64_t own;              /* fsync: what it makes known */
	bool counts;               /* the end of a write is known afterwards */
	bool cuts;                 /* truncate: for certain */
	uint64_t cut_high;         /* truncate: bound of the size when it has ended */
	uint64_t knew;             /* start of the pending cut, if the client knew it when this began; else 0 */
	struct change *changes[SHARED_WIDTH_MAX];
};

struct shared {
	struct spans spans;
	uint64_t *clock;
	uint64_t unit;
	unsigned width;
	bool narrow;               /* it may have fewer stripes: it was created while a server was away */
	struct list ops;           /* in progress */
	uint64_t low, high;        /* bounds of the size that any client may see */
	uint64_t own[SHARED_CLIENTS_MAX]; /* what a client has written itself and so sees */
	uint64_t unreported[SHARED_CLIENTS_MAX]; /* what stat may show to it although others have cut it */
	uint64_t generation;       /* of sizes: grows when a truncate begins or ends */
	unsigned truncates;        /* in progress */
	struct change *cut;        /* the last one: acknowledged; not known to be complete on each server. NULL: none */
	bool is_cut;               /* for certain */
	uint64_t left;             /* when a client has gone without a report: the manager may ask the servers. 0: none */
	uint64_t cut_bytes, cut_high; /* cut_high: bound of the size for clients that know it */
	bool knows[SHARED_CLIENTS_MAX];
};

int shared_init(struct shared *f, uint64_t *clock, uint64_t max, uint64_t unit, unsigned width);
void shared_fini(struct shared *f);
int shared_begin(struct shared *f, struct shared_op *op);
const char *shared_end(struct shared *f, struct shared_op *op, int64_t result, const uint8_t *data, bool whole, uint64_t *ret_wrong);
bool shared_is_incomplete(const struct shared *f);
void shared_complete(struct shared *f);
void shared_opened(struct shared *f, unsigned client);
void shared_left(struct shared *f);
void shared_set_size(struct shared *f, uint64_t size);

#endif
