/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_object.h - an object of a stripe server in this process: what it holds, and what its disk is made to do
 *
 * Asserts what it says. Programs are linked with -Wl,$(HELD_STRIPES) (tests/build.mk).
 */
#ifndef TESTS_FLOW_STRIPE_OBJECT_H
#define TESTS_FLOW_STRIPE_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "held_writes.h"
#include "stripe_rig.h"

#define STRIPE_CACHED "read=cached,write=cached"

extern uint8_t data[(1 << 20) + 4]; /* what is written: no two places alike */
extern uint8_t mem[1 << 20];        /* what is read */
extern stripe_name object;

extern atomic_uint syncs;      /* of fsync() until now */
extern atomic_bool syncs_fail; /* with EIO */
extern _Atomic uint64_t ahead; /* seconds of the server's clock */

/** object_group - a setup for the group: fills `data`; connections without calls stay, however slow the machine is */
int object_group(void **state);

/** object_start - a server with STRIPE_CACHED, and @c connected to it with a handle of `object` */
void object_start(struct stripe_client *c);
void object_stop(struct stripe_client *c);

/** object_restart - another server with the same directory, and @c connected to it */
void object_restart(struct stripe_client *c);

/** object_see - a READ of @count bytes at @off returns the first @bytes of @want, and the end if these are fewer */
void object_see(struct stripe_client *c, uint64_t off, const uint8_t *want, uint32_t bytes, uint32_t count);

/** object_stat - what STAT says of `object` */
stripe_stat object_stat(struct stripe_client *c);

/** object_hold_write - begins a WRITE of 3,000 bytes of @from at 0, and waits until it is held: held_writes_end(1) lets it go */
void object_hold_write(struct stripe_client *c, struct stripe_rig_call *call, const uint8_t *from);

/** object_hold_sync - the next fsync() waits */
void object_hold_sync(void);
void object_wait_sync_held(void);
void object_let_sync_go(void);

/** object_count_from - object_wait_counted() looks at this counter of the server */
void object_count_from(const char *counter);

/** object_wait_counted - until the counter is higher than it was; also if @call, which should wait, is done, or a second
 * write has begun: then the test fails */
void object_wait_counted(struct stripe_rig_call *call);

/** object_soon - a time in seconds that is not up while the test runs */
uint64_t object_soon(void);

#endif
