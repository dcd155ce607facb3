/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_stripe_withheld.c - a client with operations that have begun, and whose data it never moves, does not delay a FENCE
 *
 * Over the local fabric it withholds the data of a WRITE behind the first unit, with which the WRITE begins. Over TCP,
 * where a WRITE begins when all of its data has arrived, it receives no data of many READs, so that some have no buffer.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "held_writes.h"
#include "inside.h"
#include "stripe_lanes.h"
#include "stripe_rig.h"
#include "stripe_vol.h"
#include "withholder.h"

#define OPTIONS "read=cached,write=cached," WITHHOLDER_UNITS
#define BYTES (1u << 20)
#define CUT 100000u
#define READS 24u /* more than fit into the server's buffers and the sockets */
#define PINNED (8u << 20)

static uint8_t data[BYTES], newer[BYTES], mem[4096];
static stripe_name object, another;

/* ---- operations that have begun ---- */

static atomic_uint begun;
int __real_stripe_lane_enter(struct stripe_lanes *l, const stripe_lane *lane, struct stripe_conn *conn, bool changes,
			     struct req_waiter *w, struct stripe_pass *ret);
int __wrap_stripe_lane_enter(struct stripe_lanes *l, const stripe_lane *lane, struct stripe_conn *conn, bool changes,
			     struct req_waiter *w, struct stripe_pass *ret);

int __wrap_stripe_lane_enter(struct stripe_lanes *l, const stripe_lane *lane, struct stripe_conn *conn, bool changes,
			     struct req_waiter *w, struct stripe_pass *ret)
{
	int err = __real_stripe_lane_enter(l, lane, conn, changes, w, ret);

	if (!err)
		atomic_fetch_add(&begun, 1);
	return err;
}

static bool have_begun(void *n)
{
	return atomic_load(&begun) >= *(unsigned *)n;
}

/* ---- the withholder ---- */

static struct stripe_client withholder;
static uint64_t term; /* of its handle */

static void withhold_write(void)
{
	static struct stripe_rig_call call;
	struct rpcrdma_engine *engine = stripe_rig.engine;
	unsigned n = 1;

	stripe_rig.engine = withholder_local(data, BYTES);
	stripe_connect(&withholder, 50, 0, &object);
	withholder.handle.term = term;
	stripe_rig.engine = engine;
	atomic_store(&begun, 0);
	stripe_write_begin_at(&withholder, &call, 0, data, BYTES, false);
	withholder_run();
	stripe_run_until(have_begun, &n);
}

static void withhold_reads(void)
{
	const struct stripe_handle h = { .volume = STRIPE_RIG_VOLUME, .server = STRIPE_RIG_ID, .name = object, .epoch = 1,
					 .rights = STRIPE_MAY_READ, .expiry = (uint64_t)time(NULL) + 600 };
	STRIPEREADargs args = { .at.lane = { .instance = 50, .slot = 1, .incarnation = 1 }, .count = BYTES };
	unsigned n = READS;

	stripe_handle_make(&stripe_rig.keys, &h, args.at.handle);
	atomic_store(&begun, 0);
	withholder_dial(stripe_rig_port());
	for (unsigned i = 0; i < READS; i++)
		withholder_send(LEAT_STRIPES, LEAT_STRIPES_V1, STRIPEPROC_READ, (xdrproc_t)xdr_STRIPEREADargs, &args);
	stripe_run_until(have_begun, &n);
}

static void end_withholder(void)
{
	withholder_let_go();
	if (withholder.clnt)
		stripe_close(&withholder);
	withholder_end();
}

/* ---- parts ---- */

static struct stripe_client manager, honest;

static uint64_t closed(void)
{
	return server_counters(stripe_rig.srv, "stripe_withheld");
}

/* The honest client has another object, and one connection: the server refuses a second one of its incarnation. */
static void check_honest(void)
{
	assert_int_equal(stripe_write(&honest, 0, mem, sizeof(mem), false), STRIPE_OK);
}

/* An RDMA device reads the memory of a client that stands still; in a slow fabric calls do not leave it. */
static void start(void)
{
	if (getenv("LEAT_TEST_CHAOS") || (getenv("LEAT_FLOW_RDMA") && !stripe_rig_url))
		skip();
	object = stripe_rig_name(0xa7, 1);
	another = stripe_rig_name(0xa7, 2);
	memset(data, 'w', sizeof(data));
	memset(newer, 'n', sizeof(newer));
	assert_int_equal(stripe_rig_start(OPTIONS), 0);
	stripe_connect(&manager, 1, 0, &object);
	stripe_connect(&honest, 2, 0, &another);
	assert_int_equal(stripe_write(&manager, 0, newer, BYTES, false), STRIPE_OK);
	check_honest();
	if (stripe_rig_url)
		withhold_reads();
	else
		withhold_write();
}

static void stop(void)
{
	check_honest();
	stripe_close(&honest);
	stripe_close(&manager);
	stripe_rig_stop();
}

/* ---- tests ---- */

/* The withheld data does not arrive behind newer data. */
static void fence(void **state)
{
	uint32_t got = 0;
	stripe_stat st;
	bool eof;

	(void)state;
	start();
	assert_int_equal(stripe_fence(&manager, &object, 2, &(uint64_t){ CUT }, &st), STRIPE_OK);
	assert_int_equal(st.bytes, CUT);
	assert_int_equal(closed(), 1);
	manager.handle.epoch = 2;
	assert_int_equal(stripe_write(&manager, 0, newer, CUT, false), STRIPE_OK);
	end_withholder();
	assert_int_equal(stripe_read(&manager, 0, data, BYTES, &got, &eof), STRIPE_OK);
	assert_int_equal(got, CUT);
	assert_memory_equal(data, newer, CUT);
	stop();
}

static void removal(void **state)
{
	uint64_t until = (uint64_t)time(NULL) + 600;
	stripe_stat st;

	(void)state;
	start();
	assert_int_equal(stripe_remove(&manager, &object, until, &st), STRIPE_OK);
	assert_true(st.removed);
	assert_int_equal(st.bytes, 0);
	assert_int_equal(closed(), 1);
	end_withholder();
	stop();
}

/* A new connection of its lane closes the older one at once, and waits for nothing else. */
static void newer_lane(void **state)
{
	struct stripe_client c;

	(void)state;
	start();
	stripe_connect(&c, 50, 0, &object);
	c.lane.incarnation = 2;
	assert_int_equal(stripe_write(&c, 0, newer, BYTES, false), STRIPE_OK);
	assert_int_equal(closed(), 0);
	end_withholder();
	stripe_close(&c);
	stop();
}

/* A manager that stands still has no share in what the next one does. */
static void newer_term(void **state)
{
	(void)state;
	term = 4;
	start();
	manager.handle.term = 5;
	assert_int_equal(stripe_write(&manager, 0, newer, BYTES, false), STRIPE_OK);
	assert_int_equal(closed(), 1);
	term = 0;
	end_withholder();
	stop();
}

static bool is_closed(void *arg)
{
	return closed() || ((struct stripe_rig_call *)arg)->done;
}

/* What the disk has not ended is waited for, although the connection is closed. */
static void disk_is_waited_for(void **state)
{
	struct stripe_rig_call late, call = { .err = 0 };
	struct stripe_client c;
	int n = 1;

	(void)state;
	if (getenv("LEAT_TEST_CHAOS"))
		skip();
	object = stripe_rig_name(0xa7, 1);
	assert_int_equal(stripe_rig_start("read=cached,write=cached"), 0);
	stripe_connect(&manager, 1, 0, &object);
	stripe_connect(&c, 2, 0, &object);
	assert_int_equal(stripe_write(&c, 0, newer, 100, false), STRIPE_OK);
	held_writes_begin();
	stripe_write_begin_at(&c, &late, 0, data, 4096, false);
	stripe_run_until(held_writes_are, &n);
	call.args.fence = (STRIPEFENCEargs){ .name = object, .epoch = 2, .cut = true, .bytes = 50 };
	stripe_begin(&manager, &call, STRIPEPROC_FENCE, NULL, 0);
	stripe_run_until(is_closed, &call);
	assert_int_equal(stripe_end(&late), STRIPE_ERR_FENCED); /* sent again by a new connection */
	assert_false(call.done);
	held_writes_end(1);
	assert_int_equal(stripe_end(&call), STRIPE_OK);
	assert_int_equal(call.res.stat.STRIPESTATres_u.stat.bytes, 50);
	assert_int_equal(closed(), 1);
	stripe_close(&c);
	stripe_close(&manager);
	stripe_rig_stop();
}

static struct stripe_times times;

static int set_up(const char *url)
{
	times = stripe_times;
	stripe_times.close_ns = 1;
	stripe_rig_url = url;
	stripe_rig_pinned = url ? PINNED : 0; /* of a local client the copies are held */
	return 0;
}

static int over_local(void **state)
{
	(void)state;
	return set_up(NULL);
}

static int over_tcp(void **state)
{
	(void)state;
	return set_up("tcp://127.0.0.1:0");
}

static int tear_down(void **state)
{
	(void)state;
	stripe_times = times;
	stripe_rig_url = NULL;
	stripe_rig_pinned = 0;
	return 0;
}

#define LOCAL(fn) { #fn, fn, over_local, tear_down, NULL }
#define BOTH(fn) LOCAL(fn), { #fn " over TCP", fn, over_tcp, tear_down, NULL }

int main(void)
{
	static const struct CMUnitTest tests[] = { BOTH(fence), BOTH(removal), LOCAL(newer_lane), LOCAL(newer_term), BOTH(disk_is_waited_for) };

	return cmocka_run_group_tests_name("stripes withheld", tests, NULL, NULL);
}
