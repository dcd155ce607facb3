/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_dump_packets.c - leat dump: packets that are lost, retransmitted, truncated or without a reply
 */
#include "test_dump.h"

/* ---- invalid files ---------------------------------------------------------------- */

/* A truncated file, or one with any byte changed, does no harm. */
static void hostile(void **state)
{
	struct image ng = to_ng(false, 6, 1000000), *files[] = { &session, &ng };
	uint32_t random = 1;
	char *text;
	int rc;

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(files); n++) {
		struct image i = { malloc(files[n]->len), 0 };

		assert_non_null(i.bytes);
		for (size_t len = 1; len < files[n]->len; len += 1 + len / 50) {
			memcpy(i.bytes, files[n]->bytes, len);
			i.len = len;
			free(image_dump(&i, &all, &rc, NULL));
			assert_true(rc == 0 || rc == -ENODATA || rc == -EBADMSG);
		}
		i.len = files[n]->len;
		for (int round = 0; round < 300; round++) {
			memcpy(i.bytes, files[n]->bytes, i.len);
			for (int k = 0; k < 20; k++) {
				random = random * 1664525 + 1013904223;
				i.bytes[(random >> 8) % i.len] = (uint8_t)random;
			}
			text = image_dump(&i, &all, &rc, NULL);
			assert_true(rc == 0 || rc == -ENODATA || rc == -EBADMSG);
			free(text);
		}
		image_fini(&i);
	}
	image_fini(&ng);
}

/* ---- packets ----------------------------------------------------------------------------------------------- */

enum { AT_BTH = 14 + 20 + 8 };

/* All packets twice, as if retransmitted: nothing is printed twice. */
static void sent_again(void **state)
{
	struct image i = copy_session();
	size_t at, len, n = 0;
	struct dump d;
	char *text;
	int rc;

	(void)state;
	for (unsigned k = 0; (at = image_record(&i, k, &len)) != 0; k += 2) {
		image_insert(&i, at + len, i.bytes + at - 16, len + 16);
		n++;
	}
	text = image_dump(&i, &all, &rc, &d);
	assert_int_equal(d.packets, 2 * n);
	assert_int_equal(d.messages, 14);
	assert_int_equal(d.connections, 1);
	assert_int_equal(d.broken, 0);
	assert_int_equal(d.missing, 0);
	free(text);
	image_fini(&i);
}

static void big_send(struct patient *p)
{
	if (p->step == STEP_CM) {
		p->dialled->send_bytes = p->dialled->recv_bytes = 16384;
		p->listened->send_bytes = p->listened->recv_bytes = 16384;
	}
	if (p->step == STEP_PAIR_CALL) /* First, Middle and Last of it */
		p->said->rpc_bytes = sizeof(p->said->rpc);
	if (p->step == STEP_READ_REPLY) /* Last that invalidates */
		p->said->rpc_bytes = sizeof(p->said->rpc);
}

static void many_packets(void **state)
{
	struct image i;
	char *text;
	int rc;

	(void)state;
	session_make(big_send, &i);
	text = image_dump(&i, &lines, &rc, NULL);
	assert_non_null(strstr(text, "CALL RDMA_MSG xid=0x6 cred=64 hdr=28 send=8220 NFS READ "
				     "offset=65536 count=101\n"));
	assert_non_null(strstr(text, "WRITE[2: 3000+1001] send=8260 NFS READ NFS3_OK count=4001 "
				     "eof=1 written=4001/2 invalidates=0x11\n"));
	free(text);
	image_fini(&i);
}

/* Calls of a program that leat does not know, with a Read chunk and with a Reply chunk. */
static void other_program(struct patient *p)
{
	if (p->step == STEP_WRITE_CALL || p->step == STEP_LINK_CALL)
		put_be32(p->said->rpc + 12, 300000);
}

static void any_program(void **state)
{
	struct image i;
	char *text;
	int rc;

	(void)state;
	session_make(other_program, &i);
	text = image_dump(&i, &lines, &rc, NULL);
	assert_non_null(strstr(text, "READ[pos=96: 4999+2] send=172 prog=300000 vers=3 proc=7\n"));
	assert_non_null(strstr(text, "prog=300000 vers=3 proc=7 SUCCESS read=5001/2\n"));
	assert_non_null(strstr(text, "REPLY[3: 120+4096+4] send=156 prog=300000 vers=3 proc=5\n"));
	assert_non_null(strstr(text, "RDMA_NOMSG xid=0x4 cred=2 hdr=80 REPLY[3: 120+1004+0] send=80 prog=300000 vers=3 proc=5 "
				     "SUCCESS written=1124/2\n"));
	free(text);
	image_fini(&i);
}

static size_t removed(struct image *i, unsigned nth)
{
	size_t len, at = image_record(i, nth, &len);

	assert_true(at > 0);
	image_remove(i, at - 16, len + 16);
	return len;
}

static void what_is_said(void **state)
{
	static const char *const parts[] = {
		" CM REQ port=20049 mtu=4096 retry=7 rnr_retry=0 own_qp=0x111 psn=0x777 "
		"responder_resources=16 initiator_depth=0 private[send=4096 receive=4096 R]\n",
		" CM RTU\n",
		" qp=0x222 CALL RDMA_MSG xid=0x1 cred=64 hdr=28 send=88 NFS NULL\n",
		" qp=0x111 REPLY RDMA_MSG xid=0x1 cred=2 hdr=28 send=52 NFS NULL SUCCESS\n",
		" RDMA WRITE rkey=0x12 offset=0x1200000000 length=1001 xid=0x2\n",
		" CALL RDMA_MSG xid=0x3 cred=64 hdr=76 READ[pos=96: 4999+2] send=172 "
		"NFS WRITE offset=0 count=5001\n",
		" RDMA READ rkey=0x21 offset=0x2100000000 length=4999 xid=0x3\n",
		" NFS WRITE NFS3_OK count=5001 read=5001/2\n",
		" CALL RDMA_NOMSG xid=0x5 cred=64 hdr=76 READ[pos=0: 10+66] send=76 long call\n",
		" send=140 NFS GETATTR NFS3_OK read=76/2\n",
		"\n14 messages, 1 connections, 48 packets, 0 rules broken\n",
	};

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(parts); n++) {
		if (!strstr(session_text, parts[n]))
			print_error("no %sin\n%s", parts[n], session_text);
		assert_non_null(strstr(session_text, parts[n]));
	}
}

/* The offset of the data item, in calls of the Linux client. */
static void items(void **state)
{
	static const struct {
		const char *name;
		uint32_t proc, bytes;
		size_t at;
	} calls[] = {
		{ "symlink-chunk-call", 10, 4000, 120 },
		{ "write-chunk-call", 7, 5001, 112 },
	};

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(calls); n++) {
		struct vector v;
		struct rr_hdr h;
		struct dump_rpc r;
		size_t len;

		vector_load(calls[n].name, &v);
		assert_int_equal(rr_hdr_decode(v.bytes, v.len, &h, &len), 0);
		dump_rpc_call(v.bytes + len, v.len - len, &r);
		assert_true(r.known && r.has_item);
		assert_int_equal(r.proc, calls[n].proc);
		assert_int_equal(r.item_at, calls[n].at);
		assert_int_equal(r.item_bytes, calls[n].bytes);
		/* a call truncated before the item has none */
		for (size_t part = 0; part < calls[n].at; part++) {
			dump_rpc_call(v.bytes + len, part, &r);
			assert_false(r.has_item);
			assert_int_equal(r.known, part >= 24);
		}
		vector_unload(&v);
	}
}

/* Two connections, one after the other, have the same queue pair numbers. */
static void numbers_used_again(void **state)
{
	struct image i = copy_session();
	struct dump d;
	char *text;
	int rc;

	(void)state;
	image_insert(&i, i.len, session.bytes + 24, session.len - 24);
	text = image_dump(&i, &all, &rc, &d);
	assert_int_equal(d.connections, 2);
	assert_int_equal(d.messages, 28);
	assert_int_equal(d.broken, 0);
	free(text);
	image_fini(&i);
}

static size_t find_cm(const struct image *i, uint8_t attribute, size_t *ret_len)
{
	size_t at;

	for (unsigned n = 0; (at = image_record(i, n, ret_len)) != 0; n++) {
		if (i->bytes[at + AT_BTH] == 0x64 && i->bytes[at + AT_BTH + 12 + 8 + 17] == attribute)
			return at;
	}
	fail_msg("no datagram 0x%x", attribute);
	return 0;
}

/* A DREQ before the last replies: replies on a closed connection break no rule. */
static void hung_up(void **state)
{
	struct image i = copy_session();
	size_t rtu, rtu_len, at = 0, next, len;
	struct dump d;
	char *text;
	int rc;

	(void)state;
	for (unsigned n = 0; n < 44; n++) /* a Send and its acknowledgement for each reply */
		at = image_record(&i, n, &len);
	next = at + len;
	rtu = find_cm(&i, 0x14, &rtu_len);
	image_insert(&i, next, i.bytes + rtu - 16, rtu_len + 16);
	i.bytes[next + 16 + AT_BTH + 12 + 8 + 17] = 0x15;
	text = image_dump(&i, &all, &rc, &d);
	assert_non_null(strstr(text, " CM DREQ\n"));
	assert_non_null(strstr(text, " answer to ? SUCCESS\n"));
	assert_int_equal(d.messages, 14);
	assert_int_equal(d.broken, 0);
	free(text);
	image_fini(&i);
}

static void nine_thousand_calls(struct patient *p)
{
	struct said *m;

	if (p->step != STEP_END)
		return;
	m = malloc(sizeof(*m));
	assert_non_null(m);
	for (uint32_t xid = 1000; xid < 10000; xid++) {
		said_null(m, xid, true, 64);
		session_say(p->s, true, m);
	}
	free(m);
}

/* The number of calls without a reply is bounded. */
static void bounded(void **state)
{
	struct image i;
	struct dump d;
	int rc;

	(void)state;
	session_make(nine_thousand_calls, &i);
	free(image_dump(&i, &lines, &rc, &d));
	assert_int_equal(d.messages, 14 + 9000);
	assert_int_equal(d.ncalls, 8192);
	image_fini(&i);
}

/* A capture that begins after the connection was established. */
static void half_way(void **state)
{
	struct image i = copy_session();
	struct dump d;
	char *text;
	int rc;

	(void)state;
	for (int n = 0; n < 3; n++)
		(void)removed(&i, 0);
	text = image_dump(&i, &all, &rc, &d);
	assert_int_equal(d.messages, 14);
	assert_int_equal(d.broken, 0);
	assert_null(strstr(text, "answer to ?"));
	assert_non_null(strstr(text, " NFS READ NFS3_OK count=4001 eof=1 written=4001/2"));
	assert_non_null(strstr(text, " NFS READLINK NFS3_OK length=1001 written="));
	assert_non_null(strstr(text, " NFS WRITE NFS3_OK count=5001 read=5001/2"));
	free(text);
	image_fini(&i);
}

/* A packet of a Send is missing: the others are not printed as a message. */
static void lost_part(void **state)
{
	struct image i;
	struct dump d;
	size_t at, len;
	int rc;

	(void)state;
	for (uint8_t opcode = 0; opcode < 2; opcode++) { /* First, Middle */
		unsigned nth = 0;

		session_make(big_send, &i);
		while ((at = image_record(&i, nth, &len)) != 0 && i.bytes[at + AT_BTH] != opcode)
			nth++;
		(void)removed(&i, nth);
		free(image_dump(&i, &lines, &rc, &d));
		assert_int_equal(d.messages, 13);
		assert_int_equal(d.missing, 3 - opcode); /* the lost packet and those that follow */
		image_fini(&i);
	}
}

/* A packet is lost and retransmitted with those that follow: nothing is missing. */
static void lost_and_sent_again(void **state)
{
	struct image i = copy_session();
	size_t first = 0, second = 0, at, len = 0, second_len = 0;

	(void)state;
	for (unsigned n = 0; !second && (at = image_record(&i, n, &len)) != 0; n++) {
		if (i.bytes[at + AT_BTH] != 0x0a) /* RDMA Write Only */
			continue;
		if (first) {
			second = at;
			second_len = len;
		} else {
			first = at;
		}
	}
	assert_true(second > first);
	image_insert(&i, first - 16, i.bytes + second - 16, second_len + 16);
	expect_same(&i, 49);
}

/* Packets truncated by a snapshot length. */
static void snapped(void **state)
{
	struct image i = copy_session();
	struct dump d;
	size_t at, len;
	char *text;
	int rc;

	(void)state;
	for (unsigned n = 0; (at = image_record(&i, n, &len)) != 0; n++) {
		if (len <= 96)
			continue;
		image_remove(&i, at + 96, len - 96);
		put32(i.bytes + at - 8, 96);
	}
	text = image_dump(&i, &lines, &rc, &d);
	assert_int_equal(d.messages, 14);
	assert_int_equal(d.cut, 14);
	assert_non_null(strstr(text, "MESSAGE send="));
	free(text);
	image_fini(&i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile),	  cmocka_unit_test(sent_again),
		cmocka_unit_test(any_program),
		cmocka_unit_test(many_packets),	  cmocka_unit_test(half_way),
		cmocka_unit_test(lost_part),	  cmocka_unit_test(snapped),
		cmocka_unit_test(what_is_said),	  cmocka_unit_test(items),
		cmocka_unit_test(numbers_used_again), cmocka_unit_test(hung_up),
		cmocka_unit_test(bounded),	  cmocka_unit_test(lost_and_sent_again),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
