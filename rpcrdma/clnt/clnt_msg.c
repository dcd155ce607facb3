/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_msg.c - the RPC message of a call and of its reply, for every transport
 *
 * Operation:  rr_clnt_encode() writes header and arguments into a stream without the payload; the transport
 *             moves that itself. rr_clnt_decode() reads a reply from a stream for which the transport has set
 *             the location of the payload.
 * Memory:     The client's own credential is encoded once; a call's own one with the call. The transport owns the
 *             buffer of the encoded message. Payload in the message is copied to the caller's sink and counted.
 * Threads:    The engine's.
 * Errors:     While a message overflows its buffer, the buffer grows, up to call_bytes_max.
 * See:        RFC 5531 sections 9 and appendix A; rpc_msg.h, stream.h.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clnt_int.h"
#include "engine_int.h"

/* Return: bytes of the AUTH_SYS body; -EINVAL if the limits of RFC 5531 are exceeded */
static int put_cred(const struct rpcrdma_cred *cred, uint8_t body[RR_AUTH_BYTES_MAX])
{
	struct rr_auth_sys sys = {
		.stamp = cred->stamp, .uid = cred->uid, .gid = cred->gid, .ngids = cred->ngids,
	};
	int n;

	if (cred->ngids > ARRAY_SIZE(sys.gids))
		return -EINVAL;
	memcpy(sys.gids, cred->gids, sizeof(sys.gids));
	sys.machine_len = (uint32_t)strnlen(cred->machine, sizeof(cred->machine));
	memcpy(sys.machine, cred->machine, sys.machine_len);
	n = rr_rpc_put_auth_sys(&sys, body, RR_AUTH_BYTES_MAX);
	return n < 0 ? -EINVAL : n;
}

/* Fills in the header's view of a credential. @body: memory for AUTH_SYS. Return: 0, -EINVAL */
static int fill_auth(const struct rpcrdma_cred *cred, uint8_t body[RR_AUTH_BYTES_MAX], struct rr_auth *ret_cred,
		     struct rr_auth *ret_verf)
{
	const struct rpcrdma_auth *o = cred->opaque, *v = cred->verf;
	int n = cred->none || o ? 0 : put_cred(cred, body);

	if (n < 0)
		return n;
	if ((o && o->bytes > RR_AUTH_BYTES_MAX) || (v && v->bytes > RR_AUTH_BYTES_MAX))
		return -EINVAL;
	*ret_cred = (struct rr_auth){ .flavor = cred->none ? RR_AUTH_NONE : RR_AUTH_SYS, .len = (uint32_t)n, .body = body };
	if (o)
		*ret_cred = (struct rr_auth){ .flavor = o->flavor, .len = o->bytes, .body = o->body };
	*ret_verf = (struct rr_auth){ .flavor = RR_AUTH_NONE };
	if (v)
		*ret_verf = (struct rr_auth){ .flavor = v->flavor, .len = v->bytes, .body = v->body };
	return 0;
}

static void own_auth(struct rr_auth *a, uint8_t body[RR_AUTH_BYTES_MAX])
{
	if (a->len && a->body != body)
		memcpy(body, a->body, a->len);
	a->body = body;
}

int rr_clnt_cred(struct rpcrdma_clnt *c)
{
	int rc = fill_auth(&c->attr.cred, c->cred_body, &c->cred, &c->verf);

	if (rc)
		return rc;
	own_auth(&c->cred, c->cred_body);
	own_auth(&c->verf, c->verf_body);
	c->attr.cred.opaque = c->attr.cred.verf = NULL; /* the program's memory */
	return 0;
}

static int put_header(struct rr_call *call, struct rr_stream *s, void *buf, size_t cap)
{
	const struct rpcrdma_clnt *c = call->clnt;
	const struct rpcrdma_call *user = call->user;
	uint8_t own[RR_AUTH_BYTES_MAX];
	struct rr_rpc_call head = {
		.xid = call->xid, .rpcvers = RR_RPC_VERS,
		.prog = user->prog, .vers = user->vers, .proc = user->proc,
		.cred = c->cred, .verf = c->verf,
	};
	struct wire_put p;
	int rc = user->cred ? fill_auth(user->cred, own, &head.cred, &head.verf) : 0;

	if (rc) {
		call->user->why = "the call's credential or verifier exceeds its limit (400 bytes, 16 groups)";
		return rc;
	}
	rr_stream_encode(s, buf, cap);
	wire_put_init(&p, buf, cap);
	rr_rpc_put_call(&p, &head);
	if (!wire_put_ok(&p)) {
		s->overflow = true;
		return -EMSGSIZE;
	}
	s->pos = wire_put_len(&p);
	return 0;
}

static void mark_ready(const struct rpcrdma_ready *r, struct rr_stream *s)
{
	if (!r->payload_bytes)
		return;
	s->has_payload = true;
	s->payload = (struct rpcrdma_payload){ .length = r->payload_bytes, .iov = r->payload, .iovcnt = r->payloadcnt };
	s->payload_pos = s->pos + r->payload_at;
}

static int put_ready(const struct rr_call *call, struct rr_stream *s)
{
	const struct rpcrdma_ready *r = call->user->ready;

	if (call->ready_bytes > s->cap - s->pos) {
		s->overflow = true;
		return -EMSGSIZE;
	}
	for (int i = 0; i < r->iovcnt; i++) {
		if (r->iov[i].iov_len)
			memcpy(s->buf + s->pos, r->iov[i].iov_base, r->iov[i].iov_len);
		s->pos += r->iov[i].iov_len;
	}
	return 0;
}

/* Return: 0; -EMSGSIZE: @cap is too small; -EINVAL */
static int encode(struct rr_call *call, struct rr_stream *s, void *buf, size_t cap, bool apart)
{
	const struct rpcrdma_call *user = call->user;
	int rc = put_header(call, s, buf, cap);

	if (rc)
		return rc;
	if (user->ready) {
		mark_ready(user->ready, s);
		return apart ? 0 : put_ready(call, s);
	}
	/* filters take their data without const, since the same one decodes */
	if (user->encode && !user->encode(&s->xdr, (void *)(uintptr_t)user->args)) {
		if (s->overflow)
			return -EMSGSIZE;
		call->user->why =
			"the arguments do not encode: a filter returned FALSE (a payload longer than its maximum?)";
		return -EINVAL;
	}
	/* the filter has compared the payload with its iov, unless there is no iov */
	return s->has_payload && s->payload.length && !s->payload.iovcnt ? -EINVAL : 0;
}

static int grow(struct rr_encode_buf *buf, size_t bytes)
{
	uint8_t *bigger = realloc(buf->mem, bytes);

	if (!bigger)
		return -ENOMEM;
	buf->mem = bigger;
	buf->bytes = bytes;
	return 0;
}

int rr_clnt_encode(struct rr_call *call, struct rr_stream *s, struct rr_encode_buf *buf, size_t first, size_t front,
		   bool apart)
{
	size_t max = call->clnt->attr.call_bytes_max;
	int rc = buf->mem ? 0 : grow(buf, first);

	while (!rc) {
		rc = encode(call, s, buf->mem + front, buf->bytes - front, apart);
		if (rc != -EMSGSIZE || buf->bytes >= max)
			return rc;
		rc = grow(buf, MIN(buf->bytes * 4, max));
	}
	return rc;
}

uint32_t rr_clnt_verf_room(const struct rr_call *call)
{
	const struct rpcrdma_cred *own = call->user->cred;
	bool plain = own ? !own->opaque : call->clnt->cred.flavor <= RR_AUTH_SYS;

	return plain && !call->user->verf ? 0 : RR_AUTH_BYTES_MAX;
}

/* rr_rpc_get_reply() has checked the length. */
static void give_verf(struct rpcrdma_verf *to, const struct rr_auth *verf)
{
	to->flavor = verf->flavor;
	to->bytes = verf->len;
	if (verf->len)
		memcpy(to->body, verf->body, verf->len);
}

static void give_status(struct rpcrdma_status *to, const struct rr_rpc_reply *head)
{
	*to = (struct rpcrdma_status){ .reply_stat = head->stat, .low = head->low, .high = head->high,
				       .stat = head->stat == RR_ACCEPTED ? head->accept : head->reject,
				       .auth_stat = head->why };
}

int rr_clnt_open(struct rr_call *call, const void *msg, size_t len, size_t *ret_bytes, const char **ret_why)
{
	struct rpcrdma_call *user = call->user;
	struct rr_rpc_reply head = { 0 };
	struct wire_get g;
	int rc;

	wire_get_init(&g, msg, len);
	rc = rr_rpc_get_reply(&g, &head);
	if (rc || head.xid != call->xid) {
		*ret_why = "malformed reply header";
		return -EPROTO;
	}
	if (user->verf && head.stat == RR_ACCEPTED)
		give_verf(user->verf, &head.verf);
	if (user->status)
		give_status(user->status, &head);
	*ret_why = rr_rpc_strerror(&head);
	*ret_bytes = len - wire_get_left(&g);
	return rr_rpc_errno(&head);
}

int rr_clnt_take(struct rr_call *call, uint8_t *msg, size_t len, uint64_t placed, const char **ret_why)
{
	struct rpcrdma_call *user = call->user;
	uint8_t *room = call->room->mem;
	size_t head;
	int rc = rr_clnt_open(call, msg, len, &head, ret_why);

	if (rc)
		return rc;
	if (len - head > user->reply_max) {
		*ret_why = "the results are longer than reply_max";
		return -EMSGSIZE;
	}
	user->results = msg + head;
	user->results_bytes = len - head;
	user->payload_bytes = (uint32_t)placed;
	if ((uintptr_t)msg - (uintptr_t)room >= call->room->bytes) {
		memcpy(room, msg + head, len - head);
		user->results = room;
		rr_count(call->clnt->engine, bytes_copied, len - head);
	}
	return 0;
}

/* @call: the call; receives the results
 * @s: a decoding stream over the reply, from the XID on
 * @ret_why: always set
 *
 * Over TCP, and for payload in a message, the peer does not know the size of the sink: a longer payload is -EMSGSIZE.
 *
 * Return: 0, the error of the reply header, -EBADMSG, -EMSGSIZE or -EPROTO. */
int rr_clnt_decode(struct rr_call *call, struct rr_stream *s, const char **ret_why)
{
	struct rpcrdma_call *user = call->user;
	int rc = rr_clnt_open(call, s->buf, s->cap, &s->pos, ret_why);

	if (rc)
		return rc;
	if (user->decode && !user->decode(&s->xdr, user->res)) {
		*ret_why = s->mismatch ? "payload disagrees with its chunk" : "results do not decode";
		return s->mismatch ? -EPROTO : -EBADMSG;
	}
	if (rr_stream_decode_done(s)) {
		*ret_why = "chunk was used, but the results have no payload";
		return -EPROTO;
	}
	if (!s->has_payload)
		return 0;
	if (s->payload.length > rr_clnt_sink_bytes(call)) {
		*ret_why = user->sinkcnt ? "the results' payload is longer than sink" :
					   "the results have a payload, but the call has no sink";
		return -EMSGSIZE;
	}
	user->payload_bytes = s->payload.length;
	return 0;
}

uint64_t rr_clnt_sink_bytes(const struct rr_call *call)
{
	uint64_t sum = 0;

	for (int i = 0; i < call->user->sinkcnt; i++)
		sum += call->user->sink[i].iov_len;
	return sum;
}

void rr_clnt_sink_put(struct rr_call *call, uint64_t off, const void *src, size_t len)
{
	const struct iovec *iov = call->user->sink;
	const uint8_t *from = src;

	rr_count(call->clnt->engine, bytes_copied, len);
	for (; len; iov++) {
		size_t n;

		if (off >= iov->iov_len) {
			off -= iov->iov_len;
			continue;
		}
		n = MIN(len, iov->iov_len - (size_t)off);
		memcpy((uint8_t *)iov->iov_base + off, from, n);
		from += n;
		len -= n;
		off = 0;
	}
}
