/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_send.c - sends the responder's reply, with its form and credits, and ends the request
 *
 * Operation:  The RPC reply is encoded behind the space for its transport header. If it does not fit
 *             and the call has a Reply chunk, it is encoded again into a pool buffer. rr_plan_reply()
 *             then selects the form. Payload that is not placed yet is written. The receive buffer
 *             goes back to the device, so that it backs the credit in the reply (unless the reply
 *             grants fewer: srv_credit.c). The Send is posted last, in one chain with the Writes that
 *             were held back for it. Results that are encoded already and long are written by srv_parts.c.
 *
 *             replied and no transfer in flight --> service's done --> free list
 * Memory:     The receive buffer and the mapped memory of the peer are released before the Send is posted.
 *             The send buffer, pool buffers and the service's pieces are released when the Send, the last
 *             transfer, has completed; by RC ordering all others have completed before.
 * Threads:    The connection's engine.
 * Errors:     If the pool has no buffer for the reply or the Send, the request waits. A reply that fits
 *             nowhere becomes ERR_CHUNK. If the machine has no memory for a reply, the connection
 *             ends, since ERR_CHUNK is final.
 *             On a dead connection the same path runs with flushed completions, or none.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "plan.h"
#include "srv_rdma.h"

/* ---- the end of a request ---- */

/* Unmaps the peer's memory; the peer may be waiting to reuse it. */
static void end_direct(struct rr_rreq *rr)
{
	while (rr->ntokens > 0)
		rr_qp_direct_end(rr_rreq_conn(rr)->ep->qp, rr->tokens[--rr->ntokens]);
}

void rr_srv_release(struct rr_rreq *rr)
{
	struct rr_rconn *c = rr_rreq_conn(rr);
	struct rpcrdma_engine *e = c->base.engine;

	assert(!rr->rc && !rr->ops_out);
	end_direct(rr);
	if (rr->send_buf)
		rpcrdma_buf_put(e, rr->send_buf);
	if (c->mode)
		c->mode->ops->release(rr);
	if (rr->call_buf)
		rpcrdma_buf_put(e, rr->call_buf);
	if (rr->reply_buf)
		rpcrdma_buf_put(e, rr->reply_buf);
	rr->send_buf = rr->call_buf = rr->reply_buf = NULL;
	rr_req_back(&rr->base); /* may free the connection */
}

void rr_srv_op_ended(struct rr_rreq *rr)
{
	assert(rr->ops_out > 0);
	if (--rr->ops_out || !rr->base.ended)
		return;
	rr_req_finish(&rr->base);
	rr_srv_release(rr);
}

static void on_end(struct rpcrdma_msg *msg)
{
	rr_srv_op_ended(container_of(msg, struct rr_rreq, end_msg));
}

static void on_sent(struct rr_post *post, enum rr_wc_status status)
{
	struct rr_rreq *rr = container_of(post, struct rr_rreq, post);

	(void)status; /* a failure has already made the endpoint dead */
	rr_conn_progress(rr->base.pub.conn);
	if (rr->held) { /* Writes in front of the Send; the Send still counts */
		rr_rw_put(rr->held);
		rr->held = NULL;
		rr->ops_out--;
	}
	rr_srv_op_ended(rr);
}

static void give_back_recv(struct rr_rreq *rr)
{
	if (rr->rc)
		rr_ep_repost(rr->rc);
	rr->rc = NULL;
}

/* Ends a request without a message: at the next poll, or with the last transfer. */
static void end_silently(struct rr_rreq *rr)
{
	give_back_recv(rr);
	rr_srv_post_held(rr);
	rr->end_msg.fn = on_end;
	rr_engine_defer(rr->base.pub.engine, &rr->end_msg);
}

/* ---- the Send ---- */

static uint32_t grant(struct rr_rreq *rr)
{
	return rr_srv_grant(rr_rreq_conn(rr), rr->hdr.credits, rr->rc, rr->counted);
}

/* Selects one handle of this call, never for an error: the first segment of the first chunk, since the last one may be
 * a pad segment that the client keeps registered (protocol.md section 5). */
static bool handle_to_invalidate(const struct rr_rreq *rr, uint32_t *ret)
{
	const struct rr_hdr *h = &rr->hdr;

	if (!rr_rreq_conn(rr)->remote_inv)
		return false;
	if (rr_srv_has_write_chunk(rr))
		*ret = h->writes[0].segs[0].handle;
	else if (h->nreads && !rr->base.pub.args_local) /* else the key is one of ours */
		*ret = h->reads[0].seg.handle;
	else if (h->has_reply && h->reply.nsegs)
		*ret = h->reply.segs[0].handle;
	else
		return false;
	return true;
}

static void send_message(struct rr_rreq *rr, size_t len, bool is_error)
{
	struct rr_rconn *c = rr_rreq_conn(rr);
	uint32_t handle = 0;
	bool inv = !is_error && handle_to_invalidate(rr, &handle);

	rr->send_wr = (struct rr_wr){ .op = inv ? RR_WR_SEND_INV : RR_WR_SEND,
				      .sge = rr_msg_sge(rr->send_buf, c->ep->dev, len),
				      .rkey = handle };
	rr_count(c->base.engine, invalidations, inv);
	rr->post.fn = on_sent;
	rr->post.first = &rr->send_wr;
	rr->post.n = 1;
	if (rr->held) {
		rr->held->wr[rr->held->n - 1].next = &rr->send_wr;
		rr->post.first = rr->held->wr;
		rr->post.n += rr->held->n;
	}
	list_init(&rr->post.link);
	if (rr->rc)
		rr_srv_recv_done(c, rr->rc);
	rr->rc = NULL;
	end_direct(rr);
	if (c->mode) /* its peer may use the memory again before our Send completes */
		c->mode->ops->release(rr);
	rr_ep_post(c->ep, &rr->post);
}

static void send_err_chunk(struct rr_rreq *rr)
{
	struct rr_rconn *c = rr_rreq_conn(rr);
	size_t len;

	rr_count(c->base.engine, err_chunk, 1);
	if (rr_hdr_encode_error(rr->hdr.xid, rr->hdr.vers, grant(rr), RR_ERR_CHUNK,
				rr->send_buf->addr, c->send_inline, &len)) {
		end_silently(rr);
		return;
	}
	send_message(rr, len, true);
}

static void on_error_sent(struct rr_post *post, enum rr_wc_status status)
{
	struct rr_rw *rw = container_of(post, struct rr_rw, post);

	(void)status;
	rpcrdma_buf_put(rw->conn->base.engine, rw->send_buf);
	rr_rw_put(rw);
}

void rr_srv_send_error(struct rr_rreq *rr, enum rr_err err)
{
	struct rr_rconn *c = rr_rreq_conn(rr);
	struct rr_rw *rw = c->base.dead ? NULL : rr_rw_get(c);
	struct rpcrdma_buf *buf = NULL;
	uint32_t granted;
	size_t len;

	if (err == RR_ERR_VERS)
		rr_count(c->base.engine, err_vers, 1);
	else
		rr_count(c->base.engine, err_chunk, 1);
	give_back_recv(rr);
	granted = rr_srv_grant(c, 1, NULL, rr->counted);
	if (!rw || rr_rconn_send_buf(c, &buf) ||
	    rr_hdr_encode_error(rr->hdr.xid, rr->hdr.vers, granted, err, buf->addr, c->send_inline, &len)) {
		/* too little memory for this many malformed messages: no reply is required */
		if (buf)
			rpcrdma_buf_put(c->base.engine, buf);
		if (rw)
			rr_rw_put(rw);
	} else {
		rw->send_buf = buf;
		rw->wr[0] = (struct rr_wr){ .op = RR_WR_SEND, .sge = rr_msg_sge(buf, c->ep->dev, len) };
		rw->post.fn = on_error_sent;
		rw->post.first = rw->wr;
		rw->post.n = 1;
		rr_ep_post(c->ep, &rw->post);
	}
	(void)rr_conn_bad(&c->base);
}

/* ---- the reply ---- */

size_t rr_srv_reply_hdr_bytes(const struct rr_rreq *rr)
{
	return rr_hdr_bytes(&rr->hdr) - rr->hdr.nreads * (size_t)RR_READ_SEG_BYTES;
}

void rr_srv_gather(struct rr_rreq *rr, const struct rpcrdma_payload *payload, uint8_t *to)
{
	uint32_t left = payload->length;

	for (const struct rpcrdma_xfer *p = rr->base.placed; p; p = p->next)
		if (p->off < payload->length)
			memcpy(to + p->off, (uint8_t *)p->buf->addr + p->buf_off,
			       MIN(p->len, payload->length - p->off));
	for (int i = 0; i < payload->iovcnt && left; i++) {
		size_t n = MIN(payload->iov[i].iov_len, (size_t)left);

		memcpy(to, payload->iov[i].iov_base, n);
		to += n;
		left -= (uint32_t)n;
	}
	rr_count(rr->base.pub.engine, bytes_copied, payload->length);
}

/* Moves the tail of the reply and inserts payload and pad. Return: the total length. */
static size_t insert_payload(struct rr_rreq *rr, const struct rr_stream *s, uint8_t *msg, size_t len)
{
	size_t bytes = s->payload.length, padded = round_up4(bytes);

	memmove(msg + s->payload_pos + padded, msg + s->payload_pos, len - s->payload_pos);
	rr_srv_gather(rr, &s->payload, msg + s->payload_pos);
	memset(msg + s->payload_pos + bytes, 0, padded - bytes);
	return len + padded;
}

static int get_reply_buf(struct rr_rreq *rr, size_t bytes)
{
	return rr->reply_buf ? 0 : rr_conn_buf_get(rr->base.pub.conn, RR_ZONE_REPLIES, bytes,
						   &rr->reply_buf);
}

/* Copies payload that is in no pool buffer into one and writes it to the Write chunk. */
static int write_from_iov(struct rr_rreq *rr, const struct rpcrdma_payload *payload)
{
	const struct rpcrdma_buf *buf = rr->reply_buf;

	rr_srv_gather(rr, payload, buf->addr);
	return rr_srv_write(rr, &rr->hdr.writes[0], 0, buf->addr, payload->length, buf, NULL);
}

int rr_srv_write_reply(struct rr_rreq *rr, void *msg, size_t len)
{
	return rr_srv_write(rr, &rr->hdr.reply, 0, msg, (uint32_t)len, rr->reply_buf, NULL);
}

/* Fills the reply's header as far as the call determines it: all chunks are returned. */
static void init_header(struct rr_rreq *rr, uint32_t proc, uint32_t written, size_t reply_written,
			struct rr_hdr *out)
{
	const struct rr_hdr *in = &rr->hdr;

	rr_hdr_init(out, in->xid, grant(rr), proc);
	out->nwrites = in->nwrites;
	for (unsigned i = 0; i < in->nwrites; i++)
		rr_chunk_return(&in->writes[i], i ? 0 : written, &out->writes[i]);
	out->has_reply = in->has_reply;
	if (in->has_reply)
		rr_chunk_return(&in->reply, reply_written, &out->reply);
}

/* Sends a header and the @inline_len bytes behind it. */
static void send_with(struct rr_rreq *rr, const struct rr_hdr *out, size_t inline_len)
{
	size_t len = 0;
	int rc = rr_hdr_encode(out, rr->send_buf->addr, rr_rreq_conn(rr)->send_inline, &len);

	/* the plan includes it */
	assert(!rc && len == rr_srv_reply_hdr_bytes(rr) + out->nreads * RR_READ_SEG_BYTES);
	send_message(rr, len + inline_len, false);
}

static void send_header(struct rr_rreq *rr, bool nomsg, uint32_t written, size_t reply_written,
			size_t inline_len)
{
	struct rr_hdr out;

	init_header(rr, nomsg ? RR_NOMSG : RR_MSG, written, reply_written, &out);
	send_with(rr, &out, inline_len);
}

void rr_srv_send_offer(struct rr_rreq *rr, const struct rr_read_seg *reads, unsigned n, size_t head,
		       size_t replied)
{
	struct rr_hdr out;

	init_header(rr, replied ? RR_NOMSG : RR_MSG, 0, replied, &out);
	out.nreads = n;
	memcpy(out.reads, reads, n * sizeof(*reads));
	send_with(rr, &out, head);
}

/* No memory for the reply. ERR_CHUNK would be final for the client, but the shortage is temporary. Closing the
 * connection makes the client send the call again on the next one. */
static void give_up(struct rr_rreq *rr)
{
	rpcrdma_conn_close(rr->base.pub.conn);
	end_silently(rr);
}

/* Sends results that are encoded already, if they do not travel inline. Return: 0; 1: they do; -ENOBUFS: wait */
static int try_parts(struct rr_rreq *rr, struct rr_plan_reply *plan)
{
	struct rr_rconn *c = rr_rreq_conn(rr);
	const struct rr_results *x = &rr->base.results;
	bool placed, message;
	struct rr_stream s;
	size_t len = 0;
	int rc;

	plan->head_bytes = rr_reply_rpc_bytes(&rr->base) + x->bytes;
	plan->payload_bytes = x->payload_bytes;
	rr_plan_reply(plan);
	if (plan->form == RR_REPLY_INLINE)
		return 1;
	if (plan->form == RR_REPLY_TOO_LONG) {
		send_err_chunk(rr);
		return 0;
	}
	placed = plan->form != RR_REPLY_LONG;
	message = plan->form != RR_REPLY_WRITE_CHUNK;
	if (!rr->out.begun)
		rr_srv_parts_begin(rr, placed, message);
	rc = rr_srv_parts_write(rr);
	if (rc == -EINPROGRESS)
		return 0;
	if (!rc && !message)
		rc = rr_reply_head(&rr->base, &rr->reply, &s, (uint8_t *)rr->send_buf->addr + plan->hdr_bytes,
				   c->send_inline - plan->hdr_bytes, &len);
	if (rc == -ENOBUFS && !c->base.dead)
		return rc;
	if (rc) {
		give_up(rr);
		return 0;
	}
	rr_count(c->base.engine, bytes_out, x->payload_bytes);
	send_header(rr, message, placed ? x->payload_bytes : 0,
		    !message ? 0 : plan->head_bytes + (placed ? 0 : round_up4((size_t)x->payload_bytes)), len);
	return 0;
}

/* Return: 0, or -ENOBUFS: no pool buffer is free */
static int try_reply(struct rr_rreq *rr)
{
	struct rr_rconn *c = rr_rreq_conn(rr);
	const struct rr_hdr *in = &rr->hdr;
	struct rr_reply *a = &rr->reply;
	struct rr_plan_reply plan = { .hdr_bytes = rr_srv_reply_hdr_bytes(rr),
				      .has_write_chunk = rr_srv_has_write_chunk(rr),
				      .reply_chunk_bytes = in->has_reply ? rr_chunk_bytes(&in->reply) : 0,
				      .send_max = c->send_inline };
	uint8_t *msg = (uint8_t *)rr->send_buf->addr + plan.hdr_bytes;
	bool in_buf = false;
	struct rr_stream s;
	size_t len = 0, total;
	int rc;

	if (a->kind == RR_CONTENT_REJECT || plan.hdr_bytes > c->send_inline) {
		send_err_chunk(rr);
		return 0;
	}
	plan.write_chunk_bytes = plan.has_write_chunk ? rr_chunk_bytes(&in->writes[0]) : 0;
	if (a->kind == RR_CONTENT_RESULTS && !a->encode && !c->mode) {
		rc = try_parts(rr, &plan);
		if (rc <= 0)
			return rc;
	}
	plan.reply_chunk_bytes = MIN(plan.reply_chunk_bytes, (uint64_t)rr_conn_buf_max(&c->base, RR_ZONE_REPLIES));
	rc = rr_reply_head(&rr->base, a, &s, msg, c->send_inline - plan.hdr_bytes, &len);
	if (rc == -EMSGSIZE && plan.reply_chunk_bytes) {
		rc = get_reply_buf(rr, plan.reply_chunk_bytes);
		if (rc)
			goto out_short;
		msg = rr->reply_buf->addr;
		in_buf = true;
		rc = rr_reply_head(&rr->base, a, &s, msg, plan.reply_chunk_bytes, &len);
	}
	if (rc == -EINVAL) { /* results that cannot be encoded: a bug of the service */
		*a = rr_reply_system_err;
		return try_reply(rr);
	}
	if (rc) {
		send_err_chunk(rr);
		return 0;
	}
	plan.head_bytes = len;
	plan.payload_bytes = s.payload.length;
	rr_plan_reply(&plan);
	if (c->mode) {
		rc = c->mode->ops->reply(rr, &plan, &s, msg, len);
		if (rc <= 0)
			return rc;
	}
	total = len + round_up4(plan.payload_bytes);
	rc = 0;
	switch (plan.form) {
	case RR_REPLY_INLINE:
		if (plan.payload_bytes)
			len = insert_payload(rr, &s, msg, len);
		rr_count(c->base.engine, bytes_out, plan.payload_bytes);
		send_header(rr, false, 0, 0, len);
		return 0;
	case RR_REPLY_WRITE_CHUNK:
	case RR_REPLY_LONG_WRITE:
		if (plan.payload_bytes && s.payload.iovcnt) {
			if (in_buf) /* the buffer holds the head already: none of our services does this */
				break;
			rc = get_reply_buf(rr, plan.payload_bytes);
			if (!rc)
				rc = write_from_iov(rr, &s.payload);
			if (rc)
				goto out_short;
		}
		rr_count(c->base.engine, bytes_out, plan.payload_bytes);
		if (plan.form == RR_REPLY_WRITE_CHUNK) {
			send_header(rr, false, plan.payload_bytes, 0, len);
			return 0;
		}
		if (!in_buf)
			break;
		rc = rr_srv_write_reply(rr, msg, len);
		if (rc)
			goto out_short;
		send_header(rr, true, plan.payload_bytes, len, 0);
		return 0;
	case RR_REPLY_LONG:
		if (!in_buf) {
			rc = get_reply_buf(rr, total);
			if (rc)
				goto out_short;
			memcpy(rr->reply_buf->addr, msg, len);
			msg = rr->reply_buf->addr;
		}
		if (plan.payload_bytes)
			len = insert_payload(rr, &s, msg, len);
		rc = rr_srv_write_reply(rr, msg, len);
		if (rc)
			goto out_short;
		rr_count(c->base.engine, bytes_out, plan.payload_bytes);
		send_header(rr, true, 0, len, 0);
		return 0;
	case RR_REPLY_TOO_LONG:
		break;
	}
	send_err_chunk(rr);
	return 0;
out_short:
	if (rc == -ENOBUFS && !c->base.dead)
		return rc;
	give_up(rr);
	return 0;
}

static void start_reply(struct rr_rreq *rr);

static void on_buf(struct rpcrdma_buf_waiter *w)
{
	start_reply(container_of(w, struct rr_rreq, waiter));
}

/* Gets the send buffer first, then the buffer that a long reply also needs. */
static void start_reply(struct rr_rreq *rr)
{
	struct rr_rconn *c = rr_rreq_conn(rr);
	int rc = rr->send_buf ? 0 : rr_rconn_send_buf(c, &rr->send_buf);

	if (rc == -ENOBUFS && !c->base.dead)
		rr_conn_buf_wait(&c->base, RR_ZONE_SENDS, &rr->waiter);
	else if (rc)
		give_up(rr);
	else if (try_reply(rr) == -ENOBUFS)
		rr_conn_buf_wait(&c->base, RR_ZONE_REPLIES, &rr->waiter);
}

void rr_srv_resume_reply(struct rr_rreq *rr, int err)
{
	if (err || rr_rreq_conn(rr)->base.dead)
		give_up(rr);
	else
		start_reply(rr);
}

void rr_srv_reply(struct rr_req *r, const struct rr_reply *a)
{
	struct rr_rreq *rr = rr_rreq_of(r);

	rr->ops_out++; /* the reply, which may wait for a buffer before its Send is posted */
	if (a->kind == RR_CONTENT_NONE || rr_rreq_conn(rr)->base.dead) {
		(void)grant(rr); /* counted as replied, although the peer is not told its credits */
		end_silently(rr);
		return;
	}
	rr->reply = *a;
	rr->waiter = (struct rpcrdma_buf_waiter){ .fn = on_buf };
	start_reply(rr);
}
