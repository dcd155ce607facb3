/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_rdma.h - the responder over a fabric: connections, requests, transfers
 *
 *   srv_cm.c  accept      srv_recv.c  receive      srv_long.c  long calls    srv_rw.c  payload    srv_send.c  reply
 *   srv_credit.c  number of outstanding calls
 */
#ifndef RR_SRV_RDMA_H
#define RR_SRV_RDMA_H

#include "credit.h"
#include "srv_mode_ops.h"
#include "srv_int.h"

#define RR_RW_WRS 4u

/* Payload of RDMA Writes with work requests that are built when they are posted. */
struct rr_rw_range {
	const struct rr_chunk *chunk; /* of req->hdr */
	uint32_t off, len;
	uint8_t *mem;
	struct rr_mr *mr;
};

/* A chain of RDMA Writes, one RDMA Read, or a piece that needs no transfer. More than RR_RW_WRS Writes use range. */
struct rr_rw {
	struct rr_post post;
	struct rpcrdma_msg msg;       /* no transfer needed: done runs at the next poll */
	struct list link;             /* conn->free_rws; the range's other transfers, before they are posted */
	struct rr_rconn *conn;
	struct rr_rreq *req;
	struct rpcrdma_xfer *piece;  /* completed when its last transfer ends; or NULL */
	struct rpcrdma_buf *send_buf; /* of an error message */
	bool read;
	unsigned n;
	struct rr_rw_range range;
	struct rr_wr wr[RR_RW_WRS];
};

struct rr_rconn {
	struct rpcrdma_conn base;
	struct rr_ep *ep;
	uint32_t send_inline;         /* largest Send: the smaller of the peer's and our limit */
	bool remote_inv;              /* the peer requested Send-With-Invalidate, and gets it */
	struct rr_credit_account account; /* of granted credits */
	uint32_t credits;             /* limit of the credits granted now */
	uint64_t look;                /* engine->looks when the last call arrived */
	unsigned calls;               /* since credits last grew, or since the last tick */
	bool overlap;                 /* one of these calls arrived before the reply to another */
	bool used;                    /* all of its credits were in use since the last tick */
	unsigned short_seen;          /* domain->recv_short when last checked */
	unsigned rd_depth, reads_out; /* RDMA Reads: negotiated limit, in flight */
	struct list pullers;          /* rr_rreq with Reads that wait for a free slot */
	struct list free_rws;
	unsigned nrws;                /* transfers allocated */
	unsigned rws_used, rws_most;  /* transfers in use: now, maximum since the last tick */
	struct {
		struct rr_post post;
		struct rr_wr wr;
		bool out;
	} probe;                      /* asks the device of an idle peer for a sign of life */
	struct rr_srv_mode *mode; /* another way of moving data, or NULL (nearly always) */
};

/* Results that srv_parts.c writes to the chunks of a call, and how far it is. */
struct rr_out {
	bool begun;
	bool placed;                  /* the payload is written to the Write chunk ... */
	bool both;                    /* ... and then the message to the Reply chunk */
	bool message;                 /* now the message; false: the payload */
	unsigned source;              /* piece that is being written, ... */
	size_t at;                    /* ... from this byte on */
	uint32_t to;                  /* within the chunk */
	size_t filled;                /* bytes of reply_buf that Writes use */
	size_t step;                  /* bytes and ... */
	unsigned writes;              /* ... Writes of this step */
	struct rpcrdma_xfer piece;    /* last Write of a step */
};

struct rr_rreq {
	struct rr_req base;
	struct rr_recv_ctx *rc;       /* holds the message; NULL once reposted */
	bool counted;                 /* as a call, in conn->account */
	struct rr_read_info reads;
	/* pieces with RDMA Reads that are not posted yet: rpcrdma_xfer.next */
	struct rpcrdma_xfer *pulls, **pulls_tail;
	uint32_t pulled;              /* bytes of the first piece for which Reads are posted */
	struct list puller;           /* conn->pullers */
	/* a call that is longer than its message: srv_long.c */
	struct rpcrdma_buf *call_buf;
	size_t call_bytes;            /* ... in it */
	uint32_t call_at;             /* bytes of its chunks for which Reads are posted */
	struct rpcrdma_xfer call_piece, item_piece; /* a part of the position-zero chunk; of the payload's */
	const uint8_t *msg;           /* message in the receive buffer */
	size_t msg_len;
	bool joined;                  /* the payload of its Read chunk is in call_buf too */
	struct rpcrdma_buf *reply_buf;/* a long reply, or payload that must be copied into a buffer */
	struct rpcrdma_buf_waiter waiter;
	struct rpcrdma_msg end_msg;
	struct rr_rw *held;           /* Writes that are posted in one chain with the reply */
	struct rr_reply reply;      /* kept while it waits for a buffer */
	struct rr_out out;
	struct rpcrdma_buf *send_buf;
	struct rr_post post;
	struct rr_wr send_wr;
	unsigned ops_out;             /* transfers and the Send, in flight */
	unsigned ntokens;             /* mapped segments of the peer's memory */
	uint32_t tokens[RR_CHUNK_SEGS_MAX];
	struct rr_mode_req mode;
	struct rr_hdr hdr;            /* of the call; large, so last */
};

/* Transfers of a call: Writes to all segments of a chunk. */
#define RR_CALL_RWS (RR_CHUNK_SEGS_MAX / RR_POST_BUILT)
/* Memory per call of a connection, beyond its first RR_MSGS_FIRST calls. */
#define RR_CALL_KEPT (sizeof(struct rr_rreq) + RR_CALL_RWS * sizeof(struct rr_rw))

static inline struct rr_rconn *rr_rconn_of(const struct rpcrdma_conn *c)
{
	return container_of((struct rpcrdma_conn *)(uintptr_t)c, struct rr_rconn, base);
}

static inline struct rr_rreq *rr_rreq_of(const struct rr_req *r)
{
	return container_of((struct rr_req *)(uintptr_t)r, struct rr_rreq, base);
}

static inline struct rr_rconn *rr_rreq_conn(const struct rr_rreq *rr)
{
	return rr_rconn_of(rr->base.pub.conn);
}

/** rr_rconn_send_buf - allocates a buffer for a message; Return: as rr_conn_buf_get() with RR_ZONE_SENDS */
static inline must_check int rr_rconn_send_buf(struct rr_rconn *c, struct rpcrdma_buf **ret)
{
	return rr_conn_buf_get(&c->base, RR_ZONE_SENDS, c->ep->recv_bytes, ret);
}

extern const struct rr_conn_ops rr_rconn_ops;

/* srv_recv.c */
/** rr_srv_recv - rr_ep_ops.recv of a responder: checks a message and delivers its request */
void rr_srv_recv(struct rr_done *done, const struct rr_wc *wc);

/** rr_srv_deliver - hands a checked call to the service, or refuses it: its RPC message is @len bytes at @msg */
void rr_srv_deliver(struct rr_rreq *rr, uint8_t *msg, size_t len);

/** rr_srv_forget - recycles a request that the service never received, and reposts its receive. The connection
 * had that receive, so it exists until the next poll at least. */
void rr_srv_forget(struct rr_rreq *rr);

/* srv_long.c */
/** rr_srv_is_joined - is the payload of the Read chunk pulled before the service gets the call? */
static inline bool rr_srv_is_joined(const struct rr_rreq *rr)
{
	return rr->reads.has_item && rr->base.pub.conn->svc->attr.whole_calls;
}

/** rr_srv_is_long - has a checked call parts that are pulled before the service gets it? Then rr_srv_pull_call() */
static inline bool rr_srv_is_long(const struct rr_rreq *rr)
{
	return rr->reads.has_pzrc || rr_srv_is_joined(rr);
}

/** rr_srv_call_bytes - returns the size of the buffer that such a call needs; its message has @msg_len bytes */
uint64_t rr_srv_call_bytes(const struct rr_rreq *rr, size_t msg_len);

/** rr_srv_pull_call - pulls it, and then delivers it; it waits for memory
 * @msg, @len: the message in the receive buffer */
void rr_srv_pull_call(struct rr_rreq *rr, const uint8_t *msg, size_t len);

/* srv_credit.c */
/** rr_srv_credit_init - initializes the credits of a connection that has its first receives */
void rr_srv_credit_init(struct rr_rconn *c);

/** rr_srv_demand - accounts for a call of a peer that requests @asked credits; may raise its credits
 *
 * The only function that adds receives to a connection in use; rr_srv_grant() allocates nothing. */
void rr_srv_demand(struct rr_rconn *c, uint32_t asked);

/** rr_srv_credit_tick - reduces credits that were not used since the last tick
 *
 * A connection without any call falls back to the credits of a new connection.
 */
void rr_srv_credit_tick(struct rpcrdma_conn *base);

/** rr_srv_grant - returns the credits that a reply grants; call once for each reply
 * @rc: the receive of its call that is not yet reposted, or NULL
 * @counted: it is the reply to a call that rr_srv_recv() counted
 */
must_check uint32_t rr_srv_grant(struct rr_rconn *c, uint32_t asked, const struct rr_recv_ctx *rc,
				 bool counted);

/** rr_srv_recv_done - returns the receive of a call that has its reply, to the device or to the pool
 *
 * Memory that is no longer charged is freed.
 */
void rr_srv_recv_done(struct rr_rconn *c, struct rr_recv_ctx *rc);

/* srv_rw.c */
/** rr_rw_get - takes an unused transfer, or allocates one; release it with rr_rw_put(). NULL without memory */
struct rr_rw *rr_rw_get(struct rr_rconn *c);

/** rr_rw_put - makes a transfer unused */
void rr_rw_put(struct rr_rw *rw);

/** rr_srv_trim_rws - frees unused transfers until @keep remain in all */
void rr_srv_trim_rws(struct rr_rconn *c, unsigned keep);

/** rr_srv_read - pulls the bytes of a piece from the call's Read chunk
 * @piece: &rr->call_piece: offsets within the whole call; else within its payload
 *
 * Return: 0; -EINVAL: outside the chunk; -ENOMEM.
 */
must_check int rr_srv_read(struct rr_rreq *rr, struct rpcrdma_xfer *piece);

/** rr_srv_write - posts RDMA Writes of @len bytes at @mem to bytes [off, off+len) of @chunk; never waits
 * @chunk: of rr->hdr, which is read until the Writes are posted
 * @buf: contains @mem
 * @piece: its done runs at the end. If NULL, the Writes may be held back until the reply or the next Write */
must_check int rr_srv_write(struct rr_rreq *rr, const struct rr_chunk *chunk, uint32_t off, void *mem,
			    uint32_t len, const struct rpcrdma_buf *buf, struct rpcrdma_xfer *piece);

/** rr_srv_post_held - posts the Writes that were held back, without a reply */
void rr_srv_post_held(struct rr_rreq *rr);
void rr_srv_reads_pump(struct rr_rconn *c);
int rr_srv_pull(struct rr_req *r, struct rpcrdma_xfer *p);
/** rr_srv_facts - fills the public part of a checked request that tells how its payload moves */
void rr_srv_facts(struct rr_rreq *rr);
int rr_srv_place(struct rr_req *r, struct rpcrdma_xfer *p);

/** rr_srv_has_write_chunk - true if the call offers a non-empty Write chunk */
static inline bool rr_srv_has_write_chunk(const struct rr_rreq *rr)
{
	return rr->hdr.nwrites > 0 && rr->hdr.writes[0].nsegs > 0;
}

/* srv_send.c */
/** rr_srv_send_offer - sends a reply with a Read list
 * @head: bytes of the reply, which stand behind the space for the whole header; or 0
 * @replied: bytes of it that were written to the Reply chunk instead */
void rr_srv_send_offer(struct rr_rreq *rr, const struct rr_read_seg *reads, unsigned n, size_t head,
		       size_t replied);

/** rr_srv_write_reply - RDMA Writes @len bytes at @msg, in rr->reply_buf, to the Reply chunk */
must_check int rr_srv_write_reply(struct rr_rreq *rr, void *msg, size_t len);

/** rr_srv_gather - copies payload to @to: from the placed pieces, or from the service's iov */
void rr_srv_gather(struct rr_rreq *rr, const struct rpcrdma_payload *payload, uint8_t *to);
void rr_srv_reply(struct rr_req *r, const struct rr_reply *a);

/** rr_srv_resume_reply - continues a reply whose Writes have ended; @err: the connection is lost */
void rr_srv_resume_reply(struct rr_rreq *rr, int err);

/* srv_parts.c */
/** rr_srv_parts_begin - begins to write the results to the chunks of the call, which are large enough
 * @placed: their payload to the Write chunk
 * @message: the message to the Reply chunk */
void rr_srv_parts_begin(struct rr_rreq *rr, bool placed, bool message);

/** rr_srv_parts_write - posts more Writes
 * Return: 0: all are posted; -EINPROGRESS: rr_srv_resume_reply() follows; -ENOBUFS: wait for memory of RR_ZONE_REPLIES, and
 * call again; -ENOMEM; errors of the device */
must_check int rr_srv_parts_write(struct rr_rreq *rr);

/** rr_srv_send_error - sends RDMA_ERROR for a message that the service does not get; reposts its receive, and does not
 * use the request afterwards */
void rr_srv_send_error(struct rr_rreq *rr, enum rr_err err);

/** rr_srv_reply_hdr_bytes - returns the size of the reply's transport header, which returns all chunks of the call */
size_t rr_srv_reply_hdr_bytes(const struct rr_rreq *rr);

/** rr_srv_op_ended - completes one transfer of @rr; the last one ends the request */
void rr_srv_op_ended(struct rr_rreq *rr);

/** rr_srv_release - recycles a request that the service has ended (or never received) */
void rr_srv_release(struct rr_rreq *rr);

#endif
