/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * wire_svc.c - a small RPC service with one procedure for each way data can move
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "wire_svc.h"

#define PIECES_MAX 512u

struct wire_job {
	struct wire_job *next;
	struct wire_svc *svc;
	struct rpcrdma_req *req;
	struct rpcrdma_engine *engine;
	struct rpcrdma_buf *buf;
	struct rpcrdma_buf_waiter waiter;
	struct rpcrdma_xfer pieces[PIECES_MAX];
	unsigned npieces, pulled;
	int err;
	uint8_t *own;
	struct iovec iov[2];
	union {
		struct wire_put_args put;
		struct wire_get_args get;
		uint32_t big;
	} args;
	union {
		struct wire_put_res put;
		struct wire_get_res get;
		struct wire_big_res big;
	} res;
};

bool_t xdr_wire_put_args(XDR *xdrs, struct wire_put_args *a)
{
	return xdr_u_int(xdrs, &a->tag) && rpcrdma_xdr_payload(xdrs, &a->data, WIRE_DATA_MAX);
}

bool_t xdr_wire_put_res(XDR *xdrs, struct wire_put_res *r)
{
	return xdr_u_int(xdrs, &r->length) && xdr_u_int(xdrs, &r->sum);
}

bool_t xdr_wire_get_args(XDR *xdrs, struct wire_get_args *a)
{
	return xdr_u_int(xdrs, &a->count) && xdr_u_int(xdrs, &a->mode);
}

bool_t xdr_wire_get_res(XDR *xdrs, struct wire_get_res *r)
{
	return xdr_u_int(xdrs, &r->status) &&
	       (r->status || rpcrdma_xdr_payload(xdrs, &r->data, WIRE_DATA_MAX));
}

bool_t xdr_wire_big_res(XDR *xdrs, struct wire_big_res *r)
{
	if (!xdr_u_int(xdrs, &r->length))
		return FALSE;
	for (uint32_t i = 0; i < r->length; i += 4) {
		u_int word = i * 2654435761u, want = word;

		if (!xdr_u_int(xdrs, &word) || word != want)
			return FALSE;
	}
	return TRUE;
}

/* xdr_void with the arguments every filter has */
static bool_t nothing(XDR *xdrs, void *none)
{
	(void)xdrs;
	(void)none;
	return TRUE;
}

void wire_svc_put_early(struct wire_svc *s)
{
	if (s->early_buf)
		rpcrdma_buf_put(s->engine, s->early_buf);
	s->early_buf = NULL;
}

static void keep_buf(struct wire_job *j)
{
	struct wire_svc *s = j->svc;

	assert_int_equal(j->pulled, j->npieces); /* no pull ends after its request */
	s->early++;
	s->early_err = j->err;
	wire_svc_put_early(s);
	s->early_buf = j->buf;
	memset(j->buf->addr, 0xee, j->buf->bytes);
}

static void job_done(void *arg)
{
	struct wire_job *j = arg;

	if (j->buf && j->svc->put_ends)
		keep_buf(j);
	else if (j->buf)
		rpcrdma_buf_put(j->engine, j->buf);
	free(j->own);
	free(j);
}

static void put_reply(struct wire_job *j)
{
	struct wire_svc *s = j->svc;
	uint32_t len = j->args.put.data.length, sum = 0;

	if (j->err || s->drop_puts) {
		s->drops += s->drop_puts;
		rpcrdma_req_drop(j->req, job_done, j);
		return;
	}
	for (uint32_t i = 0; i < len; i++)
		sum += ((uint8_t *)j->buf->addr)[i];
	s->put_tag = j->args.put.tag;
	s->put_bytes = len;
	free(s->put_data);
	s->put_data = malloc(len ? len : 1);
	assert_non_null(s->put_data);
	memcpy(s->put_data, j->buf->addr, len);
	j->res.put = (struct wire_put_res){ len, sum };
	rpcrdma_req_reply(j->req, (xdrproc_t)xdr_wire_put_res, &j->res, job_done, j);
}

static void finish(struct wire_job *j)
{
	if (j->svc->hold) {
		j->next = j->svc->held;
		j->svc->held = j;
		j->svc->nheld++;
		return;
	}
	if (j->req->proc == WIRE_PUT)
		put_reply(j);
	else
		rpcrdma_req_reply(j->req, (xdrproc_t)xdr_wire_get_res, &j->res, job_done, j);
}

static void on_pulled(struct rpcrdma_xfer *p, int err)
{
	struct wire_job *j = p->priv[1];

	if (err)
		j->err = err;
	if (++j->pulled == j->npieces && !j->svc->put_ends)
		finish(j);
}

static void cut_pieces(struct wire_job *j, uint32_t len)
{
	uint32_t grain = j->svc->grain ? j->svc->grain : len;

	for (uint32_t off = 0; off < len; off += grain) {
		assert_in_range(j->npieces, 0, PIECES_MAX - 1);
		j->pieces[j->npieces++] = (struct rpcrdma_xfer){ .buf = j->buf,
								  .buf_off = off,
								  .off = off,
								  .len = MIN(grain, len - off) };
	}
}

static void run(struct wire_job *j);

static void on_buf(struct rpcrdma_buf_waiter *w)
{
	run(container_of(w, struct wire_job, waiter));
}

/* false: run() comes again when there is one, or the caller is gone and the job is over */
static bool has_buf(struct wire_job *j, uint32_t len)
{
	int rc = j->buf ? 0 : rpcrdma_req_buf_get(j->req, len ? len : 1, &j->buf);

	if (rc == 0)
		return true;
	if (rc == -ENOTCONN) {
		rpcrdma_req_drop(j->req, job_done, j);
		return false;
	}
	assert_int_equal(rc, -ENOBUFS);
	j->waiter = (struct rpcrdma_buf_waiter){ .fn = on_buf };
	rpcrdma_req_buf_wait(j->req, &j->waiter);
	return false;
}

static void put(struct wire_job *j)
{
	uint32_t len = j->args.put.data.length;

	if (!has_buf(j, len))
		return;
	cut_pieces(j, len);
	if (!j->npieces) {
		finish(j);
		return;
	}
	for (unsigned i = 0; i < j->npieces; i++) {
		j->pieces[i].done = on_pulled;
		j->pieces[i].priv[1] = j;
		if (rpcrdma_req_pull(j->req, &j->pieces[i])) {
			/* only a broken connection refuses a piece that is inside the payload */
			assert_false(rpcrdma_req_conn_alive(j->req));
			on_pulled(&j->pieces[i], -EIO);
		}
	}
	if (j->svc->put_ends == WIRE_EARLY_DROP)
		rpcrdma_req_drop(j->req, job_done, j);
	else if (j->svc->put_ends)
		rpcrdma_req_reply_error(j->req, RPCRDMA_SYSTEM_ERR, 0, 0, job_done, j);
}

static bool place_all(struct wire_job *j)
{
	bool backwards = j->args.get.mode == WIRE_PLACE_PIECES;

	for (unsigned i = 0; i < j->npieces; i++) {
		struct rpcrdma_xfer *p = &j->pieces[backwards ? j->npieces - 1 - i : i];

		if (rpcrdma_req_place(j->req, p) == -EMSGSIZE)
			return false;
	}
	return true;
}

static void get(struct wire_job *j)
{
	struct rpcrdma_payload *out = &j->res.get.data;
	uint32_t count = MIN(j->args.get.count, WIRE_DATA_MAX), mode = j->args.get.mode;
	uint32_t grain = j->svc->grain;

	if (count > j->req->room) {
		rpcrdma_req_reject(j->req, job_done, j);
		return;
	}
	if (!has_buf(j, count))
		return;
	for (uint32_t i = 0; i < count; i++)
		((uint8_t *)j->buf->addr)[i] = wire_byte(i);
	out->length = count;
	if (mode == WIRE_IOV) {
		j->own = malloc(count ? count : 1);
		assert_non_null(j->own);
		memcpy(j->own, j->buf->addr, count);
		j->iov[0] = (struct iovec){ j->own, count / 2 };
		j->iov[1] = (struct iovec){ j->own + count / 2, count - count / 2 };
		out->iov = j->iov;
		out->iovcnt = 2;
		finish(j);
		return;
	}
	if (mode == WIRE_SINK && count) {
		struct iovec iov[16];
		int cnt = 16;

		if (rpcrdma_req_sink(j->req, 0, count, iov, &cnt) == 0) {
			uint8_t *from = j->buf->addr;

			/* a test may touch memory of its own process; a service lets the kernel do it */
			for (int i = 0; i < cnt; i++) {
				memcpy(iov[i].iov_base, from, iov[i].iov_len);
				from += iov[i].iov_len;
			}
			finish(j);
			return;
		}
	}
	if (mode != WIRE_PLACE_PIECES)
		j->svc->grain = 0;
	cut_pieces(j, mode == WIRE_HALF || mode == WIRE_HOLE ? count / 2 : count);
	if (mode == WIRE_HOLE)
		cut_pieces(j, count / 2);
	j->svc->grain = grain;
	if (!place_all(j)) {
		rpcrdma_req_reject(j->req, job_done, j);
		return;
	}
	if (mode == WIRE_SHORT)
		out->length = count / 2;
	else if (mode == WIRE_ERROR)
		j->res.get.status = 5;
	finish(j);
}

/* Words that are no payload, as many as the first one says. */
static bool_t long_args(XDR *xdrs, void *unused)
{
	u_int n, word;

	(void)unused;
	if (!xdr_u_int(xdrs, &n))
		return FALSE;
	for (u_int i = 0; i < n; i++)
		if (!xdr_u_int(xdrs, &word))
			return FALSE;
	return TRUE;
}

static int decode(struct wire_job *j)
{
	switch (j->req->proc) {
	case WIRE_PUT:
		return rpcrdma_req_decode(j->req, (xdrproc_t)xdr_wire_put_args, &j->args.put);
	case WIRE_GET:
		return rpcrdma_req_decode(j->req, (xdrproc_t)xdr_wire_get_args, &j->args.get);
	case WIRE_BIG:
		return rpcrdma_req_decode(j->req, (xdrproc_t)xdr_u_int, &j->args.big);
	case WIRE_LONG:
		return rpcrdma_req_decode(j->req, (xdrproc_t)long_args, NULL);
	default:
		return rpcrdma_req_decode(j->req, (xdrproc_t)nothing, NULL);
	}
}

static void run(struct wire_job *j)
{
	switch (j->req->proc) {
	case WIRE_NULL:
	case WIRE_LONG:
		rpcrdma_req_reply(j->req, (xdrproc_t)nothing, NULL, job_done, j);
		break;
	case WIRE_PUT:
		put(j);
		break;
	case WIRE_GET:
		get(j);
		break;
	case WIRE_BIG:
		j->res.big.length = j->args.big;
		rpcrdma_req_reply(j->req, (xdrproc_t)xdr_wire_big_res, &j->res.big, job_done, j);
		break;
	case WIRE_DROP:
		j->svc->drops++;
		rpcrdma_req_drop(j->req, job_done, j);
		break;
	case WIRE_REJECT:
		rpcrdma_req_reject(j->req, job_done, j);
		break;
	default:
		rpcrdma_req_reply_error(j->req, RPCRDMA_PROC_UNAVAIL, 0, 0, job_done, j);
	}
}

static void svc_call(void *conn_ctx, struct rpcrdma_req *req)
{
	struct wire_job *j = req->user;
	int rc;

	if (!j) {
		j = calloc(1, sizeof(*j));
		assert_non_null(j);
		j->svc = conn_ctx;
		j->req = req;
		j->engine = req->engine;
		req->user = j;
		j->svc->calls++;
	}
	if (req->prog != WIRE_PROG) {
		rpcrdma_req_reply_error(req, RPCRDMA_PROG_UNAVAIL, 0, 0, job_done, j);
		return;
	}
	if (req->vers != WIRE_VERS) {
		rpcrdma_req_reply_error(req, RPCRDMA_PROG_MISMATCH, WIRE_VERS, WIRE_VERS, job_done, j);
		return;
	}
	if (req->cred_flavor > 1) {
		rpcrdma_req_reply_auth(req, 5, job_done, j);
		return;
	}
	rc = decode(j);
	if (rc == -EAGAIN)
		return;
	if (rc)
		rpcrdma_req_reply_error(req, RPCRDMA_GARBAGE_ARGS, 0, 0, job_done, j);
	else
		run(j);
}

static int svc_accept(void *ctx, const struct rpcrdma_peer *peer, struct rpcrdma_engine **ret_engine,
		      void **ret_conn_ctx)
{
	struct wire_svc *s = ctx;

	(void)peer;
	s->conns++;
	*ret_engine = s->conn_engine ? s->conn_engine : s->engine;
	*ret_conn_ctx = s;
	return 0;
}

static void svc_closed(void *conn_ctx)
{
	((struct wire_svc *)conn_ctx)->closed++;
}

static void svc_refused(void *ctx, const struct rpcrdma_peer *peer, int err)
{
	struct wire_svc *s = ctx;

	assert_true(peer->text[0] != '\0');
	s->refused++;
	s->refused_err = err;
}

static const struct rpcrdma_svc_ops ops = {
	.accept = svc_accept,
	.call = svc_call,
	.closed = svc_closed,
	.refused = svc_refused,
};

const struct rpcrdma_svc_ops *wire_svc_ops(void)
{
	return &ops;
}

void (*wire_svc_on_domain)(struct rpcrdma_domain *domain);

int wire_svc_open(struct wire_svc *s, const char *url, const struct rpcrdma_domain_attr *domain,
		  const struct rpcrdma_svc_attr *attr)
{
	struct rpcrdma_addr addr;

	memset(s, 0, sizeof(*s));
	assert_int_equal(rpcrdma_addr_parse(url, &addr), 0);
	assert_int_equal(rpcrdma_domain_create(domain, &s->domain), 0);
	if (wire_svc_on_domain)
		wire_svc_on_domain(s->domain);
	assert_int_equal(rpcrdma_engine_create(s->domain, NULL, &s->engine), 0);
	return rpcrdma_listen(s->engine, &addr, attr, &ops, s, &s->listener);
}

void wire_svc_release(struct wire_svc *s)
{
	s->hold = false;
	s->nheld = 0;
	while (s->held) {
		struct wire_job *j = s->held;

		s->held = j->next;
		finish(j);
	}
}

void wire_svc_close(struct wire_svc *s)
{
	wire_svc_release(s);
	rpcrdma_listener_close(s->listener);
	rpcrdma_engine_close_conns(s->engine);
	for (int idle = 0; idle < 2000 && s->closed < s->conns;)
		idle = rpcrdma_engine_poll(s->engine) ? 0 : idle + 1;
	assert_int_equal(s->closed, s->conns);
	rpcrdma_engine_destroy(s->engine);
	rpcrdma_domain_destroy(s->domain);
	free(s->put_data);
}
