/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * inside.c - what a server in this process counts and holds
 */
#include "inside.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "block_service.h"
#include "clnt_int.h"
#include "engine_int.h"
#include "handle.h"
#include "nfs.h"
#include "readahead.h"
#include "stripe_service.h"
#include "sync.h"

enum { SPINE = SERVICES };

#define OF_REACTOR(name) { #name, SPINE, offsetof(struct reactor_counters, name) },
#define OF_STORE(name) { #name, SPINE, offsetof(struct reactor_counters, store.name) },
#define OF_NFS(name) { #name, SERVICE_NFS, offsetof(struct nfs_counters, name) },
#define OF_BLOCK(name) { #name, SERVICE_BLOCK, offsetof(struct block_counters, name) },
#define OF_STRIPE(name) { #name, SERVICE_STRIPES, offsetof(struct stripe_counters, name) },

static const struct {
	const char *name;
	unsigned of; /* enum service_slot, or SPINE */
	size_t offset;
} counters[] = { REACTOR_COUNTERS(OF_REACTOR, OF_REACTOR) STORE_COUNTERS(OF_STORE, OF_STORE) NFS_COUNTERS(OF_NFS)
		 BLOCK_COUNTERS(OF_BLOCK) STRIPE_COUNTERS(OF_STRIPE) };

static const char *counters_of(const struct reactor *re, unsigned of)
{
	switch (of) {
	case SERVICE_NFS:
		return (const char *)&nfs_reactor(re)->counters;
	case SERVICE_BLOCK:
		return (const char *)&block_reactor(re)->counters;
	case SERVICE_STRIPES:
		return (const char *)&stripe_reactor(re)->counters;
	default:
		return (const char *)&re->counters;
	}
}

uint64_t server_counter(const struct server *s, unsigned reactor, const char *name)
{
	assert_in_range(reactor, 0, s->nreactors - 1);
	for (unsigned i = 0; i < ARRAY_SIZE(counters); i++) {
		const char *all;

		if (strcmp(counters[i].name, name))
			continue;
		all = counters_of(s->reactors[reactor], counters[i].of);
		return atomic_load((const _Atomic uint64_t *)(const void *)(all + counters[i].offset));
	}
	fail_msg("no counter %s", name);
	return 0;
}

uint64_t server_counters(const struct server *s, const char *name)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < s->nreactors; i++)
		sum += server_counter(s, i, name);
	return sum;
}

unsigned server_reactors(const struct server *s)
{
	return s->nreactors;
}

static void add_credits(void *of, void *arg)
{
	const struct rpcrdma_clnt *c = of;

	*(unsigned *)arg += c->credit.out;
}

unsigned leat_credits_out(const struct leat *m)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < m->server->clnts; i++) {
		struct rpcrdma_clnt *c = m->server->clnt[i];

		assert_int_equal(lt_sync_run_at(m->session, rpcrdma_clnt_engine(c), add_credits, c, &sum), 0);
	}
	return sum;
}

int leat_aio_read_at(struct leat_file *f, void *buf, size_t len, uint64_t pos, struct leat_cb cb)
{
	return lt_readahead_read(f, buf, len, pos, cb);
}

bool leat_admits_away(struct leat *m)
{
	const struct leat_session *serves;
	bool admits;

	while (!lt_session_visit(m->session, &serves))
		sched_yield();
	assert_true(lt_session_is_serving(m->session));
	m->session->servers_away = 1;
	lt_session_leave(m->session, serves);
	assert_false(lt_session_is_serving(m->session));
	admits = lt_session_visit(m->session, &serves);
	if (admits)
		lt_session_leave(m->session, serves);
	return admits;
}

size_t server_files_max(const struct server *s)
{
	return nfs_reactor(s->reactors[0])->files.max;
}

struct rpcrdma_domain *server_domain(const struct server *s)
{
	return s->domain;
}

void clnt_next_xid(struct rpcrdma_clnt *clnt, uint32_t xid)
{
	clnt->next_xid = xid;
}

void clnt_disconnect(struct rpcrdma_clnt *clnt)
{
	clnt->ops->disconnect(clnt, "cut");
}

int leat_drain(struct leat *m)
{
	return lt_sync_drain(m, 0);
}

struct rr_fabric *local_fabric(struct rpcrdma_domain *d)
{
	struct rr_dev *dev;

	assert_int_equal(rr_domain_dev(d, RPCRDMA_LOCAL, &dev), 0);
	return dev->fabric;
}
