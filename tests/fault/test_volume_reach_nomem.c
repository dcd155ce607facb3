/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_reach_nomem.c - the Nth allocation fails of the thread of a manager that asks stripe servers, for N from 1 until
 * none is left to fail
 *
 * Each time the manager knows in the end which servers are in reach. The sanitizers find leaks.
 */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "leat.h"
#include "leat_volume.h"
#include "nomem.h"
#include "volume_pending.h"
#include "volume_rig.h"

LOG_DEFINE("test_volume_reach_nomem");

static _Thread_local bool asks;
static atomic_ulong left; /* allocations until one fails; 0: it has failed, or none does */

int __real_leat_session_create(const struct leat_opts *opts, struct leat_session **ret);
int __wrap_leat_session_create(const struct leat_opts *opts, struct leat_session **ret);

int __wrap_leat_session_create(const struct leat_opts *opts, struct leat_session **ret)
{
	asks = true;
	return __real_leat_session_create(opts, ret);
}

static bool fails(void)
{
	return asks && atomic_load(&left) && atomic_fetch_sub(&left, 1) == 1;
}

static int count_in_reach(void *ctx, const struct leat_volume_seen *seen)
{
	*(unsigned *)ctx += seen->reach == LEAT_VOLUME_IN_REACH;
	return 0;
}

static void wait_for_all(struct leat *m)
{
	uint64_t until = clock_now_ns() + 60 * NS_PER_S;
	unsigned n = 0;

	while (n < VOLUME_RIG_SERVERS && clock_now_ns() < until) {
		n = 0;
		assert_int_equal(leat_volume_servers(m, count_in_reach, &n), 0);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(n, VOLUME_RIG_SERVERS);
}

static void asking(void **state)
{
	unsigned long n = 0;
	struct leat *m;

	(void)state;
	nomem_decide = fails;
	volume_rig_start(false, "stripe=64K");
	m = volume_rig_mount(NULL);
	do {
		volume_rig_end_manager();
		atomic_store(&left, ++n);
		volume_rig_start_manager();
		wait_for_all(m);
	} while (!atomic_exchange(&left, 0));
	print_message("%lu allocations\n", n - 1);
	assert_true(n > 20);
	leat_umount(m);
	volume_rig_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(asking) };

	volume_times = (struct volume_times){ .server = "10s", .probe_ns = 5 * NS_PER_MS, .retry_ns = 10 * NS_PER_MS };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
