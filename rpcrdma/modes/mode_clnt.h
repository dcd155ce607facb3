/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_clnt.h - a requester's link with a mode: mode.h
 *
 *   mode_clnt.c  negotiation    mode_put.c  fast-write, hybrid    mode_pull.c  read-read
 *
 * clnt_mode_ops.h is the interface; rr_mode_requester (mode.h) and its table of functions are in mode_clnt.c.
 */
#ifndef RR_MODE_CLNT_H
#define RR_MODE_CLNT_H

#include "clnt_rdma.h"
#include "mode.h"

/* Work requests in a call's own chain: RDMA Reads or Writes, and a Send. */
#define RR_MODE_WRS 32u
/* RDMA Reads that may be outstanding at the responder. */
#define RR_MODE_READS 16u

/* RR_HOW_COPIED: written into a slot, together with the call. RR_HOW_LATER: RR_WANT comes first; it is not sent yet,
 * its reply is outstanding, or the call waits for registrations. RR_HOW_PUT: written into the announced buffer. */
struct rr_mode_call {
	struct rr_call_mode head; /* busy: a pull is in progress, or waits for a send buffer */
	struct rr_rcall *rc;
	bool refused;              /* WANT: the responder refused, do not ask again */
	bool sent, granted;       /* WANT */
	unsigned slot;
	uint32_t bytes;            /* WANT: requested size */
	struct list link;          /* mode->pulls, resumes */
	struct rr_recv_ctx *recv;  /* pull: the reply, kept */

	struct rpcrdma_buf *send_buf; /* of the chain's Send, if that is not the call's */
	struct rr_post post;
	unsigned n;
	struct rr_wr wr[RR_MODE_WRS];
};

struct rr_mode_clnt {
	struct rr_clnt_mode head;
	struct rr_link *link;
	struct rr_suffix given;
	struct rr_extent slots;    /* local copies of the slots, source of the Writes */
	struct rr_mr *mr;
	bool slots_usable;         /* the responder has sent a message: its slots can be used */
	uint64_t slots_busy, slots_gone; /* slots in use by calls; by cancelled calls, until their reply */
	uint32_t slot_xid[RR_SLOTS_MAX];
	struct list pulls;         /* calls that wait for a send buffer */
	struct list resumes;       /* calls that have a buffer and wait for registrations */
	struct rpcrdma_msg wake;   /* after a cancel: resumes those lists */
	bool wake_out;
	struct list lone_dones;    /* RDMA_DONE in flight that belong to no call */
};

/** rr_mode_of_link - returns the mode of a link that has one */
static inline struct rr_mode_clnt *rr_mode_of_link(const struct rr_link *l)
{
	return container_of(l->mode, struct rr_mode_clnt, head);
}

/** rr_mode_of_call - returns the mode's state of a call of such a link */
static inline struct rr_mode_call *rr_mode_of_call(const struct rr_rcall *rc)
{
	return container_of(rc->mode, struct rr_mode_call, head);
}

/* Local address of a segment: the offset that the peer gets is our own address. */
static inline uint8_t *rr_reg_seg_addr(const struct rr_reg_seg *p)
{
	return (uint8_t *)(uintptr_t)p->seg.offset;
}

/* mode_clnt.c */

/** rr_mode_go_on - rr_clnt_mode_ops.go_on: posts waiting pulls, and resumes waiting calls */
void rr_mode_go_on(struct rr_link *l);

/* mode_put.c */

/** rr_mode_choose, rr_mode_post, rr_mode_sent - as in rr_clnt_mode_ops */
size_t rr_mode_choose(struct rr_rcall *rc, const struct rr_plan_call *p, const struct rr_stream *s);
void rr_mode_post(struct rr_rcall *rc, size_t len);
bool rr_mode_sent(struct rr_rcall *rc, enum rr_wc_status status);

/** rr_mode_granted - RR_GRANT for @rc has arrived */
void rr_mode_granted(struct rr_rcall *rc, const struct rr_segment *room);

/** rr_mode_resume - retries calls that have a buffer and wait for registrations */
void rr_mode_resume(struct rr_mode_clnt *m);

/* mode_pull.c */

/** rr_mode_pull - rr_clnt_mode_ops.pull: reads the payload named by the Read list of a reply to @rc */
void rr_mode_pull(struct rr_rcall *rc, struct rr_recv_ctx *recv, const struct rr_hdr *h, uint8_t *msg,
		  size_t msg_bytes);

/** rr_mode_pulls_go - posts waiting pulls while there are message buffers */
void rr_mode_pulls_go(struct rr_mode_clnt *m);

/** rr_mode_pulls_end - rr_clnt_mode_ops.dead: ends waiting pulls with their receives */
void rr_mode_pulls_end(struct rr_link *l);

/** rr_mode_lone_dones_free - frees the RDMA_DONE messages without a completion, at the end of the link */
void rr_mode_lone_dones_free(struct rr_mode_clnt *m);

/** rr_mode_send_done - sends RDMA_DONE: the memory for @xid is free; may end the link */
void rr_mode_send_done(struct rr_link *l, uint32_t xid);

#endif
