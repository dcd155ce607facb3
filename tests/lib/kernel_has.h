/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * kernel_has.h - asks the kernel for what a test needs, so that a test does not skip where the product fails
 *
 * Errors:    an unexpected errno is asserted.
 */
#ifndef KERNEL_HAS_H
#define KERNEL_HAS_H

#include <stdbool.h>

/** kernel_has_uffd - may this process have a userfaultfd with the events of unmapped memory? */
bool kernel_has_uffd(void);

/** kernel_has_handles - may this process open files of the file system of @dir by handle? */
bool kernel_has_handles(const char *dir);

/** kernel_has_watches - are changes of directories below @dir reported, and have files times in nanoseconds there?
 * True for ext4, btrfs, XFS and tmpfs, unless their inodes are too small.
 */
bool kernel_has_watches(const char *dir);

/** kernel_has_acls - do files of the file system of @path have POSIX access control lists? */
bool kernel_has_acls(const char *path);

#endif
