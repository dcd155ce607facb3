/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ep.h - an endpoint: one queue pair with its message buffers and the account of its queues
 *
 * Operation:  Shared by both ends. rr_ep_create() sets up a queue pair that was dialled or
 *             requested, and posts the first receives; the caller then connects or accepts.
 *             Messages come by ops->recv with their buffer, which goes back by rr_ep_repost().
 *             Work goes out by rr_ep_post(), a chain at a time, in order; what does not fit the
 *             send queue waits in a FIFO, so a full queue is never an error.
 *
 *                 up --(first error completion, flush, or rr_ep_disconnect)--> dead --> drained
 *
 *             ops->dead runs once, when nothing more can be sent; ops->drained once, when no work
 *             request is outstanding and all receive contexts are back: rr_ep_destroy() may be called.
 * Memory:     Message buffers are local access only, and grow with the credits in use. A requester has
 *             its own: they come in batches (receive and send buffers in one registered piece) and live
 *             as long as the endpoint. A responder lends them from the pool: receives one by one, which
 *             can go back there when fewer credits are granted, and a send buffer for each answer.
 *             A posted chain belongs to the endpoint until its fn has run.
 * Threads:    The engine's; except rr_ep_create() up to accept, see fabric.h.
 * Errors:     After `dead`, posts are taken and end with RR_WC_FLUSHED, so that callers have one
 *             path only.
 */
#ifndef RR_EP_H
#define RR_EP_H

#include "base/list.h"
#include "engine_int.h"
#include "fabric.h"

struct rr_ep;

struct rr_recv_ctx {
	struct rr_done done;
	struct rr_ep *ep;
	struct list link;      /* idle ones, of an endpoint that is dead */
	uint8_t *buf;          /* ep->recv_bytes of room */
	struct rr_mr *mr;
	uint32_t len;          /* of the message that is in it */
	struct list all;       /* ep->recvs, if lent; those of the shared queue */
	struct rpcrdma_buf *lent;
	struct rr_shared *shared; /* where it is from; ep is whose message is in it, or NULL */
};

/* Room for one outgoing message. */
struct rr_send_ctx {
	struct list link;      /* free ones */
	struct rr_ep *ep;
	uint8_t *buf;          /* ep->send_bytes of room */
	struct rr_mr *mr;
	struct rpcrdma_buf *lent; /* while it is not free */
};

/* Longest chain that rr_post.build makes. */
#define RR_POST_BUILT 16u

/* A chain of work requests, last one signalled; embedded in whatever it is for. */
struct rr_post {
	struct rr_done done;
	struct list link;
	struct rr_ep *ep;
	struct rr_wr *first;
	unsigned n;            /* requests in the chain, <= sq_depth */
	/* NULL: the chain is at @first. Otherwise it links the @n requests at @wr, with an entry each at @sge, and
	 * runs when the queue has room for them: a chain that waits takes no memory for its requests. */
	void (*build)(struct rr_post *post, struct rr_wr *wr, struct rr_sge *sge);
	void (*fn)(struct rr_post *post, enum rr_wc_status status);
};

struct rr_ep_ops {
	/* A message of rc->len bytes is in rc->buf. Ends with rr_ep_repost(), now or later. */
	void (*recv)(struct rr_ep *ep, struct rr_recv_ctx *rc, const struct rr_wc *wc);
	void (*dead)(struct rr_ep *ep, enum rr_wc_status status);
	void (*drained)(struct rr_ep *ep);
	/* Memory for a message, as rr_conn_buf_get() with RR_ZONE_SENDS. NULL: the pool's, without a share */
	int (*send_buf)(struct rr_ep *ep, struct rpcrdma_buf **ret);
};

struct rr_ep_attr {
	const struct rr_ep_ops *ops;
	void *owner;
	unsigned msgs;         /* receives (and send buffers) to begin with ... */
	unsigned msgs_max;     /* ... and at most */
	unsigned extra_recvs;  /* receives over and above those granted as credits */
	unsigned sq_depth;     /* 0: enough for msgs_max, */
	unsigned sq_more;      /* ... each of which has so many requests beside the usual ones */
	uint32_t recv_bytes, send_bytes;
	/* Lend message buffers from the pool, and begin with as many as there are. The engine is the
	 * caller's own, see rr_ep_lend_from(); @pd must be that of the device. NULL: its own batches. */
	struct rpcrdma_engine *lender;
	struct rr_client *client; /* receives from the pool are charged to it; NULL: to none */
	uint32_t call_bytes; /* what the owner keeps for a call: charged with each receive beyond the first ones */
	struct rr_shared *shared; /* where receives are from: none are its own. NULL: all are */
	struct rr_area *zones; /* ... of its connection, in place of the pool's; of @pd then. Or NULL */
};

struct rr_ep {
	struct rpcrdma_engine *engine;
	struct rr_dev *dev;
	struct rr_qp *qp;
	const struct rr_ep_ops *ops;
	void *owner;
	struct rr_pd *pd;
	uint32_t recv_bytes, send_bytes;
	unsigned msgs, msgs_max;   /* receives there are for calls or answers, and may be */
	unsigned extra_recvs;      /* beside them */
	unsigned posted;           /* receives at the device; shared: 1 until its end has come */
	unsigned held;             /* receives with the upper layer */
	unsigned sq_depth, sq_free;
	unsigned in_flight;        /* chains at the device */
	bool dead, drained, die_soon;
	bool msg_out;              /* drained_msg is deferred: must run before the endpoint is freed */
	struct list waiting;       /* rr_post: chains that found the queue full */
	struct list idle_recvs;    /* when dead */
	struct list free_sends;
	struct list batches;       /* its own, or ... */
	struct rpcrdma_engine *lender; /* ... whose pool they are lent from, or ... */
	struct rr_area *zones;     /* ... from memory of its connection alone */
	struct rr_client *client;  /* receives are charged to it, or NULL */
	uint32_t call_bytes;
	unsigned nrecvs, nrecvs_first; /* lent, or promised of the shared ones; of them, those that it began with */
	struct list recvs;         /* rr_recv_ctx.all: lent, wherever they are */
	struct rr_shared *shared;
	bool first_is_free;        /* its client had no share left for the first receive of the shared ones */
	struct rr_done end_done;
	struct rr_done err_done;   /* of requests that are not the last of their chain */
	struct rpcrdma_msg drained_msg;
};

/** rr_ep_create - set up @qp on @engine, post the first receives
 * @pd: whose registrations its work requests will use
 *
 * Return: 0; -ENOMEM; -ENOBUFS: not even one call's worth of lent memory, or of its client's share; what
 * the device said. On failure @qp is still the caller's.
 */
must_check int rr_ep_create(struct rpcrdma_engine *e, struct rr_dev *dev, struct rr_pd *pd,
			    struct rr_qp *qp, const struct rr_ep_attr *attr, struct rr_ep **ret);

/** rr_ep_lend_from - whose thread it is that uses the endpoint from now on */
static inline void rr_ep_lend_from(struct rr_ep *ep, struct rpcrdma_engine *e)
{
	ep->lender = e;
}

/** rr_ep_destroy - of one that is drained or was never connected; destroys the queue pair too */
void rr_ep_destroy(struct rr_ep *ep);

/** rr_ep_disconnect - begin the end: dead (at the next poll, if it was not yet), then drained */
void rr_ep_disconnect(struct rr_ep *ep);

/** rr_ep_grow - have up to @msgs receives (and send buffers, if they are its own); fewer if memory or
 * the limit says so: see ep->msgs */
void rr_ep_grow(struct rr_ep *ep, unsigned msgs);

/** rr_ep_posted - messages that may come before a receive is given back: its own receives at the device, or those
 * that it was promised of the shared ones and does not hold */
unsigned rr_ep_posted(const struct rr_ep *ep);

/** rr_ep_repost - give a receive buffer back to the device */
void rr_ep_repost(struct rr_recv_ctx *rc);

/** rr_ep_repost_packed - rr_ep_repost(), with a lent buffer of where more are lent if there is one */
void rr_ep_repost_packed(struct rr_recv_ctx *rc);

/** rr_ep_retire - give it back to the pool that it was lent from instead: one receive less */
void rr_ep_retire(struct rr_recv_ctx *rc);

/** rr_ep_get_send - room for a message
 * Of its own, as many exist as messages may be outstanding: a caller that respects credits finds one.
 *
 * Return: 0; -ENOBUFS: none at the moment (those that are lent have a line: RR_ZONE_SENDS); -ENOMEM
 */
must_check int rr_ep_get_send(struct rr_ep *ep, struct rr_send_ctx **ret);
void rr_ep_put_send(struct rr_send_ctx *sc);

/** rr_ep_post - send a chain; @post->fn runs once, not from inside, also on a dead endpoint
 * Of the requests only the last may (and will) be signalled; done pointers are set here.
 */
void rr_ep_post(struct rr_ep *ep, struct rr_post *post);

/** rr_ep_unpost - take back a chain that was posted; its fn will not run
 * Return: false when the device has it already: fn will */
bool rr_ep_unpost(struct rr_ep *ep, struct rr_post *post);

/* For ep_shared.c: a receive that is lent (of the pool if @zones is NULL), and given back; a message for
 * this endpoint. */
must_check int rr_recv_get(struct rpcrdma_engine *e, struct rr_area *zones,
			   const struct rr_dev *dev, uint32_t bytes, struct rr_recv_ctx **ret);
void rr_recv_put(struct rpcrdma_engine *e, struct rr_recv_ctx *rc);
void rr_ep_recv_shared(struct rr_ep *ep, struct rr_recv_ctx *rc, const struct rr_wc *wc);

/* ep_shared.c */

/** rr_shared_get - the receive queue of an engine's connections by @dev, made if there is none yet
 * @lender: the caller's engine, for its first receives
 *
 * Return: 0; -EOPNOTSUPP: the device has none, or this one is for messages of another length;
 * -ENOMEM; -ENOBUFS: no memory for messages; what the device said.
 */
must_check int rr_shared_get(struct rpcrdma_engine *e, struct rr_dev *dev, uint32_t recv_bytes,
			     struct rpcrdma_engine *lender, struct rr_shared **ret);
/** rr_shared_fini - those of an engine, after its last endpoint */
void rr_shared_fini(struct rpcrdma_engine *e);
/** rr_shared_promise - change the number of receives that the endpoints of @s are promised by @n; any thread */
void rr_shared_promise(struct rr_shared *s, int n);
struct rr_srq *rr_shared_srq(const struct rr_shared *s);
void rr_shared_put(struct rr_recv_ctx *rc);

#endif
