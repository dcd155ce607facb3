/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * svc_xprt.c - the SVCXPRT through which libtirpc's loops serve all URLs
 *
 * Operation:  svc_getreq_common() calls xp_recv() when the descriptor is readable, dispatches, and calls xp_stat(), which
 *             tells whether it should continue. Two rules keep the descriptor useful:
 *             - Before the program's loop sleeps again, the engine is armed, or the descriptor is readable (rt_svc_kick()).
 *             - After IN_A_ROW requests the loop gets its turn, so that other transports of the program are served.
 *
 *             xp_stat() follows each xp_recv(). If that returned TRUE, the dispatch function has returned, and what it has not
 *             replied to ends.
 * Memory:     The handle is part of rt_svc.
 * Threads:    The one that runs the loop.
 * Errors:     A second reply is dropped, and logged: replies of a program that replies later need rpcrdma_svc_detach().
 * See:        svc.c of libtirpc.
 */
#include <netinet/in.h>
#include <string.h>

#include "svc_int.h"

#define IN_A_ROW 64u
#define PASSES 16u /* of the engine, without a request */

/* ---- requests ---- */

/* rpcrdma_svc_run() is the loop that wants the next request, and not one in a dispatch function. */
static bool is_own_loop(const struct rt_svc *s)
{
	return s->runs && !s->top;
}

/* Return: NULL: none, and the descriptor will become readable */
static struct rt_req *next_req(void)
{
	for (unsigned i = 0; i < PASSES; i++) {
		struct rt_req *r;

		rt_fork_listen(); /* the last pass may have run its timer */
		r = rt_share_next();
		if (r) {
			rt_share_take(r);
			return r;
		}
		if (is_own_loop(&rt_svc))
			return NULL;
		if (!rpcrdma_engine_poll(rt_svc.engine) && !rpcrdma_engine_arm(rt_svc.engine))
			return NULL;
	}
	rt_svc_kick();
	return NULL;
}

static void set_auth(struct opaque_auth *a, uint32_t flavor, const void *body, uint32_t bytes)
{
	a->oa_flavor = (enum_t)flavor;
	a->oa_length = MIN(bytes, (uint32_t)MAX_AUTH_BYTES);
	if (a->oa_length)
		memcpy(a->oa_base, body, a->oa_length);
}

/* Replaces what the caller says that it is by what the kernel says. */
static void set_kernel_cred(struct opaque_auth *a, const struct rt_peer *p)
{
	char machine[] = "localhost";
	gid_t gids[NGRPS];
	struct authunix_parms u = { .aup_machname = machine, .aup_uid = p->uid, .aup_gid = p->gid,
				    .aup_len = p->ngids, .aup_gids = gids };
	XDR x;

	memcpy(gids, p->gids, sizeof(gids));
	xdrmem_create(&x, a->oa_base, MAX_AUTH_BYTES, XDR_ENCODE);
	(void)xdr_authunix_parms(&x, &u); /* fits */
	a->oa_length = xdr_getpos(&x);
}

static void fill_call(struct rpc_msg *m, const struct rt_req *r)
{
	const struct rpcrdma_req *req = r->req;
	struct call_body *c = &m->rm_call;
	const struct rt_peer *p = &r->conn->peer;

	m->rm_xid = req->xid;
	m->rm_direction = CALL;
	c->cb_rpcvers = RPC_MSG_VERSION;
	c->cb_prog = req->prog;
	c->cb_vers = req->vers;
	c->cb_proc = req->proc;
	set_auth(&c->cb_cred, req->cred_flavor, req->cred_body, req->cred_len);
	set_auth(&c->cb_verf, req->verf_flavor, req->verf_body, req->verf_len);
	if (p->is_local && p->uid && req->cred_flavor == AUTH_SYS)
		set_kernel_cred(&c->cb_cred, p);
}

/* ---- the handle ---- */

static unsigned addr_bytes(const struct sockaddr_storage *a)
{
	switch (a->ss_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return sizeof(struct sockaddr);
	}
}

void rt_xprt_set(struct rt_xprt *x, struct rt_req *r)
{
	x->r = r;
	if (!r || !r->req)
		return;
	x->raddr = r->conn->peer.addr;
	x->laddr = r->conn->at->local;
	x->x.xp_rtaddr.len = addr_bytes(&x->raddr);
	x->x.xp_ltaddr.len = addr_bytes(&x->laddr);
	x->x.xp_addrlen = (int)x->x.xp_rtaddr.len;
	memcpy(&x->x.xp_raddr, &x->raddr, sizeof(x->x.xp_raddr));
	strcpy(x->netid, r->conn->peer.netid);
}

static bool_t xprt_recv(SVCXPRT *x, struct rpc_msg *m)
{
	struct rt_svc *s = &rt_svc;
	struct rt_req *r = NULL;

	rt_loop_enter();
	if (!rt_fork_take_over())
		r = next_req();
	s->recv_failed = !r;
	if (!r)
		return FALSE;
	s->is_idle = false;
	s->in_a_row++;
	r->below = s->top;
	r->on_stack = true;
	s->top = r;
	rt_xprt_set(rt_xprt_of(x), r);
	fill_call(m, r);
	return TRUE;
}

/* The dispatch function of the request on top has returned. */
static void end_dispatch(struct rt_svc *s, struct rt_xprt *x)
{
	struct rt_req *r = s->top;

	if (!r)
		return;
	s->top = r->below;
	rt_req_leave(r);
	rt_xprt_set(x, s->top);
}

static enum xprt_stat xprt_stat(SVCXPRT *x)
{
	struct rt_svc *s = &rt_svc;

	if (!s->recv_failed) {
		end_dispatch(s, rt_xprt_of(x));
		if (s->in_a_row < IN_A_ROW)
			return XPRT_MOREREQS;
		if (!is_own_loop(s))
			rt_svc_kick();
	}
	s->recv_failed = false;
	s->in_a_row = 0;
	s->is_idle = true;
	return XPRT_IDLE;
}

bool_t rt_xprt_getargs(SVCXPRT *x, xdrproc_t filter, void *args)
{
	struct rt_xprt *h = rt_xprt_of(x);

	return h->r && h->r->req ? rt_req_get_args(h->r, h, filter, args) : FALSE;
}

bool_t rt_xprt_freeargs(SVCXPRT *x, xdrproc_t filter, void *args)
{
	XDR free_them = { .x_op = XDR_FREE };

	(void)x;
	return ((bool_t(*)(XDR *, void *))filter)(&free_them, args);
}

static bool_t xprt_reply(SVCXPRT *x, struct rpc_msg *m)
{
	struct rt_xprt *h = rt_xprt_of(x);
	struct rt_req *r = h->r;

	if (!r || !r->req || r->is_detached) {
		rt_svc_log("a dispatch function replied twice, or after it had returned or detached: reply dropped");
		return FALSE;
	}
	if (!rt_req_encode(r, h, m))
		return FALSE;
	if (rt_fork_is_child())
		return rt_fork_reply(r);
	rt_send(r);
	return TRUE;
}

/* Closes the connection of the request, as the handle of a TCP connection does. The handle of all of them stays. */
static void xprt_destroy(SVCXPRT *x)
{
	struct rt_req *r = rt_xprt_of(x)->r;

	if (!r || !r->req || !r->conn->conn || rt_fork_is_child())
		return;
	rpcrdma_conn_close(r->conn->conn);
	if (rt_svc.is_idle)
		rt_svc_kick();
}

static bool_t xprt_control(SVCXPRT *x, const u_int request, void *info)
{
	(void)x;
	(void)request;
	(void)info;
	return FALSE;
}

const struct xp_ops rt_xprt_ops = {
	.xp_recv = xprt_recv,
	.xp_stat = xprt_stat,
	.xp_getargs = rt_xprt_getargs,
	.xp_reply = xprt_reply,
	.xp_freeargs = rt_xprt_freeargs,
	.xp_destroy = xprt_destroy,
};

void rt_xprt_init(struct rt_xprt *x, const struct xp_ops *ops, int fd)
{
	static const struct xp_ops2 ops2 = { .xp_control = xprt_control };

	memset(x, 0, sizeof(*x));
	x->x.xp_fd = fd;
	x->x.xp_ops = ops;
	x->x.xp_ops2 = &ops2;
	x->x.xp_p3 = x->ext;
	x->x.xp_verf.oa_base = x->verf;
	x->x.xp_rtaddr = (struct netbuf){ .buf = &x->raddr, .maxlen = sizeof(x->raddr) };
	x->x.xp_ltaddr = (struct netbuf){ .buf = &x->laddr, .maxlen = sizeof(x->laddr) };
	x->x.xp_netid = x->netid;
}
