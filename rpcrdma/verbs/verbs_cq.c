/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_cq.c - completion queues of the verbs fabric; maps completions to requests
 *
 * Operation:  One of our queues consists of as many device queues (parts) as its queue pairs need. Each
 *             queue pair reserves an entry for everything that it can post, so an overrun is
 *             impossible, and small users do not pay for large ones. All parts notify one channel.
 *
 *             A wr_id is [generation 16 | slot 16 | receive 1 | count 31]. The slot identifies the
 *             queue pair, the generation shows whether it is still the same one. The count is the
 *             position of the rr_done in its ring. A signalled completion ends all unsignalled
 *             requests before it. A completion that is not outstanding is dropped.
 *
 *             Sleeping: cq_arm() requests an event from every part and then polls once more. It puts
 *             completions into the stash, and tells the caller to poll. An armed part without an
 *             event stays armed. Events are acknowledged in batches, since that takes a lock.
 *
 *             A completion of a shared receive belongs to the queue pair with its number; without one
 *             it returns a flushed receive. A queue pair without receives of its own has no
 *             completion at its end: one is generated, after those that are there (`ended`).
 *
 *             Strangers are queue pairs that are set up but not established: their connection manager's
 *             thread may still destroy them. While there are any, completions are looked up under the
 *             lock. A stranger's completion waits for the accept in progress; if that fails, it is dropped.
 * Memory:     cq_create and qp_setup (parts) allocate everything.
 * Threads:    One owner; attach and detach also by a connection manager's thread (lock).
 * Errors:     broken: the device overran the queue or is lost. Every outstanding request then
 *             completes as RR_WC_FLUSHED.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/epoll.h"
#include "verbs_int.h"

#define WC_BATCH 32
#define DEPTH_MAX (1u << 20) /* entries of all parts */
#define ACK_BATCH 64u
/* Depth of the first part; one entry less is requested, as devices keep one empty and round up to a power of two.
 * Enough for a connection of the default size. */
#define PART_DEPTH_MIN 512u

/** rr_verbs_cq_create - creates a completion queue, which consists of as many device queues as necessary
 *
 * Return: 0, -ENOMEM, -EMFILE, errors of the device.
 */
int rr_verbs_cq_create(struct rr_fabric *fabric, struct rr_cq **ret)
{
	struct verbs_fabric *f = to_fabric(fabric);
	struct verbs_cq *cq = calloc(1, sizeof(*cq));
	int rc;

	if (!cq)
		return -ENOMEM;
	cq->base.fabric = fabric;
	list_init(&cq->node);
	list_init(&cq->ended);
	pthread_mutex_init(&cq->lock, NULL);
	cq->base.fd = epoll_create1(EPOLL_CLOEXEC);
	cq->kickfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = cq->base.fd < 0 || cq->kickfd < 0 ? -errno : epoll_add(cq->base.fd, cq->kickfd, EPOLLIN, NULL);
	if (rc)
		goto fail;
	cq->channel = ibv_create_comp_channel(f->ctx);
	if (!cq->channel) {
		rc = verbs_err(errno);
		goto fail;
	}
	rc = rr_verbs_nonblock(cq->channel->fd);
	if (!rc)
		rc = epoll_add(cq->base.fd, cq->channel->fd, EPOLLIN, NULL);
	if (rc)
		goto fail;
	pthread_mutex_lock(&f->lock);
	list_add_tail(&f->cqs, &cq->node);
	pthread_mutex_unlock(&f->lock);
	*ret = &cq->base;
	return 0;
fail:
	rr_verbs_cq_destroy(&cq->base);
	return rc;
}

/** rr_verbs_cq_destroy - destroys a queue after its queue pairs */
void rr_verbs_cq_destroy(struct rr_cq *base)
{
	struct verbs_cq *cq = to_cq(base);
	struct verbs_fabric *f = to_fabric(base->fabric);
	unsigned n = atomic_load(&cq->nparts);
	bool stays = false;

	pthread_mutex_lock(&f->lock);
	list_del(&cq->node);
	pthread_mutex_unlock(&f->lock);
	for (unsigned i = 0; i < n; i++) {
		struct verbs_part *p = &cq->parts[i];

		assert(!p->reserved);
		if (p->unacked)
			ibv_ack_cq_events(p->cq, p->unacked);
		p->unacked = 0;
		stays |= ibv_destroy_cq(p->cq) != 0;
	}
	if (stays)
		return;
	if (cq->channel)
		ibv_destroy_comp_channel(cq->channel);
	if (cq->kickfd >= 0)
		close(cq->kickfd);
	if (cq->base.fd >= 0)
		close(cq->base.fd);
	pthread_mutex_destroy(&cq->lock);
	free(cq);
}

static void kick(struct verbs_cq *cq)
{
	(void)eventfd_write(cq->kickfd, 1); /* a full counter is readable too, which is sufficient */
}

static void take_kick(struct verbs_cq *cq)
{
	eventfd_t count;

	(void)eventfd_read(cq->kickfd, &count); /* only to clear readability */
}

/** rr_verbs_cq_break - event thread: marks a queue that delivers no more completions. fabric->lock, or an
 * unacknowledged event of it, prevents its destruction */
void rr_verbs_cq_break(struct verbs_cq *cq)
{
	atomic_store(&cq->broken, true);
	kick(cq);
}

/** rr_verbs_cq_ended - any thread: a queue pair without receives of its own is in the error state */
void rr_verbs_cq_ended(struct verbs_cq *cq, struct verbs_qp *qp)
{
	pthread_mutex_lock(&cq->lock);
	if (!qp->end_told) {
		qp->end_told = true;
		list_add_tail(&cq->ended, &qp->ended_node);
		atomic_fetch_add(&cq->nended, 1);
		kick(cq); /* under the lock: no kick may remain after the last end is reported */
	}
	pthread_mutex_unlock(&cq->lock);
}

/* ---- attach and detach ----------------------------------------------------------------------- */

/* Entries of a part that a queue pair needs: for its queues, and for all receives of the shared queue, which may
 * complete there. */
static unsigned needed(const struct verbs_cq *cq, const struct verbs_qp *qp,
		       const struct verbs_part *p)
{
	if (!qp->base.srq)
		return qp->sq_depth + qp->rq_depth;
	return qp->sq_depth + (p && p->shared ? 0 : cq->srq->depth);
}

/* Finds or creates a part with room for @qp; under the lock. */
static int find_part(struct verbs_cq *cq, const struct verbs_qp *qp, unsigned *ret)
{
	struct verbs_fabric *f = to_fabric(cq->base.fabric);
	unsigned n = atomic_load(&cq->nparts), need = needed(cq, qp, NULL), total = need, depth;
	struct verbs_part *p;

	for (unsigned i = 0; i < n; i++)
		total += cq->parts[i].reserved;
	if (total > DEPTH_MAX)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		p = &cq->parts[i];
		if (p->depth - p->reserved >= needed(cq, qp, p)) {
			*ret = i;
			return 0;
		}
	}
	if (n == VERBS_CQ_PARTS)
		return -ENOMEM;
	/* each is larger than the last, up to the device's limit */
	p = &cq->parts[n];
	for (depth = PART_DEPTH_MIN << MIN(n, 8u); depth - 1 < need; depth *= 2)
		;
	do {
		p->cq = ibv_create_cq(f->ctx, (int)depth - 1, cq, cq->channel, 0);
		if (!p->cq)
			depth /= 2;
	} while (!p->cq && depth > need);
	if (!p->cq)
		return verbs_err(errno);
	p->depth = (unsigned)p->cq->cqe;
	p->reserved = p->unacked = 0;
	p->shared = false;
	/* a sleeping owner must be notified of this part as well */
	if (ibv_req_notify_cq(p->cq, 0)) {
		ibv_destroy_cq(p->cq);
		return -EIO;
	}
	p->armed = true;
	atomic_store(&cq->nparts, n + 1);
	*ret = n;
	return 0;
}

static int find_slot(struct verbs_cq *cq, unsigned *ret)
{
	for (unsigned i = 0; i < VERBS_CQ_SLOTS; i++) {
		unsigned slot = (cq->next_slot + i) % VERBS_CQ_SLOTS;

		if (!atomic_load_explicit(&cq->slots[slot], memory_order_relaxed)) {
			cq->next_slot = slot + 1;
			*ret = slot;
			return 0;
		}
	}
	return -ENOMEM;
}

/** rr_verbs_cq_attach - reserves the entries for @qp and assigns a slot; it counts in unconnected now
 *
 * Return: 0, -ENOMEM, -ENODEV if the device is lost, errors of the device.
 */
int rr_verbs_cq_attach(struct verbs_cq *cq, struct verbs_qp *qp)
{
	unsigned part, slot;
	uint16_t gen;
	int rc;

	if (atomic_load(&cq->broken))
		return -ENODEV;
	pthread_mutex_lock(&cq->lock);
	rc = find_slot(cq, &slot);
	if (!rc)
		rc = find_part(cq, qp, &part);
	if (!rc) {
		cq->parts[part].reserved += needed(cq, qp, &cq->parts[part]);
		cq->parts[part].shared |= qp->base.srq != NULL;
		qp->part = part;
		qp->slot = slot;
		gen = (uint16_t)(atomic_load_explicit(&cq->gen[slot], memory_order_relaxed) + 1);
		qp->tag = (uint64_t)gen << 48 | (uint64_t)slot << 32;
		atomic_store_explicit(&cq->gen[slot], gen, memory_order_relaxed);
		atomic_fetch_add(&cq->unconnected, 1);
		atomic_store_explicit(&cq->slots[slot], qp, memory_order_release);
	}
	pthread_mutex_unlock(&cq->lock);
	return rc;
}

/** rr_verbs_cq_detach - reverses rr_verbs_cq_attach(); later completions of @qp are dropped */
void rr_verbs_cq_detach(struct verbs_cq *cq, struct verbs_qp *qp)
{
	pthread_mutex_lock(&cq->lock);
	atomic_store_explicit(&cq->numbers[qp->slot], 0, memory_order_relaxed);
	atomic_store_explicit(&cq->slots[qp->slot], NULL, memory_order_release);
	cq->parts[qp->part].reserved -= needed(cq, qp, &cq->parts[qp->part]);
	if (list_is_linked(&qp->ended_node)) {
		list_del(&qp->ended_node);
		atomic_fetch_sub(&cq->nended, 1);
	}
	pthread_mutex_unlock(&cq->lock);
	if (!atomic_load(&qp->up))
		atomic_fetch_sub(&cq->unconnected, 1);
}

/** rr_verbs_cq_number - records the queue pair number that completions of the shared queue contain */
void rr_verbs_cq_number(struct verbs_cq *cq, const struct verbs_qp *qp)
{
	pthread_mutex_lock(&cq->lock);
	atomic_store_explicit(&cq->numbers[qp->slot], qp->id->qp->qp_num, memory_order_relaxed);
	pthread_mutex_unlock(&cq->lock);
}

/** rr_verbs_cq_unshare - the shared receive queue is gone, after its last queue pair */
void rr_verbs_cq_unshare(struct verbs_cq *cq)
{
	pthread_mutex_lock(&cq->lock);
	for (unsigned i = 0; i < atomic_load(&cq->nparts); i++) {
		struct verbs_part *p = &cq->parts[i];

		p->reserved -= p->shared ? cq->srq->depth : 0;
		p->shared = false;
	}
	cq->srq = NULL;
	pthread_mutex_unlock(&cq->lock);
}

/* ---- from a completion to its request ---------------------------------------------------------- */

static enum rr_wc_status status_of(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return RR_WC_OK;
	case IBV_WC_WR_FLUSH_ERR:
		return RR_WC_FLUSHED;
	case IBV_WC_REM_ACCESS_ERR:
		return RR_WC_REM_ACCESS;
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_INV_RD_REQ_ERR:
		return RR_WC_REM_OP;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return RR_WC_RNR;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
	case IBV_WC_REM_ABORT_ERR:
		return RR_WC_LOST;
	default: /* lengths, protection, binds, and what a later library may add */
		return RR_WC_LOCAL;
	}
}

/* Takes position @count off a ring. Return: NULL if it is not outstanding. */
static struct rr_done *take(struct rr_done **ring, uint32_t mask, uint32_t head, uint32_t *tail,
			    uint32_t count)
{
	uint32_t ahead = (count - *tail) & VERBS_INDEX;

	if (ahead >= head - *tail)
		return NULL;
	*tail += ahead + 1;
	return ring[(*tail - 1) & mask];
}

static void fill_recv(struct verbs_qp *qp, const struct ibv_wc *in, struct rr_wc *out)
{
	const struct verbs_fabric *f = to_fabric(qp->base.fabric);
	unsigned inv_flags = IBV_WC_WITH_INV;
	struct verbs_mw *mw;

	out->byte_len = in->byte_len;
	if (in->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		out->with_imm = true;
		out->imm = be32toh(in->imm_data);
		return;
	}
	if (f->quirks & QUIRK_WITH_INV_IS_4)
		inv_flags |= 4;
	if (!(in->wc_flags & inv_flags))
		return;
	out->with_inv = true;
	out->inv_rkey = in->invalidated_rkey;
	mw = rr_verbs_mw_find(qp, out->inv_rkey);
	if (mw)
		list_del(&mw->node);
}

/* True if @qp is up. Waits for an accept in progress: the peer may be faster than our thread. */
static bool is_up(struct verbs_qp *qp)
{
	if (likely(atomic_load_explicit(&qp->up, memory_order_acquire)))
		return true;
	pthread_mutex_lock(&qp->lock);
	pthread_mutex_unlock(&qp->lock);
	return atomic_load(&qp->up);
}

/* Finds the queue pair with a number, if it is up. */
static struct verbs_qp *by_number(struct verbs_cq *cq, uint32_t number)
{
	unsigned slot = cq->seen[number % VERBS_CQ_SLOTS];
	struct verbs_qp *qp;

	if (atomic_load_explicit(&cq->numbers[slot], memory_order_relaxed) != number) {
		for (slot = 0; slot < VERBS_CQ_SLOTS; slot++)
			if (atomic_load_explicit(&cq->numbers[slot], memory_order_relaxed) == number)
				break;
		if (slot == VERBS_CQ_SLOTS)
			return NULL;
		cq->seen[number % VERBS_CQ_SLOTS] = (uint16_t)slot;
	}
	qp = atomic_load_explicit(&cq->slots[slot], memory_order_acquire);
	return qp && is_up(qp) ? qp : NULL;
}

static bool translate_shared(struct verbs_cq *cq, const struct ibv_wc *in, struct rr_wc *out)
{
	struct rr_done *done = rr_verbs_srq_take(cq->srq, (uint32_t)in->wr_id & VERBS_INDEX);
	struct verbs_qp *qp = by_number(cq, in->qp_num);

	if (!done)
		return false;
	*out = (struct rr_wc){ .done = done, .status = RR_WC_FLUSHED };
	if (!qp)
		return true;
	out->qp = &qp->base;
	out->status = status_of(in->status);
	if (out->status == RR_WC_OK)
		fill_recv(qp, in, out);
	return true;
}

static bool translate(struct verbs_cq *cq, const struct ibv_wc *in, struct rr_wc *out)
{
	unsigned slot = (in->wr_id >> 32) & 0xffff;
	uint32_t count = (uint32_t)in->wr_id & VERBS_INDEX;
	bool is_recv = (uint32_t)in->wr_id & ~VERBS_INDEX;
	struct verbs_qp *qp;
	struct rr_done *done;

	if (slot == VERBS_SRQ_SLOT)
		return translate_shared(cq, in, out);
	if (slot >= VERBS_CQ_SLOTS)
		return false;
	qp = atomic_load_explicit(&cq->slots[slot], memory_order_acquire);
	/* slot first: a reader of a new queue pair also sees its new generation, and drops the completion */
	if (!qp || atomic_load_explicit(&cq->gen[slot], memory_order_relaxed) != in->wr_id >> 48 ||
	    !is_up(qp))
		return false;
	done = is_recv ? take(qp->rq, qp->rq_mask, qp->rq_head, &qp->rq_tail, count) :
			 take(qp->sq, qp->sq_mask, qp->sq_head, &qp->sq_tail, count);
	if (!done)
		return false;
	*out = (struct rr_wc){ .done = done, .status = status_of(in->status) };
	if (is_recv && out->status == RR_WC_OK)
		fill_recv(qp, in, out);
	return true;
}

static int translate_all(struct verbs_cq *cq, const struct ibv_wc *in, int n, struct rr_wc *out)
{
	bool unconnected = atomic_load(&cq->unconnected) > 0;
	int done = 0;

	if (unlikely(unconnected))
		pthread_mutex_lock(&cq->lock);
	for (int i = 0; i < n; i++)
		done += translate(cq, &in[i], &out[done]);
	if (unlikely(unconnected))
		pthread_mutex_unlock(&cq->lock);
	return done;
}

/* ---- events ----------------------------------------------------------------------------------- */

static struct verbs_part *part_of(struct verbs_cq *cq, const struct ibv_cq *ev)
{
	unsigned n = atomic_load(&cq->nparts);

	for (unsigned i = 0; i < n; i++)
		if (cq->parts[i].cq == ev)
			return &cq->parts[i];
	return NULL;
}

/* Takes pending events off the channel; there is at most one per armed part. */
static void drain_channel(struct verbs_cq *cq)
{
	struct verbs_part *p;
	struct ibv_cq *ev;
	void *ctx;

	for (unsigned left = atomic_load(&cq->nparts); left > 0; left--) {
		if (ibv_get_cq_event(cq->channel, &ev, &ctx))
			return;
		p = part_of(cq, ev);
		assert(p);
		p->armed = false;
		if (++p->unacked >= ACK_BATCH) {
			ibv_ack_cq_events(p->cq, p->unacked);
			p->unacked = 0;
		}
	}
}

static int poll_device(struct verbs_cq *cq, struct ibv_wc *wc, int max)
{
	unsigned n = atomic_load_explicit(&cq->nparts, memory_order_acquire);
	int got = 0;

	if (!n || cq->broken_seen)
		return 0;
	for (unsigned i = 0; i < n && got < max; i++) {
		struct verbs_part *p = &cq->parts[(cq->turn + i) % n];
		int rc = ibv_poll_cq(p->cq, max - got, wc + got);

		if (rc < 0)
			atomic_store(&cq->broken, true);
		else
			got += rc;
	}
	cq->turn++;
	return got;
}

static struct rr_wc end_of(struct verbs_qp *qp)
{
	return (struct rr_wc){ .done = qp->end, .status = RR_WC_FLUSHED, .qp = &qp->base };
}

/* Completes all outstanding requests; the queue pairs are dead and nothing is posted any more. */
static int flush_broken(struct verbs_cq *cq, struct rr_wc *wc, int max)
{
	struct rr_done *done;
	int n = 0;

	if (!cq->broken_seen) {
		/* a lost device's channel stays readable */
		(void)epoll_ctl(cq->base.fd, EPOLL_CTL_DEL, cq->channel->fd, NULL);
		cq->broken_seen = true;
	}
	pthread_mutex_lock(&cq->lock);
	for (unsigned i = 0; i < VERBS_CQ_SLOTS && n < max; i++) {
		struct verbs_qp *qp = atomic_load(&cq->slots[i]);

		if (!qp || !is_up(qp))
			continue;
		for (; n < max && qp->sq_tail != qp->sq_head; qp->sq_tail++)
			wc[n++] = (struct rr_wc){ .done = qp->sq[qp->sq_tail & qp->sq_mask],
						  .status = RR_WC_FLUSHED };
		for (; n < max && qp->rq_tail != qp->rq_head; qp->rq_tail++)
			wc[n++] = (struct rr_wc){ .done = qp->rq[qp->rq_tail & qp->rq_mask],
						  .status = RR_WC_FLUSHED };
		if (n < max && qp->end && qp->base.srq && !qp->end_told) {
			qp->end_told = true;
			wc[n++] = end_of(qp);
		}
	}
	for (; n < max && (done = rr_verbs_srq_take_any(cq->srq)) != NULL; n++)
		wc[n] = (struct rr_wc){ .done = done, .status = RR_WC_FLUSHED };
	pthread_mutex_unlock(&cq->lock);
	return n;
}

/* Reports queue pairs that have ended, after the device's own completions. */
static int tell_ends(struct verbs_cq *cq, struct rr_wc *wc, int max)
{
	int n = 0;

	pthread_mutex_lock(&cq->lock);
	take_kick(cq);
	for (; n < max && !list_is_empty(&cq->ended); n++) {
		wc[n] = end_of(list_entry(list_pop(&cq->ended), struct verbs_qp, ended_node));
		atomic_fetch_sub(&cq->nended, 1);
	}
	if (!list_is_empty(&cq->ended))
		kick(cq);
	pthread_mutex_unlock(&cq->lock);
	return n;
}

/** rr_verbs_cq_poll - takes up to @max completions
 *
 * Return: their number; in order per queue pair.
 */
int rr_verbs_cq_poll(struct rr_cq *base, struct rr_wc *wc, int max)
{
	struct verbs_cq *cq = to_cq(base);
	struct ibv_wc in[WC_BATCH];
	int n = 0, got;

	if (unlikely(cq->look)) {
		cq->look = false;
		drain_channel(cq);
	}
	while (unlikely(cq->stashed) && n < max) {
		got = MIN(cq->stashed, max - n);
		n += translate_all(cq, cq->stash, got, wc + n);
		cq->stashed -= got;
		for (int i = 0; i < cq->stashed; i++)
			cq->stash[i] = cq->stash[i + got];
	}
	while (n < max) {
		int want = MIN(max - n, WC_BATCH);

		got = poll_device(cq, in, want);
		n += translate_all(cq, in, got, wc + n);
		if (got < want)
			break;
	}
	if (unlikely(atomic_load_explicit(&cq->nended, memory_order_relaxed)) && n < max)
		n += tell_ends(cq, wc + n, max - n);
	if (unlikely(atomic_load_explicit(&cq->broken, memory_order_relaxed)) && n < max) {
		take_kick(cq);
		n += flush_broken(cq, wc + n, max - n);
	}
	return n;
}

/** rr_verbs_cq_arm - prepares to sleep on the descriptor
 *
 * Return: 0: sleep; 1: something arrived meanwhile, poll again.
 */
int rr_verbs_cq_arm(struct rr_cq *base)
{
	struct verbs_cq *cq = to_cq(base);
	unsigned n = atomic_load(&cq->nparts);

	if (cq->stashed || atomic_load(&cq->nended))
		return 1;
	if (atomic_load(&cq->broken))
		return !cq->broken_seen;
	/* an event that is not drained here ends the sleep at once, and the next poll drains it */
	if (cq->look)
		drain_channel(cq);
	for (unsigned i = 0; i < n; i++) {
		struct verbs_part *p = &cq->parts[i];

		if (!p->armed && ibv_req_notify_cq(p->cq, 0))
			return 1; /* without notification the owner must not sleep */
		p->armed = true;
	}
	cq->look = true;
	cq->stashed = poll_device(cq, cq->stash, VERBS_STASH);
	return cq->stashed > 0;
}
