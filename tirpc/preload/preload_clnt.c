/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * preload_clnt.c - the functions that create a CLIENT, in place of those of libtirpc
 *
 * Operation:  Each finds the way of its program and host, creates a handle that goes there, and wraps it (proxy.c). If
 *             there is no way, or it fails, the original does the work. libtirpc calls itself through its PLT, so these
 *             functions are also called from inside the originals, and of this library: then they only pass on.
 * Memory:     Handles, which the program destroys.
 * Threads:    Any.
 * Errors:     Those of the original.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rpc/rpc.h>
#include <rpc/clnt_soc.h>

#include "originals.h"
#include "proxy.h"
#include "route.h"
#include "tally.h"

#define REPLACES __attribute__((visibility("default")))

/* ---- handles -------------------------------------------------------------------------------------- */

/* Wraps a handle. Without memory it is destroyed, if it is ours. */
static CLIENT *wrap(CLIENT *inner, const struct rt_way *way, const struct rt_asked *asked, const char *host)
{
	struct rt_tally *tally = rt_tally_get(host, asked->prog, asked->vers, way ? way->url : RT_WAY_ORIGINAL);
	CLIENT *clnt = rt_proxy_create(inner, way, asked, tally);

	if (clnt || !way)
		return clnt ? clnt : inner;
	clnt_destroy(inner);
	return NULL;
}

/* Opens the way. Programs that use UDP are made for messages that arrive twice. */
static CLIENT *open_way(struct rt_way *way, const struct rt_asked *asked, const struct timeval *limit)
{
	CLIENT *inner;

	way->attr.resend = asked->is_datagram;
	inner = rt_route_open(way, asked->prog, asked->vers, limit);
	return inner ? wrap(inner, way, asked, way->host) : NULL;
}

/* Wraps a handle of libtirpc if its calls are to be counted. */
static CLIENT *count_original(CLIENT *clnt, const char *host, uint32_t prog, uint32_t vers)
{
	const struct rt_asked asked = { .prog = prog, .vers = vers, .fd = -1 };

	return clnt && rt_tally_is_on() && rt_route_concerns(prog) ? wrap(clnt, NULL, &asked, host) : clnt;
}

static bool is_datagram_type(const char *nettype)
{
	return nettype && (!strncasecmp(nettype, "udp", 3) || !strncasecmp(nettype, "datagram", 8));
}

static bool is_datagram_conf(const struct netconfig *nconf)
{
	return nconf && nconf->nc_semantics == NC_TPI_CLTS;
}

/* ---- by the name of the host -------------------------------------------------------------------------- */

static CLIENT *open_name(const char *host, uint32_t prog, uint32_t vers, bool is_datagram, const struct timeval *limit)
{
	const struct rt_asked asked = { .prog = prog, .vers = vers, .is_datagram = is_datagram, .fd = -1 };
	struct rt_way way;

	if (!host || !rt_route_concerns(prog) || !rt_route_by_name(host, prog, &way))
		return NULL;
	return open_way(&way, &asked, limit);
}

REPLACES CLIENT *clnt_create_timed(const char *host, const rpcprog_t prog, const rpcvers_t vers, const char *nettype,
				   const struct timeval *tp)
{
	CLIENT *clnt;

	if (!rt_enter())
		return rt_originals()->clnt_create_timed(host, prog, vers, nettype, tp);
	clnt = open_name(host, prog, vers, is_datagram_type(nettype), tp);
	if (!clnt)
		clnt = count_original(rt_originals()->clnt_create_timed(host, prog, vers, nettype, tp), host, prog, vers);
	rt_leave();
	return clnt;
}

REPLACES CLIENT *clnt_create(const char *host, const rpcprog_t prog, const rpcvers_t vers, const char *nettype)
{
	CLIENT *clnt;

	if (!rt_enter())
		return rt_originals()->clnt_create(host, prog, vers, nettype);
	clnt = open_name(host, prog, vers, is_datagram_type(nettype), NULL);
	if (!clnt)
		clnt = count_original(rt_originals()->clnt_create(host, prog, vers, nettype), host, prog, vers);
	rt_leave();
	return clnt;
}

REPLACES CLIENT *clnt_tp_create_timed(const char *host, const rpcprog_t prog, const rpcvers_t vers,
				      const struct netconfig *nconf, const struct timeval *tp)
{
	CLIENT *clnt;

	if (!rt_enter())
		return rt_originals()->clnt_tp_create_timed(host, prog, vers, nconf, tp);
	clnt = open_name(host, prog, vers, is_datagram_conf(nconf), tp);
	if (!clnt)
		clnt = count_original(rt_originals()->clnt_tp_create_timed(host, prog, vers, nconf, tp), host, prog, vers);
	rt_leave();
	return clnt;
}

REPLACES CLIENT *clnt_tp_create(const char *host, const rpcprog_t prog, const rpcvers_t vers, const struct netconfig *nconf)
{
	CLIENT *clnt;

	if (!rt_enter())
		return rt_originals()->clnt_tp_create(host, prog, vers, nconf);
	clnt = open_name(host, prog, vers, is_datagram_conf(nconf), NULL);
	if (!clnt)
		clnt = count_original(rt_originals()->clnt_tp_create(host, prog, vers, nconf), host, prog, vers);
	rt_leave();
	return clnt;
}

/* ---- the highest version ------------------------------------------------------------------------------- */

/* Calls NULL with falling versions, down to @low. Return: the version, or 0: the original shall find out. */
static rpcvers_t find_version(CLIENT *clnt, rpcvers_t low, rpcvers_t high)
{
	const xdrproc_t nothing = (xdrproc_t)(void (*)(void))xdr_void;
	const struct timeval limit = { .tv_sec = 10 };
	struct rpc_err err;

	for (;;) {
		enum clnt_stat stat = clnt_call(clnt, NULLPROC, nothing, NULL, nothing, NULL, limit);

		if (stat == RPC_SUCCESS)
			return high;
		clnt_geterr(clnt, &err);
		if (stat != RPC_PROGVERSMISMATCH || err.re_vers.high >= high || err.re_vers.high < low || err.re_vers.low > high)
			return 0;
		high = err.re_vers.high;
		if (!clnt_control(clnt, CLSET_VERS, (void *)&high))
			return 0;
	}
}

static CLIENT *open_highest(const char *host, uint32_t prog, rpcvers_t *ret, rpcvers_t low, rpcvers_t high,
			    const char *nettype, const struct timeval *tp)
{
	struct rt_asked asked = { .prog = prog, .is_datagram = is_datagram_type(nettype), .fd = -1 };
	struct rt_way way;
	CLIENT *inner, *clnt;

	if (!host || !ret || low > high || !rt_route_concerns(prog) || !rt_route_by_name(host, prog, &way))
		return NULL;
	way.attr.resend = asked.is_datagram;
	inner = rt_route_open(&way, prog, high, tp);
	if (!inner)
		return NULL;
	asked.vers = find_version(inner, low, high);
	if (!asked.vers) {
		clnt_destroy(inner);
		return NULL;
	}
	clnt = wrap(inner, &way, &asked, way.host);
	if (clnt)
		*ret = asked.vers;
	return clnt;
}

REPLACES CLIENT *clnt_create_vers_timed(const char *host, const rpcprog_t prog, rpcvers_t *vers, const rpcvers_t low,
					const rpcvers_t high, const char *nettype, const struct timeval *tp)
{
	CLIENT *clnt;

	if (!rt_enter())
		return rt_originals()->clnt_create_vers_timed(host, prog, vers, low, high, nettype, tp);
	clnt = open_highest(host, prog, vers, low, high, nettype, tp);
	if (!clnt) {
		clnt = rt_originals()->clnt_create_vers_timed(host, prog, vers, low, high, nettype, tp);
		clnt = count_original(clnt, host, prog, clnt ? *vers : 0);
	}
	rt_leave();
	return clnt;
}

REPLACES CLIENT *clnt_create_vers(const char *host, const rpcprog_t prog, rpcvers_t *vers, const rpcvers_t low,
				  const rpcvers_t high, const char *nettype)
{
	CLIENT *clnt;

	if (!rt_enter())
		return rt_originals()->clnt_create_vers(host, prog, vers, low, high, nettype);
	clnt = open_highest(host, prog, vers, low, high, nettype, NULL);
	if (!clnt) {
		clnt = rt_originals()->clnt_create_vers(host, prog, vers, low, high, nettype);
		clnt = count_original(clnt, host, prog, clnt ? *vers : 0);
	}
	rt_leave();
	return clnt;
}

/* ---- by the address of the server ------------------------------------------------------------------------ */

/* Finds the address that a handle is for: @addr, or that of a connected socket. */
static bool find_peer(int fd, const struct netbuf *addr, struct sockaddr_storage *peer, socklen_t *bytes, struct rt_ip *ret)
{
	if (addr && addr->buf && addr->len) {
		*bytes = addr->len < sizeof(*peer) ? addr->len : (socklen_t)sizeof(*peer);
		memcpy(peer, addr->buf, *bytes);
	} else if (*bytes = sizeof(*peer), fd < 0 || getpeername(fd, (struct sockaddr *)peer, bytes)) {
		return false;
	}
	return rt_ip_of(peer, *bytes, ret);
}

static CLIENT *open_netbuf(int fd, const struct netbuf *addr, uint32_t prog, uint32_t vers, bool is_datagram)
{
	struct rt_asked asked = { .prog = prog, .vers = vers, .is_datagram = is_datagram, .fd = fd };
	struct sockaddr_storage peer;
	struct rt_way way;
	struct rt_ip ip;
	socklen_t bytes;

	if (!rt_route_concerns(prog) || !find_peer(fd, addr, &peer, &bytes, &ip) || !rt_route_by_addr(&ip, prog, &way))
		return NULL;
	asked.addr = &peer;
	asked.addr_bytes = bytes;
	return open_way(&way, &asked, NULL);
}

/* For the report: the host of an address, as text */
static const char *host_of(int fd, const struct netbuf *addr, char buf[64])
{
	struct sockaddr_storage peer;
	socklen_t bytes;
	struct rt_ip ip;

	return find_peer(fd, addr, &peer, &bytes, &ip) ? rt_ip_print(&ip, buf) : "unknown";
}

REPLACES CLIENT *clnt_tli_create(const int fd, const struct netconfig *nconf, struct netbuf *addr, const rpcprog_t prog,
				 const rpcvers_t vers, const u_int sendsz, const u_int recvsz)
{
	CLIENT *clnt;
	char host[64];

	if (!rt_enter())
		return rt_originals()->clnt_tli_create(fd, nconf, addr, prog, vers, sendsz, recvsz);
	clnt = open_netbuf(fd, addr, prog, vers, is_datagram_conf(nconf));
	if (!clnt)
		clnt = count_original(rt_originals()->clnt_tli_create(fd, nconf, addr, prog, vers, sendsz, recvsz),
				      host_of(fd, addr, host), prog, vers);
	rt_leave();
	return clnt;
}

REPLACES CLIENT *clnt_vc_create(const int fd, const struct netbuf *addr, const rpcprog_t prog, const rpcvers_t vers,
				u_int sendsz, u_int recvsz)
{
	CLIENT *clnt;
	char host[64];

	if (!rt_enter())
		return rt_originals()->clnt_vc_create(fd, addr, prog, vers, sendsz, recvsz);
	clnt = open_netbuf(fd, addr, prog, vers, false);
	if (!clnt)
		clnt = count_original(rt_originals()->clnt_vc_create(fd, addr, prog, vers, sendsz, recvsz),
				      host_of(fd, addr, host), prog, vers);
	rt_leave();
	return clnt;
}

REPLACES CLIENT *clnt_dg_create(const int fd, const struct netbuf *addr, const rpcprog_t prog, const rpcvers_t vers,
				const u_int sendsz, const u_int recvsz)
{
	CLIENT *clnt;
	char host[64];

	if (!rt_enter())
		return rt_originals()->clnt_dg_create(fd, addr, prog, vers, sendsz, recvsz);
	clnt = open_netbuf(fd, addr, prog, vers, true);
	if (!clnt)
		clnt = count_original(rt_originals()->clnt_dg_create(fd, addr, prog, vers, sendsz, recvsz),
				      host_of(fd, addr, host), prog, vers);
	rt_leave();
	return clnt;
}

/* ---- the older functions ----------------------------------------------------------------------------------- */

/* They return a socket, which programs set options of: one that is not connected stands in for it. */
static CLIENT *open_socket(const struct netbuf *addr, uint32_t prog, uint32_t vers, int *sock, bool is_datagram)
{
	struct rt_asked asked = { .prog = prog, .vers = vers, .is_datagram = is_datagram, .fd = *sock };
	sa_family_t family = ((const struct sockaddr *)addr->buf)->sa_family;
	struct rt_way way;
	struct rt_ip ip;
	CLIENT *clnt;

	if (!rt_route_concerns(prog) || !rt_ip_of(addr->buf, addr->len, &ip) || !rt_route_by_addr(&ip, prog, &way))
		return NULL;
	if (*sock < 0) {
		asked.fd = socket(family, (is_datagram ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
		asked.closes_fd = true;
		if (asked.fd < 0)
			return NULL;
	}
	asked.addr = addr->buf;
	asked.addr_bytes = addr->len;
	clnt = open_way(&way, &asked, NULL);
	if (clnt)
		*sock = asked.fd;
	else if (asked.closes_fd)
		close(asked.fd);
	return clnt;
}

REPLACES CLIENT *clnttcp_create(struct sockaddr_in *addr, u_long prog, u_long vers, int *sock, u_int sendsz, u_int recvsz)
{
	const struct netbuf buf = { .len = sizeof(*addr), .buf = addr };
	CLIENT *clnt;
	char host[64];

	if (!rt_enter())
		return rt_originals()->clnttcp_create(addr, prog, vers, sock, sendsz, recvsz);
	clnt = open_socket(&buf, (uint32_t)prog, (uint32_t)vers, sock, false);
	if (!clnt)
		clnt = count_original(rt_originals()->clnttcp_create(addr, prog, vers, sock, sendsz, recvsz),
				      host_of(-1, &buf, host), (uint32_t)prog, (uint32_t)vers);
	rt_leave();
	return clnt;
}

REPLACES CLIENT *clntudp_bufcreate(struct sockaddr_in *addr, u_long prog, u_long vers, struct timeval wait, int *sock,
				   u_int sendsz, u_int recvsz)
{
	const struct netbuf buf = { .len = sizeof(*addr), .buf = addr };
	CLIENT *clnt;
	char host[64];

	if (!rt_enter())
		return rt_originals()->clntudp_bufcreate(addr, prog, vers, wait, sock, sendsz, recvsz);
	clnt = open_socket(&buf, (uint32_t)prog, (uint32_t)vers, sock, true);
	if (clnt)
		(void)clnt_control(clnt, CLSET_RETRY_TIMEOUT, (void *)&wait);
	else
		clnt = count_original(rt_originals()->clntudp_bufcreate(addr, prog, vers, wait, sock, sendsz, recvsz),
				      host_of(-1, &buf, host), (uint32_t)prog, (uint32_t)vers);
	rt_leave();
	return clnt;
}

REPLACES CLIENT *clntudp_create(struct sockaddr_in *addr, u_long prog, u_long vers, struct timeval wait, int *sock)
{
	return clntudp_bufcreate(addr, prog, vers, wait, sock, UDPMSGSIZE, UDPMSGSIZE);
}

REPLACES CLIENT *clntunix_create(struct sockaddr_un *addr, u_long prog, u_long vers, int *sock, u_int sendsz, u_int recvsz)
{
	const struct netbuf buf = { .len = sizeof(*addr), .buf = addr };
	CLIENT *clnt;
	char host[64];

	if (!rt_enter())
		return rt_originals()->clntunix_create(addr, prog, vers, sock, sendsz, recvsz);
	clnt = open_socket(&buf, (uint32_t)prog, (uint32_t)vers, sock, false);
	if (!clnt)
		clnt = count_original(rt_originals()->clntunix_create(addr, prog, vers, sock, sendsz, recvsz),
				      host_of(-1, &buf, host), (uint32_t)prog, (uint32_t)vers);
	rt_leave();
	return clnt;
}

/* ---- a handle and a call in one --------------------------------------------------------------------------- */

#define CALL_LIMIT_S 25 /* libtirpc's */

/* As in libtirpc, a thread keeps the handle of its last call. */
struct kept {
	CLIENT *clnt;
	char host[RT_HOST_BYTES];
	uint32_t prog, vers;
	bool is_datagram;
};

static pthread_key_t kept_key;
static pthread_once_t kept_once = PTHREAD_ONCE_INIT;
static bool has_kept_key;

static void free_kept(void *arg)
{
	struct kept *k = arg;

	if (k->clnt)
		clnt_destroy(k->clnt);
	free(k);
}

static void make_kept_key(void)
{
	has_kept_key = !pthread_key_create(&kept_key, free_kept);
}

/* Return: the handle that this thread keeps for the program, or NULL: the original shall call. */
static struct kept *find_kept(const char *host, uint32_t prog, uint32_t vers, bool is_datagram)
{
	struct kept *k;

	pthread_once(&kept_once, make_kept_key);
	if (!has_kept_key || !rt_route_concerns(prog) || strlen(host) >= sizeof(k->host))
		return NULL;
	k = pthread_getspecific(kept_key);
	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k || pthread_setspecific(kept_key, k)) {
			free(k);
			return NULL;
		}
	}
	if (k->clnt && k->prog == prog && k->vers == vers && k->is_datagram == is_datagram && !strcmp(k->host, host))
		return k;
	if (k->clnt)
		clnt_destroy(k->clnt);
	k->clnt = open_name(host, prog, vers, is_datagram, NULL);
	if (!k->clnt)
		return NULL;
	(void)snprintf(k->host, sizeof(k->host), "%s", host);
	k->prog = prog;
	k->vers = vers;
	k->is_datagram = is_datagram;
	return k;
}

/* A call that went the original way */
static void count_call(const char *host, uint32_t prog, uint32_t vers, enum clnt_stat stat)
{
	struct rt_tally *t = host && rt_route_concerns(prog) ? rt_tally_get(host, prog, vers, RT_WAY_ORIGINAL) : NULL;

	if (!t)
		return;
	rt_tally_add(&t->calls);
	if (stat != RPC_SUCCESS)
		rt_tally_add(&t->failed);
}

REPLACES enum clnt_stat rpc_call(const char *host, const rpcprog_t prog, const rpcvers_t vers, const rpcproc_t proc,
				 const xdrproc_t xargs, const char *args, const xdrproc_t xres, char *res, const char *nettype)
{
	const struct timeval limit = { .tv_sec = CALL_LIMIT_S };
	enum clnt_stat stat;
	struct kept *k;

	if (!rt_enter())
		return rt_originals()->rpc_call(host, prog, vers, proc, xargs, args, xres, res, nettype);
	k = host ? find_kept(host, prog, vers, is_datagram_type(nettype)) : NULL;
	if (!k) {
		stat = rt_originals()->rpc_call(host, prog, vers, proc, xargs, args, xres, res, nettype);
		count_call(host, prog, vers, stat);
		rt_leave();
		return stat;
	}
	rt_leave(); /* a filter of the program may call */
	stat = clnt_call(k->clnt, proc, xargs, (void *)(uintptr_t)args, xres, res, limit);
	if (stat != RPC_SUCCESS) {
		clnt_destroy(k->clnt);
		k->clnt = NULL;
	}
	return stat;
}

REPLACES int callrpc(const char *host, int prog, int vers, int proc, xdrproc_t xargs, void *args, xdrproc_t xres, void *res)
{
	return (int)rpc_call(host, (rpcprog_t)prog, (rpcvers_t)vers, (rpcproc_t)proc, xargs, args, xres, res, "udp");
}
