/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * svc_req.c - a request: its arguments, and the ways in which it ends
 *
 * Operation:  The arguments are taken as bytes before a dispatch function runs: svc_getargs() has to have all of them. The
 *             filter of the results runs once, in svc_sendreply() (rt_req_encode()); the transport gets bytes
 *             (rt_req_finish()).
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
}

static void free_req(struct rt_req *r)
{
	free_enc(r);
	free(r->args_mem);
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

	r->is_done = true;
	if (!r->on_stack)
		free_req(r);
}

/* ---- arguments ---- */

/* A filter that takes all bytes there are. */
static bool_t take_bytes(XDR *x, struct rt_req *r)
{
	char more;
	u_int start = x->x_ops->x_getpostn(x), low = 0, high = UINT_MAX - start;

	/* the stream has no call that tells its end, but moves to any position up to it */
	while (low < high) {
		u_int mid = low + (high - low) / 2 + 1;

		if (x->x_ops->x_setpostn(x, start + mid))
			low = mid;
		else
			high = mid - 1;
	}
	free(r->args_mem);
	r->args_mem = malloc(low + 1);
	if (!r->args_mem || !x->x_ops->x_setpostn(x, start))
		return FALSE;
	r->args = r->args_mem;
	r->args_bytes = low;
	if (!x->x_ops->x_getbytes(x, r->args_mem, low))
		return FALSE;
	/* one more byte does not exist, or has not been received */
	return x->x_ops->x_getbytes(x, &more, 1);
}

int rt_req_take_args(struct rt_req *r)
{
	int rc = rpcrdma_req_decode(r->req, (xdrproc_t)take_bytes, r);

	return rc == -EBADMSG && r->args ? 0 : rc;
}

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

	rt_dec_init(&d, r->args, r->args_bytes);
	rc = rt_dec_run(&d, (xdrproc_t)unwrap_args, &w);
	return rc == 0;
}

/* ---- replies ---- */

static bool_t wrap_results(XDR *x, struct wrapped *w)
{
	if (w->auth->svc_ah_ops)
		return SVCAUTH_WRAP(w->auth, x, w->filter, w->data);
	return ((bool_t(*)(XDR *, void *))w->filter)(x, w->data);
}

static bool_t encode_results(struct rt_req *r, struct rt_xprt *x, const struct rpc_msg *m)
{
	struct wrapped w = { &SVC_XP_AUTH(&x->x), m->acpted_rply.ar_results.proc, m->acpted_rply.ar_results.where };
	int rc;

	rt_enc_init(&r->enc, r->small, sizeof(r->small), r->conn->at->max_bytes, NULL, NULL);
	rc = rt_enc_run(&r->enc, (xdrproc_t)wrap_results, &w);
	if (!rc)
		return TRUE;
	if (rc == -EMSGSIZE)
		rt_svc_log("program %u, procedure %u: results of more than %zu bytes (max_bytes)", r->req->prog, r->req->proc,
			   r->conn->at->max_bytes);
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
		rpcrdma_req_reply_bytes(req, r->enc.buf, r->enc.len, on_done, r);
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
