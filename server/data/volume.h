/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume.h - the storage that a store serves
 */
#ifndef LEAT_SERVER_VOLUME_H
#define LEAT_SERVER_VOLUME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "data_conf.h"
#include "fs_limits.h"

struct fsync_batch;
struct store_ops;

/* A directory tree with its file system, or the like. Its owner fills it in, and keeps it while stores use it. Read-only
 * then, except said_cached, so every thread may use it. */
struct volume {
	const char *name;  /* for the administrator, in messages */
	const char *path;  /* where it is in this host's file systems */
	const struct data_conf *data; /* how its data is stored and travels */
	const struct store_ops *store; /* where else its data is; NULL: as @data says */
	uint64_t dev, ino; /* of its directory */
	struct fs_limits limits; /* of its file system */
	struct fsync_batch *fsyncs;	 /* of the server, or NULL: syncs are not shared */
	/* The volume is one file. Its syncs run one after another, and calls that wait share the next one: a caller that
	 * compares verifiers then knows of every failure before its own success. They all use sync_fd, whatever descriptor
	 * the data went by: the kernel reports a loss once to each open file, and it is to be reported once. */
	bool one_sync;
	int sync_fd;
	atomic_bool said_cached; /* it was logged that its files do not support direct I/O */
};

#endif
