/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * backing.h - what a store serves: a directory tree or one file of this host, and how to use it
 */
#ifndef LEAT_SERVER_BACKING_H
#define LEAT_SERVER_BACKING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "data_conf.h"
#include "fs_limits.h"

struct fsync_batch;
struct store_ops;

/* The backing of an export, a block volume or a directory of stripes. Its owner fills it in, and keeps it while stores use
 * it. Read-only then, except said_cached, so every thread may use it. */
struct backing {
	const char *name;  /* for the administrator, in messages */
	const char *path;  /* where it is in this host's file systems */
	const struct data_conf *data; /* how its data is stored and travels */
	const struct store_ops *store; /* where else its data is; NULL: as @data says */
	uint64_t dev, ino; /* of its directory, or of its one file */
	struct fs_limits limits; /* of its file system */
	struct fsync_batch *fsyncs;	 /* of the server, or NULL: syncs are not shared */
	/* It is one file. Its syncs run one after another, and calls that wait share the next one: a caller that
	 * compares verifiers then knows of every failure before its own success. They all use sync_fd, whatever descriptor
	 * the data went by: the kernel reports a loss once to each open file, and it is to be reported once. */
	bool one_sync;
	int sync_fd;
	atomic_bool said_cached; /* it was logged that its files do not support direct I/O */
};

#endif
