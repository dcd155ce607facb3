/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * memfd_menu.c - descriptors that a hostile peer of the local fabric may pass instead of a memfd of its memory
 */
#include "memfd_menu.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "local_int.h"

#define PAGE 4096u
#define HUGE_BYTES (UINT64_C(2) << 20)
#define PROPER (F_SEAL_SHRINK | F_SEAL_GROW)

const char *memfd_menu_name(enum memfd_kind kind)
{
	static const char *const names[] = {
		[MEMFD_HUGE] = "huge", [MEMFD_HUGE_ODD] = "huge-odd", [MEMFD_UNSEALED] = "unsealed",
		[MEMFD_SHRINKS] = "shrinks", [MEMFD_GROWS] = "grows", [MEMFD_SHORT] = "short",
		[MEMFD_LONG] = "long", [MEMFD_SHM_FILE] = "shm-file", [MEMFD_DISK_FILE] = "disk-file",
		[MEMFD_PIPE] = "pipe", [MEMFD_DEVICE] = "device", [MEMFD_EVENT] = "event",
		[MEMFD_PATH] = "path", [MEMFD_READ_ONLY] = "read-only", [MEMFD_NO_WRITES] = "no-writes",
		[MEMFD_APPEND] = "append", [MEMFD_SPARSE] = "sparse",
	};

	return names[kind];
}

static int sealed(unsigned flags, uint64_t size, int seals)
{
	int fd = memfd_create("evil", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd >= 0 && (ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, seals))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int file_in(const char *dir, uint64_t size)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 && ftruncate(fd, (off_t)size)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* A proper memfd, opened once more. */
static int reopened(uint64_t size, int flags)
{
	int fd = sealed(0, size, PROPER), again;
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, flags | O_CLOEXEC);
	close(fd);
	return again;
}

int memfd_menu_make(enum memfd_kind kind, uint64_t size, uint64_t *ret_claim)
{
	uint64_t huge = (size + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	const char *tmp = getenv("TMPDIR");
	int fd, pair[2];

	*ret_claim = size;
	switch (kind) {
	case MEMFD_HUGE:
		*ret_claim = huge;
		return sealed(MFD_HUGETLB, huge, PROPER);
	case MEMFD_HUGE_ODD:
		*ret_claim = huge + PAGE;
		return sealed(MFD_HUGETLB, huge + HUGE_BYTES, PROPER);
	case MEMFD_UNSEALED:
		return sealed(0, size, 0);
	case MEMFD_SHRINKS:
		return sealed(0, size, F_SEAL_GROW);
	case MEMFD_GROWS:
		return sealed(0, size, F_SEAL_SHRINK);
	case MEMFD_SHORT:
		*ret_claim = size + PAGE;
		return sealed(0, size, PROPER);
	case MEMFD_LONG:
		return sealed(0, size + PAGE, PROPER);
	case MEMFD_SHM_FILE:
		return file_in("/dev/shm", size);
	case MEMFD_DISK_FILE:
		return file_in(tmp ? tmp : "/var/tmp", size);
	case MEMFD_PIPE:
		if (pipe2(pair, O_CLOEXEC))
			return -1;
		close(pair[1]);
		return pair[0];
	case MEMFD_DEVICE:
		return open("/dev/zero", O_RDWR | O_CLOEXEC);
	case MEMFD_EVENT:
		return eventfd(0, EFD_CLOEXEC);
	case MEMFD_PATH:
		return reopened(size, O_PATH);
	case MEMFD_READ_ONLY:
		return reopened(size, O_RDONLY);
	case MEMFD_NO_WRITES:
		return sealed(0, size, PROPER | F_SEAL_WRITE);
	case MEMFD_APPEND:
		fd = sealed(0, size, PROPER);
		if (fd >= 0 && fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK | O_NOATIME)) {
			close(fd);
			return -1;
		}
		return fd;
	case MEMFD_SPARSE:
		return sealed(0, size, PROPER);
	default:
		return -1;
	}
}

/* ---- instead of another ---- */

int __real_rr_local_sock_send(int sock, const struct hs_msg *msg, const int *fds, int nfds);
int __wrap_rr_local_sock_send(int sock, const struct hs_msg *msg, const int *fds, int nfds);

static _Atomic unsigned swap_type;
static _Atomic int evil = -1;
static enum memfd_kind swap_kind;
static uint64_t swap_size;

void memfd_menu_swap(unsigned type, enum memfd_kind kind, uint64_t size)
{
	swap_type = 0;
	if (evil >= 0)
		close(evil);
	evil = -1;
	swap_kind = kind;
	swap_size = size;
	swap_type = type;
}

int memfd_menu_evil(void)
{
	return evil;
}

int __wrap_rr_local_sock_send(int sock, const struct hs_msg *msg, const int *fds, int nfds)
{
	struct hs_msg hs;
	struct stat st;
	uint64_t claim;
	int fd;

	if (!msg || !swap_type || msg->type != swap_type || nfds != 1 || fstat(fds[0], &st) ||
	    (swap_size && swap_size != (uint64_t)st.st_size))
		return __real_rr_local_sock_send(sock, msg, fds, nfds);
	fd = memfd_menu_make(swap_kind, (uint64_t)st.st_size, &claim);
	if (fd < 0)
		abort();
	if (evil >= 0)
		close(evil);
	evil = fd;
	hs = *msg;
	hs.size = claim;
	return __real_rr_local_sock_send(sock, &hs, &fd, 1);
}

bool memfd_menu_mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, "/memfd:evil") != NULL;
	if (f)
		fclose(f);
	return found;
}
