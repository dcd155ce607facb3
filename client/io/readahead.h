/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * readahead.h - leat_read() of a sequential reader is fed from what was asked for in advance
 */
#ifndef LT_READAHEAD_H
#define LT_READAHEAD_H

#include "leat.h"

/** lt_readahead_read - read at @pos, keeping the reads that will come next in flight
 * Return: as leat_aio_pread().
 */
int lt_readahead_read(struct leat_file *f, void *buf, size_t len, uint64_t pos, struct leat_cb cb);

/** lt_readahead_drop - the file changes: nothing read before now may be handed out after */
void lt_readahead_drop(struct leat_file *f);

/** lt_readahead_destroy - nothing is in flight on the file */
void lt_readahead_destroy(struct leat_file *f);

#endif
