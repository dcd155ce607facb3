/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * services.c - calls the hooks of all services of a server
 *
 * Operation: The services are a constant list. Each keeps its state in its slot of the server, of every reactor and of
 *            every connection. What it serves (served.h) is in a slot of the server and of every reactor, too. All
 *            services prepare a reload before the first one commits it, so it happens as a whole or not at all.
 * Memory:    The services own their states. A state that a failed hook has left is destroyed like any other.
 * Threads:   As prog.h says for each hook.
 * Errors:    The first error ends a loop over the services.
 */
#include "services.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "conf.h"
#include "conn.h"
#include "reactor.h"
#include "req.h"
#include "served.h"
#include "server_int.h"

#define FOR_EACH(s, srv) for (const struct service *const *s = (srv)->services; *s; s++)

/* What the server starts with. */
static int serve(struct server *srv, const struct service *s, const struct conf *conf)
{
	char why[CONF_WHY_BYTES];
	int err = s->serve(srv, conf, NULL, &srv->served[s->slot], why, sizeof(why));

	if (err)
		log_err("%s", why);
	else
		s->changed(srv, NULL, srv->served[s->slot]);
	return err;
}

int service_create(struct server *srv, const struct conf *conf, unsigned nreactors)
{
	int err = 0;

	FOR_EACH(s, srv) {
		if (!err && (*s)->create)
			err = (*s)->create(srv, conf, nreactors);
		if (!err && (*s)->serve)
			err = serve(srv, *s, conf);
	}
	return err;
}

static void stay(const struct server *srv, const struct service *s)
{
	if (s->stay)
		s->stay(srv->served[s->slot]);
}

static int prepare(struct server *srv, const struct service *s, const struct conf *conf, struct served_change **ret, char *why,
		   size_t why_bytes)
{
	struct served *now;
	int err = s->serve ? s->serve(srv, conf, srv->served[s->slot], &now, why, why_bytes) : -EOPNOTSUPP;

	if (err)
		return err;
	err = served_prepare(srv, s, now, ret);
	if (err) {
		(void)snprintf(why, why_bytes, "%s", strerror(-err));
		served_put(now);
		stay(srv, s);
	}
	return err;
}

/* Return: 0, or an error with none prepared */
static int prepare_all(struct server *srv, const struct conf *conf, struct served_change *changes[SERVICES], char *why,
		       size_t why_bytes)
{
	int err = srv->stopping ? -ESHUTDOWN : 0;

	(void)snprintf(why, why_bytes, "%s", err ? strerror(-err) : "");
	FOR_EACH(s, srv) {
		if (!err)
			err = prepare(srv, *s, conf, &changes[(*s)->slot], why, why_bytes);
	}
	FOR_EACH(s, srv) {
		if (err && changes[(*s)->slot]) {
			served_abandon(changes[(*s)->slot]);
			stay(srv, *s);
		}
	}
	return err;
}

static void commit(struct server *srv, const struct service *s, struct served_change *c)
{
	struct served *old = served_commit(c);

	s->changed(srv, old, srv->served[s->slot]);
	served_put(old);
}

int server_reload(struct server *srv, const struct conf *conf, char *why, size_t why_bytes)
{
	struct served_change *changes[SERVICES] = { NULL };
	int err;

	pthread_mutex_lock(&srv->reload_lock);
	err = prepare_all(srv, conf, changes, why, why_bytes);
	FOR_EACH(s, srv) {
		if (!err)
			commit(srv, *s, changes[(*s)->slot]);
	}
	pthread_mutex_unlock(&srv->reload_lock);
	return err;
}

struct served *service_current(struct server *srv, enum service_slot slot)
{
	struct served *now;

	pthread_mutex_lock(&srv->served_lock);
	now = srv->served[slot];
	served_get(now);
	pthread_mutex_unlock(&srv->served_lock);
	return now;
}

void service_stop(struct server *srv)
{
	pthread_mutex_lock(&srv->reload_lock);
	srv->stopping = true;
	pthread_mutex_unlock(&srv->reload_lock);
}

void service_destroy(struct server *srv)
{
	FOR_EACH(s, srv) {
		served_put(srv->served[(*s)->slot]);
		if (srv->service[(*s)->slot] && (*s)->destroy)
			(*s)->destroy(srv);
	}
}

int service_create_reactor(struct reactor *re)
{
	int err = 0;

	FOR_EACH(s, re->srv) {
		if (!err && (*s)->create_reactor)
			err = (*s)->create_reactor(re);
		if (!err && re->srv->served[(*s)->slot])
			err = served_use_create(re, re->srv->served[(*s)->slot], &re->uses[(*s)->slot]);
	}
	return err;
}

void service_start_reactor(struct reactor *re)
{
	FOR_EACH(s, re->srv) {
		if ((*s)->start_reactor)
			(*s)->start_reactor(re);
	}
}

void service_stop_reactor(struct reactor *re)
{
	FOR_EACH(s, re->srv) {
		if ((*s)->stop_reactor)
			(*s)->stop_reactor(re);
	}
}

bool service_is_busy(const struct reactor *re)
{
	bool busy = false;

	FOR_EACH(s, re->srv)
		busy |= (*s)->is_busy && (*s)->is_busy(re);
	return busy;
}

void service_destroy_reactor(struct reactor *re)
{
	FOR_EACH(s, re->srv) {
		if (re->service[(*s)->slot] && (*s)->destroy_reactor)
			(*s)->destroy_reactor(re);
		served_use_put(re->uses[(*s)->slot]);
	}
}

int service_accept(struct conn *c, const char **ret_why)
{
	int err = -EACCES;

	FOR_EACH(s, c->srv) {
		int rc = (*s)->accept ? (*s)->accept(c, ret_why) : 0;

		if (rc != -EACCES && err != -ENOMEM)
			err = rc;
	}
	if (err)
		service_closed(c);
	return err;
}

void service_closed(struct conn *c)
{
	FOR_EACH(s, c->srv) {
		if ((*s)->closed)
			(*s)->closed(c);
	}
}

const struct prog *service_prog(const struct server *srv, uint32_t number)
{
	FOR_EACH(s, srv) {
		for (const struct prog *const *v = (*s)->progs; *v; v++)
			if ((*v)->number == number)
				return *v;
	}
	return NULL;
}

size_t service_req_bytes(const struct server *srv)
{
	size_t most = 0;

	FOR_EACH(s, srv) {
		for (const struct prog *const *v = (*s)->progs; *v; v++)
			most = MAX(most, (*v)->call_bytes);
	}
	return sizeof(struct req) + most;
}
