/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_device.c - files and block devices: size, blocks, identity
 *
 * Operation: stat knows all about a file. Of a device it knows the number, ioctl() size and blocks, sysfs the rest.
 * Memory:    None.
 * Threads:   Any that may block.
 * Errors:    -errno. What a kernel does not tell gets the usual value.
 */
#include "store_device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <linux/fs.h>

#define BLOCK_MIN 512u
#define BLOCK_MAX (64u << 10)

int store_file_size(int fd, uint64_t *ret_bytes)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISBLK(st.st_mode))
		return ioctl(fd, BLKGETSIZE64, ret_bytes) ? -errno : 0;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret_bytes = (uint64_t)st.st_size;
	return 0;
}

static bool is_block(uint32_t n)
{
	return n >= BLOCK_MIN && n <= BLOCK_MAX && !(n & (n - 1));
}

uint32_t store_file_block(int fd)
{
	struct stat st;
	int n = 0;

	if (!fstat(fd, &st) && S_ISBLK(st.st_mode)) {
		if (ioctl(fd, BLKSSZGET, &n))
			n = 0;
	}
#ifdef STATX_DIOALIGN
	else {
		struct statx stx;

		if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) && stx.stx_mask & STATX_DIOALIGN)
			n = (int)stx.stx_dio_offset_align;
	}
#endif
	return is_block((uint32_t)n) ? (uint32_t)n : BLOCK_MIN;
}

int store_file_identify(int fd, uint64_t *ret_dev, uint64_t *ret_ino)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*ret_dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	*ret_ino = S_ISBLK(st.st_mode) ? 0 : st.st_ino;
	return 0;
}

static bool read_limit(dev_t dev, const char *up, const char *name, uint64_t *ret)
{
	unsigned long long n;
	char path[128];
	FILE *f;
	bool got;

	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%squeue/%s", major(dev), minor(dev), up, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	got = fscanf(f, "%20llu", &n) == 1;
	fclose(f);
	if (got)
		*ret = n;
	return got;
}

bool store_device_limit(dev_t dev, const char *name, uint64_t *ret)
{
	return read_limit(dev, "", name, ret) || read_limit(dev, "../", name, ret);
}
