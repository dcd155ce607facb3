/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * layout.c - which bytes of a striped file lie where
 *
 * Operation: one function, layout_object_bytes(), counts the bytes below an offset that belong to a stripe; a range has
 *            what its end has more than its beginning.
 * Memory:    none.
 * Threads:   any.
 * Errors:    overflow only.
 */
#include "layout.h"

#include <errno.h>

#include "base/checked.h"

bool layout_valid(const struct layout *l)
{
	return l->unit >= LAYOUT_UNIT_MIN && l->unit <= LAYOUT_UNIT_MAX && !(l->unit & (l->unit - 1)) && l->width &&
	       l->width <= LAYOUT_WIDTH_MAX;
}

struct layout_place layout_find(const struct layout *l, uint64_t off)
{
	uint64_t unit = off / l->unit;
	uint32_t into = (uint32_t)(off % l->unit);

	return (struct layout_place){
		.stripe = (uint32_t)(unit % l->width),
		.run = l->unit - into,
		.off = unit / l->width * l->unit + into,
	};
}

uint64_t layout_object_bytes(const struct layout *l, uint32_t stripe, uint64_t bytes)
{
	uint64_t row = (uint64_t)l->unit * l->width, before = (uint64_t)l->unit * stripe;
	uint64_t rest = bytes % row;

	rest = rest > before ? rest - before : 0;
	return bytes / row * l->unit + MIN(rest, l->unit);
}

struct layout_part layout_part(const struct layout *l, uint32_t stripe, uint64_t off, uint64_t len)
{
	uint64_t first = layout_object_bytes(l, stripe, off);

	return (struct layout_part){ .off = first, .len = layout_object_bytes(l, stripe, off + len) - first };
}

int layout_file_off(const struct layout *l, uint32_t stripe, uint64_t off, uint64_t *ret)
{
	uint64_t at;

	if (!mul_u64(off / l->unit, (uint64_t)l->unit * l->width, &at) ||
	    !add_u64(at, (uint64_t)l->unit * stripe + off % l->unit, &at) || at > INT64_MAX)
		return -EFBIG;
	*ret = at;
	return 0;
}

int layout_file_bytes(const struct layout *l, uint32_t stripe, uint64_t bytes, uint64_t *ret)
{
	uint64_t last;
	int err = bytes ? layout_file_off(l, stripe, bytes - 1, &last) : 0;

	if (err || (bytes && last == INT64_MAX))
		return -EFBIG;
	*ret = bytes ? last + 1 : 0;
	return 0;
}
