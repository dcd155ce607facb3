/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ctl_prog.c - the control program: queries and commands to this leatd (xdr/ctl.x)
 *
 * Operation: INFO returns the identity of the running server and its other addresses, so that a client can
 *            switch to a faster transport; STATS returns counters by name. RELOAD and DRAIN are passed on
 *            to the program that started the server (struct server_manager). They are allowed for root and
 *            the server's own user, as identified by the kernel, so never over a network. WHERE and PIECES
 *            are in ctl_where.c. WHOAMI returns the ids that the caller's own calls get.
 * Memory:    results in req_scratch().
 * Threads:   workers, because of the memory; the counters are atomic or copied under their own locks.
 * Errors:    without memory the call is dropped; an unauthorized caller gets an error, which is logged.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/machine.h"
#include "base/wire.h"
#include "ctl_where.h"
#include "nfs.h"
#include "block_service.h"
#include "stripe_service.h"
#include "volume_manager.h"

#ifndef LEAT_VERSION
#define LEAT_VERSION "unknown"
#endif

struct info {
	ctl_listener listeners[CONF_LISTEN_MAX];
	char urls[CONF_LISTEN_MAX][CTL_NAME_MAX + 1];
};

static void info(struct req *r)
{
	static char release[] = LEAT_VERSION;
	ctl_info *res = &ctl_call(r)->res.info;
	struct info *m = req_scratch(r, sizeof(*m));
	size_t n = m ? MIN(server_listeners(r->srv), CONF_LISTEN_MAX) : 0;

	res->release = release;
	memcpy(res->instance, r->srv->instance, sizeof(res->instance));
	for (size_t i = 0; i < n; i++) {
		(void)rpcrdma_addr_print(server_listener(r->srv, i), m->urls[i],
					 sizeof(m->urls[i]));
		m->listeners[i].url = m->urls[i];
	}
	res->listeners.listeners_val = m ? m->listeners : NULL;
	res->listeners.listeners_len = (u_int)n;
}

/* ---- STATS -------------------------------------------------------------------------------- */

struct list_of_stats {
	ctl_stat *v;
	u_int n, max;
};

static void add(struct list_of_stats *l, const char *name, uint64_t value)
{
	if (l->n == l->max)
		return;
	l->v[l->n].name = (char *)(uintptr_t)name; /* never written */
	l->v[l->n++].value = value;
}

/* Lets clients detect that two results come from different servers, so that they do not subtract them. */
static void add_instance(struct list_of_stats *l, const struct server *srv)
{
	add(l, "instance_0", get_be64(srv->instance));
	add(l, "instance_1", get_be64(srv->instance + 8));
}

static void add_process(struct list_of_stats *l)
{
	struct rusage ru;

	if (getrusage(RUSAGE_SELF, &ru))
		return;
	add(l, "cpu_us", machine_own_cpu_us());
	add(l, "max_rss_kib", (uint64_t)ru.ru_maxrss);
}

static void add_transport(struct list_of_stats *l, struct rpcrdma_domain *domain)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(domain, &s);
#define ADD(name) add(l, #name, s.name);
#define SKIP(name)
	RPCRDMA_COUNTERS(ADD, SKIP)
#undef ADD
#undef SKIP
}

/* pinned buffer memory, and for each size the number of free and used buffers */
static void add_pool(struct list_of_stats *l, struct rpcrdma_domain *domain)
{
	static const char *const free_names[] = { "pool_4k_free",   "pool_16k_free", "pool_64k_free",
						  "pool_256k_free", "pool_1m_free",  "pool_4m_free" };
	static const char *const used_names[] = { "pool_4k_used",   "pool_16k_used", "pool_64k_used",
						  "pool_256k_used", "pool_1m_used",  "pool_4m_used" };
	struct rpcrdma_pool_stats s;

	_Static_assert(ARRAY_SIZE(free_names) == RPCRDMA_POOL_CLASSES, "a name for each size");
	_Static_assert(ARRAY_SIZE(used_names) == RPCRDMA_POOL_CLASSES, "a name for each size");
	rpcrdma_domain_pool_stats(domain, &s);
	add(l, "pool_pinned", s.pinned);
	add(l, "pool_most", s.most);
	add(l, "pool_limit", s.limit);
	add(l, "pool_huge", s.huge);
	add(l, "pool_given_back", s.given_back);
	add(l, "messages_pinned", s.msgs);
	add(l, "messages_most", s.msgs_most);
	add(l, "messages_limit", s.msgs_limit);
	add(l, "shared_limit", s.shared_limit);
	for (unsigned i = 0; i < RPCRDMA_POOL_CLASSES; i++) {
		add(l, free_names[i], s.classes[i].free);
		add(l, used_names[i], s.classes[i].used);
	}
}

static void add_workers(struct list_of_stats *l, struct worker_pool *workers)
{
	struct worker_stats s;

	worker_pool_stats(workers, &s);
#define ADD(name) add(l, "worker_" #name, s.name);
	WORKER_COUNTERS(ADD)
#undef ADD
}

enum counters_of { OF_SPINE, OF_NFS, OF_BLOCK, OF_STRIPES };

/* The counters at offset @at of all reactors: of struct reactor_counters, nfs_counters or block_counters */
struct counter {
	const char *name;
	enum counters_of of;
	bool is_max;
	size_t at;
};

static const char *counters_of(const struct reactor *re, enum counters_of of)
{
	switch (of) {
	case OF_NFS:
		return (const char *)&nfs_reactor(re)->counters;
	case OF_BLOCK:
		return (const char *)&block_reactor(re)->counters;
	case OF_STRIPES:
		return (const char *)&stripe_reactor(re)->counters;
	case OF_SPINE:
		break;
	}
	return (const char *)&re->counters;
}

static void add_counter(struct list_of_stats *l, const struct server *srv, struct counter c)
{
	uint64_t sum = 0, max = 0;

	for (unsigned i = 0; i < srv->nreactors; i++) {
		const char *counters = counters_of(srv->reactors[i], c.of);
		uint64_t n = atomic_load_explicit((const _Atomic uint64_t *)(const void *)(counters + c.at),
						  memory_order_relaxed);

		sum += n;
		max = MAX(max, n);
	}
	add(l, c.name, c.is_max ? max : sum);
}

static void add_reactors(struct list_of_stats *l, const struct server *srv)
{
#define SPINE(member) offsetof(struct reactor_counters, member)
#define SUM(name) { #name, OF_SPINE, false, SPINE(name) },
#define MOST(name) { #name, OF_SPINE, true, SPINE(name) },
#define SUM_STORE(name) { #name, OF_SPINE, false, SPINE(store.name) },
#define MOST_STORE(name) { #name, OF_SPINE, true, SPINE(store.name) },
#define SUM_NFS(name) { #name, OF_NFS, false, offsetof(struct nfs_counters, name) },
#define SUM_BLOCK(name) { #name, OF_BLOCK, false, offsetof(struct block_counters, name) },
#define SUM_STRIPE(name) { #name, OF_STRIPES, false, offsetof(struct stripe_counters, name) },
	static const struct counter counters[] = {
		REACTOR_COUNTERS(SUM, MOST) NFS_COUNTERS(SUM_NFS) BLOCK_COUNTERS(SUM_BLOCK)
		STRIPE_COUNTERS(SUM_STRIPE) STORE_COUNTERS(SUM_STORE, MOST_STORE)
	};

	add(l, "reactors", srv->nreactors);
	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		add_counter(l, srv, counters[i]);
#undef SPINE
#undef SUM
#undef MOST
#undef SUM_STORE
#undef MOST_STORE
#undef SUM_NFS
#undef SUM_BLOCK
#undef SUM_STRIPE
}

/* of the volumes that this leatd manages */
static void add_volumes(struct list_of_stats *l, struct server *srv)
{
	struct exports *exports = exports_current(srv);
	struct volume_counts s;

	volume_managers_count(&exports->table, &s);
	served_put(&exports->served);
#define ADD(name) add(l, "volume_" #name, s.name);
	VOLUME_COUNTERS(ADD)
#undef ADD
}

static void add_drcs(struct list_of_stats *l, const struct server *srv)
{
	struct drc_stats s = { 0 };

	drc_stats(srv->drc, &s);
	drc_stats(srv->drc_writes, &s);
#define ADD(name) add(l, "drc_" #name, s.name);
	DRC_COUNTERS(ADD)
#undef ADD
}

static void stats(struct req *r)
{
	struct list_of_stats l = { .max = 256 };

	l.v = req_scratch(r, l.max * sizeof(*l.v));
	if (l.v) {
		add_instance(&l, r->srv);
		add_process(&l);
		add_transport(&l, r->srv->domain);
		add_pool(&l, r->srv->domain);
		add_workers(&l, r->srv->workers);
		add_reactors(&l, r->srv);
		add_drcs(&l, r->srv);
		add_volumes(&l, r->srv);
	}
	ctl_call(r)->res.stats.stats.stats_val = l.v;
	ctl_call(r)->res.stats.stats.stats_len = l.n;
}

/* ---- RELOAD, DRAIN ------------------------------------------------------------------------ */

bool ctl_is_admin(const struct rpcrdma_peer *peer)
{
	return peer->transport == RPCRDMA_LOCAL && peer->has_cred &&
	       (peer->uid == geteuid() || peer->uid == 0);
}

static void tell_denial(const struct req *r, const char *what)
{
	if (server_may_tell(r->srv, &r->conn->peer))
		log_warn("%s asked for a %s, which is not theirs to ask", r->conn->peer.text, what);
}

/* Return: the manager, or NULL with the reply in the results */
static const struct server_manager *find_manager(struct req *r, const char *what)
{
	static char denied[] = "for the server's own user and root, over its local socket";
	static char unable[] = "this server cannot";
	ctl_answer *a = &ctl_call(r)->res.answer;
	const struct server_manager *m = atomic_load(&r->srv->manager);

	if (!ctl_is_admin(&r->conn->peer)) {
		tell_denial(r, what);
		a->status = CTL_DENIED;
		a->said = denied;
		return NULL;
	}
	log_info("%s asks for a %s", r->conn->peer.text, what);
	a->status = CTL_UNABLE;
	a->said = unable;
	return m;
}

static void reload(struct req *r)
{
	const struct server_manager *m = find_manager(r, "reload");
	ctl_answer *a = &ctl_call(r)->res.answer;
	char *said;

	if (!m)
		return;
	a->status = CTL_REFUSED;
	said = req_scratch(r, CTL_SAID_MAX + 1);
	if (!said)
		return;
	if (!m->reload(m, said, CTL_SAID_MAX + 1))
		a->status = CTL_DONE;
	a->said = said;
}

static void drain(struct req *r)
{
	static char ending[] = "ending";
	const struct server_manager *m = find_manager(r, "drain");
	ctl_answer *a = &ctl_call(r)->res.answer;

	if (!m)
		return;
	m->drain(m);
	a->status = CTL_DONE;
	a->said = ending;
}

/* ---- WHOAMI ------------------------------------------------------------------------------- */

static void preset_whoami(struct req *r)
{
	ctl_call(r)->args = ctl_call(r)->path;
}

static void identify(struct req *r, const struct exports *exports)
{
	ctl_whoami *res = &ctl_call(r)->res.whoami;
	const char *rest;
	const struct export *exp = export_find_path(&exports->table, ctl_call(r)->args, &rest);
	bool is_root = !r->creds.anon && r->creds.uid == 0;

	/* the connection's own record of this belongs to its reactor */
	if (!exp || peers_admit(&exp->conf.peers, &r->conn->peer) != PEER_ADMITTED) {
		res->identity = CTL_NOT_ADMITTED;
		return;
	}
	creds_squash(&r->creds, &exp->conf);
	res->uid = r->creds.uid;
	res->gid = r->creds.gid;
	if (!creds_can_assume()) {
		res->identity = CTL_SERVERS;
		res->uid = geteuid();
		res->gid = getegid();
	} else if (r->creds.anon) {
		res->identity = CTL_ALL_SQUASHED;
	} else if (is_root && res->uid != 0) {
		res->identity = CTL_ROOT_SQUASHED;
	}
}

static void whoami(struct req *r)
{
	struct exports *exports = exports_current(r->srv);

	identify(r, exports);
	served_put(&exports->served);
}

#define RESULT(type)                                                                               \
	.decode = (xdrproc_t)prog_xdr_void, .encode = (xdrproc_t)xdr_##type, .res_bytes = sizeof(type)

static const struct prog_proc procs[] = {
	[CTL_NULL] = PROG_NULL,
	[CTL_INFO] = { .name = "INFO", RESULT(ctl_info), .work = info },
	[CTL_STATS] = { .name = "STATS", RESULT(ctl_stats), .work = stats },
	[CTL_RELOAD] = { .name = "RELOAD", RESULT(ctl_answer), .work = reload },
	[CTL_DRAIN] = { .name = "DRAIN", RESULT(ctl_answer), .work = drain },
	[CTL_WHERE] = { .name = "WHERE", RESULT(ctl_where), .work = ctl_where_sums },
	[CTL_PIECES] = { .name = "PIECES", RESULT(ctl_pieces), .work = ctl_where_pieces },
	[CTL_WHOAMI] = {
		.name = "WHOAMI",
		PROG_CODECS(ctl_path, ctl_whoami),
		.preset = preset_whoami,
		.work = whoami,
	},
};

const struct prog prog_ctl = {
	.number = LEAT_CTL,
	.vers = LEAT_CTL_V1,
	.name = "CTL",
	.procs = procs,
	.nprocs = ARRAY_SIZE(procs),
	.call_bytes = sizeof(struct ctl_call),
	.args_at = offsetof(struct ctl_call, args),
	.res_at = offsetof(struct ctl_call, res),
};
