/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * svc_conn.c - connections of a service, and the identity of their peers
 *
 * Operation:  The transport accepts a peer (on_accept()), and delivers its calls (on_call()) into the queue of its client (svc_share.c).
 *             Authentication that libtirpc could not check here is refused at once.
 *
 *             A peer on the same host has no address. Programs that trust a reserved port see 127.0.0.1, with a port below
 *             1024 exactly if the kernel says that the peer is root.
 * Memory:     A connection, until on_closed(). The transport calls that when none of its requests is left.
 * Threads:    The thread that runs the engine; on_refused() any thread that runs one.
 * Errors:     No memory for a connection: the peer is refused. No memory for a request: SYSTEM_ERR. Arguments longer than
 *             max_bytes, without bulk data: as if the transport had no room for them.
 * See:        RFC 5531 section 8.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "svc_int.h"

#define RESERVED_PORTS 1024u /* ports below are reserved */
#define RESERVED_LEAST 512u

/* ---- peers ---- */

/* Ports that differ between processes, as those of connections do. */
static uint16_t invent_port(const struct rpcrdma_peer *peer)
{
	unsigned pid = (unsigned)peer->pid;

	if (peer->uid == 0)
		return (uint16_t)(RESERVED_LEAST + pid % (RESERVED_PORTS - RESERVED_LEAST));
	return (uint16_t)(RESERVED_PORTS + pid % (UINT16_MAX - RESERVED_PORTS));
}

static void set_local_peer(struct rt_peer *p, const struct rpcrdma_peer *peer)
{
	struct sockaddr_in *in = (void *)&p->addr;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in->sin_port = htons(invent_port(peer));
	p->is_local = true;
	p->uid = peer->uid;
	p->gid = peer->gid;
	p->ngids = peer->groups_unknown ? 0 : MIN(peer->ngroups, (unsigned)NGRPS);
	memcpy(p->gids, peer->groups, p->ngids * sizeof(p->gids[0]));
}

static void set_peer(struct rt_peer *p, const struct rpcrdma_peer *peer)
{
	bool v6;

	if (peer->transport == RPCRDMA_LOCAL)
		set_local_peer(p, peer);
	else
		p->addr = peer->addr;
	v6 = p->addr.ss_family == AF_INET6;
	p->netid = v6 ? "tcp6" : "tcp"; /* getnetconfigent() of a program knows no rdma: ypserv crashes then */
}

/* ---- connections ---- */

static int on_accept(void *ctx, const struct rpcrdma_peer *peer, struct rpcrdma_engine **ret_engine, void **ret_conn_ctx)
{
	struct rt_conn *c;

	/* without credentials from the kernel, it could claim any */
	if (peer->transport == RPCRDMA_LOCAL && !peer->has_cred)
		return -EACCES;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->client = rt_share_get(peer);
	if (!c->client) {
		free(c);
		return -ENOMEM;
	}
	c->at = ctx;
	set_peer(&c->peer, peer);
	*ret_engine = rt_svc.engine;
	*ret_conn_ctx = c;
	return 0;
}

static void on_opened(void *conn_ctx, struct rpcrdma_conn *conn)
{
	struct rt_conn *c = conn_ctx;

	c->conn = conn;
}

static void on_closed(void *conn_ctx)
{
	struct rt_conn *c = conn_ctx;

	rt_share_put(c->client);
	free(c);
}

static void on_refused(void *ctx, const struct rpcrdma_peer *peer, int err)
{
	const struct rt_listen *l = ctx;

	rt_svc_log("%s: %s: connection refused or ended: %s", l->url, peer->text, strerror(-err));
}

/* ---- calls ---- */

/* libtirpc would take a credential of these for one that a keyserver or a GSS context vouches for. */
static bool is_refused(const struct rpcrdma_req *req)
{
	return req->cred_flavor == RPCSEC_GSS || req->cred_flavor == AUTH_DES;
}

/* Bulk data of arguments counts in addition to max_bytes, also where the peer sends it inside the message. A table does not
 * say how long it may be: the transport's limit does. */
static bool is_too_long(const struct rt_req *r)
{
	const struct rpcrdma_req *q = r->req;
	const struct rpcrdma_bulk *row = rt_bulk_find(&r->conn->at->bulk, q->prog, q->vers, q->proc);

	return r->args.len > r->conn->at->max_bytes && !(row && row->args);
}

static void on_call(void *conn_ctx, struct rpcrdma_req *req)
{
	struct rt_conn *c = conn_ctx;
	static bool told;
	struct rt_req *r;
	int rc;

	if (is_refused(req)) {
		if (!told)
			rt_svc_log("%s: authentication flavor %u is not supported, only AUTH_SYS and AUTH_NONE are",
				   req->peer->text, req->cred_flavor);
		told = true;
		rpcrdma_req_reply_auth(req, AUTH_REJECTEDCRED, NULL, NULL);
		return;
	}
	r = rt_req_create(c, req);
	if (!r) {
		rpcrdma_req_reply_error(req, RPCRDMA_SYSTEM_ERR, 0, 0, NULL, NULL);
		return;
	}
	rc = rpcrdma_req_args_bytes(req, &r->args);
	if (rc)
		rt_req_end(r, RT_END_ERROR, GARBAGE_ARGS);
	else if (is_too_long(r))
		rt_req_end(r, RT_END_REJECT, 0);
	else
		rt_share_queue(r);
}

const struct rpcrdma_svc_ops rt_svc_ops = {
	.size = sizeof(rt_svc_ops),
	.accept = on_accept,
	.call = on_call,
	.closed = on_closed,
	.refused = on_refused,
	.opened = on_opened,
};
