/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * addr.c - parses and prints transport addresses: "tcp://host:port", "rdma://host:port", "local:///path"
 *
 * Operation:  pure; neither resolves nor opens.
 * Memory:     none.
 * Threads:    any.
 * Errors:     -EINVAL, -ENAMETOOLONG; the caller reports the text.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_int.h"
#include "rpcrdma.h"
#include "proto.h"
#include "base/util.h"

#define NFS_PORT 2049u

static const char *const names[] = {
	[RPCRDMA_TCP] = "tcp",
	[RPCRDMA_LOCAL] = "local",
	[RPCRDMA_RDMA] = "rdma",
};

const char *rpcrdma_transport_name(enum rpcrdma_transport t)
{
	return (size_t)t < ARRAY_SIZE(names) ? names[t] : "unknown";
}

static int parse_port(const char *s, uint16_t *ret)
{
	unsigned long port = 0;

	if (!*s)
		return -EINVAL;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return -EINVAL;
		port = port * 10 + (unsigned long)(*s - '0');
		if (port > UINT16_MAX)
			return -EINVAL;
	}
	*ret = (uint16_t)port;
	return 0;
}

static int copy_host(const char *s, size_t len, struct rpcrdma_addr *a)
{
	if (len >= sizeof(a->host))
		return -ENAMETOOLONG;
	memcpy(a->host, s, len);
	a->host[len] = 0;
	return 0;
}

/* HOST, HOST:PORT, [V6], [V6]:PORT */
static int parse_authority(const char *s, struct rpcrdma_addr *a)
{
	const char *end;
	int rc;

	if (*s == '[') {
		end = strchr(++s, ']');
		if (!end || end == s || (end[1] && end[1] != ':'))
			return -EINVAL;
		rc = copy_host(s, (size_t)(end - s), a);
		end++;
	} else {
		end = strchrnul(s, ':');
		if (end == s || (*end && strchr(end + 1, ':')))
			return -EINVAL; /* no host, or a bare IPv6 address */
		rc = copy_host(s, (size_t)(end - s), a);
	}
	if (rc || !*end)
		return rc;
	return parse_port(end + 1, &a->port);
}

int rpcrdma_addr_parse(const char *url, struct rpcrdma_addr *ret)
{
	struct rpcrdma_addr a = { 0 };
	const char *rest = strstr(url, "://");
	int rc = -EINVAL;

	if (!rest)
		return -EINVAL;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		size_t len = strlen(names[i]);

		if ((size_t)(rest - url) != len || strncmp(url, names[i], len) != 0)
			continue;
		a.transport = (enum rpcrdma_transport)i;
		rest += 3;
		if (a.transport == RPCRDMA_LOCAL) {
			rc = *rest == '/' ? copy_host(rest, strlen(rest), &a) : -EINVAL;
		} else {
			a.port = a.transport == RPCRDMA_TCP ? NFS_PORT : RR_PORT;
			rc = parse_authority(rest, &a);
		}
		break;
	}
	if (!rc)
		*ret = a;
	return rc;
}

bool rr_addr_is_literal(const struct rpcrdma_addr *a)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };
	struct addrinfo *found;

	if (a->transport == RPCRDMA_LOCAL)
		return true;
	if (getaddrinfo(a->host, NULL, &hints, &found))
		return false;
	freeaddrinfo(found);
	return true;
}

const char *rr_addr_where(const struct rpcrdma_addr *a, char buf[RR_WHERE_BYTES])
{
	if (a->transport == RPCRDMA_LOCAL)
		snprintf(buf, RR_WHERE_BYTES, "%s", a->host);
	else
		snprintf(buf, RR_WHERE_BYTES, strchr(a->host, ':') ? "[%s]:%u" : "%s:%u", a->host,
			 a->port);
	return buf;
}

void rr_addr_print_socket(const struct sockaddr_storage *ss, char *buf, size_t cap)
{
	char host[INET6_ADDRSTRLEN] = "?";
	uint16_t port = 0;

	if (ss->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)ss;

		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		port = ntohs(in->sin_port);
	} else if (ss->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)ss;

		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		port = ntohs(in6->sin6_port);
	}
	snprintf(buf, cap, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

char *rpcrdma_addr_print(const struct rpcrdma_addr *a, char *buf, size_t cap)
{
	char where[RR_WHERE_BYTES];

	snprintf(buf, cap, "%s://%s", rpcrdma_transport_name(a->transport), rr_addr_where(a, where));
	return buf;
}
