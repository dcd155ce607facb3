/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * server_int.h - what all of a server's threads share
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

/* Written before the threads start and after they end; what changes in between is atomic. */
struct server {
	struct rpcrdma_domain *domain;
	struct fh_set *fhs; /* of no export; those of the exports are views of it */
	enum fh_kind fh_kind; /* what exports get, or 0: what is best for each */
	char *state_dir;      /* where the map of handles is, or NULL */
	bool state_dir_usual; /* nobody asked for it: without it is fine */
	pthread_mutex_t exports_lock; /* over the next */
	struct exports *exports;      /* in force: exports_current() */
	pthread_mutex_t reload_lock;  /* over the replacing of them, and: */
	bool stopping;
	const struct server_manager *_Atomic manager; /* NULL: there is none */
	struct clients clients;
	struct worker_pool *workers;
	struct reactor **reactors;
	unsigned nreactors;
	atomic_uint next_reactor; /* for the next connection */
	struct cm *cm;
	struct rpcbind *rpcbind;  /* NULL: not asked for */
	pthread_mutex_t denials_lock; /* over the next */
	struct log_limit denials[SERVER_DENIALS]; /* lines about clients that were refused something, by client */
	bool everyone;		   /* other users of this host, too, though all are served as one */
	struct mount_table *mounts;
	struct commit *commit;
	struct dir_watches *dirs;
	struct where_tracer tracer;
	struct drc *drc;	/* NULL: calls that come again are executed again */
	struct drc *drc_writes; /* the same for WRITE */
	uint8_t instance[SERVER_INSTANCE_BYTES]; /* random: which running server this is */
	struct write_verf write_verf;
};

/** server_may_tell - may one more line about a peer that was refused something be logged? Any thread
 *
 * Each client has a limit of its own (a few clients share one), so that the refusals of one that tries
 * again and again do not hide the refusal of another. Before a line that may pass, it is logged how many
 * did not.
 */
bool server_may_tell(struct server *s, const struct rpcrdma_peer *peer);

#endif
