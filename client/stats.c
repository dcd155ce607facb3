/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stats.c - what a handle is connected to, and what it cost, here and at the server
 *
 * Operation:  leat_info() and leat_stats() look; leat_server_stats() asks a leatd (STATS, ctl.x),
 *             whose counters go by name: those not known here are passed over.
 * Memory:     The server's answer is allocated by its codec and freed here.
 * Threads:    Any with the service thread (the looking is done on it), else the owner's.
 * Errors:     Only leat_server_stats() can fail.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "op.h"
#include "sync.h"

#define STATS_REPLY_BYTES (8u + 256u * (4u + 256u + 8u))

static void look_info(struct leat *m, void *arg)
{
	struct leat_info *info = arg;
	struct rpcrdma_clnt_info c;

	for (unsigned i = 0; i < m->clnts; i++) {
		rpcrdma_clnt_info(m->clnt[i], &c);
		info->reconnects += c.reconnects;
		if (!i || c.credits_low < info->credits_low)
			info->credits_low = c.credits_low;
		info->credits += c.credits;
	}
	rpcrdma_clnt_info(m->clnt[0], &c);
	info->send_inline = c.send_inline;
	info->recv_inline = c.recv_inline;
	info->remote_inv = c.remote_inv;
	snprintf(info->registration, sizeof(info->registration), "%s",
		 c.registration ? c.registration : "");
	snprintf(info->device, sizeof(info->device), "%s", c.device);
	snprintf(info->reach, sizeof(info->reach), "%s", c.reach);
}

/** leat_info - see leat.h; credits are the sum over the connections */
void leat_info(struct leat *m, struct leat_info *ret)
{
	struct leat_info info = {
		.is_leatd = m->is_leatd,
		.rsize = m->rsize,
		.wsize = m->wsize,
		.conns = m->clnts,
		.nrefused = m->nrefused,
	};

	snprintf(info.transport, sizeof(info.transport), "%s",
		 rpcrdma_transport_name(m->addr.transport));
	snprintf(info.url, sizeof(info.url), "%s", m->server_url);
	snprintf(info.path, sizeof(info.path), "%s", m->path);
	snprintf(info.chosen, sizeof(info.chosen), "%s", m->chosen);
	snprintf(info.server, sizeof(info.server), "%s", m->server);
	memcpy(info.refused, m->refused, sizeof(info.refused));
	lt_sync_run(m, look_info, &info);
	*ret = info;
}

static void look_stats(struct leat *m, void *arg)
{
	rpcrdma_domain_stats(m->domain, arg);
}

/** leat_stats - see leat.h */
void leat_stats(struct leat *m, struct leat_stats *ret)
{
	struct rpcrdma_stats s = { 0 };

	lt_sync_run(m, look_stats, &s);
	*ret = (struct leat_stats){
		.calls = s.calls,
		.bytes_read = s.bytes_in,
		.bytes_written = s.bytes_out,
		.bytes_copied = s.bytes_copied,
		.reconnects = s.reconnects,
		.timeouts = s.timeouts,
		.credit_waits = s.credit_waits,
		.regs = s.regs,
		.sleeps = s.sleeps,
	};
}

struct ask {
	struct lt_task task;
	struct lt_call call;
	ctl_stats res;
	struct leat_server_stats *ret;
};

static void release_ask(struct lt_task *t)
{
	struct ask *a = container_of(t, struct ask, task);

	xdr_free((xdrproc_t)xdr_ctl_stats, &a->res);
	free(a);
}

static void take_stat(struct leat_server_stats *s, const char *name, uint64_t value)
{
	const struct {
		const char *name;
		uint64_t *to;
	} known[] = {
		{ "cpu_us", &s->cpu_us },
		{ "bytes_in", &s->bytes_in },
		{ "bytes_out", &s->bytes_out },
		{ "bytes_copied", &s->bytes_copied },
		{ "bytes_placed", &s->bytes_placed },
		{ "bytes_pulled", &s->bytes_pulled },
		{ "bytes_direct", &s->bytes_direct },
		{ "calls", &s->calls },
		{ "conns", &s->conns },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!strcmp(name, known[i].name))
			*known[i].to = value;
	}
}

static void asked(struct lt_call *c, int err)
{
	struct ask *a = container_of(c, struct ask, call);

	if (!err) {
		struct leat_server_stats s = { 0 };

		for (unsigned i = 0; i < a->res.stats.stats_len; i++)
			take_stat(&s, a->res.stats.stats_val[i].name,
				  a->res.stats.stats_val[i].value);
		*a->ret = s;
	}
	lt_task_finish(&a->task, err);
}

static void start_ask(struct lt_task *t)
{
	struct ask *a = container_of(t, struct ask, task);

	lt_call_start_other(&a->call, LEAT_CTL, LEAT_CTL_V1, CTL_STATS, (xdrproc_t)xdr_ctl_stats,
			    &a->res, STATS_REPLY_BYTES, asked);
}

/** leat_server_stats - see leat.h
 *
 * Return: 0; -EOPNOTSUPP: the server is no leatd; -ENOMEM, -EDEADLK; what the call came to.
 */
int leat_server_stats(struct leat *m, struct leat_server_stats *ret)
{
	struct lt_wait w;
	struct ask *a;
	int rc;

	if (!m->is_leatd)
		return -EOPNOTSUPP;
	rc = lt_sync_begin(&w, m);
	if (rc)
		return rc;
	a = calloc(1, sizeof(*a));
	if (a) {
		a->task.m = m;
		a->task.cb = w.cb;
		a->task.verb = "server statistics";
		a->task.start = start_ask;
		a->task.release = release_ask;
		a->ret = ret;
		lt_call_init(&a->call, m, NULL);
		lt_task_submit(&a->task);
	}
	return (int)lt_sync_end(&w, a ? 0 : -ENOMEM);
}
