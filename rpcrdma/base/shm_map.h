/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * shm_map.h - creates memory files shared with a peer, and maps them so that huge pages are possible
 */
#ifndef RR_SHM_MAP_H
#define RR_SHM_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

/** rr_shm_create - creates a memfd that is sealed at a fixed size
 * @name: shown in /proc/PID/maps
 *
 * Return: the descriptor, or -errno of the call that failed.
 */
must_check int rr_shm_create(const char *name, uint64_t bytes);

/** rr_shm_map - maps the first @bytes of @fd, shared, readable and writable
 *
 * From 2 MiB on the mapping is aligned to 2 MiB. If the file is in huge pages, so is the mapping, and the
 * kernel looks up the buffer of a disk read once per 2 MiB page instead of 256 times for 1 MiB.
 *
 * Return: its address, unmap it with munmap() and @bytes; MAP_FAILED with errno, EINVAL if the blocks of @fd
 * are larger than a page: such a file can be mapped, and unmapped, by whole blocks only.
 */
void *rr_shm_map(int fd, size_t bytes);

#endif
