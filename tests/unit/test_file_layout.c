/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_file_layout.c - the attributes that hold the layout of a file and the defaults of a directory
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "base/wire.h"
#include "xdr/file_layout.h"

#define VOLUME UINT64_C(0xa1b2c3d4e5f60718)

static const struct stripe_keys one = { .v = { { 1, 2 } }, .n = 1 }, other = { .v = { { 3, 4 } }, .n = 1 },
				both = { .v = { { 3, 4 }, { 1, 2 } }, .n = 2 };
static const struct inode_id inode = { 12, 34 };

static struct file_layout layout(uint32_t width)
{
	struct file_layout l = { .volume = VOLUME, .epoch = UINT64_C(0x1122334455667788), .at = { 1 << 20, width } };

	for (unsigned i = 0; i < STRIPE_OBJECT_BYTES; i++)
		l.object[i] = (char)(0xf0 + i);
	for (uint32_t i = 0; i < width; i++)
		l.servers[i] = 1000 + i;
	return l;
}

static int decode(const uint8_t *bytes, size_t n, struct file_layout *ret)
{
	return file_layout_decode(&both, VOLUME, &inode, bytes, n, ret);
}

static void keeps_all(void **state)
{
	static const uint32_t widths[] = { 1, 2, 3, 255, 256 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(widths); i++) {
		struct file_layout l = layout(widths[i]), got;
		uint8_t bytes[FILE_LAYOUT_MAX];
		size_t n = file_layout_encode(&one, &inode, &l, bytes);

		assert_int_equal(n, 72 + 4 * widths[i]);
		memset(&got, 0xee, sizeof(got));
		assert_int_equal(decode(bytes, n, &got), 0);
		assert_memory_equal(&got, &l, sizeof(l));
		assert_int_equal(decode(bytes, n - 1, &got), -EBADMSG);
		assert_int_equal(decode(bytes, 0, &got), -EBADMSG);
		assert_int_equal(decode(bytes, 7, &got), -EBADMSG);
	}
}

static void any_bit(void **state)
{
	struct file_layout l = layout(3), got;
	uint8_t bytes[FILE_LAYOUT_MAX];
	size_t n = file_layout_encode(&one, &inode, &l, bytes);

	(void)state;
	for (size_t i = 0; i < 8 * n; i++) {
		int err;

		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
		err = decode(bytes, n, &got);
		assert_true(err == -EBADMSG || err == -EKEYREJECTED);
		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	assert_int_equal(decode(bytes, n, &got), 0);
}

static void of_one_inode(void **state)
{
	struct file_layout l = layout(2), got;
	uint8_t bytes[FILE_LAYOUT_MAX];
	size_t n = file_layout_encode(&one, &inode, &l, bytes);

	(void)state;
	assert_int_equal(file_layout_decode(&one, VOLUME, &(struct inode_id){ 13, 34 }, bytes, n, &got), -EKEYREJECTED);
	assert_int_equal(file_layout_decode(&one, VOLUME, &(struct inode_id){ 12, 35 }, bytes, n, &got), -EKEYREJECTED);
	assert_int_equal(file_layout_decode(&other, VOLUME, &inode, bytes, n, &got), -EKEYREJECTED);
	assert_int_equal(file_layout_decode(&one, VOLUME + 1, &inode, bytes, n, &got), -EBADMSG);
}

/* Signed nonsense is nonsense. */
static void impossible(void **state)
{
	struct file_layout l = layout(2), got;
	uint8_t bytes[FILE_LAYOUT_MAX];

	(void)state;
	l.epoch = 0;
	assert_int_equal(decode(bytes, file_layout_encode(&one, &inode, &l, bytes), &got), -EBADMSG);
	l = layout(2);
	l.at.unit = 3 << 16;
	assert_int_equal(decode(bytes, file_layout_encode(&one, &inode, &l, bytes), &got), -EBADMSG);
	l = layout(2);
	l.servers[1] = 0;
	assert_int_equal(decode(bytes, file_layout_encode(&one, &inode, &l, bytes), &got), -EBADMSG);
	l = layout(0);
	assert_int_equal(decode(bytes, file_layout_encode(&one, &inode, &l, bytes), &got), -EBADMSG);
}

/* ---- cuts ---- */

/* What an object of @epoch has to be cut to, before it is of the last epoch. UINT64_MAX: not at all */
static uint64_t least_cut(const struct file_layout *l, uint64_t epoch)
{
	uint64_t least = epoch < l->epoch && l->cut != FILE_CUT_NONE ? l->cut_bytes : UINT64_MAX;

	for (uint32_t i = 0; i < l->nearlier; i++)
		if (l->earlier[i].epoch > epoch)
			least = MIN(least, l->earlier[i].bytes);
	return least;
}

/* Whatever cuts a server has missed, it gets the least of them, and none that it has. */
static void cuts(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned run = 0; run < 300; run++) {
		uint64_t all[40], n = 0;
		struct file_layout l = layout(3), got;
		uint8_t bytes[FILE_LAYOUT_MAX];

		l.epoch = 1;
		while (n < ARRAY_SIZE(all)) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			all[n] = (seed >> 33) % (run % 2 ? 1000 : 5);
			if (file_layout_cut(&l, all[n]))
				break; /* too many */
			n++;
			assert_int_equal(l.epoch, n + 1);
			assert_true(l.cut == FILE_CUT_SIZE && l.cut_bytes == all[n - 1]);
			for (uint64_t epoch = 1; epoch <= l.epoch; epoch++) {
				uint64_t least = UINT64_MAX;

				for (uint64_t i = epoch; i < l.epoch; i++) /* cut i began epoch i + 2 */
					least = MIN(least, all[i - 1]);
				assert_int_equal(least_cut(&l, epoch), least);
			}
			memset(&got, 0xee, sizeof(got));
			assert_int_equal(decode(bytes, file_layout_encode(&one, &inode, &l, bytes), &got), 0);
			assert_memory_equal(&got, &l, sizeof(l));
		}
		assert_true(n > 5);
		file_layout_cut_done(&l);
		assert_int_equal(decode(bytes, file_layout_encode(&one, &inode, &l, bytes), &got), 0);
		assert_memory_equal(&got, &l, sizeof(l));
		assert_int_equal(least_cut(&l, 1), UINT64_MAX);
	}
}

static void too_many_cuts(void **state)
{
	struct file_layout l = layout(2), before;

	(void)state;
	l.epoch = 1;
	for (unsigned i = 0; i <= FILE_CUTS_MAX; i++)
		assert_int_equal(file_layout_cut(&l, 10 + i), 0);
	before = l;
	assert_int_equal(file_layout_cut(&l, 100), -ENOSPC);
	assert_memory_equal(&l, &before, sizeof(l));
	assert_int_equal(file_layout_cut(&l, 15), 0); /* a shorter one makes room */
	assert_int_equal(file_layout_cut(&l, 100), 0);
}

static void impossible_cuts(void **state)
{
	static const struct file_cut_at rows[][2] = {
		{ { 1, 5 }, { 3, 6 } }, { { 3, 5 }, { 3, 6 } }, { { 2, 5 }, { 4, 6 } }, { { 2, 6 }, { 3, 6 } }, { { 2, 5 }, { 3, 9 } },
	};
	struct file_layout l = layout(2), got;
	uint8_t bytes[FILE_LAYOUT_MAX];

	(void)state;
	l.epoch = 4;
	l.cut = FILE_CUT_FENCE;
	l.cut_bytes = 9;
	l.nearlier = 2;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		memcpy(l.earlier, rows[i], sizeof(rows[i]));
		assert_int_equal(decode(bytes, file_layout_encode(&one, &inode, &l, bytes), &got), -EBADMSG);
	}
	memcpy(l.earlier, (struct file_cut_at[]){ { 2, 5 }, { 3, 8 } }, 2 * sizeof(l.earlier[0]));
	assert_int_equal(decode(bytes, file_layout_encode(&one, &inode, &l, bytes), &got), 0);
	l.cut = FILE_CUT_NONE;
	l.cut_bytes = 0;
	assert_int_equal(decode(bytes, file_layout_encode(&one, &inode, &l, bytes), &got), -EBADMSG);
}

static int decode_defaults(uint32_t unit, uint32_t width, struct dir_defaults *ret)
{
	uint8_t bytes[DIR_DEFAULTS_BYTES];

	dir_defaults_encode(&(struct dir_defaults){ unit, width }, bytes);
	return dir_defaults_decode(bytes, sizeof(bytes), ret);
}

static void defaults(void **state)
{
	struct dir_defaults got = { 9, 9 };
	uint8_t bytes[DIR_DEFAULTS_BYTES];

	(void)state;
	assert_int_equal(decode_defaults(1 << 16, 256, &got), 0);
	assert_true(got.unit == 1 << 16 && got.width == 256);
	assert_int_equal(decode_defaults(0, 0, &got), 0);
	assert_true(!got.unit && !got.width);
	assert_int_equal(decode_defaults(1, 1, &got), -EBADMSG);
	assert_int_equal(decode_defaults(0, 257, &got), -EBADMSG);
	dir_defaults_encode(&got, bytes);
	assert_int_equal(dir_defaults_decode(bytes, sizeof(bytes) - 1, &got), -EBADMSG);
	bytes[7] ^= 1;
	assert_int_equal(dir_defaults_decode(bytes, sizeof(bytes), &got), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_all), cmocka_unit_test(any_bit),	 cmocka_unit_test(of_one_inode),
		cmocka_unit_test(impossible), cmocka_unit_test(defaults),	 cmocka_unit_test(cuts),
		cmocka_unit_test(too_many_cuts), cmocka_unit_test(impossible_cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
