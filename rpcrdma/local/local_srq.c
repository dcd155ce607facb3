/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_srq.c - the local fabric's shared receive queues
 *
 * Operation:  A ring of receives. A message takes the oldest receive when it leaves its queue pair's
 *             ring (local_ring.c). Without a receive it waits in that ring, the queue pair is in the
 *             starved list, and a post wakes it. The messages of one queue pair that are in its ring
 *             or unpolled are bounded by its own rq_depth, as if these were posted receives. So a
 *             peer gets no more room than without a shared queue.
 * Memory:     The ring; posted receives belong to the fabric until their completion, or the queue's end.
 * Threads:    The completion queue's owner; before the first queue pair is up, the creating thread.
 * Errors:     Posts beyond the depth, too short, or not writable are refused.
 */
#include <errno.h>
#include <stdlib.h>

#include "local_int.h"

/* Return: 0, -EINVAL beyond the fabric's limits, -ENOMEM. */
int rr_local_srq_create(struct rr_fabric *fabric, const struct rr_srq_attr *attr,
			struct rr_srq **ret)
{
	struct local_srq *srq;
	uint32_t slots;

	if (attr->depth > fabric->attr.srq_wr_max || attr->recv_bytes > LOCAL_RING_BYTES_MAX)
		return -EINVAL;
	slots = pow2_at_least(attr->depth);
	srq = calloc(1, sizeof(*srq) + slots * sizeof(srq->rqe[0]));
	if (!srq)
		return -ENOMEM;
	srq->base = (struct rr_srq){ .fabric = fabric, .pd = attr->pd, .cq = attr->cq };
	srq->depth = attr->depth;
	srq->mask = slots - 1;
	srq->recv_bytes = attr->recv_bytes;
	list_init(&srq->starved);
	*ret = &srq->base;
	return 0;
}

/** rr_local_srq_destroy - destroys a queue after its queue pairs */
void rr_local_srq_destroy(struct rr_srq *base)
{
	struct local_srq *srq = to_srq(base);

	assert(!atomic_load(&srq->qps) && list_is_empty(&srq->starved));
	free(srq);
}

/* Wakes the queue pair that has waited longest. Each posted receive wakes one. */
static void wake_next(struct local_srq *srq)
{
	struct list *n = list_pop(&srq->starved);

	if (n)
		rr_local_cq_wake(to_cq(srq->base.cq),
				 list_entry(n, struct local_qp, starved_node));
}

/** rr_local_srq_post - posts a receive
 *
 * Return: 0, -ENOMEM if the queue is full, -EINVAL if the buffer is too short or not writable memory
 * of the protection domain.
 */
int rr_local_srq_post(struct rr_srq *base, const struct rr_recv *recv)
{
	struct local_srq *srq = to_srq(base);

	if (recv->sge.len < srq->recv_bytes || !rr_local_sge_ok(base->pd, &recv->sge, true))
		return -EINVAL;
	if (srq->head - srq->tail == srq->depth)
		return -ENOMEM;
	srq->rqe[srq->head++ & srq->mask] = *recv;
	wake_next(srq);
	return 0;
}

/** rr_local_srq_leave - @qp takes no more receives; wakes the next queue pair if receives are left */
void rr_local_srq_leave(struct local_qp *qp)
{
	struct local_srq *srq = to_srq(qp->base.srq);

	list_del(&qp->starved_node);
	if (srq->head != srq->tail)
		wake_next(srq);
}

/** rr_local_srq_take - takes a receive for a message of @qp
 *
 * Return: false: there is no receive, and @qp is in the starved list.
 */
bool rr_local_srq_take(struct local_qp *qp, struct rr_recv *ret)
{
	struct local_srq *srq = to_srq(qp->base.srq);

	if (rr_local_srq_is_empty(qp))
		return false;
	*ret = srq->rqe[srq->tail++ & srq->mask];
	return true;
}

/** rr_local_srq_is_empty - true if its queue has no receive for a message of @qp; then @qp is in the starved list */
bool rr_local_srq_is_empty(struct local_qp *qp)
{
	struct local_srq *srq = to_srq(qp->base.srq);

	if (srq->head != srq->tail)
		return false;
	if (!list_is_linked(&qp->starved_node))
		list_add_tail(&srq->starved, &qp->starved_node);
	return true;
}
