/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_lanes.h - the connections by which the calls of an attachment come, and which of the calls may begin
 */
#ifndef LEAT_SERVER_BLOCK_LANES_H
#define LEAT_SERVER_BLOCK_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "block_volume.h"
#include "req.h"

/* A client's connection, as far as lanes came by it. On its reactor. */
struct block_conn;

/* What a handle says of its attachment. */
struct block_id {
	uint64_t volume, number, generation;
};

/* An operation that has begun. */
struct block_pass {
	struct block_attachment *a; /* NULL: it has not begun, or has ended */
	uint32_t slot, incarnation;
	bool changes;
};

/** block_enter - may a call begin? On the reactor of @conn
 * @changes: it changes the volume
 * @w: waits with -EINPROGRESS: the call may try again when it is resumed
 * @pass: begun: block_leave() follows when it has ended
 *
 * Return: 0; -EINPROGRESS; -ESTALE: the attachment has ended; -ECONNABORTED: a newer connection of the lane exists;
 * -EINVAL: not a lane of this attachment; -EROFS; -EAGAIN: no memory.
 */
int must_check block_enter(struct block_volume *v, const struct block_id *id, const block_lane *lane,
			   struct block_conn *conn, bool changes, struct req_waiter *w, struct block_pass *pass);

/** block_leave - the operation has ended; any thread. Does nothing if it has not begun. */
void block_leave(struct block_volume *v, struct block_pass *pass);

/** block_bind - the lane of an ATTACH: begins its incarnation in the new attachment; under the lock
 * block_reserve() has made room in @conn.
 */
void block_bind(struct block_volume *v, struct block_attachment *a, const block_lane *lane, struct block_conn *conn);
int must_check block_reserve(struct block_conn *conn);

/** block_is_older - has the attachment seen a newer connection of this lane, or another one of its incarnation? Under the
 * lock. False for another process. */
bool block_is_older(const struct block_attachment *a, const block_lane *lane, const struct block_conn *conn);

/** block_was_seen - has an ATTACH or DETACH come by a newer connection of this lane? Else it is noted as the newest. So a
 * late copy of an ATTACH is not executed either, when its attachment has ended already. Under the lock. */
bool block_was_seen(struct block_volume *v, const block_lane *lane, const struct block_conn *conn);

/** block_is_forgotten - may an ATTACH have come by a newer connection of this lane, which has been forgotten since? Then
 * the connection is closed: the call will come again by a new one, unless it is a late copy. Under the lock. */
bool block_is_forgotten(const struct block_volume *v, const block_lane *lane, struct block_conn *conn);

/* ---- connections ---- */

/** block_conn_new - for a new connection; NULL: no memory. block_conn_end() releases it. */
struct block_conn *block_conn_new(struct conn *conn);

/** block_cut - closes the connections of attachments that have ended and have operations, so that no operation waits for its
 * peer; under the lock */
void block_cut(struct block_volume *v);

/** block_conn_end - the connection has ended, and all of its calls; NULL is fine */
void block_conn_end(struct block_conn *c);

#endif
