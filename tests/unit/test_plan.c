/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_plan.c - forms of messages: a table of decisions, and for every size around each threshold
 *               a real header that is encoded to see that the planned Send fits
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "chunk.h"
#include "plan.h"

static const uint32_t thresholds[] = { 1024, 4096, 65536 };

/* Header of the Send that a plan leads to, as call.c would build it. */
static size_t encoded_header(const struct rr_plan_call *p)
{
	static struct rr_hdr h;
	static uint8_t buf[8192];
	size_t len = 0;

	rr_hdr_init(&h, 1, 1, p->form >= RR_CALL_LONG ? RR_NOMSG : RR_MSG);
	if (p->form >= RR_CALL_LONG)
		for (unsigned i = 0; i < p->head_segs; i++)
			h.reads[h.nreads++] = (struct rr_read_seg){ 0, { i, 4096, 0 } };
	if (p->arg_bytes && p->form != RR_CALL_INLINE)
		for (unsigned i = 0; i < p->arg_segs; i++)
			h.reads[h.nreads++] =
				(struct rr_read_seg){ p->form == RR_CALL_LONG ? 0 : 112,
						      { i, 4096, 0 } };
	if (p->write_chunk) {
		h.nwrites = 1;
		h.writes[0].nsegs = p->result_segs;
		memset(h.writes[0].segs, 0, sizeof(h.writes[0].segs));
	}
	if (p->reply_chunk) {
		h.has_reply = true;
		h.reply.nsegs = p->reply_segs;
		memset(h.reply.segs, 0, sizeof(h.reply.segs));
	}
	assert_int_equal(rr_hdr_encode(&h, buf, sizeof(buf), &len), 0);
	return len;
}

static size_t padded(uint32_t n)
{
	return (n + 3) / 4 * 4;
}

/* The planned Send fits, and so does the longest reply the responder may make of the offer. */
static void check_fits(const struct rr_plan_call *p)
{
	size_t hdr = encoded_header(p), send = hdr, back = RR_HDR_MIN;

	if (p->form == RR_CALL_INLINE)
		send += p->head_bytes + padded(p->arg_bytes);
	else if (p->form == RR_CALL_READ_CHUNK)
		send += p->head_bytes;
	assert_true(send <= p->send_max);
	assert_true(p->form == RR_CALL_INLINE || p->form == RR_CALL_LONG ||
		    (p->arg_bytes && !p->no_reduce)); /* 14: nothing taken out of nothing */

	if (p->write_chunk)
		back += 8 + 16 * p->result_segs;
	if (p->reply_chunk) { /* 38 */
		size_t rest = p->reply_max +
			      (p->write_chunk ? 0 : padded(p->result_max));

		assert_true(p->reply_chunk_bytes >= rest);
		assert_int_equal(p->reply_chunk_bytes % 4, 0);
		back += 4 + 16 * p->reply_segs;
		assert_true(back <= p->recv_max); /* NOMSG, all chunks returned */
	} else {
		size_t whole = back + p->reply_max;

		if (!p->write_chunk)
			whole += padded(p->result_max);
		assert_true(whole <= p->recv_max); /* 38 */
		assert_int_equal(p->reply_chunk_bytes, 0);
	}
	if (p->write_chunk)
		assert_true(p->result_max && !p->no_reduce);
}

struct call_case {
	const char *why;
	struct rr_plan_call p; /* outputs are what is wanted */
	int err;
};

#define BOTH(n) .send_max = (n), .recv_max = (n)
#define SEGS(n) .arg_segs = (n), .head_segs = 1, .result_segs = (n), .reply_segs = 1
/* clang-format off */
static const struct call_case call_cases[] = {
	{ "NULL", { .head_bytes = 40, .reply_max = 24, BOTH(1024), SEGS(1) }, 0 },
	{ "READ 3 KiB", { .head_bytes = 104, .reply_max = 128,
	  .result_max = 3072, BOTH(4096), SEGS(1) }, 0 },
	{ "READ 1 MiB", { .head_bytes = 104, .reply_max = 128,
	  .result_max = 1 << 20, BOTH(4096), SEGS(8), .write_chunk = true }, 0 },
	{ "READ 1 KiB at 1024", { .head_bytes = 104, .reply_max = 128,
	  .result_max = 1024, BOTH(1024), SEGS(1), .write_chunk = true }, 0 },
	{ "READ of nothing", { .head_bytes = 104, .reply_max = 128, BOTH(1024), SEGS(0) }, 0 },
	{ "WRITE 3500", { .head_bytes = 112, .reply_max = 136, .arg_bytes = 3500,
	  BOTH(4096), SEGS(1) }, 0 },
	{ "WRITE 5001", { .head_bytes = 112, .reply_max = 136, .arg_bytes = 5001,
	  BOTH(4096), SEGS(1), .form = RR_CALL_READ_CHUNK }, 0 },
	{ "WRITE 1 MiB", { .head_bytes = 112, .reply_max = 136,
	  .arg_bytes = 1 << 20, BOTH(4096), SEGS(9), .form = RR_CALL_READ_CHUNK }, 0 },
	{ "WRITE of nothing, forced", { .head_bytes = 112, .reply_max = 136,
	  BOTH(4096), .force_chunks = true, SEGS(0) }, 0 },
	{ "WRITE and READ of a byte, forced", { .head_bytes = 112, .reply_max = 136,
	  .arg_bytes = 1, .result_max = 1, BOTH(4096),
	  .force_chunks = true, SEGS(1), .form = RR_CALL_READ_CHUNK, .write_chunk = true }, 0 },
	{ "forced, but the chunk is what does not fit", { .head_bytes = 988, .reply_max = 24,
	  .arg_bytes = 8, BOTH(1024), .force_chunks = true, SEGS(1) }, 0 },
	{ "READDIRPLUS", { .head_bytes = 116, .reply_max = 65660, BOTH(4096), SEGS(1),
	  .reply_chunk = true, .reply_chunk_bytes = 65660 }, 0 },
	{ "a Reply chunk of one segment, and the call fits to the byte", { .head_bytes = 1024 - 48,
	  .reply_max = 5000, BOTH(1024), SEGS(1), .reply_chunk = true,
	  .reply_chunk_bytes = 5000 }, 0 },
	{ "reply not of words", { .head_bytes = 116, .reply_max = 5001, BOTH(4096), SEGS(1),
	  .reply_chunk = true, .reply_chunk_bytes = 5004 }, 0 },
	{ "long head of a reply and a payload", { .head_bytes = 116, .reply_max = 5000,
	  .result_max = 65536, BOTH(4096), SEGS(2), .write_chunk = true,
	  .reply_chunk = true, .reply_chunk_bytes = 5000 }, 0 }, /* 36 */
	{ "SETACL", { .head_bytes = 4072, .reply_max = 116, BOTH(4096), .head_segs = 2,
	  .form = RR_CALL_LONG }, 0 }, /* 22 */
	{ "long call, reply chunk", { .head_bytes = 9000, .reply_max = 9001, BOTH(4096), SEGS(1),
	  .form = RR_CALL_LONG, .reply_chunk = true, .reply_chunk_bytes = 9004 }, 0 },
	{ "long head and a payload", { .head_bytes = 4090, .reply_max = 116,
	  .arg_bytes = 65536, BOTH(4096), SEGS(2), .form = RR_CALL_LONG_READ }, 0 }, /* 23 */
	{ "payload with an integrity checksum", { .head_bytes = 200, .reply_max = 200,
	  .arg_bytes = 65536, .result_max = 65535,
	  .no_reduce = true, BOTH(4096), SEGS(2), .form = RR_CALL_LONG, .reply_chunk = true,
	  .reply_chunk_bytes = 65736 }, 0 }, /* 86 */
	{ "no_reduce and force_chunks", { .head_bytes = 200, .reply_max = 200,
	  .arg_bytes = 100, .result_max = 100, .no_reduce = true,
	  .force_chunks = true, BOTH(4096), SEGS(2) }, 0 },
	{ "thresholds that differ", { .head_bytes = 100, .reply_max = 100,
	  .arg_bytes = 2000, .result_max = 2000, .send_max = 4096,
	  .recv_max = 1024, SEGS(1), .write_chunk = true }, 0 },
	{ "64 segments at 1024: not even the header", { .head_bytes = 112, .reply_max = 136,
	  .arg_bytes = 1 << 20, BOTH(1024), SEGS(64) }, -EMSGSIZE },
	{ "64 segments at 4096", { .head_bytes = 112, .reply_max = 136,
	  .arg_bytes = 1 << 20, BOTH(4096), SEGS(64), .form = RR_CALL_READ_CHUNK }, 0 },
	{ "65 segments", { .head_bytes = 112, .reply_max = 136,
	  .arg_bytes = 1 << 20, BOTH(65536), SEGS(65) }, -EMSGSIZE },
	{ "returned chunks over recv_max", { .head_bytes = 112, .reply_max = 136,
	  .result_max = 1 << 20, .send_max = 4096, .recv_max = 1024, SEGS(64)
	  }, -EMSGSIZE },
	{ "65 result segments", { .head_bytes = 112, .reply_max = 136,
	  .result_max = 1 << 20, BOTH(65536), SEGS(65) }, -EMSGSIZE },
	{ "absurd head", { .head_bytes = SIZE_MAX, BOTH(4096), SEGS(1), .form = RR_CALL_LONG }, 0
	  },
	{ "absurd reply", { .head_bytes = 40, .reply_max = SIZE_MAX, BOTH(4096), SEGS(1) },
	  -EMSGSIZE },
	{ "absurd reply and result", { .head_bytes = 40, .reply_max = SIZE_MAX - 7,
	  .result_max = UINT32_MAX, .no_reduce = true, BOTH(4096), SEGS(1) },
	  -EMSGSIZE },
};
/* clang-format on */

static void test_call_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(call_cases); i++) {
		const struct call_case *c = &call_cases[i];
		struct rr_plan_call p = c->p;
		int err;

		p.form = RR_CALL_LONG_READ; /* outputs must not matter as inputs */
		p.write_chunk = p.reply_chunk = true;
		p.reply_chunk_bytes = 1234567;
		err = rr_plan_call(&p);
		if (err != c->err)
			fail_msg("%s: %d, not %d", c->why, err, c->err);
		if (err)
			continue;
		if (p.form != c->p.form || p.write_chunk != c->p.write_chunk ||
		    p.reply_chunk != c->p.reply_chunk ||
		    p.reply_chunk_bytes != c->p.reply_chunk_bytes)
			fail_msg("%s: form %d write %d reply %d %zu", c->why, (int)p.form,
				 p.write_chunk, p.reply_chunk, p.reply_chunk_bytes);
		check_fits(&p);
	}
}

/* 46: every head size and every payload size around each threshold really fits as planned, and
 * nothing is sent by chunk that had fitted inline. */
static void test_call_edges(void **state)
{
	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(thresholds); t++)
		for (uint32_t size = thresholds[t] - 320; size <= thresholds[t] + 64; size++) {
			uint32_t head = size & ~3u;
			struct rr_plan_call p = {
				.head_bytes = head,
				.reply_max = head,
				.send_max = thresholds[t],
				.recv_max = thresholds[t],
				.head_segs = 2,
				.reply_segs = 3,
			};

			assert_int_equal(rr_plan_call(&p), 0);
			check_fits(&p);
			assert_int_equal(p.reply_chunk, 28 + head > thresholds[t]);

			p = (struct rr_plan_call){
				.head_bytes = 112,
				.reply_max = 128,
				.send_max = thresholds[t],
				.recv_max = thresholds[t],
				.head_segs = 1,
				.reply_segs = 3,
				.arg_bytes = size - 112,
				.arg_segs = 9,
				.result_max = size - 128,
				.result_segs = 9,
			};
			assert_int_equal(rr_plan_call(&p), 0);
			check_fits(&p);
			assert_int_equal(p.write_chunk,
					 28 + 128 + padded(size - 128) > thresholds[t]);
			assert_false(p.reply_chunk);
			assert_int_equal(p.form == RR_CALL_INLINE,
					 encoded_header(&p) - (p.form ? 24 * p.arg_segs : 0) + 112 +
							 padded(size - 112) <=
						 thresholds[t]);
		}
}

/* Any sizes: a plan either fits or says that it does not. */
static void test_call_random(void **state)
{
	uint64_t seed = 5;
	unsigned planned = 0, forms[4] = { 0 };

	(void)state;
	for (int i = 0; i < 60000; i++) {
		uint32_t r[12];
		struct rr_plan_call p;

		for (size_t k = 0; k < ARRAY_SIZE(r); k++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			r[k] = (uint32_t)(seed >> 33);
		}
		p = (struct rr_plan_call){
			.head_bytes = r[0] % 5000 * 4,
			.reply_max = r[1] % 5000,
			.arg_bytes = r[2] & 1 ? r[3] % (r[2] & 2 ? 5000 : 2000000) : 0,
			.arg_segs = 1 + r[4] % 20,
			.head_segs = 1 + r[5] % 4,
			.result_max = r[6] & 1 ? r[7] % (r[6] & 2 ? 5000 : 2000000) : 0,
			.result_segs = 1 + r[8] % 20,
			.reply_segs = 1 + r[9] % 20,
			.send_max = thresholds[r[10] % 3],
			.recv_max = thresholds[r[10] / 3 % 3],
			.no_reduce = r[11] % 7 == 0,
			.force_chunks = r[11] % 5 == 0,
		};
		if (rr_plan_call(&p))
			continue;
		check_fits(&p);
		planned++;
		forms[p.form]++;
	}
	assert_true(planned > 50000);
	for (size_t k = 0; k < ARRAY_SIZE(forms); k++)
		assert_true(forms[k] > 100);
}

/* clang-format off */
static const struct {
	const char *why;
	struct rr_plan_reply p;
} reply_cases[] = {
	{ "small", { .hdr_bytes = 28, .head_bytes = 112, .send_max = 1024 } },
	{ "exactly", { .hdr_bytes = 28, .head_bytes = 996, .send_max = 1024 } },
	{ "a word over", { .hdr_bytes = 28, .head_bytes = 1000, .send_max = 1024,
	  .form = RR_REPLY_TOO_LONG } }, /* 35 */
	{ "READ inline", { .hdr_bytes = 28, .head_bytes = 128,
	  .payload_bytes = 3072, .send_max = 4096 } },
	{ "pad counts", { .hdr_bytes = 28, .head_bytes = 128,
	  .payload_bytes = 865, .send_max = 1024 } },
	{ "pad counts, over", { .hdr_bytes = 28, .head_bytes = 128,
	  .payload_bytes = 869, .send_max = 1024, .form = RR_REPLY_TOO_LONG } },
	/* 30: one byte goes to the chunk */
	{ "one byte", { .hdr_bytes = 52, .head_bytes = 128,
	  .payload_bytes = 1, .has_write_chunk = true, .write_chunk_bytes = 4096,
	  .send_max = 4096, .form = RR_REPLY_WRITE_CHUNK } },
	{ "chunk exactly full, no room for a pad", { .hdr_bytes = 52, .head_bytes = 128,
	  .payload_bytes = 5001, .has_write_chunk = true,
	  .write_chunk_bytes = 5001, .send_max = 4096, .form = RR_REPLY_WRITE_CHUNK } }, /* 27 */
	{ "chunk too small", { .hdr_bytes = 52, .head_bytes = 128,
	  .payload_bytes = 8192, .has_write_chunk = true, .write_chunk_bytes = 4096,
	  .send_max = 65536, .form = RR_REPLY_TOO_LONG } }, /* 32 */
	{ "chunk too small, reply chunk large", { .hdr_bytes = 96, .head_bytes = 128,
	  .payload_bytes = 8192, .has_write_chunk = true,
	  .write_chunk_bytes = 8191, .reply_chunk_bytes = 65536,
	  .send_max = 4096, .form = RR_REPLY_TOO_LONG } }, /* 32 */
	{ "no payload", { .hdr_bytes = 52, .head_bytes = 28, .has_write_chunk = true,
	  .write_chunk_bytes = 4096, .send_max = 4096 } }, /* 29 */
	{ "payload of nothing", { .hdr_bytes = 52, .head_bytes = 128,
	  .has_write_chunk = true, .write_chunk_bytes = 4096, .send_max = 4096 } }, /* 29 */
	{ "empty chunk: inline", { .hdr_bytes = 36, .head_bytes = 128,
	  .payload_bytes = 100, .send_max = 4096 } }, /* 31: the caller says no chunk */
	{ "fits although there is a reply chunk", { .hdr_bytes = 80, .head_bytes = 300,
	  .reply_chunk_bytes = 65536, .send_max = 4096 } }, /* 34 */
	{ "long", { .hdr_bytes = 80, .head_bytes = 5000,
	  .reply_chunk_bytes = 5000, .send_max = 4096, .form = RR_REPLY_LONG } }, /* 33 */
	{ "over the reply chunk", { .hdr_bytes = 80, .head_bytes = 5004,
	  .reply_chunk_bytes = 5000, .send_max = 4096, .form = RR_REPLY_TOO_LONG } }, /* 35 */
	{ "READLINK", { .hdr_bytes = 80, .head_bytes = 120,
	  .payload_bytes = 4001, .reply_chunk_bytes = 4220,
	  .send_max = 4096, .form = RR_REPLY_LONG } }, /* 73 */
	{ "payload fits the reply chunk, its pad does not", { .hdr_bytes = 80, .head_bytes = 120,
	  .payload_bytes = 4001, .reply_chunk_bytes = 4121, .send_max = 4096, .form = RR_REPLY_TOO_LONG } },
	{ "both chunks, rest fits inline", { .hdr_bytes = 104, .head_bytes = 128,
	  .payload_bytes = 4096, .has_write_chunk = true,
	  .write_chunk_bytes = 4096, .reply_chunk_bytes = 256,
	  .send_max = 4096, .form = RR_REPLY_WRITE_CHUNK } }, /* 36 */
	{ "both chunks, rest is long: only the rest counts", { .hdr_bytes = 104,
	  .head_bytes = 5000, .payload_bytes = 4096, .has_write_chunk = true,
	  .write_chunk_bytes = 4096, .reply_chunk_bytes = 5000,
	  .send_max = 4096, .form = RR_REPLY_LONG_WRITE } }, /* 36 */
	{ "both chunks, rest too long", { .hdr_bytes = 104, .head_bytes = 5004,
	  .payload_bytes = 4096, .has_write_chunk = true,
	  .write_chunk_bytes = 4096, .reply_chunk_bytes = 5000,
	  .send_max = 4096, .form = RR_REPLY_TOO_LONG } },
	{ "not even the header", { .hdr_bytes = 1060, .head_bytes = 128,
	  .reply_chunk_bytes = 5000, .send_max = 1024, .form = RR_REPLY_TOO_LONG } },
	{ "absurd", { .hdr_bytes = 28, .head_bytes = SIZE_MAX,
	  .payload_bytes = UINT32_MAX, .send_max = 4096, .form = RR_REPLY_TOO_LONG } },
};
/* clang-format on */

static void test_reply_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(reply_cases); i++) {
		struct rr_plan_reply p = reply_cases[i].p;

		p.form = RR_REPLY_LONG_WRITE;
		rr_plan_reply(&p);
		if (p.form != reply_cases[i].p.form)
			fail_msg("%s: %d, not %d", reply_cases[i].why, (int)p.form,
				 (int)reply_cases[i].p.form);
	}
}

/* 34, 46, 47: every size around each threshold, header encoded with the chunks returned */
static void test_reply_edges(void **state)
{
	static struct rr_hdr h;

	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(thresholds); t++)
		for (uint32_t size = thresholds[t] - 320; size <= thresholds[t] + 64; size++)
			for (unsigned shape = 0; shape < 4; shape++) {
				struct rr_plan_reply p = {
					.head_bytes = 128,
					.payload_bytes = size - 128,
					.send_max = thresholds[t],
					.has_write_chunk = shape & 1,
					.write_chunk_bytes = size,
					.reply_chunk_bytes = shape & 2 ? size + 3 : 0,
				};
				size_t inline_bytes;
				bool fits;

				rr_hdr_init(&h, 1, 1, RR_MSG);
				h.nwrites = p.has_write_chunk;
				h.writes[0].nsegs = 2;
				h.has_reply = p.reply_chunk_bytes > 0;
				h.reply.nsegs = 3;
				p.hdr_bytes = rr_hdr_bytes(&h);
				inline_bytes = 128 + padded(p.payload_bytes);
				fits = p.hdr_bytes + inline_bytes <= thresholds[t];
				rr_plan_reply(&p);
				assert_int_equal(p.form, p.has_write_chunk   ? RR_REPLY_WRITE_CHUNK
							 : fits		     ? RR_REPLY_INLINE
							 : shape & 2         ? RR_REPLY_LONG
									     : RR_REPLY_TOO_LONG);
			}
}

/* A plan for a call leaves room for whatever form its longest reply takes: never ERR_CHUNK. */
static void test_both_ends(void **state)
{
	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(thresholds); t++)
		for (uint32_t head = 24; head < 6000; head += 236)
			for (uint32_t result = 0; result < 6000; result += 101) {
				struct rr_plan_call c = {
					.head_bytes = 104,
					.reply_max = head,
					.result_max = result,
					.result_segs = 8,
					.reply_segs = 4,
					.send_max = thresholds[t],
					.recv_max = thresholds[t],
					.no_reduce = head & 4,
					.head_segs = 1,
				};
				struct rr_plan_reply r;

				assert_int_equal(rr_plan_call(&c), 0);
				r = (struct rr_plan_reply){
					.hdr_bytes = encoded_header(&c),
					.head_bytes = head,
					.payload_bytes = result,
					.has_write_chunk = c.write_chunk,
					.write_chunk_bytes = result,
					.reply_chunk_bytes = c.reply_chunk_bytes,
					.send_max = c.recv_max,
				};
				rr_plan_reply(&r);
				assert_int_not_equal(r.form, RR_REPLY_TOO_LONG);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call_table),  cmocka_unit_test(test_call_edges),
		cmocka_unit_test(test_call_random), cmocka_unit_test(test_reply_table),
		cmocka_unit_test(test_reply_edges), cmocka_unit_test(test_both_ends),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
