/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_block_replies.c - replies that a test makes up: what no server may say, parts, long ranges
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "leat_block_flow.h"

LOG_DEFINE("test_leat_block_replies");

/* ---- a server that says what it must not ---- */

static void (*lie)(uint32_t proc, void *res);

static void tell_lie(struct fake_volume *r, uint32_t proc, const void *args, void *res)
{
	(void)r;
	(void)args;
	if (lie)
		lie(proc, res);
}

static void short_read(uint32_t proc, void *res)
{
	BLOCKREADres *r = res;

	if (proc == BLOCKPROC_READ)
		r->BLOCKREADres_u.data.length -= 512;
}

static void unknown_status(uint32_t proc, void *res)
{
	(void)proc;
	*(block_status *)res = 99;
}

static block_info *info_in(uint32_t proc, void *res)
{
	if (proc == BLOCKPROC_INFO)
		return &((BLOCKINFOres *)res)->BLOCKINFOres_u.resok.info;
	if (proc == BLOCKPROC_LIST)
		return ((BLOCKLISTres *)res)->BLOCKLISTres_u.resok.volumes.volumes_val;
	if (proc == BLOCKPROC_ATTACH)
		return &((BLOCKATTACHres *)res)->BLOCKATTACHres_u.resok.info;
	return NULL;
}

static void no_block(uint32_t proc, void *res)
{
	block_info *i = info_in(proc, res);

	if (i)
		i->block = 0;
}

static void odd_block(uint32_t proc, void *res)
{
	block_info *i = info_in(proc, res);

	if (i)
		i->block = 1000;
}

static void huge_block(uint32_t proc, void *res)
{
	block_info *i = info_in(proc, res);

	if (i) {
		i->block = 1u << 20;
		i->size = 1u << 20;
	}
}

static void odd_size(uint32_t proc, void *res)
{
	block_info *i = info_in(proc, res);

	if (i)
		i->size += 7;
}

static void negative_size(uint32_t proc, void *res)
{
	block_info *i = info_in(proc, res);

	if (i)
		i->size = UINT64_MAX - 511;
}

static void other_name(uint32_t proc, void *res)
{
	block_info *i = info_in(proc, res);

	if (i && proc != BLOCKPROC_LIST)
		i->name = (char *)(uintptr_t)"vol1";
}

static void no_name(uint32_t proc, void *res)
{
	block_info *i = info_in(proc, res);

	if (i)
		i->name = (char *)(uintptr_t)"";
}

static void no_progress(uint32_t proc, void *res)
{
	if (proc == BLOCKPROC_LIST) {
		((BLOCKLISTres *)res)->BLOCKLISTres_u.resok.volumes.volumes_len = 0;
		((BLOCKLISTres *)res)->BLOCKLISTres_u.resok.eof = FALSE;
	}
	if (proc == BLOCKPROC_INFO) {
		((BLOCKINFOres *)res)->BLOCKINFOres_u.resok.holders.holders_len = 0;
		((BLOCKINFOres *)res)->BLOCKINFOres_u.resok.eof = FALSE;
	}
}

static void same_page(uint32_t proc, void *res)
{
	static char volume[] = "vol0", name[] = "a", none[] = "";
	static block_info info = { .name = volume, .block = 512, .size = 512 };
	static block_holder holder = { .name = name, .peer = none, .app = none };
	BLOCKLISTresok *list = &((BLOCKLISTres *)res)->BLOCKLISTres_u.resok;
	BLOCKINFOresok *holders = &((BLOCKINFOres *)res)->BLOCKINFOres_u.resok;

	if (proc == BLOCKPROC_LIST) {
		list->volumes.volumes_val = &info;
		list->volumes.volumes_len = 1;
		list->eof = FALSE;
	}
	if (proc == BLOCKPROC_INFO) {
		holders->holders.holders_val = &holder;
		holders->holders.holders_len = 1;
		holders->eof = FALSE;
	}
}

static void ignore_volume(void *ctx, const struct leat_block_info *info)
{
	(void)info;
	++*(unsigned *)ctx;
}

static void ignore_holder(void *ctx, const struct leat_block_holder *h)
{
	(void)h;
	++*(unsigned *)ctx;
}

static void impossible_descriptions(void **state)
{
	static void (*const lies[])(uint32_t proc, void *res) = {
		unknown_status, no_block, odd_block, huge_block, odd_size, negative_size, other_name, no_name,
	};
	struct leat_block *b = attach(rig.local_url, "holder=a", 0);
	struct leat_block_info info = { .size = sizeof(info) };
	uint8_t buf[512];
	unsigned n = 0;

	(void)state;
	SET(odd, tell_lie);
	for (unsigned i = 0; i < ARRAY_SIZE(lies); i++) {
		char url[300];

		LOCKED(lie = lies[i]);
		assert_int_equal(leat_block_info(b, &info), -EREMOTEIO);
		assert_int_equal(leat_block_pread(b, buf, 512, 1u << 20), -EREMOTEIO);
		assert_int_equal(leat_block_discard(b, 1u << 20, 512), -EREMOTEIO);
		if (lies[i] != other_name)
			assert_int_equal(leat_block_list(b, ignore_volume, &n), -EREMOTEIO);
		snprintf(url, sizeof(url), "%s?holder=a", rig.local_url);
		refuse_attach(url, 0, -EREMOTEIO, "ATTACH");
		LOCKED(lie = NULL);
		assert_int_equal(leat_block_detach(b), -ESTALE); /* the server has another attachment of this holder */
		b = attach(rig.local_url, "holder=a", 0);
	}
	SET(odd, NULL);
	detach(b);
}

static void endless_lists(void **state)
{
	struct leat_block *b = attach(rig.local_url, "holder=a", 0);
	unsigned n = 0;

	(void)state;
	SET(odd, tell_lie);
	LOCKED(lie = no_progress);
	assert_int_equal(leat_block_list(b, ignore_volume, &n), -EREMOTEIO);
	assert_int_equal(leat_block_holders(b, ignore_holder, &n), -EREMOTEIO);
	assert_int_equal(n, 0);
	LOCKED(lie = same_page);
	assert_int_equal(leat_block_list(b, ignore_volume, &n), -EREMOTEIO);
	assert_int_equal(leat_block_holders(b, ignore_holder, &n), -EREMOTEIO);
	assert_int_equal(n, 2);
	assert_non_null(strstr(leat_error(leat_block_handle(b)), "list holders: Remote I/O error (an impossible list)"));
	SET(odd, NULL);
	detach(b);
}

static void short_reads(void **state)
{
	struct leat_block *b = attach(rig.tcp_url, NULL, 0);
	uint8_t buf[4096];

	(void)state;
	SET(odd, tell_lie);
	LOCKED(lie = short_read);
	assert_int_equal(leat_block_pread(b, buf, 4096, 0), -EREMOTEIO);
	SET(odd, NULL);
	detach(b);
}

static unsigned short_replies;

static void halve_read(uint32_t proc, void *res)
{
	BLOCKREADres *r = res;

	if (proc != BLOCKPROC_READ || !short_replies)
		return;
	short_replies--;
	r->BLOCKREADres_u.data.length = r->BLOCKREADres_u.data.length / 2 & ~511u;
}

/* A server with little memory replies with less than was asked for; the parts are small, or not. */
static void read_in_steps(struct leat_block *b, size_t part)
{
	static uint8_t got[40][2 * 4096];
	struct iovec iov[40];
	size_t at = 0;

	memset(got, 0, sizeof(got));
	for (unsigned i = 0; i < 40; i++)
		iov[i] = (struct iovec){ got[i], i % 7 ? part : 4096 };
	LOCKED(short_replies = 3);
	assert_int_equal(leat_block_preadv(b, iov, 40, 512), 34 * part + 6 * 4096);
	assert_int_equal(short_replies, 0);
	for (unsigned i = 0; i < 40; at += iov[i++].iov_len)
		assert_memory_equal(got[i], disk() + 512 + at, iov[i].iov_len);
}

static void reads_in_steps(void **state)
{
	struct leat_block *b = attach(rig.tcp_url, NULL, 0);

	(void)state;
	SET(odd, tell_lie);
	LOCKED(lie = halve_read);
	read_in_steps(b, 256);
	read_in_steps(b, 4096);
	SET(odd, NULL);
	detach(b);
}

/* The second call of a long write fails: a part is no success. */
static unsigned good_calls;

static void fail_later_calls(uint32_t proc, void *res)
{
	if ((proc == BLOCKPROC_WRITE || proc == BLOCKPROC_READ || proc == BLOCKPROC_ZERO) && !good_calls--)
		*(block_status *)res = BLOCK_ERR_IO;
}

static void half_done(void **state)
{
	struct leat_block *b;
	static uint8_t buf[3u << 20];

	(void)state;
	SET(size, (uint64_t)4 << 30);
	b = attach(rig.local_url, "credits=1", 0);
	SET(odd, tell_lie);
	LOCKED(lie = fail_later_calls);
	LOCKED(good_calls = 1);
	assert_int_equal(leat_block_pwrite(b, buf, sizeof(buf), 0, 0), -EIO);
	assert_non_null(strstr(leat_error(leat_block_handle(b)), "WRITE at offset 1048576: Input/output error (BLOCK_ERR_IO)"));
	LOCKED(good_calls = 1);
	assert_int_equal(leat_block_pread(b, buf, sizeof(buf), 0), -EIO);
	LOCKED(good_calls = 1);
	assert_int_equal(leat_block_zero(b, 0, (uint64_t)3 << 30, 0), -EIO);
	SET(odd, NULL);
	detach(b);
}

static block_extent bad_extents[4];
static unsigned nbad_extents;

static void say_bad_extents(uint32_t proc, void *res)
{
	BLOCKEXTENTSresok *ok = &((BLOCKEXTENTSres *)res)->BLOCKEXTENTSres_u.resok;

	static block_extent told[4]; /* encoded without the lock */

	if (proc == BLOCKPROC_EXTENTS) {
		memcpy(told, bad_extents, sizeof(told));
		ok->extents.extents_val = told;
		ok->extents.extents_len = nbad_extents;
	}
}

static void impossible_extents(void **state)
{
	static const struct {
		block_extent of[3];
		unsigned n;
	} bad[] = {
		{ { { 0, 0 } }, 0 },
		{ { { 0, BLOCK_DATA } }, 1 },
		{ { { 512, BLOCK_DATA }, { 0, BLOCK_HOLE } }, 2 },
		{ { { 8192, BLOCK_DATA } }, 1 },
		{ { { 512, BLOCK_DATA }, { 4096, BLOCK_HOLE } }, 2 },
		{ { { 512, BLOCK_DATA }, { UINT64_MAX - 511, BLOCK_HOLE } }, 2 },
		{ { { 100, BLOCK_DATA }, { 3996, BLOCK_DATA } }, 2 },
		{ { { 512, 3 } }, 1 },
	};
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	struct leat_block_extent v[4];

	(void)state;
	SET(odd, tell_lie);
	LOCKED(lie = say_bad_extents);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		LOCKED(memcpy(bad_extents, bad[i].of, sizeof(bad[i].of)));
		LOCKED(nbad_extents = bad[i].n);
		assert_int_equal(leat_block_extents(b, 0, 4096, v, ARRAY_SIZE(v)), -EREMOTEIO);
	}
	SET(odd, NULL);
	detach(b);
}

/* ---- ranges ---- */

static void extents(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	struct leat_block_extent v[32];
	ssize_t n;

	(void)state;
	n = leat_block_extents(b, 512, (1u << 20) - 512, v, ARRAY_SIZE(v));
	assert_int_equal(n, 16);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_EXTENTS), 6); /* three in a reply */
	for (unsigned i = 0; i < 16; i++) {
		assert_int_equal(v[i].off, i ? i << 16 : 512);
		assert_int_equal(v[i].off + v[i].len, (i + 1) << 16);
		assert_int_equal(v[i].kind, i % 3);
	}
	assert_int_equal(leat_block_extents(b, 0, 1u << 20, v, 4), 4);
	assert_int_equal(v[3].off + v[3].len, 4u << 16);
	SET(odd, tell_lie); /* neighbours of a kind */
	LOCKED(lie = say_bad_extents);
	LOCKED(bad_extents[0] = bad_extents[1] = (block_extent){ 1024, BLOCK_ZERO });
	LOCKED(nbad_extents = 2);
	assert_int_equal(leat_block_extents(b, 0, 8192, v, 1), 1);
	assert_int_equal(v[0].len, 8192);
	assert_int_equal(v[0].kind, LEAT_BLOCK_ZERO);
	SET(odd, NULL);
	detach(b);
}

static void long_ranges(void **state)
{
	struct leat_block_extent v[2];
	const uint8_t *now;
	struct leat_block *b;

	(void)state;
	SET(size, (uint64_t)5 << 30);
	b = attach(rig.local_url, NULL, 0);
	assert_int_equal(leat_block_zero(b, 4096, ((uint64_t)3 << 30) + 512, LEAT_BLOCK_KEEP), 0);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_ZERO), 4);
	now = disk();
	for (unsigned i = 4096; i < FAKE_VOLUME_ROOM; i++)
		assert_int_equal(now[i], 0);
	assert_int_equal(leat_block_discard(b, 0, (uint64_t)2 << 30), 0);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_DISCARD), 2);
	assert_int_equal(disk()[0], 0xdd);
	assert_int_equal(leat_block_zero(b, 4096, 0, 0), 0);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_ZERO), 4);
	SET(odd, tell_lie);
	LOCKED(lie = say_bad_extents);
	LOCKED(bad_extents[0] = (block_extent){ 1u << 30, BLOCK_HOLE });
	LOCKED(nbad_extents = 1);
	assert_int_equal(leat_block_extents(b, 0, (uint64_t)3 << 30, v, 2), 1);
	assert_int_equal(v[0].len, (uint64_t)3 << 30);
	SET(odd, NULL);
	SET(flags, GET(flags) & (unsigned)~BLOCK_CAN_DISCARD);
	assert_int_equal(leat_block_discard(b, 0, 512), -EOPNOTSUPP);
	detach(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(impossible_descriptions), TEST(endless_lists), TEST(short_reads), TEST(reads_in_steps),
		TEST(half_done), TEST(impossible_extents), TEST(extents), TEST(long_ranges),
	};

	log_state.level = LOG_LEVEL_ERR;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
