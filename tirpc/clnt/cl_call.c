/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_call.c - clnt_call() on a CLIENT: the life of a call
 *
 * Operation:  rt_cl_call() is the order of it: encode, exchange, decode, all on the thread of the caller. The filter of the
 *             arguments runs once, also if a refreshed credential makes it two calls.
 * Memory:     See cl_calls.c.
 * Threads:    Any number on one CLIENT.
 * Errors:     enum clnt_stat, and an outcome of the thread (cl_outcome.c).
 */
#include <errno.h>

#include "base/clock.h"
#include "cl_int.h"
#include "process.h"

#define REFRESHES 2

static bool is_zero(const struct timeval *t)
{
	return !t->tv_sec && !t->tv_usec;
}

/* Time-outs as libtirpc's handle over TCP takes them: an argument of zero is one even after CLSET_TIMEOUT.
 * Return: time to wait */
static struct timeval get_timeout(struct rt_handle *h, const struct timeval *arg)
{
	struct timeval wait;

	pthread_mutex_lock(&h->lock);
	if (!h->wait_set && rt_cl_time_ok(arg))
		h->wait = *arg;
	wait = is_zero(arg) ? *arg : h->wait;
	pthread_mutex_unlock(&h->lock);
	return wait;
}

static uint64_t get_until(const struct timeval *wait)
{
	return clock_now_ns() + (uint64_t)wait->tv_sec * NS_PER_S + (uint64_t)wait->tv_usec * NS_PER_US;
}

static uint32_t to_ms(const struct timeval *t)
{
	uint64_t ms = (uint64_t)t->tv_sec * 1000 + ((uint64_t)t->tv_usec + 999) / 1000;

	return ms > UINT32_MAX ? 0 : (uint32_t)ms; /* 49 days: no deadline */
}

enum clnt_stat rt_cl_exchange(struct rt_call *c, struct rt_outcome *o)
{
	enum clnt_stat stat;
	int refreshes = REFRESHES;

	do {
		stat = rt_cl_marshal(c, o);
		if (stat)
			return stat;
		rt_cl_run(c);
		stat = rt_cl_judge(c, o);
	} while (stat && refreshes-- > 0 && rt_cl_refresh(c, o));
	return stat ? stat : rt_cl_validate(c, o);
}

/* Sends a call and does not wait for its reply. */
static enum clnt_stat send_only(struct rt_call *c, xdrproc_t xres, struct rt_outcome *o)
{
	enum clnt_stat stat = rt_cl_flush(c->handle, o);

	if (!stat)
		stat = rt_cl_marshal(c, o);
	if (stat)
		return stat;
	c->batched = true;
	c->goal = RT_CALL_DONE | RT_CALL_SENT;
	c->call.deadline_ms = 0;
	rt_cl_run(c);
	if (!c->call.sent)
		return rt_cl_judge(c, o);
	return rt_cl_fail(o, xres ? RPC_TIMEDOUT : RPC_SUCCESS, 0, xres ? "the time-out was zero" : NULL);
}

static enum clnt_stat decode_results(struct rt_call *c, xdrproc_t xres, void *res, struct rt_outcome *o)
{
	struct rt_dec d;
	bool_t ok;

	if (!xres)
		return RPC_SUCCESS;
	rt_dec_init(&d, c->call.results, c->call.results_bytes);
	d.preset = c->preset;
	d.preset_bytes = c->preset_bytes;
	if (c->call.payload_bytes)
		rt_dec_expect(&d, c->row->results, c->sink.iov_base, c->call.payload_bytes);
	ok = AUTH_UNWRAP(c->handle->client.cl_auth, &d.xdr, xres, res);
	if (d.copied)
		c->handle->copied += d.copied;
	if (ok && rt_dec_is_complete(&d))
		return RPC_SUCCESS;
	return rt_cl_fail(o, RPC_CANTDECODERES, 0, d.why ? d.why : "a filter of the results refused");
}

/* Encodes, sends and, unless @wait is zero, waits and decodes. */
static enum clnt_stat make_call(struct rt_call *c, xdrproc_t xargs, void *args, xdrproc_t xres, void *res,
				const struct timeval *wait, struct rt_outcome *o)
{
	bool waits = !is_zero(wait);
	enum clnt_stat stat = rt_cl_encode(c, xargs ? xargs : RT_XDR_VOID, args, waits, o);

	if (!stat)
		stat = rt_cl_room(c, waits ? xres : NULL, res, get_until(wait), o);
	if (!stat)
		stat = waits ? rt_cl_exchange(c, o) : send_only(c, xres, o);
	return stat || !waits ? stat : decode_results(c, xres, res, o);
}

static enum clnt_stat call_on(struct rt_handle *h, rpcproc_t proc, xdrproc_t xargs, void *args, xdrproc_t xres, void *res,
			      const struct timeval *timeout, struct rt_outcome *o)
{
	struct timeval wait;
	enum clnt_stat stat;
	struct rt_call *c;

	if (h->forks != rt_forks())
		return rt_cl_fail(o, RPC_FAILED, 0, "a CLIENT works in the process that created it, not in its children");
	wait = get_timeout(h, timeout);
	c = rt_cl_get(h);
	if (!c)
		return rt_cl_fail(o, RPC_SYSTEMERROR, -ENOMEM, "no memory");
	c->call = (struct rpcrdma_call){ .prog = h->prog, .vers = h->vers, .proc = proc, .deadline_ms = to_ms(&wait) };
	c->row = rt_bulk_find(&h->bulk, c->call.prog, c->call.vers, proc);
	stat = make_call(c, xargs, args, xres, res, &wait, o);
	rt_cl_put(c);
	return stat;
}

/* Filters may make calls, whose outcomes come first. */
enum clnt_stat rt_cl_call(CLIENT *clnt, rpcproc_t proc, xdrproc_t xargs, void *args, xdrproc_t xres, void *res,
			  struct timeval timeout)
{
	struct rt_handle *h = rt_handle_of(clnt);
	struct rt_outcome o;
	enum clnt_stat stat = call_on(h, proc, xargs, args, xres, res, &timeout, &o);

	rt_cl_set_outcome(h, &o);
	return stat;
}
