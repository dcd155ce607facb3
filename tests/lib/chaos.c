/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * chaos.c - executes send-queue requests late, in parts and out of order, where a device may
 *
 * Operation:  A post only queues copies. Each poll takes one random step for each queue pair that has work: it posts
 *             the next request, or a random part of the next transfer, to the fabric. RDMA Reads may be overtaken by
 *             later requests without a fence. Requests complete in order, at random polls after their last part; so
 *             the peer's reply may arrive first. Memory that a Read or a message will fill is poisoned at the post.
 *             The bytes of an RDMA Write with immediate go ahead in parts, then once more with the immediate.
 * Memory:     One allocation per request, queue pair and completion queue.
 * Threads:    The owner of the completion queue; a queue pair's first posts may come from another thread, before it
 *             is connected.
 * Errors:     A request that the fabric refuses ends the queue pair; what is behind it is flushed. So are Reads that it
 *             has overtaken. The depth of the send queue is the caller's business.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/list.h"
#include "hooks.h"

#define PARTS_MAX 32u  /* parts of one transfer; a bit each */
#define POISON 0xa5    /* content of a buffer without data */

struct chaos {
	struct rr_filter base;
	uint64_t seed;
	_Atomic uint32_t ncqs;
};

struct chaos_cq {
	struct rr_filter_state state;
	uint64_t rng;
	struct list work; /* queue pairs with requests */
};

struct chaos_qp {
	struct rr_filter_state state;
	struct rr_qp *qp;
	struct list node; /* in the completion queue's work */
	struct list wrs;
	bool dead;
};

/* A posted request. */
struct chaos_wr {
	struct rr_done done;
	struct chaos_qp *cqp;
	struct rr_done *user;
	struct list node;
	struct rr_wr wr;
	bool busy;  /* the fabric has it, or a part of it */
	bool last;  /* ... and that is all of it */
	bool moved; /* executed, or failed with status */
	enum rr_wc_status status;
	uint32_t parts, part_bytes, parts_done; /* a bit per part executed */
	uint32_t part_now;
};

static const char chaos_name[] = "chaos";

static struct chaos *chaos_of(const struct rr_fabric *fabric)
{
	return container_of(rr_filter_find(fabric, chaos_name), struct chaos, base);
}

/* Returns the next number below @below of a seeded sequence (xorshift64*). */
static uint32_t pick(uint64_t *state, uint32_t below)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return (uint32_t)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 32) % below;
}

static struct chaos_cq *cq_of(struct chaos *c, struct rr_cq *cq)
{
	struct rr_filter_state *state = rr_filter_state(cq->states, &c->base);
	struct chaos_cq *ccq;

	if (state)
		return container_of(state, struct chaos_cq, state);
	ccq = calloc(1, sizeof(*ccq));
	if (!ccq)
		return NULL;
	/* a separate seed for each queue, the same in each run */
	ccq->rng = c->seed * UINT64_C(0x9e3779b97f4a7c15) + atomic_fetch_add(&c->ncqs, 1) + 1;
	ccq->rng = ccq->rng ? ccq->rng : 1;
	list_init(&ccq->work);
	rr_filter_keep(&cq->states, &c->base, &ccq->state);
	return ccq;
}

static struct chaos_qp *qp_find(const struct chaos *c, const struct rr_qp *qp)
{
	struct rr_filter_state *state = rr_filter_state(qp->states, &c->base);

	return state ? container_of(state, struct chaos_qp, state) : NULL;
}

static struct chaos_qp *qp_of(struct chaos *c, struct rr_qp *qp)
{
	struct chaos_qp *cqp = qp_find(c, qp);

	if (cqp)
		return cqp;
	cqp = calloc(1, sizeof(*cqp));
	if (!cqp)
		return NULL;
	cqp->qp = qp;
	list_init(&cqp->node);
	list_init(&cqp->wrs);
	rr_filter_keep(&qp->states, &c->base, &cqp->state);
	return cqp;
}

/* ---- posting ---- */

/* Is the SGE registered memory that may be written? The fabric will check it, but only later. */
static void poison(const struct rr_sge *s)
{
	uint64_t off;

	if (s->len && s->mr && s->mr->access & RR_ACCESS_LOCAL_WRITE &&
	    sub_u64((uintptr_t)s->addr, (uintptr_t)s->mr->addr, &off) && range_fits(off, s->len, s->mr->len))
		memset(s->addr, POISON, s->len);
}

static int chaos_recv(struct rr_qp *qp, const struct rr_recv *recv)
{
	poison(&recv->sge);
	return chaos_of(qp->fabric)->base.next->post_recv(qp, recv);
}

static int chaos_srq_post(struct rr_srq *srq, const struct rr_recv *recv)
{
	poison(&recv->sge);
	return chaos_of(srq->fabric)->base.next->srq_post(srq, recv);
}

/* Only its address matters: it marks a struct chaos_wr. chaos_poll() removes them from completions. */
static void on_wr(struct rr_done *done, const struct rr_wc *wc)
{
	(void)done;
	(void)wc;
}

static struct chaos_wr *wr_new(struct chaos_qp *cqp, const struct rr_wr *wr)
{
	struct chaos_wr *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->done.fn = on_wr;
	w->cqp = cqp;
	w->user = wr->done;
	w->wr = *wr;
	if (wr->op == RR_WR_READ)
		poison(&wr->sge);
	return w;
}

static void wr_free(struct chaos_wr *w)
{
	list_del(&w->node);
	free(w);
}

static int chaos_send(struct rr_qp *qp, const struct rr_wr *wr)
{
	struct chaos *c = chaos_of(qp->fabric);
	struct chaos_cq *ccq = cq_of(c, qp->cq);
	struct chaos_qp *cqp = qp_of(c, qp);
	struct list all = LIST_INIT(all);

	if (!ccq || !cqp)
		return -ENOMEM;
	if (cqp->dead)
		return -ENOTCONN;
	for (; wr; wr = wr->next) {
		struct chaos_wr *w = wr_new(cqp, wr);

		if (!w) {
			list_for_each_safe(node, &all)
				wr_free(list_entry(node, struct chaos_wr, node));
			return -ENOMEM;
		}
		list_add_tail(&all, &w->node);
	}
	list_splice_tail(&cqp->wrs, &all);
	if (!list_is_linked(&cqp->node))
		list_add_tail(&ccq->work, &cqp->node);
	return 0;
}

/* ---- execution ---- */

static bool is_transfer(const struct chaos_wr *w)
{
	return w->wr.sge.len && (w->wr.op == RR_WR_WRITE || w->wr.op == RR_WR_WRITE_IMM || w->wr.op == RR_WR_READ);
}

/* Makes @to a random part of the transfer that has not been executed. */
static void pick_part(struct chaos_wr *w, struct rr_wr *to, uint64_t *rng)
{
	uint32_t off, len = w->wr.sge.len;

	if (!w->parts) {
		w->part_bytes = MAX(1u, len / (1 + pick(rng, 8)));
		w->part_bytes = MAX(w->part_bytes, len / PARTS_MAX + 1);
		w->parts = (len + w->part_bytes - 1) / w->part_bytes;
	}
	do {
		w->part_now = pick(rng, w->parts);
	} while (w->parts_done >> w->part_now & 1);
	off = w->part_now * w->part_bytes;
	to->op = w->wr.op == RR_WR_READ ? RR_WR_READ : RR_WR_WRITE;
	to->sge.addr = (uint8_t *)to->sge.addr + off;
	to->sge.len = MIN(w->part_bytes, len - off);
	to->raddr += off;
}

/* Posts a request, or a part of it, to the fabric. */
static void execute(const struct chaos *c, struct chaos_wr *w, uint64_t *rng)
{
	struct rr_wr wr = w->wr;
	bool whole = !is_transfer(w) ||
		     (w->parts && (unsigned)__builtin_popcount(w->parts_done) == w->parts); /* the immediate */
	int rc;

	wr.next = NULL;
	wr.done = &w->done;
	wr.flags |= RR_WR_SIGNALED;
	if (!whole)
		pick_part(w, &wr, rng);
	w->busy = true;
	w->last = whole;
	rc = c->base.next->post_send(w->cqp->qp, &wr);
	if (!rc)
		return;
	w->busy = false;
	w->moved = true;
	w->status = rc == -ENOTCONN ? RR_WC_FLUSHED : RR_WC_LOCAL;
	w->cqp->dead = true;
	c->base.next->qp_disconnect(w->cqp->qp);
}

/* Executes one step of a queue pair, and not always of the first request. */
static void step(const struct chaos *c, struct chaos_qp *cqp, uint64_t *rng)
{
	bool reads = false; /* in progress, in front of the current request */

	list_for_each(node, &cqp->wrs) {
		struct chaos_wr *w = list_entry(node, struct chaos_wr, node);
		bool read = w->wr.op == RR_WR_READ;

		if (w->moved)
			continue;
		if (w->busy && !read)
			return;
		if (w->busy) {
			reads = true;
			continue;
		}
		if (reads && (read || w->wr.flags & RR_WR_FENCE))
			return;
		if (read && pick(rng, 2)) {
			reads = true; /* a later Write or Send may overtake it; Reads keep their order */
			continue;
		}
		execute(c, w, rng);
		return;
	}
}

/* The fabric has executed a request, or a part of it. */
static void executed(struct chaos_wr *w, const struct rr_wc *wc)
{
	w->busy = false;
	if (wc->status != RR_WC_OK) {
		w->status = wc->status;
		w->moved = true;
		w->cqp->dead = true;
		return;
	}
	if (!w->last)
		w->parts_done |= 1u << w->part_now;
	w->moved = w->last || (w->wr.op != RR_WR_WRITE_IMM &&
			       (unsigned)__builtin_popcount(w->parts_done) == w->parts);
}

/* Completes requests in order. Return: the number of completions written to @wc. */
static int complete(struct chaos_qp *cqp, uint64_t *rng, struct rr_wc *wc, int max)
{
	int n = 0;

	while (n < max) {
		struct chaos_wr *w = list_first_entry(&cqp->wrs, struct chaos_wr, node);
		enum rr_wc_status status;

		if (!w || w->busy || (!w->moved && !cqp->dead))
			break;
		if (!w->status && !cqp->dead && pick(rng, 2))
			break;
		status = w->status ? w->status : cqp->dead ? RR_WC_FLUSHED : RR_WC_OK;
		if (status || w->wr.flags & RR_WR_SIGNALED)
			wc[n++] = (struct rr_wc){ .done = w->user, .status = status, .qp = cqp->qp };
		wr_free(w);
	}
	if (list_is_empty(&cqp->wrs))
		list_del(&cqp->node);
	return n;
}

static void run_work(const struct chaos *c, struct chaos_cq *ccq)
{
	uint32_t n = 0;

	list_for_each(node, &ccq->work)
		n++;
	/* start at a random queue pair: rotate the list */
	for (uint32_t skip = n ? pick(&ccq->rng, n) : 0; skip; skip--)
		list_add_tail(&ccq->work, list_pop(&ccq->work));
	list_for_each(node, &ccq->work)
		if (pick(&ccq->rng, 4))
			step(c, list_entry(node, struct chaos_qp, node), &ccq->rng);
}

static int chaos_poll(struct rr_cq *cq, struct rr_wc *wc, int max)
{
	struct chaos *c = chaos_of(cq->fabric);
	struct chaos_cq *ccq = cq_of(c, cq);
	int n, kept = 0;

	if (ccq)
		run_work(c, ccq);
	n = c->base.next->cq_poll(cq, wc, max);
	for (int i = 0; i < n; i++) {
		if (wc[i].done->fn == on_wr)
			executed(container_of(wc[i].done, struct chaos_wr, done), &wc[i]);
		else
			wc[kept++] = wc[i];
	}
	if (ccq)
		list_for_each_safe(node, &ccq->work)
			kept += complete(list_entry(node, struct chaos_qp, node), &ccq->rng, wc + kept, max - kept);
	return kept;
}

static int chaos_arm(struct rr_cq *cq)
{
	struct chaos *c = chaos_of(cq->fabric);
	struct chaos_cq *ccq = cq_of(c, cq);

	return ccq && !list_is_empty(&ccq->work) ? 1 : c->base.next->cq_arm(cq);
}

static void chaos_disconnect(struct rr_qp *qp)
{
	struct chaos *c = chaos_of(qp->fabric);
	struct chaos_qp *cqp = qp_find(c, qp);

	if (cqp)
		cqp->dead = true;
	c->base.next->qp_disconnect(qp);
}

static void chaos_qp_destroy(struct rr_qp *qp)
{
	struct chaos *c = chaos_of(qp->fabric);
	struct rr_filter_state *state = rr_filter_forget(&qp->states, &c->base);
	struct chaos_qp *cqp = state ? container_of(state, struct chaos_qp, state) : NULL;

	c->base.next->qp_destroy(qp);
	if (!cqp)
		return;
	list_for_each_safe(node, &cqp->wrs)
		wr_free(list_entry(node, struct chaos_wr, node));
	list_del(&cqp->node);
	free(cqp);
}

static void chaos_cq_destroy(struct rr_cq *cq)
{
	struct chaos *c = chaos_of(cq->fabric);
	struct rr_filter_state *state = rr_filter_forget(&cq->states, &c->base);

	if (state)
		free(container_of(state, struct chaos_cq, state));
	c->base.next->cq_destroy(cq);
}

static void chaos_free(struct rr_filter *filter)
{
	free(container_of(filter, struct chaos, base));
}

int chaos_push(struct rr_fabric *fabric, uint64_t seed)
{
	struct chaos *c;

	if (rr_filter_find(fabric, chaos_name))
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->base.name = chaos_name;
	c->base.free = chaos_free;
	c->seed = seed;
	rr_filter_push(fabric, &c->base);
	c->base.ops.post_recv = chaos_recv;
	c->base.ops.srq_post = chaos_srq_post;
	c->base.ops.post_send = chaos_send;
	c->base.ops.cq_poll = chaos_poll;
	c->base.ops.cq_arm = chaos_arm;
	c->base.ops.cq_destroy = chaos_cq_destroy;
	c->base.ops.qp_disconnect = chaos_disconnect;
	c->base.ops.qp_destroy = chaos_qp_destroy;
	return 0;
}
