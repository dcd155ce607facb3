/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_powercut.c - the power is cut sixty times, and nothing that was promised is missing
 *
 * tests/interop/long/powercut.sh does the same to real file systems.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuts.h"

static void power_cuts(void **state)
{
	(void)state;
	cuts(0, 60, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(power_cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
