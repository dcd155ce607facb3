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
#include <inttypes.h>
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

static struct rt_outcome *find_place(const struct rt_handle *h)
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

void rt_cl_set_outcome(const struct rt_handle *h, const struct rt_outcome *o)
{
	struct rt_outcome *place = find_place(h);

	place->err = o->err;
	strcpy(place->why, o->why);
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

static enum clnt_stat accepted_stat(const struct rt_call *c, struct rt_outcome *o)
{
	enum clnt_stat stat = RPC_FAILED;

	switch (c->status.stat) {
	case PROG_UNAVAIL:
		stat = RPC_PROGUNAVAIL;
		break;
	case PROG_MISMATCH:
		stat = RPC_PROGVERSMISMATCH;
		break;
	case PROC_UNAVAIL:
		stat = RPC_PROCUNAVAIL;
		break;
	case GARBAGE_ARGS:
		stat = RPC_CANTDECODEARGS;
		break;
	case SYSTEM_ERR:
		stat = RPC_SYSTEMERROR;
		break;
	}
	(void)rt_cl_fail(o, stat, 0, c->why);
	if (stat == RPC_PROGVERSMISMATCH) {
		o->err.re_vers.low = c->status.low;
		o->err.re_vers.high = c->status.high;
	}
	return stat;
}

/* The reply is not a success. */
static enum clnt_stat reply_stat(const struct rt_call *c, struct rt_outcome *o)
{
	if (c->status.reply_stat == MSG_ACCEPTED)
		return accepted_stat(c, o);
	if (c->status.stat == RPC_MISMATCH) {
		(void)rt_cl_fail(o, RPC_VERSMISMATCH, 0, c->why);
		o->err.re_vers.low = c->status.low;
		o->err.re_vers.high = c->status.high;
		return RPC_VERSMISMATCH;
	}
	(void)rt_cl_fail(o, RPC_AUTHERROR, 0, c->why);
	o->err.re_why = (enum auth_stat)c->status.auth_stat;
	return RPC_AUTHERROR;
}

static enum clnt_stat too_long(const struct rt_call *c, struct rt_outcome *o)
{
	if (!c->call.sent)
		return rt_cl_fail(o, RPC_CANTENCODEARGS, c->err, c->why);
	rt_mem_count_too_long();
	(void)rt_cl_fail(o, RPC_CANTDECODERES, c->err, NULL);
	if (c->enc.bulk.base || c->enc.buf != (const uint8_t *)c->small) /* ERR_CHUNK means either */
		snprintf(o->why, sizeof(o->why), "the arguments are longer than the server accepts, or the results than %" PRIu32 " bytes",
			 c->call.reply_max);
	else if (c->sink.iov_len)
		snprintf(o->why, sizeof(o->why), "the results are longer than the limit: %" PRIu32 " bytes, of them %zu for the bulk item",
			 c->call.reply_max, c->sink.iov_len);
	else
		snprintf(o->why, sizeof(o->why), "the results are longer than the limit: %" PRIu32 " bytes", c->call.reply_max);
	return RPC_CANTDECODERES;
}

enum clnt_stat rt_cl_judge(const struct rt_call *c, struct rt_outcome *o)
{
	const struct rpcrdma_status *s = &c->status;

	if (c->err && s->reply_stat != RT_NO_REPLY && (s->reply_stat != MSG_ACCEPTED || s->stat != SUCCESS))
		return reply_stat(c, o);
	switch (c->err) {
	case 0:
		return rt_cl_fail(o, RPC_SUCCESS, 0, NULL);
	case -ETIMEDOUT:
		return rt_cl_fail(o, RPC_TIMEDOUT, 0, c->why);
	case -EMSGSIZE:
		return too_long(c, o);
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
	*ret = find_place(rt_handle_of(clnt))->err;
}

const char *rpcrdma_clnt_why(CLIENT *clnt)
{
	return find_place(rt_handle_of(clnt))->why;
}
