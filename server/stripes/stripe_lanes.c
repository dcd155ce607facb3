/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_lanes.c - the connections by which calls come, so that nothing late is executed
 *
 * Operation: A hash table has the lanes. A lane is in the list of its connection, or without a connection and changes in
 *            the list of idle ones, from which the oldest is freed when there are too many: one of the client that needs
 *            the place, if that has its share, else one of the client that has most. Clients are buckets of a hash.
 * Memory:    Lanes belong to the table.
 * Threads:   Any, under the lock of the table.
 * Errors:    As stripe_lanes.h says for each function.
 */
#include "stripe_lanes.h"

#include <errno.h>
#include <stdlib.h>

struct stripe_lane_state {
	struct hash_node node;	/* lanes->table */
	struct list link;	/* conn->lanes or its bucket's idle; in neither while it has changes only */
	uint64_t instance;
	uint32_t slot;
	unsigned bucket;	/* of its client */
	struct lane lane;
	struct list waiters;	/* struct req_waiter */
};

struct stripe_conn {
	struct conn *conn;
	unsigned bucket; /* of its client */
	struct list lanes;
};

/* ---- the table ------------------------------------------------------------------------------ */

int stripe_lanes_init(struct stripe_lanes *l)
{
	struct siphash_key key;
	int err = siphash_key_random(&key);

	if (!err)
		err = hash_init(&l->table, STRIPE_LANES_CLIENT);
	if (err)
		return err;
	l->key = key;
	for (unsigned i = 0; i < STRIPE_LANES_BUCKETS; i++)
		list_init(&l->buckets[i].idle);
	pthread_mutex_init(&l->lock, NULL);
	return 0;
}

static void free_lane(struct stripe_lanes *l, struct stripe_lane_state *lane)
{
	list_del(&lane->link);
	hash_del(&l->table, &lane->node);
	l->buckets[lane->bucket].n--;
	free(lane);
}

static uint64_t hash_of(const struct stripe_lanes *l, uint64_t instance, uint32_t slot)
{
	const uint64_t key[2] = { instance, slot };

	return siphash(&l->key, key, sizeof(key));
}

static struct stripe_lane_state *find_lane(const struct stripe_lanes *l, uint64_t instance, uint32_t slot)
{
	struct hash_node *n = hash_first(&l->table, hash_of(l, instance, slot));

	for (; n; n = hash_next(n)) {
		struct stripe_lane_state *lane = container_of(n, struct stripe_lane_state, node);

		if (lane->instance == instance && lane->slot == slot)
			return lane;
	}
	return NULL;
}

/* Forgets the lane of a bucket that was idle longest. Return: false: none is idle */
static bool forget_lane(struct stripe_lanes *l, unsigned bucket)
{
	if (list_is_empty(&l->buckets[bucket].idle))
		return false;
	free_lane(l, list_first_entry(&l->buckets[bucket].idle, struct stripe_lane_state, link));
	return true;
}

/* Forgets one of the client that has most. */
static bool forget_any(struct stripe_lanes *l)
{
	unsigned most = 0;

	for (unsigned i = 1; i < STRIPE_LANES_BUCKETS; i++) {
		if (!list_is_empty(&l->buckets[i].idle) &&
		    (list_is_empty(&l->buckets[most].idle) || l->buckets[i].n > l->buckets[most].n))
			most = i;
	}
	return forget_lane(l, most);
}

void stripe_lanes_fini(struct stripe_lanes *l)
{
	if (!l->table.chains)
		return;
	for (unsigned i = 0; i < STRIPE_LANES_BUCKETS; i++) {
		while (forget_lane(l, i))
			;
	}
	hash_fini(&l->table);
	pthread_mutex_destroy(&l->lock);
}

static struct stripe_lane_state *add_lane(struct stripe_lanes *l, const stripe_lane *lane, const struct stripe_conn *conn)
{
	struct stripe_lane_state *new;

	if (l->buckets[conn->bucket].n >= STRIPE_LANES_CLIENT && !forget_lane(l, conn->bucket))
		return NULL;
	if (l->table.n >= STRIPE_LANES_MAX && !forget_any(l))
		return NULL;
	new = calloc(1, sizeof(*new));
	if (!new)
		return NULL;
	new->instance = lane->instance;
	new->slot = lane->slot;
	new->bucket = conn->bucket;
	l->buckets[new->bucket].n++;
	list_init(&new->link);
	list_init(&new->waiters);
	hash_add(&l->table, &new->node, hash_of(l, lane->instance, lane->slot));
	return new;
}

/* ---- connections ---------------------------------------------------------------------------- */

struct stripe_conn *stripe_conn_new(const struct stripe_lanes *l, struct conn *conn)
{
	struct stripe_conn *c = calloc(1, sizeof(*c));
	struct rpcrdma_client_id id;
	uint64_t words[3];

	if (!c)
		return NULL;
	rpcrdma_client_id_of(&conn->peer, &id);
	words[0] = (uint64_t)id.kind;
	words[1] = id.scope;
	words[2] = id.key;
	c->bucket = (unsigned)(siphash(&l->key, words, sizeof(words)) % STRIPE_LANES_BUCKETS);
	c->conn = conn;
	list_init(&c->lanes);
	return c;
}

/* The lane has lost its connection or its last change. */
static void rest_lane(struct stripe_lanes *l, struct stripe_lane_state *lane)
{
	if (lane->lane.conn || lane->lane.live || lane->lane.before)
		return;
	list_del(&lane->link);
	list_add_tail(&l->buckets[lane->bucket].idle, &lane->link);
}

void stripe_conn_end(struct stripe_lanes *l, struct stripe_conn *c)
{
	struct list *n;

	if (!c)
		return;
	pthread_mutex_lock(&l->lock);
	while ((n = list_pop(&c->lanes)) != NULL) {
		struct stripe_lane_state *lane = list_entry(n, struct stripe_lane_state, link);

		lane->lane.conn = NULL;
		rest_lane(l, lane);
	}
	pthread_mutex_unlock(&l->lock);
	free(c);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static int try_enter(struct stripe_lanes *l, const stripe_lane *lane, struct stripe_conn *conn, bool changes,
		     struct req_waiter *w, struct stripe_pass *ret)
{
	struct stripe_lane_state *s = find_lane(l, lane->instance, lane->slot);

	if (!s)
		s = add_lane(l, lane, conn);
	if (!s)
		return -EAGAIN;
	if (lane_is_older(&s->lane, lane->incarnation, conn->conn))
		return -ECONNABORTED;
	if (lane->incarnation > s->lane.incarnation) {
		lane_bind(&s->lane, lane->incarnation, conn->conn);
		list_del(&s->link);
		list_add_tail(&conn->lanes, &s->link);
	}
	if (s->lane.before) {
		list_add_tail(&s->waiters, &w->link);
		return -EINPROGRESS;
	}
	s->lane.live += changes;
	*ret = (struct stripe_pass){ .lane = changes ? s : NULL, .incarnation = lane->incarnation };
	return 0;
}

int stripe_lane_enter(struct stripe_lanes *l, const stripe_lane *lane, struct stripe_conn *conn, bool changes,
		      struct req_waiter *w, struct stripe_pass *ret)
{
	int err;

	if (lane->slot >= STRIPE_LANES_SLOTS || !lane->incarnation)
		return -EINVAL;
	pthread_mutex_lock(&l->lock);
	err = try_enter(l, lane, conn, changes, w, ret);
	pthread_mutex_unlock(&l->lock);
	return err;
}

void stripe_lane_leave(struct stripe_lanes *l, struct stripe_pass *pass)
{
	struct stripe_lane_state *s = pass->lane;

	if (!s)
		return;
	pass->lane = NULL;
	pthread_mutex_lock(&l->lock);
	if (lane_leave(&s->lane, pass->incarnation))
		req_wake(&s->waiters);
	rest_lane(l, s);
	pthread_mutex_unlock(&l->lock);
}
