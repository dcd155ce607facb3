/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_toy.c - verbs_toy URL: the tests of flow/test_toy_block over RDMA, with both ends in this process
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "toy_rig.h"

LOG_DEFINE("verbs_toy");

/* In a process of its own: the kernel refuses a device that was opened before the server's credentials were set. */
static bool run(const struct CMUnitTest *test)
{
	const struct CMUnitTest tests[] = { *test };
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		exit(cmocka_run_group_tests_name("verbs_toy", tests, NULL, NULL));
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: verbs_toy URL\n");
		return 2;
	}
	toy_rig_url = argv[1];
	for (unsigned i = 0; i < TOY_RIG_TESTS; i++)
		failed += !run(&toy_rig_tests[i]);
	printf("verbs_toy: %u passed, %d failed\n", TOY_RIG_TESTS - failed, failed);
	return failed != 0;
}
