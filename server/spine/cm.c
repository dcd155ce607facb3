/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cm.c - the thread that listens, sets up connections and hands them to reactors
 *
 * Operation: Opens the listeners before the thread starts, so that a failure makes the start fail. A configured
 *            listener must open. The exception is RDMA on a host without a device, if another one opens, so
 *            that one configuration serves hosts with and without RDMA. If none is configured, the defaults that this
 *            host supports are opened. A listener that is left out is logged with the reason.
 * Memory:    Owns its engine and listeners.
 * Threads:   Its own: setting up an RDMA connection takes milliseconds and must not block a reactor.
 * Errors:    Logged here, where their meaning is known.
 */
#include "cm.h"
#include "rpcrdma_lab.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "conf.h"
#include "conn.h"
#include "req.h"
#include "server_int.h"
#include "services.h"

#define URL_BYTES 300

struct cm {
	struct server *srv;
	struct rpcrdma_engine *engine;
	struct rpcrdma_svc_attr attr;
	struct rpcrdma_lab lab;
	struct rpcrdma_listener *listeners[CONF_LISTEN_MAX];
	/* copies: other threads read them while the listeners are being closed */
	struct rpcrdma_addr addrs[CONF_LISTEN_MAX];
	size_t n;
	pthread_t thread;
	bool running, stop;
	struct rpcrdma_msg stop_msg;
};

static int listen_on(struct cm *cm, const struct rpcrdma_addr *addr)
{
	int err;

	if (cm->n == CONF_LISTEN_MAX)
		return -E2BIG;
	err = rpcrdma_listen(cm->engine, addr, &cm->attr, &conn_ops, cm->srv,
			     &cm->listeners[cm->n]);
	if (err)
		return err;
	cm->addrs[cm->n] = *rpcrdma_listener_addr(cm->listeners[cm->n]);
	cm->n++;
	return 0;
}

static bool lacks_device(const struct rpcrdma_addr *addr, int err)
{
	return addr->transport == RPCRDMA_RDMA && (err == -ENODEV || err == -EOPNOTSUPP);
}

static const char *reason(const struct rpcrdma_addr *addr, int err)
{
	if (lacks_device(addr, err))
		return "no RDMA device, or none that this build can use";
	if (addr->transport == RPCRDMA_RDMA && err == -ENXIO)
		return "no RDMA device has this address";
	return strerror(-err);
}

static int listen_named(struct cm *cm, const struct conf *conf)
{
	char url[URL_BYTES];

	for (size_t i = 0; i < conf->nlisten; i++) {
		const struct rpcrdma_addr *addr = &conf->listen[i];
		int err = listen_on(cm, addr);

		if (!err)
			continue;
		rpcrdma_addr_print(addr, url, sizeof(url));
		if (!lacks_device(addr, err) || (!cm->n && i + 1 == conf->nlisten)) {
			log_err("cannot listen on %s: %s", url, reason(addr, err));
			return err;
		}
		log_warn("not listening on %s: %s", url, reason(addr, err));
	}
	return 0;
}

/* The socket that is used if none is configured. */
static int default_local(struct rpcrdma_addr *addr)
{
	const char *run = geteuid() == 0 ? "/run" : getenv("XDG_RUNTIME_DIR");
	char dir[sizeof(addr->host) - sizeof("/leatd.sock")];

	if (!run || !*run)
		return -ENOENT;
	if (snprintf(dir, sizeof(dir), "%s/leat", run) >= (int)sizeof(dir))
		return -ENAMETOOLONG;
	if (mkdir(dir, 0755) && errno != EEXIST)
		return -errno;
	addr->transport = RPCRDMA_LOCAL;
	(void)snprintf(addr->host, sizeof(addr->host), "%s/leatd.sock", dir);
	return 0;
}

static void try_default(struct cm *cm, const struct rpcrdma_addr *addr)
{
	char url[URL_BYTES];
	int err = listen_on(cm, addr);

	if (err)
		log_warn("not listening on %s: %s", rpcrdma_addr_print(addr, url, sizeof(url)),
			 reason(addr, err));
}

static int listen_defaults(struct cm *cm, const struct conf *conf)
{
	struct rpcrdma_addr tcp = { .transport = RPCRDMA_TCP, .host = "127.0.0.1", .port = 2049 };
	struct rpcrdma_addr rdma = { .transport = RPCRDMA_RDMA, .host = "0.0.0.0", .port = 20049 };
	struct rpcrdma_addr local = { 0 };
	const char *section;
	int err;

	err = default_local(&local);
	if (err)
		log_warn("not listening on a local socket: %s",
			 err == -ENOENT ? "XDG_RUNTIME_DIR is not set" : strerror(-err));
	else
		try_default(cm, &local);
	try_default(cm, &tcp);
	if (!conf_unrestricted(conf, &section))
		try_default(cm, &rdma);
	else
		log_info("not listening on rdma: an export or a volume without clients= is for this host only");
	if (!cm->n)
		log_err("nothing to listen on");
	return cm->n ? 0 : -EADDRNOTAVAIL;
}

/* A client that finds the server over TCP alone may be connected to another device. */
static void say_devices(const struct cm *cm)
{
	char url[URL_BYTES];

	for (size_t i = 0; i < cm->n; i++) {
		const char *device = rpcrdma_listener_device(cm->listeners[i]);

		if (cm->addrs[i].transport == RPCRDMA_RDMA)
			log_info("%s is reached by %s%s",
				 rpcrdma_addr_print(&cm->addrs[i], url, sizeof(url)),
				 device ? "device " : "every RDMA device", device ? device : "");
	}
}

/* On a network AUTH_SYS is trusted. An unprivileged leatd runs the requests of all clients as its own user. */
static void say_who_acts(const struct cm *cm)
{
	char url[URL_BYTES];

	if (creds_can_assume())
		return;
	for (size_t i = 0; i < cm->n; i++) {
		if (cm->addrs[i].transport == RPCRDMA_LOCAL)
			continue;
		log_warn("every client that can reach %s, users of this host included, acts as uid %u",
			 rpcrdma_addr_print(&cm->addrs[i], url, sizeof(url)), (unsigned)geteuid());
	}
}

/* A connection uses one descriptor, except over RDMA. */
static void say_file_limit(const struct cm *cm)
{
	struct rlimit rl;
	rlim_t need = 0;

	for (size_t i = 0; i < cm->n; i++)
		if (cm->addrs[i].transport != RPCRDMA_RDMA)
			need = cm->attr.conns_max;
	need += SERVER_FILES_RESERVED;
	if (!getrlimit(RLIMIT_NOFILE, &rl) && rl.rlim_cur < need)
		log_warn("the limit of %lu open files is too low for max-connections = %u: "
			 "that takes %lu, and more for the files that are served",
			 (unsigned long)rl.rlim_cur, (unsigned)cm->attr.conns_max,
			 (unsigned long)need);
}

static void on_stop(struct rpcrdma_msg *msg)
{
	struct cm *cm = container_of(msg, struct cm, stop_msg);

	cm->stop = true;
}

static void close_listeners(struct cm *cm)
{
	for (size_t i = 0; i < CONF_LISTEN_MAX; i++) {
		rpcrdma_listener_close(cm->listeners[i]);
		cm->listeners[i] = NULL;
	}
}

static void *cm_main(void *arg)
{
	struct cm *cm = arg;

	while (!cm->stop)
		(void)rpcrdma_engine_wait(cm->engine, -1);
	close_listeners(cm);
	return NULL;
}

int cm_create(struct server *srv, const struct conf *conf, struct cm **ret)
{
	const struct rpcrdma_engine_attr attr = { .poll = RPCRDMA_POLL_EVENT };
	struct cm *cm = calloc(1, sizeof(*cm));
	int err;

	if (!cm)
		return -ENOMEM;
	cm->srv = srv;
	cm->attr.inline_bytes = conf->inline_bytes;
	cm->attr.credits = conf->credits;
	cm->attr.conns_max = conf->max_connections;
	cm->attr.req_bytes = (uint32_t)service_req_bytes(srv);
	cm->attr.srq = conf->srq;
	cm->lab = (struct rpcrdma_lab){ .no_private_data = conf->no_private_data, .modes = conf->modes };
	cm->attr.lab = &cm->lab;
	err = rpcrdma_engine_create(srv->domain, &attr, &cm->engine);
	if (!err)
		err = conf->nlisten ? listen_named(cm, conf) : listen_defaults(cm, conf);
	if (!err) {
		say_devices(cm);
		say_who_acts(cm);
		say_file_limit(cm);
		*ret = cm; /* before the first client can ask for it */
		cm->running = true;
		err = -pthread_create(&cm->thread, NULL, cm_main, cm);
	}
	if (err) {
		*ret = NULL;
		cm_destroy(cm);
	}
	return err;
}

void cm_close(struct cm *cm)
{
	if (!cm || !cm->running)
		return;
	cm->stop_msg.fn = on_stop;
	rpcrdma_engine_post(cm->engine, &cm->stop_msg);
	pthread_join(cm->thread, NULL);
	cm->running = false;
}

void cm_destroy(struct cm *cm)
{
	if (!cm)
		return;
	close_listeners(cm);
	rpcrdma_engine_destroy(cm->engine);
	free(cm);
}

size_t server_listeners(const struct server *s)
{
	return s->cm ? s->cm->n : 0;
}

const struct rpcrdma_addr *server_listener(const struct server *s, size_t i)
{
	return &s->cm->addrs[i];
}
