/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_dump.h - one recorded session, and what leat dump prints of it
 */
#ifndef TEST_DUMP_H
#define TEST_DUMP_H

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

/* Copies @text without times, which differ from run to run. */
static inline char *after_time(const char *text)
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

static inline int setup(void **state)
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

static inline int teardown(void **state)
{
	(void)state;
	free(session_text);
	image_fini(&session);
	return 0;
}

static inline struct image copy_session(void)
{
	struct image i = { malloc(session.len), session.len };

	assert_non_null(i.bytes);
	memcpy(i.bytes, session.bytes, session.len);
	return i;
}

/* Expects the output of the session, and @packets; consumes @i. */
static inline void expect_same(struct image *i, unsigned packets)
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

static inline void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, 4);
}

static inline void put_block(struct image *to, bool swap, uint32_t type, const void *body, size_t len)
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

static inline void put16(uint8_t *p, bool swap, uint16_t v)
{
	v = swap ? __builtin_bswap16(v) : v;
	memcpy(p, &v, 2);
}

static inline void put32s(uint8_t *p, bool swap, uint32_t v)
{
	put32(p, swap ? __builtin_bswap32(v) : v);
}

/* Converts the session to pcapng. @resolution: of time, as in the file. The packets are of the second interface. */
static inline struct image to_ng(bool swap, uint8_t resolution, uint64_t per_second)
{
	struct image i = { malloc(1), 0 };
	uint8_t section[16] = { 0 }, iface[32] = { 0 };
	uint8_t *packet;
	size_t at, len;

	put32s(section, swap, 0x1a2b3c4d);
	put16(section + 4, swap, 1);
	memset(section + 8, 0xff, 8); /* length not specified */
	put_block(&i, swap, 0x0a0d0d0a, section, sizeof(section));
	put16(iface, swap, 147);
	put_block(&i, swap, 1, iface, 8);
	put16(iface, swap, 1);
	put16(iface + 8, swap, 2); /* options: its name, then its unit of time */
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

#endif
