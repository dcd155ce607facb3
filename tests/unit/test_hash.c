/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_hash.c - the intrusive hash table (base/hash.h)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

#define MANY 3000u

struct item {
	struct hash_node node;
	bool in;
};

static struct item items[MANY];
static struct hash t;

static int set_up(void **state)
{
	(void)state;
	memset(items, 0, sizeof(items));
	return hash_init(&t, 100);
}

static int tear_down(void **state)
{
	(void)state;
	hash_fini(&t);
	hash_fini(&t);
	return 0;
}

static void add(unsigned i, uint64_t hash)
{
	hash_add(&t, &items[i].node, hash);
	items[i].in = true;
}

static unsigned index_of(const struct hash_node *n)
{
	return (unsigned)(container_of(n, struct item, node) - items);
}

static void finds_equal_hashes_only(void **state)
{
	unsigned n = 0;

	(void)state;
	assert_int_equal(t.mask, 127);
	assert_null(hash_first(&t, 5));
	add(0, 5);
	add(1, 5 + 128); /* the same chain */
	add(2, 5);
	add(3, UINT64_C(1) << 63 | 5);
	assert_int_equal(t.n, 4);
	assert_int_equal(index_of(hash_first(&t, 5)), 2); /* the newest */
	hash_for_each_equal(at, &t, 5)
		assert_int_equal(index_of(at), n++ ? 0 : 2);
	assert_int_equal(n, 2);
	assert_int_equal(index_of(hash_first(&t, 133)), 1);
	assert_null(hash_next(hash_first(&t, 133)));
	assert_null(hash_first(&t, 5 + 256));
}

/* from the front, the middle and the end of a chain */
static void removes_from_any_place(void **state)
{
	(void)state;
	for (unsigned gone = 0; gone < 3; gone++) {
		for (unsigned i = 0; i < 3; i++)
			add(i, 7 + 128 * i);
		hash_del(&t, &items[gone].node);
		assert_int_equal(t.n, 2);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(hash_first(&t, 7 + 128 * i) != NULL, i != gone);
		for (unsigned i = 0; i < 3; i++) {
			if (i != gone)
				hash_del(&t, &items[i].node);
		}
		assert_int_equal(t.n, 0);
	}
}

static void sees_each_node_once(void)
{
	bool seen[MANY] = { false };
	size_t n = 0;

	for (struct hash_node *at = NULL; (at = hash_step(&t, at)) != NULL; n++) {
		assert_true(items[index_of(at)].in && !seen[index_of(at)]);
		seen[index_of(at)] = true;
	}
	assert_int_equal(n, t.n);
}

static void grows_and_walks(void **state)
{
	(void)state;
	sees_each_node_once();
	for (unsigned i = 0; i < MANY; i++) {
		add(i, i * UINT64_C(0x9e3779b97f4a7c15) >> 20);
		hash_grow(&t);
		assert_true(t.n <= t.mask + 1);
	}
	assert_int_equal(t.mask, 4095);
	sees_each_node_once();
	for (unsigned i = 0; i < MANY; i++) {
		struct hash_node *n = hash_first(&t, items[i].node.hash);

		while (n && index_of(n) != i)
			n = hash_next(n);
		assert_non_null(n);
	}
	for (struct hash_node *n = hash_step(&t, NULL), *next; n; n = next) { /* what was walked over may go */
		next = hash_step(&t, n);
		if (index_of(n) % 3) {
			hash_del(&t, n);
			items[index_of(n)].in = false;
		}
	}
	assert_int_equal(t.n, MANY / 3);
	sees_each_node_once();
}

static void one_chain(void **state)
{
	struct hash one;

	(void)state;
	assert_int_equal(hash_init(&one, 0), 0);
	assert_int_equal(one.mask, 0);
	hash_add(&one, &items[0].node, UINT64_MAX);
	hash_add(&one, &items[1].node, 0);
	assert_ptr_equal(hash_first(&one, UINT64_MAX), &items[0].node);
	hash_fini(&one);
}

#define hash_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		hash_test(finds_equal_hashes_only),
		hash_test(removes_from_any_place),
		hash_test(grows_and_walks),
		hash_test(one_chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
