/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * admit.h - slots of a reactor: which requests are in progress and which wait
 *
 * Operation:  A request holds a slot while the server itself works on it. Slots are shared fairly between clients,
 *             and between the connections of a client. Waiting requests get slots in the same fair order (fair.h).
 * Memory:     Requests are linked, nothing is allocated.
 * Threads:    The reactor's.
 * Errors:     None: without a free slot the request is queued.
 */
#ifndef LEAT_SERVER_ADMIT_H
#define LEAT_SERVER_ADMIT_H

#include <stdbool.h>

#include "base/util.h"

struct reactor;
struct req;

/** admit_enter - takes a slot for @r, or queues it; admit_next() calls req_run() when it gets its slot
 *
 * Return: true if @r has a slot.
 */
bool admit_enter(struct req *r);

/** admit_cancel - takes @r out of the queue; Return: whether it was queued */
bool must_check admit_cancel(struct req *r);

/** admit_now - takes a slot for @r even if no slot is free */
void admit_now(struct req *r);

/** admit_leave - releases the slot of @r, if it has one; the caller calls admit_next() afterwards */
void admit_leave(struct req *r);

/** admit_next - gives free slots to waiting requests and runs them */
void admit_next(struct reactor *re);

#endif
