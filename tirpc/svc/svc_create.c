/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * svc_create.c - rpcrdma_svc_create(): programs at URLs
 *
 * Operation:  The first call creates the engine and registers the transport handle with libtirpc. Each new URL listens. The
 *             dispatch function goes into libtirpc's own table (svc_reg()): so whatever a program registers with libtirpc, for
 *             any transport, is served at every URL, and svc_unreg() ends it everywhere.
 * Memory:     Until the process ends: libtirpc has no call that ends a service.
 * Threads:    The thread that runs the loop, or any one before it does.
 * Errors:     Of a new URL: nothing remains. Of a program at a URL that listens already: the URL remains.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "tirpc_attr.h"
#include "base/log.h"
#include "process.h"
#include "svc_int.h"

#define HEAD_BYTES 4096u /* more than an RPC header with the longest credential and verifier has */
/* A program may connect long before its first call: libtirpc's TCP does not mind. */
#define FIRST_CALL_MS 0x7fffffffu

struct rt_svc rt_svc = {
	.listens = LIST_INIT(rt_svc.listens),
	.turns = LIST_INIT(rt_svc.turns),
	.clients = LIST_INIT(rt_svc.clients),
	.fd = -1,
	.kick_fd = -1,
};

void rt_svc_log(const char *fmt, ...)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct log_limit limit = LOG_LIMIT_INIT;
	char line[256];
	va_list ap;
	bool ok;

	pthread_mutex_lock(&lock);
	ok = log_limit_ok(&limit);
	pthread_mutex_unlock(&lock);
	if (!ok)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	text_clean(line);
	warnx("rpcrdma: %s", line);
}

/* ---- the engine and its handle ---- */

static void on_kick(struct rpcrdma_watch *w, uint32_t events)
{
	uint64_t n;

	(void)events;
	if (read(w->fd, &n, sizeof(n)) < 0)
		return; /* EAGAIN */
}

void rt_svc_kick(void)
{
	uint64_t one = 1;

	if (rt_fork_is_child())
		return; /* the descriptor is the parent's; that of the handle is readable */
	/* a full counter is readable already */
	if (write(rt_svc.kick_fd, &one, sizeof(one)) < 0)
		return;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_engine(struct rt_svc *s)
{
	rpcrdma_engine_destroy(s->engine);
	s->engine = NULL;
	close_fd(&s->kick_fd);
}

/* Watches a descriptor with which other code wakes the loop, and gives the engine the descriptor of the handle. In a
 * child of fork() that one exists already: programs and libtirpc know its number. */
static int add_fds(struct rt_svc *s)
{
	int fd = rpcrdma_engine_fd(s->engine);

	s->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->kick_fd < 0)
		return -errno;
	if (s->fd < 0)
		fd = s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	else
		fd = dup3(fd, s->fd, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	s->kick = (struct rpcrdma_watch){ .fd = s->kick_fd, .fn = on_kick };
	return rpcrdma_engine_watch(s->engine, &s->kick, EPOLLIN);
}

int rt_svc_open(void)
{
	struct rt_svc *s = &rt_svc;
	const struct rpcrdma_engine_attr attr = { .size = sizeof(attr), .poll = s->attr.poll, .spin_us = s->attr.spin_us };
	struct rpcrdma_domain *d;
	int rc = rt_domain(s->attr.mem_bytes, &d);

	if (!rc)
		rc = rpcrdma_engine_create(d, &attr, &s->engine);
	if (rc)
		return rc;
	rc = add_fds(s);
	if (rc)
		close_engine(s);
	return rc;
}

/* ---- URLs ---- */

/* A port that the URL does not have is 0, not one of NFS. */
static int parse_url(const char *url, struct rpcrdma_addr *ret)
{
	const char *host = strstr(url, "://"), *colon;
	int rc = rpcrdma_addr_parse(url, ret);

	if (rc || ret->transport == RPCRDMA_LOCAL)
		return rc;
	host += 3;
	if (*host == '[' && strchr(host, ']'))
		host = strchr(host, ']');
	colon = strchr(host, ':');
	if (!colon)
		ret->port = 0;
	return 0;
}

static struct rt_listen *find_listen(const char *url)
{
	list_for_each(node, &rt_svc.listens) {
		struct rt_listen *l = list_entry(node, struct rt_listen, link);

		if (!strcmp(l->url, url))
			return l;
	}
	return NULL;
}

/* The address for xp_ltaddr. A name stays unknown: resolving it again may give another address. */
static void set_local(struct rt_listen *l)
{
	struct sockaddr_in *in = (void *)&l->local;
	struct sockaddr_in6 *in6 = (void *)&l->local;

	if (l->addr.transport == RPCRDMA_LOCAL || inet_pton(AF_INET, l->addr.host, &in->sin_addr) == 1) {
		if (l->addr.transport == RPCRDMA_LOCAL)
			in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		in->sin_family = AF_INET;
		in->sin_port = htons(l->addr.port);
	} else if (inet_pton(AF_INET6, l->addr.host, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(l->addr.port);
	} else {
		memset(&l->local, 0, sizeof(l->local));
	}
}

static void close_listen(struct rt_listen *l)
{
	if (!l)
		return;
	rt_bind_end(l);
	if (l->listener)
		rpcrdma_listener_close(l->listener);
	list_del(&l->link);
	rt_bulk_fini(&l->bulk);
	free(l->url);
	free(l);
}

int rt_svc_listen(struct rt_listen *l)
{
	return rpcrdma_listen(rt_svc.engine, &l->addr, &l->attr, &rt_svc_ops, l, &l->listener);
}

/* With its header. Bulk data of arguments counts in addition; a table does not say how long it may be. */
static uint32_t longest_call(const struct rt_listen *l)
{
	for (size_t i = 0; i < l->bulk.nrows; i++)
		if (l->bulk.rows[i].args)
			return RPCRDMA_CALL_BYTES_MAX;
	return (uint32_t)l->max_bytes + HEAD_BYTES;
}

static int open_listen(const char *url, const struct rpcrdma_tirpc_attr *attr, struct rt_listen **ret)
{
	struct rt_listen *l = calloc(1, sizeof(*l));
	int rc = -ENOMEM;

	if (!l)
		return rc;
	list_init(&l->link);
	list_init(&l->programs);
	l->url = strdup(url);
	if (!l->url)
		goto fail;
	rc = parse_url(url, &l->addr);
	if (rc)
		goto fail;
	l->max_bytes = attr->max_bytes;
	rc = rt_bulk_init(&l->bulk, attr->bulk, attr->nbulk, attr->row_bytes, attr->max_bytes);
	if (rc)
		goto fail;
	l->attr = (struct rpcrdma_svc_attr){
		.size = sizeof(l->attr),
		.call_bytes_max = longest_call(l),
		.whole_calls = true,
		.srq = true,
		.inline_bytes = attr->inline_bytes,
		.credits = attr->credits,
		.conns_max = attr->conns_max,
		.first_call_ms = FIRST_CALL_MS,
	};
	rc = rt_svc_listen(l);
	if (rc)
		goto fail;
	l->addr = *rpcrdma_listener_addr(l->listener);
	set_local(l);
	list_add_tail(&rt_svc.listens, &l->link);
	*ret = l;
	return 0;
fail:
	close_listen(l);
	return rc;
}

/* ---- the calls ---- */

/* Removes registrations with rpcbind, and then the sockets of the local fabric: a child that takes over listens, and
 * registers, when they are gone. If another thread runs the loop, the sockets stay, as if the process had been killed; the
 * next process at these paths removes them. */
static void on_exit_close(void)
{
	if (rt_fork_is_child())
		return;
	list_for_each_safe(node, &rt_svc.listens) {
		struct rt_listen *l = list_entry(node, struct rt_listen, link);

		if (!l->listener)
			continue; /* not taken over: another process serves it, and owns the registrations */
		rt_bind_end(l);
		if (rt_loop_is_here())
			close_listen(l);
	}
}

/* Without a netid libtirpc finds a registration for any transport. */
static bool add_program(SVCXPRT *x, rpcprog_t prog, rpcvers_t vers, void (*dispatch)(struct svc_req *, SVCXPRT *))
{
	char *netid = x->xp_netid;
	bool_t added;

	x->xp_netid = NULL;
	added = svc_reg(x, prog, vers, dispatch, NULL);
	x->xp_netid = netid;
	return added;
}

static int serve(void (*dispatch)(struct svc_req *, SVCXPRT *), rpcprog_t prog, rpcvers_t vers, const char *url,
		 const struct rpcrdma_tirpc_attr *attr)
{
	struct rt_listen *l = find_listen(url), *opened = NULL;
	int rc = 0;

	if (!l)
		rc = open_listen(url, attr, &opened);
	if (rc)
		return rc;
	if (!add_program(&rt_svc.main.x, prog, vers, dispatch)) {
		close_listen(opened);
		return -EEXIST;
	}
	rt_bind_add(l ? l : opened, prog, vers);
	return 0;
}

int rpcrdma_svc_create(void (*dispatch)(struct svc_req *, SVCXPRT *), rpcprog_t prog, rpcvers_t vers, const char *url,
		       const struct rpcrdma_tirpc_attr *attr)
{
	struct rt_svc *s = &rt_svc;
	struct rpcrdma_tirpc_attr a;
	bool first;
	int rc = rt_attr_get(attr, &a);

	if (rc)
		return rc;
	if (!dispatch || !url)
		return -EINVAL;
	rc = rt_fork_take_over();
	if (rc)
		return rc;
	first = !s->engine;
	if (first) {
		s->attr = a;
		rc = rt_svc_open();
		if (rc)
			return rc;
		rt_xprt_init(&s->main, &rt_xprt_ops, s->fd);
	}
	s->attr.mem_bytes = MAX(s->attr.mem_bytes, a.mem_bytes);
	rc = serve(dispatch, prog, vers, url, &a);
	if (rc) {
		if (first) {
			close_engine(s);
			close_fd(&s->fd);
		}
		return rc;
	}
	if (first) {
		rt_fork_watch();
		(void)atexit(on_exit_close); /* without it, sockets stay */
		xprt_register(&s->main.x);
	}
	rt_svc_kick();
	return 0;
}

int rpcrdma_svc_url(const char *url, char *buf, size_t cap)
{
	const struct rt_listen *l = find_listen(url);
	char text[sizeof(l->addr.host) + 32];

	if (!l)
		return -ENOENT;
	return snprintf(buf, cap, "%s", rpcrdma_addr_print(&l->addr, text, sizeof(text)));
}
