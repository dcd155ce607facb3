/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_waiters.c - the queue of requests that wait for memory (waiters.c)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "waiters.h"

struct want {
	struct rpcrdma_buf_waiter w;
	unsigned amount;
	struct want *kills; /* taken out of the queue in this one's turn */
	bool freed;         /* frees itself in its turn */
};

static struct rr_waiters q;
static unsigned memory;
static struct want wants[8];
static int served[8], nserved;

static void on_turn(struct rpcrdma_buf_waiter *w)
{
	struct want *me = container_of(w, struct want, w);

	assert_true(rr_waiters_may_try(&q));
	if (me->kills)
		rr_waiters_del(&q, &me->kills->w);
	if (me->freed) {
		free(me);
		return;
	}
	if (memory < me->amount) {
		assert_false(rr_waiters_add(&q, w));
		/* from here on no request may try, the others that wait included */
		assert_false(rr_waiters_may_try(&q));
		return;
	}
	memory -= me->amount;
	served[nserved++] = (int)(me - wants);
}

static int set_up(void **state)
{
	(void)state;
	rr_waiters_init(&q);
	nserved = 0;
	memory = 0;
	for (int i = 0; i < 8; i++)
		wants[i] = (struct want){ .w.fn = on_turn, .amount = 1 };
	return 0;
}

static void wait_for(int i)
{
	assert_true(rr_waiters_add(&q, &wants[i].w));
	assert_false(rr_waiters_may_try(&q));
}

static void run_all(void)
{
	while (q.first && rr_waiters_run(&q))
		;
}

static void first_come_first_served(void **state)
{
	(void)state;
	assert_true(rr_waiters_may_try(&q));
	assert_true(rr_waiters_run(&q)); /* nothing to do */
	for (int i = 0; i < 5; i++)
		wait_for(i);
	memory = 3;
	run_all();
	assert_int_equal(nserved, 3);
	wait_for(5);
	memory = 8;
	run_all();
	assert_int_equal(nserved, 6);
	for (int i = 0; i < 6; i++)
		assert_int_equal(served[i], i);
	assert_true(rr_waiters_may_try(&q));
}

/* what needs more is not overtaken, however often it is woken in vain */
static void keeps_its_place(void **state)
{
	(void)state;
	wants[0].amount = 4;
	for (int i = 0; i < 4; i++)
		wait_for(i);
	for (memory = 0; memory < 4; memory++) {
		assert_false(rr_waiters_run(&q));
		assert_ptr_equal(q.first, &wants[0].w);
		assert_int_equal(nserved, 0);
	}
	wait_for(4);
	memory = 8;
	run_all();
	assert_int_equal(nserved, 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(served[i], i);
}

static void leaves_from_any_place(void **state)
{
	(void)state;
	memory = 100;
	for (int gone = 0; gone < 3; gone++) {
		nserved = 0;
		for (int i = 0; i < 3; i++)
			wait_for(i);
		rr_waiters_del(&q, &wants[gone].w);
		rr_waiters_del(&q, &wants[gone].w); /* does nothing */
		wait_for(3); /* the tail is right */
		run_all();
		assert_int_equal(nserved, 3);
		for (int i = 0, at = 0; i < 4; i++) {
			if (i != gone)
				assert_int_equal(served[at++], i);
		}
	}
}

/* the one with the turn may end others and free itself */
static void turns_may_end_waiters(void **state)
{
	struct want *own = malloc(sizeof(*own));

	(void)state;
	assert_non_null(own);
	*own = (struct want){ .w.fn = on_turn, .kills = &wants[1], .freed = true };
	assert_true(rr_waiters_add(&q, &own->w));
	wait_for(1);
	wait_for(2);
	memory = 8;
	run_all();
	assert_int_equal(nserved, 1);
	assert_int_equal(served[0], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(first_come_first_served, set_up),
		cmocka_unit_test_setup(keeps_its_place, set_up),
		cmocka_unit_test_setup(leaves_from_any_place, set_up),
		cmocka_unit_test_setup(turns_may_end_waiters, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
