/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_tcp.h - the requester over TCP: one socket, the records to write, the record being read
 *
 *   clnt_tcp.c  connection      clnt_tcp_send.c  sending calls      clnt_tcp_recv.c  receiving replies
 */
#ifndef RR_CLNT_TCP_H
#define RR_CLNT_TCP_H

#include <netdb.h>

#include "clnt_int.h"
#include "engine_int.h"

/* A call on the stream. */
struct rr_tclnt_out {
	struct list link;     /* tcp->queue, tcp->sent or free_outs */
	struct rr_call *call; /* NULL: given up. GONE: its memory is still written from */
	struct rr_encode_buf head; /* mark and message, without the payload */
	size_t head_bytes;
	size_t split;         /* where in head the payload belongs */
	struct rpcrdma_payload payload;
	const struct rpcrdma_ready *ready; /* written from there, behind head; NULL: none */
	size_t ready_bytes, ready_split;   /* where in it the payload belongs */
	size_t total, done;   /* bytes of the record, and bytes written */
};

enum rr_tclnt_rx {
	RR_RX_MARK,    /* a record mark comes next */
	RR_RX_HEAD,    /* the record is one fragment; its head is being collected */
	RR_RX_GATHER,  /* the record has several fragments: collected whole, without their marks */
	RR_RX_PAYLOAD, /* payload is read from the socket into the sink */
	RR_RX_ROOM,    /* results are read from the socket into the room of their call */
	RR_RX_SKIP,    /* the rest of the record belongs to no call */
};

struct rr_tclnt {
	struct rpcrdma_clnt *clnt;   /* NULL: destroyed, end_msg frees this */
	struct rpcrdma_engine *engine;
	struct rpcrdma_watch watch;  /* fd -1: no socket */
	uint32_t events;             /* events watched for */
	const struct addrinfo *addr_next; /* of clnt->found: the next one to try */
	bool up;
	bool ending;                 /* socket closed; end_msg reports down */
	int err;
	char why[128];
	struct rpcrdma_msg end_msg;

	struct list queue;           /* rr_tclnt_out: not completely written */
	struct list sent;            /* ... written, waiting for their replies */
	struct list free_outs;

	/* clnt_tcp_recv.c */
	enum rr_tclnt_rx rx;
	uint8_t *buf;                /* [at, end) is unread */
	size_t cap, at, end;
	size_t record_bytes;         /* HEAD: bytes of the record. GATHER: bytes collected so far */
	size_t frag_left;            /* HEAD (from take_head() on), GATHER, ROOM: missing bytes of this fragment */
	bool frag_last;              /* HEAD, GATHER, ROOM, SKIP */
	size_t need;                 /* bytes of the record required to continue */
	struct rr_call *rx_call;     /* PAYLOAD, ROOM: its call */
	uint64_t sink_at;            /* ROOM: bytes of the results in the room */
	size_t payload_left, pad_left;
	size_t skip_left;            /* SKIP: of this fragment */
	bool skip_stray;             /* ... and then report skip_xid as a stray */
	uint32_t skip_xid;
};

static inline struct rr_tclnt *rr_tclnt_of(const struct rpcrdma_clnt *c)
{
	return c->xprt;
}

/* ---- clnt_tcp.c ----------------------------------------------------------------------------- */

/** rr_tclnt_fail - closes the socket; rr_clnt_down() follows, not inside this call */
printf_like(3, 4) void rr_tclnt_fail(struct rr_tclnt *t, int err, const char *fmt, ...);

/** rr_tclnt_want_out - starts or stops watching for room to write */
void rr_tclnt_want_out(struct rr_tclnt *t, bool want);

/* ---- clnt_tcp_send.c ------------------------------------------------------------------------ */

/** rr_tclnt_send - rr_clnt_ops.send
 * @call: waiting; on success call->xprt is its struct rr_tclnt_out
 *
 * Return: 0, also if the socket fails during the write; -ENOTCONN; permanent errors: -EMSGSIZE, -EINVAL, -ENOMEM.
 */
must_check int rr_tclnt_send(struct rpcrdma_clnt *c, struct rr_call *call);

/** rr_tclnt_flush - writes queued records, as far as the socket accepts them */
void rr_tclnt_flush(struct rr_tclnt *t);

/** rr_tclnt_out_end - ends the record of a finished call; Return: false: its memory is still needed for writing */
bool rr_tclnt_out_end(struct rr_tclnt *t, struct rr_tclnt_out *out);

/** rr_tclnt_cancel - rr_clnt_ops.cancel */
bool rr_tclnt_cancel(struct rpcrdma_clnt *c, struct rr_call *call);

/** rr_tclnt_outs_mark_unsent - marks the calls of which no byte was written, when the connection has ended */
void rr_tclnt_outs_mark_unsent(struct rr_tclnt *t);

/** rr_tclnt_outs_reset - recycles all records; `down` notifies their calls */
void rr_tclnt_outs_reset(struct rr_tclnt *t);

/** rr_tclnt_outs_free - frees all records, in any state */
void rr_tclnt_outs_free(struct rr_tclnt *t);

/* ---- clnt_tcp_recv.c ------------------------------------------------------------------------ */

/** rr_tclnt_recv - reads from a readable socket */
void rr_tclnt_recv(struct rr_tclnt *t);

/** rr_tclnt_recv_reset - resets the state: a new connection starts with a record mark */
void rr_tclnt_recv_reset(struct rr_tclnt *t);

/** rr_tclnt_recv_forget - skips what is being read for @call, which is given up */
void rr_tclnt_recv_forget(struct rr_tclnt *t, const struct rr_call *call);

#endif
