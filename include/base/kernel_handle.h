/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * kernel_handle.h - the kernel's handle of a file, which tells it from a later file with the same number
 */
#ifndef LEAT_BASE_KERNEL_HANDLE_H
#define LEAT_BASE_KERNEL_HANDLE_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"

union kernel_handle {
	struct file_handle h;
	uint8_t room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
};

/** kernel_handle_get - gets the handle of @name in @fd, or of @fd itself if @name is ""
 * @ret_mount: receives the id of its mount
 *
 * Return: 0; -EOPNOTSUPP: the file system has none; -errno.
 */
static inline int must_check kernel_handle_get(int fd, const char *name, union kernel_handle *ret, int *ret_mount)
{
	memset(ret, 0, sizeof(*ret));
	ret->h.handle_bytes = MAX_HANDLE_SZ;
	return name_to_handle_at(fd, name, &ret->h, ret_mount, *name ? 0 : AT_EMPTY_PATH) ? -errno : 0;
}

#endif
