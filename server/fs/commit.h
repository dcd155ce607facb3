/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * commit.h - several calls share one fsync, and how its failure is reported
 *
 * The contract: a call that changed a directory and then calls commit_run() for it gets 0 only if a sync
 * that began after commit_run() was called has succeeded. Every failed sync changes the write verifier of
 * its file system before the failure is reported to any call.
 */
#ifndef LEAT_SERVER_COMMIT_H
#define LEAT_SERVER_COMMIT_H

#include <stdint.h>

#include "base/util.h"

struct commit;

/** commit_create - creates the state for one server
 * @lost: called when data written to the file system @dev, by any client, may be lost; any thread
 *
 * Return: 0, -ENOMEM.
 */
int must_check commit_create(void (*lost)(void *ctx, uint64_t dev), void *ctx, struct commit **ret);

/** commit_destroy - no thread may be in commit_run(). NULL is fine. */
void commit_destroy(struct commit *c);

/** commit_run - runs @sync for a file, once for all waiting calls; blocks
 * @c: NULL: syncs are not shared
 * @sync: Return: 0 or -errno; runs on the thread of one of the calls
 *
 * Return: 0, or the error of @sync.
 */
int must_check commit_run(struct commit *c, uint64_t dev, uint64_t ino, int (*sync)(const void *arg),
			  const void *arg);

/** commit_count - gets the number of commit_run() calls, and of syncs for them */
void commit_count(const struct commit *c, uint64_t *ret_calls, uint64_t *ret_syncs);

/** commit_lost - reports that a sync of a file of the file system @dev (st_dev) failed. NULL is fine. */
void commit_lost(const struct commit *c, uint64_t dev);

#endif
