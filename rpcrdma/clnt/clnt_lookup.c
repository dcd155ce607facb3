/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_lookup.c - finds the addresses of a server's name, without blocking the engine
 *
 * Operation:  A literal address is parsed at once. A name is resolved by a thread that exists for this one look-up,
 *             since getaddrinfo() may block for minutes and cannot be cancelled. The result is posted to the engine.
 *             A client has one look-up at most: an attempt that finds it still running waits for the same one.
 * Memory:     The thread owns the look-up until it posts the result, then the engine does. If the client is destroyed
 *             first, the thread frees it and posts nothing, so the engine may be destroyed, too.
 * Threads:    The engine's, and the thread of the look-up. The look-up's lock decides which of them is first. The
 *             thread holds it while it posts, and on_found() takes it, so the engine outlives the post. A lock for
 *             all look-ups would stay locked in a child that is forked during a post.
 * Errors:     -EHOSTUNREACH: unknown name; -ENOMEM; -EAGAIN: no thread; the errno of the resolver.
 */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "clnt_int.h"

struct rr_lookup {
	struct rpcrdma_engine *engine;
	pthread_mutex_t lock;        /* held for a few instructions */
	struct rpcrdma_clnt *clnt;   /* NULL: destroyed */
	struct rpcrdma_msg msg;
	char host[sizeof(((struct rpcrdma_addr *)0)->host)], port[8];
	struct addrinfo *found;
	int err;
};

static int resolve(const char *host, const char *port, int flags, struct addrinfo **ret)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags };

	switch (getaddrinfo(host, port, &hints, ret)) {
	case 0:
		return 0;
	case EAI_SYSTEM:
		return errno ? -errno : -EHOSTUNREACH;
	case EAI_MEMORY:
		return -ENOMEM;
	default:
		return -EHOSTUNREACH;
	}
}

static void lookup_free(struct rr_lookup *l)
{
	if (l->found)
		freeaddrinfo(l->found);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* ---- on the engine ---- */

/* The transports dial a literal address: that of the name, or the user's own. */
static int set_found(struct rpcrdma_clnt *c, struct addrinfo *found)
{
	if (c->found)
		freeaddrinfo(c->found);
	c->found = found;
	return getnameinfo(found->ai_addr, found->ai_addrlen, c->dial.host, sizeof(c->dial.host), NULL, 0,
			   NI_NUMERICHOST) ? -EHOSTUNREACH : 0;
}

static void on_found(struct rpcrdma_msg *msg)
{
	struct rr_lookup *l = container_of(msg, struct rr_lookup, msg);
	struct rpcrdma_clnt *c;
	int err;

	pthread_mutex_lock(&l->lock);
	c = l->clnt;
	pthread_mutex_unlock(&l->lock);
	err = l->err;
	if (c) {
		c->lookup = NULL;
		if (!err) {
			err = set_found(c, l->found);
			l->found = NULL;
		}
	}
	lookup_free(l);
	if (c)
		rr_clnt_found(c, err);
}

/* ---- on the thread ---- */

static void *run(void *arg)
{
	struct rr_lookup *l = arg;
	bool forgotten;

	l->err = resolve(l->host, l->port, 0, &l->found);
	pthread_mutex_lock(&l->lock);
	forgotten = !l->clnt;
	if (!forgotten)
		rpcrdma_engine_post(l->engine, &l->msg);
	pthread_mutex_unlock(&l->lock);
	if (forgotten)
		lookup_free(l);
	return NULL;
}

static int start_thread(struct rr_lookup *l)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc = -pthread_attr_init(&attr);

	if (rc)
		return rc;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	rc = thread_start(&thread, &attr, run, l);
	pthread_attr_destroy(&attr);
	return rc;
}

/* ---- for the client ---- */

static int lookup_create(struct rpcrdma_clnt *c, const char *port)
{
	struct rr_lookup *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	l->engine = c->engine;
	l->clnt = c;
	l->msg.fn = on_found;
	pthread_mutex_init(&l->lock, NULL);
	memcpy(l->host, c->attr.addr.host, sizeof(l->host));
	snprintf(l->port, sizeof(l->port), "%s", port);
	rc = start_thread(l);
	if (rc)
		lookup_free(l);
	else
		c->lookup = l;
	return rc;
}

int rr_lookup_start(struct rpcrdma_clnt *c)
{
	const struct rpcrdma_addr *a = &c->attr.addr;
	struct addrinfo *found;
	char port[8];
	bool early = c->found_early;
	int rc;

	c->found_early = false;
	if (a->transport == RPCRDMA_LOCAL || c->lookup || early)
		return c->lookup ? 1 : 0;
	snprintf(port, sizeof(port), "%u", a->port);
	rc = resolve(a->host, port, AI_NUMERICHOST, &found);
	if (!rc)
		return set_found(c, found);
	if (rc != -EHOSTUNREACH)
		return rc;
	rc = lookup_create(c, port);
	return rc ? rc : 1;
}

void rr_lookup_fini(struct rpcrdma_clnt *c)
{
	struct rr_lookup *l = c->lookup;

	c->lookup = NULL;
	if (l) {
		pthread_mutex_lock(&l->lock);
		l->clnt = NULL; /* on_found() or the thread frees it */
		pthread_mutex_unlock(&l->lock);
	}
	if (c->found)
		freeaddrinfo(c->found);
	c->found = NULL;
}
