/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nomem_server.h - lets the Nth allocation of a server in this process fail: of its threads while it serves, or of the thread
 * that starts or reloads it. For programs that are linked with $(NOMEM_SERVER) of tests/build.mk
 */
#ifndef NOMEM_SERVER_H
#define NOMEM_SERVER_H

#include <stdbool.h>

/** nomem_server_init - the calling thread is the test's: its allocations are not the server's */
void nomem_server_init(void);

/** nomem_server_at_start - the Nth allocation of the next starts and reloads fails; 0: none does */
void nomem_server_at_start(unsigned long n);

/** nomem_server_serving - the Nth allocation of threads that serve fails; 0: none does */
void nomem_server_serving(unsigned long n);

/** nomem_server_failed - has one failed since the last call of one of the others with a number? */
bool nomem_server_failed(void);

#endif
