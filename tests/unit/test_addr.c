/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_addr.c - transport addresses as text
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "rpcrdma.h"

static const struct {
	const char *url;
	int rc;
	enum rpcrdma_transport transport;
	const char *host;
	uint16_t port;
} cases[] = {
	{ "tcp://127.0.0.1:2049", 0, RPCRDMA_TCP, "127.0.0.1", 2049 },
	{ "tcp://host", 0, RPCRDMA_TCP, "host", 2049 },
	{ "tcp://host:0", 0, RPCRDMA_TCP, "host", 0 },
	{ "rdma://host", 0, RPCRDMA_RDMA, "host", 20049 },
	{ "tcp://[::1]:65535", 0, RPCRDMA_TCP, "::1", 65535 },
	{ "rdma://[fe80::1%eth0]", 0, RPCRDMA_RDMA, "fe80::1%eth0", 20049 },
	{ "local:///run/leat/leatd.sock", 0, RPCRDMA_LOCAL, "/run/leat/leatd.sock", 0 },
	{ "local://relative", -EINVAL, 0, NULL, 0 },
	{ "tcp://", -EINVAL, 0, NULL, 0 },
	{ "tcp://:2049", -EINVAL, 0, NULL, 0 },
	{ "tcp://h:", -EINVAL, 0, NULL, 0 },
	{ "tcp://h:65536", -EINVAL, 0, NULL, 0 },
	{ "tcp://h:99999999999999999999", -EINVAL, 0, NULL, 0 },
	{ "tcp://h:-1", -EINVAL, 0, NULL, 0 },
	{ "tcp://::1", -EINVAL, 0, NULL, 0 },
	{ "tcp://[::1", -EINVAL, 0, NULL, 0 },
	{ "tcp://[]:1", -EINVAL, 0, NULL, 0 },
	{ "tcp://[::1]x", -EINVAL, 0, NULL, 0 },
	{ "tc://h", -EINVAL, 0, NULL, 0 },
	{ "tcpx://h", -EINVAL, 0, NULL, 0 },
	{ "h:2049", -EINVAL, 0, NULL, 0 },
	{ "", -EINVAL, 0, NULL, 0 },
};

static void parses(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rpcrdma_addr a;

		memset(&a, 0x5a, sizeof(a));
		if (rpcrdma_addr_parse(cases[i].url, &a) != cases[i].rc)
			fail_msg("%s", cases[i].url);
		if (cases[i].rc) {
			assert_int_equal(a.port, 0x5a5a); /* outputs are untouched on failure */
			continue;
		}
		assert_int_equal(a.transport, cases[i].transport);
		assert_string_equal(a.host, cases[i].host);
		assert_int_equal(a.port, cases[i].port);
	}
}

static void prints_what_it_parses(void **state)
{
	char text[300];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rpcrdma_addr a, b;

		if (cases[i].rc)
			continue;
		assert_int_equal(rpcrdma_addr_parse(cases[i].url, &a), 0);
		assert_int_equal(rpcrdma_addr_parse(rpcrdma_addr_print(&a, text, sizeof(text)), &b), 0);
		assert_string_equal(a.host, b.host);
		assert_int_equal(a.port, b.port);
	}
}

static void too_long(void **state)
{
	char url[400] = "local:///";
	struct rpcrdma_addr a;

	(void)state;
	memset(url + strlen(url), 'x', 300);
	assert_int_equal(rpcrdma_addr_parse(url, &a), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses),
		cmocka_unit_test(prints_what_it_parses),
		cmocka_unit_test(too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
