/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * spec.h - options of an export or a volume on the command line: "ro,clients=10.0.0.0/8,fd00::/8,overlap=streams"
 */
#ifndef LEAT_SERVER_SPEC_H
#define LEAT_SERVER_SPEC_H

#include <stddef.h>

#include "base/util.h"

/** spec_options - passes each option of @options to @set
 * @options: separated by commas, or NULL; changed. A network after an option whose value was a network continues its list
 * @set: @value is NULL for a bare flag. Return: 0 or -errno with @why
 *
 * Return: 0, or the first error.
 */
int must_check spec_options(char *options,
			    int (*set)(void *to, const char *key, const char *value, char *why, size_t why_bytes),
			    void *to, char *why, size_t why_bytes);

#endif
