/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_file_layout.c - libFuzzer harness: the attributes of striped files and of directories
 *
 * Operation:  Byte 0: 1: the harness adds the signature, so that what lies behind it is reached. What is accepted
 *             encodes to the same bytes.
 * Memory:     The stack.
 * Errors:     abort() on a broken promise.
 */
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"
#include "file_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool promise)
{
	if (!promise)
		abort();
}

static void use_layout(const uint8_t *data, size_t n, bool sign)
{
	static const struct stripe_keys keys = { .v = { { 1, 2 } }, .n = 1 };
	static const struct inode_id inode = { 12, 34 };
	uint8_t bytes[FILE_LAYOUT_MAX + 16], again[FILE_LAYOUT_MAX];
	uint64_t volume;
	struct file_layout l;

	if (n < 16 || n + 8 > FILE_LAYOUT_MAX)
		return;
	memcpy(bytes, data, n);
	volume = get_be64(bytes + 8);
	if (sign) {
		put_be64(bytes + n, inode.ino);
		put_be64(bytes + n + 8, inode.generation);
		put_be64(bytes + n, siphash(&keys.v[0], bytes, n + 16));
		n += 8;
	}
	if (file_layout_decode(&keys, volume, &inode, bytes, n, &l))
		return;
	must(layout_valid(&l.at) && l.epoch);
	must(file_layout_encode(&keys, &inode, &l, again) == n && !memcmp(again, bytes, n));
}

static void use_defaults(const uint8_t *data, size_t n)
{
	uint8_t again[DIR_DEFAULTS_BYTES];
	struct dir_defaults d;

	if (dir_defaults_decode(data, n, &d))
		return;
	dir_defaults_encode(&d, again);
	must(n == sizeof(again) && !memcmp(again, data, n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	use_layout(data + 1, size - 1, data[0] & 1);
	use_defaults(data + 1, size - 1);
	return 0;
}
