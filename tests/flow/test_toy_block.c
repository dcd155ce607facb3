/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_toy_block.c - a program that the server does not know: overlap, duplicates, errors and shortage are served
 *
 * tests/lib/toy_rig.c has the tests. tests/interop/verbs_toy.c runs the same ones over RDMA.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "toy_rig.h"

LOG_DEFINE("test_toy_block");

int main(void)
{
	struct CMUnitTest tests[TOY_RIG_TESTS];
	int failed;

	memcpy(tests, toy_rig_tests, sizeof(tests));
	failed = cmocka_run_group_tests_name("toy_block_local", tests, NULL, NULL);
	toy_rig_url = "tcp://127.0.0.1:0";
	return failed + cmocka_run_group_tests_name("toy_block_tcp", tests, NULL, NULL);
}
