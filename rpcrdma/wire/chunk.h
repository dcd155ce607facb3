/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * chunk.h - sense of the chunk lists: sums, positions, capacities, and where byte n lies
 *
 * The first pass (hdr.c) made sure the lists are well-formed; this one checks what they say before
 * any RDMA operation is posted (protocol.md 7.1) and then answers questions about them without
 * further checks.
 */
#ifndef RR_CHUNK_H
#define RR_CHUNK_H

#include "hdr.h"

/* What the read list of a call comes to. */
struct rr_read_info {
	bool has_pzrc;             /* position-zero chunk: the whole call lies at the peer */
	uint32_t pzrc_first, pzrc_nsegs, pzrc_bytes;
	bool has_item;             /* one further chunk: the reduced argument */
	uint32_t item_first, item_nsegs, item_bytes, item_position;
};

/** rr_chunk_check_reads - understand the read list of a call
 * @h: decoded header of a call
 * @inline_bytes: bytes of RPC message that followed the header
 * @bytes_max: the most one call may be in all
 *
 * Segments of one position are one chunk, in list order, and must stand together; zero-length
 * segments are allowed and skipped. More than one non-zero position, a position beyond the inline
 * bytes of an RDMA_MSG, NOMSG without a position-zero chunk, sums over @bytes_max, offset + length
 * that wraps: refused.
 *
 * Return: 0, or -EBADMSG (ERR_CHUNK).
 */
must_check int rr_chunk_check_reads(const struct rr_hdr *h, size_t inline_bytes,
				    uint32_t bytes_max, struct rr_read_info *ret);

/** rr_chunk_bytes - capacity of a Write or Reply chunk; checked by rr_chunk_check_writes */
uint64_t rr_chunk_bytes(const struct rr_chunk *c);

/** rr_chunk_check_writes - Write list and Reply chunk: no wrap of offset + length, sums bounded
 *
 * Return: 0, or -EBADMSG.
 */
must_check int rr_chunk_check_writes(const struct rr_hdr *h, uint64_t bytes_max);

/* One contiguous remote piece: what a single RDMA operation covers. */
struct rr_span {
	uint32_t handle;
	uint64_t offset;
	uint32_t length;
	uint32_t skip; /* bytes of the range asked for that come before this piece */
};

/** rr_chunk_spans - remote pieces of bytes [off, off+len) of a chunk's concatenated segments
 * @segs, @nsegs: a chunk's segments (rr_read_info indexes .seg of reads: see rr_chunk_read_spans)
 * @spans, @max: receives at most @max pieces, in order
 *
 * Return: number of pieces; -EMSGSIZE if the range exceeds the chunk; -ENOBUFS if @max is short: the first
 * @max of them are filled.
 */
must_check int rr_chunk_spans(const struct rr_segment *segs, unsigned nsegs, uint64_t off,
			      uint32_t len, struct rr_span *spans, unsigned max);
must_check int rr_chunk_read_spans(const struct rr_read_seg *segs, unsigned nsegs, uint64_t off,
				   uint32_t len, struct rr_span *spans, unsigned max);

/** rr_chunk_return - what a reply says of an offered chunk: every segment, same handle and offset,
 * length := bytes written there when @used bytes in all were placed from its start (RFC 8166 3.4.6)
 * @used: <= rr_chunk_bytes(@offered)
 */
void rr_chunk_return(const struct rr_chunk *offered, uint64_t used, struct rr_chunk *ret);

/** rr_chunk_check_returned - the requester's side of it
 *
 * Return: 0 with *ret_used set; -EPROTO if count, handle or offset differ, a length exceeds the
 * offer, or a segment was used before the ones in front of it were full.
 */
must_check int rr_chunk_check_returned(const struct rr_chunk *offered,
				       const struct rr_chunk *returned, uint64_t *ret_used);

#endif
