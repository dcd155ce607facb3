/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stream.c - an XDR stream over one buffer that keeps the payload out (RFC 8166 section 3.4)
 *
 * Operation:  libtirpc's filters and those made by rpcgen use the stream through struct xdr_ops, as a plain
 *             memory stream. Only rpcrdma_xdr_payload() recognizes our stream by its ops. It then leaves the
 *             payload in place (encoding) or finds its location (decoding). On any other stream it copies, so
 *             one codec serves all streams.
 * Memory:     Never allocates. s->pos never exceeds s->cap. s->xdr.x_handy is the furthest position of an
 *             encoder; x_setpostn does not go beyond it, so bytes never written cannot become part of a
 *             message.
 * Threads:    One at a time; a stream has no global state.
 * Errors:     Filters return FALSE; overflow, short_read and mismatch in the stream give the reason. FALSE with
 *             none of them set means that the codec refused (a bound, an enum, a second payload).
 * See:        protocol.md sections 1.3, 1.4; xdr(3).
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/checked.h"
#include "base/wire.h"
#include "stream.h"

static struct rr_stream *of_xdr(XDR *xdrs)
{
	return xdrs->x_private;
}

/* Takes the next @n bytes of the buffer; or returns NULL and sets the reason. */
static uint8_t *take(struct rr_stream *s, size_t n)
{
	uint8_t *at = s->buf + s->pos;

	if (n > s->cap - s->pos) {
		if (s->xdr.x_op == XDR_ENCODE)
			s->overflow = true;
		else
			s->short_read = true;
		return NULL;
	}
	s->pos += n;
	if (s->pos > s->xdr.x_handy)
		s->xdr.x_handy = (u_int)s->pos;
	return at;
}

static bool_t stream_getlong(XDR *xdrs, long *lp)
{
	const uint8_t *at = take(of_xdr(xdrs), 4);

	if (!at)
		return FALSE;
	*lp = (long)(int32_t)get_be32(at);
	return TRUE;
}

static bool_t stream_putlong(XDR *xdrs, const long *lp)
{
	uint8_t *at = take(of_xdr(xdrs), 4);

	if (!at)
		return FALSE;
	put_be32(at, (uint32_t)*lp);
	return TRUE;
}

static bool_t stream_getbytes(XDR *xdrs, char *to, u_int n)
{
	const uint8_t *at = take(of_xdr(xdrs), n);

	if (!at)
		return FALSE;
	if (n)
		memcpy(to, at, n);
	return TRUE;
}

static bool_t stream_putbytes(XDR *xdrs, const char *from, u_int n)
{
	uint8_t *at = take(of_xdr(xdrs), n);

	if (!at)
		return FALSE;
	if (n)
		memcpy(at, from, n);
	return TRUE;
}

static u_int stream_getpostn(XDR *xdrs)
{
	return (u_int)of_xdr(xdrs)->pos;
}

static bool_t stream_setpostn(XDR *xdrs, u_int pos)
{
	struct rr_stream *s = of_xdr(xdrs);
	size_t end = xdrs->x_op == XDR_ENCODE ? xdrs->x_handy : s->cap;

	if (pos > end)
		return FALSE;
	s->pos = pos;
	return TRUE;
}

/* Generated code accesses runs of words through the returned pointer. NULL is no failure: the code then
 * accesses them one by one, and the first one that does not fit sets the reason. */
static int32_t *stream_inline(XDR *xdrs, u_int n)
{
	struct rr_stream *s = of_xdr(xdrs);
	void *at = s->buf + s->pos;

	if (n % 4 || n > s->cap - s->pos || (uintptr_t)at % _Alignof(int32_t))
		return NULL;
	return (int32_t *)(void *)take(s, n);
}

/* Without x_destroy and x_control: XDR_DESTROY() and XDR_CONTROL() do nothing then. */
static const struct xdr_ops stream_ops = {
	.x_getlong = stream_getlong,
	.x_putlong = stream_putlong,
	.x_getbytes = stream_getbytes,
	.x_putbytes = stream_putbytes,
	.x_getpostn = stream_getpostn,
	.x_setpostn = stream_setpostn,
	.x_inline = stream_inline,
};

static void stream_init(struct rr_stream *s, enum xdr_op op, void *buf, size_t cap)
{
	assert(cap <= UINT_MAX); /* XDR positions are unsigned ints */
	memset(s, 0, sizeof(*s));
	s->xdr.x_op = op;
	s->xdr.x_ops = &stream_ops;
	s->xdr.x_private = s;
	s->buf = buf;
	s->cap = cap;
}

void rr_stream_encode(struct rr_stream *s, void *buf, size_t cap)
{
	stream_init(s, XDR_ENCODE, buf, cap);
}

void rr_stream_decode(struct rr_stream *s, void *buf, size_t len)
{
	stream_init(s, XDR_DECODE, buf, len);
}

void rr_stream_decode_chunk(struct rr_stream *s, void *buf, size_t len, size_t position,
			    size_t chunk_bytes)
{
	stream_init(s, XDR_DECODE, buf, len);
	s->away = RR_AWAY_CHUNK;
	s->chunk_position = position;
	s->chunk_bytes = chunk_bytes;
}

void rr_stream_decode_tail(struct rr_stream *s, void *buf, size_t len, size_t total)
{
	stream_init(s, XDR_DECODE, buf, len);
	s->away = RR_AWAY_TAIL;
	s->total = total;
}

void rr_stream_decode_open(struct rr_stream *s, void *buf, size_t len, size_t max)
{
	stream_init(s, XDR_DECODE, buf, len);
	s->away = RR_AWAY_OPEN;
	s->total = max;
}

size_t rr_stream_bytes(const struct rr_stream *s)
{
	return s->pos + (s->has_payload ? round_up4(s->payload.length) : 0);
}

int rr_stream_decode_done(const struct rr_stream *s)
{
	return s->away == RR_AWAY_CHUNK && !s->chunk_used ? -EBADMSG : 0;
}

/* Copies the marked payload; if its iov is its own `here`, so is that of the copy. */
static void note_payload(struct rr_stream *s, const struct rpcrdma_payload *p, size_t pos)
{
	s->has_payload = true;
	s->payload = *p;
	if (p->iov == &p->here)
		s->payload.iov = &s->payload.here;
	s->payload_pos = pos;
}

static bool_t stream_mark(struct rr_stream *s, const struct rpcrdma_payload *p)
{
	uint8_t *at = take(s, 4);

	if (!at)
		return FALSE;
	put_be32(at, p->length);
	note_payload(s, p, s->pos);
	return TRUE;
}

/* Describes a payload in the buffer, or its first bytes there. */
static void find_here(struct rr_stream *s, struct rpcrdma_payload *p, size_t here)
{
	if (here == p->length) {
		p->here.iov_base = s->buf + s->pos;
		p->here.iov_len = here;
		p->iov = &p->here;
		p->iovcnt = 1;
	}
	s->payload_here = here;
}

static bool chunk_is_here(const struct rr_stream *s)
{
	return s->away == RR_AWAY_CHUNK &&
	       (s->chunk_position == RR_STREAM_ANY_POSITION || s->chunk_position == s->pos);
}

/* A Read chunk may hold the pad, a Write chunk never does (protocol.md 1.3, 1.4). */
static bool chunk_agrees(const struct rr_stream *s, uint32_t length)
{
	if (s->chunk_bytes == length)
		return true;
	return s->chunk_position != RR_STREAM_ANY_POSITION && s->chunk_bytes == round_up4(length);
}

static bool reaches_past_end(const struct rr_stream *s, size_t bytes)
{
	bool is_part = s->away == RR_AWAY_TAIL || s->away == RR_AWAY_OPEN;
	size_t end;

	return !add_size(s->pos, bytes, &end) || end > (is_part ? s->total : s->cap);
}

static bool_t stream_find(struct rr_stream *s, struct rpcrdma_payload *p, uint32_t max)
{
	const uint8_t *word = take(s, 4);
	size_t left, whole, pos = s->pos, end;

	if (!word)
		return FALSE;
	*p = (struct rpcrdma_payload){ .length = get_be32(word) };
	if (p->length > max)
		return FALSE;

	left = s->cap - pos;
	whole = round_up4(p->length);
	if (chunk_is_here(s)) {
		if (!chunk_agrees(s, p->length)) {
			s->mismatch = true;
			return FALSE;
		}
		s->chunk_used = true;
	} else if (whole <= left) {
		find_here(s, p, p->length);
		s->pos += whole;
	} else if (add_size(pos, whole, &end) && ((s->away == RR_AWAY_TAIL && end == s->total) ||
						  (s->away == RR_AWAY_OPEN && end <= s->total))) {
		find_here(s, p, MIN((size_t)p->length, left));
		s->pos = s->cap;
	} else {
		s->short_read = true;
		s->past_end = reaches_past_end(s, whole);
		return FALSE;
	}
	note_payload(s, p, pos);
	return TRUE;
}

static bool iov_holds(const struct rpcrdma_payload *p, uint32_t length)
{
	uint64_t sum = 0;

	for (int i = 0; i < p->iovcnt && sum < length; i++)
		sum += p->iov[i].iov_len;
	return sum >= length;
}

/* Other streams: plain copies through their own ops. */

static bool_t foreign_bytes(XDR *xdrs, char *bytes, u_int n)
{
	if (!n)
		return TRUE;
	return xdrs->x_op == XDR_ENCODE ? XDR_PUTBYTES(xdrs, bytes, n) : XDR_GETBYTES(xdrs, bytes, n);
}

static bool_t foreign_copy(XDR *xdrs, const struct rpcrdma_payload *p)
{
	uint32_t left = p->length;
	char pad[4] = { 0 };

	for (int i = 0; left; i++) {
		u_int n = (u_int)MIN(p->iov[i].iov_len, (size_t)left);

		if (!foreign_bytes(xdrs, p->iov[i].iov_base, n))
			return FALSE;
		left -= n;
	}
	return foreign_bytes(xdrs, pad, (u_int)(round_up4(p->length) - p->length));
}

static bool_t foreign_payload(XDR *xdrs, struct rpcrdma_payload *p, uint32_t max)
{
	uint32_t length = p->length;

	/* an item that cannot be written completely adds nothing to the message */
	if (xdrs->x_op == XDR_ENCODE && !iov_holds(p, length))
		return FALSE;
	if (!xdr_u_int(xdrs, &length) || length > max || !iov_holds(p, length))
		return FALSE;
	p->length = length;
	return foreign_copy(xdrs, p);
}

/** rpcrdma_xdr_payload - XDR filter of a payload: length word, bytes, pad (RFC 4506 section 4.10)
 * @xdrs: any XDR stream; ours copies nothing
 * @p: see rpcrdma_payload.h
 * @max: largest length allowed
 *
 * Return: TRUE, or FALSE if the length exceeds @max, the stream is at its end, a message has a second payload,
 * a chunk disagrees with the length, the iov to encode is shorter than the length, or @p has no room on a stream of
 * another kind.
 */
bool_t rpcrdma_xdr_payload(XDR *xdrs, struct rpcrdma_payload *p, uint32_t max)
{
	struct rr_stream *s;

	if (xdrs->x_op == XDR_FREE)
		return TRUE;
	if (xdrs->x_op == XDR_ENCODE && (p->length > max || (p->iovcnt && !iov_holds(p, p->length))))
		return FALSE;
	if (xdrs->x_ops != &stream_ops)
		return foreign_payload(xdrs, p, max);
	s = of_xdr(xdrs);
	if (s->has_payload)
		return FALSE;
	return xdrs->x_op == XDR_ENCODE ? stream_mark(s, p) : stream_find(s, p, max);
}
