/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leat_block_flow.c - libleat on a volume of fake_volume.h
 *
 * Operation: leat_block_flow.h.
 * Memory:    static.
 * Threads:   that of the test; LOCKED() is for what the server's reads or writes, too.
 * Errors:    asserted.
 */
#include "leat_block_flow.h"

#include <stdio.h>
#include <string.h>

struct fake_volume rig;

const char *block_flow_text(const char *member)
{
	static char copy[LEAT_BLOCK_NAME_MAX + 1];

	LOCKED(snprintf(copy, sizeof(copy), "%s", member));
	return copy;
}

/* A copy of the volume's content */
const uint8_t *disk(void)
{
	static uint8_t copy[FAKE_VOLUME_ROOM];

	LOCKED(memcpy(copy, rig.disk, sizeof(copy)));
	return copy;
}

int block_flow_setup(void **state)
{
	(void)state;
	fake_volume_open(&rig);
	return 0;
}

int block_flow_teardown(void **state)
{
	(void)state;
	fake_volume_close(&rig);
	return 0;
}

struct leat_block *attach(const char *url, const char *options, unsigned flags)
{
	struct leat_block *b;
	char text[300];

	snprintf(text, sizeof(text), "%s?%s", url, options ? options : "");
	if (leat_block_attach(text, NULL, flags, &b))
		fail_msg("%s", leat_error(NULL));
	return b;
}

void detach(struct leat_block *b)
{
	assert_int_equal(leat_block_detach(b), 0);
}

uint64_t stat_of(struct leat_block *b, const char *name)
{
	return leat_flow_stat(leat_block_handle(b), name);
}

void use_volume(struct leat_block *b)
{
	static uint8_t want[300000], got[300000];
	struct leat_block_info info = { .size = sizeof(info) };

	assert_int_equal(leat_block_info(b, &info), 0);
	assert_string_equal(info.name, "vol0");
	assert_int_equal(info.bytes, 1u << 20);
	assert_int_equal(info.block, 512);
	assert_int_equal(info.holders, 1);
	assert_true(info.can_discard && info.can_extents && !info.rdonly && !info.shared && !info.durable);
	assert_int_equal(leat_block_size(b), 1u << 20);

	leat_flow_fill(want, sizeof(want), 5);
	assert_int_equal(leat_block_pwrite(b, want, 4096, 8192, 0), 4096);
	assert_int_equal(leat_block_pwrite(b, want + 512, 299520 - 512, 512, LEAT_BLOCK_FUA), 299520 - 512);
	assert_int_equal(leat_block_flush(b), 0);
	assert_int_equal(leat_block_pread(b, got, 299520, 0), 299520);
	assert_memory_equal(got + 512, want + 512, 299520 - 512);
	assert_memory_equal(got, disk(), 299520);
	assert_int_equal(leat_block_pread(b, got, 0, 512), 0);
	assert_int_equal(leat_block_pwrite(b, got, 0, 1u << 20, 0), 0);
	assert_int_equal(GET(fua), 1);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_FLUSH), 1);
}

void refuse_attach(const char *url, unsigned flags, int want, const char *said)
{
	struct leat_block *b = NULL;

	assert_int_equal(leat_block_attach(url, NULL, flags, &b), want);
	assert_null(b);
	if (!strstr(leat_error(NULL), said))
		fail_msg("\"%s\" instead of \"%s\"", leat_error(NULL), said);
}

void await_held(struct leat_block *b, unsigned n)
{
	while (!fake_volume_holds(&rig, n))
		assert_true(leat_poll(leat_session(leat_block_handle(b)), 0) >= 0);
}
