/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * shm_map.c - creates memory files shared with a peer, and maps them so that huge pages are possible
 *
 * Operation:  rr_shm_map() reserves an address range long enough for an aligned mapping, maps the file into it, and
 *             unmaps the rest at both ends. Linux aligns by itself only where huge pages are enabled for shared
 *             memory in general.
 * Memory:     The caller owns the mapping.
 * Threads:    Any.
 * Errors:     of the calls; EINVAL: a file of huge pages is not mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/checked.h"
#include "shm_map.h"

#define HUGE_BYTES ((size_t)2 << 20)

int rr_shm_create(const char *name, uint64_t bytes)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int rc;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

void *rr_shm_map(int fd, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room;
	struct statfs fs;
	uintptr_t start, at, end;
	void *map;

	/* the kernel rounds a mapping up to this: with huge pages it would exceed the reserved range */
	if (fstatfs(fd, &fs))
		return MAP_FAILED;
	if ((size_t)fs.f_bsize > page) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	if (bytes < HUGE_BYTES)
		return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!add_size(bytes, HUGE_BYTES + page, &room)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	room = round_up_pow2(bytes, page) + HUGE_BYTES;
	map = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return map;
	start = (uintptr_t)map;
	at = round_up_pow2(start, HUGE_BYTES);
	end = at + round_up_pow2(bytes, page);
	map = mmap((void *)at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (map == MAP_FAILED) {
		int err = errno;

		munmap((void *)start, room);
		errno = err;
		return map;
	}
	if (at > start)
		munmap((void *)start, at - start);
	if (end < start + room)
		munmap((void *)end, start + room - end);
	return map;
}
