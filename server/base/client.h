/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * client.h - what the server keeps for each client: its turn in every queue, and what it holds
 *
 * Operation:  A client is what rpcrdma_client_id_of() says. All its connections share one struct client,
 *             which exists as long as one of them, a lookup of groups for it (groups.c), or a file that it
 *             has made dirty (reactor_dirtied()).
 * Memory:     Reference counted; as many as there are clients with connections.
 * Threads:    client_get() and client_put() lock and may be called by any thread. Members name their
 *             thread or lock.
 * Errors:     -ENOMEM.
 */
#ifndef LEAT_SERVER_CLIENT_H
#define LEAT_SERVER_CLIENT_H

#include <pthread.h>

#include "base/list.h"
#include "base/util.h"
#include "fair.h"
#include "rpcrdma.h"
#include "worker.h"

#define CLIENT_SCRATCH_BYTES ((size_t)16 << 20)

struct reactor;

struct clients {
	struct reactor **reactors; /* of the server; there when the first connection comes */
	unsigned nreactors;
	struct worker_pool *workers;
	_Atomic size_t scratch; /* bytes: client_scratch_get() */
	pthread_mutex_t lock;
	struct list list;
};

/* On one reactor; owned by its thread. */
struct client_admission {
	struct reactor *reactor;
	struct fair_client waiting; /* in reactor->admission */
	unsigned live;              /* slots held: requests that the server itself works on */
	size_t dirty;               /* files: reactor_dirtied() */
};

struct client {
	struct list link; /* clients->list */
	struct clients *all;
	struct rpcrdma_client_id id;
	unsigned refs;                         /* all->lock */
	_Atomic size_t scratch;                /* bytes of all->scratch */
	struct worker_client workers;          /* the pool's lock */
	struct client_admission admission[]; /* by index of the reactor */
};

void clients_init(struct clients *all);
void clients_fini(struct clients *all);

/** client_get - finds or makes the client that @peer belongs to; put it back by client_put()
 *
 * Return: 0, -ENOMEM.
 */
int must_check client_get(struct clients *all, const struct rpcrdma_peer *peer, struct client **ret);

/** client_hold - takes one more reference, for a caller that has one */
void client_hold(struct client *c);

/** client_put - gives a reference back; the last one frees the client. NULL is fine. */
void client_put(struct client *c);

/** client_scratch_get - memory for a long answer, zeroed; any thread
 *
 * All clients together have CLIENT_SCRATCH_BYTES, and one of them has no more than is left free.
 *
 * Return: NULL: no memory, or not now.
 */
void *client_scratch_get(struct client *c, size_t bytes);

/** client_scratch_put - frees it. NULL is fine. */
void client_scratch_put(struct client *c, void *mem, size_t bytes);

#endif
