/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * chunk.h - checks chunk lists and finds the remote ranges of payload bytes
 *
 * The first pass (hdr.c) makes sure that the lists are well-formed. This one checks sums, positions and
 * capacities before any RDMA operation is posted (protocol.md 7.1). The other functions rely on these checks.
 */
#ifndef RR_CHUNK_H
#define RR_CHUNK_H

#include "hdr.h"

/* Result of rr_chunk_check_reads(). */
struct rr_read_info {
	bool has_pzrc;             /* position-zero chunk: the peer holds the whole call */
	uint32_t pzrc_first, pzrc_nsegs, pzrc_bytes;
	bool has_item;             /* one other chunk: the reduced argument */
	uint32_t item_first, item_nsegs, item_bytes, item_position;
};

/** rr_chunk_check_reads - checks the read list of a call and sums it up
 * @h: decoded header of a call
 * @inline_bytes: bytes of the RPC message after the header
 * @bytes_max: upper bound of one call, chunks and inline bytes together
 *
 * Segments of one position form one chunk, in list order, and must be adjacent. Zero-length segments are
 * allowed and skipped. Refuses: more than one non-zero position, a position beyond the inline bytes of an
 * RDMA_MSG, NOMSG without a position-zero chunk, sums over @bytes_max, an offset + length that wraps, an RDMA_MSG
 * without RPC bytes or with a position-zero chunk, and a position-zero chunk too short for a call or not a multiple of
 * four. Ignores bytes after the header of an RDMA_NOMSG.
 *
 * Return: 0 with *ret set, or -EBADMSG (ERR_CHUNK).
 */
must_check int rr_chunk_check_reads(const struct rr_hdr *h, size_t inline_bytes,
				    uint32_t bytes_max, struct rr_read_info *ret);

/** rr_chunk_bytes - returns the capacity of a Write or Reply chunk that rr_chunk_check_writes() accepted */
uint64_t rr_chunk_bytes(const struct rr_chunk *c);

/** rr_chunk_check_writes - checks Write list and Reply chunk: no wrap of offset + length, sums bounded
 * @bytes_max: upper bound of one chunk
 *
 * Return: 0, or -EBADMSG.
 */
must_check int rr_chunk_check_writes(const struct rr_hdr *h, uint64_t bytes_max);

/* One contiguous remote range, for a single RDMA operation. */
struct rr_span {
	uint32_t handle;
	uint64_t offset;
	uint32_t length;
	uint32_t skip; /* bytes of the requested range that precede this span */
};

/** rr_chunk_spans - finds the remote ranges of bytes [off, off+len) of a chunk's concatenated segments
 * @segs, @nsegs: segments that passed rr_chunk_check_writes()
 * @len: 0 yields no span
 * @spans, @max: receives at most @max spans, in order; no span has length zero
 *
 * Return: number of spans; -EMSGSIZE if the range exceeds the chunk; -ENOBUFS if @max is too small: the first
 * @max spans are filled.
 */
must_check int rr_chunk_spans(const struct rr_segment *segs, unsigned nsegs, uint64_t off,
			      uint32_t len, struct rr_span *spans, unsigned max);
/** rr_chunk_read_spans - does the same for a Read chunk: @nsegs entries of a read list from @segs on */
must_check int rr_chunk_read_spans(const struct rr_read_seg *segs, unsigned nsegs, uint64_t off,
				   uint32_t len, struct rr_span *spans, unsigned max);

/** rr_chunk_return - fills the reply's copy of an offered chunk: every segment, same handle and offset, length
 * := bytes written there when @used bytes in all were placed from its start (RFC 8166 3.4.6)
 * @used: <= rr_chunk_bytes(@offered), without the XDR pad
 * @ret: may be @offered itself
 */
void rr_chunk_return(const struct rr_chunk *offered, uint64_t used, struct rr_chunk *ret);

/** rr_chunk_check_returned - checks a returned chunk at the requester
 *
 * Return: 0 with *ret_used set; -EPROTO (fail the call and drop the connection) if count, handle or offset differ, a
 * length exceeds the offer, or a segment is used before its predecessors are full.
 */
must_check int rr_chunk_check_returned(const struct rr_chunk *offered,
				       const struct rr_chunk *returned, uint64_t *ret_used);

#endif
