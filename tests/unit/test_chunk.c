/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_chunk.c - sense of chunk lists: what is refused before any RDMA operation, and spans
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chunk.h"
#include "vectors.h"

#define MAX_CALL RR_CALL_BYTES_MAX
#define BIG 0x7fffffffu

static uint64_t seed;

static uint32_t rnd(uint32_t bound)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33) % bound;
}

struct read_case {
	const char *why;
	int err;
	uint32_t proc;
	size_t inline_bytes;
	uint32_t n;
	struct {
		uint32_t position, length;
		uint64_t offset;
	} r[6];
	struct rr_read_info want;
};

#define PZRC(first, nsegs, bytes)                                                                  \
	.has_pzrc = true, .pzrc_first = (first), .pzrc_nsegs = (nsegs), .pzrc_bytes = (bytes)
#define ITEM(position, first, nsegs, bytes)                                                        \
	.has_item = true, .item_position = (position), .item_first = (first),                      \
	.item_nsegs = (nsegs), .item_bytes = (bytes)

/* clang-format off */
static const struct read_case read_cases[] = {
	{ "no chunks", 0, RR_MSG, 40, 0, { { 0 } }, { 0 } },
	{ "WRITE", 0, RR_MSG, 112, 1, { { 112, 4096, 0 } }, { ITEM(112, 0, 1, 4096) } },
	/* 15: an odd length is the chunk's own affair */
	{ "odd", 0, RR_MSG, 112, 1, { { 112, 5001, 0 } }, { ITEM(112, 0, 1, 5001) } },
	{ "rounded", 0, RR_MSG, 112, 1, { { 112, 5004, 0 } }, { ITEM(112, 0, 1, 5004) } }, /* 16 */
	{ "odd split", 0, RR_MSG, 112, 2, { { 112, 1001, 0 }, { 112, 4000, 9 } }, { ITEM(112, 0,
	  2, 5001) } }, /* 17 */
	{ "item in the middle", 0, RR_MSG, 120, 1, { { 64, 8, 0 } }, { ITEM(64, 0, 1, 8) } },
	{ "position at the end of the inline bytes", 0, RR_MSG, 112, 1, { { 112, 8, 0 } }, {
	  ITEM(112, 0, 1, 8) } },
	/* 19 */
	{ "position beyond", -EBADMSG, RR_MSG, 112, 1, { { 116, 8, 0 } }, { 0 } },
	{ "position far beyond", -EBADMSG, RR_MSG, 112, 1, { { 0xfffffffc, 8, 0 } }, { 0 } },
	{ "two items", -EBADMSG, RR_MSG, 112, 2, { { 112, 8, 0 }, { 64, 8, 0 } }, { 0 } },
	{ "three items", -EBADMSG, RR_MSG, 112, 3, { { 32, 8, 0 }, { 64, 8, 0 }, { 112, 8, 0 } },
	  { 0 } },
	/* 22 */
	{ "long call", 0, RR_NOMSG, 0, 1, { { 0, 40, 0 } }, { PZRC(0, 1, 40) } },
	{ "long call in crumbs", 0, RR_NOMSG, 0, 3, { { 0, 10, 0 }, { 0, 21, 7 }, { 0, 9, 3 } }, {
	  PZRC(0, 3, 40) } },
	{ "long call of the greatest size", 0, RR_NOMSG, 0, 1, { { 0, MAX_CALL, 0 } }, { PZRC(0,
	  1, MAX_CALL) } },
	{ "long call over it", -EBADMSG, RR_NOMSG, 0, 1, { { 0, MAX_CALL + 4, 0 } }, { 0 } },
	{ "long call under 40 bytes", -EBADMSG, RR_NOMSG, 0, 1, { { 0, 36, 0 } }, { 0 } },
	{ "long call not of words", -EBADMSG, RR_NOMSG, 0, 1, { { 0, 42, 0 } }, { 0 } },
	{ "long call of nothing", -EBADMSG, RR_NOMSG, 0, 1, { { 0, 0, 0 } }, { 0 } },
	{ "NOMSG, no chunk", -EBADMSG, RR_NOMSG, 0, 0, { { 0 } }, { 0 } }, /* 9 */
	{ "NOMSG, inline bytes only", -EBADMSG, RR_NOMSG, 400, 0, { { 0 } }, { 0 } },
	{ "NOMSG, item only", -EBADMSG, RR_NOMSG, 400, 1, { { 64, 8, 0 } }, { 0 } },
	{ "NOMSG, bytes behind it ignored", 0, RR_NOMSG, 400, 1, { { 0, 80, 0 } }, { PZRC(0, 1,
	  80) } },
	{ "MSG with a position-zero chunk", -EBADMSG, RR_MSG, 80, 1, { { 0, 80, 0 } }, { 0 } },
	{ "MSG of nothing", -EBADMSG, RR_MSG, 0, 0, { { 0 } }, { 0 } },
	{ "MSG of nothing, item", -EBADMSG, RR_MSG, 0, 1, { { 4, 80, 0 } }, { 0 } },
	/* 23 */
	{ "long call and item", 0, RR_NOMSG, 0, 4, { { 0, 100, 0 }, { 0, 12, 0 }, { 112, 65536, 0
	  }, { 112, 1, 5 } }, { PZRC(0, 2, 112), ITEM(112, 2, 2, 65537) } },
	{ "item in front of the long call", 0, RR_NOMSG, 0, 2, { { 64, 8, 0 }, { 0, 112, 0 } }, {
	  PZRC(1, 1, 112), ITEM(64, 0, 1, 8) } },
	{ "position beyond the long call", -EBADMSG, RR_NOMSG, 400, 2, { { 0, 112, 0 }, { 116, 8,
	  0 } }, { 0 } },
	{ "long call torn apart", -EBADMSG, RR_NOMSG, 0, 3, { { 0, 100, 0 }, { 64, 8, 0 }, { 0,
	  12, 0 } }, { 0 } },
	{ "item torn apart", -EBADMSG, RR_NOMSG, 0, 3, { { 64, 8, 0 }, { 0, 112, 0 }, { 64, 8, 0 }
	  }, { 0 } },
	{ "item that comes back", -EBADMSG, RR_MSG, 112, 3, { { 64, 8, 0 }, { 112, 8, 0 }, { 64,
	  8, 0 } }, { 0 } },
	/* 24 */
	{ "2 GiB", -EBADMSG, RR_MSG, 112, 1, { { 112, BIG, 0 } }, { 0 } },
	{ "4 GiB", -EBADMSG, RR_MSG, 112, 1, { { 112, UINT32_MAX, 0 } }, { 0 } },
	{ "sum over the limit", -EBADMSG, RR_MSG, 112, 2, { { 112, 1048576, 0 }, { 112, 8192, 0 }
	  }, { 0 } },
	{ "sum at the limit", 0, RR_MSG, 112, 2, { { 112, 1048576, 0 }, { 112, 8192 - 112, 0 } },
	  { ITEM(112, 0, 2, MAX_CALL - 112) } },
	{ "sum that wraps 32 bits to 4096", -EBADMSG, RR_MSG, 112, 3, { { 112, 0x80000000u, 0 }, {
	  112, 0x80000000u, 0 }, { 112, 4096, 0 } }, { 0 } },
	{ "both chunks within, together over", -EBADMSG, RR_NOMSG, 0, 2, { { 0, 8196, 0 }, { 112,
	  1048576, 0 } }, { 0 } },
	{ "inline and chunk together over", -EBADMSG, RR_MSG, 65536, 1, { { 112, 1048576, 0 } }, {
	  0 } },
	/* offset + length */
	{ "offset wraps", -EBADMSG, RR_MSG, 112, 1, { { 112, 8, UINT64_MAX - 6 } }, { 0 } },
	{ "offset wraps, second", -EBADMSG, RR_MSG, 112, 2, { { 112, 8, 0 }, { 112, 8, UINT64_MAX
	  } }, { 0 } },
	{ "to the very end", 0, RR_MSG, 112, 1, { { 112, 8, UINT64_MAX - 7 } }, { ITEM(112, 0, 1,
	  8) } },
	{ "long call wraps", -EBADMSG, RR_NOMSG, 0, 1, { { 0, 80, UINT64_MAX - 40 } }, { 0 } },
	/* 25 */
	{ "zero-length segments", 0, RR_MSG, 112, 3, { { 112, 0, UINT64_MAX }, { 112, 8, 0 }, {
	  112, 0, 0 } }, { ITEM(112, 0, 3, 8) } },
	{ "item of nothing", 0, RR_MSG, 112, 1, { { 112, 0, 0 } }, { ITEM(112, 0, 1, 0) } },
	{ "zero-length at a third position", -EBADMSG, RR_MSG, 112, 2, { { 64, 0, 0 }, { 112, 8, 0
	  } }, { 0 } },
};
/* clang-format on */

static void test_reads(void **state)
{
	static struct rr_hdr h;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(read_cases); i++) {
		const struct read_case *c = &read_cases[i];
		struct rr_read_info got;
		int err;

		rr_hdr_init(&h, 1, 1, c->proc);
		h.nreads = c->n;
		for (uint32_t k = 0; k < c->n; k++) {
			h.reads[k].position = c->r[k].position;
			h.reads[k].seg = (struct rr_segment){ k, c->r[k].length, c->r[k].offset };
		}
		memset(&got, 0x5a, sizeof(got));
		err = rr_chunk_check_reads(&h, c->inline_bytes, MAX_CALL, &got);
		if (err != c->err)
			fail_msg("%s: %d, not %d", c->why, err, c->err);
		if (err)
			continue;
		if (got.has_pzrc != c->want.has_pzrc || got.pzrc_first != c->want.pzrc_first ||
		    got.pzrc_nsegs != c->want.pzrc_nsegs || got.pzrc_bytes != c->want.pzrc_bytes ||
		    got.has_item != c->want.has_item || got.item_first != c->want.item_first ||
		    got.item_nsegs != c->want.item_nsegs || got.item_bytes != c->want.item_bytes ||
		    got.item_position != c->want.item_position)
			fail_msg("%s: understood wrongly", c->why);
	}
}

/* 24: 64 segments of 4 GiB, the most a header can say */
static void test_reads_max(void **state)
{
	static struct rr_hdr h;
	struct rr_read_info info;

	(void)state;
	rr_hdr_init(&h, 1, 1, RR_MSG);
	h.nreads = RR_READ_SEGS_MAX;
	for (uint32_t i = 0; i < h.nreads; i++)
		h.reads[i] = (struct rr_read_seg){ 112, { i, UINT32_MAX, 0 } };
	assert_int_equal(rr_chunk_check_reads(&h, 112, UINT32_MAX, &info), -EBADMSG);
	for (uint32_t i = 0; i < h.nreads; i++) /* 64 * 2^26 = 2^32: wraps to 0 in 32 bits */
		h.reads[i].seg.length = 1u << 26;
	assert_int_equal(rr_chunk_check_reads(&h, 112, UINT32_MAX, &info), -EBADMSG);
	for (uint32_t i = 0; i < h.nreads; i++) /* 18: each its own handle */
		h.reads[i].seg.length = 16384;
	assert_int_equal(rr_chunk_check_reads(&h, 112, MAX_CALL, &info), 0);
	assert_int_equal(info.item_nsegs, RR_READ_SEGS_MAX);
	assert_int_equal(info.item_bytes, 1048576);
	h.reads[63].position = 116;
	assert_int_equal(rr_chunk_check_reads(&h, 120, MAX_CALL, &info), -EBADMSG);
}

/* What a Linux client sent is understood. */
static void test_reads_vectors(void **state)
{
	static const struct {
		const char *name;
		uint32_t pzrc, item, position;
	} cases[] = {
		{ "write-chunk-call", 0, 5001, 112 },
		{ "symlink-chunk-call", 0, 4000, 120 },
		{ "read-1m-call", 0, 0, 0 },
		{ "long-call", 3988, 0, 0 },
		{ "long-call-read-chunk", 1504, 65537, 112 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rr_read_info info;
		struct vector v;
		struct rr_hdr h;
		size_t took;

		vector_load(cases[i].name, &v);
		assert_int_equal(rr_hdr_decode(v.bytes, v.len, &h, &took), 0);
		assert_int_equal(rr_chunk_check_reads(&h, v.len - took, MAX_CALL, &info), 0);
		assert_int_equal(rr_chunk_check_writes(&h, MAX_CALL), 0);
		assert_int_equal(info.pzrc_bytes, cases[i].pzrc);
		assert_int_equal(info.item_bytes, cases[i].item);
		assert_int_equal(info.item_position, cases[i].position);
		vector_unload(&v);
	}
}

static void test_writes(void **state)
{
	static struct rr_hdr h;

	(void)state;
	rr_hdr_init(&h, 1, 1, RR_MSG);
	assert_int_equal(rr_chunk_check_writes(&h, 0), 0);
	h.nwrites = 2;
	h.writes[0].nsegs = 2;
	h.writes[0].segs[0] = (struct rr_segment){ 1, 4096, 0 };
	h.writes[0].segs[1] = (struct rr_segment){ 2, 4, 77 };
	h.writes[1].nsegs = 0; /* 31 */
	assert_true(rr_chunk_bytes(&h.writes[0]) == 4100);
	assert_true(rr_chunk_bytes(&h.writes[1]) == 0);
	assert_int_equal(rr_chunk_check_writes(&h, 4100), 0);
	assert_int_equal(rr_chunk_check_writes(&h, 4099), -EBADMSG);

	h.writes[0].segs[1].offset = UINT64_MAX - 3; /* ends with the last byte there is */
	assert_int_equal(rr_chunk_check_writes(&h, MAX_CALL), 0);
	h.writes[0].segs[1].offset++;
	assert_int_equal(rr_chunk_check_writes(&h, MAX_CALL), -EBADMSG);
	h.writes[0].segs[1].length = 0;
	assert_int_equal(rr_chunk_check_writes(&h, MAX_CALL), 0);

	h.has_reply = true;
	h.reply.nsegs = RR_CHUNK_SEGS_MAX;
	for (uint32_t i = 0; i < RR_CHUNK_SEGS_MAX; i++)
		h.reply.segs[i] = (struct rr_segment){ i, UINT32_MAX, i };
	assert_true(rr_chunk_bytes(&h.reply) == UINT64_C(64) * UINT32_MAX);
	assert_int_equal(rr_chunk_check_writes(&h, UINT32_MAX), -EBADMSG);
	assert_int_equal(rr_chunk_check_writes(&h, UINT64_C(64) * UINT32_MAX), 0);
	h.reply.segs[63].offset = UINT64_MAX;
	assert_int_equal(rr_chunk_check_writes(&h, UINT64_MAX), -EBADMSG);
	h.reply.nsegs = 63;
	h.writes[1].nsegs = 1;
	h.writes[1].segs[0] = (struct rr_segment){ 1, 2, UINT64_MAX };
	assert_int_equal(rr_chunk_check_writes(&h, UINT64_MAX), -EBADMSG);
}

/* 17, 26: byte n of a chunk, against a plain array of all its bytes */
struct byte_at {
	uint32_t handle;
	uint64_t offset;
};

static uint32_t lay_out(const struct rr_segment *segs, unsigned nsegs, struct byte_at *map)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < nsegs; i++)
		for (uint32_t k = 0; k < segs[i].length; k++)
			map[n++] = (struct byte_at){ segs[i].handle, segs[i].offset + k };
	return n;
}

static void check_range(const struct rr_segment *segs, unsigned nsegs, const struct byte_at *map,
			uint32_t total, uint32_t off, uint32_t len)
{
	struct rr_read_seg reads[RR_READ_SEGS_MAX];
	struct rr_span spans[RR_CHUNK_SEGS_MAX], again[RR_CHUNK_SEGS_MAX];
	int n = rr_chunk_spans(segs, nsegs, off, len, spans, RR_CHUNK_SEGS_MAX);
	uint32_t done = 0;

	if ((uint64_t)off + len > total) {
		assert_int_equal(n, -EMSGSIZE);
		return;
	}
	assert_true(n >= 0 && (unsigned)n <= nsegs);
	for (int i = 0; i < n; i++) {
		assert_int_equal(spans[i].skip, done);
		assert_true(spans[i].length > 0);
		for (uint32_t k = 0; k < spans[i].length; k++, done++) {
			assert_int_equal(spans[i].handle, map[off + done].handle);
			assert_true(spans[i].offset + k == map[off + done].offset);
		}
	}
	assert_int_equal(done, len);
	if (n) {
		unsigned max = (unsigned)n - 1;

		assert_int_equal(rr_chunk_spans(segs, nsegs, off, len, again, max), -ENOBUFS);
	}
	for (unsigned i = 0; i < nsegs; i++)
		reads[i] = (struct rr_read_seg){ 112, segs[i] };
	memset(again, 0, sizeof(again));
	assert_int_equal(rr_chunk_read_spans(reads, nsegs, off, len, again, RR_CHUNK_SEGS_MAX), n);
	for (int i = 0; i < n; i++) {
		assert_int_equal(again[i].handle, spans[i].handle);
		assert_true(again[i].offset == spans[i].offset);
		assert_int_equal(again[i].length, spans[i].length);
		assert_int_equal(again[i].skip, spans[i].skip);
	}
}

static void test_spans(void **state)
{
	static struct byte_at map[RR_CHUNK_SEGS_MAX * 16];

	(void)state;
	seed = 4;
	for (int round = 0; round < 300; round++) {
		struct rr_segment segs[RR_CHUNK_SEGS_MAX];
		unsigned nsegs = rnd(round % 2 ? 5 : RR_CHUNK_SEGS_MAX + 1);
		uint32_t total;

		for (unsigned i = 0; i < nsegs; i++) {
			segs[i].handle = rnd(4); /* the same in two segments is legal */
			segs[i].length = rnd(4) ? rnd(16) : 0;
			segs[i].offset = UINT64_C(0xfffffff000000000) + rnd(UINT32_MAX);
		}
		total = lay_out(segs, nsegs, map);
		check_range(segs, nsegs, map, total, 0, total);
		check_range(segs, nsegs, map, total, 0, total + 1);
		check_range(segs, nsegs, map, total, total, 0);
		check_range(segs, nsegs, map, total, total + 1, 0);
		for (int k = 0; k < 50; k++)
			check_range(segs, nsegs, map, total, rnd(total + 1), rnd(total + 2));
	}
}

static void test_spans_huge(void **state)
{
	static struct rr_segment segs[RR_CHUNK_SEGS_MAX];
	struct rr_span span[2];

	(void)state;
	for (uint32_t i = 0; i < RR_CHUNK_SEGS_MAX; i++)
		segs[i] = (struct rr_segment){ i, UINT32_MAX, (uint64_t)i << 33 };
	assert_int_equal(rr_chunk_spans(segs, 64, UINT64_MAX, 1, span, 2), -EMSGSIZE);
	assert_int_equal(rr_chunk_spans(segs, 64, UINT64_C(64) * UINT32_MAX, 1, span, 2),
			 -EMSGSIZE);
	assert_int_equal(
		rr_chunk_spans(segs, 64, UINT64_C(63) * UINT32_MAX - 1, UINT32_MAX, span, 2), 2);
	assert_int_equal(span[0].handle, 62);
	assert_int_equal(span[0].length, 1);
	assert_true(span[0].offset == (UINT64_C(62) << 33) + UINT32_MAX - 1);
	assert_int_equal(span[1].handle, 63);
	assert_int_equal(span[1].length, UINT32_MAX - 1);
	assert_int_equal(span[1].skip, 1);
	assert_int_equal(rr_chunk_spans(segs, 0, 0, 0, span, 0), 0);
	assert_int_equal(rr_chunk_spans(segs, 0, 0, 1, span, 0), -EMSGSIZE);
}

/* 26, 27, 28, 29: the lengths returned for the bytes used; handles and offsets stay */
static void test_return(void **state)
{
	static const struct {
		uint32_t n, offered[4];
		uint64_t used;
		uint32_t returned[4];
	} cases[] = {
		{ 1, { 4096 }, 4096, { 4096 } },
		{ 1, { 8192 }, 0, { 0 } },
		{ 1, { 8192 }, 1001, { 1001 } },
		{ 2, { 5001, 4 }, 5001, { 5001, 0 } },
		{ 3, { 120, 4096, 4 }, 1124, { 120, 1004, 0 } },
		{ 3, { 124, 65536, 4 }, 124, { 124, 0, 0 } },
		{ 3, { 256, 28672, 4 }, 184, { 184, 0, 0 } },
		{ 3, { 10, 0, 10 }, 11, { 10, 0, 1 } },
		{ 0, { 0 }, 0, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rr_chunk c = { .nsegs = cases[i].n }, r;
		uint64_t used = 99;

		for (uint32_t k = 0; k < c.nsegs; k++)
			c.segs[k] = (struct rr_segment){ 7 + k, cases[i].offered[k], 1000 + k };
		rr_chunk_return(&c, cases[i].used, &r);
		assert_int_equal(r.nsegs, c.nsegs);
		for (uint32_t k = 0; k < c.nsegs; k++) {
			assert_int_equal(r.segs[k].handle, 7 + k);
			assert_int_equal(r.segs[k].length, cases[i].returned[k]);
			assert_true(r.segs[k].offset == 1000 + k);
		}
		assert_int_equal(rr_chunk_check_returned(&c, &r, &used), 0);
		assert_true(used == cases[i].used);
		rr_chunk_return(&c, cases[i].used, &c); /* in place */
		assert_int_equal(rr_chunk_check_returned(&c, &r, &used), 0);
	}
}

/* 12, 41: what a responder may not return */
static void test_returned(void **state)
{
	struct rr_chunk offer = { .nsegs = 3,
				  .segs = { { 1, 100, 10 }, { 2, 0, 20 }, { 3, 100, 30 } } };
	struct rr_chunk r;
	uint64_t used = 77;

	(void)state;
	r = offer;
	r.nsegs = 2;
	assert_int_equal(rr_chunk_check_returned(&offer, &r, &used), -EPROTO);
	r = offer;
	r.nsegs = 4;
	assert_int_equal(rr_chunk_check_returned(&offer, &r, &used), -EPROTO);
	r = offer;
	r.segs[2].handle++;
	assert_int_equal(rr_chunk_check_returned(&offer, &r, &used), -EPROTO);
	r = offer;
	r.segs[0].offset--;
	assert_int_equal(rr_chunk_check_returned(&offer, &r, &used), -EPROTO);
	r = offer;
	r.segs[0].length = 101;
	assert_int_equal(rr_chunk_check_returned(&offer, &r, &used), -EPROTO);
	r = offer;
	r.segs[2].length = 101; /* nothing behind it that could give it away */
	assert_int_equal(rr_chunk_check_returned(&offer, &r, &used), -EPROTO);
	r = offer;
	r.segs[1].length = UINT32_MAX;
	assert_int_equal(rr_chunk_check_returned(&offer, &r, &used), -EPROTO);
	r = offer;
	r.segs[0].length = 99; /* not full, but the third was used */
	assert_int_equal(rr_chunk_check_returned(&offer, &r, &used), -EPROTO);
	assert_true(used == 77);
	r.segs[2].length = 0;
	assert_int_equal(rr_chunk_check_returned(&offer, &r, &used), 0);
	assert_true(used == 99);
	r = offer; /* a segment of no length is full */
	r.segs[2].length = 1;
	assert_int_equal(rr_chunk_check_returned(&offer, &r, &used), 0);
	assert_true(used == 101);
}

/* Calls and replies of a capture agree. */
static void test_returned_vectors(void **state)
{
	static const struct {
		const char *name;
		uint64_t used;
	} cases[] = {
		{ "read-chunk", 4096 }, { "read-eof", 0 },	 { "read-short", 1001 },
		{ "read-odd", 5001 },	{ "read-1m", 1048576 },	 { "readlink-long", 1124 },
		{ "getacl", 184 },	{ "readdirplus", 1472 }, { "readdirplus-next", 3324 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rr_hdr call, reply;
		char name[64];
		struct vector v;
		uint64_t used;
		size_t took;

		snprintf(name, sizeof(name), "%s-call", cases[i].name);
		vector_load(name, &v);
		assert_int_equal(rr_hdr_decode(v.bytes, v.len, &call, &took), 0);
		vector_unload(&v);
		snprintf(name, sizeof(name), "%s-reply", cases[i].name);
		vector_load(name, &v);
		assert_int_equal(rr_hdr_decode(v.bytes, v.len, &reply, &took), 0);
		vector_unload(&v);
		assert_int_equal(call.nwrites, reply.nwrites);
		assert_int_equal(call.has_reply, reply.has_reply);
		if (call.has_reply)
			assert_int_equal(rr_chunk_check_returned(&call.reply, &reply.reply, &used),
					 0);
		else
			assert_int_equal(
				rr_chunk_check_returned(&call.writes[0], &reply.writes[0], &used),
				0);
		assert_true(used == cases[i].used);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_reads_max),
		cmocka_unit_test(test_reads_vectors),
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_spans_huge),
		cmocka_unit_test(test_return),
		cmocka_unit_test(test_returned),
		cmocka_unit_test(test_returned_vectors),
	};

	return cmocka_run_group_tests_name("chunk", tests, NULL, NULL);
}
