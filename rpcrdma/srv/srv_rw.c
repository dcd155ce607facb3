/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_rw.c - the responder's payload: pull, place, sink
 *
 * Operation:  pull   RDMA Reads of the call's Read chunk into a pool buffer. A connection has at most
 *                    rd_depth Reads in flight. The others wait in a FIFO of their request. Requests
 *                    with waiting Reads take turns, one Read each, so a long request does not delay
 *                    short ones. A Read in flight waits only for the network, so any depth serves
 *                    any number of segments. Only Reads in flight have a transfer (rr_rw); the
 *                    request records the others. Payload that came with the message is copied.
 *             place  RDMA Writes of a pool buffer to the call's Write chunk, in the order in which the
 *                    pieces arrive. Writes are posted at once, except the last one if it has no
 *                    done function: that one is posted in one chain with the reply, so both cost one
 *                    doorbell and one completion. Without a Write chunk the pieces wait and are sent
 *                    with the reply.
 *             sink, source  if the fabric can map the client's memory: its address, so that the
 *                    kernel can read into it or write from it.
 *             The Send is posted last and completes last (RC ordering), so a request's buffers are
 *             free when its Send completes.
 * Memory:     The service owns pieces and their buffers, and lends them until piece->done or the req's done.
 *             Transfers (rr_rw) are recycled per connection; the tick frees those that were not in use.
 *             Reads use at most rd_depth transfers. Writes to a chunk use at most RR_CALL_RWS per source
 *             buffer: long chains are built when they are posted (rr_post.build).
 * Threads:    The connection's engine.
 * Errors:     A failed transfer ends the connection (RFC 8166 section 4.5: no message can repair it).
 *             Pieces in flight end with -EIO.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "srv_rdma.h"

static void on_rw(struct rr_post *post, enum rr_wc_status status);
static void on_copied(struct rpcrdma_msg *msg);

struct rr_rw *rr_rw_get(struct rr_rconn *c)
{
	struct list *n = list_pop(&c->free_rws);
	struct rr_rw *rw = n ? list_entry(n, struct rr_rw, link) : malloc(sizeof(*rw));

	if (!rw)
		return NULL;
	c->nrws += !n;
	c->rws_used++;
	c->rws_most = MAX(c->rws_most, c->rws_used);
	list_init(&rw->link);
	list_init(&rw->post.link);
	rw->post.fn = on_rw;
	rw->post.build = NULL;
	rw->msg.fn = on_copied;
	rw->conn = c;
	rw->req = NULL;
	rw->piece = NULL;
	rw->send_buf = NULL;
	rw->read = false;
	rw->n = 0;
	return rw;
}

void rr_rw_put(struct rr_rw *rw)
{
	rw->conn->rws_used--;
	list_add_head(&rw->conn->free_rws, &rw->link);
}

void rr_srv_trim_rws(struct rr_rconn *c, unsigned keep)
{
	struct list *n;

	while (c->nrws > keep && (n = list_pop(&c->free_rws)) != NULL) {
		free(list_entry(n, struct rr_rw, link));
		c->nrws--;
	}
}

/* A piece counts its transfers in priv[0]; the last one calls its done. */
static void piece_add(struct rpcrdma_xfer *p, unsigned n)
{
	if (p)
		p->priv[0] = (void *)((uintptr_t)p->priv[0] + n); /* a count, not an address */
}

static void piece_sub(struct rpcrdma_xfer *p, int err)
{
	if (!p)
		return;
	if (err)
		p->err = err;
	p->priv[0] = (void *)((uintptr_t)p->priv[0] - 1);
	if (!p->priv[0] && p->done)
		p->done(p, p->err);
}

static void on_rw(struct rr_post *post, enum rr_wc_status status)
{
	struct rr_rw *rw = container_of(post, struct rr_rw, post);
	struct rpcrdma_xfer *p = rw->piece;
	struct rr_rreq *rr = rw->req;
	struct rr_rconn *c = rw->conn;
	bool read = rw->read;

	rr_conn_progress(&c->base);
	rr_rw_put(rw);
	if (read) {
		c->reads_out--;
		rr_srv_reads_pump(c);
	}
	piece_sub(p, status == RR_WC_OK ? 0 : -EIO);
	rr_srv_op_ended(rr); /* may free the request and the connection */
}

static struct rr_wr wr_of(enum rr_wr_op op, const struct rr_span *span, void *mem, struct rr_mr *mr)
{
	return (struct rr_wr){ .op = op, .sge = { mem, span->length, mr }, .raddr = span->offset, .rkey = span->handle };
}

static void fill_writes(struct rr_wr *wr, const struct rr_span *spans, unsigned n, uint8_t *mem, struct rr_mr *mr)
{
	for (unsigned i = 0; i < n; i++) {
		wr[i] = wr_of(RR_WR_WRITE, &spans[i], mem + spans[i].skip, mr);
		if (i)
			wr[i - 1].next = &wr[i];
	}
}

/* Returns unposted transfers of a range for which another one could not be allocated. */
static void put_chain(struct list *chain)
{
	struct list *n;

	while ((n = list_pop(chain)) != NULL)
		rr_rw_put(list_entry(n, struct rr_rw, link));
}

static void take(struct rr_rreq *rr, struct rr_rw *rw, struct rpcrdma_xfer *piece)
{
	rw->req = rr;
	rw->piece = piece;
	rr->ops_out++;
	piece_add(piece, 1);
}

/* ---- pull ---- */

/* Finds the segments of a piece after its first @done bytes. Return: number of spans, or as rr_chunk_read_spans() */
static int read_spans(const struct rr_rreq *rr, const struct rpcrdma_xfer *p, uint32_t done,
		      struct rr_span *spans, unsigned max)
{
	bool is_call = p == &rr->call_piece;
	unsigned first = is_call ? rr->reads.pzrc_first : rr->reads.item_first;
	unsigned nsegs = is_call ? rr->reads.pzrc_nsegs : rr->reads.item_nsegs;

	return rr_chunk_read_spans(&rr->hdr.reads[first], nsegs, (uint64_t)p->off + done, p->len - done,
				   spans, max);
}

/* Posts one Read to byte @to of a piece. Return: 0, -ENOMEM */
static int post_read(struct rr_rreq *rr, struct rpcrdma_xfer *p, const struct rr_span *span,
		     uint32_t to)
{
	struct rr_rconn *c = rr_rreq_conn(rr);
	struct rr_rw *rw = rr_rw_get(c);

	if (!rw)
		return -ENOMEM;
	rw->req = rr;
	rw->piece = p;
	rw->read = true;
	rw->n = 1;
	rw->wr[0] = wr_of(RR_WR_READ, span, (uint8_t *)p->buf->addr + p->buf_off + to, rr_buf_mr(p->buf, c->ep->dev));
	rw->post.first = rw->wr;
	rw->post.n = 1;
	c->reads_out++;
	rr_ep_post(c->ep, &rw->post);
	return 0;
}

/* Posts waiting Reads. If memory for one is short, others are in flight; each of them frees a transfer when it ends. */
void rr_srv_reads_pump(struct rr_rconn *c)
{
	struct list *n;

	while (c->reads_out < c->rd_depth && (n = list_first(&c->pullers)) != NULL) {
		struct rr_rreq *rr = list_entry(n, struct rr_rreq, puller);
		struct rpcrdma_xfer *p = rr->pulls;
		struct rr_span span;

		(void)!read_spans(rr, p, rr->pulled, &span, 1); /* if there are more: only the first */
		if (post_read(rr, p, &span, rr->pulled))
			return;
		list_del(n);
		rr->pulled += span.length;
		if (rr->pulled == p->len) {
			rr->pulled = 0;
			rr->pulls = p->next;
			if (!rr->pulls)
				rr->pulls_tail = &rr->pulls;
		}
		if (rr->pulls)
			list_add_tail(&c->pullers, &rr->puller);
	}
}

int rr_srv_read(struct rr_rreq *rr, struct rpcrdma_xfer *piece)
{
	struct rr_rconn *c = rr_rreq_conn(rr);
	struct rr_span spans[RR_READ_SEGS_MAX];
	int nspans, i = 0;

	nspans = read_spans(rr, piece, 0, spans, RR_READ_SEGS_MAX);
	if (nspans < 0)
		return -EINVAL;
	if (list_is_empty(&c->pullers))
		while (i < nspans && c->reads_out < c->rd_depth &&
		       !post_read(rr, piece, &spans[i], spans[i].skip))
			i++;
	if (i < nspans && !c->reads_out)
		return -ENOMEM;
	piece->priv[0] = NULL;
	piece_add(piece, (unsigned)nspans);
	rr->ops_out += (unsigned)nspans;
	if (i < nspans) {
		if (i) /* then this piece is the first one that waits */
			rr->pulled = spans[i].skip;
		piece->next = NULL;
		*rr->pulls_tail = piece;
		rr->pulls_tail = &piece->next;
		if (!list_is_linked(&rr->puller))
			list_add_tail(&c->pullers, &rr->puller);
	}
	rr_count(c->base.engine, bytes_pulled, piece->len);
	return 0;
}

/* ---- place ---- */

void rr_srv_post_held(struct rr_rreq *rr)
{
	struct rr_rw *rw = rr->held;

	rr->held = NULL;
	if (rw)
		rr_ep_post(rr_rreq_conn(rr)->ep, &rw->post);
}

static void build_writes(struct rr_post *post, struct rr_wr *wr)
{
	const struct rr_rw *rw = container_of(post, struct rr_rw, post);
	const struct rr_rw_range *r = &rw->range;
	struct rr_span spans[RR_POST_BUILT];
	int n = rr_chunk_spans(r->chunk->segs, r->chunk->nsegs, r->off, r->len, spans, RR_POST_BUILT);

	assert(n == (int)rw->n);
	fill_writes(wr, spans, rw->n, r->mem, r->mr);
}

/* Prepares Writes of @n spans: builds a few now, describes more for build_writes(). */
static void plan_writes(struct rr_rw *rw, const struct rr_rw_range *range, const struct rr_span *spans,
			unsigned n)
{
	const struct rr_span *last = &spans[n - 1];
	uint32_t skip = spans[0].skip;

	rw->n = rw->post.n = n;
	if (n <= RR_RW_WRS) {
		fill_writes(rw->wr, spans, n, range->mem, range->mr);
		rw->post.first = rw->wr;
		return;
	}
	rw->range = (struct rr_rw_range){ .chunk = range->chunk,
					  .off = range->off + skip,
					  .len = last->skip + last->length - skip,
					  .mem = range->mem + skip,
					  .mr = range->mr };
	rw->post.build = build_writes;
}

int rr_srv_write(struct rr_rreq *rr, const struct rr_chunk *chunk, uint32_t off, void *mem,
		 uint32_t len, const struct rpcrdma_buf *buf, struct rpcrdma_xfer *piece)
{
	struct rr_rconn *c = rr_rreq_conn(rr);
	const struct rr_rw_range range = { .chunk = chunk, .off = off, .len = len, .mem = mem,
					   .mr = rr_buf_mr(buf, c->ep->dev) };
	struct rr_span spans[RR_CHUNK_SEGS_MAX];
	struct list chain, *n;
	struct rr_rw *rw;
	int nspans;

	nspans = rr_chunk_spans(chunk->segs, chunk->nsegs, off, len, spans, RR_CHUNK_SEGS_MAX);
	if (nspans < 0)
		return -EMSGSIZE;
	list_init(&chain);
	for (unsigned i = 0; i < (unsigned)nspans; i += rw->n) {
		rw = rr_rw_get(c);
		if (!rw) {
			put_chain(&chain);
			return -ENOMEM;
		}
		list_add_tail(&chain, &rw->link);
		plan_writes(rw, &range, &spans[i], MIN((unsigned)nspans - i, RR_POST_BUILT));
	}
	if (piece)
		piece->priv[0] = NULL;
	list_for_each(m, &chain)
		take(rr, list_entry(m, struct rr_rw, link), piece);
	rr_srv_post_held(rr);
	while ((n = list_pop(&chain)) != NULL) {
		rw = list_entry(n, struct rr_rw, link);
		if (!piece && list_is_empty(&chain) && !rw->post.build && rw->n < c->ep->sq_depth)
			rr->held = rw;
		else
			rr_ep_post(c->ep, &rw->post);
	}
	rr_count(c->base.engine, bytes_placed, len);
	return 0;
}

/* ---- for the service ---- */

static void on_copied(struct rpcrdma_msg *msg)
{
	struct rr_rw *rw = container_of(msg, struct rr_rw, msg);
	struct rpcrdma_xfer *p = rw->piece;
	struct rr_rreq *rr = rw->req;

	rr_rw_put(rw);
	piece_sub(p, 0);
	rr_srv_op_ended(rr);
}

/* For payload that is in memory already: it came with the message (inline or long call) or before it. */
static int copy_payload(struct rr_rreq *rr, struct rpcrdma_xfer *p, const uint8_t *payload)
{
	struct rr_rw *rw = rr_rw_get(rr_rreq_conn(rr));

	if (!rw)
		return -ENOMEM;
	memcpy((uint8_t *)p->buf->addr + p->buf_off, payload + p->off, p->len);
	rr_count(rr->base.pub.engine, bytes_copied, p->len);
	p->priv[0] = NULL;
	take(rr, rw, p);
	rr_engine_defer(rr->base.pub.engine, &rw->msg);
	return 0;
}

int rr_srv_pull(struct rr_req *r, struct rpcrdma_xfer *p)
{
	struct rr_rreq *rr = rr_rreq_of(r);
	const uint8_t *payload = r->args.chunk_used ? rr->mode.payload :
						      r->args.buf + r->args.payload_pos;

	if (!payload)
		return rr_srv_read(rr, p);
	return p->buf->far ? -EOPNOTSUPP : copy_payload(rr, p, payload);
}

/* Without a Write chunk the reply carries the payload: room is the larger of what an inline reply and the Reply chunk
 * leave after the smallest header. A reply that turns out too long is rejected when it is built. */
static uint32_t room_of(const struct rr_rreq *rr)
{
	const struct rr_rconn *c = rr_rreq_conn(rr);
	uint64_t hdr = rr_srv_reply_hdr_bytes(rr), room;

	if (rr_srv_has_write_chunk(rr))
		return (uint32_t)MIN(rr_chunk_bytes(&rr->hdr.writes[0]), (uint64_t)UINT32_MAX);
	room = c->send_inline > hdr ? c->send_inline - hdr : 0;
	if (rr->hdr.has_reply)
		room = MAX(room, rr_chunk_bytes(&rr->hdr.reply));
	room = MIN(room, (uint64_t)rr_conn_buf_max(&c->base, RR_ZONE_REPLIES));
	room = room > RR_RPC_REPLY_HDR_BYTES ? room - RR_RPC_REPLY_HDR_BYTES : 0;
	return c->mode ? MAX((uint32_t)room, c->mode->room) : (uint32_t)room;
}

/* A Read chunk that matches no argument makes rpcrdma_req_decode() fail, so its presence is enough here. */
void rr_srv_facts(struct rr_rreq *rr)
{
	struct rpcrdma_req *pub = &rr->base.pub;
	bool args_by_chunk = rr->reads.has_item && !rr->joined && !pub->args_local;

	rr->base.res_by_chunk = rr_srv_has_write_chunk(rr);
	pub->by_chunk = args_by_chunk || rr->base.res_by_chunk;
	pub->can_map = pub->by_chunk && rr_rreq_conn(rr)->ep->dev->fabric->attr.client_direct;
	pub->room = room_of(rr);
}

/* Maps all spans or none. Return: 0; -EOPNOTSUPP. The RDMA operation that follows detects a bad key, as on any other
 * fabric. */
static int map_spans(struct rr_rreq *rr, const struct rr_span *spans, int n, unsigned access,
		     struct iovec *iov, int *cnt)
{
	struct rr_rconn *c = rr_rreq_conn(rr);
	unsigned had = rr->ntokens;
	uint32_t bytes = 0;

	if (n > *cnt || had + (unsigned)n > RR_CHUNK_SEGS_MAX)
		return -EOPNOTSUPP;
	for (int i = 0; i < n; i++) {
		if (rr_qp_direct(c->ep->qp, spans[i].handle, spans[i].offset, spans[i].length, access,
				 &iov[i].iov_base, &rr->tokens[rr->ntokens]))
			goto out_end;
		iov[i].iov_len = spans[i].length;
		bytes += spans[i].length;
		rr->ntokens++;
	}
	*cnt = n;
	rr_count(c->base.engine, bytes_direct, bytes);
	return 0;
out_end:
	while (rr->ntokens > had)
		rr_qp_direct_end(c->ep->qp, rr->tokens[--rr->ntokens]);
	return -EOPNOTSUPP;
}

/* Requests of this transport alone have can_map or args_local, so the public functions are here. */
int rpcrdma_req_sink(struct rpcrdma_req *req, uint32_t off, uint32_t len, struct iovec *iov, int *cnt)
{
	struct rr_rreq *rr = rr_rreq_of(container_of(req, struct rr_req, pub));
	const struct rr_chunk *chunk = &rr->hdr.writes[0];
	struct rr_span spans[RR_CHUNK_SEGS_MAX];
	int n;

	if (!req->can_map || req->conn->dead || !rr_srv_has_write_chunk(rr))
		return -EOPNOTSUPP;
	n = rr_chunk_spans(chunk->segs, chunk->nsegs, off, len, spans, RR_CHUNK_SEGS_MAX);
	if (n < 0)
		return -EMSGSIZE;
	return map_spans(rr, spans, n, RR_ACCESS_REMOTE_WRITE, iov, cnt);
}

int rpcrdma_req_source(struct rpcrdma_req *req, uint32_t off, uint32_t len, struct iovec *iov, int *cnt)
{
	struct rr_req *r = container_of(req, struct rr_req, pub);
	struct rr_rreq *rr = rr_rreq_of(r);
	struct rr_span spans[RR_READ_SEGS_MAX];
	int n;

	if (!(req->can_map || req->args_local) || req->conn->dead)
		return -EOPNOTSUPP;
	if (rr->mode.payload && *cnt > 0) {
		if ((uint64_t)off + len > r->args.payload.length)
			return -EINVAL;
		iov[0] = (struct iovec){ .iov_base = rr->mode.payload + off, .iov_len = len };
		*cnt = 1;
		return 0;
	}
	if (!r->args.chunk_used || !req->can_map)
		return -EOPNOTSUPP;
	n = rr_chunk_read_spans(&rr->hdr.reads[rr->reads.item_first], rr->reads.item_nsegs, off, len,
				spans, RR_READ_SEGS_MAX);
	if (n < 0)
		return -EINVAL;
	return map_spans(rr, spans, n, RR_ACCESS_REMOTE_READ, iov, cnt);
}

int rr_srv_place(struct rr_req *r, struct rpcrdma_xfer *p)
{
	struct rr_rreq *rr = rr_rreq_of(r);

	if (rr_srv_has_write_chunk(rr))
		return rr_srv_write(rr, &rr->hdr.writes[0], p->off,
				    (uint8_t *)p->buf->addr + p->buf_off, p->len,
				    p->buf, p->done ? p : NULL);
	return rr_req_add_placed(r, p);
}
