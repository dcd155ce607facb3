/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_grant.c - hybrid at the responder: buffers (grants) for the payload of later calls
 *
 * Operation:  RR_WANT requests a buffer for the call of its XID, RR_GRANT announces its address. The
 *             peer writes there by RDMA and sends the call with a Read chunk that names the buffer
 *             (RR_HERE), or returns it by RDMA_DONE. A want waits in a queue for memory and for a
 *             send buffer.
 *
 *                 wanted --memory--> granted --GRANT sent--> given --call--> taken --reply--> over
 *                     '--too much: length 0 --'               |'--RDMA_DONE-------------------^
 *                                                             '--stall_ms--> revoked --forgotten
 *
 *             If there are windows (mode_window.c), a grant has one over the requested bytes, bound in
 *             front of its RR_GRANT. It is invalidated once, and nothing waits for that. The
 *             invalidation is posted when the call has arrived, in front of any reply, so a peer with
 *             the reply cannot write any more. It is also posted when the buffer is returned or
 *             revoked. The pages are reused when it has completed and the grant is over.
 *
 *             Without windows the peer can write to the whole area at any time, and an unused grant
 *             cannot be revoked: the connection ends instead.
 *
 *             A revocation may cross a write of the peer. A write after the revocation is refused. A
 *             refused RDMA Write ends the peer's queue pair, so the call behind it is never sent. The
 *             connection ends, and a correct peer repeats its calls on the next one. So if a call
 *             arrives for a revoked grant, all of its payload was written before. It is a normal call
 *             as long as the pages are not reused. Therefore a revoked grant keeps its pages until
 *             another want needs memory. If they are gone when the call arrives, its Read chunk is
 *             invalid: the connection ends, as by a slightly later Write. RDMA_DONE is always valid.
 * Memory:     An area that the peer may write to; a grant has its pages alone until it is over.
 *             Grants are recycled. Their number is limited to the calls that may be outstanding, plus
 *             as many revoked ones; then the oldest is forgotten. Others may wait for the end of their
 *             message or invalidation, each with at least one page. Windows: as many as grants.
 * Threads:    The connection's engine.
 * Errors:     The connection ends after two wants for one XID, more wants than credits, a want for
 *             nothing, and a call that names other memory than its grant or arrives before RR_GRANT
 *             was sent. Without a free window the want is refused.
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
	uint64_t since_ns;         /* when it was announced; 0: not yet */
	struct rpcrdma_buf *buf;   /* NULL: refused, or waiting; revoked: pages reused */
	struct rpcrdma_buf_waiter waiter; /* for memory, then for a send buffer */
	struct rr_area *line;      /* where it waits */
	struct rr_mode_key key;
	bool revoked;
	bool inv_posted;           /* the invalidation was posted, or is not needed */
	struct rr_closing closing;
	bool over, sending;        /* freed when over, not sending, and closing.n is 0 */
	struct rpcrdma_buf *send_buf;
	struct rr_post post, bind;
	struct rr_wr wr;
};

int rr_mode_grant_init(struct rr_mode *m, struct rr_suffix *give)
{
	int rc = rr_mode_area(m, &m->room, ROOM_BYTES, ROOM_MAX, rr_mode_write_access(m));

	if (!rc)
		give->grant_max = ROOM_MAX;
	return rc;
}

/** rr_mode_grant_fini - frees the grants, which are all over */
void rr_mode_grant_fini(struct rr_mode *m)
{
	list_for_each_safe(n, &m->free_grants)
		free(list_entry(n, struct rr_grant, link));
}

/* Returns the pages; the key is invalid, or never was valid. */
static void put_pages(struct rr_grant *g)
{
	rr_mode_key_put(g->mode, &g->key);
	if (g->buf)
		rpcrdma_buf_put(g->mode->conn->base.engine, g->buf);
	g->buf = NULL;
}

/* Releases what a grant that is over no longer needs. */
static void settle(struct rr_grant *g)
{
	if (!g->over || g->closing.n)
		return;
	put_pages(g);
	if (!g->sending)
		list_add_head(&g->mode->free_grants, &g->link);
}

static void invalidate(struct rr_grant *g)
{
	if (!g->inv_posted)
		rr_mode_key_invalidate(g->mode, &g->key, &g->closing);
	g->inv_posted = true;
}

/* Takes a grant out of its list: it is over, or a call has it. */
static void unlink_grant(struct rr_grant *g)
{
	list_del(&g->link);
	if (!g->revoked)
		return;
	g->revoked = false;
	g->mode->nrevoked--;
	g->mode->ngrants++;
}

void rr_mode_grant_over(struct rr_grant *g)
{
	unlink_grant(g);
	g->over = true;
	g->mode->ngrants--;
	rr_waiters_del(&g->line->waiters, &g->waiter);
	settle(g);
}

static void on_invalidated(struct rr_closing *closing)
{
	struct rr_grant *g = container_of(closing, struct rr_grant, closing);

	rr_mode_key_put(g->mode, &g->key);
	if (g->revoked && g->mode->room.waiters.first)
		put_pages(g);
	settle(g);
}

/* ---- the message -------------------------------------------------------------------------- */

static void on_sent(struct rr_post *post, enum rr_wc_status status)
{
	struct rr_grant *g = container_of(post, struct rr_grant, post);
	struct rpcrdma_engine *e = g->mode->conn->base.engine;
	struct rpcrdma_buf *buf = g->send_buf;

	(void)status; /* a failure has already made the endpoint dead */
	g->send_buf = NULL;
	g->sending = false;
	settle(g);
	rpcrdma_buf_put(e, buf);
}

static void send_grant(struct rr_grant *g)
{
	struct rr_rconn *c = g->mode->conn;
	uint8_t *msg = g->send_buf->addr;

	if (g->buf && rr_mode_key_get(g->mode, &g->mode->room, g->buf->addr, g->bytes, &g->key))
		put_pages(g);
	put_be32(msg, g->xid);
	put_be32(msg + 4, RR_VERS);
	put_be32(msg + 8, 1); /* not a grant of credits */
	put_be32(msg + 12, RR_GRANT);
	put_be32(msg + 16, g->key.key);
	put_be32(msg + 20, g->buf ? g->bytes : 0);
	put_be64(msg + 24, g->buf ? (uint64_t)(uintptr_t)g->buf->addr : 0);
	g->sending = true;
	g->wr = (struct rr_wr){ .op = RR_WR_SEND, .sge = rr_msg_sge(g->send_buf, c->ep->dev, RR_GRANT_BYTES) };
	g->post.first = &g->wr;
	g->post.n = 1;
	if (g->buf) {
		g->since_ns = clock_now_ns();
		rr_count(c->base.engine, grants, 1);
		rr_mode_is_owed(g->mode);
	} else {
		rr_mode_grant_over(g); /* the peer may ask again before the Send completes */
	}
	rr_mode_key_post(g->mode, &g->key, &g->bind, &g->post);
}

/* Sends the message when there is a send buffer. */
static void announce(struct rpcrdma_buf_waiter *w)
{
	struct rr_grant *g = container_of(w, struct rr_grant, waiter);
	int rc = rr_rconn_send_buf(g->mode->conn, &g->send_buf);

	if (rc == -ENOBUFS) {
		g->line = &g->mode->zones[RR_ZONE_SENDS];
		g->waiter.fn = announce;
		rr_area_wait(&g->line->zone, &g->waiter);
	} else if (rc) {
		rpcrdma_conn_close(&g->mode->conn->base);
	} else {
		send_grant(g);
	}
}

/* ---- from the peer ------------------------------------------------------------------------ */

/* Another want needs memory: frees the pages of the revoked grant that was revoked first. */
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

/* Takes memory, when there is some. */
static void get_room(struct rpcrdma_buf_waiter *w)
{
	struct rr_grant *g = container_of(w, struct rr_grant, waiter);
	int rc;

	do
		rc = rr_area_get(&g->line->zone, g->bytes, &g->buf);
	while (rc == -ENOBUFS && give_up_one(g->mode));
	if (rc == -ENOBUFS) {
		g->waiter.fn = get_room;
		rr_area_wait(&g->line->zone, &g->waiter);
	} else {
		announce(&g->waiter); /* sends a refusal if the size exceeds the limit */
	}
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

/* Finds the grant that the peer refers to. Return: NULL if none was announced for @xid. */
static struct rr_grant *find_announced(const struct rr_mode *m, uint32_t xid)
{
	struct rr_grant *g = find(&m->grants, xid);

	if (!g)
		g = find(&m->revoked, xid);
	/* its message and its bind may still be queued: neither must be overtaken */
	return g && g->since_ns && !list_is_linked(&g->post.link) ? g : NULL;
}

static struct rr_grant *grant_get(struct rr_mode *m)
{
	struct list *n = list_pop(&m->free_grants);
	struct rr_grant *g = n ? list_entry(n, struct rr_grant, link) : malloc(sizeof(*g));

	if (!g)
		return NULL;
	*g = (struct rr_grant){ .mode = m, .line = &m->room, .post.fn = on_sent,
				.closing.fn = on_invalidated };
	list_init(&g->link);
	list_init(&g->post.link);
	m->ngrants++;
	return g;
}

bool rr_mode_grant_want(struct rr_mode *m, uint32_t xid, uint32_t bytes)
{
	struct rr_grant *g;

	if (!(m->modes & RPCRDMA_HYBRID) || !bytes || find(&m->grants, xid) ||
	    m->ngrants >= m->conn->ep->msgs_max)
		return false;
	g = find(&m->revoked, xid);
	if (g)
		rr_mode_grant_over(g); /* the XID belongs to another call now */
	g = grant_get(m);
	if (!g)
		return false;
	g->xid = xid;
	g->bytes = bytes;
	list_add_tail(&m->grants, &g->link);
	get_room(&g->waiter);
	return true;
}

bool rr_mode_grant_done(struct rr_mode *m, uint32_t xid)
{
	struct rr_grant *g = find_announced(m, xid);

	if (!g)
		return false;
	invalidate(g);
	rr_mode_grant_over(g);
	return true;
}

bool rr_mode_grant_claim(struct rr_mode *m, struct rr_rreq *rr, const struct rr_segment *seg)
{
	struct rr_grant *g = find_announced(m, rr->hdr.xid);

	if (!g || !g->buf || seg->handle != g->key.key || !seg->length ||
	    seg->length > g->bytes || seg->offset != (uint64_t)(uintptr_t)g->buf->addr)
		return false;
	unlink_grant(g);
	invalidate(g);
	rr->mode.place = g;
	rr->mode.payload = g->buf->addr;
	return true;
}

static void revoke_grant(struct rr_mode *m, struct rr_grant *g)
{
	rr_count(m->conn->base.engine, mode_timeouts, 1);
	list_del(&g->link);
	list_add_tail(&m->revoked, &g->link);
	g->revoked = true;
	m->ngrants--;
	invalidate(g);
	if (++m->nrevoked > m->conn->ep->msgs_max)
		rr_mode_grant_over(list_first_entry(&m->revoked, struct rr_grant, link));
}

bool rr_mode_grants_expire(struct rr_mode *m, uint64_t now_ns, uint64_t stall_ns)
{
	list_for_each_safe(n, &m->grants) {
		struct rr_grant *g = list_entry(n, struct rr_grant, link);

		if (!g->since_ns)
			continue;
		if (list_is_linked(&g->post.link))
			g->since_ns = now_ns; /* not sent yet */
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

/** rr_mode_grants_end - ends all grants: the peer can no longer write */
void rr_mode_grants_end(struct rr_mode *m)
{
	list_for_each_safe(n, &m->grants)
		rr_mode_grant_over(list_entry(n, struct rr_grant, link));
	list_for_each_safe(n, &m->revoked)
		rr_mode_grant_over(list_entry(n, struct rr_grant, link));
}
