/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpc_pair.c - a client and a server in one thread: rpc_pair.h
 *
 * Memory:     A request of the service keeps its payload in pool buffers until the transport says
 *             that it is done with them.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "rpc_pair.h"
#include "lab.h"

#define PIECES_MAX 64

struct echo_req {
	struct rpc_pair *pair;
	struct rpcrdma_req *req;
	struct echo_req *next;       /* held */
	struct echo_msg args, res;
	uint8_t *head;
	struct rpcrdma_buf *buf;
	struct rpcrdma_buf_waiter waiter;
	void (*again)(struct echo_req *r); /* when it has waited */
	struct rpcrdma_xfer pieces[PIECES_MAX];
	unsigned npieces, pulled;
	int err;
};

bool_t xdr_echo_msg(XDR *xdrs, struct echo_msg *m)
{
	static uint8_t nothing[4];
	char *head = (char *)(m->head ? m->head : nothing);

	if (!xdr_u_int(xdrs, &m->n) || !xdr_u_int(xdrs, &m->head_len))
		return FALSE;
	if (m->head_len > (m->head ? ECHO_HEAD_MAX : 0))
		return FALSE;
	return xdr_opaque(xdrs, head, m->head_len) &&
	       rpcrdma_xdr_payload(xdrs, &m->payload, ECHO_PAYLOAD_MAX);
}

/* xdr_void() has no arguments where libtirpc says that filters have; this one has. */
static bool_t xdr_nothing(XDR *xdrs, void *nothing)
{
	(void)xdrs;
	(void)nothing;
	return TRUE;
}

void echo_pattern(uint8_t *mem, size_t bytes, uint32_t seed)
{
	for (size_t i = 0; i < bytes; i++)
		mem[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + seed);
}

uint32_t echo_sum(const uint8_t *mem, size_t bytes, uint32_t sum)
{
	for (size_t i = 0; i < bytes; i++)
		sum = sum * 31 + mem[i];
	return sum;
}

/* ---- the service -------------------------------------------------------------------------- */

static void req_free(void *arg)
{
	struct echo_req *r = arg;

	if (r->buf)
		rpcrdma_buf_put(r->pair->svc_engine, r->buf);
	free(r->head);
	free(r);
}

static uint32_t piece_len(const struct echo_req *r, uint32_t off, uint32_t total)
{
	uint32_t piece = r->pair->piece_bytes ? r->pair->piece_bytes : total;

	return MIN(MAX(piece, (total + PIECES_MAX - 1) / PIECES_MAX), total - off);
}

static void on_buf(struct rpcrdma_buf_waiter *w)
{
	struct echo_req *r = container_of(w, struct echo_req, waiter);

	r->again(r);
}

/* Memory of the pool; of the connection, where that has its own. False: @again comes when there is, or the
 * request is over. */
static bool has_buf(struct echo_req *r, size_t bytes, void (*again)(struct echo_req *r))
{
	bool own = (r->pair->attr.svc.lab && r->pair->attr.svc.lab->modes) || getenv("LEAT_TEST_MODES");
	int rc = 0;

	if (!r->buf)
		rc = own ? rpcrdma_req_buf_get(r->req, bytes, &r->buf) :
			   rpcrdma_buf_get(r->pair->svc_engine, bytes, &r->buf);
	if (own && rc == -ENOBUFS) {
		r->again = again;
		r->waiter = (struct rpcrdma_buf_waiter){ .fn = on_buf };
		rpcrdma_req_buf_wait(r->req, &r->waiter);
		return false;
	}
	if (rc == -ENOTCONN) { /* the caller is gone */
		rpcrdma_req_drop(r->req, req_free, r);
		return false;
	}
	assert_int_equal(rc, 0);
	return true;
}

static void req_answer(struct echo_req *r)
{
	uint32_t len = r->res.payload.length, off = 0;

	if (len > r->req->room) {
		rpcrdma_req_reject(r->req, req_free, r);
		return;
	}
	for (r->npieces = 0; off < len; r->npieces++) {
		struct rpcrdma_xfer *p = &r->pieces[r->npieces];
		int rc;

		*p = (struct rpcrdma_xfer){ .buf = r->buf, .buf_off = off, .off = off,
					     .len = piece_len(r, off, len) };
		rc = rpcrdma_req_place(r->req, p);
		if (rc == -ENOTCONN) {
			rpcrdma_req_drop(r->req, req_free, r);
			return;
		}
		assert_int_equal(rc, 0);
		off += p->len;
	}
	rpcrdma_req_reply(r->req, (xdrproc_t)xdr_echo_msg, &r->res, req_free, r);
}

static void req_run(struct echo_req *r)
{
	struct rpc_pair *p = r->pair;

	if (r->err) {
		rpcrdma_req_drop(r->req, req_free, r);
		return;
	}
	if (p->hold) {
		struct echo_req **at = &p->held;

		while (*at)
			at = &(*at)->next;
		r->next = NULL;
		*at = r;
		p->nheld++;
		return;
	}
	switch (r->req->proc) {
	case ECHO_BOTH:
		r->res.head = r->args.head;
		r->res.head_len = r->args.head_len;
		r->res.n = r->args.n;
		r->res.payload.length = r->args.payload.length;
		break;
	case ECHO_SINK:
		r->res.n = r->buf ? echo_sum(r->buf->addr, r->args.payload.length, 0) : 0;
		break;
	case ECHO_SOURCE:
		if (!has_buf(r, MAX(r->args.n, 1u), req_run))
			return;
		echo_pattern(r->buf->addr, r->args.n, r->args.n);
		r->res.payload.length = r->args.n;
		break;
	case ECHO_HEAD:
		r->res.head = r->args.head;
		r->res.head_len = r->args.n;
		echo_pattern(r->res.head, r->args.n, r->args.n);
		break;
	case ECHO_REJECT:
		rpcrdma_req_reject(r->req, req_free, r);
		return;
	case ECHO_AUTH:
		rpcrdma_req_reply_auth(r->req, 5, req_free, r);
		return;
	default:
		rpcrdma_req_reply_error(r->req, RPCRDMA_PROC_UNAVAIL, 0, 0, req_free, r);
		return;
	}
	req_answer(r);
}

static void piece_done(struct rpcrdma_xfer *piece, int err)
{
	struct echo_req *r = piece->req->user;

	if (err)
		r->err = err;
	if (++r->pulled == r->npieces)
		req_run(r);
}

static void req_pull(struct echo_req *r)
{
	uint32_t len = r->args.payload.length, off = 0;
	unsigned n = 0;

	if (!len) {
		req_run(r);
		return;
	}
	if (!has_buf(r, len, req_pull))
		return;
	while (off < len) {
		struct rpcrdma_xfer *p = &r->pieces[n++];

		*p = (struct rpcrdma_xfer){ .buf = r->buf, .buf_off = off, .off = off,
					     .len = piece_len(r, off, len), .done = piece_done };
		off += p->len;
	}
	r->npieces = n;
	for (unsigned i = 0; i < n; i++) {
		int rc = rpcrdma_req_pull(r->req, &r->pieces[i]);

		if (!rc)
			continue;
		assert_int_equal(rc, -ENOTCONN);
		r->err = rc;
		r->pulled += n - i;
		if (r->pulled == n)
			req_run(r);
		return;
	}
}

static int svc_accept(void *ctx, const struct rpcrdma_peer *peer, struct rpcrdma_engine **ret_engine,
		      void **ret_conn_ctx)
{
	struct rpc_pair *p = ctx;

	(void)peer;
	p->nconns++;
	*ret_engine = p->svc_engine;
	*ret_conn_ctx = p;
	return 0;
}

static void svc_call(void *conn_ctx, struct rpcrdma_req *req)
{
	struct rpc_pair *p = conn_ctx;
	struct echo_req *r = req->user;
	int rc;

	p->last_conn = req->conn;
	if (!r) {
		r = calloc(1, sizeof(*r));
		assert_non_null(r);
		r->pair = p;
		r->req = req;
		req->user = r;
		if (p->nlog < ECHO_LOG)
			p->log[p->nlog++] = req->xid;
	}
	if (req->prog != ECHO_PROG) {
		rpcrdma_req_reply_error(req, RPCRDMA_PROG_UNAVAIL, 0, 0, req_free, r);
		return;
	}
	if (req->vers != ECHO_VERS) {
		rpcrdma_req_reply_error(req, RPCRDMA_PROG_MISMATCH, ECHO_VERS, ECHO_VERS, req_free,
					r);
		return;
	}
	if (req->proc == ECHO_NULL) {
		rpcrdma_req_reply(req, (xdrproc_t)xdr_nothing, NULL, req_free, r);
		return;
	}
	if (!r->head)
		r->head = malloc(ECHO_HEAD_MAX);
	assert_non_null(r->head);
	r->args.head = r->head;
	rc = rpcrdma_req_decode(req, (xdrproc_t)xdr_echo_msg, &r->args);
	if (rc == -EAGAIN)
		return;
	if (rc) {
		rpcrdma_req_reply_error(req, RPCRDMA_GARBAGE_ARGS, 0, 0, req_free, r);
		return;
	}
	req_pull(r);
}

static void svc_closed(void *conn_ctx)
{
	struct rpc_pair *p = conn_ctx;

	p->nconns--;
	p->last_conn = NULL;
}

static const struct rpcrdma_svc_ops svc_ops = {
	.accept = svc_accept,
	.call = svc_call,
	.closed = svc_closed,
};

void rpc_pair_release(struct rpc_pair *p)
{
	struct echo_req *r = p->held, *next;

	p->hold = false;
	p->held = NULL;
	p->nheld = 0;
	for (; r; r = next) {
		next = r->next;
		req_run(r);
	}
}

/* ---- the pair ----------------------------------------------------------------------------- */

static void on_away(void *ctx, bool away, const char *why)
{
	struct rpc_pair *p = ctx;

	(void)why;
	if (away)
		p->aways++;
	else
		p->backs++;
}

static void on_state(void *ctx, enum rpcrdma_clnt_state s, const char *why)
{
	struct rpc_pair *p = ctx;

	p->ups += s == RPCRDMA_CLNT_UP;
	p->downs += s == RPCRDMA_CLNT_DOWN;
	snprintf(p->last_why, sizeof(p->last_why), "%s", why);
}

void rpc_pair_listen(struct rpc_pair *p)
{
	assert_int_equal(rpcrdma_listen(p->svc_engine, &p->addr, &p->attr.svc, &svc_ops, p,
					&p->listener), 0);
	p->addr = *rpcrdma_listener_addr(p->listener);
}

void rpc_pair_unlisten(struct rpc_pair *p)
{
	rpcrdma_listener_close(p->listener);
	p->listener = NULL;
}

static void make_side(const struct rr_local_attr *local, struct rpcrdma_domain **d,
		      struct rpcrdma_engine **e)
{
	struct rpcrdma_domain_attr da = { .pool_bytes_max = 64u << 20, .lab = LAB(.local = local) };
	struct rpcrdma_engine_attr ea = { .poll = RPCRDMA_POLL_EVENT };

	assert_int_equal(rpcrdma_domain_create(&da, d), 0);
	assert_int_equal(rpcrdma_engine_create(*d, &ea, e), 0);
}

struct rpc_pair *rpc_pair_create(const struct rpc_pair_attr *attr)
{
	static unsigned serial;
	const char *rdma_host = getenv("LEAT_FLOW_RDMA"); /* as in leat_flow.h */
	struct rpc_pair *p = calloc(1, sizeof(*p));
	struct rpcrdma_clnt_attr ca;

	assert_non_null(p);
	p->attr = *attr;
	make_side(&p->attr.svc_local, &p->svc_domain, &p->svc_engine);
	if (attr->one_engine) {
		p->clnt_domain = p->svc_domain;
		p->clnt_engine = p->svc_engine;
	} else {
		make_side(&p->attr.clnt_local, &p->clnt_domain, &p->clnt_engine);
	}
	p->addr.transport = attr->transport;
	if (rdma_host && attr->transport == RPCRDMA_LOCAL) {
		p->addr.transport = RPCRDMA_RDMA;
		snprintf(p->addr.host, sizeof(p->addr.host), "%s", rdma_host);
	} else if (attr->transport == RPCRDMA_LOCAL)
		snprintf(p->addr.host, sizeof(p->addr.host), "/tmp/rpc_pair.%d.%u", (int)getpid(),
			 serial++);
	else
		snprintf(p->addr.host, sizeof(p->addr.host), "127.0.0.1");
	rpc_pair_listen(p);
	ca = attr->clnt;
	ca.addr = p->addr;
	ca.state = on_state;
	if (ca.away_ms)
		ca.away = on_away;
	ca.ctx = p;
	assert_int_equal(rpcrdma_clnt_open(p->clnt_engine, &ca, &p->clnt), 0);
	return p;
}

void rpc_pair_destroy(struct rpc_pair *p)
{
	rpcrdma_clnt_destroy(p->clnt);
	if (p->listener)
		rpcrdma_listener_close(p->listener);
	rpc_pair_release(p);
	for (uint64_t end = clock_now_ns() + 10 * NS_PER_S; p->nconns && clock_now_ns() < end;)
		rpc_pair_poll(p);
	assert_int_equal(p->nconns, 0);
	rpc_pair_settle(p);
	if (!p->attr.one_engine) {
		rpcrdma_engine_destroy(p->clnt_engine);
		rpcrdma_domain_destroy(p->clnt_domain);
	}
	rpcrdma_engine_destroy(p->svc_engine);
	rpcrdma_domain_destroy(p->svc_domain);
	if (p->addr.transport == RPCRDMA_LOCAL)
		unlink(p->addr.host);
	free(p);
}

int rpc_pair_poll(struct rpc_pair *p)
{
	int ran = rpcrdma_engine_poll(p->clnt_engine);

	if (!p->attr.one_engine)
		ran += rpcrdma_engine_poll(p->svc_engine);
	if (!ran)
		sched_yield();
	return ran;
}

void rpc_pair_until(struct rpc_pair *p, const unsigned *count, unsigned want)
{
	uint64_t end = clock_now_ns() + 60 * NS_PER_S;

	while (*count < want) {
		rpc_pair_poll(p);
		if (clock_now_ns() > end)
			fail_msg("no progress for a minute: %u of %u", *count, want);
	}
}

void rpc_pair_settle(struct rpc_pair *p)
{
	for (int idle = 0; idle < 200; idle++)
		if (rpc_pair_poll(p))
			idle = 0;
}

struct rpcrdma_stats rpc_pair_clnt_stats(struct rpc_pair *p)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(p->clnt_domain, &s);
	return s;
}

struct rpcrdma_stats rpc_pair_svc_stats(struct rpc_pair *p)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(p->svc_domain, &s);
	return s;
}

/* ---- calls -------------------------------------------------------------------------------- */

static void echo_done(struct rpcrdma_call *call, int err)
{
	struct echo_call *c = container_of(call, struct echo_call, call);

	c->done++;
	c->err = err;
}

void echo_init(struct echo_call *c, struct rpc_pair *p, enum echo_proc proc, size_t arg_bytes,
	       size_t sink_bytes, uint32_t n, uint32_t head)
{
	memset(c, 0, sizeof(*c));
	c->pair = p;
	c->own = true;
	c->arg_bytes = arg_bytes;
	c->sink_bytes = sink_bytes;
	c->arg = malloc(arg_bytes + 1);
	c->sink = malloc(sink_bytes + 1);
	c->args.head = calloc(1, ECHO_HEAD_MAX);
	c->res.head = calloc(1, ECHO_HEAD_MAX);
	assert_true(c->arg && c->sink && c->args.head && c->res.head);
	echo_pattern(c->arg, arg_bytes, (uint32_t)arg_bytes + head);
	memset(c->sink, 0xee, sink_bytes + 1);
	echo_pattern(c->args.head, head, head);
	c->args.n = n;
	c->args.head_len = head;
	c->args.payload.length = (uint32_t)arg_bytes;
	c->args.payload.iov = c->arg_iov;
	c->call = (struct rpcrdma_call){
		.prog = ECHO_PROG, .vers = ECHO_VERS, .proc = proc,
		.encode = (xdrproc_t)xdr_echo_msg, .args = &c->args,
		.decode = (xdrproc_t)xdr_echo_msg, .res = &c->res,
		.sink = c->sink_iov,
		.reply_max = 12 + (uint32_t)round_up4(proc == ECHO_HEAD ? n : head),
		.done = echo_done,
	};
	if (proc == ECHO_NULL) {
		c->call.encode = (xdrproc_t)xdr_nothing;
		c->call.decode = (xdrproc_t)xdr_nothing;
	}
	echo_cut(c, SIZE_MAX);
}

static int cut(struct iovec *iov, uint8_t *mem, size_t bytes, size_t piece)
{
	int n = 0;

	while (bytes) {
		size_t len = n == 31 ? bytes : MIN(bytes, piece);

		iov[n++] = (struct iovec){ mem, len };
		mem += len;
		bytes -= len;
	}
	return n;
}

void echo_cut(struct echo_call *c, size_t bytes)
{
	c->args.payload.iovcnt = cut(c->arg_iov, c->arg, c->arg_bytes, bytes);
	c->call.sinkcnt = cut(c->sink_iov, c->sink, c->sink_bytes, bytes);
}

void echo_start(struct echo_call *c)
{
	c->done = 0;
	assert_int_equal(rpcrdma_clnt_call(c->pair->clnt, &c->call), 0);
	assert_int_equal(c->done, 0);
}

void echo_check(struct echo_call *c, int err)
{
	uint8_t *want;

	assert_int_equal(c->done, 1);
	if (c->err != err)
		fail_msg("call ended with %d (%s), not %d", c->err, c->call.why, err);
	assert_int_equal(c->sink[c->sink_bytes], 0xee);
	if (err)
		return;
	switch (c->call.proc) {
	case ECHO_BOTH:
		assert_int_equal(c->res.n, c->args.n);
		assert_int_equal(c->res.head_len, c->args.head_len);
		assert_memory_equal(c->res.head, c->args.head, c->args.head_len);
		assert_int_equal(c->call.payload_bytes, c->arg_bytes);
		assert_memory_equal(c->sink, c->arg, c->arg_bytes);
		break;
	case ECHO_SINK:
		assert_int_equal(c->res.n, echo_sum(c->arg, c->arg_bytes, 0));
		assert_int_equal(c->call.payload_bytes, 0);
		break;
	case ECHO_SOURCE:
		assert_int_equal(c->call.payload_bytes, c->args.n);
		want = malloc(c->args.n + 1);
		assert_non_null(want);
		echo_pattern(want, c->args.n, c->args.n);
		assert_memory_equal(c->sink, want, c->args.n);
		free(want);
		break;
	case ECHO_HEAD:
		assert_int_equal(c->res.head_len, c->args.n);
		echo_pattern(c->args.head, c->args.n, c->args.n);
		assert_memory_equal(c->res.head, c->args.head, c->args.n);
		break;
	default:
		break;
	}
}

void echo_fini(struct echo_call *c)
{
	free(c->args.head);
	free(c->res.head);
	if (c->own) {
		free(c->arg);
		free(c->sink);
	}
}

void echo_run(struct rpc_pair *p, size_t bytes, uint32_t head)
{
	struct echo_call c;

	echo_init(&c, p, ECHO_BOTH, bytes, bytes, 7, head);
	echo_start(&c);
	rpc_pair_until(p, &c.done, 1);
	echo_check(&c, 0);
	echo_fini(&c);
}
