/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_block_lanes.c - connections that break and servers that start again: copies of calls, and changes that may be lost
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat_block_flow.h"
#include "leat_count.h"
#include "tcp_proxy.h"

LOG_DEFINE("test_leat_block_lanes");

/* ---- lanes ---- */

static void restarts(const char *url)
{
	struct leat_block *b = attach(url, "conns=2", 0);
	uint8_t buf[512] = { 1 };

	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
	for (uint32_t round = 2; round < 5; round++) {
		fake_volume_stop(&rig);
		fake_volume_start(&rig);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
		assert_int_equal(fake_volume_incarnation(&rig, 0), round);
		assert_int_equal(fake_volume_incarnation(&rig, 1), round);
	}
	assert_int_equal(GET(old_lanes), 0);
	assert_int_equal(GET(nlanes), 2); /* one instance */
	detach(b);
}

static void lanes_of_restarts(void **state)
{
	(void)state;
	restarts(rig.local_url);
}

static void lanes_of_restarts_tcp(void **state)
{
	(void)state;
	restarts(rig.tcp_url);
}

/* The copy of a call over the next connection says that it is one. */
static void lanes_of_copies(void **state)
{
	static const enum tcp_proxy_cut cuts[] = { TCP_PROXY_BEHIND_CALL, TCP_PROXY_REPLY, TCP_PROXY_IN_CALL };
	struct tcp_proxy proxy;
	struct leat_block *b;
	uint8_t buf[512] = { 1 };
	char url[200];

	(void)state;
	tcp_proxy_start(&proxy, &rig.tcp);
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%u/block/vol0", proxy.addr.port);
	b = attach(url, NULL, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(cuts); i++) {
		atomic_store(&proxy.cut, cuts[i]);
		assert_int_equal(leat_block_pwrite(b, buf, 512, 512 * i, 0), 512);
		assert_int_equal(fake_volume_incarnation(&rig, 0), i + 2);
		assert_memory_equal(disk() + 512 * i, buf, 512);
	}
	assert_int_equal(GET(old_lanes), 0);
	detach(b);
	tcp_proxy_stop(&proxy);
}

static unsigned refuse_lanes;

static void refuse_lane(struct fake_volume *r, uint32_t proc, const void *args, void *res)
{
	(void)r;
	(void)args;
	if (proc == BLOCKPROC_WRITE && refuse_lanes) {
		refuse_lanes--;
		*(block_status *)res = BLOCK_ERR_OLD_LANE;
	}
}

/* A server that takes the newest connection for an old one: no loop. */
static void refused_lane(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	uint8_t buf[512] = { 1 };

	(void)state;
	SET(odd, refuse_lane);
	LOCKED(refuse_lanes = 1);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), -ECONNABORTED);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_WRITE), 1);
	SET(odd, NULL);
	detach(b);
}

/* ---- verifiers ---- */

static void verifier(void **state)
{
	struct leat_block *b = attach(rig.local_url, "holder=a", 0);
	uint8_t buf[512] = { 1 };

	(void)state;
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
	assert_int_equal(leat_block_flush(b), 0);
	SET(verf, 2); /* nothing was unflushed */
	assert_int_equal(leat_block_flush(b), 0);
	assert_int_equal(leat_block_zero(b, 0, 512, 0), 0);
	SET(verf, 3);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
	assert_int_equal(leat_block_flush(b), -EIO);
	assert_non_null(strstr(leat_error(leat_block_handle(b)), "the server has lost changes that were not flushed"));
	assert_int_equal(leat_block_flush(b), -EIO);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, LEAT_BLOCK_FUA), -EIO);
	detach(b);
	b = attach(rig.local_url, "holder=a", 0);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, LEAT_BLOCK_FUA), 512);
	SET(verf, 4); /* what FUA wrote is safe */
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, LEAT_BLOCK_FUA), 512);
	assert_int_equal(leat_block_discard(b, 0, 512), 0);
	SET(verf, 5);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, LEAT_BLOCK_FUA), -EIO);
	assert_int_equal(leat_block_flush(b), -EIO);
	detach(b);
}

/* A write that is acknowledged while a FLUSH is in flight is not covered by it. */
static void verifier_of_later_write(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	struct count flush = { 0 };
	uint8_t buf[512] = { 1 };

	(void)state;
	if (getenv("LEAT_TEST_CREDITS")) {
		detach(b);
		skip(); /* the write needs a credit beside that of the FLUSH */
	}
	SET(hold, true);
	assert_int_equal(leat_aio_block_flush(b, (struct leat_cb){ count_fn, &flush, count_free }), 0);
	await_held(b, 1);
	SET(hold, false);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
	fake_volume_release(&rig);
	while (!flush.fn)
		assert_true(leat_poll(leat_session(leat_block_handle(b)), -1) >= 0);
	assert_int_equal(flush.result, 0);
	SET(verf, 2);
	assert_int_equal(leat_block_flush(b), -EIO);
	detach(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lanes_of_restarts), TEST(lanes_of_restarts_tcp), TEST(lanes_of_copies), TEST(refused_lane),
		TEST(verifier), TEST(verifier_of_later_write),
	};

	log_state.level = LOG_LEVEL_ERR;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
