/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_stripe_order.c - what orders the calls of a stripe server: terms of managers, commands, lanes of clients
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "inside.h"
#include "stripe_lanes.h"
#include "stripe_object.h"

/* ---- terms ---- */

static void terms(void **state)
{
	struct stripe_client c;
	stripe_entry entries[STRIPE_LIST_MAX];
	STRIPEINFOresok info;
	unsigned n;
	bool eof;

	(void)state;
	object_start(&c);
	assert_int_equal(stripe_info(&c, &info), STRIPE_OK);
	assert_int_equal(info.server, STRIPE_RIG_ID);
	assert_int_equal(info.term, 0); /* it has obeyed none */
	(void)object_stat(&c);
	assert_int_equal(stripe_info(&c, &info), STRIPE_OK);
	assert_int_equal(info.term, 1);
	assert_true(info.bytes && info.bytes_free && info.bytes_used && info.verf);
	assert_in_range(info.now / 1000, (uint64_t)time(NULL) - 100, (uint64_t)time(NULL) + 100);
	stripe_rig.term = 5;
	assert_int_equal(stripe_fence(&c, &object, 2, NULL, NULL), STRIPE_OK);
	stripe_rig.term = 4;
	assert_int_equal(stripe_stat_of(&c, &object, NULL), STRIPE_ERR_OLDTERM);
	assert_int_equal(stripe_rig.told_term, 5);
	stripe_rig.told_term = 0;
	assert_int_equal(stripe_list(&c, NULL, entries, &n, &eof), STRIPE_ERR_OLDTERM);
	assert_int_equal(stripe_rig.told_term, 5);
	assert_int_equal(stripe_fence(&c, &object, 3, NULL, NULL), STRIPE_ERR_OLDTERM);
	assert_int_equal(stripe_remove(&c, &object, object_soon(), NULL), STRIPE_ERR_OLDTERM);
	object_restart(&c);
	assert_int_equal(stripe_fence(&c, &object, 3, NULL, NULL), STRIPE_ERR_OLDTERM);
	/* INFO changes nothing: any term will do, and a newer one is not obeyed */
	assert_int_equal(stripe_info(&c, &info), STRIPE_OK);
	assert_int_equal(info.term, 5);
	stripe_rig.term = 6;
	assert_int_equal(stripe_info(&c, &info), STRIPE_OK);
	assert_int_equal(info.term, 5);
	stripe_rig.term = 5;
	assert_int_equal(object_stat(&c).epoch, 2);
	object_stop(&c);
}

/* A newer term begins when commands of older ones that a worker executes have ended. */
static void newer_term_waits(void **state)
{
	struct stripe_client c, newer;
	struct stripe_rig_call fence = { .err = 0 }, look = { .args.stat.name = stripe_rig_name(0xa7, 2) };

	(void)state;
	object_start(&c);
	stripe_connect(&newer, 2, 0, &object);
	assert_int_equal(stripe_fence(&c, &object, 2, NULL, NULL), STRIPE_OK);
	object_hold_sync();
	fence.args.fence = (STRIPEFENCEargs){ .name = object, .epoch = 3 };
	stripe_begin(&c, &fence, STRIPEPROC_FENCE, NULL, 0);
	object_wait_sync_held();
	stripe_rig.term = 2;
	object_count_from("stripe_term_waits");
	stripe_begin(&newer, &look, STRIPEPROC_STAT, NULL, 0);
	object_wait_counted(&look);
	assert_false(look.done);
	object_let_sync_go();
	assert_int_equal(stripe_end(&look), STRIPE_OK);
	assert_int_equal(stripe_end(&fence), STRIPE_ERR_OLDTERM);
	assert_int_equal(fence.res.stat.STRIPESTATres_u.term, 2);
	assert_int_equal(object_stat(&newer).epoch, 3); /* it was about to end */
	stripe_close(&newer);
	object_stop(&c);
}

/* Handles of managers: what an older one has begun ends before a newer one begins, and nothing of it begins after that. */
static void handles_of_managers(void **state)
{
	struct stripe_client c, holds, old, next;
	struct stripe_rig_call late, newer;
	STRIPEINFOresok info;
	uint32_t n;
	bool eof;

	(void)state;
	object_start(&c);
	stripe_connect(&holds, 2, 0, &object);
	stripe_connect(&old, 2, 1, &object);
	stripe_connect(&next, 3, 0, &object);
	holds.handle.term = old.handle.term = 4;
	next.handle.term = 5;
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	object_hold_write(&holds, &late, data + 1);
	object_count_from("stripe_term_waits");
	stripe_write_begin_at(&next, &newer, 0, data + 2, 3000, false);
	object_wait_counted(&newer);
	assert_int_equal(held_writes(), 1);
	assert_false(newer.done);
	assert_int_equal(stripe_read(&old, 0, mem, 10, &n, &eof), STRIPE_ERR_OLDTERM);
	held_writes_end(1);
	assert_int_equal(stripe_end(&late), STRIPE_OK);
	assert_int_equal(stripe_end(&newer), STRIPE_OK);
	object_see(&next, 0, data + 2, 3000, 3000);
	assert_int_equal(stripe_write(&old, 0, data + 1, 3000, false), STRIPE_ERR_OLDTERM);
	assert_int_equal(stripe_commit(&old), STRIPE_ERR_OLDTERM);
	assert_int_equal(server_counters(stripe_rig.srv, "stripe_old_terms"), 3);
	/* commands, too, and after a restart */
	stripe_close(&holds);
	stripe_close(&old);
	stripe_close(&next);
	object_restart(&c);
	assert_int_equal(stripe_info(&c, &info), STRIPE_OK);
	assert_int_equal(info.term, 5);
	stripe_rig.term = 4;
	assert_int_equal(stripe_stat_of(&c, &object, NULL), STRIPE_ERR_OLDTERM);
	assert_int_equal(stripe_rig.told_term, 5);
	c.handle.term = 4;
	assert_int_equal(stripe_read(&c, 0, mem, 10, &n, &eof), STRIPE_ERR_OLDTERM);
	/* clients have none */
	c.handle.term = 0;
	object_see(&c, 0, data + 2, 3000, 3000);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	stripe_rig.term = 1;
	object_stop(&c);
}

/* A command is good for its procedure and its arguments only. */
static void commands_are_bound(void **state)
{
	struct stripe_client c;
	struct stripe_rig_call call = { .args.stat.name = object }, other = { .err = 0 };
	char command[STRIPE_COMMAND_BYTES];

	(void)state;
	object_start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_OK);
	call.args.stat.name = object;
	stripe_sign(&c, &call, STRIPEPROC_STAT);
	memcpy(command, call.args.stat.command, sizeof(command));
	stripe_send(&c, &call, STRIPEPROC_STAT, NULL, 0);
	assert_int_equal(stripe_end(&call), STRIPE_OK);
	other.args.remove = (STRIPEREMOVEargs){ .name = object, .until = object_soon() };
	memcpy(other.args.remove.command, command, sizeof(command));
	stripe_send(&c, &other, STRIPEPROC_REMOVE, NULL, 0);
	assert_int_equal(stripe_end(&other), STRIPE_ERR_BADHANDLE);
	call.args.stat.name.stripe++;
	stripe_send(&c, &call, STRIPEPROC_STAT, NULL, 0);
	assert_int_equal(stripe_end(&call), STRIPE_ERR_BADHANDLE);
	/* and for its server */
	stripe_rig.server++;
	assert_int_equal(stripe_info(&c, NULL), STRIPE_ERR_BADHANDLE);
	assert_int_equal(stripe_fence(&c, &object, 2, NULL, NULL), STRIPE_ERR_BADHANDLE);
	stripe_rig.server--;
	object_see(&c, 0, data, 10, 10);
	object_stop(&c);
}

/* ---- lanes ---- */

/* A WRITE of the older connection is held, and one of the next connection waits for it. */
static void begin_late(struct stripe_client *c, struct stripe_client *old, struct stripe_rig_call *late,
		       struct stripe_rig_call *next)
{
	object_start(c);
	assert_int_equal(stripe_write(c, 0, data, 100, false), STRIPE_OK);
	object_hold_write(c, late, data + 1);
	object_count_from("stripe_lane_waits");
	stripe_reconnect(c, old);
	stripe_write_begin_at(c, next, 0, data + 2, 3000, false);
	object_wait_counted(next);
}

static void late_lane(void **state)
{
	struct stripe_client c, old;
	struct stripe_rig_call late, next;

	(void)state;
	begin_late(&c, &old, &late, &next);
	assert_int_equal(held_writes(), 1);
	assert_false(next.done);
	held_writes_end(1);
	assert_int_equal(stripe_end(&next), STRIPE_OK);
	object_see(&c, 0, data + 2, 3000, 3000);
	rpcrdma_clnt_destroy(old.clnt); /* ends its call */
	/* a connection of the older incarnation that comes late */
	old = c;
	old.lane.incarnation = 1;
	stripe_connect(&old, c.lane.instance, 0, &object);
	assert_int_equal(stripe_write(&old, 0, data + 3, 10, false), STRIPE_ERR_OLDLANE);
	old.lane.incarnation = c.lane.incarnation;
	assert_int_equal(stripe_write(&old, 0, data + 3, 10, false), STRIPE_ERR_OLDLANE);
	object_see(&c, 0, data + 2, 3000, 3000);
	/* also when the newer one has gone */
	stripe_close(&c);
	assert_int_equal(stripe_write(&old, 0, data + 3, 10, false), STRIPE_ERR_OLDLANE);
	old.lane.incarnation++;
	assert_int_equal(stripe_write(&old, 0, data + 3, 10, false), STRIPE_OK);
	object_stop(&old);
}

/* A call that waits until its handle has expired does nothing. */
static void expires_late(void **state)
{
	struct stripe_client c, old;
	struct stripe_rig_call late, next;

	(void)state;
	begin_late(&c, &old, &late, &next);
	atomic_store(&ahead, 1000);
	held_writes_end(1);
	assert_int_equal(stripe_end(&next), STRIPE_ERR_EXPIRED);
	atomic_store(&ahead, 0);
	object_see(&c, 0, data + 1, 3000, 4000);
	rpcrdma_clnt_destroy(old.clnt);
	object_stop(&c);
}

/* One client may have as many lanes; an idle one is forgotten for a new one. */
static void lanes_are_shared(void **state)
{
	struct stripe_client c;

	(void)state;
	object_start(&c);
	for (unsigned i = 0; i < STRIPE_LANES_CLIENT; i++) {
		c.lane.instance = 1000 + i / 100;
		c.lane.slot = i % 100;
		assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_OK);
	}
	c.lane.instance = 5000;
	assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_ERR_LATER); /* all have this connection */
	stripe_close(&c);
	stripe_connect(&c, 5000, 0, &object);
	while (stripe_write(&c, 0, data, 10, false) == STRIPE_ERR_LATER) /* the server has yet to see the end */
		;
	object_see(&c, 0, data, 10, 10);
	object_stop(&c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(terms),
		cmocka_unit_test(newer_term_waits),
		cmocka_unit_test(handles_of_managers),
		cmocka_unit_test(commands_are_bound),
		cmocka_unit_test(late_lane),
		cmocka_unit_test(expires_late),
		cmocka_unit_test(lanes_are_shared),
	};

	return cmocka_run_group_tests(tests, object_group, NULL);
}
