/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * server.h - a running leatd, for leatd_main.c and for tests that have one in their own process
 */
#ifndef LEAT_SERVER_SERVER_H
#define LEAT_SERVER_SERVER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "conf.h"
#include "rpcrdma.h"

struct server;

#define SERVER_INSTANCE_BYTES 16

/** server_start - open everything and serve, on threads of its own
 *
 * What goes wrong is logged. Of the listeners asked for, each must start, but RDMA on a machine
 * without a device; without any asked for, those that can start do. The log says what is missing
 * and why.
 *
 * Return: 0 or -errno.
 */
int must_check server_start(const struct conf *conf, struct server **ret);

/** server_stop - no new connections or calls; calls being served are answered; then it ends
 * @timeout_ms: how long they may take
 *
 * Return: 0, @s is gone; -ETIMEDOUT: something still runs, @s must be left alone (and the process
 * be ended).
 */
int server_stop(struct server *s, unsigned timeout_ms);

/** server_reload - serve the exports of @conf from now on; of the rest of @conf nothing is looked at
 *
 * Connections stay. Calls that were taken end by the rules they began with; those that come after
 * this has returned see the new ones. Any thread but a reactor's.
 *
 * Return: 0; -errno: all is as it was, and @why tells.
 */
int must_check server_reload(struct server *s, const struct conf *conf, char *why,
			     size_t why_bytes);

/* Who can do what a server cannot do with itself: read its configuration, and end. */
struct server_manager {
	/* On a worker. Return: 0, @said has what is to be known of it; -errno, and @said tells why */
	int (*reload)(const struct server_manager *m, char *said, size_t said_bytes);
	/* Begin with the end; returns at once */
	void (*drain)(const struct server_manager *m);
};

/** server_set_manager - callers with the right to it may ask for these from now on
 * @manager: outlives @s
 */
void server_set_manager(struct server *s, const struct server_manager *manager);

/** server_listeners - how many there are, and where; with the ports that were given */
size_t server_listeners(const struct server *s);
const struct rpcrdma_addr *server_listener(const struct server *s, size_t i);

#endif
