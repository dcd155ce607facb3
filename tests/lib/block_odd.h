/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_odd.h - for tests of clients of block volumes that do as they like: a server over the local fabric or TCP, any
 *               call, and another client that has to be served afterwards
 *
 * Include it behind <cmocka.h>.
 */
#ifndef BLOCK_ODD_H
#define BLOCK_ODD_H

#include "block_rig.h"

#define PLAIN "read=cached,write=cached"
#define TEXT(s) ((char *)(uintptr_t)(s))

extern uint8_t odd_data[1 << 20], odd_mem[3 << 20];
extern bool odd_tcp; /* servers that are started use TCP */

/** odd_start, odd_end - the server, with the volume "vol" of @spec
 * @other: another volume's spec, or NULL
 */
void odd_start(const char *spec, const char *other);
void odd_end(void);

/** odd_attach - attaches to "vol", which must succeed */
void odd_attach(struct block_client *c, const char *holder, unsigned flags);

/** odd_served - a client of another process takes "vol" over, writes, reads, and leaves */
void odd_served(void);

/** odd_untouched - the first bytes of the file "a" have not been written */
void odd_untouched(void);

/** odd_one - a call with a handle; WRITE sends from odd_data, READ reads to odd_mem; Return: status */
block_status odd_one(struct block_client *c, uint32_t proc, uint64_t off, uint64_t bytes);

/** odd_each - each procedure with a handle must return @want */
void odd_each(struct block_client *c, block_status want);

/* For cmocka */
int odd_local(void **state);
int odd_over_tcp(void **state);
#define ODD_BOTH(fn) { #fn, fn, odd_local, NULL, NULL }, { #fn " over TCP", fn, odd_over_tcp, NULL, NULL }

#endif
