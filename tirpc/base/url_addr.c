/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * url_addr.c - the addresses that a URL stands for
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "url_addr.h"

/* rpcrdma_addr_parse() sets a default, which is that of NFS. */
static bool has_port(const char *text)
{
	const char *host = strstr(text, "://"), *end;

	if (!host)
		return false;
	host += 3;
	end = *host == '[' ? strchr(host, ']') : host;
	return end && strchr(end, ':');
}

enum clnt_stat rt_url_find(struct rt_url *u, const char *text)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	char port[8];

	*u = (struct rt_url){ .has_port = has_port(text) };
	if (rpcrdma_addr_parse(text, &u->addr))
		return RPC_UNKNOWNADDR;
	if (u->addr.transport == RPCRDMA_LOCAL)
		return RPC_SUCCESS;
	snprintf(port, sizeof(port), "%u", u->has_port ? u->addr.port : 0u);
	return getaddrinfo(u->addr.host, port, &hints, &u->found) ? RPC_UNKNOWNHOST : RPC_SUCCESS;
}

void rt_url_fini(struct rt_url *u)
{
	if (u->found)
		freeaddrinfo(u->found);
	u->found = NULL;
}

static in_port_t *port_at(const struct sockaddr *addr)
{
	struct sockaddr *a = (struct sockaddr *)(uintptr_t)addr;

	return a->sa_family == AF_INET6 ? &((struct sockaddr_in6 *)(void *)a)->sin6_port :
					  &((struct sockaddr_in *)(void *)a)->sin_port;
}

void rt_url_set_port(struct sockaddr *addr, uint16_t port)
{
	*port_at(addr) = htons(port);
}

void rt_url_literal(struct rpcrdma_addr *to, const struct sockaddr *from)
{
	/* the scope of a link-local address belongs to the name */
	if (getnameinfo(from, from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in), to->host,
			sizeof(to->host), NULL, 0, NI_NUMERICHOST))
		to->host[0] = '\0';
	to->port = ntohs(*port_at(from));
}
