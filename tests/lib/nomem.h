/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nomem.h - lets the Nth allocation fail, for programs that are linked with $(NOMEM) of tests/build.mk
 */
#ifndef NOMEM_H
#define NOMEM_H

#include <stdbool.h>
#include <stddef.h>

/* Allocations of this thread */
extern _Thread_local unsigned long nomem_countdown; /* to the one that fails; 0: none does */
extern _Thread_local bool nomem_failed;             /* one has */
extern _Thread_local size_t nomem_bytes;            /* all of that many bytes fail, and are not counted; 0: none */

/* Decides instead of them; any thread. NULL: none */
extern bool (*nomem_decide)(void);

/** nomem_fails - counts an operation of @bytes, also one that is no allocation; Return: it has to fail */
bool nomem_fails(size_t bytes);

#endif
