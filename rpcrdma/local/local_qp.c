/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_qp.c - the local fabric's queue pairs: posting, execution, completion, termination
 *
 * Operation:  A post copies the request into its queue and runs the engine (run_moves, then
 *             run_completions). An entry is *moved* when its bytes or its effect have been
 *             transferred. Entries move strictly in the order of posting, except that RDMA Reads may
 *             still be in progress when later requests without a fence move. Entries *complete* in
 *             order: when an entry is moved, the peer has replied to its requests, and its time has
 *             come (rate hook). Normally all this is finished when the post returns. An unfinished
 *             entry (a busy agent, a rate) stays on the completion queue's
 *             work list, and every poll runs it again.
 * Memory:     qp_setup allocates everything. The completion ring has room for every entry of both
 *             queues, so a completion can always be written.
 * Threads:    The owner of the completion queue. Before the connection is up: any one thread.
 * Errors:     The first failing request completes with its status and everything else is flushed
 *             (rr_local_qp_kill). The peer sees the `closed` word, or the hang-up.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "local_int.h"

/** rr_local_qp_new - creates an empty queue pair, not yet set up
 *
 * Return: 0 or -ENOMEM.
 */
int rr_local_qp_new(struct rr_fabric *fabric, struct local_qp **ret)
{
	struct local_fabric *f = to_fabric(fabric);
	struct local_qp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return -ENOMEM;
	qp->base.fabric = fabric;
	qp->sock = -1;
	list_init(&qp->cm_node);
	list_init(&qp->cq_node);
	list_init(&qp->ready_node);
	list_init(&qp->work_node);
	list_init(&qp->pd_node);
	list_init(&qp->starved_node);
	qp->base.qpn = atomic_fetch_add(&f->next_qpn, 1) & 0xffffff;
	atomic_fetch_add(&f->conns, 1);
	pthread_mutex_lock(&f->lock);
	list_add_tail(&f->qps, &qp->fabric_node);
	pthread_mutex_unlock(&f->lock);
	*ret = qp;
	return 0;
}

/* One block for all queues. Not zeroed: an entry is written before it is read, and a connection with few messages on
 * their way touches a page of each. */
static int alloc_queues(struct local_qp *qp)
{
	size_t sq = pow2_at_least(qp->sq_depth), rq = pow2_at_least(qp->rq_depth);
	size_t cq = pow2_at_least(qp->sq_depth + qp->rq_depth + 1); /* plus qp->end */

	qp->sqe = malloc(sq * sizeof(*qp->sqe) + rq * sizeof(*qp->rqe) + cq * sizeof(*qp->cqe));
	if (!qp->sqe)
		return -ENOMEM;
	qp->rqe = (void *)(qp->sqe + sq);
	qp->cqe = (void *)(qp->rqe + rq);
	qp->sq_mask = (uint32_t)sq - 1;
	qp->rq_mask = (uint32_t)rq - 1;
	qp->cqe_mask = (uint32_t)cq - 1;
	return 0;
}

/** rr_local_qp_setup - allocates the queues of a dialled or requested queue pair
 *
 * Return: 0, -EINVAL beyond the fabric's limits or when repeated, -ENOMEM.
 */
int rr_local_qp_setup(struct rr_qp *base, const struct rr_qp_attr *attr)
{
	struct local_qp *qp = to_qp(base);
	const struct rr_local_limits *l = &to_fabric(base->fabric)->attr.limits;
	int rc;

	if (base->cq || attr->sq_depth > l->sq_max || attr->rq_depth > l->rq_max ||
	    attr->recv_bytes > LOCAL_RING_BYTES_MAX ||
	    rr_local_ring_bytes(attr->rq_depth, attr->recv_bytes) > LOCAL_RING_BYTES_MAX)
		return -EINVAL;
	qp->sq_depth = attr->sq_depth;
	qp->rq_depth = attr->rq_depth;
	qp->my_recv_bytes = attr->recv_bytes;
	if (attr->srq && to_srq(attr->srq)->recv_bytes < attr->recv_bytes)
		return -EINVAL;
	rc = alloc_queues(qp);
	if (rc)
		return rc;
	base->pd = attr->pd;
	base->cq = attr->cq;
	base->srq = attr->srq;
	if (base->srq) {
		qp->end = attr->end;
		atomic_fetch_add(&to_srq(base->srq)->qps, 1);
		rr_local_qp_expect(qp, qp->rq_depth);
	}
	return 0;
}

/** rr_local_qp_expect - with a shared receive queue: allows @messages more messages */
void rr_local_qp_expect(struct local_qp *qp, uint32_t messages)
{
	qp->rq_posted += messages;
	if (qp->phase == PHASE_UP)
		atomic_store_explicit(&qp->me->posted, qp->rq_posted, memory_order_release);
}

/* Flushes the receives, or completes the end of a queue pair with a shared receive queue. */
static void flush_receives(struct local_qp *qp)
{
	if (qp->base.srq) {
		struct rr_wc wc = { .done = qp->end, .status = RR_WC_FLUSHED, .qp = &qp->base };

		rr_local_srq_leave(qp);
		rr_local_qp_complete(qp, &wc, 0, 0);
		return;
	}
	while (qp->rq_taken != qp->rq_posted) {
		const struct rr_recv *r = &qp->rqe[qp->rq_taken & qp->rq_mask];
		struct rr_wc wc = { .done = r->done, .status = RR_WC_FLUSHED };

		qp->rq_taken++;
		rr_local_qp_complete(qp, &wc, 0, 1);
	}
}

/** rr_local_qp_attach - the connection is up: hands the queue pair to the completion queue's owner
 *
 * The calling thread must not use the queue pair afterwards.
 */
void rr_local_qp_attach(struct local_qp *qp)
{
	qp->attached = true;
	qp->phase = PHASE_UP;
	atomic_store(&qp->me->posted, qp->rq_posted);
	rr_local_mem_attach(qp);
	rr_local_cq_add(to_cq(qp->base.cq), qp);
}

/** rr_local_qp_complete - completes a request; the completion waits for a poll
 * @qp: of the request
 * @wc: copied
 * @sq_free: send-queue slots that the poll releases
 * @rq_free: receive-queue slots that the poll releases
 *
 * The caller has taken the request off its queue.
 */
void rr_local_qp_complete(struct local_qp *qp, const struct rr_wc *wc, uint32_t sq_free,
			  uint32_t rq_free)
{
	struct local_cq *cq = to_cq(qp->base.cq);
	struct local_cqe *c;

	if (qp->cqe_head == qp->cqe_tail)
		qp->cqe_head = qp->cqe_tail = 0; /* as in the rings: what is seldom full uses little memory */
	c = &qp->cqe[qp->cqe_head & qp->cqe_mask];
	c->wc = *wc;
	c->wc.qp = &qp->base;
	c->sq_free = sq_free;
	c->rq_free = rq_free;
	qp->cqe_head++;
	if (!list_is_linked(&qp->ready_node))
		list_add_tail(&cq->ready, &qp->ready_node);
	rr_local_cq_signal(cq);
}

static void complete_sqe(struct local_qp *qp, enum rr_wc_status status)
{
	struct local_sqe *e = &qp->sqe[qp->sq_tail & qp->sq_mask];
	struct rr_wc wc = { .done = e->wr.done, .status = status };
	uint32_t give_back = ++qp->sq_unreleased;

	qp->sq_tail++;
	if (status == RR_WC_OK && !(e->wr.flags & RR_WR_SIGNALED))
		return;
	qp->sq_unreleased = 0;
	rr_local_qp_complete(qp, &wc, give_back, 0);
}

/** rr_local_qp_kill - moves to the error state: flushes everything, informs the peer
 *
 * Harmless when repeated, and on a queue pair that was never up.
 */
void rr_local_qp_kill(struct local_qp *qp)
{
	if (qp->phase != PHASE_UP) {
		qp->phase = PHASE_DEAD;
		return;
	}
	qp->phase = PHASE_DEAD;
	rr_local_cq_unwatch(to_cq(qp->base.cq), qp);
	while (qp->sq_tail != qp->sq_head) {
		const struct local_sqe *e = &qp->sqe[qp->sq_tail & qp->sq_mask];

		complete_sqe(qp, e->state == SQE_MOVED && e->status ? e->status : RR_WC_FLUSHED);
	}
	flush_receives(qp);
	list_del(&qp->work_node);
	atomic_store(&qp->me->closed, 1);
	rr_local_ring_bell(qp);
}

/** rr_local_qp_hostile - the peer violated the shared memory protocol: ends only this connection */
void rr_local_qp_hostile(struct local_qp *qp)
{
	if (qp->phase != PHASE_UP)
		return;
	rr_local_count(qp, hostile, 1);
	rr_local_qp_kill(qp);
}

/** rr_local_qp_disconnect - moves to the error state; completions of all posted work follow */
void rr_local_qp_disconnect(struct rr_qp *base)
{
	struct local_qp *qp = to_qp(base);

	if (qp->phase == PHASE_UP) {
		/* deliver messages that have arrived: a NIC would have completed them by now */
		(void)rr_local_ring_pull(qp);
		rr_local_qp_kill(qp);
		return;
	}
	rr_local_cm_forget(qp);
	if (!qp->attached)
		qp->phase = PHASE_DEAD;
}

/** rr_local_qp_destroy - frees a queue pair that was never up, or after all its work has completed */
void rr_local_qp_destroy(struct rr_qp *base)
{
	struct local_qp *qp = to_qp(base);
	struct local_fabric *f = to_fabric(base->fabric);

	rr_local_cm_forget(qp);
	if (qp->attached) {
		rr_local_qp_kill(qp);
		rr_local_mem_detach(qp);
		rr_local_cq_remove(to_cq(base->cq), qp);
	}
	rr_local_move_fini(qp);
	rr_local_ring_unmap(qp);
	rr_client_put(qp->client);
	if (qp->sock >= 0)
		rr_local_close_sock(f->closer, qp->sock);
	if (base->srq) {
		list_del(&qp->starved_node); /* if it was never up */
		atomic_fetch_sub(&to_srq(base->srq)->qps, 1);
	}
	rr_local_qp_counted(qp);
	atomic_fetch_sub(&f->conns, 1);
	free(qp->sqe);
	free(qp);
}

/* ---- posting ---- */

/** rr_local_sge_ok - true if the region of @s covers it and permits the read or write */
bool rr_local_sge_ok(const struct rr_pd *pd, const struct rr_sge *s, bool write)
{
	const struct rr_mr *mr = s->mr;
	uint64_t off;

	if (!s->len)
		return true;
	if (!mr || mr->pd != pd || (write && !(mr->access & RR_ACCESS_LOCAL_WRITE)))
		return false;
	return sub_u64((uintptr_t)s->addr, (uintptr_t)mr->addr, &off) &&
	       range_fits(off, s->len, mr->len);
}

/** rr_local_post_recv - posts one receive buffer
 *
 * Return: 0, -ENOMEM if the queue is full, -EINVAL if the buffer is shorter than
 * recv_bytes or not writable memory of the protection domain, -ENOTCONN.
 */
int rr_local_post_recv(struct rr_qp *base, const struct rr_recv *recv)
{
	struct local_qp *qp = to_qp(base);
	struct rr_recv *r = &qp->rqe[qp->rq_posted & qp->rq_mask];

	if (qp->phase == PHASE_DEAD)
		return -ENOTCONN;
	if (recv->sge.len < qp->my_recv_bytes || !rr_local_sge_ok(qp->base.pd, &recv->sge, true))
		return -EINVAL;
	if (qp->rq_used == qp->rq_depth)
		return -ENOMEM;
	*r = *recv;
	qp->rq_used++;
	qp->rq_posted++;
	if (qp->phase == PHASE_UP)
		atomic_store_explicit(&qp->me->posted, qp->rq_posted, memory_order_release);
	return 0;
}

static void copy_wr(struct local_qp *qp, const struct rr_wr *wr)
{
	const struct rr_local_link *link = &to_fabric(qp->base.fabric)->attr.link;
	struct local_sqe *e;

	if (qp->sq_head == qp->sq_tail)
		qp->sq_head = qp->sq_tail = 0;
	e = &qp->sqe[qp->sq_head & qp->sq_mask];
	*e = (struct local_sqe){ .wr = *wr };
	if (wr->op == RR_WR_BIND)
		wr->bind.mw->rkey = wr->rkey;
	else if (wr->op != RR_WR_LOCAL_INV && (link->rate_bytes_s || link->op_ns))
		e->due_ns = rr_local_link_due(to_fabric(qp->base.fabric), wr->sge.len);
	qp->sq_used++;
	qp->sq_head++;
}

/** rr_local_post_send - posts a chain, all of it or nothing
 *
 * Return: 0, -ENOMEM if the queue has no room for the chain, -EINVAL beyond the
 * limits of the queue pair, -ENOTCONN.
 */
int rr_local_post_send(struct rr_qp *base, const struct rr_wr *wr)
{
	struct local_qp *qp = to_qp(base);
	struct local_cq *cq = to_cq(base->cq);
	uint32_t n = 0;

	if (qp->phase != PHASE_UP)
		return -ENOTCONN;
	for (const struct rr_wr *w = wr; w; w = w->next, n++)
		if (!w->done || w->sge.len > base->fabric->attr.msg_bytes_max)
			return -EINVAL;
	if (n > qp->sq_depth - qp->sq_used)
		return -ENOMEM;
	rr_local_cq_expect(cq, qp);
	for (; wr; wr = wr->next)
		copy_wr(qp, wr);
	rr_local_qp_run(qp);
	if (qp->phase == PHASE_UP && qp->sq_tail != qp->sq_head) {
		if (!list_is_linked(&qp->work_node))
			list_add_tail(&cq->work, &qp->work_node);
		rr_local_cq_signal(cq); /* a poll or a timer must continue it */
	}
	return 0;
}

/* ---- the engine ---- */

static bool sge_ok(const struct local_qp *qp, const struct local_sqe *e)
{
	return rr_local_sge_ok(qp->base.pd, &e->wr.sge, e->wr.op == RR_WR_READ);
}

/* Moves a Send, or the message of an RDMA Write with immediate after its bytes have been written. */
static void move_send(struct local_qp *qp, struct local_sqe *e)
{
	int room;

	if (e->due_ns && e->due_ns > clock_now_ns())
		return;
	if (e->wr.op != RR_WR_WRITE_IMM && e->wr.sge.len > qp->peer_recv_bytes) {
		e->status = RR_WC_REM_OP;
		e->state = SQE_MOVED;
		return;
	}
	room = rr_local_ring_room(qp);
	if (room < 0) {
		rr_local_qp_hostile(qp);
		return;
	}
	if (room)
		rr_local_ring_send(qp, e);
	else
		e->status = RR_WC_RNR;
	e->state = SQE_MOVED;
}

static void move_transfer(struct local_qp *qp, struct local_sqe *e)
{
	bool again = false;

	if (!sge_ok(qp, e) || (e->wr.op == RR_WR_READ && !qp->read_depth))
		e->status = RR_WC_LOCAL;
	else
		e->status = rr_local_move(qp, e, &again);
	if (!again)
		e->state = SQE_MOVED;
}

/* Moves the bytes, then the message that takes a receive: one operation for its initiator. */
static void move_write_imm(struct local_qp *qp, struct local_sqe *e)
{
	if (!e->written) {
		move_transfer(qp, e);
		if (e->state != SQE_MOVED || e->status)
			return;
		e->written = true;
		e->state = SQE_WAIT;
	}
	move_send(qp, e);
}

static void move_one(struct local_qp *qp, struct local_sqe *e)
{
	switch (e->wr.op) {
	case RR_WR_SEND:
	case RR_WR_SEND_INV:
		if (sge_ok(qp, e)) {
			move_send(qp, e);
			return;
		}
		e->status = RR_WC_LOCAL;
		break;
	case RR_WR_WRITE:
	case RR_WR_READ:
		move_transfer(qp, e);
		return;
	case RR_WR_WRITE_IMM:
		move_write_imm(qp, e);
		return;
	case RR_WR_BIND:
		e->status = rr_local_mem_bind(qp, &e->wr);
		break;
	case RR_WR_LOCAL_INV:
		e->status = rr_local_mem_invalidate(qp, e->wr.rkey) ? RR_WC_OK : RR_WC_LOCAL;
		break;
	}
	e->state = SQE_MOVED;
}

/* Moves all entries that may move now. */
static void run_moves(struct local_qp *qp)
{
	uint32_t reads = 0; /* in progress, before the current entry */

	for (uint32_t i = qp->sq_tail; i != qp->sq_head; i++) {
		struct local_sqe *e = &qp->sqe[i & qp->sq_mask];
		bool read = e->wr.op == RR_WR_READ;

		/* nothing behind a failed entry is executed; a Read in front of it still is, otherwise the failure
		 * could not complete */
		if (e->state == SQE_MOVED && e->status)
			return;
		if (e->state == SQE_MOVED) {
			reads += read && e->reqs;
			continue;
		}
		if ((e->wr.flags & RR_WR_FENCE && reads) || (read && reads && reads >= qp->read_depth))
			return;
		move_one(qp, e);
		if (qp->phase != PHASE_UP)
			return;
		if (e->state != SQE_MOVED || e->status)
			return;
		reads += read && e->reqs;
	}
}

static void run_completions(struct local_qp *qp)
{
	while (qp->phase == PHASE_UP && qp->sq_tail != qp->sq_head) {
		const struct local_sqe *e = &qp->sqe[qp->sq_tail & qp->sq_mask];

		if (e->state != SQE_MOVED || e->reqs)
			return;
		if (e->due_ns && !e->status && e->due_ns > clock_now_ns())
			return;
		if (e->status) {
			rr_local_qp_kill(qp); /* completes it first, with its status */
			return;
		}
		complete_sqe(qp, RR_WC_OK);
	}
}

/** rr_local_qp_run - runs the send queue as far as possible */
void rr_local_qp_run(struct local_qp *qp)
{
	run_moves(qp);
	run_completions(qp);
	if (qp->sq_tail == qp->sq_head)
		list_del(&qp->work_node);
}
