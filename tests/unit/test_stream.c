/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_stream.c - the XDR stream: like xdrmem for all but the payload, which stays where it is
 *
 * Buffers under test are allocations of exactly their length, so that a sanitizer sees every look
 * or write past the end.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/wire.h"
#include "hdr.h"
#include "rpc_msg.h"
#include "stream.h"
#include "vectors.h"

/* One of each basic type, as rpcgen's filters use them. */
struct basics {
	int i;
	u_int u;
	int64_t h;
	uint64_t uh;
	bool_t b;
	enum_t e;
	long l;
	short s;
	double d;
	char opaque[7];
	char *string;
	char *bytes;
	u_int nbytes;
};

static bool_t xdr_basics(XDR *x, struct basics *b)
{
	return xdr_int(x, &b->i) && xdr_u_int(x, &b->u) && xdr_int64_t(x, &b->h) &&
	       xdr_uint64_t(x, &b->uh) && xdr_bool(x, &b->b) && xdr_enum(x, &b->e) &&
	       xdr_long(x, &b->l) && xdr_short(x, &b->s) && xdr_double(x, &b->d) &&
	       xdr_opaque(x, b->opaque, sizeof(b->opaque)) && xdr_string(x, &b->string, 40) &&
	       xdr_bytes(x, &b->bytes, &b->nbytes, 40);
}

static struct basics some_basics(void)
{
	static char string[] = "a string", bytes[] = "bytes";

	return (struct basics){ .i = -5,
				.u = 4000000000u,
				.h = INT64_MIN + 3,
				.uh = UINT64_MAX - 3,
				.b = TRUE,
				.e = -1,
				.l = -77,
				.s = -3,
				.d = 0.5,
				.opaque = "opaque",
				.string = string,
				.bytes = bytes,
				.nbytes = 5 };
}

/* Byte for byte what xdrmem makes of it, aligned or not, and back. */
static void test_like_xdrmem(void **state)
{
	char want[256];
	XDR mem;

	(void)state;
	for (size_t shift = 0; shift < 4; shift++) {
		char string[41], bytes[41];
		struct basics in = some_basics(), out = { .string = string, .bytes = bytes };
		struct rr_stream s;
		uint8_t *buf;
		u_int len;

		xdrmem_create(&mem, want, sizeof(want), XDR_ENCODE);
		assert_true(xdr_basics(&mem, &in));
		len = XDR_GETPOS(&mem);
		buf = malloc(len + shift);
		assert_non_null(buf);
		rr_stream_encode(&s, buf + shift, len);
		assert_true(xdr_basics(&s.xdr, &in));
		assert_int_equal(rr_stream_len(&s), len);
		assert_int_equal(rr_stream_bytes(&s), len);
		assert_int_equal(XDR_GETPOS(&s.xdr), len);
		assert_false(s.overflow || s.has_payload);
		assert_memory_equal(buf + shift, want, len);

		rr_stream_decode(&s, buf + shift, len);
		assert_true(xdr_basics(&s.xdr, &out));
		assert_int_equal(rr_stream_decode_done(&s), 0);
		assert_int_equal(s.pos, len);
		assert_true(out.i == in.i && out.u == in.u && out.h == in.h && out.uh == in.uh &&
			    out.b == in.b && out.e == in.e && out.s == in.s && out.l == in.l);
		assert_memory_equal(&out.d, &in.d, sizeof(in.d));
		assert_memory_equal(out.opaque, in.opaque, sizeof(in.opaque));
		assert_string_equal(out.string, in.string);
		assert_int_equal(out.nbytes, 5);
		assert_memory_equal(out.bytes, in.bytes, 5);
		XDR_DESTROY(&s.xdr);
		free(buf);
	}
}

/* Any room too small: overflow; any message too short: short_read; never past the end. */
static void test_bounds(void **state)
{
	struct basics in = some_basics();
	struct rr_stream s;
	uint8_t whole[256];
	size_t len;

	(void)state;
	rr_stream_encode(&s, whole, sizeof(whole));
	assert_true(xdr_basics(&s.xdr, &in));
	len = rr_stream_len(&s);
	for (size_t n = 0; n < len; n++) {
		char string[41], bytes[41];
		struct basics out = { .string = string, .bytes = bytes };
		uint8_t *buf = malloc(n ? n : 1);

		assert_non_null(buf);
		rr_stream_encode(&s, buf, n);
		assert_false(xdr_basics(&s.xdr, &in));
		assert_true(s.overflow && !s.short_read && s.pos <= n);
		memcpy(buf, whole, n);
		rr_stream_decode(&s, buf, n);
		assert_false(xdr_basics(&s.xdr, &out));
		assert_true(s.short_read && !s.overflow && s.pos <= n);
		rr_stream_decode_tail(&s, buf, n, len); /* no payload: a tail is of no use */
		assert_false(xdr_basics(&s.xdr, &out));
		assert_true(s.short_read);
		free(buf);
	}
}

static void test_inline(void **state)
{
	_Alignas(4) uint8_t buf[16] = { 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3 };
	struct rr_stream s;
	int32_t *at;

	(void)state;
	rr_stream_decode(&s, buf, 12);
	at = XDR_INLINE(&s.xdr, 8);
	assert_ptr_equal(at, buf);
	assert_int_equal(IXDR_GET_INT32(at), 1);
	assert_int_equal(s.pos, 8);
	assert_null(XDR_INLINE(&s.xdr, 8));
	assert_null(XDR_INLINE(&s.xdr, UINT32_MAX - 3));
	assert_null(XDR_INLINE(&s.xdr, 3));
	assert_false(s.short_read); /* the filters behind it will say so */
	assert_int_equal(s.pos, 8);
	assert_non_null(XDR_INLINE(&s.xdr, 4));
	assert_non_null(XDR_INLINE(&s.xdr, 0));
	rr_stream_decode(&s, buf + 1, 12); /* a pointer to words must be to aligned words */
	assert_null(XDR_INLINE(&s.xdr, 4));
	rr_stream_encode(&s, buf, 8);
	at = XDR_INLINE(&s.xdr, 8);
	assert_ptr_equal(at, buf);
	assert_null(XDR_INLINE(&s.xdr, 4));
	assert_false(s.overflow);
	assert_int_equal(rr_stream_len(&s), 8);
}

static void test_setpos(void **state)
{
	uint8_t buf[16] = { 0 };
	struct rr_stream s;
	u_int v = 7, got;

	(void)state;
	rr_stream_encode(&s, buf, sizeof(buf));
	assert_false(XDR_SETPOS(&s.xdr, 4)); /* not over what was never written */
	assert_true(xdr_u_int(&s.xdr, &v) && xdr_u_int(&s.xdr, &v));
	assert_true(XDR_SETPOS(&s.xdr, 0));
	v = 9;
	assert_true(xdr_u_int(&s.xdr, &v));
	assert_true(XDR_SETPOS(&s.xdr, 8));
	assert_false(XDR_SETPOS(&s.xdr, 12));
	assert_int_equal(rr_stream_len(&s), 8);
	rr_stream_decode(&s, buf, 8);
	assert_true(XDR_SETPOS(&s.xdr, 4));
	assert_true(xdr_u_int(&s.xdr, &got) && got == 7);
	assert_true(XDR_SETPOS(&s.xdr, 0));
	assert_true(xdr_u_int(&s.xdr, &got) && got == 9);
	assert_true(XDR_SETPOS(&s.xdr, 8));
	assert_false(XDR_SETPOS(&s.xdr, 9));
	assert_null(s.xdr.x_ops->x_control); /* there are no requests */
}

/* The shape of WRITE's arguments, with an item behind the payload if `tailed`. */
struct args {
	char fh[64];
	u_int fh_len;
	uint64_t offset;
	uint32_t count, stable, max, tail;
	bool tailed;
	struct rpcrdma_payload data;
};

static bool_t xdr_args(XDR *x, struct args *a)
{
	char *fh = a->fh;

	return xdr_bytes(x, &fh, &a->fh_len, sizeof(a->fh)) && xdr_uint64_t(x, &a->offset) &&
	       xdr_uint32_t(x, &a->count) && xdr_uint32_t(x, &a->stable) &&
	       rpcrdma_xdr_payload(x, &a->data, a->max) &&
	       (!a->tailed || xdr_uint32_t(x, &a->tail));
}

#define FH_BYTES 8
#define DATA_POS (4 + FH_BYTES + 8 + 4 + 4 + 4) /* of the payload's first byte */

static struct args some_args(const struct iovec *iov, int iovcnt, uint32_t length, bool tailed)
{
	return (struct args){ .fh = "file-one",
			      .fh_len = FH_BYTES,
			      .offset = 4096,
			      .count = length,
			      .stable = 2,
			      .max = 1 << 20,
			      .tail = 0x7a7a7a7a,
			      .tailed = tailed,
			      .data = { .length = length, .iovcnt = iovcnt, .iov = iov } };
}

static const char text[] = "0123456789abcdefghijklmnopqrstuvwxyz";

/* The un-reduced message, by libtirpc's own memory stream: the truth to compare with. */
static size_t whole_message(uint32_t length, bool tailed, char *buf, u_int cap)
{
	/* three pieces, one of them empty, the last longer than needed */
	struct iovec iov[3] = { { (char *)(uintptr_t)text, length / 2 },
				{ NULL, 0 },
				{ (char *)(uintptr_t)text + length / 2, length } };
	struct args a = some_args(iov, 3, length, tailed);
	XDR mem;

	xdrmem_create(&mem, buf, cap, XDR_ENCODE);
	assert_true(xdr_args(&mem, &a));
	return XDR_GETPOS(&mem);
}

/* 13, 14: the length word is inline, the position is that in the un-reduced stream, the pad is
 * nowhere; joined with payload and pad it is the un-reduced message. */
static void test_encode_payload(void **state)
{
	(void)state;
	for (uint32_t length = 0; length <= 18; length++)
		for (int tailed = 0; tailed < 2; tailed++) {
			struct iovec iov = { (char *)(uintptr_t)text, length };
			struct args a = some_args(&iov, 1, length, tailed);
			char whole[128], joined[128] = { 0 };
			size_t bytes = whole_message(length, tailed, whole, sizeof(whole));
			size_t reduced = DATA_POS + (tailed ? 4 : 0);
			uint8_t *buf = malloc(reduced);
			struct rr_stream s;

			assert_non_null(buf);
			rr_stream_encode(&s, buf, reduced);
			assert_true(xdr_args(&s.xdr, &a));
			assert_int_equal(rr_stream_len(&s), reduced);
			assert_int_equal(rr_stream_bytes(&s), bytes);
			assert_true(s.has_payload);
			assert_int_equal(s.payload_pos, DATA_POS);
			assert_int_equal(s.payload_pos % 4, 0);
			assert_int_equal(s.payload.length, length);
			assert_ptr_equal(s.payload.iov, &iov);

			memcpy(joined, buf, DATA_POS);
			memcpy(joined + DATA_POS, text, length);
			memcpy(joined + DATA_POS + round_up4(length), buf + DATA_POS,
			       reduced - DATA_POS);
			assert_memory_equal(joined, whole, bytes);
			for (size_t cap = 0; cap < reduced; cap++) {
				rr_stream_encode(&s, buf, cap);
				assert_false(xdr_args(&s.xdr, &a));
				assert_true(s.overflow);
			}
			free(buf);
		}
}

/* Whole in the buffer: pointed at, not copied; cut at any byte: refused. */
static void test_decode_inline(void **state)
{
	(void)state;
	for (uint32_t length = 0; length <= 18; length++)
		for (int tailed = 0; tailed < 2; tailed++) {
			char whole[128];
			size_t bytes = whole_message(length, tailed, whole, sizeof(whole));

			for (size_t n = 0; n <= bytes; n++) {
				struct args a = { .max = 18, .tailed = tailed };
				uint8_t *buf = malloc(n ? n : 1);
				struct rr_stream s;

				assert_non_null(buf);
				memcpy(buf, whole, n);
				rr_stream_decode(&s, buf, n);
				assert_int_equal(xdr_args(&s.xdr, &a), n == bytes);
				assert_int_equal(s.short_read, n < bytes);
				if (n == bytes) {
					assert_int_equal(rr_stream_decode_done(&s), 0);
					assert_int_equal(a.data.length, length);
					assert_int_equal(a.data.iovcnt, 1);
					assert_ptr_equal(a.data.iov, &a.data.here);
					assert_ptr_equal(a.data.here.iov_base, buf + DATA_POS);
					assert_int_equal(a.data.here.iov_len, length);
					assert_memory_equal(a.data.here.iov_base, text, length);
					assert_true(s.has_payload);
					assert_ptr_equal(s.payload.iov, &s.payload.here);
					assert_int_equal(s.payload_pos, DATA_POS);
					assert_int_equal(s.payload_here, length);
					assert_int_equal(a.tail, tailed ? 0x7a7a7a7a : 0);
				}
				free(buf);
			}
		}
}

struct chunk_case {
	const char *why;
	uint32_t length;
	size_t position, chunk_bytes;
	bool decodes, mismatch, used;
};

/* clang-format off */
static const struct chunk_case chunk_cases[] = {
	{ "even", 16, DATA_POS, 16, true, false, true },
	{ "odd, without pad", 17, DATA_POS, 17, true, false, true }, /* 15 */
	{ "odd, with pad", 17, DATA_POS, 20, true, false, true }, /* 16 */
	{ "odd, with half the pad", 17, DATA_POS, 18, false, true, false },
	{ "1 MiB", 1 << 20, DATA_POS, 1 << 20, true, false, true },
	{ "nothing", 0, DATA_POS, 0, true, false, true }, /* 25 */
	{ "shorter", 5001, DATA_POS, 4000, false, true, false }, /* 20 */
	{ "longer", 4000, DATA_POS, 5001, false, true, false },
	{ "a pad too many", 16, DATA_POS, 20, false, true, false },
	{ "nothing for something", 16, DATA_POS, 0, false, true, false },
	{ "something for nothing", 0, DATA_POS, 4, false, true, false },
	{ "over the codec's limit", (1 << 20) + 1, DATA_POS, (1 << 20) + 1, false, false, false },
	{ "4 GiB - 1", UINT32_MAX, DATA_POS, UINT32_MAX, false, false, false },
	/* 21: a position where there is no item that may be in a chunk */
	{ "at the length word", 0, DATA_POS - 4, 0, true, false, false },
	{ "at the file handle", 0, 4, 8, true, false, false },
	{ "behind", 0, DATA_POS + 4, 8, true, false, false },
	{ "at the handle, with data missing", 16, 4, 16, false, false, false },
	/* a Write chunk: anywhere, and exactly the data */
	{ "result", 17, RR_STREAM_ANY_POSITION, 17, true, false, true },
	{ "result with a pad", 17, RR_STREAM_ANY_POSITION, 20, false, true, false }, /* 27 */
	{ "result short", 17, RR_STREAM_ANY_POSITION, 16, false, true, false }, /* 41 */
	{ "result long", 16, RR_STREAM_ANY_POSITION, 17, false, true, false }, /* 41 */
};
/* clang-format on */

static void test_decode_chunk(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(chunk_cases); i++)
		for (int tailed = 0; tailed < 2; tailed++) {
			const struct chunk_case *c = &chunk_cases[i];
			struct args a = some_args(NULL, 0, c->length, tailed);
			size_t len = DATA_POS + (tailed ? 4 : 0);
			uint8_t *buf = malloc(len);
			struct rr_stream s;

			assert_non_null(buf);
			rr_stream_encode(&s, buf, len);
			a.max = UINT32_MAX;
			assert_true(xdr_args(&s.xdr, &a));
			memset(&a, 0, sizeof(a));
			a.max = 1 << 20;
			a.tailed = tailed;
			rr_stream_decode_chunk(&s, buf, len, c->position, c->chunk_bytes);
			if (xdr_args(&s.xdr, &a) != c->decodes || s.mismatch != c->mismatch ||
			    s.chunk_used != c->used)
				fail_msg("%s: mismatch %d used %d", c->why, s.mismatch,
					 s.chunk_used);
			assert_int_equal(rr_stream_decode_done(&s), c->used ? 0 : -EBADMSG);
			if (c->used) {
				assert_int_equal(a.data.length, c->length);
				assert_int_equal(a.data.iovcnt, 0);
				assert_int_equal(s.payload_here, 0);
				assert_int_equal(s.payload_pos, DATA_POS);
				assert_int_equal(a.tail, tailed ? 0x7a7a7a7a : 0);
			}
			free(buf);
		}
}

/* First part of a record: only a payload that is last, and all of which is in the record, may
 * reach beyond it. */
static void test_decode_tail(void **state)
{
	(void)state;
	for (uint32_t length = 0; length <= 18; length++)
		for (int tailed = 0; tailed < 2; tailed++) {
			char whole[128];
			size_t bytes = whole_message(length, tailed, whole, sizeof(whole));

			for (size_t n = 0; n <= bytes; n++) {
				struct args a = { .max = 18, .tailed = tailed };
				bool ok = n == bytes || (!tailed && n >= DATA_POS);
				uint8_t *buf = malloc(n ? n : 1);
				struct rr_stream s;

				assert_non_null(buf);
				memcpy(buf, whole, n);
				rr_stream_decode_tail(&s, buf, n, bytes);
				assert_int_equal(xdr_args(&s.xdr, &a), ok);
				assert_int_equal(s.short_read, !ok);
				if (ok) {
					size_t here = MIN(n - DATA_POS, (size_t)length);

					assert_int_equal(s.payload_here, here);
					assert_int_equal(a.data.length, length);
					assert_int_equal(a.data.iovcnt, here == length);
					assert_int_equal(rr_stream_decode_done(&s), 0);
					assert_true(s.pos <= n);
				}
				/* a record that ends elsewhere than its payload */
				for (size_t total = bytes - 4; n < bytes && total <= bytes + 4;
				     total += 8) {
					rr_stream_decode_tail(&s, buf, n, total);
					assert_false(xdr_args(&s.xdr, &a));
					assert_true(s.short_read);
				}
				free(buf);
			}
		}
}

static bool_t xdr_two(XDR *x, struct rpcrdma_payload p[2])
{
	return rpcrdma_xdr_payload(x, &p[0], 100) && rpcrdma_xdr_payload(x, &p[1], 100);
}

/* What a codec may not do is refused, not crashed upon. */
static void test_codec_limits(void **state)
{
	struct rpcrdma_payload p[2] = { { .length = 0 }, { .length = 0 } };
	uint8_t buf[16] = { 0 };
	struct rr_stream s;

	(void)state;
	rr_stream_encode(&s, buf, sizeof(buf));
	assert_false(xdr_two(&s.xdr, p));
	assert_false(s.overflow || s.mismatch);
	rr_stream_decode(&s, buf, sizeof(buf));
	assert_false(xdr_two(&s.xdr, p));
	p[0].length = 101;
	rr_stream_encode(&s, buf, sizeof(buf));
	assert_false(rpcrdma_xdr_payload(&s.xdr, p, 100));
	assert_int_equal(rr_stream_len(&s), 0);
	s.xdr.x_op = XDR_FREE;
	assert_true(rpcrdma_xdr_payload(&s.xdr, p, 100));
	/* a payload that describes itself, as a decoded one that is sent on */
	p[0] = (struct rpcrdma_payload){ .length = 4, .iovcnt = 1, .here = { buf, 4 } };
	p[0].iov = &p[0].here;
	rr_stream_encode(&s, buf, sizeof(buf));
	assert_true(rpcrdma_xdr_payload(&s.xdr, p, 100));
	memset(p, 0, sizeof(p));
	assert_ptr_equal(s.payload.iov, &s.payload.here);
	assert_ptr_equal(s.payload.iov->iov_base, buf);
}

/* Other streams: bytes are copied, both ways, into and out of pieces. */
static void test_foreign(void **state)
{
	(void)state;
	for (uint32_t length = 0; length <= 18; length++)
		for (uint32_t room = 0; room <= 20; room++) {
			char whole[128], a_buf[8] = "", b_buf[20] = "";
			struct iovec iov[3] = { { a_buf, MIN(room, 7u) },
						{ NULL, 0 },
						{ b_buf, room - MIN(room, 7u) } };
			struct args a = some_args(iov, 3, 0, true);
			size_t bytes = whole_message(length, true, whole, sizeof(whole));
			uint32_t first = MIN(length, 7u);
			XDR mem;

			xdrmem_create(&mem, whole, (u_int)bytes, XDR_DECODE);
			assert_int_equal(xdr_args(&mem, &a), room >= length);
			if (room < length)
				continue;
			assert_int_equal(a.data.length, length);
			assert_int_equal(a.tail, 0x7a7a7a7a);
			assert_memory_equal(a_buf, text, first);
			assert_memory_equal(b_buf, text + first, length - first);
		}
}

static void test_foreign_limits(void **state)
{
	struct iovec iov = { (char *)(uintptr_t)text, 10 };
	struct rpcrdma_payload p = { .length = 10, .iovcnt = 1, .iov = &iov };
	struct args a = some_args(&iov, 1, 10, true);
	char buf[32], in[16];
	struct iovec into = { in, sizeof(in) };
	XDR mem;

	(void)state;
	for (u_int cap = 0; cap <= 16; cap++) {
		xdrmem_create(&mem, buf, cap, XDR_ENCODE);
		assert_int_equal(rpcrdma_xdr_payload(&mem, &p, 10), cap == 16);
	}
	xdrmem_create(&mem, buf, sizeof(buf), XDR_ENCODE);
	assert_false(rpcrdma_xdr_payload(&mem, &p, 9)); /* over the codec's limit */
	p.length = 11;
	assert_false(rpcrdma_xdr_payload(&mem, &p, 100)); /* over the memory */
	p = (struct rpcrdma_payload){ .length = 1 };
	assert_false(rpcrdma_xdr_payload(&mem, &p, 100)); /* no memory at all */

	p = (struct rpcrdma_payload){ .length = 99, .iovcnt = 1, .iov = &into };
	for (u_int len = 0; len <= 16; len++) {
		xdrmem_create(&mem, buf, len, XDR_DECODE);
		assert_int_equal(rpcrdma_xdr_payload(&mem, &p, 10), len == 16);
	}
	xdrmem_create(&mem, buf, 16, XDR_DECODE);
	assert_false(rpcrdma_xdr_payload(&mem, &p, 9));
	put_be32(buf, UINT32_MAX);
	xdrmem_create(&mem, buf, 16, XDR_DECODE);
	assert_false(rpcrdma_xdr_payload(&mem, &p, UINT32_MAX));
	xdrmem_create(&mem, buf, 16, XDR_FREE);
	assert_true(rpcrdma_xdr_payload(&mem, &p, 0));
	assert_int_equal(xdr_sizeof((xdrproc_t)xdr_args, &a), DATA_POS + 12 + 4);
}

/* Arguments of a real WRITE: nothing of it was made by our own encoder. */
static void decode_write(const char *name, uint32_t position, uint32_t chunk_bytes, uint32_t want)
{
	struct args a = { .max = 1 << 20 };
	struct rr_stream s;
	struct rr_hdr h;
	struct rr_rpc_call c;
	struct wire_get g;
	struct vector v;
	size_t took;

	vector_load(name, &v);
	assert_int_equal(rr_hdr_decode(v.bytes, v.len, &h, &took), 0);
	wire_get_init(&g, v.bytes + took, v.len - took);
	assert_int_equal(rr_rpc_get_call(&g, &c), 0);
	/* positions count from the XID, so the stream is that of the whole RPC message */
	if (position)
		rr_stream_decode_chunk(&s, v.bytes + took, v.len - took, position, chunk_bytes);
	else
		rr_stream_decode(&s, v.bytes + took, v.len - took);
	assert_true(XDR_SETPOS(&s.xdr, (u_int)(v.len - took - wire_get_left(&g))));
	assert_true(xdr_args(&s.xdr, &a));
	assert_int_equal(rr_stream_decode_done(&s), 0);
	assert_int_equal(a.count, want);
	assert_int_equal(a.data.length, want);
	assert_int_equal(a.data.iovcnt, !position);
	assert_int_equal(s.payload_pos, 112);
	assert_int_equal(s.pos, v.len - took);
	vector_unload(&v);
}

struct result {
	uint32_t status, has_attr, attr[21], count, eof;
	struct rpcrdma_payload data;
};

static bool_t xdr_result(XDR *x, struct result *r)
{
	if (!xdr_uint32_t(x, &r->status) || !xdr_uint32_t(x, &r->has_attr))
		return FALSE;
	for (size_t i = 0; r->has_attr && i < ARRAY_SIZE(r->attr); i++)
		if (!xdr_uint32_t(x, &r->attr[i]))
			return FALSE;
	return xdr_uint32_t(x, &r->count) && xdr_uint32_t(x, &r->eof) &&
	       rpcrdma_xdr_payload(x, &r->data, 1 << 20);
}

static void decode_read(const char *name, size_t placed, uint32_t want)
{
	struct result r = { 0 };
	struct rr_stream s;
	struct rr_hdr h;
	struct vector v;
	size_t took;

	vector_load(name, &v);
	assert_int_equal(rr_hdr_decode(v.bytes, v.len, &h, &took), 0);
	took += RR_RPC_REPLY_HDR_BYTES;
	if (placed)
		rr_stream_decode_chunk(&s, v.bytes + took, v.len - took, RR_STREAM_ANY_POSITION,
				       placed);
	else
		rr_stream_decode(&s, v.bytes + took, v.len - took);
	assert_true(xdr_result(&s.xdr, &r));
	assert_int_equal(rr_stream_decode_done(&s), 0);
	assert_int_equal(r.count, want);
	assert_int_equal(r.data.length, want);
	assert_int_equal(r.data.iovcnt, !placed);
	assert_int_equal(s.pos, v.len - took);
	vector_unload(&v);
}

static void test_vectors(void **state)
{
	(void)state;
	decode_write("write-chunk-call", 112, 5001, 5001); /* 13, 15 */
	decode_write("write-inline-call", 0, 0, 1001);
	decode_write("write-inline-3500-call", 0, 0, 3500);
	decode_read("read-chunk-reply", 4096, 4096);
	decode_read("read-short-reply", 1001, 1001);
	decode_read("read-odd-reply", 5001, 5001); /* 27 */
	decode_read("read-1m-reply", 1 << 20, 1 << 20);
	decode_read("read-eof-reply", 0, 0); /* 29 */
	decode_read("read-inline-reply", 0, 3072);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_xdrmem),    cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_inline),	       cmocka_unit_test(test_setpos),
		cmocka_unit_test(test_encode_payload), cmocka_unit_test(test_decode_inline),
		cmocka_unit_test(test_decode_chunk),   cmocka_unit_test(test_decode_tail),
		cmocka_unit_test(test_codec_limits),   cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_foreign_limits), cmocka_unit_test(test_vectors),
	};

	return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
