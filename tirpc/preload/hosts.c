/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * hosts.c - is this the host of that line of the map?
 *
 * Operation:  getaddrinfo(), and a comparison of addresses without ports. A name that resolves is resolved again after a
 *             minute, one that does not after five seconds. All loopback addresses are one host.
 * Memory:     None of its own.
 * Threads:    The owner of struct rt_host_addrs has a lock.
 * Errors:     A name that does not resolve matches nothing.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "hosts.h"

#define AGAIN_NS (60 * NS_PER_S)
#define FAILED_NS (5 * NS_PER_S)

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

static void set_v4(struct rt_ip *ip, const void *addr)
{
	memcpy(ip->v, mapped, sizeof(mapped));
	memcpy(ip->v + sizeof(mapped), addr, 4);
}

bool rt_ip_of(const void *addr, size_t bytes, struct rt_ip *ret)
{
	static const uint8_t loopback[4] = { 127, 0, 0, 1 };
	sa_family_t family;

	if (!addr || bytes < offsetof(struct sockaddr, sa_data))
		return false;
	memcpy(&family, (const char *)addr + offsetof(struct sockaddr, sa_family), sizeof(family));
	if (family == AF_INET && bytes >= offsetof(struct sockaddr_in, sin_addr) + 4)
		set_v4(ret, (const char *)addr + offsetof(struct sockaddr_in, sin_addr));
	else if (family == AF_INET6 && bytes >= offsetof(struct sockaddr_in6, sin6_addr) + 16)
		memcpy(ret->v, (const char *)addr + offsetof(struct sockaddr_in6, sin6_addr), 16);
	else if (family == AF_UNIX)
		set_v4(ret, loopback);
	else
		return false;
	return true;
}

char *rt_ip_print(const struct rt_ip *ip, char buf[64])
{
	if (!memcmp(ip->v, mapped, sizeof(mapped)))
		(void)inet_ntop(AF_INET, ip->v + sizeof(mapped), buf, 64);
	else
		(void)inet_ntop(AF_INET6, ip->v, buf, 64);
	return buf;
}

static bool is_loopback(const struct rt_ip *ip)
{
	static const uint8_t v6[16] = { [15] = 1 };

	return !memcmp(ip->v, v6, sizeof(v6)) || (!memcmp(ip->v, mapped, sizeof(mapped)) && ip->v[12] == 127);
}

bool rt_host_resolve(const char *name, struct rt_host_addrs *addrs)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	uint64_t now = clock_now_ns();
	struct addrinfo *list;

	if (addrs->again_ns && now < addrs->again_ns)
		return addrs->n;
	addrs->again_ns = now + FAILED_NS;
	if (getaddrinfo(name, NULL, &hints, &list))
		return addrs->n; /* those of last time, if any */
	addrs->n = 0;
	for (const struct addrinfo *a = list; a && addrs->n < RT_HOST_ADDRS_MAX; a = a->ai_next)
		if (rt_ip_of(a->ai_addr, a->ai_addrlen, &addrs->v[addrs->n]))
			addrs->n++;
	freeaddrinfo(list);
	addrs->again_ns = now + AGAIN_NS;
	return addrs->n;
}

bool rt_host_has(const struct rt_host_addrs *addrs, const struct rt_ip *ip)
{
	for (size_t i = 0; i < addrs->n; i++)
		if (!memcmp(addrs->v[i].v, ip->v, sizeof(ip->v)) || (is_loopback(&addrs->v[i]) && is_loopback(ip)))
			return true;
	return false;
}
