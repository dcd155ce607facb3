/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * hosts.h - is this the host of that line of the map?
 */
#ifndef RT_HOSTS_H
#define RT_HOSTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define RT_HOST_ADDRS_MAX 16

/* An address without a port; IPv4 as ::ffff:a.b.c.d */
struct rt_ip {
	uint8_t v[16];
};

/* The addresses of a name; all zero before the first use, then under @lock of the owner */
struct rt_host_addrs {
	struct rt_ip v[RT_HOST_ADDRS_MAX];
	size_t n;
	uint64_t again_ns; /* when it may be resolved again; 0: not resolved yet */
};

/** rt_ip_of - the address in a sockaddr; AF_UNIX is 127.0.0.1; Return: false: another family, or too short */
bool rt_ip_of(const void *addr, size_t bytes, struct rt_ip *ret);

/** rt_ip_print - prints an address without brackets; Return: @buf */
char *rt_ip_print(const struct rt_ip *ip, char buf[64]);

/** rt_host_resolve - resolves @name unless @addrs are recent; may block; Return: addrs->n != 0 */
bool rt_host_resolve(const char *name, struct rt_host_addrs *addrs);

/** rt_host_has - is @ip one of @addrs, or a loopback address while one of @addrs is? */
bool rt_host_has(const struct rt_host_addrs *addrs, const struct rt_ip *ip);

#endif
