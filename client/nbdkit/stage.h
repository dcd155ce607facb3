/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stage.h - buffers between nbdkit and a server on this host
 */
#ifndef LEAT_NBDKIT_STAGE_H
#define LEAT_NBDKIT_STAGE_H

#include <stdint.h>

struct leat_block;

/** stage_start - allocates the buffers for requests of @b, if its server is on this host */
void stage_start(struct leat_block *b);
/** stage_end - frees them. No request is in progress. */
void stage_end(void);

/** stage_take - returns a buffer for @bytes, until stage_put(); NULL: use the memory of the request */
void *stage_take(uint32_t bytes);
void stage_put(void *buf);

#endif
