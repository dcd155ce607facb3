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

static uint32_t to_ms(const struct timeval *t)
{
	uint64_t ms = (uint64_t)t->tv_sec * 1000 + ((uint64_t)t->tv_usec + 999) / 1000;

	return ms > UINT32_MAX ? 0 : (uint32_t)ms; /* 49 days: no deadline */
}

static enum clnt_stat encode_args(struct rt_call *c, xdrproc_t xargs, void *args, struct rt_outcome *o)
{
	struct rt_handle *h = c->handle;
	bool_t ok;

	rt_enc_init(&c->enc, c->small, h->inline_bytes, h->max_bytes, NULL, NULL);
	ok = AUTH_WRAP(h->client.cl_auth, &c->enc.xdr, xargs, args);
	if (ok && !c->enc.err)
		return RPC_SUCCESS;
	return rt_cl_fail(o, RPC_CANTENCODEARGS, c->enc.err,
			  c->enc.err == -EMSGSIZE ? "the arguments are longer than max_bytes of the handle" :
			  c->enc.err ? "no memory for the arguments" : "a filter of the arguments refused");
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

	if (!xres)
		return RPC_SUCCESS;
	rt_dec_init(&d, c->results, c->results_bytes);
	if (AUTH_UNWRAP(c->handle->client.cl_auth, &d.xdr, xres, res))
		return RPC_SUCCESS;
	return rt_cl_fail(o, RPC_CANTDECODERES, 0, d.why ? d.why : "a filter of the results refused");
}

enum clnt_stat rt_cl_call(CLIENT *clnt, rpcproc_t proc, xdrproc_t xargs, void *args, xdrproc_t xres, void *res,
			  struct timeval timeout)
{
	struct rt_handle *h = rt_handle_of(clnt);
	struct rt_outcome *o = rt_cl_outcome(h);
	struct timeval wait = get_timeout(h, &timeout);
	enum clnt_stat stat;
	struct rt_call *c;

	if (h->forks != rt_forks())
		return rt_cl_fail(o, RPC_FAILED, 0, "a CLIENT works in the process that created it, not in its children");
	c = rt_cl_get(h);
	if (!c)
		return rt_cl_fail(o, RPC_SYSTEMERROR, -ENOMEM, "no memory");
	c->call = (struct rpcrdma_call){
		.prog = h->prog, .vers = h->vers, .proc = proc, .deadline_ms = to_ms(&wait),
		.reply_max = (uint32_t)h->max_bytes,
	};
	stat = encode_args(c, xargs ? xargs : RT_XDR_VOID, args, o);
	if (!stat && is_zero(&wait)) {
		stat = send_only(c, xres, o);
	} else if (!stat) {
		stat = rt_cl_exchange(c, o);
		if (!stat)
			stat = decode_results(c, xres, res, o);
	}
	rt_cl_put(c);
	return stat;
}
