/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ranges.c - range allocator: a list of the allocated ranges, by offset
 *
 * Operation:  A list suffices, because ranges are few: buffers of a program, segments of the pool, buffers that
 *             one connection holds.
 * Memory:     A node for as many ranges as were ever allocated at once: then nothing is allocated any more. The
 *             user owns the memory itself.
 * Threads:    The user serializes access.
 * Errors:     -ENOBUFS: wait until a range is freed. -ENOMEM: no node.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "ranges.h"

struct range {
	struct list link;
	size_t off, bytes;
};

void rr_ranges_init(struct rr_ranges *r, size_t bytes)
{
	r->bytes = bytes;
	r->n = 0;
	list_init(&r->taken);
	list_init(&r->spares);
}

void rr_ranges_fini(struct rr_ranges *r)
{
	if (!r->bytes)
		return;
	list_splice_tail(&r->spares, &r->taken);
	list_for_each_safe(node, &r->spares)
		free(list_entry(node, struct range, link));
	*r = (struct rr_ranges){ 0 };
}

int rr_ranges_alloc(struct rr_ranges *r, size_t bytes, size_t align, size_t *ret_off)
{
	struct list *before = &r->taken, *spare;
	struct range *range;
	size_t off = 0;

	list_for_each(node, &r->taken) {
		range = list_entry(node, struct range, link);
		if (range->off >= off && range->off - off >= bytes)
			break;
		off = round_up_pow2(range->off + range->bytes, align);
		before = node;
	}
	if (!range_fits(off, bytes, r->bytes))
		return -ENOBUFS;
	spare = list_pop(&r->spares);
	range = spare ? list_entry(spare, struct range, link) : malloc(sizeof(*range));
	if (!range)
		return -ENOMEM;
	range->off = off;
	range->bytes = bytes;
	list_insert_between(&range->link, before, before->next);
	r->n++;
	*ret_off = off;
	return 0;
}

bool rr_ranges_free(struct rr_ranges *r, size_t off)
{
	list_for_each_safe(node, &r->taken) {
		struct range *range = list_entry(node, struct range, link);

		if (range->off != off)
			continue;
		list_del(node);
		list_add_head(&r->spares, node);
		r->n--;
		return true;
	}
	return false;
}
