/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_tcp.h - the responder over TCP: record marking behind the same pull, place and reply
 *
 *   srv_tcp.c  listen, accept, end      srv_tcp_in.c  records in, pull      srv_tcp_out.c  answers
 */
#ifndef RR_SRV_TCP_H
#define RR_SRV_TCP_H

#include "srv_int.h"

#define RR_TCP_LAST 0x80000000u /* last fragment of a record (RFC 5531 section 11) */
#define RR_TCP_STAGE 4096u      /* bytes read ahead of the parser */
#define RR_TCP_WHOLE 8192u      /* records up to this are read whole before the service sees them */
#define RR_TCP_HEAD 1024u       /* of a longer one, this much: the payload stays in the socket */
#define RR_TCP_REPLY 8192u      /* replies up to this are made in memory of the request */
#define RR_TCP_REQS_FREE 8u     /* requests of a connection that its client is not charged for */

enum rr_treq_in {
	RR_TREQ_READING, /* so many bytes of the record are wanted in msg */
	RR_TREQ_SERVED,  /* with the service; what is left of the record is pulled or skipped */
	RR_TREQ_THROUGH, /* the record is used up */
};

struct rr_treq {
	struct rr_req base;
	/* in */
	enum rr_treq_in in;
	bool skipping;         /* the request is over, the rest of its record is not */
	uint8_t *msg;          /* up to RR_TCP_WHOLE bytes, or those of call_buf */
	size_t msg_cap, msg_len, msg_want;
	struct rpcrdma_buf *call_buf; /* a longer record that the service wants whole */
	size_t total;          /* bytes of the record's fragments so far, this one's included */
	size_t left;           /* of them not read yet, all of this fragment */
	bool last_fragment;
	struct rpcrdma_buf_waiter waiter; /* for call_buf or reply_buf: no reply is made before the call is whole */
	bool waits;            /* for call_buf */
	struct rpcrdma_piece *pulls, **pulls_tail;
	size_t pull_at;        /* bytes of the first pull that are there */
	uint32_t pull_next;    /* where in the payload the next pull must begin */
	struct rpcrdma_msg pull_msg; /* all is in msg: pulls are done at the next poll */
	/* out */
	struct rpcrdma_piece *placed; /* by offset */
	struct rr_answer answer; /* while it waits for reply_buf */
	uint8_t *out;          /* up to RR_TCP_REPLY bytes */
	size_t out_cap;
	struct rpcrdma_buf *reply_buf; /* a longer head of the reply */
	size_t head_want;      /* the size asked for it; 0: none was */
	struct iovec *iov;
	unsigned iov_cap, iovcnt, iov_at;
	struct list send_link; /* conn->sendq */
	struct rpcrdma_msg end_msg;
};

struct rr_tconn {
	struct rpcrdma_conn base;
	struct rpcrdma_watch watch;
	uint32_t events;       /* what is watched for */
	uint8_t mark[4];
	unsigned mark_len;
	uint8_t stage[RR_TCP_STAGE];
	size_t stage_at, stage_len;
	struct rr_treq *in;    /* the record being read or pulled from */
	uint64_t calls;        /* handed to the service */
	unsigned nreqs;        /* requests there are, in use or not */
	unsigned most;         /* in use at once since the last tick */
	bool short_of;         /* nothing is read before a request comes back */
	struct list sendq;
	struct rpcrdma_msg pump_msg;
	bool pump_out;         /* pump_msg is deferred */
	bool eof;
};

static inline struct rr_tconn *rr_tconn_of(const struct rpcrdma_conn *c)
{
	return container_of((struct rpcrdma_conn *)(uintptr_t)c, struct rr_tconn, base);
}

static inline struct rr_treq *rr_treq_of(const struct rr_req *r)
{
	return container_of((struct rr_req *)(uintptr_t)r, struct rr_treq, base);
}

/* srv_tcp.c */
/** rr_tconn_die - the connection is over; what is under way ends with -EIO */
void rr_tconn_die(struct rr_tconn *c);
/** rr_tconn_interest - watch for what is wanted now */
void rr_tconn_interest(struct rr_tconn *c);

/* srv_tcp_in.c */
/** rr_tconn_pump - read and parse as far as possible; runs on input, and when a request moved on */
void rr_tconn_pump(struct rr_tconn *c);
/** rr_tconn_kick - have that done at the next poll */
void rr_tconn_kick(struct rr_tconn *c);
/** rr_tconn_wants_input - is there anything to do with more bytes? */
bool rr_tconn_wants_input(const struct rr_tconn *c);
/** rr_treq_free - the request's memory goes, and what its client was charged for it */
void rr_treq_free(struct rr_tconn *c, struct rr_treq *t);
/** rr_tconn_tick - requests that were not needed for a while go */
void rr_tconn_tick(struct rpcrdma_conn *base);
/** rr_treq_release - recycle a request that nobody has any business with */
void rr_treq_release(struct rr_treq *t);
int rr_tcp_decode(struct rr_req *r, xdrproc_t decode, void *args);
int rr_tcp_pull(struct rr_req *r, struct rpcrdma_piece *p);

/* srv_tcp_out.c */
bool rr_tcp_by_chunk(const struct rr_req *r);
uint32_t rr_tcp_room(const struct rr_req *r);
int rr_tcp_sink(struct rr_req *r, uint32_t off, uint32_t len, struct iovec *iov, int *cnt);
int rr_tcp_place(struct rr_req *r, struct rpcrdma_piece *p);
void rr_tcp_answer(struct rr_req *r, const struct rr_answer *a);
void rr_tcp_flush(struct rr_tconn *c);
/** rr_treq_end - its answer is out, or will never be: the service's done comes at the next poll */
void rr_treq_end(struct rr_treq *t);

#endif
