/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * account.h - clients of the responder, and what each of them holds
 *
 * Operation:  A client is what rpcrdma_client_id_of() says: all connections of one user, host or
 *             network count against it together. A resource that clients compete for has a budget;
 *             rr_client_charge() takes a part of it for a client.
 *
 *             The limit of a client is not fixed: it may hold as much as is still free, times the
 *             budget's factor (the dynamic threshold of shared-memory switches). With a factor of 1, one
 *             client alone gets half of the budget, and n that want more and more at once get 1/(n+1) each; no
 *             list of clients has to be walked. But what a client holds is not taken back when another one
 *             comes: of n clients that come one after the other each leaves the next one half.
 *             Where peers decide how long something is held, a part of the budget (the last quarter or
 *             eighth) is therefore kept for clients that hold little, an eighth of that part with what they
 *             ask for: each of eight clients finds so much, whatever all the others hold.
 *
 *             Connections that wait for their client's share stand in its line; rr_client_next() gives a
 *             turn to the first of them. Whoever has no turn waits while others wait or have one.
 * Memory:     A struct rr_client exists while anything refers to it, connections first of all, so there
 *             are no more of them than connections and what outlives those.
 * Threads:    rr_client_get() and rr_client_put() take a lock and may be called by any thread.
 *             Charging is atomic and takes no lock.
 * Errors:     A charge that does not fit is -ENOBUFS and changes nothing.
 */
#ifndef RR_CLIENT_H
#define RR_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/util.h"
#include "rpcrdma.h"

/* What clients compete for. */
enum rr_share {
	RR_SHARE_CONNS,  /* connections */
	RR_SHARE_CALLS,  /* bytes of the pool: long calls, ... */
	RR_SHARE_DATA,   /* ... payload, ... */
	RR_SHARE_ANSWERS, /* ... long answers: srv_buf.c */
	RR_SHARE_SENDS,  /* bytes of messages to answer in, where the first half of them is in use: srv_buf.c */
	RR_SHARE_RECVS,  /* bytes of receives: ep.c; with RR_SHARE_MSGS where both are of one limit: slab.c */
	RR_SHARE_MSGS,   /* bytes of messages and requests outside the pool: srv_tcp*.c; with those that the
			  * pool's receives take (slab.c), which clients are charged for above */
	RR_SHARE_MODES,  /* bytes of memory that connections with modes have for themselves: mode_srv.c */
	RR_SHARE_REGION, /* bytes of memory that local peers offer, and of bounce areas: local_map.c */
	RR_SHARE_RING,   /* bytes of rings and of the smallest bounce areas of the local fabric: local_map.c */
	RR_SHARES,
};

struct rr_budget {
	size_t max;         /* of all clients together */
	unsigned factor;    /* a client may hold this many times what is free; at least 1 */
	unsigned kept;      /* one of so many parts is for clients that hold little; 0: none */
	bool even;          /* the others share the rest evenly; else it is theirs who come first */
	_Atomic size_t used;
	_Atomic size_t idle; /* nobody's, and yet not to be had: slab.c */
};

/* A connection as its client knows it: one that may have to go. */
struct rr_client_conn {
	struct list link;            /* client->conns; all->lock */
	_Atomic uint64_t heard_ns;   /* when its peer said something last */
	struct rpcrdma_engine *engine;
	struct rpcrdma_msg msg;      /* it is to go, on that engine ... */
	bool going, msg_out;         /* ... and that was told, and is under way; all->lock */
};

struct rr_clients {
	pthread_mutex_t lock;
	struct list list; /* rr_client.link */
	void *tree; /* of tsearch(), by identity */
	_Atomic unsigned n;
	struct rr_budget budgets[RR_SHARES];
};

/* Connections that wait for a part of their client's share. */
struct rr_client_line {
	struct list waiters; /* under all->lock */
	atomic_uint n;       /* so many wait or have a turn, ... */
	atomic_uint turns;   /* ... and so many have one; both also read without the lock */
};

struct rr_client_waiter {
	struct list link;
	struct rpcrdma_engine *engine;
	struct rpcrdma_msg msg; /* its turn, on that engine */
};

struct rr_client {
	struct list link; /* all->list */
	struct list conns; /* rr_client_conn.link */
	unsigned going;    /* of those that it is charged for, these have to go; all->lock */
	struct rpcrdma_client_id id;
	struct rr_clients *all;
	unsigned refs; /* under all->lock */
	_Atomic size_t used[RR_SHARES];
	struct rr_client_line lines[RR_SHARES];
};

/** rr_clients_init - no clients, and budgets without a limit: the caller sets .max, .factor, .kept, .even */
void rr_clients_init(struct rr_clients *all);

/** rr_clients_fini - every client was put back */
void rr_clients_fini(struct rr_clients *all);

/** rr_client_get - the client with that identity, a new one if need be; to be put back
 *
 * Return: 0, -ENOMEM.
 */
int must_check rr_client_get(struct rr_clients *all, const struct rpcrdma_client_id *id,
			     struct rr_client **ret);

/** rr_client_hold - another reference to a client that the caller has one of */
void rr_client_hold(struct rr_client *c);

/** rr_client_put - gives a reference back; the last one frees the client. NULL is fine. */
void rr_client_put(struct rr_client *c);

/** rr_client_charge - takes @amount of a budget for a client
 *
 * Return: 0; -ENOBUFS: more than the client's limit, or than the budget has for it.
 */
int must_check rr_client_charge(struct rr_client *c, enum rr_share share, size_t amount);

/** rr_client_fits - whether a charge of @amount would succeed, or the client holds nothing yet */
bool rr_client_fits(const struct rr_client *c, enum rr_share share, size_t amount);

/** rr_client_leaves - whether after a charge of @amount another one as large would succeed */
bool rr_client_leaves(const struct rr_client *c, enum rr_share share, size_t amount);

/** rr_client_room - @times what a client may still take; saturates */
size_t rr_client_room(const struct rr_client *c, enum rr_share share, unsigned times);

/** rr_client_add - charges without a look at limits: after rr_client_fits() */
void rr_client_add(struct rr_client *c, enum rr_share share, size_t amount);

/** rr_client_wait - puts @w in line: its message runs on its engine when it has its turn
 * @first: it had its turn and got nothing: it keeps its place
 *
 * The caller looks again afterwards: what it waits for may have come back meanwhile.
 */
void rr_client_wait(struct rr_client *c, enum rr_share share, struct rr_client_waiter *w, bool first);

/** rr_client_unwait - takes @w out of the line, if it is there */
void rr_client_unwait(struct rr_client *c, enum rr_share share, struct rr_client_waiter *w);

/** rr_client_next - gives a turn to the first in line; rr_client_end_turn() ends it
 *
 * Return: the waiter, whose message the caller posts; NULL: nobody stands in line.
 */
struct rr_client_waiter *rr_client_next(struct rr_client *c, enum rr_share share);

/** rr_client_begin_turn, rr_client_end_turn - a turn without or after a wait in line */
void rr_client_begin_turn(struct rr_client *c, enum rr_share share);
void rr_client_end_turn(struct rr_client *c, enum rr_share share);

/** rr_client_waits - whether a connection stands in line or has its turn */
static inline bool rr_client_waits(const struct rr_client *c, enum rr_share share)
{
	return atomic_load(&c->lines[share].n) != 0;
}

/** rr_client_has_turn - whether a connection has its turn; when it ends, the next one begins */
static inline bool rr_client_has_turn(const struct rr_client *c, enum rr_share share)
{
	return atomic_load(&c->lines[share].turns) != 0;
}

/** rr_client_uncharge - gives back what rr_client_charge() took */
void rr_client_uncharge(struct rr_client *c, enum rr_share share, size_t amount);

/** rr_client_conn_add - @conn may be chosen by rr_client_idlest() from now on; its members are set */
void rr_client_conn_add(struct rr_client *c, struct rr_client_conn *conn);

/** rr_client_conn_del - the reverse; harmless when repeated
 *
 * Return: false: its message is under way, and the connection must exist until it has run.
 */
bool must_check rr_client_conn_del(struct rr_client *c, struct rr_client_conn *conn);

/** rr_client_conn_told - its message runs */
void rr_client_conn_told(struct rr_client *c, struct rr_client_conn *conn);

/** rr_client_conn_left - gives back what was charged for a connection
 * @going: as the connection had it
 */
void rr_client_conn_left(struct rr_client *c, bool going);

/** rr_client_idlest - the connection that was silent longest, of the client that has most over its share
 *
 * Return: the connection, whose message the caller posts; NULL: every client is within its share.
 */
struct rr_client_conn *rr_client_idlest(struct rr_clients *all);

/** rr_client_used - what a client holds of a budget now */
static inline size_t rr_client_used(const struct rr_client *c, enum rr_share share)
{
	return atomic_load_explicit(&c->used[share], memory_order_relaxed);
}

/** rr_client_fair - an equal part of a budget for each client there is now; at least 1 */
size_t rr_client_fair(const struct rr_clients *all, enum rr_share share);

#endif
