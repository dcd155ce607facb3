/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_files.c - a block volume whose file is in an export, too: READs of blocks and of files, and local programs,
 * see what was written, whichever way it went to the disk
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "block_rig.h"
#include "leat.h"
#include "leat_block.h"
#include "lt_block.h"

#define BYTES 16384u

static struct leat *m;
static struct leat_file *f;
static struct leat_block *b;
static int fd;
static char data[BYTES], got[BYTES];

static void start(const char *volume, const char *export)
{
	static char spec[100]; /* a restart uses it again */
	char url[300];

	(void)snprintf(spec, sizeof(spec), "vol=a,%s", volume);
	block_rig_export = export;
	assert_int_equal(block_rig_start((const char *const[]){ spec, NULL }), 0);
	(void)snprintf(url, sizeof(url), "local://%s/sock/files?cache=none", block_rig.dir.path);
	assert_int_equal(leat_mount(url, NULL, &m), 0);
	assert_int_equal(leat_open(m, "a", O_RDWR, 0, &f), 0);
	(void)snprintf(url, sizeof(url), "local://%s/sock/block/vol", block_rig.dir.path);
	assert_int_equal(leat_block_attach(url, NULL, 0, &b), 0);
	fd = block_rig_open("a");
}

static void stop(void)
{
	close(fd);
	assert_int_equal(leat_block_detach(b), 0);
	assert_int_equal(leat_close(f), 0);
	leat_umount(m);
	block_rig_stop();
	block_rig_export = NULL;
}

enum way { BLOCKS, FILES, LOCAL, WAYS };

static void write_by(enum way way, uint64_t off)
{
	ssize_t n = way == BLOCKS  ? leat_block_pwrite(b, data, BYTES, off, 0)
		    : way == FILES ? leat_pwrite(f, data, BYTES, off)
				   : pwrite(fd, data, BYTES, (off_t)off);

	assert_int_equal(n, BYTES);
}

static void read_by(enum way way, uint64_t off)
{
	ssize_t n = way == BLOCKS  ? leat_block_pread(b, got, BYTES, off)
		    : way == FILES ? leat_pread(f, got, BYTES, off)
				   : pread(fd, got, BYTES, (off_t)off);

	assert_int_equal(n, BYTES);
}

/* Blocks that are cached by one way are changed by another. */
static void see_all(void)
{
	for (unsigned round = 0; round < 30; round++) {
		uint64_t off = round % 3 * 512 + round % 4 * BYTES;
		enum way writer = round % WAYS;

		memset(data, (int)round + 1, BYTES);
		for (enum way way = 0; way < WAYS; way++)
			read_by(way, off);
		write_by(writer, off);
		for (enum way way = 0; way < WAYS; way++) {
			memset(got, 0, BYTES);
			read_by(way, off);
			if (memcmp(got, data, BYTES))
				fail_msg("round %u: written by %d, read by %d", round, (int)writer, (int)way);
		}
	}
	assert_int_equal(leat_block_zero(b, 0, 4 * BYTES, 0), 0);
	memset(data, 0, BYTES);
	for (enum way way = 0; way < WAYS; way++) {
		read_by(way, 1024);
		assert_memory_equal(got, data, BYTES);
	}
}

static void direct_beside_cached(void **state)
{
	(void)state;
	start("block=512", "rw,no_root_squash");
	see_all();
	stop();
}

static void cached_beside_direct(void **state)
{
	(void)state;
	start("read=cached,write=cached", "rw,no_root_squash,read=direct,write=direct");
	see_all();
	stop();
}

static void both_direct(void **state)
{
	(void)state;
	start("block=4096", "rw,no_root_squash,read=auto,write=direct");
	/* blocks of 4096: the offsets of see_all() are no multiples */
	memset(data, 7, BYTES);
	assert_int_equal(leat_block_pwrite(b, data, BYTES, 512, 0), -EINVAL);
	write_by(BLOCKS, BYTES);
	read_by(FILES, BYTES);
	assert_memory_equal(got, data, BYTES);
	stop();
}

/* Return: the number of connections of the holder that INFO reports to another client */
static unsigned conns_seen(void)
{
	struct block_rig_call info = { .args.info = { .volume = (char *)(uintptr_t)"vol",
						      .after = (char *)(uintptr_t)"" } };
	const BLOCKINFOresok *ok = &info.res.info.BLOCKINFOres_u.resok;
	struct block_client c;
	unsigned conns;

	block_connect(&c, 9, 0);
	block_begin(&c, &info, BLOCKPROC_INFO, NULL, 0);
	assert_int_equal(block_end(&info), BLOCK_OK);
	assert_int_equal(ok->holders.holders_len, 1);
	conns = ok->holders.holders_val[0].conns;
	xdr_free((xdrproc_t)xdr_BLOCKINFOres, (char *)&info.res.info);
	block_close(&c);
	return conns;
}

/* The server is restarted under an attachment that nobody uses: the holder is there again by itself. */
static void idle_attachment(void **state)
{
	uint64_t keep_ns = lt_block_keep_ns;

	(void)state;
	lt_block_keep_ns = 20 * NS_PER_MS;
	start("block=512", "rw,no_root_squash");
	block_rig_restart(NULL);
	while (!conns_seen())
		assert_true(leat_poll(leat_session(leat_block_handle(b)), 1) >= 0);
	stop();
	lt_block_keep_ns = keep_ns;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(direct_beside_cached),
		cmocka_unit_test(cached_beside_direct),
		cmocka_unit_test(both_direct),
		cmocka_unit_test(idle_attachment),
	};

	return cmocka_run_group_tests_name("block files", tests, NULL, NULL);
}
