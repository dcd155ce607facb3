/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_grant.c - hybrid at the responder: room for the payload of a call that is to come
 *
 * Operation:  RR_WANT asks for room for the call of its XID, RR_GRANT says where; the peer writes
 *             there by RDMA and sends the call, whose Read chunk names the room (RR_HERE), or gives
 *             it back by RDMA_DONE. A want waits in line for memory and for a send buffer.
 *
 *                 wanted --memory--> granted --GRANT sent--> given --call--> taken --reply--> over
 *                     '--too much: length 0 --'               |'--RDMA_DONE-------------------^
 *                                                             '--stall_ms--> revoked --forgotten
 *
 *             Where there are windows (mode_window.c) a grant has one, over the bytes that were asked
 *             for, bound in front of its RR_GRANT. It is taken back, once and without anybody waiting,
 *             when its call is here, in front of whatever answers that: who has had the answer cannot
 *             write any more. Likewise when the room is given back, and when it is revoked. The pages
 *             are used anew when that has been carried out, and the grant is over.
 *
 *             Without windows the peer can write to all of the area, at any time, and what is not used
 *             cannot be revoked: the connection ends instead.
 *
 *             A revoked grant and its peer may miss each other. What the peer writes after the
 *             revocation is refused, and a refused RDMA Write is the end of the peer's queue pair: the
 *             call that it posted behind is never sent. It is its connection that ends, and an honest
 *             one makes its calls again over the next. So a call that does come for revoked room was
 *             written before: all of it is there, and it is a call like any other, as long as nobody
 *             else has the pages. Therefore they stay as they are until somebody wants some. If they
 *             are gone by then, the call has named what was not given: the connection ends, as it
 *             would have by a Write a moment later. RDMA_DONE is fine either way.
 * Memory:     An area that the peer may write to; a grant's pages are nobody else's until it is over.
 *             Grants are recycled; there are never more than calls may be outstanding, and as many
 *             again that are revoked: the oldest is forgotten then. Others may wait for the end of
 *             their message or invalidation, each with a page at least. Windows: as many as grants.
 * Threads:    The connection's engine.
 * Errors:     Two wants for one XID, more wants than credits, a want for nothing, a call that names
 *             other memory than was given for it or comes before it was told so: the connection ends.
 *             No window to be had: the want is refused.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/wire.h"
#include "mode_srv.h"

#define ROOM_BYTES ((size_t)4 << 20)
#define ROOM_MAX ((size_t)1 << 20)

struct rr_grant {
	struct list link;          /* m->grants, revoked, free_grants; unlinked while a call has it, and
				    * when it is over */
	struct rr_mode *mode;
	uint32_t xid, bytes;
	uint64_t since_ns;         /* told the peer; 0: not yet */
	struct rpcrdma_buf *buf;   /* NULL: refused, or still waited for; revoked: of others by now */
	struct rpcrdma_buf_waiter waiter; /* for room, then for a send buffer */
	struct rr_area *line;      /* that it waits in */
	struct rr_mode_key key;
	bool revoked;
	bool called_back;          /* what there is to be taken back of the key, is; or is on its way: */
	struct rr_reg_closing closing;
	bool over, sending;        /* free when the one is, the other is not, and closing.n is 0 */
	struct rr_send_ctx *sc;
	struct rr_post post, bind;
	struct rr_wr wr;
	struct rr_sge sge;
};

static void on_sent(struct rr_post *post, enum rr_wc_status status);
static void on_taken_back(struct rr_reg_closing *closing);

/** rr_mode_grant_init - Return: 0, -ENOMEM, what the device said */
int rr_mode_grant_init(struct rr_mode *m, struct rr_suffix *give)
{
	int rc = rr_mode_area(m, &m->room, ROOM_BYTES, ROOM_MAX, rr_mode_write_access(m));

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
	*g = (struct rr_grant){ .mode = m, .line = &m->room, .post.fn = on_sent,
				.closing.fn = on_taken_back };
	list_init(&g->link);
	list_init(&g->post.link);
	m->ngrants++;
	return g;
}

/* The key is dead, or never was good: the pages may be others'. */
static void put_pages(struct rr_grant *g)
{
	rr_mode_key_put(g->mode, &g->key);
	if (g->buf)
		rpcrdma_buf_put(g->mode->conn->base.engine, g->buf);
	g->buf = NULL;
}

/* Of one that is over: let go of what nothing is under way with. */
static void settle(struct rr_grant *g)
{
	if (!g->over || g->closing.n)
		return;
	put_pages(g);
	if (!g->sending)
		list_add_head(&g->mode->free_grants, &g->link);
}

static void take_back(struct rr_grant *g)
{
	if (!g->called_back)
		rr_mode_key_take_back(g->mode, &g->key, &g->closing);
	g->called_back = true;
}

/* Nobody asks for it any more, or a call has it now. */
static void unlink_grant(struct rr_grant *g)
{
	list_del(&g->link);
	if (!g->revoked)
		return;
	g->revoked = false;
	g->mode->nrevoked--;
	g->mode->ngrants++;
}

/* Its room is free, or there was none. Its message may be on its way still: the peer need not know. */
static void grant_over(struct rr_grant *g)
{
	unlink_grant(g);
	g->over = true;
	g->mode->ngrants--;
	rr_area_unwait(g->line, &g->waiter);
	settle(g);
}

static void on_taken_back(struct rr_reg_closing *closing)
{
	struct rr_grant *g = container_of(closing, struct rr_grant, closing);

	rr_mode_key_put(g->mode, &g->key);
	if (g->revoked && g->mode->room.waiters)
		put_pages(g);
	settle(g);
}

/* ---- the message -------------------------------------------------------------------------- */

static void on_sent(struct rr_post *post, enum rr_wc_status status)
{
	struct rr_grant *g = container_of(post, struct rr_grant, post);
	struct rr_send_ctx *sc = g->sc;

	(void)status; /* a failure has made the endpoint dead */
	g->sc = NULL;
	g->sending = false;
	settle(g);
	rr_ep_put_send(sc);
}

static void send_grant(struct rr_grant *g, struct rr_send_ctx *sc)
{
	struct rr_rconn *c = g->mode->conn;
	uint8_t *msg = sc->buf;

	if (g->buf && rr_mode_key_get(g->mode, &g->mode->room, g->buf->addr, g->bytes, &g->key))
		put_pages(g);
	put_be32(msg, g->xid);
	put_be32(msg + 4, RR_VERS);
	put_be32(msg + 8, 1); /* grants room, not credits */
	put_be32(msg + 12, RR_GRANT);
	put_be32(msg + 16, g->key.key);
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
	rr_mode_key_post(g->mode, &g->key, &g->bind, &g->post);
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

/* Somebody wants memory: what a revoked grant has kept is given up, the longest ago first. */
static bool give_up_one(struct rr_mode *m)
{
	list_for_each(n, &m->revoked) {
		struct rr_grant *g = list_entry(n, struct rr_grant, link);

		if (!g->buf || g->closing.n)
			continue;
		put_pages(g);
		return true;
	}
	return false;
}

static void try_room(struct rr_grant *g)
{
	int rc;

	do
		rc = rr_area_get(g->line, g->bytes, &g->buf);
	while (rc == -ENOBUFS && give_up_one(g->mode));
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

static struct rr_grant *find(const struct list *in, uint32_t xid)
{
	list_for_each(n, in) {
		struct rr_grant *g = list_entry(n, struct rr_grant, link);

		if (g->xid == xid)
			return g;
	}
	return NULL;
}

/* The one that the peer speaks of; NULL: it was told of none. */
static struct rr_grant *find_told(const struct rr_mode *m, uint32_t xid)
{
	struct rr_grant *g = find(&m->grants, xid);

	if (!g)
		g = find(&m->revoked, xid);
	/* its message may stand in line yet, and so may its bind: neither is to be overtaken */
	return g && g->since_ns && !list_is_linked(&g->post.link) ? g : NULL;
}

/** rr_mode_grant_want - RR_WANT has come; Return: is it one that may be made? */
bool rr_mode_grant_want(struct rr_mode *m, uint32_t xid, uint32_t bytes)
{
	struct rr_grant *g;

	if (!(m->modes & RPCRDMA_HYBRID) || !bytes || find(&m->grants, xid) ||
	    m->ngrants >= m->conn->ep->msgs_max)
		return false;
	g = find(&m->revoked, xid);
	if (g)
		grant_over(g); /* another call by now */
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
	struct rr_grant *g = find_told(m, xid);

	if (!g)
		return false;
	take_back(g);
	grant_over(g);
	return true;
}

/** rr_mode_grant_claim - the call's Read chunk has to lie in what was given for it */
bool rr_mode_grant_claim(struct rr_mode *m, struct rr_rreq *rr, const struct rr_segment *seg)
{
	struct rr_grant *g = find_told(m, rr->hdr.xid);

	if (!g || !g->buf || seg->handle != g->key.key || !seg->length ||
	    seg->length > g->bytes || seg->offset != (uint64_t)(uintptr_t)g->buf->addr)
		return false;
	unlink_grant(g);
	take_back(g);
	rr->mode.grant = g;
	rr->mode.mem = g->buf->addr;
	return true;
}

/** rr_mode_grant_release - the call that took it is over */
void rr_mode_grant_release(struct rr_grant *g)
{
	grant_over(g);
}

static void revoke_grant(struct rr_mode *m, struct rr_grant *g)
{
	rr_count(m->conn->base.engine, mode_timeouts, 1);
	list_del(&g->link);
	list_add_tail(&m->revoked, &g->link);
	g->revoked = true;
	m->ngrants--;
	take_back(g);
	if (++m->nrevoked > m->conn->ep->msgs_max)
		grant_over(list_first_entry(&m->revoked, struct rr_grant, link));
}

bool rr_mode_grants_expire(struct rr_mode *m, uint64_t now_ns, uint64_t stall_ns)
{
	list_for_each_safe(n, &m->grants) {
		struct rr_grant *g = list_entry(n, struct rr_grant, link);

		if (!g->since_ns)
			continue;
		if (list_is_linked(&g->post.link))
			g->since_ns = now_ns; /* not told yet */
		if (now_ns - g->since_ns < stall_ns)
			continue;
		if (!m->windows)
			return false;
		revoke_grant(m, g);
	}
	return true;
}

uint64_t rr_mode_grant_oldest(const struct rr_mode *m)
{
	list_for_each(n, &m->grants) {
		const struct rr_grant *g = list_entry(n, struct rr_grant, link);

		if (g->since_ns)
			return g->since_ns;
	}
	return 0;
}

/** rr_mode_grants_end - nobody will write there any more */
void rr_mode_grants_end(struct rr_mode *m)
{
	list_for_each_safe(n, &m->grants)
		grant_over(list_entry(n, struct rr_grant, link));
	list_for_each_safe(n, &m->revoked)
		grant_over(list_entry(n, struct rr_grant, link));
}
