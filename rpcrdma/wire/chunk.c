/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * chunk.c - checks chunk lists and finds the remote ranges of payload bytes
 *
 * Operation:  Responder: srv_recv.c calls the two checks on each call before it reserves memory or posts work.
 *             srv_rw.c then asks for spans, one RDMA operation each. srv_send.c fills the chunk lists of the
 *             reply with rr_chunk_return(). Requester: clnt_rdma_reply.c compares the returned chunks with the
 *             offered ones, rr_chunk_check_returned(), before it uses a length.
 * Memory:     Never allocates. Results are indexes and copies, not pointers into the message.
 * Threads:    Pure functions.
 * Errors:     -EBADMSG from the checks means ERR_CHUNK and no RDMA operation. Sums have 64 bits: 64 segments of
 *             4 GiB cannot wrap. Handles cannot be checked here; a wrong one breaks only the peer's own
 *             connection.
 * See:        protocol.md sections 1.3, 1.4, 7.1.
 */
#include <assert.h>
#include <errno.h>

#include "base/checked.h"
#include "chunk.h"

/* The shortest call: six words and two empty opaque_auth (RFC 5531 section 9). */
#define CALL_BYTES_MIN 40u

/* A segment may end with the last byte of the address space but must not wrap. */
static bool segment_wraps(const struct rr_segment *s)
{
	return s->length && s->offset > UINT64_MAX - (s->length - 1);
}

/* One chunk of a read list: entries [first, first + nsegs) share one position. */
struct run {
	uint32_t first, nsegs;
	uint64_t bytes;
};

static bool take_run(const struct rr_hdr *h, uint32_t first, struct run *run)
{
	uint32_t i;

	*run = (struct run){ .first = first };
	for (i = first; i < h->nreads && h->reads[i].position == h->reads[first].position; i++) {
		if (segment_wraps(&h->reads[i].seg))
			return false;
		run->bytes += h->reads[i].seg.length;
	}
	run->nsegs = i - first;
	return true;
}

/* Splits the read list into at most one position-zero run and at most one other. A position that reappears
 * later forms a third run or a second one of its kind; both are refused. */
static bool split_reads(const struct rr_hdr *h, struct run *pzrc, struct run *item)
{
	struct run run;

	for (uint32_t i = 0; i < h->nreads; i += run.nsegs) {
		struct run *kind = h->reads[i].position ? item : pzrc;

		if (kind->nsegs || !take_run(h, i, &run))
			return false;
		*kind = run;
	}
	return true;
}

int rr_chunk_check_reads(const struct rr_hdr *h, size_t inline_bytes, uint32_t bytes_max,
			 struct rr_read_info *ret)
{
	struct run pzrc = { 0 }, item = { 0 };
	uint64_t message, total;

	if (!split_reads(h, &pzrc, &item))
		return -EBADMSG;
	if (h->proc == RR_NOMSG) {
		if (pzrc.bytes < CALL_BYTES_MIN || pzrc.bytes % 4)
			return -EBADMSG;
		message = pzrc.bytes;
	} else {
		if (!inline_bytes || pzrc.nsegs)
			return -EBADMSG;
		message = inline_bytes;
	}
	if (!add_u64(message, item.bytes, &total) || total > bytes_max)
		return -EBADMSG;
	/* Positions count in the un-reduced stream. In front of the only reduced item both streams are the same. */
	if (item.nsegs && h->reads[item.first].position > message)
		return -EBADMSG;

	*ret = (struct rr_read_info){
		.has_pzrc = pzrc.nsegs > 0,
		.pzrc_first = pzrc.first,
		.pzrc_nsegs = pzrc.nsegs,
		.pzrc_bytes = (uint32_t)pzrc.bytes,
		.has_item = item.nsegs > 0,
		.item_first = item.first,
		.item_nsegs = item.nsegs,
		.item_bytes = (uint32_t)item.bytes,
		.item_position = item.nsegs ? h->reads[item.first].position : 0,
	};
	return 0;
}

uint64_t rr_chunk_bytes(const struct rr_chunk *c)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < c->nsegs; i++)
		sum += c->segs[i].length;
	return sum;
}

static bool chunk_is_sane(const struct rr_chunk *c, uint64_t bytes_max)
{
	for (uint32_t i = 0; i < c->nsegs; i++)
		if (segment_wraps(&c->segs[i]))
			return false;
	return rr_chunk_bytes(c) <= bytes_max;
}

int rr_chunk_check_writes(const struct rr_hdr *h, uint64_t bytes_max)
{
	for (uint32_t i = 0; i < h->nwrites; i++)
		if (!chunk_is_sane(&h->writes[i], bytes_max))
			return -EBADMSG;
	if (h->has_reply && !chunk_is_sane(&h->reply, bytes_max))
		return -EBADMSG;
	return 0;
}

/* Both lists hold their segments at a fixed stride. Returns segment @i. */
static const struct rr_segment *segment_at(const struct rr_segment *first, size_t stride,
					   unsigned i)
{
	return (const void *)((const char *)first + i * stride);
}

static int find_spans(const struct rr_segment *first, size_t stride, unsigned nsegs, uint64_t off,
		      uint32_t len, struct rr_span *spans, unsigned max)
{
	uint64_t start = 0, total = 0;
	uint32_t done = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < nsegs; i++)
		total += segment_at(first, stride, i)->length;
	if (!range_fits(off, len, total))
		return -EMSGSIZE;

	/* start: position of segment i in the chunk; off + done: next byte wanted */
	for (unsigned i = 0; done < len; i++) {
		const struct rr_segment *s = segment_at(first, stride, i);
		uint64_t within = off + done - start;

		start += s->length;
		if (within >= s->length)
			continue;
		if (n == max)
			return -ENOBUFS;
		spans[n].handle = s->handle;
		spans[n].offset = s->offset + within;
		spans[n].length = (uint32_t)MIN(s->length - within, (uint64_t)(len - done));
		spans[n].skip = done;
		done += spans[n].length;
		n++;
	}
	return (int)n;
}

int rr_chunk_spans(const struct rr_segment *segs, unsigned nsegs, uint64_t off, uint32_t len,
		   struct rr_span *spans, unsigned max)
{
	return find_spans(segs, sizeof(*segs), nsegs, off, len, spans, max);
}

int rr_chunk_read_spans(const struct rr_read_seg *segs, unsigned nsegs, uint64_t off, uint32_t len,
			struct rr_span *spans, unsigned max)
{
	return find_spans(&segs->seg, sizeof(*segs), nsegs, off, len, spans, max);
}

void rr_chunk_return(const struct rr_chunk *offered, uint64_t used, struct rr_chunk *ret)
{
	ret->nsegs = offered->nsegs;
	for (uint32_t i = 0; i < offered->nsegs; i++) {
		struct rr_segment s = offered->segs[i];

		s.length = (uint32_t)MIN((uint64_t)s.length, used);
		used -= s.length;
		ret->segs[i] = s;
	}
	assert(used == 0);
}

int rr_chunk_check_returned(const struct rr_chunk *offered, const struct rr_chunk *returned,
			    uint64_t *ret_used)
{
	uint64_t used = 0;
	bool full = true; /* all segments so far are full */

	if (offered->nsegs != returned->nsegs)
		return -EPROTO;
	for (uint32_t i = 0; i < offered->nsegs; i++) {
		const struct rr_segment *o = &offered->segs[i], *r = &returned->segs[i];

		if (r->handle != o->handle || r->offset != o->offset || r->length > o->length)
			return -EPROTO;
		if (r->length && !full)
			return -EPROTO;
		full = full && r->length == o->length;
		used += r->length;
	}
	*ret_used = used;
	return 0;
}
