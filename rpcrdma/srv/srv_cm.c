/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_cm.c - the responder over a fabric: listening, accepting, closing
 *
 * Operation:  A REQUEST event brings a peer and a new queue pair. The service chooses the engine. The
 *             listener sets up the endpoint on that engine's queue, posts the first receives, exchanges
 *             private data (RFC 8797) and accepts the peer. rr_conn_adopt() then hands the connection to
 *             its engine; a call may arrive before that message.
 * Memory:     A refused queue pair is destroyed here; an accepted one is destroyed with its endpoint.
 * Threads:    The listener's engine until the adoption.
 * Errors:     A peer that cannot be served is rejected through the fabric. svc_ops.refused gets the
 *             reason; svc_ops.closed follows if the service had admitted the peer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "srv_rdma.h"

/* Receives for messages other than calls: RDMA_DONE, stray replies, malformed messages. */
#define RECVS_EXTRA 4u
#define RD_DEPTH_MAX 16u

struct rdma_listener {
	struct rpcrdma_listener base;
	struct rr_cm *cm;
	struct rr_listener *l;
	struct rpcrdma_watch watch;
};

static void conn_adopted(struct rpcrdma_conn *c)
{
	c->engine->qps++;
}

static void conn_close(struct rpcrdma_conn *c)
{
	rr_ep_disconnect(rr_rconn_of(c)->ep);
}

static bool conn_owed(const struct rpcrdma_conn *c)
{
	const struct rr_ep *ep = rr_rconn_of(c)->ep;

	return ep->in_flight || !list_is_empty(&ep->waiting);
}

/* The peer's keys end before the queue pair, and a mode's memory ends after it. */
static void end_ep(struct rr_rconn *c, struct rpcrdma_engine *here)
{
	if (c->mode)
		c->mode->ops->disarm(c);
	rr_ep_destroy(c->ep, here);
}

static void end_mode(struct rr_rconn *c)
{
	if (c->mode)
		c->mode->ops->free(c);
}

static void conn_free(struct rpcrdma_conn *base)
{
	struct rr_rconn *c = rr_rconn_of(base);

	base->engine->qps--;
	end_ep(c, base->engine);
	end_mode(c);
	rr_req_trim(base, 0);
	rr_srv_trim_rws(c, 0);
	free(c);
}

static void on_dead(struct rr_ep *ep, enum rr_wc_status status)
{
	struct rr_rconn *c = ep->owner;

	(void)status;
	rr_conn_dead(&c->base);
	rr_srv_reads_pump(c);
	if (c->mode)
		c->mode->ops->dead(c);
}

static void on_drained(struct rr_ep *ep)
{
	struct rr_rconn *c = ep->owner;

	rr_conn_drained(&c->base);
}

static int on_recv_buf(struct rr_ep *ep, struct rpcrdma_buf **ret)
{
	struct rr_rconn *c = ep->owner;

	return rr_conn_buf_get(&c->base, RR_ZONE_RECVS, ep->recv_bytes, ret);
}

static const struct rr_ep_ops ep_ops = {
	.recv = rr_srv_recv,
	.dead = on_dead,
	.drained = on_drained,
	.recv_buf = on_recv_buf,
};

/* Of a failure the endpoint learns by itself. A probe was owed at the tick that sent it: without progress, a call in
 * progress at the next tick would look like a stall. */
static void on_probed(struct rr_post *post, enum rr_wc_status status)
{
	struct rr_rconn *c = container_of(post, struct rr_rconn, probe.post);

	c->probe.out = false;
	if (status == RR_WC_OK)
		rr_conn_progress(&c->base);
}

/* A queue pair without work does not notice that its peer has vanished. An RDMA Write of no bytes needs no key (InfiniBand
 * Architecture, C9-88), and the peer's device acknowledges it. On the local fabric a socket tells. */
static void probe(struct rr_rconn *c)
{
	if (c->probe.out || c->base.peer.transport != RPCRDMA_RDMA || rr_ep_is_ending(c->ep))
		return;
	c->probe.out = true;
	c->probe.wr = (struct rr_wr){ .op = RR_WR_WRITE };
	c->probe.post = (struct rr_post){ .first = &c->probe.wr, .n = 1, .fn = on_probed };
	rr_ep_post(c->ep, &c->probe.post);
}

static void tick(struct rpcrdma_conn *base)
{
	struct rr_rconn *c = rr_rconn_of(base);
	bool is_idle = !c->calls;

	rr_srv_credit_tick(base);
	if (is_idle)
		probe(c);
}

static void conn_free_req(struct rpcrdma_conn *c, struct rr_req *r)
{
	(void)c;
	free(rr_rreq_of(r));
}

static int conn_whole(struct rr_req *r)
{
	(void)r; /* srv_long.c has pulled it */
	return 0;
}

const struct rr_conn_ops rr_rconn_ops = {
	.adopted = conn_adopted,
	.close = conn_close,
	.owed = conn_owed,
	.tick = tick,
	.whole = conn_whole,
	.pull = rr_srv_pull,
	.place = rr_srv_place,
	.free_req = conn_free_req,
	.reply = rr_srv_reply,
	.free = conn_free,
};

static void peer_from_fabric(enum rpcrdma_transport transport, const struct rr_peer *from,
			     struct rpcrdma_peer *to)
{
	*to = (struct rpcrdma_peer){
		.transport = transport,
		.addr = from->addr,
		.has_cred = from->has_cred,
		.pid = from->pid,
		.uid = from->uid,
		.gid = from->gid,
		.groups_unknown = from->groups_unknown,
		.ngroups = from->ngroups,
	};
	_Static_assert(sizeof(to->groups) == sizeof(from->groups), "all of them fit");
	memcpy(to->groups, from->groups, to->ngroups * sizeof(to->groups[0]));
	memcpy(to->text, from->text, sizeof(to->text));
	to->text[sizeof(to->text) - 1] = 0;
}

/* Sets the connection up, from the thresholds to the accept. Runs on the listener's engine. */
static int set_up(struct rr_rconn *c, const struct rr_cm_event *ev, struct rpcrdma_engine *here)
{
	struct rr_dev *dev = rr_domain_dev_of(c->base.engine->domain, ev->qp->fabric);
	const struct rpcrdma_svc_attr *attr = &c->base.svc->attr;
	struct rr_ep_attr ea = { .ops = &ep_ops,
				 .owner = c,
				 .msgs = MIN(RR_MSGS_FIRST, attr->credits),
				 .msgs_max = attr->credits,
				 .extra_recvs = RECVS_EXTRA,
				 .recv_bytes = attr->inline_bytes,
				 .client = c->base.client,
				 .call_bytes = (uint32_t)RR_CALL_KEPT + attr->req_bytes };
	struct rr_priv mine = { .send_bytes = attr->inline_bytes, .recv_bytes = attr->inline_bytes };
	struct rr_conn_param param = { .priv = NULL };
	const struct rr_srv_modes *modes = c->base.engine->domain->srv_modes;
	uint8_t priv[RR_PRIV_BYTES + RR_PRIV_MORE_BYTES];
	struct rr_priv theirs;
	size_t more = 0;
	int rc = 0;

	c->base.dev = dev;
	rr_priv_decode(ev->priv, attr->lab->no_private_data ? 0 : ev->priv_len, &theirs);
	c->send_inline = MIN(attr->inline_bytes, theirs.recv_bytes);
	c->remote_inv = theirs.remote_inv && !attr->no_remote_inv && dev->fabric->attr.send_inv;
	c->rd_depth = MIN(ev->initiator_depth, MIN(RD_DEPTH_MAX, dev->fabric->attr.rd_atom_max));
	if (!c->rd_depth)
		return -EPROTO; /* the peer allows no RDMA Reads: no WRITE could work */
	if (!attr->lab->no_private_data)
		rc = modes->accept(c, dev, ev, &ea, &param, priv + RR_PRIV_BYTES, &more);
	if (rc)
		return rc;
	if (!c->mode && attr->srq)
		rc = rr_shared_get(c->base.engine, dev, ea.recv_bytes, ea.ops->recv, &ea.shared);
	if (rc && rc != -EOPNOTSUPP) /* without a shared queue it posts its own receives */
		return rc;
	if (ea.shared)
		ea.extra_recvs = 0; /* the shared queue has spare ones */
	rc = rr_ep_create(c->base.engine, here, dev, c->mode ? c->mode->pd : dev->pd, ev->qp, &ea, &c->ep);
	if (rc)
		return rc;
	rr_srv_credit_init(c);
	param.initiator_depth = c->rd_depth;
	if (!attr->lab->no_private_data) {
		rr_priv_encode(&mine, priv);
		param.priv = priv;
		param.priv_len = RR_PRIV_BYTES + more;
	}
	return rr_qp_accept(ev->qp, &param); /* a call may arrive before it returns */
}

static void refuse(struct rr_qp *qp)
{
	(void)rr_qp_reject(qp); /* it may have ended already */
	rr_qp_destroy(qp);
}

static void on_request(struct rdma_listener *l, const struct rr_cm_event *ev)
{
	struct rpcrdma_conn *base;
	struct rpcrdma_peer peer;
	struct rr_rconn *c;
	int rc;

	peer_from_fabric(l->base.addr.transport, ev->peer, &peer);
	if (rr_conn_create(&l->base, &peer, &rr_rconn_ops, sizeof(*c), &base)) {
		refuse(ev->qp);
		return;
	}
	c = rr_rconn_of(base);
	list_init(&c->pullers);
	list_init(&c->free_rws);
	rc = set_up(c, ev, l->base.engine);
	if (!rc) {
		rr_conn_adopt(base);
		return;
	}
	if (c->ep) {
		(void)rr_qp_reject(ev->qp);
		end_ep(c, l->base.engine); /* never connected: destroys the queue pair too */
	} else {
		refuse(ev->qp);
	}
	end_mode(c);
	rr_conn_discard(base, rc);
}

static void on_event(void *ctx, const struct rr_cm_event *ev)
{
	struct rdma_listener *l = ctx;

	if (ev->type == RR_CM_REQUEST) {
		on_request(l, ev);
	} else if (ev->type == RR_CM_REFUSED) {
		struct rpcrdma_peer peer;

		peer_from_fabric(l->base.addr.transport, ev->peer, &peer);
		rr_svc_refused(l->base.svc, &peer, ev->status);
	}
}

static void on_cm_fd(struct rpcrdma_watch *w, uint32_t events)
{
	(void)events;
	rr_cm_process(container_of(w, struct rdma_listener, watch)->cm);
}

static void listener_close(struct rpcrdma_listener *base)
{
	struct rdma_listener *l = container_of(base, struct rdma_listener, base);

	if (l->watch.fd >= 0)
		rpcrdma_engine_unwatch(base->engine, &l->watch);
	rr_unlisten(l->l);
	rr_cm_destroy(l->cm);
	free(l);
}

int rr_rdma_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr, struct rr_svc *svc,
		   struct rpcrdma_listener **ret)
{
	struct rdma_listener *l = calloc(1, sizeof(*l));
	struct rr_dev *dev;
	char where[RR_WHERE_BYTES];
	int rc;

	if (!l)
		return -ENOMEM;
	l->base = (struct rpcrdma_listener){
		.engine = e, .svc = svc, .addr = *addr, .close = listener_close };
	l->watch = (struct rpcrdma_watch){ .fd = -1, .fn = on_cm_fd };
	rr_addr_where(addr, where);
	rc = rr_domain_dev_at(e->domain, addr->transport, where, true, &dev);
	if (rc)
		goto fail;
	rc = rr_cm_create(dev->fabric, on_event, l, &l->cm);
	if (rc)
		goto fail;
	rc = rr_listen(l->cm, where, l, &l->l);
	if (rc)
		goto fail;
	if (l->l->port)
		l->base.addr.port = l->l->port;
	if (!l->l->any_device)
		l->base.device = dev->fabric->attr.device;
	l->watch.fd = l->cm->fd;
	rc = rpcrdma_engine_watch(e, &l->watch, EPOLLIN);
	if (rc) {
		l->watch.fd = -1;
		goto fail;
	}
	*ret = &l->base;
	return 0;
fail:
	listener_close(&l->base);
	return rc;
}
