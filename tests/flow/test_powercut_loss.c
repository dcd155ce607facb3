/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_powercut_loss.c - a disk that loses data and tells it once, and then the power is cut: sixty times
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuts.h"

static void failing_disk(void **state)
{
	(void)state;
	cuts(120, 180, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failing_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
