/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_long.c - pulls the parts of a call that are not in its message, before the service gets it
 *
 * Operation:  A long call (position-zero Read chunk) is pulled into a buffer of the pool. If the service requires whole
 *             calls (svc_attr.whole_calls), the payload of a Read chunk is pulled into the same buffer, to where it
 *             belongs in the un-reduced message:
 *
 *                 message   head | tail           in the receive buffer, or at the peer (position zero)
 *                 buffer    head | payload pad | tail
 *
 *             One buffer is allocated for all of it, so no call holds memory of this zone while it waits for more. The
 *             parts are pulled one after the other, in Reads of limited length: calls of other connections take
 *             turns with a long one.
 * Memory:     The buffer is the request's until its end.
 * Threads:    The connection's engine.
 * Errors:     A call waits for memory of the pool. If the machine has none, the connection ends, since ERR_CHUNK is
 *             final. A failed Read ends the connection.
 */
#include <errno.h>
#include <string.h>

#include "srv_rdma.h"

#define PART_MAX RPCRDMA_BUF_MAX /* of one Read */

/* A part of the buffer, and where the peer has it. */
struct part {
	bool item;    /* in the payload's Read chunk; false: in the position-zero chunk */
	uint32_t off; /* within the chunk */
	uint32_t len;
	size_t to;    /* within the buffer */
};

static void pull_parts(struct rr_rreq *rr);

static size_t joined_bytes(const struct rr_rreq *rr)
{
	return rr_srv_is_joined(rr) ? round_up4((size_t)rr->reads.item_bytes) : 0;
}

uint64_t rr_srv_call_bytes(const struct rr_rreq *rr, size_t msg_len)
{
	return (uint64_t)(rr->reads.has_pzrc ? rr->reads.pzrc_bytes : msg_len) + joined_bytes(rr);
}

/* Finds the part behind the first @at bytes of both chunks. Return: false: that is all */
static bool find_part(const struct rr_rreq *rr, uint32_t at, struct part *ret)
{
	const struct rr_read_info *in = &rr->reads;
	uint32_t call = in->pzrc_bytes, item = rr_srv_is_joined(rr) ? in->item_bytes : 0;
	uint32_t head = rr_srv_is_joined(rr) ? MIN(in->item_position, call) : call;

	if (at < head)
		*ret = (struct part){ .off = at, .len = head - at, .to = at };
	else if (at < call)
		*ret = (struct part){ .off = at, .len = call - at, .to = at + joined_bytes(rr) };
	else if (at - call < item)
		*ret = (struct part){ .item = true,
				      .off = at - call,
				      .len = item - (at - call),
				      .to = in->item_position + (at - call) };
	else
		return false;
	ret->len = MIN(ret->len, PART_MAX);
	return true;
}

/* No memory. ERR_CHUNK would be final for the client. Closing the connection makes the client send the call again on
 * the next one. */
static void end_call(struct rr_rreq *rr)
{
	rpcrdma_conn_close(rr->base.pub.conn);
	rr_srv_forget(rr);
}

static void on_part(struct rpcrdma_xfer *p, int err)
{
	struct rr_rreq *rr = rr_rreq_of(container_of(p->req, struct rr_req, pub));

	if (err)
		rr_srv_forget(rr);
	else
		pull_parts(rr);
}

/* Pulls the next part, or delivers the call. A mode may have its payload in memory already. */
static void pull_parts(struct rr_rreq *rr)
{
	struct rpcrdma_xfer *x;
	struct part p;

	while (find_part(rr, rr->call_at, &p)) {
		rr->call_at += p.len;
		if (p.item && rr->mode.payload) {
			memcpy((uint8_t *)rr->call_buf->addr + p.to, rr->mode.payload + p.off, p.len);
			rr_count(rr->base.pub.engine, bytes_copied, p.len);
			continue;
		}
		x = p.item ? &rr->item_piece : &rr->call_piece;
		*x = (struct rpcrdma_xfer){ .buf = rr->call_buf, .buf_off = p.to, .off = p.off, .len = p.len,
					    .done = on_part, .req = &rr->base.pub };
		if (rr_srv_read(rr, x))
			end_call(rr);
		return;
	}
	if (rr_srv_is_joined(rr)) {
		rr_count(rr->base.pub.engine, bytes_in, rr->reads.item_bytes);
		rr->joined = true;
	}
	rr_srv_deliver(rr, rr->call_buf->addr, rr->call_bytes);
}

/* Copies a message of the receive buffer to the buffer, around the place of the payload. */
static void copy_message(const struct rr_rreq *rr)
{
	uint8_t *to = rr->call_buf->addr;
	uint32_t head = rr->reads.item_position;

	memcpy(to, rr->msg, head);
	memcpy(to + head + joined_bytes(rr), rr->msg + head, rr->msg_len - head);
}

static void get_buf(struct rr_rreq *rr)
{
	struct rpcrdma_conn *c = rr->base.pub.conn;
	int rc = rr_conn_buf_get(c, RR_ZONE_CALLS, rr->call_bytes, &rr->call_buf);

	if (rc == -ENOBUFS && !c->dead) {
		rr_conn_buf_wait(c, RR_ZONE_CALLS, &rr->waiter);
		return;
	}
	if (rc) {
		end_call(rr);
		return;
	}
	rr_count(c->engine, long_calls, rr->reads.has_pzrc);
	if (rr_srv_is_joined(rr)) {
		if (!rr->reads.has_pzrc)
			copy_message(rr);
		memset((uint8_t *)rr->call_buf->addr + rr->reads.item_position + rr->reads.item_bytes, 0,
		       joined_bytes(rr) - rr->reads.item_bytes);
	}
	pull_parts(rr);
}

static void on_buf(struct rpcrdma_buf_waiter *w)
{
	get_buf(container_of(w, struct rr_rreq, waiter));
}

void rr_srv_pull_call(struct rr_rreq *rr, const uint8_t *msg, size_t len)
{
	rr->waiter = (struct rpcrdma_buf_waiter){ .fn = on_buf };
	rr->msg = msg;
	rr->msg_len = len;
	rr->call_bytes = (size_t)rr_srv_call_bytes(rr, len);
	rr->call_at = 0;
	get_buf(rr);
}
