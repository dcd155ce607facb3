/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ep_shared.c - receives shared by all connections of an engine and a device
 *
 * Operation:  A shared receive queue of the device, filled from the pool. A message takes one of its receives;
 *             its endpoint holds that until rr_ep_repost(). When only a quarter of the receives is left, their
 *             number is doubled, up to the number promised to the endpoints. Receives at the device never
 *             exceed the depth of its queue; those that hold a message come on top. When half of them are
 *             unused for a while, returned receives go to the pool instead. So memory follows the calls in
 *             progress of all connections, not the number of connections.
 *
 *             Promised receives are counted and charged to the client as if they were the endpoint's own
 *             (ep.c): all promises together fit into the zone. The first receive of a connection is promised
 *             even when its client has no share left. Receives beyond the promises, such as those of ended
 *             connections, are idle bytes of the clients' budget. When the queue is empty nevertheless, peers
 *             wait, as the fabric promises, and the engine tries to add receives every 10 ms.
 * Memory:     Receives belong to the pool (RR_ZONE_RECVS). The queue returns its receives when it is destroyed,
 *             after the last endpoint of its engine.
 * Threads:    The engine's. Exception: the thread of the connection's listener creates the queue with its first
 *             receives, and promises the first ones of an endpoint.
 * Errors:     Without memory for more receives, the existing ones have to suffice.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "ep.h"

#define SHARED_FIRST 64u
#define SHARED_MAX 4096u /* at the device */
#define EMPTY_LOOK_NS (10 * NS_PER_MS)

struct rr_shared {
	struct rpcrdma_engine *engine;
	struct rr_dev *dev;
	struct rr_srq *srq;
	void (*recv)(struct rr_done *done, const struct rr_wc *wc);
	uint32_t recv_bytes;
	size_t buf_bytes;            /* zone bytes of one receive */
	unsigned total;              /* changed with .lock */
	pthread_mutex_t lock;        /* .promised and .idle */
	unsigned promised;           /* to endpoints */
	size_t idle;                 /* bytes of receives that are not promised */
	unsigned posted, depth;      /* at the device, and at most */
	unsigned least;              /* lowest value of posted since the last check */
	unsigned surplus;            /* number of returned receives to give to the pool */
	struct list recvs;           /* rr_recv_ctx.all */
	struct rpcrdma_timer timer;  /* the next check */
};

/* Adds @total to the number of receives and @promised to that of promises; both may be negative. */
static void count(struct rr_shared *s, int total, int promised)
{
	_Atomic size_t *idle = &s->engine->domain->clients.budgets[RR_SHARE_RECVS].idle;
	size_t before;

	pthread_mutex_lock(&s->lock);
	s->total += (unsigned)total;
	s->promised += (unsigned)promised;
	before = s->idle;
	s->idle = (s->total - MIN(s->promised, s->total)) * s->buf_bytes;
	atomic_fetch_add_explicit(idle, s->idle - before, memory_order_relaxed);
	pthread_mutex_unlock(&s->lock);
}

void rr_shared_promise(struct rr_shared *s, int n)
{
	count(s, 0, n);
}

/* Return: how many receives may be added without exceeding the promises */
static unsigned not_there(struct rr_shared *s)
{
	unsigned most;

	pthread_mutex_lock(&s->lock);
	most = MAX(s->promised, SHARED_FIRST);
	pthread_mutex_unlock(&s->lock);
	return most - MIN(s->total, most);
}

static void give_back(struct rr_shared *s, struct rr_recv_ctx *rc)
{
	count(s, -1, 0);
	rr_count_set(s->engine, shared_recvs, s->engine->stats.shared_recvs - 1);
	rr_recv_put(s->engine, rc);
}

static void post(struct rr_shared *s, struct rr_recv_ctx *rc)
{
	struct rr_recv recv = { .done = &rc->done,
				.sge = rr_msg_sge(rc->lent, s->dev, s->recv_bytes) };

	rc->ep = NULL;
	if (rr_srq_post(s->srq, &recv)) {
		give_back(s, rc); /* a failed device: it gets no more connections either */
		return;
	}
	s->posted++;
}

static int add(struct rr_shared *s, unsigned n)
{
	int rc = 0;

	for (; n > 0 && !rc; n--) {
		struct rr_recv_ctx *ctx;

		rc = rr_recv_get(s->engine, NULL, s->recv_bytes, &ctx);
		if (rc)
			break;
		ctx->shared = s;
		ctx->done.fn = s->recv;
		list_add_tail(&s->recvs, &ctx->all);
		count(s, 1, 0);
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

static void look_in(struct rr_shared *s, uint64_t ns)
{
	rpcrdma_timer_set(s->engine, &s->timer, ns);
}

static void refill(struct rr_shared *s)
{
	unsigned more = MIN(s->total, s->depth - s->posted);

	s->surplus = 0;
	(void)add(s, MIN(more, not_there(s))); /* some of them may be enough */
	if (!s->posted) {
		atomic_fetch_add(&s->engine->domain->recv_short, 1);
		look_in(s, EMPTY_LOOK_NS);
	} else if (s->total > SHARED_FIRST && !rr_timer_is_armed(&s->timer)) {
		look_in(s, s->engine->domain->pool_idle_ns);
	}
}

static void on_look(struct rpcrdma_timer *timer)
{
	struct rr_shared *s = container_of(timer, struct rr_shared, timer);
	unsigned used = s->total - MIN(s->least, s->total);
	unsigned keep = MAX(used * 2, SHARED_FIRST);

	if (!s->posted) {
		refill(s);
		return;
	}
	s->surplus = s->total > keep ? s->total - keep : 0;
	s->least = s->posted;
	if (s->total > SHARED_FIRST)
		look_in(s, s->engine->domain->pool_idle_ns);
}

bool rr_shared_take(struct rr_recv_ctx *rc, const struct rr_wc *wc)
{
	struct rr_shared *s = rc->shared;

	s->posted--;
	s->least = MIN(s->least, s->posted);
	if (!wc->qp) {
		post(s, rc);
		return false;
	}
	if (unlikely(is_low(s)))
		refill(s);
	rc->ep = wc->qp->owner;
	return true;
}

/** rr_shared_put - returns a receive */
void rr_shared_put(struct rr_recv_ctx *rc)
{
	struct rr_shared *s = rc->shared;

	if (unlikely(s->surplus || s->posted >= s->depth)) {
		s->surplus -= s->surplus > 0;
		give_back(s, rc);
		return;
	}
	post(s, rc);
}

/** rr_shared_srq - returns the queue to set up queue pairs with */
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
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int create(struct rpcrdma_engine *e, struct rr_dev *dev, uint32_t recv_bytes,
		  void (*recv)(struct rr_done *done, const struct rr_wc *wc), struct rr_shared **ret)
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
	pthread_mutex_init(&s->lock, NULL);
	s->engine = e;
	s->dev = dev;
	s->recv_bytes = recv_bytes;
	s->recv = recv;
	s->buf_bytes = rr_pool_round(&e->domain->pools[RR_ZONE_RECVS], recv_bytes);
	s->depth = attr.depth = MIN(SHARED_MAX, dev->fabric->attr.srq_wr_max);
	s->timer.fn = on_look;
	list_init(&s->recvs);
	rc = rr_srq_create(dev->fabric, &attr, &s->srq);
	if (!rc)
		rc = add(s, MIN(SHARED_FIRST, s->depth));
	if (!s->total) { /* a part of them is enough to start */
		destroy(s);
		return rc;
	}
	s->least = s->posted;
	*ret = s;
	return 0;
}

int rr_shared_get(struct rpcrdma_engine *e, struct rr_dev *dev, uint32_t recv_bytes,
		  void (*recv)(struct rr_done *done, const struct rr_wc *wc), struct rr_shared **ret)
{
	struct rr_shared *s;
	int rc = 0;

	if (!dev->fabric->attr.srq_wr_max)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&e->shared_lock);
	s = e->shared[dev->idx];
	if (!s) {
		rc = create(e, dev, recv_bytes, recv, &s);
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

void rr_shared_fini(struct rpcrdma_engine *e)
{
	for (unsigned i = 0; i < RR_DEVS_MAX; i++)
		if (e->shared[i])
			destroy(e->shared[i]);
}
