/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_process.c - the domain that the handles of a process share
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "rpcrdma_mem.h"
#include "rpcrdma_tirpc.h"

static void one_domain(void **state)
{
	struct rpcrdma_domain *d = rpcrdma_tirpc_domain();
	void *mem;

	(void)state;
	assert_non_null(d);
	assert_ptr_equal(rpcrdma_tirpc_domain(), d);
	assert_int_equal(rpcrdma_mem_alloc(d, 8192, &mem), 0);
	rpcrdma_mem_free(d, mem);
}

static void child_has_its_own(void **state)
{
	struct rpcrdma_domain *d = rpcrdma_tirpc_domain(), *own;
	int status;
	pid_t pid;

	(void)state;
	assert_non_null(d);
	pid = fork();
	if (pid == 0) {
		own = rpcrdma_tirpc_domain();
		_exit(own && own != d && rpcrdma_tirpc_domain() == own ? 0 : 1);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_ptr_equal(rpcrdma_tirpc_domain(), d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_domain),
		cmocka_unit_test(child_has_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
