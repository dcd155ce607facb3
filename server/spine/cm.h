/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cm.h - the thread that listens, sets up connections and hands them to reactors
 */
#ifndef LEAT_SERVER_CM_H
#define LEAT_SERVER_CM_H

#include <stddef.h>

#include "base/util.h"
#include "conf.h"
#include "rpcrdma.h"

struct cm;
struct server;

/** cm_create - opens the listeners and starts the thread
 *
 * Return: 0, or -errno after logging the reason.
 */
int must_check cm_create(struct server *srv, const struct conf *conf, struct cm **ret);

/** cm_close - closes the listeners and ends the thread; no new connection is accepted after it returns */
void cm_close(struct cm *cm);

/** cm_destroy - frees @cm after cm_close(). NULL is fine. */
void cm_destroy(struct cm *cm);

/** cm_listeners - returns the number of listeners */
size_t cm_listeners(const struct cm *cm);

/** cm_listener - returns the address of listener @i < cm_listeners(); it is valid until cm_destroy() */
const struct rpcrdma_addr *cm_listener(const struct cm *cm, size_t i);

#endif
