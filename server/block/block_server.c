/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_server.c - the block service's part of a server, a reactor and a connection: the hooks of struct service
 *
 * Operation: The server has the keys of handles, which are those of file handles. A connection has the verdicts of the
 *            volumes' rules on its peer, and the lanes that came by it.
 * Memory:    Owned by the server, the reactor and the connection.
 * Threads:   As prog.h says for each hook.
 * Errors:    Logged, and returned.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/opt.h"
#include "base/text.h"
#include "block_service.h"
#include "block_state.h"
#include "services.h"

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
	const struct server *srv = ctx;
	char shown[BLOCK_NAME_MAX + 1];

	if (block_set_find(block_set_from(srv->served[SERVICE_BLOCK]), name))
		return;
	(void)snprintf(shown, sizeof(shown), "%s", name);
	text_clean(shown);
	log_info("state-dir %s: block-%s.*: the volume is not served; if it does not come back, remove these files",
		 block_server(srv)->state_dir, shown);
}

static void tell_all_unused(struct server *srv)
{
	const char *dir = block_server(srv)->state_dir;
	int err = dir ? block_state_each(dir, tell_unused, srv) : 0;

	if (err)
		log_warn("state-dir %s: %s", dir, strerror(-err));
}

static int create(struct server *srv, const struct conf *conf, unsigned nreactors)
{
	struct block_server *s = calloc(1, sizeof(*s));

	(void)nreactors;
	srv->service[SERVICE_BLOCK] = s;
	if (!s) {
		log_err("cannot start: out of memory");
		return -ENOMEM;
	}
	return load_keys(s, conf);
}

static void destroy(struct server *srv)
{
	free(block_server(srv)->state_dir);
	free(block_server(srv));
}

static int serve(struct server *srv, const struct conf *conf, struct served *old, struct served **ret, char *why,
		 size_t why_bytes)
{
	struct block_server *s = block_server(srv);
	int err = load_keys(s, conf); /* reactors use them after the change only */

	if (err)
		return opt_fail(err, why, why_bytes, "the key of handles: %s", strerror(-err));
	return block_set_create(conf, block_set_from(old), s->state_dir, ret, why, why_bytes);
}

static void stay(struct served *now)
{
	block_set_stay(block_set_from(now));
}

static void changed(struct server *srv, struct served *old, struct served *now)
{
	block_set_announce(block_set_from(old), block_set_from(now));
	if (!old)
		tell_all_unused(srv);
}

/* ---- reactors ----------------------------------------------------------------------------- */

static int create_reactor(struct reactor *re)
{
	struct block_reactor *b = calloc(1, sizeof(*b));

	re->service[SERVICE_BLOCK] = b;
	if (!b)
		return -ENOMEM;
	b->inline_max = reactor_inline_max(re, BLOCK_IO_MAX);
	return 0;
}

static void destroy_reactor(struct reactor *re)
{
	free(block_reactor(re));
}

/* ---- connections -------------------------------------------------------------------------- */

static int accept_peer(struct conn *c, const char **ret_why)
{
	struct block_peer *p = calloc(1, sizeof(*p));
	struct served *now;
	bool any;

	c->service[SERVICE_BLOCK] = p;
	if (!p)
		return -ENOMEM;
	p->conn = block_conn_new(c);
	if (!p->conn)
		return -ENOMEM;
	now = service_current(c->srv, SERVICE_BLOCK);
	any = served_judge(&p->verdicts, now, &c->peer) == PEER_ADMITTED;
	if (!any && now->n)
		*ret_why = "neither an export nor a block volume admits it";
	served_put(now);
	return any ? 0 : -EACCES;
}

static void conn_closed(struct conn *c)
{
	struct block_peer *p = block_peer(c);

	if (p)
		block_conn_end(p->conn);
	free(p);
}

static const struct prog *const progs[] = { &prog_block, NULL };

const struct service block_service = {
	.slot = SERVICE_BLOCK,
	.progs = progs,
	.create = create,
	.serve = serve,
	.stay = stay,
	.changed = changed,
	.destroy = destroy,
	.create_reactor = create_reactor,
	.destroy_reactor = destroy_reactor,
	.accept = accept_peer,
	.closed = conn_closed,
};
