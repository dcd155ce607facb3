/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * io.h - reads and writes of files
 */
#ifndef LT_IO_H
#define LT_IO_H

#include "file.h"
#include "leat.h"

/** lt_io_read_internal - leat_aio_pread() for another operation of this library
 * @cb: one of this library, see lt_task.internal
 */
int lt_io_read_internal(struct leat_file *f, void *buf, size_t len, uint64_t off, struct leat_cb cb);

#endif
