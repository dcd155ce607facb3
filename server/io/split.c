/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * split.c - splits a payload into units and orders them
 *
 * Operation: A striped disk is fast only if all its members have work. So a request is split into one stream per
 *            member, and the next unit is taken from the stream with the fewest units in flight. Units end
 *            at multiples of the grain in the file, not in the payload, so that all but the first and the last
 *            are aligned on disk.
 *
 *            file      |....chunk 0....|....chunk 1....|....chunk 2....|....chunk 3....|
 *            member            0               1               0               1
 *            payload         [==|===|==|===|===|===|===|===|==|==]
 *            begins            0   2  4  1   3   5   7   6  8  ..
 * Memory:    The caller's.
 * Threads:   The caller's; no global state.
 * Errors:    None.
 */
#include "split.h"

#include <assert.h>

/* Return: payload offset of the first byte on member @stream; 0 for the member that has the payload's first byte */
static uint64_t first_of(const struct split *c, unsigned stream)
{
	uint64_t chunk = c->base / c->chunk, ahead;

	ahead = (stream + c->n - (unsigned)(chunk % c->n)) % c->n;
	return ahead ? (chunk + ahead) * c->chunk - c->base : 0;
}

void split_start(struct split *c, uint64_t base, uint32_t total, uint32_t grain, unsigned streams,
	       uint32_t chunk)
{
	assert(streams && streams <= SPLIT_STREAMS_MAX && (streams == 1 || chunk));
	c->base = base;
	c->total = c->left = total;
	c->grain = grain;
	c->chunk = chunk;
	c->n = streams;
	for (unsigned i = 0; i < streams; i++)
		c->streams[i] = (struct split_stream){ .next = streams > 1 ? first_of(c, i) : 0 };
}

static uint64_t up_to(uint64_t at, uint32_t multiple)
{
	return multiple - at % multiple;
}

static unsigned idlest(const struct split *c)
{
	unsigned best = c->n;

	for (unsigned i = 0; i < c->n; i++) {
		const struct split_stream *s = &c->streams[i], *b = &c->streams[best];

		if (s->next >= c->total)
			continue;
		if (best == c->n || s->out < b->out || (s->out == b->out && s->next < b->next))
			best = i;
	}
	return best;
}

bool split_next(struct split *c, uint32_t *ret_off, uint32_t *ret_len, unsigned *ret_stream)
{
	unsigned i = idlest(c);
	struct split_stream *s = &c->streams[i];
	uint64_t len, in_chunk = UINT64_MAX;

	if (!c->left || i == c->n)
		return false;
	len = c->total - s->next;
	if (c->grain)
		len = MIN(len, up_to(c->base + s->next, c->grain));
	if (c->n > 1) {
		in_chunk = up_to(c->base + s->next, c->chunk);
		len = MIN(len, in_chunk);
	}
	*ret_off = (uint32_t)s->next;
	*ret_len = (uint32_t)len;
	*ret_stream = i;
	s->next += len;
	if (len == in_chunk)
		s->next += (uint64_t)(c->n - 1) * c->chunk;
	s->out++;
	c->left -= (uint32_t)len;
	return true;
}

void split_ended(struct split *c, unsigned stream)
{
	assert(c->streams[stream].out);
	c->streams[stream].out--;
}

void split_stop(struct split *c)
{
	c->left = 0;
}
