/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_split.c - divides a read or write of a striped file into calls
 *
 * Operation:  The range is divided into groups: as many rows of units as give each stripe an object range of 1 MiB, or
 *             one unit if that is longer. A group gives each stripe one call for each MiB, in turn, so that all servers
 *             work at once. Units that lie behind one another in an object lie apart in the file: each is a part of the
 *             call's memory. A call that would have too many parts ends earlier, and the next one continues there.
 *             Small parts are staged (lt_stage.h); then a call has no more than one unit.
 *
 *             split.from, .end: the group; .nth: stripes of the round that are done; .round: MiB of each object that are
 *             done; .done: bytes of the present MiB that are done. b->next, and the cursor in the caller's memory, stay
 *             at split.from until the group is done.
 * Memory:     None.
 * Threads:    The owner's.
 * Errors:     None.
 */
#include "lt_stage.h"
#include "stripe_split.h"

#define IO_BYTES ((uint64_t)STRIPE_IO_MAX)

/* A position in the caller's memory. */
struct cursor {
	int at;
	size_t off;
};

static void advance(const struct lt_bulk *b, struct cursor *c, uint64_t n)
{
	while (n) {
		size_t left = b->iov[c->at].iov_len - c->off;

		if (n < left) {
			c->off += (size_t)n;
			return;
		}
		n -= left;
		c->at++;
		c->off = 0;
	}
}

/* Adds up to @n bytes at @c to the memory of @p; Return: bytes added */
static uint64_t add_memory(const struct lt_bulk *b, struct lt_subreq *p, struct cursor *c, uint64_t n)
{
	uint64_t added = 0;

	while (added < n) {
		const struct iovec *v = &b->iov[c->at];
		uint64_t len = MIN((uint64_t)(v->iov_len - c->off), n - added);
		char *at = (char *)v->iov_base + c->off;
		struct iovec *last = p->iov_cnt ? &p->iov[p->iov_cnt - 1] : NULL;

		if (len && last && (char *)last->iov_base + last->iov_len == at) {
			last->iov_len += len;
		} else if (len) {
			if (p->iov_cnt == b->ops->parts)
				break;
			p->iov[p->iov_cnt++] = (struct iovec){ at, len };
		}
		added += len;
		advance(b, c, len);
		if (!len) {
			c->at++;
			c->off = 0;
		}
	}
	return added;
}

uint64_t lt_stripe_file_off(const struct layout *l, uint32_t stripe, uint64_t off)
{
	uint64_t ret;

	return layout_file_off(l, stripe, off, &ret) ? UINT64_MAX : ret;
}

static uint32_t take_staged(struct lt_bulk *b, struct lt_subreq *p, struct cursor c, uint64_t max)
{
	struct cursor group = { b->iov_at, b->iov_off };
	uint32_t len;

	b->iov_at = c.at;
	b->iov_off = c.off;
	len = lt_stage_take(b, p, max);
	b->iov_at = group.at;
	b->iov_off = group.off;
	return len;
}

/* Assigns the range [@from, @end) of the object to @p, or its beginning. */
static void take(struct lt_bulk *b, struct lt_subreq *p, const struct layout *l, uint32_t stripe, uint64_t from, uint64_t end)
{
	struct cursor c = { b->iov_at, b->iov_off };
	uint64_t at = b->split.from; /* offset of @c in the file */

	p->stripe = stripe;
	p->mark = from;
	p->off = lt_stripe_file_off(l, stripe, from);
	p->len = 0;
	p->iov_first = p->iov_cnt = 0;
	while (from < end) {
		uint64_t off = lt_stripe_file_off(l, stripe, from), run = MIN(end - from, l->unit - from % l->unit), n;

		advance(b, &c, off - at);
		if (unlikely(b->staged)) {
			p->len = take_staged(b, p, c, run);
			return;
		}
		n = add_memory(b, p, &c, run);
		p->len += (uint32_t)n;
		from += n;
		at = off + n;
		if (n < run)
			return;
	}
}

static uint64_t group_bytes(const struct layout *l)
{
	return MAX((uint64_t)l->unit, IO_BYTES);
}

static void open_group(struct lt_bulk *b, const struct layout *l)
{
	uint64_t span = group_bytes(l) * l->width;

	b->split = (struct lt_split){ .from = b->next, .end = MIN(b->end, b->next - b->next % span + span), .is_open = true };
}

static void close_group(struct lt_bulk *b)
{
	struct cursor c = { b->iov_at, b->iov_off };

	advance(b, &c, b->split.end - b->split.from);
	b->iov_at = c.at;
	b->iov_off = c.off;
	b->next = b->split.end;
	b->split.is_open = false;
}

/* Stripes that the group touches: those of its first units, in turn */
static uint32_t stripes_of(const struct lt_split *c, const struct layout *l)
{
	return (uint32_t)MIN((uint64_t)l->width, (c->end - 1) / l->unit - c->from / l->unit + 1);
}

static void next_stripe(struct lt_bulk *b, const struct layout *l)
{
	struct lt_split *c = &b->split;

	c->done = 0;
	if (++c->nth < stripes_of(c, l))
		return;
	c->nth = 0;
	if (++c->round == group_bytes(l) / IO_BYTES)
		close_group(b);
}

bool lt_stripe_split(struct lt_bulk *b, struct lt_subreq *p, const struct layout *l)
{
	struct lt_split *c = &b->split;

	while (b->next < b->end) {
		struct layout_part part;
		uint64_t base, from, end;
		uint32_t stripe;

		if (!c->is_open)
			open_group(b, l);
		stripe = (uint32_t)((c->from / l->unit + c->nth) % l->width);
		part = layout_part(l, stripe, c->from, c->end - c->from);
		base = part.off - part.off % group_bytes(l) + c->round * IO_BYTES;
		from = MAX(part.off, base) + c->done;
		end = MIN(part.off + part.len, base + IO_BYTES);
		if (from >= end || lt_stripe_file_off(l, stripe, from) >= b->end) {
			next_stripe(b, l);
			continue;
		}
		take(b, p, l, stripe, from, end);
		c->done += p->len;
		return true;
	}
	return false;
}

void lt_stripe_unsplit(struct lt_bulk *b, struct lt_subreq *p)
{
	b->split.done -= p->len;
}
