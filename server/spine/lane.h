/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lane.h - a slot of a client: the connection by which its calls come now, and changes that have begun
 *
 * A client numbers the connections of a slot: the incarnation. A newer one closes the older one. A program lets no call of
 * an older one begin, and calls of the newer one wait until the changes that had begun by older ones have ended. So a call
 * that exists twice, since it was sent again, never changes anything behind a newer call of its lane.
 *
 * Threads: any, under a lock of the program, which its closed() takes, too (prog.h).
 */
#ifndef LEAT_SERVER_LANE_H
#define LEAT_SERVER_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "conn.h"

struct lane {
	uint32_t incarnation; /* the newest; 0: none yet */
	struct conn *conn;    /* of it; NULL: it has ended */
	unsigned live;	      /* changes in progress that came by it */
	unsigned before;      /* ... by older ones */
};

/** lane_is_older - is there a newer incarnation, or another connection of this one? */
static inline bool lane_is_older(const struct lane *l, uint32_t incarnation, const struct conn *conn)
{
	return incarnation < l->incarnation || (incarnation == l->incarnation && l->conn != conn);
}

/** lane_bind - a newer incarnation begins; closes the connection of the older one, unless it is @conn */
static inline void lane_bind(struct lane *l, uint32_t incarnation, struct conn *conn)
{
	if (l->conn && l->conn != conn)
		(void)conn_close(l->conn);
	l->before += l->live;
	l->live = 0;
	l->incarnation = incarnation;
	l->conn = conn;
}

/** lane_leave - a change that began by @incarnation has ended; Return: true: it was the last one of older incarnations */
static inline bool lane_leave(struct lane *l, uint32_t incarnation)
{
	if (incarnation != l->incarnation)
		return !--l->before;
	l->live--;
	return false;
}

#endif
