/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * io.h - data in and out of files
 */
#ifndef LT_IO_H
#define LT_IO_H

#include "file.h"
#include "leat.h"

/* Parts of memory in one call: no more segments than any peer must accept. */
#define LT_IO_PIECE_IOV 16

/** lt_io_start - what leat_aio_preadv() and _pwritev() come to
 * @iov: copied; the memory it points at is not
 *
 * Return: 0; -EBADF, -EISDIR, -EINVAL, -EFBIG, -ENOMEM; @cb is consumed in every outcome.
 */
int lt_io_start(struct leat_file *f, bool write, const struct iovec *iov, int cnt, uint64_t off,
		struct leat_cb cb);

/** lt_io_free_pools - when nothing is in flight any more */
void lt_io_free_pools(struct leat *m);

#endif
