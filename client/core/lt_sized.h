/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lt_sized.h - structures that begin with the size that the program's header gives them
 */
#ifndef LT_SIZED_H
#define LT_SIZED_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/util.h"

#define LT_SIZED_MAX 4096u /* a larger size was not initialized */

/** lt_sized_check - is the size at @of possible? Return: 0 or -EINVAL */
static inline int lt_sized_check(const void *of)
{
	size_t size;

	memcpy(&size, of, sizeof(size));
	return size >= sizeof(size) && size <= LT_SIZED_MAX ? 0 : -EINVAL;
}

/** lt_sized_copy - copies a result of @have bytes to the structure @to, whose size was checked
 * It keeps its size. What the library does not have becomes zero.
 */
static inline void lt_sized_copy(void *to, const void *from, size_t have)
{
	size_t size;

	memcpy(&size, to, sizeof(size));
	memset(to, 0, size);
	memcpy(to, from, MIN(size, have));
	memcpy(to, &size, sizeof(size));
}

#endif
