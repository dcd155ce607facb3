/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stats.c - connections and counters of a handle
 *
 * Operation:  leat_info() and leat_stats() read local state. leatd.c queries the server.
 * Memory:     None.
 * Threads:    With the service thread any (the service thread reads the state), else the owner's.
 * Errors:     None.
 */
#include <stdio.h>
#include <string.h>

#include "sync.h"
#include "rpcrdma_lab.h"

static void look_info(struct leat *m, void *arg)
{
	struct leat_info *info = arg;
	struct rpcrdma_clnt_info c;

	*info = (struct leat_info){
		.is_leatd = m->is_leatd,
		.rsize = m->rsize,
		.wsize = m->wsize,
		.conns = m->clnts,
		.nrefused = m->nrefused,
		.uid = m->cred.uid,
		.gid = m->cred.gid,
	};
	snprintf(info->transport, sizeof(info->transport), "%s", rpcrdma_transport_name(m->addr.transport));
	snprintf(info->url, sizeof(info->url), "%s", m->server_url);
	snprintf(info->given, sizeof(info->given), "%s", m->given_url);
	snprintf(info->path, sizeof(info->path), "%s", m->path);
	snprintf(info->chosen, sizeof(info->chosen), "%s", m->chosen);
	snprintf(info->server, sizeof(info->server), "%s", m->server);
	memcpy(info->refused, m->refused, sizeof(info->refused));
	memcpy(info->runs_as, m->runs_as, sizeof(info->runs_as));
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
	snprintf(info->kept, sizeof(info->kept), "%s", c.kept);
	info->reg_bytes = c.reg_bytes;
	snprintf(info->device, sizeof(info->device), "%s", c.device);
	snprintf(info->reach, sizeof(info->reach), "%s", c.reach);
	rpcrdma_modes_print(c.modes, info->modes, sizeof(info->modes));
	info->fast_write = c.fast_write_bytes;
}

/* credits are the sum over the connections */
void leat_info(struct leat *m, struct leat_info *ret)
{
	lt_sync_run(m, look_info, ret);
}

static void look_stats(struct leat *m, void *arg)
{
	struct rpcrdma_stats s = { 0 };

	rpcrdma_domain_stats(m->domain, &s);
	*(struct leat_stats *)arg = (struct leat_stats){
		.calls = s.calls,
		.bytes_read = s.bytes_in,
		.bytes_written = s.bytes_out,
		.bytes_copied = s.bytes_copied,
		.reconnects = s.reconnects,
		.timeouts = s.timeouts,
		.credit_waits = s.credit_waits,
		.regs = s.regs,
		.sleeps = s.sleeps,
		.not_now = m->not_now,
		.deregs = s.deregs,
		.reg_reaped = s.reg_reaped,
		.reg_hits = s.reg_hits,
		.reg_misses = s.reg_misses,
		.reg_invalidated = s.reg_invalidated,
		.reg_evicted = s.reg_evicted,
		.reg_deferred = s.reg_deferred,
		.reg_flushes = s.reg_flushes,
		.reg_uncacheable = s.reg_uncacheable,
		.reg_bounced = s.reg_bounced,
		.reg_pinned = s.reg_pinned,
		.reg_binds = s.binds,
		.reg_local_invs = s.local_invs,
	};
}

void leat_stats(struct leat *m, struct leat_stats *ret)
{
	lt_sync_run(m, look_stats, ret);
}
