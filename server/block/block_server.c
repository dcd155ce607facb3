/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_server.c - the block service's part of a server, a reactor and a connection: the hooks of struct service
 *
 * Operation: The server has the volumes in force, and the keys of handles, which are those of file handles. A reactor has
 *            its stores and descriptors of them. A connection has the verdicts of the volumes' rules on its peer, and
 *            the lanes that came by it.
 * Memory:    Owned by the server, the reactor and the connection.
 * Threads:   As prog.h says for each hook.
 * Errors:    Logged, and returned.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "block_service.h"
#include "block_state.h"

#define REPLY_HEAD 1024u /* upper bound of the other results in a reply */

/* With the first volumes, also by a reload. Without the directory the handles of this run end with it. */
static int load_keys(struct block_server *s, const struct conf *conf)
{
	int err;

	if (!conf->nblocks || s->keys.n)
		return 0;
	err = conf->state_dir ? fh_key_load(conf->state_dir, &s->keys) : -ENOENT;
	if (!err) {
		s->state_dir = strdup(conf->state_dir);
		return s->state_dir ? 0 : -ENOMEM;
	}
	if (conf->state_dir && !conf->state_dir_usual) {
		log_err("state-dir %s: its handle.key: %s", conf->state_dir, strerror(-err));
		return err;
	}
	log_warn("no state directory: attachments of block volumes end with this run");
	s->keys.n = 1;
	return siphash_key_random(&s->keys.v[0]);
}

/* A volume may be left out for a while. Whether it comes back, the administrator knows. */
static void tell_unused(void *ctx, const char *name)
{
	const struct block_server *s = ctx;
	char shown[BLOCK_NAME_MAX + 1];

	if (block_set_find(s->set, name))
		return;
	(void)snprintf(shown, sizeof(shown), "%s", name);
	text_clean(shown);
	log_info("state-dir %s: block-%s.*: the volume is not served; if it does not come back, remove these files",
		 s->state_dir, shown);
}

static void tell_all_unused(struct block_server *s)
{
	int err = s->state_dir ? block_state_each(s->state_dir, tell_unused, s) : 0;

	if (err)
		log_warn("state-dir %s: %s", s->state_dir, strerror(-err));
}

static int create(struct server *srv, const struct conf *conf, unsigned nreactors)
{
	struct block_server *s = calloc(1, sizeof(*s));
	char why[CONF_WHY_BYTES];
	int err;

	(void)nreactors;
	srv->service[SERVICE_BLOCK] = s;
	if (!s) {
		log_err("cannot start: out of memory");
		return -ENOMEM;
	}
	pthread_mutex_init(&s->set_lock, NULL);
	err = load_keys(s, conf);
	if (err)
		return err;
	err = block_set_create(conf, NULL, s->state_dir, &s->set, why, sizeof(why));
	if (err) {
		log_err("%s", why);
		return err;
	}
	block_set_announce(NULL, s->set);
	tell_all_unused(s);
	return 0;
}

static void destroy(struct server *srv)
{
	struct block_server *s = block_server(srv);

	served_put(s->set ? &s->set->served : NULL);
	free(s->state_dir);
	pthread_mutex_destroy(&s->set_lock);
	free(s);
}

/* ---- reload ------------------------------------------------------------------------------- */

static int prepare(struct server *srv, const struct conf *conf, void **ret_change, char *why, size_t why_bytes)
{
	struct block_server *s = block_server(srv);
	struct served_change *c = NULL;
	struct block_set *now;
	int err = load_keys(s, conf); /* reactors use them after the change only */

	if (err)
		(void)snprintf(why, why_bytes, "the key of handles: %s", strerror(-err));
	else
		err = block_set_create(conf, s->set, s->state_dir, &now, why, why_bytes);
	if (err)
		return err;
	err = served_prepare(srv, &now->served, &c);
	if (err) {
		(void)snprintf(why, why_bytes, "%s", strerror(-err));
		served_put(&now->served);
		block_set_stay(s->set);
	}
	*ret_change = c;
	return err;
}

static void change_over(struct reactor *re, struct served_use *use)
{
	struct served_use *old = block_reactor(re)->use;

	block_reactor(re)->use = use;
	served_use_put(old);
}

static void commit(struct server *srv, void *change)
{
	struct block_server *s = block_server(srv);
	struct block_set *now = container_of(served_change_to(change), struct block_set, served), *old;

	pthread_mutex_lock(&s->set_lock);
	old = s->set;
	s->set = now;
	pthread_mutex_unlock(&s->set_lock);
	served_commit(change, change_over);
	block_set_announce(old, now);
	served_put(&old->served);
}

static void abandon(struct server *srv, void *change)
{
	served_abandon(change);
	block_set_stay(block_server(srv)->set);
}

/* ---- reactors ----------------------------------------------------------------------------- */

static int create_reactor(struct reactor *re)
{
	struct block_reactor *b = calloc(1, sizeof(*b));
	size_t max = rpcrdma_domain_reply_max(re->srv->domain) - REPLY_HEAD;

	re->service[SERVICE_BLOCK] = b;
	if (!b)
		return -ENOMEM;
	b->inline_max = (uint32_t)MIN(max, (size_t)BLOCK_IO_MAX) & ~4095u;
	return served_use_create(re, &block_server(re->srv)->set->served, &b->use);
}

static void destroy_reactor(struct reactor *re)
{
	served_use_put(block_reactor(re)->use);
	free(block_reactor(re));
}

/* ---- connections -------------------------------------------------------------------------- */

static struct block_set *current(struct block_server *s)
{
	struct block_set *set;

	pthread_mutex_lock(&s->set_lock);
	set = s->set;
	served_get(&set->served);
	pthread_mutex_unlock(&s->set_lock);
	return set;
}

static int accept_peer(struct conn *c, const char **ret_why)
{
	struct block_peer *p = calloc(1, sizeof(*p));
	struct block_set *set;
	bool any = false;

	c->service[SERVICE_BLOCK] = p;
	if (!p)
		return -ENOMEM;
	p->conn = block_conn_new(c);
	if (!p->conn)
		return -ENOMEM;
	set = current(block_server(c->srv));
	for (size_t i = 0; i < set->n && !any; i++)
		any = block_entry_admits(&set->v[i], &c->peer);
	if (!any && set->n)
		*ret_why = "neither an export nor a block volume admits it";
	served_put(&set->served);
	return any ? 0 : -EACCES;
}

static void conn_closed(struct conn *c)
{
	struct block_peer *p = block_peer(c);

	if (p)
		block_conn_end(p->conn);
	free(p);
}

bool block_admits(const struct req *r, const struct block_entry *e)
{
	const struct block_set *set = block_set_of(block_call(r)->use);
	struct block_peer *p = block_peer(r->conn);

	if (p->serial != set->serial) {
		for (size_t i = 0; i < set->n; i++)
			p->admitted[i] = block_entry_admits(&set->v[i], &r->conn->peer);
		p->serial = set->serial;
	}
	return p->admitted[e->idx];
}

static const struct prog *const progs[] = { &prog_block, NULL };

const struct service block_service = {
	.slot = SERVICE_BLOCK,
	.progs = progs,
	.create = create,
	.prepare = prepare,
	.commit = commit,
	.abandon = abandon,
	.destroy = destroy,
	.create_reactor = create_reactor,
	.destroy_reactor = destroy_reactor,
	.accept = accept_peer,
	.closed = conn_closed,
};
