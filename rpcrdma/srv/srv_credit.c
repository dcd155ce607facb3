/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_credit.c - how many calls each connection may have at once: by demand, and by the memory there is
 *
 * Operation:  A connection begins with 8 receives, or fewer if there are no more, and doubles them when
 *             it uses all that it has and asks for more (demand). It goes back, to the half of them or
 *             to 8, when it has not used its own for as long as a peer may stall, and also when there
 *             was too little memory for somebody else since and it does not use its own now.
 *
 *             What a peer was promised is kept: credit.c counts until when it may still send to a
 *             receive, which therefore goes back to the pool, instead of to the device, only as calls
 *             return. One that falls silent keeps what it has, for nothing can be taken from it unheard.
 *
 *             Where receives are shared (ep_shared.c) a connection has them in the account only: they are
 *             counted, charged and given back as if they were its own. The same account detects a connection
 *             that takes more, and it is closed.
 * Memory:     Receives are the pool's (RR_ZONE_RECVS), and charged to the client, which alone may hold
 *             three quarters of the zone; those beyond the first 8 of a connection with what is kept for
 *             a call, which is freed when its receive goes back, or by the next tick. They are lent
 *             while half of the zone is free, or while the client has less than half of an equal part:
 *             the rest is for connections that are yet to come. When much of it has come back, those that
 *             stay are brought together, call by call, so that the pool can be unpinned.
 * Threads:    The connection's engine.
 * Errors:     None: too little memory means fewer credits.
 * See:        RFC 8166 section 3.3; protocol.md 2.1
 */
#include "srv_rdma.h"

#define SPARSE_BYTES ((size_t)128 << 10)

static uint32_t least(const struct rr_rconn *c)
{
	return MIN(RR_MSGS_FIRST, c->ep->msgs_max);
}

/** rr_srv_credit_init - a connection that has its first receives */
void rr_srv_credit_init(struct rr_rconn *c)
{
	struct rpcrdma_domain *d = c->base.engine->domain;

	c->credits = c->ep->msgs;
	rr_grants_init(&c->grants, c->ep->msgs);
	if (c->ep->msgs < least(c))
		atomic_fetch_add(&d->recv_short, 1);
	c->short_seen = atomic_load(&d->recv_short);
}

/* What all receives take that are lent to connections, or promised to them. */
static size_t lent_bytes(const struct rr_ep *ep)
{
	struct rpcrdma_domain *d = ep->engine->domain;

	return atomic_load(ep->shared ? &d->clients.budgets[RR_SHARE_RECVS].used : &d->recv_bytes);
}

/* Receives for so many calls, if memory for them is to be had. Return: for how many they are. */
static uint32_t make_room(struct rr_rconn *c, uint32_t calls)
{
	struct rpcrdma_domain *d = c->base.engine->domain;
	const struct rr_client *client = c->base.client;
	struct rr_ep *ep = c->ep;
	size_t more = calls > ep->msgs ? (size_t)(calls - ep->msgs) * ep->recv_bytes : 0;

	if (more && lent_bytes(ep) + more > d->pools[RR_ZONE_RECVS].bytes_max / 2 &&
	    rr_client_used(client, RR_SHARE_RECVS) + more > rr_client_fair(client->all, RR_SHARE_RECVS) / 2)
		calls = MIN(calls, MAX(least(c), ep->msgs));
	rr_ep_grow(ep, calls);
	return MIN(ep->msgs, calls);
}

/** rr_srv_demand - a call came from a peer that wants @asked credits
 *
 * More is granted to who wants more and uses what he has: all of it at this moment; or, where calls are
 * answered as fast as they come and never pile up, all of it twice over and not one after the other.
 */
void rr_srv_demand(struct rr_rconn *c, uint32_t asked)
{
	struct rr_ep *ep = c->ep;
	uint32_t had = c->credits;

	c->calls++;
	c->overlap |= ep->held > 1 || c->look == ep->engine->looks;
	c->look = ep->engine->looks;
	if (ep->held + 1 < had && (!c->overlap || c->calls < had * 2))
		return;
	c->used = true;
	if (asked <= had || had >= ep->msgs_max)
		return;
	c->credits = MAX(make_room(c, MIN(had * 2, ep->msgs_max)), had);
	if (c->credits == had)
		atomic_fetch_add(&ep->engine->domain->recv_short, 1);
	c->calls = 0;
	c->overlap = false;
}

/* Others lack what this one does not use. */
static void make_way(struct rr_rconn *c)
{
	unsigned now = atomic_load_explicit(&c->base.engine->domain->recv_short,
					    memory_order_relaxed);

	if (likely(now == c->short_seen))
		return;
	c->short_seen = now;
	if (c->ep->held * 2 < c->credits && c->credits > least(c))
		c->credits = MAX(c->credits / 2, least(c));
}

/* Requests and transfers that were not in use since the last tick are not needed. */
static void trim(struct rr_rconn *c)
{
	rr_srv_trim_reqs(c, MAX(c->reqs_most, RR_MSGS_FIRST));
	rr_srv_trim_rws(c, MAX(c->rws_most, RR_MSGS_FIRST));
	c->reqs_most = c->base.reqs;
	c->rws_most = c->rws_used;
}

/** rr_srv_credit_tick - once in a while: has it used what it may?
 *
 * Who was not heard at all is granted what a new connection has.
 */
void rr_srv_credit_tick(struct rpcrdma_conn *base)
{
	struct rr_rconn *c = rr_rconn_of(base);

	if (!c->used && c->credits > least(c))
		c->credits = c->calls ? MAX(c->credits / 2, least(c)) : least(c);
	c->used = c->overlap = false;
	c->calls = 0;
	trim(c);
}

/** rr_srv_grant - what the answer that is being made grants; to be called once for each
 * @rc: the receive of its call that is yet to be given back, or NULL
 * @counted: it answers a call that rr_srv_recv() counted
 */
uint32_t rr_srv_grant(struct rr_rconn *c, uint32_t asked, const struct rr_recv_ctx *rc, bool counted)
{
	struct rr_ep *ep = c->ep;
	uint32_t want, posted, room, grant;

	make_way(c);
	want = MIN(asked, c->credits);
	if (ep->msgs < want)
		(void)make_room(c, want);
	posted = rr_ep_posted(ep) + (rc != NULL);
	posted -= MIN(posted, ep->extra_recvs);
	/* an answer that is not counted is to one call more than is counted, or to none */
	room = rr_grants_room(&c->grants, posted + !counted);
	grant = rr_credit_grant(asked, room, c->credits);
	rr_grants_answer(&c->grants, grant, counted);
	return grant;
}

/* Is half of what is pinned for receives lent to nobody, and more than a few chunks? */
static bool is_sparse(const struct rpcrdma_domain *d)
{
	const struct rr_pool *zone = &d->pools[RR_ZONE_RECVS];
	size_t lent = atomic_load_explicit(&d->recv_bytes, memory_order_relaxed);
	size_t pinned = __atomic_load_n(&zone->bytes, __ATOMIC_RELAXED);

	return pinned > SPARSE_BYTES && lent < pinned / 2 && !zone->arena; /* which goes as a whole */
}

/* Neither are there more requests than receives, nor transfers than for so many calls. */
static void free_calls(struct rr_rconn *c, unsigned recvs)
{
	unsigned n = MAX(recvs, RR_MSGS_FIRST);

	rr_srv_trim_reqs(c, n);
	rr_srv_trim_rws(c, n * RR_CALL_RWS);
}

/** rr_srv_recv_done - the call that was in @rc is decoded: back to where it is needed
 *
 * What is not charged any more is freed.
 */
void rr_srv_recv_done(struct rr_rconn *c, struct rr_recv_ctx *rc)
{
	if (rr_ep_posted(c->ep) >= rr_grants_due(&c->grants) + c->ep->extra_recvs) {
		rr_ep_retire(rc);
		free_calls(c, c->ep->nrecvs);
	} else if (unlikely(is_sparse(c->base.engine->domain))) {
		rr_ep_repost_packed(rc);
	} else {
		rr_ep_repost(rc);
	}
}
