/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_wire.c - the headers of include/base: wire cursors, checked arithmetic, list, log_limit
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/list.h"
#include "base/log.h"
#include "base/wire.h"

LOG_DEFINE("test_wire");

static void test_words(void **state)
{
	static const uint8_t bytes[8] = { 0x81, 2, 3, 4, 5, 6, 7, 0x88 };
	uint8_t out[9] = { 0 };

	(void)state;
	assert_int_equal(get_be16(bytes), 0x8102);
	assert_int_equal(get_be32(bytes), 0x81020304);
	assert_true(get_be64(bytes) == UINT64_C(0x8102030405060788));
	/* unaligned on purpose */
	put_be16(out + 1, 0x8102);
	assert_memory_equal(out + 1, bytes, 2);
	put_be32(out + 1, 0x81020304);
	assert_memory_equal(out + 1, bytes, 4);
	put_be64(out + 1, UINT64_C(0x8102030405060788));
	assert_memory_equal(out + 1, bytes, 8);
}

/* Every short length: gets fail once and for all, and never look behind the end. */
static void test_get_bounds(void **state)
{
	(void)state;
	for (size_t len = 0; len <= 16; len++) {
		uint8_t *buf = malloc(len + 1);
		struct wire_get g;
		unsigned words = 0;

		assert_non_null(buf);
		memset(buf, 0x11, len + 1);
		wire_get_init(&g, buf, len);
		while (wire_get_u32(&g) == 0x11111111u)
			words++;
		assert_int_equal(words, len / 4);
		assert_false(wire_get_ok(&g));
		assert_int_equal(wire_get_u32(&g), 0);
		assert_null(wire_get_bytes(&g, 1));
		assert_null(wire_get_bytes(&g, 0)); /* bad stays bad */

		wire_get_init(&g, buf, len);
		assert_true(wire_get_u64(&g) == (len < 4   ? 0
						 : len < 8 ? UINT64_C(0x1111111100000000)
							   : UINT64_C(0x1111111111111111)));
		assert_int_equal(wire_get_ok(&g), len >= 8);

		wire_get_init(&g, buf, len);
		assert_ptr_equal(wire_get_bytes(&g, len), buf);
		assert_non_null(wire_get_bytes(&g, 0));
		assert_int_equal(wire_get_left(&g), 0);
		assert_true(wire_get_ok(&g));
		wire_get_init(&g, buf, len);
		assert_null(wire_get_bytes(&g, SIZE_MAX));
		free(buf);
	}
}

static void test_put_bounds(void **state)
{
	static const uint8_t src[8] = "abcdefgh";

	(void)state;
	for (size_t cap = 0; cap <= 16; cap++) {
		uint8_t *buf = malloc(cap + 1);
		struct wire_put p;

		assert_non_null(buf);
		wire_put_init(&p, buf, cap);
		wire_put_u32(&p, 1);
		wire_put_u64(&p, 2);
		wire_put_bytes(&p, src, 3);
		assert_int_equal(wire_put_ok(&p), cap >= 15);
		assert_true(wire_put_len(&p) <= cap);
		if (cap < 15) {
			size_t len = wire_put_len(&p);

			wire_put_bytes(&p, src, 0);
			wire_put_u32(&p, 9); /* nothing more once bad, room or not */
			assert_int_equal(wire_put_len(&p), len);
		}
		free(buf);
	}
}

static void test_checked(void **state)
{
	uint32_t a = 7;
	uint64_t b = 7;
	size_t c = 7;

	(void)state;
	assert_false(add_u32(UINT32_MAX, 1, &a));
	assert_false(add_u64(UINT64_MAX, 1, &b));
	assert_false(sub_u64(1, 2, &b));
	assert_false(mul_u64(UINT64_C(1) << 33, UINT64_C(1) << 31, &b));
	assert_false(add_size(SIZE_MAX, 1, &c));
	assert_false(mul_size(SIZE_MAX, 2, &c));
	assert_true(a == 7 && b == 7 && c == 7); /* untouched on failure */
	assert_true(add_u32(UINT32_MAX - 1, 1, &a) && a == UINT32_MAX);
	assert_true(add_u64(UINT64_MAX - 1, 1, &b) && b == UINT64_MAX);
	assert_true(sub_u64(2, 2, &b) && b == 0);
	assert_true(mul_u64(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &b));
	assert_true(b == UINT64_C(0xffffffff00000000));
	assert_true(add_size(1, 2, &c) && c == 3);
	assert_true(mul_size(3, 4, &c) && c == 12);
}

static void test_range_fits(void **state)
{
	static const struct {
		uint64_t off, len, size;
		bool fits;
	} cases[] = {
		{ 0, 0, 0, true },
		{ 0, 1, 0, false },
		{ 5, 5, 10, true },
		{ 5, 6, 10, false },
		{ 10, 0, 10, true },
		{ 11, 0, 10, false },
		{ UINT64_MAX, 1, UINT64_MAX, false },
		{ 1, UINT64_MAX, 10, false },
		{ UINT64_MAX, UINT64_MAX, 10, false },
		{ 0, UINT64_MAX, UINT64_MAX, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(range_fits(cases[i].off, cases[i].len, cases[i].size),
				 cases[i].fits);
	for (size_t n = 0; n < 9; n++)
		assert_int_equal(round_up4(n), n == 0 ? 0 : n <= 4 ? 4 : 8);
	assert_int_equal(round_up_pow2(1, 4096), 4096);
	assert_int_equal(round_up_pow2(4096, 4096), 4096);
	assert_int_equal(round_up_pow2(0, 8), 0);
}

struct item {
	int n;
	struct list link;
};

static int sum(const struct list *head)
{
	int digits = 0;

	list_for_each(node, head)
		digits = digits * 10 + list_entry(node, struct item, link)->n;
	return digits;
}

static void test_list(void **state)
{
	struct item it[4] = { { .n = 1 }, { .n = 2 }, { .n = 3 }, { .n = 4 } };
	struct list head = LIST_INIT(head), other = LIST_INIT(other);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(it); i++) {
		list_init(&it[i].link);
		assert_false(list_is_linked(&it[i].link));
	}
	assert_true(list_is_empty(&head));
	assert_null(list_first(&head));
	assert_null(list_pop(&head));
	assert_null(list_first_entry(&head, struct item, link));

	list_add_tail(&head, &it[1].link);
	list_add_tail(&head, &it[2].link);
	list_add_head(&head, &it[0].link);
	assert_int_equal(sum(&head), 123);
	assert_true(list_is_linked(&it[1].link));
	assert_int_equal(list_first_entry(&head, struct item, link)->n, 1);
	list_del(&it[1].link);
	list_del(&it[1].link); /* harmless */
	assert_false(list_is_linked(&it[1].link));
	assert_int_equal(sum(&head), 13);

	list_add_tail(&other, &it[1].link);
	list_add_tail(&other, &it[3].link);
	list_splice_tail(&head, &other);
	assert_true(list_is_empty(&other));
	assert_int_equal(sum(&head), 1324);
	list_splice_tail(&head, &other); /* of nothing */
	assert_int_equal(sum(&head), 1324);
	list_splice_tail(&other, &head); /* to nothing */
	assert_true(list_is_empty(&head));
	assert_int_equal(sum(&other), 1324);

	list_for_each_safe(node, &other)
		if (list_entry(node, struct item, link)->n % 2)
			list_del(node);
	assert_int_equal(sum(&other), 24);
	assert_ptr_equal(list_pop(&other), &it[1].link);
	assert_ptr_equal(list_pop(&other), &it[3].link);
	assert_true(list_is_empty(&other));
}

/* What a terminal obeys becomes '?', whatever is around it; what UTF-8 needs stays. */
static void test_text_clean(void **state)
{
	static const struct {
		const char *text, *clean;
	} cases[] = {
		{ "plain", "plain" },
		{ "a\x1b[31m\n\x7f", "a?[31m??" },
		{ "\x9b" "31m", "?31m" },
		{ "\xc2\x9b" "31m", "\xc2?31m" },
		{ "\xc3\xa9\x9b" "31m", "\xc3\xa9?31m" },
		{ "\xe2\x82\xac\x9b", "\xe2\x82\xac?" },
		{ "\xc3\x9b \xe2\x80\x9c \xf0\x9f\x98\x80", "\xc3\x9b \xe2\x80\x9c \xf0\x9f\x98\x80" },
		{ "\xe2 \x9b", "\xe2 ?" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[32];

		snprintf(text, sizeof(text), "%s", cases[i].text);
		text_clean(text);
		assert_string_equal(text, cases[i].clean);
	}
}

/* The bucket by its own fields: an interval that cannot pass during the test, then one that has. */
static void test_log_limit(void **state)
{
	struct log_limit l = LOG_LIMIT_INIT;

	(void)state;
	l.interval_ns = UINT64_C(1) << 60;
	for (int i = 0; i < 5; i++)
		assert_true(log_limit_ok(&l));
	for (unsigned long i = 1; i <= 3; i++) {
		assert_false(log_limit_ok(&l));
		assert_int_equal(l.swallowed, i);
	}
	/* as if exactly one interval had ended: one line is earned */
	l.next_ns = clock_now_ns();
	assert_true(log_limit_ok(&l));
	assert_false(log_limit_ok(&l));
	/* a long silence fills the bucket, not more */
	l.interval_ns = 1;
	l.next_ns = 1;
	assert_true(log_limit_ok(&l));
	assert_int_equal(l.left, l.burst - 1);
	assert_int_equal(l.swallowed, 4);
}

static void test_log_level(void **state)
{
	(void)state;
	log_state.level = LOG_LEVEL_ERR;
	log_warn("%s", "must not be seen");
	log_state.level = LOG_LEVEL_INFO;
	assert_string_equal(log_state.program, "test_wire");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),	   cmocka_unit_test(test_get_bounds),
		cmocka_unit_test(test_put_bounds), cmocka_unit_test(test_checked),
		cmocka_unit_test(test_range_fits), cmocka_unit_test(test_list),
		cmocka_unit_test(test_text_clean), cmocka_unit_test(test_log_limit),
		cmocka_unit_test(test_log_level),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
