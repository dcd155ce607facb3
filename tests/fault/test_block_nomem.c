/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_nomem.c - the Nth allocation of a function of leat_block.h fails, for N from 1 until none is left to fail
 *
 * Only allocations of this thread, the client's, are counted: the server has a thread of its own. Each function returns
 * success or -ENOMEM, and the attachment works afterwards. The sanitizers find leaks.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "fake_volume.h"
#include "leat_block.h"
#include "leat_count.h"
#include "lt_stage.h"
#include "nomem.h"

LOG_DEFINE("test_block_nomem");

static struct fake_volume rig;
static struct leat_block *b;
static uint8_t mem[2u << 20];

/* ---- the functions; each returns 0 or -errno ---- */

static int64_t whole(int64_t n, size_t len)
{
	return n < 0 ? n : n == (int64_t)len ? 0 : -EIO;
}

static int64_t do_attach(void)
{
	struct leat_block *other = NULL;
	char url[300];
	int rc;

	snprintf(url, sizeof(url), "%s?conns=2", rig.local_url);
	rc = leat_block_attach(url, NULL, LEAT_BLOCK_TAKE_OVER, &other);
	nomem_countdown = 0;
	assert_true(rc || other);
	if (other)
		assert_int_equal(leat_block_detach(other), 0);
	return rc;
}

static int64_t do_session(void)
{
	struct leat_session *s = NULL;
	struct leat_block *look = NULL;
	int rc = leat_session_create(NULL, &s);

	if (!rc)
		rc = leat_session_attach(s, rig.tcp_url, NULL, LEAT_BLOCK_LOOK, &look);
	nomem_countdown = 0;
	assert_int_equal(leat_block_detach(look), 0);
	assert_int_equal(leat_session_free(s), 0);
	return rc;
}

static int64_t do_long_read(void)
{
	return whole(leat_block_pread(b, mem, sizeof(mem), 0), sizeof(mem));
}

static int64_t do_long_write(void)
{
	return whole(leat_block_pwrite(b, mem, sizeof(mem), 0, LEAT_BLOCK_FUA), sizeof(mem));
}

static int64_t do_parts(bool write)
{
	struct iovec iov[100];

	for (size_t i = 0; i < ARRAY_SIZE(iov); i++)
		iov[i] = (struct iovec){ mem + i * 10000, i % 3 ? 512 : 4096 };
	return whole(write ? leat_block_pwritev(b, iov, 100, 0, 0) : leat_block_preadv(b, iov, 100, 0),
		     34 * 4096 + 66 * 512);
}

static int64_t do_read_parts(void)
{
	return do_parts(false);
}

static int64_t do_write_parts(void)
{
	return do_parts(true);
}

static int64_t do_flush(void)
{
	return leat_block_flush(b);
}

static int64_t do_ranges(void)
{
	int rc = leat_block_zero(b, 0, 4096, 0);

	return rc ? rc : leat_block_discard(b, 4096, 4096);
}

static int64_t do_extents(void)
{
	struct leat_block_extent v[16];
	ssize_t n = leat_block_extents(b, 0, 1u << 20, v, ARRAY_SIZE(v));

	return n < 0 ? n : n == 16 ? 0 : -EIO;
}

static int64_t do_info(void)
{
	struct leat_block_info info = { .size = sizeof(info) };

	return leat_block_info(b, &info);
}

static void count_volume(void *ctx, const struct leat_block_info *info)
{
	(void)info;
	++*(unsigned *)ctx;
}

static void count_holder(void *ctx, const struct leat_block_holder *h)
{
	(void)h;
	++*(unsigned *)ctx;
}

static int64_t do_lists(void)
{
	unsigned n = 0;
	int rc = leat_block_list(b, count_volume, &n);

	if (!rc)
		rc = leat_block_holders(b, count_holder, &n);
	return rc ? rc : n == 2 ? 0 : -EIO;
}

static int64_t do_beyond(void)
{
	int64_t rc = leat_block_pread(b, mem, 512, 3u << 20);

	return rc == -EINVAL ? 0 : rc;
}

/* ---- the loop ---- */

/* Without the attachment of @b: do_attach() takes over. */
static const struct {
	const char *name;
	int64_t (*fn)(void);
	bool alone;
} functions[] = {
	{ "attach", do_attach, true }, { "session", do_session, true }, { "long_read", do_long_read, false },
	{ "long_write", do_long_write, false }, { "read_parts", do_read_parts, false },
	{ "write_parts", do_write_parts, false }, { "flush", do_flush, false }, { "ranges", do_ranges, false },
	{ "extents", do_extents, false }, { "info", do_info, false }, { "lists", do_lists, false },
	{ "beyond", do_beyond, false },
};

static void attach(const char *url)
{
	if (leat_block_attach(url, NULL, LEAT_BLOCK_TAKE_OVER, &b))
		fail_msg("%s", leat_error(NULL));
}

/* Calls the function with the Nth allocation failing. Return: false: none failed */
static bool try_with(size_t i, unsigned long nth, const char *url)
{
	int64_t rc;

	if (!functions[i].alone)
		attach(url);
	nomem_failed = false;
	nomem_countdown = nth;
	rc = functions[i].fn();
	nomem_countdown = 0;
	if (rc && (rc != -ENOMEM || !nomem_failed))
		fail_msg("%s, allocation %lu: %lld", functions[i].name, nth, (long long)rc);
	if (functions[i].alone)
		return nomem_failed;
	assert_int_equal(leat_block_pread(b, mem, 4096, 0), 4096);
	assert_int_equal(leat_block_detach(b), 0);
	return nomem_failed;
}

static void each_allocation(const char *url)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		unsigned long nth = 1;

		while (try_with(i, nth, url))
			nth++;
		assert_true(nth > 1);
	}
}

static int setup(void **state)
{
	(void)state;
	fake_volume_open(&rig);
	pthread_mutex_lock(&rig.lock);
	rig.size = 2u << 20;
	pthread_mutex_unlock(&rig.lock);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_volume_close(&rig);
	return 0;
}

static void over_local(void **state)
{
	(void)state;
	each_allocation(rig.local_url);
}

static void over_tcp(void **state)
{
	(void)state;
	each_allocation(rig.tcp_url);
}

/* Without memory to stage them, as many small parts as a call may have are less than a block. */
static void parts_without_stage(void **state)
{
	struct count done = { 0 };
	struct iovec iov[256];

	(void)state;
	attach(rig.local_url);
	for (size_t i = 0; i < ARRAY_SIZE(iov); i++)
		iov[i] = (struct iovec){ mem + i * 100, 4 };
	nomem_bytes = sizeof(struct lt_stage);
	assert_int_equal(leat_aio_block_preadv(b, iov, ARRAY_SIZE(iov), 0, (struct leat_cb){ count_fn, &done, count_free }), 0);
	while (!done.fn) {
		assert_true(leat_poll(leat_session(leat_block_handle(b)), -1) >= 0);
		assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_READ), 0);
	}
	assert_int_equal(done.result, -ENOMEM);
	nomem_bytes = 0;
	assert_int_equal(leat_block_preadv(b, iov, ARRAY_SIZE(iov), 0), 1024);
	assert_memory_equal(mem + 100, rig.disk + 4, 4);
	assert_int_equal(leat_block_detach(b), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(over_local, setup, teardown),
		cmocka_unit_test_setup_teardown(over_tcp, setup, teardown),
		cmocka_unit_test_setup_teardown(parts_without_stage, setup, teardown),
	};

	log_state.level = LOG_LEVEL_ERR;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
