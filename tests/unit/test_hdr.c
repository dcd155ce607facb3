/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_hdr.c - transport header: golden bytes, refusals, truncation at every length, round trips
 *
 * Messages under test are copied into an allocation of exactly their length, so that a sanitizer
 * sees any look past the end.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/wire.h"
#include "hdr.h"
#include "vectors.h"

#define MAX_HDR_BYTES                                                                              \
	(RR_HDR_MIN + RR_READ_SEGS_MAX * RR_READ_SEG_BYTES +                                       \
	 (RR_WRITE_CHUNKS_MAX + 1) * (RR_CHUNK_HEAD_BYTES + RR_CHUNK_SEGS_MAX * RR_SEGMENT_BYTES))

static uint64_t seed;

static uint32_t rnd(uint32_t bound)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33) % bound;
}

static int decode_exact(const void *bytes, size_t len, struct rr_hdr *h, size_t *ret_len)
{
	uint8_t *copy = malloc(len ? len : 1);
	int err;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	err = rr_hdr_decode(copy, len, h, ret_len);
	free(copy);
	return err;
}

static void assert_no_lists(const struct rr_hdr *h)
{
	assert_int_equal(h->nreads, 0);
	assert_int_equal(h->nwrites, 0);
	assert_false(h->has_reply);
	assert_int_equal(h->err, 0);
}

static void fill_segment(struct rr_segment *s)
{
	s->handle = rnd(UINT32_MAX);
	s->length = rnd(UINT32_MAX);
	s->offset = (uint64_t)rnd(UINT32_MAX) << 33 ^ rnd(UINT32_MAX);
}

static void fill_chunk(struct rr_chunk *c, uint32_t nsegs)
{
	c->nsegs = nsegs;
	for (uint32_t i = 0; i < nsegs; i++)
		fill_segment(&c->segs[i]);
}

static void fill_lists(struct rr_hdr *h, uint32_t nreads, uint32_t nwrites, uint32_t nsegs,
		       bool has_reply)
{
	h->nreads = nreads;
	for (uint32_t i = 0; i < nreads; i++) {
		h->reads[i].position = rnd(1u << 20) * 4;
		fill_segment(&h->reads[i].seg);
	}
	h->nwrites = nwrites;
	for (uint32_t i = 0; i < nwrites; i++)
		fill_chunk(&h->writes[i], nsegs);
	h->has_reply = has_reply;
	if (has_reply)
		fill_chunk(&h->reply, nsegs);
}

static void assert_same_segment(const struct rr_segment *a, const struct rr_segment *b)
{
	assert_int_equal(a->handle, b->handle);
	assert_int_equal(a->length, b->length);
	assert_true(a->offset == b->offset);
}

static void assert_same_chunk(const struct rr_chunk *a, const struct rr_chunk *b)
{
	assert_int_equal(a->nsegs, b->nsegs);
	for (uint32_t i = 0; i < a->nsegs; i++)
		assert_same_segment(&a->segs[i], &b->segs[i]);
}

static void assert_same(const struct rr_hdr *a, const struct rr_hdr *b)
{
	assert_int_equal(a->xid, b->xid);
	assert_int_equal(a->vers, b->vers);
	assert_int_equal(a->credits, b->credits);
	assert_int_equal(a->proc, b->proc);
	assert_int_equal(a->nreads, b->nreads);
	assert_int_equal(a->nwrites, b->nwrites);
	assert_int_equal(a->has_reply, b->has_reply);
	for (uint32_t i = 0; i < a->nreads; i++) {
		assert_int_equal(a->reads[i].position, b->reads[i].position);
		assert_same_segment(&a->reads[i].seg, &b->reads[i].seg);
	}
	for (uint32_t i = 0; i < a->nwrites; i++)
		assert_same_chunk(&a->writes[i], &b->writes[i]);
	if (a->has_reply)
		assert_same_chunk(&a->reply, &b->reply);
	assert_int_equal(a->err, b->err);
	assert_int_equal(a->vers_low, b->vers_low);
	assert_int_equal(a->vers_high, b->vers_high);
}

/* encode -> decode -> equal; the size is as foretold; no shorter room will do */
static void round_trip(const struct rr_hdr *h)
{
	static uint8_t buf[MAX_HDR_BYTES];
	static struct rr_hdr back;
	size_t len = 0, took = 0, want = rr_hdr_bytes(h);

	assert_int_equal(rr_hdr_encode(h, buf, sizeof(buf), &len), 0);
	assert_int_equal(len, want);
	assert_int_equal(decode_exact(buf, len, &back, &took), 0);
	assert_int_equal(took, len);
	assert_same(h, &back);
	assert_int_equal(rr_hdr_encode(h, buf, want, &len), 0);
	assert_int_equal(rr_hdr_encode(h, buf, want - 1, &took), -EMSGSIZE);
	assert_int_equal(rr_hdr_encode(h, buf, 0, &took), -EMSGSIZE);
}

/* What each vector's header says, in our own one-line form. */
static const struct {
	const char *name, *line;
} golden[] = {
	{ "null-call", "RDMA_MSG xid=0x659ce721 cred=128 hdr=28" }, /* checklist 3 */
	{ "null-reply", "RDMA_MSG xid=0x659ce721 cred=64 hdr=28" },
	{ "read-chunk-call", "RDMA_MSG xid=0x7d9ce721 cred=128 hdr=52 WRITE[1: 4096]" },
	{ "read-chunk-reply", "RDMA_MSG xid=0x7d9ce721 cred=64 hdr=52 WRITE[1: 4096]" },
	{ "read-eof-reply", "RDMA_MSG xid=0x8b9ce721 cred=64 hdr=52 WRITE[1: 0]" },
	{ "read-odd-call", "RDMA_MSG xid=0xea76adb3 cred=128 hdr=68 WRITE[2: 5001+4]" },
	{ "read-odd-reply", "RDMA_MSG xid=0xea76adb3 cred=64 hdr=68 WRITE[2: 5001+0]" },
	{ "write-chunk-call", "RDMA_MSG xid=0x949ce721 cred=128 hdr=52 READ[pos=112: 5001]" },
	{ "write-inline-call", "RDMA_MSG xid=0x999ce721 cred=128 hdr=28" },
	{ "symlink-chunk-call", "RDMA_MSG xid=0xa69ce721 cred=128 hdr=52 READ[pos=120: 4000]" },
	{ "readlink-call", "RDMA_MSG xid=0x719ce721 cred=128 hdr=80 REPLY[3: 120+4096+4]" },
	{ "readlink-long-reply", "RDMA_NOMSG xid=0x719ce721 cred=64 hdr=80 REPLY[3: 120+1004+0]" },
	{ "readdirplus-call", "RDMA_MSG xid=0x6f9ce721 cred=128 hdr=80 REPLY[3: 124+65536+4]" },
	{ "getacl-reply", "RDMA_NOMSG xid=0x6c9ce721 cred=64 hdr=80 REPLY[3: 184+0+0]" },
	{ "long-call", "RDMA_NOMSG xid=0xfc76adb3 cred=128 hdr=76 READ[pos=0: 96+3892]" },
	{ "long-call-read-chunk", "RDMA_NOMSG xid=0xfc76adb5 cred=128 hdr=100 "
				  "READ[pos=0: 1504] READ[pos=112: 65536+1]" },
	{ "read-both-chunks-reply", "RDMA_NOMSG xid=0x7b9ce722 cred=64 hdr=72 "
				    "WRITE[1: 4096] REPLY[1: 128]" },
	{ "err-chunk", "RDMA_ERROR xid=0x659ce721 cred=64 hdr=20 ERR_CHUNK" },
	{ "done", "RDMA_DONE xid=0x659ce721 cred=64 hdr=16" },
};

static void test_golden(void **state)
{
	char line[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(golden); i++) {
		struct rr_hdr h;
		struct vector v;
		size_t took;

		vector_load(golden[i].name, &v);
		assert_int_equal(rr_hdr_decode(v.bytes, v.len, &h, &took), 0);
		assert_string_equal(rr_hdr_print(&h, line, sizeof(line)), golden[i].line);
		vector_unload(&v);
	}
}

/* checklist 1, 3: every recorded header comes back byte for byte */
static void one_vector(const struct vector *v, void *arg)
{
	unsigned *count = arg;
	uint8_t buf[MAX_HDR_BYTES];
	struct rr_hdr h;
	size_t took, len;

	if (vector_is_rpc(v) || strcmp(v->name, "err-vers") == 0)
		return;
	assert_int_equal(rr_hdr_decode(v->bytes, v->len, &h, &took), 0);
	assert_int_equal(rr_hdr_bytes(&h), took);
	assert_int_equal(rr_hdr_encode(&h, buf, sizeof(buf), &len), 0);
	assert_int_equal(len, took);
	assert_memory_equal(buf, v->bytes, len);
	assert_int_not_equal(h.credits, 0); /* checklist 2 */
	if (h.proc == RR_MSG) /* checklist 1: the XID in clear is that of the RPC message */
		assert_int_equal(h.xid, get_be32(v->bytes + took));
	else
		assert_int_equal(took, v->len);
	round_trip(&h);
	++*count;
}

static void test_vectors(void **state)
{
	unsigned count = 0;

	(void)state;
	vector_each(one_vector, &count);
	assert_true(count > 50);
}

/* checklist 7, 8: a header cut at every byte is refused, with what was received of it */
static void cut_everywhere(const uint8_t *bytes, size_t len, uint32_t vers)
{
	for (size_t n = 0; n < len; n++) {
		struct rr_hdr h;
		size_t took = 12345;
		int err = decode_exact(bytes, n, &h, &took);

		assert_int_equal(err, n < 8	  ? -EMSGSIZE
				      : n < 16	  ? -ENODATA
				      : vers != 1 ? -EPROTONOSUPPORT
						  : -EBADMSG);
		assert_int_equal(took, 12345); /* untouched on failure */
		assert_no_lists(&h);
		assert_int_equal(h.xid, n >= 4 ? get_be32(bytes) : 0);
		assert_int_equal(h.vers, n >= 8 ? get_be32(bytes + 4) : 0);
		assert_int_equal(h.credits, n >= 12 ? get_be32(bytes + 8) : 0);
		assert_int_equal(h.proc, n >= 16 ? get_be32(bytes + 12) : 0);
	}
}

static void cut_vector(const struct vector *v, void *arg)
{
	uint32_t vers;
	struct rr_hdr h;
	size_t took = v->len;

	(void)arg;
	if (vector_is_rpc(v))
		return;
	vers = get_be32(v->bytes + 4);
	if (vers == 1)
		assert_int_equal(rr_hdr_decode(v->bytes, v->len, &h, &took), 0);
	cut_everywhere(v->bytes, took, vers);
}

static void test_truncated(void **state)
{
	static uint8_t buf[MAX_HDR_BYTES];
	static struct rr_hdr h;
	size_t len;

	(void)state;
	vector_each(cut_vector, NULL);
	seed = 7;
	rr_hdr_init(&h, 0x01020304, 32, RR_MSG);
	fill_lists(&h, RR_READ_SEGS_MAX, RR_WRITE_CHUNKS_MAX, RR_CHUNK_SEGS_MAX, true);
	assert_int_equal(rr_hdr_encode(&h, buf, sizeof(buf), &len), 0);
	assert_int_equal(len, MAX_HDR_BYTES - 4); /* the reply's discriminator counted twice */
	cut_everywhere(buf, len, 1);
}

/* Tables of words: the header as the peer sent it and what it deserves. */
#define SEG 0x11, 0x22, 0x33, 0x44
/* clang-format off */
static const struct {
	const char *why;
	int err;
	uint32_t n, words[24];
} malformed[] = {
	{ "minimum", 0, 7, { 1, 1, 8, 0, 0, 0, 0 } },
	{ "credits 0 is the caller's business", 0, 7, { 1, 1, 0, 0, 0, 0, 0 } },
	{ "NOMSG", 0, 7, { 1, 1, 8, 1, 0, 0, 0 } },
	{ "one read segment", 0, 13, { 1, 1, 8, 0, 1, 4, SEG, 0, 0, 0 } },
	{ "empty write chunk", 0, 9, { 1, 1, 8, 0, 0, 1, 0, 0, 0 } }, /* 31 */
	{ "empty reply chunk", 0, 8, { 1, 1, 8, 0, 0, 0, 1, 0 } },
	{ "two write chunks", 0, 15, { 1, 1, 8, 0, 0, 1, 1, SEG, 1, 0, 0, 0 } }, /* 37 */
	{ "version 0", -EPROTONOSUPPORT, 7, { 1, 0, 8, 0, 0, 0, 0 } }, /* 4 */
	{ "version 2", -EPROTONOSUPPORT, 7, { 1, 2, 8, 0, 0, 0, 0 } },
	{ "version before procedure", -EPROTONOSUPPORT, 4, { 1, 2, 8, 99 } },
	{ "RDMA_MSGP", -EOPNOTSUPP, 9, { 1, 1, 8, 2, 0, 0, 0, 0, 0 } }, /* 5 */
	{ "procedure 5", -EOPNOTSUPP, 7, { 1, 1, 8, 5, 0, 0, 0 } },
	{ "procedure 2^32-1", -EOPNOTSUPP, 7, { 1, 1, 8, UINT32_MAX, 0, 0, 0 } },
	{ "RDMA_DONE", 0, 4, { 1, 1, 8, 3 } }, /* 6 */
	{ "RDMA_DONE and more", 0, 6, { 1, 1, 8, 3, 0xdead, 0xbeef } }, /* 6 */
	{ "ERR_CHUNK", 0, 5, { 1, 1, 8, 4, 2 } },
	{ "ERR_VERS", 0, 7, { 1, 1, 8, 4, 1, 1, 1 } },
	{ "error without body", -EBADMSG, 4, { 1, 1, 8, 4 } },
	{ "error 0", -EBADMSG, 7, { 1, 1, 8, 4, 0, 1, 1 } },
	{ "error 3", -EBADMSG, 7, { 1, 1, 8, 4, 3, 1, 1 } },
	/* checklist 10: booleans are 0 or 1, in each of the three places and at list ends */
	{ "read list bool 2", -EBADMSG, 13, { 1, 1, 8, 0, 2, 4, SEG, 0, 0, 0 } },
	{ "read list end -1", -EBADMSG, 13, { 1, 1, 8, 0, 1, 4, SEG, UINT32_MAX, 0, 0 } },
	{ "write list bool 2", -EBADMSG, 13, { 1, 1, 8, 0, 0, 2, 1, SEG, 0, 0 } },
	{ "write list end 256", -EBADMSG, 13, { 1, 1, 8, 0, 0, 1, 1, SEG, 256, 0 } },
	{ "reply bool 2", -EBADMSG, 12, { 1, 1, 8, 0, 0, 0, 2, 1, SEG } },
	{ "reply bool 2^31", -EBADMSG, 12, { 1, 1, 8, 0, 0, 0, 0x80000000u, 1, SEG } },
	/* checklist 19: positions are multiples of four */
	{ "position 1", -EBADMSG, 13, { 1, 1, 8, 0, 1, 1, SEG, 0, 0, 0 } },
	{ "position 114", -EBADMSG, 13, { 1, 1, 8, 0, 1, 114, SEG, 0, 0, 0 } },
	{ "position 2^32-1", -EBADMSG, 13, { 1, 1, 8, 0, 1, UINT32_MAX, SEG, 0, 0, 0 } },
	{ "position 2^32-4", 0, 13, { 1, 1, 8, 0, 1, UINT32_MAX - 3, SEG, 0, 0, 0 } },
	/* checklist 7, 24: counts that lie */
	{ "write nsegs 65", -EBADMSG, 13, { 1, 1, 8, 0, 0, 1, 65, SEG, 0, 0 } },
	{ "write nsegs 2^28", -EBADMSG, 13, { 1, 1, 8, 0, 0, 1, 1u << 28, SEG, 0, 0 } },
	{ "write nsegs 2^32-1", -EBADMSG, 13, { 1, 1, 8, 0, 0, 1, UINT32_MAX, SEG, 0, 0 } },
	{ "reply nsegs 2^28", -EBADMSG, 12, { 1, 1, 8, 0, 0, 0, 1, 1u << 28, SEG } },
	{ "reply nsegs 2", -EBADMSG, 12, { 1, 1, 8, 0, 0, 0, 1, 2, SEG } },
	{ "three write chunks", -EBADMSG, 13, { 1, 1, 8, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0 } },
};
/* clang-format on */

static void test_malformed(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
		uint8_t buf[96], back[96];
		struct rr_hdr h;
		size_t took = 0, len;
		int err;

		for (uint32_t k = 0; k < malformed[i].n; k++)
			put_be32(buf + 4 * k, malformed[i].words[k]);
		err = decode_exact(buf, 4 * malformed[i].n, &h, &took);
		if (err != malformed[i].err)
			fail_msg("%s: %d, not %d", malformed[i].why, err, malformed[i].err);
		assert_int_equal(h.xid, 1);
		assert_int_equal(h.vers, malformed[i].words[1]);
		assert_int_equal(h.proc, malformed[i].words[3]);
		if (err) {
			assert_no_lists(&h);
			continue;
		}
		assert_int_equal(rr_hdr_encode(&h, back, sizeof(back), &len), 0);
		assert_int_equal(len, took);
		assert_memory_equal(back, buf, len);
	}
}

/* One more entry than a list may have, and a list without an end. */
static void test_too_many(void **state)
{
	enum { MORE = 3 };
	static uint8_t buf[RR_HDR_FIXED + (RR_READ_SEGS_MAX + MORE) * RR_READ_SEG_BYTES + 12];
	struct rr_hdr h;
	size_t took;

	(void)state;
	for (unsigned n = RR_READ_SEGS_MAX - 1; n <= RR_READ_SEGS_MAX + MORE; n++) {
		memset(buf, 0, sizeof(buf));
		buf[7] = 1;
		for (unsigned i = 0; i < n; i++)
			buf[RR_HDR_FIXED + i * RR_READ_SEG_BYTES + 3] = 1;
		assert_int_equal(rr_hdr_decode(buf, RR_HDR_MIN + n * RR_READ_SEG_BYTES, &h, &took),
				 n <= RR_READ_SEGS_MAX ? 0 : -EBADMSG);
		assert_int_equal(h.nreads, n <= RR_READ_SEGS_MAX ? n : 0);
	}
}

/* The same of the segments of a Write chunk and of the Reply chunk, all of them there. */
static void test_too_many_segments(void **state)
{
	enum { MORE = 3 };
	static uint8_t buf[RR_HDR_MIN + 8 + (RR_CHUNK_SEGS_MAX + MORE) * RR_SEGMENT_BYTES];
	struct rr_hdr h;
	size_t took;

	(void)state;
	for (unsigned n = RR_CHUNK_SEGS_MAX - 1; n <= RR_CHUNK_SEGS_MAX + MORE; n++) {
		for (size_t list = RR_HDR_FIXED + 4; list <= RR_HDR_FIXED + 8; list += 4) {
			int want = n <= RR_CHUNK_SEGS_MAX ? 0 : -EBADMSG;

			memset(buf, 0, sizeof(buf));
			buf[7] = 1;
			buf[list + 3] = 1;
			put_be32(buf + list + 4, n);
			assert_int_equal(rr_hdr_decode(buf, sizeof(buf), &h, &took), want);
			assert_int_equal(h.nwrites, !want && list == RR_HDR_FIXED + 4);
			assert_int_equal(h.has_reply, !want && list == RR_HDR_FIXED + 8);
		}
	}
}

/* Behind the header anything may follow: it is not looked at. */
static void test_trailing(void **state)
{
	uint8_t buf[RR_HDR_MIN + 64] = { 0 };
	struct rr_hdr h;
	size_t took = 0;

	(void)state;
	buf[7] = 1;
	memset(buf + RR_HDR_MIN, 0xff, 64);
	for (size_t n = 0; n <= 64; n++) {
		assert_int_equal(decode_exact(buf, RR_HDR_MIN + n, &h, &took), 0);
		assert_int_equal(took, RR_HDR_MIN);
	}
}

static void test_random(void **state)
{
	static struct rr_hdr h;

	(void)state;
	seed = 1;
	for (int i = 0; i < 3000; i++) {
		rr_hdr_init(&h, rnd(UINT32_MAX), rnd(UINT32_MAX), rnd(2));
		fill_lists(&h, rnd(RR_READ_SEGS_MAX + 1), rnd(RR_WRITE_CHUNKS_MAX + 1),
			   rnd(RR_CHUNK_SEGS_MAX + 1), rnd(2));
		round_trip(&h);
	}
	for (uint32_t writes = 0; writes <= RR_WRITE_CHUNKS_MAX; writes++)
		for (uint32_t nsegs = 0; nsegs <= RR_CHUNK_SEGS_MAX; nsegs++) {
			rr_hdr_init(&h, 1, 1, RR_MSG);
			fill_lists(&h, nsegs, writes, nsegs, nsegs & 1);
			round_trip(&h);
		}
}

/* Words of a valid header replaced at random: accepted only if it then means the same bytes. */
static void test_mutated(void **state)
{
	static const uint32_t words[] = { 0, 1, 2, 64, 65, 0x7fffffff, 0x80000000, UINT32_MAX };
	static uint8_t buf[MAX_HDR_BYTES], back[MAX_HDR_BYTES];
	static struct rr_hdr h;
	unsigned accepted = 0;
	size_t len, took;

	(void)state;
	seed = 2;
	for (int i = 0; i < 20000; i++) {
		rr_hdr_init(&h, rnd(UINT32_MAX), rnd(UINT32_MAX), rnd(2));
		fill_lists(&h, rnd(3), rnd(3), rnd(3), rnd(2));
		assert_int_equal(rr_hdr_encode(&h, buf, sizeof(buf), &len), 0);
		put_be32(buf + 4 * rnd((uint32_t)len / 4), words[rnd(ARRAY_SIZE(words))]);
		if (decode_exact(buf, len, &h, &took))
			continue;
		accepted++;
		assert_int_equal(rr_hdr_bytes(&h), took);
		assert_int_equal(rr_hdr_encode(&h, back, sizeof(back), &len), 0);
		assert_memory_equal(back, buf, took);
	}
	assert_true(accepted > 100);
}

/* checklist 4, 5: layout of the answers */
static void test_errors(void **state)
{
	uint8_t buf[RR_ERR_VERS_BYTES];
	struct vector v;
	struct rr_hdr h;
	size_t len, took;

	(void)state;
	vector_load("err-chunk", &v);
	assert_int_equal(v.len, RR_ERR_CHUNK_BYTES);
	assert_int_equal(
		rr_hdr_encode_error(0x659ce721, 1, 64, RR_ERR_CHUNK, buf, sizeof(buf), &len), 0);
	assert_int_equal(len, v.len);
	assert_memory_equal(buf, v.bytes, len);
	assert_int_equal(rr_hdr_encode_error(1, 1, 1, RR_ERR_CHUNK, buf, 19, &len), -EMSGSIZE);
	vector_unload(&v);

	vector_load("err-vers", &v);
	assert_int_equal(v.len, RR_ERR_VERS_BYTES);
	assert_int_equal(
		rr_hdr_encode_error(0x659ce721, 2, 64, RR_ERR_VERS, buf, sizeof(buf), &len), 0);
	assert_int_equal(len, v.len);
	assert_memory_equal(buf, v.bytes, len);
	assert_int_equal(rr_hdr_encode_error(1, 1, 1, RR_ERR_VERS, buf, 27, &len), -EMSGSIZE);
	/* its version is not ours, but the receiver can tell that it is an error */
	assert_int_equal(rr_hdr_decode(v.bytes, v.len, &h, &took), -EPROTONOSUPPORT);
	assert_int_equal(h.proc, RR_ERROR);
	vector_unload(&v);

	rr_hdr_init(&h, 3, 4, RR_ERROR);
	h.err = RR_ERR_CHUNK;
	round_trip(&h);
	h.err = RR_ERR_VERS;
	h.vers_low = 1;
	h.vers_high = 3;
	round_trip(&h);
	rr_hdr_init(&h, 3, 4, RR_DONE);
	round_trip(&h);
}

/* A text is cut at any size, and stays a string. */
static void test_print(void **state)
{
	static struct rr_hdr h;
	char whole[256], line[256], big[65536];
	size_t n;

	(void)state;
	seed = 3;
	rr_hdr_init(&h, 5, 6, RR_MSG);
	fill_lists(&h, 3, 1, 2, true);
	rr_hdr_print(&h, whole, sizeof(whole));
	n = strlen(whole);
	for (size_t cap = 1; cap <= n + 1; cap++) {
		memset(line, 'x', sizeof(line));
		assert_ptr_equal(rr_hdr_print(&h, line, cap), line);
		assert_int_equal(strlen(line), cap - 1);
		assert_memory_equal(line, whole, cap - 1);
		assert_int_equal(line[cap], 'x');
	}
	fill_lists(&h, RR_READ_SEGS_MAX, RR_WRITE_CHUNKS_MAX, RR_CHUNK_SEGS_MAX, true);
	assert_true(strlen(rr_hdr_print(&h, big, sizeof(big))) > 1000);
	rr_hdr_init(&h, 5, 6, 77);
	h.vers = 9;
	assert_string_equal(rr_hdr_print(&h, line, sizeof(line)),
			    "proc=77 xid=0x5 vers=9 cred=6 hdr=16");
	rr_hdr_init(&h, 5, 6, RR_ERROR);
	h.err = RR_ERR_VERS;
	h.vers_low = h.vers_high = 1;
	assert_string_equal(rr_hdr_print(&h, line, sizeof(line)),
			    "RDMA_ERROR xid=0x5 cred=6 hdr=28 ERR_VERS 1..1");
	rr_hdr_init(&h, 5, 6, RR_MSG);
	fill_lists(&h, 0, 1, 0, false);
	assert_string_equal(rr_hdr_print(&h, line, sizeof(line)),
			    "RDMA_MSG xid=0x5 cred=6 hdr=36 WRITE[0:]");
}

/* checklist 53: with the padding of both events, absent, short, foreign */
static void test_priv(void **state)
{
	static const uint8_t linux_client[8] = { 0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3 };
	static const uint8_t linux_server[8] = { 0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3 };
	struct rr_priv p = { true, true, 4096, 4096 };
	uint8_t buf[196] = { 0 };

	(void)state;
	rr_priv_encode(&p, buf);
	assert_memory_equal(buf, linux_client, 8);
	p.remote_inv = false;
	rr_priv_encode(&p, buf);
	assert_memory_equal(buf, linux_server, 8);

	for (unsigned kib = 1; kib <= 256; kib++)
		for (size_t len = 8; len <= sizeof(buf); len += 47) {
			p = (struct rr_priv){ true, kib & 1, kib * 1024, (257 - kib) * 1024 };
			rr_priv_encode(&p, buf);
			p = (struct rr_priv){ 0 };
			rr_priv_decode(buf, len, &p);
			assert_true(p.present);
			assert_int_equal(p.remote_inv, kib & 1);
			assert_int_equal(p.send_bytes, kib * 1024);
			assert_int_equal(p.recv_bytes, (257 - kib) * 1024);
		}

	rr_priv_encode(&p, buf);
	buf[5] = 0xfe; /* flags of another time */
	rr_priv_decode(buf, 56, &p);
	assert_true(p.present);
	assert_false(p.remote_inv);

	for (unsigned bad = 0; bad < 8 + 5; bad++) {
		size_t len = bad < 8 ? bad : sizeof(buf);

		memcpy(buf, linux_client, 8);
		if (bad >= 8)
			buf[bad - 8] ^= 0x40; /* magic or version */
		p = (struct rr_priv){ true, true, 1, 1 };
		rr_priv_decode(len ? buf : NULL, len, &p);
		assert_false(p.present);
		assert_false(p.remote_inv);
		assert_int_equal(p.send_bytes, 1024);
		assert_int_equal(p.recv_bytes, 1024);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),	  cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_truncated), cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_too_many_segments),  cmocka_unit_test(test_trailing),
		cmocka_unit_test(test_random),	  cmocka_unit_test(test_mutated),
		cmocka_unit_test(test_errors),	  cmocka_unit_test(test_print),
		cmocka_unit_test(test_priv),
	};

	return cmocka_run_group_tests_name("hdr", tests, NULL, NULL);
}
