/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_service.c - tables of procedures: which are refused, and which versions an error reply names
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/util.h"
#include "prog_rig.h"
#include "service.h"

static void versions(void **state)
{
	const struct rpcrdma_req req = { .prog = PR_PROG, .vers = 2 };
	const struct rpcrdma_service_attr attr = { .progs = pr_progs, .nprogs = 2 };
	enum rpcrdma_accept_stat stat;
	struct rpcrdma_service *s;
	struct rpcrdma_engine *e;
	uint32_t low, high;

	(void)state;
	assert_int_equal(rpcrdma_engine_create(NULL, NULL, &e), 0);
	assert_int_equal(rpcrdma_service_create(e, &attr, &s), 0);
	assert_null(service_find(s, &req, &stat, &low, &high));
	assert_true(stat == RPCRDMA_PROG_MISMATCH && low == 1 && high == 3);
	assert_int_equal(rpcrdma_service_destroy(s), 0);
	rpcrdma_engine_destroy(e);
}

static void refused_tables(void **state)
{
	static const struct rpcrdma_proc good = { .proc = 1, .handler = (int (*)(struct rpcrdma_task *))abort };
	const struct {
		struct rpcrdma_proc p;
	} bad[] = {
		{ { .proc = 1 } },
		{ { .handler = good.handler, RPCRDMA_ARGS_DATA(struct pr_msg, data, 100) } },
		{ { .handler = good.handler, RPCRDMA_RES_DATA(struct pr_msg, data, 100) } },
		{ { .handler = good.handler, RPCRDMA_ARGS(pr_xdr_data, struct pr_msg),
		    RPCRDMA_ARGS_DATA(struct pr_msg, data, RPCRDMA_BUF_MAX + 1) } },
		{ { .handler = good.handler, RPCRDMA_ARGS(pr_xdr_data, struct pr_msg), .args_data_max = 1,
		    .args_data_at = sizeof(struct pr_msg) - 1 } },
	};
	const struct rpcrdma_proc twice[] = { good, good };
	struct rpcrdma_prog progs[] = { { 1, 1, &good, 1 }, { 1, 1, &good, 1 } };
	struct rpcrdma_service_attr attr = { .progs = progs, .nprogs = 2 };
	struct rpcrdma_service *s;
	struct rpcrdma_engine *e;

	(void)state;
	assert_int_equal(rpcrdma_engine_create(NULL, NULL, &e), 0);
	assert_int_equal(rpcrdma_service_create(e, &attr, &s), -EINVAL);
	progs[1].vers = 2;
	assert_int_equal(rpcrdma_service_create(e, &attr, &s), 0);
	assert_int_equal(rpcrdma_service_destroy(s), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		progs[1].procs = &bad[i].p;
		assert_int_equal(rpcrdma_service_create(e, &attr, &s), -EINVAL);
	}
	progs[1].procs = twice;
	progs[1].nprocs = 2;
	assert_int_equal(rpcrdma_service_create(e, &attr, &s), -EINVAL);
	assert_int_equal(rpcrdma_service_destroy(NULL), 0);
	rpcrdma_engine_destroy(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),
		cmocka_unit_test(refused_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
