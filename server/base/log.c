/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * log.c - the log level of leatd, or of a test with a server in it
 *
 * Operation: A separate file, so that a test may link another one.
 * Memory:    One variable.
 * Threads:   Set before other threads start, read by all.
 * Errors:    None.
 */
#include "base/log.h"

LOG_DEFINE("leatd");
