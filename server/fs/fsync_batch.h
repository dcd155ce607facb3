/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fsync_batch.h - several calls share one fsync, and how its failure is reported
 *
 * The contract: a call that changed a directory and then calls fsync_batch_run() for it gets 0 only if a sync
 * that began after fsync_batch_run() was called has succeeded. Every failed sync changes the write verifier of
 * its file system before the failure is reported to any call.
 */
#ifndef LEAT_SERVER_FSYNC_BATCH_H
#define LEAT_SERVER_FSYNC_BATCH_H

#include <stdint.h>

#include "base/util.h"

struct fsync_batch;

/** fsync_batch_create - creates the state for one server
 * @lost: called when data written to the file system @dev, by any client, may be lost; any thread
 *
 * Return: 0, -ENOMEM.
 */
int must_check fsync_batch_create(void (*lost)(void *ctx, uint64_t dev), void *ctx, struct fsync_batch **ret);

/** fsync_batch_destroy - no thread may be in fsync_batch_run(). NULL is fine. */
void fsync_batch_destroy(struct fsync_batch *c);

/** fsync_batch_run - runs @sync for a file, once for all waiting calls; blocks
 * @c: NULL: syncs are not shared
 * @sync: Return: 0 or -errno; runs on the thread of one of the calls
 *
 * Return: 0, or the error of @sync.
 */
int must_check fsync_batch_run(struct fsync_batch *c, uint64_t dev, uint64_t ino, int (*sync)(const void *arg),
			  const void *arg);

/** fsync_batch_count - gets the number of fsync_batch_run() calls, and of syncs for them */
void fsync_batch_count(const struct fsync_batch *c, uint64_t *ret_calls, uint64_t *ret_syncs);

/** fsync_batch_lost - reports that a sync of a file of the file system @dev (st_dev) failed. NULL is fine. */
void fsync_batch_lost(const struct fsync_batch *c, uint64_t dev);

#endif
