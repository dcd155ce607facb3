/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_block.c - block volumes as a program sees them, on a server that also replies what it must not
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "fake_volume.h"
#include "leat_block.h"
#include "leat_count.h"
#include "leat_flow.h"
#include "tcp_proxy.h"

LOG_DEFINE("test_leat_block");

static struct fake_volume rig;

/* Members of the rig, and what its thread reads besides: under its lock. */
#define LOCKED(...)                                                                                      \
	do {                                                                                                 \
		pthread_mutex_lock(&rig.lock);                                                               \
		__VA_ARGS__;                                                                         \
		pthread_mutex_unlock(&rig.lock);                                                             \
	} while (0)
#define SET(member, value)                                                                                   \
	do {                                                                                                 \
		__typeof__(rig.member) n_ = (value); /* may lock, too */                                     \
		LOCKED(rig.member = n_);                                                                     \
	} while (0)
#define GET(member)                                                                                          \
	__extension__({                                                                                      \
		__typeof__(rig.member) v_;                                                                   \
		LOCKED(v_ = rig.member);                                                                     \
		v_;                                                                                          \
	})
#define GET_TEXT(member) text_of(rig.member)

static const char *text_of(const char *member)
{
	static char copy[LEAT_BLOCK_NAME_MAX + 1];

	LOCKED(snprintf(copy, sizeof(copy), "%s", member));
	return copy;
}

/* A copy of the volume's content */
static const uint8_t *disk(void)
{
	static uint8_t copy[FAKE_VOLUME_ROOM];

	LOCKED(memcpy(copy, rig.disk, sizeof(copy)));
	return copy;
}

static int setup(void **state)
{
	(void)state;
	fake_volume_open(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_volume_close(&rig);
	return 0;
}

static struct leat_block *attach(const char *url, const char *options, unsigned flags)
{
	struct leat_block *b;
	char text[300];

	snprintf(text, sizeof(text), "%s?%s", url, options ? options : "");
	if (leat_block_attach(text, NULL, flags, &b))
		fail_msg("%s", leat_error(NULL));
	return b;
}

static void detach(struct leat_block *b)
{
	assert_int_equal(leat_block_detach(b), 0);
}

static uint64_t stat_of(struct leat_block *b, const char *name)
{
	return leat_flow_stat(leat_block_handle(b), name);
}

/* ---- data ---- */

static void use_volume(struct leat_block *b)
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
	assert_non_null(strstr(leat_error(leat_block_handle(b)), "/block/vol0: write: Invalid argument"));
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, LEAT_BLOCK_KEEP), -EINVAL);
	assert_int_equal(leat_block_zero(b, 0, 512, LEAT_BLOCK_FUA), -EINVAL);
	assert_int_equal(leat_block_zero(b, 0, 500, 0), -EINVAL);
	assert_int_equal(leat_block_discard(b, 2, 512), -EINVAL);
	assert_int_equal(leat_block_extents(b, 2, 512, &e, 1), -EINVAL);
	assert_int_equal(leat_block_extents(b, 0, 0, &e, 1), -EINVAL);
	assert_int_equal(leat_block_extents(b, 0, 512, &e, 0), -EINVAL);
	assert_int_equal(leat_block_preadv(b, bad, 2, 0), -EINVAL);
	assert_int_equal(leat_block_preadv(b, bad, -1, 0), -EINVAL);
	assert_int_equal(leat_block_pread(b, buf, 512, UINT64_MAX - 511), -EINVAL);
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

static void refuse_attach(const char *url, unsigned flags, int want, const char *said)
{
	struct leat_block *b = NULL;

	assert_int_equal(leat_block_attach(url, NULL, flags, &b), want);
	assert_null(b);
	if (!strstr(leat_error(NULL), said))
		fail_msg("\"%s\" instead of \"%s\"", leat_error(NULL), said);
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

/* ---- lanes ---- */

static void restarts(const char *url)
{
	struct leat_block *b = attach(url, "conns=2", 0);
	uint8_t buf[512] = { 1 };

	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
	for (uint32_t round = 2; round < 5; round++) {
		fake_volume_stop(&rig);
		fake_volume_start(&rig);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
		assert_int_equal(fake_volume_incarnation(&rig, 0), round);
		assert_int_equal(fake_volume_incarnation(&rig, 1), round);
	}
	assert_int_equal(GET(old_lanes), 0);
	assert_int_equal(GET(nlanes), 2); /* one instance */
	detach(b);
}

static void lanes_of_restarts(void **state)
{
	(void)state;
	restarts(rig.local_url);
}

static void lanes_of_restarts_tcp(void **state)
{
	(void)state;
	restarts(rig.tcp_url);
}

/* The copy of a call over the next connection says that it is one. */
static void lanes_of_copies(void **state)
{
	static const enum tcp_proxy_cut cuts[] = { TCP_PROXY_BEHIND_CALL, TCP_PROXY_REPLY, TCP_PROXY_IN_CALL };
	struct tcp_proxy proxy;
	struct leat_block *b;
	uint8_t buf[512] = { 1 };
	char url[200];

	(void)state;
	tcp_proxy_start(&proxy, &rig.tcp);
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%u/block/vol0", proxy.addr.port);
	b = attach(url, NULL, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(cuts); i++) {
		atomic_store(&proxy.cut, cuts[i]);
		assert_int_equal(leat_block_pwrite(b, buf, 512, 512 * i, 0), 512);
		assert_int_equal(fake_volume_incarnation(&rig, 0), i + 2);
		assert_memory_equal(disk() + 512 * i, buf, 512);
	}
	assert_int_equal(GET(old_lanes), 0);
	detach(b);
	tcp_proxy_stop(&proxy);
}

static unsigned refuse_lanes;

static void refuse_lane(struct fake_volume *r, uint32_t proc, const void *args, void *res)
{
	(void)r;
	(void)args;
	if (proc == BLOCKPROC_WRITE && refuse_lanes) {
		refuse_lanes--;
		*(block_status *)res = BLOCK_ERR_OLD_LANE;
	}
}

/* A server that takes the newest connection for an old one: no loop. */
static void refused_lane(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	uint8_t buf[512] = { 1 };

	(void)state;
	SET(odd, refuse_lane);
	LOCKED(refuse_lanes = 1);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), -ECONNABORTED);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_WRITE), 1);
	SET(odd, NULL);
	detach(b);
}

/* ---- verifiers ---- */

static void verifier(void **state)
{
	struct leat_block *b = attach(rig.local_url, "holder=a", 0);
	uint8_t buf[512] = { 1 };

	(void)state;
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
	assert_int_equal(leat_block_flush(b), 0);
	SET(verf, 2); /* nothing was unflushed */
	assert_int_equal(leat_block_flush(b), 0);
	assert_int_equal(leat_block_zero(b, 0, 512, 0), 0);
	SET(verf, 3);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
	assert_int_equal(leat_block_flush(b), -EIO);
	assert_non_null(strstr(leat_error(leat_block_handle(b)), "the server has lost changes that were not flushed"));
	assert_int_equal(leat_block_flush(b), -EIO);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, LEAT_BLOCK_FUA), -EIO);
	detach(b);
	b = attach(rig.local_url, "holder=a", 0);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, LEAT_BLOCK_FUA), 512);
	SET(verf, 4); /* what FUA wrote is safe */
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, LEAT_BLOCK_FUA), 512);
	assert_int_equal(leat_block_discard(b, 0, 512), 0);
	SET(verf, 5);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, LEAT_BLOCK_FUA), -EIO);
	assert_int_equal(leat_block_flush(b), -EIO);
	detach(b);
}

/* The calls of this thread travel while it polls. */
static void await_held(struct leat_block *b, unsigned n)
{
	while (!fake_volume_holds(&rig, n))
		assert_true(leat_poll(leat_session(leat_block_handle(b)), 0) >= 0);
}

/* A write that is acknowledged while a FLUSH is in flight is not covered by it. */
static void verifier_of_later_write(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	struct count flush = { 0 };
	uint8_t buf[512] = { 1 };

	(void)state;
	SET(hold, true);
	assert_int_equal(leat_aio_block_flush(b, (struct leat_cb){ count_fn, &flush, count_free }), 0);
	await_held(b, 1);
	SET(hold, false);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
	fake_volume_release(&rig);
	while (!flush.fn)
		assert_true(leat_poll(leat_session(leat_block_handle(b)), -1) >= 0);
	assert_int_equal(flush.result, 0);
	SET(verf, 2);
	assert_int_equal(leat_block_flush(b), -EIO);
	detach(b);
}

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

/* ---- operations ---- */

static void put_off(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	uint8_t buf[512] = { 1 };

	(void)state;
	SET(later, 1);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
	SET(later, 1);
	assert_int_equal(leat_block_flush(b), 0);
	assert_int_equal(stat_of(b, "jukebox_retries"), 2);
	detach(b);
}

static void run_until_done(struct leat_block *b, const struct count *c)
{
	while (!c->fn)
		assert_true(leat_poll(leat_session(leat_block_handle(b)), -1) >= 0);
}

/* Polls while the stack is in use where functions that have returned had their variables. */
static int __attribute__((noinline)) poll_deeper(struct leat_block *b)
{
	volatile uint8_t v[65536];
	int rc;

	for (size_t i = 0; i < sizeof(v); i++)
		v[i] = 'x';
	rc = leat_poll(leat_session(leat_block_handle(b)), 0);
	return v[sizeof(v) / 2] == 'x' ? rc : -1;
}

/* INFO is encoded again long after the function that prepared it has returned. */
static void info_is_put_off(void **state)
{
	struct leat_block_info info = { .size = sizeof(info) };
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	struct count done = { 0 };

	(void)state;
	SET(later, 1);
	assert_int_equal(leat_aio_block_info(b, &info, (struct leat_cb){ count_fn, &done, count_free }), 0);
	while (!done.fn)
		assert_true(poll_deeper(b) >= 0);
	assert_int_equal(done.result, 0);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_INFO), 2);
	assert_int_equal(GET_TEXT(after)[0], 0);
	detach(b);
}

static void cancelled(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	struct count read = { 0 }, write = { 0 };
	uint8_t in[512], out[512] = { 1 };

	(void)state;
	SET(hold, true);
	assert_int_equal(leat_aio_block_pread(b, in, 512, 0, (struct leat_cb){ count_fn, &read, count_free }), 0);
	assert_int_equal(leat_aio_block_pwrite(b, out, 512, 0, 0, (struct leat_cb){ count_fn, &write, count_free }), 0);
	await_held(b, 1);
	assert_int_equal(leat_cancel(leat_block_handle(b), &read), 0);
	run_until_done(b, &read);
	assert_int_equal(read.result, -ECANCELED);
	assert_int_equal(leat_cancel(leat_block_handle(b), &write), 0);
	run_until_done(b, &write);
	assert_true(write.result == -EINPROGRESS || write.result == -ECANCELED); /* not sent, with one credit */
	fake_volume_release(&rig);
	detach(b);
	assert_int_equal(read.fn + read.free + write.fn + write.free, 4);
}

static void interrupted(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	uint8_t buf[512];

	(void)state;
	leat_interrupt(leat_block_handle(b));
	assert_int_equal(leat_block_pread(b, buf, 512, 0), -EINTR);
	assert_int_equal(leat_block_pread(b, buf, 512, 0), 512);
	detach(b);
}

static void detach_in_time(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	struct count write = { 0 };
	uint8_t buf[512] = { 1 };

	(void)state;
	SET(hold, true);
	assert_int_equal(leat_aio_block_pwrite(b, buf, 512, 0, 0, (struct leat_cb){ count_fn, &write, count_free }), 0);
	assert_int_equal(leat_block_detach_within(b, 1), -ETIMEDOUT);
	assert_int_equal(write.fn, 1);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_DETACH), 0);
	fake_volume_release(&rig);
	b = attach(rig.local_url, NULL, LEAT_BLOCK_TAKE_OVER);
	SET(hold, true); /* DETACH, too */
	assert_int_equal(leat_block_detach_within(b, 1), -ETIMEDOUT);
	fake_volume_release(&rig);
	b = attach(rig.local_url, NULL, LEAT_BLOCK_TAKE_OVER);
	assert_int_equal(leat_block_detach_within(b, 60000), 0);
}

/* A soft attachment gives up; what it asked for may have been done. */
static void gives_up(void **state)
{
	struct leat_block *b = attach(rig.local_url, "timeo=1s&retry=soft", 0);
	uint8_t buf[512] = { 1 };

	(void)state;
	SET(hold, true);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), -ETIMEDOUT);
	assert_int_equal(leat_block_flush(b), -ETIMEDOUT);
	fake_volume_release(&rig);
	while (leat_block_pwrite(b, buf, 512, 0, 0) == -ETIMEDOUT)
		;
	assert_int_equal(leat_block_flush(b), 0);
	detach(b);
}

static void fenced(void **state)
{
	struct leat_block *b = attach(rig.local_url, "holder=old", 0);
	struct leat_block *c = attach(rig.local_url, "holder=new", LEAT_BLOCK_TAKE_OVER);
	uint8_t buf[512] = { 1 };

	(void)state;
	assert_int_equal(GET(attach_flags), BLOCK_TAKE_OVER);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), -ESTALE);
	assert_non_null(strstr(leat_error(leat_block_handle(b)), "BLOCK_ERR_FENCED"));
	assert_int_equal(leat_block_flush(b), -ESTALE);
	assert_int_equal(leat_block_detach(b), -ESTALE);
	assert_int_equal(leat_block_pwrite(c, buf, 512, 0, 0), 512);
	detach(c);
}

static void take_over_by_hand(void **state)
{
	struct leat_block *b = attach(rig.local_url, "holder=old", 0);
	struct leat_block *look = attach(rig.local_url, NULL, LEAT_BLOCK_LOOK);
	uint8_t buf[512] = { 1 };

	(void)state;
	assert_int_equal(leat_block_take_over(look, "other"), -ENOENT);
	assert_string_equal(GET_TEXT(holder), "old");
	assert_int_equal(leat_block_take_over(look, "old"), 0);
	assert_string_equal(GET_TEXT(victim), "old");
	assert_int_equal(GET(attach_flags) & BLOCK_TAKE_OVER, BLOCK_TAKE_OVER);
	assert_string_equal(GET_TEXT(holder), "");
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), -ESTALE);
	assert_int_equal(leat_block_detach(b), -ESTALE);
	b = attach(rig.local_url, "holder=next", 0);
	assert_int_equal(leat_block_take_over(look, ""), 0);
	assert_int_equal(leat_block_take_over(look, NULL), -EINVAL);
	assert_int_equal(leat_block_detach(b), -ESTALE);
	detach(look);
}

static void take_next(struct fake_volume *r, uint32_t proc, const void *args, void *res)
{
	(void)args;
	(void)res;
	if (proc == BLOCKPROC_ATTACH)
		r->generation++; /* of the next holder */
}

/* Another client takes the volume before the one that took it over by hand has left it. */
static void taken_meanwhile(void **state)
{
	struct leat_block *b = attach(rig.local_url, "holder=old", 0);
	struct leat_block *look = attach(rig.local_url, NULL, LEAT_BLOCK_LOOK);

	(void)state;
	SET(odd, take_next);
	assert_int_equal(leat_block_take_over(look, "old"), 0);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_DETACH), 1);
	SET(odd, NULL);
	assert_int_equal(leat_block_detach(b), -ESTALE);
	detach(look);
}

/* ---- sessions, threads, processes ---- */

static void one_session(void **state)
{
	struct leat_block *a, *look;
	struct leat_session *s;
	uint8_t buf[512] = { 1 };
	void *mem;

	(void)state;
	assert_int_equal(leat_session_create(NULL, &s), 0);
	assert_int_equal(leat_session_attach(s, rig.local_url, NULL, 0, &a), 0);
	assert_int_equal(leat_session_attach(s, rig.local_url, NULL, LEAT_BLOCK_LOOK, &look), 0);
	assert_ptr_equal(leat_session(leat_block_handle(a)), s);
	assert_int_equal(leat_session_attach(NULL, rig.local_url, NULL, 0, &a), -EINVAL);
	assert_int_equal(leat_buf_alloc(s, 8192, &mem), 0);
	assert_int_equal(leat_block_pread(a, mem, 8192, 0), 8192);
	assert_memory_equal(mem, disk(), 8192);
	assert_int_equal(leat_block_take_over(look, ""), 0);
	assert_int_equal(leat_block_pwrite(a, buf, 512, 0, 0), -ESTALE);
	assert_int_equal(GET(nlanes), 1); /* they share a connection */
	assert_int_equal(leat_session_free(s), -EBUSY);
	assert_int_equal(leat_block_detach(a), -ESTALE);
	detach(look);
	leat_buf_free(s, mem);
	assert_int_equal(leat_session_free(s), 0);
}

static void *use_elsewhere(void *arg)
{
	use_volume(arg);
	return NULL;
}

static void service_thread(void **state)
{
	struct leat_block *b = attach(rig.local_url, "conns=2", 0);
	pthread_t thread;

	(void)state;
	assert_int_equal(leat_service_start(leat_session(leat_block_handle(b))), 0);
	assert_int_equal(pthread_create(&thread, NULL, use_elsewhere, b), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	detach(b);
}

static void detach_inside(void *arg, int64_t result)
{
	struct leat_block *b = arg;
	uint8_t buf[512];

	assert_int_equal(result, 0);
	assert_int_equal(leat_block_detach(b), -EDEADLK);
	assert_int_equal(leat_block_pread(b, buf, 512, 0), -EDEADLK);
	SET(result, 1);
}

static void in_a_callback(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);

	(void)state;
	SET(result, 0);
	assert_int_equal(leat_aio_block_flush(b, (struct leat_cb){ detach_inside, b, NULL }), 0);
	while (!GET(result))
		assert_true(leat_poll(leat_session(leat_block_handle(b)), -1) >= 0);
	SET(result, 0);
	detach(b);
}

/* In the child. Return: exit status */
static int use_in_child(struct leat_block *b, const char *url)
{
	struct leat_block_info info = { .size = sizeof(info) };
	struct leat_block *own;
	uint8_t buf[512];
	bool other;

	if (leat_block_pread(b, buf, 512, 0) != -EOWNERDEAD || leat_block_flush(b) != -EOWNERDEAD ||
	    leat_block_info(b, &info) != -EOWNERDEAD)
		return 1;
	if (leat_block_attach(url, NULL, LEAT_BLOCK_TAKE_OVER, &own))
		return 2;
	other = strcmp(leat_block_holder_name(own), leat_block_holder_name(b)) != 0;
	if (leat_block_detach(own) || leat_block_detach(b) != -EOWNERDEAD)
		return 3;
	return other ? 0 : 4;
}

static void forked(void **state)
{
	struct leat_block *b = attach(rig.tcp_url, NULL, 0);
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(use_in_child(b, rig.tcp_url));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(leat_block_detach(b), -ESTALE); /* the child took over */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(over_local), TEST(over_tcp), TEST(several_connections), TEST(many_parts), TEST(copies), TEST(refused_at_once),
		TEST(attach_errors), TEST(read_only), TEST(growth), TEST(lanes_of_restarts), TEST(lanes_of_restarts_tcp),
		TEST(lanes_of_copies), TEST(refused_lane), TEST(verifier), TEST(verifier_of_later_write),
		TEST(impossible_descriptions), TEST(endless_lists), TEST(short_reads), TEST(reads_in_steps), TEST(half_done), TEST(impossible_extents),
		TEST(lists), TEST(extents), TEST(long_ranges), TEST(put_off), TEST(info_is_put_off),
		TEST(cancelled), TEST(interrupted),
		TEST(detach_in_time), TEST(gives_up), TEST(fenced), TEST(take_over_by_hand), TEST(taken_meanwhile),
		TEST(one_session), TEST(service_thread),
		TEST(in_a_callback), TEST(forked),
	};

	log_state.level = LOG_LEVEL_ERR;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
