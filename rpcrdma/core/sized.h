/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * sized.h - structures that programs built with another release of rpcrdma.h pass
 *
 * Operation:  An input begins with its size (0: that of the first release). The library reads no more than that and
 *             takes the rest as zero. An output has the size that the program's header gives it.
 * Errors:     -E2BIG: a member that this library does not know is set. -EINVAL: smaller than the first release.
 */
#ifndef RPCRDMA_CORE_SIZED_H
#define RPCRDMA_CORE_SIZED_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"

/** rr_sized_in - copies an input
 * @to: @bytes, the structure as this library knows it
 * @first: its size in the first release
 * @from: the program's; NULL: all zero
 *
 * Return: 0, -E2BIG, -EINVAL; @to is zero on failure. */
static inline int rr_sized_in(void *to, size_t bytes, size_t first, const void *from)
{
	size_t given = 0;

	memset(to, 0, bytes);
	if (!from)
		return 0;
	memcpy(&given, from, sizeof(given));
	given = given ? given : first;
	if (given < first)
		return -EINVAL;
	for (size_t i = bytes; i < given; i++)
		if (((const uint8_t *)from)[i])
			return -E2BIG;
	memcpy(to, from, MIN(given, bytes));
	memcpy(to, &bytes, sizeof(bytes));
	return 0;
}

/** RR_SIZED_IN - rr_sized_in() of a structure whose last member in the first release was @last */
#define RR_SIZED_IN(to, from, last)                                                                                    \
	rr_sized_in(to, sizeof(*(to)), offsetof(__typeof__(*(to)), last) + sizeof((to)->last), from)

/** rr_sized_out - copies an output of @have bytes to the @bytes of a program; the rest becomes zero */
static inline void rr_sized_out(void *to, size_t bytes, const void *from, size_t have)
{
	memcpy(to, from, MIN(bytes, have));
	if (bytes > have)
		memset((uint8_t *)to + have, 0, bytes - have);
}

#endif
