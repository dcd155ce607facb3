/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_clnt.h - a requester's link with a mode: mode.h
 *
 *   mode_clnt.c  negotiation    mode_put.c  fast-write, hybrid    mode_pull.c  read-read
 *
 * Without a mode l->mode and each rc->mode are NULL, and none of this code runs.
 */
#ifndef RR_MODE_CLNT_H
#define RR_MODE_CLNT_H

#include "clnt_rdma.h"
#include "mode.h"
#include "plan.h"

/* Work requests in a call's own chain: RDMA Reads or Writes, and a Send. */
#define RR_MODE_WRS 32u
/* RDMA Reads that may be outstanding at the responder. */
#define RR_MODE_READS 16u

/* How a call sends its arguments. */
enum rr_how {
	RR_HOW_PLAIN,
	RR_HOW_SLOT,  /* written into a slot, together with the call */
	RR_HOW_WANT,  /* RR_WANT comes first: it is not sent yet, its reply is outstanding, or the call waits
	               * for registrations */
	RR_HOW_ROOM,  /* written into the announced buffer */
};

struct rr_mode_call {
	struct rr_rcall *rc;
	enum rr_how how;
	bool refused;              /* WANT: the responder refused, do not ask again */
	bool sent, answered;       /* WANT */
	bool busy;                 /* chain: a pull is in progress, or waits for a send buffer */
	unsigned slot;
	uint32_t bytes;            /* WANT: requested size */
	struct rr_segment there;   /* SLOT, ROOM: segment in the call's Read chunk */
	struct list link;          /* mode->pulls, resumes */
	struct rr_recv_ctx *recv;  /* pull: the reply, kept */

	struct rr_send_ctx *sc;    /* of the chain's Send, if that is not the call's */
	struct rr_post post;
	unsigned n;
	struct rr_wr wr[RR_MODE_WRS];
	struct rr_sge sge[RR_MODE_WRS];
};

struct rr_mode_clnt {
	struct rr_link *link;
	struct rr_suffix given;
	uint8_t *mem;              /* local copies of the slots, source of the Writes */
	size_t bytes;
	struct rr_mr *mr;
	bool heard;                /* the responder has sent a message: its slots can be used */
	uint64_t slots_busy, slots_gone; /* slots in use by calls; by cancelled calls, until their reply */
	uint32_t slot_xid[RR_SLOTS_MAX];
	struct list pulls;         /* calls that wait for a send buffer */
	struct list resumes;       /* calls that have a buffer and wait for registrations */
	struct rpcrdma_msg wake;   /* after a cancel: resumes those lists */
	bool wake_out;
	struct list lone_dones;    /* RDMA_DONE in flight that belong to no call */
};

static inline enum rr_how rr_how(const struct rr_rcall *rc)
{
	return rc->mode ? rc->mode->how : RR_HOW_PLAIN;
}

/* Local address of a piece: the offset told to the peer is our own address. */
static inline uint8_t *rr_piece_addr(const struct rr_reg_piece *p)
{
	return (uint8_t *)(uintptr_t)p->seg.offset;
}

/* True if RR_GRANT has arrived and the call waits for registrations of other calls. */
static inline bool rr_mode_waits(const struct rr_rcall *rc)
{
	return rr_how(rc) == RR_HOW_WANT && list_is_linked(&rc->mode->link);
}

static inline bool rr_mode_is_busy(const struct rr_rcall *rc)
{
	return rc->mode && rc->mode->busy;
}

/* mode_clnt.c */

/** rr_mode_ask - writes the suffix behind the private data to @to; Return: its size, 0 without modes */
size_t rr_mode_ask(const struct rpcrdma_clnt *c, uint8_t *to);

/** rr_mode_agree - checks the responder's suffix
 * Return: 0, also if no mode was requested; -errno: the link has failed, with the reason */
must_check int rr_mode_agree(struct rr_link *l, const void *priv, size_t len);
void rr_mode_clnt_free(struct rr_link *l);

/** rr_mode_call_init - initialises a call of a link with a mode; Return: 0, -ENOMEM */
must_check int rr_mode_call_init(struct rr_rcall *rc);

/** rr_mode_cancel - cancels @rc
 * @no_reply: in: no reply is expected; set if the call itself has not been sent
 *
 * Return: true if the connection must end before the call's memory is free */
bool rr_mode_cancel(struct rr_rcall *rc, bool *no_reply);

/** rr_mode_detach - releases what @rc holds after its call has ended */
void rr_mode_detach(struct rr_rcall *rc);

/** rr_mode_go_on - continues waiting calls when a send buffer or registrations may be free */
void rr_mode_go_on(struct rr_mode_clnt *m);

/** rr_mode_stray - handles a reply without a call: releases the responder's memory for it */
void rr_mode_stray(struct rr_link *l, uint32_t xid, bool offers);

/** rr_mode_listen - handles a message before other code; Return: true if it is consumed */
bool rr_mode_listen(struct rr_link *l, struct rr_recv_ctx *recv);

/* mode_put.c */

/** rr_mode_choose - selects how the arguments of @rc are sent */
void rr_mode_choose(struct rr_rcall *rc, const struct rr_plan_call *p, const struct rr_stream *s);

/** rr_mode_want - builds RR_WANT for @bytes; Return: its length */
size_t rr_mode_want(struct rr_rcall *rc, uint8_t *buf, uint32_t bytes);

/** rr_mode_sent - the Send of @rc has completed; Return: true if its buffer is kept */
bool rr_mode_sent(struct rr_rcall *rc, enum rr_wc_status status);

/** rr_mode_answered - RR_GRANT for @rc has arrived */
void rr_mode_answered(struct rr_rcall *rc, const struct rr_segment *room);

/** rr_mode_resume - retries calls that have a buffer and wait for registrations */
void rr_mode_resume(struct rr_mode_clnt *m);

/** rr_mode_slot_mem - returns the address for the payload of a fast write */
uint8_t *rr_mode_slot_mem(const struct rr_rcall *rc);

/** rr_mode_post - posts the call in the send buffer, @len bytes, by slot or by announced buffer */
void rr_mode_post(struct rr_rcall *rc, size_t len);

/* mode_pull.c */

/** rr_mode_pull - starts to read the payload named by the Read list of a reply to @rc
 *
 * If @rc is busy afterwards, rr_link_pulled() follows. Otherwise rc->verdict contains the error. */
void rr_mode_pull(struct rr_rcall *rc, struct rr_recv_ctx *recv, const struct rr_hdr *h, uint8_t *msg,
		  size_t msg_bytes);

/** rr_mode_pulls_go - posts waiting pulls while the endpoint has send contexts */
void rr_mode_pulls_go(struct rr_mode_clnt *m);

/** rr_mode_pulls_end - ends waiting pulls with their receives, when the connection is dead */
void rr_mode_pulls_end(struct rr_mode_clnt *m);

/** rr_mode_lone_dones_free - frees the RDMA_DONE messages without a completion, at the end of the link */
void rr_mode_lone_dones_free(struct rr_mode_clnt *m);

/** rr_mode_done - builds RDMA_DONE; Return: its length */
size_t rr_mode_done(uint8_t *buf, uint32_t xid, uint32_t credits);

/** rr_mode_send_done - sends RDMA_DONE: the memory for @xid is free; may end the link */
void rr_mode_send_done(struct rr_link *l, uint32_t xid);

#endif
