/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_hosts.c - which addresses are the host of a line of the map
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/un.h>

#include <cmocka.h>

#include "base/util.h"
#include "hosts.h"

static struct rt_ip v4(const char *text)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(111) };
	struct rt_ip ip;

	assert_int_equal(inet_pton(AF_INET, text, &in.sin_addr), 1);
	assert_true(rt_ip_of(&in, sizeof(in), &ip));
	return ip;
}

static struct rt_ip v6(const char *text)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6, .sin6_port = htons(111) };
	struct rt_ip ip;

	assert_int_equal(inet_pton(AF_INET6, text, &in.sin6_addr), 1);
	assert_true(rt_ip_of(&in, sizeof(in), &ip));
	return ip;
}

static void addresses(void **state)
{
	const struct sockaddr_un un = { .sun_family = AF_UNIX };
	const struct sockaddr other = { .sa_family = AF_PACKET };
	const struct sockaddr_in in = { .sin_family = AF_INET };
	struct rt_ip a = v4("10.1.2.3"), b = v6("::ffff:10.1.2.3"), ip;
	char text[64];

	(void)state;
	assert_memory_equal(&a, &b, sizeof(a)); /* the same host */
	assert_string_equal(rt_ip_print(&a, text), "10.1.2.3");
	a = v6("fd77::1");
	assert_string_equal(rt_ip_print(&a, text), "fd77::1");
	assert_true(rt_ip_of(&un, sizeof(un), &ip));
	assert_string_equal(rt_ip_print(&ip, text), "127.0.0.1");
	assert_false(rt_ip_of(&other, sizeof(other), &ip));
	assert_false(rt_ip_of(&in, 4, &ip));
	assert_false(rt_ip_of(&in, 1, &ip));
	assert_false(rt_ip_of(NULL, 16, &ip));
}

static void hosts(void **state)
{
	struct rt_host_addrs of = { .n = 2, .v = { v4("10.1.2.3"), v6("fd77::1") } };
	struct rt_ip ip = v6("::ffff:10.1.2.3");

	(void)state;
	assert_true(rt_host_has(&of, &ip));
	ip = v6("fd77::1");
	assert_true(rt_host_has(&of, &ip));
	ip = v6("fd77::2");
	assert_false(rt_host_has(&of, &ip));
	ip = v4("127.0.0.1");
	assert_false(rt_host_has(&of, &ip));
	/* all loopback addresses are one host */
	of.v[1] = v6("::1");
	assert_true(rt_host_has(&of, &ip));
	ip = v4("127.1.2.3");
	assert_true(rt_host_has(&of, &ip));
	ip = v4("128.0.0.1");
	assert_false(rt_host_has(&of, &ip));
}

static void names(void **state)
{
	struct rt_host_addrs of = { .n = 0 }, none = { .n = 0 };
	struct rt_ip ip = v4("192.0.2.7");

	(void)state;
	assert_true(rt_host_resolve("192.0.2.7", &of)); /* a literal asks no server */
	assert_int_equal(of.n, 1);
	assert_true(rt_host_has(&of, &ip));
	/* recent: not resolved again */
	assert_true(rt_host_resolve("192.0.2.8", &of));
	assert_true(rt_host_has(&of, &ip));
	assert_false(rt_host_resolve("192.0.2.300", &none));
	assert_int_equal(none.n, 0);
	assert_true(none.again_ns != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),
		cmocka_unit_test(hosts),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
