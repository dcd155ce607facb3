/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_clnt_wire.c - what the requester sends, and what it makes of replies of every kind
 *
 * The numbers are those of the checklist in doc/protocol.md; test_clnt_limits.c goes on with credits,
 * sizes and connections.
 */
#include "clnt_talk.h"
#include "nfs3.h"

/* ---- header: items 1-11 ---- */

static void item1_every_form(void **state)
{
	struct talk_call c;
	uint32_t xid;

	(void)state;
	start_null(&c);
	hear();
	assert_int_equal(heard.proc, RR_MSG);
	assert_int_equal(heard.nreads + heard.nwrites + heard.has_reply, 0);
	assert_int_equal(get_be32(body + 8), 2);
	assert_int_equal(get_be32(body + 12), WIRE_PROG);
	xid = heard.xid;
	answer_begin(RR_MSG);
	reply();
	ended(&c, 0);
	assert_int_equal(c.call.xid, xid);
	talk_fini(&c);
	start_get(&c, 100000);
	hear();
	assert_int_not_equal(heard.xid, xid);
	assert_int_equal(heard.nwrites, 1);
	answer_get(100000);
	ended(&c, 0);
	assert_pattern(c.mem, 100000);
	talk_fini(&c);
	start_put(&c, 100000);
	hear();
	assert_true(heard.nreads > 0);
	answer_put(100000);
	ended(&c, 0);
	talk_fini(&c);
}

static void item6_done_and_stray_errors(void **state)
{
	struct talk_call c;
	uint8_t msg[64];
	size_t len;

	(void)state;
	still_works();
	start_get(&c, 9001);
	hear();
	put_be32(msg, heard.xid); /* RDMA_DONE, even with the call's own XID */
	put_be32(msg + 4, 1);
	put_be32(msg + 8, 1);
	put_be32(msg + 12, RR_DONE);
	assert_int_equal(raw_server_send(&srv, msg, 16), RR_WC_OK);
	assert_int_equal(rr_hdr_encode_error(heard.xid + 1, 1, 1, RR_ERR_CHUNK, msg, sizeof(msg), &len), 0);
	assert_int_equal(raw_server_send(&srv, msg, len), RR_WC_OK);
	assert_int_equal(rr_hdr_encode_error(heard.xid - 1, 1, 1, RR_ERR_VERS, msg, sizeof(msg), &len), 0);
	assert_int_equal(raw_server_send(&srv, msg, len), RR_WC_OK);
	assert_true(raw_server_alive(&srv));
	assert_int_equal(c.done, 0);
	assert_false(hear_one()); /* no answer to any of it */
	answer_get(9001);
	ended(&c, 0);
	assert_pattern(c.mem, 9001);
	talk_fini(&c);
	assert_int_equal(srv.conns, 1);
}

static void errors_are_final(void **state)
{
	static const struct {
		enum rr_err err;
		int want;
	} cases[] = { { RR_ERR_CHUNK, -EMSGSIZE }, { RR_ERR_VERS, -EPROTONOSUPPORT } };
	struct talk_call c;
	uint8_t msg[64];
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		start_get(&c, 9001);
		hear();
		assert_int_equal(rr_hdr_encode_error(heard.xid, 1, 32, cases[i].err, msg, sizeof(msg),
						     &len), 0);
		assert_int_equal(raw_server_send(&srv, msg, len), RR_WC_OK);
		ended(&c, cases[i].want);
		assert_true(cases[i].err != RR_ERR_CHUNK || strstr(c.call.why, "sink or reply_max"));
		assert_untouched(&c, 0);
		talk_fini(&c);
		still_works();
	}
	assert_int_equal(srv.conns, 1);
}

/* What is wrong with a reply, and nothing else is. */
enum breach {
	VERSION, MSGP, UNKNOWN_PROC, BOOLEAN, TRUNCATED, READ_LIST, RPC_XID, RPC_IS_SHORT,
	NO_WRITE_LIST, TWO_WRITES, SEG_MORE, SEG_LESS, HANDLE, OFFSET, LONGER, GAP, REPLY_UNASKED,
	LENGTH_WORD_LESS, LENGTH_WORD_MORE, NOMSG_UNASKED, INLINE_TOO_LONG, BAD_ERROR, BREACHES
};

static void build_breach(enum breach b)
{
	struct rr_chunk *w = &ans.hdr.writes[0];

	answer_begin(RR_MSG);
	answer_word(0);
	fill_chunk(&heard.writes[0], 9001);
	rr_chunk_return(&heard.writes[0], 9001, w);
	answer_word(9001);
	switch (b) {
	case READ_LIST:
		ans.hdr.nreads = 1;
		ans.hdr.reads[0] = (struct rr_read_seg){ 28, w->segs[0] };
		break;
	case RPC_XID:
		put_be32(ans.rpc, heard.xid ^ 1);
		break;
	case RPC_IS_SHORT:
		ans.rpc_len = 12;
		break;
	case NO_WRITE_LIST:
		ans.hdr.nwrites = 0;
		break;
	case TWO_WRITES:
		ans.hdr.nwrites = 2;
		ans.hdr.writes[1] = *w;
		break;
	case SEG_MORE:
		w->segs[w->nsegs] = w->segs[0];
		w->segs[w->nsegs++].length = 0;
		break;
	case SEG_LESS:
		w->nsegs--;
		break;
	case HANDLE:
		w->segs[0].handle ^= 0x100;
		break;
	case OFFSET:
		w->segs[0].offset += 4;
		break;
	case LONGER:
		w->segs[0].length += 4;
		break;
	case GAP: /* the second segment before the first is full */
		w->segs[0].length -= 1;
		break;
	case REPLY_UNASKED:
		ans.hdr.has_reply = true;
		ans.hdr.reply = *w;
		break;
	case LENGTH_WORD_LESS:
		put_be32(ans.rpc + ans.rpc_len - 4, 9000);
		break;
	case LENGTH_WORD_MORE:
		put_be32(ans.rpc + ans.rpc_len - 4, 9002);
		break;
	case NOMSG_UNASKED:
		ans.hdr.proc = RR_NOMSG;
		break;
	case INLINE_TOO_LONG: /* more than the sink has room for, and no chunk used */
		rr_chunk_return(&heard.writes[0], 0, w);
		ans.rpc_len -= 4;
		answer_opaque(9001 + 8);
		break;
	default:
		break;
	}
	answer_encode();
	switch (b) {
	case VERSION:
		put_be32(ans.raw + 4, 2);
		break;
	case MSGP:
		put_be32(ans.raw + 12, RR_MSGP);
		break;
	case UNKNOWN_PROC:
		put_be32(ans.raw + 12, 9);
		break;
	case BOOLEAN:
		put_be32(ans.raw + 16, 2);
		break;
	case TRUNCATED:
		ans.raw_len = 40;
		break;
	case BAD_ERROR:
		put_be32(ans.raw + 12, RR_ERROR);
		put_be32(ans.raw + 16, 77);
		ans.raw_len = 20;
		break;
	default:
		break;
	}
}

/* A GET of 9001 bytes into two segments, answered with one rule broken. */
static void break_one(enum breach b)
{
	struct talk_call c;
	unsigned conns = srv.conns, lost = srv.lost;
	struct iovec sink[2];

	talk_init(&c, WIRE_GET, 9001);
	c.get_args.count = 9001;
	sink[0] = (struct iovec){ c.mem, 5000 };
	sink[1] = (struct iovec){ c.mem + 5000, 4001 };
	c.call.encode = (xdrproc_t)xdr_wire_get_args;
	c.call.args = &c.get_args;
	c.call.decode = (xdrproc_t)xdr_wire_get_res;
	c.call.res = &c.get_res;
	c.call.sink = sink;
	c.call.sinkcnt = 2;
	c.call.reply_max = 8;
	talk_go(&c);
	hear();
	assert_int_equal(heard.nwrites, 1);
	assert_int_equal(heard.writes[0].nsegs, 2);
	build_breach(b);
	if (ans.raw_len > 4096)
		ans.raw_len = 4096; /* what the client has a buffer for; the length word says the rest */
	answer_send();
	raw_server_until(&srv, &c.done, 1);
	if (c.err != -EPROTO && !(b == INLINE_TOO_LONG && c.err == -EBADMSG))
		fail_msg("breach %d: %d (%s)", b, c.err, c.call.why);
	assert_int_equal(c.call.payload_bytes, 0);
	talk_fini(&c);
	if (b != INLINE_TOO_LONG || srv.lost > lost) {
		/* such a peer is not to be kept: a new connection, on which all is well */
		raw_server_until(&srv, &srv.lost, lost + 1);
	}
	still_works();
	assert_true(srv.conns > conns || b == INLINE_TOO_LONG);
}

static void item11_broken_headers(void **state)
{
	(void)state;
	for (enum breach b = VERSION; b <= RPC_IS_SHORT; b++)
		break_one(b);
	break_one(BAD_ERROR);
}

static void item10_booleans(void **state)
{
	(void)state;
	break_one(BOOLEAN);
}

static void item11_foreign_xid(void **state)
{
	struct talk_call c;
	uint32_t mine;

	(void)state;
	start_get(&c, 9001);
	hear();
	mine = heard.xid;
	for (uint32_t i = 1; i < 5; i++) { /* answers to what was never asked: nothing comes of them */
		answer_begin(RR_MSG);
		ans.hdr.xid = mine + i * 0x10001;
		put_be32(ans.rpc, ans.hdr.xid);
		answer_word(0);
		rr_chunk_return(&heard.writes[0], 9001, &ans.hdr.writes[0]);
		answer_word(9001);
		reply();
	}
	assert_true(raw_server_alive(&srv));
	assert_int_equal(c.done, 0);
	assert_untouched(&c, 0);
	answer_get(9001);
	ended(&c, 0);
	assert_pattern(c.mem, 9001);
	talk_fini(&c);
	/* and the answer once more, to a call that is over */
	answer_encode();
	answer_send();
	still_works();
	assert_int_equal(srv.conns, 1);
}

static void item12_chunks_returned(void **state)
{
	(void)state;
	for (enum breach b = NO_WRITE_LIST; b <= OFFSET; b++)
		break_one(b);
	break_one(REPLY_UNASKED);
}

static void item41_lengths(void **state)
{
	(void)state;
	break_one(LONGER);
	break_one(GAP);
	for (enum breach b = LENGTH_WORD_LESS; b <= INLINE_TOO_LONG; b++)
		break_one(b);
}

/* ---- Read chunks: items 13, 14 ---- */

/* The call of the recorded session: handle of 20 bytes, "(none)" as machine name, no other groups. */
static void item13_write_at_112(void **state)
{
	static char fh[20];
	struct talk_call c;
	WRITE3args a = { .file = { .data = { sizeof(fh), fh } }, .offset = 0, .count = 1 << 20,
			 .stable = UNSTABLE };
	struct rpcrdma_cred cred = { .machine = "(none)" };

	(void)state;
	talk_init(&c, NFSPROC3_WRITE, 1 << 20);
	c.iov[0] = (struct iovec){ c.mem, 1 << 20 };
	a.data = (payload3){ .length = 1 << 20, .iov = c.iov, .iovcnt = 1 };
	c.call.prog = NFS_PROGRAM;
	c.call.vers = NFS_V3;
	c.call.cred = &cred;
	c.call.encode = (xdrproc_t)xdr_WRITE3args;
	c.call.args = &a;
	c.call.reply_max = 200;
	talk_go(&c);
	hear();
	assert_int_equal(heard.proc, RR_MSG);
	assert_int_equal(heard.nreads, 1);
	assert_int_equal(heard.reads[0].position, 112);
	assert_int_equal(body_len, 112); /* up to and with the length word, nothing behind it */
	assert_int_equal(get_be32(body + 108), 1 << 20);
	answer_begin(RR_MSG);
	reply();
	ended(&c, 0);
	talk_fini(&c);
}

static void item14_no_pad_no_empty_segment(void **state)
{
	struct talk_call c;
	uint8_t *got = malloc(6000);

	(void)state;
	assert_non_null(got);
	for (uint32_t len = 5001; len <= 5004; len++)
		for (unsigned cuts = 0; cuts < 2; cuts++) {
			uint32_t at = 0;

			talk_init(&c, WIRE_PUT, len);
			for (uint32_t i = 0; i < len; i++)
				c.mem[i] = wire_byte(i);
			if (cuts) { /* empty entries, odd ones, and one behind the end */
				c.iov[0] = (struct iovec){ c.mem, 0 };
				c.iov[1] = (struct iovec){ c.mem, 1001 };
				c.iov[2] = (struct iovec){ c.mem + 1001, 0 };
				c.iov[3] = (struct iovec){ c.mem + 1001, len - 1001 };
				c.iov[4] = (struct iovec){ c.mem + len, 0 };
			} else {
				c.iov[0] = (struct iovec){ c.mem, len };
			}
			c.put_args = (struct wire_put_args){ 7, { .length = len, .iov = c.iov,
								  .iovcnt = cuts ? 5 : 1 } };
			c.call.encode = (xdrproc_t)xdr_wire_put_args;
			c.call.args = &c.put_args;
			c.call.decode = (xdrproc_t)xdr_wire_put_res;
			c.call.res = &c.put_res;
			c.call.reply_max = 8;
			talk_go(&c);
			hear();
			assert_int_equal(heard.nreads, cuts ? 2 : 1);
			assert_int_equal(heard.reads[0].position % 4, 0);
			assert_int_equal(body_len, heard.reads[0].position);
			assert_int_equal(get_be32(body + body_len - 4), len);
			for (unsigned i = 0; i < heard.nreads; i++) {
				const struct rr_segment *s = &heard.reads[i].seg;

				assert_int_equal(heard.reads[i].position, heard.reads[0].position);
				assert_int_not_equal(s->length, 0);
				assert_int_equal(raw_server_read(&srv, s, 0, got + at, s->length), RR_WC_OK);
				at += s->length;
			}
			assert_int_equal(at, len); /* the pad is in neither */
			assert_pattern(got, len);
			answer_put(len);
			ended(&c, 0);
			talk_fini(&c);
		}
	free(got);
}

/* Arguments of 3000 bytes that are no payload. */
static bool_t xdr_long_args(XDR *xdrs, void *bytes)
{
	return xdr_opaque(xdrs, bytes, 3000);
}

static void long_call(void **state)
{
	struct rpcrdma_clnt_attr small = { .inline_bytes = 1024 };
	struct raw_server_opts so = { .priv = priv4k, .priv_len = sizeof(priv4k) };
	uint8_t args[3000], *got = malloc(8192);
	struct talk_call c;
	uint32_t len;

	(void)state;
	assert_non_null(got);
	open_both(&so, &small);
	for (uint32_t i = 0; i < sizeof(args); i++)
		args[i] = wire_byte(i);
	talk_init(&c, WIRE_NULL, 0);
	c.call.encode = (xdrproc_t)xdr_long_args;
	c.call.args = args;
	talk_go(&c);
	hear();
	assert_int_equal(heard.proc, RR_NOMSG);
	assert_int_equal(heard.nreads, 1);
	assert_int_equal(heard.reads[0].position, 0);
	len = heard.reads[0].seg.length;
	assert_int_equal(len % 4, 0);
	assert_int_equal(raw_server_read(&srv, &heard.reads[0].seg, 0, got, len), RR_WC_OK);
	assert_int_equal(get_be32(got), heard.xid); /* the whole message, from its XID on */
	assert_int_equal(get_be32(got + 12), WIRE_PROG);
	assert_memory_equal(got + len - 3000, args, 3000);
	answer_begin(RR_MSG);
	reply();
	ended(&c, 0);
	talk_fini(&c);
	free(got);
}

/* ---- Write and Reply chunks: items 38-41 ---- */

static uint64_t offered_write(void)
{
	return heard.nwrites ? rr_chunk_bytes(&heard.writes[0]) : 0;
}

static uint64_t offered_reply(void)
{
	return heard.has_reply ? rr_chunk_bytes(&heard.reply) : 0;
}

/* Whatever the reply may be, there is room for it: in a chunk, or in the client's own buffers. */
static void item38_room_for_the_largest(void **state)
{
	static const uint32_t inlines[] = { 1024, 4096, 65536 };
	struct raw_server_opts so = { .priv = priv4k, .priv_len = sizeof(priv4k), .msg_bytes = 65536 };
	struct rr_priv p = { .present = true, .send_bytes = 65536, .recv_bytes = 65536 };
	uint8_t priv[RR_PRIV_BYTES];

	(void)state;
	rr_priv_encode(&p, priv);
	so.priv = priv;
	for (size_t k = 0; k < ARRAY_SIZE(inlines); k++) {
		struct rpcrdma_clnt_attr ca = { .inline_bytes = inlines[k] };

		open_both(&so, &ca);
		for (uint32_t len = inlines[k] - 80; len <= inlines[k] + 80; len += 4) {
			uint32_t whole = RR_HDR_MIN + RR_RPC_REPLY_HDR_BYTES + 4 + len;
			struct talk_call c;

			start_big(&c, len);
			hear();
			assert_int_equal(heard.nwrites, 0);
			if (whole > inlines[k])
				assert_true(offered_reply() >= whole - RR_HDR_MIN);
			answer_begin(heard.has_reply ? RR_NOMSG : RR_MSG);
			answer_big(len);
			if (heard.has_reply)
				into_reply_chunk();
			reply();
			ended(&c, 0);
			talk_fini(&c);
			start_get(&c, len + 1);
			hear();
			if (whole + 4 + (uint32_t)round_up4(len + 1) - len > inlines[k])
				assert_true(offered_write() >= len + 1);
			answer_get(len + 1);
			ended(&c, 0);
			assert_pattern(c.mem, len + 1);
			talk_fini(&c);
		}
		close_both();
	}
}

static void item39_reply_in_each_form(void **state)
{
	struct talk_call c;

	(void)state;
	for (unsigned form = 0; form < 3; form++) {
		uint32_t bytes = form ? 100 : 20000;

		start_big(&c, 20000);
		hear();
		assert_int_equal(heard.proc, RR_MSG);
		assert_true(offered_reply() >= 24 + 4 + 20000);
		answer_begin(form ? RR_MSG : RR_NOMSG);
		answer_big(bytes);
		if (form == 0)
			into_reply_chunk();
		else if (form == 2)
			ans.hdr.has_reply = false;
		reply();
		ended(&c, 0);
		assert_int_equal(c.big_res.length, bytes);
		talk_fini(&c);
	}
	assert_int_equal(srv.conns, 1);
}

static void item40_inline_and_short(void **state)
{
	struct talk_call c;

	(void)state;
	for (uint32_t len = 0; len <= 9001; len += 3000) { /* less than was asked for */
		start_get(&c, 9001);
		hear();
		answer_get(len);
		ended(&c, 0);
		assert_int_equal(c.call.payload_bytes, len);
		assert_int_equal(c.get_res.data.length, len);
		assert_pattern(c.mem, len);
		assert_untouched(&c, len);
		talk_fini(&c);
	}
	start_get(&c, 9001); /* inline, though a Write chunk was there for it */
	hear();
	answer_begin(RR_MSG);
	answer_word(0);
	answer_opaque(1001);
	reply();
	ended(&c, 0);
	assert_int_equal(c.call.payload_bytes, 1001);
	assert_pattern(c.mem, 1001);
	assert_untouched(&c, 1001);
	talk_fini(&c);
	start_get(&c, 9001); /* an error, which has no data: the chunk comes back unused */
	hear();
	answer_begin(RR_MSG);
	answer_word(5);
	reply();
	ended(&c, 0);
	assert_int_equal(c.get_res.status, 5);
	assert_int_equal(c.call.payload_bytes, 0);
	talk_fini(&c);
	assert_int_equal(srv.conns, 1);
}

static void item41_long_replies(void **state)
{
	(void)state;
	for (unsigned form = 0; form < 4; form++) {
		unsigned lost = srv.lost;
		struct talk_call c;

		start_big(&c, 20000);
		hear();
		answer_begin(form == 0 ? RR_MSG : RR_NOMSG);
		answer_big(20000);
		into_reply_chunk();
		switch (form) {
		case 0: /* a message inline, and the Reply chunk used */
			ans.rpc_len = 24;
			answer_big(100);
			break;
		case 1: /* a long reply of no length */
			ans.hdr.reply.segs[0].length = 0;
			break;
		case 2: /* longer than the chunk */
			ans.hdr.reply.segs[0].length = heard.reply.segs[0].length + 4;
			break;
		case 3: /* no whole number of words */
			ans.hdr.reply.segs[0].length--;
			break;
		}
		reply();
		ended(&c, -EPROTO);
		talk_fini(&c);
		raw_server_until(&srv, &srv.lost, lost + 1);
		still_works();
	}
}

/* ---- item 88 ---- */

static void item88_call_backwards(void **state)
{
	struct talk_call c;

	(void)state;
	start_get(&c, 9001);
	hear();
	/* a call of the server's, whose XID is by chance that of ours */
	answer_begin(RR_MSG);
	put_be32(ans.rpc + 4, RR_RPC_CALL);
	answer_word(2);
	answer_word(0x40000000);
	answer_word(1);
	reply();
	ans.hdr.xid = 12345;
	put_be32(ans.rpc, 12345);
	reply();
	assert_true(raw_server_alive(&srv));
	assert_int_equal(c.done, 0);
	assert_false(hear_one());
	answer_get(9001);
	ended(&c, 0);
	assert_pattern(c.mem, 9001);
	talk_fini(&c);
	assert_int_equal(srv.conns, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		clnt_test(item1_every_form),
		clnt_test(item6_done_and_stray_errors),
		clnt_test(errors_are_final),
		clnt_test(item10_booleans),
		clnt_test(item11_broken_headers),
		clnt_test(item11_foreign_xid),
		clnt_test(item12_chunks_returned),
		clnt_test(item13_write_at_112),
		clnt_test(item14_no_pad_no_empty_segment),
		clnt_test_bare(long_call),
		clnt_test_bare(item38_room_for_the_largest),
		clnt_test(item39_reply_in_each_form),
		clnt_test(item40_inline_and_short),
		clnt_test(item41_lengths),
		clnt_test(item41_long_replies),
		clnt_test(item88_call_backwards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
