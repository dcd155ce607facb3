/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_rdma_send.c - sends a call: encode, plan, offer memory, write the header, post the Send
 *
 * Operation:  rr_rcall_send() controls the steps. It encodes the message without its payload, and plan.c
 *             chooses the form. Then it offers memory and builds the Send in one buffer:
 *                 INLINE      header | message up to the payload | payload pad | rest
 *                 READ_CHUNK  header with Read chunk  | message without the payload
 *                 LONG_READ   header with position-zero chunk and Read chunk
 *                 LONG        header with position-zero chunk over the whole message
 *             Ready arguments that are longer than a Send are not copied: they are further segments of the
 *             position-zero chunk, behind one for the RPC header.
 *
 * Memory:     Chunks describe the caller's own memory, one segment per iov entry, or memory of the transport for
 *             messages and for payload that registration (reg.h) copies; those copies are counted. The
 *             link owns the Send's buffer until its completion, which may arrive after the reply: the rr_rcall
 *             waits for both.
 * Threads:    The engine's.
 * Errors:     If registrations run out while other calls are in progress, the error is -ENOBUFS: their end
 *             makes room. Without other calls, the payload is copied.
 * See:        protocol.md sections 1.2 to 1.4; plan.h.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"
#include "chunk.h"
#include "clnt_rdma.h"
#include "plan.h"

#define SCRATCH_BYTES 16384u
#define ACCESS_RESULT (RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE) /* to memory of results */
#define MANY_INLINE 4096u /* room for lists of RR_REG_SEGS_MANY segments */

/* ---- offers ------------------------------------------------------------------------------- */

/* Is another call in progress that will make room? Not one that waits for room itself, or for a late reply. */
static bool others_are_out(const struct rr_rcall *rc)
{
	const struct rr_clnt_mode *d = rc->conn->mode;

	list_for_each(node, &rc->conn->calls) {
		const struct rr_rcall *other = list_entry(node, struct rr_rcall, link);

		if (other != rc && !rr_rcall_is_late(other) && !(d && d->ops->waits(other)))
			return true;
	}
	return false;
}

static void put_write_chunk(struct rr_offer *o, struct rr_chunk *chunk)
{
	chunk->nsegs = o->n;
	for (unsigned i = 0; i < o->n; i++)
		chunk->segs[i] = rr_offer_seg(o, i)->seg;
}

static void put_read_chunk(struct rr_offer *o, uint32_t position, struct rr_hdr *h)
{
	for (unsigned i = 0; i < o->n; i++)
		h->reads[h->nreads++] = (struct rr_read_seg){ position, rr_offer_seg(o, i)->seg };
}

/* ---- calls on a link ---------------------------------------------------------------------- */

static void recycle(struct rr_rcall *rc)
{
	list_del(&rc->link);
	list_add_head(&rc->conn->free_calls, &rc->link);
}

static void on_sent(struct rr_post *post, enum rr_wc_status status)
{
	struct rr_rcall *rc = container_of(post, struct rr_rcall, post);
	struct rr_link *l = rc->conn;

	/* a bad status makes the endpoint dead */
	if (l->mode && l->mode->ops->sent(rc, status))
		return;
	rr_link_msg_put(l, rc->send_buf);
	rc->send_buf = NULL;
	if (!rc->call && !rr_rcall_is_busy(rc))
		recycle(rc);
	if (l->mode)
		l->mode->ops->go_on(l);
	if (l->clnt && l->clnt->blocked && !l->ending)
		rr_clnt_resume(l->clnt);
}

static struct rr_rcall *rcall_get(struct rr_link *l)
{
	struct list *node = list_pop(&l->free_calls);
	struct rr_rcall *rc = node ? list_entry(node, struct rr_rcall, link) :
				     calloc(1, sizeof(*rc)); /* once per credit in use */

	if (!rc)
		return NULL;
	if (!node)
		list_init(&rc->link);
	list_init(&rc->post.link);
	rc->conn = l;
	rc->post.fn = on_sent;
	rc->closing.fn = rr_rcall_finish;
	if (l->mode && l->mode->ops->init(rc)) {
		list_add_head(&l->free_calls, &rc->link);
		return NULL;
	}
	return rc;
}

void rr_rcall_withdraw(struct rr_rcall *rc)
{
	(void)rr_reg_end(rc->conn->reg, rc->offers, RR_RCALL_OFFERS, RR_END_DONE, NULL);
	rc->has_write = rc->has_reply = false;
}

void rr_rcall_detach(struct rr_rcall *rc)
{
	rr_rcall_withdraw(rc);
	if (rc->mode)
		rc->conn->mode->ops->detach(rc);
	if (rc->recv)
		rr_ep_repost(rc->recv);
	rc->recv = NULL;
	rc->call = NULL;
	if (!rc->send_buf && !rr_rcall_is_busy(rc))
		recycle(rc);
}

bool rr_rcall_unpost(struct rr_rcall *rc)
{
	struct rr_link *l = rc->conn;

	if (!rc->send_buf || !rr_ep_unpost(l->ep, &rc->post))
		return false;
	rr_link_msg_put(l, rc->send_buf);
	rc->send_buf = NULL;
	return true;
}

void rr_rcall_free_all(struct rr_link *l)
{
	list_for_each_safe(node, &l->calls) {
		struct rr_rcall *rc = list_entry(node, struct rr_rcall, link);

		if (rc->call)
			rc->call->xprt = NULL;
		rc->send_buf = NULL; /* the link owns it, and is freed too, ... */
		rc->recv = NULL;     /* ... as is this */
		if (rc->mode)
			rc->mode->busy = false;
		rr_rcall_detach(rc);
	}
	list_for_each_safe(node, &l->free_calls) {
		struct rr_rcall *rc = list_entry(node, struct rr_rcall, link);

		free(rc->mode);
		for (unsigned i = 0; i < RR_RCALL_OFFERS; i++)
			rr_offer_fini(&rc->offers[i]);
		free(rc);
	}
}

/* ---- the message -------------------------------------------------------------------------- */

/* Ready arguments that do not fit a Send stay where they are: the stream has the header alone. */
static bool is_apart(const struct rr_link *l, const struct rr_call *call)
{
	return call->user->ready && call->ready_bytes + RR_HDR_MIN > l->clnt->send_inline;
}

/* Each window needs a request of the send queue, and the lists have to fit the headers of call and reply. */
static unsigned seg_limit(const struct rr_link *l, const struct rpcrdma_call *call)
{
	if (call->segs_max <= RR_REG_SEGS_MAX || l->reg->windows || l->mode ||
	    MIN(l->clnt->send_inline, l->clnt->recv_inline) < MANY_INLINE)
		return RR_REG_SEGS_MAX;
	return MIN(call->segs_max, RR_REG_SEGS_MANY);
}

static unsigned segments_upto(const struct rpcrdma_clnt *c, const struct iovec *iov, int iovcnt, uint64_t len,
			      unsigned limit)
{
	unsigned n = rr_mem_segments(c->engine->domain, iov, iovcnt, len);

	return n > limit ? 1 : n; /* a bounce buffer */
}

static unsigned segments(const struct rpcrdma_clnt *c, const struct iovec *iov, int iovcnt, uint64_t len)
{
	return segments_upto(c, iov, iovcnt, len, RR_REG_SEGS_MAX);
}

/* Encodes a call to the link's scratch buffer, and chooses its form. */
static int plan(struct rr_link *l, struct rr_call *call, struct rr_stream *s, struct rr_plan_call *p)
{
	const struct rpcrdma_ready *ready = call->user->ready;
	unsigned limit = seg_limit(l, call->user);
	bool apart = is_apart(l, call);
	uint64_t room = rr_clnt_sink_bytes(call);
	size_t reply_max = (size_t)RR_RPC_REPLY_HDR_BYTES + call->user->reply_max + rr_clnt_verf_room(call);
	struct iovec room_iov = { 0 };
	int err = rr_clnt_encode(call, s, &l->scratch, SCRATCH_BYTES, 0, apart);

	if (err)
		return err;
	if (call->room)
		room_iov = (struct iovec){ call->room->mem, call->room->bytes };
	if (room > UINT32_MAX) {
		call->user->why = "sink is longer than a payload can be (4 GiB)";
		return -EINVAL;
	}
	*p = (struct rr_plan_call){
		.head_bytes = rr_stream_len(s) + (apart ? call->ready_bytes : 0),
		.arg_bytes = s->payload.length,
		.head_segs = apart ? 1 + segments(l->clnt, ready->iov, ready->iovcnt, call->ready_bytes) : 1,
		.reply_max = reply_max,
		.reply_whole = call->room != NULL,
		.result_max = (uint32_t)room,
		.result_segs = segments_upto(l->clnt, call->user->sink, call->user->sinkcnt, room, limit),
		.reply_segs = call->room ? segments(l->clnt, &room_iov, 1, round_up4(reply_max)) : 1,
		.send_max = l->clnt->send_inline,
		.recv_max = l->clnt->recv_inline,
		.force_chunks = l->clnt->lab.force_chunks,
		.result_read = l->mode && l->mode->result_read,
	};
	if (p->arg_bytes)
		p->arg_segs = segments_upto(l->clnt, s->payload.iov, s->payload.iovcnt, p->arg_bytes, limit);
	return rr_plan_call(p);
}

/* Copies payload bytes out of the caller's memory, and counts them. */
static uint8_t *gather(struct rpcrdma_clnt *c, const struct rpcrdma_payload *p, uint8_t *to)
{
	size_t left = p->length;

	rr_count(c->engine, bytes_copied, left);
	for (int i = 0; left; i++) {
		size_t n = MIN(p->iov[i].iov_len, left);

		if (n)
			memcpy(to, p->iov[i].iov_base, n);
		to += n;
		left -= n;
	}
	return to;
}

/* Writes the un-reduced message: with the payload in its place, and its pad. */
static size_t put_whole(struct rpcrdma_clnt *c, const struct rr_stream *s, uint8_t *to)
{
	size_t head = s->has_payload ? s->payload_pos : rr_stream_len(s);
	uint8_t *at = to + head;
	size_t pad;

	memcpy(to, s->buf, head);
	if (!s->has_payload)
		return head;
	at = gather(c, &s->payload, at);
	pad = round_up4(s->payload.length) - s->payload.length;
	memset(at, 0, pad);
	at += pad;
	memcpy(at, s->buf + head, rr_stream_len(s) - head);
	return (size_t)(at - to) + rr_stream_len(s) - head;
}

static size_t put_head(const struct rr_stream *s, uint8_t *to)
{
	memcpy(to, s->buf, rr_stream_len(s));
	return rr_stream_len(s);
}

/* ---- the chunks --------------------------------------------------------------------------- */

/* Offers the caller's room for the reply, or memory of the link. */
static int offer_reply(struct rr_link *l, struct rr_rcall *rc, size_t bytes)
{
	const struct rpcrdma_room *room = rc->call->room;
	struct iovec iov;

	if (!room)
		return rr_reg_offer(l->reg, &rc->reply, NULL, 0, bytes, ACCESS_RESULT, false);
	iov = (struct iovec){ room->mem, room->bytes };
	return rr_reg_offer(l->reg, &rc->reply, &iov, 1, bytes, ACCESS_RESULT, others_are_out(rc));
}

int rr_rcall_offer_sink(struct rr_rcall *rc, uint64_t bytes, bool wait)
{
	const struct rpcrdma_call *user = rc->call->user;

	rc->sink.limit = seg_limit(rc->conn, user);
	return rr_reg_offer(rc->conn->reg, &rc->sink, user->sink, user->sinkcnt, bytes, ACCESS_RESULT, wait);
}

static int offer_result(struct rr_link *l, struct rr_rcall *rc, const struct rr_plan_call *p)
{
	int err = 0;

	rc->has_write = p->write_chunk;
	rc->has_reply = p->reply_chunk;
	if (p->write_chunk) {
		err = rr_rcall_offer_sink(rc, p->result_max, others_are_out(rc));
		if (err)
			return err;
		put_write_chunk(&rc->sink, &rc->write_chunk);
		rr_count(l->engine, chunks_write, 1);
	}
	if (p->reply_chunk) {
		err = offer_reply(l, rc, p->reply_chunk_bytes);
		if (err)
			return err;
		put_write_chunk(&rc->reply, &rc->reply_chunk);
		rr_count(l->engine, chunks_reply, 1);
	}
	return 0;
}

/* Offers ready arguments, which follow the header of a long call. */
static int offer_ready(struct rr_link *l, struct rr_rcall *rc)
{
	const struct rpcrdma_ready *r = rc->call->user->ready;
	struct rpcrdma_payload all = { .length = (uint32_t)rc->call->ready_bytes, .iov = r->iov, .iovcnt = r->iovcnt };
	int err = rr_reg_offer(l->reg, &rc->ready, r->iov, r->iovcnt, all.length, RR_ACCESS_REMOTE_READ,
			       others_are_out(rc));

	if (!err && rc->ready.mem)
		gather(l->clnt, &all, rc->ready.mem);
	return err;
}

static int offer_args(struct rr_link *l, struct rr_rcall *rc, const struct rr_plan_call *p,
		      const struct rr_stream *s)
{
	int err;

	if (rr_how(rc) == RR_HOW_COPIED) {
		gather(l->clnt, &s->payload, rc->mode->copy);
	} else if (p->form == RR_CALL_READ_CHUNK || p->form == RR_CALL_LONG_READ) {
		rc->args.limit = seg_limit(l, rc->call->user);
		err = rr_reg_offer(l->reg, &rc->args, s->payload.iov, s->payload.iovcnt, p->arg_bytes,
				   RR_ACCESS_REMOTE_READ, others_are_out(rc));
		if (err)
			return err;
		if (rc->args.mem)
			gather(l->clnt, &s->payload, rc->args.mem);
		rr_count(l->engine, chunks_read, rr_how(rc) == RR_HOW_PLAIN);
	}
	if (is_apart(l, rc->call)) {
		err = offer_ready(l, rc);
		if (err)
			return err;
	}
	if (p->form == RR_CALL_LONG || p->form == RR_CALL_LONG_READ) {
		bool whole = p->form == RR_CALL_LONG && !is_apart(l, rc->call);

		err = rr_reg_offer(l->reg, &rc->message, NULL, 0,
				   whole ? rr_stream_bytes(s) : rr_stream_len(s), RR_ACCESS_REMOTE_READ,
				   false);
		if (err)
			return err;
		if (whole)
			put_whole(l->clnt, s, rc->message.mem);
		else
			put_head(s, rc->message.mem);
		rr_count(l->engine, long_calls, 1);
	}
	return 0;
}

/* Writes the header and, unless it is a long call, the message to the Send's buffer; Return: bytes */
static int build(struct rr_link *l, struct rr_rcall *rc, const struct rr_plan_call *p,
		 const struct rr_stream *s, uint8_t *buf, size_t *ret_len)
{
	bool nomsg = p->form == RR_CALL_LONG || p->form == RR_CALL_LONG_READ;
	struct rr_hdr h;
	size_t n;
	int err;

	rr_hdr_init(&h, rc->call->xid, l->clnt->credit.wanted, nomsg ? RR_NOMSG : RR_MSG);
	if (nomsg) {
		put_read_chunk(&rc->message, 0, &h);
		put_read_chunk(&rc->ready, 0, &h); /* of the same chunk */
	}
	if (rr_how(rc) != RR_HOW_PLAIN)
		h.reads[h.nreads++] = (struct rr_read_seg){ (uint32_t)s->payload_pos,
							    rc->mode->there };
	else if (p->form == RR_CALL_READ_CHUNK || p->form == RR_CALL_LONG_READ)
		put_read_chunk(&rc->args, (uint32_t)s->payload_pos, &h);
	if (rc->has_write) {
		h.nwrites = 1;
		h.writes[0] = rc->write_chunk;
	}
	if (rc->has_reply) {
		h.has_reply = true;
		h.reply = rc->reply_chunk;
	}
	err = rr_hdr_encode(&h, buf, l->clnt->send_inline, &n);
	if (err)
		return err;
	if (p->form == RR_CALL_INLINE)
		n += put_whole(l->clnt, s, buf + n);
	else if (p->form == RR_CALL_READ_CHUNK)
		n += put_head(s, buf + n);
	assert(n <= l->clnt->send_inline);
	*ret_len = n;
	return 0;
}

/* Posts one chain: the binds of the announced windows precede the Send, without waiting for them. */
static void post(struct rr_link *l, struct rr_rcall *rc, size_t len)
{
	struct rr_wr **tail = &rc->post.first;

	if (rr_how(rc) == RR_HOW_COPIED || rr_how(rc) == RR_HOW_PUT) {
		l->mode->ops->post(rc, len);
		return;
	}
	rc->wr = (struct rr_wr){ .op = RR_WR_SEND, .sge = rr_msg_sge(rc->send_buf, l->dev, len) };
	rc->post.n = 1 + rr_reg_bind(l->reg, rc->offers, RR_RCALL_OFFERS, &tail);
	*tail = &rc->wr;
	rr_ep_post(l->ep, &rc->post);
}

/* Turns a shortage of resources that other calls hold into -ENOBUFS, to wait for them. */
static int shortage(const struct rr_rcall *rc, int err)
{
	return err == -ENOMEM && others_are_out(rc) ? -ENOBUFS : err;
}

/* Creates all offers of a call, and its Send; Return: as rr_rcall_send() */
static int prepare(struct rr_link *l, struct rr_rcall *rc, const struct rr_plan_call *p,
		   const struct rr_stream *s, size_t *ret_len)
{
	int err = offer_result(l, rc, p);

	if (!err)
		err = offer_args(l, rc, p, s);
	if (!err)
		err = build(l, rc, p, s, rc->send_buf->addr, ret_len);
	if (err)
		return shortage(rc, err);
	if (p->form == RR_CALL_INLINE)
		rr_count(l->engine, inline_msgs, 1);
	rr_count(l->engine, bytes_out, p->arg_bytes);
	return 0;
}

int rr_rcall_resume(struct rr_rcall *rc)
{
	struct rr_link *l = rc->conn;
	struct rr_plan_call p;
	struct rr_stream s;
	size_t len = 0;
	int err;

	err = plan(l, rc->call, &s, &p);
	if (!err)
		err = prepare(l, rc, &p, &s, &len);
	if (!err)
		post(l, rc, len);
	return err;
}

int rr_rcall_send(struct rpcrdma_clnt *c, struct rr_call *call)
{
	struct rr_link *l = rr_link_of(c);
	struct rr_plan_call p;
	struct rr_stream s;
	struct rr_rcall *rc;
	size_t len = 0;
	int err;

	if (!l || l->ending)
		return -ENOTCONN;
	err = plan(l, call, &s, &p);
	if (err)
		return err;
	rc = rcall_get(l);
	if (!rc)
		return -ENOMEM;
	rc->call = call;
	err = rr_link_msg_get(l, &rc->send_buf);
	if (err) /* -ENOBUFS: replies overtook the completions of their calls' Sends */
		goto fail;
	if (l->mode && !is_apart(l, call))
		len = l->mode->ops->choose(rc, &p, &s);
	if (!len)
		err = prepare(l, rc, &p, &s, &len);
	if (err)
		goto fail;
	list_add_tail(&l->calls, &rc->link);
	call->xprt = rc;
	post(l, rc, len);
	return 0;
fail:
	if (rc->send_buf)
		rr_link_msg_put(l, rc->send_buf);
	rc->send_buf = NULL;
	rr_rcall_detach(rc);
	return err;
}
