/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dec.c - an XDR stream that decodes a message whose bulk item lies elsewhere
 *
 * Operation:  The message has up to four spans: head, bulk item, pad, rest. find_span() returns the one at the position.
 *             As long as the item has not been found, the head is the whole buffer.
 * See:        dec.h.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/wire.h"
#include "dec.h"

static const uint8_t zeros[4];

struct span {
	const uint8_t *at;
	size_t left;
	bool is_bulk;
};

static struct rt_dec *of_xdr(XDR *xdrs)
{
	return xdrs->x_private;
}

static size_t bulk_end(const struct rt_dec *d)
{
	return d->bulk_pos + round_up4(d->bulk_bytes);
}

static size_t total_bytes(const struct rt_dec *d)
{
	return d->bulk_pos == SIZE_MAX ? d->len : d->len + round_up4(d->bulk_bytes);
}

static struct span find_span(const struct rt_dec *d, size_t pos)
{
	size_t at;

	if (pos < d->bulk_pos) {
		size_t end = MIN(d->bulk_pos, d->len);

		return (struct span){ .at = d->buf + pos, .left = end - pos };
	}
	at = pos - d->bulk_pos;
	if (at < d->bulk_bytes)
		return (struct span){ .at = d->bulk + at, .left = d->bulk_bytes - at, .is_bulk = true };
	if (pos < bulk_end(d))
		return (struct span){ .at = zeros, .left = bulk_end(d) - pos };
	at = pos - round_up4(d->bulk_bytes);
	return (struct span){ .at = d->buf + at, .left = d->len - at };
}

static bool overlap(const void *a, size_t an, const void *b, size_t bn)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return x < y + bn && y < x + an;
}

/* Copies the next @n bytes, which are there. */
static void read_bytes(struct rt_dec *d, uint8_t *to, size_t n)
{
	while (n) {
		struct span s = find_span(d, d->pos);
		size_t m = MIN(n, s.left);

		if (s.at != to) {
			memmove(to, s.at, m);
			d->copied += s.is_bulk ? m : 0;
		}
		d->pos += m;
		to += m;
		n -= m;
	}
}

static bool has_bytes(const struct rt_dec *d, size_t n)
{
	return n <= total_bytes(d) - d->pos;
}

static bool_t dec_getlong(XDR *xdrs, long *lp)
{
	struct rt_dec *d = of_xdr(xdrs);
	uint8_t word[4];

	if (!has_bytes(d, 4))
		return FALSE;
	if (d->bulk_pos == SIZE_MAX) {
		*lp = (long)(int32_t)get_be32(d->buf + d->pos);
		d->pos += 4;
	} else {
		read_bytes(d, word, 4);
		*lp = (long)(int32_t)get_be32(word);
	}
	d->word_end = d->pos;
	return TRUE;
}

/* A decoder has nowhere to write. */
static bool_t dec_putlong(XDR *xdrs, const long *lp)
{
	(void)xdrs;
	(void)lp;
	return FALSE;
}

static bool_t dec_putbytes(XDR *xdrs, const char *from, u_int n)
{
	(void)xdrs;
	(void)from;
	(void)n;
	return FALSE;
}

static bool is_item(const struct rt_dec *d, u_int n)
{
	struct span word;

	if (!n || d->word_end != d->pos || d->pos < 4)
		return false;
	word = find_span(d, d->pos - 4);
	return word.left >= 4 && get_be32(word.at) == n;
}

/* Counts an item of @n bytes. Sets bulk_pos if it is the expected one. */
static bool count_item(struct rt_dec *d, u_int n)
{
	if (!is_item(d, n) || ++d->items != d->item || !d->bulk)
		return true;
	if (n != d->bulk_bytes) {
		d->why = "the peer placed more or fewer bytes than the length of the item says";
		return false;
	}
	d->bulk_pos = d->pos;
	return true;
}

static bool_t dec_getbytes(XDR *xdrs, char *to, u_int n)
{
	struct rt_dec *d = of_xdr(xdrs);
	bool at_bulk;

	if (!count_item(d, n) || !has_bytes(d, n))
		return FALSE;
	if (to == d->preset && n > d->preset_bytes) {
		d->why = "an item is longer than the memory that the caller has set for it";
		return FALSE;
	}
	at_bulk = d->pos == d->bulk_pos && (const uint8_t *)to == d->bulk;
	if (d->bulk && !at_bulk && (d->bulk_pos == SIZE_MAX || d->pos < bulk_end(d)) &&
	    overlap(to, n, d->bulk, d->bulk_bytes)) {
		d->why = "the memory that the caller has set is of another item than the table names";
		return FALSE;
	}
	read_bytes(d, (uint8_t *)to, n);
	d->word_end = SIZE_MAX;
	return TRUE;
}

static u_int dec_getpostn(XDR *xdrs)
{
	return (u_int)of_xdr(xdrs)->pos;
}

static bool_t dec_setpostn(XDR *xdrs, u_int pos)
{
	struct rt_dec *d = of_xdr(xdrs);

	if (pos > total_bytes(d))
		return FALSE;
	d->pos = pos;
	d->word_end = SIZE_MAX;
	return TRUE;
}

/* NULL is no failure: the filter then reads word by word. Filters only read what they get here. */
static int32_t *dec_inline(XDR *xdrs, u_int n)
{
	struct rt_dec *d = of_xdr(xdrs);
	struct span s;

	if (!n || n % 4 || !has_bytes(d, n))
		return NULL;
	s = find_span(d, d->pos);
	if (s.left < n || (uintptr_t)s.at % _Alignof(int32_t))
		return NULL;
	d->pos += n;
	d->word_end = d->pos;
	return (int32_t *)(uintptr_t)s.at;
}

static const struct xdr_ops dec_ops = {
	.x_getlong = dec_getlong,
	.x_putlong = dec_putlong,
	.x_getbytes = dec_getbytes,
	.x_putbytes = dec_putbytes,
	.x_getpostn = dec_getpostn,
	.x_setpostn = dec_setpostn,
	.x_inline = dec_inline,
};

void rt_dec_init(struct rt_dec *d, const void *buf, size_t len)
{
	assert(len <= UINT_MAX / 2); /* XDR positions are unsigned ints, and the bulk item counts */
	*d = (struct rt_dec){
		.xdr = { .x_op = XDR_DECODE, .x_ops = &dec_ops },
		.buf = buf, .len = len, .bulk_pos = SIZE_MAX, .word_end = SIZE_MAX,
	};
	d->xdr.x_private = d;
}

void rt_dec_expect(struct rt_dec *d, uint32_t item, const void *bulk, uint32_t bytes)
{
	assert(!d->pos && !d->bulk && item);
	if (bytes) {
		d->bulk = bulk;
		d->bulk_bytes = bytes;
		d->item = item;
	}
}

bool rt_dec_is_complete(struct rt_dec *d)
{
	if (!d->bulk || d->bulk_pos != SIZE_MAX)
		return true;
	d->why = "the results have no item for the bytes that the peer placed";
	return false;
}

int rt_dec_run(struct rt_dec *d, xdrproc_t filter, void *data)
{
	return filter(&d->xdr, data) && rt_dec_is_complete(d) ? 0 : -EBADMSG;
}
