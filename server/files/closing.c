/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * closing.c - descriptors that workers close for a reactor, many at a time
 *
 * Operation: a change of thread costs ten times what a close() does, so descriptors are collected, by file system,
 *            and go to a worker when a batch is full, when a request waits for room, or FLUSH_NS after the first of
 *            them came.
 * Memory:    a batch from its first descriptor until the worker is through with it.
 * Threads:   the reactor's, but for run_batch().
 * Errors:    none.
 */
#include "closing.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "reactor.h"
#include "req.h"
#include "worker.h"

#define BATCHES_MAX 4u /* of a file system, before it counts as slow */
#define FLUSH_NS (10 * NS_PER_MS)

struct batch {
	struct closing *closing;
	struct list link;
	struct worker_job job; /* .dev says of which file system */
	bool full;	       /* a worker has it */
	unsigned n;
	int fds[CLOSING_BATCH];
};

struct closing {
	struct reactor *reactor;
	struct list batches; /* few: those being filled, at most one for each file system, and those at a worker */
	struct rpcrdma_timer timer;
	bool timed;
};

static void end(struct batch *b)
{
	list_del(&b->link);
	free(b);
}

static void close_all(const struct batch *b)
{
	for (unsigned i = 0; i < b->n; i++)
		close(b->fds[i]);
}

static void run_batch(struct worker_job *job)
{
	close_all(container_of(job, struct batch, job));
}

static void submit(struct batch *b)
{
	struct reactor *r = b->closing->reactor;

	if (r->stop) { /* done_batch() would not run */
		close_all(b);
		end(b);
		return;
	}
	b->full = true;
	r->flushing++;
	worker_submit(r->workers, r->engine, &b->job);
}

/* Return: the batch of a file system that is not full yet, or NULL; and how many are at workers */
static struct batch *find(const struct closing *c, uint64_t fs, unsigned *full)
{
	struct batch *found = NULL;

	*full = 0;
	list_for_each(l, &c->batches) {
		struct batch *b = list_entry(l, struct batch, link);

		if (b->job.dev != fs)
			continue;
		*full += b->full;
		if (!b->full)
			found = b;
	}
	return found;
}

/* Begins with what was collected, unless @most batches of the file system are under way: then it is begun with when one
 * of those ends, and there is more of it. */
static void begin(struct closing *c, uint64_t fs, unsigned most)
{
	unsigned full;
	struct batch *b = find(c, fs, &full);

	if (b && full < most)
		submit(b);
}

static void done_batch(struct worker_job *job)
{
	struct batch *b = container_of(job, struct batch, job);
	struct closing *c = b->closing;
	uint64_t fs = job->dev;
	unsigned closed = b->n;

	c->reactor->flushing--;
	end(b);
	begin(c, fs, BATCHES_MAX);
	reactor_run_openers(c->reactor, closed); /* there is room now */
}

void closing_hurry(struct closing *c, uint64_t fs)
{
	begin(c, fs, 1);
}

static void on_timer(struct rpcrdma_timer *t)
{
	struct closing *c = container_of(t, struct closing, timer);

	c->timed = false;
	list_for_each_safe(n, &c->batches) {
		struct batch *b = list_entry(n, struct batch, link);

		if (!b->full)
			begin(c, b->job.dev, BATCHES_MAX);
	}
}

int closing_create(struct reactor *r, struct closing **ret)
{
	struct closing *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->reactor = r;
	list_init(&c->batches);
	c->timer.fn = on_timer;
	*ret = c;
	return 0;
}

void closing_destroy(struct closing *c)
{
	if (!c)
		return;
	rpcrdma_timer_cancel(c->reactor->engine, &c->timer);
	list_for_each_safe(n, &c->batches) {
		struct batch *b = list_entry(n, struct batch, link);

		close_all(b);
		end(b);
	}
	free(c);
}

static struct batch *new_batch(struct closing *c, uint64_t fs)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->closing = c;
	b->job = (struct worker_job){ .run = run_batch, .done = done_batch, .prompt = true, .dev = fs };
	list_add_tail(&c->batches, &b->link);
	if (!c->timed)
		rpcrdma_timer_set(c->reactor->engine, &c->timer, FLUSH_NS);
	c->timed = true;
	return b;
}

bool closing_has_room(const struct closing *c, uint64_t fs)
{
	unsigned full;

	(void)find(c, fs, &full);
	return full < BATCHES_MAX;
}

void closing_add(struct closing *c, uint64_t fs, int fd)
{
	unsigned full;
	struct batch *b = find(c, fs, &full);

	if (!b)
		b = new_batch(c, fs);
	if (!b) {
		close(fd);
		return;
	}
	b->fds[b->n++] = fd;
	if (b->n == CLOSING_BATCH)
		submit(b);
}

size_t closing_count(const struct closing *c, uint64_t fs, size_t *all)
{
	size_t n = 0;

	*all = 0;
	list_for_each(l, &c->batches) {
		const struct batch *b = list_entry(l, struct batch, link);

		n += b->job.dev == fs ? b->n : 0;
		*all += b->n;
	}
	return n;
}

void closing_file(struct closing *c, const struct store_file *f)
{
	closing_add(c, f->fs, f->fd);
	if (f->direct.state >= STORE_DIRECT_OPEN)
		closing_add(c, f->fs, f->direct.fd);
}
