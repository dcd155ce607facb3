/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_stripe_nomem.c - the Nth allocation of a server of stripes fails, for N from 1 until none is left to fail
 *
 * While it serves, allocations of its threads are counted; while it starts or reloads, those of the thread that does so.
 * A call gets no reply, LATER or IO, and is sent again. Then everything works, and nothing is lost: the sanitizers see to
 * that.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/util.h"
#include "nomem_server.h"
#include "stripe_rig.h"

#define CACHED "read=cached,write=cached"

/* ---- starting and reloading ---- */

static void starting(void **state)
{
	unsigned long n = 0;
	int err;

	(void)state;
	do {
		nomem_server_at_start(++n);
		err = stripe_rig_start(CACHED);
		nomem_server_at_start(0);
		assert_true(!err || nomem_server_failed());
		if (err) /* it has let go of the directory */
			assert_int_equal(stripe_rig_start(CACHED), 0);
		stripe_rig_stop();
	} while (nomem_server_failed());
	print_message("%lu allocations\n", n - 1);
	assert_true(n > 50);
}

static void reloading(void **state)
{
	stripe_name name = stripe_rig_name(1, 2);
	struct stripe_client c;
	unsigned long n = 0;
	char why[256];
	int err;

	(void)state;
	assert_int_equal(stripe_rig_start(CACHED), 0);
	stripe_connect(&c, 1, 0, &name);
	do {
		why[0] = '\0';
		nomem_server_at_start(++n);
		err = stripe_rig_reload("", why, sizeof(why));
		nomem_server_at_start(0);
		assert_true(!err || (nomem_server_failed() && why[0]));
		assert_int_equal(stripe_write(&c, 0, why, 5, false), STRIPE_OK);
		assert_int_equal(stripe_rig_reload(CACHED, why, sizeof(why)), 0);
	} while (nomem_server_failed());
	print_message("%lu allocations\n", n - 1);
	assert_true(n > 10);
	stripe_close(&c);
	stripe_rig_stop();
}

/* ---- serving ---- */

static uint8_t data[65536], mem[65536];
static struct stripe_client client;

static bool is_done(void *arg)
{
	return ((struct stripe_rig_call *)arg)->done;
}

/* Makes the call until it has been served. A new connection has a new incarnation. */
static void call(uint32_t proc, struct stripe_rig_call *call, void *sink, uint32_t bytes)
{
	struct stripe_rig_call once;
	stripe_status status;

	for (;;) {
		once = *call;
		if (proc == STRIPEPROC_WRITE)
			once.args.write.data.iov = &once.iov;
		stripe_begin(&client, &once, proc, sink, bytes);
		stripe_run_until(is_done, &once);
		status = once.res.status;
		if (once.err || status == STRIPE_ERR_OLDLANE) /* it was refused, or connected again */
			stripe_reconnect(&client, NULL);
		else if (status != STRIPE_ERR_LATER && status != STRIPE_ERR_IO)
			break;
	}
	if (status != STRIPE_OK)
		fail_msg("procedure %u: %u", proc, status);
	*call = once;
}

static void everything(uint8_t which)
{
	const stripe_name name = stripe_rig_name(0xab, which), other = stripe_rig_name(0xab, (uint8_t)(which + 1));
	struct stripe_rig_call info = { .err = 0 }, commit = { .err = 0 };
	struct stripe_rig_call write = { .iov = { data, sizeof(data) },
					 .args.write = { .sync = TRUE, .data = { .length = sizeof(data), .iovcnt = 1 } } };
	struct stripe_rig_call small = { .iov = { data, 512 }, .args.write = { .data = { .length = 512, .iovcnt = 1 } } };
	struct stripe_rig_call read = { .args.read.count = sizeof(mem) };
	struct stripe_rig_call st = { .args.stat.name = name };
	struct stripe_rig_call fence = { .args.fence = { .name = name, .epoch = 2, .cut = true, .bytes = 1000 } };
	struct stripe_rig_call rm = { .args.remove = { .name = other, .until = (uint64_t)time(NULL) + 1000 } };
	struct stripe_rig_call gone = { .err = 0 };
	struct stripe_rig_call list = { .args.list.first = true };

	stripe_connect(&client, 1000u + which, 0, &name);
	call(STRIPEPROC_INFO, &info, NULL, 0);
	call(STRIPEPROC_WRITE, &write, NULL, 0);
	call(STRIPEPROC_WRITE, &small, NULL, 0);
	call(STRIPEPROC_COMMIT, &commit, NULL, 0);
	memset(mem, 0, sizeof(mem));
	call(STRIPEPROC_READ, &read, mem, sizeof(mem));
	assert_memory_equal(mem, data, sizeof(mem));
	call(STRIPEPROC_STAT, &st, NULL, 0);
	assert_int_equal(st.res.stat.STRIPESTATres_u.stat.bytes, sizeof(data));
	call(STRIPEPROC_FENCE, &fence, NULL, 0);
	assert_int_equal(fence.res.stat.STRIPESTATres_u.stat.bytes, 1000);
	call(STRIPEPROC_REMOVE, &rm, NULL, 0);
	gone.args.aside = (STRIPEASIDEargs){ .name = name, .until = (uint64_t)time(NULL) + 1000 };
	call(STRIPEPROC_STAT, &st, NULL, 0);
	gone.args.aside.mtime = st.res.stat.STRIPESTATres_u.stat.mtime;
	call(STRIPEPROC_SET_ASIDE, &gone, NULL, 0);
	assert_true(gone.res.stat.STRIPESTATres_u.stat.removed);
	call(STRIPEPROC_LIST, &list, NULL, 0);
	assert_true(list.res.list.STRIPELISTres_u.resok.entries.entries_len >= 2);
	xdr_free((xdrproc_t)xdr_STRIPELISTres, (char *)&list.res.list);
	stripe_close(&client);
}

static void serving(const char *url)
{
	unsigned long n = 0;

	stripe_rig_url = url;
	stripe_rig_timeout_ms = 50; /* of calls that are dropped */
	do {
		assert_int_equal(stripe_rig_start(CACHED), 0);
		nomem_server_serving(++n);
		everything(2);
		nomem_server_serving(0);
		everything(4);
		stripe_rig_stop();
	} while (nomem_server_failed());
	stripe_rig_timeout_ms = 0;
	stripe_rig_url = NULL;
	print_message("%lu allocations\n", n - 1);
	assert_true(n > 10);
}

static void serving_local(void **state)
{
	(void)state;
	serving(NULL);
}

static void serving_tcp(void **state)
{
	(void)state;
	serving("tcp://127.0.0.1:0");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(starting), cmocka_unit_test(reloading), cmocka_unit_test(serving_local),
		cmocka_unit_test(serving_tcp),
	};

	nomem_server_init();
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 509);
	return cmocka_run_group_tests_name("stripe nomem", tests, NULL, NULL);
}
