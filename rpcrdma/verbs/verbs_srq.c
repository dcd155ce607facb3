/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_srq.c - receives that the queue pairs of a completion queue share
 *
 * Operation:  One shared receive queue of the device for each of our completion queues. A receive's
 *             wr_id is [0 | VERBS_SRQ_SLOT 16 | receive 1 | index 31]. The index is that of its
 *             rr_done. It is free again after its completion, since completions arrive in any order.
 *             The completion's queue pair number identifies the connection (verbs_cq.c). Some devices
 *             may lose the receives that a queue pair took and did not complete when it died (not
 *             observed so far): the queue then lacks them until it is created again.
 * Memory:     Tables of @depth entries.
 * Threads:    The completion queue's owner; before the first queue pair is up, the creating thread.
 * Errors:     Posts are counted, and refused when the queue is full or broken.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs_int.h"

static int alloc_tables(struct verbs_srq *srq)
{
	srq->done = calloc(srq->depth, sizeof(struct rr_done *));
	srq->next = calloc(srq->depth, sizeof(*srq->next));
	if (!srq->done || !srq->next)
		return -ENOMEM;
	for (uint32_t i = 0; i < srq->depth; i++)
		srq->next[i] = i + 1;
	return 0;
}

/* Return: 0, -EINVAL beyond the device's limits, -EEXIST if the completion queue has one, -ENOMEM, errors of the
 * device. */
int rr_verbs_srq_create(struct rr_fabric *fabric, const struct rr_srq_attr *attr,
			struct rr_srq **ret)
{
	struct verbs_cq *cq = to_cq(attr->cq);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = attr->depth, .max_sge = 1 } };
	struct verbs_srq *srq;
	int rc;

	if (attr->depth > fabric->attr.srq_wr_max)
		return -EINVAL;
	if (cq->srq)
		return -EEXIST;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srq->base = (struct rr_srq){ .fabric = fabric, .pd = attr->pd, .cq = attr->cq };
	srq->depth = attr->depth;
	rc = alloc_tables(srq);
	if (rc)
		goto fail;
	srq->srq = ibv_create_srq(to_pd(attr->pd)->pd, &init);
	if (!srq->srq) {
		rc = verbs_err(errno);
		goto fail;
	}
	pthread_mutex_lock(&cq->lock);
	cq->srq = srq;
	pthread_mutex_unlock(&cq->lock);
	*ret = &srq->base;
	return 0;
fail:
	free(srq->done);
	free(srq->next);
	free(srq);
	return rc;
}

/** rr_verbs_srq_destroy - destroys a queue after its queue pairs */
void rr_verbs_srq_destroy(struct rr_srq *base)
{
	struct verbs_srq *srq = to_srq(base);

	(void)ibv_destroy_srq(srq->srq); /* fails if the kernel kept one of its queue pairs */
	rr_verbs_cq_unshare(to_cq(base->cq));
	free(srq->done);
	free(srq->next);
	free(srq);
}

/** rr_verbs_srq_post - posts a receive
 *
 * Return: 0, -ENOMEM if the queue is full, -ENOTCONN if its device is lost, errors of the device.
 */
int rr_verbs_srq_post(struct rr_srq *base, const struct rr_recv *recv)
{
	struct verbs_srq *srq = to_srq(base);
	struct ibv_sge sge = verbs_sge(&recv->sge);
	uint32_t i = srq->free;
	struct ibv_recv_wr wr = {
		.wr_id = (uint64_t)VERBS_SRQ_SLOT << 32 | (uint32_t)~VERBS_INDEX | i,
		.sg_list = &sge,
		.num_sge = 1,
	}, *bad;
	int rc;

	if (atomic_load_explicit(&to_cq(base->cq)->broken, memory_order_relaxed))
		return -ENOTCONN;
	if (i >= srq->depth)
		return -ENOMEM;
	rc = ibv_post_srq_recv(srq->srq, &wr, &bad);
	if (rc)
		return verbs_err(rc);
	srq->free = srq->next[i];
	srq->done[i] = recv->done;
	return 0;
}

/** rr_verbs_srq_take - returns the receive of a completion
 *
 * Return: NULL if it is not outstanding.
 */
struct rr_done *rr_verbs_srq_take(struct verbs_srq *srq, uint32_t index)
{
	struct rr_done *done;

	if (!srq || index >= srq->depth || !srq->done[index])
		return NULL;
	done = srq->done[index];
	srq->done[index] = NULL;
	srq->next[index] = srq->free;
	srq->free = index;
	return done;
}

/** rr_verbs_srq_take_any - takes a receive from a queue that will complete none of them; NULL: none is left */
struct rr_done *rr_verbs_srq_take_any(struct verbs_srq *srq)
{
	for (uint32_t i = 0; srq && i < srq->depth; i++)
		if (srq->done[i])
			return rr_verbs_srq_take(srq, i);
	return NULL;
}
