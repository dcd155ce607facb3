/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_qp.c - queue pairs of the verbs fabric: set up, post, count, end
 *
 * Operation:  qp_setup reserves room in the completion queue and makes the queue pair of exactly the
 *             depths asked for. A post counts first: what does not fit is refused, since not every
 *             device notices. Chains are converted in batches on the stack.
 *
 *             The end: whoever is first (the owner by qp_disconnect, the event thread, the device)
 *             moves the queue pair to the error state; the flushed receives tell the owner; he
 *             disconnects, which moves it there once more, since what he posted in between might
 *             not be flushed otherwise (QUIRK_LATE_RECV); after the last completion he destroys:
 *             windows, identifier, queue pair.
 * Memory:     The rings hold the rr_done of what is outstanding.
 * Threads:    verbs_int.h.
 * Errors:     A chain that the device refuses half-way ends the queue pair, and the post fails: what
 *             was taken is never carried out, or flushed. What the kernel does not destroy stays until
 *             the process ends, and with it what its events name (so in verbs_cq.c).
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "verbs_int.h"

/** rr_verbs_qp_new - a queue pair around an identifier, not yet set up
 *
 * Return: 0 or -ENOMEM; then the identifier is still the caller's.
 */
int rr_verbs_qp_new(struct rr_fabric *fabric, struct rdma_cm_id *id, struct verbs_qp **ret)
{
	struct verbs_qp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return -ENOMEM;
	qp->base.fabric = fabric;
	qp->id = id;
	id->context = qp;
	list_init(&qp->cm_node);
	list_init(&qp->ended_node);
	rr_verbs_mutex_init(&qp->lock);
	for (unsigned i = 0; i < VERBS_MW_BUCKETS; i++)
		list_init(&qp->bound[i]);
	*ret = qp;
	return 0;
}

static uint32_t pow2_at_least(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
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

/* Inline room is a wish: a device that cannot have so much is asked for less. */
static int create_qp(struct verbs_qp *qp, struct rr_qp_attr *attr)
{
	struct verbs_cq *cq = to_cq(attr->cq);
	struct ibv_qp_init_attr init;

	for (;;) {
		init = (struct ibv_qp_init_attr){
			.qp_context = qp,
			.send_cq = cq->parts[qp->part].cq,
			.recv_cq = cq->parts[qp->part].cq,
			.cap = { .max_send_wr = attr->sq_depth,
				 .max_recv_wr = attr->rq_depth,
				 .max_send_sge = attr->sge_max,
				 .max_recv_sge = 1,
				 .max_inline_data = attr->inline_max },
			.qp_type = IBV_QPT_RC,
		};
		if (attr->srq) {
			init.srq = to_srq(attr->srq)->srq;
			init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
		}
		if (!rdma_create_qp(qp->id, to_pd(attr->pd)->pd, &init))
			break;
		if (!attr->inline_max)
			return verbs_err(errno);
		attr->inline_max /= 2;
	}
	attr->inline_max = MIN(attr->inline_max, init.cap.max_inline_data);
	return 0;
}

/** rr_verbs_qp_setup - give a dialled or requested queue pair its queues
 *
 * Return: 0, -EINVAL beyond the device's limits or when repeated, -ENOMEM, what the device said.
 */
int rr_verbs_qp_setup(struct rr_qp *base, struct rr_qp_attr *attr)
{
	struct verbs_qp *qp = to_qp(base);
	const struct rr_fabric_attr *max = &base->fabric->attr;
	int rc;

	if (base->cq || qp->phase != PHASE_ROUTED || attr->sq_depth > max->qp_wr_max ||
	    attr->rq_depth > max->qp_wr_max || attr->sge_max > max->sge_max)
		return -EINVAL;
	qp->sq_depth = attr->sq_depth;
	qp->rq_depth = attr->rq_depth;
	qp->sge_max = attr->sge_max;
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
	qp->inline_max = attr->inline_max;
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
		(void)ibv_modify_qp(qp->id->qp, &attr, IBV_QP_STATE); /* fails only if it is lost */
		tell = qp->base.srq && atomic_load(&qp->up);
	}
	pthread_mutex_unlock(&qp->lock);
	return tell;
}

/** rr_verbs_qp_to_error - any thread: whatever is outstanding is to be flushed, its end be told */
void rr_verbs_qp_to_error(struct verbs_qp *qp)
{
	if (to_error(qp))
		rr_verbs_cq_ended(to_cq(qp->base.cq), qp);
}

/** rr_verbs_qp_disconnect - to the error state; completions of all posted work follow */
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
	/* tells the peer; fails if he told us first, or if his last word of the handshake is still on
	 * its way: then the event thread tells him when it is there */
	(void)rdma_disconnect(qp->id);
}

/** rr_verbs_qp_destroy - windows, identifier, queue pair; blocks until events of it are handled
 *
 * The identifier first: librdmacm modifies its queue pair by itself when it takes an event (a peer that
 * rejects what it had let in), in the thread that takes it and without our lock. A queue pair that is
 * destroyed meanwhile is busy, and stays, or is modified after it is gone.
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

static struct ibv_sge sge_of(const struct rr_sge *s)
{
	return (struct ibv_sge){ .addr = (uintptr_t)s->addr,
				 .length = s->len,
				 .lkey = s->mr ? to_mr(s->mr)->mr->lkey : 0 };
}

/** rr_verbs_post_recv - post one receive buffer
 *
 * Return: 0, -ENOMEM if the queue is full, -ENOTCONN, what the device said.
 */
int rr_verbs_post_recv(struct rr_qp *base, const struct rr_recv *recv)
{
	struct verbs_qp *qp = to_qp(base);
	struct ibv_sge sge = sge_of(&recv->sge);
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

static int check_wr(const struct verbs_qp *qp, const struct rr_wr *wr)
{
	uint64_t len = 0;

	if (wr->nsge > qp->sge_max || !wr->done)
		return -EINVAL;
	for (unsigned i = 0; i < wr->nsge; i++)
		len += wr->sge[i].len;
	if (len > qp->base.fabric->attr.msg_bytes_max)
		return -EINVAL;
	if (wr->flags & RR_WR_INLINE && (len > qp->inline_max || wr->op == RR_WR_READ))
		return -EINVAL;
	if (wr->op == RR_WR_SEND_INV && !qp->base.fabric->attr.send_inv)
		return -EOPNOTSUPP;
	return 0;
}

static unsigned send_flags(const struct rr_wr *wr)
{
	return (wr->flags & RR_WR_SIGNALED ? IBV_SEND_SIGNALED : 0u) |
	       (wr->flags & RR_WR_FENCE ? IBV_SEND_FENCE : 0u) |
	       (wr->flags & RR_WR_INLINE ? IBV_SEND_INLINE : 0u);
}

/* One request, with room for its entries at @sge. Windows change their state here. */
static int convert(struct verbs_qp *qp, const struct rr_wr *wr, struct ibv_send_wr *out,
		   struct ibv_sge *sge)
{
	struct verbs_mw *mw;
	int n = 0;

	*out = (struct ibv_send_wr){ .sg_list = sge, .send_flags = send_flags(wr) };
	/* an entry of no length means 2 GiB to some devices */
	for (unsigned i = 0; i < wr->nsge; i++)
		if (wr->sge[i].len)
			sge[n++] = sge_of(&wr->sge[i]);
	out->num_sge = n;
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

/* The binds of a batch have been posted: the key that the library counts from is the new one. */
static void set_keys(const struct ibv_send_wr *out, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (out[i].opcode == IBV_WR_BIND_MW)
			out[i].bind_mw.mw->rkey = out[i].bind_mw.rkey;
}

/* Converts as many as fit one batch, from *wr on, and posts them. */
static int post_batch(struct verbs_qp *qp, const struct rr_wr **wr)
{
	struct ibv_send_wr out[VERBS_WR_BATCH], *bad = NULL;
	struct ibv_sge sge[VERBS_SGE_BATCH];
	unsigned n = 0, nsge = 0;
	int rc;

	for (; *wr && n < VERBS_WR_BATCH && nsge + (*wr)->nsge <= VERBS_SGE_BATCH;
	     *wr = (*wr)->next, n++) {
		rc = convert(qp, *wr, &out[n], &sge[nsge]);
		if (rc)
			return rc;
		nsge += (*wr)->nsge;
		out[n].wr_id = qp->tag | ((qp->sq_head + n) & VERBS_INDEX);
		qp->sq[(qp->sq_head + n) & qp->sq_mask] = (*wr)->done;
		if (n)
			out[n - 1].next = &out[n];
	}
	rc = ibv_post_send(qp->id->qp, out, &bad);
	if (rc) {
		/* those before the bad one are posted and will be flushed */
		qp->sq_head += bad ? (uint32_t)(bad - out) : 0;
		return verbs_err(rc);
	}
	set_keys(out, n);
	qp->sq_head += n;
	return 0;
}

/** rr_verbs_post_send - post a chain
 *
 * Return: 0, -ENOMEM if the queue has not room for the chain, -EINVAL beyond the limits of the queue
 * pair or for a window in the wrong state, -EOPNOTSUPP, -ENOTCONN, what the device said.
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
		rc = check_wr(qp, w);
		if (rc)
			return rc;
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
