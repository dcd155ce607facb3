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

/** lt_io_start - implements leat_aio_preadv() and leat_aio_pwritev()
 * @iov: copied; the memory that it points to is not
 *
 * Return: 0; -EBADF, -EISDIR, -EINVAL, -EFBIG, -ENOMEM; @cb is consumed in every outcome.
 */
int lt_io_start(struct leat_file *f, bool write, const struct iovec *iov, int cnt, uint64_t off,
		struct leat_cb cb);

/** lt_io_free_pools - frees the pools; nothing may be in flight */
void lt_io_free_pools(struct leat_session *s);

#endif
