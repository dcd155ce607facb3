/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_unstable.h - what was written to a file of a volume through the manager, and is not stable, over all reactors
 */
#ifndef LEAT_SERVER_VOLUME_UNSTABLE_H
#define LEAT_SERVER_VOLUME_UNSTABLE_H

#include <stdint.h>

#include "base/util.h"

struct fsync_batch;
struct leat_volume_unstable;
struct volume_unstable;

/** volume_unstable_get - finds or creates the record of a file; any thread
 * @fsyncs: told of losses; must exist until volume_unstable_put()
 * @ret: for libleat; valid until then
 *
 * Return: NULL: no memory.
 */
struct volume_unstable *volume_unstable_get(uint64_t dev, uint64_t ino, const struct fsync_batch *fsyncs,
					    struct leat_volume_unstable **ret);

/** volume_unstable_put - drops it; any thread. What the last holder leaves unstable counts as lost: no COMMIT would find it */
void volume_unstable_put(struct volume_unstable *u);

#endif
