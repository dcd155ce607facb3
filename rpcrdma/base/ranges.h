/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ranges.h - range allocator, first fit
 *
 * Threads:  The user serializes access.
 */
#ifndef RR_RANGES_H
#define RR_RANGES_H

#include "base/list.h"

struct rr_ranges {
	size_t bytes;       /* 0: not set up */
	size_t n;           /* allocated ranges */
	struct list taken;  /* by offset */
	struct list spares; /* unused nodes */
};

/** rr_ranges_init - sets up [0, @bytes) with nothing allocated. Allocates no memory */
void rr_ranges_init(struct rr_ranges *r, size_t bytes);

/** rr_ranges_fini - frees the nodes, also those of ranges still allocated. A zeroed @r is fine. */
void rr_ranges_fini(struct rr_ranges *r);

/** rr_ranges_alloc - allocates a range of @bytes
 * @align: of the offset, a power of two
 *
 * Return: 0 with the offset, -ENOBUFS: no gap is large enough, -ENOMEM
 */
must_check int rr_ranges_alloc(struct rr_ranges *r, size_t bytes, size_t align, size_t *ret_off);

/** rr_ranges_free - frees the range that starts at @off; Return: false: no range starts there */
bool rr_ranges_free(struct rr_ranges *r, size_t off);

#endif
