/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * toy_rig.h - tests of the toy block program, over any transport
 *
 * Include it behind <cmocka.h>. Each test has a server and a client of its own in this process.
 */
#ifndef TOY_RIG_H
#define TOY_RIG_H

/* Where the server listens: "tcp://127.0.0.1:0"; NULL: on the local fabric, in a temporary directory */
extern const char *toy_rig_url;

#define TOY_RIG_TESTS 13

/* Round trips, whole and with overlap, in pieces that are in the store together; a WRITE that is sent again is executed
 * once, and gets the reply that was kept; errors of the disk and bad arguments have the program's own status; requests
 * wait for buffers, and in the program until another one has opened the file. */
extern const struct CMUnitTest toy_rig_tests[TOY_RIG_TESTS];

#endif
