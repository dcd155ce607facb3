/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_tcp_out.c - sends the responder's replies over TCP
 *
 * Operation:  rr_req_add_placed() only queues: on a stream the status precedes the data, so nothing is sent until
 *             the reply is known; the reply may discard the pieces. A reply is one gathering write:
 *             mark and head, the pieces in place, pad. What the socket does not accept is sent when the
 *             socket becomes writable, in the order of the replies.
 * Memory:     The service owns the pieces until its done. The head is built in memory of the request, which
 *             keeps it. A head longer than RR_TCP_REPLY is built in a pool buffer (RR_ZONE_REPLIES), for which
 *             the reply waits.
 * Threads:    The connection's engine.
 * Errors:     A socket error ends the connection; every request still ends, and its done is still called.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "srv_tcp.h"

#define OUT_FIRST 1024u
#define IOV_SEND 64u

static const uint8_t zeros[4];

/* ---- the end of a request ---- */

static void on_end(struct rpcrdma_msg *msg)
{
	struct rr_treq *t = container_of(msg, struct rr_treq, end_msg);
	struct rr_tconn *c = rr_tconn_of(t->base.pub.conn);

	rr_treq_cancel_pulls(t, -ECANCELED); /* their memory is the service's again */
	rr_req_finish(&t->base);
	if (t->reply_buf)
		rpcrdma_buf_put(c->base.engine, t->reply_buf);
	t->reply_buf = NULL;
	t->head_want = 0;
	if (c->in == t) {
		/* the rest of its record must be skipped first; the connection may be waiting for that */
		t->skipping = true;
		if (c->base.dead) {
			c->in = NULL;
			rr_treq_release(t);
		} else {
			rr_tconn_kick(c);
		}
		return;
	}
	rr_treq_release(t);
}

void rr_treq_end(struct rr_treq *t)
{
	t->end_msg.fn = on_end;
	rr_engine_defer(t->base.pub.engine, &t->end_msg);
}

/* ---- the reply ---- */

static int add_iov(struct rr_treq *t, const void *base, size_t len)
{
	if (!len)
		return 0;
	if (t->iovcnt == t->iov_cap) {
		unsigned cap = t->iov_cap ? t->iov_cap * 2 : 8;
		struct iovec *iov = realloc(t->iov, cap * sizeof(*iov));

		if (!iov)
			return -ENOMEM;
		t->iov = iov;
		t->iov_cap = cap;
	}
	t->iov[t->iovcnt++] = (struct iovec){ .iov_base = (void *)(uintptr_t)base, .iov_len = len };
	return 0;
}

static int add_payload(struct rr_treq *t, const struct rpcrdma_payload *payload)
{
	uint32_t at = 0;
	int rc = 0;

	for (int i = 0; !rc && i < payload->iovcnt && at < payload->length; i++) {
		size_t n = MIN(payload->iov[i].iov_len, (size_t)(payload->length - at));

		rc = add_iov(t, payload->iov[i].iov_base, n);
		at += (uint32_t)n;
	}
	for (const struct rpcrdma_xfer *p = payload->iovcnt ? NULL : t->base.placed;
	     !rc && p && at < payload->length; p = p->next) {
		uint32_t n = MIN(p->len, payload->length - at);

		rc = add_iov(t, (uint8_t *)p->buf->addr + p->buf_off, n);
		at += n;
	}
	return rc;
}

static uint8_t *head_of(const struct rr_treq *t)
{
	return t->reply_buf ? t->reply_buf->addr : t->out;
}

/* Gets space for a head of @want bytes. Return: 0; -EMSGSIZE: the pool has no such size; -ENOBUFS: wait; -ENOMEM */
static int get_head(struct rr_treq *t, size_t want)
{
	struct rpcrdma_conn *c = t->base.pub.conn;
	uint8_t *p;

	if (want <= RR_TCP_REPLY) {
		p = realloc(t->out, want);
		if (!p)
			return -ENOMEM;
		t->out = p;
		t->out_cap = want;
		return 0;
	}
	if (t->reply_buf)
		rpcrdma_buf_put(c->engine, t->reply_buf);
	t->reply_buf = NULL;
	/* a waiting reply retries with the same size, so it never waits for the buffer that it just returned */
	t->head_want = want;
	return rr_conn_buf_get(c, RR_ZONE_REPLIES, want, &t->reply_buf);
}

static size_t head_cap(const struct rr_treq *t)
{
	return t->reply_buf ? t->reply_buf->bytes : t->out_cap;
}

static size_t more_than(const struct rr_treq *t, size_t cap)
{
	size_t max = rr_conn_buf_max(t->base.pub.conn, RR_ZONE_REPLIES);

	if (cap < RR_TCP_REPLY)
		return MIN(MAX(cap * 4, (size_t)OUT_FIRST), (size_t)RR_TCP_REPLY);
	return cap < RPCRDMA_BUF_LEAST ? RPCRDMA_BUF_LEAST : cap < max ? MIN(cap * 16, max) : 0;
}

/* Encodes into the head buffer, which grows until the results fit. */
static int encode_head(struct rr_treq *t, const struct rr_reply *a, struct rr_stream *s, size_t *ret_len)
{
	size_t want = t->head_want ? t->head_want : head_cap(t) ? 0 : OUT_FIRST;
	int rc = want ? get_head(t, want) : 0;

	while (!rc) {
		rc = rr_reply_head(&t->base, a, s, head_of(t) + RR_MARK_BYTES, head_cap(t) - RR_MARK_BYTES, ret_len);
		if (rc != -EMSGSIZE)
			break;
		want = more_than(t, head_cap(t));
		if (!want)
			break;
		rc = get_head(t, want);
	}
	return rc;
}

/* The results are sent from where they are. */
static int add_results(struct rr_treq *t)
{
	const struct rr_results *x = &t->base.results;
	size_t pad = round_up4((size_t)x->payload_bytes) - x->payload_bytes;
	int rc = 0;

	for (unsigned i = 0; !rc && i < x->cnt; i++) {
		if (x->n && i == x->first + x->n)
			rc = add_iov(t, zeros, pad);
		if (!rc)
			rc = add_iov(t, x->iov[i].iov_base, x->iov[i].iov_len);
	}
	return !rc && x->n && x->first + x->n == x->cnt ? add_iov(t, zeros, pad) : rc;
}

static int build_parts(struct rr_treq *t)
{
	const struct rr_results *x = &t->base.results;
	size_t bytes = rr_reply_rpc_bytes(&t->base);
	int rc = head_cap(t) < RR_MARK_BYTES + bytes ? get_head(t, OUT_FIRST) : 0;

	if (rc)
		return rc;
	put_be32(head_of(t), RR_MARK_LAST | (uint32_t)(bytes + x->bytes + round_up4((size_t)x->payload_bytes)));
	rr_reply_put_rpc(&t->base, head_of(t) + RR_MARK_BYTES, bytes);
	t->iovcnt = t->iov_at = 0;
	rc = add_iov(t, head_of(t), RR_MARK_BYTES + bytes);
	if (!rc)
		rc = add_results(t);
	if (rc)
		return rc;
	rr_count(t->base.pub.engine, bytes_out, x->payload_bytes);
	rr_count(t->base.pub.engine, bytes_copied, x->payload_bytes); /* into the socket */
	return 0;
}

static int build(struct rr_treq *t, const struct rr_reply *a)
{
	uint32_t payload, pad;
	struct rr_stream s;
	size_t len, split;
	uint8_t *head;
	int rc = encode_head(t, a, &s, &len);

	if (rc)
		return rc;
	head = head_of(t);
	payload = s.payload.length;
	pad = (uint32_t)round_up4(payload) - payload;
	split = s.has_payload ? s.payload_pos : len;
	put_be32(head, RR_MARK_LAST | (uint32_t)(len + payload + pad));
	t->iovcnt = t->iov_at = 0;
	rc = add_iov(t, head, RR_MARK_BYTES + split);
	if (!rc && payload)
		rc = add_payload(t, &s.payload);
	if (!rc)
		rc = add_iov(t, zeros, pad);
	if (!rc)
		rc = add_iov(t, head + RR_MARK_BYTES + split, len - split);
	if (rc)
		return rc;
	rr_count(t->base.pub.engine, bytes_out, payload);
	rr_count(t->base.pub.engine, bytes_copied, payload); /* into the socket */
	return 0;
}

/* Return: 1: all was sent; 0: the socket is full; -1: the socket failed */
static int send_some(struct rr_tconn *c, struct rr_treq *t)
{
	while (t->iov_at < t->iovcnt) {
		struct msghdr m = { .msg_iov = t->iov + t->iov_at,
				    .msg_iovlen = MIN(t->iovcnt - t->iov_at, IOV_SEND) };
		ssize_t n = sendmsg(c->watch.fd, &m, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
		rr_conn_progress(&c->base);
		while (n > 0) {
			struct iovec *v = &t->iov[t->iov_at];
			size_t k = MIN((size_t)n, v->iov_len);

			v->iov_base = (uint8_t *)v->iov_base + k;
			v->iov_len -= k;
			n -= (ssize_t)k;
			t->iov_at += !v->iov_len;
		}
	}
	return 1;
}

void rr_tcp_flush(struct rr_tconn *c)
{
	struct rr_treq *t;

	while ((t = list_first_entry(&c->sendq, struct rr_treq, base.link)) != NULL) {
		int rc = send_some(c, t);

		if (rc < 0) {
			rr_tconn_die(c);
			return;
		}
		if (!rc)
			break;
		list_del(&t->base.link);
		rr_treq_end(t);
	}
	rr_tconn_interest(c);
}

static void on_reply_buf(struct rpcrdma_buf_waiter *w)
{
	struct rr_treq *t = container_of(w, struct rr_treq, waiter);

	rr_tcp_reply(&t->base, &t->reply);
}

void rr_tcp_reply(struct rr_req *r, const struct rr_reply *a)
{
	struct rr_treq *t = rr_treq_of(r);
	struct rr_tconn *c = rr_tconn_of(r->pub.conn);
	bool idle = list_is_empty(&c->sendq);
	int rc;

	if (a->kind == RR_CONTENT_NONE || c->base.dead) {
		rr_treq_end(t);
		return;
	}
	rc = a->kind == RR_CONTENT_RESULTS && !a->encode ? build_parts(t) : build(t, a);
	if (rc == -EMSGSIZE || rc == -EINVAL) {
		t->head_want = 0;
		rc = build(t, &rr_reply_system_err);
	}
	if (rc == -ENOBUFS) {
		if (a != &t->reply) {
			t->reply = *a;
			t->waiter = (struct rpcrdma_buf_waiter){ .fn = on_reply_buf };
		}
		rr_conn_buf_wait(&c->base, RR_ZONE_REPLIES, &t->waiter);
		return;
	}
	if (rc) {
		rr_tconn_die(c); /* no memory for the reply: the client retries on a new connection */
		rr_treq_end(t);
		return;
	}
	list_add_tail(&c->sendq, &t->base.link);
	if (idle)
		rr_tcp_flush(c);
}
