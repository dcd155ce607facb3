/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * checked.h - checked arithmetic on untrusted numbers
 *
 * Every length, count or offset from the wire, a file or a command line goes through these functions. Each
 * returns false, and leaves its result unchanged, if the true result does not fit.
 */
#ifndef LEAT_BASE_CHECKED_H
#define LEAT_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

#define CHECKED_OP(name, type, op)                                                             \
	static inline must_check bool name(type a, type b, type *ret)                          \
	{                                                                                      \
		type r;                                                                        \
                                                                                               \
		if (__builtin_##op##_overflow(a, b, &r))                                       \
			return false;                                                          \
		*ret = r;                                                                      \
		return true;                                                                   \
	}

CHECKED_OP(add_u32, uint32_t, add)
CHECKED_OP(add_u64, uint64_t, add)
CHECKED_OP(add_size, size_t, add)
CHECKED_OP(sub_u64, uint64_t, sub)
CHECKED_OP(mul_u64, uint64_t, mul)
CHECKED_OP(mul_size, size_t, mul)

#undef CHECKED_OP

/** pages_around - finds the whole pages that contain [@at, @at + @len)
 * @page: their size
 * Return: false: the range exceeds the address space */
static inline must_check bool pages_around(uintptr_t at, size_t len, size_t page, uintptr_t *ret_start, uintptr_t *ret_end)
{
	uintptr_t end;

	if (__builtin_add_overflow(at, len, &end) || __builtin_add_overflow(end, page - 1, &end))
		return false;
	*ret_start = at & ~(page - 1);
	*ret_end = end & ~(page - 1);
	return true;
}

/** range_fits - is [@off, @off + @len) inside [0, @size), without overflow? */
static inline bool range_fits(uint64_t off, uint64_t len, uint64_t size)
{
	return off <= size && len <= size - off;
}

#endif
