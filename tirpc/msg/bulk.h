/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * bulk.h - the table that names bulk items of a program's messages, and the memory that a caller presets for one
 */
#ifndef RT_BULK_H
#define RT_BULK_H

#include <stddef.h>
#include <stdint.h>

#include <rpc/types.h>
#include <rpc/xdr.h>

#include "base/util.h"
#include "rpcrdma_tirpc.h"

#define RT_BULK_THRESHOLD 4096u

/* A copy of a caller's table, sorted by program, version and procedure. */
struct rt_bulk {
	struct rpcrdma_bulk *rows;
	size_t nrows;
};

/** rt_bulk_init - copies a table, and fills in its defaults
 * @row_bytes: size of a row in the program; 0: that of the first release
 * @max_bytes: of the handle
 *
 * Return: 0; -EINVAL: two rows for one procedure, a length of more than RPCRDMA_TIRPC_MAX_BYTES, or rows shorter than
 * those of the first release; -E2BIG: a row sets a member of a later release; -ENOMEM.
 */
must_check int rt_bulk_init(struct rt_bulk *b, const struct rpcrdma_bulk *rows, size_t nrows, size_t row_bytes,
			    size_t max_bytes);

/** rt_bulk_fini - frees the copy */
void rt_bulk_fini(struct rt_bulk *b);

/** rt_bulk_find - returns the row of a procedure, or NULL */
const struct rpcrdma_bulk *rt_bulk_find(const struct rt_bulk *b, uint32_t prog, uint32_t vers, uint32_t proc);

/** rt_bulk_preset - returns the memory that the caller of a procedure has set for item @item of its results
 * @results: the structure that @filter would decode into
 * @ret_bytes: the length that it has set; 0: none
 *
 * Runs @filter in the direction of XDR_ENCODE, up to that item. Pointers in @results must be NULL or valid, as for
 * decoding. Items before it that have no memory yet do not count, as empty ones in a message.
 *
 * Return: NULL: none.
 */
void *rt_bulk_preset(xdrproc_t filter, const void *results, uint32_t item, size_t *ret_bytes);

#endif
