/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_rdma.h - the requester over a fabric: its links and the resources of a sent call
 *
 *   clnt_rdma.c  links      clnt_rdma_send.c  sending calls      clnt_rdma_reply.c  receiving replies
 *   clnt_rdma_bufs.c  message buffers
 */
#ifndef RR_CLNT_RDMA_H
#define RR_CLNT_RDMA_H

#include "clnt_mode_ops.h"
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
	struct rr_reg *reg;

	bool connected;               /* only then does the endpoint have to drain */
	bool ending;                  /* no more calls; `drained` will follow or, if it was not connected, end_msg */
	int err;                      /* error of the end */
	char why[128];
	struct rpcrdma_msg end_msg;   /* frees a link outside its own callbacks */
	struct rpcrdma_timer drain_timer; /* before the connection: of the next dial */
	unsigned dial_ms;             /* last wait before a dial; 0: did not have to wait */

	struct list calls;            /* rr_rcall: in progress, or with a Send in flight */
	struct list free_calls;
	struct rr_encode_buf scratch; /* messages are encoded here before their form is known */
	uint32_t msg_bytes;           /* size of message buffers */
	unsigned nmsgs;               /* their number */
	struct rr_buf *free_msgs;
	struct list msg_mems;
	struct rr_clnt_mode *mode; /* another way of moving data, or NULL: nearly always */
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

#define RR_RCALL_OFFERS 5u
#define RR_RCALL_WRS (4 * RR_REG_SEGS_MAX + 2u) /* binds of all its offers, and its Send; `message` has one segment */

/* A call on a link. */
struct rr_rcall {
	struct list link;             /* link->calls or free_calls */
	struct rr_link *conn;
	struct rr_call *call;         /* NULL: finished or given up, but the Send is in flight. GONE: its room is in use */
	struct rpcrdma_buf *send_buf; /* while the Send is in flight */
	struct rr_post post;
	struct rr_wr wr;
	union {
		struct {
			struct rr_offer args, sink, message, ready, reply; /* ready: the call's, after `message` */
		};
		struct rr_offer offers[RR_RCALL_OFFERS]; /* all of them */
	};
	struct rr_closing closing; /* it has a reply, and invalidations of its memory are pending: */
	struct rr_recv_ctx *recv;      /* the reply, which waits for them; else NULL */
	struct rr_verdict verdict;
	bool has_write, has_reply;
	struct rr_chunk write_chunk, reply_chunk; /* as offered */
	struct rr_call_mode *mode; /* on a link with a mode */
};

/** rr_how - returns how the arguments of a call travel */
static inline enum rr_how rr_how(const struct rr_rcall *rc)
{
	return rc->mode ? rc->mode->how : RR_HOW_PLAIN;
}

/** rr_rcall_is_busy - true while work requests of a mode use the memory of a call */
static inline bool rr_rcall_is_busy(const struct rr_rcall *rc)
{
	return rc->mode && rc->mode->busy;
}

/** rr_rcall_is_late - true if the call was given up, and only its reply or the end of the link end it */
static inline bool rr_rcall_is_late(const struct rr_rcall *rc)
{
	return rc->call && rc->call->state == RR_CALL_GONE;
}

/** rr_rcall_reply_mem - returns the memory of the Reply chunk of @rc */
static inline uint8_t *rr_rcall_reply_mem(const struct rr_rcall *rc)
{
	return rc->reply.mem ? rc->reply.mem : rc->call->room->mem;
}

/* ---- clnt_rdma.c ---------------------------------------------------------------------------- */

/** rr_link_fail - ends the link; rr_clnt_down() follows, not inside this call */
printf_like(3, 4) void rr_link_fail(struct rr_link *l, int err, const char *fmt, ...);

/** rr_link_of - returns the current link, or NULL */
static inline struct rr_link *rr_link_of(const struct rpcrdma_clnt *c)
{
	return c->xprt;
}

/* ---- clnt_rdma_bufs.c ----------------------------------------------------------------------- */

/** rr_link_msgs_grow - allocates message buffers for @recvs receives, and as many Sends, if there are fewer
 * Return: 0, -ENOMEM, errors of the device */
must_check int rr_link_msgs_grow(struct rr_link *l, unsigned recvs);

/** rr_link_msg_get - takes a message buffer; there is always one for a caller that respects credits
 * Return: 0; -ENOBUFS: a completion of a Send will return one */
must_check int rr_link_msg_get(struct rr_link *l, struct rpcrdma_buf **ret);
void rr_link_msg_put(struct rr_link *l, struct rpcrdma_buf *buf);

/** rr_link_msgs_free - frees all message buffers; call after the endpoint is destroyed */
void rr_link_msgs_free(struct rr_link *l);

/* ---- clnt_rdma_send.c ----------------------------------------------------------------------- */

/** rr_rcall_send - rr_clnt_ops.send
 * @c: connected
 * @call: waiting; on success call->xprt is its struct rr_rcall
 *
 * Return: 0; -ENOTCONN; -ENOBUFS: the next completion or reply resumes it; permanent errors: -EMSGSIZE, -EINVAL,
 * -ENOMEM, -EFAULT, errors of registration.
 */
must_check int rr_rcall_send(struct rpcrdma_clnt *c, struct rr_call *call);

/** rr_rcall_unpost - cancels a Send that waits in the queue; Return: false: it is already posted */
bool rr_rcall_unpost(struct rr_rcall *rc);

/** rr_rcall_resume - sends the call of @rc after another use of its send buffer
 * Return: as rr_rcall_send(); on failure @rc is unchanged, except for its offers */
must_check int rr_rcall_resume(struct rr_rcall *rc);

/** rr_rcall_offer_sink - offers the first @bytes of the caller's sink as rc->sink; @wait as in rr_reg_offer() */
must_check int rr_rcall_offer_sink(struct rr_rcall *rc, uint64_t bytes, bool wait);

/** rr_rcall_withdraw - frees the offers of @rc, which the peer does not know of or no longer has access to */
void rr_rcall_withdraw(struct rr_rcall *rc);

/** rr_rcall_detach - detaches @rc from its finished call, and withdraws its offers; recycles it when its Send has
 * completed */
void rr_rcall_detach(struct rr_rcall *rc);

/** rr_rcall_free_all - frees all calls of a link at its end; their offers have ended */
void rr_rcall_free_all(struct rr_link *l);

/* ---- clnt_rdma_reply.c ---------------------------------------------------------------------- */

/** rr_rcall_finish - finishes a call after its reply, once the peer cannot access its memory any more */
void rr_rcall_finish(struct rr_closing *closing);

/** rr_link_recv - rr_ep_ops.recv of a requester: processes a reply */
void rr_link_recv(struct rr_done *done, const struct rr_wc *wc);

/** rr_link_pulled - the payload announced by a reply is in the sink; @status not OK: reading it failed */
void rr_link_pulled(struct rr_rcall *rc, struct rr_recv_ctx *recv, enum rr_wc_status status);

#endif
