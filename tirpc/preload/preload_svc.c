/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * preload_svc.c - svc_reg() and svc_register(), in place of those of libtirpc
 *
 * Operation:  What the program registers is also served at each URL of -s. The program's loop dispatches it, since the
 *             handles of librpcrdma_tirpc are transports like others. For a report, a function in between counts.
 * Memory:     A row per program and version, kept as long as the process, if there is a report.
 * Threads:    Any; rows have a lock.
 * Errors:     A URL where the program cannot be served is reported once on standard error. The program goes on.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rpc/rpc.h>
#include <rpc/svc_soc.h>

#include "originals.h"
#include "route.h"
#include "tally.h"

#define REPLACES __attribute__((visibility("default")))

typedef void dispatch_fn(struct svc_req *, SVCXPRT *);

struct row {
	struct row *next;
	uint32_t prog, vers;
	dispatch_fn *_Atomic dispatch;
	struct rt_tally *here, *elsewhere;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct row *_Atomic rows;

/* Is it a transport of librpcrdma_tirpc? */
static bool is_ours(const SVCXPRT *xprt)
{
	static const void *_Atomic known; /* its functions */
	Dl_info transport, library;

	if (!xprt || !xprt->xp_ops)
		return false;
	if (known == xprt->xp_ops)
		return true;
	if (!dladdr((void *)(uintptr_t)xprt->xp_ops->xp_reply, &transport) ||
	    !dladdr((void *)(uintptr_t)rpcrdma_svc_create, &library) || transport.dli_fbase != library.dli_fbase)
		return false;
	known = xprt->xp_ops;
	return true;
}

static struct row *find_row(uint32_t prog, uint32_t vers)
{
	struct row *r = rows;

	while (r && (r->prog != prog || r->vers != vers))
		r = r->next;
	return r;
}

static void count_and_dispatch(struct svc_req *req, SVCXPRT *xprt)
{
	const struct row *r = find_row(req->rq_prog, req->rq_vers);
	struct rt_tally *t = is_ours(xprt) ? r->here : r->elsewhere;

	if (t)
		rt_tally_add(&t->calls);
	r->dispatch(req, xprt);
}

/* Return: what to register in place of @dispatch */
static dispatch_fn *count_requests(uint32_t prog, uint32_t vers, dispatch_fn *dispatch)
{
	struct row *r;

	if (!rt_tally_is_on() || dispatch == count_and_dispatch)
		return dispatch;
	pthread_mutex_lock(&lock);
	r = find_row(prog, vers);
	if (!r && (r = calloc(1, sizeof(*r)))) {
		r->prog = prog;
		r->vers = vers;
		r->here = rt_tally_get("", prog, vers, "rpcrdma");
		r->elsewhere = rt_tally_get("", prog, vers, RT_WAY_ORIGINAL);
		r->dispatch = dispatch;
		r->next = rows;
		rows = r;
	}
	if (r && r->dispatch != dispatch)
		r = NULL; /* another function, for another transport: it is not counted */
	pthread_mutex_unlock(&lock);
	return r ? count_and_dispatch : dispatch;
}

/* Serves a program at each URL, after libtirpc has accepted it. */
static void serve(uint32_t prog, uint32_t vers, dispatch_fn *dispatch)
{
	const struct rt_urls *urls = rt_route_urls();

	for (size_t i = 0; i < urls->n; i++) {
		int rc = rpcrdma_svc_create(dispatch, prog, vers, urls->v[i], rt_route_attr());

		if (rc)
			(void)fprintf(stderr, "rpcrdma-run: cannot serve program %u version %u at %s: %s\n", prog, vers, urls->v[i],
				      strerror(-rc));
	}
}

REPLACES bool_t svc_reg(SVCXPRT *xprt, const rpcprog_t prog, const rpcvers_t vers, dispatch_fn *dispatch,
			const struct netconfig *nconf)
{
	bool_t ok;

	if (is_ours(xprt) || !rt_enter())
		return rt_originals()->svc_reg(xprt, prog, vers, dispatch, nconf);
	dispatch = count_requests(prog, vers, dispatch);
	ok = rt_originals()->svc_reg(xprt, prog, vers, dispatch, nconf);
	if (ok)
		serve(prog, vers, dispatch);
	rt_leave();
	return ok;
}

REPLACES bool_t svc_register(SVCXPRT *xprt, u_long prog, u_long vers, dispatch_fn *dispatch, int protocol)
{
	bool_t ok;

	if (is_ours(xprt) || !rt_enter())
		return rt_originals()->svc_register(xprt, prog, vers, dispatch, protocol);
	dispatch = count_requests((uint32_t)prog, (uint32_t)vers, dispatch);
	ok = rt_originals()->svc_register(xprt, prog, vers, dispatch, protocol);
	if (ok)
		serve((uint32_t)prog, (uint32_t)vers, dispatch);
	rt_leave();
	return ok;
}
