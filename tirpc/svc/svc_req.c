/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * svc_req.c - a request: its arguments, and the ways in which it ends
 *
 * Operation:  The arguments are in memory of the transport before a dispatch function runs: svc_getargs() has to have all of
 *             them. The filter of the results runs once, in svc_sendreply() (rt_req_encode()); the transport gets bytes, and
 *             the place of bulk data that the table names (rt_req_finish()).
 * Memory:     A request that has ended is kept for the next call.
 * Threads:    The thread that runs the engine; rt_req_encode() and rt_req_get_args() the one that serves the request.
 * Errors:     Results that do not encode leave the request as it was: a program then calls svcerr_systemerr(). If it does
 *             not, rt_req_leave() does.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <rpc/rpc.h>
#include <rpc/svc_auth.h>
#include <rpc/svc_mt.h>

#include "dec.h"
#include "svc_int.h"

#define SPARE_MAX 64u

/* ---- memory ---- */

struct rt_req *rt_req_create(struct rt_conn *c, struct rpcrdma_req *req)
{
	struct rt_req *r = rt_svc.spare;

	if (r) {
		rt_svc.spare = r->below;
		rt_svc.nspare--;
	} else {
		r = malloc(sizeof(*r));
		if (!r)
			return NULL;
	}
	memset(r, 0, offsetof(struct rt_req, end));
	list_init(&r->link);
	list_init(&r->children);
	r->conn = c;
	r->req = req;
	req->user = r;
	return r;
}

static void free_enc(struct rt_req *r)
{
	if (r->enc.buf)
		rt_enc_fini(&r->enc);
	r->enc.buf = NULL;
	free(r->item);
	r->item = NULL;
}

static void free_req(struct rt_req *r)
{
	free_enc(r);
	if (rt_svc.nspare >= SPARE_MAX) {
		free(r);
		return;
	}
	r->below = rt_svc.spare;
	rt_svc.spare = r;
	rt_svc.nspare++;
}

static void on_done(void *arg)
{
	struct rt_req *r = arg;

	rt_share_uncharge(r);
	if (r->wait)
		rt_send_done(r->wait);
	r->is_done = true;
	if (!r->on_stack)
		free_req(r);
}

/* ---- arguments ---- */

/* Flavors that a program has added to libtirpc may wrap arguments and results. */
struct wrapped {
	SVCAUTH *auth;
	xdrproc_t filter;
	void *data;
};

static bool_t unwrap_args(XDR *x, struct wrapped *w)
{
	if (w->auth->svc_ah_ops)
		return SVCAUTH_UNWRAP(w->auth, x, w->filter, w->data);
	return ((bool_t(*)(XDR *, void *))w->filter)(x, w->data);
}

bool_t rt_req_get_args(struct rt_req *r, struct rt_xprt *x, xdrproc_t filter, void *args)
{
	struct wrapped w = { &SVC_XP_AUTH(&x->x), filter, args };
	struct rt_dec d;
	int rc;

	rt_dec_init(&d, r->args.bytes, r->args.len);
	rc = rt_dec_run(&d, (xdrproc_t)unwrap_args, &w);
	if (!rc) /* rpcgen's filters copy what is opaque */
		r->req->copied += r->args.payload_bytes;
	return rc == 0;
}

/* ---- replies ---- */

static bool_t wrap_results(XDR *x, struct wrapped *w)
{
	if (w->auth->svc_ah_ops)
		return SVCAUTH_WRAP(w->auth, x, w->filter, w->data);
	return ((bool_t(*)(XDR *, void *))w->filter)(x, w->data);
}

static const struct rpcrdma_bulk *find_row(const struct rt_req *r)
{
	const struct rpcrdma_req *req = r->req;

	return rt_bulk_find(&r->conn->at->bulk, req->prog, req->vers, req->proc);
}

/* Over TCP, svc_sendreply() would wait for a peer that does not read. The parent of a child has no memory of the child's. */
static bool may_leave_out(const struct rt_req *r, const struct rpcrdma_bulk *row)
{
	return row->results && r->req->by_chunk && r->req->peer->transport != RPCRDMA_TCP && !rt_fork_is_child();
}

static void tell_too_long(const struct rt_req *r)
{
	rt_svc_log("program %u, procedure %u: results are longer than max_bytes or the table of bulk data says", r->req->prog,
		   r->req->proc);
}

/* A caller that offers a chunk gets any item by chunk: it may offer nothing else. A short one is copied, so that
 * svc_sendreply() need not wait. */
static int check_item(struct rt_req *r, const struct rpcrdma_bulk *row)
{
	struct rt_enc_bulk *b = &r->enc.bulk;

	if (b->bytes > row->data_max)
		return -EMSGSIZE;
	if (b->bytes >= row->threshold)
		return 0;
	r->item = malloc(b->bytes);
	if (!r->item)
		return -ENOMEM;
	memcpy(r->item, b->base, b->bytes);
	b->base = r->item;
	return 0;
}

static bool_t encode_results(struct rt_req *r, struct rt_xprt *x, const struct rpc_msg *m)
{
	struct wrapped w = { &SVC_XP_AUTH(&x->x), m->acpted_rply.ar_results.proc, m->acpted_rply.ar_results.where };
	const struct rpcrdma_bulk *row = find_row(r);
	size_t max = r->conn->at->max_bytes;
	int rc;

	/* an item that does not travel by chunk counts in addition */
	if (row && row->results)
		max = MIN(max + round_up4(row->data_max), (size_t)RPCRDMA_TIRPC_MAX_BYTES);
	rt_enc_init(&r->enc, r->small, sizeof(r->small), max, NULL, NULL);
	if (row && may_leave_out(r, row))
		rt_enc_want_bulk(&r->enc, row->results, 1);
	rc = rt_enc_run(&r->enc, (xdrproc_t)wrap_results, &w);
	if (!rc && r->enc.bulk.base)
		rc = check_item(r, row);
	if (!rc)
		return TRUE;
	if (rc == -EMSGSIZE)
		tell_too_long(r);
	free_enc(r);
	r->encode_failed = true;
	return FALSE;
}

static void set_verf(struct rt_end *e, const struct opaque_auth *verf)
{
	e->verf_flavor = (uint32_t)verf->oa_flavor;
	e->verf_bytes = MIN(verf->oa_length, (u_int)sizeof(e->verf));
	if (e->verf_bytes)
		memcpy(e->verf, verf->oa_base, e->verf_bytes);
}

bool_t rt_req_encode(struct rt_req *r, struct rt_xprt *x, const struct rpc_msg *m)
{
	const struct accepted_reply *a = &m->acpted_rply;
	struct rt_end *e = &r->end;

	e->verf_flavor = e->verf_bytes = 0;
	if (m->rm_reply.rp_stat == MSG_DENIED) {
		e->kind = RT_END_AUTH;
		e->stat = m->rjcted_rply.rj_why;
		return m->rjcted_rply.rj_stat == AUTH_ERROR;
	}
	set_verf(e, &a->ar_verf);
	if (a->ar_stat == SUCCESS) {
		e->kind = RT_END_RESULTS;
		return encode_results(r, x, m);
	}
	e->kind = RT_END_ERROR;
	e->stat = a->ar_stat;
	e->low = e->high = 0;
	if (a->ar_stat == PROG_MISMATCH) {
		e->low = (uint32_t)a->ar_vers.low;
		e->high = (uint32_t)a->ar_vers.high;
	}
	return TRUE;
}

static void send_results(struct rt_req *r, struct rpcrdma_req *req)
{
	const struct rt_enc_bulk *b = &r->enc.bulk;
	struct rpcrdma_results res = { .iov = r->iov, .iovcnt = 3, .payload = 1, .payload_cnt = 1 };

	rt_share_charge(r);
	if (!b->base) {
		rpcrdma_req_reply_bytes(req, r->enc.buf, r->enc.len, on_done, r);
		return;
	}
	r->iov[0] = (struct iovec){ r->enc.buf, b->pos };
	r->iov[1] = (struct iovec){ (void *)(uintptr_t)b->base, b->bytes }; /* only read */
	r->iov[2] = (struct iovec){ r->enc.buf + b->pos, r->enc.len - b->pos };
	rpcrdma_req_reply_parts(req, &res, on_done, r);
}

void rt_req_finish(struct rt_req *r)
{
	struct rpcrdma_req *req = r->req;
	const struct rt_end *e = &r->end;

	list_del(&r->link);
	rt_fork_forget(r);
	r->req = NULL;
	if (e->kind != RT_END_DROP && (e->verf_flavor != AUTH_NONE || e->verf_bytes))
		(void)rpcrdma_req_set_verf(req, e->verf_flavor, e->verf, e->verf_bytes); /* is in bounds */
	switch (e->kind) {
	case RT_END_RESULTS:
		send_results(r, req);
		return;
	case RT_END_REJECT:
		rpcrdma_req_reject(req, on_done, r);
		return;
	case RT_END_ERROR:
		rpcrdma_req_reply_error(req, (enum rpcrdma_accept_stat)e->stat, e->low, e->high, on_done, r);
		return;
	case RT_END_AUTH:
		rpcrdma_req_reply_auth(req, e->stat, on_done, r);
		return;
	case RT_END_DROP:
		rpcrdma_req_drop(req, on_done, r);
		return;
	}
}

void rt_req_end(struct rt_req *r, enum rt_end_kind kind, uint32_t stat)
{
	r->end = (struct rt_end){ .kind = kind, .stat = stat };
	rt_req_finish(r);
}

void rt_req_leave(struct rt_req *r)
{
	r->on_stack = false;
	if (rt_fork_is_child())
		rt_fork_leave(r);
	else if (r->is_done)
		free_req(r);
	else if (!r->req || r->is_detached)
		return; /* it has been replied to, or will be */
	else if (r->encode_failed)
		rt_req_end(r, RT_END_ERROR, SYSTEM_ERR);
	else if (list_is_empty(&r->children))
		rt_req_end(r, RT_END_DROP, 0);
}
