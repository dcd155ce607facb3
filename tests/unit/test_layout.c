/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_layout.c - the arithmetic of stripes against a model that deals out single bytes
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "layout.h"

#define UNITS 5u
#define WIDTHS 5u
#define BYTES 80u /* of a file: more than three rows of the largest layout */

struct byte {
	uint32_t stripe;
	uint64_t off;
};

/* Deals out the bytes of a file: byte after byte, unit after unit, stripe after stripe */
static void deal(const struct layout *l, struct byte *file)
{
	uint64_t used[WIDTHS] = { 0 };
	uint32_t stripe = 0, in_unit = 0;

	for (unsigned i = 0; i < BYTES; i++) {
		file[i] = (struct byte){ .stripe = stripe, .off = used[stripe]++ };
		if (++in_unit == l->unit) {
			in_unit = 0;
			stripe = (stripe + 1) % l->width;
		}
	}
}

static void each_byte(const struct layout *l, const struct byte *file)
{
	for (unsigned i = 0; i < BYTES; i++) {
		struct layout_place p = layout_find(l, i);
		uint64_t back = BYTES;

		assert_int_equal(p.stripe, file[i].stripe);
		assert_int_equal(p.off, file[i].off);
		assert_int_equal(p.run, l->unit - i % l->unit);
		assert_int_equal(layout_file_off(l, p.stripe, p.off, &back), 0);
		assert_int_equal(back, i);
	}
}

static void each_length(const struct layout *l, const struct byte *file)
{
	for (unsigned n = 0; n <= BYTES; n++)
		for (uint32_t s = 0; s < l->width; s++) {
			uint64_t want = 0, last = 0, bytes = BYTES + 1;

			for (unsigned i = 0; i < n; i++)
				if (file[i].stripe == s) {
					want++;
					last = i + 1;
				}
			assert_int_equal(layout_object_bytes(l, s, n), want);
			assert_int_equal(layout_file_bytes(l, s, want, &bytes), 0);
			assert_int_equal(bytes, last);
		}
}

static void each_range(const struct layout *l, const struct byte *file)
{
	for (unsigned from = 0; from <= BYTES; from++)
		for (unsigned to = from; to <= BYTES; to++)
			for (uint32_t s = 0; s < l->width; s++) {
				struct layout_part p = layout_part(l, s, from, to - from);
				uint64_t want = 0;

				for (unsigned i = from; i < to; i++)
					if (file[i].stripe == s)
						assert_int_equal(file[i].off, p.off + want++);
				assert_int_equal(p.len, want);
			}
}

static void as_the_model(void **state)
{
	(void)state;
	for (uint32_t unit = 1; unit <= UNITS; unit++)
		for (uint32_t width = 1; width <= WIDTHS; width++) {
			struct layout l = { .unit = unit, .width = width };
			struct byte file[BYTES];

			deal(&l, file);
			each_byte(&l, file);
			each_length(&l, file);
			each_range(&l, file);
		}
}

/* Numbers as large as they get, where a product of 32 bits would not do */
static void large(void **state)
{
	struct layout l = { .unit = LAYOUT_UNIT_MAX, .width = LAYOUT_WIDTH_MAX };
	uint64_t bytes = 0, all = 0;

	(void)state;
	for (uint32_t s = 0; s < l.width; s++)
		all += layout_object_bytes(&l, s, INT64_MAX);
	assert_int_equal(all, INT64_MAX);
	assert_int_equal(layout_find(&l, INT64_MAX).stripe, LAYOUT_WIDTH_MAX - 1);
	assert_int_equal(layout_part(&l, 255, INT64_MAX - 1, 1).len, 1);
	assert_int_equal(layout_file_bytes(&l, 255, layout_object_bytes(&l, 255, INT64_MAX), &bytes), 0);
	assert_int_equal(bytes, INT64_MAX);
	/* what a server may say that lies */
	assert_int_equal(layout_file_bytes(&l, 255, layout_object_bytes(&l, 255, INT64_MAX) + 1, &bytes), -EFBIG);
	assert_int_equal(layout_file_bytes(&l, 0, UINT64_MAX, &bytes), -EFBIG);
	assert_int_equal(layout_file_off(&l, 0, UINT64_MAX, &bytes), -EFBIG);
	assert_int_equal(bytes, INT64_MAX);
}

static void limits(void **state)
{
	static const struct {
		struct layout l;
		bool valid;
	} cases[] = {
		{ { LAYOUT_UNIT_MIN, 1 }, true },      { { LAYOUT_UNIT_MAX, LAYOUT_WIDTH_MAX }, true },
		{ { 0, 1 }, false },		       { { LAYOUT_UNIT_MIN / 2, 1 }, false },
		{ { LAYOUT_UNIT_MIN + 4096, 1 }, false }, { { 2 * LAYOUT_UNIT_MAX, 1 }, false },
		{ { LAYOUT_UNIT_MIN, 0 }, false },     { { LAYOUT_UNIT_MIN, LAYOUT_WIDTH_MAX + 1 }, false },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(layout_valid(&cases[i].l), cases[i].valid);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_model),
		cmocka_unit_test(large),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
