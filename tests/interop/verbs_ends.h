/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_ends.h - two ends of a connection in one process, for verbs_fabric.c
 *
 * Each end has a protection domain, a completion queue, a connection manager and memory of its own.
 * Every wait has a deadline and looks at what it waits for.
 */
#ifndef VERBS_ENDS_H
#define VERBS_ENDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "verbs.h"

#define ADDR "10.77.0.1:20100"
#define RECV_BYTES 4096u
#define NRECV 16u
#define NSEND 32u
#define AREA 65536u

struct op {
	struct rr_done done;
	struct rr_wc wc;
	unsigned fired;
};

struct end {
	struct rr_pd *pd;
	struct rr_cq *cq;
	struct rr_cm *cm;
	struct rr_qp *qp;
	struct rr_mr *local, *remote;   /* the same memory, without and with remote rights */
	uint8_t *mem;
	struct op recv[NRECV], send[NSEND];
	unsigned refuse, sq_depth;
	bool no_recvs;
	struct rr_srq *srq;             /* of its queue pairs; then it has none posted itself ... */
	struct op end;                  /* ... and this for the end of the latest */
	/* what happened */
	unsigned routed, established, failed, requested;
	int status;
	uint8_t priv[256];
	size_t priv_len;
	unsigned depth;
	char peer[64];
};

static struct rr_fabric *fabric;

static void fired(struct rr_done *done, const struct rr_wc *wc)
{
	struct op *op = container_of(done, struct op, done);

	op->wc = *wc;
	op->fired++;
}

static struct op *fresh(struct op *op)
{
	memset(op, 0, sizeof(*op));
	op->done.fn = fired;
	return op;
}

static void post_recv(struct end *e, unsigned i)
{
	struct rr_recv r = { .done = &fresh(&e->recv[i])->done,
			     .sge = { e->mem + i * RECV_BYTES, RECV_BYTES, e->local } };

	assert_int_equal(rr_post_recv(e->qp, &r), 0);
}

static void set_up(struct end *e)
{
	struct rr_qp_attr attr = { .pd = e->pd, .cq = e->cq, .sq_depth = e->sq_depth ? e->sq_depth : NSEND,
				   .rq_depth = NRECV, .recv_bytes = RECV_BYTES,
				   .srq = e->srq, .end = &fresh(&e->end)->done };

	assert_int_equal(rr_qp_setup(e->qp, &attr), 0);
	for (unsigned i = 0; !e->no_recvs && i < NRECV; i++)
		post_recv(e, i);
}

static void on_event(void *ctx, const struct rr_cm_event *ev)
{
	struct end *e = ctx;
	struct rr_conn_param param = { .priv = "active", .priv_len = 6, .initiator_depth = 4,
				       .responder_resources = 16 };

	e->priv_len = ev->priv_len;
	if (ev->priv_len)
		memcpy(e->priv, ev->priv, ev->priv_len);
	switch (ev->type) {
	case RR_CM_ROUTED:
		e->routed++;
		set_up(e);
		assert_int_equal(rr_qp_connect(e->qp, &param), 0);
		break;
	case RR_CM_ESTABLISHED:
		e->established++;
		break;
	case RR_CM_FAILED:
	case RR_CM_REFUSED:
		e->failed++;
		e->status = ev->status;
		break;
	case RR_CM_REQUEST:
		e->requested++;
		e->depth = ev->initiator_depth;
		snprintf(e->peer, sizeof(e->peer), "%s", ev->peer->text);
		if (e->refuse) {
			assert_int_equal(rr_qp_reject(ev->qp), 0);
			rr_qp_destroy(ev->qp);
			break;
		}
		e->qp = ev->qp;
		set_up(e);
		param.priv = "passive";
		param.priv_len = 7;
		param.initiator_depth = ev->initiator_depth < 8 ? ev->initiator_depth : 8;
		param.responder_resources = 4;
		assert_int_equal(rr_qp_accept(ev->qp, &param), 0);
		e->established++;
		break;
	}
}

static unsigned reap(struct end *e)
{
	struct rr_wc wc[8];
	int n = rr_cq_poll(e->cq, wc, 8);

	for (int i = 0; i < n; i++)
		wc[i].done->fn(wc[i].done, &wc[i]);
	return (unsigned)n;
}

static void turn(struct end *a, struct end *b)
{
	rr_cm_process(a->cm);
	rr_cm_process(b->cm);
	reap(a);
	reap(b);
}

/* Both ends run until @what; a test that gets nowhere ends here. */
#define until(a, b, what)                                                                      \
	do {                                                                                   \
		uint64_t give_up = clock_now_ns() + 60 * NS_PER_S;                             \
		while (!(what)) {                                                              \
			turn(a, b);                                                            \
			if (clock_now_ns() > give_up)                                          \
				fail_msg("never: %s", #what);                                  \
		}                                                                              \
	} while (0)

static void end_init(struct end *e)
{
	struct rr_mr_attr attr = { .len = AREA, .access = RR_ACCESS_LOCAL_WRITE, .fd = -1 };

	memset(e, 0, sizeof(*e));
	assert_int_equal(rr_pd_create(fabric, &e->pd), 0);
	assert_int_equal(rr_cq_create(fabric, &e->cq), 0);
	assert_int_equal(rr_cm_create(fabric, on_event, e, &e->cm), 0);
	e->mem = aligned_alloc(4096, AREA);
	assert_non_null(e->mem);
	memset(e->mem, 0, AREA);
	attr.addr = e->mem;
	assert_int_equal(rr_mr_reg(e->pd, &attr, &e->local), 0);
	assert_int_equal(e->local->rkey, 0);
	attr.access |= RR_ACCESS_REMOTE | (fabric->attr.windows ? RR_ACCESS_MW_BIND : 0u);
	assert_int_equal(rr_mr_reg(e->pd, &attr, &e->remote), 0);
	assert_int_not_equal(e->remote->rkey, 0);
}

static void end_fini(struct end *e)
{
	rr_qp_destroy(e->qp);
	assert_int_equal(rr_mr_dereg(e->local), 0);
	assert_int_equal(rr_mr_dereg(e->remote), 0);
	rr_cm_destroy(e->cm);
	rr_cq_destroy(e->cq);
	rr_pd_destroy(e->pd);
	free(e->mem);
}

static void pair_up(struct end *a, struct end *b)
{
	struct rr_listener *l;

	assert_int_equal(rr_listen(b->cm, ADDR, b, &l), 0);
	assert_int_equal(rr_qp_dial(a->cm, ADDR, NULL, &a->qp), 0);
	until(a, b, a->established && b->established);
	rr_unlisten(l);
}

static unsigned flushed(const struct end *e)
{
	unsigned n = 0;

	for (unsigned i = 0; i < NRECV; i++)
		n += e->recv[i].fired && e->recv[i].wc.status == RR_WC_FLUSHED;
	return n;
}

static unsigned ended(const struct end *e)
{
	unsigned n = 0;

	for (unsigned i = 0; i < NRECV; i++) {
		assert_true(e->recv[i].fired <= 1);
		n += e->recv[i].fired;
	}
	return n;
}

/* The way of ep.c: the owner disconnects when it sees the end, and all posted work completes. */
static void part(struct end *a, struct end *b)
{
	rr_qp_disconnect(a->qp);
	until(a, b, ended(a) == NRECV && flushed(b) > 0);
	rr_qp_disconnect(b->qp);
	until(a, b, ended(b) == NRECV);
}

static int send_wr(struct end *e, unsigned i, struct rr_wr *wr, unsigned flags, void *mem, uint32_t len)
{
	wr->done = &fresh(&e->send[i])->done;
	wr->flags = flags;
	if (wr->op != RR_WR_BIND && wr->op != RR_WR_LOCAL_INV)
		wr->sge = (struct rr_sge){ mem, len, e->local };
	return rr_post_send(e->qp, wr);
}

static enum rr_wc_status do_wr(struct end *a, struct end *b, struct rr_wr wr, uint32_t len)
{
	assert_int_equal(send_wr(a, 0, &wr, RR_WR_SIGNALED, a->mem + 32768, len), 0);
	until(a, b, a->send[0].fired);
	return a->send[0].wc.status;
}

#endif
