/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_withheld.c - a holder with operations that have begun, and whose data it never moves, cannot keep its volume
 *
 * Over the local fabric it withholds the data of a WRITE behind the first unit, with which the WRITE begins: the client
 * copies the data itself, into a bounce area. Over TCP, where a WRITE begins when all of its data has arrived, it receives
 * no data of many READs, so that some have no buffer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "block_lanes.h"
#include "block_rig.h"
#include "held_writes.h"
#include "withholder.h"

#define PLAIN "read=cached,write=cached"
#define UNITS "," WITHHOLDER_UNITS
#define BYTES (1u << 20)
#define READS 24u /* more than fit into the server's buffers and the sockets */
#define PINNED (8u << 20)

static uint8_t data[BYTES], mem[4096];

/* ---- operations that have begun ---- */

static atomic_uint begun;
int __real_block_enter(struct block_volume *v, const struct block_id *id, const block_lane *lane, struct block_conn *conn,
		       bool changes, struct req_waiter *w, struct block_pass *pass);
int __wrap_block_enter(struct block_volume *v, const struct block_id *id, const block_lane *lane, struct block_conn *conn,
		       bool changes, struct req_waiter *w, struct block_pass *pass);

int __wrap_block_enter(struct block_volume *v, const struct block_id *id, const block_lane *lane, struct block_conn *conn,
		       bool changes, struct req_waiter *w, struct block_pass *pass)
{
	int err = __real_block_enter(v, id, lane, conn, changes, w, pass);

	if (!err)
		atomic_fetch_add(&begun, 1);
	return err;
}

static bool have_begun(void *n)
{
	return atomic_load(&begun) >= *(unsigned *)n;
}

/* ---- connections that have ended ---- */

static atomic_uint ended;
void __real_block_conn_end(struct block_conn *c);
void __wrap_block_conn_end(struct block_conn *c);

void __wrap_block_conn_end(struct block_conn *c)
{
	__real_block_conn_end(c);
	atomic_fetch_add(&ended, 1);
}

static bool has_ended(void *arg)
{
	(void)arg;
	return atomic_load(&ended) > 0;
}

/* ---- the holder ---- */

static struct block_times times;

static struct holder {
	struct block_client c;
	struct block_rig_call call;
} holder;

static void withhold_write(void)
{
	unsigned n = 1;

	atomic_store(&begun, 0);
	block_write_begin_at(&holder.c, &holder.call, 0, data, BYTES, false);
	withholder_run();
	block_run_until(have_begun, &n);
}

static void withhold_reads(void)
{
	BLOCKREADargs args = { .at.lane = holder.c.lane, .count = BYTES };
	unsigned n = READS;

	memcpy(args.at.handle, holder.c.handle, sizeof(args.at.handle));
	args.at.lane.slot = 1;
	atomic_store(&begun, 0);
	withholder_dial(block_rig_addr()->port);
	for (unsigned i = 0; i < READS; i++)
		withholder_send(LEAT_BLOCK, LEAT_BLOCK_V1, BLOCKPROC_READ, (xdrproc_t)xdr_BLOCKREADargs, &args);
	block_run_until(have_begun, &n);
}

/* It attaches to "more" and "vol". Operations on "vol" begin, and do not end. @more: gets the client of "more" */
static void withhold(struct block_client *more)
{
	struct rpcrdma_engine *engine = block_rig.engine;

	if (block_rig_is_local())
		block_rig.engine = withholder_local(data, BYTES);
	block_connect(&holder.c, 1, 0);
	assert_int_equal(block_attach(&holder.c, "more", "first", 0, NULL), BLOCK_OK);
	*more = holder.c;
	assert_int_equal(block_attach(&holder.c, "vol", "first", 0, NULL), BLOCK_OK);
	block_rig.engine = engine;
	if (block_rig_is_local())
		withhold_write();
	else
		withhold_reads();
}

static void end_holder(void)
{
	withholder_let_go();
	if (holder.c.clnt)
		block_close(&holder.c);
	withholder_end();
	memset(&holder, 0, sizeof(holder));
}

static int start(const char *spec)
{
	return block_rig_start((const char *const[]){ spec, "more=b," PLAIN, NULL });
}

static void check_first(uint8_t want)
{
	uint8_t byte;
	int fd = block_rig_open("a");

	assert_int_equal(pread(fd, &byte, 1, 0), 1);
	assert_int_equal(byte, want);
	close(fd);
}

static int set_up(bool tcp)
{
	memset(data, 'w', sizeof(data));
	times = block_times;
	block_times.close_ns = 1;
	block_rig_pinned = tcp ? PINNED : 0; /* of a local client the copies are held */
	block_rig_url = tcp ? "tcp://127.0.0.1:0" : NULL;
	return 0;
}

static int over_local(void **state)
{
	(void)state;
	return set_up(false);
}

static int over_tcp(void **state)
{
	(void)state;
	return set_up(true);
}

static int tear_down(void **state)
{
	(void)state;
	block_times = times;
	block_rig_url = NULL;
	block_rig_pinned = 0;
	return 0;
}

/* An RDMA device reads the memory of a client that stands still; in a slow fabric calls do not leave it. */
static void check_possible(void)
{
	if (getenv("LEAT_TEST_CHAOS") || (getenv("LEAT_FLOW_RDMA") && !block_rig_url))
		skip();
}

/* ---- tests ---- */

static void take_over(const char *spec, const char *victim)
{
	static uint8_t newer[BYTES];
	struct block_client b, more;

	check_possible();
	assert_int_equal(start(spec), 0);
	withhold(&more);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&b, "vol", "second", BLOCK_TAKE_OVER, victim), BLOCK_OK);
	memset(newer, 'n', sizeof(newer));
	assert_int_equal(block_write(&b, 0, newer, BYTES, false), BLOCK_OK);
	end_holder();
	assert_int_equal(block_flush(&b), BLOCK_OK);
	check_first('n');
	block_close(&b);
	block_rig_stop();
}

static void exclusive(void **state)
{
	(void)state;
	take_over("vol=a," PLAIN UNITS, NULL);
}

static void shared(void **state)
{
	(void)state;
	take_over("vol=a,share=shared," PLAIN UNITS, "first");
}

static void direct(void **state)
{
	(void)state;
	take_over("vol=a" UNITS, NULL);
}

/* It detaches by another connection: that DETACH waits for its operations, as what comes next does. */
static void detaches(void **state)
{
	struct block_client b, more;

	(void)state;
	check_possible();
	assert_int_equal(start("vol=a," PLAIN UNITS), 0);
	withhold(&more);
	block_connect(&b, 1, 2);
	memcpy(b.handle, holder.c.handle, sizeof(b.handle));
	assert_int_equal(block_detach(&b), BLOCK_OK);
	block_close(&b);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&b, "vol", "second", 0, NULL), BLOCK_OK);
	end_holder();
	block_close(&b);
	block_rig_stop();
}

/* The holder keeps another volume that it has by the connection: it connects again. */
static void other_volume(void **state)
{
	struct block_client b, more;

	(void)state;
	check_possible();
	assert_int_equal(start("vol=a," PLAIN UNITS), 0);
	withhold(&more);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&b, "vol", "second", BLOCK_TAKE_OVER, NULL), BLOCK_OK);
	assert_int_equal(block_attach(&b, "more", "second", 0, NULL), BLOCK_ERR_BUSY);
	more.lane.incarnation++;
	block_connect_lane(&more);
	assert_int_equal(block_write(&more, 0, data, 4096, false), BLOCK_OK);
	block_close(&more);
	end_holder();
	block_close(&b);
	block_rig_stop();
}

/* One connection of the holder ends by itself, after the holder was fenced and before the other one is closed. */
static void ends_meanwhile(void **state)
{
	struct block_client b, more;

	(void)state;
	assert_int_equal(start("vol=a," PLAIN), 0);
	withhold(&more);
	block_times.close_ns = 3600 * NS_PER_S;
	block_times.drain_ns = 1;
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&b, "vol", "second", BLOCK_TAKE_OVER, NULL), BLOCK_ERR_TIMEDOUT);
	atomic_store(&ended, 0);
	block_close(&holder.c);
	block_run_until(has_ended, NULL);
	block_times.close_ns = 1;
	block_times.drain_ns = times.drain_ns;
	assert_int_equal(block_attach(&b, "vol", "second", BLOCK_TAKE_OVER, NULL), BLOCK_OK);
	end_holder();
	block_close(&b);
	block_rig_stop();
}

/* What the disk has not ended is waited for, although the connection is closed. */
static void disk_is_waited_for(void **state)
{
	struct block_rig_call old, attach = { .args.attach = { .volume = (char *)(uintptr_t)"vol",
							       .holder = (char *)(uintptr_t)"second",
							       .victim = (char *)(uintptr_t)"",
							       .app = (char *)(uintptr_t)"",
							       .flags = BLOCK_TAKE_OVER } };
	struct block_client a, b;
	int n = 1;

	(void)state;
	assert_int_equal(start("vol=a," PLAIN), 0);
	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	held_writes_begin();
	block_write_begin_at(&a, &old, 0, data, 4096, false);
	block_run_until(held_writes_are, &n);
	block_begin(&b, &attach, BLOCKPROC_ATTACH, NULL, 0);
	assert_int_equal(block_end(&old), BLOCK_ERR_FENCED); /* sent again by a new connection */
	for (int i = 0; i < 50; i++)
		assert_int_equal(block_read(&a, 0, mem, 512), BLOCK_ERR_FENCED);
	assert_false(attach.done);
	check_first(0);
	held_writes_end(1);
	assert_int_equal(block_end(&attach), BLOCK_OK);
	check_first('w');
	xdr_free((xdrproc_t)xdr_BLOCKATTACHres, (char *)&attach.res.attach);
	block_close(&a);
	block_close(&b);
	block_rig_stop();
}

#define BOTH(fn) { #fn, fn, over_local, tear_down, NULL }, { #fn " over TCP", fn, over_tcp, tear_down, NULL }

int main(void)
{
	static const struct CMUnitTest tests[] = {
		BOTH(exclusive), BOTH(shared), BOTH(direct), BOTH(detaches), BOTH(other_volume), BOTH(disk_is_waited_for),
		{ "ends_meanwhile over TCP", ends_meanwhile, over_tcp, tear_down, NULL },
	};

	return cmocka_run_group_tests_name("block withheld", tests, NULL, NULL);
}
