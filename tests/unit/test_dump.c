/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_dump.c - leat dump: file formats, headers below RoCEv2, messages of several packets, lines
 *
 * The vector is the beginning of a session between Linux's client and server, captured on a wire.
 */
#include "test_dump.h"

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

/* Replaces the Ethernet header of each record by @head, and sets the link type. */
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
	/* a packet that the capture has truncated is counted as such */
	i = copy_session();
	at = image_record(&i, 3, &len);
	i.bytes[at + 34 + 4] = 0xff;
	free(image_dump(&i, &lines, &rc, &d));
	assert_int_equal(d.cut, 1);
	image_fini(&i);
	/* an unknown link type */
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

/* Offset of the first packet of to_ng(): after a section, two interfaces and names. */
enum { NG_FIRST = 28 + 20 + 44 + 20 };

/* Makes all times exact in any unit. */
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
		assert_string_equal(text, classic); /* with equal times */
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
	image_remove(&i, 28, 20); /* the first interface: that of the packets is missing now */
	free(image_dump(&i, &lines, &rc, NULL));
	assert_int_equal(rc, -EBADMSG);
	image_fini(&i);
}

/* ---- invalid files ---------------------------------------------------------------- */

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
	/* a record with a length beyond any packet */
	i = copy_session();
	put32(i.bytes + 24 + 8, 0x7fffffff);
	free(image_dump(&i, &lines, &rc, NULL));
	assert_int_equal(rc, -EBADMSG);
	image_fini(&i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_session), cmocka_unit_test(other_byte_order),
		cmocka_unit_test(nanoseconds),	  cmocka_unit_test(link_types),
		cmocka_unit_test(not_ours),	  cmocka_unit_test(ipv6),
		cmocka_unit_test(pcapng),	  cmocka_unit_test(bad_files),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
