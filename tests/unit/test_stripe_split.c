/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_stripe_split.c - every byte of a read or write of a striped file goes into one call, with the right memory
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stripe_split.h"

#define MIB (UINT64_C(1) << 20)
#define PAGE 4096u /* of the range: what is checked is checked for each */
#define PAGES_MAX 8192u

static struct lt_bulk_ops ops = { .parts = LT_BULK_PARTS_MAX };
static struct lt_bulk bulk;
static struct lt_subreq sub;
static char *memory;
static struct iovec iov[PAGES_MAX];
static bool seen[PAGES_MAX];
static struct { unsigned calls, parts, stripe[64]; } total;

static void begin(uint64_t off, uint64_t size, int parts)
{
	uint64_t each = (size / (unsigned)parts + PAGE - 1) / PAGE * PAGE, at = 0;
	int n = 0;

	memset(&bulk, 0, sizeof(bulk));
	memset(&total, 0, sizeof(total));
	memset(seen, 0, sizeof(seen));
	for (; at < size; at += iov[n++].iov_len)
		iov[n] = (struct iovec){ memory + (parts > 1 ? 2 : 1) * at, MIN(each, size - at) };
	bulk.ops = &ops;
	bulk.off = bulk.next = off;
	bulk.size = size;
	bulk.end = off + size;
	bulk.iov = iov;
	bulk.iov_cnt = n;
}

/* Where the byte @off of the file is in memory: with several parts, there is a gap behind each. */
static char *memory_of(uint64_t off)
{
	uint64_t at = 0, skip = off - bulk.off;

	for (int i = 0; i < bulk.iov_cnt; at += iov[i++].iov_len)
		if (skip - at < iov[i].iov_len)
			return (char *)iov[i].iov_base + (skip - at);
	return NULL;
}

static void check_call(const struct layout *l)
{
	uint64_t object = sub.mark, len = 0;

	assert_true(sub.iov_cnt >= 1 && sub.iov_cnt <= ops.parts);
	assert_true(sub.len && sub.len <= STRIPE_IO_MAX);
	for (int i = 0; i < sub.iov_cnt; i++) {
		assert_true(sub.iov[i].iov_len % PAGE == 0);
		for (size_t at = 0; at < sub.iov[i].iov_len; at += PAGE, object += PAGE) {
			uint64_t off = lt_stripe_file_off(l, sub.stripe, object);

			assert_true(off >= bulk.off && off < bulk.off + bulk.size);
			assert_ptr_equal(memory_of(off), (char *)sub.iov[i].iov_base + at);
			assert_false(seen[(off - bulk.off) / PAGE]);
			seen[(off - bulk.off) / PAGE] = true;
		}
		len += sub.iov[i].iov_len;
	}
	assert_int_equal(len, sub.len);
	assert_int_equal(sub.off, lt_stripe_file_off(l, sub.stripe, sub.mark));
	total.calls++;
	total.parts += (unsigned)sub.iov_cnt;
	total.stripe[sub.stripe]++;
}

static void split_all(const struct layout *l)
{
	while (lt_stripe_split(&bulk, &sub, l))
		check_call(l);
	assert_int_equal(bulk.next, bulk.end);
}

static void check_all(void)
{
	for (uint64_t i = 0; i < bulk.size / PAGE; i++)
		assert_true(seen[i]);
}

static int setup(void **state)
{
	(void)state;
	memory = malloc(2 * (size_t)PAGES_MAX * PAGE);
	assert_non_null(memory);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(memory);
	return 0;
}

/* The same numbers in every run. */
static uint32_t draw(uint32_t below)
{
	static uint32_t x = 1;

	x = x * 1664525u + 1013904223u;
	return (x >> 8) % below;
}

static void every_byte_once(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		const struct layout l = { 65536u << draw(7), 1 + draw(7) };
		uint64_t off = (uint64_t)draw(4096) * PAGE, size = (uint64_t)(1 + draw(i % 10 ? 600 : PAGES_MAX - 1)) * PAGE;

		begin(off, size, draw(2) ? 1 : 1 + (int)draw(200));
		split_all(&l);
		check_all();
	}
}

/* Aligned rows of small units: one call for each server and MiB, a part of memory for each unit. */
static void one_call_for_each_server(void **state)
{
	const struct layout l = { 65536, 4 };

	(void)state;
	begin(8 * MIB, 8 * MIB, 1);
	split_all(&l);
	check_all();
	assert_int_equal(total.calls, 8);
	assert_int_equal(total.parts, 128);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(total.stripe[i], 2);
}

/* Long units: servers in turn, not one unit after another. */
static void servers_in_turn(void **state)
{
	const struct layout l = { 4 << 20, 4 };

	(void)state;
	begin(0, 16 * MIB, 1);
	for (unsigned i = 0; i < 16; i++) {
		assert_true(lt_stripe_split(&bulk, &sub, &l));
		assert_int_equal(sub.stripe, i % 4);
		assert_int_equal(sub.mark, i / 4 * MIB);
		check_call(&l);
	}
	assert_false(lt_stripe_split(&bulk, &sub, &l));
	check_all();
}

/* Of many parts a call has as many as it may have; the next one goes on there. */
static void many_parts(void **state)
{
	const struct layout l = { 65536, 2 };

	(void)state;
	begin(0, 2 * MIB, 512);
	split_all(&l);
	check_all();
	assert_int_equal(total.calls, 8);
	assert_int_equal(total.parts, 512);
}

/* What lies behind an end that has been found meanwhile is not sent. */
static void ends_early(void **state)
{
	const struct layout l = { 65536, 4 };

	(void)state;
	begin(0, 8 * MIB, 1);
	assert_true(lt_stripe_split(&bulk, &sub, &l));
	check_call(&l);
	bulk.end = 65536;
	assert_false(lt_stripe_split(&bulk, &sub, &l));
	assert_true(bulk.next >= bulk.end);
}

static void one_byte(void **state)
{
	const struct layout l = { 65536, 256 };
	uint64_t off = 65536 * UINT64_C(257) + 5;

	(void)state;
	begin(off, 1, 1);
	assert_true(lt_stripe_split(&bulk, &sub, &l));
	assert_int_equal(sub.stripe, 1);
	assert_int_equal(sub.mark, 65536 + 5);
	assert_int_equal(sub.len, 1);
	assert_int_equal(sub.off, off);
	assert_false(lt_stripe_split(&bulk, &sub, &l));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_once), cmocka_unit_test(one_call_for_each_server), cmocka_unit_test(servers_in_turn),
		cmocka_unit_test(many_parts),	   cmocka_unit_test(ends_early),	       cmocka_unit_test(one_byte),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
