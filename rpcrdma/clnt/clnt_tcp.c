/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_tcp.c - the requester over TCP: connecting and disconnecting
 *
 * Operation:  Tries the addresses of a name in turn, each with a nonblocking connect. A connection ends in two
 *             steps. The socket is closed at once, so that callers' memory is no longer read or written.
 *             end_msg reports it to the core later, outside the call that detected it.
 * Memory:     One struct rr_tclnt per client, for all its connections.
 * Threads:    The engine's.
 * Errors:     Any error of the socket ends the connection.
 * See:        RFC 5531 section 11 (record marking).
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "clnt_tcp.h"
#include "resv_ports.h"

static void tcp_free(struct rr_tclnt *t)
{
	rr_tclnt_outs_free(t);
	free(t->buf);
	free(t);
}

static void close_socket(struct rr_tclnt *t)
{
	if (t->watch.fd < 0)
		return;
	rpcrdma_engine_unwatch(t->engine, &t->watch);
	close(t->watch.fd);
	t->watch.fd = -1;
}

static void on_end(struct rpcrdma_msg *msg)
{
	struct rr_tclnt *t = container_of(msg, struct rr_tclnt, end_msg);
	char why[sizeof(t->why)];

	if (!t->clnt) {
		tcp_free(t);
		return;
	}
	memcpy(why, t->why, sizeof(why));
	t->ending = false;
	t->up = false;
	rr_tclnt_outs_mark_unsent(t);
	rr_tclnt_outs_reset(t);
	rr_tclnt_recv_reset(t);
	rr_clnt_down(t->clnt, t->err, why);
}

void rr_tclnt_fail(struct rr_tclnt *t, int err, const char *fmt, ...)
{
	va_list ap;

	if (t->ending)
		return;
	t->ending = true;
	t->err = err;
	va_start(ap, fmt);
	vsnprintf(t->why, sizeof(t->why), fmt, ap);
	va_end(ap);
	close_socket(t);
	t->end_msg.fn = on_end;
	rr_engine_defer(t->engine, &t->end_msg);
}

void rr_tclnt_want_out(struct rr_tclnt *t, bool want)
{
	uint32_t events = EPOLLIN | (want ? (uint32_t)EPOLLOUT : 0u);
	int rc;

	if (t->ending || events == t->events)
		return;
	rc = rpcrdma_engine_rewatch(t->engine, &t->watch, events);
	if (rc)
		rr_tclnt_fail(t, rc, "epoll: %s", strerror(-rc));
	t->events = events;
}

/* ---- connecting --------------------------------------------------------------------------- */

/* A closed connection holds its port for a minute, and there are too few ports to use each only once a minute:
 * they may be shared. connect() ensures that no two connections are identical, and replaces a closed one if
 * TCP's time stamps tell them apart. */
static int bind_port(int fd, int family, unsigned port)
{
	struct sockaddr_storage ss = { .ss_family = (sa_family_t)family };
	int one = 1;
	socklen_t len;

	if (family == AF_INET6) {
		((struct sockaddr_in6 *)(void *)&ss)->sin6_port = htons((uint16_t)port);
		len = sizeof(struct sockaddr_in6);
	} else {
		((struct sockaddr_in *)(void *)&ss)->sin_port = htons((uint16_t)port);
		len = sizeof(struct sockaddr_in);
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	return bind(fd, (struct sockaddr *)&ss, len) ? -errno : 0;
}

/* Without the privilege for @port, connects from any port.
 *
 * Return: 0: started; -EADDRINUSE, -EADDRNOTAVAIL: not from this port; -errno.
 */
static int start_connect(const struct addrinfo *ai, unsigned port, int *ret_fd)
{
	int fd, one = 1, rc = 0;

	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* a call is written as a whole: waiting for more data is useless */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (port)
		rc = bind_port(fd, ai->ai_family, port);
	if (rc != -EADDRINUSE) {
		rc = 0;
		if (connect(fd, ai->ai_addr, ai->ai_addrlen) < 0 && errno != EINPROGRESS)
			rc = -errno;
	}
	if (rc) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

/* Connects from a reserved port, which some servers require, if the process is allowed to and one is free for
 * this server; otherwise from any port. */
static int connect_to(const struct addrinfo *ai, int *ret_fd)
{
	struct rr_resv_ports ports;
	unsigned port;
	int rc;

	rr_resv_ports_init(&ports, clock_now_ns());
	do {
		port = rr_resv_ports_next(&ports); /* in the end 0: any */
		rc = start_connect(ai, port, ret_fd);
	} while (port && (rc == -EADDRINUSE || rc == -EADDRNOTAVAIL));
	return rc;
}

/* Starts a connect to the next address that accepts it. */
static int next_address(struct rr_tclnt *t, int rc)
{
	for (; t->addr_next; t->addr_next = t->addr_next->ai_next) {
		rc = connect_to(t->addr_next, &t->watch.fd);
		if (rc)
			continue;
		t->addr_next = t->addr_next->ai_next;
		t->events = EPOLLOUT;
		rc = rpcrdma_engine_watch(t->engine, &t->watch, t->events);
		if (rc) {
			close(t->watch.fd);
			t->watch.fd = -1;
		}
		return rc;
	}
	return rc;
}

/* The attempt has succeeded or failed. */
static void on_connected(struct rr_tclnt *t)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (t->clnt->closed) /* in this pass; its addresses are freed */
		return;
	if (getsockopt(t->watch.fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		err = errno;
	if (err) {
		close_socket(t);
		err = next_address(t, -err);
		if (err)
			rr_tclnt_fail(t, err, "connect: %s", strerror(-err));
		return;
	}
	t->up = true;
	rr_tclnt_want_out(t, false);
	if (!t->ending)
		rr_clnt_up(t->clnt);
}

static void on_socket(struct rpcrdma_watch *w, uint32_t events)
{
	struct rr_tclnt *t = container_of(w, struct rr_tclnt, watch);

	if (!t->up) {
		on_connected(t);
		return;
	}
	if (events & EPOLLOUT)
		rr_tclnt_flush(t);
	/* reading detects a hang-up or error, after the data before it */
	if (!t->ending && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		rr_tclnt_recv(t);
}

/* ---- the table ---------------------------------------------------------------------------- */

static int tcp_init(struct rpcrdma_clnt *c)
{
	struct rr_tclnt *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->clnt = c;
	t->engine = c->engine;
	t->watch = (struct rpcrdma_watch){ .fd = -1, .fn = on_socket };
	list_init(&t->queue);
	list_init(&t->sent);
	list_init(&t->free_outs);
	c->xprt = t;
	return 0;
}

static int tcp_connect(struct rpcrdma_clnt *c)
{
	struct rr_tclnt *t = rr_tclnt_of(c);

	t->addr_next = c->found;
	return next_address(t, -EHOSTUNREACH);
}

static bool tcp_is_over(struct rpcrdma_clnt *c, bool look)
{
	struct rr_tclnt *t = rr_tclnt_of(c);
	char byte;
	ssize_t n = t->ending || !look ? 1 : recv(t->watch.fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);

	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		rr_tclnt_fail(t, -ECONNRESET, "connection closed by the server");
	return t->ending;
}

static void tcp_disconnect(struct rpcrdma_clnt *c, const char *why)
{
	rr_tclnt_fail(rr_tclnt_of(c), -ECONNABORTED, "%s", why);
}

static void tcp_fini(struct rpcrdma_clnt *c)
{
	struct rr_tclnt *t = rr_tclnt_of(c);

	close_socket(t);
	c->xprt = NULL;
	t->clnt = NULL;
	if (!t->ending)
		tcp_free(t);
}

static void tcp_info(const struct rpcrdma_clnt *c, struct rpcrdma_clnt_info *ret)
{
	snprintf(ret->device, sizeof(ret->device), "tcp");
	ret->reach = RPCRDMA_REACH_SOCKET;
	ret->registration = "none";
	list_for_each(node, &rr_tclnt_of(c)->queue)
		ret->unsent++;
}

const struct rr_clnt_ops rr_clnt_tcp_ops = {
	.name = "tcp",
	.init = tcp_init,
	.connect = tcp_connect,
	.send = rr_tclnt_send,
	.cancel = rr_tclnt_cancel,
	.is_over = tcp_is_over,
	.disconnect = tcp_disconnect,
	.fini = tcp_fini,
	.info = tcp_info,
};
