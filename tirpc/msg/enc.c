/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * enc.c - an XDR stream that encodes a message of unknown length, and leaves its bulk item where it is
 *
 * Operation:  pos <= len <= cap. A filter may move back and overwrite; `len` is the furthest position, and a filter
 *             cannot move beyond it, so bytes never written do not become part of a message.
 *             The pad of the bulk item follows it at once: any other operation meanwhile is refused, because the
 *             transport adds the pad.
 * See:        enc.h.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/wire.h"
#include "enc.h"

static struct rt_enc *of_xdr(XDR *xdrs)
{
	return xdrs->x_private;
}

/* Makes room for @n bytes at the position. */
static bool reserve_bytes(struct rt_enc *e, size_t n)
{
	size_t end;
	int err;

	if (e->err)
		return false;
	if (!add_size(e->pos, n, &end) || end > e->max) {
		e->err = -EMSGSIZE;
		return false;
	}
	if (likely(end <= e->cap))
		return true;
	err = e->grow(e, end);
	if (err) {
		e->err = err;
		return false;
	}
	assert(end <= e->cap);
	return true;
}

/* Takes the next @n bytes of the buffer, or returns NULL. */
static uint8_t *take_bytes(struct rt_enc *e, size_t n)
{
	uint8_t *at;

	if (e->pad || !reserve_bytes(e, n))
		return NULL;
	at = e->buf + e->pos;
	e->pos += n;
	e->len = MAX(e->len, e->pos);
	e->word_end = SIZE_MAX;
	return at;
}

static bool_t enc_putlong(XDR *xdrs, const long *lp)
{
	struct rt_enc *e = of_xdr(xdrs);
	uint8_t *at = take_bytes(e, 4);

	if (!at)
		return FALSE;
	put_be32(at, (uint32_t)*lp);
	e->word_end = e->pos;
	return TRUE;
}

/* An encoder has nothing to read. */
static bool_t enc_getlong(XDR *xdrs, long *lp)
{
	(void)xdrs;
	(void)lp;
	return FALSE;
}

static bool_t enc_getbytes(XDR *xdrs, char *to, u_int n)
{
	(void)xdrs;
	(void)to;
	(void)n;
	return FALSE;
}

/* Counts an item; returns true if it is the one that is bulk data. */
static bool count_item(struct rt_enc *e, u_int n)
{
	if (!e->item || !n || e->word_end != e->pos || get_be32(e->buf + e->pos - 4) != n)
		return false;
	return ++e->items == e->item && n >= e->threshold && !e->bulk.base;
}

static bool_t enc_putbytes(XDR *xdrs, const char *from, u_int n)
{
	struct rt_enc *e = of_xdr(xdrs);
	uint8_t *at;

	if (e->pad) {
		if (n > e->pad)
			return FALSE;
		e->pad -= n;
		return TRUE;
	}
	if (count_item(e, n)) {
		e->bulk = (struct rt_enc_bulk){ .base = from, .bytes = n, .pos = e->pos };
		e->pad = (uint32_t)(round_up4(n) - n);
		e->word_end = SIZE_MAX;
		return TRUE;
	}
	at = take_bytes(e, n);
	if (!at)
		return FALSE;
	if (n)
		memcpy(at, from, n);
	return TRUE;
}

static u_int enc_getpostn(XDR *xdrs)
{
	return (u_int)of_xdr(xdrs)->pos;
}

static bool_t enc_setpostn(XDR *xdrs, u_int pos)
{
	struct rt_enc *e = of_xdr(xdrs);

	if (e->pad || pos > e->len)
		return FALSE;
	e->pos = pos;
	e->word_end = SIZE_MAX;
	return TRUE;
}

/* NULL is no failure: the filter then writes word by word. */
static int32_t *enc_inline(XDR *xdrs, u_int n)
{
	struct rt_enc *e = of_xdr(xdrs);
	void *at;

	if (n % 4 || e->pos % _Alignof(int32_t))
		return NULL;
	at = take_bytes(e, n);
	if (at && n)
		e->word_end = e->pos; /* the last word may be a length: it is read when bytes follow */
	return at;
}

static const struct xdr_ops enc_ops = {
	.x_getlong = enc_getlong,
	.x_putlong = enc_putlong,
	.x_getbytes = enc_getbytes,
	.x_putbytes = enc_putbytes,
	.x_getpostn = enc_getpostn,
	.x_setpostn = enc_setpostn,
	.x_inline = enc_inline,
};

void rt_enc_init(struct rt_enc *e, void *buf, size_t cap, size_t max, int (*grow)(struct rt_enc *, size_t), void *ctx)
{
	assert(max <= UINT_MAX); /* XDR positions are unsigned ints */
	*e = (struct rt_enc){
		.xdr = { .x_op = XDR_ENCODE, .x_ops = &enc_ops },
		.buf = buf, .cap = cap, .max = max, .grow = grow ? grow : rt_enc_grow_heap, .ctx = ctx,
		.word_end = SIZE_MAX,
	};
	e->xdr.x_private = e;
}

void rt_enc_want_bulk(struct rt_enc *e, uint32_t item, uint32_t threshold)
{
	assert(!e->len);
	e->item = item;
	e->threshold = threshold;
}

int rt_enc_grow_heap(struct rt_enc *e, size_t bytes)
{
	size_t cap = MIN(MAX(bytes, 2 * e->cap), MAX(bytes, e->max));
	void *heap = realloc(e->heap, cap);

	if (!heap)
		return -ENOMEM;
	if (!e->heap && e->len)
		memcpy(heap, e->buf, e->len);
	e->heap = heap;
	e->buf = heap;
	e->cap = cap;
	return 0;
}

int rt_enc_run(struct rt_enc *e, xdrproc_t filter, const void *data)
{
	bool_t ok = filter(&e->xdr, data);

	if (e->err)
		return e->err;
	return ok && !e->pad ? 0 : -EINVAL;
}

void rt_enc_fini(struct rt_enc *e)
{
	free(e->heap);
	e->heap = NULL;
}
