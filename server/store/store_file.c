/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_file.c - common code of the stores that keep files in a file system
 *
 * Operation: Adopts descriptors, moves parts of operations by system calls, and interprets the results of stable writes and
 *            syncs.
 *            A stable write is a write and then a sync, in two system calls. The error of a write with RWF_SYNC
 *            does not tell which of the two failed: a user without space could make all others send their data
 *            again.
 * Memory:    The caller's.
 * Threads:   The one that owns the operation: its worker, or the reactor if nothing blocks.
 * Errors:    A short write succeeds with that many bytes. A write that fails after some bytes returns their number;
 *            the next write returns the error. A failed sync sets sync_failed: the kernel reports each loss once, so
 *            it must not be missed.
 */
#include "store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fsync_batch.h"

/* Sets O_NOATIME: reads by @fd no longer set the access time of its file. Return: false: the process neither owns the
 * file nor has CAP_FOWNER. */
static bool leave_atime(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !fcntl(fd, F_SETFL, flags | O_NOATIME);
}

void store_adopt(struct backing *b, int fd, bool write, struct store_file *ret)
{
	const struct fs_limits *fs = &b->limits;
	bool waits = fs->answers_at_once && !fs->in_memory; /* other file systems set it without blocking the reactor */

	*ret = (struct store_file){
		.fd = fd,
		.writable = write,
		.at_once = fs->answers_at_once,
		.in_memory = fs->in_memory,
		.fs = b->dev,
		.syncs = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP,
		.sets_atime = waits && !leave_atime(fd) && fs->atime != FS_ATIME_NEVER,
	};
	ret->no_nowait_read = ret->sets_atime;
}

/* Return: entry @i of the memory, with the bytes that are overwritten on both sides */
static struct iovec memory(const struct store_io *io, int i)
{
	struct iovec v = io->iov[i];

	if (!i) {
		v.iov_base = (char *)v.iov_base - io->ext_head;
		v.iov_len += io->ext_head;
	}
	if (i == io->iovcnt - 1)
		v.iov_len += io->ext_tail;
	return v;
}

int store_file_iov(const struct store_io *io, uint32_t skip, uint32_t len, struct iovec *out,
		   int max)
{
	int n = 0;

	for (int i = 0; i < io->iovcnt && n < max && len; i++) {
		struct iovec v = memory(io, i);

		if (skip >= v.iov_len) {
			skip -= (uint32_t)v.iov_len;
			continue;
		}
		out[n].iov_base = (char *)v.iov_base + skip;
		out[n].iov_len = MIN(v.iov_len - skip, len);
		len -= (uint32_t)out[n++].iov_len;
		skip = 0;
	}
	return n;
}

ssize_t store_file_move(int fd, const struct store_io *io, uint32_t skip, uint32_t len, int flags)
{
	struct iovec iov[STORE_FILE_IOV];
	int n = store_file_iov(io, skip, len, iov, STORE_FILE_IOV);
	off_t off = (off_t)(io->off - io->ext_head + skip);
	ssize_t got;

	do {
		got = io->op == STORE_READ ? preadv2(fd, iov, n, off, flags)
					   : pwritev2(fd, iov, n, off, flags);
	} while (got < 0 && errno == EINTR);
	return got >= 0 ? got : -errno;
}

int32_t store_file_by_steps(struct store_io *io, uint32_t at, ssize_t (*step)(struct store_io *io, uint32_t at))
{
	while (at < io->bytes) {
		ssize_t n = step(io, at);

		if (n < 0)
			return at ? (int32_t)at : (int32_t)n;
		if (!n)
			break;
		at += (uint32_t)n;
	}
	return (int32_t)at;
}

ssize_t store_file_through_cache(struct store_io *io, uint32_t at, uint32_t len)
{
	ssize_t n = store_file_move(io->file->fd, io, at, len, 0);

	if (n > 0)
		io->copied += (uint32_t)n;
	return n;
}

static ssize_t step(struct store_io *io, uint32_t at)
{
	return store_file_through_cache(io, at, io->bytes - at);
}

int32_t store_file_move_all(struct store_io *io)
{
	return store_file_by_steps(io, io->head, step);
}

/* Reports the loss at once, before the reactor gets the completion: once the kernel has reported the error here, a sync
 * of the same file by another descriptor may succeed. */
static void sync_failed(struct store_io *io)
{
	io->sync_failed = true;
	fsync_batch_lost(io->store->backing->fsyncs, io->file->dev);
}

/* Return: true for a stable change that has ended, and is not on disk yet. A WRITE ends with the bytes that it moved,
 * DISCARD and ZERO with their range. */
static bool needs_sync(const struct store_io *io)
{
	return io->stable != STORE_UNSTABLE && io->res > 0 &&
	       (io->op == STORE_WRITE || io->res == (int32_t)io->bytes);
}

/* Of two syncs of an open file at the same time the kernel tells one of a loss, and the other one returns 0. A
 * STORE_SYNC that returns 0 therefore runs when the write verifier has changed for every sync that has returned: its
 * caller compares verifiers. Memory loses nothing, and reactors do not wait. */
static void syncs_begin(struct store_file *f, bool alone)
{
	if (f->in_memory)
		return;
	if (alone)
		pthread_rwlock_wrlock(&f->syncs);
	else
		pthread_rwlock_rdlock(&f->syncs);
}

static void syncs_end(struct store_file *f)
{
	if (!f->in_memory)
		pthread_rwlock_unlock(&f->syncs);
}

static int sync_file(const struct store_io *io, bool metadata)
{
	return (metadata ? fsync(io->file->fd) : fdatasync(io->file->fd)) ? -errno : 0;
}

/* With backing.one_sync. The failure is reported before the next sync begins. */
static int sync_in_turn(const void *arg)
{
	const struct store_io *io = arg;
	int err = fdatasync(io->store->backing->sync_fd) ? -errno : 0;

	if (err)
		fsync_batch_lost(io->store->backing->fsyncs, io->file->dev);
	return err;
}

static int run_in_turn(struct store_io *io)
{
	int err = fsync_batch_run(io->store->backing->fsyncs, io->file->dev, io->file->ino, sync_in_turn, io);

	io->sync_failed = err != 0;
	return err;
}

static void stabilize(struct store_io *io)
{
	int err;

	if (!needs_sync(io))
		return;
	if (io->store->backing->one_sync) {
		err = run_in_turn(io);
		io->res = err ? err : io->res;
		return;
	}
	syncs_begin(io->file, false);
	err = sync_file(io, io->stable == STORE_FILE_SYNC);
	if (err) {
		io->res = err;
		sync_failed(io);
	}
	syncs_end(io->file);
}

void store_file_write(struct store_io *io, int32_t (*move)(struct store_io *io))
{
	io->res = io->creds ? creds_assume(io->creds) : 0;
	if (io->res)
		return;
	io->res = move(io);
	creds_resume();
	stabilize(io);
}

/* Syncs a part of a file and the metadata needed to read it, without other dirty data of the file. fsync() has no
 * range, but msync() of a mapping has one. It uses the same open file, so errors are reported as to fsync(). No page is
 * touched. mmap() blocks page faults of all threads of the process, so it must not wait: neither for an access time,
 * nor for another host or a process.
 * Return: 0; 1: use fsync(); -errno. */
static int sync_range(const struct store_file *f, uint64_t off, uint32_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = off - off % page;
	size_t len = (size_t)(off - from) + bytes;
	int err = 0;
	void *map;

	if (!bytes || f->in_memory || !f->at_once || f->sets_atime || bytes > SIZE_MAX - page)
		return 1;
	map = mmap(NULL, len, PROT_READ, MAP_SHARED, f->fd, (off_t)from);
	if (map == MAP_FAILED)
		return 1;
	if (msync(map, len, MS_SYNC))
		err = -errno;
	(void)munmap(map, len);
	return err;
}

void store_file_sync(struct store_io *io)
{
	if (io->store->backing->one_sync) {
		io->res = run_in_turn(io);
		return;
	}
	syncs_begin(io->file, true);
	io->res = sync_range(io->file, io->off, io->bytes);
	if (io->res > 0)
		io->res = sync_file(io, true);
	if (io->res)
		sync_failed(io);
	syncs_end(io->file);
}

/* A short read that reaches the last known end of the file is complete. */
bool store_file_is_complete(const struct store_io *io, uint32_t n)
{
	return n == io->bytes || io->off + n >= io->size_hint;
}

static void on_run(struct worker_job *job)
{
	struct store_io *io = container_of(job, struct store_io, job);

	io->done(io);
}

void store_file_run(struct store_io *io, void (*run)(struct worker_job *), void (*done)(struct worker_job *))
{
	io->job.run = run;
	io->job.done = done ? done : on_run;
	io->job.client = io->client;
	io->job.dev = io->file->dev;
	loop_submit(io->store->loop, &io->job);
}
