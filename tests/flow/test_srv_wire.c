/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_srv_wire.c - the responder against a peer that says exactly what the test wants
 *
 * One test per rule of RFC 8166 for responders; the numbers are those of the checklist in
 * doc/protocol.md. Every test ends with a second, well-behaved peer being served.
 */
#include "srv_talk.h"

/* ---- header: items 1-10 ---- */

static void null_call(void **state)
{
	(void)state;
	still_serves();
	assert_int_equal(send_len, 52); /* 28 + 24: as the sample */
	assert_int_equal(heard.nreads + heard.nwrites + heard.has_reply, 0);
}

static void item4_other_version(void **state)
{
	(void)state;
	begin(RR_MSG);
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
	finish_msg();
	put_be32(m.raw + 4, 2);
	assert_int_equal(raw_send(&peer, m.raw, m.raw_len), RR_WC_OK);
	{
		uint32_t len;
		const uint8_t *got = raw_recv(&peer, &len);

		assert_non_null(got);
		assert_int_equal(len, RR_ERR_VERS_BYTES);
		assert_int_equal(get_be32(got), 0x1234);
		assert_int_equal(get_be32(got + 4), 2); /* copied from the call */
		assert_int_not_equal(get_be32(got + 8), 0);
		assert_int_equal(get_be32(got + 12), RR_ERROR);
		assert_int_equal(get_be32(got + 16), RR_ERR_VERS);
		assert_int_equal(get_be32(got + 20), 1);
		assert_int_equal(get_be32(got + 24), 1);
	}
	still_serves();
}

static void item5_msgp_and_unknown(void **state)
{
	(void)state;
	for (uint32_t proc = 2; proc < 9; proc++) {
		if (proc == RR_DONE || proc == RR_ERROR)
			continue;
		begin(RR_MSG);
		rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
		finish_msg();
		put_be32(m.raw + 12, proc);
		assert_int_equal(raw_send(&peer, m.raw, m.raw_len), RR_WC_OK);
		expect_err_chunk();
	}
	still_serves();
}

static void item6_done_and_error_are_ignored(void **state)
{
	uint8_t done[16], err[28];
	size_t len;

	(void)state;
	put_be32(done, 0x1234);
	put_be32(done + 4, 1);
	put_be32(done + 8, 1);
	put_be32(done + 12, RR_DONE);
	assert_int_equal(raw_send(&peer, done, sizeof(done)), RR_WC_OK);
	expect_nothing();
	assert_int_equal(rr_hdr_encode_error(0x1234, 1, 1, RR_ERR_CHUNK, err, sizeof(err), &len), 0);
	assert_int_equal(raw_send(&peer, err, len), RR_WC_OK);
	expect_nothing();
	/* a malformed error is no better: two ends must not answer each other for ever */
	assert_int_equal(raw_send(&peer, err, 16), RR_WC_OK);
	expect_nothing();
	still_serves();
	assert_int_equal(svc.calls, 1);
}

static void item7_truncated_at_every_byte(void **state)
{
	struct region *r = offer(4096, READABLE | WRITABLE);
	unsigned lists;

	(void)state;
	put_args(RR_MSG, 4096);
	add_read(48, seg(r, 0, 4096));
	add_write_seg(0, seg(r, 0, 1024));
	add_write_seg(0, seg(r, 1024, 1024));
	add_reply_seg(seg(r, 2048, 1024));
	lists = (unsigned)rr_hdr_bytes(&m.hdr);
	finish_msg();
	for (unsigned len = 16; len < lists; len++) {
		static const struct raw_opts o = { .priv = &priv4k };

		assert_int_equal(raw_send(&peer, m.raw, len), RR_WC_OK);
		expect_err_chunk();
		if (len % 40 == 39) { /* nonsense is only borne so long: item 89 */
			drop_regions();
			close_peer();
			connect_peer(&o);
		}
	}
	assert_int_equal(svc.calls, 0);
}

static void item8_tiny_messages(void **state)
{
	static const uint8_t bytes[16] = { 0, 0, 0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0 };

	(void)state;
	for (size_t len = 0; len < 8; len++) {
		assert_int_equal(raw_send(&peer, bytes, len), RR_WC_OK);
		expect_nothing(); /* there is no XID to answer to */
	}
	for (size_t len = 8; len < 16; len++) {
		assert_int_equal(raw_send(&peer, bytes, len), RR_WC_OK);
		expect_err_chunk();
	}
	still_serves();
}

static void item9_nomsg_without_chunk(void **state)
{
	(void)state;
	begin(RR_NOMSG);
	say();
	expect_err_chunk();
	begin(RR_MSG); /* and a message with nothing in it */
	say();
	expect_err_chunk();
	still_serves();
}

static void item10_booleans(void **state)
{
	(void)state;
	for (unsigned at = 16; at < 28; at += 4) {
		begin(RR_MSG);
		rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
		finish_msg();
		put_be32(m.raw + at, 2);
		assert_int_equal(raw_send(&peer, m.raw, m.raw_len), RR_WC_OK);
		expect_err_chunk();
	}
	still_serves();
}

static void item88_reply_nobody_asked_for(void **state)
{
	(void)state;
	begin(RR_MSG);
	put_be32(m.rpc, 0x1234);
	put_be32(m.rpc + 4, RR_RPC_REPLY);
	memset(m.rpc + 8, 0, 16);
	m.rpc_len = 24;
	say();
	expect_nothing();
	still_serves();
}

static void item89_too_much_nonsense(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 200 && raw_alive(&peer); i++) {
		begin(RR_NOMSG);
		finish_msg();
		if (raw_send(&peer, m.raw, m.raw_len) != RR_WC_OK)
			break;
	}
	assert_in_range(i, 16, 199);
	assert_false(raw_alive(&peer));
}

/* ---- Write chunks and Reply chunks: items 26-37 ---- */

static void short_result(void **state)
{
	struct region *r = offer(8192, WRITABLE);

	(void)state;
	get_args(8192, WIRE_SHORT);
	add_write_seg(0, seg(r, 0, 6000));
	add_write_seg(0, seg(r, 6000, 2192));
	say();
	expect_accepted(RR_SUCCESS);
	assert_int_equal(word(7), 4096);
	assert_returned(&m.hdr.writes[0], &heard.writes[0], 4096);
	assert_pattern(r->mem, 0, 4096);
}

/* ---- RPC: items 77, 20 ---- */

static void rpc_errors(void **state)
{
	(void)state;
	begin(RR_MSG);
	rpc_call(WIRE_PROG, 9, WIRE_NULL);
	say();
	expect_accepted(RR_PROG_MISMATCH);
	assert_int_equal(word(6), WIRE_VERS);
	assert_int_equal(word(7), WIRE_VERS);
	rpc_call(WIRE_PROG, WIRE_VERS, 999);
	say();
	expect_accepted(RR_PROC_UNAVAIL);
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_GET); /* no arguments */
	say();
	expect_accepted(RR_GARBAGE_ARGS);
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
	put_be32(m.rpc + 8, 3); /* RPC version 3 */
	say();
	listen_for();
	assert_int_equal(word(2), RR_DENIED);
	assert_int_equal(word(3), RR_RPC_MISMATCH);
	assert_int_equal(word(4), 2);
	assert_int_equal(word(5), 2);
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
	put_be32(m.rpc + 24, 6); /* RPCSEC_GSS: none here */
	say();
	listen_for();
	assert_int_equal(word(2), RR_DENIED);
	assert_int_equal(word(3), RR_AUTH_ERROR);
	begin(RR_MSG);
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
	m.rpc_len = 20; /* an RPC header that ends too soon */
	say();
	expect_err_chunk();
	still_serves();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		wire_test(null_call),
		wire_test(item4_other_version),
		wire_test(item5_msgp_and_unknown),
		wire_test(item6_done_and_error_are_ignored),
		wire_test(item7_truncated_at_every_byte),
		wire_test(item8_tiny_messages),
		wire_test(item9_nomsg_without_chunk),
		wire_test(item10_booleans),
		wire_test(item88_reply_nobody_asked_for),
		wire_test(item89_too_much_nonsense),
		wire_test(short_result),
		wire_test(rpc_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
