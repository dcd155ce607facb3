/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * commit.h - syncs that several calls share, and what a failed one means
 *
 * The contract: who changed a directory and then called commit_run() for it gets 0 only when a sync
 * that began after his call has ended well; and every sync that failed has changed the write verifier
 * of its file system before anybody is told of it.
 */
#ifndef LEAT_SERVER_COMMIT_H
#define LEAT_SERVER_COMMIT_H

#include <stdint.h>

#include "base/util.h"

struct commit;

/** commit_create - for one server
 * @lost: data that was written to the file system @dev, by any client, may be lost; any thread
 *
 * Return: 0, -ENOMEM.
 */
int must_check commit_create(void (*lost)(void *ctx, uint64_t dev), void *ctx, struct commit **ret);

/** commit_destroy - nobody is in commit_run() any more. NULL is fine. */
void commit_destroy(struct commit *c);

/** commit_run - have @sync run for a file, once for all who wait for it; blocks
 * @c: NULL: nothing is shared
 * @sync: Return: 0 or -errno; runs on the thread of one of them
 *
 * Return: 0, or what @sync returned to whoever ran it.
 */
int must_check commit_run(struct commit *c, uint64_t dev, uint64_t ino, int (*sync)(const void *arg),
			  const void *arg);

/** commit_count - how often commit_run() was called, and how many syncs that took */
void commit_count(const struct commit *c, uint64_t *ret_calls, uint64_t *ret_syncs);

/** commit_lost - a sync of a file of the file system @dev (st_dev) failed. NULL is fine. */
void commit_lost(const struct commit *c, uint64_t dev);

#endif
