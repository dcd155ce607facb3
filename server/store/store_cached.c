/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_cached.c - the store that goes through the page cache
 *
 * Operation: a read of what is cached is done on the spot with RWF_NOWAIT: no other thread, one kernel
 *            copy, straight into the caller's own memory where place.c found that the transport offers
 *            it. What would block goes to a worker, from where the reactor left off. So does all that is
 *            read from a file system that may ask another host or a process first (struct fs_limits), and
 *            all that is written: RWF_NOWAIT does not cover the lock of a frozen file system.
 *            In a file system that is memory and nothing else (tmpfs, ramfs) nothing waits and a sync
 *            is nothing, so all of it is done on the spot; Linux's tmpfs refuses RWF_NOWAIT.
 * Memory:    the caller's; a job rests inside each store_io.
 * Threads:   submit on the reactor, run_*() on a worker (memory: on the reactor), completions on the
 *            reactor again.
 * Errors:    as store_file.c says.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "reactor.h"
#include "store.h"
#include "store_file.h"

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

static void count_copied(struct store_io *io)
{
	if (io->copied)
		rpcrdma_count_copied(io->store->reactor->engine, io->copied);
	io->copied = 0;
}

static void job_done(struct worker_job *job)
{
	struct store_io *io = container_of(job, struct store_io, job);

	count_copied(io);
	io->done(io);
}

static int to_worker(struct store *s, struct store_io *io, void (*run)(struct worker_job *))
{
	io->job.run = run;
	io->job.done = job_done;
	io->job.client = io->client;
	io->job.dev = io->file->dev;
	reactor_count(s->reactor, store_worker);
	worker_submit(s->reactor->workers, s->reactor->engine, &io->job);
	return 0;
}

/* Nothing to wait for: what a worker would do, here and now. */
static int on_the_spot(struct store *s, struct store_io *io, void (*run)(struct worker_job *))
{
	run(&io->job);
	count_copied(io);
	reactor_count(s->reactor, store_now);
	return 1;
}

/* what can be read without waiting; Return: bytes or -errno */
static ssize_t read_now(struct store_io *io)
{
	ssize_t n = store_file_move(io->file->fd, io, 0, io->bytes, RWF_NOWAIT);

	if (n > 0) {
		io->head = io->copied = (uint32_t)n;
		count_copied(io);
	}
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
	/* as somebody else a worker writes: a reactor stays who it is, see creds.h */
	if (io->file->in_memory && creds_are_own(io->creds))
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
	}
	return now ? on_the_spot(s, io, run_sync) : to_worker(s, io, run_sync);
}

const struct store_ops store_cached_ops = {
	.name = "cached",
	.create = cached_create,
	.destroy = cached_destroy,
	.open = store_file_open,
	.adopt = store_file_adopt,
	.submit = cached_submit,
};
