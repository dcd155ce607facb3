/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * size.h - parses sizes
 */
#ifndef LEAT_BASE_SIZE_H
#define LEAT_BASE_SIZE_H

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/** size_parse - "4096", "64K", "1m", "2G", "1T" (powers of 1024)
 *
 * Return: false: invalid, or out of range; @ret is unchanged.
 */
static inline must_check bool size_parse(const char *text, uint64_t *ret)
{
	static const char units[] = "KMGT";
	const char *unit;
	unsigned long long n;
	uint64_t factor = 1;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno)
		return false;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit || end[1])
			return false;
		factor = UINT64_C(1) << (10 * (unit - units + 1));
	}
	return mul_u64(n, factor, ret);
}

#endif
