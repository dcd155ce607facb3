/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * bulk.c - the table that names bulk items of a program's messages, and the memory that a caller presets for one
 *
 * Operation:  A row is found by binary search: a call looks it up once.
 *             rt_bulk_preset() encodes into a stream that keeps nothing. It only notes which memory the filter passes.
 * Threads:    A table does not change after rt_bulk_init().
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "bulk.h"

/* Size of a row in the first release. */
#define FIRST (offsetof(struct rpcrdma_bulk, reply_max) + sizeof(((struct rpcrdma_bulk *)0)->reply_max))

static int compare_u32(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_rows(const void *left, const void *right)
{
	const struct rpcrdma_bulk *a = left, *b = right;
	int order = compare_u32(a->prog, b->prog);

	if (!order)
		order = compare_u32(a->vers, b->vers);
	return order ? order : compare_u32(a->proc, b->proc);
}

static void fill_defaults(struct rpcrdma_bulk *row, size_t max_bytes)
{
	row->threshold = row->threshold ? row->threshold : RT_BULK_THRESHOLD;
	row->data_max = row->data_max ? row->data_max : (uint32_t)max_bytes;
	row->reply_max = row->reply_max ? row->reply_max : (uint32_t)max_bytes;
}

/* Copies a row of a program that was built for another release. Return: 0; -E2BIG: it sets a member unknown here */
static int copy_row(struct rpcrdma_bulk *to, const uint8_t *from, size_t bytes)
{
	for (size_t i = sizeof(*to); i < bytes; i++) {
		if (from[i])
			return -E2BIG;
	}
	memcpy(to, from, MIN(bytes, sizeof(*to)));
	return 0;
}

static int copy_rows(struct rt_bulk *b, const void *rows, size_t nrows, size_t row_bytes)
{
	for (size_t i = 0; i < nrows; i++) {
		int err = copy_row(&b->rows[i], (const uint8_t *)rows + i * row_bytes, row_bytes);

		if (err)
			return err;
	}
	return 0;
}

int rt_bulk_init(struct rt_bulk *b, const struct rpcrdma_bulk *rows, size_t nrows, size_t row_bytes, size_t max_bytes)
{
	int err;

	*b = (struct rt_bulk){ 0 };
	if (!nrows)
		return 0;
	if (!row_bytes)
		row_bytes = FIRST;
	if (row_bytes < FIRST)
		return -EINVAL;
	b->rows = calloc(nrows, sizeof(*rows));
	if (!b->rows)
		return -ENOMEM;
	b->nrows = nrows;
	err = copy_rows(b, rows, nrows, row_bytes);
	if (err) {
		rt_bulk_fini(b);
		return err;
	}
	qsort(b->rows, nrows, sizeof(*rows), compare_rows);
	for (size_t i = 0; i < nrows; i++) {
		struct rpcrdma_bulk *row = &b->rows[i];

		fill_defaults(row, max_bytes);
		if (row->data_max > RPCRDMA_TIRPC_MAX_BYTES || row->reply_max > RPCRDMA_TIRPC_MAX_BYTES ||
		    (i && !compare_rows(row - 1, row))) {
			rt_bulk_fini(b);
			return -EINVAL;
		}
	}
	return 0;
}

void rt_bulk_fini(struct rt_bulk *b)
{
	free(b->rows);
	*b = (struct rt_bulk){ 0 };
}

const struct rpcrdma_bulk *rt_bulk_find(const struct rt_bulk *b, uint32_t prog, uint32_t vers, uint32_t proc)
{
	const struct rpcrdma_bulk key = { .prog = prog, .vers = vers, .proc = proc };

	return b->nrows ? bsearch(&key, b->rows, b->nrows, sizeof(key), compare_rows) : NULL;
}

/* ---- the dry run ------------------------------------------------------------------------------------ */

struct probe {
	XDR xdr;
	uint32_t item, items;
	uint32_t word;   /* the last one, if nothing followed */
	bool has_word;
	size_t pos;
	const char *base;
	uint32_t bytes;
	int32_t words[64]; /* that x_inline lends */
	u_int lent;        /* bytes of it that a filter has filled in by now */
};

static struct probe *of_xdr(XDR *xdrs)
{
	return xdrs->x_private;
}

static bool_t probe_putlong(XDR *xdrs, const long *lp)
{
	struct probe *p = of_xdr(xdrs);

	p->word = (uint32_t)*lp;
	p->has_word = true;
	p->lent = 0;
	p->pos += 4;
	return TRUE;
}

static bool_t probe_getlong(XDR *xdrs, long *lp)
{
	(void)xdrs;
	(void)lp;
	return FALSE;
}

static bool_t probe_getbytes(XDR *xdrs, char *to, u_int n)
{
	(void)xdrs;
	(void)to;
	(void)n;
	return FALSE;
}

static bool_t probe_putbytes(XDR *xdrs, const char *from, u_int n)
{
	struct probe *p = of_xdr(xdrs);
	bool is_item = n && p->has_word && p->word == n;

	if (p->lent)
		is_item = n && ntohl((uint32_t)p->words[p->lent / 4 - 1]) == n;
	p->has_word = false;
	p->lent = 0;
	p->pos += n;
	if (!is_item)
		return TRUE;
	if (++p->items < p->item)
		return TRUE;
	p->base = from;
	p->bytes = n;
	return FALSE; /* the filter has shown enough */
}

static u_int probe_getpostn(XDR *xdrs)
{
	return (u_int)of_xdr(xdrs)->pos;
}

static bool_t probe_setpostn(XDR *xdrs, u_int pos)
{
	(void)xdrs;
	(void)pos;
	return FALSE; /* nothing is kept that could be replaced */
}

static int32_t *probe_inline(XDR *xdrs, u_int n)
{
	struct probe *p = of_xdr(xdrs);

	if (!n || n % 4 || n > sizeof(p->words))
		return NULL;
	p->has_word = false;
	p->lent = n;
	p->pos += n;
	return p->words;
}

static const struct xdr_ops probe_ops = {
	.x_getlong = probe_getlong,
	.x_putlong = probe_putlong,
	.x_getbytes = probe_getbytes,
	.x_putbytes = probe_putbytes,
	.x_getpostn = probe_getpostn,
	.x_setpostn = probe_setpostn,
	.x_inline = probe_inline,
};

void *rt_bulk_preset(xdrproc_t filter, const void *results, uint32_t item, size_t *ret_bytes)
{
	struct probe p = { .xdr = { .x_op = XDR_ENCODE, .x_ops = &probe_ops }, .item = item };

	p.xdr.x_private = &p;
	(void)filter(&p.xdr, results); /* TRUE or FALSE: it has shown its items */
	*ret_bytes = p.bytes;
	return (void *)(uintptr_t)p.base;
}
