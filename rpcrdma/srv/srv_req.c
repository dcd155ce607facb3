/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_req.c - requests of a responder: from the transport to the service, and back
 *
 * Operation:  Messages become requests (rr_req_deliver), and requests become replies (conn_ops->reply). The functions of
 *             rpcrdma_svc.h that take a request are here.
 * Memory:     srv_int.h
 * Threads:    srv_int.h
 * Errors:     A peer's error gets a reply and is counted. At worst it ends that peer's connection.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/trace.h"
#include "srv_int.h"

/* ---- requests: from the transport ---- */

const struct rr_reply rr_reply_system_err = { .kind = RR_CONTENT_ERROR, .head = { .accept = RR_SYSTEM_ERR } };

void rr_req_init(struct rr_req *r, struct rpcrdma_conn *c)
{
	c->reqs++;
	c->reqs_most = MAX(c->reqs_most, c->reqs);
	list_init(&r->link);
	r->pub = (struct rpcrdma_req){ .conn = c, .engine = c->engine, .peer = &c->peer };
	r->pub.buf_max = rr_conn_buf_max(c, RR_ZONE_DATA);
	r->ended = r->again = false;
	r->verf = (struct rr_auth){ .flavor = RR_AUTH_NONE };
	r->done = NULL;
	r->done_arg = NULL;
	r->mems = NULL;
	r->placed = NULL;
	r->res_by_chunk = false;
	r->chunk_at = r->chunk_bytes = 0;
}

int rr_req_deliver(struct rr_req *r, const void *msg, size_t len)
{
	struct rpcrdma_conn *c = r->pub.conn;
	struct rr_rpc_call call;
	struct wire_get g;
	int rc;

	wire_get_init(&g, msg, len);
	rc = rr_rpc_get_call(&g, &call);
	if (rc == -EBADMSG)
		return rc;
	r->pub.xid = call.xid;
	rr_count(c->engine, calls, !r->again);
	if (rc) {
		struct rr_reply a = { .kind = RR_CONTENT_ERROR,
				      .head = { .stat = RR_DENIED, .reject = RR_RPC_MISMATCH,
						.low = RR_RPC_VERS, .high = RR_RPC_VERS } };

		r->ended = true;
		c->ops->reply(r, &a);
		return 0;
	}
	r->pub.prog = call.prog;
	r->pub.vers = call.vers;
	r->pub.proc = call.proc;
	r->pub.cred_flavor = call.cred.flavor;
	r->pub.cred_len = call.cred.len;
	r->pub.cred_body = call.cred.body;
	r->pub.verf_flavor = call.verf.flavor;
	r->pub.verf_len = call.verf.len;
	r->pub.verf_body = call.verf.body;
	r->args.pos = r->args_at = (size_t)(g.at - (const uint8_t *)msg);
	TRACE3(req_call, r, r->pub.xid, r->pub.proc);
	c->svc->ops.call(c->ctx, &r->pub);
	return 0;
}

int rr_req_add_placed(struct rr_req *r, struct rpcrdma_xfer *p)
{
	struct rpcrdma_xfer **at = &r->placed;

	if (p->buf->far) /* the CPU would have to copy it into the message */
		return -EOPNOTSUPP;
	while (*at && (*at)->off < p->off)
		at = &(*at)->next;
	p->next = *at;
	*at = p;
	return 0;
}

/* True if the service has given all bytes of the payload. The filter has checked an iov. */
static bool is_given(const struct rr_req *r, const struct rpcrdma_payload *payload)
{
	const struct rpcrdma_xfer *p = r->placed;
	uint32_t at = 0;

	if (payload->iovcnt || r->res_by_chunk)
		return true;
	for (; p && p->off == at && at < payload->length; p = p->next)
		at += MIN(p->len, payload->length - at);
	return at == payload->length;
}

void rr_req_finish(struct rr_req *r)
{
	void (*done)(void *) = r->done;
	struct rpcrdma_xfer *p;

	while ((p = r->placed) != NULL) {
		r->placed = p->next;
		if (p->done)
			p->done(p, 0);
	}
	if (r->mems)
		rr_req_free_mems(r);
	r->done = NULL;
	if (done)
		done(r->done_arg);
}

void rr_req_back(struct rr_req *r)
{
	struct rpcrdma_conn *c = r->pub.conn;

	list_add_head(&c->free_reqs, &r->link);
	rr_conn_unhold(c);
}

void rr_req_trim(struct rpcrdma_conn *c, unsigned keep)
{
	struct list *n;

	while (c->nreqs > keep && (n = list_pop(&c->free_reqs)) != NULL) {
		c->ops->free_req(c, list_entry(n, struct rr_req, link));
		c->nreqs--;
	}
}

/* Encodes results that are encoded already, except their payload. Return: false: too little space */
static bool put_results(const struct rr_results *x, struct rr_stream *s)
{
	if (x->bytes > s->cap - s->pos)
		return false;
	for (unsigned i = 0; i < x->cnt; i++) {
		if (i == x->first && x->n) {
			s->has_payload = true;
			s->payload = (struct rpcrdma_payload){ .length = x->payload_bytes,
							       .iov = (struct iovec *)(uintptr_t)&x->iov[i],
							       .iovcnt = (int)x->n };
			s->payload_pos = s->pos;
			i += x->n;
		}
		if (i < x->cnt && x->iov[i].iov_len) {
			memcpy(s->buf + s->pos, x->iov[i].iov_base, x->iov[i].iov_len);
			s->pos += x->iov[i].iov_len;
		}
	}
	return true;
}

size_t rr_reply_rpc_bytes(const struct rr_req *r)
{
	return RR_RPC_REPLY_HDR_BYTES + round_up4((size_t)r->verf.len);
}

void rr_reply_put_rpc(const struct rr_req *r, void *buf, size_t bytes)
{
	const struct rr_rpc_reply head = { .xid = r->pub.xid, .stat = RR_ACCEPTED, .accept = RR_SUCCESS, .verf = r->verf };
	struct wire_put p;

	wire_put_init(&p, buf, bytes);
	rr_rpc_put_reply(&p, &head);
	assert(wire_put_ok(&p) && wire_put_len(&p) == bytes);
}

int rr_reply_head(const struct rr_req *r, const struct rr_reply *a, struct rr_stream *s, void *buf,
		   size_t cap, size_t *ret_len)
{
	struct rr_rpc_reply head = a->head;
	struct wire_put p;

	head.xid = r->pub.xid;
	head.verf = r->verf;
	wire_put_init(&p, buf, cap);
	rr_rpc_put_reply(&p, &head);
	if (!wire_put_ok(&p))
		return -EMSGSIZE;
	rr_stream_encode(s, buf, cap);
	s->pos = wire_put_len(&p);
	if (a->kind == RR_CONTENT_RESULTS && !a->encode) {
		if (!put_results(&r->results, s))
			return -EMSGSIZE;
		*ret_len = rr_stream_len(s);
		return 0;
	}
	if (a->kind == RR_CONTENT_RESULTS &&
	    !((bool_t(*)(XDR *, void *))a->encode)(&s->xdr, (void *)(uintptr_t)a->res))
		return s->overflow ? -EMSGSIZE : -EINVAL;
	if (s->has_payload && !is_given(r, &s->payload))
		return -EINVAL;
	*ret_len = rr_stream_len(s);
	return 0;
}

/* ---- requests: from the service ---- */

static struct rr_req *req_of(const struct rpcrdma_req *req)
{
	struct rpcrdma_req *r = (struct rpcrdma_req *)(uintptr_t)req;

	assert(!container_of(r, struct rr_req, pub)->ended);
	return container_of(r, struct rr_req, pub);
}

int rpcrdma_req_decode(struct rpcrdma_req *req, xdrproc_t decode, void *args)
{
	struct rr_req *r = req_of(req);
	struct rr_stream *s = &r->args;
	int rc;

	if (((bool_t(*)(XDR *, void *))decode)(&s->xdr, args) && !rr_stream_decode_done(s)) {
		if (s->has_payload)
			rr_count(req->engine, bytes_in, s->payload.length);
		return 0;
	}
	if (!s->short_read) /* the whole message would not help */
		return -EBADMSG;
	rc = req->conn->ops->whole(r);
	return rc ? rc : -EBADMSG;
}

int rpcrdma_req_args_bytes(struct rpcrdma_req *req, struct rpcrdma_args *ret)
{
	struct rr_req *r = req_of(req);
	struct rr_stream *s = &r->args;
	int rc = req->conn->ops->whole(r);

	if (rc)
		return rc;
	if (r->chunk_bytes && r->chunk_at < r->args_at)
		return -EBADMSG;
	*ret = (struct rpcrdma_args){ .bytes = s->buf + r->args_at,
				      .len = s->cap - r->args_at,
				      .payload_bytes = r->chunk_bytes,
				      .payload_pos = r->chunk_bytes ? r->chunk_at - r->args_at : 0,
				      .reduced = r->chunk_bytes && s->away == RR_AWAY_CHUNK };
	if (!ret->reduced || s->has_payload)
		return 0;
	/* for rpcrdma_req_pull(): the chunk is the payload, whatever it is to the service */
	rr_count(req->engine, bytes_in, r->chunk_bytes);
	s->has_payload = s->chunk_used = true;
	s->payload.length = r->chunk_bytes;
	return 0;
}

bool rpcrdma_req_conn_alive(const struct rpcrdma_req *req)
{
	return !req->conn->dead;
}

/* @write: the transfer writes to its memory. Return: as rr_req_use_mem() */
static int begin_xfer(struct rr_req *r, struct rpcrdma_xfer *p, bool write)
{
	p->req = &r->pub;
	p->err = 0;
	return p->mem ? rr_req_use_mem(r, p, write) : 0;
}

int rpcrdma_req_pull(struct rpcrdma_req *req, struct rpcrdma_xfer *piece)
{
	struct rr_req *r = req_of(req);
	int rc;

	if (!r->args.has_payload ||
	    (uint64_t)piece->off + piece->len > r->args.payload.length || !piece->len)
		return -EINVAL;
	if (req->conn->dead)
		return -ENOTCONN;
	rc = begin_xfer(r, piece, true);
	return rc ? rc : req->conn->ops->pull(r, piece);
}

int rpcrdma_req_place(struct rpcrdma_req *req, struct rpcrdma_xfer *piece)
{
	struct rr_req *r = req_of(req);
	int rc;

	if (req->conn->dead)
		return -ENOTCONN;
	if ((uint64_t)piece->off + piece->len > req->room)
		return -EMSGSIZE;
	piece->next = NULL;
	rc = begin_xfer(r, piece, false);
	return rc ? rc : req->conn->ops->place(r, piece);
}

static void reply(struct rpcrdma_req *req, const struct rr_reply *a, void (*done)(void *arg),
		   void *arg)
{
	struct rr_req *r = req_of(req);

	TRACE3(req_reply, r, r->pub.xid, a->kind);
	r->ended = true;
	r->done = done;
	r->done_arg = arg;
	rr_count(req->engine, replies, a->kind != RR_CONTENT_NONE);
	rr_count(req->engine, bytes_copied, req->copied);
	if (a->head.accept == RR_GARBAGE_ARGS)
		rr_count(req->engine, garbage, 1);
	req->conn->ops->reply(r, a);
}

void rpcrdma_req_reply(struct rpcrdma_req *req, xdrproc_t encode, const void *res,
		       void (*done)(void *arg), void *arg)
{
	struct rr_reply a = { .kind = RR_CONTENT_RESULTS, .encode = encode, .res = res };

	reply(req, &a, done, arg);
}

/* Checks the pieces of results, and sums them up. Return: false: they are no results */
static bool sum_results(const struct rpcrdma_results *in, struct rr_results *ret)
{
	size_t sum = 0, payload = 0;

	*ret = (struct rr_results){ .iov = in->iov, .cnt = (unsigned)in->iovcnt };
	if (in->iovcnt < 0 || in->payload < 0 || in->payload_cnt < 0 || in->payload > in->iovcnt - in->payload_cnt)
		return false;
	ret->first = (unsigned)in->payload;
	ret->n = (unsigned)in->payload_cnt;
	for (unsigned i = 0; i < ret->cnt; i++) {
		bool is_payload = i >= ret->first && i < ret->first + ret->n;

		if (in->iov[i].iov_len > RPCRDMA_CALL_BYTES_MAX - sum)
			return false;
		sum += in->iov[i].iov_len;
		payload += is_payload ? in->iov[i].iov_len : 0;
		ret->before += i < ret->first ? in->iov[i].iov_len : 0;
	}
	ret->bytes = sum - payload;
	ret->payload_bytes = (uint32_t)payload;
	return ret->bytes % 4 == 0 && (!ret->n || ret->before % 4 == 0);
}

void rpcrdma_req_reply_parts(struct rpcrdma_req *req, const struct rpcrdma_results *results, void (*done)(void *arg),
			     void *arg)
{
	struct rr_reply a = { .kind = RR_CONTENT_RESULTS };

	if (!sum_results(results, &req_of(req)->results))
		a = rr_reply_system_err;
	reply(req, &a, done, arg);
}

void rpcrdma_req_reply_bytes(struct rpcrdma_req *req, const void *results, size_t bytes, void (*done)(void *arg),
			     void *arg)
{
	struct rr_req *r = req_of(req);

	r->bytes = (struct iovec){ .iov_base = (void *)(uintptr_t)results, .iov_len = bytes };
	rpcrdma_req_reply_parts(req, &(struct rpcrdma_results){ .iov = &r->bytes, .iovcnt = 1 }, done, arg);
}

int rpcrdma_req_set_verf(struct rpcrdma_req *req, uint32_t flavor, const void *body, uint32_t bytes)
{
	if (bytes > RR_AUTH_BYTES_MAX)
		return -EINVAL;
	req_of(req)->verf = (struct rr_auth){ .flavor = flavor, .len = bytes, .body = body };
	if (!req_of(req)->res_by_chunk)
		req->room -= MIN(req->room, (uint32_t)round_up4(bytes));
	return 0;
}

void rpcrdma_req_reply_error(struct rpcrdma_req *req, enum rpcrdma_accept_stat stat, uint32_t low,
			     uint32_t high, void (*done)(void *arg), void *arg)
{
	struct rr_reply a = { .kind = RR_CONTENT_ERROR, .head = { .accept = stat, .low = low, .high = high } };

	reply(req, &a, done, arg);
}

void rpcrdma_req_reply_auth(struct rpcrdma_req *req, uint32_t why, void (*done)(void *arg),
			    void *arg)
{
	struct rr_reply a = { .kind = RR_CONTENT_ERROR,
			      .head = { .stat = RR_DENIED, .reject = RR_AUTH_ERROR, .why = why } };

	reply(req, &a, done, arg);
}

void rpcrdma_req_reject(struct rpcrdma_req *req, void (*done)(void *arg), void *arg)
{
	struct rr_reply a = { .kind = RR_CONTENT_REJECT, .head = { .accept = RR_SYSTEM_ERR } };

	reply(req, &a, done, arg);
}

void rpcrdma_req_drop(struct rpcrdma_req *req, void (*done)(void *arg), void *arg)
{
	struct rr_reply a = { .kind = RR_CONTENT_NONE };

	reply(req, &a, done, arg);
}
