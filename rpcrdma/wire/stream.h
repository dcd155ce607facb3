/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stream.h - an XDR stream over one buffer that takes the payload out (RFC 8166 section 3.4)
 *
 * Operation:  Encoding: everything lands contiguously in the caller's buffer except the marked
 *             payload, of which only the length word is written; where it belongs and where its
 *             bytes are is remembered. The transport joins the parts or sends them apart. XDR
 *             positions are positions in the buffer; that of the payload equals its offset in the
 *             un-reduced message, since there is at most one.
 *
 *             Decoding: the buffer holds the message, whole or with its payload elsewhere.
 *             `away` says how the payload is missing:
 *               RR_AWAY_NONE   nothing is missing
 *               RR_AWAY_CHUNK  `chunk_bytes` at `chunk_position` lie in a chunk; the opaque's
 *                              length word must agree (a Read chunk may include the pad)
 *               RR_AWAY_TAIL   the buffer is the first part of a longer record of `total` bytes:
 *                              a payload that starts inside and reaches beyond it is accepted if
 *                              it is the last item; any other read past the end sets `short_read`
 *               RR_AWAY_OPEN   the same, but of the record's end only a limit is known: `total`
 * Memory:     Never allocates. Payload bytes found in the buffer are pointed at, not copied.
 * Threads:    One at a time.
 * Errors:     FALSE from the filters; `overflow` (encode: buffer too small), `short_read`,
 *             `mismatch` (chunk against length word: GARBAGE_ARGS) say why.
 */
#ifndef RR_STREAM_H
#define RR_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "rpcrdma_payload.h"

enum rr_away { RR_AWAY_NONE, RR_AWAY_CHUNK, RR_AWAY_TAIL, RR_AWAY_OPEN };

/* chunk_position of a Write chunk, which has none on the wire: it belongs to the payload of the
 * results wherever that is, and its bytes must equal the length word, without the pad. */
#define RR_STREAM_ANY_POSITION SIZE_MAX

struct rr_stream {
	XDR xdr; /* hand &s->xdr to filters; x_private points back here */
	uint8_t *buf;
	size_t cap;  /* encode: room. decode: bytes present */
	size_t pos;

	/* encode: filled when a payload was marked. decode: likewise, for the transport */
	bool has_payload;
	struct rpcrdma_payload payload; /* copy of what the codec marked */
	size_t payload_pos;             /* offset of its first byte */

	/* decode, set before the filters run */
	enum rr_away away;
	size_t chunk_position, chunk_bytes;
	size_t total;
	bool chunk_used;                /* the chunk met its item */
	size_t payload_here;            /* payload bytes that are in buf from payload_pos on */

	bool overflow, short_read, mismatch;
};

void rr_stream_encode(struct rr_stream *s, void *buf, size_t cap);
void rr_stream_decode(struct rr_stream *s, void *buf, size_t len);
void rr_stream_decode_chunk(struct rr_stream *s, void *buf, size_t len, size_t position,
			    size_t chunk_bytes);
void rr_stream_decode_tail(struct rr_stream *s, void *buf, size_t len, size_t total);
void rr_stream_decode_open(struct rr_stream *s, void *buf, size_t len, size_t max);

/** rr_stream_len - encode: bytes of the reduced message so far */
static inline size_t rr_stream_len(const struct rr_stream *s)
{
	return s->pos;
}

/** rr_stream_bytes - encode: bytes of the un-reduced message: reduced + payload + pad */
size_t rr_stream_bytes(const struct rr_stream *s);

/** rr_stream_decode_done - after the filters succeeded: was everything consumed that had to be?
 *
 * Return: 0; -EBADMSG if a chunk met no eligible item (protocol.md 4.1).
 */
must_check int rr_stream_decode_done(const struct rr_stream *s);

#endif
