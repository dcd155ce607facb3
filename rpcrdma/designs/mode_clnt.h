/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_clnt.h - a requester's link that has a mode: mode.h
 *
 *   mode_clnt.c  asked for, agreed    mode_put.c  fast-write, hybrid    mode_pull.c  read-read
 *
 * A link without one has l->mode == NULL, its calls have rc->mode == NULL, and none of this runs.
 */
#ifndef RR_MODE_CLNT_H
#define RR_MODE_CLNT_H

#include "clnt_rdma.h"
#include "mode.h"
#include "plan.h"

/* Work requests of one call's own chain: RDMA Reads or Writes, and a Send. */
#define RR_MODE_WRS 32u
/* Reads that a responder may be asked for at once. */
#define RR_MODE_READS 16u

/* How a call's arguments go. */
enum rr_how {
	RR_HOW_PLAIN,
	RR_HOW_SLOT,  /* written into a slot, and the call with them */
	RR_HOW_WANT,  /* room was asked for: no answer yet, or the question is still being sent, or what the
	               * call takes besides is waited for */
	RR_HOW_ROOM,  /* written into room that was given */
};

struct rr_mode_call {
	struct rr_rcall *rc;
	enum rr_how how;
	bool refused;              /* WANT: it was, and is not to be asked for again */
	bool sent, answered;       /* WANT */
	bool busy;                 /* chain: a pull is under way, or waits for a send buffer */
	unsigned slot;
	uint32_t bytes;            /* WANT: asked for */
	struct rr_segment there;   /* SLOT, ROOM: what the call's Read chunk says */
	struct list link;          /* mode->pulls, resumes */
	struct rr_recv_ctx *recv;  /* a pull: the reply, kept */

	struct rr_send_ctx *sc;    /* of the chain's Send, where that is not the call's */
	struct rr_post post;
	unsigned n;
	struct rr_wr wr[RR_MODE_WRS];
	struct rr_sge sge[RR_MODE_WRS];
};

struct rr_mode_clnt {
	struct rr_link *link;
	struct rr_suffix given;
	uint8_t *mem;              /* a copy of each slot, out of which it is written */
	size_t bytes;
	struct rr_mr *mr;
	bool heard;                /* something of the responder's: from then on its slots are there */
	uint64_t slots_busy, slots_gone; /* ... by calls; by calls that were given up: till their reply */
	uint32_t slot_xid[RR_SLOTS_MAX];
	struct list pulls;         /* wait for a send buffer */
	struct list resumes;       /* have room, and wait for registrations */
	struct rpcrdma_msg wake;   /* what a call that was given up had may do for those */
	bool wake_out;
	struct list lone_dones;    /* RDMA_DONE that is on its way, and no call's */
};

static inline enum rr_how rr_how(const struct rr_rcall *rc)
{
	return rc->mode ? rc->mode->how : RR_HOW_PLAIN;
}

/* Where a piece is for us: what the peer is told is our own address. */
static inline uint8_t *rr_piece_addr(const struct rr_reg_piece *p)
{
	return (uint8_t *)(uintptr_t)p->seg.offset;
}

/* Has it been answered with room (or none), and waits till others let go of registrations? */
static inline bool rr_mode_waits(const struct rr_rcall *rc)
{
	return rr_how(rc) == RR_HOW_WANT && list_is_linked(&rc->mode->link);
}

static inline bool rr_mode_is_busy(const struct rr_rcall *rc)
{
	return rc->mode && rc->mode->busy;
}

/* mode_clnt.c */

/** rr_mode_ask - the suffix behind the private data at @to; Return: its bytes, 0 when nothing is asked */
size_t rr_mode_ask(const struct rpcrdma_clnt *c, uint8_t *to);

/** rr_mode_agree - what the responder says to it
 * Return: 0, also when nothing was asked; -errno: the link has failed, with the reason */
must_check int rr_mode_agree(struct rr_link *l, const void *priv, size_t len);
void rr_mode_clnt_free(struct rr_link *l);

/** rr_mode_call_init - of a call of a link that has a mode; Return: 0, -ENOMEM */
must_check int rr_mode_call_init(struct rr_rcall *rc);

/** rr_mode_cancel - its caller gives @rc up
 * @no_reply: in: none is to be expected; set when the call itself has not left
 *
 * Return: must the connection end before its memory is free? */
bool rr_mode_cancel(struct rr_rcall *rc, bool *no_reply);

/** rr_mode_detach - @rc's call is over */
void rr_mode_detach(struct rr_rcall *rc);

/** rr_mode_go_on - a send buffer or registrations may be free again */
void rr_mode_go_on(struct rr_mode_clnt *m);

/** rr_mode_stray - a reply to nobody: what it holds goes back */
void rr_mode_stray(struct rr_link *l, uint32_t xid, bool offers);

/** rr_mode_listen - a message, before anything else looks at it; Return: was that all? */
bool rr_mode_listen(struct rr_link *l, struct rr_recv_ctx *recv);

/* mode_put.c */

/** rr_mode_choose - by which way the arguments of @rc go */
void rr_mode_choose(struct rr_rcall *rc, const struct rr_plan_call *p, const struct rr_stream *s);

/** rr_mode_want - build the question for @bytes of room; Return: its length */
size_t rr_mode_want(struct rr_rcall *rc, uint8_t *buf, uint32_t bytes);

/** rr_mode_sent - the Send of @rc has completed; Return: is its buffer kept? */
bool rr_mode_sent(struct rr_rcall *rc, enum rr_wc_status status);

/** rr_mode_answered - the question of @rc has been answered */
void rr_mode_answered(struct rr_rcall *rc, const struct rr_segment *room);

/** rr_mode_resume - whoever has room and waits tries again */
void rr_mode_resume(struct rr_mode_clnt *m);

/** rr_mode_slot_mem - where the payload of a fast write is put */
uint8_t *rr_mode_slot_mem(const struct rr_rcall *rc);

/** rr_mode_post - the call stands in its send buffer, @len bytes: by slot or by room it goes */
void rr_mode_post(struct rr_rcall *rc, size_t len);

/* mode_pull.c */

/** rr_mode_pull - a reply to @rc came with a Read list: fetch what it names
 *
 * If @rc is busy then, rr_link_pulled() follows. If not, rc->verdict says what is wrong. */
void rr_mode_pull(struct rr_rcall *rc, struct rr_recv_ctx *recv, const struct rr_hdr *h, uint8_t *msg,
		  size_t msg_bytes);

void rr_mode_pulls_go(struct rr_mode_clnt *m);
void rr_mode_pulls_end(struct rr_mode_clnt *m);
void rr_mode_lone_dones_free(struct rr_mode_clnt *m);

/** rr_mode_done - build RDMA_DONE; Return: its length */
size_t rr_mode_done(uint8_t *buf, uint32_t xid, uint32_t credits);

/** rr_mode_send_done - what @xid was given is free; may end the link */
void rr_mode_send_done(struct rr_link *l, uint32_t xid);

#endif
