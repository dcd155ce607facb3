/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * inode_id.c - the inode that the layout of a striped file is signed for
 *
 * Operation: The generation is a hash of the handle that the kernel gives of the file.
 * Memory:    The stack.
 * Threads:   Any.
 * Errors:    -errno. A failure must not look like a file system without handles, since a layout that was signed then would not be
 *            valid later.
 */
#include "inode_id.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/siphash.h"

int inode_id_find(int fd, uint64_t ino, struct inode_id *ret)
{
	static const struct siphash_key no_secret;
	union {
		struct file_handle h;
		uint8_t room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} kh;
	int mount_id;

	memset(&kh, 0, sizeof(kh));
	kh.h.handle_bytes = MAX_HANDLE_SZ;
	*ret = (struct inode_id){ .ino = ino };
	if (!name_to_handle_at(fd, "", &kh.h, &mount_id, AT_EMPTY_PATH))
		ret->generation = siphash(&no_secret, kh.h.f_handle, MIN(kh.h.handle_bytes, (unsigned)MAX_HANDLE_SZ));
	else if (errno != EOPNOTSUPP)
		return -errno;
	return 0;
}
