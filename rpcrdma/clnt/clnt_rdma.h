/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_rdma.h - the requester over a fabric: its links and the resources of a sent call
 *
 *   clnt_rdma.c  links      clnt_rdma_send.c  sending calls      clnt_rdma_reply.c  receiving replies
 *   clnt_rdma_bounce.c  bounce buffers
 */
#ifndef RR_CLNT_RDMA_H
#define RR_CLNT_RDMA_H

#include "clnt_design.h"
#include "clnt_int.h"
#include "ep.h"
#include "hdr.h"
#include "reg.h"

/* One connection, from dialling to the last completion. It may outlive its client; then it has no reference to it. */
struct rr_link {
	struct rpcrdma_clnt *clnt;    /* NULL: the client is destroyed */
	struct rpcrdma_engine *engine;
	struct rr_dev *dev;
	struct rr_cm *cm;
	struct rpcrdma_watch cm_watch;
	struct rr_qp *qp;             /* until the endpoint owns it */
	struct rr_ep *ep;
	struct rr_reg reg;

	bool trying;                  /* a first bind is posted, and `up` waits for its completion */
	bool again;                   /* it ends because that failed: connect again, without windows */
	struct rr_mr *trial_mr;
	uint8_t trial_mem[64];

	bool connected;               /* only then does the endpoint have to drain */
	bool ending;                  /* no more calls; end_msg or `drained` will follow */
	bool end_queued;
	int err;                      /* error of the end */
	char why[128];
	struct rpcrdma_msg end_msg;   /* frees a link outside its own callbacks */
	struct rpcrdma_timer drain_timer; /* before the connection: of the next dial */
	unsigned dial_ms;             /* last wait before a dial; 0: did not have to wait */

	struct list calls;            /* rr_rcall: in progress, or with a Send in flight */
	struct list free_calls;
	uint8_t *scratch;             /* messages are encoded here before their form is known */
	size_t scratch_bytes;
	struct list bounces;          /* idle ones */
	unsigned mapped_bounces;      /* idle or not, mappable by a server on this host */
	struct rr_clnt_design *design; /* another way of moving data, or NULL: nearly always */
};

/* Bounce buffer: memory of the link that a chunk uses instead of the caller's. For long calls and replies, and
 * for payload in too many segments or that the strategy cannot register. */
struct rr_bounce {
	struct list link;             /* link->bounces when idle */
	uint8_t *mem;
	size_t bytes;
	struct rr_reg_seg rseg;
	bool given;                   /* may stay registered, but a server on this host cannot map it */
	bool keeps;                   /* the segment covers all of it, and lives as long as the memory */
	bool offered;
};

/* Memory offered in one chunk. */
struct rr_offer {
	struct rr_reg_seg segs[RR_REG_SEGS_MAX];
	unsigned n;
	struct rr_bounce *bounce;     /* instead of the segments */
};

/* Result of a reply: an error, or the location of message and payload. */
struct rr_verdict {
	int err;
	const char *why;
	bool drop;           /* end the connection, too */
	uint8_t *msg;
	size_t msg_bytes;
	uint64_t placed;     /* payload bytes in the Write chunk, or read from the server */
	bool was_read;       /* read from the server; they belong at ... */
	uint32_t position;
	uint32_t credits;    /* granted with it */
};

#define RR_RCALL_WRS (2 * RR_REG_SEGS_MAX + 3u) /* binds of all its offers, and its Send */

/* A call on a link. */
struct rr_rcall {
	struct list link;             /* link->calls or free_calls */
	struct rr_link *conn;
	struct rr_call *call;         /* NULL: finished or given up, but the Send is in flight */
	struct rr_send_ctx *sc;       /* while the Send is in flight */
	struct rr_post post;
	struct rr_wr wr;
	struct rr_sge sge;
	struct rr_offer args, sink, message, reply;
	struct rr_reg_closing closing; /* it has a reply, and invalidations of its memory are pending: */
	struct rr_recv_ctx *recv;      /* the reply, which waits for them; else NULL */
	struct rr_verdict verdict;
	bool has_write, has_reply;
	struct rr_chunk write_chunk, reply_chunk; /* as offered */
	struct rr_call_design *design; /* on a link with a design */
};

/** rr_how - returns how the arguments of a call travel */
static inline enum rr_how rr_how(const struct rr_rcall *rc)
{
	return rc->design ? rc->design->how : RR_HOW_PLAIN;
}

/** rr_rcall_is_busy - true while work requests of a design use the memory of a call */
static inline bool rr_rcall_is_busy(const struct rr_rcall *rc)
{
	return rc->design && rc->design->busy;
}

/* Every offer of a call. */
#define RR_RCALL_OFFERS(rc) { &(rc)->args, &(rc)->sink, &(rc)->message, &(rc)->reply }

/* ---- clnt_rdma.c ---------------------------------------------------------------------------- */

/** rr_link_fail - ends the link; rr_clnt_down() follows, not inside this call */
printf_like(3, 4) void rr_link_fail(struct rr_link *l, int err, const char *fmt, ...);

/** rr_link_of - returns the current link, or NULL */
static inline struct rr_link *rr_link_of(const struct rpcrdma_clnt *c)
{
	return c->xprt;
}

extern const struct rr_ep_ops rr_link_ep_ops;

/* ---- clnt_rdma_bounce.c --------------------------------------------------------------------- */

/** rr_bounce_get - returns a bounce buffer of at least @bytes; Return: 0, -ENOMEM, errors of the strategy */
must_check int rr_bounce_get(struct rr_link *l, size_t bytes, struct rr_bounce **ret);

/** rr_bounce_put - returns a bounce buffer; @message: it was used for a message, not for payload */
void rr_bounce_put(struct rr_link *l, struct rr_bounce *b, bool message);

/** rr_bounce_destroy - frees a bounce buffer; the peer cannot access it any more, unless it is part of an arena */
void rr_bounce_destroy(struct rr_link *l, struct rr_bounce *b);

/* ---- clnt_rdma_send.c ----------------------------------------------------------------------- */

/** rr_rcall_send - rr_clnt_ops.send
 * @c: connected
 * @call: waiting; on success call->xprt is its struct rr_rcall
 *
 * Return: 0; -ENOTCONN; -ENOBUFS: the next completion or reply resumes it; permanent errors: -EMSGSIZE, -EINVAL,
 * -ENOMEM, -EFAULT, errors of registration.
 */
must_check int rr_rcall_send(struct rpcrdma_clnt *c, struct rr_call *call);

/** rr_rcall_release - releases all memory of @rc after its reply
 * Return: false: some of it lost its pages meanwhile */
bool rr_rcall_release(struct rr_rcall *rc);

/** rr_rcall_recall - ends the peer's access to all memory of @rc, which is given up
 * Return: false: some stays accessible unless rr_reg_revoke() and the end of the link follow */
bool rr_rcall_recall(struct rr_rcall *rc);

/** rr_rcall_taken_back - handles the peer's invalidation of @key with its reply to @rc
 * Return: true: the peer was allowed to invalidate it */
bool rr_rcall_taken_back(struct rr_rcall *rc, uint32_t key);

/** rr_rcall_answered - starts to end the peer's access to the memory of @rc; rc->closing waits for it */
void rr_rcall_answered(struct rr_rcall *rc);

/** rr_rcall_unpost - cancels a Send that waits in the queue; Return: false: it is already posted */
bool rr_rcall_unpost(struct rr_rcall *rc);

/** rr_rcall_resume - sends the call of @rc after another use of its send buffer
 * Return: as rr_rcall_send(); on failure @rc is unchanged, except for its offers */
must_check int rr_rcall_resume(struct rr_rcall *rc);

/** rr_rcall_offer_sink - registers the first @bytes of the caller's sink, or a bounce buffer, as rc->sink */
must_check int rr_rcall_offer_sink(struct rr_rcall *rc, uint64_t bytes);

/** rr_rcall_withdraw - undoes the offers of @rc before the peer knows of them */
void rr_rcall_withdraw(struct rr_rcall *rc);

/** rr_rcall_detach - detaches @rc from its finished call; recycles it when its Send has completed */
void rr_rcall_detach(struct rr_rcall *rc);

/** rr_rcall_free_all - frees all calls of a link at its end */
void rr_rcall_free_all(struct rr_link *l);

/* ---- clnt_rdma_reply.c ---------------------------------------------------------------------- */

/** rr_rcall_finish - finishes a call after its reply, when the peer cannot access its memory any more */
void rr_rcall_finish(struct rr_reg_closing *closing);

/** rr_link_recv - rr_ep_ops.recv of a requester: processes a reply */
void rr_link_recv(struct rr_ep *ep, struct rr_recv_ctx *rc, const struct rr_wc *wc);

/** rr_link_pulled - the payload announced by a reply is in the sink; @status not OK: reading it failed */
void rr_link_pulled(struct rr_rcall *rc, struct rr_recv_ctx *recv, enum rr_wc_status status);

#endif
