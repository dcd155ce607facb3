/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_tcp_out.c - answers leave the responder over TCP
 *
 * Operation:  place() only queues: a status goes before data on a stream, so nothing leaves until
 *             the reply is known, which may discard the pieces. The answer is one gathering write:
 *             mark and head, the pieces where they lie, pad. What the socket does not take at once
 *             goes when it can, in the order of the answers.
 * Memory:     Pieces stay the service's until its done; the head buffer is kept with the request.
 * Threads:    The connection's engine.
 * Errors:     A socket error ends the connection; every request still ends, its done is still called.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "srv_tcp.h"

#define OUT_FIRST 1024u
#define OUT_KEEP 8192u
#define IOV_SEND 64u

static const uint8_t zeros[4];

/* ---- the end of a request ---- */

static void on_end(struct rpcrdma_msg *msg)
{
	struct rr_treq *t = container_of(msg, struct rr_treq, end_msg);
	struct rr_tconn *c = rr_tconn_of(t->base.pub.conn);

	while (t->placed) {
		struct rpcrdma_piece *p = t->placed;

		t->placed = p->next;
		if (p->done)
			p->done(p, 0);
	}
	rr_req_finish(&t->base);
	if (t->out_cap > OUT_KEEP) {
		free(t->out);
		t->out = NULL;
		t->out_cap = 0;
	}
	if (c->in == t) {
		/* the rest of its record must go first, and the connection may wait for just that */
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

/* ---- for the service ---- */

bool rr_tcp_by_chunk(const struct rr_req *r)
{
	(void)r;
	return false;
}

uint32_t rr_tcp_room(const struct rr_req *r)
{
	(void)r;
	return RPCRDMA_BUF_MAX;
}

int rr_tcp_sink(struct rr_req *r, uint32_t off, uint32_t len, struct iovec *iov, int *cnt)
{
	(void)r;
	(void)off;
	(void)len;
	(void)iov;
	(void)cnt;
	return -EOPNOTSUPP;
}

int rr_tcp_place(struct rr_req *r, struct rpcrdma_piece *p)
{
	struct rpcrdma_piece **at = &rr_treq_of(r)->placed;

	if ((uint64_t)p->off + p->len > RPCRDMA_BUF_MAX)
		return -EMSGSIZE;
	if (p->buf->far)
		return -EOPNOTSUPP;
	while (*at && (*at)->off < p->off)
		at = &(*at)->next;
	p->next = *at;
	*at = p;
	return 0;
}

/* ---- the answer ---- */

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

/* Return: 0, -ENOMEM; -EINVAL: less was placed than the results say */
static int add_payload(struct rr_treq *t, const struct rpcrdma_payload *payload)
{
	uint32_t at = 0;
	int rc = 0;

	for (int i = 0; !rc && i < payload->iovcnt && at < payload->length; i++) {
		size_t n = MIN(payload->iov[i].iov_len, (size_t)(payload->length - at));

		rc = add_iov(t, payload->iov[i].iov_base, n);
		at += (uint32_t)n;
	}
	for (const struct rpcrdma_piece *p = payload->iovcnt ? NULL : t->placed;
	     !rc && p && at < payload->length; p = p->next) {
		uint32_t n = MIN(p->len, payload->length - at);

		rc = p->off == at ? add_iov(t, (uint8_t *)p->buf->addr + p->buf_off, n) : -EINVAL;
		at += n;
	}
	return rc ? rc : at == payload->length ? 0 : -EINVAL;
}

/* Encode into the head buffer, which grows until the results fit. */
static int encode_head(struct rr_treq *t, const struct rr_answer *a, struct rr_stream *s, size_t *ret_len)
{
	size_t cap = MAX(t->out_cap, (size_t)OUT_FIRST);

	for (;; cap *= 4) {
		int rc;

		if (cap > t->out_cap) {
			uint8_t *p = realloc(t->out, cap);

			if (!p)
				return -ENOMEM;
			t->out = p;
			t->out_cap = cap;
		}
		rc = rr_answer_head(&t->base, a, s, t->out + 4, t->out_cap - 4, ret_len);
		if (rc != -EMSGSIZE || cap >= RPCRDMA_BUF_MAX)
			return rc;
	}
}

static int build(struct rr_treq *t, const struct rr_answer *a)
{
	uint32_t payload, pad;
	struct rr_stream s;
	size_t len, split;
	int rc = encode_head(t, a, &s, &len);

	if (rc)
		return rc;
	payload = s.has_payload ? s.payload.length : 0;
	pad = (uint32_t)round_up4(payload) - payload;
	split = s.has_payload ? s.payload_pos : len;
	put_be32(t->out, RR_TCP_LAST | (uint32_t)(len + payload + pad));
	t->iovcnt = t->iov_at = 0;
	rc = add_iov(t, t->out, 4 + split);
	if (!rc && payload)
		rc = add_payload(t, &s.payload);
	if (!rc)
		rc = add_iov(t, zeros, pad);
	if (!rc)
		rc = add_iov(t, t->out + 4 + split, len - split);
	if (rc)
		return rc;
	rr_count(t->base.pub.engine, bytes_out, payload);
	rr_count(t->base.pub.engine, bytes_copied, payload); /* into the socket */
	return 0;
}

/* Return: 1: all of it went, 0: the socket is full, -1: it broke */
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

	while ((t = list_first_entry(&c->sendq, struct rr_treq, send_link)) != NULL) {
		int rc = send_some(c, t);

		if (rc < 0) {
			rr_tconn_die(c);
			return;
		}
		if (!rc)
			break;
		list_del(&t->send_link);
		rr_treq_end(t);
	}
	rr_tconn_interest(c);
}

void rr_tcp_answer(struct rr_req *r, const struct rr_answer *a)
{
	struct rr_treq *t = rr_treq_of(r);
	struct rr_tconn *c = rr_tconn_of(r->pub.conn);
	bool idle = list_is_empty(&c->sendq);
	int rc;

	if (a->kind == RR_ANSWER_NONE || c->base.dead) {
		rr_treq_end(t);
		return;
	}
	rc = build(t, a);
	if (rc == -EMSGSIZE || rc == -EINVAL) {
		struct rr_answer sorry = { .kind = RR_ANSWER_ERROR, .stat = RR_SYSTEM_ERR };

		rc = build(t, &sorry);
	}
	if (rc) {
		rr_tconn_die(c); /* no memory to answer with: the peer asks again on a new connection */
		rr_treq_end(t);
		return;
	}
	list_add_tail(&c->sendq, &t->send_link);
	if (idle)
		rr_tcp_flush(c);
}
