/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * io.h - reads and writes of files
 */
#ifndef LT_IO_H
#define LT_IO_H

#include "file.h"
#include "leat.h"

/* Iovecs per call: no more segments than every peer must accept. */
#define LT_IO_PIECE_IOV 16

/** lt_io_read_internal - leat_aio_pread() for another operation of this library
 * @cb: one of this library, see lt_task.internal
 */
int lt_io_read_internal(struct leat_file *f, void *buf, size_t len, uint64_t off, struct leat_cb cb);

/** lt_io_free_pools - frees the pools; nothing may be in flight */
void lt_io_free_pools(struct leat_session *s);

#endif
