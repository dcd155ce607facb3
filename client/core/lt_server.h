/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lt_server.h - connections to one server, with their credentials, shared by the mounts of a session
 *
 * mount/choose.c connects it: it selects the transport and fills in what the server says of itself.
 */
#ifndef LT_SERVER_H
#define LT_SERVER_H

#include "session.h"

/* What librpcrdma reports about a connection: the context of its callbacks */
struct lt_watch {
	struct lt_server *server;
	const struct rpcrdma_clnt *clnt; /* NULL: not in use */
	unsigned index;                  /* of the connection, as for lt_server_open() */
	bool silent;                     /* the server owes replies on it */
};

/* Connections at a time: those of calls, one that may replace the first, and those to other services */
#define LT_WATCHES (LT_CONNS_MAX + 4)

#define LT_CONN_OTHER LT_CONNS_MAX /* index of a connection to another service of the server: MOUNT, rpcbind */

/* Only mounts of the same kind share a server. */
enum lt_server_kind {
	LT_SERVER_PLAIN,
	LT_SERVER_WATCHED, /* its mounts want to know when it does not reply: leat_opts.away */
	LT_SERVER_STRIPES, /* keeps stripes for volumes, connects on first use: is_leatd and instance are not known */
};

struct lt_server {
	struct list link;                  /* in session->servers, once it is connected */
	struct leat_session *session;
	unsigned refs;                     /* mounts, also those that connect */

	/* set while it connects, constant afterwards */
	struct lt_url url;                 /* of the first mount; its path is not used */
	struct rpcrdma_addr named;         /* as the URL names it */
	struct rpcrdma_addr addr;          /* of the selected transport */
	struct rpcrdma_cred cred;
	struct rpcrdma_clnt *clnt[LT_CONNS_MAX];
	struct rpcrdma_engine *engine[LT_CONNS_MAX]; /* of an additional thread; NULL: the session's */
	unsigned clnts;
	char chosen[256], name[64];        /* texts of leat_describe() */
	struct lt_refused refused[LT_REFUSED_MAX];
	unsigned nrefused;
	bool is_leatd;
	uint8_t instance[16];
	uint64_t lane_instance;            /* random: block_lane.instance and stripe_lane.instance of its calls */
	enum lt_server_kind kind;

	/* Counts the connections made as clnt[i]. Written by the thread of the connection, before the first call on a new
	 * connection is encoded. */
	atomic_uint incarnation[LT_CONNS_MAX];

	/* owner's thread only */
	struct list mounts;                /* struct leat */
	unsigned clnt_next;
	bool is_away;                      /* the mounts have been told; a connection is silent */
	struct lt_watch watch[LT_WATCHES];
};

/** lt_server_get - finds the connected server of @s that serves @u, or creates one without connections
 * @named: its address as the URL names it
 *
 * A server is shared if its address and all settings of its connections are equal.
 *
 * Return: 0 or -ENOMEM; drop the reference with lt_server_put().
 */
must_check int lt_server_get(struct leat_session *s, const struct lt_url *u, const struct rpcrdma_addr *named, enum lt_server_kind kind,
			     struct lt_server **ret);

/** lt_server_share - lets later mounts of the session find @s, which is connected */
void lt_server_share(struct lt_server *s);

/** lt_server_put - drops a reference; the last one closes the connections. NULL is fine. */
void lt_server_put(struct lt_server *s);

/** lt_server_engine - the engine for connection @index; NULL: the session's */
struct rpcrdma_engine *lt_server_engine(const struct lt_server *s, unsigned index);

/** lt_server_open - rpcrdma_clnt_open() for connection @index, or LT_CONN_OTHER, on the thread of its engine
 * @attr: lt_server_open() sets `state`, `away` and their context
 */
must_check int lt_server_open(struct lt_server *s, unsigned index, const struct rpcrdma_clnt_attr *attr,
			      struct rpcrdma_clnt **ret);

/** lt_server_dial - as lt_server_open(), with the settings of the server's URL; returns before it is connected
 * @connect_ms: limit of an attempt to connect
 */
must_check int lt_server_dial(struct lt_server *s, unsigned index, const struct rpcrdma_addr *addr, uint32_t connect_ms,
			      struct rpcrdma_clnt **ret);

/** lt_server_close - rpcrdma_clnt_destroy() on the thread of its engine; the connection is silent no more */
void lt_server_close(struct lt_server *s, struct rpcrdma_clnt *c);

/** lt_server_look - rpcrdma_clnt_info() on the thread of its engine; without a connection, zeroes */
void lt_server_look(struct lt_server *s, struct rpcrdma_clnt *c, struct rpcrdma_clnt_info *ret);

#endif
