/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cm.h - the thread that listens, sets up connections and hands them to reactors
 */
#ifndef LEAT_SERVER_CM_H
#define LEAT_SERVER_CM_H

#include "base/util.h"

struct cm;
struct conf;
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

#endif
