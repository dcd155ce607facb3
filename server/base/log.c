/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * log.c - the level at which leatd, or a test with a server in it, speaks
 *
 * Operation: a file of its own, so that a test may bring another one.
 * Memory:    one variable.
 * Threads:   set before others start, read by all.
 * Errors:    none.
 */
#include "base/log.h"

LOG_DEFINE("leatd");
