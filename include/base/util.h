/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * util.h - common macros
 */
#ifndef LEAT_BASE_UTIL_H
#define LEAT_BASE_UTIL_H

#include <stddef.h>
#include <stdint.h>

#define container_of(ptr, type, member)                                                        \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#undef MIN /* <sys/param.h> also defines them, included by <rpc/types.h> */
#undef MAX
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define must_check __attribute__((warn_unused_result))
#define printf_like(fmt, args) __attribute__((format(printf, fmt, args)))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/** round_up4 - XDR pads every opaque to a multiple of four bytes (RFC 4506 section 3) */
static inline size_t round_up4(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/** round_up_pow2 - rounds @n up to a multiple of @align, a power of two; the caller bounds @n */
static inline size_t round_up_pow2(size_t n, size_t align)
{
	return (n + align - 1) & ~(align - 1);
}

/** pow2_at_least - returns the smallest power of two that is not less than @n; the caller bounds @n */
static inline uint32_t pow2_at_least(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

#endif
