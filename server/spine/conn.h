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

/* Created on the listener's thread, then owned by the reactor's. */
struct conn {
	struct reactor *reactor;
	struct client *client; /* a reference */
	struct fair_flow admission; /* in reactor->admission */
	unsigned live; /* slots held */
	struct list reqs; /* req.of_conn: all of its requests */
	uint64_t number; /* unique in this process; not 0 */
	struct rpcrdma_peer peer;
	uint64_t serial; /* exports.serial for which verdicts[] is valid */
	/* by index of the export: enum export_verdict of its rules for this peer */
	uint8_t verdicts[CONF_EXPORTS_MAX];
};

/** conn_admits - checks whether the rules of @exp admit this peer; on its reactor's thread
 * @exports: the table that @exp belongs to
 */
bool conn_admits(struct conn *c, const struct exports *exports, const struct export *exp);

/** conn_ops - callbacks for the transport; the listener's context is the struct server */
extern const struct rpcrdma_svc_ops conn_ops;

#endif
