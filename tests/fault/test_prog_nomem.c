/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_prog_nomem.c - the Nth allocation fails, for N from 1 until none is left to fail: services as tables of
 * procedures, and calls that wait
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "nomem.h"
#include "prog_rig.h"

static void creation(void **state)
{
	const struct rpcrdma_addr addr = { .transport = RPCRDMA_TCP, .host = "127.0.0.1" };
	const struct rpcrdma_service_attr attr = { .progs = pr_progs, .nprogs = 2 };

	(void)state;
	nomem_failed = true;
	for (unsigned long n = 1; nomem_failed; n++) {
		struct rpcrdma_service *s = NULL;
		struct rpcrdma_engine *e = NULL;
		int rc;

		nomem_failed = false;
		nomem_countdown = n;
		rc = rpcrdma_engine_create(NULL, NULL, &e);
		if (!rc)
			rc = rpcrdma_service_create(e, &attr, &s);
		if (!rc)
			rc = rpcrdma_service_listen(s, &addr, NULL);
		nomem_countdown = 0;
		assert_int_equal(rc, nomem_failed ? -ENOMEM : 0);
		assert_int_equal(rpcrdma_service_destroy(s), 0);
		rpcrdma_engine_destroy(e);
	}
}

static struct pr_rig rig;

/* The responder drops calls for which it has no memory; the client retransmits soon. */
static void open_hasty(enum rpcrdma_transport t)
{
	pr_open(&rig, t, NULL, NULL, NULL);
	rpcrdma_clnt_destroy(rig.clnt);
	rig.attr.timeout_ms = 30;
	assert_int_equal(rpcrdma_clnt_open(rig.clnt_engine, &rig.attr, &rig.clnt), 0);
}

/* Each call ends once, with the right data or an error. */
static void one_call(uint32_t proc, uint32_t args, uint32_t room)
{
	unsigned long left = nomem_countdown;
	struct pr_call c;
	int rc;

	nomem_countdown = 0;
	pr_init(&rig, &c, proc, args, room);
	c.args.count = room;
	c.call.deadline_ms = 20000;
	nomem_countdown = left;
	rc = rpcrdma_clnt_call(rig.clnt, &c.call);
	if (!rc)
		rc = pr_until(&rig, &c);
	left = nomem_countdown;
	nomem_countdown = 0;
	assert_true(!rc || nomem_failed);
	if (!rc && room) {
		assert_int_equal(c.call.payload_bytes, room);
		for (uint32_t i = 0; i < room; i++)
			assert_int_equal(((uint8_t *)c.sink.iov_base)[i], (uint8_t)(pr_byte(i) + (proc == PR_BOTH)));
	}
	pr_fini(&c);
	nomem_countdown = left;
}

static void calls(void **state)
{
	static const enum rpcrdma_transport transports[] = { RPCRDMA_LOCAL, RPCRDMA_TCP };

	(void)state;
	for (size_t t = 0; t < 2; t++) {
		nomem_failed = true;
		for (unsigned long n = 1; nomem_failed; n++) {
			nomem_failed = false;
			open_hasty(transports[t]);
			nomem_countdown = n;
			one_call(PR_SUM, 100, 0);
			one_call(PR_SUM, 100000, 0);
			one_call(PR_BOTH, 70000, 70000);
			one_call(PR_FILL, 0, 5000);
			one_call(PR_ECHO, 0, 0);
			nomem_countdown = 0;
			pr_close(&rig);
		}
	}
}

static void waiting_call(void **state)
{
	struct pr_call c;

	(void)state;
	pr_open(&rig, RPCRDMA_TCP, NULL, NULL, NULL);
	pr_init(&rig, &c, PR_SUM, 100, 0);
	nomem_countdown = 1;
	assert_int_equal(rpcrdma_clnt_call_wait(rig.clnt, &c.call), -ENOMEM);
	assert_non_null(c.call.why);
	assert_null(strstr(c.call.why, "callback")); /* that is another error */
	pr_fini(&c);
	pr_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(creation),
		cmocka_unit_test(calls),
		cmocka_unit_test(waiting_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
