/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * piece.h - one piece of a payload in flight: the interface for place.c
 */
#ifndef LEAT_SERVER_PIECE_H
#define LEAT_SERVER_PIECE_H

#include "place.h"

/** piece_run - runs the state machine of @p until it has to wait */
void piece_run(struct place_piece *p);

/** piece_make_ready - queues @p for place_run() */
void piece_make_ready(struct place_piece *p);

/** piece_wake_all - makes the pieces ready that are in @state and have no operation in flight */
void piece_wake_all(struct place *pl, enum place_state state);

/** piece_free - recycles @p and releases its own buffer; it has ended, or never began */
void piece_free(struct place_piece *p);

#endif
