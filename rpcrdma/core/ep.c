/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ep.c - an endpoint: one queue pair with its receives and the accounting of its queues
 *
 * Operation:  see ep.h. Accounting: a chain of n requests takes n entries of the send queue and returns them
 *             when its last, signalled one completes. A chain is posted when all of it fits, in the order of
 *             rr_ep_post(). Receives are counted by place: at the device (`posted`), or in the upper layer
 *             (`held`). On a dead endpoint they are idle.
 * Memory:     Owns its receives until rr_ep_destroy(). Their buffers return to where they came from.
 * Threads:    ep.h
 * Errors:     The first completion other than RR_WC_OK makes the endpoint dead. The failed request does not
 *             matter, since no later one was executed.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/trace.h"
#include "ep.h"

/* Requests that one message may need in addition to its Send: a Write or Read per segment and pool-class piece. */
#define SQ_PER_MSG 4u
#define SQ_MIN 64u

/* ---- the end ---- */

static void kick(struct rr_ep *ep)
{
	if (ep->msg_out)
		return;
	ep->msg_out = true;
	rr_engine_defer(ep->engine, &ep->drained_msg);
}

static void ep_check_drained(struct rr_ep *ep)
{
	if (ep->dead && !ep->posted && !ep->held && !ep->in_flight && !ep->drained)
		kick(ep);
}

static void ep_die(struct rr_ep *ep, enum rr_wc_status status)
{
	if (ep->dead)
		return;
	ep->dead = true;
	TRACE2(ep_dead, ep, status);
	if (status == RR_WC_RNR)
		rr_count(ep->engine, rnr, 1);
	rr_qp_disconnect(ep->qp);
	ep->ops->dead(ep, status);
	kick(ep);
}

/* ---- receives ---- */

struct rr_recv_ctx *rr_ep_take(struct rr_done *done, const struct rr_wc *wc)
{
	struct rr_recv_ctx *rc = container_of(done, struct rr_recv_ctx, done);
	struct rr_ep *ep;

	if (!rc->shared)
		rc->ep->posted--;
	else if (!rr_shared_take(rc, wc))
		return NULL;
	ep = rc->ep;
	ep->held++;
	if (wc->status != RR_WC_OK || ep->dead) {
		ep_die(ep, wc->status);
		rr_ep_repost(rc);
		return NULL;
	}
	rc->len = wc->with_imm ? 0 : wc->byte_len; /* its bytes are elsewhere */
	return rc;
}

/* The endpoint has no posted receive that would report the end. */
static void on_end(struct rr_done *done, const struct rr_wc *wc)
{
	struct rr_ep *ep = container_of(done, struct rr_ep, end_done);

	ep->posted--;
	ep_die(ep, wc->status);
	ep_check_drained(ep);
}

static void post_recv(struct rr_recv_ctx *rc)
{
	struct rr_ep *ep = rc->ep;
	struct rr_recv recv = { .done = &rc->done, .sge = rr_msg_sge(rc->lent, ep->dev, ep->recv_bytes) };

	ep->posted += !ep->dead && !rr_post_recv(ep->qp, &recv);
}

void rr_ep_repost(struct rr_recv_ctx *rc)
{
	struct rr_ep *ep = rc->ep;

	ep->held--;
	if (ep->shared)
		rr_shared_put(rc);
	else
		post_recv(rc);
	ep_check_drained(ep);
}

void rr_ep_repost_packed(struct rr_recv_ctx *rc)
{
	if (rr_buf_pack(rc->ep->engine, &rc->lent))
		rc->buf = rc->lent->addr;
	rr_ep_repost(rc);
}

/* Returns the bytes that count as lent by the pool for receives. */
static size_t lent_bytes(const struct rr_recv_ctx *rc)
{
	return container_of(rc->lent, struct rr_buf, pub)->own ? 0 : rc->lent->bytes;
}

int rr_recv_get(struct rpcrdma_engine *e, struct rr_ep *ep, uint32_t bytes, struct rr_recv_ctx **ret)
{
	struct rr_recv_ctx *rc = calloc(1, sizeof(*rc));
	int err;

	if (!rc)
		return -ENOMEM;
	err = ep ? ep->ops->recv_buf(ep, &rc->lent) : rr_buf_get(e, RR_ZONE_RECVS, bytes, &rc->lent);
	if (err) {
		free(rc);
		return err;
	}
	atomic_fetch_add_explicit(&e->domain->recv_bytes, lent_bytes(rc), memory_order_relaxed);
	rc->ep = ep;
	rc->buf = rc->lent->addr;
	list_init(&rc->all);
	*ret = rc;
	return 0;
}

void rr_recv_put(struct rpcrdma_engine *e, struct rr_recv_ctx *rc)
{
	atomic_fetch_sub_explicit(&e->domain->recv_bytes, lent_bytes(rc), memory_order_relaxed);
	rpcrdma_buf_put(e, rc->lent);
	list_del(&rc->all);
	free(rc);
}

/* Returns what the last receive takes of its client's share, including the call that may arrive in it. The
 * owner's memory for the calls of the first receives is part of a connection. */
static size_t charge_of_last(const struct rr_ep *ep)
{
	size_t bytes = rr_pool_round(&ep->engine->domain->pools[RR_ZONE_RECVS], ep->recv_bytes);

	if (ep->nrecvs == 1 && ep->first_is_free)
		return 0;
	return ep->nrecvs <= ep->nrecvs_first ? bytes : bytes + ep->call_bytes;
}

static void count_recvs(struct rr_ep *ep, int n)
{
	ep->nrecvs += (unsigned)n;
	ep->msgs = ep->nrecvs - MIN(ep->extra_recvs, ep->nrecvs);
	if (ep->shared)
		rr_shared_promise(ep->shared, n); /* may use an idle receive, which is then no longer idle */
}

/* Charges one more receive. */
static int charge_recv(struct rr_ep *ep)
{
	int err = 0;

	count_recvs(ep, 1);
	if (ep->client)
		err = rr_client_charge(ep->client, RR_SHARE_RECVS, charge_of_last(ep));
	if (err)
		count_recvs(ep, -1);
	return err;
}

static void uncharge_recv(struct rr_ep *ep)
{
	if (ep->client)
		rr_client_uncharge(ep->client, RR_SHARE_RECVS, charge_of_last(ep));
	count_recvs(ep, -1);
}

static int add_recv(struct rr_ep *ep)
{
	struct rr_recv_ctx *rc;
	int err = charge_recv(ep);

	if (err || ep->shared)
		return err;
	err = rr_recv_get(ep->engine, ep, ep->recv_bytes, &rc);
	if (err) {
		uncharge_recv(ep);
		return err;
	}
	rc->done.fn = ep->ops->recv;
	list_add_tail(&ep->recvs, &rc->all);
	post_recv(rc);
	return 0;
}

static int add_first(struct rr_ep *ep)
{
	int rc = 0;

	while (ep->nrecvs < ep->nrecvs_first && !rc)
		rc = add_recv(ep);
	if (!ep->nrecvs && ep->shared) { /* it takes no memory yet */
		ep->first_is_free = true;
		rc = add_recv(ep);
	}
	return ep->msgs ? 0 : rc;
}

void rr_ep_grow(struct rr_ep *ep, unsigned msgs)
{
	while (!ep->dead && ep->msgs < MIN(msgs, ep->msgs_max) && !add_recv(ep))
		;
}

void rr_ep_retire(struct rr_recv_ctx *rc)
{
	struct rr_ep *ep = rc->ep;

	if (ep->dead) {
		rr_ep_repost(rc);
		return;
	}
	ep->held--;
	if (ep->shared)
		rr_shared_put(rc);
	else
		rr_recv_put(ep->engine, rc);
	uncharge_recv(ep);
}

/* ---- chains ---- */

/* Only the last request of a chain is signalled. */
static void set_done(struct rr_ep *ep, struct rr_post *post, struct rr_wr *wr)
{
	for (; wr->next; wr = wr->next) {
		wr->done = &ep->err_done;
		wr->flags &= ~(unsigned)RR_WR_SIGNALED;
	}
	wr->done = &post->done;
	wr->flags |= RR_WR_SIGNALED;
}

/* The fabric copies requests when they are posted. */
static int build_and_post(struct rr_ep *ep, struct rr_post *post)
{
	struct rr_wr wr[RR_POST_BUILT];

	assert(post->n <= RR_POST_BUILT);
	post->build(post, wr);
	set_done(ep, post, wr);
	return rr_post_send(ep->qp, wr);
}

/* Return: 0; -ENOTCONN: the queue pair is down; other errors of the request or the device */
static int post_now(struct rr_ep *ep, struct rr_post *post)
{
	int rc = unlikely(post->build) ? build_and_post(ep, post) : rr_post_send(ep->qp, post->first);

	if (rc)
		return rc;
	post->posted = true;
	rr_count(ep->engine, posts, 1);
	ep->sq_free -= post->n;
	ep->in_flight++;
	return 0;
}

/* Posts waiting chains while they fit the queue; on a dead endpoint ends all of them. */
static void pump(struct rr_ep *ep)
{
	struct rr_post *post;

	while ((post = list_first_entry(&ep->waiting, struct rr_post, link)) != NULL) {
		enum rr_wc_status status;
		int rc = -ENOTCONN;

		if (!ep->dead && post->n > ep->sq_free)
			return;
		list_del(&post->link);
		if (!ep->dead)
			rc = post_now(ep, post);
		if (!rc)
			continue;
		status = rc == -ENOTCONN ? RR_WC_FLUSHED : RR_WC_LOCAL;
		ep_die(ep, status);
		post->fn(post, status);
	}
}

/* A request in the middle of a chain: only errors arrive here, and the last request reports for the chain. */
static void on_err(struct rr_done *done, const struct rr_wc *wc)
{
	struct rr_ep *ep = container_of(done, struct rr_ep, err_done);

	if (wc->status != RR_WC_OK)
		ep_die(ep, wc->status);
}

static void on_post(struct rr_done *done, const struct rr_wc *wc)
{
	struct rr_post *post = container_of(done, struct rr_post, done);
	struct rr_ep *ep = post->ep;
	enum rr_wc_status status = wc->status;

	ep->in_flight--;
	ep->sq_free += post->n;
	if (status != RR_WC_OK)
		ep_die(ep, status);
	post->fn(post, status); /* may free the post */
	pump(ep);
	ep_check_drained(ep);
}

/* fn must not run inside rr_ep_post(): chains of a dead endpoint end at the next poll. */
static void on_drain_msg(struct rpcrdma_msg *msg)
{
	struct rr_ep *ep = container_of(msg, struct rr_ep, drained_msg);

	ep->msg_out = false;
	if (ep->die_soon) {
		ep->die_soon = false;
		ep_die(ep, RR_WC_FLUSHED);
	}
	pump(ep);
	if (!list_is_empty(&ep->waiting) || ep->posted || ep->held || ep->in_flight || !ep->dead ||
	    ep->drained)
		return;
	ep->drained = true;
	ep->ops->drained(ep);
}

void rr_ep_disconnect(struct rr_ep *ep)
{
	if (ep->dead)
		return;
	ep->die_soon = true;
	kick(ep);
}

void rr_ep_post(struct rr_ep *ep, struct rr_post *post)
{
	post->ep = ep;
	post->posted = false;
	post->done.fn = on_post;
	if (!post->build)
		set_done(ep, post, post->first);
	if (!ep->dead && list_is_empty(&ep->waiting) && post->n <= ep->sq_free &&
	    !post_now(ep, post))
		return;
	if (!ep->dead && post->n > ep->sq_free)
		rr_count(ep->engine, sq_waits, 1);
	list_add_tail(&ep->waiting, &post->link);
	if (ep->dead || post->n <= ep->sq_free)
		kick(ep);
}

bool rr_ep_unpost(struct rr_ep *ep, struct rr_post *post)
{
	if (!list_is_linked(&post->link))
		return false;
	list_del(&post->link);
	kick(ep); /* the next one may fit */
	return true;
}

int rr_ep_create(struct rpcrdma_engine *e, struct rpcrdma_engine *here, struct rr_dev *dev, struct rr_pd *pd,
		 struct rr_qp *qp, const struct rr_ep_attr *attr, struct rr_ep **ret)
{
	struct rr_qp_attr qa = { .pd = pd };
	struct rr_ep *ep;
	int rc;

	rc = rr_engine_cq(e, dev, &qa.cq);
	if (rc)
		return rc;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -ENOMEM;
	ep->engine = e;
	ep->dev = dev;
	ep->ops = attr->ops;
	ep->owner = attr->owner;
	ep->recv_bytes = attr->recv_bytes;
	ep->msgs_max = attr->msgs_max;
	/* one less: devices keep one slot empty, and round up to a power of two */
	ep->sq_depth = attr->sq_depth ? attr->sq_depth :
					MAX(SQ_MIN, attr->msgs_max * (SQ_PER_MSG + attr->sq_more)) - 1;
	ep->sq_depth = MIN(ep->sq_depth, dev->fabric->attr.qp_wr_max);
	ep->err_done.fn = on_err;
	ep->drained_msg.fn = on_drain_msg;
	list_init(&ep->waiting);
	list_init(&ep->recvs);
	ep->shared = attr->shared;
	ep->end_done.fn = on_end;
	ep->client = attr->client;
	ep->extra_recvs = attr->extra_recvs;
	ep->call_bytes = attr->call_bytes;
	ep->nrecvs_first = attr->msgs + attr->extra_recvs;
	qa.sq_depth = ep->sq_depth;
	qa.rq_depth = attr->msgs_max + attr->extra_recvs;
	qa.recv_bytes = ep->recv_bytes;
	qa.srq = ep->shared ? rr_shared_srq(ep->shared) : NULL;
	qa.end = &ep->end_done;
	rc = rr_qp_setup(qp, &qa);
	if (rc) {
		free(ep);
		return rc;
	}
	ep->qp = qp;
	qp->owner = ep;
	ep->sq_free = ep->sq_depth;
	if (ep->shared)
		ep->posted = 1; /* its end completion */
	rc = add_first(ep);
	if (rc) {
		ep->qp = NULL; /* the caller keeps it */
		rr_ep_destroy(ep, here);
		return rc;
	}
	*ret = ep;
	return 0;
}

void rr_ep_destroy(struct rr_ep *ep, struct rpcrdma_engine *here)
{
	if (!ep)
		return;
	/* the deferred list is the engine's; the listener's thread destroys endpoints that were never connected */
	if (ep->msg_out)
		rr_engine_undefer(ep->engine, &ep->drained_msg);
	rr_qp_destroy(ep->qp);
	list_for_each_safe(n, &ep->recvs)
		rr_recv_put(here, list_entry(n, struct rr_recv_ctx, all));
	while (ep->nrecvs > 0)
		uncharge_recv(ep);
	free(ep);
}
