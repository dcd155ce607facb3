/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcbind.c - registers the ports of NFS and MOUNT with the local rpcbind
 *
 * Operation: A thread connects to rpcbind's socket on this host, the only one on which it accepts changes. It registers
 *            each program once per netid: clients are directed to the first listener of a kind. A registration that
 *            rpcbind refuses, because another server has that place, is left alone, also at the end.
 *
 *            libtirpc's rpcb_set() does the same and waits up to a minute for each reply; here all registrations
 *            together take at most WAIT_MS.
 * Memory:    struct rpcbind until rpcbind_stop().
 * Threads:   One, until all is registered; rpcbind_stop() joins it and works in the caller's thread.
 * Errors:    Logged in one line; nothing else depends on it.
 * See:       RFC 1833, RFC 5665 section 5.2.3 (universal addresses), 5.2.4 (netids rdma, rdma6: RFC 8166).
 */
#include "rpcbind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <rpc/rpc.h>
#include <rpc/rpcb_prot.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "mount3.h"
#include "nfs3.h"

#ifndef RPCBIND_SOCKET /* a test has its own */
#define RPCBIND_SOCKET "/run/rpcbind.sock"
#endif
#define WAIT_MS 2000
#define CALL_BYTES 1024 /* longest message in each direction */
#define NETIDS 4

struct entry {
	const char *netid;
	char uaddr[RPCBIND_UADDR_BYTES];
	bool set[2]; /* by program: we have registered it, and must unregister it */
};

static const struct program {
	rpcprog_t number;
	rpcvers_t vers;
	const char *name;
} programs[2] = {
	{ NFS_PROGRAM, NFS_V3, "NFS" },
	{ MOUNT_PROGRAM, MOUNT_V3, "MOUNT" },
};

struct rpcbind {
	pthread_t thread;
	struct entry v[NETIDS];
	size_t n;
};

int rpcbind_uaddr(const struct rpcrdma_addr *addr, char uaddr[RPCBIND_UADDR_BYTES],
		  const char **ret_netid)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_PASSIVE,
					.ai_socktype = SOCK_STREAM };
	bool rdma = addr->transport == RPCRDMA_RDMA, v6;
	char host[INET6_ADDRSTRLEN];
	struct addrinfo *ai;

	if (addr->transport == RPCRDMA_LOCAL)
		return -EAFNOSUPPORT;
	if (getaddrinfo(addr->host, "0", &hints, &ai))
		return -EINVAL;
	v6 = ai->ai_family == AF_INET6;
	if (v6)
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)(void *)ai->ai_addr)->sin6_addr, host,
			  sizeof(host));
	else
		inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)ai->ai_addr)->sin_addr, host,
			  sizeof(host));
	freeaddrinfo(ai);
	snprintf(uaddr, RPCBIND_UADDR_BYTES, "%s.%u.%u", host, addr->port >> 8, addr->port & 0xffu);
	*ret_netid = rdma ? v6 ? "rdma6" : "rdma" : v6 ? "tcp6" : "tcp";
	return 0;
}

/* ---- protocol --------------------------------------------------------------------------------- */

static struct timeval left_until(uint64_t until_ns)
{
	uint64_t now = clock_now_ns(), left = until_ns > now ? until_ns - now : 0;

	return (struct timeval){ .tv_sec = (time_t)(left / NS_PER_S),
				 .tv_usec = (suseconds_t)(left % NS_PER_S / NS_PER_US) };
}

static int connect_socket(const struct sockaddr_un *sun, uint64_t until_ns)
{
	struct timeval tv = left_until(until_ns);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	/* limits the wait for an rpcbind that does not accept or does not read */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) ||
	    connect(fd, (const struct sockaddr *)sun, sizeof(*sun)))
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* Return: 0, and a client that owns its socket; or -errno */
static int open_client(uint64_t until_ns, CLIENT **ret)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct netbuf to = { .buf = &sun, .len = sizeof(sun), .maxlen = sizeof(sun) };
	CLIENT *c;
	int fd;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", RPCBIND_SOCKET);
	fd = connect_socket(&sun, until_ns);
	if (fd < 0)
		return fd;
	c = clnt_vc_create(fd, &to, RPCBPROG, RPCBVERS, CALL_BYTES, CALL_BYTES);
	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	(void)clnt_control(c, CLSET_FD_CLOSE, NULL); /* always succeeds */
	*ret = c;
	return 0;
}

/* Return: 0; -EEXIST: rpcbind refuses; -ETIMEDOUT, -EIO: no reply */
static int change(CLIENT *c, rpcproc_t proc, const struct program *p, const struct entry *e,
		  uint64_t until_ns)
{
	char no_addr[] = "", owner[16];
	RPCB rpcb = {
		.r_prog = p->number,
		.r_vers = p->vers,
		.r_netid = (char *)(uintptr_t)e->netid, /* only read */
		.r_addr = proc == RPCBPROC_SET ? (char *)(uintptr_t)e->uaddr : no_addr,
		.r_owner = owner, /* rpcbind uses the peer's credentials, but requires a text here */
	};
	bool_t done = FALSE;
	enum clnt_stat stat;

	snprintf(owner, sizeof(owner), "%u", (unsigned)geteuid());
	stat = clnt_call(c, proc, (xdrproc_t)xdr_rpcb, (char *)&rpcb, (xdrproc_t)xdr_bool,
			 (char *)&done, left_until(until_ns));
	if (stat == RPC_TIMEDOUT)
		return -ETIMEDOUT;
	if (stat != RPC_SUCCESS)
		return -EIO;
	return done ? 0 : -EEXIST;
}

/* ---- registration ------------------------------------------------------------------------------- */

static int set_all(struct rpcbind *rb)
{
	uint64_t until_ns = clock_now_ns() + WAIT_MS * NS_PER_MS;
	CLIENT *c;
	int err = open_client(until_ns, &c);

	if (err)
		return err;
	for (size_t k = 0; !err && k < rb->n * ARRAY_SIZE(programs); k++) {
		struct entry *e = &rb->v[k / ARRAY_SIZE(programs)];
		const struct program *p = &programs[k % ARRAY_SIZE(programs)];

		err = change(c, RPCBPROC_SET, p, e, until_ns);
		e->set[k % ARRAY_SIZE(programs)] = !err;
		if (!err)
			log_info("rpcbind: %s is at %s %s", p->name, e->netid, e->uaddr);
		if (err == -EEXIST) {
			log_warn("rpcbind: another server is registered for %s by %s: clients must "
				 "name this port",
				 p->name, e->netid);
			err = 0;
		}
	}
	clnt_destroy(c);
	return err;
}

static void *set_main(void *arg)
{
	int err = set_all(arg);

	if (err)
		log_warn("no rpcbind to register with (%s): clients must name our ports",
			 strerror(-err));
	return NULL;
}

int rpcbind_start(const struct rpcrdma_addr *addrs, size_t n, struct rpcbind **ret)
{
	struct rpcbind *rb = calloc(1, sizeof(*rb));
	int err;

	if (!rb)
		return -ENOMEM;
	for (size_t i = 0; i < n && rb->n < NETIDS; i++) {
		struct entry *e = &rb->v[rb->n];
		bool known = false;

		if (rpcbind_uaddr(&addrs[i], e->uaddr, &e->netid))
			continue;
		for (size_t k = 0; k < rb->n; k++)
			known |= !strcmp(rb->v[k].netid, e->netid);
		rb->n += !known;
	}
	err = -pthread_create(&rb->thread, NULL, set_main, rb);
	if (err) {
		free(rb);
		return err;
	}
	*ret = rb;
	return 0;
}

void rpcbind_stop(struct rpcbind *rb)
{
	uint64_t until_ns;
	CLIENT *c = NULL;
	int err = 0;

	if (!rb)
		return;
	pthread_join(rb->thread, NULL);
	until_ns = clock_now_ns() + WAIT_MS * NS_PER_MS;
	for (size_t k = 0; !err && k < rb->n * ARRAY_SIZE(programs); k++) {
		if (!rb->v[k / ARRAY_SIZE(programs)].set[k % ARRAY_SIZE(programs)])
			continue;
		if (!c)
			err = open_client(until_ns, &c);
		if (!err)
			err = change(c, RPCBPROC_UNSET, &programs[k % ARRAY_SIZE(programs)],
				     &rb->v[k / ARRAY_SIZE(programs)], until_ns);
		if (err == -EEXIST)
			err = 0; /* it was restarted, and has no registration of ours */
	}
	if (err)
		log_warn("rpcbind still tells of us: %s", strerror(-err));
	if (c)
		clnt_destroy(c);
	free(rb);
}
