/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * client.h - what the server keeps per client: its place in each queue, and the resources that it holds
 *
 * Operation:  rpcrdma_client_id_of() identifies a client. All its connections share one struct client. It exists
 *             while a connection, a lookup of groups for it (groups.c), or a file that it has made dirty
 *             (files_dirtied()) refers to it.
 * Memory:     Reference counted; as many as there are clients with such references.
 * Threads:    client_get() and client_put() take a lock; any thread may call them. Members name their
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
#define CLIENT_WAITS 256u

struct reactor;

static inline bool client_id_same(const struct rpcrdma_client_id *a, const struct rpcrdma_client_id *b)
{
	return a->kind == b->kind && a->scope == b->scope && a->key == b->key;
}

struct clients {
	struct reactor **reactors; /* of the server; set before the first connection arrives */
	unsigned nreactors;
	struct worker_pool *workers;
	_Atomic size_t scratch; /* bytes: client_scratch_get() */
	unsigned long_jobs;     /* client_begin_long() */
	unsigned waits;         /* client_begin_wait() */
	pthread_mutex_t lock;   /* over these two, of the clients too, and the next */
	struct list list;
};

/* On one reactor; owned by its thread. */
struct client_admission {
	struct reactor *reactor;
	struct fair_client waiting; /* in reactor->admission */
	unsigned live;              /* slots held: requests that the server itself works on */
	size_t dirty;               /* files: files_dirtied() */
	size_t room;                /* bytes: nfs_room.h */
};

struct client {
	struct list link; /* clients->list */
	struct clients *all;
	struct rpcrdma_client_id id;
	unsigned refs;                         /* all->lock */
	unsigned long_jobs, waits;             /* of all->long_jobs, all->waits */
	_Atomic size_t scratch;                /* bytes of all->scratch */
	struct worker_client workers;          /* the pool's lock */
	struct client_admission admission[]; /* by index of the reactor */
};

/** clients_init - initializes lock and list; the caller sets the other members */
void clients_init(struct clients *all);

/** clients_fini - destroys the lock; all clients are already freed */
void clients_fini(struct clients *all);

/** client_get - finds or creates the client of @peer; release it with client_put()
 *
 * Return: 0, -ENOMEM.
 */
int must_check client_get(struct clients *all, const struct rpcrdma_peer *peer, struct client **ret);

/** client_hold - takes one more reference, for a caller that already has one */
void client_hold(struct client *c);

/** client_put - releases a reference; the last one frees the client. NULL is fine. */
void client_put(struct client *c);

/** client_scratch_get - allocates zeroed memory for long arguments or results; any thread
 *
 * All clients together have CLIENT_SCRATCH_BYTES. One of them gets no more than is left free.
 *
 * Return: NULL: no memory, or the limit is reached.
 */
void *client_scratch_get(struct client *c, size_t bytes);

/** client_scratch_put - frees it. NULL is fine. */
void client_scratch_put(struct client *c, void *mem, size_t bytes);

/** client_begin_long - counts a job that may hold a worker for seconds; any thread
 *
 * All clients together have a quarter of the workers for such jobs, but at least one. One of them gets no more than is
 * left free.
 *
 * Return: may it run? Then client_end_long() follows.
 */
bool must_check client_begin_long(struct client *c);

/** client_end_long - the job has ended */
void client_end_long(struct client *c);

/** client_begin_wait - counts a request that waits for other servers, and holds neither a worker nor a slot; any thread
 *
 * All clients together have CLIENT_WAITS of these. One of them gets no more than is left free.
 *
 * Return: may it wait? Then client_end_wait() follows.
 */
bool must_check client_begin_wait(struct client *c);
void client_end_wait(struct client *c);

#endif
