/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_split.h - divides a read or write of a striped file into calls
 */
#ifndef LT_STRIPE_SPLIT_H
#define LT_STRIPE_SPLIT_H

#include "layout.h"
#include "lt_bulk.h"

/** lt_stripe_split - the lt_bulk_ops.split of striped files: assigns a range of one object to @p
 * Sets p->stripe, p->mark to the offset in the object, p->off to that in the file, p->len and the memory: all units of the
 * range that are part of the operation.
 *
 * Return: false: nothing is left below b->end
 */
bool lt_stripe_split(struct lt_bulk *b, struct lt_subreq *p, const struct layout *l);

/** lt_stripe_unsplit - takes back what the last lt_stripe_split() has assigned to @p */
void lt_stripe_unsplit(struct lt_bulk *b, struct lt_subreq *p);

/** lt_stripe_file_off - the offset in the file of the byte @off of an object; UINT64_MAX: no file has it */
uint64_t lt_stripe_file_off(const struct layout *l, uint32_t stripe, uint64_t off);

#endif
