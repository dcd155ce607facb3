/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * duration.h - parses durations
 */
#ifndef LEAT_BASE_DURATION_H
#define LEAT_BASE_DURATION_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"

/** duration_parse - "250ns", "100us", "5ms", "2s"; 0 needs no unit
 *
 * Return: false: invalid, or out of range; @ret_ns is unchanged.
 */
static inline must_check bool duration_parse(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = { { "ns", 1 }, { "us", NS_PER_US }, { "ms", NS_PER_MS }, { "s", NS_PER_S } };
	unsigned long long n;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno)
		return false;
	if (!n && !*end) {
		*ret_ns = 0;
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!strcmp(end, units[i].unit))
			return mul_u64(n, units[i].ns, ret_ns);
	}
	return false;
}

#endif
