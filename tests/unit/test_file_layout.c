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
		cmocka_unit_test(impossible), cmocka_unit_test(defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
