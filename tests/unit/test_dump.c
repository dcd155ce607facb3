/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_dump.c - leat dump: file formats, what is under RoCEv2, messages put together, lines
 *
 * The vector is the beginning of a session between Linux's client and server, captured on a wire.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/wire.h"
#include "tests/lib/dump_session.h"
#include "tests/lib/vectors.h"

static const struct dump_options all = { .lines = true, .transfers = true, .check = true };
static const struct dump_options lines = { .lines = true };

static char *slurp(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "re");
	char *text = malloc(1 << 20);

	assert_non_null(f);
	assert_non_null(text);
	*ret_len = fread(text, 1, (1 << 20) - 1, f);
	text[*ret_len] = 0;
	fclose(f);
	return text;
}

static void kernel_session(void **state)
{
	size_t len, image_len;
	char *want = slurp("tests/vectors/kernel-session.txt", &len);
	struct image i = { (uint8_t *)slurp("tests/vectors/kernel-session.pcap", &image_len), 0 };
	char *text;
	int rc;

	(void)state;
	i.len = image_len;
	text = image_dump(&i, &all, &rc, NULL);
	assert_int_equal(rc, 0);
	assert_string_equal(text, want);
	free(want);
	free(text);
	image_fini(&i);
}

/* ---- one session, in many files ------------------------------------------------------------------------ */

/* Seconds differ from run to run, and the length of packets by what is around them does not. */
static char *after_time(const char *text)
{
	char *out = malloc(strlen(text) + 1), *to = out;

	assert_non_null(out);
	while (*text) {
		const char *line = text, *end = strchr(text, '\n');
		size_t len;

		assert_non_null(end);
		if (strstr(text, " -> ") && strstr(text, " -> ") < end)
			line = strchr(text, ' ');
		len = (size_t)(end - line) + 1;
		memcpy(to, line, len);
		to += len;
		text = end + 1;
	}
	*to = 0;
	return out;
}

static struct image session;
static char *session_text;

static int setup(void **state)
{
	char *text;
	int rc;

	(void)state;
	session_make(NULL, &session);
	text = image_dump(&session, &all, &rc, NULL);
	session_text = after_time(text);
	free(text);
	return rc;
}

static int teardown(void **state)
{
	(void)state;
	free(session_text);
	image_fini(&session);
	return 0;
}

static struct image copy_session(void)
{
	struct image i = { malloc(session.len), session.len };

	assert_non_null(i.bytes);
	memcpy(i.bytes, session.bytes, session.len);
	return i;
}

/* It says what the session says, of @packets; consumes @i. */
static void expect_same(struct image *i, unsigned packets)
{
	char *text, *said, *last;
	struct dump d;
	int rc;

	text = image_dump(i, &all, &rc, &d);
	said = after_time(text);
	assert_int_equal(rc, 0);
	assert_int_equal(d.packets, packets);
	last = strstr(said, "14 messages");
	assert_non_null(last);
	assert_int_equal(strncmp(said, session_text, (size_t)(last - said)), 0);
	assert_int_equal(d.messages, 14);
	assert_int_equal(d.broken, 0);
	free(said);
	free(text);
	image_fini(i);
}

static void swap32(uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	v = __builtin_bswap32(v);
	memcpy(p, &v, 4);
}

static void other_byte_order(void **state)
{
	struct image i = copy_session();
	size_t at, len;

	(void)state;
	for (unsigned n = 0; (at = image_record(&session, n, &len)) != 0; n++) {
		for (size_t k = 16; k; k -= 4)
			swap32(i.bytes + at - k);
	}
	swap32(i.bytes);
	for (size_t k = 8; k < 24; k += 4)
		swap32(i.bytes + k);
	expect_same(&i, 48);
}

static void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, 4);
}

static void nanoseconds(void **state)
{
	struct image i = copy_session();
	uint32_t v;
	size_t at, len;
	char *micro, *nano;
	int rc;

	(void)state;
	put32(i.bytes, 0xa1b23c4d);
	for (unsigned n = 0; (at = image_record(&i, n, &len)) != 0; n++) {
		memcpy(&v, i.bytes + at - 12, 4);
		put32(i.bytes + at - 12, v * 1000);
	}
	micro = image_dump(&session, &lines, &rc, NULL);
	nano = image_dump(&i, &lines, &rc, NULL);
	assert_string_equal(micro, nano);
	free(micro);
	free(nano);
	image_fini(&i);
}

/* Puts @len bytes for the link header of each record, or @more into it at @into. */
static void relink(struct image *i, uint32_t link, const uint8_t *head, size_t head_len)
{
	size_t at, len;

	for (unsigned n = 0; (at = image_record(i, n, &len)) != 0; n++) {
		image_remove(i, at, 14);
		if (head_len)
			image_insert(i, at, head, head_len);
		put32(i->bytes + at - 8, (uint32_t)(len - 14 + head_len));
	}
	put32(i->bytes + 20, link);
}

static void link_types(void **state)
{
	static const uint8_t sll[16] = { [14] = 8 }, sll2[20] = { 8 };
	static const uint8_t vlan[18] = { [12] = 0x81, [14] = 0, 7, 8, 0 };
	static const uint8_t qinq[22] = { [12] = 0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 8, 0 };
	static const struct {
		uint32_t link;
		const uint8_t *head;
		size_t len;
	} links[] = {
		{ 113, sll, 16 }, { 276, sll2, 20 }, { 1, vlan, 18 }, { 1, qinq, 22 },
		{ 101, NULL, 0 }, { 12, NULL, 0 },   { 14, NULL, 0 }, { 228, NULL, 0 },
	};

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(links); n++) {
		struct image i = copy_session();

		relink(&i, links[n].link, links[n].head, links[n].len);
		expect_same(&i, 48);
	}
}

static void not_ours(void **state)
{
	static const struct {
		size_t at;
		uint8_t byte;
	} wrong[] = {
		{ 12, 9 }, { 14, 0x65 }, { 14, 0x44 }, { 14 + 9, 6 }, { 14 + 6, 0x20 },
		{ 14 + 7, 1 }, { 34 + 3, 1 }, { 34 + 4, 0xff },
	};
	struct image i;
	struct dump d;
	size_t at, len;
	int rc;

	(void)state;
	for (size_t n = 0; n + 1 < ARRAY_SIZE(wrong); n++) {
		i = copy_session();
		for (unsigned k = 0; (at = image_record(&i, k, &len)) != 0; k++)
			i.bytes[at + wrong[n].at] = wrong[n].byte;
		free(image_dump(&i, &lines, &rc, &d));
		assert_int_equal(d.packets, 0);
		image_fini(&i);
	}
	/* a length that only the capture has cut down is another matter */
	i = copy_session();
	at = image_record(&i, 3, &len);
	i.bytes[at + 34 + 4] = 0xff;
	free(image_dump(&i, &lines, &rc, &d));
	assert_int_equal(d.cut, 1);
	image_fini(&i);
	/* a link of which we know nothing */
	i = copy_session();
	put32(i.bytes + 20, 147);
	free(image_dump(&i, &lines, &rc, &d));
	assert_int_equal(d.packets, 0);
	image_fini(&i);
}

static void ipv6(void **state)
{
	struct image i = copy_session();
	char *text;
	size_t at, len;
	int rc;

	(void)state;
	for (unsigned n = 0; (at = image_record(&i, n, &len)) != 0; n++) {
		uint8_t ip[40] = { 0x60, [6] = 17, [7] = 64, [8] = 0xfd, 0x77, [24] = 0xfd, 0x77 };

		ip[23] = i.bytes[at + 14 + 15]; /* last bytes of the addresses */
		ip[39] = i.bytes[at + 14 + 19];
		image_remove(&i, at + 14, 20);
		image_insert(&i, at + 14, ip, 40);
		put_be16(i.bytes + at + 12, 0x86dd);
		put32(i.bytes + at - 8, (uint32_t)len + 20);
	}
	text = image_dump(&i, &all, &rc, NULL);
	assert_non_null(strstr(text, "fd77::1 -> fd77::2 qp=0x222 CALL RDMA_MSG xid=0x2 "));
	assert_non_null(strstr(text, "\n14 messages, 1 connections, 48 packets, 0 rules broken\n"));
	free(text);
	image_fini(&i);
}

/* ---- pcapng ---------------------------------------------------------------------------------------------- */

static void put_block(struct image *to, bool swap, uint32_t type, const void *body, size_t len)
{
	uint32_t words[2] = { type, (uint32_t)(12 + round_up4(len)) };
	static const uint8_t zero[4];

	if (swap) {
		words[0] = __builtin_bswap32(words[0]);
		words[1] = __builtin_bswap32(words[1]);
	}
	image_insert(to, to->len, words, 8);
	image_insert(to, to->len, body, len);
	if (len % 4)
		image_insert(to, to->len, zero, 4 - len % 4);
	image_insert(to, to->len, words + 1, 4);
}

static void put16(uint8_t *p, bool swap, uint16_t v)
{
	v = swap ? __builtin_bswap16(v) : v;
	memcpy(p, &v, 2);
}

static void put32s(uint8_t *p, bool swap, uint32_t v)
{
	put32(p, swap ? __builtin_bswap32(v) : v);
}

/* Where to_ng() puts the first packet: behind a section, two interfaces and names. */
enum { NG_FIRST = 28 + 20 + 44 + 20 };

/* @resolution: as in the file. The second interface is the one. */
static struct image to_ng(bool swap, uint8_t resolution, uint64_t per_second)
{
	struct image i = { malloc(1), 0 };
	uint8_t section[16] = { 0 }, iface[32] = { 0 };
	uint8_t *packet;
	size_t at, len;

	put32s(section, swap, 0x1a2b3c4d);
	put16(section + 4, swap, 1);
	memset(section + 8, 0xff, 8); /* nobody knows how long */
	put_block(&i, swap, 0x0a0d0d0a, section, sizeof(section));
	put16(iface, swap, 147);
	put_block(&i, swap, 1, iface, 8);
	put16(iface, swap, 1);
	put16(iface + 8, swap, 2); /* its name, then its unit of time */
	put16(iface + 10, swap, 5);
	memcpy(iface + 12, "veth0", 5);
	put16(iface + 20, swap, 9);
	put16(iface + 22, swap, 1);
	iface[24] = resolution;
	put_block(&i, swap, 1, iface, sizeof(iface));
	put_block(&i, swap, 4, "names", 5);
	for (unsigned n = 0; (at = image_record(&session, n, &len)) != 0; n++) {
		uint32_t sec, usec;
		uint64_t t;

		memcpy(&sec, session.bytes + at - 16, 4);
		memcpy(&usec, session.bytes + at - 12, 4);
		t = sec * per_second + usec * per_second / 1000000;
		packet = calloc(1, 20 + len);
		assert_non_null(packet);
		put32s(packet, swap, 1);
		put32s(packet + 4, swap, (uint32_t)(t >> 32));
		put32s(packet + 8, swap, (uint32_t)t);
		put32s(packet + 12, swap, (uint32_t)len);
		put32s(packet + 16, swap, (uint32_t)len);
		memcpy(packet + 20, session.bytes + at, len);
		put_block(&i, swap, 6, packet, 20 + len);
		free(packet);
	}
	return i;
}

/* Of times that are exact in any unit. */
static void even_times(void)
{
	size_t at, len;

	for (unsigned n = 0; (at = image_record(&session, n, &len)) != 0; n++)
		put32(session.bytes + at - 12, n % 64 * 15625);
}

static void pcapng(void **state)
{
	struct image i;
	char *classic, *text;
	int rc;

	(void)state;
	even_times();
	classic = image_dump(&session, &lines, &rc, NULL);
	for (int swap = 0; swap < 2; swap++) {
		i = to_ng(swap, 6, 1000000);
		text = image_dump(&i, &lines, &rc, NULL);
		assert_int_equal(rc, 0);
		assert_string_equal(text, classic); /* and its times */
		free(text);
		image_fini(&i);
		i = to_ng(swap, 9, 1000000000);
		text = image_dump(&i, &lines, &rc, NULL);
		assert_string_equal(text, classic);
		free(text);
		image_fini(&i);
		i = to_ng(swap, 0x80 | 30, 1u << 30);
		text = image_dump(&i, &lines, &rc, NULL);
		assert_string_equal(text, classic);
		free(text);
		image_fini(&i);
		i = to_ng(swap, 0x80 | 40, UINT64_C(1) << 40);
		text = image_dump(&i, &lines, &rc, NULL);
		assert_string_equal(text, classic);
		free(text);
		image_fini(&i);
	}
	free(classic);
	/* a packet that is longer than its block */
	i = to_ng(false, 6, 1000000);
	put32(i.bytes + NG_FIRST + 8 + 12, 4096);
	free(image_dump(&i, &lines, &rc, NULL));
	assert_int_equal(rc, -EBADMSG);
	image_fini(&i);
	i = to_ng(false, 6, 1000000);
	image_remove(&i, 28, 20); /* the first interface: the packets' is not there now */
	free(image_dump(&i, &lines, &rc, NULL));
	assert_int_equal(rc, -EBADMSG);
	image_fini(&i);
}

/* ---- files that are not as they should be ---------------------------------------------------------------- */

static void bad_files(void **state)
{
	static const char *const texts[] = { "", "abc", "this is a text, not a capture of anything" };
	struct image i;
	int rc;

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(texts); n++) {
		i = (struct image){ malloc(64), 0 };
		assert_non_null(i.bytes);
		i.len = MAX(strlen(texts[n]), (size_t)1);
		memcpy(i.bytes, texts[n], strlen(texts[n]) + 1);
		free(image_dump(&i, &lines, &rc, NULL));
		assert_int_equal(rc, -EBADMSG);
		image_fini(&i);
	}
	/* a record that claims more than there can be */
	i = copy_session();
	put32(i.bytes + 24 + 8, 0x7fffffff);
	free(image_dump(&i, &lines, &rc, NULL));
	assert_int_equal(rc, -EBADMSG);
	image_fini(&i);
}

/* Ending anywhere is borne; so is any byte being another. */
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

/* All packets once more, as when they were sent again: nothing is said twice. */
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

/* Where the item of a call stands, in calls that Linux has sent. */
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
		/* it ends early, anywhere: then the item is not known */
		for (size_t part = 0; part < calls[n].at; part++) {
			dump_rpc_call(v.bytes + len, part, &r);
			assert_false(r.has_item);
			assert_int_equal(r.known, part >= 24);
		}
		vector_unload(&v);
	}
}

/* Two connections with the same queue pairs, one after the other. */
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

/* A DREQ in front of the last replies: that they answer what is no more is nobody's fault. */
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

/* What is never answered does not pile up. */
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

/* Without the connection's beginning it is put together from what is seen. */
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

/* A part of a Send is missing: what is left of it is no message. */
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
		assert_int_equal(d.missing, 3 - opcode); /* and what came behind it */
		image_fini(&i);
	}
}

/* Lost on the way and sent again, as was what came behind it: nothing is missing. */
static void lost_and_sent_again(void **state)
{
	struct image i = copy_session();
	size_t first = 0, second = 0, at, len = 0, second_len = 0;

	(void)state;
	for (unsigned n = 0; !second && (at = image_record(&i, n, &len)) != 0; n++) {
		if (i.bytes[at + AT_BTH] != 0x0a) /* RDMA Write, all of it */
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

/* What a snapshot length leaves of it. */
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
		cmocka_unit_test(kernel_session), cmocka_unit_test(other_byte_order),
		cmocka_unit_test(nanoseconds),	  cmocka_unit_test(link_types),
		cmocka_unit_test(not_ours),	  cmocka_unit_test(ipv6),
		cmocka_unit_test(pcapng),	  cmocka_unit_test(bad_files),
		cmocka_unit_test(hostile),	  cmocka_unit_test(sent_again),
		cmocka_unit_test(many_packets),	  cmocka_unit_test(half_way),
		cmocka_unit_test(lost_part),	  cmocka_unit_test(snapped),
		cmocka_unit_test(what_is_said),	  cmocka_unit_test(items),
		cmocka_unit_test(numbers_used_again), cmocka_unit_test(hung_up),
		cmocka_unit_test(bounded),	  cmocka_unit_test(lost_and_sent_again),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
