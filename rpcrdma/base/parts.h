/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * parts.h - a range that is given out in parts: the first gap that is wide enough
 *
 * Threads:  Whoever guards the range.
 */
#ifndef RR_PARTS_H
#define RR_PARTS_H

#include "base/list.h"

struct rr_parts {
	size_t bytes;      /* 0: there is none */
	struct list taken; /* by offset */
};

void rr_parts_init(struct rr_parts *p, size_t bytes);
void rr_parts_fini(struct rr_parts *p);

/** rr_parts_take - so many bytes
 * @align: of the offset, a power of two
 *
 * Return: 0 with the offset, -ENOBUFS: no gap is so wide, -ENOMEM
 */
must_check int rr_parts_take(struct rr_parts *p, size_t bytes, size_t align, size_t *ret_off);

/** rr_parts_give - the part that begins at @off; Return: false: none does */
bool rr_parts_give(struct rr_parts *p, size_t off);

#endif
