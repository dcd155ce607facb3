/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_rdma.c - the requester over a fabric: creation and end of a link
 *
 * Operation:  A client has one link at a time. A link is one attempt and, if that succeeds, one connection:
 *
 *                 dial -> ROUTED: endpoint, receives posted, connect -> ESTABLISHED: up
 *                (again, if full)                                          |
 *                   '--------------> FAILED ---.                           |
 *                                              v                           v  (first error, or
 *                                    end_msg: down, free  <-- drained <-- ending    disconnect)
 *
 *             A link always ends in end_msg or the endpoint's `drained`, outside the callbacks of the manager
 *             and of single completions, so it may be freed there. Before the core gets `down`, the queue pair
 *             is destroyed, and all registrations are deregistered. Exception: registrations of a shared cache
 *             remain, but are removed from lookups. So no late reply to a call that waits for retransmission
 *             reaches its memory through keys of this link. A server on this host may be accessing that memory
 *             when the connection breaks. Memory used by a disk operation gets other pages (rr_reg_end). For
 *             a copy, the link polls every SETTLE_MS and ends after it. A call that is given up in the middle
 *             of a copy is finished when the link ends.
 * Memory:     The link owns everything of a connection: manager, protection domain, endpoint, registrations,
 *             message buffers, calls. The link of a destroyed client remains until it has drained.
 * Threads:    The engine's.
 * Errors:     If a device lost a completion, an endpoint would never drain. After DRAIN_MS the queue pair is
 *             destroyed nevertheless, which ends all its work.
 * See:        RFC 8797; protocol.md section 3.
 */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "clnt_rdma.h"
#include "local_path.h"

#define MSGS_FIRST 8u
/* Receives for messages other than replies: calls in the reverse direction, RDMA_DONE. */
#define RECVS_EXTRA 4u
/* Some responders send longer replies than this side announced (protocol.md 2.3). */
#define RECV_BYTES_MIN 4096u
#define READS_SERVED_MAX 128u
#define DRAIN_MS 1000u
#define SETTLE_MS 2u
/* Wait between two dials of a server with a full backlog; the first waits are shorter. */
#define REDIAL_MS_MAX 4u
/* A call's Send, a bind, and an invalidation; calls with more segments may have to wait. */
#define SQ_PER_WINDOW 3u

static int clnt_rdma_connect(struct rpcrdma_clnt *c);

/* ---- the end of a link -------------------------------------------------------------------- */

static void link_free(struct rr_link *l)
{
	rpcrdma_timer_cancel(l->engine, &l->drain_timer);
	rr_rcall_free_all(l);
	rr_reg_revoke(l->reg); /* windows end before their queue pair */
	if (l->connected)
		l->engine->qps--;
	if (l->ep)
		rr_ep_destroy(l->ep, l->engine);
	else
		rr_qp_destroy(l->qp);
	rr_link_msgs_free(l);
	if (l->mode)
		l->mode->ops->free(l);
	if (l->cm) {
		rpcrdma_engine_unwatch(l->engine, &l->cm_watch);
		rr_cm_destroy(l->cm);
	}
	rr_reg_close(l->reg);
	free(l->scratch.mem);
	free(l);
}

/* Return: true: the peer's access to the memory of all calls has ended */
static bool end_calls(struct rr_link *l)
{
	bool is_over = true;

	list_for_each(node, &l->calls) {
		struct rr_rcall *rc = list_entry(node, struct rr_rcall, link);

		is_over &= !rr_reg_end(l->reg, rc->offers, RR_RCALL_OFFERS, RR_END_LOST, NULL);
	}
	return is_over;
}

/* A call whose Send never left the queue has not been sent, nor one that waits for its turn in a mode. */
static void mark_unsent(struct rr_link *l)
{
	list_for_each(node, &l->calls) {
		struct rr_rcall *rc = list_entry(node, struct rr_rcall, link);

		if (rc->call && rc->call->user && (!rc->post.posted || rr_how(rc) == RR_HOW_LATER))
			rr_call_unsend(rc->call);
	}
}

/* Nothing is outstanding: frees the link, and reports down if there is a client. */
static void link_end(struct rr_link *l)
{
	struct rpcrdma_clnt *c = l->clnt;
	int err = l->err ? l->err : -ECONNRESET;
	bool again = c && c->state == RPCRDMA_CLNT_CONNECTING && l->reg && l->reg->windows &&
		     atomic_load(&l->dev->windows) == RR_WINDOWS_BROKEN;
	char why[sizeof(l->why)];

	if (!end_calls(l)) {
		/* it has been connected, so the timer calls this function */
		rpcrdma_timer_set(l->engine, &l->drain_timer, SETTLE_MS * NS_PER_MS);
		return;
	}
	memcpy(why, l->why, sizeof(why));
	if (c)
		mark_unsent(l);
	link_free(l);
	if (!c)
		return;
	c->xprt = NULL;
	if (again && !c->dropping) { /* without windows; the same attempt, for the client */
		err = clnt_rdma_connect(c);
		if (!err)
			return;
	}
	rr_clnt_down(c, err, why);
}

static void on_end(struct rpcrdma_msg *msg)
{
	link_end(container_of(msg, struct rr_link, end_msg));
}

static void on_drain_timer(struct rpcrdma_timer *t)
{
	link_end(container_of(t, struct rr_link, drain_timer));
}

void rr_link_fail(struct rr_link *l, int err, const char *fmt, ...)
{
	va_list ap;

	if (l->ending)
		return;
	l->ending = true;
	l->err = err;
	va_start(ap, fmt);
	vsnprintf(l->why, sizeof(l->why), fmt, ap);
	va_end(ap);
	if (!l->connected) {
		l->end_msg.fn = on_end;
		rr_engine_defer(l->engine, &l->end_msg);
		return;
	}
	rr_ep_disconnect(l->ep);
	l->drain_timer.fn = on_drain_timer;
	rpcrdma_timer_set(l->engine, &l->drain_timer, DRAIN_MS * NS_PER_MS);
}

static const char *wc_text(enum rr_wc_status status)
{
	switch (status) {
	case RR_WC_OK:
		break;
	case RR_WC_FLUSHED:
		return "connection closed by the server";
	case RR_WC_LOCAL:
		return "local error of a work request";
	case RR_WC_REM_ACCESS:
		return "server refused access to its memory";
	case RR_WC_REM_OP:
		return "call too long for the server's receive buffers";
	case RR_WC_RNR:
		return "server had no receive posted";
	case RR_WC_LOST:
		return "server or path gone";
	}
	return "connection lost";
}

static void on_dead(struct rr_ep *ep, enum rr_wc_status status)
{
	struct rr_link *l = ep->owner;

	if (l->mode)
		l->mode->ops->dead(l);
	rr_link_fail(l, -ECONNRESET, "%s", wc_text(status));
}

static void on_drained(struct rr_ep *ep)
{
	struct rr_link *l = ep->owner;

	if (l->connected) /* otherwise end_msg is on its way */
		link_end(l);
}

static int on_recv_buf(struct rr_ep *ep, struct rpcrdma_buf **ret)
{
	return rr_link_msg_get(ep->owner, ret);
}

static const struct rr_ep_ops link_ep_ops = {
	.recv = rr_link_recv,
	.dead = on_dead,
	.drained = on_drained,
	.recv_buf = on_recv_buf,
};

/* ---- connecting --------------------------------------------------------------------------- */

static void on_ready(void *ctx)
{
	struct rr_link *l = ctx;

	if (!l->ending)
		rr_clnt_up(l->clnt);
}

static const struct rr_clnt_modes *modes_of(const struct rpcrdma_clnt *c)
{
	return c->engine->domain->clnt_modes;
}

/* The receives are posted before the peer can send (protocol.md 3.1). */
static int link_connect(struct rr_link *l)
{
	const struct rpcrdma_clnt_attr *a = &l->clnt->attr;
	struct rr_ep_attr ea = {
		.ops = &link_ep_ops,
		.owner = l,
		.msgs = MIN(MSGS_FIRST, a->credits),
		.msgs_max = a->credits,
		.extra_recvs = RECVS_EXTRA,
		.sq_depth = l->reg->windows ? MAX(a->credits * SQ_PER_WINDOW, RR_RCALL_WRS) : a->credits,
		.recv_bytes = l->msg_bytes,
	};
	struct rr_priv mine = { .present = true, .send_bytes = a->inline_bytes,
				.recv_bytes = a->inline_bytes,
				.remote_inv = l->reg->remote_inv };
	uint8_t priv[RR_PRIV_BYTES + RR_PRIV_MORE_BYTES];
	struct rr_conn_param param = {
		.priv = priv,
		.priv_len = a->lab->no_private_data ? 0 : RR_PRIV_BYTES,
		.initiator_depth = 0,
		.responder_resources =
			MAX(MIN(l->dev->fabric->attr.rd_atom_max, READS_SERVED_MAX), 1u),
	};
	int rc;

	ea.sq_depth += RECVS_EXTRA;
	param.priv_len += modes_of(l->clnt)->request(l, &ea, &param, priv + RR_PRIV_BYTES);
	rc = rr_link_msgs_grow(l, ea.msgs + ea.extra_recvs);
	if (!rc)
		rc = rr_ep_create(l->engine, l->engine, l->dev, l->reg->pd, l->qp, &ea, &l->ep);
	if (rc)
		return rc;
	rr_priv_encode(&mine, priv);
	return rr_qp_connect(l->qp, &param);
}

static void link_up(struct rr_link *l, const struct rr_cm_event *ev)
{
	struct rpcrdma_clnt *c = l->clnt;
	struct rr_priv peer;
	int rc;

	rr_priv_decode(ev->priv, c->lab.no_private_data ? 0 : ev->priv_len, &peer);
	c->send_inline = MIN(c->attr.inline_bytes, peer.recv_bytes);
	c->recv_inline = MIN(c->attr.inline_bytes, peer.send_bytes);
	if (c->lab.no_private_data)
		c->send_inline = c->recv_inline = RR_INLINE_DEFAULT;
	c->remote_inv = l->reg->remote_inv;
	l->connected = true;
	l->engine->qps++;
	if (modes_of(c)->agree(l, ev->priv, ev->priv_len))
		return;
	rc = rr_reg_start(l->reg, l->ep, on_ready, l);
	if (rc)
		rr_link_fail(l, rc, "memory windows: %s", strerror(-rc));
}

static void on_cm_event(void *ctx, const struct rr_cm_event *ev)
{
	struct rr_link *l = ctx;
	int rc;

	if (l->ending)
		return;
	switch (ev->type) {
	case RR_CM_ROUTED:
		rc = link_connect(l);
		if (rc)
			rr_link_fail(l, rc, "connect: %s", strerror(-rc));
		break;
	case RR_CM_ESTABLISHED:
		link_up(l, ev);
		break;
	case RR_CM_FAILED:
		rr_link_fail(l, ev->status, "connect: %s", strerror(-ev->status));
		break;
	case RR_CM_REQUEST:
	case RR_CM_REFUSED:
		break; /* this side does not listen */
	}
}

static void on_cm(struct rpcrdma_watch *w, uint32_t events)
{
	(void)events;
	rr_cm_process(container_of(w, struct rr_link, cm_watch)->cm);
}

static int watch_cm(struct rr_link *l)
{
	struct rr_cm *cm;
	int rc;

	rc = rr_cm_create(l->dev->fabric, on_cm_event, l, &cm);
	if (rc)
		return rc;
	l->cm_watch = (struct rpcrdma_watch){ .fd = cm->fd, .fn = on_cm };
	rc = rpcrdma_engine_watch(l->engine, &l->cm_watch, EPOLLIN);
	if (rc) {
		rr_cm_destroy(cm);
		return rc;
	}
	l->cm = cm;
	return 0;
}

static void on_dial_timer(struct rpcrdma_timer *t);

/* A refusal has a reason, which only the end of a link can report. If the server's backlog is full, a
 * nonblocking socket cannot wait: it is dialled again until the attempt times out. */
static int link_dial(struct rr_link *l)
{
	const struct rpcrdma_clnt_attr *a = &l->clnt->attr;
	char where[RR_WHERE_BYTES];
	struct rr_trust trust;
	int rc;

	rr_addr_where(&l->clnt->dial, where);
	rr_trust_init(&trust, a->socket_uid);
	rc = rr_qp_dial(l->cm, where, a->check_socket ? &trust : NULL, &l->qp);
	if (rc == -EPERM && a->check_socket && trust.why[0]) {
		rr_link_fail(l, rc, "%s", trust.why);
		return 0;
	}
	l->clnt->held_up = NULL;
	if (rc != -EAGAIN)
		return rc;
	rr_clnt_held_up(l->clnt, "too many connections wait there to be accepted");
	l->dial_ms = MIN(MAX(2 * l->dial_ms, 1u), REDIAL_MS_MAX);
	l->drain_timer.fn = on_dial_timer;
	rpcrdma_timer_set(l->engine, &l->drain_timer, rr_clnt_jitter(l->clnt, l->dial_ms * NS_PER_MS));
	return 0;
}

static void on_dial_timer(struct rpcrdma_timer *t)
{
	struct rr_link *l = container_of(t, struct rr_link, drain_timer);
	int rc = l->ending ? 0 : link_dial(l);

	if (rc)
		rr_link_fail(l, rc, "connect: %s", strerror(-rc));
}

static void fit_credits(struct rpcrdma_clnt *c, const struct rr_dev *dev)
{
	c->attr.credits = MIN(c->attr.credits, (dev->fabric->attr.qp_wr_max - RECVS_EXTRA) /
						       modes_of(c)->recvs_per_credit(c));
	c->credit.wanted = c->attr.credits;
}

static int link_create(struct rpcrdma_clnt *c, struct rr_link **ret)
{
	struct rr_link *l = calloc(1, sizeof(*l));
	char where[RR_WHERE_BYTES];
	int rc;

	if (!l)
		return -ENOMEM;
	rr_addr_where(&c->dial, where);
	l->engine = c->engine;
	list_init(&l->calls);
	list_init(&l->free_calls);
	list_init(&l->msg_mems);
	l->msg_bytes = MAX(c->attr.inline_bytes, RECV_BYTES_MIN);
	rc = rr_domain_dev_at(c->engine->domain, c->attr.addr.transport, where, false, &l->dev);
	if (!rc)
		fit_credits(c, l->dev);
	if (!rc)
		rc = rr_reg_open(c->engine, l->dev, c->attr.shares ? c->attr.shares : where, &c->attr, &l->reg);
	if (!rc)
		rc = watch_cm(l);
	l->clnt = c;
	if (!rc)
		rc = link_dial(l);
	if (rc) {
		link_free(l);
		return rc;
	}
	*ret = l;
	return 0;
}

/* ---- the table ---------------------------------------------------------------------------- */

/* The device of a name is known when the name is resolved: until then there must be any. */
static int clnt_rdma_init(struct rpcrdma_clnt *c)
{
	char where[RR_WHERE_BYTES];
	struct rr_dev *dev;
	int rc;

	if (!rr_addr_is_literal(&c->attr.addr))
		return rr_domain_has_dev(c->attr.addr.transport);
	rc = rr_domain_dev_at(c->engine->domain, c->attr.addr.transport,
			      rr_addr_where(&c->attr.addr, where), false, &dev);
	if (!rc)
		fit_credits(c, dev);
	return rc;
}

static int clnt_rdma_connect(struct rpcrdma_clnt *c)
{
	struct rr_link *l;
	int rc;

	assert(!c->xprt);
	rc = link_create(c, &l);
	if (rc)
		return rc;
	c->xprt = l;
	return 0;
}

static bool clnt_rdma_cancel(struct rpcrdma_clnt *c, struct rr_call *call)
{
	struct rr_rcall *rc = call->xprt;
	struct rr_link *l = rr_link_of(c);

	/* no reply will arrive if it was not sent, or if it has arrived and waits for invalidations */
	bool unposted = !rc->recv && rr_rcall_unpost(rc);
	bool no_reply = rc->recv || unposted, cut, keep;
	int err = 0;

	if (unposted)
		rr_call_unsend(call);
	cut = l->mode && l->mode->ops->cancel(rc, &no_reply);
	/* a call that is LEAVING finishes when this returns: all of its memory ends now */
	keep = call->room && call->state != RR_CALL_LEAVING && !no_reply && !l->mode && !c->closed;
	/* its Send has not completed, so the windows may not be bound yet */
	cut |= l->reg->windows && rc->send_buf && !no_reply && (!keep || rc->sink.n);
	keep &= !cut;
	if (cut) /* the device uses that memory until the connection ends */
		rr_qp_disconnect(l->ep->qp);
	if (keep) /* the rest is the caller's again with its room */
		err = rr_reg_end(l->reg, &rc->sink, 1, RR_END_GIVEN_UP, NULL);
	else if (!no_reply)
		err = rr_reg_end(l->reg, rc->offers, RR_RCALL_OFFERS, RR_END_GIVEN_UP, NULL);
	if (err == -EAGAIN) {
		rr_link_fail(l, -ECONNABORTED, "a call was given up while its memory was in use");
		return false; /* call->xprt is still set: the call is finished when the link ends */
	}
	call->xprt = NULL;
	if (cut || err)
		rr_link_fail(l, -ECONNABORTED, "a call was given up and its memory taken back");
	if (keep)
		call->late = rc;
	else
		rr_rcall_detach(rc);
	return no_reply;
}

static bool clnt_rdma_is_over(struct rpcrdma_clnt *c, bool look)
{
	struct rr_link *l = rr_link_of(c);

	if (!l->ending && list_is_empty(&c->sent) && rr_qp_is_over(l->ep->qp, look))
		rr_link_fail(l, -ECONNRESET, "connection closed by the server");
	return l->ending;
}

static void clnt_rdma_disconnect(struct rpcrdma_clnt *c, const char *why)
{
	rr_link_fail(rr_link_of(c), -ECONNABORTED, "%s", why);
}

static void clnt_rdma_fini(struct rpcrdma_clnt *c)
{
	struct rr_link *l = rr_link_of(c);

	if (!l)
		return;
	l->clnt = NULL;
	c->xprt = NULL;
	rr_reg_revoke(l->reg);
	rr_link_fail(l, -ECANCELED, "client destroyed");
}

static void clnt_rdma_info(const struct rpcrdma_clnt *c, struct rpcrdma_clnt_info *ret)
{
	const struct rr_link *l = rr_link_of(c);

	ret->registration = c->attr.registration;
	if (!l)
		return;
	snprintf(ret->device, sizeof(ret->device), "%s", l->dev->fabric->attr.device);
	if (l->connected)
		ret->reach = l->qp->reach;
	list_for_each(node, &l->calls)
		ret->unsent += !list_entry(node, struct rr_rcall, link)->post.posted;
	ret->registration = l->reg->name;
	ret->fallback = l->reg->fallback;
	snprintf(ret->kept, sizeof(ret->kept), "%s", l->reg->kept);
	ret->reg_bytes = l->reg->bytes;
	if (l->mode)
		l->mode->ops->info(l, ret);
}

const struct rr_clnt_ops rr_clnt_rdma_ops = {
	.name = "rdma",
	.init = clnt_rdma_init,
	.connect = clnt_rdma_connect,
	.send = rr_rcall_send,
	.cancel = clnt_rdma_cancel,
	.is_over = clnt_rdma_is_over,
	.disconnect = clnt_rdma_disconnect,
	.fini = clnt_rdma_fini,
	.info = clnt_rdma_info,
};
