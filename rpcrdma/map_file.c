/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * map_file.c - files in memory that are shared with a peer, mapped where huge pages can be
 *
 * Operation:  The place is reserved by a mapping of nothing that is long enough to hold it aligned, the file
 *             put into it, and what is left over at both ends given back. Linux does this by itself
 *             only where huge pages are on for shared memory in general.
 * Memory:     The mapping is the caller's.
 * Threads:    Any.
 * Errors:     errno of mmap().
 */
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "map_file.h"

#define HUGE_BYTES ((size_t)2 << 20)

/** rr_map_file - see map_file.h */
void *rr_map_file(int fd, size_t bytes)
{
	size_t room;
	uintptr_t start, at, end;
	void *map;

	if (bytes < HUGE_BYTES)
		return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!add_size(bytes, HUGE_BYTES, &room)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	map = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return map;
	start = (uintptr_t)map;
	at = round_up_pow2(start, HUGE_BYTES);
	end = round_up_pow2(at + bytes, 4096);
	map = mmap((void *)at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (map == MAP_FAILED) {
		int err = errno;

		munmap((void *)start, room);
		errno = err;
		return map;
	}
	if (at > start)
		munmap((void *)start, at - start);
	munmap((void *)end, start + room - end);
	return map;
}
