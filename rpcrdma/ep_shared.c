/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ep_shared.c - receives that all connections of an engine and a device share
 *
 * Operation:  A shared receive queue of the device, filled from the pool. A message takes one of its
 *             receives; the endpoint it came to has it until rr_ep_repost(). When a quarter of them is
 *             left, there are made twice as many, up to half of the zone; no more are at the device than
 *             its queue is deep, those with a message in them come on top;
 *             when nobody used half of them for a while, those that come back go to the pool instead.
 *             So memory follows the calls under way of all connections, and not their number. How many
 *             of them each may have out, its credits say, which are counted (srv_credit.c); when the
 *             queue is empty nevertheless, peers wait, which is what the fabric promises.
 *
 *             A receive is charged to the client whose message is in it. Each client has a part of the
 *             queue (rr_shared_part()). For a client within its part the queue grows beyond half of the
 *             zone. A message of a client over its part is kept too, for the part becomes less with each
 *             client that comes, and what was granted before does not.
 * Memory:     Receives are the pool's (RR_ZONE_RECVS); what the queue holds is given back with it, after
 *             the last endpoint of its engine.
 * Threads:    The engine's; but the queue is made, with its first receives, on the thread of the
 *             listener that its first connection came by, before that is up.
 * Errors:     Too little memory to make more: those there are have to do.
 */
#include <errno.h>
#include <stdlib.h>

#include "ep.h"

#define SHARED_FIRST 64u
#define SHARED_MAX 4096u /* at the device */

struct rr_shared {
	struct rpcrdma_engine *engine;
	struct rr_dev *dev;
	struct rr_srq *srq;
	uint32_t recv_bytes;
	size_t buf_bytes;            /* what a receive takes of the zone */
	unsigned total;
	unsigned posted, depth;      /* at the device, and at most */
	unsigned least;              /* of them, since the last look */
	unsigned surplus;            /* so many go to the pool as they come back */
	struct list recvs;           /* rr_recv_ctx.all */
	struct rpcrdma_timer timer;  /* the next look */
};

static void on_recv(struct rr_done *done, const struct rr_wc *wc);

static void give_back(struct rr_shared *s, struct rr_recv_ctx *rc)
{
	s->total--;
	rr_count_set(s->engine, shared_recvs, s->engine->stats.shared_recvs - 1);
	rr_recv_put(s->engine, rc);
}

static void post(struct rr_shared *s, struct rr_recv_ctx *rc)
{
	struct rr_recv recv = { .done = &rc->done,
				.sge = { .addr = rc->buf, .len = s->recv_bytes, .mr = rc->mr } };

	rc->ep = NULL;
	if (rr_srq_post(s->srq, &recv)) {
		give_back(s, rc); /* a device in trouble: there will be no more connections either */
		return;
	}
	s->posted++;
}

static void on_look(struct rpcrdma_timer *timer)
{
	struct rr_shared *s = container_of(timer, struct rr_shared, timer);
	unsigned used = s->total - MIN(s->least, s->total);
	unsigned keep = MAX(used * 2, SHARED_FIRST);

	s->surplus = s->total > keep ? s->total - keep : 0;
	s->least = s->posted;
	if (s->total > SHARED_FIRST)
		rpcrdma_timer_set(s->engine, timer, s->engine->domain->pool_idle_ns);
}

static int add(struct rr_shared *s, struct rpcrdma_engine *lender, unsigned n)
{
	int rc = 0;

	for (; n > 0 && !rc; n--) {
		struct rr_recv_ctx *ctx;

		rc = rr_recv_get(lender, NULL, s->dev, s->recv_bytes, &ctx);
		if (rc)
			break;
		ctx->shared = s;
		ctx->done.fn = on_recv;
		list_add_tail(&s->recvs, &ctx->all);
		s->total++;
		rr_count_set(s->engine, shared_recvs, s->engine->stats.shared_recvs + 1);
		post(s, ctx);
	}
	return rc;
}

/* The low watermark. */
static bool is_low(const struct rr_shared *s)
{
	return s->posted * 4 < MIN(s->total, s->depth);
}

/* How many receives the zone has room for until so many of its bytes are lent. */
static size_t zone_room(const struct rr_shared *s, size_t bytes_max)
{
	size_t lent = atomic_load(&s->engine->domain->recv_bytes);

	return lent < bytes_max ? (bytes_max - lent) / s->buf_bytes : 0;
}

/** rr_shared_part - see ep.h */
size_t rr_shared_part(const struct rr_ep *ep)
{
	const struct rr_shared *s = ep->shared;
	size_t most = s->total + zone_room(s, s->engine->domain->pools[RR_ZONE_RECVS].bytes_max);
	size_t queue = most * s->buf_bytes;
	size_t part = MIN(rr_client_fair(ep->client->all, RR_SHARE_RECVS) / 2, queue - queue / 4);

	return MAX(part, ep->nrecvs_first * s->buf_bytes);
}

/** rr_shared_calls - see ep.h */
uint32_t rr_shared_calls(const struct rr_ep *ep)
{
	size_t bytes = rr_shared_part(ep) / MAX(rr_client_used(ep->client, RR_SHARE_CONNS), (size_t)1);
	size_t calls = bytes / ep->shared->buf_bytes, first = ep->nrecvs_first;

	if (calls > first)
		calls = first + (bytes - first * ep->shared->buf_bytes) / (ep->shared->buf_bytes + ep->call_bytes);
	return (uint32_t)MAX(calls, (size_t)1);
}

/* What a message of @ep takes of its client's share: like a receive of its own (ep.c). */
static size_t charge_of(const struct rr_ep *ep)
{
	return ep->shared->buf_bytes + (ep->held < ep->nrecvs_first ? 0 : ep->call_bytes);
}

/* At the low watermark; @within: the message that brought it there is of a client within its part. */
static void refill(struct rr_shared *s, bool within)
{
	struct rpcrdma_domain *d = s->engine->domain;
	size_t bytes_max = d->pools[RR_ZONE_RECVS].bytes_max;
	size_t more = MIN(s->total, s->depth - s->posted);

	s->surplus = 0;
	more = MIN(more, zone_room(s, within ? bytes_max : bytes_max / 2));
	(void)add(s, s->engine, (unsigned)more); /* some of them may be enough */
	if (!s->posted)
		atomic_fetch_add(&d->recv_short, 1);
	if (s->total > SHARED_FIRST && !s->timer.link)
		rpcrdma_timer_set(s->engine, &s->timer, d->pool_idle_ns);
}

static void charge(struct rr_shared *s, const struct rr_ep *ep, struct rr_recv_ctx *rc)
{
	size_t bytes = charge_of(ep);
	bool within = rr_client_used(ep->client, RR_SHARE_RECVS) + bytes <= rr_shared_part(ep);

	if (unlikely(is_low(s)))
		refill(s, within);
	rr_client_add(ep->client, RR_SHARE_RECVS, bytes);
	rc->charged = bytes;
}

static void on_recv(struct rr_done *done, const struct rr_wc *wc)
{
	struct rr_recv_ctx *rc = container_of(done, struct rr_recv_ctx, done);
	struct rr_shared *s = rc->shared;

	s->posted--;
	s->least = MIN(s->least, s->posted);
	if (!wc->qp) {
		post(s, rc);
		return;
	}
	charge(s, wc->qp->owner, rc);
	rr_ep_recv_shared(wc->qp->owner, rc, wc);
}

/** rr_shared_put - a receive is not in use any more */
void rr_shared_put(struct rr_recv_ctx *rc)
{
	struct rr_shared *s = rc->shared;

	if (rc->charged)
		rr_client_uncharge(rc->ep->client, RR_SHARE_RECVS, rc->charged);
	rc->charged = 0;
	if (unlikely(s->surplus || s->posted >= s->depth)) {
		s->surplus -= s->surplus > 0;
		give_back(s, rc);
		return;
	}
	post(s, rc);
}

/** rr_shared_srq - what queue pairs are set up with */
struct rr_srq *rr_shared_srq(const struct rr_shared *s)
{
	return s->srq;
}

static void destroy(struct rr_shared *s)
{
	rpcrdma_timer_cancel(s->engine, &s->timer);
	rr_srq_destroy(s->srq);
	list_for_each_safe(n, &s->recvs)
		give_back(s, list_entry(n, struct rr_recv_ctx, all));
	free(s);
}

static int create(struct rpcrdma_engine *e, struct rr_dev *dev, uint32_t recv_bytes,
		  struct rpcrdma_engine *lender, struct rr_shared **ret)
{
	struct rr_srq_attr attr = { .pd = dev->pd, .recv_bytes = recv_bytes };
	struct rr_shared *s;
	int rc;

	rc = rr_engine_cq(e, dev, &attr.cq);
	if (rc)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->engine = e;
	s->dev = dev;
	s->recv_bytes = recv_bytes;
	s->buf_bytes = rr_pool_round(&e->domain->pools[RR_ZONE_RECVS], recv_bytes);
	s->depth = attr.depth = MIN(SHARED_MAX, dev->fabric->attr.srq_wr_max);
	s->timer.fn = on_look;
	list_init(&s->recvs);
	rc = rr_srq_create(dev->fabric, &attr, &s->srq);
	if (rc) {
		free(s);
		return rc;
	}
	rc = add(s, lender, MIN(SHARED_FIRST, s->depth));
	if (!s->total) { /* some are enough to begin with */
		rr_srq_destroy(s->srq);
		free(s);
		return rc;
	}
	s->least = s->posted;
	*ret = s;
	return 0;
}

/** rr_shared_get - see ep.h */
int rr_shared_get(struct rpcrdma_engine *e, struct rr_dev *dev, uint32_t recv_bytes,
		  struct rpcrdma_engine *lender, struct rr_shared **ret)
{
	struct rr_shared *s;
	int rc = 0;

	if (!dev->fabric->attr.srq_wr_max)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&e->shared_lock);
	s = e->shared[dev->idx];
	if (!s) {
		rc = create(e, dev, recv_bytes, lender, &s);
		if (!rc)
			e->shared[dev->idx] = s;
	} else if (s->recv_bytes != recv_bytes) {
		rc = -EOPNOTSUPP;
	}
	pthread_mutex_unlock(&e->shared_lock);
	if (!rc)
		*ret = s;
	return rc;
}

/** rr_shared_fini - see ep.h */
void rr_shared_fini(struct rpcrdma_engine *e)
{
	for (unsigned i = 0; i < RR_DEVS_MAX; i++)
		if (e->shared[i])
			destroy(e->shared[i]);
}
