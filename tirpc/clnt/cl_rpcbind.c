/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_rpcbind.c - the port of a program, from rpcbind
 *
 * Operation:  rpcbind is called over TCP by a CLIENT of this library, so nothing of libtirpc that a preload library has
 *             replaced is called. Of the address in the reply only the port is used: a service on all addresses registers
 *             0.0.0.0.
 * Errors:     enum clnt_stat, as clnt_create().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cl_int.h"
#include "cl_rpcbind.h"
#include "url_addr.h"

#define RPCBIND_PORT 111

static struct timeval time_left(uint64_t until_ns)
{
	uint64_t now = clock_now_ns(), left = until_ns > now ? until_ns - now : 1000;

	return (struct timeval){ .tv_sec = (time_t)(left / NS_PER_S), .tv_usec = (suseconds_t)(left % NS_PER_S / 1000) };
}

static CLIENT *open_rpcbind(const struct sockaddr *host, uint64_t until_ns)
{
	struct rpcrdma_addr addr = { .transport = RPCRDMA_TCP };
	struct timeval left = time_left(until_ns);
	char url[300];

	rt_url_literal(&addr, host);
	addr.port = RPCBIND_PORT;
	return rpcrdma_clnt_create_timed(rpcrdma_addr_print(&addr, url, sizeof(url)), RPCBPROG, RPCBVERS, NULL, &left);
}

/* "HOST.P1.P2". Return: 0: none */
static unsigned port_of(const char *uaddr)
{
	const char *last = strrchr(uaddr, '.'), *first = last;
	unsigned high, low;

	while (first && first > uaddr && *--first != '.')
		;
	if (!first || sscanf(first, *first == '.' ? ".%u.%u" : "%u.%u", &high, &low) != 2 || high > 255 || low > 255)
		return 0;
	return high << 8 | low;
}

/* An entry of another version serves if this version has none, as for clnt_create(). */
static uint16_t find_port(const rp__list *list, const struct rpcb *what)
{
	uint16_t other = 0;

	for (; list; list = list->rpcb_next) {
		const struct rpcb *e = &list->rpcb_map;

		if (e->r_prog != what->r_prog || strcmp(e->r_netid, what->r_netid))
			continue;
		if (e->r_vers == what->r_vers)
			return (uint16_t)port_of(e->r_addr);
		other = (uint16_t)port_of(e->r_addr);
	}
	return other;
}

/* RPCBPROC_GETADDR finds only programs of the netid that the question comes by, and RPCBPROC_GETADDRLIST only netids of
 * /etc/netconfig. */
static enum clnt_stat ask_rpcbind(CLIENT *clnt, const struct rpcb *what, uint64_t until_ns, uint16_t *ret)
{
	rpcblist_ptr list = NULL;
	enum clnt_stat stat = clnt_call(clnt, RPCBPROC_DUMP, RT_XDR_VOID, NULL, (xdrproc_t)xdr_rpcblist_ptr, &list,
					time_left(until_ns));

	if (stat)
		clnt_geterr(clnt, &rpc_createerr.cf_error);
	else
		*ret = find_port(list, what);
	clnt_freeres(clnt, (xdrproc_t)xdr_rpcblist_ptr, &list); /* a part of it, if the rest did not decode */
	if (stat)
		return RPC_RPCBFAILURE;
	return *ret ? RPC_SUCCESS : RPC_PROGNOTREGISTERED;
}

enum clnt_stat rt_cl_find_port(const struct sockaddr *host, enum rpcrdma_transport transport, uint32_t prog, uint32_t vers,
			       uint64_t until_ns, uint16_t *ret)
{
	static char netids[2][2][6] = { { "tcp", "tcp6" }, { "rdma", "rdma6" } };
	const struct rpcb what = { .r_prog = prog, .r_vers = vers, .r_netid =
				   netids[transport == RPCRDMA_RDMA][host->sa_family == AF_INET6] };
	CLIENT *clnt = open_rpcbind(host, until_ns);
	enum clnt_stat stat;

	if (!clnt)
		return RPC_RPCBFAILURE;
	stat = ask_rpcbind(clnt, &what, until_ns, ret);
	clnt_destroy(clnt);
	return stat;
}
