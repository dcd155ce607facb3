/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_tcp.c - the responder over TCP: listening, accepting, closing
 *
 * Operation:  The listening socket is on the listener's engine. The engine that the service chose
 *             adopts an accepted socket and reads from it (srv_tcp_in.c).
 * Memory:     A connection contains its staging buffer; requests are recycled.
 * Threads:    The listener's engine until the adoption, then the connection's.
 * Errors:     End of file, a socket error or an invalid record ends the connection. Its requests run
 *             to their end; their replies are discarded.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "srv_tcp.h"

#define ACCEPTS_AT_ONCE 64 /* then the engine polls its other sockets */

/* Time to wait before accepting again after descriptors or memory ran out. */
#define RETRY_NS (100 * NS_PER_MS)

struct tcp_listener {
	struct rpcrdma_listener base;
	struct rpcrdma_watch watch;
	struct rpcrdma_timer retry;
};

void rr_tconn_interest(struct rr_tconn *c)
{
	uint32_t events = (rr_tconn_wants_input(c) ? (uint32_t)EPOLLIN : 0) |
			  (list_is_empty(&c->sendq) ? 0 : (uint32_t)EPOLLOUT);

	if (c->base.dead || !c->base.adopted || events == c->events)
		return;
	c->events = events;
	if (rpcrdma_engine_rewatch(c->base.engine, &c->watch, events))
		rr_tconn_die(c);
}

void rr_tconn_die(struct rr_tconn *c)
{
	struct rr_treq *t;

	if (c->base.dead)
		return;
	rr_conn_dead(&c->base);
	if (c->base.adopted)
		rpcrdma_engine_unwatch(c->base.engine, &c->watch);
	close(c->watch.fd);
	c->watch.fd = -1;
	while ((t = list_first_entry(&c->sendq, struct rr_treq, base.link)) != NULL) {
		list_del(&t->base.link);
		rr_treq_end(t);
	}
	/* ends the pulls of the request being read, and reports drained; deferred, not from inside */
	rr_tconn_kick(c);
}

static void on_socket(struct rpcrdma_watch *w, uint32_t events)
{
	struct rr_tconn *c = container_of(w, struct rr_tconn, watch);

	if (events & EPOLLOUT)
		rr_tcp_flush(c);
	if (!c->base.dead && events & (EPOLLIN | EPOLLERR | EPOLLHUP)) {
		if (!rr_tconn_wants_input(c) && events & (EPOLLERR | EPOLLHUP))
			rr_tconn_die(c);
		else
			rr_tconn_pump(c);
	}
}

static void conn_adopted(struct rpcrdma_conn *base)
{
	struct rr_tconn *c = rr_tconn_of(base);

	c->events = EPOLLIN;
	if (!base->dead && rpcrdma_engine_watch(base->engine, &c->watch, c->events)) {
		base->adopted = false; /* not watched: rr_tconn_die() must not unwatch it */
		rr_tconn_die(c);
		base->adopted = true;
	}
}

/* A call that waits for our memory owes no progress. */
static bool conn_owed(const struct rpcrdma_conn *base)
{
	const struct rr_tconn *c = rr_tconn_of(base);

	return !list_is_empty(&c->sendq) ||
	       (c->in && ((c->in->in == RR_TREQ_READING && !c->in->waits) || c->in->pulls || c->in->skipping));
}

static void conn_close(struct rpcrdma_conn *base)
{
	rr_tconn_die(rr_tconn_of(base));
}

static void conn_free(struct rpcrdma_conn *base)
{
	struct rr_tconn *c = rr_tconn_of(base);

	rr_engine_undefer(base->engine, &c->pump_msg);
	rr_req_trim(base, 0);
	free(c);
}

static const struct rr_conn_ops tcp_ops = {
	.adopted = conn_adopted,
	.close = conn_close,
	.owed = conn_owed,
	.whole = rr_tcp_whole,
	.pull = rr_tcp_pull,
	.place = rr_req_add_placed, /* on a stream the status precedes the data */
	.free_req = rr_tcp_free_req,
	.reply = rr_tcp_reply,
	.free = conn_free,
};

static void on_pump_msg(struct rpcrdma_msg *msg)
{
	struct rr_tconn *c = container_of(msg, struct rr_tconn, pump_msg);

	c->pump_out = false;
	rr_tconn_pump(c);
}

/* Detects a peer that vanished within a minute: by probes if it is idle. The kernel sends no probes while data is not
 * acknowledged, and would retransmit it for a quarter of an hour. */
static void watch_peer(int fd)
{
	const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_KEEPIDLE, 30 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 10 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 3 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, 60000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		(void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

static void take_peer(struct rpcrdma_listener *l, int fd, const struct sockaddr_storage *addr)
{
	struct rpcrdma_peer peer = { .transport = RPCRDMA_TCP, .addr = *addr };
	struct rpcrdma_conn *base;
	struct rr_tconn *c;
	int one = 1;

	rr_addr_print_socket(&peer.addr, peer.text, sizeof(peer.text));
	if (rr_conn_create(l, &peer, &tcp_ops, sizeof(*c), &base)) {
		close(fd);
		return;
	}
	c = rr_tconn_of(base);
	/* a reply is one write, so delaying small ones gains nothing; the socket works without the option too */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	watch_peer(fd);
	c->watch = (struct rpcrdma_watch){ .fd = fd, .fn = on_socket };
	c->pump_msg.fn = on_pump_msg;
	list_init(&c->sendq);
	rr_conn_adopt(base);
}

/* Stops watching the listening socket, which stays readable, until descriptors or memory may be free again. */
static void rest(struct tcp_listener *l, int err)
{
	rr_svc_refused(l->base.svc, NULL, err);
	if (rpcrdma_engine_rewatch(l->base.engine, &l->watch, 0) == 0)
		rpcrdma_timer_set(l->base.engine, &l->retry, RETRY_NS);
}

static void on_incoming(struct rpcrdma_watch *w, uint32_t events)
{
	struct tcp_listener *l = container_of(w, struct tcp_listener, watch);

	(void)events;
	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		struct sockaddr_storage addr = { 0 };
		socklen_t len = sizeof(addr);
		int fd = accept4(w->fd, (struct sockaddr *)&addr, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0)
			take_peer(&l->base, fd, &addr);
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
			return;
		else if (errno != ECONNABORTED && errno != EINTR) {
			rest(l, -errno);
			return;
		}
	}
}

static void on_retry(struct rpcrdma_timer *t)
{
	struct tcp_listener *l = container_of(t, struct tcp_listener, retry);

	if (rpcrdma_engine_rewatch(l->base.engine, &l->watch, EPOLLIN))
		rpcrdma_timer_set(l->base.engine, t, RETRY_NS);
}

static void listener_close(struct rpcrdma_listener *base)
{
	struct tcp_listener *l = container_of(base, struct tcp_listener, base);

	rpcrdma_timer_cancel(base->engine, &l->retry);
	rpcrdma_engine_unwatch(base->engine, &l->watch);
	close(l->watch.fd);
	free(l);
}

static int bind_and_listen(const struct addrinfo *ai)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	int one = 1, rc;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    (ai->ai_family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0) ||
	    bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

static uint16_t bound_port(int fd)
{
	struct sockaddr_storage addr = { 0 };
	socklen_t len = sizeof(addr);

	if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		return 0;
	return ntohs(addr.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&addr)->sin6_port
						: ((struct sockaddr_in *)&addr)->sin_port);
}

int rr_tcp_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr, struct rr_svc *svc,
		  struct rpcrdma_listener **ret)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	struct tcp_listener *l;
	struct addrinfo *ai;
	char port[8];
	int rc;

	snprintf(port, sizeof(port), "%u", addr->port);
	if (getaddrinfo(addr->host[0] ? addr->host : NULL, port, &hints, &ai))
		return -EADDRNOTAVAIL;
	rc = bind_and_listen(ai);
	freeaddrinfo(ai);
	if (rc < 0)
		return rc;
	l = calloc(1, sizeof(*l));
	if (!l) {
		close(rc);
		return -ENOMEM;
	}
	l->watch = (struct rpcrdma_watch){ .fd = rc, .fn = on_incoming };
	l->retry.fn = on_retry;
	l->base = (struct rpcrdma_listener){
		.engine = e, .svc = svc, .addr = *addr, .close = listener_close };
	l->base.addr.port = bound_port(rc);
	rc = rpcrdma_engine_watch(e, &l->watch, EPOLLIN);
	if (rc) {
		close(l->watch.fd);
		free(l);
		return rc;
	}
	*ret = &l->base;
	return 0;
}
