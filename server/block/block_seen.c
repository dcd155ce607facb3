/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_seen.c - the lanes by which ATTACHes and DETACHes of a volume came
 *
 * Operation: A client may have as many entries as are still free. Beyond that its oldest one is replaced; a client that has
 *            none when the table is full replaces the oldest of all. Of lanes that were forgotten, the newest connection of
 *            their client is kept: a client opens a connection of a lane after the older one, so a call of an unknown lane
 *            by an older connection than that may be a late copy. Other clients are not concerned. That assumes that all
 *            connections of a lane come from one client; a host that changes its address is two.
 * Memory:    The table has a fixed size, whatever clients do.
 * Threads:   The volume's lock.
 * Errors:    None.
 */
#include "block_seen.h"

#include "client.h"

/* Return: its place in s->lanes; BLOCK_SEEN_MAX: none */
static unsigned find_lane(const struct block_seen *s, const block_lane *lane)
{
	unsigned i = 0;

	while (i < BLOCK_SEEN_MAX && (!s->lanes[i].lane.incarnation || s->lanes[i].lane.instance != lane->instance ||
				      s->lanes[i].lane.slot != lane->slot))
		i++;
	return i;
}

/* Return: that of @client, or one for it */
static struct block_forgotten *forgotten_of(struct block_seen *s, const struct rpcrdma_client_id *client)
{
	struct block_forgotten *f = &s->forgotten[0];

	for (unsigned i = 0; i < BLOCK_FORGOTTEN_MAX; i++) {
		if (s->forgotten[i].serial && client_id_same(&s->forgotten[i].client, client))
			return &s->forgotten[i];
		if (s->forgotten[i].serial < f->serial)
			f = &s->forgotten[i];
	}
	s->forgotten_serial = MAX(s->forgotten_serial, f->serial);
	*f = (struct block_forgotten){ .client = *client };
	return f;
}

static void forget(struct block_seen *s, struct block_seen_lane *l)
{
	struct block_forgotten *f = forgotten_of(s, &l->client);

	f->serial = MAX(f->serial, l->serial);
	l->serial = 0;
}

/* Return: the entry for another lane of @client */
static struct block_seen_lane *make_room(struct block_seen *s, const struct rpcrdma_client_id *client)
{
	struct block_seen_lane *room = NULL, *own = NULL, *any = &s->lanes[0];
	unsigned nown = 0;

	for (unsigned i = 0; i < BLOCK_SEEN_MAX; i++) {
		struct block_seen_lane *l = &s->lanes[i];

		if (!l->lane.incarnation) {
			room = l;
			continue;
		}
		if (client_id_same(&l->client, client)) {
			nown++;
			own = !own || l->turn < own->turn ? l : own;
		}
		any = l->turn < any->turn ? l : any;
	}
	if (room && nown + s->used < BLOCK_SEEN_MAX) {
		s->used++;
		return room;
	}
	own = own ? own : any;
	forget(s, own);
	return own;
}

bool block_seen_note(struct block_seen *s, const block_lane *lane, const struct rpcrdma_client_id *client,
		     uint64_t serial)
{
	unsigned i = find_lane(s, lane);
	struct block_seen_lane *l = i < BLOCK_SEEN_MAX ? &s->lanes[i] : NULL;

	if (l && lane->incarnation < l->lane.incarnation)
		return true;
	if (!l)
		l = make_room(s, client);
	*l = (struct block_seen_lane){ .lane = *lane, .client = *client, .serial = MAX(l->serial, serial), .turn = ++s->turns };
	return false;
}

bool block_seen_lacks(const struct block_seen *s, const block_lane *lane, const struct rpcrdma_client_id *client,
		      uint64_t serial)
{
	uint64_t newest = s->forgotten_serial;

	for (unsigned i = 0; i < BLOCK_FORGOTTEN_MAX; i++) {
		if (client_id_same(&s->forgotten[i].client, client))
			newest = MAX(newest, s->forgotten[i].serial);
	}
	return serial < newest && find_lane(s, lane) == BLOCK_SEEN_MAX;
}
