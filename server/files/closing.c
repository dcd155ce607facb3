/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * closing.c - descriptors that workers close for a reactor, in batches
 *
 * Operation: switching threads costs ten times as much as a close(), so descriptors are collected by file system. A
 *            batch goes to a worker when it is full, when a request waits for room, or FLUSH_NS after its first
 *            descriptor was added.
 * Memory:    a batch is allocated for its first descriptor and freed when the worker has closed all of them.
 * Threads:   the reactor's, except run_batch().
 * Errors:    none.
 */
#include "closing.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "store.h"

#define BATCHES_MAX 4u /* at workers, before a file system counts as slow */
#define FLUSH_NS (10 * NS_PER_MS)

struct batch {
	struct closing *closing;
	struct list link;
	struct worker_job job; /* .dev is the file system */
	bool full;	       /* a worker has it */
	unsigned n;
	int fds[CLOSING_BATCH];
};

struct closing {
	struct loop *loop;
	void (*closed)(void *ctx, size_t n);
	void *ctx;
	struct list batches; /* few: at most one being filled for each file system, and those at workers */
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
	struct loop *l = b->closing->loop;

	if (l->stop) { /* done_batch() would not run */
		close_all(b);
		end(b);
		return;
	}
	b->full = true;
	l->flushing++;
	loop_submit(l, &b->job);
}

/* Return: the batch of the file system that is being filled, or NULL; in @full the number of batches at workers */
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

/* Submits the batch being filled, unless @most batches of the file system are at workers. Then done_batch() submits it,
 * when more descriptors have been collected. */
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

	c->loop->flushing--;
	end(b);
	begin(c, fs, BATCHES_MAX);
	c->closed(c->ctx, closed);
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

int closing_create(struct loop *loop, void (*closed)(void *ctx, size_t n), void *ctx, struct closing **ret)
{
	struct closing *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->loop = loop;
	c->closed = closed;
	c->ctx = ctx;
	list_init(&c->batches);
	c->timer.fn = on_timer;
	*ret = c;
	return 0;
}

void closing_destroy(struct closing *c)
{
	if (!c)
		return;
	rpcrdma_timer_cancel(c->loop->engine, &c->timer);
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
		rpcrdma_timer_set(c->loop->engine, &c->timer, FLUSH_NS);
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
	if (f->use)
		f->use->end(f->use);
	closing_add(c, f->fs, f->fd);
	if (f->direct.state >= STORE_DIRECT_OPEN)
		closing_add(c, f->fs, f->direct.fd);
}
