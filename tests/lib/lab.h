/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lab.h - attributes for tests, in one expression: { .lab = LAB(.modes = RPCRDMA_MODES_ALL) }
 */
#ifndef TESTS_LAB_H
#define TESTS_LAB_H

#include "rpcrdma.h"
#include "rpcrdma_lab.h"

/* It lives as long as the enclosing block, or at file scope for ever. */
#define LAB(...) (&(const struct rpcrdma_lab){ __VA_ARGS__ })

#endif
