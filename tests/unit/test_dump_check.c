/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_dump_check.c - leat dump --check reports each broken rule, and no other
 *
 * Each doctor function breaks one rule in a correct session. The check must report that rule, and no others except
 * those that the same change breaks as well.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/wire.h"
#include "tests/lib/dump_session.h"

static const struct dump_options check = { .check = true };

static void clean(void **state)
{
	struct image i;
	struct dump d;
	char *text;
	int rc;

	(void)state;
	session_make(NULL, &i);
	text = image_dump(&i, &check, &rc, &d);
	assert_int_equal(rc, 0);
	if (d.broken)
		print_error("%s", text);
	assert_int_equal(d.broken, 0);
	assert_int_equal(d.messages, 14);
	assert_int_equal(d.connections, 1);
	free(text);
	image_fini(&i);
}

/* ---- doctors: each changes one thing ---------------------------------------------------------------------- */

#define DOCTOR(name, at, ...)                                                                      \
	static void name(struct patient *p)                                                        \
	{                                                                                          \
		if (p->step == (at)) {                                                             \
			__VA_ARGS__;                                                               \
		}                                                                                  \
	}

static void say_null(struct patient *p, bool from_client, uint32_t xid, bool call, uint32_t credits)
{
	struct said *m = malloc(sizeof(*m));

	assert_non_null(m);
	said_null(m, xid, call, credits);
	session_say(p->s, from_client, m);
	free(m);
}

DOCTOR(no_credits_wanted, STEP_NULL_CALL, p->said->hdr.credits = 0)
DOCTOR(no_credits_granted, STEP_LINK_REPLY, p->said->hdr.credits = 0)
DOCTOR(other_version, STEP_WRITE_CALL, p->said->hdr.vers = 2)
DOCTOR(other_xid, STEP_PAIR_CALL, put_be32(p->said->rpc, 99))
DOCTOR(other_xid_in_reply, STEP_PAIR_REPLY, put_be32(p->said->rpc, 99))
DOCTOR(no_rpc, STEP_PAIR_CALL, p->said->rpc_bytes = 0)
DOCTOR(long_call_and_more, STEP_LONG_CALL, p->said->rpc_bytes = 4)
DOCTOR(first_two, STEP_NULL_CALL, say_null(p, true, 77, true, 64))
DOCTOR(one_too_many, STEP_PAIR_CALL_2, say_null(p, true, 77, true, 64))
DOCTOR(grant_falls_at_once, STEP_LONG_REPLY, p->said->hdr.credits = 1)
DOCTOR(same_xid_twice, STEP_PAIR_CALL_2, p->said->hdr.xid = 6; put_be32(p->said->rpc, 6))
DOCTOR(long_send, STEP_PAIR_CALL, p->said->rpc_bytes = 4080)
DOCTOR(small_buffers, STEP_CM, p->dialled->recv_bytes = 1024; p->dialled->remote_inv = true)
DOCTOR(neither_inline_nor_chunk, STEP_WRITE_CALL, p->said->hdr.nreads = 0)
DOCTOR(pad_in_line, STEP_WRITE_CALL, p->said->rpc_bytes += 4)
DOCTOR(inline_length, STEP_PAIR_REPLY, p->said->rpc_bytes -= 4)
DOCTOR(wrong_position, STEP_WRITE_CALL, p->said->hdr.reads[0].position -= 4;
	p->said->hdr.reads[1].position -= 4)
DOCTOR(position_of_nothing, STEP_WRITE_CALL, p->said->hdr.reads[0].position += 4000;
	p->said->hdr.reads[1].position += 4000)
DOCTOR(empty_read_segment, STEP_WRITE_CALL, p->said->hdr.reads[1].seg.length = 0;
	p->said->hdr.reads[0].seg.length = 5001)
DOCTOR(chunk_too_short, STEP_WRITE_CALL, p->said->hdr.reads[0].seg.length = 4990)
DOCTOR(read_chunk_of_read, STEP_PAIR_CALL, p->said->hdr.nreads = 1;
	p->said->hdr.reads[0] = (struct rr_read_seg){ .position = 60,
						      .seg = { .handle = 1, .length = 8 } })
DOCTOR(long_call_odd, STEP_LONG_CALL, p->said->hdr.reads[1].seg.length += 2)
DOCTOR(long_call_longer, STEP_LONG_CALL, p->said->hdr.reads[1].seg.length += 8)
DOCTOR(long_call_of_nothing, STEP_LONG_CALL, p->said->hdr.nreads = 0)
DOCTOR(long_call_other_xid, STEP_LONG_PULL, put_be32(p->moved->bytes, 99))
DOCTOR(empty_write_chunk, STEP_READ_CALL, p->said->hdr.writes[0].nsegs = 0)
DOCTOR(small_write_chunk, STEP_READ_CALL, p->said->hdr.writes[0].segs[1].length = 1500)
DOCTOR(wrapping_chunk, STEP_LINK_CALL, p->said->hdr.reply.segs[2].offset = UINT64_MAX)
DOCTOR(call_invalidates, STEP_PAIR_CALL, p->said->inv = true)

DOCTOR(read_list_in_reply, STEP_WRITE_REPLY, p->said->hdr.nreads = 1;
	p->said->hdr.reads[0] = (struct rr_read_seg){ .position = 8, .seg = { .length = 4 } })
DOCTOR(chunk_not_returned, STEP_READ_REPLY, p->said->hdr.nwrites = 0)
DOCTOR(segment_not_returned, STEP_READ_REPLY, p->said->hdr.writes[0].nsegs = 1)
DOCTOR(reply_chunk_not_returned, STEP_LINK_REPLY, p->said->hdr.has_reply = false)
DOCTOR(other_handle, STEP_READ_REPLY, p->said->hdr.writes[0].segs[1].handle = 0x13)
DOCTOR(other_offset, STEP_READ_REPLY, p->said->hdr.writes[0].segs[1].offset++)
DOCTOR(longer_than_offered, STEP_READ_REPLY, p->said->hdr.writes[0].segs[0].length = 3001)
DOCTOR(gap_in_chunk, STEP_READ_REPLY, p->said->hdr.writes[0].segs[0].length = 2999)
DOCTOR(padded_length, STEP_READ_REPLY, p->said->hdr.writes[0].segs[1].length = 1004)
DOCTOR(short_length, STEP_READ_REPLY, p->said->hdr.writes[0].segs[1].length = 1000)
DOCTOR(data_twice, STEP_READ_REPLY, p->said->rpc_bytes += 1000)
DOCTOR(empty_long_reply, STEP_LINK_REPLY, p->said->hdr.reply.segs[0].length = 0;
	p->said->hdr.reply.segs[1].length = 0)
DOCTOR(odd_long_reply, STEP_LINK_REPLY, p->said->hdr.reply.segs[1].length--)
DOCTOR(reply_chunk_and_message, STEP_LINK_REPLY, p->said->hdr.proc = RR_MSG;
	put_be32(p->said->rpc, 4); put_be32(p->said->rpc + 4, 1); p->said->rpc_bytes = 24)
DOCTOR(never_written, STEP_READ_DATA_2, p->moved->len = 500)
DOCTOR(never_read, STEP_WRITE_PULL, p->moved->len = 500)
DOCTOR(written_elsewhere, STEP_READ_DATA, p->moved->rkey = 0x99)
DOCTOR(written_over_the_end, STEP_READ_DATA_2, p->moved->len = 2001)
DOCTOR(written_before, STEP_READ_DATA, p->moved->va--)
DOCTOR(written_to_read_chunk, STEP_WRITE_PULL, p->moved->write = true)
DOCTOR(read_from_write_chunk, STEP_READ_DATA, p->moved->write = false)
DOCTOR(read_by_client, STEP_WRITE_PULL, p->moved->by_client = true)
DOCTOR(written_by_client, STEP_READ_DATA, p->moved->by_client = true)
DOCTOR(not_asked_to_invalidate, STEP_CM, p->dialled->remote_inv = false)
DOCTOR(invalidates_another, STEP_READ_REPLY, p->said->inv_rkey = 0x31)
DOCTOR(invalidates_pad, STEP_LINK_REPLY, p->said->inv = true; p->said->inv_rkey = 0x33)
DOCTOR(invalidates_with_error, STEP_READ_REPLY, p->said->hdr.proc = RR_ERROR;
	p->said->hdr.err = RR_ERR_CHUNK; p->said->rpc_bytes = 0)
DOCTOR(unasked, STEP_PAIR_REPLY, p->said->hdr.xid = 1234; put_be32(p->said->rpc, 1234))
DOCTOR(answered_twice, STEP_PAIR_REPLY, session_say(p->s, false, p->said))

/* A READ reply has its payload inline although a Write chunk was offered. */
static void inline_despite_chunk(struct patient *p)
{
	if (p->step == STEP_READ_REPLY) {
		p->said->rpc_bytes += 4004;
		p->said->hdr.writes[0].segs[0].length = 0;
		p->said->hdr.writes[0].segs[1].length = 0;
	}
}

static void long_inline_reply(struct patient *p)
{
	small_buffers(p);
	if (p->step == STEP_PAIR_REPLY)
		p->said->rpc_bytes = 1000;
}

static void second_chunk_used(struct patient *p)
{
	if (p->step != STEP_READ_CALL && p->step != STEP_READ_REPLY)
		return;
	p->said->hdr.nwrites = 2;
	p->said->hdr.writes[1] = p->said->hdr.writes[0];
}

/* 3 credits are granted, then 1: the second of two calls is not allowed. */
static void grant_fell(struct patient *p)
{
	if (p->step >= STEP_NULL_REPLY && p->step <= STEP_LONG_REPLY && p->said)
		p->said->hdr.credits = p->step == STEP_LONG_REPLY ? 1 : 3;
}

static const struct {
	const char *rule, *also;
	doctor_fn doctor;
} sick[] = {
	{ "credits", NULL, no_credits_wanted },
	{ "credits", "overrun", no_credits_granted },
	{ "header", "offer", other_version },
	{ "xid", NULL, other_xid },
	{ "xid", NULL, other_xid_in_reply },
	{ "msg", "read-list", no_rpc },
	{ "nomsg", NULL, long_call_and_more },
	{ "first-call", "overrun", first_two },
	{ "overrun", NULL, one_too_many },
	{ "overrun", NULL, grant_falls_at_once },
	{ "overrun", NULL, grant_fell },
	{ "twice", "unasked", same_xid_twice },
	{ "send-size", NULL, long_send },
	{ "send-size", "reply-length", long_inline_reply },
	{ "call-length", "offer", neither_inline_nor_chunk },
	{ "pad-inline", NULL, pad_in_line },
	{ "reply-length", NULL, inline_length },
	{ "position", NULL, wrong_position },
	{ "read-list", NULL, position_of_nothing },
	{ "empty-segment", "offer", empty_read_segment },
	{ "read-chunk-length", "", chunk_too_short },
	{ "eligible", "read", read_chunk_of_read },
	{ "read-list", NULL, long_call_odd },
	{ "read", NULL, long_call_longer },
	{ "read-list", "offer", long_call_of_nothing },
	{ "xid", NULL, long_call_other_xid },
	{ "empty-chunk", "", empty_write_chunk },
	{ "room", "returned", small_write_chunk },
	{ "write-list", "", wrapping_chunk },
	{ "invalidate", NULL, call_invalidates },
	{ "read-list", NULL, read_list_in_reply },
	{ "returned", NULL, chunk_not_returned },
	{ "returned", "write-chunk-length", segment_not_returned },
	{ "returned", "reply-chunk", reply_chunk_not_returned },
	{ "returned", "write-chunk-length", other_handle },
	{ "returned", "write-chunk-length", other_offset },
	{ "returned", "write-chunk-length", longer_than_offered },
	{ "returned", "write-chunk-length", gap_in_chunk },
	{ "write-chunk-length", "written", padded_length },
	{ "write-chunk-length", NULL, short_length },
	{ "write-chunk-length", "written", second_chunk_used },
	{ "write-chunk-length", "", inline_despite_chunk },
	{ "reply-length", NULL, data_twice },
	{ "reply-chunk", "reply-length", empty_long_reply },
	{ "reply-chunk", "reply-length", odd_long_reply },
	{ "reply-chunk", NULL, reply_chunk_and_message },
	{ "written", NULL, never_written },
	{ "read", NULL, never_read },
	{ "offer", "written", written_elsewhere },
	{ "offer", "written", written_over_the_end },
	{ "offer", "written", written_before },
	{ "offer", "read", written_to_read_chunk },
	{ "offer", "written", read_from_write_chunk },
	{ "exposure", "read", read_by_client },
	{ "exposure", "written", written_by_client },
	{ "invalidate", NULL, not_asked_to_invalidate },
	{ "invalidate", NULL, invalidates_another },
	{ "invalidate", NULL, invalidates_pad },
	{ "invalidate", NULL, invalidates_with_error },
	{ "unasked", NULL, unasked },
	{ "unasked", NULL, answered_twice },
};

/* Expects that every BROKEN line is of @rule or of @also ("": any rule), and at least one is of @rule. */
static bool found(const char *text, const char *rule, const char *also)
{
	static const char word[] = "BROKEN ";
	bool is_there = false, others = false;

	for (const char *p = strstr(text, word); p; p = strstr(p, word)) {
		size_t len;

		p += strlen(word);
		len = strcspn(p, ":");
		if (len == strlen(rule) && !strncmp(p, rule, len))
			is_there = true;
		else if (!also || (*also && (len != strlen(also) || strncmp(p, also, len))))
			others = true;
	}
	if (!is_there || others)
		print_error("%s, %s:\n%s", rule, is_there ? "and more" : "not found", text);
	return is_there && !others;
}

static void each_rule(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(sick); n++) {
		struct image i;
		char *text;
		int rc;

		session_make(sick[n].doctor, &i);
		text = image_dump(&i, &check, &rc, NULL);
		assert_int_equal(rc, 0);
		if (!found(text, sick[n].rule, sick[n].also)) {
			print_error("that was doctor %zu\n", n);
			wrong++;
		}
		free(text);
		image_fini(&i);
	}
	assert_int_equal(wrong, 0);
}

/* Unusual behaviour that is allowed. */
DOCTOR(rounded_chunk, STEP_WRITE_CALL, p->said->hdr.reads[1].seg.length = 5)
DOCTOR(error_by_transport, STEP_WRITE_REPLY, p->said->hdr.proc = RR_ERROR;
	p->said->hdr.err = RR_ERR_CHUNK; p->said->rpc_bytes = 0)

static void grants_more(struct patient *p)
{
	if (p->step == STEP_LONG_REPLY)
		p->said->hdr.credits = 3;
	if (p->step == STEP_PAIR_CALL)
		say_null(p, true, 77, true, 64);
	if (p->step == STEP_END)
		say_null(p, false, 77, false, 2);
}

/* 3 calls under a grant of 3; 2, 2 and 1 are granted: the client has to have seen one after three. */
static void falls_under_way(struct patient *p)
{
	if (p->step == STEP_LONG_REPLY)
		p->said->hdr.credits = 3;
	if (p->step == STEP_PAIR_CALL)
		say_null(p, true, 77, true, 64);
	if (p->step == STEP_PAIR_REPLY)
		p->said->hdr.credits = 1;
	if (p->step == STEP_PAIR_REPLY_2)
		say_null(p, true, 78, true, 64); /* the client may not have seen the lower grant */
}

static void no_private_data(struct patient *p)
{
	if (p->step == STEP_CM)
		p->listened->present = false;
}

static void healthy(void **state)
{
	static const doctor_fn doctors[] = {
		rounded_chunk, error_by_transport, grants_more, falls_under_way, no_private_data,
		small_buffers,
	};

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(doctors); n++) {
		struct image i;
		struct dump d;
		char *text;
		int rc;

		session_make(doctors[n], &i);
		text = image_dump(&i, &check, &rc, &d);
		if (d.broken)
			print_error("%zu: %s", n, text);
		assert_int_equal(d.broken, 0);
		free(text);
		image_fini(&i);
	}
}

/* ---- rules outside messages ------------------------------------------------------------------------- */

/* After Ethernet, IPv4, UDP, BTH; a datagram of the connection manager has 8 + 24 more bytes of headers. */
enum { AT_BTH = 14 + 20 + 8, AT_EXT = AT_BTH + 12, AT_CM = AT_EXT + 8 + 24 };

static void expect_image(struct image *i, const char *rule, const char *also)
{
	char *text;
	int rc;

	text = image_dump(i, &check, &rc, NULL);
	assert_true(found(text, rule, also));
	free(text);
	image_fini(i);
}

static void connecting(void **state)
{
	struct image i;
	size_t at, len;

	(void)state;
	session_make(NULL, &i);
	at = image_record(&i, 0, &len);
	i.bytes[at + AT_CM + 35] = 0;
	expect_image(&i, "responder-resources", "initiator-depth");

	session_make(NULL, &i);
	at = image_record(&i, 1, &len);
	i.bytes[at + AT_CM + 25] = 17;
	expect_image(&i, "initiator-depth", NULL);
}

static size_t find_opcode(const struct image *i, uint8_t opcode, unsigned from, unsigned *ret_nth,
			  size_t *ret_len)
{
	size_t at;

	for (unsigned n = from; (at = image_record(i, n, ret_len)) != 0; n++) {
		if (i->bytes[at + AT_BTH] == opcode) {
			*ret_nth = n;
			return at;
		}
	}
	fail_msg("no packet of opcode %u", opcode);
	return 0;
}

static void no_receive(void **state)
{
	struct image i;
	struct dump d;
	unsigned nth;
	size_t len;
	int rc;

	(void)state;
	session_make(NULL, &i);
	i.bytes[find_opcode(&i, 0x11, 0, &nth, &len) + AT_EXT] = 0x20;
	expect_image(&i, "receive", NULL);
	/* a NAK for another reason breaks no rule of credits */
	session_make(NULL, &i);
	i.bytes[find_opcode(&i, 0x11, 0, &nth, &len) + AT_EXT] = 0x60;
	free(image_dump(&i, &check, &rc, &d));
	assert_int_equal(d.broken, 0);
	image_fini(&i);
}

static void missing_packet(void **state)
{
	struct image i;
	unsigned nth;
	size_t len, at;

	(void)state;
	session_make(NULL, &i);
	at = find_opcode(&i, 0x0a, 0, &nth, &len); /* an RDMA Write, only */
	image_remove(&i, at - 16, len + 16);
	expect_image(&i, "capture", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean),	  cmocka_unit_test(each_rule),
		cmocka_unit_test(healthy),	  cmocka_unit_test(connecting),
		cmocka_unit_test(no_receive),	  cmocka_unit_test(missing_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
