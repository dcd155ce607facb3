/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_split.c - a payload in pieces: nothing twice, nothing left out, every member busy
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "split.h"

#define K 1024u

static void expect(struct split *c, uint32_t off, uint32_t len, unsigned stream)
{
	uint32_t o, l;
	unsigned s;

	assert_true(split_next(c, &o, &l, &s));
	assert_int_equal(o, off);
	assert_int_equal(l, len);
	assert_int_equal(s, stream);
}

static void expect_end(struct split *c)
{
	uint32_t o, l;
	unsigned s;

	assert_int_equal(c->left, 0);
	assert_false(split_next(c, &o, &l, &s));
}

static void whole(void **state)
{
	struct split c;

	(void)state;
	split_start(&c, 12345, 1000 * K, 0, 1, 0);
	expect(&c, 0, 1000 * K, 0);
	expect_end(&c);
	split_start(&c, 0, 0, 0, 1, 0);
	expect_end(&c);
}

/* as the file is aligned, not the payload */
static void grains(void **state)
{
	struct split c;

	(void)state;
	split_start(&c, 4 * K + 100, 9 * K, 4 * K, 1, 0);
	expect(&c, 0, 4 * K - 100, 0);
	expect(&c, 4 * K - 100, 4 * K, 0);
	expect(&c, 8 * K - 100, K + 100, 0);
	expect_end(&c);
}

/* four chunks on two members, from within the second chunk on */
static void members(void **state)
{
	struct split c;

	(void)state;
	split_start(&c, 12 * K, 28 * K, 4 * K, 2, 8 * K);
	expect(&c, 0, 4 * K, 1);	/* the rest of chunk 1 */
	expect(&c, 4 * K, 4 * K, 0);	/* chunk 2 */
	expect(&c, 8 * K, 4 * K, 0);	/* it has as few under way, and lies in front */
	expect(&c, 12 * K, 4 * K, 1);	/* chunk 3 */
	split_ended(&c, 0);
	split_ended(&c, 0);		/* a member that is through is the next to get something */
	expect(&c, 20 * K, 4 * K, 0);	/* chunk 4 */
	expect(&c, 24 * K, 4 * K, 0);
	expect(&c, 16 * K, 4 * K, 1);
	expect_end(&c);
}

static void stopped(void **state)
{
	struct split c;

	(void)state;
	split_start(&c, 0, 28 * K, 4 * K, 2, 8 * K);
	expect(&c, 0, 4 * K, 0);
	split_stop(&c);
	expect_end(&c);
}

/* every byte once, whatever the numbers; and no member idle while it has something left */
static void everything_once(void **state)
{
	static const unsigned streams[] = { 1, 2, 3, 8, 31, 32 };
	static const uint32_t grains_[] = { 4, 8, 64 }, lens[] = { 1, 63, 64, 65, 500, 1000 };
	static uint8_t seen[1000];
	struct split c;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		for (size_t g = 0; g < ARRAY_SIZE(grains_); g++) {
			for (size_t l = 0; l < ARRAY_SIZE(lens); l++) {
				for (uint64_t base = 0; base < 200; base += 7) {
					uint32_t off, len;
					unsigned s;

					memset(seen, 0, sizeof(seen));
					split_start(&c, UINT64_C(0x7fffffffffff0000) + base, lens[l],
						  grains_[g], streams[i], 64);
					while (split_next(&c, &off, &len, &s)) {
						assert_in_range(len, 1, grains_[g]);
						assert_in_range(off + len, 1, lens[l]);
						for (uint32_t b = off; b < off + len; b++)
							assert_int_equal(seen[b]++, 0);
					}
					for (uint32_t b = 0; b < lens[l]; b++)
						assert_int_equal(seen[b], 1);
				}
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),   cmocka_unit_test(grains),
		cmocka_unit_test(members), cmocka_unit_test(stopped),
		cmocka_unit_test(everything_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
