/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tcp_proxy.c - a TCP connection that breaks where a test says, between one message and the next
 *
 * Operation:  One connection at a time is relayed. A cut that is asked for while no call is out
 *             hits the next one; where it begins and ends its record marks say.
 * Memory:     One buffer.
 * Threads:    One of its own; `cut` is set by the test's.
 * Errors:     A connection that ends is the end of both sides. What the test itself needs is asserted.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "base/wire.h"
#include "tcp_proxy.h"

#define BUF_BYTES (2u << 20)

static bool get(int fd, uint8_t *to, size_t n)
{
	return recv(fd, to, n, MSG_WAITALL) == (ssize_t)n;
}

static bool put(int fd, const uint8_t *from, size_t n)
{
	while (n) {
		ssize_t k = send(fd, from, n, MSG_NOSIGNAL);

		if (k <= 0)
			return false;
		from += k;
		n -= (size_t)k;
	}
	return true;
}

/* all fragments of a record, with their marks; 0: the connection ended */
static size_t get_record(int fd, uint8_t *buf)
{
	size_t at = 0;

	for (;;) {
		uint32_t mark, len;

		if (!get(fd, buf + at, 4))
			return 0;
		mark = get_be32(buf + at);
		len = mark & 0x7fffffff;
		at += 4;
		if (len > BUF_BYTES - at || !get(fd, buf + at, len))
			return 0;
		at += len;
		if (mark & 0x80000000)
			return at;
	}
}

static void cut_call(struct tcp_proxy *p, int cut, int clnt, int srv, uint8_t *buf)
{
	size_t n = get_record(clnt, buf);

	if (!n || !put(srv, buf, cut == TCP_PROXY_IN_CALL ? n / 2 : n))
		return;
	if (cut == TCP_PROXY_REPLY && !get_record(srv, buf))
		return;
	atomic_store(&p->cut, TCP_PROXY_NONE);
	atomic_fetch_add(&p->cuts, 1);
}

/* Return: is the connection still there? */
static bool relay(int from, int to, uint8_t *buf)
{
	ssize_t n = recv(from, buf, BUF_BYTES, 0);

	return n > 0 && put(to, buf, (size_t)n);
}

/* Return: false: the proxy is to stop */
static bool serve(struct tcp_proxy *p, int clnt, int srv, uint8_t *buf)
{
	for (;;) {
		struct pollfd fds[3] = { { .fd = p->stop[0], .events = POLLIN },
					 { .fd = clnt, .events = POLLIN },
					 { .fd = srv, .events = POLLIN } };
		int cut = atomic_load(&p->cut);

		if (cut == TCP_PROXY_HOLD)
			fds[1].fd = -1;
		if (poll(fds, 3, cut == TCP_PROXY_HOLD ? 1 : -1) < 0)
			continue;
		if (fds[0].revents)
			return false;
		cut = atomic_load(&p->cut);
		if (cut == TCP_PROXY_HOLD)
			fds[1].revents = 0;
		if (fds[1].revents && cut) {
			cut_call(p, cut, clnt, srv, buf);
			return true;
		}
		if ((fds[1].revents && !relay(clnt, srv, buf)) ||
		    (fds[2].revents && !relay(srv, clnt, buf)))
			return true;
	}
}

static int dial(const struct rpcrdma_addr *addr)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(addr->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (fd >= 0 && connect(fd, (struct sockaddr *)&in, sizeof(in))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void *proxy_main(void *arg)
{
	struct tcp_proxy *p = arg;
	uint8_t *buf = malloc(BUF_BYTES);
	bool on = buf != NULL;

	while (on) {
		struct pollfd fds[2] = { { .fd = p->stop[0], .events = POLLIN },
					 { .fd = p->listener, .events = POLLIN } };
		int clnt, srv;

		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[0].revents)
			break;
		clnt = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
		srv = dial(&p->server);
		if (clnt >= 0 && srv >= 0)
			on = serve(p, clnt, srv, buf);
		if (clnt >= 0)
			close(clnt);
		if (srv >= 0)
			close(srv);
	}
	free(buf);
	return NULL;
}

void tcp_proxy_start(struct tcp_proxy *p, const struct rpcrdma_addr *server)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);
	int window = 256 << 10;

	p->server = *server;
	p->addr = *server;
	atomic_store(&p->cut, TCP_PROXY_NONE);
	atomic_store(&p->cuts, 0);
	assert_int_equal(pipe(p->stop), 0);
	p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(p->listener >= 0);
	/* what a connection takes while it is held must not depend on how far the kernel has let its window grow: up to 32 MiB */
	assert_int_equal(setsockopt(p->listener, SOL_SOCKET, SO_RCVBUF, &window, sizeof(window)), 0);
	assert_int_equal(bind(p->listener, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(p->listener, 8), 0);
	assert_int_equal(getsockname(p->listener, (struct sockaddr *)&in, &len), 0);
	p->addr.port = ntohs(in.sin_port);
	assert_int_equal(pthread_create(&p->thread, NULL, proxy_main, p), 0);
}

void tcp_proxy_stop(struct tcp_proxy *p)
{
	assert_int_equal(write(p->stop[1], "", 1), 1);
	pthread_join(p->thread, NULL);
	close(p->stop[0]);
	close(p->stop[1]);
	close(p->listener);
}
