/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_timers.c - the order of armed timers (timers.c)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "timers.h"

#define MANY 10000

static struct rpcrdma_timer t[MANY];
static struct rr_timers all;

static void add(int i, uint64_t due_ns)
{
	t[i].due_ns = due_ns;
	rr_timers_add(&all, &t[i]);
	assert_true(rr_timer_is_armed(&t[i]));
}

static int set_up(void **state)
{
	(void)state;
	memset(t, 0, sizeof(t));
	memset(&all, 0, sizeof(all));
	return 0;
}

/* the first one, which is disarmed; -1: none */
static int next(void)
{
	struct rpcrdma_timer *first = all.first;

	if (!first)
		return -1;
	rr_timers_del(first);
	assert_false(rr_timer_is_armed(first));
	return (int)(first - t);
}

static void by_time(void **state)
{
	static const uint64_t due[] = { 5, 1, 4, 2, 3, 0 };

	(void)state;
	for (int i = 0; i < 6; i++)
		add(i, due[i]);
	for (uint64_t at = 0; at < 6; at++)
		assert_int_equal(t[next()].due_ns, at);
	assert_int_equal(next(), -1);
}

static void of_equal_times_the_oldest_first(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++)
		add(i, 7);
	rr_timers_del(&t[3]);
	add(3, 7);
	for (int i = 0; i < 100; i++) {
		if (i != 3)
			assert_int_equal(next(), i);
	}
	assert_int_equal(next(), 3);
	assert_int_equal(next(), -1);
}

static void any_may_be_disarmed(void **state)
{
	(void)state;
	for (int victim = 0; victim < 20; victim++) {
		for (int i = 0; i < 20; i++)
			add(i, (uint64_t)(i * 7 % 20));
		assert_int_equal(next(), 0); /* so that the heap has some shape */
		rr_timers_del(&t[victim]);
		rr_timers_del(&t[victim]); /* does nothing */
		for (uint64_t at = 1; at < 20; at++) {
			if (at != (uint64_t)(victim * 7 % 20))
				assert_int_equal(t[next()].due_ns, at);
		}
		assert_int_equal(next(), -1);
	}
}

static int compare(const void *a, const void *b)
{
	const struct rpcrdma_timer *x = &t[*(const int *)a], *y = &t[*(const int *)b];

	if (x->due_ns != y->due_ns)
		return x->due_ns < y->due_ns ? -1 : 1;
	return x->serial < y->serial ? -1 : 1;
}

/* against a sorted array; many are moved and some disarmed in between */
static void ten_thousand(void **state)
{
	static int want[MANY];
	int n = 0;

	(void)state;
	srandom(11);
	for (int i = 0; i < MANY; i++)
		add(i, (uint64_t)random() % 3000);
	for (int round = 0; round < 3 * MANY; round++) {
		int i = (int)(random() % MANY);

		if (!(round % 4))
			next();
		rr_timers_del(&t[i]);
		if (round % 3)
			add(i, (uint64_t)random() % 3000);
	}
	for (int i = 0; i < MANY; i++) {
		if (rr_timer_is_armed(&t[i]))
			want[n++] = i;
	}
	assert_in_range(n, 1, MANY);
	qsort(want, (size_t)n, sizeof(want[0]), compare);
	for (int i = 0; i < n; i++)
		assert_int_equal(next(), want[i]);
	assert_int_equal(next(), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(by_time, set_up),
		cmocka_unit_test_setup(of_equal_times_the_oldest_first, set_up),
		cmocka_unit_test_setup(any_may_be_disarmed, set_up),
		cmocka_unit_test_setup(ten_thousand, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
