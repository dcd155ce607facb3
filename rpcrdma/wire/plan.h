/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * plan.h - chooses the form of a message from its sizes (RFC 8166 sections 3.4, 3.5)
 *
 * See: protocol.md 1.2 for the forms, 2.3 for the reason to use the *largest possible* reply.
 */
#ifndef RR_PLAN_H
#define RR_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "proto.h"

enum rr_call_form {
	RR_CALL_INLINE,     /* RDMA_MSG, everything after the header */
	RR_CALL_READ_CHUNK, /* RDMA_MSG, payload in a Read chunk */
	RR_CALL_LONG,       /* RDMA_NOMSG, whole call (with its payload) in a position-zero chunk */
	RR_CALL_LONG_READ,  /* RDMA_NOMSG, reduced call in a position-zero chunk, payload in a separate Read
			     * chunk: the head alone exceeds the threshold */
};

struct rr_plan_call {
	/* in */
	size_t head_bytes;       /* RPC call without its payload and pad */
	uint32_t arg_bytes;      /* payload of the arguments, without pad; 0: none */
	unsigned arg_segs;       /* segments of its memory in a chunk */
	unsigned head_segs;      /* segments of the message itself as a long call */
	size_t reply_max;        /* largest RPC reply without its payload */
	uint32_t result_max;     /* largest payload of the results; 0: none */
	unsigned result_segs, reply_segs;
	uint32_t send_max;       /* largest Send this way (call inline threshold) */
	uint32_t recv_max;       /* largest Send the other way (reply inline threshold) */
	bool reply_whole;        /* reply_max includes the payload: the responder may leave it in the message */
	bool no_reduce;          /* RPCSEC_GSS integrity or privacy: the payload must stay inline */
	bool result_read;        /* Read-Read: the responder offers a payload that does not fit, with the reply */
	bool force_chunks;       /* tests and `ddp=always`: reduce even a payload that fits inline */
	/* out */
	enum rr_call_form form;
	bool write_chunk;        /* offer the result's memory */
	bool reply_chunk;        /* offer reply_chunk_bytes */
	size_t reply_chunk_bytes;/* multiple of 4 */
};

/** rr_plan_call - chooses the form of a call and the chunks offered for its reply
 *
 * Offers a Write or Reply chunk whenever the largest reply could exceed recv_max. The sum includes the chunk
 * lists in the reply's header. arg_bytes 0 is never a chunk (a zero-length Read segment must not be sent).
 *
 * head_segs counts all segments of the message itself, before its payload and after it (pad included). A long
 * call of a message with a payload takes head_segs + arg_segs.
 *
 * Return: 0, or -EMSGSIZE if no form fits: not even the header with its chunk lists fits send_max; the outputs are
 * undefined then.
 */
must_check int rr_plan_call(struct rr_plan_call *p);

enum rr_reply_form {
	RR_REPLY_INLINE,       /* RDMA_MSG, payload (if any) after the head */
	RR_REPLY_WRITE_CHUNK,  /* RDMA_MSG, payload placed in the Write chunk */
	RR_REPLY_LONG,         /* RDMA_NOMSG, whole reply with its payload in the Reply chunk */
	RR_REPLY_LONG_WRITE,   /* RDMA_NOMSG, head in the Reply chunk, payload in the Write chunk */
	RR_REPLY_TOO_LONG,     /* ERR_CHUNK, nothing written */
};

struct rr_plan_reply {
	/* in */
	size_t hdr_bytes;        /* transport header with all offered chunks returned */
	size_t head_bytes;       /* RPC reply without its payload and pad */
	uint32_t payload_bytes;
	bool has_write_chunk;    /* the call offered a non-empty one (nsegs > 0) for the payload */
	uint64_t write_chunk_bytes;
	uint64_t reply_chunk_bytes; /* 0: the call offered none */
	uint32_t send_max;       /* largest Send this way */
	/* out */
	enum rr_reply_form form;
};

/** rr_plan_reply - chooses the form of a reply
 *
 * An eligible result goes into a non-empty Write chunk whenever one was offered, even for one byte; a Write chunk that is
 * too small is the caller's error even if the reply fits inline. An empty payload leaves it unused. A reply
 * that fits is sent inline and returns the Reply chunk unused.
 */
void rr_plan_reply(struct rr_plan_reply *p);

#endif
