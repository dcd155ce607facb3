/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * served.h - the backings that a service serves, with their stores on each reactor, and their replacement
 *
 * Invariants: What a request was decoded under stays until the request ends. A struct served never changes. A new one
 * replaces it, on each reactor between two requests.
 */
#ifndef LEAT_SERVER_SERVED_H
#define LEAT_SERVER_SERVED_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "worker.h"

#define SERVED_MAX 256u /* backings of a service */

struct reactor;
struct rpcrdma_peer;
struct served_change;
struct served_use;
struct server;
struct service;
struct store;
struct backing;

/* The backings of one configuration: the first member of a service's own structure, of malloc(). Shared, read-only; its
 * last holder closes it and frees it. */
struct served {
	uint64_t serial; /* unique for each configuration; not 0 */
	size_t n;
	struct backing *(*backing)(struct served *s, size_t i);
	/* May this peer use backing @i? Return: a verdict of the service, from 0: yes, to the worst one. Any thread */
	unsigned (*judge)(struct served *s, size_t i, const struct rpcrdma_peer *peer);
	void (*close)(struct served *s); /* may block */
	/* Creates and destroys what a reactor needs besides stores: use->state. NULL: nothing. Return: 0 or -errno */
	int (*open_use)(struct served_use *u);
	void (*close_use)(struct served_use *u);
	atomic_uint refs;
	struct worker_job end;  /* job of the last reactor that held it */
	struct reactor *last;
};

/* The backings as one reactor uses them. Only for its thread; freed by the last holder: a request, or on replacement. */
struct served_use {
	struct served *served;
	struct reactor *reactor;
	unsigned holders;
	void *state; /* of the service: open_use() */
	struct store *stores[]; /* by index of the backing; without any, one that can sync files */
};

/* What the rules of the backings say of a peer: its address and its port do not change. Of a connection; zeroes: nothing yet. */
struct served_verdicts {
	uint64_t serial; /* of the backings */
	uint8_t v[SERVED_MAX]; /* by index of the backing */
};

/** served_judge - applies the rules of all backings; on the reactor of the connection, or at accept
 * Return: the best verdict; UINT_MAX: there is no backing
 */
unsigned served_judge(struct served_verdicts *v, struct served *s, const struct rpcrdma_peer *peer);

/** served_verdict - may @peer use backing @i of @s? On the reactor of the connection. Return: the verdict */
static inline unsigned served_verdict(struct served_verdicts *v, struct served *s, const struct rpcrdma_peer *peer, size_t i)
{
	if (v->serial != s->serial)
		(void)served_judge(v, s, peer);
	return v->v[i];
}

/** served_init - begins with one reference, the caller's; judge and the hooks of a reactor follow */
void served_init(struct served *s, size_t n, struct backing *(*backing)(struct served *s, size_t i),
		 void (*close)(struct served *s));

/** served_get - takes a reference for a caller that has one; any thread */
static inline void served_get(struct served *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

/** served_put - releases @s; any thread but a reactor's. NULL is fine. */
void served_put(struct served *s);

/** served_use_create - creates the stores for a reactor, held for the caller; any thread, before it is used
 *
 * Return: 0 or -errno.
 */
int must_check served_use_create(struct reactor *r, struct served *s, struct served_use **ret);

/** served_use_hold, served_use_put - take and release a reference; reactor's thread only. put accepts NULL. */
static inline struct served_use *served_use_hold(struct served_use *u)
{
	u->holders++;
	return u;
}

/** served_use_free - the last reference was released */
void served_use_free(struct served_use *u);

static inline void served_use_put(struct served_use *u)
{
	if (u && !--u->holders)
		served_use_free(u);
}

/** served_prepare - creates all that a replacement of what @service serves by @now needs, so that it cannot fail
 * @ret: takes over the caller's reference to @now, until served_commit() or served_abandon()
 *
 * Return: 0; -errno: the caller still has its reference.
 */
int must_check served_prepare(struct server *srv, const struct service *service, struct served *now,
			      struct served_change **ret);

/** served_commit - replaces what the service serves, on the server and then on each reactor; waits for all; frees @c
 *
 * Not from a reactor's thread. Afterwards every new request uses what replaces it.
 * Return: what was replaced: the caller has the reference of the server to it
 */
struct served *must_check served_commit(struct served_change *c);

/** served_abandon - nothing is replaced after all; frees @c and what it was given. NULL is fine. */
void served_abandon(struct served_change *c);

#endif
