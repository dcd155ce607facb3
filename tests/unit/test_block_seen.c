/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_seen.c - the lanes that a block volume remembers: shares of clients, and no late copy whatever is forgotten
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "server/block/block_seen.h"

static struct block_seen seen;

static int setup(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	return 0;
}

static struct rpcrdma_client_id client(uint64_t key)
{
	return (struct rpcrdma_client_id){ .kind = RPCRDMA_CLIENT_IPV4, .key = key };
}

static bool note(uint64_t who, uint64_t instance, uint32_t incarnation, uint64_t serial)
{
	const block_lane lane = { .instance = instance, .incarnation = incarnation };
	const struct rpcrdma_client_id id = client(who);

	return block_seen_note(&seen, &lane, &id, serial);
}

static bool lacks(uint64_t who, uint64_t instance, uint64_t serial)
{
	const block_lane lane = { .instance = instance, .incarnation = 1 };
	const struct rpcrdma_client_id id = client(who);

	return block_seen_lacks(&seen, &lane, &id, serial);
}

static void one_lane(void **state)
{
	(void)state;
	assert_false(lacks(1, 10, 1));
	assert_false(note(1, 10, 2, 5));
	assert_false(lacks(1, 10, 1));
	assert_true(note(1, 10, 1, 4));
	assert_false(note(1, 10, 2, 5));
	assert_false(note(1, 10, 3, 6));
	assert_true(note(1, 10, 2, 5));
}

/* A client with any number of lanes forgets its own, and its own calls only have to come again. */
static void many_lanes_of_one(void **state)
{
	(void)state;
	assert_false(note(2, 1, 2, 3));
	for (uint64_t i = 0; i < 1000; i++)
		assert_false(note(1, 100 + i, 2, 10));
	assert_true(lacks(1, 5, 9));
	assert_true(lacks(1, 100, 9));	/* forgotten: a late copy of it */
	assert_false(lacks(1, 5, 10));	/* not older than what was forgotten */
	assert_false(lacks(1, 1099, 9)); /* it is known */
	assert_true(note(1, 1099, 1, 9));
	assert_true(note(2, 1, 1, 2)); /* of another client: not forgotten */
	assert_false(lacks(2, 5, 1));
	assert_false(lacks(3, 5, 1));
	assert_in_range(seen.used, 2, BLOCK_SEEN_MAX / 2 + 1);
}

/* There is room for a client that comes when others have all that they may have. */
static void full(void **state)
{
	(void)state;
	for (uint64_t who = 1; who < 300; who++)
		for (uint64_t i = 0; i < 300; i++)
			assert_false(note(who, who << 32 | i, 2, who));
	assert_int_equal(seen.used, BLOCK_SEEN_MAX);
	assert_true(note(299, UINT64_C(299) << 32 | 299, 1, 298));
}

/* Whatever is forgotten, a call of an older connection is found out. */
static void no_late_copy(void **state)
{
	enum { CLIENTS = 60, LANES = 40 };
	static struct {
		uint32_t incarnation;
		uint64_t serial, older; /* of its newest connection, and of the one before */
	} lanes[CLIENTS][LANES];
	unsigned found[2] = { 0 };
	uint64_t serial = 0;

	(void)state;
	memset(lanes, 0, sizeof(lanes));
	for (unsigned step = 0; step < 100000; step++) {
		unsigned who = (unsigned)rand() % CLIENTS, which = (unsigned)rand() % LANES;
		uint64_t instance = who * 100 + which;

		who = rand() % 2 ? 0 : who; /* one of them calls most */
		instance = who * 100 + which;
		if (rand() % 4) {
			lanes[who][which].older = lanes[who][which].serial;
			lanes[who][which].serial = ++serial;
			assert_false(note(who, instance, ++lanes[who][which].incarnation, serial));
		} else if (lanes[who][which].incarnation > 1) {
			bool lost = lacks(who, instance, lanes[who][which].older);

			found[lost]++;
			assert_true(lost || note(who, instance, lanes[who][which].incarnation - 1, lanes[who][which].older));
		}
	}
	assert_true(found[0] && found[1]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_lane, setup), cmocka_unit_test_setup(many_lanes_of_one, setup),
		cmocka_unit_test_setup(full, setup), cmocka_unit_test_setup(no_late_copy, setup),
	};

	return cmocka_run_group_tests_name("block seen", tests, NULL, NULL);
}
