/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_ring.c - the local fabric's shared area: messages, doorbells, sleeping
 *
 * Operation:  The passive side creates the area with the sizes of the handshake; both sides map it. It
 *             contains, for each side, its struct shm_side, its key table and the ring of messages to
 *             it. Message n uses the nth receive posted, or with a shared queue the nth permission
 *             (local_srq.c). So one counter (posted) serves both flow control and RNR detection.
 *             A message lies behind the one before it, and both sides know where: at the next cache
 *             line, or at the start of the ring if the longest message would not fit there. A ring
 *             has room for one longest message per receive that may be posted, and for two more: what
 *             is left out at its end, and the next one. So a posted receive implies free memory.
 *             Only memory that is used costs anything. So where a page ends the sender looks whether the
 *             receiver has taken all messages, and then starts at the beginning of the ring again
 *             (`restart`). A connection with few messages on their way uses two pages of it, which also
 *             stay in the cache.
 *             A side that wants to sleep sets `asleep`, then checks once more. A side that has
 *             published something then reads `asleep`. All four accesses are sequentially
 *             consistent, so at least one side sees the other. The side that finds the flag set
 *             clears it and rings, so a sleeping peer gets one doorbell.
 * Memory:     One sealed memfd, charged to the client (local_map.c); its descriptor is closed after the
 *             mapping. A message is copied from the ring into the posted receive before it is parsed.
 * Threads:    The owner of the queue pair.
 * Errors:     Indices and lengths from the peer are checked; see rr_local_qp_hostile().
 */
#include <errno.h>
#include <string.h>

#include "local_int.h"

#define RING_PAGE 4096u

static size_t msg_bytes(size_t data)
{
	return round_up_pow2(sizeof(struct shm_msg) + data, LOCAL_LINE);
}

/** rr_local_ring_bytes - Return: bytes of a ring for @depth receives of @recv_bytes */
uint64_t rr_local_ring_bytes(uint32_t depth, uint32_t recv_bytes)
{
	return ((uint64_t)depth + 2) * msg_bytes(recv_bytes);
}

/** rr_local_ring_check - true if the sizes that a peer requests are within bounds */
bool rr_local_ring_check(const struct hs_msg *hs, const struct local_fabric *f)
{
	if (!hs->rq_depth || hs->rq_depth > MAX(f->attr.limits.rq_max, 16384u) || !hs->recv_bytes ||
	    hs->recv_bytes > LOCAL_RING_BYTES_MAX || !hs->keys || hs->keys > LOCAL_KEYS_MAX + 1)
		return false;
	return rr_local_ring_bytes(hs->rq_depth, hs->recv_bytes) <= LOCAL_RING_BYTES_MAX;
}

/* Computes the layout of the area, the passive side's half first; sets the pointers unless @base is NULL. Both sides
 * compute the same. Return: its size. */
static size_t ring_layout(struct local_qp *qp, uint8_t *base)
{
	size_t at = 0;

	for (int half = 0; half < 2; half++) {
		bool mine = qp->passive == (half == 0);
		size_t keys = round_up_pow2(sizeof(struct shm_side), LOCAL_LINE);
		size_t ring = keys;

		ring += sizeof(struct shm_key) * (mine ? qp->my_nkeys : qp->peer_nkeys);
		if (base) {
			*(mine ? &qp->me : &qp->other) = (void *)(base + at);
			*(mine ? &qp->my_keys : &qp->peer_keys) = (void *)(base + at + keys);
			(mine ? &qp->my_ring : &qp->peer_ring)->base = base + at + ring;
		}
		at += ring;
		at += mine ? qp->my_ring.bytes : qp->peer_ring.bytes;
	}
	return at;
}

static void set_sizes(struct local_ring *r, uint32_t depth, uint32_t recv_bytes)
{
	*r = (struct local_ring){ .bytes = rr_local_ring_bytes(depth, recv_bytes), .longest = msg_bytes(recv_bytes) };
}

static size_t ring_sizes(struct local_qp *qp)
{
	qp->my_nkeys = to_pd(qp->base.pd)->nkeys;
	set_sizes(&qp->my_ring, qp->rq_depth, qp->my_recv_bytes);
	qp->peer_nkeys = qp->hs.keys;
	qp->peer_key_mask = pow2_at_least(qp->peer_nkeys) - 1;
	qp->peer_depth = qp->hs.rq_depth;
	qp->peer_recv_bytes = qp->hs.recv_bytes;
	set_sizes(&qp->peer_ring, qp->peer_depth, qp->peer_recv_bytes);
	return ring_layout(qp, NULL);
}

/** rr_local_ring_create - passive side: creates and maps the area for qp->hs, the peer's REQ
 * @qp: set up
 *
 * The caller passes the descriptor of qp->rings to the peer, then closes it.
 *
 * Return: 0, -EDQUOT if the client exceeds its share, or the errno of memfd_create(), ftruncate() or mmap().
 */
int rr_local_ring_create(struct local_qp *qp)
{
	int rc = rr_local_map_make(qp, RR_SHARE_RING, "leat-rings", ring_sizes(qp), &qp->rings);

	if (!rc)
		ring_layout(qp, qp->rings->addr);
	return rc;
}

/** rr_local_ring_map - active side: maps the area that came with qp->hs, the peer's ACCEPT
 * @fd: its descriptor; closed if this returns 0
 *
 * Return: 0, -EPROTO if the area is invalid, -EDQUOT, or the errno of mmap().
 */
int rr_local_ring_map(struct local_qp *qp, int fd)
{
	int rc = rr_local_map_get(qp, RR_SHARE_RING, fd, ring_sizes(qp), &qp->rings);

	if (rc)
		return rc;
	rr_local_map_close_fd(qp->rings);
	ring_layout(qp, qp->rings->addr);
	return 0;
}

/** rr_local_ring_unmap - unmaps the area at the end of the connection; harmless without an area */
void rr_local_ring_unmap(struct local_qp *qp)
{
	rr_local_map_put(to_fabric(qp->base.fabric), qp->rings);
	qp->rings = NULL;
}

/** rr_local_ring_bell - after publishing: wakes the peer if it sleeps */
void rr_local_ring_bell(struct local_qp *qp)
{
	if (likely(!atomic_load(&qp->other->asleep)) || !atomic_exchange(&qp->other->asleep, 0))
		return;
	rr_local_count(qp, doorbells, 1);
	/* a full socket is readable at the peer; the hang-up reports a dead one */
	(void)rr_local_sock_send(qp->sock, NULL, NULL, 0);
}

/* Passes the message at r->at, with @data bytes. */
static void ring_pass(struct local_ring *r, size_t data)
{
	r->at += msg_bytes(data);
	if (r->at + r->longest > r->bytes)
		r->at = 0;
}

static struct shm_msg *ring_msg(const struct local_ring *r)
{
	return (struct shm_msg *)(void *)(r->base + r->at);
}

/* Starts again at the beginning of the ring, if nothing is in it. That is looked up only when the position has left the page
 * of the last look, since it costs a cache miss. */
static void ring_restart(struct local_qp *qp)
{
	struct local_ring *r = &qp->peer_ring;

	if (r->at / RING_PAGE == r->looked / RING_PAGE)
		return;
	r->looked = r->at;
	if (atomic_load_explicit(&qp->other->taken, memory_order_acquire) == qp->msg_head)
		r->at = r->looked = 0;
}

/** rr_local_ring_room - checks whether the peer has posted a receive for our next message
 *
 * Return: 1: yes; 0: no; -EPROTO: the peer's counter is invalid.
 */
int rr_local_ring_room(struct local_qp *qp)
{
	if (qp->peer_posted == qp->msg_head) {
		qp->peer_posted = atomic_load_explicit(&qp->other->posted, memory_order_acquire);
		if (qp->peer_posted - qp->msg_head > qp->peer_depth) {
			qp->peer_posted = qp->msg_head;
			return -EPROTO;
		}
	}
	return qp->peer_posted != qp->msg_head;
}

/** rr_local_ring_send - copies a Send into the peer's ring and publishes it
 * @qp: rr_local_ring_room() has just returned 1 for it
 * @e: a Send, its length already checked against the peer's receive buffers; or an RDMA Write with
 * immediate after its bytes have been written
 */
void rr_local_ring_send(struct local_qp *qp, const struct local_sqe *e)
{
	uint32_t bytes = e->wr.op == RR_WR_WRITE_IMM ? 0 : e->wr.sge.len;
	struct shm_msg *m;

	ring_restart(qp);
	/* one word is enough: the receiver has taken the last message that was there; msg_head publishes it */
	if (!qp->peer_ring.at)
		atomic_store_explicit(&qp->me->restart, qp->msg_head, memory_order_relaxed);
	m = ring_msg(&qp->peer_ring);
	m->len = e->wr.sge.len;
	m->with = e->wr.op == RR_WR_SEND_INV ? RING_INV : RING_PLAIN;
	m->word = e->wr.rkey;
	m->req_seq = qp->req_head;
	if (e->wr.op == RR_WR_WRITE_IMM) {
		m->with = RING_IMM;
		m->word = e->wr.imm;
	}
	if (bytes)
		memcpy(m->data, e->wr.sge.addr, bytes);
	rr_local_count(qp, bytes_copied, bytes);
	ring_pass(&qp->peer_ring, bytes);
	atomic_store(&qp->me->msg_head, ++qp->msg_head);
	rr_local_ring_bell(qp);
}

/* Copies one message from the ring into the oldest posted receive. */
static bool take_message(struct local_qp *qp)
{
	const struct shm_msg *m = ring_msg(&qp->my_ring);
	const volatile struct shm_msg *v = m; /* each word is read once, since the peer may change it */
	struct rr_recv r;
	uint32_t with = v->with;
	struct rr_wc wc = { .status = RR_WC_OK, .byte_len = v->len,
			    .with_inv = with == RING_INV, .with_imm = with == RING_IMM };
	uint32_t seq = v->req_seq, word = v->word;
	uint32_t here = wc.with_imm ? 0 : wc.byte_len;

	if (here > qp->my_recv_bytes || with > RING_IMM || seq - qp->req_taken > LOCAL_REQS) {
		rr_local_qp_hostile(qp);
		return false;
	}
	if (!rr_local_move_serve(qp, seq))
		return false;
	if (!qp->base.srq)
		r = qp->rqe[qp->rq_taken & qp->rq_mask];
	else if (!rr_local_srq_take(qp, &r))
		return false; /* it stays in the ring until a receive is posted */
	wc.done = r.done;
	if (wc.with_inv)
		wc.inv_rkey = word;
	if (wc.with_imm)
		wc.imm = word;
	if (here)
		memcpy(r.sge.addr, m->data, here);
	rr_local_count(qp, bytes_copied, here);
	ring_pass(&qp->my_ring, here);
	atomic_store_explicit(&qp->me->taken, ++qp->rq_taken, memory_order_release);
	if (wc.with_inv && !rr_local_mem_invalidate(qp, wc.inv_rkey)) {
		wc.status = RR_WC_LOCAL; /* as on a NIC: the message is lost, and the connection dies */
		rr_local_qp_complete(qp, &wc, 0, 1);
		rr_local_qp_kill(qp);
		return false;
	}
	rr_local_qp_complete(qp, &wc, 0, 1);
	return true;
}

/** rr_local_ring_idle - true if the peer has published nothing new; also for the check before sleeping */
bool rr_local_ring_idle(struct local_qp *qp)
{
	const struct shm_side *o = qp->other;

	/* a message without a receive is not new until there is one */
	return (atomic_load(&o->msg_head) == qp->rq_taken || (qp->base.srq && rr_local_srq_is_empty(qp))) &&
	       atomic_load(&o->req_head) == qp->req_taken &&
	       atomic_load(&o->req_done) == qp->req_acked && !atomic_load(&o->closed) &&
	       !qp->peer_gone;
}

/** rr_local_ring_pull - processes all that the peer has published
 *
 * Return: true if there was anything. The queue pair may be dead afterwards.
 */
bool rr_local_ring_pull(struct local_qp *qp)
{
	bool closed;
	uint32_t head, req;

	if (likely(rr_local_ring_idle(qp)))
		return false;
	/* messages that were sent before the end are delivered before it */
	closed = atomic_load(&qp->other->closed) || qp->peer_gone;
	rr_local_move_replies(qp);
	if (qp->phase == PHASE_UP)
		rr_local_qp_run(qp);
	if (qp->phase != PHASE_UP)
		return true;
	/*
	 * Read requests before messages: a message sent before a request that is visible here is visible below.
	 * In the other order a request could overtake the message before it.
	 */
	req = atomic_load_explicit(&qp->other->req_head, memory_order_acquire);
	head = atomic_load_explicit(&qp->other->msg_head, memory_order_acquire);
	if (req - qp->req_taken > LOCAL_REQS ||
	    head - qp->rq_taken > qp->rq_posted - qp->rq_taken) {
		rr_local_qp_hostile(qp);
		return true;
	}
	/* a message behind one that was not taken is not at the start because the ring was empty */
	if (qp->rq_taken != head && atomic_load_explicit(&qp->other->restart, memory_order_relaxed) == qp->rq_taken)
		qp->my_ring.at = 0;
	while (qp->rq_taken != head)
		if (!take_message(qp))
			break;
	if (qp->phase != PHASE_UP)
		return true;
	/* a message that arrived later may have served more requests already; a request must not overtake a message
	 * that waits for a receive */
	if (qp->rq_taken == head && req - qp->req_taken <= LOCAL_REQS)
		(void)rr_local_move_serve(qp, req); /* on failure the connection is dead already */
	if (closed && qp->phase == PHASE_UP)
		rr_local_qp_kill(qp);
	return true;
}
