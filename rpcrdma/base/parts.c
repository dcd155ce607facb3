/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * parts.c - range allocator: a list of the allocated parts, by offset
 *
 * Operation:  A list suffices, because parts are few: buffers of a program, chunks of the pool, buffers that one
 *             connection holds.
 * Memory:     A node for as many parts as were ever allocated at once: then nothing is allocated any more. The user
 *             owns the range itself.
 * Threads:    The user serializes access.
 * Errors:     -ENOBUFS: wait until a part is freed. -ENOMEM: no node.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "parts.h"

struct part {
	struct list link;
	size_t off, bytes;
};

void rr_parts_init(struct rr_parts *p, size_t bytes)
{
	p->bytes = bytes;
	p->n = 0;
	list_init(&p->taken);
	list_init(&p->spares);
}

void rr_parts_fini(struct rr_parts *p)
{
	if (!p->bytes)
		return;
	list_splice_tail(&p->spares, &p->taken);
	list_for_each_safe(node, &p->spares)
		free(list_entry(node, struct part, link));
	*p = (struct rr_parts){ 0 };
}

int rr_parts_take(struct rr_parts *p, size_t bytes, size_t align, size_t *ret_off)
{
	struct list *before = &p->taken, *spare;
	struct part *part;
	size_t off = 0;

	list_for_each(node, &p->taken) {
		part = list_entry(node, struct part, link);
		if (part->off >= off && part->off - off >= bytes)
			break;
		off = round_up_pow2(part->off + part->bytes, align);
		before = node;
	}
	if (!range_fits(off, bytes, p->bytes))
		return -ENOBUFS;
	spare = list_pop(&p->spares);
	part = spare ? list_entry(spare, struct part, link) : malloc(sizeof(*part));
	if (!part)
		return -ENOMEM;
	part->off = off;
	part->bytes = bytes;
	list_insert_between(&part->link, before, before->next);
	p->n++;
	*ret_off = off;
	return 0;
}

bool rr_parts_give(struct rr_parts *p, size_t off)
{
	list_for_each_safe(node, &p->taken) {
		struct part *part = list_entry(node, struct part, link);

		if (part->off != off)
			continue;
		list_del(node);
		list_add_head(&p->spares, node);
		p->n--;
		return true;
	}
	return false;
}
