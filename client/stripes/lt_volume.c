/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lt_volume.c - the striped volume that a mount is of: its map, and its stripe servers
 *
 * Operation:  The mount asks a leatd for the map of its export; one that is no volume says so. The stripe servers of the
 *             map are connected when a file first needs them, in the mount's session, and shared by the mounts of one
 *             volume. A layout that names a newer map makes the client ask for that.
 *             A leat:// URL of a stripe server is used over TCP: there is no search for a faster transport.
 * Memory:     Servers of older maps stay until the mount ends.
 * Threads:    lt_volume_find() the mounting thread; the rest the owner's.
 * Errors:     -errno, with a text.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lt_volume.h"
#include "striped.h"
#include "sync.h"
#include "volume_map.h"
#include "volume_status.h"

#define CONNECT_MS 10000u
#define CHANGES_MAX 4096u /* servers of all maps that a mount has seen */

#define MAP_REPLY_BYTES (32u + VOLUME_SERVERS_MAX * (12u + VOLUME_URL_MAX))

static struct lt_stripe_server *find_server(const struct lt_volume *v, uint32_t id)
{
	list_for_each(node, &v->servers) {
		struct lt_stripe_server *s = list_entry(node, struct lt_stripe_server, link);

		if (s->id == id && s->current)
			return s;
	}
	return NULL;
}

static int add_server(struct lt_volume *v, const volume_server *from)
{
	struct lt_stripe_server *s;

	if (v->changes == CHANGES_MAX)
		return -EREMOTEIO;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->url = strdup(from->url);
	if (!s->url) {
		free(s);
		return -ENOMEM;
	}
	s->id = from->id;
	list_init(&s->share.waiting);
	s->current = true;
	list_add_tail(&v->servers, &s->link);
	v->changes++;
	return 0;
}

static const volume_server *find_in_map(const VOLMAPresok *ok, const struct lt_stripe_server *s)
{
	for (unsigned i = 0; i < ok->servers.servers_len; i++) {
		const volume_server *in = &ok->servers.servers_val[i];

		if (in->id == s->id && !strcmp(in->url, s->url))
			return in;
	}
	return NULL;
}

static void divide_budget(struct lt_volume *v, unsigned servers)
{
	list_for_each(node, &v->servers)
		list_entry(node, struct lt_stripe_server, link)->share.max =
			MAX(v->budget.max / MAX(servers, 1u), (uint64_t)STRIPE_IO_MAX);
}

static bool is_possible(const VOLMAPresok *ok)
{
	for (unsigned i = 0; i < ok->servers.servers_len; i++) {
		const volume_server *s = &ok->servers.servers_val[i];

		if (!s->id || !volume_map_is_url(s->url))
			return false;
	}
	return true;
}

int lt_volume_take_map(struct lt_volume *v, const VOLMAPresok *ok)
{
	int rc = 0;

	if (ok->volume != v->id || !is_possible(ok))
		return -EREMOTEIO;
	if (ok->map < v->map)
		return 0;
	list_for_each(node, &v->servers) {
		struct lt_stripe_server *s = list_entry(node, struct lt_stripe_server, link);

		s->current = s->current && find_in_map(ok, s);
	}
	for (unsigned i = 0; i < ok->servers.servers_len && !rc; i++)
		if (!find_server(v, ok->servers.servers_val[i].id))
			rc = add_server(v, &ok->servers.servers_val[i]);
	if (!rc)
		v->map = ok->map;
	divide_budget(v, ok->servers.servers_len);
	return rc;
}

int lt_volume_create(struct leat *m, const VOLMAPresok *ok)
{
	struct lt_volume *v = calloc(1, sizeof(*v));
	int rc;

	if (!v)
		return -ENOMEM;
	if (getrandom(&v->instance, sizeof(v->instance), 0) != sizeof(v->instance)) {
		free(v);
		return -EIO;
	}
	v->instance |= 1; /* 0 means no lease */
	v->m = m;
	v->id = ok->volume;
	list_init(&v->servers);
	list_init(&v->nodes);
	list_init(&v->budget.waiting);
	v->budget.max = m->url.budget_bytes;
	rc = lt_volume_take_map(v, ok);
	if (rc)
		lt_volume_destroy(v);
	else
		m->volume = v;
	m->before_resize = rc ? NULL : lt_striped_before_resize;
	return rc;
}

static bool is_ordinary(int rc, const VOLMAPres *res)
{
	return rc == -EPROTONOSUPPORT || (!rc && res->status == VOLUME_ERR_NOTVOLUME);
}

int lt_volume_find(struct leat *m, char *why, size_t cap)
{
	VOLMAPargs args = { .fh = { m->root.len, m->root.data } };
	VOLMAPres res = { 0 };
	struct lt_rpc rpc = LT_RPC(LEAT_VOLUME, LEAT_VOLUME_V1, VOLUMEPROC_MAP, xdr_VOLMAPargs, &args, xdr_VOLMAPres, &res,
				   MAP_REPLY_BYTES);
	int rc;

	if (!m->server->is_leatd)
		return 0;
	rc = lt_sync_rpc(m->server, m->server->clnt[0], &rpc);
	if (!is_ordinary(rc, &res)) {
		if (!rc)
			rc = volume_errno(res.status);
		if (!rc)
			rc = lt_volume_create(m, &res.VOLMAPres_u.resok);
		if (rc)
			snprintf(why, cap, "the map of the volume: %s", strerror(-rc));
	} else {
		rc = 0;
	}
	xdr_free((xdrproc_t)xdr_VOLMAPres, &res);
	return rc;
}

void lt_volume_destroy(struct lt_volume *v)
{
	if (!v)
		return;
	if (v->is_armed)
		rpcrdma_timer_cancel(v->m->session->engine, &v->timer);
	while (!list_is_empty(&v->servers)) {
		struct lt_stripe_server *s = list_entry(v->servers.next, struct lt_stripe_server, link);

		lt_server_put(s->server);
		list_del(&s->link);
		free(s->url);
		free(s);
	}
	free(v);
}

/* The settings of the mount, with the address of a stripe server. */
static int make_url(const struct lt_volume *v, const char *text, struct lt_url *ret, struct rpcrdma_addr *ret_addr)
{
	static const enum lt_scheme schemes[] = { [RPCRDMA_TCP] = LT_SCHEME_TCP, [RPCRDMA_RDMA] = LT_SCHEME_RDMA,
						  [RPCRDMA_LOCAL] = LT_SCHEME_LOCAL };
	int rc = rpcrdma_addr_parse(text, ret_addr);

	if (rc)
		return rc;
	*ret = v->m->url;
	ret->scheme = schemes[ret_addr->transport];
	ret->conns = 1;
	(void)snprintf(ret->shares, sizeof(ret->shares), "%016" PRIx64, v->id);
	return 0;
}

static int connect_server(struct lt_volume *v, struct lt_stripe_server *s)
{
	struct lt_server *server;
	struct rpcrdma_addr addr;
	struct lt_url url;
	int rc = make_url(v, s->url, &url, &addr);

	if (!rc)
		rc = lt_server_get(v->m->session, &url, &addr, LT_SERVER_STRIPES, &server);
	if (rc)
		return rc;
	if (!server->clnts) {
		rc = lt_server_dial(server, 0, &addr, MIN(url.timeo_ms, CONNECT_MS), &server->clnt[0]);
		if (rc) {
			lt_server_put(server);
			return rc;
		}
		server->clnts = 1;
		lt_server_share(server);
	}
	s->server = server;
	return 0;
}

int lt_volume_server(struct lt_volume *v, uint32_t id, struct lt_server **ret, char *why, size_t cap)
{
	struct lt_stripe_server *s = find_server(v, id);
	int rc;

	if (!s) {
		snprintf(why, cap, "the map of the volume has no server %u", id);
		return -EIO;
	}
	rc = likely(s->server != NULL) ? 0 : connect_server(v, s);
	if (rc)
		snprintf(why, cap, "stripe server %.80s: %s", s->url, strerror(-rc));
	*ret = s->server;
	return !rc || rc == -ENOMEM ? rc : -EIO;
}

struct lt_budget *lt_volume_share(const struct lt_volume *v, uint32_t id)
{
	return &find_server(v, id)->share;
}

const char *lt_volume_url(const struct lt_volume *v, uint32_t id)
{
	const struct lt_stripe_server *s = find_server(v, id);

	return s ? s->url : "an unknown server";
}
