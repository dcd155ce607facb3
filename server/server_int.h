/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * server_int.h - what all of a server's threads share
 */
#ifndef LEAT_SERVER_SERVER_INT_H
#define LEAT_SERVER_SERVER_INT_H

#include <pthread.h>

#include "commit.h"
#include "drc.h"
#include "fh.h"
#include "reactor.h"
#include "server.h"
#include "worker.h"

/* Written before the threads start and after they end; what changes in between is atomic. */
struct server {
	struct rpcrdma_domain *domain;
	struct export_table exports;
	struct fh_set *fhs;
	struct worker_pool *workers;
	struct reactor **reactors;
	unsigned nreactors;
	atomic_uint next_reactor; /* for the next connection */
	struct cm *cm;
	struct rpcbind *rpcbind;  /* NULL: not asked for */
	struct log_limit refusals; /* cm's thread: peers turned away */
	bool everyone;		   /* other users of this host, too, though all are served as one */
	struct mount_table *mounts;
	struct commit *commit;
	struct drc *drc; /* NULL: calls that come again are executed again */
	uint8_t instance[SERVER_INSTANCE_BYTES]; /* random: which running server this is */
	/* Of unstable writes: changes when something that was written may be lost, and with each
	 * start, so that clients send it again. */
	_Atomic uint64_t write_verf;
};

/** server_write_verf_change - data that was not committed may be lost */
void server_write_verf_change(struct server *s);

#endif
