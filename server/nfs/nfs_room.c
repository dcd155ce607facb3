/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_room.c - how many bytes of READs and WRITEs on a reactor may wait for other servers at a time
 *
 * Operation: The manager of a volume moves data by calls to stripe servers. One of them may be this leatd, and needs buffers
 *            of the same pool for them. So requests that wait for stripe servers hold a quarter of the pool at most. They
 *            wait for their turn before they take a buffer: what waits here holds nothing. A client may have as many bytes
 *            as it leaves free, so that there is room for others.
 * Memory:    Part of the reactor and of the request.
 * Threads:   The reactor's.
 * Errors:    None.
 */
#include "nfs_room.h"

#include <errno.h>

#include "client.h"
#include "nfs.h"

#define ROOM_MOST ((size_t)16 << 20) /* more in flight than the budgets of libleat would wait there */
#define ROOM_PART 4u		     /* of the pool */

static struct client_admission *share_of(const struct req *r)
{
	return &r->conn->client->admission[r->reactor->idx];
}

static bool fits(const struct req *r)
{
	const struct nfs_room *room = &nfs_reactor(r->reactor)->room;
	size_t bytes = nfs_call(r)->room.bytes, mine = share_of(r)->room;

	if (!room->used)
		return true;
	return room->used + bytes <= room->max && (!mine || mine + bytes <= room->max - room->used);
}

static void take(struct req *r)
{
	struct nfs_room_use *u = &nfs_call(r)->room;

	u->held = true;
	nfs_reactor(r->reactor)->room.used += u->bytes;
	share_of(r)->room += u->bytes;
}

size_t nfs_room_max(size_t pool, unsigned nreactors)
{
	return MIN(ROOM_MOST, pool / ROOM_PART / MAX(nreactors, 1u));
}

void nfs_room_init(struct nfs_room *room, size_t max)
{
	list_init(&room->waiting);
	room->used = 0;
	room->max = max;
}

int nfs_room_enter(struct req *r, uint32_t bytes)
{
	struct nfs_room *room = &nfs_reactor(r->reactor)->room;
	struct nfs_room_use *u = &nfs_call(r)->room;

	if (u->held || !bytes)
		return 0;
	u->bytes = bytes;
	if (list_is_empty(&room->waiting) && fits(r)) {
		take(r);
		return 0;
	}
	list_add_tail(&room->waiting, &u->link);
	nfs_count(r->reactor, volume_waits);
	return -EINPROGRESS;
}

/* Those that may go now, in their order. Others wait on behind them. */
static void resume(struct nfs_room *room)
{
	bool again;

	do {
		again = false;
		list_for_each_safe(n, &room->waiting) {
			struct req *r = list_entry(n, struct nfs_call, room.link)->req;

			if (!fits(r))
				continue;
			list_del(n);
			take(r);
			req_resume(r); /* it may change the list */
			again = true;
			break;
		}
	} while (again);
}

bool nfs_room_cancel(struct req *r)
{
	struct nfs_room_use *u = &nfs_call(r)->room;

	if (!list_is_linked(&u->link))
		return false;
	list_del(&u->link);
	return true;
}

void nfs_room_leave(struct req *r)
{
	struct nfs_room *room = &nfs_reactor(r->reactor)->room;
	struct nfs_room_use *u = &nfs_call(r)->room;

	if (!u->held)
		return;
	u->held = false;
	room->used -= u->bytes;
	share_of(r)->room -= u->bytes;
	u->bytes = 0;
	resume(room);
}
