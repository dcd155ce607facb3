/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_int.h - internal structures and functions of the responder: connections and requests
 *
 * Operation:  srv.c      listeners, life cycle of a connection
 *             srv_req.c  requests between the transport and the service
 *             srv_recv.c receives a message: check, parse, deliver it to the service
 *             srv_long.c pulls a call that is longer than its message
 *             srv_rw.c   pull, place, sink: moves payload between buffers and the peer's memory
 *             srv_send.c sends the reply in its form and ends the request
 *             srv_credit.c number of calls that a connection may have outstanding
 *             srv_tcp.c  the same over a byte stream
 * Memory:     The owner of a request is, in turn: the free list of its connection, the transport (receiving),
 *             the service (from svc_ops.call to the function that ends the request), the transport (replying).
 *             A connection lives until its endpoint is drained and its last request is in the free list.
 * Threads:    The connection's engine. The listener's engine accepts, and hands the new connection over
 *             by a message; from then on only the connection's engine uses it.
 */
#ifndef RR_SRV_INT_H
#define RR_SRV_INT_H

#include "base/list.h"
#include "chunk.h"
#include "ep.h"
#include "rpc_msg.h"
#include "stream.h"
#include "rpcrdma_lab.h"
#include "sized.h"

struct rr_conn_ops;
struct rr_own_zone;

/* Shared by listeners and their connections. Reference counted. */
struct rr_svc {
	atomic_uint refs;
	struct rpcrdma_svc_ops ops;
	void *ctx;
	struct rpcrdma_svc_attr attr; /* defaults filled in */
	struct rpcrdma_lab lab;       /* attr.lab */
};

/* A connection's share of one zone of the pool, and its requests that wait for buffers: srv_buf.c */
struct rr_conn_part {
	struct rpcrdma_conn *conn;
	enum rr_zone zone;
	enum rr_share share;          /* RR_SHARES: the zone has no shares */
	size_t bytes;
	size_t earned;                /* bytes that it may hold beyond the share of a new connection */
	size_t wanted;                /* size of the last buffer that was refused */
	struct rr_waiters waiters;
	struct rpcrdma_msg msg;       /* runs the next waiter after a buffer was returned */
	bool msg_out;
	struct rpcrdma_buf_waiter pool_waiter; /* waits for the pool on behalf of all waiters ... */
	struct rr_client_waiter client_waiter; /* ... or for the client's share */
	bool in_line;                 /* client_waiter waits, or its message is in flight */
	bool turn;                    /* it has the client's turn, until it gets a buffer */
	struct list look_link;        /* engine->shares, while it waits for its own or its client's share */
};

/* Memory of a single connection, which replaces one zone of the pool for all of its buffers. A connection has one for
 * each zone below RR_ZONE_FAR, or none. All of it is used on the engine of its connection; until the adoption, by the
 * thread that accepts. */
struct rr_own_ops {
	/* As rr_buf_get(): 0; -ENOBUFS: wait; -EMSGSIZE: larger than buf_max. The caller owns the buffer until put. */
	int (*get)(struct rr_own_zone *own, size_t bytes, struct rpcrdma_buf **ret);
	/* After -ENOBUFS: w->fn runs when a retry may succeed, in FIFO order, and not from inside. */
	void (*wait)(struct rr_own_zone *own, struct rpcrdma_buf_waiter *w);
};

struct rr_own_zone {
	struct rr_own own;            /* put may make waiters run, but not from inside */
	const struct rr_own_ops *ops;
	size_t buf_max;               /* size of the largest buffer */
};

struct rpcrdma_conn {
	struct list link;             /* engine->conns, while adopted */
	struct rpcrdma_engine *engine;
	struct rr_svc *svc;
	struct rr_dev *dev;           /* NULL: TCP */
	const struct rr_conn_ops *ops;
	struct rpcrdma_peer peer;
	struct rr_client *client;     /* client that is charged for it ... */
	struct rr_client_conn of_client; /* ... and its entry there */
	void *ctx;                    /* of the service */
	struct rpcrdma_msg adopt_msg; /* hands it to its engine */
	struct rpcrdma_msg lost_msg;  /* counted in reqs while it is in flight */
	struct rpcrdma_timer timer;   /* deadline of the first call, then of the next progress */
	uint64_t progress, progress_seen; /* completions or reads so far; value at the last tick */
	struct rr_conn_part parts[RR_ZONES]; /* shares of the pool */
	struct rr_own_zone *const *own; /* its own memory instead of the pool's, by enum rr_zone; or NULL */
	bool adopted, heard, dead, drained;
	unsigned reqs;                /* not in the free list; holders that rr_conn_unhold() drops */
	unsigned nreqs;               /* requests allocated, in use or not */
	unsigned reqs_most;           /* maximum of reqs since the last tick */
	unsigned bad;                 /* malformed messages so far */
	struct list free_reqs;
};

/* Calls of a connection whose memory is not charged to its client, and is kept. Over a fabric: receives (and credits)
 * of a new connection; the number grows with use. */
#define RR_MSGS_FIRST 8u

/* This many malformed messages from a peer end its connection (protocol.md 7.3). */
#define RR_BAD_MAX 64u

/* Content of a reply. */
struct rr_reply {
	enum { RR_CONTENT_RESULTS, RR_CONTENT_ERROR, RR_CONTENT_REJECT, RR_CONTENT_NONE } kind;
	xdrproc_t encode; /* NULL: the results of the request are encoded already: rr_req.results */
	const void *res;
	struct rr_rpc_reply head; /* without XID and verifier, which are the request's */
};

/* Results that are encoded already: rpcrdma_req_reply_parts() has checked them. */
struct rr_results {
	const struct iovec *iov;
	unsigned cnt;
	unsigned first, n;         /* entries of the payload */
	size_t bytes;              /* of the other entries ... */
	size_t before;             /* ... and of those before the payload */
	uint32_t payload_bytes;
};

struct rr_req {
	struct rpcrdma_req pub;
	struct list link;          /* conn->free_reqs; TCP: conn->sendq */
	struct rr_stream args;     /* over the message */
	size_t args_at;            /* the arguments begin there */
	uint32_t chunk_at, chunk_bytes; /* payload that came in a Read chunk, and belongs there; 0 bytes: none */
	struct rr_auth verf;       /* of the reply */
	struct iovec bytes;        /* rpcrdma_req_reply_bytes() */
	struct rr_results results; /* rpcrdma_req_reply_parts() */
	bool ended;
	struct rr_req_mem *mems;   /* srv_mem.c: the service's own memory in its transfers */
	struct rpcrdma_xfer *placed; /* pieces that are sent with the reply, by offset */
	bool res_by_chunk;         /* the results' payload moves by a Write chunk, before the reply */
	bool again;                /* TCP: delivered a second time, with the whole record */
	void (*done)(void *arg);
	void *done_arg;
};

struct rr_conn_ops {
	/* runs on the connection's engine: start watching the socket, count the connection for polling */
	void (*adopted)(struct rpcrdma_conn *c);
	/* called only while the connection is not dead; rr_conn_drained() follows later, not from inside */
	void (*close)(struct rpcrdma_conn *c);
	/* true while the connection waits for progress that only the peer can make */
	bool (*owed)(const struct rpcrdma_conn *c);
	/* called every stall_ms, before unused requests are freed; may be NULL */
	void (*tick)(struct rpcrdma_conn *c);
	/* Return: 0: the whole message is in memory, except payload in a Read chunk; -EAGAIN: it will be delivered
	 * again with it; -EBADMSG: that is impossible */
	int (*whole)(struct rr_req *r);
	int (*pull)(struct rr_req *r, struct rpcrdma_xfer *p);
	/* the piece lies within pub.room */
	int (*place)(struct rr_req *r, struct rpcrdma_xfer *p);
	void (*free_req)(struct rpcrdma_conn *c, struct rr_req *r); /* of the free list; nreqs still counts it */
	/* r->done is set; calls rr_req_finish() when no memory of the service is in use, not from inside */
	void (*reply)(struct rr_req *r, const struct rr_reply *a);
	void (*free)(struct rpcrdma_conn *c); /* frees the transport's parts and the connection */
};

/* srv.c */

/** rr_conn_create - admits a peer, and creates its connection on the engine that the service chooses
 * @bytes: size of the transport's connection, which begins with struct rpcrdma_conn; the rest is zero
 *
 * Return: 0: rr_conn_adopt() or rr_conn_discard() follows. -errno: the peer is refused, and the service knows: too many
 * connections (-EUSERS), too many of its client (-ETOOMANYREFS), no memory, or the result of svc_ops.accept.
 */
must_check int rr_conn_create(const struct rpcrdma_listener *l, const struct rpcrdma_peer *peer,
			      const struct rr_conn_ops *ops, size_t bytes, struct rpcrdma_conn **ret);
/** rr_conn_discard - ends a connection that was not adopted: the peer is refused because of @err; frees @c */
void rr_conn_discard(struct rpcrdma_conn *c, int err);
/** rr_conn_init - initialises the common part of a new connection
 * @svc: takes a reference
 * @client: its charge for the connection, and its reference, belong to the connection now
 */
void rr_conn_init(struct rpcrdma_conn *c, struct rr_svc *svc, struct rr_client *client,
		  const struct rr_conn_ops *ops, struct rpcrdma_engine *engine,
		  const struct rpcrdma_peer *peer, void *ctx);
/** rr_conn_adopt - hands the connection to its engine; from here on only that thread may use it */
void rr_conn_adopt(struct rpcrdma_conn *c);
/** rr_conn_heard - records that a message arrived: the peer is alive */
void rr_conn_heard(struct rpcrdma_conn *c);
/** rr_conn_progress - records that the peer sent or received data */
static inline void rr_conn_progress(struct rpcrdma_conn *c)
{
	c->progress++;
}
/** rr_conn_bad - counts a malformed message; false: there were too many, the connection is being closed */
bool rr_conn_bad(struct rpcrdma_conn *c);
/** rr_conn_unhold - drops one request, or another holder that is counted in reqs; may free @c */
void rr_conn_unhold(struct rpcrdma_conn *c);
/** rr_conn_dead - the peer is gone: sets dead; informs the service later if requests are active; call once */
void rr_conn_dead(struct rpcrdma_conn *c);
/** rr_conn_drained - the transport has finished; frees @c now or with its last request */
void rr_conn_drained(struct rpcrdma_conn *c);
/** rr_svc_refused - tells the service that a peer was refused
 * @peer: NULL if it is unknown
 */
void rr_svc_refused(const struct rr_svc *svc, const struct rpcrdma_peer *peer, int err);

/* srv_req.c */

/** rr_req_init - initialises a request for the service
 *
 * The transport sets res_by_chunk, and by_chunk, args_local, can_map and room of the public part, before
 * rr_req_deliver(). */
void rr_req_init(struct rr_req *r, struct rpcrdma_conn *c);
/** rr_req_deliver - parses the RPC header of @len message bytes and calls the service, or replies RPC_MISMATCH
 *
 * Return: 0; -EBADMSG: not an RPC call: nothing was done */
must_check int rr_req_deliver(struct rr_req *r, const void *msg, size_t len);
/** rr_req_use_mem - srv_mem.c: gives a transfer of the service's own memory, p->mem, a buffer
 * @write: the transfer writes to it
 * Return: 0, -EFAULT, -ENOMEM, errors of the device. */
must_check int rr_req_use_mem(struct rr_req *r, struct rpcrdma_xfer *p, bool write);
/** rr_req_free_mems - ends the use of all such memory by a request */
void rr_req_free_mems(struct rr_req *r);
/** rr_req_add_placed - adds a piece to those that are sent with the reply, by offset
 * Return: 0; -EOPNOTSUPP: its buffer is memory of a device. */
must_check int rr_req_add_placed(struct rr_req *r, struct rpcrdma_xfer *p);
/** rr_req_finish - calls done of these pieces, then the service's; the caller recycles @r afterwards */
void rr_req_finish(struct rr_req *r);
/** rr_req_back - returns @r to the free list */
void rr_req_back(struct rr_req *r);
/** rr_req_trim - frees unused requests until @keep remain in all */
void rr_req_trim(struct rpcrdma_conn *c, unsigned keep);

/* SYSTEM_ERR */
extern const struct rr_reply rr_reply_system_err;

/** rr_reply_head - encodes RPC reply header and results into @buf
 * @s: describes the results' payload afterwards; its positions count from @buf
 * Return: 0 with *ret_len (reduced length); -EMSGSIZE: @cap is too small; -EINVAL: the results cannot be encoded, or
 * claim more payload than the service has placed */
must_check int rr_reply_head(const struct rr_req *r, const struct rr_reply *a, struct rr_stream *s,
			      void *buf, size_t cap, size_t *ret_len);

/** rr_reply_rpc_bytes - returns the size of the RPC header of an accepted reply */
size_t rr_reply_rpc_bytes(const struct rr_req *r);

/** rr_reply_put_rpc - encodes the RPC header of a reply with success, rr_reply_rpc_bytes() */
void rr_reply_put_rpc(const struct rr_req *r, void *buf, size_t bytes);

/* srv_buf.c: memory of a connection, by zone */
/** rr_conn_buf_get - as rr_buf_get(), within the connection's own memory, or its share of the pool */
must_check int rr_conn_buf_get(struct rpcrdma_conn *c, enum rr_zone zone, size_t bytes,
			       struct rpcrdma_buf **ret);
/** rr_conn_buf_wait - as rr_buf_wait(), after rr_conn_buf_get() */
void rr_conn_buf_wait(struct rpcrdma_conn *c, enum rr_zone zone, struct rpcrdma_buf_waiter *w);
/** rr_conn_buf_max - returns the largest buffer size that a connection can get */
size_t rr_conn_buf_max(const struct rpcrdma_conn *c, enum rr_zone zone);
/** rr_conn_buf_init - initializes the shares of a new connection, which holds no buffer */
void rr_conn_buf_init(struct rpcrdma_conn *c);
/** rr_conn_buf_fini - ends the waits of its shares; no request of the connection waits for a buffer */
void rr_conn_buf_fini(struct rpcrdma_conn *c);

/* srv_tcp.c, srv_cm.c: listeners of both kinds */
struct rpcrdma_listener {
	struct rpcrdma_engine *engine;
	struct rr_svc *svc;
	struct rpcrdma_addr addr;
	const char *device;   /* the only device that reaches it, or NULL */
	void (*close)(struct rpcrdma_listener *l); /* frees it */
};

/** rr_tcp_listen - listens on a TCP address
 * @addr: port 0: any; (*ret)->addr has the one in use
 * @ret: release it with its close()
 *
 * Return: 0; -EADDRNOTAVAIL: the address does not resolve; -ENOMEM; the -errno of a socket call.
 */
must_check int rr_tcp_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr,
			     struct rr_svc *svc, struct rpcrdma_listener **ret);

/** rr_rdma_listen - listens on an RDMA address; opens the device for it
 *
 * @addr and @ret: as rr_tcp_listen().
 *
 * Return: 0; -ENOMEM; as rr_domain_dev_at(), rr_cm_create(), rr_listen(), rpcrdma_engine_watch().
 */
must_check int rr_rdma_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr,
			      struct rr_svc *svc, struct rpcrdma_listener **ret);

#endif
