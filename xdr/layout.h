/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * layout.h - which bytes of a striped file lie where
 *
 * A file is cut into units of equal length. Unit i belongs to stripe i modulo the width, and each stripe keeps its units
 * one behind another in one object. So what a range of the file has on a stripe is one range of the object, and an
 * object that is shorter than the file says has not been written there: it reads as zeroes.
 *
 * All functions are pure. Offsets in a file are at most INT64_MAX. Units and widths may be any numbers from 1 on, but
 * those of volumes are limited by layout_valid().
 */
#ifndef LEAT_LAYOUT_H
#define LEAT_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

#define LAYOUT_UNIT_MIN (64u << 10)
#define LAYOUT_UNIT_MAX (16u << 20)
#define LAYOUT_WIDTH_MAX 256u

struct layout {
	uint32_t unit;	/* bytes */
	uint32_t width; /* stripes */
};

/* Where a byte lies. */
struct layout_place {
	uint32_t stripe;
	uint32_t run; /* bytes from there to the end of the unit */
	uint64_t off; /* in the object */
};

/* A range of an object. */
struct layout_part {
	uint64_t off, len;
};

/** layout_valid - may a volume have this layout? The unit is a power of two within the limits. */
bool layout_valid(const struct layout *l);

/** layout_find - where the byte @off of the file lies */
struct layout_place layout_find(const struct layout *l, uint64_t off);

/** layout_part - what the range [@off, @off + @len) of the file has on @stripe; len 0: nothing
 * @off + @len is at most INT64_MAX.
 */
struct layout_part layout_part(const struct layout *l, uint32_t stripe, uint64_t off, uint64_t len);

/** layout_object_bytes - the length of an object whose file has @bytes bytes, all of them written */
uint64_t layout_object_bytes(const struct layout *l, uint32_t stripe, uint64_t bytes);

/** layout_file_off - where the byte @off of the object of @stripe lies in the file
 *
 * Return: 0; -EFBIG: beyond INT64_MAX: no file has it
 */
int must_check layout_file_off(const struct layout *l, uint32_t stripe, uint64_t off, uint64_t *ret);

/** layout_file_bytes - the length that a file has at least whose object of @stripe has @bytes bytes
 *
 * Return: 0; -EFBIG: an object that long belongs to no file
 */
int must_check layout_file_bytes(const struct layout *l, uint32_t stripe, uint64_t bytes, uint64_t *ret);

#endif
