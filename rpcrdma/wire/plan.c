/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * plan.c - chooses the form of a message (RFC 8166 sections 3.4 and 3.5)
 *
 * Operation:  clnt_rdma_send.c calls rr_plan_call() after it encoded a call's head and marked its payload, and
 *             before it registers memory. srv_send.c calls rr_plan_reply() after it encoded the reply's head,
 *             and before it posts the first RDMA Write.
 *
 *             Calls: the reply comes first, because the chunks offered for it lengthen the call's header. The
 *             decision uses the largest possible reply: a responder need not know our receive size, and one
 *             Send too long for it breaks the connection.
 *
 *                 largest reply fits recv_max          no chunk offered
 *                 else its payload is reducible        Write chunk; if the rest still does not
 *                                                      fit, a Reply chunk for the rest
 *                 else                                 Reply chunk for the whole reply
 *
 *                 call fits send_max                   RR_CALL_INLINE
 *                 fits without its payload             RR_CALL_READ_CHUNK
 *                 only its header fits                 RR_CALL_LONG_READ with a reducible payload,
 *                                                      RR_CALL_LONG without
 *
 * Memory:     None.
 * Threads:    Pure functions.
 * Errors:     -EMSGSIZE: too many segments for the threshold or for our own header arrays. Sums of sizes
 *             saturate, so an absurd size counts as too long.
 * See:        protocol.md sections 1.2, 2.2, 2.3.
 */
#include <assert.h>
#include <errno.h>

#include "base/checked.h"
#include "plan.h"

static size_t plus(size_t a, size_t b)
{
	size_t sum;

	return add_size(a, b, &sum) ? sum : SIZE_MAX;
}

/* Returns the bytes of an XDR opaque's body and pad in the stream. */
static size_t padded(uint32_t bytes)
{
	return round_up4(bytes);
}

/* Returns the size of a header with these segments in Read, Write and Reply chunks; 0 segments: no such chunk. */
static size_t header_bytes(size_t read_segs, unsigned write_segs, unsigned reply_segs)
{
	size_t n = RR_HDR_MIN + read_segs * RR_READ_SEG_BYTES;

	if (write_segs)
		n += RR_CHUNK_HEAD_BYTES + (size_t)write_segs * RR_SEGMENT_BYTES;
	if (reply_segs) /* the minimum includes its discriminator */
		n += RR_CHUNK_HEAD_BYTES - 4 + (size_t)reply_segs * RR_SEGMENT_BYTES;
	return n;
}

static unsigned offered_write_segs(const struct rr_plan_call *p)
{
	return p->write_chunk ? p->result_segs : 0;
}

static unsigned offered_reply_segs(const struct rr_plan_call *p)
{
	return p->reply_chunk ? p->reply_segs : 0;
}

/* Chooses the offered chunks. The responder returns every chunk, so they lengthen the reply too. */
static int plan_offer(struct rr_plan_call *p)
{
	bool reducible = p->result_max && !p->no_reduce;
	size_t whole = plus(p->reply_max, p->reply_whole ? 0 : padded(p->result_max));
	size_t rest = whole, read_back = reducible && p->result_read ? 1 : 0;

	p->write_chunk = false;
	p->reply_chunk = false;
	p->reply_chunk_bytes = 0;
	if (plus(RR_HDR_MIN, whole) <= p->recv_max && !(reducible && p->force_chunks))
		return 0;
	if (reducible) {
		p->write_chunk = !p->result_read;
		rest = p->reply_max;
	}
	if (plus(header_bytes(read_back, offered_write_segs(p), 0), rest) > p->recv_max) {
		if (rest > SIZE_MAX - 3)
			return -EMSGSIZE;
		p->reply_chunk = true;
		p->reply_chunk_bytes = round_up4(rest);
	}
	assert(!p->write_chunk || p->result_segs);
	assert(!p->reply_chunk || p->reply_segs);
	if (offered_write_segs(p) > RR_CHUNK_SEGS_MAX || offered_reply_segs(p) > RR_CHUNK_SEGS_MAX)
		return -EMSGSIZE;
	/* a long reply's header has to fit, otherwise the responder cannot announce it */
	if (header_bytes(read_back, offered_write_segs(p), offered_reply_segs(p)) > p->recv_max)
		return -EMSGSIZE;
	return 0;
}

/* Does a Send with @read_segs Read segments and @inline_bytes after the header fit? */
static bool call_fits(const struct rr_plan_call *p, size_t read_segs, size_t inline_bytes)
{
	size_t header;

	if (read_segs > RR_READ_SEGS_MAX)
		return false;
	header = header_bytes(read_segs, offered_write_segs(p), offered_reply_segs(p));
	return plus(header, inline_bytes) <= p->send_max;
}

int rr_plan_call(struct rr_plan_call *p)
{
	bool reducible = p->arg_bytes && !p->no_reduce;
	size_t whole = plus(p->head_bytes, padded(p->arg_bytes));
	size_t arg_segs = p->arg_bytes ? p->arg_segs : 0;
	int err;

	err = plan_offer(p);
	if (err)
		return err;

	if (reducible && p->force_chunks && call_fits(p, arg_segs, p->head_bytes))
		p->form = RR_CALL_READ_CHUNK;
	else if (call_fits(p, 0, whole))
		p->form = RR_CALL_INLINE;
	else if (reducible && call_fits(p, arg_segs, p->head_bytes))
		p->form = RR_CALL_READ_CHUNK;
	else if (call_fits(p, p->head_segs + arg_segs, 0))
		p->form = reducible ? RR_CALL_LONG_READ : RR_CALL_LONG;
	else
		return -EMSGSIZE;
	assert(p->form == RR_CALL_INLINE || !p->arg_bytes || p->arg_segs);
	assert(p->form == RR_CALL_INLINE || p->form == RR_CALL_READ_CHUNK || p->head_segs);
	return 0;
}

static enum rr_reply_form choose_reply(const struct rr_plan_reply *p)
{
	bool placed = p->payload_bytes && p->has_write_chunk;
	size_t rest = p->head_bytes;

	if (placed && p->payload_bytes > p->write_chunk_bytes)
		return RR_REPLY_TOO_LONG;
	if (!placed)
		rest = plus(rest, padded(p->payload_bytes));
	if (plus(p->hdr_bytes, rest) <= p->send_max)
		return placed ? RR_REPLY_WRITE_CHUNK : RR_REPLY_INLINE;
	if (p->hdr_bytes <= p->send_max && rest <= p->reply_chunk_bytes)
		return placed ? RR_REPLY_LONG_WRITE : RR_REPLY_LONG;
	return RR_REPLY_TOO_LONG;
}

void rr_plan_reply(struct rr_plan_reply *p)
{
	p->form = choose_reply(p);
}
