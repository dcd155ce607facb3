/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_rdma.h - the requester over a fabric: its links and what a call holds while it is out
 *
 *   clnt_rdma.c  links      clnt_rdma_send.c  calls out      clnt_rdma_reply.c  replies in
 *   clnt_rdma_bounce.c  memory of our own
 */
#ifndef RR_CLNT_RDMA_H
#define RR_CLNT_RDMA_H

#include "clnt_int.h"
#include "ep.h"
#include "hdr.h"
#include "reg.h"

struct rr_mode_clnt;
struct rr_mode_call;

/* One life of a connection, from dialling to the last completion. It may outlive its client, which
 * it then knows no more of. */
struct rr_link {
	struct rpcrdma_clnt *clnt;    /* NULL: nobody's any more */
	struct rpcrdma_engine *engine;
	struct rr_dev *dev;
	struct rr_cm *cm;
	struct rpcrdma_watch cm_watch;
	struct rr_qp *qp;             /* until it is the endpoint's */
	struct rr_ep *ep;
	struct rr_reg reg;

	bool trying;                  /* a first bind is out, and `up` waits for its end */
	bool again;                   /* it ends because of that: another one, without windows */
	struct rr_mr *trial_mr;
	uint8_t trial_mem[64];

	bool connected;               /* only then does the endpoint have to drain */
	bool ending;                  /* no more calls; end_msg or `drained` will follow */
	bool end_queued;
	int err;                      /* why it ends */
	char why[128];
	struct rpcrdma_msg end_msg;   /* frees a link outside its own callbacks */
	struct rpcrdma_timer drain_timer; /* not connected yet: of the next dial */
	unsigned dial_ms;             /* how long it waited for that; 0: it did not have to */

	struct list calls;            /* rr_rcall: out, or their Send is */
	struct list free_calls;
	uint8_t *scratch;             /* messages are encoded here before their form is known */
	size_t scratch_bytes;
	struct list bounces;          /* idle ones */
	unsigned mapped_bounces;      /* idle or not, that a server on this host maps */
	struct rr_mode_clnt *mode;    /* another way of moving data (mode.h), or NULL: nearly always */
};

/* Memory of our own that goes into a chunk in place of the caller's: long calls and replies, and
 * payload in too many pieces or where the strategy cannot register it. */
struct rr_bounce {
	struct list link;             /* link->bounces when idle */
	uint8_t *mem;
	size_t bytes;
	struct rr_reg_piece piece;
	bool given;                   /* a registration may be kept, but nobody else can map it */
	bool keeps;                   /* the piece is all of it, and lasts as long as the memory */
	bool offered;
};

/* Memory offered in one chunk. */
struct rr_offer {
	struct rr_reg_piece pieces[RR_REG_PIECES_MAX];
	unsigned n;
	struct rr_bounce *bounce;     /* instead of the pieces */
};

/* What a reply comes to: an error of its own, or where message and payload are. */
struct rr_verdict {
	int err;
	const char *why;
	bool drop;           /* the connection, too */
	uint8_t *msg;
	size_t msg_bytes;
	uint64_t placed;     /* payload bytes in the Write chunk, or read from the server */
	bool was_read;       /* the latter, and they belong at ... */
	uint32_t position;
	uint32_t credits;    /* granted with it */
};

#define RR_RCALL_WRS (2 * RR_REG_PIECES_MAX + 3u) /* binds of all it can offer, and its Send */

/* A call on a link. */
struct rr_rcall {
	struct list link;             /* link->calls or free_calls */
	struct rr_link *conn;
	struct rr_call *call;         /* NULL: answered or given up, but the Send is still out */
	struct rr_send_ctx *sc;       /* while the Send is out */
	struct rr_post post;
	struct rr_wr wr;
	struct rr_sge sge;
	struct rr_offer args, sink, message, reply;
	struct rr_reg_closing closing; /* it is answered, and its memory on its way out of reach: */
	struct rr_recv_ctx *recv;      /* the answer, which waits for that; else NULL */
	struct rr_verdict verdict;
	bool has_write, has_reply;
	struct rr_chunk write_chunk, reply_chunk; /* as offered */
	struct rr_mode_call *mode;     /* on a link that has one */
};

/* Every offer of a call. */
#define RR_RCALL_OFFERS(rc) { &(rc)->args, &(rc)->sink, &(rc)->message, &(rc)->reply }

/* ---- clnt_rdma.c ---------------------------------------------------------------------------- */

/** rr_link_fail - end the link; rr_clnt_down() follows, not from inside */
printf_like(3, 4) void rr_link_fail(struct rr_link *l, int err, const char *fmt, ...);

/** rr_link_of - the present one, or NULL */
static inline struct rr_link *rr_link_of(const struct rpcrdma_clnt *c)
{
	return c->xprt;
}

extern const struct rr_ep_ops rr_link_ep_ops;

/* ---- clnt_rdma_bounce.c --------------------------------------------------------------------- */

/** rr_bounce_get - memory of ours, at least @bytes; Return: 0, -ENOMEM, as the strategy says */
must_check int rr_bounce_get(struct rr_link *l, size_t bytes, struct rr_bounce **ret);

/** rr_bounce_put - the reverse; @message: it was for a message, not for payload */
void rr_bounce_put(struct rr_link *l, struct rr_bounce *b, bool message);

/** rr_bounce_destroy - on return nobody reaches it, but where it is part of an arena */
void rr_bounce_destroy(struct rr_link *l, struct rr_bounce *b);

/* ---- clnt_rdma_send.c ----------------------------------------------------------------------- */

must_check int rr_rcall_send(struct rpcrdma_clnt *c, struct rr_call *call);

/** rr_rcall_release - the call is answered: give all memory of @rc back
 * Return: false when some of it lost its pages meanwhile */
bool rr_rcall_release(struct rr_rcall *rc);

/** rr_rcall_recall - the call is given up: take all memory of @rc out of the peer's reach
 * Return: false when some stays within it unless rr_reg_revoke() and the end of the link follow */
bool rr_rcall_recall(struct rr_rcall *rc);

/** rr_rcall_taken_back - the peer has invalidated @key with its answer to @rc
 * Return: whether it might */
bool rr_rcall_taken_back(struct rr_rcall *rc, uint32_t key);

/** rr_rcall_answered - begin to bring the memory of @rc out of reach; rc->closing waits for it */
void rr_rcall_answered(struct rr_rcall *rc);

/** rr_rcall_unpost - take back a Send that waits in line; Return: false if it has left */
bool rr_rcall_unpost(struct rr_rcall *rc);

/** rr_rcall_resume - send the call of @rc, whose send buffer was used for something else first
 * Return: as rr_rcall_send(); on failure @rc is as it was, but for what it offered */
must_check int rr_rcall_resume(struct rr_rcall *rc);

/** rr_rcall_offer_sink - register the first @bytes of the caller's sink, or a bounce, as rc->sink */
must_check int rr_rcall_offer_sink(struct rr_rcall *rc, uint64_t bytes);

/** rr_rcall_withdraw - @rc offers nothing any more, as if it never had; nobody was told of it */
void rr_rcall_withdraw(struct rr_rcall *rc);

/** rr_rcall_detach - @rc's call is over: it is recycled as soon as its Send is */
void rr_rcall_detach(struct rr_rcall *rc);

/** rr_rcall_free_all - of a link that is at its end */
void rr_rcall_free_all(struct rr_link *l);

/* ---- clnt_rdma_reply.c ---------------------------------------------------------------------- */

/** rr_rcall_finish - the memory of an answered call is out of reach */
void rr_rcall_finish(struct rr_reg_closing *closing);

void rr_link_recv(struct rr_ep *ep, struct rr_recv_ctx *rc, const struct rr_wc *wc);

/** rr_link_pulled - the payload that a reply told of is in the sink; @status not OK: never will be */
void rr_link_pulled(struct rr_rcall *rc, struct rr_recv_ctx *recv, enum rr_wc_status status);

#endif
