/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ep.h - an endpoint: one queue pair with its receives and the accounting of its queues
 *
 * Operation:  Both sides use it. rr_ep_create() sets up a queue pair that was dialled or requested, and posts
 *             the first receives; the caller then connects or accepts. ops->recv takes each message with rr_ep_take(),
 *             and rr_ep_repost() returns its buffer. rr_ep_post() sends work in order, a chain at a time. Chains
 *             that do not fit the send queue wait in a FIFO, so a full queue is never an error.
 *
 *                 up --(first error completion, flush, or rr_ep_disconnect)--> dead --> drained
 *
 *             ops->dead runs once, when nothing more can be sent. ops->drained runs once, when no work request
 *             is outstanding and all receive contexts are returned; then call rr_ep_destroy().
 * Memory:     Receives are added and returned one by one. ops->recv_buf allocates their buffers, local access only,
 *             and rpcrdma_buf_put() returns them. With a shared queue (ep_shared.c) an endpoint has no receives of
 *             its own, only promises. Both are charged to the client. A posted chain belongs to the endpoint until
 *             its fn has run.
 * Threads:    The engine's; except rr_ep_create() up to accept, see fabric.h.
 * Errors:     A chain that the device refuses ends with RR_WC_LOCAL, and so does the endpoint. After `dead`, posts are
 *             accepted and end with RR_WC_FLUSHED, so callers have one path.
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
	uint8_t *buf;          /* capacity ep->recv_bytes */
	uint32_t len;          /* of the message in it */
	struct list all;       /* ep->recvs, or receives of the shared queue */
	struct rpcrdma_buf *lent; /* contains buf */
	struct rr_shared *shared; /* its shared queue; then ep is the endpoint of the current message, or NULL */
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
	bool posted;           /* not before: on a dead endpoint, the peer has not received it */
	/* NULL: the chain is at @first. Otherwise it links the @n requests at @wr. It runs when the queue has room
	 * for them, so a waiting chain needs no memory for its requests. */
	void (*build)(struct rr_post *post, struct rr_wr *wr);
	void (*fn)(struct rr_post *post, enum rr_wc_status status);
};

struct rr_ep_ops {
	/* A receive has completed: call rr_ep_take(), and rr_ep_repost() for what it returns, now or later. */
	void (*recv)(struct rr_done *done, const struct rr_wc *wc);
	void (*dead)(struct rr_ep *ep, enum rr_wc_status status);
	void (*drained)(struct rr_ep *ep);
	/* Allocates the buffer of a receive, of recv_bytes; also on the thread of rr_ep_create(). 0; -ENOBUFS, -ENOMEM */
	int (*recv_buf)(struct rr_ep *ep, struct rpcrdma_buf **ret);
};

struct rr_ep_attr {
	const struct rr_ep_ops *ops;
	void *owner;
	unsigned msgs;         /* receives for calls or replies at first, fewer if memory is short ... */
	unsigned msgs_max;     /* ... and at most */
	unsigned extra_recvs;  /* receives in addition to those granted as credits */
	unsigned sq_depth;     /* 0: enough for msgs_max, */
	unsigned sq_more;      /* ... each of which needs this many requests more than usual */
	uint32_t recv_bytes;
	struct rr_client *client; /* charged for receives; NULL: not charged */
	uint32_t call_bytes; /* owner's memory for a call: charged with each receive except the first ones */
	struct rr_shared *shared; /* source of all receives; NULL: own receives */
};

struct rr_ep {
	struct rpcrdma_engine *engine;
	struct rr_dev *dev;
	struct rr_qp *qp;
	const struct rr_ep_ops *ops;
	void *owner;
	uint32_t recv_bytes;
	unsigned msgs, msgs_max;   /* receives for calls or replies: now, and at most */
	unsigned extra_recvs;      /* in addition to them */
	unsigned posted;           /* receives at the device; shared: 1 until its end completes */
	unsigned held;             /* receives in use by the upper layer */
	unsigned sq_depth, sq_free;
	unsigned in_flight;        /* chains at the device */
	bool dead, drained, die_soon;
	bool msg_out;              /* drained_msg is deferred; rr_ep_destroy() takes it back */
	struct list waiting;       /* rr_post: chains that found the queue full */
	struct rr_client *client;  /* charged for receives, or NULL */
	uint32_t call_bytes;
	unsigned nrecvs, nrecvs_first; /* receives, own or promised by the shared queue; and the initial number */
	struct list recvs;         /* rr_recv_ctx.all: own ones */
	struct rr_shared *shared;
	bool first_is_free;        /* its client's share was used up at the first receive from the shared queue */
	struct rr_done end_done;
	struct rr_done err_done;   /* of requests that are not the last of their chain */
	struct rpcrdma_msg drained_msg;
};

/** rr_ep_create - sets up @qp on @e and posts the first receives
 * @here: the caller's engine
 * @pd: of the registrations that its work requests use
 *
 * Return: 0; -ENOMEM; -ENOBUFS: the memory, or the client's share, does not suffice for one call; errors of
 * the device. On failure the caller still owns @qp.
 */
must_check int rr_ep_create(struct rpcrdma_engine *e, struct rpcrdma_engine *here, struct rr_dev *dev,
			    struct rr_pd *pd, struct rr_qp *qp, const struct rr_ep_attr *attr,
			    struct rr_ep **ret);

/** rr_ep_destroy - destroys an endpoint that is drained or was never connected, and its queue pair
 * @here: the caller's engine */
void rr_ep_destroy(struct rr_ep *ep, struct rpcrdma_engine *here);

/** rr_ep_disconnect - starts the shutdown: dead (at the next poll, if it is not yet), then drained */
void rr_ep_disconnect(struct rr_ep *ep);

/** rr_ep_is_ending - has rr_ep_disconnect() been called, or is it dead? */
static inline bool rr_ep_is_ending(const struct rr_ep *ep)
{
	return ep->dead || ep->die_soon;
}

/** rr_ep_grow - grows to at most @msgs receives; fewer if memory or the limit does not allow them: see ep->msgs */
void rr_ep_grow(struct rr_ep *ep, unsigned msgs);

/** rr_ep_posted - returns the messages that may arrive before a receive is returned: its own receives at the
 * device, or those that the shared queue promised and it does not hold */
static inline unsigned rr_ep_posted(const struct rr_ep *ep)
{
	return ep->shared ? ep->nrecvs - MIN(ep->held, ep->nrecvs) : ep->posted;
}

/** rr_ep_take - takes a completed receive; first call of ops->recv
 * Return: the receive, with a message of ->len bytes in ->buf for ->ep; NULL: it has been returned to its queue (the
 * connection, if any, ends) */
struct rr_recv_ctx *rr_ep_take(struct rr_done *done, const struct rr_wc *wc);

/** rr_ep_repost - returns a receive buffer to the device */
void rr_ep_repost(struct rr_recv_ctx *rc);

/** rr_ep_repost_packed - rr_ep_repost(), but first tries to exchange its buffer for one in a fuller segment */
void rr_ep_repost_packed(struct rr_recv_ctx *rc);

/** rr_ep_retire - frees a receive buffer instead: one receive less */
void rr_ep_retire(struct rr_recv_ctx *rc);

/** rr_msg_sge - returns the SGE of the first @len bytes of a message buffer */
static inline struct rr_sge rr_msg_sge(const struct rpcrdma_buf *buf, const struct rr_dev *dev, size_t len)
{
	return (struct rr_sge){ .addr = buf->addr, .len = (uint32_t)len, .mr = rr_buf_mr(buf, dev) };
}

/** rr_ep_post - sends a chain; @post->fn runs once, never inside this call, also on a dead endpoint
 * Sets the done pointers, and signals only the last request.
 */
void rr_ep_post(struct rr_ep *ep, struct rr_post *post);

/** rr_ep_unpost - cancels a waiting chain; its fn will not run
 * Return: false: the device already has it and fn will run */
bool rr_ep_unpost(struct rr_ep *ep, struct rr_post *post);

/* For ep_shared.c: allocate a receive of @ep, or from the pool if that is NULL; free it. */
must_check int rr_recv_get(struct rpcrdma_engine *e, struct rr_ep *ep, uint32_t bytes, struct rr_recv_ctx **ret);
void rr_recv_put(struct rpcrdma_engine *e, struct rr_recv_ctx *rc);

/* ep_shared.c */

/** rr_shared_get - returns the shared receive queue of an engine's connections on @dev, creating it if necessary
 * @recv: rr_ep_ops.recv of all its endpoints
 *
 * Return: 0; -EOPNOTSUPP: the device does not support it, or the queue is for messages of another length;
 * -ENOMEM; -ENOBUFS: no memory for messages; errors of the device.
 */
must_check int rr_shared_get(struct rpcrdma_engine *e, struct rr_dev *dev, uint32_t recv_bytes,
			     void (*recv)(struct rr_done *done, const struct rr_wc *wc), struct rr_shared **ret);
/** rr_shared_fini - destroys those of an engine, after its last endpoint */
void rr_shared_fini(struct rpcrdma_engine *e);
/** rr_shared_promise - changes the number of receives promised to the endpoints of @s by @n; any thread */
void rr_shared_promise(struct rr_shared *s, int n);
struct rr_srq *rr_shared_srq(const struct rr_shared *s);
void rr_shared_put(struct rr_recv_ctx *rc);
/* Sets rc->ep; false: the message has no endpoint. */
bool rr_shared_take(struct rr_recv_ctx *rc, const struct rr_wc *wc);

#endif
