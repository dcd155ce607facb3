/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * conn.c - a client's connection, on its reactor
 *
 * Operation: Connections are accepted on the listener's thread and assigned to the reactors in turn. A connection
 *            stays on its reactor.
 * Memory:    Counted: on_closed(), when the transport holds none of its requests, and the message of conn_close().
 * Threads:   on_accept() runs on the listener's thread, req_call() on the reactor's, on_closed() on either:
 *            a connection may fail before the reactor receives it.
 * Errors:    Refuses a peer that no service admits, and another user of this host if leatd cannot assume
 *            that user's identity.
 */
#include "conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "client.h"
#include "reactor.h"
#include "req.h"
#include "server_int.h"
#include "services.h"

/* An unprivileged leatd serves only its own user, and root, which could assume that identity anyway. Only the peer
 * credentials from the kernel count. A network has none: cm.c warns about that at start. */
static bool is_other_user(const struct server *srv, const struct rpcrdma_peer *peer)
{
	if (creds_can_assume() || srv->everyone || peer->transport != RPCRDMA_LOCAL)
		return false;
	return !peer->has_cred || (peer->uid != geteuid() && peer->uid != 0);
}

/* A group may have fewer rights than others have (mode 0604), so dropping a group could grant access. */
static bool lacks_groups(const struct rpcrdma_peer *peer)
{
	return creds_can_assume() && peer->has_cred && peer->groups_unknown;
}

static const char *refusal(int err)
{
	switch (err) {
	case -ENOMEM:
		return "no memory, or not enough that may be locked (leat doctor tells)";
	case -ENOBUFS:
		return "the memory for messages, or this client's share of it, is used up (messages-max)";
	case -EUSERS:
		return "there are too many connections (max-connections)";
	case -ETOOMANYREFS:
		return "this client has its share of the connections (max-connections)";
	case -EDQUOT:
		return "its user has its share of the memory that is shared with this host (shared-max)";
	case -EBUSY:
		return "too many local connections are being set up";
	case -EMFILE:
	case -ENFILE:
		return "too many open files (LimitNOFILE)";
	case -ENOSPC:
		return "its RDMA device would be one too many";
	default:
		return strerror(-err);
	}
}

static void on_refused(void *ctx, const struct rpcrdma_peer *peer, int err)
{
	struct rpcrdma_client_id id;
	char client[64];

	if (!server_may_tell(ctx, peer))
		return;
	rpcrdma_client_id_of(peer, &id);
	rpcrdma_client_id_print(&id, client, sizeof(client));
	if (err == -ECONNABORTED)
		log_warn("%s disconnected, which was idle for longest: client %s has more than its share of "
			 "the connections, and another one needs one (max-connections)",
			 peer->text, client);
	else if (err == -EXFULL)
		log_warn("new connections to the local socket wait: too many that have ended are still being closed");
	else if (err == -ESHUTDOWN)
		log_warn("connections to the local socket are opened and ended unused, many in a second, and others "
			 "have to wait for them: the latest was by %s", peer->text);
	else
		log_warn("%s turned away (client %s): %s", peer->text, client, refusal(err));
}

static int on_accept(void *ctx, const struct rpcrdma_peer *peer, struct rpcrdma_engine **ret_engine,
		     void **ret_conn_ctx)
{
	static _Atomic uint64_t numbers;
	struct server *srv = ctx;
	struct conn *c = calloc(1, sizeof(*c));
	const char *why = NULL;
	unsigned i;
	int err;

	if (!c) {
		on_refused(srv, peer, -ENOMEM);
		return -ENOMEM;
	}
	atomic_init(&c->refs, 1);
	c->srv = srv;
	c->peer = *peer;
	list_init(&c->reqs);
	c->number = atomic_fetch_add(&numbers, 1) + 1;
	if (is_other_user(srv, peer)) {
		if (server_may_tell(srv, peer))
			log_warn("%s turned away: all is done as uid %u, only for that uid and root "
				 "(--everyone lets others in)",
				 peer->text, (unsigned)geteuid());
		free(c);
		return -EACCES;
	}
	if (lacks_groups(peer)) {
		if (server_may_tell(srv, peer))
			log_warn("%s turned away: it is in more than %u groups, and none may be left out",
				 peer->text, RPCRDMA_GROUPS_MAX);
		free(c);
		return -EACCES;
	}
	err = service_accept(c, &why);
	if (!err && client_get(&srv->clients, peer, &c->client)) {
		service_closed(c);
		err = -ENOMEM;
	}
	if (err) {
		free(c);
		if (err != -EACCES)
			on_refused(srv, peer, err);
		else if (server_may_tell(srv, peer))
			log_warn("%s turned away: %s", peer->text, why);
		return err;
	}
	i = atomic_fetch_add_explicit(&srv->next_reactor, 1, memory_order_relaxed) % srv->nreactors;
	c->reactor = srv->reactors[i];
	fair_flow_init(&c->admission, &c->client->admission[i].waiting);
	atomic_fetch_add(&c->reactor->nconns, 1);
	*ret_engine = c->reactor->loop.engine;
	*ret_conn_ctx = c;
	return 0;
}

static void put_conn(struct conn *c)
{
	if (atomic_fetch_sub(&c->refs, 1) == 1)
		free(c);
}

static void on_close(struct rpcrdma_msg *msg)
{
	struct conn *c = container_of(msg, struct conn, close_msg);

	if (!c->closed)
		rpcrdma_conn_close(c->transport);
	put_conn(c);
}

bool conn_close(struct conn *c)
{
	if (atomic_exchange(&c->closing, true))
		return false;
	atomic_fetch_add(&c->refs, 1);
	c->close_msg.fn = on_close;
	rpcrdma_engine_post(c->reactor->loop.engine, &c->close_msg);
	return true;
}

static void on_closed(void *conn_ctx)
{
	struct conn *c = conn_ctx;
	struct reactor *re = c->reactor;

	service_closed(c);
	client_put(c->client);
	c->closed = true;
	put_conn(c);
	atomic_fetch_sub(&re->nconns, 1);
}

const struct rpcrdma_svc_ops conn_ops = {
	.accept = on_accept,
	.call = req_call,
	.closed = on_closed,
	.refused = on_refused,
	.lost = req_conn_lost,
};
