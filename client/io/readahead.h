/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * readahead.h - readahead for sequential leat_read()
 */
#ifndef LT_READAHEAD_H
#define LT_READAHEAD_H

#include "leat.h"

/** lt_readahead_read - reads at @pos and keeps the following reads in flight
 * Return: as leat_aio_pread().
 */
int lt_readahead_read(struct leat_file *f, void *buf, size_t len, uint64_t pos, struct leat_cb cb);

/** lt_readahead_drop - the file changes: discards the data read so far */
void lt_readahead_drop(struct leat_file *f);

/** lt_readahead_destroy - frees the ring; nothing may be in flight on the file */
void lt_readahead_destroy(struct leat_file *f);

#endif
