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
 *
 * Memory:     Chunks describe the caller's own memory, one segment per iov entry. A bounce buffer replaces it
 *             for messages, and for payload in more than 16 segments or that the strategy refuses; those copies
 *             are counted. A bounce buffer stays registered as long as the connection, or, with the strategy
 *             `dynamic`, for one call. The endpoint owns the Send's buffer until its completion, which may
 *             arrive after the reply: the rr_rcall waits for both.
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

/* ---- offers ------------------------------------------------------------------------------- */

static int offer_bounce(struct rr_link *l, struct rr_offer *o, size_t bytes, unsigned access)
{
	struct rr_bounce *b;
	int rc = rr_bounce_get(l, bytes, &b);

	if (rc)
		return rc;
	if (b->keeps)
		rc = rr_reg_lend(&l->reg, &b->rseg, bytes, access);
	else
		rc = rr_reg_dynamic_ops.get(&l->reg, b->mem, bytes, access, &b->rseg);
	if (rc) {
		list_add_head(&l->bounces, &b->link);
		return rc;
	}
	b->offered = true;
	o->bounce = b;
	return 0;
}

/* Is another call in progress that will make room? Not one that waits for room itself. */
static bool others_are_out(const struct rr_rcall *rc)
{
	const struct rr_clnt_design *d = rc->conn->design;

	list_for_each(node, &rc->conn->calls) {
		const struct rr_rcall *other = list_entry(node, struct rr_rcall, link);

		if (other != rc && !(d && d->ops->waits(other)))
			return true;
	}
	return false;
}

/* Offers the caller's memory, or a bounce buffer if it has too many segments, is too small to be registered, or
 * no registration is available. In the last case, a call that @can_wait waits instead while other calls hold
 * registrations. */
static int offer_iov(struct rr_rcall *rcall, struct rr_offer *o, const struct iovec *iov, int iovcnt,
		     uint64_t len, unsigned access, bool can_wait)
{
	struct rr_link *l = rcall->conn;
	int rc = rr_reg_get(&l->reg, iov, iovcnt, len, access, o->segs, &o->n);

	if (rc == -ENOENT || rc == -ENOBUFS ||
	    (rc == -ENOMEM && !(can_wait && others_are_out(rcall)))) {
		rc = -EFAULT;
		if (rr_reg_is_there(iov, iovcnt, len, access & RR_ACCESS_REMOTE_WRITE))
			rc = offer_bounce(l, o, len, access);
		if (!rc)
			rr_count(l->engine, reg_bounced, 1);
	}
	return rc;
}

/* Returns the offered bounce buffer and marks it as not offered; it still belongs to the offer. */
static struct rr_bounce *take_back(struct rr_offer *o)
{
	struct rr_bounce *b = o->bounce;

	if (!b || !b->offered)
		return NULL;
	b->offered = false;
	return b;
}

/* Return: false: memory of it lost its pages */
static bool offer_close(struct rr_link *l, struct rr_offer *o)
{
	bool there = rr_reg_put(&l->reg, o->segs, o->n);
	struct rr_bounce *b = take_back(o);

	o->n = 0;
	if (b && b->keeps)
		(void)rr_reg_unlend(&l->reg, &b->rseg);
	else if (b)
		(void)rr_reg_put(&l->reg, &b->rseg, 1); /* the link's own memory is mapped */
	return there;
}

/* Return: false: some of it stays accessible */
static bool offer_recall(struct rr_link *l, struct rr_offer *o)
{
	bool out_of_reach = rr_reg_recall(&l->reg, o->segs, o->n);
	struct rr_bounce *b = take_back(o);

	o->n = 0;
	if (!b)
		return out_of_reach;
	if (!b->keeps) {
		out_of_reach &= rr_reg_recall(&l->reg, &b->rseg, 1);
	} else if (rr_reg_unlend(&l->reg, &b->rseg)) {
		; /* only its window was accessible */
	} else if (l->engine->domain->arena) {
		out_of_reach = false; /* other calls use the same region */
	} else {
		o->bounce = NULL;
		rr_bounce_destroy(l, b);
	}
	return out_of_reach;
}

static void offer_drop(struct rr_link *l, struct rr_offer *o)
{
	struct rr_bounce *b = take_back(o);

	rr_reg_drop(&l->reg, o->segs, o->n);
	o->n = 0;
	if (b && b->keeps)
		(void)rr_reg_unlend(&l->reg, &b->rseg);
	else if (b)
		rr_reg_drop(&l->reg, &b->rseg, 1);
}

static void offer_done(struct rr_link *l, struct rr_offer *o, bool message)
{
	if (o->bounce)
		rr_bounce_put(l, o->bounce, message);
	o->bounce = NULL;
}

static void put_write_chunk(const struct rr_offer *o, struct rr_chunk *chunk)
{
	chunk->nsegs = o->bounce ? 1 : o->n;
	if (o->bounce)
		chunk->segs[0] = o->bounce->rseg.seg;
	for (unsigned i = 0; i < o->n; i++)
		chunk->segs[i] = o->segs[i].seg;
}

static void put_read_chunk(const struct rr_offer *o, uint32_t position, struct rr_hdr *h)
{
	if (o->bounce)
		h->reads[h->nreads++] = (struct rr_read_seg){ position, o->bounce->rseg.seg };
	for (unsigned i = 0; i < o->n; i++)
		h->reads[h->nreads++] = (struct rr_read_seg){ position, o->segs[i].seg };
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
	if (l->design && l->design->ops->sent(rc, status))
		return;
	rr_ep_put_send(rc->sc);
	rc->sc = NULL;
	if (!rc->call && !rr_rcall_is_busy(rc))
		recycle(rc);
	if (l->design)
		l->design->ops->go_on(l);
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
	if (l->design && l->design->ops->init(rc)) {
		list_add_head(&l->free_calls, &rc->link);
		return NULL;
	}
	return rc;
}

static bool offer_taken_back(struct rr_link *l, struct rr_offer *o, uint32_t key)
{
	return rr_reg_taken_back(&l->reg, o->segs, o->n, key) ||
	       (o->bounce &&
		rr_reg_taken_back(&l->reg, &o->bounce->rseg, o->bounce->offered, key));
}

bool rr_rcall_taken_back(struct rr_rcall *rc, uint32_t key)
{
	struct rr_offer *offers[] = RR_RCALL_OFFERS(rc);

	for (size_t i = 0; i < ARRAY_SIZE(offers); i++)
		if (offer_taken_back(rc->conn, offers[i], key))
			return true;
	return false;
}

void rr_rcall_answered(struct rr_rcall *rc)
{
	struct rr_offer *offers[] = RR_RCALL_OFFERS(rc);
	struct rr_link *l = rc->conn;

	for (size_t i = 0; i < ARRAY_SIZE(offers); i++) {
		struct rr_offer *o = offers[i];

		rr_reg_answered(&l->reg, o->segs, o->n, &rc->closing);
		if (o->bounce)
			rr_reg_answered(&l->reg, &o->bounce->rseg, o->bounce->offered,
					&rc->closing);
	}
}

bool rr_rcall_release(struct rr_rcall *rc)
{
	struct rr_offer *offers[] = RR_RCALL_OFFERS(rc);
	bool there = true;

	for (size_t i = 0; i < ARRAY_SIZE(offers); i++)
		there &= offer_close(rc->conn, offers[i]);
	return there;
}

bool rr_rcall_recall(struct rr_rcall *rc)
{
	struct rr_offer *offers[] = RR_RCALL_OFFERS(rc);
	bool out_of_reach = true;

	for (size_t i = 0; i < ARRAY_SIZE(offers); i++)
		out_of_reach &= offer_recall(rc->conn, offers[i]);
	return out_of_reach;
}

static void rcall_drop(struct rr_rcall *rc)
{
	struct rr_offer *offers[] = RR_RCALL_OFFERS(rc);

	for (size_t i = 0; i < ARRAY_SIZE(offers); i++)
		offer_drop(rc->conn, offers[i]);
}

static void rcall_done(struct rr_rcall *rc)
{
	offer_done(rc->conn, &rc->args, false);
	offer_done(rc->conn, &rc->sink, false);
	offer_done(rc->conn, &rc->message, true);
	offer_done(rc->conn, &rc->reply, true);
	rc->has_write = rc->has_reply = false;
}

void rr_rcall_withdraw(struct rr_rcall *rc)
{
	(void)rr_rcall_release(rc);
	rcall_done(rc);
}

void rr_rcall_detach(struct rr_rcall *rc)
{
	rcall_done(rc);
	if (rc->design)
		rc->conn->design->ops->detach(rc);
	if (rc->recv)
		rr_ep_repost(rc->recv);
	rc->recv = NULL;
	rc->call = NULL;
	if (!rc->sc && !rr_rcall_is_busy(rc))
		recycle(rc);
}

bool rr_rcall_unpost(struct rr_rcall *rc)
{
	struct rr_link *l = rc->conn;

	if (!rc->sc || !rr_ep_unpost(l->ep, &rc->post))
		return false;
	rr_ep_put_send(rc->sc);
	rc->sc = NULL;
	return true;
}

void rr_rcall_free_all(struct rr_link *l)
{
	list_for_each_safe(node, &l->calls) {
		struct rr_rcall *rc = list_entry(node, struct rr_rcall, link);

		if (rc->call)
			rc->call->xprt = NULL;
		rcall_drop(rc);  /* long-lived registrations end with the link */
		rc->sc = NULL;   /* the endpoint owns it, and is destroyed too, ... */
		rc->recv = NULL; /* ... as is this */
		if (rc->design)
			rc->design->busy = false;
		rr_rcall_detach(rc);
	}
	list_for_each_safe(node, &l->free_calls) {
		struct rr_rcall *rc = list_entry(node, struct rr_rcall, link);

		free(rc->design);
		free(rc);
	}
	list_for_each_safe(node, &l->bounces)
		rr_bounce_destroy(l, list_entry(node, struct rr_bounce, link));
}

/* ---- the message -------------------------------------------------------------------------- */

/* Encodes into the link's scratch buffer, which grows to the longest call so far. */
static int encode(struct rr_link *l, struct rr_call *call, struct rr_stream *s)
{
	size_t bytes = l->scratch_bytes ? l->scratch_bytes : SCRATCH_BYTES;
	uint8_t *bigger;
	int rc;

	for (;;) {
		if (bytes > l->scratch_bytes) {
			bigger = realloc(l->scratch, bytes);
			if (!bigger)
				return -ENOMEM;
			l->scratch = bigger;
			l->scratch_bytes = bytes;
		}
		rc = rr_clnt_encode(call, s, l->scratch, l->scratch_bytes);
		if (rc != -EMSGSIZE || bytes >= RR_CALL_BYTES_MAX)
			return rc;
		bytes = MIN(bytes * 4, (size_t)RR_CALL_BYTES_MAX);
	}
}

static bool payload_is_there(const struct rpcrdma_payload *p)
{
	uint64_t sum = 0;

	for (int i = 0; i < p->iovcnt; i++)
		sum += p->iov[i].iov_len;
	return sum >= p->length;
}

static unsigned segments(const struct rpcrdma_clnt *c, const struct iovec *iov, int iovcnt, uint64_t len)
{
	unsigned n = rr_reg_count(c->engine->domain, iov, iovcnt, len);

	return n > RR_REG_SEGS_MAX ? 1 : n; /* a bounce buffer */
}

static int plan(const struct rr_link *l, const struct rr_call *call, const struct rr_stream *s,
		struct rr_plan_call *p)
{
	uint64_t room = rr_clnt_sink_bytes(call);

	if (s->has_payload && !payload_is_there(&s->payload))
		return -EINVAL;
	if (room > UINT32_MAX)
		return -EINVAL;
	*p = (struct rr_plan_call){
		.head_bytes = rr_stream_len(s),
		.has_arg = s->has_payload,
		.arg_bytes = s->has_payload ? s->payload.length : 0,
		.head_segs = 1,
		.reply_max = (size_t)RR_RPC_REPLY_HDR_BYTES + call->user->reply_max,
		.has_result = room > 0,
		.result_max = (uint32_t)room,
		.result_segs = segments(l->clnt, call->user->sink, call->user->sinkcnt, room),
		.reply_segs = 1,
		.send_max = l->clnt->send_inline,
		.recv_max = l->clnt->recv_inline,
		.force_chunks = l->clnt->attr.force_chunks,
		.result_read = l->design && l->design->result_read,
	};
	if (p->arg_bytes)
		p->arg_segs = segments(l->clnt, s->payload.iov, s->payload.iovcnt, p->arg_bytes);
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

static int offer_result(struct rr_link *l, struct rr_rcall *rc, const struct rr_plan_call *p)
{
	const struct rpcrdma_call *user = rc->call->user;
	const unsigned access = RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE;
	int err = 0;

	rc->has_write = p->write_chunk;
	rc->has_reply = p->reply_chunk;
	if (p->write_chunk) {
		err = offer_iov(rc, &rc->sink, user->sink, user->sinkcnt, p->result_max, access, true);
		if (err)
			return err;
		put_write_chunk(&rc->sink, &rc->write_chunk);
		rr_count(l->engine, chunks_write, 1);
	}
	if (p->reply_chunk) {
		err = offer_bounce(l, &rc->reply, p->reply_chunk_bytes, access);
		if (err)
			return err;
		put_write_chunk(&rc->reply, &rc->reply_chunk);
		rr_count(l->engine, chunks_reply, 1);
	}
	return 0;
}

static int offer_args(struct rr_link *l, struct rr_rcall *rc, const struct rr_plan_call *p,
		      const struct rr_stream *s)
{
	int err;

	if (rr_how(rc) == RR_HOW_COPIED) {
		gather(l->clnt, &s->payload, rc->design->copy);
	} else if (p->form == RR_CALL_READ_CHUNK || p->form == RR_CALL_LONG_READ) {
		err = offer_iov(rc, &rc->args, s->payload.iov, s->payload.iovcnt, p->arg_bytes,
				RR_ACCESS_REMOTE_READ, true);
		if (err)
			return err;
		if (rc->args.bounce)
			gather(l->clnt, &s->payload, rc->args.bounce->mem);
		rr_count(l->engine, chunks_read, rr_how(rc) == RR_HOW_PLAIN);
	}
	if (p->form == RR_CALL_LONG || p->form == RR_CALL_LONG_READ) {
		bool whole = p->form == RR_CALL_LONG;

		err = offer_bounce(l, &rc->message, whole ? rr_stream_bytes(s) : rr_stream_len(s),
				   RR_ACCESS_REMOTE_READ);
		if (err)
			return err;
		if (whole)
			put_whole(l->clnt, s, rc->message.bounce->mem);
		else
			put_head(s, rc->message.bounce->mem);
		rr_count(l->engine, long_calls, 1);
	}
	return 0;
}

/* Writes the header and, unless it is a long call, the message to the Send's buffer; Return: bytes */
static int build(struct rr_link *l, const struct rr_rcall *rc, const struct rr_plan_call *p,
		 const struct rr_stream *s, uint8_t *buf, size_t *ret_len)
{
	bool nomsg = p->form == RR_CALL_LONG || p->form == RR_CALL_LONG_READ;
	struct rr_hdr h;
	size_t n;
	int err;

	rr_hdr_init(&h, rc->call->xid, l->clnt->credit.wanted, nomsg ? RR_NOMSG : RR_MSG);
	if (nomsg)
		put_read_chunk(&rc->message, 0, &h);
	if (rr_how(rc) != RR_HOW_PLAIN)
		h.reads[h.nreads++] = (struct rr_read_seg){ (uint32_t)s->payload_pos,
							    rc->design->there };
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
	struct rr_offer *offers[] = RR_RCALL_OFFERS(rc);
	struct rr_wr **tail = &rc->post.first;

	if (rr_how(rc) == RR_HOW_COPIED || rr_how(rc) == RR_HOW_PUT) {
		l->design->ops->post(rc, len);
		return;
	}
	rc->sge = (struct rr_sge){ .addr = rc->sc->buf, .len = (uint32_t)len, .mr = rc->sc->mr };
	rc->wr = (struct rr_wr){ .op = RR_WR_SEND, .sge = &rc->sge, .nsge = 1 };
	rc->post.n = 1;
	for (size_t i = 0; i < ARRAY_SIZE(offers); i++) {
		struct rr_offer *o = offers[i];

		rc->post.n += rr_reg_bind(&l->reg, o->segs, o->n, &tail);
		if (o->bounce)
			rc->post.n += rr_reg_bind(&l->reg, &o->bounce->rseg, 1, &tail);
	}
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
		err = build(l, rc, p, s, rc->sc->buf, ret_len);
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

	err = encode(l, rc->call, &s);
	if (!err)
		err = plan(l, rc->call, &s, &p);
	if (!err)
		err = prepare(l, rc, &p, &s, &len);
	if (!err)
		post(l, rc, len);
	return err;
}

int rr_rcall_offer_sink(struct rr_rcall *rc, uint64_t bytes)
{
	const struct rpcrdma_call *user = rc->call->user;

	return offer_iov(rc, &rc->sink, user->sink, user->sinkcnt, bytes,
			 RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE, false);
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
	err = encode(l, call, &s);
	if (!err)
		err = plan(l, call, &s, &p);
	if (err)
		return err;
	rc = rcall_get(l);
	if (!rc)
		return -ENOMEM;
	rc->call = call;
	err = rr_ep_get_send(l->ep, &rc->sc);
	if (err) /* -ENOBUFS: replies overtook the completions of their calls' Sends */
		goto fail;
	if (l->design)
		len = l->design->ops->choose(rc, &p, &s);
	if (!len)
		err = prepare(l, rc, &p, &s, &len);
	if (err)
		goto fail;
	list_add_tail(&l->calls, &rc->link);
	call->xprt = rc;
	post(l, rc, len);
	return 0;
fail:
	(void)rr_rcall_release(rc); /* the peer does not know of it */
	if (rc->sc)
		rr_ep_put_send(rc->sc);
	rc->sc = NULL;
	rr_rcall_detach(rc);
	return err;
}
