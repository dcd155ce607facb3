/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_int.h - inside the responder: what connections and requests are made of
 *
 * Operation:  srv.c      listeners, life of a connection, the public functions
 *             srv_recv.c a message arrives: check, parse, pull a long call, hand it to the service
 *             srv_rw.c   pull, place, sink: the payload between buffers and the peer's memory
 *             srv_send.c the reply in its form, and the end of a request
 *             srv_credit.c how many calls a connection may have at once
 *             srv_tcp.c  the same over a byte stream
 * Memory:     A request belongs to its connection's free list, the transport (arriving), the
 *             service (svc_ops.call to the function that ends it), the transport (replying), in turn.
 *             A connection lives until its endpoint is drained and its last request is back.
 * Threads:    The connection's engine, except that accepting runs on the listener's; a new
 *             connection becomes its engine's by a message, and nobody else touches it after that.
 */
#ifndef RR_SRV_INT_H
#define RR_SRV_INT_H

#include "base/list.h"
#include "chunk.h"
#include "ep.h"
#include "rpc_msg.h"
#include "stream.h"

struct rr_conn_ops;

/* What listeners and their connections share; the last of them frees it. */
struct rr_svc {
	atomic_uint refs;
	const struct rpcrdma_svc_ops *ops;
	void *ctx;
	struct rpcrdma_svc_attr attr; /* defaults filled in */
};

/* What a connection holds of one zone of the pool, and its requests that wait for more: srv_buf.c */
struct rr_conn_part {
	struct rpcrdma_conn *conn;
	enum rr_zone zone;
	enum rr_share share;
	size_t bytes;
	size_t earned;                /* what it may hold beyond a beginner's share */
	size_t wanted;                /* by the last try that failed */
	struct rpcrdma_buf_waiter *waiters, **waiters_tail;
	const struct rpcrdma_buf_waiter *retry; /* whose turn it is; only compared */
	struct rpcrdma_msg msg;       /* the turn of the next one, after one was given back */
	bool msg_out;
	struct rpcrdma_buf_waiter pool_waiter; /* stands in the pool's line for all of them ... */
	struct rr_client_waiter client_waiter; /* ... or in the client's */
	bool in_line;                 /* that one does, or it is its turn and the message is on its way */
	bool turn;                    /* it is its turn there, until it takes something */
	struct list look_link;        /* engine->shares, while it waits for a share of it or of its client */
};
#define RR_PARTS 4u /* calls, data, messages to answer in, long answers */

struct rpcrdma_conn {
	struct list link;             /* engine->conns, while adopted */
	struct rpcrdma_engine *engine;
	struct rr_svc *svc;
	const struct rr_conn_ops *ops;
	struct rpcrdma_peer peer;
	struct rr_client *client;     /* that it counts against, ... */
	struct rr_client_conn of_client; /* ... and as that knows it */
	void *ctx;                    /* the service's */
	struct rpcrdma_msg adopt_msg; /* makes it its engine's */
	struct rpcrdma_msg lost_msg;  /* counted in reqs while it is under way */
	struct rpcrdma_timer timer;   /* deadline of the first call, then of the next progress */
	uint64_t progress, progress_seen; /* bytes or completions: counted, and at the last look */
	struct rr_conn_part parts[RR_PARTS]; /* of the pool */
	struct rr_area *zones;        /* memory of its own, by enum rr_zone, in place of the pool's; or NULL */
	bool adopted, heard, dead, drained;
	unsigned reqs;                /* not in the free list */
	unsigned bad;                 /* malformed messages so far */
	struct list free_reqs;
};

/* More nonsense than this from one peer ends its connection (protocol.md 7.3). */
#define RR_BAD_MAX 64u

/* What a reply says. */
struct rr_answer {
	enum { RR_ANSWER_RESULTS, RR_ANSWER_ERROR, RR_ANSWER_AUTH, RR_ANSWER_MISMATCH,
	       RR_ANSWER_REJECT, RR_ANSWER_NONE } kind;
	xdrproc_t encode;
	const void *res;
	uint32_t stat, low, high, why;
};

struct rr_req {
	struct rpcrdma_req pub;
	struct list link;          /* conn->free_reqs; a transport's line of those that wait */
	struct rr_stream args;     /* over the message */
	struct rr_rpc_call call;
	bool ended;
	bool again;                /* TCP: delivered a second time, with the whole record */
	bool here;                 /* the arguments' payload is in memory of this process */
	void (*done)(void *arg);
	void *done_arg;
};

struct rr_conn_ops {
	const char *name;
	/* on its own engine now: start watching the socket, say that it is worth spinning for */
	void (*adopted)(struct rpcrdma_conn *c);
	/* only when not dead yet; rr_conn_drained() follows, not inside */
	void (*close)(struct rpcrdma_conn *c);
	/* is something under way that only the peer can bring on? */
	bool (*owed)(const struct rpcrdma_conn *c);
	/* stall_ms have passed; NULL: never mind */
	void (*tick)(struct rpcrdma_conn *c);
	/* Prepare req->args for one decoding pass after the RPC header; -EAGAIN as documented. */
	int (*decode)(struct rr_req *r, xdrproc_t decode, void *args);
	int (*pull)(struct rr_req *r, struct rpcrdma_piece *p);
	bool (*by_chunk)(const struct rr_req *r);
	uint32_t (*room)(const struct rr_req *r);
	int (*sink)(struct rr_req *r, uint32_t off, uint32_t len, struct iovec *iov, int *cnt);
	int (*source)(struct rr_req *r, uint32_t off, uint32_t len, struct iovec *iov, int *cnt);
	int (*place)(struct rr_req *r, struct rpcrdma_piece *p);
	/* r->done is set; runs rr_req_finish() when nothing of the service is in use, not inside */
	void (*answer)(struct rr_req *r, const struct rr_answer *a);
	void (*free)(struct rpcrdma_conn *c); /* transport's parts and the connection itself */
};

/* srv.c */

/** rr_conn_init - initialises the common part of a new connection
 * @svc: takes a reference
 * @client: the reference of rr_svc_admit() is the connection's from now on
 */
void rr_conn_init(struct rpcrdma_conn *c, struct rr_svc *svc, struct rr_client *client,
		  const struct rr_conn_ops *ops, struct rpcrdma_engine *engine,
		  const struct rpcrdma_peer *peer, void *ctx);
/** rr_conn_adopt - hand it to its engine; from here on only that thread may touch it */
void rr_conn_adopt(struct rpcrdma_conn *c);
/** rr_conn_heard - a message came: the peer is alive */
void rr_conn_heard(struct rpcrdma_conn *c);
/** rr_conn_progress - the peer took or gave something */
static inline void rr_conn_progress(struct rpcrdma_conn *c)
{
	c->progress++;
}
/** rr_conn_bad - a malformed message came; false: too many, the connection is being closed */
bool rr_conn_bad(struct rpcrdma_conn *c);
/** rr_conn_unhold - one request less, or another holder that is counted like a request; may free @c */
void rr_conn_unhold(struct rpcrdma_conn *c);
/** rr_conn_dead - the peer is gone: sets dead, and tells the service later if calls are being served; once */
void rr_conn_dead(struct rpcrdma_conn *c);
/** rr_conn_drained - the transport is through with it; freed now or with its last request */
void rr_conn_drained(struct rpcrdma_conn *c);
/** rr_svc_admit - counts a new connection of @peer, or tells the service why it cannot be
 * @d: the domain of the listener
 *
 * A client within its share is admitted even when there are as many connections as there may be: one of the
 * client that has most over its share ends instead.
 *
 * Return: 0, with the client it belongs to; give both back by rr_svc_leave(). -EUSERS: there are too many;
 * -ETOOMANYREFS: its client has too many; -ENOMEM.
 */
int must_check rr_svc_admit(struct rr_svc *svc, struct rpcrdma_domain *d,
			    const struct rpcrdma_peer *peer, struct rr_client **ret);
/** rr_svc_leave - a connection that was counted by rr_svc_admit() is gone
 * @going: it had to
 */
void rr_svc_leave(struct rr_client *client, bool going);
/** rr_svc_refused - tells the service that a peer was turned away
 * @peer: NULL: it is not known
 */
void rr_svc_refused(const struct rr_svc *svc, const struct rpcrdma_peer *peer, int err);
void rr_svc_put(struct rr_svc *svc);

/** rr_req_init - a request that is about to be handed to the service */
void rr_req_init(struct rr_req *r, struct rpcrdma_conn *c);
/** rr_req_deliver - parse the RPC header of @len message bytes and call the service, or answer
 * RPC_MISMATCH by itself
 * Return: 0; -EBADMSG: not an RPC call: nothing was done */
must_check int rr_req_deliver(struct rr_req *r, const void *msg, size_t len);
/** rr_req_finish - run the service's done; the caller recycles @r afterwards */
void rr_req_finish(struct rr_req *r);
/** rr_req_back - @r is in the free list again */
void rr_req_back(struct rr_req *r);

/** rr_answer_head - RPC reply header and results into @buf
 * @s: describes the results' payload afterwards; its positions count from @buf
 * Return: 0 with *ret_len (reduced length); -EMSGSIZE: @cap is too small; -EINVAL: they do not encode */
must_check int rr_answer_head(const struct rr_req *r, const struct rr_answer *a, struct rr_stream *s,
			      void *buf, size_t cap, size_t *ret_len);

/* srv_buf.c: memory of a connection, by use */
must_check int rr_conn_buf_get(struct rpcrdma_conn *c, enum rr_zone zone, size_t bytes,
			       struct rpcrdma_buf **ret);
void rr_conn_buf_wait(struct rpcrdma_conn *c, enum rr_zone zone, struct rpcrdma_buf_waiter *w);
/** rr_conn_buf_max - the largest buffer there ever is for it */
size_t rr_conn_buf_max(const struct rpcrdma_conn *c, enum rr_zone zone);
void rr_conn_buf_init(struct rpcrdma_conn *c);
void rr_conn_buf_fini(struct rpcrdma_conn *c);

/* srv_tcp.c, srv_cm.c: listeners of either kind */
struct rpcrdma_listener {
	struct rpcrdma_engine *engine;
	struct rr_svc *svc;
	struct rpcrdma_addr addr;
	const char *device;   /* the only one that it is reached by, or NULL */
	void (*close)(struct rpcrdma_listener *l); /* frees it */
};
must_check int rr_tcp_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr,
			     struct rr_svc *svc, struct rpcrdma_listener **ret);
must_check int rr_rdma_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr,
			      struct rr_svc *svc, struct rpcrdma_listener **ret);

#endif
