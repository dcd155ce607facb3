/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * groups.h - the groups of a user from this host's database, instead of the 16 of AUTH_SYS
 *
 * Invariants: an entry is neither moved nor freed while it is queued, being looked up, or a request waits
 *             for it. A waiting request is notified exactly once, unless it calls groups_leave().
 */
#ifndef LEAT_SERVER_GROUPS_H
#define LEAT_SERVER_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/util.h"
#include "client.h"
#include "creds.h"
#include "worker.h"

struct groups;
struct groups_share;

/* One user. Owned by the cache; while `asking`, `answer` belongs to the ask() of groups_create(). */
struct groups_entry {
	struct groups *cache;
	struct hash_node node; /* cache->by_uid */
	struct list link;    /* share->idle or share->queue */
	struct list waiting; /* struct groups_wait */
	struct groups_share *share;	/* share of the owner: the last client that had the user looked up */
	struct rpcrdma_client_id other; /* the last client that used the entry without owning it */
	bool has_other;
	struct client *client; /* the client of the lookup, referenced; NULL: neither queued nor asking */
	uint32_t uid;
	bool known;
	bool queued; /* in share->queue */
	bool asking; /* ask() was called */
	uint64_t ask_ns;  /* after this time the entry is used, but looked up again */
	uint64_t wait_ns; /* after this time it is not used before the lookup has finished */
	uint32_t n;
	uint32_t *groups;
	struct worker_job job; /* for the implementation of ask() */
	struct groups_answer {
		int err; /* 0; -ENOENT: no such user; -errno: the lookup failed */
		uint32_t n;
		uint32_t *groups; /* malloc'ed, or NULL */
	} answer;
};

struct groups_wait {
	struct list link;
	struct groups_entry *entry;
	void (*fn)(struct groups_wait *w); /* call groups_of() again */
};

/** groups_create - creates an empty cache, for one reactor; release it with groups_destroy()
 * @ask: fills in e->answer and calls groups_answered(), later; it may block. The work is done for e->client, which
 * exists until then
 *
 * Return: 0, -ENOMEM.
 */
int must_check groups_create(void (*ask)(void *ctx, struct groups_entry *e), void *ctx, struct groups **ret);

/** groups_destroy - no request may wait, and no lookup may be in progress. NULL is fine. */
void groups_destroy(struct groups *g);

/** groups_of - puts the groups of c->uid into @c
 * @now: CLOCK_MONOTONIC
 * @client: client of the call
 * @w: w->fn is called when the result has changed; not before this function has returned
 *
 * A user unknown to this host has only the primary group of the call. Without memory, so has every user.
 *
 * Return: true; false: not yet known, w->fn() will be called.
 */
bool must_check groups_of(struct groups *g, uint64_t now, struct client *client, struct creds *c,
			  struct groups_wait *w);

/** groups_leave - ends the wait of @w; a lookup for it alone that has not begun is cancelled */
void groups_leave(struct groups_wait *w);

/** groups_answered - call when e->answer is filled in */
void groups_answered(struct groups_entry *e, uint64_t now);

/** groups_asking - number of lookups in progress; 0: none is queued either */
unsigned groups_asking(const struct groups *g);

/** groups_count - number of users that are known, queued or being looked up */
unsigned groups_count(const struct groups *g);

/** groups_ask - queries the user database; may block
 *
 * Return: as in struct groups_answer.
 */
struct groups_answer groups_ask(uint32_t uid);

#endif
