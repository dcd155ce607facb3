/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stream.h - an XDR stream over one buffer that keeps the payload out (RFC 8166 section 3.4)
 *
 * Operation:  Encoding: writes everything contiguously into the caller's buffer except the marked payload. Of
 *             that it writes only the length word and records its position and its memory. The transport joins
 *             the parts or sends them separately. XDR positions are positions in the buffer. That of the
 *             payload equals its offset in the un-reduced message, since there is at most one.
 *
 *             Decoding: the buffer holds the message, whole or without its payload.
 *             `away` says where the payload is:
 *               RR_AWAY_NONE   in the buffer
 *               RR_AWAY_CHUNK  `chunk_bytes` at `chunk_position` lie in a chunk; the opaque's
 *                              length word must agree (a Read chunk may include the pad)
 *               RR_AWAY_TAIL   the buffer is the first part of a longer record of `total` bytes:
 *                              a payload that starts inside and extends beyond it is accepted if
 *                              it is the last item; any other read past the end sets `short_read`
 *               RR_AWAY_OPEN   the same, but `total` is only an upper bound of the record
 * Memory:     Never allocates. Payload bytes found in the buffer are referenced, not copied.
 * Threads:    One at a time.
 * Errors:     Filters return FALSE; `overflow` (encode: buffer too small), `short_read`,
 *             `mismatch` (chunk differs from length word: GARBAGE_ARGS) give the reason.
 */
#ifndef RR_STREAM_H
#define RR_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "rpcrdma_payload.h"

enum rr_away { RR_AWAY_NONE, RR_AWAY_CHUNK, RR_AWAY_TAIL, RR_AWAY_OPEN };

/* chunk_position of a Write chunk, which has none on the wire. The chunk belongs to the payload of the results
 * at any position, and its bytes must equal the length word, without the pad. */
#define RR_STREAM_ANY_POSITION SIZE_MAX

struct rr_stream {
	XDR xdr; /* pass &s->xdr to filters; x_private points back here */
	uint8_t *buf;
	size_t cap;  /* encode: capacity. decode: bytes present */
	size_t pos;

	/* encode and decode: filled when the codec marked a payload */
	bool has_payload;
	struct rpcrdma_payload payload; /* copy of the marked payload; zero without one */
	size_t payload_pos;             /* offset of its first byte */

	/* decode, set before the filters run */
	enum rr_away away;
	size_t chunk_position, chunk_bytes;
	size_t total;
	bool chunk_used;                /* the chunk matched its item */
	size_t payload_here;            /* payload bytes that are in buf from payload_pos on */

	bool overflow, short_read, mismatch;
	bool past_end;                  /* with short_read: a payload's length reaches past the end of the message;
	                                 * RR_AWAY_OPEN: past its upper bound */
};

/** rr_stream_encode - starts encoding into @buf, of @cap bytes; at most UINT_MAX, as @len below */
void rr_stream_encode(struct rr_stream *s, void *buf, size_t cap);

/** rr_stream_decode - starts decoding a complete message of @len bytes */
void rr_stream_decode(struct rr_stream *s, void *buf, size_t len);

/** rr_stream_decode_chunk - starts decoding a message with its payload in a chunk
 * @buf: the message without that payload and its pad, @len bytes
 * @position: of a Read chunk; RR_STREAM_ANY_POSITION for a Write chunk
 * @chunk_bytes: bytes in the chunk
 */
void rr_stream_decode_chunk(struct rr_stream *s, void *buf, size_t len, size_t position,
			    size_t chunk_bytes);

/** rr_stream_decode_tail - starts decoding the first @len bytes of a record of @total */
void rr_stream_decode_tail(struct rr_stream *s, void *buf, size_t len, size_t total);

/** rr_stream_decode_open - starts decoding the first @len bytes of a record of at most @max */
void rr_stream_decode_open(struct rr_stream *s, void *buf, size_t len, size_t max);

/** rr_stream_len - encode: returns the bytes of the reduced message so far */
static inline size_t rr_stream_len(const struct rr_stream *s)
{
	return s->pos;
}

/** rr_stream_bytes - encode: returns the bytes of the un-reduced message: reduced + payload + pad */
size_t rr_stream_bytes(const struct rr_stream *s);

/** rr_stream_decode_done - checks, after the filters succeeded, that a chunk was consumed
 *
 * Return: 0; -EBADMSG if a chunk matched no eligible item (protocol.md 4.1).
 */
must_check int rr_stream_decode_done(const struct rr_stream *s);

#endif
