/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ep.c - an endpoint: one queue pair with its message buffers and the accounting of its queues
 *
 * Operation:  see ep.h. Accounting: a chain of n requests takes n entries of the send queue and returns them
 *             when its last, signalled one completes. A chain is posted when all of it fits, in the order of
 *             rr_ep_post(). Receives are counted by place: at the device (`posted`), in the upper layer
 *             (`held`), or idle once the endpoint is dead.
 * Memory:     A batch is one mapping: receive buffers, then send buffers, registered once without remote
 *             rights. Lent buffers belong to the pool (slab.c), one per receive.
 * Threads:    ep.h
 * Errors:     The first completion other than RR_WC_OK makes the endpoint dead. The failed request does not
 *             matter, since no later one was executed.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/trace.h"
#include "ep.h"

/* Requests that one message may need in addition to its Send: a Write or Read per segment and pool-class piece. */
#define SQ_PER_MSG 4u
#define SQ_MIN 64u
/* SGEs of a request; each request uses one contiguous range here. A device reserves room for this number in
 * every slot of its queues, used or not. */
#define SGE_MAX 1u

struct batch {
	struct list link;
	void *map;
	size_t bytes;
	struct rr_mr *mr;
	struct rr_recv_ctx *recvs;
	struct rr_send_ctx *sends;
};

static void ep_die(struct rr_ep *ep, enum rr_wc_status status);
static void ep_check_drained(struct rr_ep *ep);
static void pump(struct rr_ep *ep);

static void take(struct rr_ep *ep, struct rr_recv_ctx *rc, const struct rr_wc *wc)
{
	rc->len = wc->with_imm ? 0 : wc->byte_len; /* its bytes are elsewhere */
	ep->ops->recv(ep, rc, wc);
}

static void on_recv(struct rr_done *done, const struct rr_wc *wc)
{
	struct rr_recv_ctx *rc = container_of(done, struct rr_recv_ctx, done);
	struct rr_ep *ep = rc->ep;

	ep->posted--;
	if (wc->status != RR_WC_OK || ep->dead) {
		list_add_tail(&ep->idle_recvs, &rc->link);
		ep_die(ep, wc->status);
		ep_check_drained(ep);
		return;
	}
	ep->held++;
	take(ep, rc, wc);
}

static void post_recv(struct rr_recv_ctx *rc)
{
	struct rr_ep *ep = rc->ep;
	struct rr_recv recv = { .done = &rc->done,
				.sge = { .addr = rc->buf, .len = ep->recv_bytes, .mr = rc->mr } };

	if (ep->dead || rr_post_recv(ep->qp, &recv)) {
		list_add_tail(&ep->idle_recvs, &rc->link);
		ep_check_drained(ep);
		return;
	}
	ep->posted++;
}

void rr_ep_repost(struct rr_recv_ctx *rc)
{
	struct rr_ep *ep = rc->ep;

	ep->held--;
	if (!ep->shared) {
		post_recv(rc);
		return;
	}
	rr_shared_put(rc);
	ep_check_drained(ep);
}

unsigned rr_ep_posted(const struct rr_ep *ep)
{
	return ep->shared ? ep->nrecvs - MIN(ep->held, ep->nrecvs) : ep->posted;
}

void rr_ep_recv_shared(struct rr_ep *ep, struct rr_recv_ctx *rc, const struct rr_wc *wc)
{
	rc->ep = ep;
	ep->held++;
	if (wc->status != RR_WC_OK || ep->dead) {
		ep_die(ep, wc->status);
		rr_ep_repost(rc);
		return;
	}
	take(ep, rc, wc);
}

/* The endpoint has no posted receive that would report the end. */
static void on_end(struct rr_done *done, const struct rr_wc *wc)
{
	struct rr_ep *ep = container_of(done, struct rr_ep, end_done);

	ep->posted--;
	ep_die(ep, wc->status);
	ep_check_drained(ep);
}

/* ---- lent buffers ---- */

static void use_lent(struct rr_recv_ctx *rc, const struct rr_dev *dev)
{
	rc->buf = rc->lent->addr;
	rc->mr = rr_buf_mr(rc->lent, dev);
}

/* Allocates from the pool, or from the memory of one connection. */
static int lend(struct rpcrdma_engine *e, struct rr_own *const *own, enum rr_zone zone, size_t bytes,
		struct rpcrdma_buf **ret)
{
	return own ? own[zone]->ops->get(own[zone], bytes, ret) : rr_buf_get(e, zone, bytes, ret);
}

/* Returns the bytes that count as lent by the pool for receives. */
static size_t lent_bytes(const struct rr_recv_ctx *rc)
{
	return container_of(rc->lent, struct rr_buf, pub)->own ? 0 : rc->lent->bytes;
}

int rr_recv_get(struct rpcrdma_engine *e, struct rr_own *const *own, const struct rr_dev *dev,
		uint32_t bytes, struct rr_recv_ctx **ret)
{
	struct rr_recv_ctx *rc = calloc(1, sizeof(*rc));
	int err;

	if (!rc)
		return -ENOMEM;
	err = lend(e, own, RR_ZONE_RECVS, bytes, &rc->lent);
	if (err) {
		free(rc);
		return err;
	}
	atomic_fetch_add_explicit(&e->domain->recv_bytes, lent_bytes(rc), memory_order_relaxed);
	use_lent(rc, dev);
	list_init(&rc->link);
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

void rr_ep_repost_packed(struct rr_recv_ctx *rc)
{
	if (!rc->shared && !rc->ep->own && rr_buf_pack(rc->ep->lender, &rc->lent))
		use_lent(rc, rc->ep->dev);
	rr_ep_repost(rc);
}

/* Returns what the last receive takes of its client's share, including the call that may arrive in it. The
 * owner's memory for the calls of the first receives is part of a connection. */
static size_t charge_of_last(const struct rr_ep *ep)
{
	size_t bytes = rr_pool_round(&ep->lender->domain->pools[RR_ZONE_RECVS], ep->recv_bytes);

	if (ep->nrecvs == 1 && ep->first_is_free)
		return 0;
	return ep->nrecvs <= ep->nrecvs_first ? bytes : bytes + ep->call_bytes;
}

static void count_recvs(struct rr_ep *ep, int n)
{
	ep->nrecvs += (unsigned)n;
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

static void put_recv(struct rr_ep *ep, struct rr_recv_ctx *rc)
{
	rr_recv_put(ep->lender, rc);
	uncharge_recv(ep);
}

static int lend_recv(struct rr_ep *ep)
{
	struct rr_recv_ctx *rc;
	int err = charge_recv(ep);

	if (err || ep->shared)
		return err;
	err = rr_recv_get(ep->lender, ep->own, ep->dev, ep->recv_bytes, &rc);
	if (err) {
		uncharge_recv(ep);
		return err;
	}
	rc->ep = ep;
	rc->done.fn = on_recv;
	list_add_tail(&ep->recvs, &rc->all);
	post_recv(rc);
	return 0;
}

void rr_ep_retire(struct rr_recv_ctx *rc)
{
	struct rr_ep *ep = rc->ep;

	if (ep->dead) {
		rr_ep_repost(rc);
		return;
	}
	ep->held--;
	ep->msgs--;
	if (ep->shared) {
		rr_shared_put(rc);
		uncharge_recv(ep);
	} else {
		put_recv(ep, rc);
	}
}

static int lend_first(struct rr_ep *ep, unsigned msgs)
{
	unsigned n = 0;
	int rc = 0;

	while (n < msgs + ep->extra_recvs && !rc) {
		rc = lend_recv(ep);
		n += !rc;
	}
	if (!n && ep->shared) { /* it takes no memory yet */
		ep->first_is_free = true;
		rc = lend_recv(ep);
		n += !rc;
	}
	if (n <= ep->extra_recvs)
		return rc;
	ep->msgs = n - ep->extra_recvs;
	return 0;
}

static int lend_send(struct rr_ep *ep, struct rr_send_ctx *sc)
{
	int rc = ep->ops->send_buf ? ep->ops->send_buf(ep, &sc->lent) :
				     lend(ep->engine, ep->own, RR_ZONE_SENDS, ep->send_bytes, &sc->lent);

	if (rc)
		return rc;
	sc->buf = sc->lent->addr;
	sc->mr = rr_buf_mr(sc->lent, ep->dev);
	return 0;
}

static struct rr_send_ctx *new_lent_send(struct rr_ep *ep)
{
	struct rr_send_ctx *sc = calloc(1, sizeof(*sc));

	if (!sc)
		return NULL;
	sc->ep = ep;
	list_init(&sc->link);
	return sc;
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
	struct rr_sge sge[RR_POST_BUILT];

	assert(post->n <= RR_POST_BUILT);
	post->build(post, wr, sge);
	set_done(ep, post, wr);
	return rr_post_send(ep->qp, wr);
}

static bool post_now(struct rr_ep *ep, struct rr_post *post)
{
	if (unlikely(post->build) ? build_and_post(ep, post) : rr_post_send(ep->qp, post->first))
		return false;
	rr_count(ep->engine, posts, 1);
	ep->sq_free -= post->n;
	ep->in_flight++;
	return true;
}

/* Posts waiting chains while they fit the queue; on a dead endpoint ends all of them. */
static void pump(struct rr_ep *ep)
{
	struct rr_post *post;

	while ((post = list_first_entry(&ep->waiting, struct rr_post, link)) != NULL) {
		if (!ep->dead) {
			if (post->n > ep->sq_free)
				return;
			list_del(&post->link);
			if (post_now(ep, post))
				continue;
			ep_die(ep, RR_WC_LOCAL);
		} else {
			list_del(&post->link);
		}
		post->fn(post, RR_WC_FLUSHED);
	}
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
	post->done.fn = on_post;
	if (!post->build)
		set_done(ep, post, post->first);
	if (!ep->dead && list_is_empty(&ep->waiting) && post->n <= ep->sq_free &&
	    post_now(ep, post))
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

int rr_ep_get_send(struct rr_ep *ep, struct rr_send_ctx **ret)
{
	struct rr_send_ctx *sc = list_first_entry(&ep->free_sends, struct rr_send_ctx, link);
	int rc = 0;

	if (!sc && !ep->lender)
		return -ENOBUFS;
	if (!sc) {
		sc = new_lent_send(ep);
		if (!sc)
			return -ENOMEM;
		list_add_head(&ep->free_sends, &sc->link);
	}
	if (ep->lender)
		rc = lend_send(ep, sc);
	if (rc)
		return rc;
	list_del(&sc->link);
	*ret = sc;
	return 0;
}

void rr_ep_put_send(struct rr_send_ctx *sc)
{
	if (sc->lent)
		rpcrdma_buf_put(sc->ep->engine, sc->lent);
	sc->lent = NULL;
	list_add_head(&sc->ep->free_sends, &sc->link);
}

static void batch_free(struct batch *b)
{
	rr_mr_dereg(b->mr);
	if (b->map)
		munmap(b->map, b->bytes);
	free(b->recvs);
	free(b->sends);
	free(b);
}

static int batch_add(struct rr_ep *ep, unsigned nrecvs, unsigned nsends)
{
	struct batch *b = calloc(1, sizeof(*b));
	struct rr_mr_attr attr = { .access = RR_ACCESS_LOCAL_WRITE, .fd = -1 };
	uint8_t *at;
	int rc = -ENOMEM;

	if (!b)
		return -ENOMEM;
	b->recvs = calloc(nrecvs, sizeof(*b->recvs));
	b->sends = calloc(nsends, sizeof(*b->sends));
	if (!b->recvs || !b->sends)
		goto fail;
	b->bytes = (size_t)nrecvs * ep->recv_bytes + (size_t)nsends * ep->send_bytes;
	b->map = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (b->map == MAP_FAILED) {
		b->map = NULL;
		goto fail;
	}
	attr.addr = b->map;
	attr.len = b->bytes;
	rc = rr_mr_reg(ep->pd, &attr, &b->mr);
	if (rc)
		goto fail;
	at = b->map;
	for (unsigned i = 0; i < nsends; i++, at += ep->send_bytes) {
		b->sends[i] = (struct rr_send_ctx){ .ep = ep, .buf = at, .mr = b->mr };
		list_add_tail(&ep->free_sends, &b->sends[i].link);
	}
	list_add_tail(&ep->batches, &b->link);
	for (unsigned i = 0; i < nrecvs; i++, at += ep->recv_bytes) {
		b->recvs[i] = (struct rr_recv_ctx){ .ep = ep, .buf = at, .mr = b->mr };
		b->recvs[i].done.fn = on_recv;
		list_init(&b->recvs[i].link);
		post_recv(&b->recvs[i]);
	}
	return 0;
fail:
	batch_free(b);
	return rc;
}

void rr_ep_grow(struct rr_ep *ep, unsigned msgs)
{
	msgs = MIN(msgs, ep->msgs_max);
	if (ep->dead || msgs <= ep->msgs)
		return;
	if (ep->lender) {
		while (ep->msgs < msgs && !lend_recv(ep))
			ep->msgs++;
		return;
	}
	if (batch_add(ep, msgs - ep->msgs, msgs - ep->msgs) == 0)
		ep->msgs = msgs;
}

int rr_ep_create(struct rpcrdma_engine *e, struct rr_dev *dev, struct rr_pd *pd, struct rr_qp *qp,
		 const struct rr_ep_attr *attr, struct rr_ep **ret)
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
	ep->pd = pd;
	ep->ops = attr->ops;
	ep->owner = attr->owner;
	ep->recv_bytes = attr->recv_bytes;
	ep->send_bytes = attr->send_bytes;
	ep->msgs_max = attr->msgs_max;
	/* one less: devices keep one slot empty, and round up to a power of two */
	ep->sq_depth = attr->sq_depth ? attr->sq_depth :
					MAX(SQ_MIN, attr->msgs_max * (SQ_PER_MSG + attr->sq_more)) - 1;
	ep->sq_depth = MIN(ep->sq_depth, dev->fabric->attr.qp_wr_max);
	ep->err_done.fn = on_err;
	ep->drained_msg.fn = on_drain_msg;
	list_init(&ep->waiting);
	list_init(&ep->idle_recvs);
	list_init(&ep->free_sends);
	list_init(&ep->batches);
	list_init(&ep->recvs);
	ep->lender = attr->lender;
	ep->shared = attr->shared;
	ep->end_done.fn = on_end;
	ep->own = attr->own;
	ep->client = attr->own ? NULL : attr->client;
	ep->extra_recvs = attr->extra_recvs;
	ep->call_bytes = attr->call_bytes;
	ep->nrecvs_first = attr->msgs + attr->extra_recvs;
	qa.sq_depth = ep->sq_depth;
	qa.rq_depth = attr->msgs_max + attr->extra_recvs;
	qa.sge_max = SGE_MAX;
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
	if (ep->lender)
		rc = lend_first(ep, attr->msgs);
	else
		rc = batch_add(ep, attr->msgs + attr->extra_recvs,
			       attr->msgs + attr->extra_recvs);
	if (rc) {
		ep->qp = NULL; /* the caller keeps it */
		rr_ep_destroy(ep);
		return rc;
	}
	if (!ep->lender)
		ep->msgs = attr->msgs;
	*ret = ep;
	return 0;
}

void rr_ep_destroy(struct rr_ep *ep)
{
	if (!ep)
		return;
	/* the deferred list is the engine's; the listener's thread destroys endpoints that were never connected */
	if (ep->msg_out)
		rr_engine_undefer(ep->engine, &ep->drained_msg);
	rr_qp_destroy(ep->qp);
	list_for_each_safe(n, &ep->recvs)
		put_recv(ep, list_entry(n, struct rr_recv_ctx, all));
	while (ep->shared && ep->nrecvs > 0)
		uncharge_recv(ep);
	if (ep->lender)
		list_for_each_safe(n, &ep->free_sends)
			free(list_entry(n, struct rr_send_ctx, link));
	list_for_each_safe(n, &ep->batches)
		batch_free(list_entry(n, struct batch, link));
	free(ep);
}
