/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * admit.h - slots of a reactor: which requests the server works on, and which wait
 *
 * Operation:  A request has a slot while the server itself works on it. Slots are shared out between clients,
 *             and inside a client between its connections; requests that wait for one take turns in the same
 *             way (fair.h).
 * Memory:     Requests are linked, nothing is allocated.
 * Threads:    The reactor's.
 * Errors:     None: shortage is a queue.
 */
#ifndef LEAT_SERVER_ADMIT_H
#define LEAT_SERVER_ADMIT_H

#include <stdbool.h>

#include "base/util.h"

struct reactor;
struct req;

/** admit_enter - takes a slot for @r, or has it wait for one: then req_run() comes
 *
 * Return: it has a slot.
 */
bool admit_enter(struct req *r);

/** admit_cancel - @r does not wait for a slot any more; Return: whether it did */
bool must_check admit_cancel(struct req *r);

/** admit_now - takes a slot for @r even if there is none */
void admit_now(struct req *r);

/** admit_leave - gives the slot of @r back, if it has one; admit_next() follows */
void admit_leave(struct req *r);

/** admit_next - runs those who wait and may have a slot now */
void admit_next(struct reactor *re);

#endif
