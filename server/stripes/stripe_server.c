/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_server.c - the stripe service's part of a server, a reactor and a connection: the hooks of struct service
 *
 * Operation: The server has the lanes. The first reactor removes tombstones whose time is up, directory by directory. A
 *            connection has the verdicts of the rules on its peer.
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
#include "services.h"
#include "stripe_service.h"

static int create(struct server *srv, const struct conf *conf, unsigned nreactors)
{
	struct stripe_server *s = calloc(1, sizeof(*s));
	int err;

	(void)conf;
	srv->service[SERVICE_STRIPES] = s;
	if (!s) {
		log_err("cannot start: out of memory");
		return -ENOMEM;
	}
	s->nreactors = nreactors;
	err = stripe_lanes_init(&s->lanes);
	if (err)
		log_err("cannot start: %s", strerror(-err));
	return err;
}

static void destroy(struct server *srv)
{
	struct stripe_server *s = stripe_server(srv);

	stripe_lanes_fini(&s->lanes);
	free(s);
}

static int serve(struct server *srv, const struct conf *conf, struct served *old, struct served **ret, char *why,
		 size_t why_bytes)
{
	return stripe_set_create(conf, stripe_set_from(old), stripe_server(srv)->nreactors, ret, why, why_bytes);
}

static void changed(struct server *srv, struct served *old, struct served *now)
{
	(void)srv;
	stripe_set_announce(stripe_set_from(old), stripe_set_from(now));
}

/* ---- reactors ----------------------------------------------------------------------------- */

static int create_reactor(struct reactor *re)
{
	struct stripe_reactor *b = calloc(1, sizeof(*b));

	re->service[SERVICE_STRIPES] = b;
	if (!b)
		return -ENOMEM;
	b->reactor = re;
	b->inline_max = reactor_inline_max(re, STRIPE_IO_MAX);
	return 0;
}

static void destroy_reactor(struct reactor *re)
{
	free(stripe_reactor(re));
}

/* ---- tombstones --------------------------------------------------------------------------- */

static void run_sweep(struct worker_job *job)
{
	struct stripe_reactor *b = container_of(job, struct stripe_reactor, sweep.job);
	const struct stripe_set *set = stripe_set_of(b->sweep.use);

	for (size_t i = 0; i < set->served.n; i++)
		stripe_disk_sweep(set->v[i].vol, b->sweep.fan);
}

static void on_swept(struct worker_job *job)
{
	struct stripe_reactor *b = container_of(job, struct stripe_reactor, sweep.job);

	served_use_put(b->sweep.use);
	b->sweep.use = NULL;
	b->sweep.fan = (b->sweep.fan + 1) % STRIPE_DIR_FANOUT;
	if (b->sweep.timer.fn)
		rpcrdma_timer_set(b->reactor->loop.engine, &b->sweep.timer, stripe_times.sweep_ns);
}

static void on_sweep_time(struct rpcrdma_timer *t)
{
	struct stripe_reactor *b = container_of(t, struct stripe_reactor, sweep.timer);

	if (b->reactor->draining)
		return;
	b->sweep.use = served_use_hold(b->reactor->uses[SERVICE_STRIPES]);
	b->sweep.job.run = run_sweep;
	b->sweep.job.done = on_swept;
	loop_submit(&b->reactor->loop, &b->sweep.job);
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

static int accept_peer(struct conn *c, const char **ret_why)
{
	struct stripe_peer *p = calloc(1, sizeof(*p));
	struct served *now;
	bool any;

	c->service[SERVICE_STRIPES] = p;
	if (!p)
		return -ENOMEM;
	p->conn = stripe_conn_new(&stripe_server(c->srv)->lanes, c);
	if (!p->conn)
		return -ENOMEM;
	now = service_current(c->srv, SERVICE_STRIPES);
	any = served_judge(&p->verdicts, now, &c->peer) == PEER_ADMITTED;
	if (!any && now->n)
		*ret_why = "neither an export nor a volume admits it";
	served_put(now);
	return any ? 0 : -EACCES;
}

static void conn_closed(struct conn *c)
{
	struct stripe_peer *p = stripe_peer(c);

	if (p)
		stripe_conn_end(&stripe_server(c->srv)->lanes, p->conn);
	free(p);
}

static const struct prog *const progs[] = { &prog_stripes, NULL };

const struct service stripe_service = {
	.slot = SERVICE_STRIPES,
	.progs = progs,
	.create = create,
	.serve = serve,
	.changed = changed,
	.destroy = destroy,
	.create_reactor = create_reactor,
	.start_reactor = start_reactor,
	.stop_reactor = stop_reactor,
	.is_busy = is_busy,
	.destroy_reactor = destroy_reactor,
	.accept = accept_peer,
	.closed = conn_closed,
};
