/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * server.c - starts and stops a server
 *
 * Operation: creates the services, then workers, reactors, and last the listeners: no client can
 *            call before everything exists. The end is the reverse: listeners, reactors (which drain),
 *            workers, and then everything they used.
 * Memory:    struct server owns everything; server_stop() frees it.
 * Threads:   one per reactor, the workers, cm.c's, and for a moment rpcbind.c's.
 * Errors:    logged, and returned.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "block_service.h"
#include "stripe_service.h"
#include "cm.h"
#include "nfs.h"
#include "rpcbind.h"
#include "rpcrdma_lab.h"
#include "services.h"

#define JOIN_EXTRA_NS (2 * NS_PER_S)

bool server_may_tell(struct server *s, const struct rpcrdma_peer *peer)
{
	struct rpcrdma_client_id id;
	struct log_limit *limit;
	unsigned long left_out = 0;
	bool tell;

	rpcrdma_client_id_of(peer, &id);
	limit = &s->denials[(id.key ^ id.kind) % SERVER_DENIALS];
	pthread_mutex_lock(&s->denials_lock);
	tell = log_limit_ok(limit);
	if (tell) {
		left_out = limit->swallowed;
		limit->swallowed = 0;
	}
	pthread_mutex_unlock(&s->denials_lock);
	if (left_out)
		log_warn("%lu lines about refusals were left out", left_out);
	return tell;
}

static unsigned cores(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (unsigned)n : 1;
}

static unsigned reactors_of(const struct conf *conf)
{
	return conf->reactors ? conf->reactors : cores();
}

static int create_reactors(struct server *s, const struct conf *conf)
{
	unsigned n = reactors_of(conf);
	int err = 0;

	s->reactors = calloc(n, sizeof(struct reactor *));
	if (!s->reactors)
		return -ENOMEM;
	while (s->nreactors < n && !err) {
		err = reactor_create(s, s->nreactors, conf->poll, &s->reactors[s->nreactors]);
		if (!err)
			s->nreactors++;
	}
	for (unsigned i = 0; i < s->nreactors && !err; i++)
		err = reactor_run(s->reactors[i]);
	return err;
}

/* Half of the memory is for WRITEs. */
static int create_drcs(struct server *s, const struct conf *conf)
{
	struct drc_attr attr = {
		.entries = MAX(conf->drc_entries / 2, 1u),
		.bytes = conf->drc_bytes / 2,
		.keep_ns = DRC_KEEP_NS,
	};
	int err = drc_create(&attr, &s->drc);

	if (err)
		return err;
	attr.keep_ns = DRC_KEEP_WRITE_NS;
	attr.ends = true;
	return drc_create(&attr, &s->drc_writes);
}

static int create_all(struct server *s, const struct conf *conf)
{
	const struct rpcrdma_lab lab = { .capture = conf->capture, .unsafe_inv = conf->unsafe_inv };
	const struct rpcrdma_domain_attr attr = {
		.pool_bytes_max = conf->pinned_max,
		.msg_bytes_max = conf->messages_max,
		.shared_bytes_max = conf->shared_max,
		.pool_arena = conf->arena,
		.lab = &lab,
		/* as conn.c decides, for users that can open the socket */
		.socket_mode = creds_can_assume() || conf->everyone ? 0666 : 0600,
	};
	unsigned workers = conf->workers ? conf->workers : MAX(16, 4 * cores());
	int err;

	if (getrandom(s->instance, sizeof(s->instance), 0) != (ssize_t)sizeof(s->instance))
		return -EIO;
	err = service_create(s, conf, reactors_of(conf)); /* logs errors itself */
	if (err)
		return err;
	err = rpcrdma_domain_create(&attr, &s->domain);
	if (err && conf->capture) {
		log_err("cannot start, with %s to capture to: %s", conf->capture, strerror(-err));
		return err;
	}
	if (!err && conf->drc_entries)
		err = create_drcs(s, conf);
	if (!err)
		err = worker_pool_create(workers, &s->workers);
	if (!err)
		err = create_reactors(s, conf);
	if (err) {
		log_err("cannot start: %s", strerror(-err));
		return err;
	}
	s->clients.reactors = s->reactors;
	s->clients.nreactors = s->nreactors;
	s->clients.workers = s->workers;
	return cm_create(s, conf, &s->cm); /* logs errors itself */
}

/* Determines the identity of requests. Root that cannot change its identity would run all requests as root. */
static int find_identity(const struct conf *conf)
{
	int err = creds_init();

	if (err)
		log_err("run by root without CAP_SETUID and CAP_SETGID, or where others have no "
			"ids: calls cannot run as their callers, and must not run as root; give "
			"it both, or run it as another user");
	else if (creds_can_assume())
		log_info("requests run with the uid and gids of their callers");
	else
		log_info("not root: everything is done as uid %u, for %s", (unsigned)geteuid(),
			 conf->everyone ? "all users"
					: "this user, root, and clients over a network");
	return err;
}

#define CONNECTION_BYTES (UINT64_C(256) << 10) /* estimate: memory of a connection outside other limits */
#define OTHER_BYTES (UINT64_C(64) << 20) /* threads, exports, handles, open files */

static unsigned long long to_mib(uint64_t bytes)
{
	return (bytes >> 20) + (bytes % (UINT64_C(1) << 20) != 0);
}

/* Logs the memory needs: an administrator may set a control group's limit by them. Socket buffers belong to the kernel and
 * are not included. */
static void log_memory(const struct server *s, const struct conf *conf)
{
	unsigned long long pinned, msgs, replies, shared = 0, conns, modes, other = to_mib(OTHER_BYTES);
	struct rpcrdma_pool_stats pool;
	char of_modes[40] = "";

	rpcrdma_domain_pool_stats(s->domain, &pool);
	for (size_t i = 0; i < server_listeners(s); i++) {
		if (server_listener(s, i)->transport == RPCRDMA_LOCAL)
			shared = to_mib(pool.shared_limit);
	}
	pinned = to_mib(pool.limit);
	msgs = to_mib(pool.msgs_limit + pool.calls_limit);
	replies = conf->drc_entries ? to_mib(conf->drc_bytes) : 0;
	conns = to_mib(conf->max_connections * CONNECTION_BYTES);
	modes = conf->modes ? pinned : 0;
	if (modes)
		snprintf(of_modes, sizeof(of_modes), " + %llu (modes)", modes);
	log_info("memory at most %llu MiB: %llu (pinned-max)%s + %llu (messages-max) + %llu (drc-bytes) + "
		 "%llu (shared-max) + %llu (max-connections) + %llu (threads, exports, handles, files)",
		 pinned + modes + msgs + replies + shared + conns + other, pinned, of_modes, msgs, replies,
		 shared, conns, other);
}

/* Optional: clients that cannot find the server this way can be given its ports. */
static void register_ports(struct server *s)
{
	struct rpcrdma_addr addrs[CONF_LISTEN_MAX];
	size_t n = MIN(server_listeners(s), (size_t)CONF_LISTEN_MAX);
	int err;

	for (size_t i = 0; i < n; i++)
		addrs[i] = *server_listener(s, i);
	err = rpcbind_start(addrs, n, &s->rpcbind);
	if (err)
		log_warn("not registering with rpcbind: %s", strerror(-err));
}

/* Call after all threads have ended. */
static void free_all(struct server *s)
{
	worker_pool_destroy(s->workers);
	s->workers = NULL;
	for (unsigned i = 0; i < s->nreactors; i++)
		reactor_destroy(s->reactors[i]);
	free(s->reactors);
	cm_destroy(s->cm);
	rpcrdma_domain_destroy(s->domain);
	drc_destroy(s->drc);
	drc_destroy(s->drc_writes);
	service_destroy(s);
	pthread_mutex_destroy(&s->served_lock);
	pthread_mutex_destroy(&s->reload_lock);
	pthread_mutex_destroy(&s->denials_lock);
	latency_tracer_fini(&s->tracer);
	clients_fini(&s->clients);
	free(s);
}

int server_start(const struct conf *conf, struct server **ret)
{
	static const struct service *const services[] = { &nfs_service, &block_service, &stripe_service, NULL };

	return server_start_services(conf, services, ret);
}

int server_start_services(const struct conf *conf, const struct service *const *services, struct server **ret)
{
	struct server *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	for (unsigned i = 0; i < SERVER_DENIALS; i++)
		s->denials[i] = (struct log_limit)LOG_LIMIT_INIT;
	s->services = services;
	pthread_mutex_init(&s->served_lock, NULL);
	pthread_mutex_init(&s->reload_lock, NULL);
	pthread_mutex_init(&s->denials_lock, NULL);
	latency_tracer_init(&s->tracer);
	clients_init(&s->clients);
	umask(0); /* modes are those of the callers */
	s->everyone = conf->everyone;
	err = find_identity(conf);
	if (!err)
		err = create_all(s, conf);
	if (!err && conf->rpcbind)
		register_ports(s);
	if (err) {
		if (server_stop(s, 0))
			log_err("cannot end cleanly");
		return err;
	}
	log_memory(s, conf);
	*ret = s;
	return 0;
}

int server_stop(struct server *s, unsigned timeout_ms)
{
	uint64_t until = clock_now_ns() + timeout_ms * NS_PER_MS;
	int err = 0;

	/* reactors are about to end: no thread may wait for them */
	service_stop(s);
	cm_close(s->cm);
	for (unsigned i = 0; i < s->nreactors; i++) {
		if (s->reactors[i]->running)
			reactor_stop(s->reactors[i], until);
	}
	for (unsigned i = 0; i < s->nreactors; i++) {
		if (reactor_join(s->reactors[i], until + JOIN_EXTRA_NS))
			err = -ETIMEDOUT;
	}
	rpcbind_stop(s->rpcbind); /* calls are completed first: this may have to wait */
	s->rpcbind = NULL;
	if (!err)
		free_all(s);
	return err;
}

void server_set_manager(struct server *s, const struct server_manager *manager)
{
	atomic_store(&s->manager, manager);
}
