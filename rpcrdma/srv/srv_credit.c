/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_credit.c - number of outstanding calls per connection: by demand, limited by memory
 *
 * Operation:  A connection begins with 8 receives, or fewer if memory is short. It doubles them when it
 *             uses all its credits and requests more. It falls back, to half of them or to 8, when it
 *             has not used its credits for stall_ms. It also gives half back when it does not use
 *             them now and another connection has found too little memory since.
 *             Receives are added only when a call arrives. A reply grants what is there.
 *
 *             Granted credits stay valid: credit.c counts how long the peer may still send to a receive.
 *             A receive therefore returns to the pool, instead of to the device, only when a call
 *             has its reply. A silent connection keeps its receives: only a reply can reduce its credits.
 *
 *             A connection with shared receives (ep_shared.c) has them only in the account: they are counted,
 *             charged and given back as if they were its own. If a connection takes more than its account
 *             holds, it is closed.
 * Memory:     Receives come from the pool (RR_ZONE_RECVS) and are charged to the client. A client alone may
 *             hold three quarters of the zone. Receives beyond the first 8 of a connection are charged
 *             with the memory per call; that is freed when the receive is returned, or by the next tick.
 *             A connection gets more while half of the zone is free, or while its client has less than half
 *             of an even share: the rest is reserved for new connections. When most of the zone is
 *             free, reposting packs the remaining receives together, so that the pool can be unpinned.
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

void rr_srv_credit_init(struct rr_rconn *c)
{
	struct rpcrdma_domain *d = c->base.engine->domain;

	c->credits = c->ep->msgs;
	rr_credit_account_init(&c->account, c->ep->msgs);
	if (c->ep->msgs < least(c))
		atomic_fetch_add(&d->recv_short, 1);
	c->short_seen = atomic_load(&d->recv_short);
}

/* Returns the bytes of all receives that are lent or promised to connections. */
static size_t lent_bytes(const struct rr_ep *ep)
{
	struct rpcrdma_domain *d = ep->engine->domain;

	return atomic_load(ep->shared ? &d->clients.budgets[RR_SHARE_RECVS].used : &d->recv_bytes);
}

/* Gets receives for @calls calls, if memory allows. Return: the number of calls they serve. */
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

/* Credits grow for a peer that requests more and uses those it has: all at this moment. If replies are so fast that
 * calls never pile up: twice as many calls as credits, at least two of them overlapping. */
void rr_srv_demand(struct rr_rconn *c, uint32_t asked)
{
	struct rr_ep *ep = c->ep;
	uint32_t had = c->credits;

	if (ep->msgs < MIN(asked, had)) /* it asked for fewer, or memory was short */
		(void)make_room(c, MIN(asked, had));
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

/* Gives unused credits back when other connections lack receives. */
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

void rr_srv_credit_tick(struct rpcrdma_conn *base)
{
	struct rr_rconn *c = rr_rconn_of(base);

	if (!c->used && c->credits > least(c))
		c->credits = c->calls ? MAX(c->credits / 2, least(c)) : least(c);
	c->used = c->overlap = false;
	c->calls = 0;
	rr_srv_trim_rws(c, MAX(c->rws_most, RR_MSGS_FIRST));
	c->rws_most = c->rws_used;
}

uint32_t rr_srv_grant(struct rr_rconn *c, uint32_t asked, const struct rr_recv_ctx *rc, bool counted)
{
	struct rr_ep *ep = c->ep;
	uint32_t posted, room, grant;

	make_way(c);
	posted = rr_ep_posted(ep) + (rc != NULL);
	posted -= MIN(posted, ep->extra_recvs);
	/* an uncounted reply is for one call more than the account has, or for none */
	room = rr_credit_account_room(&c->account, posted + !counted);
	grant = rr_credit_grant(asked, room, c->credits);
	rr_credit_account_reply(&c->account, grant, counted);
	return grant;
}

/* True if more than a few segments are pinned for receives and more than half of that is not lent. */
static bool is_sparse(const struct rpcrdma_domain *d)
{
	const struct rr_pool *zone = &d->pools[RR_ZONE_RECVS];
	size_t lent = atomic_load_explicit(&d->recv_bytes, memory_order_relaxed);
	size_t pinned = __atomic_load_n(&zone->bytes, __ATOMIC_RELAXED);

	return pinned > SPARSE_BYTES && lent < pinned / 2 && !zone->arena; /* unpinned only as a whole */
}

/* Frees requests and transfers that @recvs receives cannot use. */
static void free_calls(struct rr_rconn *c, unsigned recvs)
{
	unsigned n = MAX(recvs, RR_MSGS_FIRST);

	rr_req_trim(&c->base, n);
	rr_srv_trim_rws(c, n * RR_CALL_RWS);
}

void rr_srv_recv_done(struct rr_rconn *c, struct rr_recv_ctx *rc)
{
	if (rr_ep_posted(c->ep) >= rr_credit_account_due(&c->account) + c->ep->extra_recvs) {
		rr_ep_retire(rc);
		free_calls(c, c->ep->nrecvs);
	} else if (unlikely(is_sparse(c->base.engine->domain))) {
		rr_ep_repost_packed(rc);
	} else {
		rr_ep_repost(rc);
	}
}
