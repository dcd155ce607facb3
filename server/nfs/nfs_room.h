/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_room.h - how many bytes of READs and WRITEs on a reactor may wait for other servers at a time
 */
#ifndef LEAT_SERVER_NFS_ROOM_H
#define LEAT_SERVER_NFS_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/util.h"

struct req;

/* Of a reactor. */
struct nfs_room {
	size_t max, used; /* bytes */
	struct list waiting; /* nfs_call.room.link */
};

/* Of a request. */
struct nfs_room_use {
	struct list link; /* it waits */
	uint32_t bytes; /* wanted or held; 0: none */
	bool held;
};

/** nfs_room_max - computes the limit of a reactor; @pool: bytes of buffers that all reactors have */
size_t nfs_room_max(size_t pool, unsigned nreactors);

/** nfs_room_init - nothing is used yet */
void nfs_room_init(struct nfs_room *room, size_t max);

/** nfs_room_enter - takes @bytes for the request, before it has buffers for them
 * Return: 0: also if it has them; -EINPROGRESS: req_resume() follows, then call it again
 */
int must_check nfs_room_enter(struct req *r, uint32_t bytes);

/** nfs_room_cancel - ends the wait; Return: false: it does not wait */
bool nfs_room_cancel(struct req *r);

/** nfs_room_leave - returns what the request has: it waits for no other server any more. It may have nothing */
void nfs_room_leave(struct req *r);

#endif
