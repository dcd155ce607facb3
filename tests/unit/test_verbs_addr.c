/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_verbs_addr.c - addresses of the verbs fabric, as far as they need no device
 *
 * Which device an address belongs to is asked where there are two: tests/interop/devices.sh.
 */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#ifndef HAVE_VERBS

int main(void)
{
	printf("no libibverbs and librdmacm in this build\n");
	return 77;
}

#else

#include "rpcrdma/verbs/verbs_addr.c"

static void literals(void **state)
{
	static const struct {
		const char *text;
		int family;
		unsigned port;
		bool any;
	} good[] = {
		{ "10.77.0.1:20049", AF_INET, 20049, false },
		{ "0.0.0.0:0", AF_INET, 0, true },
		{ "[fd77::1]:20049", AF_INET6, 20049, false },
		{ "[::]:1", AF_INET6, 1, true },
		{ "[::1]:1", AF_INET6, 1, false },
	};
	struct sockaddr_storage ss;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(rr_verbs_addr_parse(good[i].text, true, &ss), 0);
		assert_int_equal(ss.ss_family, good[i].family);
		assert_int_equal(ntohs(*port_of(&ss)), good[i].port);
		assert_int_equal(rr_verbs_addr_is_any(&ss), good[i].any);
	}
	assert_int_equal(rr_verbs_addr_parse(":20049", true, &ss), 0); /* no host: all of them */
	assert_true(rr_verbs_addr_is_any(&ss));
	assert_int_equal(rr_verbs_addr_parse("10.77.0.1", true, &ss), -EINVAL);
	assert_int_not_equal(rr_verbs_addr_parse("10.77.0.1:port", true, &ss), 0);
}

/* The source address of a route to the loopback device is found without sending a packet. */
static void source(void **state)
{
	struct sockaddr_storage ss;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), has_route;

	(void)state;
	assert_int_equal(rr_verbs_addr_parse("127.0.0.77:9", false, &ss), 0);
	has_route = !connect(fd, (struct sockaddr *)&ss, sizeof(struct sockaddr_in));
	close(fd);
	if (!has_route)
		skip(); /* no loopback device */
	assert_int_equal(source_of(&ss), 0);
	assert_int_equal(ss.ss_family, AF_INET);
	assert_int_equal(ntohl(((struct sockaddr_in *)&ss)->sin_addr.s_addr) >> 24, 127);
}

static void no_device(void **state)
{
	char device[64] = "untouched";
	glob_t found;

	(void)state;
	if (!glob("/sys/class/infiniband/*", 0, NULL, &found)) {
		globfree(&found);
		skip(); /* the result depends on the device */
	}
	assert_false(rr_verbs_any_device());
	assert_int_equal(rr_verbs_device_of("0.0.0.0:1", true, device, sizeof(device)), -ENODEV);
	assert_int_equal(rr_verbs_device_of("10.0.0.1:1", false, device, sizeof(device)), -ENODEV);
	assert_string_equal(device, "untouched");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(literals),
		cmocka_unit_test(source),
		cmocka_unit_test(no_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
