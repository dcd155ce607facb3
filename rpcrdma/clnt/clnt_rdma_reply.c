/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_rdma_reply.c - receives a message: finds its call, checks the protocol rules, decodes it
 *
 * Operation:  rr_link_recv() controls the steps. It first matches a message by its XID. Only then it checks the
 *             rules (protocol.md 7.1), because a message without a call only costs a counter. For a call: it
 *             compares the chunk lists with the offer, and ends the peer's access to the call's memory. The
 *             message may have started that (an invalidation), and it may take until later (rr_rcall_finish).
 *             Only then it decodes the message and copies payload in it to the sink.
 *
 *                 RDMA_MSG    in the Send; payload there too, or in the Write chunk
 *                 RDMA_NOMSG  in the Reply chunk; payload there too, or in the Write chunk
 *                 RDMA_ERROR  final for its call; the connection goes on
 *
 * Memory:     The receive buffer is returned to the device before done() runs, so that a receive is posted for
 *             each call that done() may start.
 * Threads:    The engine's.
 * Errors:     A reply that breaks a rule fails its call with -EPROTO and ends the connection, because such a
 *             peer might misuse the other calls' memory.
 * See:        RFC 8166 section 4.5; protocol.md sections 1.4, 1.5, 5, 6, 7.1.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/wire.h"
#include "chunk.h"
#include "clnt_rdma.h"

static void broken(struct rr_verdict *v, const char *why)
{
	v->err = -EPROTO;
	v->why = why;
	v->drop = true;
}

static void check_error(const struct rr_hdr *h, struct rr_verdict *v)
{
	if (h->err == RR_ERR_CHUNK) {
		v->err = -EMSGSIZE;
		v->why = "server refused the chunks (ERR_CHUNK): the results may be longer than sink or reply_max";
	} else if (h->err == RR_ERR_VERS) {
		v->err = -EPROTONOSUPPORT;
		v->why = "server speaks another RPC-over-RDMA version";
	} else {
		broken(v, "unknown RDMA_ERROR");
	}
}

/* Compares the returned lists with the offered ones: RFC 8166 section 3.4.6. */
static bool check_lists(const struct rr_rcall *rc, const struct rr_hdr *h, struct rr_verdict *v,
			uint64_t *ret_replied)
{
	*ret_replied = 0;
	if (h->nreads) {
		broken(v, "Read list in a reply");
		return false;
	}
	if (h->nwrites != rc->has_write) {
		broken(v, "Write list returned is not the one offered");
		return false;
	}
	if (rc->has_write &&
	    rr_chunk_check_returned(&rc->write_chunk, &h->writes[0], &v->placed)) {
		broken(v, "Write chunk returned is not the one offered");
		return false;
	}
	if (!h->has_reply)
		return true;
	if (!rc->has_reply ||
	    rr_chunk_check_returned(&rc->reply_chunk, &h->reply, ret_replied)) {
		broken(v, "Reply chunk returned is not the one offered");
		return false;
	}
	return true;
}

static void check_reply(const struct rr_rcall *rc, const struct rr_hdr *h, uint8_t *msg,
			size_t msg_bytes, struct rr_verdict *v)
{
	uint64_t replied;

	if (!check_lists(rc, h, v, &replied))
		return;
	if (h->proc == RR_MSG && replied) {
		broken(v, "Reply chunk used by a message that came inline");
	} else if (h->proc == RR_MSG) {
		v->msg = msg;
		v->msg_bytes = msg_bytes;
	} else if (!replied || replied % 4) {
		broken(v, "long reply without a message");
	} else {
		v->msg = rr_rcall_reply_mem(rc);
		v->msg_bytes = (size_t)replied;
	}
}

/* ---- results ------------------------------------------------------------------------------ */

static void lost_pages(struct rr_verdict *v)
{
	v->err = -EFAULT;
	v->why = "memory of the call was unmapped while it was out";
}

/* Copies payload from the bounce buffer to the caller's memory. */
static void unbounce(struct rr_rcall *rc, struct rr_verdict *v)
{
	const struct rpcrdma_call *user = rc->call->user;

	if (!rc->sink.mem)
		return;
	if (rr_mem_is_there(user->sink, user->sinkcnt, v->placed, true))
		rr_clnt_sink_put(rc->call, 0, rc->sink.mem, (size_t)v->placed);
	else
		lost_pages(v);
}

static void decode(struct rr_rcall *rc, struct rr_verdict *v)
{
	struct rr_stream s;

	if (rc->call->room) {
		v->err = rr_clnt_take(rc->call, v->msg, v->msg_bytes, v->placed, &v->why);
		v->drop = v->err == -EPROTO;
		if (!v->err && v->placed)
			unbounce(rc, v);
		if (!v->err)
			rr_count(rc->conn->engine, bytes_in, v->placed);
		return;
	}
	if (v->placed)
		rr_stream_decode_chunk(&s, v->msg, v->msg_bytes, RR_STREAM_ANY_POSITION,
				       (size_t)v->placed);
	else
		rr_stream_decode(&s, v->msg, v->msg_bytes);
	v->err = rr_clnt_decode(rc->call, &s, &v->why);
	if (!v->err && v->was_read && (!s.has_payload || s.payload_pos != v->position)) {
		v->err = -EPROTO;
		v->why = "Read chunk at a wrong position";
	}
	v->drop = v->err == -EPROTO;
	if (v->err || !s.has_payload)
		return;
	if (v->placed)
		unbounce(rc, v);
	else
		rr_clnt_sink_put(rc->call, 0, s.buf + s.payload_pos, s.payload.length);
	if (!v->err)
		rr_count(rc->conn->engine, bytes_in, s.payload.length);
}

/* ---- matching calls --------------------------------------------------------------------------- */

/* A server that calls back uses its own XIDs, which may equal one of ours. */
static bool is_reverse_call(const struct rr_hdr *h, const uint8_t *msg, size_t bytes)
{
	return h->proc == RR_MSG && bytes >= 8 && get_be32(msg + 4) == RR_RPC_CALL;
}

static uint32_t granted(struct rr_link *l, uint32_t credits)
{
	uint32_t want = MIN(MAX(credits, 1u), l->clnt->credit.wanted);

	if (want > l->ep->msgs && !rr_link_msgs_grow(l, want + l->ep->extra_recvs))
		rr_ep_grow(l->ep, want);
	return MIN(want, l->ep->msgs); /* no more calls than receives */
}

/* The call was given up before; its room is free now. The verdict concerns only the connection. */
static void finish_late(struct rr_rcall *rc)
{
	struct rr_link *l = rc->conn;
	struct rr_call *call = rc->call;
	uint32_t credits = rc->verdict.credits;

	rr_rcall_detach(rc);
	rr_clnt_stray(l->clnt, call->xid, l->ending ? 1 : granted(l, credits));
}

void rr_rcall_finish(struct rr_closing *closing)
{
	struct rr_rcall *rc = container_of(closing, struct rr_rcall, closing);
	struct rr_link *l = rc->conn;
	struct rr_call *call = rc->call;
	struct rr_verdict v = rc->verdict;
	int err = rr_reg_end(l->reg, rc->offers, RR_RCALL_OFFERS, RR_END_REPLIED, closing);

	if (err == -EINPROGRESS)
		return; /* this function runs again */
	/* from here on the peer cannot access any of it */
	if (rr_rcall_is_late(rc)) {
		finish_late(rc);
		return;
	}
	if (err && !v.err)
		lost_pages(&v);
	if (!v.err)
		decode(rc, &v);
	rr_rcall_detach(rc);
	call->xprt = NULL;
	if (v.drop)
		rr_link_fail(l, -EPROTO, "%s", v.why);
	rr_clnt_replied(l->clnt, call, v.err, v.why, l->ending ? 1 : granted(l, v.credits));
	if (l->mode && l->clnt)
		l->mode->ops->go_on(l);
}

static void on_reply(struct rr_link *l, struct rr_rcall *rc, struct rr_recv_ctx *recv)
{
	rc->recv = recv;
	if (rc->verdict.drop)
		rr_link_fail(l, -EPROTO, "%s", rc->verdict.why);
	rr_rcall_finish(&rc->closing);
}

void rr_link_pulled(struct rr_rcall *rc, struct rr_recv_ctx *recv, enum rr_wc_status status)
{
	if (status == RR_WC_OK && rc->call && rc->conn->clnt) {
		on_reply(rc->conn, rc, recv);
		return;
	}
	rr_ep_repost(recv);
	if (!rc->call)
		rr_rcall_detach(rc); /* the call was given up meanwhile */
}

/* Checks that a key invalidated by this message was offered with the call that it replies to. If not, it ends
 * the connection: the key is gone, and it may be one of a long-lived registration. The reply is valid
 * nevertheless. */
static void check_invalidation(struct rr_link *l, struct rr_rcall *rc, const struct rr_wc *wc)
{
	if (!wc->with_inv)
		return;
	rr_count(l->engine, invalidations, 1);
	if (rc && rr_reg_reminv(l->reg, rc->offers, RR_RCALL_OFFERS, wc->inv_rkey))
		return;
	rr_link_fail(l, -EPROTO, "server invalidated memory without leave");
}

/* Returns the call that a message replies to, or NULL. */
static struct rr_rcall *call_of_reply(struct rr_link *l, const struct rr_hdr *h)
{
	struct rr_call *call = rr_clnt_find(l->clnt, h->xid);

	if (call)
		return call->xprt;
	call = rr_clnt_find_late(l->clnt, h->xid);
	return call ? call->late : NULL;
}

void rr_link_recv(struct rr_done *done, const struct rr_wc *wc)
{
	struct rr_recv_ctx *recv = rr_ep_take(done, wc);
	struct rr_rcall *rcall = NULL;
	struct rr_link *l;
	struct rr_hdr h;
	size_t hdr_bytes = 0;
	bool no_reply;
	int rc;

	if (!recv)
		return;
	l = recv->ep->owner;
	if (l->mode && l->mode->ops->recv(l, recv))
		return;
	rc = rr_hdr_decode(recv->buf, recv->len, &h, &hdr_bytes);
	no_reply = !l->clnt || (!rc && h.proc == RR_DONE) ||
		   (!rc && is_reverse_call(&h, recv->buf + hdr_bytes, recv->len - hdr_bytes));
	if (!no_reply)
		rcall = call_of_reply(l, &h);
	/* a call that already has its reply waits for invalidations */
	no_reply |= rcall && (rcall->recv || rr_rcall_is_busy(rcall));
	check_invalidation(l, no_reply ? NULL : rcall, wc);
	if (no_reply) {
		rr_count(l->engine, dropped, 1);
		rr_ep_repost(recv);
		return;
	}
	if (!rcall) {
		uint32_t grant = rc ? 1 : granted(l, h.credits);

		rr_ep_repost(recv);
		if (l->mode)
			l->mode->ops->stray(l, h.xid, !rc && h.nreads);
		rr_clnt_stray(l->clnt, h.xid, grant);
		return;
	}
	rcall->verdict = (struct rr_verdict){ .credits = h.credits };
	/* only a sent call can have a reply; a queued one still needs the windows that it binds */
	if (rr_rcall_unpost(rcall) || rr_how(rcall) == RR_HOW_LATER)
		broken(&rcall->verdict, "reply to a call that had not been sent");
	else if (rc)
		broken(&rcall->verdict, "malformed transport header");
	else if (h.proc == RR_ERROR)
		check_error(&h, &rcall->verdict);
	else if (l->mode && h.nreads)
		l->mode->ops->pull(rcall, recv, &h, recv->buf + hdr_bytes, recv->len - hdr_bytes);
	else
		check_reply(rcall, &h, recv->buf + hdr_bytes, recv->len - hdr_bytes,
			    &rcall->verdict);
	if (!rr_rcall_is_busy(rcall)) /* otherwise rr_link_pulled() follows */
		on_reply(l, rcall, recv);
}
