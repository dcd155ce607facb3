/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_qp.c - queue pairs of the verbs fabric: set up, post, count, end
 *
 * Operation:  qp_setup reserves room in the completion queue and creates the queue pair with exactly the
 *             requested depths. A post first counts, and refuses what does not fit, since not every
 *             device detects an overrun. Chains are converted in batches on the stack.
 *
 *             The end: the owner (qp_disconnect), the event thread or the device moves the queue pair
 *             to the error state, and the flushed receives inform the owner. The owner then
 *             disconnects, which moves it there once more, since receives that it posted in between
 *             might otherwise not be flushed (QUIRK_LATE_RECV). After the last completion the owner
 *             destroys windows, identifier and queue pair.
 * Memory:     The rings hold the rr_done of outstanding requests.
 * Threads:    verbs_int.h.
 * Errors:     If the device refuses a chain half-way, the queue pair ends and the post fails: the
 *             accepted requests are not carried out, or are flushed. Objects that the kernel fails to
 *             destroy are kept until the process ends, with all that their events refer to (also in verbs_cq.c).
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "verbs_int.h"

/** rr_verbs_qp_new - creates a queue pair around an identifier, not yet set up
 *
 * Return: 0 or -ENOMEM; then the identifier is still the caller's.
 */
int rr_verbs_qp_new(struct rr_fabric *fabric, struct rdma_cm_id *id, struct verbs_qp **ret)
{
	struct verbs_qp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return -ENOMEM;
	qp->base.fabric = fabric;
	qp->base.reach = RPCRDMA_REACH_DEVICE;
	qp->id = id;
	id->context = qp;
	list_init(&qp->cm_node);
	list_init(&qp->ended_node);
	pthread_mutex_init(&qp->lock, NULL);
	for (unsigned i = 0; i < VERBS_MW_BUCKETS; i++)
		list_init(&qp->bound[i]);
	*ret = qp;
	return 0;
}

static int alloc_rings(struct verbs_qp *qp)
{
	qp->sq_mask = pow2_at_least(qp->sq_depth) - 1;
	qp->rq_mask = pow2_at_least(qp->rq_depth) - 1;
	qp->sq = calloc((size_t)qp->sq_mask + 1, sizeof(struct rr_done *));
	qp->rq = calloc((size_t)qp->rq_mask + 1, sizeof(struct rr_done *));
	return qp->sq && qp->rq ? 0 : -ENOMEM;
}

static void free_rings(struct verbs_qp *qp)
{
	free(qp->sq);
	free(qp->rq);
	qp->sq = qp->rq = NULL;
}

static int create_qp(struct verbs_qp *qp, const struct rr_qp_attr *attr)
{
	struct ibv_cq *cq = to_cq(attr->cq)->parts[qp->part].cq;
	struct ibv_qp_init_attr init = {
		.qp_context = qp,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = attr->sq_depth,
			 .max_recv_wr = attr->rq_depth,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	if (attr->srq) {
		init.srq = to_srq(attr->srq)->srq;
		init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
	}
	qp->id->verbs = to_fabric(qp->base.fabric)->ctx; /* where rdma_create_qp() creates it */
	return rdma_create_qp(qp->id, to_pd(attr->pd)->pd, &init) ? verbs_err(errno) : 0;
}

/** rr_verbs_qp_setup - creates the queues of a dialled or requested queue pair
 *
 * Return: 0, -EINVAL beyond the device's limits or when repeated, -ENOMEM, errors of the device.
 */
int rr_verbs_qp_setup(struct rr_qp *base, const struct rr_qp_attr *attr)
{
	struct verbs_qp *qp = to_qp(base);
	const struct rr_fabric_attr *max = &base->fabric->attr;
	int rc;

	if (base->cq || qp->phase != PHASE_ROUTED || attr->sq_depth > max->qp_wr_max ||
	    attr->rq_depth > max->qp_wr_max)
		return -EINVAL;
	qp->sq_depth = attr->sq_depth;
	qp->rq_depth = attr->rq_depth;
	base->srq = attr->srq;
	qp->end = attr->end;
	rc = alloc_rings(qp);
	if (rc)
		goto out_rings;
	rc = rr_verbs_cq_attach(to_cq(attr->cq), qp);
	if (rc)
		goto out_rings;
	rc = create_qp(qp, attr);
	if (rc)
		goto out_detach;
	base->pd = attr->pd;
	base->cq = attr->cq;
	if (base->srq)
		rr_verbs_cq_number(to_cq(base->cq), qp);
	return 0;
out_detach:
	rr_verbs_cq_detach(to_cq(attr->cq), qp);
out_rings:
	free_rings(qp);
	base->srq = NULL;
	return rc;
}

/* ---- the end ------------------------------------------------------------------------------------ */

static bool to_error(struct verbs_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	bool tell = false;

	pthread_mutex_lock(&qp->lock);
	if (!qp->gone && qp->id->qp) {
		(void)ibv_modify_qp(qp->id->qp, &attr, IBV_QP_STATE); /* fails only if the device is lost */
		tell = qp->base.srq && atomic_load(&qp->up);
	}
	pthread_mutex_unlock(&qp->lock);
	return tell;
}

/** rr_verbs_qp_to_error - any thread: flushes all outstanding requests, and reports the end */
void rr_verbs_qp_to_error(struct verbs_qp *qp)
{
	atomic_store(&qp->over, true);
	if (to_error(qp))
		rr_verbs_cq_ended(to_cq(qp->base.cq), qp);
}

/** rr_verbs_qp_disconnect - moves to the error state; completions of all posted work follow */
void rr_verbs_qp_disconnect(struct rr_qp *base)
{
	struct verbs_qp *qp = to_qp(base);

	if (qp->closed)
		return;
	qp->closed = true;
	if (!atomic_load(&qp->up))
		return;
	atomic_store(&qp->leaving, true);
	rr_verbs_qp_to_error(qp);
	/* informs the peer; fails if the peer disconnected first, or if the handshake is not complete: then the event
	 * thread does it later */
	(void)rdma_disconnect(qp->id);
}

/** rr_verbs_qp_destroy - destroys windows, identifier, queue pair; blocks until its events are handled
 *
 * The identifier goes first. librdmacm modifies its queue pair when it takes an event (a peer that rejects
 * an accepted connection), in the thread that takes it and without our lock. A queue pair that is
 * destroyed at that time is busy and remains, or is modified after it was freed.
 */
void rr_verbs_qp_destroy(struct rr_qp *base)
{
	struct verbs_qp *qp = to_qp(base);
	struct ibv_qp *queues;
	int rc = 0;

	pthread_mutex_lock(&qp->lock);
	qp->gone = true;
	pthread_mutex_unlock(&qp->lock);
	rr_verbs_mw_free_all(qp);
	queues = qp->id->qp;
	(void)rdma_destroy_id(qp->id);
	if (queues)
		rc = ibv_destroy_qp(queues);
	if (base->cq)
		rr_verbs_cq_detach(to_cq(base->cq), qp);
	list_del(&qp->cm_node);
	free_rings(qp);
	if (rc)
		return;
	pthread_mutex_destroy(&qp->lock);
	free(qp);
}

/* ---- posting -------------------------------------------------------------------------------------- */

static bool is_dead(const struct verbs_qp *qp)
{
	return qp->closed ||
	       atomic_load_explicit(&to_cq(qp->base.cq)->broken, memory_order_relaxed);
}

/** rr_verbs_post_recv - posts one receive buffer
 *
 * Return: 0, -ENOMEM if the queue is full, -ENOTCONN, errors of the device.
 */
int rr_verbs_post_recv(struct rr_qp *base, const struct rr_recv *recv)
{
	struct verbs_qp *qp = to_qp(base);
	struct ibv_sge sge = verbs_sge(&recv->sge);
	struct ibv_recv_wr wr = {
		.wr_id = qp->tag | (uint32_t)~VERBS_INDEX | (qp->rq_head & VERBS_INDEX),
		.sg_list = &sge,
		.num_sge = 1,
	}, *bad;
	int rc;

	if (is_dead(qp))
		return -ENOTCONN;
	if (qp->rq_head - qp->rq_tail == qp->rq_depth)
		return -ENOMEM;
	qp->rq[qp->rq_head & qp->rq_mask] = recv->done;
	rc = ibv_post_recv(qp->id->qp, &wr, &bad);
	if (rc)
		return verbs_err(rc);
	qp->rq_head++;
	return 0;
}

static unsigned send_flags(const struct rr_wr *wr)
{
	return (wr->flags & RR_WR_SIGNALED ? IBV_SEND_SIGNALED : 0u) |
	       (wr->flags & RR_WR_FENCE ? IBV_SEND_FENCE : 0u);
}

/* Converts one request, with room for its entry at @sge. Windows change their state here. */
static int convert(struct verbs_qp *qp, const struct rr_wr *wr, struct ibv_send_wr *out,
		   struct ibv_sge *sge)
{
	struct verbs_mw *mw;

	*sge = verbs_sge(&wr->sge);
	/* some devices treat an entry of length 0 as 2 GiB */
	*out = (struct ibv_send_wr){ .sg_list = sge, .num_sge = wr->sge.len > 0, .send_flags = send_flags(wr) };
	switch (wr->op) {
	case RR_WR_SEND:
		out->opcode = IBV_WR_SEND;
		return 0;
	case RR_WR_SEND_INV:
		out->opcode = IBV_WR_SEND_WITH_INV;
		out->invalidate_rkey = wr->rkey;
		return 0;
	case RR_WR_WRITE:
	case RR_WR_WRITE_IMM:
	case RR_WR_READ:
		out->opcode = wr->op == RR_WR_READ	? IBV_WR_RDMA_READ :
			      wr->op == RR_WR_WRITE_IMM ? IBV_WR_RDMA_WRITE_WITH_IMM :
							  IBV_WR_RDMA_WRITE;
		if (wr->op == RR_WR_WRITE_IMM)
			out->imm_data = htobe32(wr->imm);
		out->wr.rdma.remote_addr = wr->raddr;
		out->wr.rdma.rkey = wr->rkey;
		return 0;
	case RR_WR_BIND:
		out->opcode = IBV_WR_BIND_MW;
		return rr_verbs_mw_bind(qp, wr, out);
	case RR_WR_LOCAL_INV:
		mw = rr_verbs_mw_find(qp, wr->rkey);
		if (!mw)
			return -EINVAL;
		list_del(&mw->node);
		out->opcode = IBV_WR_LOCAL_INV;
		out->invalidate_rkey = wr->rkey;
		return 0;
	}
	return -EINVAL;
}

/* After binds were posted: stores the new keys, from which the library derives the next ones. */
static void set_keys(const struct ibv_send_wr *out, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (out[i].opcode == IBV_WR_BIND_MW)
			out[i].bind_mw.mw->rkey = out[i].bind_mw.rkey;
}

/* Converts and posts as many requests, from *wr on, as fit one batch. */
static int post_batch(struct verbs_qp *qp, const struct rr_wr **wr)
{
	struct ibv_send_wr out[VERBS_WR_BATCH], *bad = NULL;
	struct ibv_sge sge[VERBS_WR_BATCH];
	unsigned n = 0;
	int rc;

	for (; *wr && n < VERBS_WR_BATCH; *wr = (*wr)->next, n++) {
		rc = convert(qp, *wr, &out[n], &sge[n]);
		if (rc)
			return rc;
		out[n].wr_id = qp->tag | ((qp->sq_head + n) & VERBS_INDEX);
		qp->sq[(qp->sq_head + n) & qp->sq_mask] = (*wr)->done;
		if (n)
			out[n - 1].next = &out[n];
	}
	rc = ibv_post_send(qp->id->qp, out, &bad);
	if (rc) {
		/* requests before the bad one are posted and will be flushed */
		qp->sq_head += bad ? (uint32_t)(bad - out) : 0;
		return verbs_err(rc);
	}
	set_keys(out, n);
	qp->sq_head += n;
	return 0;
}

/** rr_verbs_post_send - posts a chain
 *
 * Return: 0, -ENOMEM if the queue has no room for the chain, -EINVAL beyond the limits of the queue
 * pair or for a window in the wrong state, -EOPNOTSUPP, -ENOTCONN, errors of the device.
 */
int rr_verbs_post_send(struct rr_qp *base, const struct rr_wr *wr)
{
	struct verbs_qp *qp = to_qp(base);
	bool windows = false;
	uint32_t n = 0, before = qp->sq_head;
	int rc;

	if (is_dead(qp) || !atomic_load_explicit(&qp->up, memory_order_relaxed))
		return -ENOTCONN;
	for (const struct rr_wr *w = wr; w; w = w->next, n++) {
		if (!w->done || w->sge.len > base->fabric->attr.msg_bytes_max)
			return -EINVAL;
		if (w->op == RR_WR_SEND_INV && !base->fabric->attr.send_inv)
			return -EOPNOTSUPP;
		windows |= w->op == RR_WR_BIND || w->op == RR_WR_LOCAL_INV;
	}
	if (n > qp->sq_depth - (qp->sq_head - qp->sq_tail))
		return -ENOMEM;
	while (wr) {
		rc = post_batch(qp, &wr);
		if (!rc)
			continue;
		if (windows || qp->sq_head != before)
			rr_verbs_qp_to_error(qp);
		return rc;
	}
	return 0;
}
