/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_volume.c - block volumes of a leatd as a program sees them: broken connections, restarts, other holders
 *
 * test_leat_block*.c have the same functions on a server that is not a leatd.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "block_rig.h"
#include "leat_block.h"
#include "leat_count.h"
#include "leat_flow.h"
#include "server.h"
#include "tcp_proxy.h"

#define CACHED ",read=cached,write=cached"

static char tcp_listen[64], url[200];
static uint8_t data[1 << 20], mem[1 << 20];

static void start(bool tcp, const char *const specs[])
{
	block_rig_url = tcp ? "tcp://127.0.0.1:0" : NULL;
	assert_int_equal(block_rig_start(specs), 0);
	snprintf(url, sizeof(url), "local://%s/sock", block_rig.dir.path);
	if (!tcp)
		return;
	/* the same port after a restart */
	snprintf(tcp_listen, sizeof(tcp_listen), "tcp://127.0.0.1:%u", server_listener(block_rig.srv, 0)->port);
	block_rig_url = tcp_listen;
	snprintf(url, sizeof(url), "%s", tcp_listen);
}

static int teardown(void **state)
{
	(void)state;
	block_rig_stop();
	block_rig_url = NULL;
	return 0;
}

static struct leat_block *attach_at(const char *server, const char *name, unsigned flags)
{
	struct leat_block *b;
	char text[300];

	snprintf(text, sizeof(text), "%s/block/%s", server, name);
	if (leat_block_attach(text, NULL, flags, &b))
		fail_msg("%s", leat_error(NULL));
	return b;
}

static void use(struct leat_block *b)
{
	struct leat_block_info info = { .size = sizeof(info) };
	struct leat_block_extent v[16];
	ssize_t n;

	leat_flow_fill(data, sizeof(data), 3);
	assert_int_equal(leat_block_info(b, &info), 0);
	assert_int_equal(info.bytes, BLOCK_RIG_BYTES);
	assert_int_equal(info.holders, 1);
	assert_int_equal(leat_block_pwrite(b, data, sizeof(data), 512 * 3, 0), sizeof(data));
	assert_int_equal(leat_block_pread(b, mem, sizeof(mem), 512 * 3), sizeof(mem));
	assert_memory_equal(mem, data, sizeof(data));
	assert_int_equal(leat_block_pwrite(b, data, 512, 0, LEAT_BLOCK_FUA), 512);
	assert_int_equal(leat_block_flush(b), 0);
	assert_int_equal(leat_block_zero(b, 65536, 65536, 0), 0);
	assert_int_equal(leat_block_pread(b, mem, 65536, 65536), 65536);
	memset(data, 0, 65536);
	assert_memory_equal(mem, data, 65536);
	if (info.can_discard)
		assert_int_equal(leat_block_discard(b, 2u << 20, 1u << 20), 0);
	n = leat_block_extents(b, 0, BLOCK_RIG_BYTES, v, ARRAY_SIZE(v));
	assert_true(n > 0);
	assert_int_equal(v[0].off, 0);
	assert_int_equal(v[0].kind, LEAT_BLOCK_DATA);
	assert_int_equal(v[n - 1].off + v[n - 1].len, BLOCK_RIG_BYTES);
	assert_int_equal(leat_block_pwrite(b, data, 512, BLOCK_RIG_BYTES, 0), -ENOSPC);
	assert_int_equal(leat_block_pread(b, mem, 512, BLOCK_RIG_BYTES), -EINVAL);
}

static void all_of_it(bool tcp, const char *spec)
{
	const char *const specs[] = { spec, NULL };
	struct leat_block *b;

	start(tcp, specs);
	b = attach_at(url, "v", 0);
	use(b);
	assert_int_equal(leat_block_detach(b), 0);
}

static void over_local(void **state)
{
	(void)state;
	all_of_it(false, "v=a");
}

static void over_tcp(void **state)
{
	(void)state;
	all_of_it(true, "v=a" CACHED);
}

/* The volume always has the newest acknowledged content, whatever copies of calls there are. */
static void cut_connections(void **state)
{
	static const enum tcp_proxy_cut cuts[] = { TCP_PROXY_BEHIND_CALL, TCP_PROXY_REPLY, TCP_PROXY_IN_CALL };
	const char *const specs[] = { "v=a" CACHED, NULL };
	struct tcp_proxy proxy;
	struct leat_block *b;
	char text[100];

	(void)state;
	start(true, specs);
	tcp_proxy_start(&proxy, server_listener(block_rig.srv, 0));
	snprintf(text, sizeof(text), "tcp://127.0.0.1:%u", proxy.addr.port);
	b = attach_at(text, "v", 0);
	for (unsigned i = 0; i < 60; i++) {
		memset(data, (int)i + 1, 65536);
		atomic_store(&proxy.cut, cuts[i % ARRAY_SIZE(cuts)]);
		if (leat_block_pwrite(b, data, 65536, i % 4 * 65536, i % 5 ? 0 : LEAT_BLOCK_FUA) != 65536)
			fail_msg("%u: %s", i, leat_error(leat_block_handle(b)));
		assert_int_equal(leat_block_pread(b, mem, 65536, i % 4 * 65536), 65536);
		assert_memory_equal(mem, data, 65536);
	}
	assert_true(atomic_load(&proxy.cuts) > 30);
	assert_int_equal(leat_block_flush(b), 0);
	assert_int_equal(leat_block_detach(b), 0);
	tcp_proxy_stop(&proxy);
}

/* A restart: the holder goes on. What a server without its own memory of syncs has not flushed counts as lost. */
static void restart(const char *spec, bool loses)
{
	const char *const specs[] = { spec, NULL };
	struct leat_block *b;

	start(false, specs);
	b = attach_at(url, "v", 0);
	assert_int_equal(leat_block_pwrite(b, data, 65536, 0, 0), 65536);
	assert_int_equal(leat_block_flush(b), 0);
	block_rig_restart(NULL);
	assert_int_equal(leat_block_flush(b), 0);
	assert_int_equal(leat_block_pwrite(b, data, 65536, 0, 0), 65536);
	block_rig_restart(NULL);
	assert_int_equal(leat_block_flush(b), loses ? -EIO : 0);
	assert_int_equal(leat_block_pwrite(b, data, 512, 0, LEAT_BLOCK_FUA), loses ? -EIO : 512);
	assert_int_equal(leat_block_detach(b), 0);
	b = attach_at(url, "v", 0);
	assert_int_equal(leat_block_flush(b), 0);
	assert_int_equal(leat_block_detach(b), 0);
}

static void restart_cached(void **state)
{
	(void)state;
	restart("v=a" CACHED, true);
}

static void restart_direct(void **state)
{
	(void)state;
	if (!tmp_dir_has_direct())
		skip();
	restart("v=a,write=direct", false);
}

static void other_holder(void **state)
{
	const char *const specs[] = { "v=a" CACHED, NULL };
	struct leat_block *b, *look, *next = NULL;
	struct count write = { 0 };
	char text[300];

	(void)state;
	start(false, specs);
	b = attach_at(url, "v", 0);
	snprintf(text, sizeof(text), "%s/block/v?holder=next", url);
	assert_int_equal(leat_block_attach(text, NULL, 0, &next), -EBUSY);
	assert_non_null(strstr(leat_error(NULL), leat_block_holder_name(b)));
	assert_int_equal(leat_block_attach(text, NULL, LEAT_BLOCK_TAKE_OVER, &next), 0);
	assert_int_equal(leat_aio_block_pwrite(b, data, 65536, 0, 0, (struct leat_cb){ count_fn, &write, NULL }), 0);
	while (!write.fn)
		assert_true(leat_poll(leat_session(leat_block_handle(b)), -1) >= 0);
	assert_int_equal(write.result, -ESTALE);
	assert_non_null(strstr(leat_error(leat_block_handle(b)), "holder next has the volume now"));
	assert_int_equal(leat_block_detach(b), -ESTALE);
	look = attach_at(url, "v", LEAT_BLOCK_LOOK);
	assert_int_equal(leat_block_take_over(look, "no one"), -ENOENT);
	assert_int_equal(leat_block_take_over(look, "next"), 0);
	assert_int_equal(leat_block_pread(next, mem, 512, 0), -ESTALE);
	assert_int_equal(leat_block_detach(next), -ESTALE);
	assert_int_equal(leat_block_detach(look), 0);
	b = attach_at(url, "v", 0);
	assert_int_equal(leat_block_detach(b), 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(over_local), TEST(over_tcp), TEST(cut_connections), TEST(restart_cached), TEST(restart_direct),
		TEST(other_holder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
