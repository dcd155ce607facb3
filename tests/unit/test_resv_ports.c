/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_resv_ports.c - the order in which reserved ports are tried
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "resv_ports.h"

#define PORTS (1023 - 665 + 1)

/* From wherever it starts, each port comes once, and 0 for ever after. */
static void each_once(void **state)
{
	static const uint64_t times[] = { 0, 1, NS_PER_US, (PORTS - 1) * NS_PER_US, PORTS * NS_PER_US,
					  12345 * NS_PER_S + 678901, UINT64_MAX };

	(void)state;
	for (size_t t = 0; t < sizeof(times) / sizeof(times[0]); t++) {
		bool seen[1024] = { false };
		struct rr_resv_ports p;

		rr_resv_ports_init(&p, times[t]);
		for (int i = 0; i < PORTS; i++) {
			uint16_t port = rr_resv_ports_next(&p);

			assert_in_range(port, 665, 1023);
			assert_false(seen[port]);
			seen[port] = true;
		}
		assert_int_equal(rr_resv_ports_next(&p), 0);
		assert_int_equal(rr_resv_ports_next(&p), 0);
	}
}

/* In the time of all ports, each is first once. */
static void starts_differ(void **state)
{
	bool first[1024] = { false };
	struct rr_resv_ports p;

	(void)state;
	for (uint64_t i = 0; i < PORTS; i++) {
		uint16_t port;

		rr_resv_ports_init(&p, 77 * NS_PER_S + i * NS_PER_US);
		port = rr_resv_ports_next(&p);
		assert_false(first[port]);
		first[port] = true;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_once),
		cmocka_unit_test(starts_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
