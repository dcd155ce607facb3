/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * proxy.c - the CLIENT that a program gets from librpcrdma-preload.so
 *
 * Operation:  A CLIENT of its own passes everything on to the handle inside, and does what a program written for another
 *             kind of handle expects: requests of clnt_control() that only UDP has, a socket, and calls in a child of
 *             fork() (a daemon that has created its handle before daemon()), where a new handle is created.
 * Memory:     One object, which owns the handle inside and, if told so, the socket.
 * Threads:    As the handle inside: any for calls. A child creates its handle under @lock.
 * Errors:     Those of the handle inside. If a child cannot create a handle, the calls on the old one fail.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy.h"

struct proxy {
	CLIENT client; /* what the program has */
	CLIENT *_Atomic inner;
	struct rt_way way; /* url is "": an original */
	struct rt_tally *tally;
	uint32_t prog, vers;
	bool is_datagram;
	int fd;
	bool closes_fd;
	struct sockaddr_storage addr;
	size_t addr_bytes;
	struct timeval retry, timeout;
	bool has_timeout;
	pthread_mutex_t lock;
	_Atomic unsigned generation; /* of @inner */
};

static _Atomic unsigned generation; /* children of fork() since the program started */

static void count_fork(void)
{
	generation++;
}

void rt_proxy_init(void)
{
	pthread_atfork(NULL, NULL, count_fork);
}

static struct proxy *of(CLIENT *clnt)
{
	return clnt->cl_private;
}

/* In a child: replaces the handle of the parent. */
static void replace_inner(struct proxy *p)
{
	CLIENT *new, *old;
	bool nested;

	pthread_mutex_lock(&p->lock);
	if (p->generation != generation) {
		nested = !rt_enter();
		old = p->inner;
		new = rt_route_open(&p->way, p->prog, p->vers, NULL);
		if (new) {
			if (p->has_timeout)
				(void)clnt_control(new, CLSET_TIMEOUT, (void *)&p->timeout);
			p->inner = new;
			p->generation = generation;
			clnt_destroy(old);
		}
		if (!nested)
			rt_leave();
	}
	pthread_mutex_unlock(&p->lock);
}

static CLIENT *inner_of(CLIENT *clnt)
{
	struct proxy *p = of(clnt);

	if (*p->way.url && p->generation != generation)
		replace_inner(p);
	return p->inner;
}

static enum clnt_stat proxy_call(CLIENT *clnt, rpcproc_t proc, xdrproc_t xargs, void *args, xdrproc_t xres, void *res,
				 struct timeval limit)
{
	struct proxy *p = of(clnt);
	CLIENT *inner = inner_of(clnt);
	enum clnt_stat stat;

	/* the program may have set another one; several threads set the same */
	__atomic_store_n(&inner->cl_auth, __atomic_load_n(&clnt->cl_auth, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	stat = clnt_call(inner, proc, xargs, args, xres, res, limit);
	if (p->tally) {
		rt_tally_add(&p->tally->calls);
		if (stat != RPC_SUCCESS)
			rt_tally_add(&p->tally->failed);
	}
	return stat;
}

static void proxy_abort(CLIENT *clnt)
{
	clnt_abort(inner_of(clnt));
}

static void proxy_geterr(CLIENT *clnt, struct rpc_err *err)
{
	clnt_geterr(of(clnt)->inner, err);
}

static bool_t proxy_freeres(CLIENT *clnt, xdrproc_t xres, void *res)
{
	return clnt_freeres(of(clnt)->inner, xres, res);
}

static void proxy_destroy(CLIENT *clnt)
{
	struct proxy *p = of(clnt);

	clnt_destroy(p->inner);
	if (p->closes_fd && p->fd >= 0)
		close(p->fd);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* What a UDP handle knows and a TCP handle does not. Return: false: another request. */
static bool control_datagram(struct proxy *p, u_int request, void *info, bool_t *ret)
{
	*ret = TRUE;
	switch (request) {
	case CLSET_RETRY_TIMEOUT:
		*ret = info != NULL;
		if (info)
			memcpy(&p->retry, info, sizeof(p->retry));
		return true;
	case CLGET_RETRY_TIMEOUT:
		*ret = info != NULL;
		if (info)
			memcpy(info, &p->retry, sizeof(p->retry));
		return true;
	case CLSET_ASYNC:
	case CLSET_CONNECT:
		return true;
	default:
		return false;
	}
}

/* The socket that the program has, or expects. Return: false: another request. */
static bool control_socket(struct proxy *p, u_int request, void *info, bool_t *ret)
{
	*ret = TRUE;
	switch (request) {
	case CLSET_FD_CLOSE:
	case CLSET_FD_NCLOSE:
		p->closes_fd = request == CLSET_FD_CLOSE;
		return true;
	case CLGET_FD:
		*ret = info != NULL;
		if (info)
			memcpy(info, &p->fd, sizeof(p->fd));
		return true;
	default:
		return false;
	}
}

static bool control_addr(struct proxy *p, u_int request, void *info, bool_t *ret)
{
	struct netbuf buf = { .maxlen = (u_int)p->addr_bytes, .len = (u_int)p->addr_bytes, .buf = &p->addr };

	*ret = info != NULL;
	if (request == CLGET_SERVER_ADDR && info)
		memcpy(info, &p->addr, p->addr_bytes);
	else if (request == CLGET_SVC_ADDR && info)
		memcpy(info, &buf, sizeof(buf));
	return request == CLGET_SERVER_ADDR || request == CLGET_SVC_ADDR;
}

static bool_t proxy_control(CLIENT *clnt, u_int request, void *info)
{
	struct proxy *p = of(clnt);
	bool_t ok;

	if (*p->way.url && ((p->is_datagram && control_datagram(p, request, info, &ok)) ||
			    (p->fd >= 0 && control_socket(p, request, info, &ok)) ||
			    (p->addr_bytes && control_addr(p, request, info, &ok))))
		return ok;
	ok = clnt_control(inner_of(clnt), request, info);
	if (!ok || !info)
		return ok;
	/* for a child, which creates another handle */
	if (request == CLSET_TIMEOUT) {
		memcpy(&p->timeout, info, sizeof(p->timeout));
		p->has_timeout = true;
	} else if (request == CLSET_VERS) {
		memcpy(&p->vers, info, sizeof(p->vers));
	} else if (request == CLSET_PROG) {
		memcpy(&p->prog, info, sizeof(p->prog));
	}
	return ok;
}

CLIENT *rt_proxy_create(CLIENT *inner, const struct rt_way *way, const struct rt_asked *asked, struct rt_tally *tally)
{
	static struct clnt_ops ops = {
		.cl_call = proxy_call,
		.cl_abort = proxy_abort,
		.cl_geterr = proxy_geterr,
		.cl_freeres = proxy_freeres,
		.cl_destroy = proxy_destroy,
		.cl_control = proxy_control,
	};
	struct proxy *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->client = *inner; /* its auth, and the names that libtirpc gives handles */
	p->client.cl_ops = &ops;
	p->client.cl_private = p;
	p->inner = inner;
	if (way)
		p->way = *way;
	p->tally = tally;
	p->prog = asked->prog;
	p->vers = asked->vers;
	p->is_datagram = asked->is_datagram;
	p->fd = asked->fd;
	p->closes_fd = asked->closes_fd;
	if (asked->addr && asked->addr_bytes <= sizeof(p->addr)) {
		memcpy(&p->addr, asked->addr, asked->addr_bytes);
		p->addr_bytes = asked->addr_bytes;
	}
	p->generation = generation;
	pthread_mutex_init(&p->lock, NULL);
	if (tally)
		rt_tally_add(&tally->handles);
	return &p->client;
}
