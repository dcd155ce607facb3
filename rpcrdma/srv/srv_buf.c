/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_buf.c - shares of the pool: one per client, and within a client one per connection
 *
 * Operation:  Buffers of a request are charged to its client and its connection until they are returned.
 *             Data, long calls, send buffers and long replies have separate shares.
 *             Shares have no fixed size: the limit of a client is a multiple of what is free (account.h), that
 *             of a connection a multiple of what its client may still take. Limits thus follow the number of
 *             clients that want memory now, and leave some for a new client. A connection's share begins
 *             small and grows by each buffer that it returns.
 *
 *             A refused request waits for the reason of the refusal:
 *                 its connection is at its limit      for the next buffer that the connection returns
 *                 its client is at its limit          in the client's queue, where connections take turns
 *                 the pool is short                   in the pool's queue (pool_wait.c)
 *             So a client that does not read its replies delays only itself. A client that holds nothing may
 *             always ask the pool. A share also grows by what other clients return, without a notification:
 *             a timer checks the connections that wait for a share.
 * Memory:     Waiters are embedded in the waiting objects.
 * Threads:    The connection's engine; a lock protects the client's queue.
 * Errors:     -ENOBUFS: too little memory now; the caller may wait.
 */
#include <assert.h>
#include <errno.h>

#include "srv_int.h"

/* The limit of a client is three times what is free (OF_THE_FREE in pool.c), without the eighth that is kept. Its
 * room is the limit minus what it holds. Each buffer that it takes costs the room of four: the limit falls by
 * three, and the client holds one more.
 *
 * Example: a pool of 32 MiB, and one client with one connection. The connection begins with 2 MiB (BEGINNERS) and
 * may hold as much more as it has returned. It may hold h MiB if h <= 8 * (3 * (28 - h) - h), so 20.4 MiB at
 * most (OF_THE_CLIENT). The client then has room for 2.5 MiB more, for its other connections. Two connections may
 * hold 10.3 MiB each.
 */
/* A connection may hold this multiple of what its client may still take ... */
#define OF_THE_CLIENT 8u
/* ... and of the whole zone this fraction, plus the bytes that it has returned so far. */
#define BEGINNERS 16u

#define LOOK_NS (10 * NS_PER_MS)

static struct rr_pool *pool_of(const struct rr_conn_part *p)
{
	return &p->conn->engine->domain->pools[p->zone];
}

/* A connection that holds something leaves room for another such buffer: for the client's connections without any. */
static bool conn_is_over(const struct rr_conn_part *p, size_t bytes)
{
	const struct rr_client *client = p->conn->client;

	if (!p->bytes)
		return false;
	return !rr_client_leaves(client, p->share, bytes) ||
	       p->bytes + bytes > MIN(rr_client_room(client, p->share, OF_THE_CLIENT),
				      pool_of(p)->bytes_max / BEGINNERS + p->earned);
}

/* While connections of the client wait, only the connection that has the turn may take a buffer. */
static bool client_is_over(const struct rr_conn_part *p, size_t bytes)
{
	const struct rr_client *client = p->conn->client;

	return (!p->turn && rr_client_waits(client, p->share)) ||
	       !rr_client_fits(client, p->share, bytes);
}

static void wake_next(struct rr_client *client, enum rr_share share)
{
	struct rr_client_waiter *w = rr_client_waits(client, share) ? rr_client_next(client, share) : NULL;

	if (w)
		rpcrdma_engine_post(w->engine, &w->msg);
}

/* Ends the connection's turn within its client; the next connection gets it. */
static void end_turn(struct rr_conn_part *p)
{
	if (!p->turn)
		return;
	p->turn = false;
	rr_client_end_turn(p->conn->client, p->share);
	wake_next(p->conn->client, p->share);
}

/* Send buffers are not charged while half of their zone is free: most replies hold one only briefly. */
static bool counts(const struct rr_conn_part *p)
{
	const struct rr_pool *pool = pool_of(p);

	return p->zone != RR_ZONE_SENDS ||
	       __atomic_load_n(&pool->bytes, __ATOMIC_RELAXED) > pool->bytes_max / 2;
}

static int part_get(struct rr_conn_part *p, size_t bytes, struct rpcrdma_buf **ret)
{
	struct rpcrdma_conn *c = p->conn;
	struct rpcrdma_buf *buf;
	bool counted;
	size_t size;
	int rc;

	size = rr_pool_round(pool_of(p), bytes);
	if (!size)
		return -EMSGSIZE;
	if (!rr_waiters_may_try(&p->waiters))
		return -ENOBUFS;
	p->wanted = size;
	counted = counts(p);
	if (counted && (conn_is_over(p, size) || client_is_over(p, size)))
		return -ENOBUFS;
	rc = rr_buf_get(c->engine, p->zone, bytes, &buf);
	if (rc)
		return rc;
	if (counted) {
		container_of(buf, struct rr_buf, pub)->conn = c;
		p->bytes += size;
		rr_client_add(c->client, p->share, size);
	}
	end_turn(p);
	*ret = buf;
	return 0;
}

int rr_conn_buf_get(struct rpcrdma_conn *c, enum rr_zone zone, size_t bytes, struct rpcrdma_buf **ret)
{
	struct rr_conn_part *p = &c->parts[zone];

	if (c->own) /* no shares */
		return c->own[zone]->ops->get(c->own[zone], bytes, ret);
	return p->share < RR_SHARES ? part_get(p, bytes, ret) : rr_buf_get(c->engine, zone, bytes, ret);
}

/* ---- waiting ---- */

static void stand_in_line(struct rr_conn_part *p, bool first)
{
	struct rr_client *client = p->conn->client;

	p->in_line = true;
	p->client_waiter.engine = p->conn->engine;
	rr_client_wait(client, p->share, &p->client_waiter, first);
	if (p->turn)
		rr_client_end_turn(client, p->share);
	p->turn = false;
	/* a buffer may have been returned before this waiter was in the queue */
	if (!rr_client_has_turn(client, p->share) && rr_client_fits(client, p->share, p->wanted))
		wake_next(client, p->share);
}

/* A connection that waits for the pool waits on behalf of its client, and keeps the turn until it is served. */
static void wait_for_pool(struct rr_conn_part *p)
{
	if (!p->turn)
		rr_client_begin_turn(p->conn->client, p->share);
	p->turn = true;
	rr_buf_wait(p->conn->engine, p->zone, &p->pool_waiter);
}

static void defer_turn(struct rr_conn_part *p)
{
	if (!p->waiters.first || p->msg_out || p->in_line)
		return;
	p->msg_out = true;
	rr_engine_defer(p->conn->engine, &p->msg);
}

/* Retries for connections with a share that has grown. */
static void on_look(struct rpcrdma_timer *timer)
{
	struct rpcrdma_engine *e = container_of(timer, struct rpcrdma_engine, shares_timer);

	list_for_each_safe(n, &e->shares) {
		struct rr_conn_part *p = list_entry(n, struct rr_conn_part, look_link);
		const struct rr_client *client = p->conn->client;

		if (!p->waiters.first || p->pool_waiter.link)
			list_del(&p->look_link);
		else if (!p->in_line && !conn_is_over(p, p->wanted))
			defer_turn(p);
		else if (p->in_line && !rr_client_has_turn(client, p->share) &&
			 rr_client_fits(client, p->share, p->wanted))
			wake_next(p->conn->client, p->share);
	}
	if (!list_is_empty(&e->shares))
		rpcrdma_timer_set(e, timer, LOOK_NS);
}

static void look_again(struct rr_conn_part *p)
{
	struct rpcrdma_engine *e = p->conn->engine;

	if (list_is_linked(&p->look_link))
		return;
	list_add_tail(&e->shares, &p->look_link);
	if (!rr_timer_is_armed(&e->shares_timer)) {
		e->shares_timer.fn = on_look;
		rpcrdma_timer_set(e, &e->shares_timer, LOOK_NS);
	}
}

/* Chooses what the first waiter waits for.
 * @first: it had the turn in the client's queue, and keeps its place there
 */
static void wait_for_reason(struct rr_conn_part *p, bool first)
{
	if (p->in_line || p->msg_out || (p->pool_waiter.link && p->waiters.first))
		return;
	if (p->pool_waiter.link) /* its requests ended meanwhile: another connection gets the turn */
		rr_buf_unwait(p->conn->engine, p->zone, &p->pool_waiter);
	if (!p->waiters.first || conn_is_over(p, p->wanted))
		end_turn(p);
	else if (client_is_over(p, p->wanted))
		stand_in_line(p, first);
	else
		wait_for_pool(p);
	if (p->waiters.first && !p->pool_waiter.link)
		look_again(p);
}

static void part_wait(struct rr_conn_part *p, struct rpcrdma_buf_waiter *w)
{
	if (!rr_waiters_add(&p->waiters, w))
		return;
	rr_count(p->conn->engine, buf_waits, 1);
	if (!p->waiters.turn)
		wait_for_reason(p, false);
}

void rr_conn_buf_wait(struct rpcrdma_conn *c, enum rr_zone zone, struct rpcrdma_buf_waiter *w)
{
	struct rr_conn_part *p = &c->parts[zone];

	if (c->own)
		c->own[zone]->ops->wait(c->own[zone], w);
	else if (p->share < RR_SHARES)
		part_wait(p, w);
	else
		rr_buf_wait(c->engine, zone, w);
}

/* Runs the first waiter; the next one runs at the next poll, unless this one has to wait again. */
static void next_turn(struct rr_conn_part *p, bool first)
{
	p->conn->reqs++; /* fn may end the request; this keeps the connection alive */
	if (rr_waiters_run(&p->waiters))
		defer_turn(p);
	wait_for_reason(p, first);
	rr_conn_unhold(p->conn);
}

static void on_msg(struct rpcrdma_msg *msg)
{
	struct rr_conn_part *p = container_of(msg, struct rr_conn_part, msg);

	p->msg_out = false;
	next_turn(p, false);
}

static void on_pool(struct rpcrdma_buf_waiter *w)
{
	next_turn(container_of(w, struct rr_conn_part, pool_waiter), true);
}

static void on_client(struct rpcrdma_msg *msg)
{
	struct rr_conn_part *p = container_of(msg, struct rr_conn_part, client_waiter.msg);

	p->in_line = false;
	p->turn = true;
	next_turn(p, true);
}

void rr_conn_buf_put(struct rpcrdma_conn *c, enum rr_zone zone, size_t bytes)
{
	struct rr_conn_part *p = &c->parts[zone];

	p->bytes -= bytes;
	p->earned = MIN(p->earned + bytes, pool_of(p)->bytes_max);
	rr_client_uncharge(c->client, p->share, bytes);
	wake_next(c->client, p->share);
	defer_turn(p);
}

/* ---- of a connection ---- */

void rr_conn_buf_init(struct rpcrdma_conn *c)
{
	for (enum rr_zone zone = 0; zone < RR_ZONES; zone++) {
		struct rr_conn_part *p = &c->parts[zone];

		p->conn = c;
		p->zone = zone;
		p->share = rr_zone_share(zone);
		rr_waiters_init(&p->waiters);
		p->msg.fn = on_msg;
		p->pool_waiter.fn = on_pool;
		p->client_waiter.msg.fn = on_client;
		list_init(&p->client_waiter.link);
		list_init(&p->look_link);
	}
}

void rr_conn_buf_fini(struct rpcrdma_conn *c)
{
	for (enum rr_zone zone = 0; zone < RR_ZONES; zone++) {
		struct rr_conn_part *p = &c->parts[zone];

		rr_engine_undefer(c->engine, &p->msg);
		list_del(&p->look_link);
		rr_buf_unwait(c->engine, p->zone, &p->pool_waiter);
		assert(!p->in_line); /* a waiting request would hold the connection */
		end_turn(p);
	}
}

size_t rr_conn_buf_max(const struct rpcrdma_conn *c, enum rr_zone zone)
{
	return c->own ? c->own[zone]->buf_max : rr_pool_buf_max(&c->engine->domain->pools[zone]);
}

/* ---- for the service ---- */

size_t rpcrdma_domain_reply_max(const struct rpcrdma_domain *d)
{
	return rr_pool_buf_max(&d->pools[RR_ZONE_REPLIES]);
}

int rpcrdma_req_buf_get(struct rpcrdma_req *req, size_t bytes, struct rpcrdma_buf **ret)
{
	if (bytes > req->buf_max)
		return -EMSGSIZE;
	if (req->conn->dead)
		return -ENOTCONN;
	return rr_conn_buf_get(req->conn, RR_ZONE_DATA, bytes, ret);
}

void rpcrdma_req_buf_wait(struct rpcrdma_req *req, struct rpcrdma_buf_waiter *w)
{
	rr_conn_buf_wait(req->conn, RR_ZONE_DATA, w);
}
