/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_cached.c - the store that uses the page cache
 *
 * Operation: A read of cached data is done on the reactor with RWF_NOWAIT: no other thread, and one copy by the kernel.
 *            That copy goes directly into the client's memory if the transport offers it (place.c). A read that would
 *            block goes to a worker, which continues where the reactor stopped. So do all reads from a file system that
 *            may ask another host or a process first (struct fs_limits), and all writes: RWF_NOWAIT does not cover the
 *            lock of a frozen file system.
 *            A file system in memory (tmpfs, ramfs) never waits and has nothing to sync, so reads, writes and syncs
 *            are done on the reactor. Linux's tmpfs rejects RWF_NOWAIT.
 *            Operations on space are in store_space.c.
 * Memory:    The caller's; each store_io contains a job.
 * Threads:   Submit on the reactor, run_*() on a worker (memory: on the reactor), completions on the reactor.
 * Errors:    See store_file.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "store.h"
#include "store_file.h"
#include "store_space.h"

static int cached_create(const struct store_env *env, struct backing *b, struct store **ret)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct store){ .ops = &store_cached_ops, .loop = env->loop, .counters = env->counters, .backing = b };
	*ret = s;
	return 0;
}

static void cached_destroy(struct store *s)
{
	free(s);
}

static void run_read(struct worker_job *job)
{
	struct store_io *io = container_of(job, struct store_io, job);

	io->res = store_file_move_all(io);
}

static void run_write(struct worker_job *job)
{
	store_file_write(container_of(job, struct store_io, job), store_file_move_all);
}

static void run_sync(struct worker_job *job)
{
	store_file_sync(container_of(job, struct store_io, job));
}

static int to_worker(struct store *s, struct store_io *io, void (*run)(struct worker_job *))
{
	store_count(s, store_worker);
	store_file_run(io, run, NULL);
	return 0;
}

/* Does the worker's job on the reactor, as it does not wait. */
static int on_the_spot(struct store *s, struct store_io *io, void (*run)(struct worker_job *))
{
	run(&io->job);
	store_count(s, store_now);
	return 1;
}

/* Reads what can be read without waiting; Return: bytes or -errno */
static ssize_t read_now(struct store_io *io)
{
	ssize_t n = store_file_move(io->file->fd, io, 0, io->bytes, RWF_NOWAIT);

	if (n > 0)
		io->head = io->copied = (uint32_t)n;
	return n;
}

static int submit_read(struct store *s, struct store_io *io)
{
	ssize_t n = -EAGAIN;

	if (io->file->at_once && !io->file->no_nowait_read)
		n = read_now(io);
	if (n == -EOPNOTSUPP)
		io->file->no_nowait_read = true;
	if (n >= 0 && store_file_is_complete(io, io->head)) {
		io->res = (int32_t)io->head;
		store_count(s, store_now);
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
	/* a worker writes as another user: a reactor never changes its credentials, see creds.h */
	if (io->file->in_memory && (!io->creds || creds_are_own(io->creds)))
		return on_the_spot(s, io, run_write);
	return to_worker(s, io, run_write);
}

static int cached_submit(struct store *s, struct store_io *io)
{
	bool now = io->file->in_memory;

	switch (io->op) {
	case STORE_READ:
		return now ? on_the_spot(s, io, run_read) : submit_read(s, io);
	case STORE_WRITE:
		return submit_write(s, io);
	case STORE_SYNC:
		break;
	case STORE_DISCARD:
	case STORE_ZERO:
	case STORE_EXTENTS:
		return store_space_submit(s, io);
	}
	return now ? on_the_spot(s, io, run_sync) : to_worker(s, io, run_sync);
}

const struct store_ops store_cached_ops = {
	.name = "cached",
	.create = cached_create,
	.destroy = cached_destroy,
	.open = store_adopt,
	.submit = cached_submit,
};
