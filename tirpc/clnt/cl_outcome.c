/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_outcome.c - how calls ended: the statuses of libtirpc, and a text, for each thread
 *
 * Operation:  Each thread has a place for the last outcome of each of the handles that it used last. The first place is the
 *             one used last, so a program with one handle searches nothing.
 * Memory:     Of the thread. A handle has a serial number of its own, so nothing is found of a handle that was destroyed.
 * Errors:     One function maps the transport's errnos to enum clnt_stat.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cl_int.h"

#define PLACES 8u /* handles that a thread uses in turn */

struct place {
	uint64_t serial; /* 0: free */
	struct rt_outcome outcome;
};

static _Thread_local struct place places[PLACES];

struct rt_outcome *rt_cl_outcome(const struct rt_handle *h)
{
	struct place found = { .serial = h->serial };
	unsigned i = 0;

	if (places[0].serial == h->serial)
		return &places[0].outcome;
	while (i < PLACES - 1 && places[i].serial != h->serial)
		i++;
	if (places[i].serial == h->serial)
		found = places[i];
	memmove(&places[1], &places[0], i * sizeof(places[0]));
	places[0] = found;
	return &places[0].outcome;
}

enum clnt_stat rt_cl_fail(struct rt_outcome *o, enum clnt_stat stat, int err, const char *why)
{
	o->err = (struct rpc_err){ .re_status = stat };
	o->err.re_errno = -err;
	snprintf(o->why, sizeof(o->why), "%s", why ? why : "");
	return stat;
}

/* The call did not get a reply. */
static enum clnt_stat lost_stat(const struct rt_call *c)
{
	return c->call.sent ? RPC_CANTRECV : RPC_CANTSEND;
}

/* The reply is not a success. */
static enum clnt_stat reply_stat(const struct rt_call *c, struct rt_outcome *o)
{
	enum clnt_stat stat = RPC_FAILED;

	switch (c->err) {
	case -EPROTONOSUPPORT:
		stat = strstr(c->why, "unavailable") ? RPC_PROGUNAVAIL : RPC_PROGVERSMISMATCH;
		break;
	case -EOPNOTSUPP:
		stat = RPC_PROCUNAVAIL;
		break;
	case -EINVAL:
		stat = RPC_CANTDECODEARGS;
		break;
	case -EREMOTEIO:
		stat = RPC_SYSTEMERROR;
		break;
	case -EACCES:
		stat = RPC_AUTHERROR;
		break;
	}
	return rt_cl_fail(o, stat, 0, c->why);
}

enum clnt_stat rt_cl_judge(const struct rt_call *c, struct rt_outcome *o)
{
	switch (c->err) {
	case 0:
		return rt_cl_fail(o, RPC_SUCCESS, 0, NULL);
	case -ETIMEDOUT:
		return rt_cl_fail(o, RPC_TIMEDOUT, 0, c->why);
	case -EPROTONOSUPPORT:
	case -EOPNOTSUPP:
	case -EINVAL:
	case -EREMOTEIO:
	case -EACCES:
		return reply_stat(c, o);
	case -EMSGSIZE:
	case -EBADMSG:
	case -EPROTO:
		return rt_cl_fail(o, RPC_CANTDECODERES, c->err, c->why);
	case -ENOMEM:
	case -EFAULT:
		return rt_cl_fail(o, RPC_SYSTEMERROR, c->err, c->why);
	}
	return rt_cl_fail(o, lost_stat(c), c->err, c->why);
}

void rt_cl_geterr(CLIENT *clnt, struct rpc_err *ret)
{
	*ret = rt_cl_outcome(rt_handle_of(clnt))->err;
}

const char *rpcrdma_clnt_why(CLIENT *clnt)
{
	return rt_cl_outcome(rt_handle_of(clnt))->why;
}
