/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_lanes.c - the connections by which the calls of an attachment come, and which of the calls may begin
 *
 * Operation: A call begins under the lock of its volume, if its handle has the generation of the attachment in force,
 *            and its lane the newest incarnation. So after block_fence(), or after a call of a newer connection has
 *            been here, nothing begins that was sent before. A newer connection closes the older one, and its calls
 *            wait until the changes that came by the older one have ended: a retransmitted call may exist twice, but
 *            no copy reaches the disk after a newer call of its lane has begun.
 *            An ATTACH has no attachment yet, so each volume remembers the lanes by which the last ones came. If it has
 *            forgotten connections of its client that are newer than that of an ATTACH, and does not know the lane, it
 *            closes the connection: many lanes of one client cost it connections, but no late copy is executed.
 *            A holder is silent when no connection of its lanes is up. An attachment that has ended keeps its connections,
 *            until its last operation has ended, so that block_cut() can close them: a peer that never moves the data
 *            of a call would keep that operation for ever.
 * Memory:    A connection keeps a list of the lanes that it serves, so that they learn of its end.
 * Threads:   Reactors; the volume's lock. A connection's list belongs to its reactor, and to block_conn_end() afterwards.
 * Errors:    As block_lanes.h says for each function.
 */
#include "block_lanes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "block_holders.h"
#include "reactor.h"

#define LANES_OF_CONN_MAX 1024u

/* A lane that came by a connection; it may have gone since. */
struct lane_ref {
	struct block_volume *v;
	uint64_t number, generation;
	uint32_t slot;
};

struct block_conn {
	struct conn *conn;
	uint64_t serial; /* connections are numbered in the order in which they were accepted */
	struct rpcrdma_client_id client;
	struct lane_ref *lanes;
	size_t nlanes, cap;
};

/* ---- connections -------------------------------------------------------------------------- */

struct block_conn *block_conn_new(struct conn *conn)
{
	static _Atomic uint64_t serials;
	struct block_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->conn = conn;
	c->serial = atomic_fetch_add(&serials, 1) + 1;
	rpcrdma_client_id_of(&conn->peer, &c->client);
	return c;
}

/* Does the lane still have this connection, in force or with operations? Under the lock. */
static struct block_attachment *lane_of(const struct lane_ref *r, const struct block_conn *c)
{
	struct block_attachment *a = block_find_number(r->v, r->number);

	if (!a || a->generation != r->generation)
		a = block_find_ended(r->v, r->generation);
	return a && a->lanes[r->slot].conn == c->conn ? a : NULL;
}

void block_conn_end(struct block_conn *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nlanes; i++) {
		struct lane_ref *r = &c->lanes[i];
		struct block_attachment *a;

		pthread_mutex_lock(&r->v->lock);
		a = lane_of(r, c);
		if (a) {
			a->lanes[r->slot].conn = NULL;
			if (!--a->conns)
				a->silent_ns = clock_now_ns();
		}
		pthread_mutex_unlock(&r->v->lock);
		block_volume_put(r->v);
	}
	free(c->lanes);
	free(c);
}

void block_cut(struct block_volume *v)
{
	list_for_each(node, &v->ending) {
		const struct block_attachment *a = list_entry(node, struct block_attachment, link);

		for (unsigned i = 0; i < BLOCK_LANES_MAX; i++) {
			if (a->lanes[i].conn)
				(void)conn_close(a->lanes[i].conn);
		}
	}
}

/* Forgets lanes that have gone or have another connection. */
static void forget_lanes(struct block_conn *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->nlanes; i++) {
		struct lane_ref r = c->lanes[i];
		bool keep;

		pthread_mutex_lock(&r.v->lock);
		keep = lane_of(&r, c) != NULL;
		pthread_mutex_unlock(&r.v->lock);
		if (keep)
			c->lanes[n++] = r;
		else
			block_volume_put(r.v);
	}
	c->nlanes = n;
}

/* Makes room for one more lane. Return: 0, -EAGAIN */
int block_reserve(struct block_conn *c)
{
	size_t cap = MAX(c->cap * 2, (size_t)4);
	void *mem;

	if (c->nlanes < c->cap)
		return 0;
	forget_lanes(c);
	if (c->nlanes < c->cap)
		return 0;
	mem = cap > LANES_OF_CONN_MAX ? NULL : realloc(c->lanes, cap * sizeof(*c->lanes));
	if (!mem)
		return -EAGAIN;
	c->lanes = mem;
	c->cap = cap;
	return 0;
}

/* ---- operations --------------------------------------------------------------------------- */

/* The lane has a new connection. */
void block_bind(struct block_volume *v, struct block_attachment *a, const block_lane *lane, struct block_conn *conn)
{
	struct lane *l = &a->lanes[lane->slot];
	bool is_new = l->conn != conn->conn;

	if (!l->conn)
		a->conns++;
	lane_bind(l, lane->incarnation, conn->conn);
	if (is_new)
		conn->lanes[conn->nlanes++] =
			(struct lane_ref){ .v = block_volume_hold(v), .number = a->number, .generation = a->generation,
					   .slot = lane->slot };
}

bool block_is_older(const struct block_attachment *a, const block_lane *lane, const struct block_conn *conn)
{
	return a->instance == lane->instance && lane_is_older(&a->lanes[lane->slot], lane->incarnation, conn->conn);
}

bool block_was_seen(struct block_volume *v, const block_lane *lane, const struct block_conn *conn)
{
	return block_seen_note(&v->seen, lane, &conn->client, conn->serial);
}

bool block_is_forgotten(const struct block_volume *v, const block_lane *lane, struct block_conn *conn)
{
	if (!block_seen_lacks(&v->seen, lane, &conn->client, conn->serial))
		return false;
	(void)conn_close(conn->conn);
	return true;
}

/* Return: 0, and @pass is filled in; -EINPROGRESS; -ECONNABORTED; -ENOBUFS: @conn has no room for the lane */
static int enter_lane(struct block_volume *v, struct block_attachment *a, const block_lane *lane, struct block_conn *conn,
		      bool changes, struct block_pass *pass)
{
	struct lane *l = &a->lanes[lane->slot];

	if (block_is_older(a, lane, conn))
		return -ECONNABORTED;
	if (lane->incarnation > l->incarnation) {
		if (l->conn != conn->conn && conn->nlanes == conn->cap)
			return -ENOBUFS;
		block_bind(v, a, lane, conn);
	}
	if (l->before)
		return -EINPROGRESS;
	l->live += changes;
	a->live++;
	*pass = (struct block_pass){ .a = a, .slot = lane->slot, .incarnation = lane->incarnation, .changes = changes };
	return 0;
}

static int try_enter(struct block_volume *v, const struct block_id *id, const block_lane *lane, struct block_conn *conn,
		     bool changes, struct req_waiter *w, struct block_pass *pass)
{
	struct block_attachment *a;
	int err;

	pthread_mutex_lock(&v->lock);
	a = block_find_number(v, id->number);
	if (!a || a->generation != id->generation)
		err = -ESTALE;
	else if (a->instance != lane->instance)
		err = -EINVAL;
	else if (changes && a->rdonly)
		err = -EROFS;
	else
		err = enter_lane(v, a, lane, conn, changes, pass);
	if (err == -EINPROGRESS)
		list_add_tail(&a->waiters, &w->link);
	pthread_mutex_unlock(&v->lock);
	return err;
}

int block_enter(struct block_volume *v, const struct block_id *id, const block_lane *lane, struct block_conn *conn,
		bool changes, struct req_waiter *w, struct block_pass *pass)
{
	int err;

	if (lane->slot >= BLOCK_LANES_MAX || !lane->incarnation)
		return -EINVAL;
	err = try_enter(v, id, lane, conn, changes, w, pass);
	if (err != -ENOBUFS)
		return err;
	err = block_reserve(conn); /* not under the lock: it takes those of other volumes */
	return err ? err : try_enter(v, id, lane, conn, changes, w, pass);
}

void block_leave(struct block_volume *v, struct block_pass *pass)
{
	struct block_attachment *a = pass->a;

	if (!a)
		return;
	pass->a = NULL;
	pthread_mutex_lock(&v->lock);
	if (pass->changes && lane_leave(&a->lanes[pass->slot], pass->incarnation))
		req_wake(&a->waiters);
	if (!--a->live)
		block_free_fenced(v, a);
	pthread_mutex_unlock(&v->lock);
}
