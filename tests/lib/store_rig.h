/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_rig.h - a store by itself: an engine, workers, an export without a server, and a file
 */
#ifndef STORE_RIG_H
#define STORE_RIG_H

#include "export.h"
#include "reactor.h"
#include "store.h"
#include "tmp_dir.h"

struct store_rig {
	struct tmp_dir dir;
	char path[192];		/* of the file */
	struct rpcrdma_domain *domain;
	struct reactor reactor; /* engine, workers and counters are there, nothing else */
	struct export exp;
	struct store_env env;
	const struct store_ops *ops;
	struct store *store;
	struct store_file file;
	unsigned lost; /* fsync_batch_lost() was told so often */
};

/** store_rig_create - a store for an export with these options, "read=direct,write=cached", and an
 * empty file in it */
void store_rig_create(struct store_rig *g, const char *options);
void store_rig_destroy(struct store_rig *g);

/** store_rig_begin - submit @io; its done, its file and its creds may be left out */
void store_rig_begin(struct store_rig *g, struct store_io *io);
bool store_rig_is_done(const struct store_io *io);
/** store_rig_wait - run the engine until it has ended */
void store_rig_wait(struct store_rig *g, const struct store_io *io);

#define store_rig_counter(g, field) atomic_load(&(g)->reactor.counters.store.field)

#endif
