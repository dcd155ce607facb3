/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_sandbox.c - the local fabric where the kernel forbids access to memory of other processes
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/uio.h>

#include <cmocka.h>

#include "local.h"

ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *mine, unsigned long n,
				 const struct iovec *theirs, unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *mine, unsigned long n,
				 const struct iovec *theirs, unsigned long m, unsigned long flags);

static bool forbidden;

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *mine, unsigned long n,
				 const struct iovec *theirs, unsigned long m, unsigned long flags)
{
	if (!forbidden)
		return __real_process_vm_writev(pid, mine, n, theirs, m, flags);
	errno = EPERM;
	return -1;
}

static void test_sandbox(void **state)
{
	struct rr_fabric *f = NULL;

	(void)state;
	forbidden = true;
	assert_int_equal(rr_local_open(NULL, &f), -EOPNOTSUPP);
	forbidden = false;
	assert_null(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sandbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
