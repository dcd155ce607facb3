/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * server.h - a running leatd, for leatd_main.c and for tests that run one in their own process
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
struct service;

#define SERVER_INSTANCE_BYTES 16

/** server_start - opens everything and serves, on its own threads
 *
 * Errors are logged. Each configured listener must start, except RDMA on a machine without a device. If none is
 * configured, those that can start do. The log has the missing ones and the reasons.
 *
 * Return: 0 or -errno.
 */
int must_check server_start(const struct conf *conf, struct server **ret);

/** server_start_services - server_start() with other services than those of leatd
 * @services: end with NULL, and must outlive the server
 */
int must_check server_start_services(const struct conf *conf, const struct service *const *services,
				     struct server **ret);

/** server_stop - accepts no new connections or calls, completes calls in progress, then ends
 * @timeout_ms: limit for the calls in progress
 *
 * Return: 0, @s is freed; -ETIMEDOUT: something still runs; @s must not be used (and the process should end).
 */
int server_stop(struct server *s, unsigned timeout_ms);

/** server_reload - serves the exports, block volumes and stripes of @conf from now on, or what it served before if one of
 * them fails; ignores the rest of @conf (services.c)
 *
 * Connections stay. Calls in progress end by the old rules; those that arrive after this function has returned see
 * the new ones. Any thread except a reactor's.
 *
 * Return: 0; -errno, -ESHUTDOWN if the server is stopping: nothing has changed, and @why has the reason.
 */
int must_check server_reload(struct server *s, const struct conf *conf, char *why,
			     size_t why_bytes);

/* Operations that a server cannot do itself: reload its configuration, and end. */
struct server_manager {
	/* Runs on a worker. Return: 0, @said has a summary; -errno, @said has the reason */
	int (*reload)(const struct server_manager *m, char *said, size_t said_bytes);
	/* Starts the shutdown; returns at once */
	void (*drain)(const struct server_manager *m);
};

/** server_set_manager - lets authorized callers request these operations from now on
 * @manager: must outlive @s
 */
void server_set_manager(struct server *s, const struct server_manager *manager);

/** server_listeners, server_listener - number of listeners, and their addresses with the actual ports, valid as long as
 * @s (cm.c) */
size_t server_listeners(const struct server *s);
const struct rpcrdma_addr *server_listener(const struct server *s, size_t i);

#endif
