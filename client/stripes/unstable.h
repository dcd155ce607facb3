/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * unstable.h - what was written to a file by several sessions, and is not stable (struct leat_volume_unstable); any thread
 */
#ifndef LT_UNSTABLE_H
#define LT_UNSTABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "leat_volume.h"

/** lt_unstable_wrote - a write to @stripe of @width was acknowledged with @verf, and is not stable; Return: 0, -ENOMEM */
must_check int lt_unstable_wrote(struct leat_volume_unstable *u, uint32_t width, uint32_t stripe, uint64_t verf);

/** lt_unstable_has - does @stripe need a COMMIT?
 * @ret_upto: number of the last write that it would cover
 */
bool lt_unstable_has(struct leat_volume_unstable *u, uint32_t stripe, uint64_t *ret_upto);

/** lt_unstable_synced - a COMMIT of @stripe was acknowledged with @verf; @upto: of lt_unstable_has(), before it was sent */
void lt_unstable_synced(struct leat_volume_unstable *u, uint32_t stripe, uint64_t verf, uint64_t upto);

#endif
