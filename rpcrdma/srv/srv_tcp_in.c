/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_tcp_in.c - receives records at the responder over TCP
 *
 * Operation:  Bytes are read into a small staging buffer, so that many small calls cost one system
 *             call. A record up to RR_TCP_WHOLE is assembled in the request's message buffer and
 *             delivered as a whole. Of a longer record only the head is delivered: the rest stays in the
 *             socket until the service pulls it, piece by piece and in order, directly into the service's
 *             buffers. If the head is too short (long arguments that are not payload), the service
 *             gets the record again as a whole. A service that requires whole calls (svc_attr.whole_calls) gets every
 *             record only once, and whole. What is not pulled is skipped after the reply. A record
 *             may have any number of fragments; payload in several fragments is accepted before the
 *             end of the record is known.
 *
 *                 READING --(head or whole record read)--> SERVED --(pulled or skipped)--> THROUGH
 *
 *             One record at a time: while its payload waits for the service, nothing behind it is read.
 *             Further data stays in the socket buffer.
 * Memory:     Small message buffers belong to requests and are kept with them. A long record that the service
 *             needs as a whole goes into a pool buffer (RR_ZONE_CALLS), for which it waits. Requests
 *             beyond the first RR_MSGS_FIRST are charged to the client; while the client is at its
 *             limit nothing more is read.
 * Threads:    The connection's engine.
 * Errors:     A length over the limit, an empty record, an empty fragment before the last, or an invalid RPC
 *             header ends the connection: the beginning of the next record is unknown.
 * See:        RFC 5531 section 11
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "srv_tcp.h"

/* Calls delivered in one run. Buffers that they release, still in the cache, are available to the next calls only after
 * the engine's next poll. */
#define CALLS_PER_PUMP 4u

bool rr_tconn_wants_input(const struct rr_tconn *c)
{
	const struct rr_treq *t = c->in;

	if (c->base.dead)
		return false;
	if (!t)
		return c->base.reqs < c->base.svc->attr.credits && !c->short_of;
	return (t->in == RR_TREQ_READING && !t->waits) || t->pulls || t->base.ended;
}

void rr_tconn_kick(struct rr_tconn *c)
{
	if (c->pump_out)
		return;
	c->pump_out = true;
	rr_engine_defer(c->base.engine, &c->pump_msg);
}

static size_t staged(const struct rr_tconn *c)
{
	return c->stage_len - c->stage_at;
}

/* Return: > 0 bytes, 0: nothing now, -1: the connection died */
static ssize_t receive(struct rr_tconn *c, void *to, size_t len)
{
	ssize_t n;

	do
		n = recv(c->watch.fd, to, len, 0);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		rr_conn_progress(&c->base);
		return n;
	}
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	rr_tconn_die(c);
	return -1;
}

/* Takes up to @len bytes, staged ones first; reads ahead only if @ahead. Return: as receive(). */
static ssize_t take(struct rr_tconn *c, void *to, size_t len, bool ahead)
{
	size_t n = MIN(len, staged(c));
	ssize_t got;

	if (!n && !ahead)
		return receive(c, to, len);
	if (!n) {
		got = receive(c, c->stage, sizeof(c->stage));
		if (got <= 0)
			return got;
		c->stage_at = 0;
		c->stage_len = (size_t)got;
		n = MIN(len, (size_t)got);
	}
	memcpy(to, c->stage + c->stage_at, n);
	c->stage_at += n;
	return (ssize_t)n;
}

/* ---- requests ---- */

/* memory of one request at most, including the service's part */
static size_t request_bytes(const struct rr_tconn *c)
{
	return sizeof(struct rr_treq) + RR_TCP_WHOLE + RR_TCP_REPLY + c->base.svc->attr.req_bytes;
}

static bool is_charged(const struct rr_tconn *c, unsigned nth)
{
	return nth > RR_MSGS_FIRST && c->base.client;
}

/* True if receives use the same memory (pool.c): then requests reduce what is left for receives. */
static bool takes_from_receives(const struct rr_tconn *c)
{
	return c->base.engine->domain->pools[RR_ZONE_RECVS].budget != NULL;
}

static int charge_request(struct rr_tconn *c)
{
	int rc = rr_client_charge(c->base.client, RR_SHARE_MSGS, request_bytes(c));

	if (rc || !takes_from_receives(c))
		return rc;
	rc = rr_client_charge(c->base.client, RR_SHARE_RECVS, request_bytes(c));
	if (rc)
		rr_client_uncharge(c->base.client, RR_SHARE_MSGS, request_bytes(c));
	return rc;
}

static void uncharge_request(struct rr_tconn *c)
{
	rr_client_uncharge(c->base.client, RR_SHARE_MSGS, request_bytes(c));
	if (takes_from_receives(c))
		rr_client_uncharge(c->base.client, RR_SHARE_RECVS, request_bytes(c));
}

void rr_tcp_free_req(struct rpcrdma_conn *base, struct rr_req *r)
{
	struct rr_tconn *c = rr_tconn_of(base);
	struct rr_treq *t = rr_treq_of(r);

	if (is_charged(c, base->nreqs))
		uncharge_request(c);
	free(t->msg);
	free(t->out);
	free(t->iov);
	free(t);
}

/* Return: true: a request is free; false: wait until one is released, or the connection died. */
static bool have_request(struct rr_tconn *c)
{
	struct rr_treq *t;

	if (!list_is_empty(&c->base.free_reqs))
		return true;
	if (is_charged(c, c->base.nreqs + 1) && charge_request(c)) {
		c->short_of = true;
		rr_count(c->base.engine, buf_waits, 1);
		return false;
	}
	t = calloc(1, sizeof(*t));
	if (!t) {
		if (is_charged(c, c->base.nreqs + 1))
			uncharge_request(c);
		rr_tconn_die(c);
		return false;
	}
	c->base.nreqs++;
	list_add_head(&c->base.free_reqs, &t->base.link);
	return true;
}

static struct rr_treq *take_request(struct rr_tconn *c)
{
	struct rr_treq *t = rr_treq_of(list_entry(list_pop(&c->base.free_reqs), struct rr_req, link));

	rr_req_init(&t->base, &c->base);
	t->in = RR_TREQ_READING;
	t->skipping = t->waits = t->all = false;
	t->msg_len = t->msg_want = 0;
	t->total = t->left = 0;
	t->last_fragment = false;
	t->pulls = NULL;
	t->pulls_tail = &t->pulls;
	t->pull_at = 0;
	t->pull_next = 0;
	return t;
}

static bool reserve(struct rr_treq *t, size_t bytes)
{
	uint8_t *p;

	if (bytes <= t->msg_cap || t->call_buf)
		return true;
	bytes = MAX(bytes, (size_t)RR_TCP_HEAD * 2);
	p = realloc(t->msg, bytes);
	if (!p)
		return false;
	t->msg = p;
	t->msg_cap = bytes;
	return true;
}

static uint8_t *message(const struct rr_treq *t)
{
	return t->call_buf ? t->call_buf->addr : t->msg;
}

/* ---- whole records ---- */

/* The connection broke while the service waited for the whole record. The service gets the incomplete record, fails to
 * decode the arguments, and ends the request. */
static void give_up(struct rr_treq *t)
{
	t->in = RR_TREQ_THROUGH;
	rr_stream_decode(&t->base.args, message(t), t->msg_len);
	if (rr_req_deliver(&t->base, message(t), t->msg_len))
		rr_treq_release(t);
}

/* Gets a buffer for the whole record: of its length, or of the limit if the length is not known yet. */
static int get_call_buf(struct rr_treq *t)
{
	struct rpcrdma_conn *c = t->base.pub.conn;
	size_t bytes = t->last_fragment ? t->total : c->svc->attr.call_bytes_max;
	int rc = rr_conn_buf_get(c, RR_ZONE_CALLS, bytes, &t->call_buf);

	if (rc)
		return rc;
	memcpy(t->call_buf->addr, t->msg, t->msg_len);
	t->msg_want = t->total;
	return 0;
}

static void on_call_buf(struct rpcrdma_buf_waiter *w)
{
	struct rr_treq *t = container_of(w, struct rr_treq, waiter);
	struct rr_tconn *c = rr_tconn_of(t->base.pub.conn);
	int rc = c->base.dead ? -ENOTCONN : get_call_buf(t);

	if (rc == -ENOBUFS) {
		rr_conn_buf_wait(&c->base, RR_ZONE_CALLS, w);
		return;
	}
	t->waits = false;
	if (!rc) {
		rr_tconn_kick(c);
		return;
	}
	rr_tconn_die(c);
	if (c->in == t)
		c->in = NULL;
	if (t->base.again)
		give_up(t);
	else
		rr_treq_release(t);
}

/* Begins to read all of the record into the request's memory. Return: 0; -ENOBUFS: it waits for a buffer first;
 * -EMSGSIZE; -ENOMEM; errors of the device */
static int want_whole(struct rr_treq *t)
{
	int rc = get_call_buf(t);

	if (rc && rc != -ENOBUFS)
		return rc;
	t->all = true;
	t->in = RR_TREQ_READING;
	t->waits = rc == -ENOBUFS;
	if (t->waits) {
		t->waiter = (struct rpcrdma_buf_waiter){ .fn = on_call_buf };
		rr_conn_buf_wait(t->base.pub.conn, RR_ZONE_CALLS, &t->waiter);
	}
	return rc;
}

/* ---- records ---- */

static bool is_read(const struct rr_treq *t)
{
	return !t->left && t->last_fragment;
}

/* Begins a fragment: computes how many bytes of the record to read before the service gets it. */
static bool begin_fragment(struct rr_tconn *c, struct rr_treq *t, uint32_t mark)
{
	size_t len = mark & ~RR_MARK_LAST;

	t->last_fragment = mark & RR_MARK_LAST;
	t->left = len;
	t->total += len;
	if ((!len && !t->last_fragment) || t->total > c->base.svc->attr.call_bytes_max || !t->total)
		return false;
	if (t->in != RR_TREQ_READING)
		return true;
	t->msg_want = t->all || t->total <= RR_TCP_WHOLE ? t->total : MAX(t->msg_len, (size_t)RR_TCP_HEAD);
	return reserve(t, t->msg_want);
}

/* Reads the mark of the next record or fragment. Return: 1; 0: the mark is incomplete; -1: the connection died */
static int read_mark(struct rr_tconn *c)
{
	while (c->mark_len < sizeof(c->mark)) {
		ssize_t n = take(c, c->mark + c->mark_len, sizeof(c->mark) - c->mark_len, true);

		if (n <= 0)
			return (int)n;
		c->mark_len += (unsigned)n;
	}
	c->mark_len = 0;
	if (!c->in)
		c->in = take_request(c);
	if (begin_fragment(c, c->in, get_be32(c->mark)))
		return 1;
	rr_tconn_die(c);
	return -1;
}

/* Makes sure that bytes of the record come next. Return: as read_mark(); 0 also at the end of the record */
static int have_fragment(struct rr_tconn *c, struct rr_treq *t)
{
	int rc = 1;

	while (rc > 0 && !t->left)
		rc = t->last_fragment ? 0 : read_mark(c);
	return rc;
}

static int deliver(struct rr_tconn *c, struct rr_treq *t)
{
	bool whole = is_read(t);
	uint8_t *msg = message(t);
	int rc;

	if (whole)
		rr_stream_decode(&t->base.args, msg, t->msg_len);
	else if (t->last_fragment)
		rr_stream_decode_tail(&t->base.args, msg, t->msg_len, t->total);
	else
		rr_stream_decode_open(&t->base.args, msg, t->msg_len, c->base.svc->attr.call_bytes_max);
	t->base.pub.room = RPCRDMA_BUF_MAX;
	t->in = whole ? RR_TREQ_THROUGH : RR_TREQ_SERVED;
	if (whole)
		c->in = NULL;
	rr_conn_heard(&c->base);
	c->calls++;
	rr_count(c->base.engine, inline_msgs, !t->base.again);
	rc = rr_req_deliver(&t->base, msg, t->msg_len);
	if (rc) {
		c->in = NULL;
		rr_count(c->base.engine, dropped, 1);
		rr_tconn_die(c);
		rr_treq_release(t);
		return -1;
	}
	return c->base.dead ? -1 : 1;
}

/* Continues with all of the record, before the service gets it. Return: as read_mark() */
static int assemble(struct rr_tconn *c, struct rr_treq *t)
{
	int rc;

	rr_conn_heard(&c->base);
	rc = want_whole(t);
	if (!rc)
		return 1;
	if (rc == -ENOBUFS)
		return 0;
	rr_tconn_die(c);
	return -1;
}

/* Return: as read_mark() */
static int read_message(struct rr_tconn *c, struct rr_treq *t)
{
	while (t->msg_len < t->msg_want) {
		size_t want = MIN(t->msg_want - t->msg_len, t->left);
		ssize_t n;

		if (!want)
			return read_mark(c);
		n = take(c, message(t) + t->msg_len, want, want < RR_TCP_STAGE);
		if (n <= 0)
			return (int)n;
		t->msg_len += (size_t)n;
		t->left -= (size_t)n;
	}
	if (is_read(t))
		return deliver(c, t);
	if (t->all || t->total <= RR_TCP_WHOLE)
		return read_mark(c);
	return c->base.svc->attr.whole_calls ? assemble(c, t) : deliver(c, t);
}

/* ---- the bulk of a long record ---- */

static uint8_t *piece_mem(const struct rpcrdma_xfer *p, size_t at)
{
	return (uint8_t *)p->buf->addr + p->buf_off + at;
}

static void finish_pull(struct rr_treq *t, int err)
{
	struct rpcrdma_xfer *p = t->pulls;

	t->pulls = p->next;
	if (!t->pulls)
		t->pulls_tail = &t->pulls;
	t->pull_at = 0;
	p->done(p, err);
}

/* Return: 1: a pull is complete; 0: nothing now; -1: the connection died */
static int fill_pull(struct rr_tconn *c, struct rr_treq *t)
{
	const struct rr_stream *s = &t->base.args;
	struct rpcrdma_xfer *p = t->pulls;

	while (t->pull_at < p->len) {
		size_t off = p->off + t->pull_at, want = p->len - t->pull_at;
		uint8_t *to = piece_mem(p, t->pull_at);
		ssize_t n;
		int rc;

		if (off < s->payload_here) { /* came with the head */
			n = (ssize_t)MIN(want, s->payload_here - off);
			memcpy(to, s->buf + s->payload_pos + off, (size_t)n);
		} else {
			rc = have_fragment(c, t);
			if (!rc && is_read(t)) { /* the record is shorter than its payload length */
				rr_tconn_die(c);
				rc = -1;
			}
			if (rc <= 0)
				return rc;
			n = take(c, to, MIN(want, t->left), false);
			if (n <= 0)
				return (int)n;
			t->left -= (size_t)n;
		}
		rr_count(c->base.engine, bytes_copied, n);
		t->pull_at += (size_t)n;
	}
	finish_pull(t, 0);
	return 1;
}

void rr_treq_cancel_pulls(struct rr_treq *t, int err)
{
	while (t->pulls)
		finish_pull(t, err);
}

static int skip_rest(struct rr_tconn *c, struct rr_treq *t)
{
	uint8_t waste[4096];

	while (!is_read(t)) {
		int rc = have_fragment(c, t);
		ssize_t n;

		if (rc <= 0)
			return is_read(t) ? 1 : rc;
		n = take(c, waste, MIN(t->left, sizeof(waste)), false);
		if (n <= 0)
			return (int)n;
		t->left -= (size_t)n;
	}
	return 1;
}

/* For a request with the service. Return: 1: go on; 0: wait; -1: the connection died */
static int serve_rest(struct rr_tconn *c, struct rr_treq *t)
{
	const struct rr_stream *s = &t->base.args;
	int rc;

	if (t->pulls)
		return fill_pull(c, t);
	/* when all payload is pulled, or the request has ended: skip pad and leftovers */
	if (!t->base.ended && !(s->has_payload && t->pull_next == s->payload.length))
		return 0;
	rc = skip_rest(c, t);
	if (rc <= 0)
		return rc;
	t->in = RR_TREQ_THROUGH;
	c->in = NULL;
	if (t->skipping)
		rr_treq_release(t);
	return 1;
}

void rr_treq_release(struct rr_treq *t)
{
	struct rr_tconn *c = rr_tconn_of(t->base.pub.conn);

	rr_engine_undefer(c->base.engine, &t->pull_msg);
	if (t->call_buf)
		rpcrdma_buf_put(c->base.engine, t->call_buf);
	t->call_buf = NULL;
	c->short_of = false;
	if (!c->base.dead)
		rr_tconn_kick(c); /* a request is free again */
	rr_req_back(&t->base); /* may free the connection */
}

static void end_reading(struct rr_tconn *c)
{
	struct rr_treq *t = c->in;

	c->in = NULL;
	if (t) {
		rr_treq_cancel_pulls(t, -EIO);
		if (t->waits)
			; /* on_call_buf() handles it */
		else if (t->skipping || (t->in == RR_TREQ_READING && !t->base.again))
			rr_treq_release(t); /* the service never received it, or has ended it */
		else if (t->in == RR_TREQ_READING)
			give_up(t);
		else
			t->in = RR_TREQ_THROUGH;
	}
	rr_conn_drained(&c->base); /* may free the connection */
}

void rr_tconn_pump(struct rr_tconn *c)
{
	uint64_t until = c->calls + CALLS_PER_PUMP;
	int rc = 1;

	while (rc > 0 && !c->base.dead) {
		struct rr_treq *t = c->in;

		if (c->calls == until) {
			rr_tconn_kick(c);
			break;
		}

		if (t && t->in == RR_TREQ_SERVED)
			rc = serve_rest(c, t);
		else if (t) /* it has a fragment, so msg_want is set */
			rc = t->waits ? 0 : read_message(c, t);
		else if (c->base.reqs < c->base.svc->attr.credits && have_request(c))
			rc = read_mark(c);
		else
			rc = 0;
	}
	if (!c->base.dead)
		rr_tconn_interest(c);
	else if (!c->pump_out && !c->base.drained)
		end_reading(c);
}

/* ---- for the service ---- */

int rr_tcp_whole(struct rr_req *r)
{
	struct rr_treq *t = rr_treq_of(r);
	int rc;

	if (is_read(t))
		return 0;
	if (r->again) /* the connection broke */
		return -EBADMSG;
	rc = want_whole(t);
	if (rc && rc != -ENOBUFS)
		return -EBADMSG;
	r->again = true;
	if (!rc)
		rr_tconn_kick(rr_tconn_of(r->pub.conn));
	return -EAGAIN;
}

/* All payload is in msg. The last fill_pull() may end the request, so the pulls are counted first. */
static void on_pull_msg(struct rpcrdma_msg *msg)
{
	struct rr_treq *t = container_of(msg, struct rr_treq, pull_msg);
	struct rr_tconn *c = rr_tconn_of(t->base.pub.conn);
	unsigned n = 0;

	for (const struct rpcrdma_xfer *p = t->pulls; p; p = p->next)
		n++;
	while (n-- > 0)
		(void)fill_pull(c, t); /* never waits or fails */
}

int rr_tcp_pull(struct rr_req *r, struct rpcrdma_xfer *p)
{
	struct rr_treq *t = rr_treq_of(r);
	struct rr_tconn *c = rr_tconn_of(r->pub.conn);

	if (p->off != t->pull_next)
		return -EINVAL;
	if (p->buf->far)
		return -EOPNOTSUPP;
	t->pull_next += p->len;
	p->next = NULL;
	*t->pulls_tail = p;
	t->pulls_tail = &p->next;
	if (t->in == RR_TREQ_SERVED) {
		rr_tconn_kick(c);
	} else if (t->pulls == p) {
		t->pull_msg.fn = on_pull_msg;
		rr_engine_defer(c->base.engine, &t->pull_msg);
	}
	return 0;
}
