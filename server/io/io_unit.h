/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * io_unit.h - one unit of a payload in flight: the interface for place.c
 */
#ifndef LEAT_SERVER_IO_UNIT_H
#define LEAT_SERVER_IO_UNIT_H

#include "place.h"

/** unit_run - runs the state machine of @p until it has to wait */
void unit_run(struct io_unit *p);

/** unit_make_ready - queues @p for place_run() */
void unit_make_ready(struct io_unit *p);

/** unit_wake_all - makes the units ready that are in @state and have no operation in flight */
void unit_wake_all(struct place *pl, enum unit_state state);

/** unit_free - recycles @p and releases its own buffer; it has ended, or never began */
void unit_free(struct io_unit *p);

#endif
