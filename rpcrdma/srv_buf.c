/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_buf.c - a connection's share of the pool
 *
 * Operation:  Buffers that a request takes are charged to its connection until they are given back.
 *             One that holds its share waits in a line of its own, in front of the pool's: whoever
 *             does not take his answers waits for himself, and not the others for him. Shares have
 *             no fixed size: they follow what is free (a threshold as switches have it for their
 *             queues), and so the number of those who want memory now; and they begin small and
 *             grow by what was given back. What one has back of its own is always worth another
 *             try, so nobody starves.
 * Memory:     Waiters are embedded in what waits.
 * Threads:    The connection's engine.
 * Errors:     Shortage is -ENOBUFS, and a line.
 */
#include <errno.h>

#include "mode_area.h"
#include "srv_int.h"

/* A connection may hold so many times what is free ... */
#define OF_THE_FREE 2u
/* ... and of all there is this part, until it has shown that it gives back what it gets. */
#define BEGINNERS 16u

static struct rr_pool *data_pool(const struct rpcrdma_conn *c)
{
	return &c->engine->domain->pools[RR_ZONE_DATA];
}

/* With n connections that want all they can get, each ends up with 2 of 2n + 1 parts; who comes next
 * finds the odd one free. What is free is counted by what connections hold, not by chunks: which of
 * them are cut how is another matter. A peer that takes nothing never gets that far, so that it takes
 * many of them to use up the pool. */
static bool is_over_share(const struct rpcrdma_conn *c, size_t bytes)
{
	size_t charged = atomic_load_explicit(&c->engine->domain->charged, memory_order_relaxed);
	size_t max = data_pool(c)->bytes_max, free = max - MIN(charged, max);

	return c->buf_bytes && c->buf_bytes + bytes > MIN(free * OF_THE_FREE,
							    max / BEGINNERS + c->buf_earned);
}

static void charge(struct rpcrdma_conn *c, size_t bytes)
{
	c->buf_bytes += bytes;
	atomic_fetch_add_explicit(&c->engine->domain->charged, bytes, memory_order_relaxed);
}

static void discharge(struct rpcrdma_conn *c, size_t bytes)
{
	c->buf_bytes -= bytes;
	c->buf_earned = MIN(c->buf_earned + bytes, data_pool(c)->bytes_max);
	atomic_fetch_sub_explicit(&c->engine->domain->charged, bytes, memory_order_relaxed);
}

/** rr_conn_buf_get, rr_conn_buf_wait - as rr_buf_get() and rr_buf_wait() */
int rr_conn_buf_get(struct rpcrdma_conn *c, enum rr_zone zone, size_t bytes, struct rpcrdma_buf **ret)
{
	return c->zones ? rr_area_get(&c->zones[zone], bytes, ret) :
			  rr_buf_get(c->engine, zone, bytes, ret);
}

void rr_conn_buf_wait(struct rpcrdma_conn *c, enum rr_zone zone, struct rpcrdma_buf_waiter *w)
{
	if (c->zones)
		rr_area_wait(&c->zones[zone], w);
	else
		rr_buf_wait(c->engine, zone, w);
}

size_t rr_conn_buf_max(const struct rpcrdma_conn *c, enum rr_zone zone)
{
	return c->zones ? c->zones[zone].buf_max : rr_pool_buf_max(&c->engine->domain->pools[zone]);
}

size_t rpcrdma_req_buf_max(const struct rpcrdma_req *req)
{
	return rr_conn_buf_max(req->conn, RR_ZONE_DATA);
}

size_t rpcrdma_domain_reply_max(const struct rpcrdma_domain *d)
{
	return rr_pool_buf_max(&d->pools[RR_ZONE_ANSWERS]);
}

int rpcrdma_req_buf_get(struct rpcrdma_req *req, size_t bytes, struct rpcrdma_buf **ret)
{
	struct rpcrdma_conn *c = req->conn;
	struct rpcrdma_buf *buf;
	int rc;

	if (bytes > rpcrdma_req_buf_max(req))
		return -EMSGSIZE;
	if (c->zones) /* nobody to share with */
		return rr_area_get(&c->zones[RR_ZONE_DATA], bytes, ret);
	/* nobody overtakes those who wait: while it is one's turn, buf_retry is set */
	if (is_over_share(c, bytes) || (c->buf_waiters && !c->buf_retry))
		return -ENOBUFS;
	rc = rpcrdma_buf_get(c->engine, bytes, &buf);
	if (rc)
		return rc;
	container_of(buf, struct rr_buf, pub)->conn = c;
	charge(c, buf->bytes);
	*ret = buf;
	return 0;
}

void rpcrdma_req_buf_wait(struct rpcrdma_req *req, struct rpcrdma_buf_waiter *w)
{
	struct rpcrdma_conn *c = req->conn;
	bool was_its_turn = c->buf_retry == w;

	if (c->zones) {
		rr_area_wait(&c->zones[RR_ZONE_DATA], w);
		return;
	}
	if (was_its_turn) {
		/* there is still not enough: it keeps its place, and no other tries */
		c->buf_retry = NULL;
		rr_engine_undefer(c->engine, &c->buf_msg);
		c->buf_msg_out = false;
	} else {
		rr_count(c->engine, buf_waits, 1);
	}
	rr_waiter_link(&c->buf_waiters_tail, was_its_turn ? &c->buf_waiters : c->buf_waiters_tail, w);
	/* nothing of its own will come back: it is the pool that is short, and the line stands there */
	if (!c->buf_bytes && !c->pool_waiter.link)
		rpcrdma_buf_wait(c->engine, &c->pool_waiter);
}

/* The first in the line tries; the next one's turn comes with the next poll, unless this one has to
 * wait again. */
static void next_turn(struct rpcrdma_conn *c)
{
	struct rpcrdma_buf_waiter *w = c->buf_waiters;

	if (!w)
		return;
	rr_waiter_unlink(&c->buf_waiters_tail, w);
	if (c->buf_waiters && !c->buf_msg_out) {
		c->buf_msg_out = true;
		rr_engine_defer(c->engine, &c->buf_msg);
	}
	c->buf_retry = w;
	c->reqs++; /* fn may end the request; the connection must not go with it yet */
	w->fn(w);
	c->buf_retry = NULL;
	rr_conn_unhold(c);
}

static void on_buf_msg(struct rpcrdma_msg *msg)
{
	struct rpcrdma_conn *c = container_of(msg, struct rpcrdma_conn, buf_msg);

	c->buf_msg_out = false;
	next_turn(c);
}

static void on_pool(struct rpcrdma_buf_waiter *w)
{
	next_turn(container_of(w, struct rpcrdma_conn, pool_waiter));
}

void rr_conn_buf_put(struct rpcrdma_conn *c, size_t bytes)
{
	discharge(c, bytes);
	if (!c->buf_waiters || c->buf_msg_out)
		return;
	c->buf_msg_out = true;
	rr_engine_defer(c->engine, &c->buf_msg);
}

void rr_conn_buf_init(struct rpcrdma_conn *c)
{
	c->buf_waiters_tail = &c->buf_waiters;
	c->buf_msg.fn = on_buf_msg;
	c->pool_waiter.fn = on_pool;
}

void rr_conn_buf_fini(struct rpcrdma_conn *c)
{
	rr_engine_undefer(c->engine, &c->buf_msg);
	rpcrdma_buf_unwait(c->engine, &c->pool_waiter);
}
