/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * conn.h - a client's connection, on its reactor
 */
#ifndef LEAT_SERVER_CONN_H
#define LEAT_SERVER_CONN_H

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
};

/** conn_ops - callbacks for the transport; the listener's context is the struct server */
extern const struct rpcrdma_svc_ops conn_ops;

#endif
