/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_stripe_ops.c - operations of older eras: which ones they are, what waits for them, and which connections are closed
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/util.h"
#include "stripe_ops.h"

static unsigned wakes;

void req_wake(struct list *waiters)
{
	(void)waiters;
	wakes++;
}

bool conn_close(struct conn *c)
{
	bool first = !c->closed;

	c->closed = true;
	return first;
}

static struct stripe_ops ops;
static struct stripe_op op[4];
static struct conn conn[4];
static struct list waiters;

static int set_up(void **state)
{
	(void)state;
	wakes = 0;
	list_init(&waiters);
	stripe_ops_init(&ops);
	ops.era = 7;
	for (unsigned i = 0; i < ARRAY_SIZE(op); i++)
		conn[i].closed = false;
	return 0;
}

static void begin(unsigned i)
{
	stripe_op_begin(&ops, &op[i], &conn[i]);
}

static void finish(unsigned i)
{
	stripe_op_finish(&ops, &op[i], &waiters);
}

static void wakes_once(void **state)
{
	(void)state;
	begin(0);
	begin(1);
	finish(0);
	assert_true(stripe_ops_any(&ops));
	assert_false(stripe_ops_older(&ops));
	assert_int_equal(wakes, 0);
	begin(0);
	ops.era++;
	assert_true(stripe_ops_older(&ops));
	begin(2);
	ops.era++;
	begin(3);
	finish(1);
	finish(0);
	assert_int_equal(wakes, 0); /* the one between is older, too */
	finish(2);
	assert_int_equal(wakes, 1);
	assert_false(stripe_ops_older(&ops));
	finish(3);
	assert_int_equal(wakes, 1);
	assert_false(stripe_ops_any(&ops));
}

static void closes_older(void **state)
{
	(void)state;
	begin(0);
	begin(1);
	assert_int_equal(stripe_ops_close(&ops), 0);
	ops.era++;
	begin(2);
	ops.era++;
	begin(3);
	assert_int_equal(stripe_ops_close(&ops), 3);
	assert_int_equal(stripe_ops_close(&ops), 0);
	assert_true(conn[0].closed && conn[1].closed && conn[2].closed);
	assert_false(conn[3].closed);
	assert_true(stripe_ops_older(&ops)); /* they are in progress until they have ended */
	for (unsigned i = 0; i < ARRAY_SIZE(op); i++)
		finish(i);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(wakes_once, set_up),
		cmocka_unit_test_setup(closes_older, set_up),
	};

	return cmocka_run_group_tests_name("operations of stripes", tests, NULL, NULL);
}
