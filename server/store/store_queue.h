/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_queue.h - the queue in which the requests of all clients wait for a disk
 */
#ifndef LEAT_SERVER_STORE_QUEUE_H
#define LEAT_SERVER_STORE_QUEUE_H

#include "base/util.h"

struct backing;
struct store;
struct store_io;
struct store_queue;

/** store_queue_get - gets the queue of a backing, held for the caller, or NULL if it has none (sched = none)
 *
 * Return: 0 or -errno.
 */
int must_check store_queue_get(const struct backing *b, struct store_queue **ret);

/** store_queue_put - releases it. NULL is fine. */
void store_queue_put(struct store_queue *q);

/** store_queue_submit - as store_submit(), after waiting for the request's turn; for stores with a queue */
int must_check store_queue_submit(struct store *s, struct store_io *io);

#endif
