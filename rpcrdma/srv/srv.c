/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv.c - the responder: listeners, life cycle of a connection
 *
 * Operation:  A listener's transport accepts a connection, asks the service (svc_ops.accept) for the engine
 *             that is to own it, sets it up and hands it over with rr_conn_adopt(). srv_req.c has what
 *             becomes of its messages.
 *
 *             adopted and drained and no active request --> svc_ops.closed, freed
 * Memory:     srv_int.h
 * Threads:    srv_int.h
 * Errors:     A peer's error gets a reply and is counted. At worst it ends that peer's connection.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "srv_int.h"

/* A client may have three times the number of free connections: alone three quarters of all. */
#define OF_THE_FREE_CONNS 3u

static const struct rpcrdma_svc_attr attr_defaults = {
	.inline_bytes = 4096,
	.credits = 64,
	.call_bytes_max = RR_CALL_BYTES_MAX,
	.conns_max = 1024,
	.first_call_ms = 30000,
	.stall_ms = 20000,
};

static void fill_defaults(struct rpcrdma_svc_attr *a)
{
	const struct rpcrdma_svc_attr *d = &attr_defaults;

	a->inline_bytes = a->inline_bytes ? a->inline_bytes : d->inline_bytes;
	if (a->lab->no_private_data)
		a->inline_bytes = RR_INLINE_DEFAULT; /* peers cannot learn another value */
	a->credits = a->credits ? a->credits : d->credits;
	a->call_bytes_max = a->call_bytes_max ? a->call_bytes_max : d->call_bytes_max;
	a->conns_max = a->conns_max ? a->conns_max : d->conns_max;
	a->first_call_ms = a->first_call_ms ? a->first_call_ms : d->first_call_ms;
	a->stall_ms = a->stall_ms ? a->stall_ms : d->stall_ms;
}

static void put_svc(struct rr_svc *svc)
{
	if (atomic_fetch_sub(&svc->refs, 1) == 1)
		free(svc);
}

void rr_svc_refused(const struct rr_svc *svc, const struct rpcrdma_peer *peer, int err)
{
	static const struct rpcrdma_peer unknown = { .text = "a peer" };

	if (svc->ops.refused)
		svc->ops.refused(svc->ctx, peer ? peer : &unknown, err);
}

/* Counts one more connection of @c. A client below its share is admitted even at the limit of connections: then a
 * connection of the client that exceeds its share most is closed instead. */
static int admit(struct rr_client *c)
{
	const struct rr_budget *b = &c->all->budgets[RR_SHARE_CONNS];
	struct rr_client_conn *other = NULL;

	if (!rr_client_charge(c, RR_SHARE_CONNS, 1))
		return 0;
	if (rr_client_used(c, RR_SHARE_CONNS) < rr_client_fair(c->all, RR_SHARE_CONNS))
		other = rr_client_idlest(c->all);
	if (!other)
		return atomic_load_explicit(&b->used, memory_order_relaxed) < b->max ? -ETOOMANYREFS : -EUSERS;
	rr_client_add(c, RR_SHARE_CONNS, 1);
	rpcrdma_engine_post(other->engine, &other->msg);
	return 0;
}

/* Counts a new connection of @peer, or tells the service why it is refused. Return: 0, and the peer's client;
 * leave() releases both. -EUSERS: too many connections; -ETOOMANYREFS: too many of this client; -ENOMEM. */
static int admit_peer(struct rr_svc *svc, struct rpcrdma_domain *d, const struct rpcrdma_peer *peer,
		      struct rr_client **ret)
{
	struct rpcrdma_client_id id;
	struct rr_client *c;
	int rc;

	rpcrdma_client_id_of(peer, &id);
	rc = rr_client_get(&d->clients, &id, &c);
	if (!rc) {
		rc = admit(c);
		if (rc)
			rr_client_put(c);
	}
	if (rc)
		rr_svc_refused(svc, peer, rc);
	else
		*ret = c;
	return rc;
}

/* Uncounts a connection. @going: it was evicted */
static void leave(struct rr_client *client, bool going)
{
	rr_client_conn_left(client, going);
	rr_client_put(client);
}

/* All listeners of a domain share one limit: the largest conns_max of them. */
static void allow_conns(struct rpcrdma_domain *d, size_t conns_max)
{
	struct rr_budget *b = &d->clients.budgets[RR_SHARE_CONNS];

	pthread_mutex_lock(&d->lock);
	if (b->max == SIZE_MAX || b->max < conns_max)
		b->max = conns_max;
	b->factor = OF_THE_FREE_CONNS;
	pthread_mutex_unlock(&d->lock);
}

static int copy_attr(struct rr_svc *svc, const struct rpcrdma_svc_attr *attr, const struct rpcrdma_svc_ops *ops)
{
	int rc = RR_SIZED_IN(&svc->attr, attr, lab);

	if (!rc)
		rc = RR_SIZED_IN(&svc->lab, svc->attr.lab, local);
	if (!rc)
		rc = RR_SIZED_IN(&svc->ops, ops, opened);
	svc->attr.lab = &svc->lab;
	return rc;
}

int rpcrdma_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr,
		   const struct rpcrdma_svc_attr *attr, const struct rpcrdma_svc_ops *ops, void *ctx,
		   struct rpcrdma_listener **ret)
{
	struct rr_svc *svc;
	int rc;

	if (rpcrdma_engine_is_running(e) && addr->host[0] && !rr_addr_is_literal(addr))
		return -EDEADLK;
	svc = calloc(1, sizeof(*svc));
	if (!svc)
		return -ENOMEM;
	rc = copy_attr(svc, attr, ops);
	if (rc) {
		free(svc);
		return rc;
	}
	atomic_init(&svc->refs, 1);
	svc->ctx = ctx;
	fill_defaults(&svc->attr);
	rc = -EINVAL;
	if (svc->attr.inline_bytes >= RR_INLINE_MIN && svc->attr.inline_bytes <= RR_INLINE_MAX &&
	    svc->attr.inline_bytes % 1024 == 0 &&
	    svc->attr.call_bytes_max <= MAX(e->domain->attr.call_bytes_max, (size_t)RPCRDMA_BUF_MAX) &&
	    svc->attr.credits <= 4096 &&
	    svc->attr.req_bytes <= INT32_MAX && /* the transports add their part */
	    (svc->lab.modes | RPCRDMA_MODES_ALL) == RPCRDMA_MODES_ALL) {
		allow_conns(e->domain, svc->attr.conns_max);
		rc = addr->transport == RPCRDMA_TCP ? rr_tcp_listen(e, addr, svc, ret)
						    : rr_rdma_listen(e, addr, svc, ret);
	}
	if (rc)
		put_svc(svc);
	return rc;
}

const struct rpcrdma_addr *rpcrdma_listener_addr(const struct rpcrdma_listener *l)
{
	return &l->addr;
}

const char *rpcrdma_listener_device(const struct rpcrdma_listener *l)
{
	return l->device;
}

void rpcrdma_listener_close(struct rpcrdma_listener *l)
{
	struct rr_svc *svc;

	if (!l)
		return;
	svc = l->svc;
	l->close(l);
	put_svc(svc);
}

/* ---- connections ---- */

static void maybe_free(struct rpcrdma_conn *c)
{
	struct rr_client *client = c->client;
	struct rr_svc *svc = c->svc;
	bool going;

	if (!c->adopted || !c->drained || c->reqs || !rr_client_conn_del(client, &c->of_client))
		return;
	going = c->of_client.going;
	rpcrdma_timer_cancel(c->engine, &c->timer);
	rr_conn_buf_fini(c);
	list_del(&c->link);
	rr_count_set(c->engine, conns, c->engine->stats.conns - 1);
	svc->ops.closed(c->ctx);
	c->ops->free(c);
	leave(client, going);
	put_svc(svc);
}

/* Evicts a connection of a client that exceeds its share: another client needs one. */
static void on_evict(struct rpcrdma_msg *msg)
{
	struct rpcrdma_conn *c = container_of(msg, struct rpcrdma_conn, of_client.msg);

	rr_client_conn_told(c->client, &c->of_client);
	if (!c->dead)
		rr_svc_refused(c->svc, &c->peer, -ECONNABORTED);
	rpcrdma_conn_close(c);
	maybe_free(c);
}

/* Closes a connection if its peer sent no first message, or owes progress and made none. Runs once per stall_ms, so a
 * stall is detected after one to two periods. */
static void on_timer(struct rpcrdma_timer *t)
{
	struct rpcrdma_conn *c = container_of(t, struct rpcrdma_conn, timer);

	if (c->dead)
		return;
	if (!c->heard || (c->ops->owed(c) && c->progress == c->progress_seen)) {
		rpcrdma_conn_close(c);
		return;
	}
	if (c->ops->tick)
		c->ops->tick(c);
	rr_req_trim(c, MAX(c->reqs_most, RR_MSGS_FIRST));
	c->reqs_most = c->reqs;
	/* work that becomes owed after this tick has less than a full period until the next: not a stall then */
	c->progress_seen = c->ops->owed(c) ? c->progress : c->progress - 1;
	rpcrdma_timer_set(c->engine, &c->timer, c->svc->attr.stall_ms * NS_PER_MS);
}

static void on_adopt(struct rpcrdma_msg *msg)
{
	struct rpcrdma_conn *c = container_of(msg, struct rpcrdma_conn, adopt_msg);

	c->adopted = true;
	rr_client_conn_add(c->client, &c->of_client);
	list_add_tail(&c->engine->conns, &c->link);
	rr_count_set(c->engine, conns, c->engine->stats.conns + 1);
	rr_count(c->engine, conns_total, 1);
	c->ops->adopted(c);
	if (c->svc->ops.opened)
		c->svc->ops.opened(c->ctx, c);
	if (!c->heard && !c->drained)
		rpcrdma_timer_set(c->engine, &c->timer, c->svc->attr.first_call_ms * NS_PER_MS);
	maybe_free(c);
}

/* Deferred: the function that called rr_conn_dead() may be inside one of the service's calls. */
static void on_lost(struct rpcrdma_msg *msg)
{
	struct rpcrdma_conn *c = container_of(msg, struct rpcrdma_conn, lost_msg);

	c->svc->ops.lost(c->ctx);
	rr_conn_unhold(c);
}

void rr_conn_init(struct rpcrdma_conn *c, struct rr_svc *svc, struct rr_client *client,
		  const struct rr_conn_ops *ops, struct rpcrdma_engine *engine,
		  const struct rpcrdma_peer *peer, void *ctx)
{
	atomic_fetch_add(&svc->refs, 1);
	c->svc = svc;
	c->client = client;
	c->ops = ops;
	c->engine = engine;
	c->peer = *peer;
	c->ctx = ctx;
	c->adopt_msg.fn = on_adopt;
	c->lost_msg.fn = on_lost;
	c->timer.fn = on_timer;
	c->of_client.engine = engine;
	c->of_client.msg.fn = on_evict;
	list_init(&c->of_client.link);
	atomic_init(&c->of_client.heard_ns, clock_coarse_ns());
	rr_conn_buf_init(c);
	list_init(&c->free_reqs);
	list_init(&c->link);
}

int rr_conn_create(const struct rpcrdma_listener *l, const struct rpcrdma_peer *peer, const struct rr_conn_ops *ops,
		   size_t bytes, struct rpcrdma_conn **ret)
{
	struct rpcrdma_engine *engine = NULL;
	struct rr_svc *svc = l->svc;
	struct rr_client *client;
	struct rpcrdma_conn *c;
	void *ctx = NULL;
	int rc;

	rc = admit_peer(svc, l->engine->domain, peer, &client);
	if (rc)
		return rc;
	c = calloc(1, bytes);
	if (c) {
		rc = svc->ops.accept(svc->ctx, peer, &engine, &ctx);
	} else {
		rc = -ENOMEM;
		rr_svc_refused(svc, peer, rc);
	}
	if (rc) {
		free(c);
		leave(client, false);
		return rc;
	}
	rr_conn_init(c, svc, client, ops, engine, peer, ctx);
	*ret = c;
	return 0;
}

void rr_conn_discard(struct rpcrdma_conn *c, int err)
{
	struct rr_client *client = c->client;
	struct rr_svc *svc = c->svc;

	rr_svc_refused(svc, &c->peer, err);
	svc->ops.closed(c->ctx);
	free(c);
	leave(client, false);
	put_svc(svc);
}

void rr_conn_dead(struct rpcrdma_conn *c)
{
	c->dead = true;
	if (!c->reqs || !c->svc->ops.lost)
		return;
	c->reqs++;
	rpcrdma_engine_post(c->engine, &c->lost_msg);
}

void rr_conn_adopt(struct rpcrdma_conn *c)
{
	rpcrdma_engine_post(c->engine, &c->adopt_msg);
}

void rr_conn_heard(struct rpcrdma_conn *c)
{
	atomic_store_explicit(&c->of_client.heard_ns, clock_coarse_ns(), memory_order_relaxed);
	if (c->heard)
		return;
	c->heard = true;
	c->progress_seen = c->progress - 1;
	rpcrdma_timer_set(c->engine, &c->timer, c->svc->attr.stall_ms * NS_PER_MS);
}

bool rr_conn_bad(struct rpcrdma_conn *c)
{
	if (++c->bad < RR_BAD_MAX)
		return true;
	rpcrdma_conn_close(c);
	return false;
}

void rr_conn_unhold(struct rpcrdma_conn *c)
{
	c->reqs--;
	maybe_free(c);
}

void rr_conn_drained(struct rpcrdma_conn *c)
{
	c->drained = true;
	maybe_free(c);
}

void rpcrdma_conn_close(struct rpcrdma_conn *c)
{
	if (!c->dead)
		c->ops->close(c);
}

unsigned rpcrdma_engine_close_conns(struct rpcrdma_engine *e)
{
	unsigned n = 0;

	list_for_each_safe(l, &e->conns) {
		rpcrdma_conn_close(list_entry(l, struct rpcrdma_conn, link));
		n++;
	}
	return n;
}

const struct rpcrdma_peer *rpcrdma_conn_peer(const struct rpcrdma_conn *c)
{
	return &c->peer;
}
