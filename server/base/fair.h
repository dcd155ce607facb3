/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fair.h - a queue that is fair between clients, and inside a client between its flows
 *
 * Operation:  Items wait in the FIFO of their flow (a connection in admit.c, a file system in worker.c). Flows
 *             of one client take turns, and clients take turns: one item each. fair_pop() skips clients and flows
 *             that have used up their share, and returns the next item that may go.
 *
 *                 struct fair --> ring of fair_client --> ring of fair_flow --> FIFO of items
 *
 *             Push, delete and pop cost the same for any number of items; a pop looks once at each client or
 *             flow that it skips.
 * Memory:     The links are embedded in the items: nothing is allocated. A flow refers to its client, so the
 *             client must exist as long as the flow. An item must be popped or deleted before its flow is freed.
 * Threads:    The caller's lock, or one thread.
 * Errors:     None.
 */
#ifndef LEAT_SERVER_FAIR_H
#define LEAT_SERVER_FAIR_H

#include <stdbool.h>

#include "base/list.h"

struct fair {
	struct list ring; /* fair_client.link: those with items, in the order of their turns */
};

struct fair_client {
	struct list link; /* fair->ring */
	struct list ring; /* fair_flow.link: those with items, in the order of their turns */
};

struct fair_flow {
	struct list link; /* fair_client->ring */
	struct list items;
	struct fair_client *client;
};

/* Whether one more item may go; NULL: always. */
struct fair_limits {
	bool (*client)(const struct fair_client *c);
	bool (*flow)(const struct fair_flow *f);
};

/** fair_init - initialises an empty queue */
void fair_init(struct fair *q);

/** fair_client_init - initialises a client without flows */
void fair_client_init(struct fair_client *c);

/** fair_flow_init - initialises a flow of @c without items */
void fair_flow_init(struct fair_flow *f, struct fair_client *c);

/** fair_is_empty - whether no item waits */
static inline bool fair_is_empty(const struct fair *q)
{
	return list_is_empty(&q->ring);
}

/** fair_push - appends @item to the FIFO of @f; a flow without items goes to the end of its client's ring,
 * and a client without flows to the end of the queue's */
void fair_push(struct fair *q, struct fair_flow *f, struct list *item);

/** fair_del - takes @item, which waits in @f, out of the queue */
void fair_del(struct fair_flow *f, struct list *item);

/** fair_has - whether fair_pop() would return an item */
bool fair_has(const struct fair *q, const struct fair_limits *limits);

/** fair_pop - takes the next item out of the queue
 * @limits: which clients and flows may have a turn now
 *
 * Return: the item, unlinked; NULL: none waits, or none may go.
 */
struct list *fair_pop(struct fair *q, const struct fair_limits *limits);

#endif
