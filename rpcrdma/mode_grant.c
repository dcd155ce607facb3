/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_grant.c - hybrid at the responder: room for the payload of a call that is to come
 *
 * Operation:  RR_WANT asks for room for the call of its XID, RR_GRANT says where; the peer writes
 *             there by RDMA and sends the call, whose Read chunk names the room (RR_HERE), or gives
 *             it back by RDMA_DONE. A want waits in line for memory and for a send buffer.
 *
 *                 wanted --memory--> granted --GRANT sent--> given --call--> taken --reply--> free
 *                     '--too much: length 0 --'                '--RDMA_DONE------------------^
 *
 * Memory:     An area that the peer may write to; a grant's pages are nobody else's until it is free.
 *             Grants are recycled; there are never more than calls may be outstanding.
 * Threads:    The connection's engine.
 * Errors:     Two wants for one XID, more wants than credits, a want for nothing, a call that names
 *             other memory than was given for it: the connection ends. Room that is not used, too,
 *             in the end (mode_srv.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/wire.h"
#include "mode_srv.h"

#define ROOM_BYTES ((size_t)4 << 20)
#define ROOM_MAX ((size_t)1 << 20)

struct rr_grant {
	struct list link;          /* m->grants, free_grants; unlinked while a call has it */
	struct rr_mode *mode;
	uint32_t xid, bytes;
	uint64_t since_ns;         /* told the peer; 0: not yet */
	struct rpcrdma_buf *buf;   /* NULL: refused, or still waited for */
	struct rpcrdma_buf_waiter waiter; /* for room, then for a send buffer */
	struct rr_area *line;      /* that it waits in */
	bool over, sending;        /* free when the one is, and the other is not */
	struct rr_send_ctx *sc;
	struct rr_post post;
	struct rr_wr wr;
	struct rr_sge sge;
};

static void on_sent(struct rr_post *post, enum rr_wc_status status);

/** rr_mode_grant_init - Return: 0, -ENOMEM, what the device said */
int rr_mode_grant_init(struct rr_mode *m, struct rr_suffix *give)
{
	int rc = rr_mode_area(m, &m->room, ROOM_BYTES, ROOM_MAX, RR_ACCESS_REMOTE_WRITE);

	if (!rc)
		give->grant_max = ROOM_MAX;
	return rc;
}

/** rr_mode_grant_fini - all of them are over, or there never was one */
void rr_mode_grant_fini(struct rr_mode *m)
{
	list_for_each_safe(n, &m->free_grants)
		free(list_entry(n, struct rr_grant, link));
}

static struct rr_grant *grant_get(struct rr_mode *m)
{
	struct list *n = list_pop(&m->free_grants);
	struct rr_grant *g = n ? list_entry(n, struct rr_grant, link) : malloc(sizeof(*g));

	if (!g)
		return NULL;
	*g = (struct rr_grant){ .mode = m, .line = &m->room, .post.fn = on_sent };
	list_init(&g->link);
	list_init(&g->post.link);
	m->ngrants++;
	return g;
}

/* Its room is free, or there was none; the struct is with its message. */
static void grant_over(struct rr_grant *g)
{
	struct rr_mode *m = g->mode;

	if (!g->over) {
		g->over = true;
		m->ngrants--; /* its message may be on its way still: the peer need not know */
		rr_area_unwait(g->line, &g->waiter);
		if (g->buf)
			rpcrdma_buf_put(m->conn->base.engine, g->buf);
		g->buf = NULL;
	}
	if (g->sending)
		return;
	list_del(&g->link);
	list_add_head(&m->free_grants, &g->link);
}

/* ---- the message -------------------------------------------------------------------------- */

static void on_sent(struct rr_post *post, enum rr_wc_status status)
{
	struct rr_grant *g = container_of(post, struct rr_grant, post);
	struct rr_send_ctx *sc = g->sc;

	(void)status; /* a failure has made the endpoint dead */
	g->sc = NULL;
	g->sending = false;
	if (g->over)
		grant_over(g);
	rr_ep_put_send(sc);
}

static void send_grant(struct rr_grant *g, struct rr_send_ctx *sc)
{
	struct rr_rconn *c = g->mode->conn;
	uint8_t *msg = sc->buf;

	put_be32(msg, g->xid);
	put_be32(msg + 4, RR_VERS);
	put_be32(msg + 8, 1); /* grants room, not credits */
	put_be32(msg + 12, RR_GRANT);
	put_be32(msg + 16, g->mode->room.mr->rkey);
	put_be32(msg + 20, g->buf ? g->bytes : 0);
	put_be64(msg + 24, g->buf ? (uint64_t)(uintptr_t)g->buf->addr : 0);
	g->sc = sc;
	g->sending = true;
	g->sge = (struct rr_sge){ .addr = msg, .len = RR_GRANT_BYTES, .mr = sc->mr };
	g->wr = (struct rr_wr){ .op = RR_WR_SEND, .sge = &g->sge, .nsge = 1 };
	g->post.first = &g->wr;
	g->post.n = 1;
	if (g->buf) {
		g->since_ns = clock_now_ns();
		rr_count(c->base.engine, grants, 1);
		rr_mode_is_owed(g->mode);
	} else {
		grant_over(g); /* its peer may be quicker to ask again than we hear that it has gone */
	}
	rr_ep_post(c->ep, &g->post);
}

static void tell(struct rr_grant *g);

static void on_send_buf(struct rpcrdma_buf_waiter *w)
{
	tell(container_of(w, struct rr_grant, waiter));
}

static void tell(struct rr_grant *g)
{
	struct rr_send_ctx *sc;
	int rc = rr_ep_get_send(g->mode->conn->ep, &sc);

	if (rc == -ENOBUFS) {
		g->line = &g->mode->zones[RR_ZONE_SENDS];
		g->waiter.fn = on_send_buf;
		rr_area_wait(g->line, &g->waiter);
	} else if (rc) {
		rpcrdma_conn_close(&g->mode->conn->base);
	} else {
		send_grant(g, sc);
	}
}

/* ---- from the peer ------------------------------------------------------------------------ */

static void on_room(struct rpcrdma_buf_waiter *w);

static void try_room(struct rr_grant *g)
{
	int rc = rr_area_get(g->line, g->bytes, &g->buf);

	if (rc == -ENOBUFS) {
		g->waiter.fn = on_room;
		rr_area_wait(g->line, &g->waiter);
	} else {
		tell(g); /* if there will never be so much: that it is refused */
	}
}

static void on_room(struct rpcrdma_buf_waiter *w)
{
	try_room(container_of(w, struct rr_grant, waiter));
}

static struct rr_grant *find(const struct rr_mode *m, uint32_t xid)
{
	list_for_each(n, &m->grants) {
		struct rr_grant *g = list_entry(n, struct rr_grant, link);

		if (g->xid == xid && !g->over)
			return g;
	}
	return NULL;
}

/** rr_mode_grant_want - RR_WANT has come; Return: is it one that may be made? */
bool rr_mode_grant_want(struct rr_mode *m, uint32_t xid, uint32_t bytes)
{
	struct rr_grant *g;

	if (!(m->modes & RPCRDMA_HYBRID) || !bytes || find(m, xid) ||
	    m->ngrants >= m->conn->ep->msgs_max)
		return false;
	g = grant_get(m);
	if (!g)
		return false;
	g->xid = xid;
	g->bytes = bytes;
	list_add_tail(&m->grants, &g->link);
	try_room(g);
	return true;
}

/** rr_mode_grant_done - RDMA_DONE has come; Return: was this given? */
bool rr_mode_grant_done(struct rr_mode *m, uint32_t xid)
{
	struct rr_grant *g = find(m, xid);

	if (!g || !g->since_ns)
		return false;
	grant_over(g);
	return true;
}

/** rr_mode_grant_claim - the call's Read chunk has to lie in what was given for it */
bool rr_mode_grant_claim(struct rr_mode *m, struct rr_rreq *rr, const struct rr_segment *seg)
{
	struct rr_grant *g = find(m, rr->hdr.xid);

	if (!g || !g->since_ns || seg->handle != m->room.mr->rkey || !seg->length ||
	    seg->length > g->bytes || seg->offset != (uint64_t)(uintptr_t)g->buf->addr)
		return false;
	list_del(&g->link);
	rr->mode.grant = g;
	rr->mode.mem = g->buf->addr;
	return true;
}

/** rr_mode_grant_release - the call that took it is over */
void rr_mode_grant_release(struct rr_grant *g)
{
	grant_over(g);
}

/** rr_mode_grant_oldest - see mode_srv.h */
uint64_t rr_mode_grant_oldest(const struct rr_mode *m)
{
	list_for_each(n, &m->grants) {
		const struct rr_grant *g = list_entry(n, struct rr_grant, link);

		if (g->since_ns && !g->over)
			return g->since_ns;
	}
	return 0;
}

/** rr_mode_grants_end - nobody will write there any more */
void rr_mode_grants_end(struct rr_mode *m)
{
	list_for_each_safe(n, &m->grants)
		grant_over(list_entry(n, struct rr_grant, link));
}
