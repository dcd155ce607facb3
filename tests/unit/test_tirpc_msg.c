/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_msg.c - the streams of libtirpc's handles: like xdrmem for all but the bulk item, and the table that names it
 *
 * Buffers under test are allocations of exactly their length, so that a sanitizer sees every access past the end.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/wire.h"
#include "bulk.h"
#include "dec.h"
#include "enc.h"

#define MANY 300u

/* Items: key, value, note; the words before and after would be inlined by rpcgen. */
struct record {
	uint32_t before[4];
	char *key;
	char *value;
	u_int nvalue;
	double number;
	char fixed[5];
	u_int nnote;
	char *note;
	u_int nwords;
	uint32_t *words;
};

static unsigned runs;

static bool_t xdr_words(XDR *x, uint32_t *words, u_int n)
{
	int32_t *buf = x->x_op == XDR_FREE ? NULL : XDR_INLINE(x, 4 * n);

	for (u_int i = 0; i < n; i++) {
		if (!buf) {
			if (!xdr_uint32_t(x, &words[i]))
				return FALSE;
		} else if (x->x_op == XDR_ENCODE) {
			IXDR_PUT_U_INT32(buf, words[i]);
		} else {
			words[i] = IXDR_GET_U_INT32(buf);
		}
	}
	return TRUE;
}

static bool_t xdr_record(XDR *x, struct record *r)
{
	runs++;
	return xdr_words(x, r->before, 4) && xdr_string(x, &r->key, 100) && xdr_bytes(x, &r->value, &r->nvalue, 1u << 20) &&
	       xdr_double(x, &r->number) && xdr_opaque(x, r->fixed, sizeof(r->fixed)) &&
	       xdr_bytes(x, &r->note, &r->nnote, 1u << 20) &&
	       xdr_array(x, (char **)&r->words, &r->nwords, MANY, 4, (xdrproc_t)xdr_uint32_t);
}

static char pattern[10000];

static struct record some_record(u_int nvalue, u_int nnote)
{
	static uint32_t words[MANY];
	static char key[] = "key";

	for (u_int i = 0; i < MANY; i++)
		words[i] = i * i;
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (char)(i * 7 + i / 256);
	return (struct record){ .before = { 1, 2, 3, 4 }, .key = key, .value = pattern, .nvalue = nvalue, .number = 0.25,
				.fixed = "five", .note = pattern + 99, .nnote = nnote, .words = words, .nwords = MANY };
}

static void assert_record(const struct record *a, const struct record *b)
{
	assert_memory_equal(a->before, b->before, sizeof(a->before));
	assert_string_equal(a->key, b->key);
	assert_int_equal(a->nvalue, b->nvalue);
	if (a->nvalue)
		assert_memory_equal(a->value, b->value, a->nvalue);
	assert_true(a->number == b->number);
	assert_memory_equal(a->fixed, b->fixed, sizeof(a->fixed));
	assert_int_equal(a->nnote, b->nnote);
	if (a->nnote)
		assert_memory_equal(a->note, b->note, a->nnote);
	assert_int_equal(a->nwords, b->nwords);
	assert_memory_equal(a->words, b->words, 4 * MANY);
}

/* The message as xdrmem writes it; the caller frees it. */
static char *plain(struct record *r, size_t *ret_len)
{
	size_t cap = 40000;
	char *buf = malloc(cap);
	XDR mem;

	assert_non_null(buf);
	xdrmem_create(&mem, buf, (u_int)cap, XDR_ENCODE);
	assert_true(xdr_record(&mem, r));
	*ret_len = XDR_GETPOS(&mem);
	buf = realloc(buf, *ret_len);
	assert_non_null(buf);
	return buf;
}

/* ---- encoding ------------------------------------------------------------------------------------- */

static void grows_like_xdrmem(void **state)
{
	struct record r = some_record(1001, 50);
	size_t len;
	char *want = plain(&r, &len);

	(void)state;
	for (size_t cap = 0; cap < len + 64; cap += 8) {
		void *first = malloc(cap ? cap : 1);
		struct rt_enc e;

		assert_non_null(first);
		rt_enc_init(&e, first, cap, len, NULL, NULL);
		runs = 0;
		assert_int_equal(rt_enc_run(&e, (xdrproc_t)xdr_record, &r), 0);
		assert_int_equal(runs, 1);
		assert_int_equal(e.len, len);
		assert_int_equal(rt_enc_bytes(&e), len);
		assert_memory_equal(e.buf, want, len);
		assert_true((e.heap != NULL) == (cap < len));
		rt_enc_fini(&e);
		free(first);
	}
	free(want);
}

static int refuse(struct rt_enc *e, size_t bytes)
{
	(void)bytes;
	return *(int *)e->ctx;
}

static bool_t xdr_never(XDR *x, void *nothing)
{
	(void)x;
	(void)nothing;
	return FALSE;
}

static void says_why_not(void **state)
{
	struct record r = some_record(1001, 50);
	int nomem = -ENOMEM;
	uint64_t small[4];
	struct rt_enc e;
	size_t len;

	(void)state;
	free(plain(&r, &len));
	rt_enc_init(&e, small, sizeof(small), len - 1, NULL, NULL);
	assert_int_equal(rt_enc_run(&e, (xdrproc_t)xdr_record, &r), -EMSGSIZE);
	rt_enc_fini(&e);
	rt_enc_init(&e, small, sizeof(small), len, refuse, &nomem);
	assert_int_equal(rt_enc_run(&e, (xdrproc_t)xdr_record, &r), -ENOMEM);
	rt_enc_fini(&e);
	rt_enc_init(&e, small, sizeof(small), len, NULL, NULL);
	assert_int_equal(rt_enc_run(&e, (xdrproc_t)xdr_never, &r), -EINVAL);
	rt_enc_fini(&e);
}

/* Item 2 is left out, with its pad, exactly from the threshold on; what remains is the message without it. */
static void leaves_bulk_item_out(void **state)
{
	(void)state;
	for (u_int n = 4093; n < 4102; n++) {
		struct record r = some_record(n, 50);
		size_t len, at = 16 + 4 + 4 + 4; /* words, key, length of the value */
		char *want = plain(&r, &len);
		uint64_t small[8];
		struct rt_enc e;

		rt_enc_init(&e, small, sizeof(small), len, NULL, NULL);
		rt_enc_want_bulk(&e, 2, 4096);
		assert_int_equal(rt_enc_run(&e, (xdrproc_t)xdr_record, &r), 0);
		assert_int_equal(rt_enc_bytes(&e), len);
		if (n < 4096) {
			assert_null(e.bulk.base);
			assert_int_equal(e.len, len);
			assert_memory_equal(e.buf, want, len);
		} else {
			assert_ptr_equal(e.bulk.base, r.value);
			assert_int_equal(e.bulk.bytes, n);
			assert_int_equal(e.bulk.pos, at);
			assert_int_equal(e.len, len - round_up4(n));
			assert_memory_equal(e.buf, want, at);
			assert_memory_equal(e.buf + at, want + at + round_up4(n), e.len - at);
		}
		rt_enc_fini(&e);
		free(want);
	}
}

/* The number of an item: strings count, an empty item does not, nor does an opaque of fixed length. */
static void counts_items(void **state)
{
	struct record r = some_record(8, 12);
	uint64_t buf[1024];
	struct rt_enc e;

	(void)state;
	for (uint32_t item = 1; item < 5; item++) {
		const void *want[] = { r.key, r.value, r.note, NULL };

		rt_enc_init(&e, buf, sizeof(buf), sizeof(buf), NULL, NULL);
		rt_enc_want_bulk(&e, item, 1);
		assert_int_equal(rt_enc_run(&e, (xdrproc_t)xdr_record, &r), 0);
		assert_ptr_equal(e.bulk.base, want[item - 1]);
		assert_int_equal(e.items, 3);
	}
	r.nvalue = 0;
	rt_enc_init(&e, buf, sizeof(buf), sizeof(buf), NULL, NULL);
	rt_enc_want_bulk(&e, 2, 1);
	assert_int_equal(rt_enc_run(&e, (xdrproc_t)xdr_record, &r), 0);
	assert_ptr_equal(e.bulk.base, r.note);
}

/* A count is written when what it counts is known. */
static bool_t xdr_patched(XDR *x, u_int *n)
{
	u_int zero = 0, at = XDR_GETPOS(x), end;

	if (!xdr_u_int(x, &zero))
		return FALSE;
	for (u_int i = 0; i < *n; i++) {
		if (!xdr_u_int(x, &i))
			return FALSE;
	}
	end = XDR_GETPOS(x);
	return XDR_SETPOS(x, at) && xdr_u_int(x, n) && !XDR_SETPOS(x, end + 4) && XDR_SETPOS(x, end);
}

static void moves_back(void **state)
{
	uint64_t first[2];
	struct rt_enc e;
	u_int n = 100;

	(void)state;
	rt_enc_init(&e, first, sizeof(first), 1000, NULL, NULL);
	assert_int_equal(rt_enc_run(&e, (xdrproc_t)xdr_patched, &n), 0);
	assert_int_equal(e.len, 404);
	assert_int_equal(get_be32(e.buf), 100);
	assert_int_equal(get_be32(e.buf + 400), 99);
	rt_enc_fini(&e);
}

/* No pad behind the item: the transport would add one, and so the message would be another. */
static bool_t xdr_no_pad(XDR *x, u_int *n)
{
	return xdr_u_int(x, n) && XDR_PUTBYTES(x, pattern, *n);
}

static bool_t xdr_no_pad_but_word(XDR *x, u_int *n)
{
	return xdr_no_pad(x, n) && xdr_u_int(x, n);
}

static void wants_pad(void **state)
{
	uint64_t buf[8];
	struct rt_enc e;
	u_int n = 13;

	(void)state;
	rt_enc_init(&e, buf, sizeof(buf), sizeof(buf), NULL, NULL);
	rt_enc_want_bulk(&e, 1, 1);
	assert_int_equal(rt_enc_run(&e, (xdrproc_t)xdr_no_pad, &n), -EINVAL);
	rt_enc_init(&e, buf, sizeof(buf), sizeof(buf), NULL, NULL);
	rt_enc_want_bulk(&e, 1, 1);
	assert_int_equal(rt_enc_run(&e, (xdrproc_t)xdr_no_pad_but_word, &n), -EINVAL);
}

/* ---- decoding ------------------------------------------------------------------------------------- */

/* The message, with `out` bytes at `at` elsewhere. */
struct cut {
	char *msg, *bulk;
	size_t len;
};

static struct cut cut_at(const char *msg, size_t len, size_t at, size_t out, size_t bytes)
{
	struct cut c = { .msg = malloc(len - out), .bulk = malloc(bytes ? bytes : 1), .len = len - out };

	assert_true(c.msg && c.bulk);
	memcpy(c.msg, msg, at);
	memcpy(c.msg + at, msg + at + out, len - out - at);
	memcpy(c.bulk, msg + at, bytes);
	return c;
}

static void cut_free(struct cut *c)
{
	free(c->msg);
	free(c->bulk);
}

static void decodes_whole_message(void **state)
{
	struct record in = some_record(1001, 50), out = { 0 };
	size_t len;
	char *msg = plain(&in, &len);
	struct rt_dec d;

	(void)state;
	rt_dec_init(&d, msg, len);
	assert_int_equal(rt_dec_run(&d, (xdrproc_t)xdr_record, &out), 0);
	assert_record(&in, &out);
	assert_int_equal(d.copied, 0);
	xdr_free((xdrproc_t)xdr_record, &out);
	for (size_t n = 0; n < len; n += 4) { /* too short */
		char *part = malloc(n ? n : 1);

		assert_non_null(part);
		memcpy(part, msg, n);
		memset(&out, 0, sizeof(out));
		rt_dec_init(&d, part, n);
		assert_int_equal(rt_dec_run(&d, (xdrproc_t)xdr_record, &out), -EBADMSG);
		xdr_free((xdrproc_t)xdr_record, &out);
		free(part);
	}
	free(msg);
}

/* Item 2 was placed: into memory of ours, or of the caller. */
static void expects_item(void **state)
{
	struct record in = some_record(4097, 50);
	size_t len;
	char *msg = plain(&in, &len);

	(void)state;
	for (int preset = 0; preset < 2; preset++) {
		struct cut c = cut_at(msg, len, 28, 4100, 4097);
		struct record out = { .value = preset ? c.bulk : NULL };
		struct rt_dec d;

		rt_dec_init(&d, c.msg, c.len);
		rt_dec_expect(&d, 2, c.bulk, 4097);
		assert_int_equal(rt_dec_run(&d, (xdrproc_t)xdr_record, &out), 0);
		assert_record(&in, &out);
		assert_int_equal(d.copied, preset ? 0 : 4097);
		if (preset)
			out.value = NULL;
		xdr_free((xdrproc_t)xdr_record, &out);
		cut_free(&c);
	}
	free(msg);
}

static void refuses_wrong_item(void **state)
{
	struct record in = some_record(4097, 50), out = { 0 };
	size_t len;
	char *msg = plain(&in, &len);
	struct cut c = cut_at(msg, len, 28, 4100, 4097);
	struct rt_dec d;

	(void)state;
	rt_dec_init(&d, c.msg, c.len);
	rt_dec_expect(&d, 2, c.bulk, 4096);
	assert_int_equal(rt_dec_run(&d, (xdrproc_t)xdr_record, &out), -EBADMSG);
	assert_non_null(d.why);
	xdr_free((xdrproc_t)xdr_record, &out);

	memset(&out, 0, sizeof(out)); /* nothing is missing in this message */
	rt_dec_init(&d, msg, len);
	rt_dec_expect(&d, 4, c.bulk, 4097);
	assert_int_equal(rt_dec_run(&d, (xdrproc_t)xdr_record, &out), -EBADMSG);
	assert_non_null(d.why);
	xdr_free((xdrproc_t)xdr_record, &out);
	cut_free(&c);
	free(msg);
}

/* The caller's memory for the key is where the value was placed: the table names the wrong item, and nothing is lost. */
static void refuses_to_overwrite_item(void **state)
{
	struct record in = some_record(4097, 50), out;
	size_t len;
	char *msg = plain(&in, &len);
	struct cut c = cut_at(msg, len, 28, 4100, 4097);
	struct rt_dec d;

	(void)state;
	out = (struct record){ .key = c.bulk };
	rt_dec_init(&d, c.msg, c.len);
	rt_dec_expect(&d, 2, c.bulk, 4097);
	assert_int_equal(rt_dec_run(&d, (xdrproc_t)xdr_record, &out), -EBADMSG);
	assert_non_null(d.why);
	out.key = NULL;
	xdr_free((xdrproc_t)xdr_record, &out);
	cut_free(&c);
	free(msg);
}

/* A preset pointer holds as much as its length says, also if the peer sends the item inside the message. */
static void keeps_to_preset_length(void **state)
{
	struct record in = some_record(4097, 50), out;
	size_t len;
	char *msg = plain(&in, &len), *room = malloc(4097);
	struct rt_dec d;

	(void)state;
	assert_non_null(room);
	for (size_t n = 4096; n < 4098; n++) {
		out = (struct record){ .value = room };
		rt_dec_init(&d, msg, len);
		d.preset = room;
		d.preset_bytes = n;
		assert_int_equal(rt_dec_run(&d, (xdrproc_t)xdr_record, &out), n < 4097 ? -EBADMSG : 0);
		assert_true((d.why != NULL) == (n < 4097));
		out.value = NULL;
		xdr_free((xdrproc_t)xdr_record, &out);
	}
	free(room);
	free(msg);
}

/* ---- the table ------------------------------------------------------------------------------------ */

static void finds_rows(void **state)
{
	const struct rpcrdma_bulk rows[] = {
		{ .prog = 9, .vers = 1, .proc = 1, .args = 1 },
		{ .prog = 7, .vers = 2, .proc = 3, .results = 2, .threshold = 1, .data_max = 5, .reply_max = 6 },
		{ .prog = 7, .vers = 1, .proc = 4, .args = 3 },
		{ .prog = 7, .vers = 1, .proc = 3, .args = 4 },
	};
	const struct rpcrdma_bulk twice[] = { rows[0], rows[1], rows[0] };
	const struct rpcrdma_bulk too_long = { .data_max = RPCRDMA_TIRPC_MAX_BYTES + 1 };
	const struct rpcrdma_bulk *row;
	struct rt_bulk b;

	(void)state;
	assert_int_equal(rt_bulk_init(&b, NULL, 0, 0, 100), 0);
	assert_null(rt_bulk_find(&b, 7, 1, 3));
	rt_bulk_fini(&b);
	assert_int_equal(rt_bulk_init(&b, rows, ARRAY_SIZE(rows), sizeof(rows[0]), 100), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		row = rt_bulk_find(&b, rows[i].prog, rows[i].vers, rows[i].proc);
		assert_non_null(row);
		assert_int_equal(row->args, rows[i].args);
		assert_int_equal(row->results, rows[i].results);
	}
	row = rt_bulk_find(&b, 9, 1, 1);
	assert_true(row->threshold == RT_BULK_THRESHOLD && row->data_max == 100 && row->reply_max == 100);
	row = rt_bulk_find(&b, 7, 2, 3);
	assert_true(row->threshold == 1 && row->data_max == 5 && row->reply_max == 6);
	assert_null(rt_bulk_find(&b, 7, 2, 4));
	assert_null(rt_bulk_find(&b, 8, 1, 1));
	rt_bulk_fini(&b);
	assert_int_equal(rt_bulk_init(&b, twice, ARRAY_SIZE(twice), 0, 100), -EINVAL);
	assert_int_equal(rt_bulk_init(&b, &too_long, 1, 0, 100), -EINVAL);
}

/* Tables of programs that were built with the header of a later release. */
static void takes_longer_rows(void **state)
{
	struct {
		struct rpcrdma_bulk row;
		uint32_t later;
	} rows[] = { { .row = { .prog = 9, .vers = 1, .proc = 1, .args = 1 } },
		     { .row = { .prog = 7, .vers = 2, .proc = 3, .results = 2 } } };
	struct rt_bulk b;

	(void)state;
	assert_int_equal(rt_bulk_init(&b, &rows[0].row, 2, sizeof(rows[0]), 100), 0);
	assert_int_equal(rt_bulk_find(&b, 9, 1, 1)->args, 1);
	assert_int_equal(rt_bulk_find(&b, 7, 2, 3)->results, 2);
	rt_bulk_fini(&b);
	rows[1].later = 1;
	assert_int_equal(rt_bulk_init(&b, &rows[0].row, 2, sizeof(rows[0]), 100), -E2BIG);
	assert_int_equal(rt_bulk_init(&b, &rows[0].row, 2, sizeof(rows[0].row) - 4, 100), -EINVAL);
}

static void finds_preset_memory(void **state)
{
	char empty[] = "";
	struct record r = { .key = empty };
	size_t n;

	(void)state;
	assert_null(rt_bulk_preset((xdrproc_t)xdr_record, &r, 2, &n));
	assert_int_equal(n, 0);
	r = some_record(8, 12);
	runs = 0;
	assert_ptr_equal(rt_bulk_preset((xdrproc_t)xdr_record, &r, 2, &n), r.value);
	assert_int_equal(n, 8);
	assert_int_equal(runs, 1);
	assert_ptr_equal(rt_bulk_preset((xdrproc_t)xdr_record, &r, 3, &n), r.note);
	assert_int_equal(n, 12);
	r.nvalue = 0; /* has no memory yet */
	assert_null(rt_bulk_preset((xdrproc_t)xdr_record, &r, 3, &n));
	assert_ptr_equal(rt_bulk_preset((xdrproc_t)xdr_record, &r, 1, &n), r.key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_like_xdrmem),
		cmocka_unit_test(says_why_not),
		cmocka_unit_test(leaves_bulk_item_out),
		cmocka_unit_test(counts_items),
		cmocka_unit_test(moves_back),
		cmocka_unit_test(wants_pad),
		cmocka_unit_test(decodes_whole_message),
		cmocka_unit_test(expects_item),
		cmocka_unit_test(refuses_wrong_item),
		cmocka_unit_test(refuses_to_overwrite_item),
		cmocka_unit_test(keeps_to_preset_length),
		cmocka_unit_test(finds_rows), cmocka_unit_test(takes_longer_rows),
		cmocka_unit_test(finds_preset_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
