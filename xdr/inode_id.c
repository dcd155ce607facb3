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

#include "base/kernel_handle.h"
#include "base/siphash.h"

int inode_id_find(int fd, uint64_t ino, struct inode_id *ret)
{
	static const struct siphash_key no_secret;
	union kernel_handle kh;
	int mount_id, err = kernel_handle_get(fd, "", &kh, &mount_id);

	*ret = (struct inode_id){ .ino = ino };
	if (!err)
		ret->generation = siphash(&no_secret, kh.h.f_handle, MIN(kh.h.handle_bytes, (unsigned)MAX_HANDLE_SZ));
	return err == -EOPNOTSUPP ? 0 : err;
}
