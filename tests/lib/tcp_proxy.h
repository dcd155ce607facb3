/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tcp_proxy.h - a TCP connection that breaks where a test says, between one message and the next
 */
#ifndef TESTS_TCP_PROXY_H
#define TESTS_TCP_PROXY_H

#include <pthread.h>
#include <stdatomic.h>

#include "rpcrdma.h"

enum tcp_proxy_cut {
	TCP_PROXY_NONE,
	TCP_PROXY_IN_CALL,     /* half of the next call reaches the server */
	TCP_PROXY_BEHIND_CALL, /* all of it does, and then the connection is cut */
	TCP_PROXY_REPLY,       /* the server sends its reply, which is lost */
	TCP_PROXY_HOLD,        /* nothing reaches the server until this is set back to NONE */
};

struct tcp_proxy {
	struct rpcrdma_addr addr, server;
	int listener, stop[2];
	pthread_t thread;
	atomic_int cut;  /* enum tcp_proxy_cut: of the next call, once */
	atomic_uint cuts; /* that there were */
};

/** tcp_proxy_start - listen on a port of 127.0.0.1, @p->addr, and connect each client to @server */
void tcp_proxy_start(struct tcp_proxy *p, const struct rpcrdma_addr *server);
void tcp_proxy_stop(struct tcp_proxy *p);

#endif
