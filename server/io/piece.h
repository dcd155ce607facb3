/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * piece.h - one piece of a payload on its way: what place.c does with it
 */
#ifndef LEAT_SERVER_PIECE_H
#define LEAT_SERVER_PIECE_H

#include "place.h"
#include "req.h"

static inline struct place *place_of(const struct place_piece *p)
{
	return &p->req->place;
}

/** piece_run - go on with it as far as it goes */
void piece_run(struct place_piece *p);

/** piece_make_ready - place_run() is to go on with it */
void piece_make_ready(struct place_piece *p);

/** piece_wake_all - make those ready that wait in @state, for nothing of their own */
void piece_wake_all(struct place *pl, enum place_state state);

/** piece_free - it is over, or never was: recycle it, with a buffer of its own */
void piece_free(struct place_piece *p);

#endif
