/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_pull.c - read-read at the requester: reads the payload of results
 *
 * Operation:  A reply with a Read list is kept in its receive buffer. The caller's memory is registered
 *             for the length of the payload. One chain is posted: RDMA Reads into that memory, then a
 *             fenced RDMA_DONE, which is sent after the Reads have completed. The chain's completion
 *             makes the reply an ordinary one with its payload in place.
 * Memory:     No peer can access the caller's memory (its key is not announced). But the device accesses it,
 *             and only the end of the connection can stop that: cancelling a call during a pull ends
 *             the connection (mode_cancel).
 * Threads:    The engine's.
 * Errors:     A Read list that does not fit the call ends the connection, like any other violation of
 *             the rules.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/wire.h"
#include "chunk.h"
#include "mode_clnt.h"

/* Builds RDMA_DONE. Return: its length */
static size_t build_done(uint8_t *buf, uint32_t xid, uint32_t credits)
{
	put_be32(buf, xid);
	put_be32(buf + 4, RR_VERS);
	put_be32(buf + 8, credits);
	put_be32(buf + 12, RR_DONE);
	return RR_HDR_FIXED;
}

/* ---- RDMA_DONE without a call -------------------------------------------------------------- */

struct lone_done {
	struct list link;          /* mode->lone_dones */
	struct rr_mode_clnt *mode;
	struct rr_post post;
	struct rr_wr wr;
	struct rpcrdma_buf *send_buf;
};

static void on_lone_sent(struct rr_post *post, enum rr_wc_status status)
{
	struct lone_done *d = container_of(post, struct lone_done, post);
	struct rr_mode_clnt *m = d->mode;

	(void)status;
	rr_link_msg_put(m->link, d->send_buf);
	list_del(&d->link);
	free(d);
	rr_mode_go_on(m->link);
}

void rr_mode_lone_dones_free(struct rr_mode_clnt *m)
{
	list_for_each_safe(n, &m->lone_dones)
		free(list_entry(n, struct lone_done, link));
}

void rr_mode_send_done(struct rr_link *l, uint32_t xid)
{
	struct lone_done *d = calloc(1, sizeof(*d));

	if (!d || rr_link_msg_get(l, &d->send_buf)) {
		free(d);
		rr_link_fail(l, -ENOMEM, "no send buffer to give memory back with");
		return;
	}
	d->wr = (struct rr_wr){ .op = RR_WR_SEND,
				.sge = rr_msg_sge(d->send_buf, l->dev, build_done(d->send_buf->addr, xid, 1)) };
	d->mode = rr_mode_of_link(l);
	list_add_tail(&rr_mode_of_link(l)->lone_dones, &d->link);
	list_init(&d->post.link);
	d->post.fn = on_lone_sent;
	d->post.first = &d->wr;
	d->post.n = 1;
	rr_ep_post(l->ep, &d->post);
}

/* ---- a pull ------------------------------------------------------------------------------- */

static void on_pulled(struct rr_post *post, enum rr_wc_status status)
{
	struct rr_mode_call *mc = container_of(post, struct rr_mode_call, post);
	struct rr_recv_ctx *recv = mc->recv;
	struct rpcrdma_buf *buf = mc->send_buf;

	mc->recv = NULL;
	mc->send_buf = NULL;
	mc->head.busy = false;
	rr_link_msg_put(mc->rc->conn, buf);
	rr_link_pulled(mc->rc, recv, status);
}

/* Builds the chain: one Read for each overlap of a remote and a local segment. */
static bool add_reads(struct rr_mode_call *mc, const struct rr_rcall *rc, const struct rr_hdr *h)
{
	const struct rr_offer *o = &rc->sink;
	unsigned k = 0, done = 0;

	mc->n = 0;
	for (unsigned i = 0; i < h->nreads; i++) {
		struct rr_segment seg = h->reads[i].seg;

		while (seg.length) {
			uint32_t n = MIN(seg.length, o->segs[k].seg.length - done);
			uint8_t *to = rr_reg_seg_addr(&o->segs[k]) + done;

			if (mc->n == RR_MODE_WRS - 1)
				return false;
			mc->wr[mc->n] = (struct rr_wr){ .next = &mc->wr[mc->n + 1],
							.op = RR_WR_READ,
							.sge = { to, n, o->segs[k].mr },
							.raddr = seg.offset,
							.rkey = seg.handle };
			mc->n++;
			done += n;
			seg.offset += n;
			seg.length -= n;
			if (done == o->segs[k].seg.length) {
				k++;
				done = 0;
			}
		}
	}
	return mc->n > 0;
}

static void post(struct rr_mode_call *mc, struct rr_link *l, struct rpcrdma_buf *buf)
{
	size_t len = build_done(buf->addr, mc->rc->call->xid, l->clnt->credit.wanted);

	mc->send_buf = buf;
	mc->wr[mc->n] = (struct rr_wr){ .op = RR_WR_SEND, .flags = RR_WR_FENCE, .sge = rr_msg_sge(buf, l->dev, len) };
	mc->post.fn = on_pulled;
	mc->post.first = mc->wr;
	mc->post.n = mc->n + 1;
	list_init(&mc->post.link);
	rr_ep_post(l->ep, &mc->post);
}

void rr_mode_pulls_go(struct rr_mode_clnt *m)
{
	struct rr_mode_call *mc;
	struct rpcrdma_buf *buf;

	while (m->link->clnt && !m->link->ending &&
	       (mc = list_first_entry(&m->pulls, struct rr_mode_call, link)) != NULL) {
		if (rr_link_msg_get(m->link, &buf))
			return;
		list_del(&mc->link);
		post(mc, m->link, buf);
	}
}

void rr_mode_pulls_end(struct rr_link *l)
{
	struct list *n;

	while ((n = list_pop(&rr_mode_of_link(l)->pulls)) != NULL) {
		struct rr_mode_call *mc = list_entry(n, struct rr_mode_call, link);

		mc->head.busy = false;
		rr_link_pulled(mc->rc, mc->recv, RR_WC_FLUSHED);
	}
}

static const char *check(const struct rr_rcall *rc, const struct rr_hdr *h, uint64_t *ret_bytes,
			 uint64_t *ret_replied)
{
	uint64_t sum = 0, replied = 0;

	if (!(rr_mode_of_link(rc->conn)->given.modes & RPCRDMA_READ_READ))
		return "Read list in a reply";
	if (rc->has_write || h->nwrites)
		return "Read list and other room for the payload";
	if (h->has_reply && (!rc->has_reply ||
			     rr_chunk_check_returned(&rc->reply_chunk, &h->reply, &replied)))
		return "Reply chunk returned is not the one offered";
	if ((h->proc == RR_NOMSG) != (replied > 0) || replied % 4)
		return "Read list and a message that is not where it should be";
	for (unsigned i = 0; i < h->nreads; i++) {
		if (h->reads[i].position != h->reads[0].position)
			return "two Read chunks in a reply";
		sum += h->reads[i].seg.length;
	}
	if (!sum || sum > rr_clnt_sink_bytes(rc->call))
		return "Read chunk does not fit the caller's memory";
	*ret_bytes = sum;
	*ret_replied = replied;
	return NULL;
}

void rr_mode_pull(struct rr_rcall *rc, struct rr_recv_ctx *recv, const struct rr_hdr *h, uint8_t *msg,
		  size_t msg_bytes)
{
	struct rr_mode_call *mc = rr_mode_of_call(rc);
	struct rr_verdict *v = &rc->verdict;
	uint64_t replied = 0;

	v->why = check(rc, h, &v->placed, &replied);
	if (!v->why) {
		v->err = rr_rcall_offer_sink(rc, v->placed, false);
		if (v->err) {
			v->why = "the caller's memory cannot be registered";
			rr_mode_send_done(rc->conn, h->xid);
			return;
		}
		if (!add_reads(mc, rc, h))
			v->why = "Read chunk in too many pieces";
	}
	if (v->why) {
		v->err = -EPROTO;
		v->drop = true;
		return;
	}
	v->msg = replied ? rr_rcall_reply_mem(rc) : msg;
	v->msg_bytes = replied ? (size_t)replied : msg_bytes;
	v->was_read = true;
	v->position = h->reads[0].position;
	mc->recv = recv;
	mc->head.busy = true;
	rr_count(rc->conn->engine, offers, 1);
	list_add_tail(&rr_mode_of_link(rc->conn)->pulls, &mc->link);
	rr_mode_pulls_go(rr_mode_of_link(rc->conn));
}
