/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * account.h - clients of the responder, and the resources that each one holds
 *
 * Operation:  rpcrdma_client_id_of() defines a client: all connections of one user, host or network are charged
 *             to it together. Each resource that clients compete for has a budget; rr_client_charge() takes a
 *             part of it for a client.
 *
 *             The limit of a client is not fixed: it may hold the free part of the budget times the budget's
 *             factor (the dynamic threshold of shared-memory switches). With a factor of 1, one client alone
 *             gets half of the budget, and n clients that grow at the same time get 1/(n+1) each. The
 *             computation walks no list of clients. But new clients do not reclaim what others hold: of n
 *             clients that arrive one after the other, each leaves half to the next. Where peers decide how
 *             long they hold a resource, the last quarter or eighth of the budget is therefore reserved for
 *             clients that hold little. With its request, such a client may hold an eighth of the reserve. So
 *             eight clients find that much, whatever all others hold.
 *
 *             Connections that wait for their client's share are queued. rr_client_next() gives a turn to the
 *             first one. A connection without a turn waits while others wait or have a turn.
 * Memory:     A struct rr_client exists while it is referenced, mainly by connections. So there are no more of
 *             them than connections and objects that outlive those.
 * Threads:    rr_client_get() and rr_client_put() take a lock and may be called by any thread. Charging is
 *             atomic and takes no lock.
 * Errors:     A charge that does not fit returns -ENOBUFS and changes nothing.
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

/* The resources that clients compete for. */
enum rr_share {
	RR_SHARE_CONNS,  /* connections */
	RR_SHARE_CALLS,  /* bytes of the pool: long calls, ... */
	RR_SHARE_DATA,   /* ... payload, ... */
	RR_SHARE_REPLIES, /* ... long replies: srv_buf.c */
	RR_SHARE_SENDS,  /* bytes of reply messages, once the first half of their zone is in use: srv_buf.c */
	RR_SHARE_RECVS,  /* bytes of receives: ep.c; together with RR_SHARE_MSGS where both have one limit: pool.c */
	RR_SHARE_MSGS,   /* bytes of messages and requests outside the pool: srv_tcp*.c; and of the pool's
			  * receives (pool.c), which clients are charged for in RR_SHARE_RECVS */
	RR_SHARE_OWN,    /* bytes of memory of single connections, which they use instead of the pool: rr_own */
	RR_SHARE_REGION, /* bytes of memory offered by local peers, and of bounce areas: local_map.c */
	RR_SHARE_RING,   /* bytes of rings and of the smallest bounce areas of the local fabric: local_map.c */
	RR_SHARES,
};

struct rr_budget {
	size_t max;         /* of all clients together */
	unsigned factor;    /* a client may hold the free part times this; at least 1 */
	unsigned kept;      /* 1/kept of the budget is reserved for clients that hold little; 0: none */
	bool even;          /* the other clients share the rest evenly; false: first come, first served */
	_Atomic size_t used;
	_Atomic size_t idle; /* not charged to any client, but not available either: pool.c */
};

/* A client's view of a connection that may be closed for others. */
struct rr_client_conn {
	struct list link;            /* client->conns; all->lock */
	_Atomic uint64_t heard_ns;   /* when its peer last sent something */
	struct rpcrdma_engine *engine;
	struct rpcrdma_msg msg;      /* runs on that engine to close it ... */
	bool going, msg_out;         /* ... which was decided; and the message is posted; all->lock */
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
	atomic_uint n;       /* number that wait or have a turn, ... */
	atomic_uint turns;   /* ... and number that have one; both also read without the lock */
};

struct rr_client_waiter {
	struct list link;
	struct rpcrdma_engine *engine;
	struct rpcrdma_msg msg; /* tells it, on that engine, that its turn has come */
};

struct rr_client {
	struct list link; /* all->list */
	struct list conns; /* rr_client_conn.link */
	unsigned going;    /* charged connections that are being closed; all->lock */
	struct rpcrdma_client_id id;
	struct rr_clients *all;
	unsigned refs; /* under all->lock */
	_Atomic size_t used[RR_SHARES];
	struct rr_client_line lines[RR_SHARES];
};

/** rr_clients_init - initializes without clients and limits: the caller sets .max, .factor, .kept, .even */
void rr_clients_init(struct rr_clients *all);

/** rr_clients_fini - call after every client was released */
void rr_clients_fini(struct rr_clients *all);

/** rr_client_get - returns the client with that identity, creating it if necessary; release with rr_client_put()
 *
 * Return: 0, -ENOMEM.
 */
int must_check rr_client_get(struct rr_clients *all, const struct rpcrdma_client_id *id,
			     struct rr_client **ret);

/** rr_client_hold - takes another reference; the caller has one */
void rr_client_hold(struct rr_client *c);

/** rr_client_put - releases a reference; the last one frees the client. NULL is ignored. */
void rr_client_put(struct rr_client *c);

/** rr_client_charge - takes @amount of a budget for a client
 *
 * Return: 0; -ENOBUFS: it exceeds the client's limit, or the part of the budget available to it.
 */
int must_check rr_client_charge(struct rr_client *c, enum rr_share share, size_t amount);

/** rr_client_fits - would a charge of @amount succeed, or does the client hold nothing yet? */
bool rr_client_fits(const struct rr_client *c, enum rr_share share, size_t amount);

/** rr_client_leaves - after a charge of @amount, would another one of the same size succeed? */
bool rr_client_leaves(const struct rr_client *c, enum rr_share share, size_t amount);

/** rr_client_room - returns @times the amount that a client may still take; saturates */
size_t rr_client_room(const struct rr_client *c, enum rr_share share, unsigned times);

/** rr_client_add - charges without checking limits: call after rr_client_fits() */
void rr_client_add(struct rr_client *c, enum rr_share share, size_t amount);

/** rr_client_wait - queues @w: its message runs on its engine when its turn comes
 * @first: it had a turn without success: it keeps its place
 *
 * The caller checks again afterwards: the resource may have been released meanwhile.
 */
void rr_client_wait(struct rr_client *c, enum rr_share share, struct rr_client_waiter *w, bool first);

/** rr_client_next - gives a turn to the first waiter; rr_client_end_turn() ends it
 *
 * Return: the waiter; the caller posts its message. NULL: the queue is empty.
 */
struct rr_client_waiter *rr_client_next(struct rr_client *c, enum rr_share share);

/** rr_client_begin_turn, rr_client_end_turn - begin a turn without queueing; end any turn */
void rr_client_begin_turn(struct rr_client *c, enum rr_share share);
void rr_client_end_turn(struct rr_client *c, enum rr_share share);

/** rr_client_waits - does a connection wait or have a turn? */
static inline bool rr_client_waits(const struct rr_client *c, enum rr_share share)
{
	return atomic_load(&c->lines[share].n) != 0;
}

/** rr_client_has_turn - does a connection have a turn? The next turn begins when it ends. */
static inline bool rr_client_has_turn(const struct rr_client *c, enum rr_share share)
{
	return atomic_load(&c->lines[share].turns) != 0;
}

/** rr_client_uncharge - returns what rr_client_charge() took */
void rr_client_uncharge(struct rr_client *c, enum rr_share share, size_t amount);

/** rr_client_conn_add - makes @conn eligible for rr_client_idlest(); its members are set */
void rr_client_conn_add(struct rr_client *c, struct rr_client_conn *conn);

/** rr_client_conn_del - undoes rr_client_conn_add(); may be called repeatedly
 *
 * Return: false: its message is posted, and the connection must exist until it has run.
 */
bool must_check rr_client_conn_del(struct rr_client *c, struct rr_client_conn *conn);

/** rr_client_conn_told - call when its message runs */
void rr_client_conn_told(struct rr_client *c, struct rr_client_conn *conn);

/** rr_client_conn_left - returns the charge of a connection
 * @going: the connection's member
 */
void rr_client_conn_left(struct rr_client *c, bool going);

/** rr_client_idlest - returns the connection idle longest, of the client that most exceeds its share
 *
 * Return: the connection; the caller posts its message. NULL: every client is within its share.
 */
struct rr_client_conn *rr_client_idlest(struct rr_clients *all);

/** rr_client_used - returns what a client holds of a budget now */
static inline size_t rr_client_used(const struct rr_client *c, enum rr_share share)
{
	return atomic_load_explicit(&c->used[share], memory_order_relaxed);
}

/** rr_client_fair - returns an equal part of a budget for each current client; at least 1 */
size_t rr_client_fair(const struct rr_clients *all, enum rr_share share);

#endif
