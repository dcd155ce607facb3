/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_srv_tcp.c - the responder over TCP against a peer that writes whatever bytes it likes
 */
#include "test_srv_tcp.h"

static const uint32_t sizes[] = { 0, 1, 2, 3, 4, 5, 900, 1000, 1023, 1024, 1025, 4091, 4096, 8100,
				  8140, 8192, 8193, 65535, 65536, 65537, 1048575, 1048576, 1048577 };

static void puts_of_all_sizes(void **state)
{
	(void)state;
	for (size_t g = 0; g < 3; g++) {
		svc.grain = (const uint32_t[]){ 0, 3000, 65536 }[g];
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			if (svc.grain == 3000 && sizes[i] > 1048576)
				continue;
			put_call(0, (uint32_t)i, sizes[i]);
			put_bytes(out, out_len);
			assert_put((uint32_t)i, sizes[i]);
		}
	}
}

static void byte_by_byte(void **state)
{
	(void)state;
	put_call(0, 7, 37);
	for (size_t i = 0; i < out_len; i++)
		put_bytes(out + i, 1);
	assert_put(7, 37);
	/* a long one, cut around the places where the parser changes its mind */
	put_call(0, 8, 20000);
	for (size_t i = 0, n; i < out_len; i += n) {
		n = i < 1200 || (i > 4000 && i < 4200) ? 1 : 777;
		n = n < out_len - i ? n : out_len - i;
		put_bytes(out + i, n);
	}
	assert_put(8, 20000);
}

static void many_in_one_write(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 60; i++) {
		size_t at = out_len;

		if (i % 3 == 2) {
			put_call(at, i, 9000 + i);
		} else {
			call_at(at + 4, i, WIRE_NULL);
			mark(at);
		}
	}
	put_bytes(out, out_len);
	for (uint32_t i = 0; i < 60; i++) {
		assert_int_equal(reply(), i % 3 == 2 ? 32 : 24);
		assert_int_equal(get_be32(in + 20), RR_SUCCESS);
	}
	assert_int_equal(svc.calls, 60);
}

/* A record in several fragments is one record (RFC 5531 section 11). */
static void fragments(void **state)
{
	static const size_t cuts[] = { 1, 4, 39, 44, 100, 5000 };
	uint8_t m[4];

	(void)state;
	for (size_t c = 0; c < ARRAY_SIZE(cuts); c++) {
		size_t total, at = 0;

		put_call(0, (uint32_t)c, 12001);
		total = out_len - 4;
		while (at < total) {
			size_t n = cuts[c] < total - at ? cuts[c] : total - at;

			if (at > 200 && total - at > 4000)
				n = 4000; /* enough of the small ones */
			put_be32(m, (uint32_t)n | (at + n == total ? LAST : 0));
			put_bytes(m, 4);
			put_bytes(out + 4 + at, n);
			at += n;
		}
		assert_put((uint32_t)c, 12001);
	}
}

static void gets(void **state)
{
	(void)state;
	svc.grain = 5000;
	for (uint32_t mode = WIRE_PLACE; mode <= WIRE_ERROR; mode++) {
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			uint32_t len = sizes[i], told = mode == WIRE_SHORT ? len / 2 : len;

			call_at(4, 3, WIRE_GET);
			word_out(len);
			word_out(mode);
			mark(0);
			put_bytes(out, out_len);
			if (mode == WIRE_ERROR) {
				assert_int_equal(reply(), 28); /* nothing of the data left the server */
				assert_int_equal(get_be32(in + 24), 5);
				continue;
			}
			assert_int_equal(reply(), 32 + round_up4(told));
			assert_int_equal(get_be32(in + 28), told);
			for (uint32_t k = 0; k < told; k++)
				if (in[32 + k] != wire_byte(k))
					fail_msg("mode %u, byte %u of %u", mode, k, told);
		}
	}
}

/* A request that ends while its payload is pulled: at its done, the memory is the service's, for good. */
static void ends_before_its_pulls(void **state)
{
	(void)state;
	for (uint32_t grain = 0; grain <= 5000; grain += 5000)
		for (int how = WIRE_EARLY_DROP; how <= WIRE_EARLY_ERROR; how++) {
			unsigned early = svc.early;
			const uint8_t *bytes;

			svc.grain = grain;
			svc.put_ends = how;
			put_call(0, 7, 20000);
			put_bytes(out, 9000);
			assert_int_equal(svc.early, early + 1);
			assert_int_equal(svc.early_err, -ECANCELED);
			put_bytes(out + 9000, out_len - 9000);
			if (how == WIRE_EARLY_ERROR)
				assert_int_equal(reply(), 24);
			bytes = svc.early_buf->addr;
			for (unsigned i = 0; i < 20000; i++)
				assert_int_equal(bytes[i], 0xee);
			svc.put_ends = WIRE_PULLED;
			put_call(0, 8, 20000); /* the stream is still in step */
			put_bytes(out, out_len);
			assert_put(8, 20000);
		}
	wire_svc_put_early(&svc);
}

/* The same if the payload came with the call: the pulls are about to run. */
static void ends_before_its_quick_pulls(void **state)
{
	(void)state;
	svc.grain = 1000;
	for (int how = WIRE_EARLY_DROP; how <= WIRE_EARLY_ERROR; how++) {
		unsigned early = svc.early;

		svc.put_ends = how;
		put_call(0, 7, 5000);
		put_bytes(out, out_len);
		assert_int_equal(svc.early, early + 1);
		if (how == WIRE_EARLY_ERROR)
			assert_int_equal(reply(), 24);
	}
	svc.put_ends = WIRE_PULLED;
	put_call(0, 8, 5000);
	put_bytes(out, out_len);
	assert_put(8, 5000);
	wire_svc_put_early(&svc);
}

/* Results that claim more payload than was placed: nothing else leaves the server. */
static void too_little_placed(void **state)
{
	(void)state;
	for (uint32_t mode = WIRE_HALF; mode <= WIRE_HOLE; mode++)
		for (uint32_t len = 100; len < 200000; len *= 30) {
			call_at(4, 3, WIRE_GET);
			word_out(len);
			word_out(mode);
			mark(0);
			put_bytes(out, out_len);
			assert_int_equal(reply(), 24);
			assert_int_equal(get_be32(in + 20), RR_SYSTEM_ERR);
		}
}

static void long_results(void **state)
{
	(void)state;
	for (uint32_t len = 4; len < 2000000; len = len * 3 & ~3u) {
		call_at(4, 3, WIRE_BIG);
		word_out(len);
		mark(0);
		put_bytes(out, out_len);
		assert_int_equal(reply(), 28 + len);
	}
}

/* Arguments that are no payload and longer than the head: the service gets them in the end. */
static void long_record_without_payload(void **state)
{
	(void)state;
	call_at(4, 3, WIRE_PUT);
	word_out(1);
	word_out(0x7fffffff); /* a payload that cannot be */
	out_len += 20000;
	mark(0);
	put_bytes(out, out_len);
	reply();
	assert_int_equal(get_be32(in + 20), RR_GARBAGE_ARGS);
	call_at(4, 4, WIRE_NULL); /* more than the procedure takes: skipped */
	out_len += 100000;
	mark(0);
	put_bytes(out, out_len);
	assert_int_equal(reply(), 24);
	put_call(0, 5, 100); /* and the stream is still in step */
	put_bytes(out, out_len);
	assert_put(5, 100);
}

static void reader_that_does_not_read(void **state)
{
	(void)state;
	/* more answers than any socket buffer holds, asked for at once, read at the end */
	for (uint32_t i = 0; i < 40; i++) {
		size_t at = out_len;

		call_at(at + 4, i, WIRE_GET);
		word_out(1 << 20);
		word_out(WIRE_PLACE);
		mark(at);
	}
	put_bytes(out, out_len);
	for (uint32_t i = 0; i < 40; i++) {
		assert_int_equal(reply(), 32 + (1 << 20));
		assert_int_equal(get_be32(in), i);
	}
}

static void bad_marks(void **state)
{
	static const uint32_t marks[] = { 0, LAST, LAST | 0x7fffffff, 0x7fffffff, LAST | 0x200000 };
	uint8_t m[4];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		put_be32(m, marks[i]);
		put_bytes(m, 4);
		assert_true(closed());
		close(fd);
		dial();
	}
	/* a payload that is longer than all fragments of its record */
	put_call(0, 2, 12001);
	put_be32(m, LAST | 1000);
	put_be32(out, 9000);
	put_bytes(out, 9004);
	put_bytes(m, 4);
	put_bytes(out + 9004, 1000);
	assert_true(closed());
	close(fd);
	dial();
	out_len = 0;
	/* fragments whose sum exceeds what a call may be */
	call_at(4, 1, WIRE_NULL);
	put_be32(out, 0x100000);
	put_bytes(out, 4 + 0x100000);
	put_bytes(out, 4);
	assert_int_equal(reply(), 24); /* which was all there when the rest turned out to be too much */
	assert_true(closed());
}

static void not_rpc(void **state)
{
	(void)state;
	memset(out, 0x41, 200);
	put_be32(out, LAST | 196);
	put_bytes(out, 200);
	assert_true(closed());
	assert_int_equal(svc.calls, 0);
}

static void peer_goes_in_the_middle(void **state)
{
	(void)state;
	for (size_t cut = 1; cut < 30000; cut = cut * 2 + 1) {
		put_call(0, 7, 30000);
		put_bytes(out, cut);
		close(fd);
		pump();
		dial();
	}
	/* and while answers are being written */
	svc.hold = true;
	call_at(4, 1, WIRE_GET);
	word_out(1 << 20);
	word_out(WIRE_PLACE);
	mark(0);
	put_bytes(out, out_len);
	close(fd);
	pump();
	wire_svc_release(&svc);
	pump();
	dial();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tcp_test(puts_of_all_sizes),
		tcp_test(byte_by_byte),
		tcp_test(many_in_one_write),
		tcp_test(fragments),
		tcp_test(gets),
		tcp_test(ends_before_its_pulls),
		tcp_test(ends_before_its_quick_pulls),
		tcp_test(too_little_placed),
		tcp_test(long_results),
		tcp_test(long_record_without_payload),
		tcp_test(reader_that_does_not_read),
		tcp_test(bad_marks),
		tcp_test(not_rpc),
		tcp_test(peer_goes_in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
