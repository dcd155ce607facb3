/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_srv_chunks.c - the responder's side of chunks: of every shape, and of those that are wrong
 */
#include "srv_talk.h"

/* ---- Read chunks: items 15-25 ---- */

static void read_chunk(uint32_t len, uint32_t room, const uint32_t *cuts, unsigned ncuts)
{
	struct region *r = offer(room ? room : 1, READABLE);
	uint32_t pos = put_args(RR_MSG, len), at = 0;

	pattern(r->mem, len);
	for (unsigned i = 0; i < ncuts; i++) {
		add_read(pos, seg(r, at, cuts[i]));
		at += cuts[i];
	}
	if (at < room)
		add_read(pos, seg(r, at, room - at));
	say();
}

static void items15to17_read_chunk_shapes(void **state)
{
	static const uint32_t odd[] = { 1001, 1, 3, 17 };

	(void)state;
	read_chunk(5001, 5001, NULL, 0); /* 15: no pad */
	expect_put(5001);
	read_chunk(5001, 5004, NULL, 0); /* 16: pad included */
	expect_put(5001);
	read_chunk(5001, 5001, odd, 4); /* 17: odd segments */
	expect_put(5001);
	svc.grain = 700; /* and pulled in pieces that match nothing */
	read_chunk(5001, 5004, odd, 4);
	expect_put(5001);
	drop_regions();
}

static void item18_segments_of_several_regions(void **state)
{
	uint32_t pos = put_args(RR_MSG, 5 * 1000 + 1), at = 0;

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		uint32_t len = i == 4 ? 1001 : 1000;
		struct region *r = offer(len, READABLE);

		for (uint32_t k = 0; k < len; k++)
			r->mem[k] = wire_byte(at + k);
		add_read(pos, seg(r, 0, len));
		at += len;
	}
	say();
	expect_put(5001);
}

static void item19_bad_positions(void **state)
{
	static const uint32_t bad[] = { 1, 2, 46, 47, 4096, 0xfffffffc };
	struct region *r = offer(4096, READABLE);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		put_args(RR_MSG, 4096);
		add_read(48, seg(r, 0, 4096));
		finish_msg();
		put_be32(m.raw + 20, bad[i]);
		assert_int_equal(raw_send(&peer, m.raw, m.raw_len), RR_WC_OK);
		expect_err_chunk();
	}
	still_serves();
}

static void item20_chunk_and_length_disagree(void **state)
{
	static const uint32_t lengths[] = { 3995, 3996, 4001, 4004, 5001, 1 };
	struct region *r = offer(8192, READABLE);

	(void)state;
	svc.put_bytes = 0;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint32_t pos = put_args(RR_MSG, lengths[i]);

		add_read(pos, seg(r, 0, 4000));
		say();
		expect_accepted(RR_GARBAGE_ARGS);
	}
	assert_int_equal(svc.put_bytes, 0);
	still_serves();
}

static void item21_chunk_at_no_payload(void **state)
{
	struct region *r = offer(4096, READABLE);

	(void)state;
	begin(RR_MSG); /* GET takes no payload */
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_GET);
	arg(16);
	arg(0);
	add_read((uint32_t)m.rpc_len, seg(r, 0, 4096));
	say();
	expect_accepted(RR_GARBAGE_ARGS);
	begin(RR_MSG); /* PUT, but at the tag */
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_PUT);
	add_read((uint32_t)m.rpc_len, seg(r, 0, 4));
	arg(4);
	arg(0);
	say();
	expect_accepted(RR_GARBAGE_ARGS);
	still_serves();
}

/* The whole call, with its payload of @len bytes, in a position-zero chunk cut as told. */
static void long_put(uint32_t len, const uint32_t *cuts, unsigned ncuts)
{
	struct region *r;
	uint32_t pos = put_args(RR_NOMSG, len), total = pos + (uint32_t)round_up4(len), at = 0;

	r = offer(total, READABLE);
	memcpy(r->mem, m.rpc, pos);
	memset(r->mem + pos, 0, total - pos);
	pattern(r->mem + pos, len);
	for (unsigned i = 0; i < ncuts; i++) {
		add_read(0, seg(r, at, cuts[i]));
		at += cuts[i];
	}
	add_read(0, seg(r, at, total - at));
	say();
}

static void item22_long_calls(void **state)
{
	static const uint32_t cuts[] = { 10, 21 };

	(void)state;
	long_put(5, NULL, 0);
	expect_put(5);
	long_put(9001, cuts, 2);
	expect_put(9001);
	long_put(1048576, cuts, 2);
	expect_put(1048576);
	drop_regions();
}

static void item23_long_call_with_read_chunk(void **state)
{
	struct region *head, *data = offer(5001, READABLE);
	uint32_t pos = put_args(RR_NOMSG, 5001);

	(void)state;
	head = offer(pos, READABLE);
	memcpy(head->mem, m.rpc, pos);
	pattern(data->mem, 5001);
	add_read(0, seg(head, 0, 20));
	add_read(0, seg(head, 20, pos - 20));
	add_read(pos, seg(data, 0, 5001));
	say();
	expect_put(5001);
}

static void item24_oversize(void **state)
{
	struct region *r = offer(4096, READABLE);
	uint64_t pulled;
	struct rpcrdma_stats st;

	(void)state;
	rpcrdma_domain_stats(svc.domain, &st);
	pulled = st.bytes_pulled;
	for (unsigned form = 0; form < 4; form++) {
		uint32_t pos = put_args(RR_MSG, 4096);
		struct rr_segment s = seg(r, 0, 4096);

		switch (form) {
		case 0:
			s.length = 0x7fffffff;
			add_read(pos, s);
			break;
		case 1: /* the sum wraps 32 bits to something harmless */
			s.length = 0x80000000;
			add_read(pos, s);
			s.length = 0x80000800;
			add_read(pos, s);
			break;
		case 2: /* offset + length wraps 64 bits */
			s.offset = UINT64_MAX - 100;
			add_read(pos, s);
			break;
		case 3:
			for (unsigned i = 0; i < 64; i++) {
				s.length = 1 << 20;
				add_read(pos, s);
			}
			break;
		}
		say();
		expect_err_chunk();
	}
	rpcrdma_domain_stats(svc.domain, &st);
	assert_int_equal(st.bytes_pulled, pulled);
	still_serves();
}

static void item25_empty_segments(void **state)
{
	struct region *r = offer(4096, READABLE);
	uint32_t pos = put_args(RR_MSG, 4000);

	(void)state;
	pattern(r->mem, 4000);
	add_read(pos, seg(r, 0, 0));
	add_read(pos, seg(r, 0, 2000));
	add_read(pos, seg(r, 0, 0));
	add_read(pos, seg(r, 2000, 2000));
	say();
	expect_put(4000);
}

static void read_of_a_wrong_key(void **state)
{
	struct region *r = offer(4096, READABLE);
	uint32_t pos = put_args(RR_MSG, 4096);
	struct rr_segment s = seg(r, 0, 4096);

	(void)state;
	s.handle ^= 0x80;
	add_read(pos, s);
	say();
	assert_false(raw_alive(&peer)); /* no message can help: RFC 8166 section 4.5 */
}

/* ---- Write chunks and Reply chunks: items 26-37 ---- */

static void items26to28_write_chunk(void **state)
{
	static const uint32_t modes[] = { WIRE_PLACE, WIRE_PLACE_PIECES, WIRE_IOV, WIRE_SINK };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct region *a = offer(1001, WRITABLE), *b = offer(9000, WRITABLE);

		svc.grain = 512;
		get_args(5001, modes[i]);
		add_write_seg(0, seg(a, 0, 1001));
		add_write_seg(0, seg(b, 0, 4000));
		add_write_seg(0, seg(b, 8000, 4)); /* 27: room for pad that must stay untouched */
		add_write_seg(1, seg(b, 8500, 100)); /* 37 */
		say();
		expect_accepted(RR_SUCCESS);
		assert_int_equal(body_len, 24 + 4 + 4); /* status and length word; no data, no pad */
		assert_int_equal(word(7), 5001);
		assert_int_equal(heard.nwrites, 2);
		assert_returned(&m.hdr.writes[0], &heard.writes[0], 5001);
		assert_int_equal(heard.writes[0].segs[2].length, 0);
		assert_returned(&m.hdr.writes[1], &heard.writes[1], 0);
		assert_pattern(a->mem, 0, 1001);
		assert_pattern(b->mem, 1001, 4000);
		assert_untouched(b->mem + 4000, 5000);
		drop_regions();
		for (; nregions > 0; nregions--)
			free(regions[nregions - 1].mem);
	}
}

static void item29_unused_chunks(void **state)
{
	struct region *r = offer(4096, WRITABLE);

	(void)state;
	get_args(0, WIRE_PLACE); /* zero-length data */
	add_write_seg(0, seg(r, 0, 4096));
	say();
	expect_accepted(RR_SUCCESS);
	assert_returned(&m.hdr.writes[0], &heard.writes[0], 0);
	get_args(4096, WIRE_ERROR); /* placed, then an error */
	add_write_seg(0, seg(r, 0, 4096));
	say();
	expect_accepted(RR_SUCCESS);
	assert_int_equal(word(6), 5);
	assert_returned(&m.hdr.writes[0], &heard.writes[0], 0);
	begin(RR_MSG); /* a procedure without such a result */
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
	add_write_seg(0, seg(r, 0, 1000));
	add_write_seg(0, seg(r, 1000, 1000));
	say();
	expect_accepted(RR_SUCCESS);
	assert_returned(&m.hdr.writes[0], &heard.writes[0], 0);
	rpc_call(WIRE_PROG + 1, WIRE_VERS, WIRE_NULL);
	say();
	expect_accepted(RR_PROG_UNAVAIL);
	assert_returned(&m.hdr.writes[0], &heard.writes[0], 0);
}

static void item30_even_one_byte(void **state)
{
	struct region *r = offer(4096, WRITABLE);

	(void)state;
	get_args(1, WIRE_PLACE);
	add_write_seg(0, seg(r, 0, 4096));
	say();
	expect_accepted(RR_SUCCESS);
	assert_int_equal(body_len, 32);
	assert_returned(&m.hdr.writes[0], &heard.writes[0], 1);
	assert_pattern(r->mem, 0, 1);
	assert_untouched(r->mem + 1, 4095);
}

static void item31_empty_chunk_means_inline(void **state)
{
	(void)state;
	get_args(101, WIRE_PLACE);
	m.hdr.nwrites = 1;
	m.hdr.writes[0].nsegs = 0;
	say();
	expect_accepted(RR_SUCCESS);
	assert_int_equal(body_len, 24 + 8 + 104);
	assert_pattern(body + 32, 0, 101);
	assert_int_equal(heard.nwrites, 1);
	assert_int_equal(heard.writes[0].nsegs, 0);
}

static void item32_write_chunk_too_small(void **state)
{
	struct region *r = offer(4096, WRITABLE);

	(void)state;
	for (uint32_t mode = WIRE_PLACE; mode <= WIRE_SINK; mode++) {
		get_args(8192, mode);
		add_write_seg(0, seg(r, 0, 4096));
		say();
		expect_err_chunk();
	}
	assert_untouched(r->mem, 4096);
	still_serves();
}

static void item33_reply_chunk(void **state)
{
	struct region *a = offer(100, WRITABLE), *b = offer(65536, WRITABLE);

	(void)state;
	big_args(20000);
	add_reply_seg(seg(a, 0, 100));
	add_reply_seg(seg(b, 0, 65536));
	say();
	listen_for();
	assert_int_equal(heard.proc, RR_NOMSG);
	assert_int_equal(body_len, 0);
	assert_returned(&m.hdr.reply, &heard.reply, 24 + 4 + 20000);
	assert_int_equal(get_be32(a->mem), 0x1234);
	assert_int_equal(get_be32(a->mem + 24), 20000);
	assert_untouched(b->mem + 24 + 4 + 20000 - 100, 100);
}

static void item34_reply_chunk_not_needed(void **state)
{
	struct region *r = offer(4096, WRITABLE);

	(void)state;
	big_args(100);
	add_reply_seg(seg(r, 0, 4096));
	say();
	expect_accepted(RR_SUCCESS);
	assert_int_equal(body_len, 24 + 4 + 100);
	assert_true(heard.has_reply);
	assert_returned(&m.hdr.reply, &heard.reply, 0);
	assert_untouched(r->mem, 4096);
}

static void item35_reply_too_long(void **state)
{
	struct region *r = offer(4096, WRITABLE);

	(void)state;
	big_args(20000); /* no chunk at all */
	say();
	expect_err_chunk();
	big_args(20000); /* one that is too small */
	add_reply_seg(seg(r, 0, 4096));
	say();
	expect_err_chunk();
	assert_untouched(r->mem, 4096);
	get_args(20000, WIRE_PLACE); /* payload with nowhere to go */
	say();
	expect_err_chunk();
	still_serves();
}

static void item36_both_chunks(void **state)
{
	static const struct raw_opts without = { .priv = NULL };
	struct region *w = offer(8192, WRITABLE), *r = offer(8192, WRITABLE);

	(void)state;
	get_args(8000, WIRE_PLACE);
	add_write_seg(0, seg(w, 0, 8192));
	add_reply_seg(seg(r, 0, 8192));
	say();
	expect_accepted(RR_SUCCESS); /* the rest fits inline */
	assert_returned(&m.hdr.writes[0], &heard.writes[0], 8000);
	assert_returned(&m.hdr.reply, &heard.reply, 0);
	drop_regions();
	close_peer();

	/* 1024 inline, and a chunk list that leaves 24 bytes of it: the rest goes to the Reply chunk */
	connect_peer(&without);
	w = offer(8192, WRITABLE);
	r = offer(8192, WRITABLE);
	get_args(5900, WIRE_PLACE);
	for (unsigned i = 0; i < 59; i++)
		add_write_seg(0, seg(w, i * 100, 100));
	add_reply_seg(seg(r, 0, 8192));
	say();
	listen_for();
	assert_int_equal(heard.proc, RR_NOMSG);
	assert_returned(&m.hdr.writes[0], &heard.writes[0], 5900);
	assert_returned(&m.hdr.reply, &heard.reply, 32); /* counts only the rest */
	assert_pattern(w->mem, 0, 5900);
	assert_int_equal(get_be32(r->mem + 28), 5900);
}

static void payload_in_the_reply_chunk(void **state)
{
	struct region *r = offer(16384, WRITABLE);

	(void)state;
	svc.grain = 999;
	for (uint32_t mode = WIRE_PLACE; mode <= WIRE_IOV; mode++) {
		get_args(9001, mode);
		add_reply_seg(seg(r, 0, 10));
		add_reply_seg(seg(r, 10, 16374));
		say();
		listen_for();
		assert_int_equal(heard.proc, RR_NOMSG);
		assert_returned(&m.hdr.reply, &heard.reply, 24 + 8 + 9004);
		assert_int_equal(get_be32(r->mem + 28), 9001);
		assert_pattern(r->mem + 32, 0, 9001);
		assert_int_equal(r->mem[32 + 9001], 0);
		memset(r->mem, 0xee, r->len);
	}
}

static void write_to_a_wrong_key(void **state)
{
	struct region *r = offer(4096, READABLE);

	(void)state;
	get_args(4096, WIRE_PLACE);
	add_write_seg(0, seg(r, 0, 4096)); /* right key, no right to write */
	say();
	assert_false(raw_alive(&peer));
	assert_untouched(r->mem, 4096);
}

/* Results that claim more payload than was placed: nothing else of the buffer leaves the server. */
static void too_little_placed(void **state)
{
	(void)state;
	for (uint32_t mode = WIRE_HALF; mode <= WIRE_HOLE; mode++) {
		struct region *r = offer(16384, WRITABLE);

		get_args(1000, mode);
		say();
		expect_accepted(RR_SYSTEM_ERR);
		get_args(8000, mode);
		add_reply_seg(seg(r, 0, r->len));
		say();
		expect_accepted(RR_SYSTEM_ERR);
		assert_untouched(r->mem, r->len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		wire_test(items15to17_read_chunk_shapes),
		wire_test(too_little_placed),
		wire_test(item18_segments_of_several_regions),
		wire_test(item19_bad_positions),
		wire_test(item20_chunk_and_length_disagree),
		wire_test(item21_chunk_at_no_payload),
		wire_test(item22_long_calls),
		wire_test(item23_long_call_with_read_chunk),
		wire_test(item24_oversize),
		wire_test(item25_empty_segments),
		wire_test(read_of_a_wrong_key),
		wire_test(items26to28_write_chunk),
		wire_test(item29_unused_chunks),
		wire_test(item30_even_one_byte),
		wire_test(item31_empty_chunk_means_inline),
		wire_test(item32_write_chunk_too_small),
		wire_test(item33_reply_chunk),
		wire_test(item34_reply_chunk_not_needed),
		wire_test(item35_reply_too_long),
		wire_test(item36_both_chunks),
		wire_test(payload_in_the_reply_chunk),
		wire_test(write_to_a_wrong_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
