/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_watch.h - what clients and the manager of a volume send, for programs that are linked with $(VOLUME_WATCH) of
 * tests/build.mk
 */
#ifndef VOLUME_WATCH_H
#define VOLUME_WATCH_H

#include <stdatomic.h>

/* Any thread. */
extern struct volume_watch {
	atomic_bool is_silent; /* no report is sent */
	atomic_uint stats;     /* commands that asked for the length of an object */
	atomic_int failure;    /* of the next such command, which is not sent; 0: none */
	void (*_Atomic sent)(void);    /* runs before one is sent; NULL: does not */
	void (*_Atomic replied)(void); /* the same, when a reply is there */
} volume_watch;

#endif
