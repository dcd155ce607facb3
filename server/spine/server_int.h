/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * server_int.h - what the threads of a server share
 */
#ifndef LEAT_SERVER_SERVER_INT_H
#define LEAT_SERVER_SERVER_INT_H

#include <pthread.h>

#include "client.h"
#include "commit.h"
#include "dir_watch.h"
#include "drc.h"
#include "exports.h"
#include "fh.h"
#include "reactor.h"
#include "server.h"
#include "latency.h"
#include "worker.h"
#include "write_verf.h"

#define SERVER_FILES_RESERVED 256u /* descriptors for neither open files nor connections */
#define SERVER_DENIALS 16u

/* Written before the threads start and after they end. Members that change in between are atomic or locked. */
struct server {
	struct rpcrdma_domain *domain;
	struct fh_set *fhs; /* belongs to no export; those of the exports are views of it */
	enum fh_kind fh_kind; /* kind for all exports, or 0: the best one for each */
	char *state_dir;      /* directory of the handle map, or NULL */
	bool state_dir_usual; /* the default directory: it may be missing */
	pthread_mutex_t exports_lock; /* over the next */
	struct exports *exports;      /* in force: exports_current() */
	pthread_mutex_t reload_lock;  /* over their replacement, and over: */
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
	struct mount_table *mounts;
	struct commit *commit;
	struct dir_watches *dirs;
	struct latency_tracer tracer;
	struct drc *drc;	/* NULL: retransmitted requests are executed again */
	struct drc *drc_writes; /* the same for WRITE */
	uint8_t instance[SERVER_INSTANCE_BYTES]; /* random: identifies this run of the server */
	struct write_verf write_verf;
};

/** server_may_tell - checks whether one more line about a refused peer may be logged. Any thread
 *
 * Each client has its own limit (a few clients may share one). So a client that retries all the time does not hide the
 * refusal of another. Before a line that may be logged, the number of suppressed lines is logged.
 */
bool server_may_tell(struct server *s, const struct rpcrdma_peer *peer);

#endif
