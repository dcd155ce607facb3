/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * server_int.h - what the threads of a server share
 */
#ifndef LEAT_SERVER_SERVER_INT_H
#define LEAT_SERVER_SERVER_INT_H

#include <pthread.h>

#include "client.h"
#include "base/log.h"
#include "drc.h"
#include "prog.h"
#include "reactor.h"
#include "server.h"
#include "latency.h"
#include "worker.h"

#define SERVER_FILES_RESERVED 256u /* descriptors for neither open files nor connections */
#define SERVER_DENIALS 16u

/* Written before the threads start and after they end. Members that change in between are atomic or locked. */
struct server {
	struct rpcrdma_domain *domain;
	const struct service *const *services; /* that it offers; ends with NULL */
	void *service[SERVICES];   /* their states: prog.h */
	pthread_mutex_t served_lock; /* over the next */
	struct served *served[SERVICES]; /* in force: service_current(). NULL: none */
	pthread_mutex_t reload_lock; /* over their replacement, and over: */
	bool stopping;
	const struct server_manager *_Atomic manager; /* NULL: not managed */
	struct clients clients;
	struct worker_pool *workers;
	struct reactor **reactors;
	unsigned nreactors;
	atomic_uint next_reactor; /* for the next connection */
	struct cm *cm;
	struct rpcbind *rpcbind;  /* NULL: not configured */
	pthread_mutex_t denials_lock; /* over the next */
	struct log_limit denials[SERVER_DENIALS]; /* log limits for refusals, by client */
	bool everyone;		   /* --everyone: other users of this host are served too, as one user */
	struct latency_tracer tracer;
	atomic_uint asking;	/* loop.asking of all reactors */
	struct drc *drc;	/* NULL: retransmitted requests are executed again */
	struct drc *drc_writes; /* the same for WRITE */
	uint8_t instance[SERVER_INSTANCE_BYTES]; /* random: identifies this run of the server */
};

/** server_may_tell - checks whether one more line about a refused peer may be logged. Any thread
 *
 * Each client has its own limit (a few clients may share one). So a client that retries all the time does not hide the
 * refusal of another. Before a line that may be logged, the number of suppressed lines is logged.
 */
bool server_may_tell(struct server *s, const struct rpcrdma_peer *peer);

#endif
