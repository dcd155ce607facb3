/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_extents.c - EXTENTS of a volume whose blocks are larger than those of its file: no block with data is a hole
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

#include "server/block/block_io.c"

#define UNIT 512u /* of what is found */

static struct store_extents found;
static block_extent told[BLOCK_EXTENTS_MAX];

static void find(uint64_t bytes, enum store_extent_kind kind)
{
	found.v[found.n].length = bytes;
	found.v[found.n++].kind = kind;
}

static BLOCKEXTENTSresok tell(uint32_t block)
{
	BLOCKEXTENTSresok ok = { .extents = { .extents_val = told } };

	memset(told, 0, sizeof(told));
	align_extents(&found, block, &ok);
	return ok;
}

static void see(const BLOCKEXTENTSresok *ok, unsigned i, uint64_t bytes, block_kind kind)
{
	assert_true(i < ok->extents.extents_len);
	assert_int_equal(ok->extents.extents_val[i].length, bytes);
	assert_int_equal(ok->extents.extents_val[i].kind, kind);
}

/* One unit of data makes a block of data. */
static void data_grows(void **state)
{
	BLOCKEXTENTSresok ok;

	(void)state;
	found.n = 0;
	find(8192 - 512, STORE_HOLE_EXTENT);
	find(512, STORE_DATA_EXTENT);
	find(512, STORE_ZERO_EXTENT);
	find(512, STORE_DATA_EXTENT);
	find(16384 - 1024, STORE_ZERO_EXTENT);
	ok = tell(4096);
	assert_int_equal(ok.extents.extents_len, 3);
	see(&ok, 0, 4096, BLOCK_HOLE);
	see(&ok, 1, 8192, BLOCK_DATA);
	see(&ok, 2, 12288, BLOCK_ZERO);
	found.n = 0; /* less than a block is known: it may have data */
	find(512, STORE_HOLE_EXTENT);
	ok = tell(4096);
	assert_int_equal(ok.extents.extents_len, 1);
	see(&ok, 0, 4096, BLOCK_DATA);
}

static enum store_extent_kind kind_at(uint64_t off)
{
	for (unsigned i = 0; i < found.n; i++) {
		if (off < found.v[i].length)
			return found.v[i].kind;
		off -= found.v[i].length;
	}
	fail();
	return STORE_DATA_EXTENT;
}

static void check_random(const BLOCKEXTENTSresok *ok, uint32_t block, uint64_t all)
{
	uint64_t at = 0;

	for (unsigned i = 0; i < ok->extents.extents_len; i++) {
		const block_extent *e = &ok->extents.extents_val[i];

		assert_true(e->length && e->length % block == 0);
		assert_true(!i || e->kind != e[-1].kind);
		for (uint64_t off = at; e->kind != BLOCK_DATA && off < at + e->length; off += UNIT)
			assert_int_equal(kind_of(kind_at(off)), e->kind);
		at += e->length;
	}
	assert_true(at <= MAX(all, (uint64_t)block));
	if (ok->extents.extents_len < BLOCK_EXTENTS_MAX - 1)
		assert_true(at + block > all); /* all whole blocks */
}

static void random_ones(void **state)
{
	static const enum store_extent_kind kinds[] = { STORE_DATA_EXTENT, STORE_HOLE_EXTENT, STORE_ZERO_EXTENT };
	uint64_t seed = 3;

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		unsigned n = 1 + (unsigned)(random_next(&seed) % ARRAY_SIZE(found.v)), longest = round % 2 ? 4 : 40;
		uint32_t block = round % 3 ? 4096 : 512;
		uint64_t all = 0;
		BLOCKEXTENTSresok ok;

		for (found.n = 0; found.n < n;) {
			uint64_t bytes = (1 + random_next(&seed) % longest) * UNIT;

			find(bytes, kinds[random_next(&seed) % 3]);
			all += bytes;
		}
		ok = tell(block);
		assert_in_range(ok.extents.extents_len, 1, BLOCK_EXTENTS_MAX);
		check_random(&ok, block, all);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(data_grows), cmocka_unit_test(random_ones) };

	return cmocka_run_group_tests_name("block extents", tests, NULL, NULL);
}
