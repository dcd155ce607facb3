/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fleet_int.h - the parts of the tester of striped volumes: fleet.c, fleet_judge.c, fleet_tell.c
 */
#ifndef TESTS_TUMBLE_FLEET_INT_H
#define TESTS_TUMBLE_FLEET_INT_H

#include "base/util.h"
#include "fleet.h"

#define FLEET_LINES 60u
#define FLEET_LINE_BYTES 160u

struct body {
	struct shared f;
	unsigned refs;
	uint64_t serial;
	bool exists, removed;      /* removed: its name goes, or has gone */
};

struct opened {
	struct body *body;         /* NULL: not open */
	unsigned busy;             /* operations */
	unsigned syncing;          /* those of them that make data stable */
	uint64_t synced;           /* when the last one of these ended */
	bool changing, sync;       /* changing: it is being opened or closed */
	bool written, unsure;      /* unsure: unstable data may have been lost since */
	bool lost;                 /* and was, or a server was away */
	bool spread;               /* each server has unstable data of it */
	bool must_tell;            /* and one of them was killed since: the next sync fails */
};

struct name {
	struct body *body;
	unsigned opens;            /* in progress */
	bool locked;               /* it is being removed or renamed */
};

struct slot {
	struct fleet_io io;
	struct shared_op s;
	struct body *body;
	bool busy, faulty, manager_faulty;
	uint64_t start_ns;
	uint8_t *mem;
};

struct wrote {
	uint64_t number, off, len, body;
	unsigned client;
};

struct fault_state {
	bool active;
	enum fleet_fault fault;
	uint64_t until, since_ns;
};

struct fleet {
	struct fleet_back *b;
	const struct fleet_opts *o;
	FILE *out, *log;
	uint64_t clock, serial;
	struct name names[FLEET_FILES_MAX];
	struct opened opened[SHARED_CLIENTS_MAX][FLEET_FILES_MAX];
	uint64_t lanes[SHARED_CLIENTS_MAX];
	struct slot slots[FLEET_DEPTH_MAX];
	struct fault_state faults[FLEET_SERVERS_MAX + 1];
	unsigned busy, faulty;
	uint64_t number;           /* of the operation that is begun */
	uint64_t healed_ns, moved_ns;
	char lines[FLEET_LINES][FLEET_LINE_BYTES];
	uint64_t nlines;
	struct wrote *history;
	size_t nhistory, room;
	bool failed;
	int rc;
	struct fleet_sum sum;
};

/* ---- fleet_tell.c ------------------------------------------------------------------------ */

/** fleet_note - a line of the log; @what is "=" with a result */
void fleet_note(struct fleet *fl, const struct fleet_op *op, const char *what, int64_t result);

/** fleet_begin_failure - Return: false: there was a finding before: this one may be its consequence */
bool fleet_begin_failure(struct fleet *fl, const struct fleet_op *op);
void printf_like(3, 4) fleet_fail(struct fleet *fl, const struct fleet_op *op, const char *fmt, ...);

/** fleet_give_up - the test itself cannot go on */
void fleet_give_up(struct fleet *fl, int rc);

/** fleet_tell_origin - whose bytes are these? fleet_tell_candidates - and which may be there; fleet_tell_way - last events */
void fleet_tell_origin(struct fleet *fl, uint64_t off, const uint8_t *got, uint64_t len);
void fleet_tell_candidates(struct fleet *fl, const struct shared *f, uint64_t off);
void fleet_tell_way(struct fleet *fl);

/* ---- fleet_judge.c ----------------------------------------------------------------------- */

struct body *fleet_create_body(struct fleet *fl);
void fleet_put_body(struct body *b);

/** fleet_find_opened - the file by which @client has @b open; or -1 */
int fleet_find_opened(const struct fleet *fl, unsigned client, const struct body *b);
unsigned fleet_count_opened(const struct fleet *fl, unsigned client, const struct body *b);

/** fleet_judge - is the result of an operation right? fleet_take - what it means for names and open files */
void fleet_judge(struct fleet *fl, struct slot *s);
void fleet_take(struct fleet *fl, struct slot *s);

/** fleet_look_at_cuts - cuts are complete once the manager has nothing left to do */
void fleet_look_at_cuts(struct fleet *fl);

/** fleet_reap - judges what has ended */
void fleet_reap(struct fleet *fl);

#endif
