/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * map_file.h - files in memory that are shared with a peer, mapped where huge pages can be
 */
#ifndef RR_MAP_FILE_H
#define RR_MAP_FILE_H

#include <stddef.h>

/** rr_map_file - map the first @bytes of @fd, shared, to be read and written
 *
 * From 2 MiB on the mapping begins at a multiple of that. If the file lies in huge pages it is mapped by
 * huge pages then, too, and the kernel finds what a disk is to read into at one look instead of 256 for 1 MiB.
 *
 * Return: its address, to be unmapped by munmap() with @bytes; MAP_FAILED with errno, EINVAL if the blocks of
 * @fd are larger than a page: such a file can be mapped, and unmapped, by whole blocks only.
 */
void *rr_map_file(int fd, size_t bytes);

#endif
