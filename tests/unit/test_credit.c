/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_credit.c - credits: one until the first reply, then min(wanted, last grant)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "credit.h"

static uint32_t all; /* of all requesters */

static unsigned take_all(struct rr_credit *c)
{
	unsigned n = 0;

	while (rr_credit_take(c))
		n++;
	return n;
}

/* Requesters of one engine share a sum, whatever ends their calls. */
static void test_all_out(void **state)
{
	struct rr_credit a, b;

	(void)state;
	all = 0;
	rr_credit_init(&a, 8, &all);
	rr_credit_init(&b, 8, &all);
	assert_int_equal(take_all(&a) + take_all(&b), 2);
	assert_int_equal(all, 2);
	rr_credit_replied(&a, 4);
	assert_int_equal(all, 1);
	assert_int_equal(take_all(&a), 4);
	assert_int_equal(all, 5);
	rr_credit_return(&a);
	assert_int_equal(a.out, 3);
	assert_int_equal(all, 4);
	rr_credit_lost(&a);
	assert_int_equal(a.out, 0);
	assert_int_equal(all, 1);
	rr_credit_connected(&b);
	assert_int_equal(all, 0);
}

/* checklist 43: one call until the first reply, after the connect and after each reconnect */
static void test_first_call(void **state)
{
	struct rr_credit c;

	(void)state;
	rr_credit_init(&c, 32, &all);
	for (int connect = 0; connect < 3; connect++) {
		rr_credit_connected(&c);
		assert_int_equal(take_all(&c), 1);
		assert_int_equal(c.out, 1);
		rr_credit_replied(&c, 64);
		assert_int_equal(c.out, 0);
		assert_int_equal(take_all(&c), 32); /* wanted is the ceiling */
	}
	assert_int_equal(c.starved, 6);
}

/* checklist 44: outstanding <= min(wanted, last grant), falling and rising; 50: 0 counts as 1 */
static void test_grants(void **state)
{
	static const struct {
		uint32_t granted, limit;
	} cases[] = {
		{ 8, 8 }, { 3, 3 }, { 1, 1 }, { 0, 1 }, { 16, 16 }, { UINT32_MAX, 16 }, { 5, 5 },
	};
	struct rr_credit c;

	(void)state;
	rr_credit_init(&c, 16, &all);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		rr_credit_connected(&c);
		assert_true(rr_credit_take(&c));
		rr_credit_replied(&c, cases[i].granted);
		assert_int_equal(c.limit, cases[i].limit);
		assert_int_equal(take_all(&c), cases[i].limit);
		assert_int_equal(c.low_water, cases[i].limit);
	}
}

/* checklist 44: a grant that falls below what is out takes nothing back and lets nothing more go */
static void test_falling(void **state)
{
	struct rr_credit c;

	(void)state;
	rr_credit_init(&c, 8, &all);
	assert_true(rr_credit_take(&c));
	rr_credit_replied(&c, 8);
	assert_int_equal(take_all(&c), 8);
	for (unsigned out = 8; out > 2; out--) {
		rr_credit_replied(&c, 2);
		assert_int_equal(c.out, out - 1);
		if (out - 1 >= 2)
			assert_false(rr_credit_take(&c));
	}
	assert_int_equal(c.out, 2);
	rr_credit_replied(&c, 1);
	assert_false(rr_credit_take(&c));
	rr_credit_replied(&c, 1);
	assert_true(rr_credit_take(&c)); /* one credit: slow, no stall */
	rr_credit_replied(&c, 8);
	assert_int_equal(take_all(&c), 8);
	assert_int_equal(c.low_water, 1);
}

static void test_wanted_none(void **state)
{
	struct rr_credit c;

	(void)state;
	rr_credit_init(&c, 0, &all);
	assert_int_equal(c.wanted, 1); /* checklist 2: the field is never 0 */
	assert_int_equal(take_all(&c), 1);
}

/* checklist 2, 45: a grant is at least 1 and never more than there are receives */
static void test_grant(void **state)
{
	static const struct {
		uint32_t asked, posted, cap, grant;
	} cases[] = {
		{ 128, 64, 64, 64 }, { 128, 10, 64, 10 },
		{ 4, 64, 64, 4 },    { 0, 64, 64, 1 },
		{ 128, 64, 0, 1 },   { 128, 0, 64, 1 },
		{ 1, 1, 1, 1 },	     { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(rr_credit_grant(cases[i].asked, cases[i].posted, cases[i].cap),
				 cases[i].grant);
}

/* What a requester may have out at most, and the receives that wait for it: a model of both ends, with
 * answers that take their time to be seen. */
static void test_promises(void **state)
{
	struct rr_credit_account a;

	(void)state;
	rr_credit_account_init(&a, 8);
	assert_int_equal(rr_credit_account_due(&a), 8);
	for (unsigned i = 0; i < 8; i++)
		assert_true(rr_credit_account_call(&a, 0));
	assert_int_equal(rr_credit_account_due(&a), 0);
	assert_int_equal(rr_credit_account_room(&a, 8), 15); /* seven others are held */
	rr_credit_account_reply(&a, 8, true);
	assert_int_equal(rr_credit_account_due(&a), 1); /* one came back, one may come */
	rr_credit_account_reply(&a, 16, true);
	assert_int_equal(rr_credit_account_due(&a), 10);
	assert_true(rr_credit_account_call(&a, 0));
	rr_credit_account_reply(&a, 4, true); /* what was promised stays promised ... */
	assert_int_equal(rr_credit_account_due(&a), 9);
	for (unsigned i = 0; i < 9; i++)
		assert_true(rr_credit_account_call(&a, 0));
	assert_int_equal(rr_credit_account_due(&a), 0);
	for (unsigned i = 0; i < 11; i++) { /* ... until the surplus has returned */
		rr_credit_account_reply(&a, 4, true);
		assert_int_equal(rr_credit_account_due(&a), 0);
	}
	rr_credit_account_reply(&a, 4, true);
	assert_int_equal(rr_credit_account_due(&a), 1);
	assert_true(rr_credit_account_call(&a, 0));
	assert_true(rr_credit_account_call(&a, 1));
	assert_false(rr_credit_account_call(&a, 1));
}

/* An answer to what may have been no call at all promises, and does not count. */
static void test_promises_by_errors(void **state)
{
	struct rr_credit_account a;

	(void)state;
	rr_credit_account_init(&a, 1);
	rr_credit_account_reply(&a, 3, false);
	assert_int_equal(rr_credit_account_due(&a), 3);
	rr_credit_account_reply(&a, 3, false);
	assert_int_equal(rr_credit_account_due(&a), 3); /* nonsense for ever gains nothing */
	assert_int_equal(rr_credit_account_room(&a, 0), 0);
	assert_int_equal(rr_credit_account_room(&a, 1), 0);
	assert_int_equal(rr_credit_account_room(&a, 2), 1);
}

/* The requester's own account, grants at random, answers seen late: it never sends to a receive that
 * is not there, and of those that are, none stands idle for good. */
static void test_promises_are_kept(void **state)
{
	uint64_t dice = 88172645463325252u;

	(void)state;
	for (unsigned run = 0; run < 50; run++) {
		uint32_t fly[64], nfly = 0, held = 0, posted = 8, got = 0;
		struct rr_credit c;
		struct rr_credit_account a;

		rr_credit_init(&c, 64, &all);
		rr_credit_account_init(&a, posted);
		for (unsigned step = 0; step < 3000; step++) {
			uint32_t what, want;

			dice ^= dice << 13;
			dice ^= dice >> 7;
			dice ^= dice << 17;
			what = (uint32_t)(dice >> 40) % 3;
			want = 1 + (uint32_t)(dice >> 20) % 64;
			if (what == 0 && rr_credit_take(&c)) { /* a call is there at once */
				assert_true(posted > 0);
				posted--;
				held++;
				assert_true(rr_credit_account_call(&a, 0));
			} else if (what == 1 && held) { /* gets its reply; at most @more further receives can be posted */
				uint32_t more = (uint32_t)(dice >> 50) % 9, room;

				held--;
				room = rr_credit_account_room(&a, posted + 1 + more);
				assert_true(room >= 1);
				fly[nfly] = rr_credit_grant(want, room, 64);
				rr_credit_account_reply(&a, fly[nfly++], true);
				posted = (uint32_t)rr_credit_account_due(&a);
			} else if (what == 2 && nfly) { /* and its answer seen, in order */
				rr_credit_replied(&c, fly[0]);
				memmove(fly, fly + 1, --nfly * sizeof(fly[0]));
				got++;
			}
		}
		assert_true(got > 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_out),
		cmocka_unit_test(test_first_call), cmocka_unit_test(test_grants),
		cmocka_unit_test(test_falling),	   cmocka_unit_test(test_wanted_none),
		cmocka_unit_test(test_grant),
		cmocka_unit_test(test_promises),
		cmocka_unit_test(test_promises_by_errors),
		cmocka_unit_test(test_promises_are_kept),
	};

	return cmocka_run_group_tests_name("credit", tests, NULL, NULL);
}
