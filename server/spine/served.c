/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * served.c - the backings that a service serves, with their stores on each reactor, and their replacement
 *
 * Operation: To replace them, everything is created first, with stores for each reactor, so that nothing can
 *            fail once the first reactor switches. Each reactor gets a message and switches between two requests:
 *            requests decoded before keep the old ones, later ones see the new. The caller waits until all
 *            reactors have switched.
 * Memory:    struct served is held by all threads and has an atomic reference count. struct served_use is held
 *            on one reactor and has a plain count, so that a request touches no shared cache line.
 * Threads:   As served.h says for each function.
 * Errors:    Occur only before anything has changed.
 */
#include "served.h"

#include <errno.h>
#include <limits.h>
#include <semaphore.h>
#include <stdlib.h>

#include "conf.h"
#include "reactor.h"
#include "server_int.h"
#include "store.h"

_Static_assert(CONF_EXPORTS_MAX <= SERVED_MAX && CONF_BLOCKS_MAX <= SERVED_MAX && CONF_STRIPES_MAX <= SERVED_MAX,
	       "verdicts of all backings have room");

void served_init(struct served *s, size_t n, struct backing *(*backing)(struct served *s, size_t i),
		 void (*close)(struct served *s))
{
	static _Atomic uint64_t serials;

	s->serial = atomic_fetch_add(&serials, 1) + 1;
	s->n = n;
	s->backing = backing;
	s->close = close;
	atomic_init(&s->refs, 1);
}

void served_put(struct served *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	s->close(s);
	free(s);
}

static void run_end(struct worker_job *job)
{
	struct served *s = container_of(job, struct served, end);

	s->close(s);
}

static void done_end(struct worker_job *job)
{
	struct served *s = container_of(job, struct served, end);

	s->last->loop.flushing--;
	free(s);
}

/* As served_put(), for a reference that a reactor held. */
static void put_by_worker(struct reactor *r, struct served *s)
{
	if (atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	if (r->loop.stop) { /* done_end() would not run */
		s->close(s);
		free(s);
		return;
	}
	s->last = r;
	s->end = (struct worker_job){ .run = run_end, .done = done_end };
	r->loop.flushing++;
	loop_submit(&r->loop, &s->end);
}

unsigned served_judge(struct served_verdicts *v, struct served *s, const struct rpcrdma_peer *peer)
{
	unsigned best = UINT_MAX;

	v->serial = s->serial;
	for (size_t i = 0; i < s->n; i++) {
		unsigned verdict = s->judge(s, i, peer);

		v->v[i] = (uint8_t)verdict;
		best = MIN(best, verdict);
	}
	return best;
}

/* ---- one reactor's ------------------------------------------------------------------------ */

/* Where there is no backing, files of one that was removed may still need a sync. */
static struct data_conf none_data;
static struct backing none = { .name = "", .path = "", .data = &none_data };
static pthread_once_t none_once = PTHREAD_ONCE_INIT;

static void init_none(void)
{
	data_conf_init(&none_data);
}

static size_t nstores(const struct served *s)
{
	return MAX(s->n, (size_t)1);
}

void served_use_free(struct served_use *u)
{
	if (u->state)
		u->served->close_use(u);
	for (size_t i = 0; i < nstores(u->served); i++)
		store_destroy(u->stores[i]);
	put_by_worker(u->reactor, u->served);
	free(u);
}

int served_use_create(struct reactor *r, struct served *s, struct served_use **ret)
{
	struct served_use *u = calloc(1, sizeof(*u) + nstores(s) * sizeof(u->stores[0]));
	const struct store_env env = { .loop = &r->loop, .counters = &r->counters.store };
	int err = 0;

	if (!u)
		return -ENOMEM;
	(void)pthread_once(&none_once, init_none);
	served_get(s);
	u->served = s;
	u->reactor = r;
	u->holders = 1;
	for (size_t i = 0; i < nstores(s) && !err; i++)
		err = store_make(&env, i < s->n ? s->backing(s, i) : &none, &u->stores[i]);
	if (!err && s->open_use)
		err = s->open_use(u);
	if (err) {
		served_use_free(u);
		return err;
	}
	*ret = u;
	return 0;
}

/* ---- replacement -------------------------------------------------------------------------- */

struct served_switch {
	struct rpcrdma_msg msg;
	struct served_change *change;
	struct reactor *reactor;
	struct served_use *use; /* the reactor takes it over */
};

struct served_change {
	struct server *srv;
	const struct service *service;
	struct served *now;
	sem_t changed;
	unsigned n;
	struct served_switch v[]; /* of each reactor */
};

void served_abandon(struct served_change *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < c->n; i++)
		served_use_put(c->v[i].use);
	served_put(c->now);
	sem_destroy(&c->changed);
	free(c);
}

int served_prepare(struct server *srv, const struct service *service, struct served *now, struct served_change **ret)
{
	struct served_change *c = calloc(1, sizeof(*c) + srv->nreactors * sizeof(c->v[0]));
	int err = 0;

	if (!c)
		return -ENOMEM;
	sem_init(&c->changed, 0, 0);
	c->srv = srv;
	c->service = service;
	c->n = srv->nreactors;
	for (unsigned i = 0; i < c->n && !err; i++) {
		c->v[i].change = c;
		c->v[i].reactor = srv->reactors[i];
		err = served_use_create(c->v[i].reactor, now, &c->v[i].use);
	}
	if (err) {
		served_abandon(c);
		return err;
	}
	c->now = now;
	*ret = c;
	return 0;
}

static void on_switch(struct rpcrdma_msg *msg)
{
	struct served_switch *s = container_of(msg, struct served_switch, msg);
	const struct service *service = s->change->service;
	struct served_use *old = s->reactor->uses[service->slot];

	s->reactor->uses[service->slot] = s->use;
	if (service->change_over)
		service->change_over(s->reactor, old, s->use);
	served_use_put(old);
	sem_post(&s->change->changed);
}

struct served *served_commit(struct served_change *c)
{
	struct served **at = &c->srv->served[c->service->slot], *old;

	pthread_mutex_lock(&c->srv->served_lock);
	old = *at;
	*at = c->now;
	pthread_mutex_unlock(&c->srv->served_lock);
	for (unsigned i = 0; i < c->n; i++) {
		c->v[i].msg.fn = on_switch;
		rpcrdma_engine_post(c->v[i].reactor->loop.engine, &c->v[i].msg);
	}
	for (unsigned i = 0; i < c->n; i++) {
		while (sem_wait(&c->changed))
			;
	}
	sem_destroy(&c->changed);
	free(c);
	return old;
}
