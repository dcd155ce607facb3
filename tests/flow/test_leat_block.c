/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_block.c - block volumes as a program sees them: data, descriptions, errors
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "leat_block_flow.h"

LOG_DEFINE("test_leat_block");

/* ---- data ---- */

static void round_trip(const char *url)
{
	struct leat_block *b = attach(url, NULL, 0);

	use_volume(b);
	assert_int_equal(strlen(leat_block_holder_name(b)), 16);
	assert_string_equal(leat_block_holder_name(b), GET_TEXT(holder));
	assert_string_equal(GET_TEXT(app), program_invocation_short_name);
	detach(b);
	assert_string_equal(GET_TEXT(holder), "");
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_DETACH), 1);
}

static void over_local(void **state)
{
	(void)state;
	round_trip(rig.local_url);
}

static void over_tcp(void **state)
{
	(void)state;
	round_trip(rig.tcp_url);
}

static void several_connections(void **state)
{
	struct leat_block *b = attach(rig.local_url, "conns=3&threads=2&holder=me", 0);

	(void)state;
	use_volume(b);
	for (uint32_t slot = 0; slot < 3; slot++)
		assert_int_equal(fake_volume_incarnation(&rig, slot), 1);
	assert_string_equal(GET_TEXT(holder), "me");
	detach(b);
}

/* Any number of parts of any length: the volume is as if it had been one. */
static void scatter(const char *url, size_t part, size_t odd)
{
	static uint8_t want[1u << 20], got[2u << 20];
	struct leat_block *b = attach(url, NULL, 0);
	size_t left = sizeof(want) - 512, at = 0;
	static struct iovec iov[20000];
	int n = 0;

	leat_flow_fill(want, sizeof(want), (unsigned)part);
	memset(got, 0, sizeof(got));
	for (size_t len; left; left -= len, at += 2 * len, n++) {
		len = MIN(left, n % 3 ? part : odd);
		iov[n] = (struct iovec){ got + at, len };
	}
	assert_int_equal(leat_block_pwrite(b, want, sizeof(want), 0, 0), sizeof(want));
	assert_int_equal(leat_block_preadv(b, iov, n, 512), sizeof(want) - 512);
	at = 512;
	for (int i = 0; i < n; i++) {
		assert_memory_equal(iov[i].iov_base, want + at, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	for (size_t i = 0; i < sizeof(got); i++)
		got[i] = (uint8_t)~got[i];
	assert_int_equal(leat_block_pwritev(b, iov, n, 512, 0), sizeof(want) - 512);
	for (size_t i = 512; i < sizeof(want); i++)
		want[i] = (uint8_t)~want[i];
	assert_memory_equal(disk(), want, sizeof(want));
	detach(b);
}

static void many_parts(void **state)
{
	(void)state;
	scatter(rig.local_url, 4096, 4096);
	scatter(rig.local_url, 4100, 5);
	scatter(rig.tcp_url, 97, 5000);
	scatter(rig.local_url, 97, 5000);
	scatter(rig.tcp_url, 4096, 1);
}

/* Bytes that this process copies to transfer @cnt parts of @len bytes, every second one of @mem, both ways. */
static void count_copies(struct leat_block *b, char *mem, size_t len, int cnt, uint64_t want)
{
	static struct iovec iov[256];
	uint64_t before = stat_of(b, "bytes_copied");
	size_t all = len * (size_t)cnt;
	const uint8_t *now;

	for (int i = 0; i < cnt; i++)
		iov[i] = (struct iovec){ mem + 2 * len * (size_t)i, len };
	assert_int_equal(leat_block_preadv(b, iov, cnt, 0), all);
	assert_in_range(stat_of(b, "bytes_copied") - before, want, want + 16383); /* with the messages */
	now = disk();
	for (size_t i = 0; i < all; i++)
		assert_int_equal((uint8_t)mem[i / len * 2 * len + i % len], now[i]);
	for (int i = 0; i < cnt; i++)
		memset(iov[i].iov_base, i, len);
	assert_int_equal(leat_block_pwritev(b, iov, cnt, 0, 0), all);
	assert_in_range(stat_of(b, "bytes_copied") - before, 2 * want, 2 * want + 32767);
	now = disk();
	for (size_t i = 0; i < all; i++)
		assert_int_equal(now[i], (uint8_t)(i / len));
}

/* Small parts are copied once, others never. */
static void copies(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	void *mem;

	(void)state;
	if (getenv("LEAT_TEST_VARIANT")) {
		print_message("skipped: variants copy more\n");
		detach(b);
		skip();
	}
	assert_int_equal(leat_buf_alloc(leat_session(leat_block_handle(b)), 1u << 20, &mem), 0);
	count_copies(b, mem, 256, 256, 65536);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_READ), 1);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_WRITE), 1);
	count_copies(b, mem, 512, 128, 65536);
	count_copies(b, mem, 4096, 16, 0);
	count_copies(b, mem, 8192, 16, 0);
	count_copies(b, mem, 4096, 128, 0); /* two calls of 64 segments */
	assert_int_equal(stat_of(b, "reg_bounced"), 0);
	leat_buf_free(leat_session(leat_block_handle(b)), mem);
	detach(b);
}

/* ---- errors ---- */

static void has_cause(struct leat_block *b, const char *text)
{
	assert_non_null(strstr(leat_error(leat_block_handle(b)), text));
}

static void refused_at_once(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	struct leat_block_extent e;
	static uint8_t buf[4096];
	const struct iovec bad[2] = { { buf, SIZE_MAX }, { buf, 2 } };
	unsigned before = fake_volume_calls(&rig, BLOCKPROC_INFO);

	(void)state;
	assert_int_equal(leat_block_pread(b, buf, 512, 1), -EINVAL);
	assert_int_equal(leat_block_pread(b, buf, 511, 0), -EINVAL);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 100, 0), -EINVAL);
	has_cause(b, "/block/vol0: write: Invalid argument (offset and length must be multiples of the");
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, LEAT_BLOCK_KEEP), -EINVAL);
	has_cause(b, "write: Invalid argument (an unknown flag)");
	assert_int_equal(leat_block_zero(b, 0, 512, LEAT_BLOCK_FUA), -EINVAL);
	has_cause(b, "zero: Invalid argument (an unknown flag)");
	assert_int_equal(leat_block_zero(b, 0, 500, 0), -EINVAL);
	has_cause(b, "must be multiples of");
	assert_int_equal(leat_block_zero(b, 0, 0, 0), 0);
	assert_int_equal(leat_block_pread(b, buf, 0, 0), 0);
	assert_int_equal(leat_block_discard(b, 2, 512), -EINVAL);
	assert_int_equal(leat_block_extents(b, 2, 512, &e, 1), -EINVAL);
	assert_int_equal(leat_block_extents(b, 0, 0, &e, 1), -EINVAL);
	has_cause(b, "a range of no bytes, or room for no extent");
	assert_int_equal(leat_block_extents(b, 0, 512, &e, 0), -EINVAL);
	assert_int_equal(leat_block_preadv(b, bad, 2, 0), -EINVAL);
	assert_int_equal(leat_block_preadv(b, bad, -1, 0), -EINVAL);
	assert_int_equal(leat_block_pread(b, buf, 512, UINT64_MAX - 511), -EINVAL);
	has_cause(b, "read: Invalid argument (beyond the end of the volume)");
	assert_int_equal(leat_block_pwrite(b, buf, 512, (uint64_t)INT64_MAX + 1, 0), -ENOSPC);
	assert_int_equal(leat_block_zero(b, 512, UINT64_MAX - 511, 0), -ENOSPC);
	assert_int_equal(leat_block_pread(NULL, buf, 512, 0), -EINVAL);
	assert_int_equal(leat_aio_block_pread(NULL, buf, 512, 0, (struct leat_cb){ 0 }), -EBADF);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_INFO), before);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_READ) + fake_volume_calls(&rig, BLOCKPROC_WRITE), 0);
	detach(b);
	assert_int_equal(leat_block_detach(NULL), 0);
	assert_null(leat_block_handle(NULL));
	assert_int_equal(leat_block_size(NULL), 0);
}

static void attach_errors(void **state)
{
	struct leat_block *b = attach(rig.local_url, "holder=first", 0);
	char url[300];

	(void)state;
	refuse_attach(rig.local_url, 0, -EBUSY, "/block/vol0: ATTACH: Device or resource busy (holder first has it: "
		      "test_leat_block on 10.0.0.7, since 2023-11-14 22:13:20 UTC");
	snprintf(url, sizeof(url), "%s/block/other", rig.local_server);
	refuse_attach(url, 0, -ENOENT, "/block/other: ATTACH: No such file or directory (BLOCK_ERR_NOENT: the server has no such volume)");
	snprintf(url, sizeof(url), "%s/export/vol0", rig.local_server);
	refuse_attach(url, 0, -EINVAL, "not the URL of a volume");
	snprintf(url, sizeof(url), "%s/block/", rig.local_server);
	refuse_attach(url, 0, -EINVAL, "1 to 63 bytes");
	snprintf(url, sizeof(url), "%s/block/a/b", rig.local_server);
	refuse_attach(url, 0, -EINVAL, "no slash");
	snprintf(url, sizeof(url), "%s/block/%064d", rig.local_server, 7);
	refuse_attach(url, 0, -EINVAL, "1 to 63 bytes");
	snprintf(url, sizeof(url), "%s?holder=%064d", rig.local_url, 7);
	refuse_attach(url, 0, -EINVAL, "1 to 63 bytes");
	snprintf(url, sizeof(url), "%s?holder=a%%2fb", rig.local_url);
	refuse_attach(url, 0, -EINVAL, "without a slash");
	snprintf(url, sizeof(url), "%s?reg_bytes=512k", rig.local_url);
	if (!getenv("LEAT_TEST_VARIANT")) /* other strategies have no limit */
		refuse_attach(url, 0, -EINVAL, "reg_bytes=524288 is less than one request needs: at least 1056768");
	refuse_attach(rig.local_url, 64, -EINVAL, "unknown flag");
	refuse_attach("tcp://127.0.0.1:1/block/vol0", 0, -ECONNREFUSED, "cannot attach to tcp://127.0.0.1:1/block/vol0");
	detach(b);
}

static void read_only(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, LEAT_BLOCK_RDONLY);
	struct leat_block_info info = { .size = sizeof(info) };
	uint8_t buf[512];

	(void)state;
	assert_int_equal(GET(attach_flags), BLOCK_RDONLY);
	assert_int_equal(leat_block_info(b, &info), 0);
	assert_true(info.rdonly);
	assert_int_equal(leat_block_pread(b, buf, 512, 0), 512);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), -EROFS);
	assert_int_equal(leat_block_discard(b, 0, 512), -EROFS);
	assert_int_equal(leat_block_zero(b, 0, 512, 0), -EROFS);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_WRITE), 0);
	detach(b);
}

static void growth(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	struct leat_block_extent e;
	static uint8_t buf[4096];
	unsigned asked;

	(void)state;
	assert_int_equal(leat_block_pread(b, buf, 4096, (1u << 20) - 512), -EINVAL);
	assert_non_null(strstr(leat_error(leat_block_handle(b)), "beyond the end of the volume"));
	assert_int_equal(leat_block_pwrite(b, buf, 4096, 1u << 20, 0), -ENOSPC);
	assert_int_equal(leat_block_zero(b, 1u << 20, 512, 0), -ENOSPC);
	assert_int_equal(leat_block_discard(b, 1u << 20, 512), -ENOSPC);
	assert_int_equal(leat_block_extents(b, 1u << 20, 512, &e, 1), -EINVAL);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_READ) + fake_volume_calls(&rig, BLOCKPROC_WRITE) +
			 fake_volume_calls(&rig, BLOCKPROC_ZERO) + fake_volume_calls(&rig, BLOCKPROC_DISCARD), 0);
	assert_memory_equal(buf, (uint8_t[4096]){ 0 }, 4096);
	SET(size, 2 * GET(size));
	asked = fake_volume_calls(&rig, BLOCKPROC_INFO);
	assert_int_equal(leat_block_pread(b, buf, 4096, (1u << 20) - 512), 4096);
	assert_memory_equal(buf, disk() + (1u << 20) - 512, 4096);
	assert_int_equal(leat_block_pwrite(b, buf, 4096, 1u << 20, 0), 4096);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_INFO), asked + 1);
	assert_int_equal(leat_block_size(b), 2u << 20);
	SET(size, 2 * GET(size));
	assert_int_equal(leat_block_zero(b, 3u << 20, 512, 0), 0);
	assert_int_equal(leat_block_size(b), 4u << 20);
	detach(b);
}

/* ---- lists ---- */

struct listed {
	unsigned n;
	char last[64];
};

static void take_volume(void *ctx, const struct leat_block_info *info)
{
	struct listed *l = ctx;

	assert_true(strcmp(info->name, l->last) > 0);
	assert_int_equal(info->bytes, 1u << 20);
	strcpy(l->last, info->name);
	l->n++;
}

static void take_holder(void *ctx, const struct leat_block_holder *h)
{
	struct listed *l = ctx;

	assert_string_equal(h->peer, "10.0.0.7");
	assert_string_equal(h->app, "test_leat_block");
	assert_int_equal(h->since, 1700000000);
	assert_int_equal(h->conns, 1);
	strcpy(l->last, h->name);
	l->n++;
}

static void lists(void **state)
{
	struct listed volumes = { 0 }, holders = { 0 };
	struct leat_block_info info = { .size = sizeof(info) };
	struct leat_block *b = attach(rig.local_url, "holder=a", 0), *look = attach(rig.local_server, NULL, LEAT_BLOCK_LOOK);
	uint8_t buf[512];

	(void)state;
	SET(volumes, 150);
	assert_int_equal(leat_block_list(look, take_volume, &volumes), 0);
	assert_int_equal(volumes.n, 151);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_LIST), 3);
	assert_int_equal(leat_block_info(look, &info), -EINVAL);
	assert_int_equal(leat_block_holders(look, take_holder, &holders), -EINVAL);
	assert_int_equal(leat_block_take_over(look, "a"), -EINVAL);
	assert_int_equal(leat_block_pread(look, buf, 512, 0), -EBADF);
	assert_int_equal(leat_block_flush(look), -EBADF);
	detach(look);
	look = attach(rig.local_url, NULL, LEAT_BLOCK_LOOK);
	assert_int_equal(leat_block_info(look, &info), 0);
	assert_int_equal(info.holders, 1);
	assert_int_equal(leat_block_holders(look, take_holder, &holders), 0);
	assert_int_equal(holders.n, 1);
	assert_string_equal(holders.last, "a");
	detach(look);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_DETACH), 0);
	detach(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(over_local), TEST(over_tcp), TEST(several_connections), TEST(many_parts), TEST(copies),
		TEST(refused_at_once), TEST(attach_errors), TEST(read_only), TEST(growth), TEST(lists),
	};

	log_state.level = LOG_LEVEL_ERR;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
