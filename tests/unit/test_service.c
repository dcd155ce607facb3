/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_service.c - tables of procedures: which are refused, and which versions an error reply names
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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
		/* one buffer holds both payloads, the second one at a page */
		{ { .handler = good.handler, RPCRDMA_ARGS(pr_xdr_data, struct pr_msg),
		    RPCRDMA_RES(pr_xdr_data, struct pr_msg), RPCRDMA_ARGS_DATA(struct pr_msg, data, 1),
		    RPCRDMA_RES_DATA(struct pr_msg, data, RPCRDMA_BUF_MAX - 4095) } },
		{ { .handler = good.handler, .args_bytes = RPCRDMA_BUF_MAX + 1 } },
		{ { .handler = good.handler, .res_bytes = SIZE_MAX } },
	};
	const struct rpcrdma_proc largest = {
		.handler = good.handler, RPCRDMA_ARGS(pr_xdr_data, struct pr_msg), RPCRDMA_RES(pr_xdr_data, struct pr_msg),
		RPCRDMA_ARGS_DATA(struct pr_msg, data, 1), RPCRDMA_RES_DATA(struct pr_msg, data, RPCRDMA_BUF_MAX - 4096)
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
	progs[1].procs = &largest;
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

/* The attributes are copied, with all that they point to. */
static void attributes(void **state)
{
	const struct rpcrdma_addr addr = { .transport = RPCRDMA_TCP, .host = "127.0.0.1" };
	struct rpcrdma_lab lab = { .modes = RPCRDMA_MODES_ALL };
	struct rpcrdma_svc_attr svc = { .req_bytes = UINT32_MAX - 100, .lab = &lab };
	struct rpcrdma_service_attr attr = { .progs = pr_progs, .nprogs = 2, .svc = &svc };
	const struct rpcrdma_svc_ops ops = { 0 };
	struct rpcrdma_listener *l;
	struct rpcrdma_service *s;
	struct rpcrdma_engine *e;

	(void)state;
	assert_int_equal(rpcrdma_engine_create(NULL, NULL, &e), 0);
	assert_int_equal(rpcrdma_service_create(e, &attr, &s), -EINVAL); /* with the task it wraps */
	svc.req_bytes = INT32_MAX;
	assert_int_equal(rpcrdma_service_create(e, &attr, &s), -EINVAL);
	svc.req_bytes = INT32_MAX + 1u; /* a transport adds its part */
	assert_int_equal(rpcrdma_listen(e, &addr, &svc, &ops, NULL, &l), -EINVAL);
	svc.req_bytes = INT32_MAX / 2;
	assert_int_equal(rpcrdma_service_create(e, &attr, &s), 0);
	memset(&lab, 0xff, sizeof(lab));
	memset(&svc, 0xff, sizeof(svc));
	memset(&attr, 0xff, sizeof(attr));
	assert_int_equal(rpcrdma_service_listen(s, &addr, NULL), 0);
	assert_int_equal(rpcrdma_service_destroy(s), 0);
	rpcrdma_engine_destroy(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),
		cmocka_unit_test(refused_tables),
		cmocka_unit_test(attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
