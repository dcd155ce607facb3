/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_tcp.h - the responder over TCP: record marking with the same pull, place and reply
 *
 *   srv_tcp.c  listen, accept, close      srv_tcp_in.c  receive, pull      srv_tcp_out.c  reply
 */
#ifndef RR_SRV_TCP_H
#define RR_SRV_TCP_H

#include "srv_int.h"

#define RR_TCP_STAGE 4096u      /* bytes read ahead of the parser */
#define RR_TCP_WHOLE 8192u      /* records up to this size are read completely before the service gets them */
#define RR_TCP_HEAD 1024u       /* bytes read of a longer one; the payload stays in the socket */
#define RR_TCP_REPLY 8192u      /* replies up to this size are built in memory of the request */

enum rr_treq_in {
	RR_TREQ_READING, /* reading into msg until msg_want bytes are there */
	RR_TREQ_SERVED,  /* with the service; the rest of the record is pulled or skipped */
	RR_TREQ_THROUGH, /* the record is consumed */
};

struct rr_treq {
	struct rr_req base;
	/* in */
	enum rr_treq_in in;
	bool skipping;         /* the request has ended, but not its record */
	uint8_t *msg;          /* up to RR_TCP_WHOLE bytes, or the memory of call_buf */
	size_t msg_cap, msg_len, msg_want;
	bool all;              /* the service needs all of the record ... */
	struct rpcrdma_buf *call_buf; /* ... and it is longer */
	size_t total;          /* bytes of the record's fragments so far, including this one */
	size_t left;           /* bytes of this fragment that are not read yet */
	bool last_fragment;
	struct rpcrdma_buf_waiter waiter; /* for call_buf or reply_buf: the reply comes after the whole call */
	bool waits;            /* for call_buf */
	struct rpcrdma_xfer *pulls, **pulls_tail;
	size_t pull_at;        /* bytes of the first pull that have been read */
	uint32_t pull_next;    /* payload offset at which the next pull must begin */
	struct rpcrdma_msg pull_msg; /* payload is in msg already: pulls complete at the next poll */
	/* out */
	struct rr_reply reply; /* while it waits for reply_buf */
	uint8_t *out;          /* up to RR_TCP_REPLY bytes */
	size_t out_cap;
	struct rpcrdma_buf *reply_buf; /* for a longer head of the reply */
	size_t head_want;      /* size requested for it; 0: none */
	struct iovec *iov;
	unsigned iov_cap, iovcnt, iov_at;
	struct rpcrdma_msg end_msg;
};

struct rr_tconn {
	struct rpcrdma_conn base;
	struct rpcrdma_watch watch;
	uint32_t events;       /* epoll events that are watched */
	uint8_t mark[RR_MARK_BYTES];
	unsigned mark_len;
	uint8_t stage[RR_TCP_STAGE];
	size_t stage_at, stage_len;
	struct rr_treq *in;    /* the record being read or pulled from */
	uint64_t calls;        /* handed to the service */
	bool short_of;         /* no request left: reads nothing until one is released */
	struct list sendq;     /* rr_req.link: requests whose reply is being sent */
	struct rpcrdma_msg pump_msg;
	bool pump_out;         /* pump_msg is deferred */
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
/** rr_tconn_die - ends the connection; pulls in progress end with -EIO */
void rr_tconn_die(struct rr_tconn *c);
/** rr_tconn_interest - watches for the events that are needed now */
void rr_tconn_interest(struct rr_tconn *c);

/* srv_tcp_in.c */
/** rr_tconn_pump - reads and parses as far as possible; runs on input and when a request progresses */
void rr_tconn_pump(struct rr_tconn *c);

/** rr_tconn_kick - schedules rr_tconn_pump() for the next poll */
void rr_tconn_kick(struct rr_tconn *c);

/** rr_tconn_wants_input - true if the connection can use more bytes */
bool rr_tconn_wants_input(const struct rr_tconn *c);

/** rr_treq_cancel_pulls - ends all pulls of @t with @err; no bytes are received into their memory any more */
void rr_treq_cancel_pulls(struct rr_treq *t, int err);

/** rr_tcp_free_req - rr_conn_ops.free_req: frees the request's memory and uncharges the client for it */
void rr_tcp_free_req(struct rpcrdma_conn *base, struct rr_req *r);

/** rr_treq_release - recycles a request that is no longer in use */
void rr_treq_release(struct rr_treq *t);

/** rr_tcp_whole - rr_conn_ops.whole */
int rr_tcp_whole(struct rr_req *r);

/** rr_tcp_pull - rr_conn_ops.pull: queues a piece, which must start where the previous one ends
 *
 * Return: 0; -EINVAL: it starts elsewhere; -EOPNOTSUPP: its buffer is memory of a device.
 */
int rr_tcp_pull(struct rr_req *r, struct rpcrdma_xfer *p);

/* srv_tcp_out.c */
/** rr_tcp_reply - rr_conn_ops.reply: queues the reply, and waits for memory of RR_ZONE_REPLIES if needed
 *
 * Results that cannot be encoded are replaced by SYSTEM_ERR. Without memory for the reply the connection ends.
 */
void rr_tcp_reply(struct rr_req *r, const struct rr_reply *a);

/** rr_tcp_flush - writes queued replies, as far as the socket accepts them */
void rr_tcp_flush(struct rr_tconn *c);

/** rr_treq_end - the reply is sent or discarded: calls the service's done at the next poll */
void rr_treq_end(struct rr_treq *t);

#endif
