/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * svc_detach.c - requests that are replied to later, in any order, by any thread
 *
 * Operation:  rpcrdma_svc_detach() copies what a dispatch function has of a request into a handle of its own. A reply is
 *             encoded by the thread that makes it, and sent as svc_send.c explains.
 * Memory:     The handle until rpcrdma_svc_release(); the request, with its arguments, until its reply.
 * Threads:    rpcrdma_svc_detach() in the dispatch function. A handle then belongs to one thread at a time. What the loop's
 *             thread reads of a detached request before its reply, no other thread writes.
 * Errors:     A second reply is dropped, and logged. A reply on a connection that is lost is dropped by the transport.
 */
#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "svc_int.h"

#define COOKED_BYTES 400u /* bound of rq_clntcred (svc.c of libtirpc) */

struct rt_detached {
	struct svc_req q; /* first: programs have only this */
	struct rt_xprt h;
	unsigned forks; /* rt_forks() of the process that has the request */
	char cred[MAX_AUTH_BYTES];
	union {
		struct {
			struct authunix_parms parms;
			char machine[MAX_MACHINE_NAME + 1];
			gid_t gids[NGRPS];
		} sys;
		char bytes[COOKED_BYTES];
	} cooked;
};

/* ---- ends ---- */

/* Return: NULL: it was replied to, or it is the parent's, whether this child serves by now or not */
static struct rt_req *request_of(const struct rt_xprt *h)
{
	return container_of(h, struct rt_detached, h)->forks == rt_forks() ? h->r : NULL;
}

static bool_t detached_reply(SVCXPRT *x, struct rpc_msg *m)
{
	struct rt_xprt *h = rt_xprt_of(x);
	struct rt_req *r = request_of(h);

	if (!r) {
		rt_svc_log("a detached request was replied to twice, or in a child of fork(): reply dropped");
		return FALSE;
	}
	if (!rt_req_encode(r, h, m))
		return FALSE;
	h->r = NULL;
	rt_send(r);
	return TRUE;
}

void rpcrdma_svc_release(struct svc_req *detached)
{
	struct rt_detached *d;
	struct rt_req *r;

	if (!detached)
		return;
	d = container_of(detached, struct rt_detached, q);
	r = request_of(&d->h);
	if (r) {
		r->end = (struct rt_end){ .kind = r->encode_failed ? RT_END_ERROR : RT_END_DROP, .stat = SYSTEM_ERR };
		rt_send(r);
	}
	free(d);
}

/* ---- the handle ---- */

static bool_t detached_getargs(SVCXPRT *x, xdrproc_t filter, void *args)
{
	struct rt_xprt *h = rt_xprt_of(x);
	struct rt_req *r = request_of(h);

	return r ? rt_req_get_args(r, h, filter, args) : FALSE;
}

/* Only the loop calls these on a handle. */
static bool_t detached_recv(SVCXPRT *x, struct rpc_msg *m)
{
	(void)x;
	(void)m;
	return FALSE;
}

static enum xprt_stat detached_stat(SVCXPRT *x)
{
	(void)x;
	return XPRT_IDLE;
}

static void detached_destroy(SVCXPRT *x)
{
	(void)x; /* rpcrdma_svc_release() does */
}

static const struct xp_ops detached_ops = {
	.xp_recv = detached_recv,
	.xp_stat = detached_stat,
	.xp_getargs = detached_getargs,
	.xp_reply = detached_reply,
	.xp_freeargs = rt_xprt_freeargs,
	.xp_destroy = detached_destroy,
};

/* ---- detaching ---- */

static void copy_sys(struct rt_detached *d, const struct authunix_parms *p)
{
	struct authunix_parms *to = &d->cooked.sys.parms;

	*to = *p;
	to->aup_machname = d->cooked.sys.machine;
	to->aup_gids = d->cooked.sys.gids;
	to->aup_len = MIN(p->aup_len, (u_int)NGRPS);
	strncpy(d->cooked.sys.machine, p->aup_machname, MAX_MACHINE_NAME);
	memcpy(d->cooked.sys.gids, p->aup_gids, to->aup_len * sizeof(gid_t));
}

static void copy_creds(struct rt_detached *d, const struct svc_req *q)
{
	d->q.rq_cred.oa_base = d->cred;
	d->q.rq_cred.oa_length = MIN(q->rq_cred.oa_length, (u_int)MAX_AUTH_BYTES);
	if (d->q.rq_cred.oa_length)
		memcpy(d->cred, q->rq_cred.oa_base, d->q.rq_cred.oa_length);
	d->q.rq_clntcred = &d->cooked;
	if (q->rq_cred.oa_flavor == AUTH_SYS)
		copy_sys(d, q->rq_clntcred);
	else
		memcpy(d->cooked.bytes, q->rq_clntcred, COOKED_BYTES); /* contiguous, says libtirpc */
}

struct svc_req *rpcrdma_svc_detach(struct svc_req *rqstp)
{
	struct rt_svc *s = &rt_svc;
	struct rt_req *r = s->top;
	struct rt_detached *d;

	if (!rqstp || rqstp->rq_xprt != &s->main.x || !r || !r->req || r->is_detached || rt_fork_is_child() || !rt_loop_is_here())
		return NULL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->forks = rt_forks();
	rt_xprt_init(&d->h, &detached_ops, s->fd);
	rt_xprt_set(&d->h, r);
	memcpy(d->h.ext, s->main.ext, sizeof(d->h.ext));
	d->h.x.xp_verf = (struct opaque_auth){ s->main.x.xp_verf.oa_flavor, d->h.verf, s->main.x.xp_verf.oa_length };
	memcpy(d->h.verf, s->main.verf, sizeof(d->h.verf));
	d->q = *rqstp;
	d->q.rq_xprt = &d->h.x;
	copy_creds(d, rqstp);
	rt_fork_forget(r);
	r->is_detached = true;
	return &d->q;
}
