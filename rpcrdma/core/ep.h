/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ep.h - an endpoint: one queue pair with its message buffers and the accounting of its queues
 *
 * Operation:  Both sides use it. rr_ep_create() sets up a queue pair that was dialled or requested, and posts
 *             the first receives; the caller then connects or accepts. ops->recv delivers each message with its
 *             buffer, which rr_ep_repost() returns. rr_ep_post() sends work in order, a chain at a time. Chains
 *             that do not fit the send queue wait in a FIFO, so a full queue is never an error.
 *
 *                 up --(first error completion, flush, or rr_ep_disconnect)--> dead --> drained
 *
 *             ops->dead runs once, when nothing more can be sent. ops->drained runs once, when no work request
 *             is outstanding and all receive contexts are returned; then call rr_ep_destroy().
 * Memory:     Message buffers are local access only. Their number grows with the credits in use. A requester
 *             owns its buffers: they come in batches (receive and send buffers in one registration) and live as
 *             long as the endpoint. A responder borrows them from the pool: receives one by one, which return
 *             to the pool when fewer credits are granted, and a send buffer for each reply. A posted chain
 *             belongs to the endpoint until its fn has run.
 * Threads:    The engine's; except rr_ep_create() up to accept, see fabric.h.
 * Errors:     After `dead`, posts are accepted and end with RR_WC_FLUSHED, so callers have one path.
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
	struct list link;      /* idle ones of a dead endpoint */
	uint8_t *buf;          /* capacity ep->recv_bytes */
	struct rr_mr *mr;
	uint32_t len;          /* of the message in it */
	struct list all;       /* ep->recvs, if lent; or receives of the shared queue */
	struct rpcrdma_buf *lent;
	struct rr_shared *shared; /* its shared queue; then ep is the endpoint of the current message, or NULL */
};

/* Buffer for one outgoing message. */
struct rr_send_ctx {
	struct list link;      /* free ones */
	struct rr_ep *ep;
	uint8_t *buf;          /* capacity ep->send_bytes */
	struct rr_mr *mr;
	struct rpcrdma_buf *lent; /* while in use */
};

/* Longest chain that rr_post.build builds. */
#define RR_POST_BUILT 16u

/* A chain of work requests, the last one signalled; embedded in its operation. */
struct rr_post {
	struct rr_done done;
	struct list link;
	struct rr_ep *ep;
	struct rr_wr *first;
	unsigned n;            /* requests in the chain, <= sq_depth */
	/* NULL: the chain is at @first. Otherwise it links the @n requests at @wr, each with an entry at @sge.
	 * It runs when the queue has room for them, so a waiting chain needs no memory for its requests. */
	void (*build)(struct rr_post *post, struct rr_wr *wr, struct rr_sge *sge);
	void (*fn)(struct rr_post *post, enum rr_wc_status status);
};

struct rr_ep_ops {
	/* A message of rc->len bytes is in rc->buf. Call rr_ep_repost(), now or later. */
	void (*recv)(struct rr_ep *ep, struct rr_recv_ctx *rc, const struct rr_wc *wc);
	void (*dead)(struct rr_ep *ep, enum rr_wc_status status);
	void (*drained)(struct rr_ep *ep);
	/* Allocates a message buffer, as rr_conn_buf_get() with RR_ZONE_SENDS. NULL: from the pool, not charged */
	int (*send_buf)(struct rr_ep *ep, struct rpcrdma_buf **ret);
};

struct rr_ep_attr {
	const struct rr_ep_ops *ops;
	void *owner;
	unsigned msgs;         /* receives (and send buffers) at first ... */
	unsigned msgs_max;     /* ... and at most */
	unsigned extra_recvs;  /* receives in addition to those granted as credits */
	unsigned sq_depth;     /* 0: enough for msgs_max, */
	unsigned sq_more;      /* ... each of which needs this many requests more than usual */
	uint32_t recv_bytes, send_bytes;
	/* Borrow message buffers from the pool, and start with as many as are available. The engine is the
	 * caller's own, see rr_ep_lend_from(); @pd must be that of the device. NULL: own batches. */
	struct rpcrdma_engine *lender;
	struct rr_client *client; /* charged for receives from the pool; NULL: not charged */
	uint32_t call_bytes; /* owner's memory for a call: charged with each receive except the first ones */
	struct rr_shared *shared; /* source of all receives; NULL: own receives */
	struct rr_own *const *own; /* memory of its connection, by enum rr_zone; @pd is then theirs. NULL: the pool's */
};

struct rr_ep {
	struct rpcrdma_engine *engine;
	struct rr_dev *dev;
	struct rr_qp *qp;
	const struct rr_ep_ops *ops;
	void *owner;
	struct rr_pd *pd;
	uint32_t recv_bytes, send_bytes;
	unsigned msgs, msgs_max;   /* receives for calls or replies: now, and at most */
	unsigned extra_recvs;      /* in addition to them */
	unsigned posted;           /* receives at the device; shared: 1 until its end completes */
	unsigned held;             /* receives in use by the upper layer */
	unsigned sq_depth, sq_free;
	unsigned in_flight;        /* chains at the device */
	bool dead, drained, die_soon;
	bool msg_out;              /* drained_msg is deferred: must run before the endpoint is freed */
	struct list waiting;       /* rr_post: chains that found the queue full */
	struct list idle_recvs;    /* when dead */
	struct list free_sends;
	struct list batches;       /* own batches, or ... */
	struct rpcrdma_engine *lender; /* ... its pool lends the buffers, or ... */
	struct rr_own *const *own; /* ... the memory of its connection alone */
	struct rr_client *client;  /* charged for receives, or NULL */
	uint32_t call_bytes;
	unsigned nrecvs, nrecvs_first; /* lent, or promised from the shared queue; and the initial number */
	struct list recvs;         /* rr_recv_ctx.all: all that are lent */
	struct rr_shared *shared;
	bool first_is_free;        /* its client's share was used up at the first receive from the shared queue */
	struct rr_done end_done;
	struct rr_done err_done;   /* of requests that are not the last of their chain */
	struct rpcrdma_msg drained_msg;
};

/** rr_ep_create - sets up @qp on @engine and posts the first receives
 * @pd: of the registrations that its work requests use
 *
 * Return: 0; -ENOMEM; -ENOBUFS: lent memory, or the client's share, does not suffice for one call; errors of
 * the device. On failure the caller still owns @qp.
 */
must_check int rr_ep_create(struct rpcrdma_engine *e, struct rr_dev *dev, struct rr_pd *pd,
			    struct rr_qp *qp, const struct rr_ep_attr *attr, struct rr_ep **ret);

/** rr_ep_lend_from - sets the engine of the thread that uses the endpoint from now on */
static inline void rr_ep_lend_from(struct rr_ep *ep, struct rpcrdma_engine *e)
{
	ep->lender = e;
}

/** rr_ep_destroy - destroys an endpoint that is drained or was never connected, and its queue pair */
void rr_ep_destroy(struct rr_ep *ep);

/** rr_ep_disconnect - starts the shutdown: dead (at the next poll, if it is not yet), then drained */
void rr_ep_disconnect(struct rr_ep *ep);

/** rr_ep_grow - grows to at most @msgs receives (and send buffers, if it owns them); fewer if memory or the
 * limit does not allow them: see ep->msgs */
void rr_ep_grow(struct rr_ep *ep, unsigned msgs);

/** rr_ep_posted - returns the messages that may arrive before a receive is returned: its own receives at the
 * device, or those that the shared queue promised and it does not hold */
unsigned rr_ep_posted(const struct rr_ep *ep);

/** rr_ep_repost - returns a receive buffer to the device */
void rr_ep_repost(struct rr_recv_ctx *rc);

/** rr_ep_repost_packed - rr_ep_repost(), but first tries to exchange a lent buffer for one in a fuller chunk */
void rr_ep_repost_packed(struct rr_recv_ctx *rc);

/** rr_ep_retire - returns a receive buffer to the pool instead: one receive less */
void rr_ep_retire(struct rr_recv_ctx *rc);

/** rr_ep_get_send - allocates a buffer for a message
 * An endpoint with its own buffers has one for each outstanding message: a caller that respects credits always
 * gets one.
 *
 * Return: 0; -ENOBUFS: none free at the moment (lent buffers have a queue of waiters: RR_ZONE_SENDS); -ENOMEM
 */
must_check int rr_ep_get_send(struct rr_ep *ep, struct rr_send_ctx **ret);
void rr_ep_put_send(struct rr_send_ctx *sc);

/** rr_ep_post - sends a chain; @post->fn runs once, never inside this call, also on a dead endpoint
 * Sets the done pointers, and signals only the last request.
 */
void rr_ep_post(struct rr_ep *ep, struct rr_post *post);

/** rr_ep_unpost - cancels a waiting chain; its fn will not run
 * Return: false: the device already has it and fn will run */
bool rr_ep_unpost(struct rr_ep *ep, struct rr_post *post);

/* For ep_shared.c: allocate a lent receive (from the pool if @own is NULL), free it, deliver a message to
 * this endpoint. */
must_check int rr_recv_get(struct rpcrdma_engine *e, struct rr_own *const *own,
			   const struct rr_dev *dev, uint32_t bytes, struct rr_recv_ctx **ret);
void rr_recv_put(struct rpcrdma_engine *e, struct rr_recv_ctx *rc);
void rr_ep_recv_shared(struct rr_ep *ep, struct rr_recv_ctx *rc, const struct rr_wc *wc);

/* ep_shared.c */

/** rr_shared_get - returns the shared receive queue of an engine's connections on @dev, creating it if necessary
 * @lender: the caller's engine, for its first receives
 *
 * Return: 0; -EOPNOTSUPP: the device does not support it, or the queue is for messages of another length;
 * -ENOMEM; -ENOBUFS: no memory for messages; errors of the device.
 */
must_check int rr_shared_get(struct rpcrdma_engine *e, struct rr_dev *dev, uint32_t recv_bytes,
			     struct rpcrdma_engine *lender, struct rr_shared **ret);
/** rr_shared_fini - destroys those of an engine, after its last endpoint */
void rr_shared_fini(struct rpcrdma_engine *e);
/** rr_shared_promise - changes the number of receives promised to the endpoints of @s by @n; any thread */
void rr_shared_promise(struct rr_shared *s, int n);
struct rr_srq *rr_shared_srq(const struct rr_shared *s);
void rr_shared_put(struct rr_recv_ctx *rc);

#endif
