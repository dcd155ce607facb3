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
#include "conf.h"
#include "exports.h"
#include "fair.h"
#include "rpcrdma.h"

struct client;
struct reactor;
struct server;

/* Created on the listener's thread, from then on owned by the reactor's. */
struct conn {
	struct reactor *reactor;
	struct client *client; /* a reference */
	struct fair_flow admission; /* in reactor->admission */
	unsigned live; /* slots held */
	struct list reqs; /* req.of_conn: all of its calls */
	uint64_t number; /* no other connection of this process has it; not 0 */
	struct rpcrdma_peer peer;
	uint64_t serial; /* of the exports that the next speaks of */
	/* by index of the export: do its rules let this peer in? enum export_verdict */
	uint8_t verdicts[CONF_EXPORTS_MAX];
};

/** conn_admits - do the rules of @exp let this peer in? On its reactor's thread
 * @exports: those that @exp is one of
 */
bool conn_admits(struct conn *c, const struct exports *exports, const struct export *exp);

/** conn_ops - what the transport calls; the listener's context is the struct server */
extern const struct rpcrdma_svc_ops conn_ops;

#endif
