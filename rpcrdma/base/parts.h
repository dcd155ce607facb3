/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * parts.h - allocates parts of a range, first fit
 *
 * Threads:  The user serializes access.
 */
#ifndef RR_PARTS_H
#define RR_PARTS_H

#include "base/list.h"

struct rr_parts {
	size_t bytes;       /* 0: no range */
	size_t n;           /* allocated parts */
	struct list taken;  /* by offset */
	struct list spares; /* unused nodes */
};

/** rr_parts_init - sets up a range of @bytes with no part allocated. Allocates no memory */
void rr_parts_init(struct rr_parts *p, size_t bytes);

/** rr_parts_fini - frees the nodes, also those of parts still allocated. A zeroed @p is fine. */
void rr_parts_fini(struct rr_parts *p);

/** rr_parts_take - allocates @bytes from the range
 * @align: of the offset, a power of two
 *
 * Return: 0 with the offset, -ENOBUFS: no gap is large enough, -ENOMEM
 */
must_check int rr_parts_take(struct rr_parts *p, size_t bytes, size_t align, size_t *ret_off);

/** rr_parts_give - frees the part that starts at @off; Return: false: no part starts there */
bool rr_parts_give(struct rr_parts *p, size_t off);

#endif
