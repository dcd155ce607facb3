/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * io.h - reads and writes of files
 */
#ifndef LT_IO_H
#define LT_IO_H

#include "file.h"
#include "leat.h"

struct lt_range;

/** lt_io_read_internal - leat_aio_pread() for another operation of this library
 * @cb: one of this library, see lt_task.internal
 */
int lt_io_read_internal(struct leat_file *f, void *buf, size_t len, uint64_t off, struct leat_cb cb);

/** lt_io_release - the lt_bulk_ops.release of files */
void lt_io_release(void *file);

/** lt_io_write_range - as leat_aio_pwrite(), at the beginning of the range @r, which lt_striped_reserve() has reserved for it
 * The result is -ESTALE if the file was cut since: nothing of the range belongs to the file as it is now.
 */
int lt_io_write_range(struct leat_file *f, const void *buf, size_t len, const struct lt_range *r, struct leat_cb cb);

#endif
