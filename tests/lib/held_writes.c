/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * held_writes.c - writes of a server in this process that wait in its workers until the test lets them go
 *
 * Operation: Replaces pwritev2(). A reactor writes to memory itself, and a write that waits there would keep all of its
 *            connections waiting, so no file system is said to be in memory.
 * Memory:    Static.
 * Threads:   Any.
 * Errors:    -
 */
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "fs_limits.h"
#include "held_writes.h"

static atomic_bool hold;
static atomic_int held;
static atomic_int failure; /* errno of all writes; 0: they work */
static sem_t let_go; /* zeroed: as by sem_init() with 0 */

ssize_t __real_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
void __real_fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret);
void __wrap_fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret);
void __real_fs_limits_find_file(int fd, struct fs_limits *ret);
void __wrap_fs_limits_find_file(int fd, struct fs_limits *ret);

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	if (atomic_load(&hold)) {
		atomic_fetch_add(&held, 1);
		while (sem_wait(&let_go))
			;
	}
	if (atomic_load(&failure)) {
		errno = atomic_load(&failure);
		return -1;
	}
	return __real_pwritev2(fd, iov, n, off, flags);
}

void __wrap_fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret)
{
	__real_fs_limits_find(dir_fd, may_write, ret);
	ret->in_memory = false;
}

void __wrap_fs_limits_find_file(int fd, struct fs_limits *ret)
{
	__real_fs_limits_find_file(fd, ret);
	ret->in_memory = false;
}

void held_writes_begin(void)
{
	atomic_store(&held, 0);
	atomic_store(&hold, true);
}

int held_writes(void)
{
	return atomic_load(&held);
}

bool held_writes_are(void *n)
{
	return held_writes() >= *(int *)n;
}

void held_writes_end(int n)
{
	atomic_store(&hold, false);
	while (n--)
		sem_post(&let_go);
}

void held_writes_forget(void)
{
	while (sem_trywait(&let_go) == 0)
		;
}

void held_writes_fail(int err)
{
	atomic_store(&failure, err);
}
