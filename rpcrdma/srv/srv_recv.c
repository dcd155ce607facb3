/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_recv.c - receives a message at the responder: check, parse, deliver
 *
 * Operation:  Two passes over untrusted bytes: rr_hdr_decode() bounds-checks the header and its lists,
 *             rr_chunk_check_*() checks the chunks. After that a long call (position-zero Read chunk)
 *             is pulled into a buffer (srv_long.c). The result is an RPC message in one contiguous piece; its
 *             reduced argument may be missing.
 *
 *                 drop          under 8 bytes; RDMA_DONE, RDMA_ERROR; an unsolicited reply
 *                 ERR_VERS      another version
 *                 ERR_CHUNK     malformed, contradictory, or over our limits
 *                 disconnect    more calls than were granted
 *                 else          svc_ops.call
 * Memory:     The message is decoded in place. Its receive buffer stays with the request until the reply
 *             is posted; credits count these buffers.
 * Threads:    The connection's engine.
 * Errors:     Each malformed message is counted; RR_BAD_MAX of them end the connection.
 * See:        RFC 8166 sections 4.4, 4.5; protocol.md 1.5, 7.1
 */
#include <errno.h>
#include <stdlib.h>

#include "srv_rdma.h"

static struct rr_rreq *take_request(struct rr_rconn *c, struct rr_recv_ctx *rc)
{
	struct list *n = list_pop(&c->base.free_reqs);
	struct rr_rreq *rr = n ? rr_rreq_of(list_entry(n, struct rr_req, link))
			       : calloc(1, sizeof(*rr));

	if (!rr)
		return NULL;
	c->base.nreqs += !n;
	rr_req_init(&rr->base, &c->base);
	rr->rc = rc;
	rr->pulls = NULL;
	rr->pulls_tail = &rr->pulls;
	rr->pulled = 0;
	list_init(&rr->puller);
	rr->counted = rr->joined = false;
	rr->call_buf = rr->reply_buf = NULL;
	rr->held = NULL;
	rr->send_buf = NULL;
	rr->ops_out = 0;
	rr->ntokens = 0;
	rr->out.begun = false;
	return rr;
}

/* If the call's own pull just ended, ops_out still counts it. */
void rr_srv_forget(struct rr_rreq *rr)
{
	if (rr->rc)
		rr_ep_repost(rr->rc);
	rr->rc = NULL;
	rr->base.ended = true;
	if (!rr->ops_out)
		rr_srv_release(rr);
}

/* Replies RDMA_ERROR: the message after a valid header is not an RPC call, so no RPC reply is possible. */
static void refuse_request(struct rr_rreq *rr, enum rr_err err)
{
	rr_srv_send_error(rr, err);
	rr_srv_forget(rr);
}

void rr_srv_deliver(struct rr_rreq *rr, uint8_t *msg, size_t len)
{
	struct rr_req *r = &rr->base;

	rr_srv_facts(rr);
	r->chunk_at = rr->reads.item_position;
	r->chunk_bytes = rr->reads.item_bytes;
	if (rr->reads.has_item && !rr->joined)
		rr_stream_decode_chunk(&r->args, msg, len, rr->reads.item_position,
				       rr->reads.item_bytes);
	else
		rr_stream_decode(&r->args, msg, len);
	if (rr_req_deliver(r, msg, len))
		refuse_request(rr, RR_ERR_CHUNK);
}

/* ---- every message ---- */

static void drop_request(struct rr_rreq *rr)
{
	rr_count(rr->base.pub.engine, dropped, 1);
	rr_srv_forget(rr);
}

/* True if a reply follows the header. (RFC 8167 allows a peer to call or reply in the reverse direction.) */
static bool is_reply(const struct rr_hdr *h, const uint8_t *msg, size_t len)
{
	return h->proc == RR_MSG && len >= 8 && get_be32(msg + 4) == RR_RPC_REPLY;
}

void rr_srv_recv(struct rr_done *done, const struct rr_wc *wc)
{
	struct rr_recv_ctx *rc = rr_ep_take(done, wc);
	struct rpcrdma_engine *e;
	struct rr_rconn *c;
	struct rr_rreq *rr;
	struct rr_hdr *h;
	struct rr_ep *ep;
	size_t hdr_len = 0, msg_len;
	int err;

	if (!rc)
		return;
	ep = rc->ep;
	e = ep->engine;
	c = ep->owner;
	rr_conn_heard(&c->base);
	if (c->mode && c->mode->ops->recv(c, rc, wc))
		return;
	rr = take_request(c, rc);
	if (!rr) {
		rr_count(e, dropped, 1);
		rr_ep_repost(rc);
		return;
	}
	h = &rr->hdr;
	err = rr_hdr_decode(rc->buf, rc->len, h, &hdr_len);
	if (err == -EMSGSIZE) {
		drop_request(rr);
		(void)rr_conn_bad(&c->base);
		return;
	}
	if (err && h->proc == RR_ERROR) {
		/* never reply to an error, even a malformed one: two peers could exchange errors endlessly */
		drop_request(rr);
		return;
	}
	if (err) {
		refuse_request(rr, err == -EPROTONOSUPPORT ? RR_ERR_VERS : RR_ERR_CHUNK);
		return;
	}
	msg_len = rc->len - hdr_len;
	if (h->proc == RR_DONE || h->proc == RR_ERROR || is_reply(h, rc->buf + hdr_len, msg_len)) {
		drop_request(rr);
		return;
	}
	if (rr_chunk_check_reads(h, msg_len, c->base.svc->attr.call_bytes_max, &rr->reads) ||
	    (rr_srv_is_long(rr) && rr_srv_call_bytes(rr, msg_len) > rr_conn_buf_max(&c->base, RR_ZONE_CALLS)) ||
	    rr_chunk_check_writes(h, (uint64_t)RPCRDMA_CALL_BYTES_MAX * 2) ||
	    (h->proc == RR_NOMSG) != rr->reads.has_pzrc || (h->proc == RR_MSG && !msg_len)) {
		refuse_request(rr, RR_ERR_CHUNK);
		return;
	}
	if (c->mode && !c->mode->ops->claim(rr)) {
		rr_srv_forget(rr);
		rpcrdma_conn_close(&c->base);
		return;
	}
	if (!rr_credit_account_call(&c->account, ep->extra_recvs)) {
		/* the call took a receive beyond its credits, or one that was about to be returned */
		drop_request(rr);
		rpcrdma_conn_close(&c->base);
		return;
	}
	rr->counted = true;
	rr_srv_demand(c, h->credits);
	rr_count(e, chunks_read, rr->reads.has_item);
	rr_count(e, chunks_write, h->nwrites);
	rr_count(e, chunks_reply, h->has_reply);
	rr_count(e, inline_msgs, !rr->reads.has_pzrc);
	if (rr_srv_is_long(rr))
		rr_srv_pull_call(rr, rc->buf + hdr_len, msg_len);
	else
		rr_srv_deliver(rr, rc->buf + hdr_len, msg_len);
}
