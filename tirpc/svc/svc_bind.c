/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * svc_bind.c - registers programs with the rpcbind of this host, under the netids of their URLs
 *
 * Operation:  rpcbind accepts changes on its socket on this host. libtirpc's rpcb_set() knows the netids of /etc/netconfig
 *             only, and waits for a minute if there is no rpcbind. A netid of TCP that another server has, perhaps the
 *             program's own socket, stays as it is. One of RDMA is replaced, as svc_create() does: a service that was killed
 *             may have left it. svc_unreg() of libtirpc removes all netids of a program; exit() removes what is left.
 *
 *             After daemon() the child registers again: a parent that ends with exit() has removed everything.
 * Memory:     A struct rt_program per program, version and URL, until the process ends.
 * Threads:    As rpcrdma_svc_create().
 * Errors:     None: nothing else depends on it.
 * See:        RFC 1833, RFC 5665 section 5.2.3 (universal addresses), RFC 8166 section 8.1 (netids rdma and rdma6).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <rpc/rpc.h>
#include <rpc/rpcb_prot.h>

#include "svc_int.h"

#define RPCBIND_SOCKET "/run/rpcbind.sock"
#define CALL_BYTES 1024 /* longest message in each direction */
#define CALL_S 2        /* for each call */

/* A program at a URL. */
struct rt_program {
	struct list link; /* rt_listen.programs */
	rpcprog_t prog;
	rpcvers_t vers;
	bool is_set;
};

/* ---- rpcbind ---- */

/* Return: a client that owns its socket; NULL: no rpcbind, or it accepts no connections */
static CLIENT *open_rpcbind(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX, .sun_path = RPCBIND_SOCKET };
	struct netbuf to = { .buf = &sun, .len = sizeof(sun), .maxlen = sizeof(sun) };
	const struct timeval limit = { .tv_sec = CALL_S };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CLIENT *c = NULL;

	if (fd < 0)
		return NULL;
	if (!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) && /* of connect(), too */
	    !connect(fd, (struct sockaddr *)&sun, sizeof(sun)))
		c = clnt_vc_create(fd, &to, RPCBPROG, RPCBVERS, CALL_BYTES, CALL_BYTES);
	if (c)
		(void)clnt_control(c, CLSET_FD_CLOSE, NULL); /* always succeeds */
	else
		close(fd);
	return c;
}

/* Return: false: there is no rpcbind, or it refuses */
static bool change(rpcproc_t proc, const struct rt_program *p, const char *netid, const char *uaddr)
{
	char owner[16];
	RPCB rpcb = {
		.r_prog = p->prog,
		.r_vers = p->vers,
		.r_netid = (char *)(uintptr_t)netid, /* only read */
		.r_addr = (char *)(uintptr_t)uaddr,
		.r_owner = owner, /* rpcbind uses the peer's credentials, but requires a text here */
	};
	CLIENT *c = open_rpcbind();
	bool_t done = FALSE;

	if (!c)
		return false;
	snprintf(owner, sizeof(owner), "%u", (unsigned)geteuid());
	if (clnt_call(c, proc, (xdrproc_t)xdr_rpcb, (char *)&rpcb, (xdrproc_t)xdr_bool, (char *)&done,
		      ((struct timeval){ .tv_sec = CALL_S })) != RPC_SUCCESS)
		done = FALSE;
	clnt_destroy(c);
	return done;
}

/* ---- programs ---- */

#define UADDR_BYTES (INET6_ADDRSTRLEN + 8)

/* Return: the netid, and the universal address; NULL: the URL has none */
static const char *name_listen(const struct rt_listen *l, char uaddr[UADDR_BYTES])
{
	static const char *const netids[2][2] = { { "tcp", "tcp6" }, { "rdma", "rdma6" } };
	const struct sockaddr_in *in = (const void *)&l->local;
	const struct sockaddr_in6 *in6 = (const void *)&l->local;
	bool v6 = l->local.ss_family == AF_INET6;
	char host[INET6_ADDRSTRLEN];

	if (l->addr.transport == RPCRDMA_LOCAL || l->local.ss_family == AF_UNSPEC)
		return NULL;
	inet_ntop(l->local.ss_family, v6 ? (const void *)&in6->sin6_addr : &in->sin_addr, host, sizeof(host));
	snprintf(uaddr, UADDR_BYTES, "%s.%u.%u", host, l->addr.port >> 8, l->addr.port & 0xffu);
	return netids[l->addr.transport == RPCRDMA_RDMA][v6];
}

/* Does another URL of this process have the netid for the program? */
static bool is_ours(const struct rt_program *wanted, const char *netid)
{
	list_for_each(node, &rt_svc.listens) {
		struct rt_listen *l = list_entry(node, struct rt_listen, link);
		char uaddr[UADDR_BYTES];
		const char *name = name_listen(l, uaddr);

		list_for_each(at, &l->programs) {
			const struct rt_program *p = list_entry(at, struct rt_program, link);

			if (p->is_set && name && !strcmp(name, netid) && p->prog == wanted->prog && p->vers == wanted->vers)
				return true;
		}
	}
	return false;
}

static void set_program(struct rt_listen *l, struct rt_program *p)
{
	char uaddr[UADDR_BYTES];
	const char *netid = name_listen(l, uaddr);

	p->is_set = netid && change(RPCBPROC_SET, p, netid, uaddr);
	if (!netid || p->is_set || l->addr.transport != RPCRDMA_RDMA || is_ours(p, netid))
		return;
	p->is_set = change(RPCBPROC_UNSET, p, netid, "") && change(RPCBPROC_SET, p, netid, uaddr);
}

void rt_bind_add(struct rt_listen *l, rpcprog_t prog, rpcvers_t vers)
{
	struct rt_program *p;

	list_for_each(node, &l->programs) {
		p = list_entry(node, struct rt_program, link);
		if (p->prog == prog && p->vers == vers)
			return;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return;
	p->prog = prog;
	p->vers = vers;
	list_add_tail(&l->programs, &p->link);
	set_program(l, p);
}

void rt_bind_again(struct rt_listen *l)
{
	list_for_each(node, &l->programs) {
		struct rt_program *p = list_entry(node, struct rt_program, link);

		if (p->is_set)
			set_program(l, p);
	}
}

void rt_bind_end(struct rt_listen *l)
{
	char uaddr[UADDR_BYTES];
	const char *netid = name_listen(l, uaddr);

	list_for_each_safe(node, &l->programs) {
		struct rt_program *p = list_entry(node, struct rt_program, link);

		if (p->is_set)
			(void)change(RPCBPROC_UNSET, p, netid, ""); /* false: svc_unreg() was first */
		list_del(&p->link);
		free(p);
	}
}
