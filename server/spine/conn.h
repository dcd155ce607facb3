/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * conn.h - a client's connection, on its reactor
 */
#ifndef LEAT_SERVER_CONN_H
#define LEAT_SERVER_CONN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "fair.h"
#include "prog.h"
#include "rpcrdma.h"

struct client;
struct reactor;
struct server;

/* Created on the listener's thread, then owned by the reactor's. */
struct conn {
	struct server *srv;
	struct reactor *reactor;
	struct client *client; /* a reference */
	struct fair_flow admission; /* in reactor->admission */
	unsigned live; /* slots held */
	struct list reqs; /* req.of_conn: all of its requests */
	uint64_t number; /* unique in this process; not 0 */
	struct rpcrdma_peer peer;
	void *service[SERVICES]; /* states of the services for this connection: prog.h */
	struct rpcrdma_conn *transport; /* NULL: no request yet; others read it behind a lock that one has released */

	/* conn_close() */
	atomic_uint refs; /* on_closed() and the message */
	atomic_bool closing;
	bool closed; /* the reactor's: on_closed() has run */
	struct rpcrdma_msg close_msg;
};

/** conn_close - closes a connection by which a request came; any thread
 * The caller has a lock without which the connection cannot go: that of closed() (prog.h), or of the end of a request.
 *
 * Return: false: it was called for the connection before.
 */
bool conn_close(struct conn *c);

/** conn_ops - callbacks for the transport; the listener's context is the struct server */
extern const struct rpcrdma_svc_ops conn_ops;

#endif
