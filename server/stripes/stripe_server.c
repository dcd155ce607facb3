/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_server.c - the stripe service's part of a server, a reactor and a connection: the hooks of struct service
 *
 * Operation: The server has the directories in force, and the lanes. A reactor has its stores, and the first one removes
 *            tombstones whose time is up, directory by directory. A connection has the verdicts of the rules on its peer.
 * Memory:    Owned by the server, the reactor and the connection.
 * Threads:   As prog.h says for each hook.
 * Errors:    Logged, and returned.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server_int.h"
#include "stripe_service.h"

#define REPLY_HEAD 1024u /* upper bound of the other results in a reply */

static int create(struct server *srv, const struct conf *conf, unsigned nreactors)
{
	struct stripe_server *s = calloc(1, sizeof(*s));
	char why[CONF_WHY_BYTES];
	int err;

	srv->service[SERVICE_STRIPES] = s;
	if (!s) {
		log_err("cannot start: out of memory");
		return -ENOMEM;
	}
	pthread_mutex_init(&s->set_lock, NULL);
	s->nreactors = nreactors;
	err = stripe_lanes_init(&s->lanes);
	if (err) {
		log_err("cannot start: %s", strerror(-err));
		return err;
	}
	err = stripe_set_create(conf, NULL, nreactors, &s->set, why, sizeof(why));
	if (err)
		log_err("%s", why);
	else
		stripe_set_announce(NULL, s->set);
	return err;
}

static void destroy(struct server *srv)
{
	struct stripe_server *s = stripe_server(srv);

	served_put(s->set ? &s->set->served : NULL);
	stripe_lanes_fini(&s->lanes);
	pthread_mutex_destroy(&s->set_lock);
	free(s);
}

/* ---- reload ------------------------------------------------------------------------------- */

static int prepare(struct server *srv, const struct conf *conf, void **ret_change, char *why, size_t why_bytes)
{
	struct stripe_server *s = stripe_server(srv);
	struct served_change *c = NULL;
	struct stripe_set *now;
	int err = stripe_set_create(conf, s->set, s->nreactors, &now, why, why_bytes);

	if (err)
		return err;
	err = served_prepare(srv, &now->served, &c);
	if (err) {
		(void)snprintf(why, why_bytes, "%s", strerror(-err));
		served_put(&now->served);
	}
	*ret_change = c;
	return err;
}

static void change_over(struct reactor *re, struct served_use *use)
{
	struct served_use *old = stripe_reactor(re)->use;

	stripe_reactor(re)->use = use;
	served_use_put(old);
}

static void commit(struct server *srv, void *change)
{
	struct stripe_server *s = stripe_server(srv);
	struct stripe_set *now = container_of(served_change_to(change), struct stripe_set, served), *old;

	pthread_mutex_lock(&s->set_lock);
	old = s->set;
	s->set = now;
	pthread_mutex_unlock(&s->set_lock);
	served_commit(change, change_over);
	stripe_set_announce(old, now);
	served_put(&old->served);
}

static void abandon(struct server *srv, void *change)
{
	(void)srv;
	served_abandon(change);
}

/* ---- reactors ----------------------------------------------------------------------------- */

static int create_reactor(struct reactor *re)
{
	struct stripe_reactor *b = calloc(1, sizeof(*b));
	size_t max = rpcrdma_domain_reply_max(re->srv->domain) - REPLY_HEAD;

	re->service[SERVICE_STRIPES] = b;
	if (!b)
		return -ENOMEM;
	b->inline_max = (uint32_t)MIN(max, (size_t)STRIPE_IO_MAX) & ~4095u;
	return served_use_create(re, &stripe_server(re->srv)->set->served, &b->use);
}

static void destroy_reactor(struct reactor *re)
{
	served_use_put(stripe_reactor(re)->use);
	free(stripe_reactor(re));
}

/* ---- tombstones --------------------------------------------------------------------------- */

static void run_sweep(struct worker_job *job)
{
	struct stripe_reactor *b = container_of(job, struct stripe_reactor, sweep.job);
	const struct stripe_set *set = stripe_set_of(b->sweep.use);

	for (size_t i = 0; i < set->n; i++)
		stripe_disk_sweep(set->v[i].vol, b->sweep.fan, stripe_now());
}

static void on_swept(struct worker_job *job)
{
	struct stripe_reactor *b = container_of(job, struct stripe_reactor, sweep.job);
	struct reactor *re = b->sweep.use->reactor;

	served_use_put(b->sweep.use);
	b->sweep.use = NULL;
	b->sweep.fan = (b->sweep.fan + 1) % STRIPE_DIR_FANOUT;
	if (b->sweep.timer.fn)
		rpcrdma_timer_set(re->loop.engine, &b->sweep.timer, stripe_times.sweep_ns);
}

static void on_sweep_time(struct rpcrdma_timer *t)
{
	struct stripe_reactor *b = container_of(t, struct stripe_reactor, sweep.timer);

	if (b->use->reactor->draining)
		return;
	b->sweep.use = served_use_hold(b->use);
	b->sweep.job.run = run_sweep;
	b->sweep.job.done = on_swept;
	loop_submit(&b->use->reactor->loop, &b->sweep.job);
}

static void start_reactor(struct reactor *re)
{
	struct stripe_reactor *b = stripe_reactor(re);

	if (re->idx)
		return;
	b->sweep.timer.fn = on_sweep_time;
	rpcrdma_timer_set(re->loop.engine, &b->sweep.timer, stripe_times.sweep_ns);
}

static void stop_reactor(struct reactor *re)
{
	struct stripe_reactor *b = stripe_reactor(re);

	rpcrdma_timer_cancel(re->loop.engine, &b->sweep.timer);
	b->sweep.timer.fn = NULL;
}

static bool is_busy(const struct reactor *re)
{
	return stripe_reactor(re)->sweep.use != NULL;
}

/* ---- connections -------------------------------------------------------------------------- */

static bool admits(const struct stripe_member *m, const struct rpcrdma_peer *peer)
{
	return peers_admit(&m->conf.peers, peer) == PEER_ADMITTED;
}

static struct stripe_set *current(struct stripe_server *s)
{
	struct stripe_set *set;

	pthread_mutex_lock(&s->set_lock);
	set = s->set;
	served_get(&set->served);
	pthread_mutex_unlock(&s->set_lock);
	return set;
}

static int accept_peer(struct conn *c, const char **ret_why)
{
	struct stripe_peer *p = calloc(1, sizeof(*p));
	struct stripe_set *set;
	bool any = false;

	c->service[SERVICE_STRIPES] = p;
	if (!p)
		return -ENOMEM;
	p->conn = stripe_conn_new(&stripe_server(c->srv)->lanes, c);
	if (!p->conn)
		return -ENOMEM;
	set = current(stripe_server(c->srv));
	for (size_t i = 0; i < set->n && !any; i++)
		any = admits(&set->v[i], &c->peer);
	if (!any && set->n)
		*ret_why = "neither an export nor a volume admits it";
	served_put(&set->served);
	return any ? 0 : -EACCES;
}

static void conn_closed(struct conn *c)
{
	struct stripe_peer *p = stripe_peer(c);

	if (p)
		stripe_conn_end(&stripe_server(c->srv)->lanes, p->conn);
	free(p);
}

bool stripe_admits(const struct req *r, const struct stripe_member *m)
{
	const struct stripe_set *set = stripe_set_of(stripe_call(r)->use);
	struct stripe_peer *p = stripe_peer(r->conn);

	if (p->serial != set->serial) {
		for (size_t i = 0; i < set->n; i++)
			p->admitted[i] = admits(&set->v[i], &r->conn->peer);
		p->serial = set->serial;
	}
	return p->admitted[m->idx];
}

static const struct prog *const progs[] = { &prog_stripes, NULL };

const struct service stripe_service = {
	.slot = SERVICE_STRIPES,
	.progs = progs,
	.create = create,
	.prepare = prepare,
	.commit = commit,
	.abandon = abandon,
	.destroy = destroy,
	.create_reactor = create_reactor,
	.start_reactor = start_reactor,
	.stop_reactor = stop_reactor,
	.is_busy = is_busy,
	.destroy_reactor = destroy_reactor,
	.accept = accept_peer,
	.closed = conn_closed,
};
