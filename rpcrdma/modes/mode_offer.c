/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_offer.c - read-read at the responder: offers payload of results until RDMA_DONE
 *
 * Operation:  If the payload does not fit into the reply and the call has no Write chunk, the reply
 *             has a Read list. The requester reads the payload from its buffers, and sends RDMA_DONE
 *             with the call's XID. Until then the request is not over: it keeps its buffers as if it
 *             had another transfer in flight.
 * Memory:     Offered payload is in areas of the connection: the data zone, or the replies zone for
 *             payload in the service's own memory. The peer may read all of these areas, at any
 *             time; they never contain data of other connections.
 * Threads:    The connection's engine.
 * Errors:     RDMA_DONE without an offer ends the connection; so does a missing RDMA_DONE.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "mode_srv.h"
#include "plan.h"

/* Payload in more pieces is not offered; services that know this mode make one piece. */
#define PIECES_MAX 8u

struct offer {
	struct rr_read_seg segs[PIECES_MAX];
	unsigned n;
};

/* Return: false: too many pieces */
static bool add(struct offer *o, uint32_t position, const struct rpcrdma_buf *buf, size_t off,
		uint32_t len, const struct rr_mr *mr)
{
	struct rr_segment *last = o->n ? &o->segs[o->n - 1].seg : NULL;
	uint64_t at = (uint64_t)(uintptr_t)buf->addr + off;

	if (last && last->handle == mr->rkey && last->offset + last->length == at) {
		last->length += len;
		return true;
	}
	if (o->n == PIECES_MAX)
		return false;
	o->segs[o->n++] = (struct rr_read_seg){
		.position = position,
		.seg = { .handle = mr->rkey, .length = len, .offset = at },
	};
	return true;
}

/* Adds the placed pieces in the order of the payload, each byte once. */
static bool offer_placed(const struct rr_rreq *rr, uint32_t position, uint32_t bytes, struct offer *o)
{
	const struct rr_dev *dev = rr_rreq_conn(rr)->ep->dev;
	uint32_t at = 0;

	while (at < bytes) {
		const struct rpcrdma_xfer *p = rr->base.placed;

		while (p && p->off != at)
			p = p->next;
		if (!p || !p->len || !rr_buf_mr(p->buf, dev)->rkey || /* memory of the service is not offered */
		    !add(o, position, p->buf, p->buf_off, MIN(p->len, bytes - at),
			 rr_buf_mr(p->buf, dev)))
			return false;
		at += MIN(p->len, bytes - at);
	}
	return true;
}

/* True if a reply with @n segments more than planned and @inline_len bytes behind them fits. */
static bool fits(const struct rr_plan_reply *plan, unsigned n, size_t inline_len)
{
	return plan->hdr_bytes + n * (size_t)RR_READ_SEG_BYTES + inline_len <= plan->send_max;
}

/* Copies payload from the service's own memory to memory that the peer can read. */
static int offer_copy(struct rr_rreq *rr, uint32_t position, const struct rpcrdma_payload *payload,
		      struct offer *o)
{
	struct rr_rconn *c = rr_rreq_conn(rr);
	int rc;

	rc = rr_conn_buf_get(&c->base, RR_ZONE_REPLIES, payload->length, &rr->reply_buf);
	if (rc)
		return rc;
	rr_srv_gather(rr, payload, rr->reply_buf->addr);
	(void)add(o, position, rr->reply_buf, 0, payload->length,
		  rr_buf_mr(rr->reply_buf, c->ep->dev)); /* the first piece always fits */
	return 0;
}

/* Counts the offer as a transfer of the request, until its RDMA_DONE. */
static void keep(struct rr_mode *m, struct rr_rreq *rr)
{
	if (m->conn->base.dead)
		return;
	rr->ops_out++;
	rr->mode.since_ns = clock_now_ns();
	list_add_tail(&m->offers, &rr->mode.link);
	rr_mode_is_owed(m);
}

int rr_mode_reply(struct rr_rreq *rr, const struct rr_plan_reply *plan, const struct rr_stream *s,
		   uint8_t *msg, size_t len)
{
	struct rr_rconn *c = rr_rreq_conn(rr);
	struct rr_mode *m = rr_mode_of(c);
	bool in_buf = rr->reply_buf != NULL;
	struct offer o = { .n = 0 };
	int rc = 0;

	if (!(m->modes & RPCRDMA_READ_READ) || !plan->payload_bytes || plan->has_write_chunk ||
	    plan->form == RR_REPLY_INLINE)
		return 1;
	if (s->payload.iovcnt) {
		/* take a buffer only if it is used: another form could not use one of this size */
		if (in_buf || !fits(plan, 1, len))
			return 1;
		rc = offer_copy(rr, (uint32_t)s->payload_pos, &s->payload, &o);
	} else if (!offer_placed(rr, (uint32_t)s->payload_pos, plan->payload_bytes, &o)) {
		return 1;
	}
	if (rc)
		return rc == -ENOBUFS ? rc : 1;
	if (!fits(plan, o.n, in_buf ? 0 : len))
		return 1;
	if (in_buf && rr_srv_write_reply(rr, msg, len))
		return 1;
	if (!in_buf)
		memmove(msg + o.n * (size_t)RR_READ_SEG_BYTES, msg, len);
	rr_count(c->base.engine, bytes_out, plan->payload_bytes);
	rr_count(c->base.engine, offers, 1);
	keep(m, rr);
	rr_srv_send_offer(rr, o.segs, o.n, in_buf ? 0 : len, in_buf ? len : 0);
	return 0;
}

static void end(struct rr_rreq *rr)
{
	list_del(&rr->mode.link);
	rr_srv_op_ended(rr); /* may free the request */
}

bool rr_mode_offer_done(struct rr_mode *m, uint32_t xid)
{
	list_for_each(n, &m->offers) {
		struct rr_rreq *rr = container_of(list_entry(n, struct rr_mode_req, link),
						  struct rr_rreq, mode);

		if (rr->hdr.xid == xid) {
			end(rr);
			return true;
		}
	}
	return false;
}

void rr_mode_offers_end(struct rr_mode *m)
{
	struct rr_mode_req *r;

	while ((r = list_first_entry(&m->offers, struct rr_mode_req, link)) != NULL)
		end(container_of(r, struct rr_rreq, mode));
}
