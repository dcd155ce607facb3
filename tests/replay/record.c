/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * record.c - logs what a leatd does to the file of a volume: writes with their data, ranges to zero, syncs
 *
 *     LD_PRELOAD=record.so REPLAY_VOLUME=FILE REPLAY_LOG=LOG build/leatd --block vol0=FILE ...
 *
 * Operation:  The functions below replace those of the C library that store_file.c, store_direct.c and store_space.c call. A
 *             change that passes them by, or a sync that does, makes the disks of replay.c inconsistent: tests then fail.
 * Memory:     None.
 * Threads:    Any. Each record is one write() to a file that is open for appending.
 * Errors:     A record that cannot be written ends the process.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "replay.h"

#define EXPORT __attribute__((visibility("default")))
#define PARTS_MAX 1023

static int log_fd = -1;
static struct stat volume;
static _Atomic uint64_t ids;

static __typeof__(pwritev2) *real_pwritev2;
static __typeof__(pwrite) *real_pwrite;
static __typeof__(fallocate) *real_fallocate;
static __typeof__(fsync) *real_fsync, *real_fdatasync;

static void die(const char *what)
{
	perror(what);
	_exit(99);
}

static void find(void *ret_function, const char *name)
{
	void *sym = dlsym(RTLD_NEXT, name);

	if (!sym)
		die(name);
	memcpy(ret_function, &sym, sizeof(sym)); /* ISO C has no conversion */
}

__attribute__((constructor)) static void start(void)
{
	const char *file = getenv("REPLAY_VOLUME"), *log = getenv("REPLAY_LOG");

	find(&real_pwritev2, "pwritev2");
	find(&real_pwrite, "pwrite");
	find(&real_fallocate, "fallocate");
	find(&real_fsync, "fsync");
	find(&real_fdatasync, "fdatasync");
	if (!file || !log)
		return;
	if (stat(file, &volume))
		die(file);
	log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (log_fd < 0)
		die(log);
	ids = (uint64_t)getpid() << 32;
}

static bool is_volume(int fd)
{
	struct stat st;

	return log_fd >= 0 && !fstat(fd, &st) && st.st_ino == volume.st_ino && st.st_dev == volume.st_dev;
}

static void put(const struct replay_record *r, const struct iovec *iov, int cnt)
{
	struct iovec all[PARTS_MAX + 1] = { { .iov_base = (void *)(uintptr_t)r, .iov_len = sizeof(*r) } };
	size_t sum = sizeof(*r);

	if (cnt > PARTS_MAX)
		die("too many parts");
	for (int i = 0; i < cnt; i++) {
		all[i + 1] = iov[i];
		sum += iov[i].iov_len;
	}
	if (writev(log_fd, all, cnt + 1) != (ssize_t)sum)
		die("log");
}

static uint64_t begin(enum replay_kind kind, uint64_t off, uint64_t len, bool durable, const struct iovec *iov, int cnt)
{
	struct replay_record r = { .magic = REPLAY_MAGIC, .kind = kind, .id = ++ids, .off = off, .len = len, .durable = durable };

	put(&r, iov, cnt);
	return r.id;
}

/* Keeps errno. */
static void end(uint64_t id, bool failed)
{
	struct replay_record r = { .magic = REPLAY_MAGIC, .kind = REPLAY_END, .id = id, .failed = failed };
	int err = errno;

	put(&r, NULL, 0);
	errno = err;
}

EXPORT ssize_t pwritev2(int fd, const struct iovec *iov, int cnt, off_t off, int flags)
{
	size_t sum = 0;
	uint64_t id;
	ssize_t n;

	if (!is_volume(fd))
		return real_pwritev2(fd, iov, cnt, off, flags);
	for (int i = 0; i < cnt; i++)
		sum += iov[i].iov_len;
	id = begin(REPLAY_WRITE, (uint64_t)off, sum, flags & (RWF_DSYNC | RWF_SYNC), iov, cnt);
	n = real_pwritev2(fd, iov, cnt, off, flags);
	end(id, n != (ssize_t)sum);
	return n;
}

EXPORT ssize_t pwrite(int fd, const void *buf, size_t len, off_t off)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	uint64_t id;
	ssize_t n;

	if (!is_volume(fd))
		return real_pwrite(fd, buf, len, off);
	id = begin(REPLAY_WRITE, (uint64_t)off, len, false, &iov, 1);
	n = real_pwrite(fd, buf, len, off);
	end(id, n != (ssize_t)len);
	return n;
}

EXPORT int fallocate(int fd, int mode, off_t off, off_t len)
{
	uint64_t id;
	int rc;

	if (!is_volume(fd))
		return real_fallocate(fd, mode, off, len);
	id = begin(REPLAY_ZERO, (uint64_t)off, (uint64_t)len, false, NULL, 0);
	rc = real_fallocate(fd, mode, off, len);
	end(id, rc != 0);
	return rc;
}

static int record_sync(int fd, int (*sync_fd)(int fd))
{
	uint64_t id;
	int rc;

	if (!is_volume(fd))
		return sync_fd(fd);
	id = begin(REPLAY_SYNC, 0, 0, false, NULL, 0);
	rc = sync_fd(fd);
	end(id, rc != 0);
	return rc;
}

EXPORT int fsync(int fd)
{
	return record_sync(fd, real_fsync);
}

EXPORT int fdatasync(int fd)
{
	return record_sync(fd, real_fdatasync);
}
