/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_cached.c - the store that goes through the page cache
 *
 * Operation: a read of what is cached, and an unstable write that needs no waiting, are done on the
 *            spot with RWF_NOWAIT: no other thread, one kernel copy, straight into the caller's own
 *            memory where place.c found that the transport offers it. What would block goes to a
 *            worker, from where the reactor left off. Stable writes go to a worker at once.
 *            In a file system that is memory and nothing else (tmpfs, ramfs) nothing waits and a sync
 *            is nothing, so all of it is done on the spot; Linux's tmpfs refuses RWF_NOWAIT.
 * Memory:    the caller's; a job rests inside each store_io.
 * Threads:   submit on the reactor, run_*() on a worker (memory: on the reactor), completions on the
 *            reactor again.
 * Errors:    a short write is a success of that many bytes; a write that failed after some bytes
 *            says how many went well, its error comes with the next. A failed sync sets
 *            sync_failed: the kernel tells each such loss once, so it must not be missed.
 */
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "commit.h"
#include "reactor.h"
#include "store.h"
#include "vfs.h"

#define IOV_MAX_HERE 64 /* more pieces than this take more than one system call */

static int cached_create(struct reactor *r, struct export *exp, struct store **ret)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->ops = &store_cached_ops;
	s->reactor = r;
	s->exp = exp;
	*ret = s;
	return 0;
}

static void cached_destroy(struct store *s)
{
	free(s);
}

static bool is_memory(int fd)
{
	struct statfs st;

	return !fstatfs(fd, &st) && (st.f_type == TMPFS_MAGIC || st.f_type == RAMFS_MAGIC);
}

static int cached_open(const struct fh_obj *o, bool write, struct store_file *ret)
{
	int fd = vfs_open_io(o, write);

	if (fd < 0)
		return fd;
	*ret = (struct store_file){ .fd = fd, .writable = write, .in_memory = is_memory(fd) };
	return 0;
}

static void cached_adopt(int fd, struct store_file *ret)
{
	*ret = (struct store_file){ .fd = fd, .writable = true, .in_memory = is_memory(fd) };
}

static void cached_close(struct store_file *f)
{
	close(f->fd);
}

/* The part of @io->iov from byte @skip on; Return: entries in @out */
static int iov_from(const struct store_io *io, uint32_t skip, struct iovec out[IOV_MAX_HERE])
{
	int n = 0;

	for (int i = 0; i < io->iovcnt && n < IOV_MAX_HERE; i++) {
		size_t len = io->iov[i].iov_len;

		if (skip >= len) {
			skip -= (uint32_t)len;
			continue;
		}
		out[n].iov_base = (char *)io->iov[i].iov_base + skip;
		out[n++].iov_len = len - skip;
		skip = 0;
	}
	return n;
}

static ssize_t move(const struct store_io *io, uint32_t skip, int flags)
{
	struct iovec iov[IOV_MAX_HERE];
	int n = iov_from(io, skip, iov);
	off_t off = (off_t)(io->off + skip);
	ssize_t got;

	do {
		got = io->op == STORE_READ ? preadv2(io->file->fd, iov, n, off, flags)
					   : pwritev2(io->file->fd, iov, n, off, flags);
	} while (got < 0 && errno == EINTR);
	return got >= 0 ? got : -errno;
}

/* Read to the end of @io or of the file, write to the end of @io: blocking.
 * @ret_err: what it ended with, which the result does not say after some bytes; or 0 */
static int32_t move_all(const struct store_io *io, int flags, int *ret_err)
{
	uint32_t at = io->head;

	*ret_err = 0;
	while (at < io->bytes) {
		ssize_t n = move(io, at, flags);

		if (n < 0) {
			*ret_err = (int)n;
			return at ? (int32_t)at : (int32_t)n;
		}
		if (!n)
			break;
		at += (uint32_t)n;
	}
	return (int32_t)at;
}

/* At once, and not only when the reactor hears of it: from the moment on when the kernel has told
 * us, a sync of the same file by another descriptor may go well. */
static void sync_failed(struct store_io *io)
{
	io->sync_failed = true;
	commit_lost(io->store->exp->commit);
}

/* May a stable write have ended so because of a loss? The file system's own words for it differ: EIO,
 * ENOSPC, EDQUOT, EROFS after it has given up. */
static bool says_lost(int err)
{
	return err && err != -EFBIG && err != -EPERM && err != -EINVAL && err != -EFAULT;
}

static void run_read(struct worker_job *job)
{
	struct store_io *io = container_of(job, struct store_io, job);
	int err;

	io->res = move_all(io, 0, &err);
}

static int32_t write_as_caller(struct store_io *io, int flags, int *ret_err)
{
	int32_t res = creds_assume(io->creds);

	*ret_err = 0;
	if (res)
		return res;
	res = move_all(io, flags, ret_err);
	creds_resume();
	return res;
}

/* File systems without the per-write flags get the system call behind it. */
static void write_then_sync(struct store_io *io)
{
	int fd = io->file->fd, err;

	io->res = write_as_caller(io, 0, &err);
	if (io->res > 0 && (io->stable == STORE_FILE_SYNC ? fsync(fd) : fdatasync(fd))) {
		io->res = -errno;
		sync_failed(io);
	}
}

static void run_write(struct worker_job *job)
{
	static const int flags[] = {
		[STORE_UNSTABLE] = 0,
		[STORE_DATA_SYNC] = RWF_DSYNC,
		[STORE_FILE_SYNC] = RWF_SYNC,
	};
	struct store_io *io = container_of(job, struct store_io, job);
	int err;

	io->res = write_as_caller(io, flags[io->stable], &err);
	if (io->stable == STORE_UNSTABLE)
		return;
	if (err == -EOPNOTSUPP)
		write_then_sync(io);
	else if (says_lost(err))
		sync_failed(io);
}

static void run_sync(struct worker_job *job)
{
	struct store_io *io = container_of(job, struct store_io, job);

	io->res = fsync(io->file->fd) ? -errno : 0;
	if (io->res)
		sync_failed(io);
}

static void count_copied(struct store_io *io, uint32_t bytes)
{
	rpcrdma_count_copied(io->store->reactor->engine, bytes);
}

static void job_done(struct worker_job *job)
{
	struct store_io *io = container_of(job, struct store_io, job);

	if (io->res > 0 && (uint32_t)io->res > io->head)
		count_copied(io, (uint32_t)io->res - io->head);
	io->done(io);
}

static int to_worker(struct store *s, struct store_io *io, void (*run)(struct worker_job *))
{
	io->job.run = run;
	io->job.done = job_done;
	reactor_count(s->reactor, store_worker);
	worker_submit(s->reactor->workers, s->reactor->engine, &io->job);
	return 0;
}

/* Nothing to wait for: what a worker would do, here and now. */
static int on_the_spot(struct store *s, struct store_io *io, void (*run)(struct worker_job *))
{
	run(&io->job);
	if (io->op != STORE_SYNC && io->res > 0)
		count_copied(io, (uint32_t)io->res);
	reactor_count(s->reactor, store_now);
	return 1;
}

/* a short read that reached the end as it was known is the end */
static bool is_complete(const struct store_io *io, uint32_t n)
{
	return n == io->bytes || io->off + n >= io->size_hint;
}

static int submit_read(struct store *s, struct store_io *io)
{
	ssize_t n = -EAGAIN;

	if (!io->file->no_nowait_read)
		n = move(io, 0, RWF_NOWAIT);
	if (n == -EOPNOTSUPP)
		io->file->no_nowait_read = true;
	if (n > 0) {
		io->head = (uint32_t)n;
		count_copied(io, io->head);
	}
	if (n >= 0 && is_complete(io, io->head)) {
		io->res = (int32_t)io->head;
		reactor_count(s->reactor, store_now);
		return 1;
	}
	if (n < 0 && n != -EAGAIN && n != -EOPNOTSUPP) {
		io->res = (int32_t)n;
		return 1;
	}
	return to_worker(s, io, run_read);
}

static int submit_write(struct store *s, struct store_io *io)
{
	ssize_t n;

	if (io->stable != STORE_UNSTABLE || io->file->no_nowait_write || io->has_setid)
		return to_worker(s, io, run_write);
	n = move(io, 0, RWF_NOWAIT);
	if (n == -EOPNOTSUPP)
		io->file->no_nowait_write = true;
	if (n > 0) {
		io->head = (uint32_t)n;
		count_copied(io, io->head);
	}
	if (n == (ssize_t)io->bytes) {
		io->res = (int32_t)n;
		reactor_count(s->reactor, store_now);
		return 1;
	}
	/* whatever is wrong, a worker finds it again with the caller's rights */
	return to_worker(s, io, run_write);
}

static int cached_submit(struct store *s, struct store_io *io)
{
	bool now = io->file->in_memory;

	io->head = 0;
	switch (io->op) {
	case STORE_READ:
		return now ? on_the_spot(s, io, run_read) : submit_read(s, io);
	case STORE_WRITE:
		return now ? on_the_spot(s, io, run_write) : submit_write(s, io);
	case STORE_SYNC:
		break;
	}
	return now ? on_the_spot(s, io, run_sync) : to_worker(s, io, run_sync);
}

const struct store_ops store_cached_ops = {
	.name = "cached",
	.create = cached_create,
	.destroy = cached_destroy,
	.open = cached_open,
	.adopt = cached_adopt,
	.close = cached_close,
	.submit = cached_submit,
};
