/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * groups.h - the groups of a user as this host knows them, instead of the 16 that AUTH_SYS has room for
 *
 * Invariants: an entry that is being asked for, or has somebody who waits for it, is neither moved nor
 * freed. Whoever waits is told exactly once for each time that he was told to wait.
 */
#ifndef LEAT_SERVER_GROUPS_H
#define LEAT_SERVER_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/util.h"
#include "creds.h"
#include "worker.h"

struct groups;

/* One user. Owned by the cache; while it is being asked for, `answer` is who asks's. */
struct groups_entry {
	struct groups *cache;
	struct groups_entry *hash_next;
	struct list link;    /* of those that may go, or of those that are to be asked for */
	struct list waiting; /* struct groups_wait */
	uint32_t uid;
	bool known;
	bool asking; /* or about to be */
	uint64_t ask_ns;  /* from then on it is asked for again, and good until the answer is there, */
	uint64_t wait_ns; /* and from then on not even that */
	uint32_t n;
	uint32_t *groups;
	struct worker_job job; /* for who asks */
	struct groups_answer {
		int err; /* 0; -ENOENT: no such user; -errno: nobody can say */
		uint32_t n;
		uint32_t *groups; /* malloc'ed, or NULL */
	} answer;
};

struct groups_wait {
	struct list link;
	void (*fn)(struct groups_wait *w); /* ask again */
};

struct groups_ops {
	/* Have e->answer filled in and call groups_answered(), later: it may take its time. */
	void (*ask)(void *ctx, struct groups_entry *e);
};

int must_check groups_create(const struct groups_ops *ops, void *ctx, struct groups **ret);

/** groups_destroy - nobody waits, nothing is being asked for. NULL is fine. */
void groups_destroy(struct groups *g);

/** groups_of - put the groups of c->uid into @c
 * @now: CLOCK_MONOTONIC
 * @w: w->fn is called when there is more to know; not before this has returned
 *
 * A user whom this host does not know has none but the one he calls with, and so has everybody
 * without memory.
 *
 * Return: true; false: they are not known yet, w->fn() will be called.
 */
bool must_check groups_of(struct groups *g, uint64_t now, struct creds *c, struct groups_wait *w);

/** groups_answered - e->answer is there */
void groups_answered(struct groups_entry *e, uint64_t now);

/** groups_asking - how many are being asked for? */
unsigned groups_asking(const struct groups *g);

/** groups_count - how many users are known, or being asked for */
unsigned groups_count(const struct groups *g);

/** groups_ask - what the user database says; it may take its time
 *
 * Return: as in struct groups_answer.
 */
struct groups_answer groups_ask(uint32_t uid);

#endif
