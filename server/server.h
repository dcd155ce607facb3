/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * server.h - a running leatd, for main.c and for tests that have one in their own process
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

/** server_listeners - how many there are, and where; with the ports that were given */
size_t server_listeners(const struct server *s);
const struct rpcrdma_addr *server_listener(const struct server *s, size_t i);

#endif
