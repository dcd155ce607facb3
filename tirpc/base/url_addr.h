/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * url_addr.h - the addresses that a URL stands for
 */
#ifndef RT_URL_ADDR_H
#define RT_URL_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rpc/rpc.h>

#include "base/util.h"
#include "rpcrdma_addr.h"

struct addrinfo;

struct rt_url {
	struct rpcrdma_addr addr; /* as written */
	bool has_port;
	struct addrinfo *found;   /* addresses of the host, with the port; NULL: local */
};

/** rt_url_find - parses a URL, and looks up its host
 *
 * Return: RPC_SUCCESS: call rt_url_fini(); RPC_UNKNOWNADDR: not a URL; RPC_UNKNOWNHOST.
 */
must_check enum clnt_stat rt_url_find(struct rt_url *u, const char *text);

/** rt_url_fini - frees the addresses */
void rt_url_fini(struct rt_url *u);

/** rt_url_set_port - sets the port of a socket address */
void rt_url_set_port(struct sockaddr *addr, uint16_t port);

/** rt_url_literal - sets host and port of an address from a socket address */
void rt_url_literal(struct rpcrdma_addr *to, const struct sockaddr *from);

#endif
