/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_put.c - fast-write and hybrid at the requester: writes arguments to the responder
 *
 * Operation:  If a call would need a Read chunk, one of these ways is selected for its payload:
 *
 *               a slot is free, the payload  the payload is copied into our copy of the slot, the head
 *               fits, and the responder has  before it; one RDMA Write with immediate carries
 *               sent a message               both
 *               it is within grant_max       RR_WANT replaces the call; after its Send has completed
 *                                            and RR_GRANT has arrived, one chain writes the payload
 *                                            from the caller's memory and sends the call
 *               else                         a Read chunk, as usual
 *
 *             For a slot or a buffer the Read chunk names the responder's memory, and the header is RR_HERE.
 * Memory:     rr_mode_call belongs to the call; a slot is in use until the reply.
 * Threads:    The engine's.
 * Errors:     A buffer that cannot be used (arguments that cannot be registered) is returned by
 *             RDMA_DONE, and the call fails as it would have without it.
 */
#include <errno.h>
#include <string.h>

#include "base/wire.h"
#include "mode_clnt.h"

/* True if the head of @s, with any chunks, fits before a slot's payload, and into a Send. */
static bool head_fits(const struct rr_rcall *rc, const struct rr_plan_call *p, const struct rr_stream *s)
{
	size_t n = RR_HDR_MIN + RR_READ_SEG_BYTES + rr_stream_len(s);

	if (p->write_chunk)
		n += RR_CHUNK_HEAD_BYTES + p->result_segs * (size_t)RR_SEGMENT_BYTES;
	if (p->reply_chunk)
		n += RR_CHUNK_HEAD_BYTES + p->reply_segs * (size_t)RR_SEGMENT_BYTES;
	return n <= MIN(RR_SLOT_HEAD, rc->conn->clnt->send_inline);
}

static bool take_slot(struct rr_rcall *rc, uint32_t bytes)
{
	struct rr_mode_clnt *m = rr_mode_of_link(rc->conn);
	struct rr_mode_call *mc = rr_mode_of_call(rc);

	for (unsigned i = 0; i < m->given.slots; i++) {
		size_t payload = i * rr_slot_stride(m->given.slot_bytes) + RR_SLOT_HEAD;

		if (m->slots_busy >> i & 1)
			continue;
		m->slots_busy |= UINT64_C(1) << i;
		m->slot_xid[i] = rc->call->xid;
		mc->slot = i;
		mc->head.how = RR_HOW_COPIED;
		mc->head.copy = (uint8_t *)m->slots.mem + payload;
		mc->head.there = (struct rr_segment){
			.handle = m->given.handle,
			.length = bytes,
			.offset = m->given.offset + payload,
		};
		return true;
	}
	return false;
}

/* Builds RR_WANT. Return: its length */
static size_t build_want(struct rr_rcall *rc, uint8_t *buf, uint32_t bytes)
{
	put_be32(buf, rc->call->xid);
	put_be32(buf + 4, RR_VERS);
	put_be32(buf + 8, rc->conn->clnt->credit.wanted);
	put_be32(buf + 12, RR_WANT);
	put_be32(buf + 16, bytes);
	return RR_WANT_BYTES;
}

size_t rr_mode_choose(struct rr_rcall *rc, const struct rr_plan_call *p, const struct rr_stream *s)
{
	const struct rr_mode_clnt *m = rr_mode_of_link(rc->conn);
	const struct rr_suffix *given = &m->given;
	struct rr_mode_call *mc = rr_mode_of_call(rc);

	if (p->form != RR_CALL_READ_CHUNK || !head_fits(rc, p, s))
		return 0;
	if (given->modes & RPCRDMA_FAST_WRITE && m->slots_usable && p->arg_bytes <= given->slot_bytes &&
	    take_slot(rc, p->arg_bytes))
		return 0;
	if (!(given->modes & RPCRDMA_HYBRID) || p->arg_bytes > given->grant_max || mc->refused)
		return 0;
	mc->head.how = RR_HOW_LATER;
	mc->sent = mc->granted = false;
	mc->bytes = p->arg_bytes;
	return build_want(rc, rc->send_buf->addr, p->arg_bytes);
}

/* ---- announced buffer ---------------------------------------------------------------------- */

/* RR_WANT has been sent and RR_GRANT has arrived: sends the call from the same send buffer. */
static void go(struct rr_rcall *rc)
{
	struct rr_link *l = rc->conn;
	struct rr_mode_call *mc = rr_mode_of_call(rc);
	struct rr_call *call = rc->call;
	int err;

	mc->refused = !mc->head.there.length;
	mc->head.how = mc->refused ? RR_HOW_PLAIN : RR_HOW_PUT;
	err = rr_rcall_resume(rc);
	if (!err)
		return;
	if (err == -ENOBUFS) { /* other calls hold the memory that it needs */
		rr_rcall_withdraw(rc);
		mc->head.how = RR_HOW_LATER;
		list_add_tail(&rr_mode_of_link(l)->resumes, &mc->link);
		return;
	}
	if (mc->head.how == RR_HOW_PUT)
		rr_mode_send_done(l, call->xid);
	rr_link_msg_put(l, rc->send_buf);
	rc->send_buf = NULL;
	rr_rcall_detach(rc);
	call->xprt = NULL;
	rr_clnt_replied(l->clnt, call, err, "arguments cannot be sent", l->clnt->credit.limit);
}

void rr_mode_granted(struct rr_rcall *rc, const struct rr_segment *room)
{
	struct rr_mode_call *mc = rr_mode_of_call(rc);

	mc->head.there = *room;
	mc->head.there.length = MIN(room->length, mc->bytes); /* 0: refused */
	mc->granted = true;
	if (mc->sent)
		go(rc);
}

bool rr_mode_sent(struct rr_rcall *rc, enum rr_wc_status status)
{
	struct rr_mode_call *mc = rr_mode_of_call(rc);

	if (mc->head.how != RR_HOW_LATER || mc->sent || status != RR_WC_OK)
		return false;
	mc->sent = true;
	if (mc->granted)
		go(rc);
	return true;
}

void rr_mode_resume(struct rr_mode_clnt *m)
{
	struct list todo = LIST_INIT(todo), *n;

	list_splice_tail(&todo, &m->resumes);
	while (!m->link->ending && (n = list_pop(&todo)) != NULL)
		go(list_entry(n, struct rr_mode_call, link)->rc);
	list_splice_tail(&m->resumes, &todo);
}

/* ---- posting ------------------------------------------------------------------------------- */

static void post_slot(struct rr_rcall *rc, size_t head)
{
	struct rr_mode_clnt *m = rr_mode_of_link(rc->conn);
	const struct rr_mode_call *mc = rr_mode_of_call(rc);
	uint8_t *from = mc->head.copy - head;

	memcpy(from, rc->send_buf->addr, head);
	rc->wr = (struct rr_wr){ .op = RR_WR_WRITE_IMM,
				 .sge = { from, (uint32_t)head + mc->head.there.length, m->mr },
				 .raddr = mc->head.there.offset - head,
				 .rkey = mc->head.there.handle,
				 .imm = mc->slot << 16 | (uint32_t)head };
	rc->post.first = &rc->wr;
	rc->post.n = 1;
	rr_count(rc->conn->engine, fast_writes, 1);
	rr_ep_post(rc->conn->ep, &rc->post);
}

static void add_write(struct rr_mode_call *mc, void *from, uint32_t len, uint32_t at, struct rr_mr *mr)
{
	mc->wr[mc->n] = (struct rr_wr){ .next = &mc->wr[mc->n + 1],
					.op = RR_WR_WRITE,
					.sge = { from, len, mr },
					.raddr = mc->head.there.offset + at,
					.rkey = mc->head.there.handle };
	mc->n++;
}

/* Writes the payload from the caller's memory, segment by segment, then sends the call. */
static void post_room(struct rr_rcall *rc, size_t len)
{
	struct rr_mode_call *mc = rr_mode_of_call(rc);
	const struct rr_offer *o = &rc->args;
	uint32_t at = 0;

	mc->n = 0;
	for (unsigned i = 0; i < o->n; i++) {
		add_write(mc, rr_reg_seg_addr(&o->segs[i]), o->segs[i].seg.length, at,
			  o->segs[i].mr);
		at += o->segs[i].seg.length;
	}
	rc->wr = (struct rr_wr){ .op = RR_WR_SEND, .sge = rr_msg_sge(rc->send_buf, rc->conn->dev, len) };
	mc->wr[mc->n - 1].next = &rc->wr;
	rc->post.first = mc->wr;
	rc->post.n = mc->n + 1;
	rr_count(rc->conn->engine, grants, 1);
	rr_ep_post(rc->conn->ep, &rc->post);
}

void rr_mode_post(struct rr_rcall *rc, size_t len)
{
	put_be32((uint8_t *)rc->send_buf->addr + 12, RR_HERE);
	if (rr_how(rc) == RR_HOW_COPIED)
		post_slot(rc, len);
	else
		post_room(rc, len);
}
