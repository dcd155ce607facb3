/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_create.c - creates and destroys a CLIENT
 *
 * Operation:  A CLIENT has an engine and a connection of its own. Its address is looked up once, as clnt_create() does; each
 *             address of a host is tried. The connection is up when the constructor returns; later the next call connects
 *             again if it is lost.
 * Memory:     The handle is one structure, which begins with the CLIENT.
 * Threads:    Any. clnt_destroy() waits for calls of other threads, as libtirpc does.
 * Errors:     rpc_createerr.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/clock.h"
#include "cl_int.h"
#include "cl_rpcbind.h"
#include "process.h"
#include "tirpc_attr.h"
#include "url_addr.h"

#define CREATE_MS 25000u
#define CHECK_MS 1000
#define HEADER_BYTES 2048u /* of a call */
#define SPIN_US 50u         /* as of an engine */
#define SILENCE_MS (24u * 3600 * 1000) /* a server that does not reply: time-outs of calls are the program's */

static _Atomic uint64_t serials;

static void *fail_create(enum clnt_stat stat, int err)
{
	memset(&rpc_createerr, 0, sizeof(rpc_createerr)); /* a macro: it is the thread's own */
	rpc_createerr.cf_stat = stat;
	rpc_createerr.cf_error.re_status = stat;
	rpc_createerr.cf_error.re_errno = -err;
	return NULL;
}

static bool_t free_results(CLIENT *clnt, xdrproc_t xres, void *res)
{
	XDR x = { .x_op = XDR_FREE };

	(void)clnt;
	return xres(&x, res);
}

static void abort_call(CLIENT *clnt)
{
	(void)clnt; /* as libtirpc's: nothing */
}

static void free_handle(struct rt_handle *h)
{
	rt_cl_free_idle(h);
	rt_bulk_fini(&h->bulk);
	pthread_cond_destroy(&h->unused);
	pthread_mutex_destroy(&h->lock);
	pthread_mutex_destroy(&h->auth_lock);
	free(h->client.cl_netid);
	free(h->client.cl_tp);
	free(h);
}

static void destroy(CLIENT *clnt)
{
	struct rt_handle *h = rt_handle_of(clnt);

	if (h->forks != rt_forks()) {
		rpcrdma_engine_abandon(h->engine); /* the engine is the parent's, and so are locks that its threads held */
		return;
	}
	rt_cl_delist(h); /* waits for a thread that reclaims memory */
	pthread_mutex_lock(&h->lock);
	while (h->users)
		pthread_cond_wait(&h->unused, &h->lock);
	pthread_mutex_unlock(&h->lock);
	rpcrdma_clnt_destroy(h->clnt);
	rpcrdma_engine_destroy(h->engine);
	free_handle(h);
}

static struct clnt_ops ops = {
	.cl_call = rt_cl_call,
	.cl_abort = abort_call,
	.cl_geterr = rt_cl_geterr,
	.cl_freeres = free_results,
	.cl_destroy = destroy,
	.cl_control = rt_cl_control,
};

static struct rt_handle *alloc_handle(const struct rpcrdma_tirpc_attr *attr, rpcprog_t prog, rpcvers_t vers)
{
	struct rt_handle *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->client = (CLIENT){ .cl_ops = &ops, .cl_private = h, .cl_auth = authnone_create() };
	h->serial = ++serials;
	h->max_bytes = attr->max_bytes;
	h->inline_bytes = attr->inline_bytes ? attr->inline_bytes : 4096;
	h->credits = attr->credits;
	h->resend = attr->resend;
	h->prog = (uint32_t)prog;
	h->vers = (uint32_t)vers;
	h->wait = (struct timeval){ .tv_sec = 25 };
	pthread_mutex_init(&h->lock, NULL);
	pthread_mutex_init(&h->auth_lock, NULL);
	pthread_cond_init(&h->unused, NULL);
	list_init(&h->followers);
	list_init(&h->idle);
	list_init(&h->batch);
	list_init(&h->link);
	return h;
}

/* ---- connecting -------------------------------------------------------------------------------- */

static void on_state(void *ctx, enum rpcrdma_clnt_state state, const char *why)
{
	struct rt_handle *h = ctx;

	(void)why;
	h->state = state;
	if (state != RPCRDMA_CLNT_UP)
		h->granted = 0; /* the next connection has one credit until its first reply */
}

/* Return: 0, or -errno of the attempt */
static int wait_for_connection(struct rt_handle *h, uint64_t until_ns)
{
	struct rpcrdma_clnt_info info;

	while (h->state == RPCRDMA_CLNT_CONNECTING && clock_now_ns() < until_ns)
		(void)rpcrdma_engine_wait(h->engine, CHECK_MS);
	if (h->state == RPCRDMA_CLNT_UP)
		return 0;
	rpcrdma_clnt_info(h->clnt, &info);
	return info.err ? info.err : -ETIMEDOUT;
}

/* Return: 0, or -errno: of the connection, or -ENOMEM */
static int connect_to(struct rt_handle *h, const struct rpcrdma_addr *addr, uint64_t until_ns)
{
	uint64_t now = clock_now_ns();
	uint32_t left_ms = now < until_ns ? (uint32_t)((until_ns - now + NS_PER_MS - 1) / NS_PER_MS) : 0;
	int rc;

	if (!left_ms)
		return -ETIMEDOUT;
	h->state = RPCRDMA_CLNT_CONNECTING;
	h->attr = (struct rpcrdma_clnt_attr){
		.size = sizeof(h->attr), .addr = *addr, .cred = { .none = true }, .inline_bytes = h->inline_bytes,
		.credits = h->credits, .timeout_ms = SILENCE_MS, .connect_ms = left_ms,
		.call_bytes_max = (uint32_t)h->max_bytes + HEADER_BYTES, .state = on_state, .ctx = h,
		.monitor = "explicit", /* no thread of the library's own: only rt_mem_get() and rpcrdma_mem_alloc() stay registered */
	};
	rc = rpcrdma_clnt_open(h->engine, &h->attr, &h->clnt);
	if (rc)
		return rc;
	rc = wait_for_connection(h, until_ns);
	if (!rc)
		return 0;
	rpcrdma_clnt_destroy(h->clnt);
	h->clnt = NULL;
	return rc;
}

void rt_cl_reopen(struct rt_handle *h)
{
	h->granted = 0;
	rpcrdma_clnt_destroy(h->clnt);
	h->clnt = NULL;
	(void)rpcrdma_clnt_open(h->engine, &h->attr, &h->clnt); /* rt_cl_start() tries again */
}

static bool set_names(struct rt_handle *h, const struct rt_url *url)
{
	h->client.cl_netid = strdup(rpcrdma_transport_name(url->addr.transport));
	h->client.cl_tp = strdup("");
	return h->client.cl_netid && h->client.cl_tp;
}

static void set_peer(struct rt_handle *h, const struct sockaddr *addr, socklen_t len)
{
	memcpy(&h->peer_addr, addr, len);
	h->peer = (struct netbuf){ .maxlen = sizeof(h->peer_addr), .len = len, .buf = &h->peer_addr };
}

static enum clnt_stat stat_of(int err)
{
	return !err ? RPC_SUCCESS : err == -ETIMEDOUT ? RPC_TIMEDOUT : RPC_SYSTEMERROR;
}

/* Tries each address of the host. Sets rpc_createerr on failure. */
static enum clnt_stat connect_any(struct rt_handle *h, const struct rt_url *url, uint64_t until_ns)
{
	enum clnt_stat stat = RPC_UNKNOWNHOST;

	for (const struct addrinfo *a = url->found; a; a = a->ai_next) {
		struct rpcrdma_addr addr = { .transport = url->addr.transport };
		int rc;

		rt_url_literal(&addr, a->ai_addr);
		if (!url->has_port) {
			stat = rt_cl_find_port(a->ai_addr, addr.transport, h->prog, h->vers, until_ns, &addr.port);
			if (stat) {
				rpc_createerr.cf_stat = stat; /* the rest tells why */
				continue;
			}
		}
		rt_url_set_port(a->ai_addr, addr.port);
		set_peer(h, a->ai_addr, a->ai_addrlen);
		rc = connect_to(h, &addr, until_ns);
		stat = stat_of(rc);
		if (!rc)
			break;
		(void)fail_create(stat, rc);
	}
	return stat;
}

static enum clnt_stat connect_local(struct rt_handle *h, const struct rt_url *url, uint64_t until_ns)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int rc;

	if (snprintf(un.sun_path, sizeof(un.sun_path), "%s", url->addr.host) >= (int)sizeof(un.sun_path)) {
		(void)fail_create(RPC_SYSTEMERROR, -ENAMETOOLONG);
		return RPC_SYSTEMERROR;
	}
	set_peer(h, (struct sockaddr *)&un, sizeof(un));
	rc = connect_to(h, &url->addr, until_ns);
	if (rc)
		(void)fail_create(stat_of(rc), rc);
	return stat_of(rc);
}

static int open_engine(struct rt_handle *h, const struct rt_url *url, const struct rpcrdma_tirpc_attr *attr)
{
	const struct rpcrdma_engine_attr engine = { .size = sizeof(engine), .poll = attr->poll, .spin_us = attr->spin_us };
	struct rpcrdma_domain *domain;
	int rc = rt_domain(0, &domain);

	h->forks = rt_forks();
	if (attr->poll != RPCRDMA_POLL_EVENT && url->addr.transport != RPCRDMA_TCP)
		h->spin_ns = (attr->spin_us ? attr->spin_us : SPIN_US) * NS_PER_US;
	return rc ? rc : rpcrdma_engine_create(domain, &engine, &h->engine);
}

/* For the results of any one call. */
static size_t least_memory(const struct rt_handle *h)
{
	size_t most = h->max_bytes;

	for (size_t i = 0; i < h->bulk.nrows; i++) {
		const struct rpcrdma_bulk *row = &h->bulk.rows[i];

		most = MAX(most, (size_t)row->reply_max + 2 * (size_t)row->data_max + 16384);
	}
	return most;
}

static CLIENT *create_at(const struct rt_url *url, rpcprog_t prog, rpcvers_t vers, const struct rpcrdma_tirpc_attr *attr,
			 uint64_t until_ns)
{
	struct rt_handle *h = alloc_handle(attr, prog, vers);
	enum clnt_stat stat;
	int rc;

	if (!h)
		return fail_create(RPC_SYSTEMERROR, -ENOMEM);
	rc = set_names(h, url) ? rt_bulk_init(&h->bulk, attr->bulk, attr->nbulk, attr->row_bytes, attr->max_bytes) : -ENOMEM;
	if (!rc)
		rc = open_engine(h, url, attr);
	stat = rc ? RPC_SYSTEMERROR : RPC_SUCCESS;
	if (rc)
		(void)fail_create(stat, rc);
	else
		stat = url->addr.transport == RPCRDMA_LOCAL ? connect_local(h, url, until_ns) : connect_any(h, url, until_ns);
	if (!stat) {
		/* first: the handlers of fork() take the lock of cl_reclaim.c before that of cl_mem.c, as rt_cl_reclaim() does */
		rt_mem_limit(attr->mem_bytes ? attr->mem_bytes : RT_MEM_BYTES, least_memory(h));
		rt_cl_enlist(h);
		return &h->client;
	}
	rpcrdma_engine_destroy(h->engine);
	free_handle(h);
	return NULL;
}

CLIENT *rpcrdma_clnt_create_timed(const char *text, rpcprog_t prog, rpcvers_t vers, const struct rpcrdma_tirpc_attr *attr,
				  const struct timeval *timeout)
{
	uint64_t ns = timeout && rt_cl_time_ok(timeout) ?
		(uint64_t)timeout->tv_sec * NS_PER_S + (uint64_t)timeout->tv_usec * 1000 : CREATE_MS * NS_PER_MS;
	struct rpcrdma_tirpc_attr own;
	struct rt_url url;
	CLIENT *clnt;
	enum clnt_stat stat;
	int rc = rt_attr_get(attr, &own);

	if (!rc && !text)
		rc = -EINVAL;
	if (rc)
		return fail_create(RPC_SYSTEMERROR, rc);
	stat = rt_url_find(&url, text);
	if (stat) /* libtirpc has no text for RPC_UNKNOWNADDR */
		return fail_create(stat == RPC_UNKNOWNADDR ? RPC_SYSTEMERROR : stat, -EINVAL);
	clnt = create_at(&url, prog, vers, &own, clock_now_ns() + MIN(ns, UINT64_C(1) << 40));
	rt_url_fini(&url);
	return clnt;
}

CLIENT *rpcrdma_clnt_create(const char *url, rpcprog_t prog, rpcvers_t vers, const struct rpcrdma_tirpc_attr *attr)
{
	return rpcrdma_clnt_create_timed(url, prog, vers, attr, NULL);
}
