/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_verbs_addr.c - addresses of the verbs fabric, as far as they need no device; the kernel's replies to
 * rdma_bind_addr() are simulated
 *
 * Which device an address belongs to is asked where there are two: tests/interop/devices.sh.
 */
#include <arpa/inet.h>
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

/* The simulated kernel fails with @bind_err, unless that is 0, for each port but @free_port. */
static int bind_err, binds;
static uint16_t free_port, first_port, last_port;
static struct sockaddr_storage bound_to;

int __wrap_rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);
int __wrap_rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	uint16_t port;

	assert_non_null(id);
	memset(&bound_to, 0, sizeof(bound_to));
	memcpy(&bound_to, addr, addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	port = ntohs(*port_of(&bound_to));
	if (!binds++)
		first_port = port;
	last_port = port;
	if (bind_err && port != free_port) {
		errno = bind_err;
		return -1;
	}
	return 0;
}

static void dial(const char *peer, int err, uint16_t port)
{
	struct sockaddr_storage ss;
	struct rdma_cm_id id;

	bind_err = err;
	free_port = port;
	binds = 0;
	assert_int_equal(rr_verbs_addr_parse(peer, false, &ss), 0);
	rr_verbs_bind_resv(&id, &ss);
}

static void reserved_ports(void **state)
{
	static const char *const peers[] = { "10.77.0.1:20049", "[fd77::1]:20049" };
	static const int in_use[] = { EADDRINUSE, EADDRNOTAVAIL };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(peers); i++) {
		dial(peers[i], 0, 0);
		assert_int_equal(binds, 1);
		assert_in_range(last_port, 665, 1023);
		assert_int_equal(bound_to.ss_family, i ? AF_INET6 : AF_INET);
		assert_true(rr_verbs_addr_is_any(&bound_to)); /* the route selects the device */

		for (size_t k = 0; k < ARRAY_SIZE(in_use); k++) {
			dial(peers[i], in_use[k], 700);
			assert_int_equal(last_port, 700);
			assert_int_equal(binds, 1 + (700 - first_port + 359) % 359);
			dial(peers[i], in_use[k], 0); /* none is free */
			assert_int_equal(binds, 359);
		}
		dial(peers[i], EACCES, 0); /* not privileged: no other port would do */
		assert_int_equal(binds, 1);
		dial(peers[i], EPERM, 0);
		assert_int_equal(binds, 1);
	}
}

/* The interface of a link-local peer is in the address that the identifier is bound to. */
static void link_local(void **state)
{
	struct sockaddr_in6 *in6 = (void *)&bound_to;
	struct sockaddr_storage source;
	char host[INET6_ADDRSTRLEN], name[32], peer[128];
	unsigned scope = 0;
	FILE *f = fopen("/proc/net/if_inet6", "r");
	char hex[33], line[128];

	(void)state;
	while (f && !scope && fgets(line, sizeof(line), f))
		if (sscanf(line, "%32s %x %*x %*x %*x %31s", hex, &scope, name) != 3 || strncmp(hex, "fe80", 4))
			scope = 0;
	if (f)
		fclose(f);
	if (!scope)
		skip(); /* no interface with such an address */
	snprintf(peer, sizeof(peer), "[fe80::77%%%s]:20049", name);
	if (rr_verbs_addr_parse(peer, false, &source) || source_of(&source))
		skip(); /* the interface is down */
	dial(peer, 0, 0);
	assert_int_equal(binds, 1);
	assert_in_range(last_port, 665, 1023);
	assert_true(IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr));
	assert_int_equal(in6->sin6_scope_id, scope);
	inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
	assert_string_not_equal(host, "fe80::77");
}

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
		cmocka_unit_test(reserved_ports),
		cmocka_unit_test(link_local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
