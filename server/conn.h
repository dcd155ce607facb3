/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * conn.h - a client's connection, on its reactor
 */
#ifndef LEAT_SERVER_CONN_H
#define LEAT_SERVER_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "conf.h"
#include "rpcrdma.h"

struct reactor;
struct server;

/* Created on the listener's thread, from then on owned by the reactor's. */
struct conn {
	struct reactor *reactor;
	struct rpcrdma_peer peer;
	bool admitted
		[CONF_EXPORTS_MAX]; /* by index of the export: do its rules let this peer in? */
};

/** conn_ops - what the transport calls; the listener's context is the struct server */
extern const struct rpcrdma_svc_ops conn_ops;

#endif
