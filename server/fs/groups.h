/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * groups.h - the groups of a user as this host knows them, instead of the 16 that AUTH_SYS has room for
 *
 * Invariants: an entry that is queued or being asked for, or that a request waits for, is neither moved nor
 * freed. A request that waits is told exactly once, unless it calls groups_leave().
 */
#ifndef LEAT_SERVER_GROUPS_H
#define LEAT_SERVER_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/util.h"
#include "client.h"
#include "creds.h"
#include "worker.h"

struct groups;
struct groups_share;

/* One user. Owned by the cache; while `asking`, `answer` belongs to groups_ops.ask(). */
struct groups_entry {
	struct groups *cache;
	struct groups_entry *hash_next;
	struct list link;    /* share->idle or share->queue */
	struct list waiting; /* struct groups_wait */
	struct groups_share *share;	/* of the client that owns it: the last one that had it looked up */
	struct rpcrdma_client_id other; /* the last client that used it and does not own it */
	bool has_other;
	struct client *client; /* that it is looked up for, referenced; NULL: neither queued nor asking */
	uint32_t uid;
	bool known;
	bool queued; /* in share->queue */
	bool asking; /* groups_ops.ask() was called */
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
	struct groups_entry *entry;
	void (*fn)(struct groups_wait *w); /* ask again */
};

struct groups_ops {
	/* Have e->answer filled in and call groups_answered(), later: it may take its time. The work is done
	 * for e->client, which exists until then. */
	void (*ask)(void *ctx, struct groups_entry *e);
};

int must_check groups_create(const struct groups_ops *ops, void *ctx, struct groups **ret);

/** groups_destroy - nobody waits, nothing is being asked for. NULL is fine. */
void groups_destroy(struct groups *g);

/** groups_of - put the groups of c->uid into @c
 * @now: CLOCK_MONOTONIC
 * @client: that the call came from
 * @w: w->fn is called when there is more to know; not before this has returned
 *
 * A user whom this host does not know has none but the one he calls with, and so has everybody
 * without memory.
 *
 * Return: true; false: they are not known yet, w->fn() will be called.
 */
bool must_check groups_of(struct groups *g, uint64_t now, struct client *client, struct creds *c,
			  struct groups_wait *w);

/** groups_leave - @w, which waits, does not wait any more; a lookup for it alone that has not begun is cancelled */
void groups_leave(struct groups_wait *w);

/** groups_answered - e->answer is there */
void groups_answered(struct groups_entry *e, uint64_t now);

/** groups_asking - how many lookups are under way? 0: none is queued either */
unsigned groups_asking(const struct groups *g);

/** groups_count - how many users are known, queued or being asked for */
unsigned groups_count(const struct groups *g);

/** groups_ask - what the user database says; it may take its time
 *
 * Return: as in struct groups_answer.
 */
struct groups_answer groups_ask(uint32_t uid);

#endif
