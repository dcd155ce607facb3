/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_queue.c - the queue in which the requests of all clients wait for a disk
 *
 * Operation: Up to `depth` requests of a backing are in its stores. The others wait here, from all clients and
 *            reactors, and store_sched.c chooses the next one. A request that ends frees its slot. The next one is
 *            started by a message to its own reactor, where its store is, and never inside another request. A sync
 *            has no place on the disk: it does not wait here and takes no slot.
 *            The queue stands in front of a store of any kind. Stores without a queue do not use this file.
 * Memory:    A request waits inside its store_io. The queue is shared by all stores of the directory with the same
 *            scheduling options (store_shared.c).
 * Threads:   Submit and done on the request's reactor. Shared state is under one lock, held for one tree operation.
 * Errors:    None of its own.
 */
#include "store_queue.h"

#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "store.h"
#include "store_shared.h"

struct store_queue {
	struct store_shared shared;
	unsigned depth;
	pthread_mutex_t lock; /* over the rest */
	struct store_sched sched;
	unsigned out; /* in the stores, or on their way there */
};

static struct store_queue *queue_of(struct store_shared *s)
{
	return container_of(s, struct store_queue, shared);
}

static int queue_init(struct store_shared *s, const struct backing *b)
{
	const struct data_conf *d = b->data;
	struct store_queue *q = queue_of(s);

	pthread_mutex_init(&q->lock, NULL);
	q->depth = d->depth;
	if (d->sched == DATA_SCHED_DEADLINE)
		store_sched_init(&q->sched, d->deadline_ns, d->deadline_ns * DATA_DEADLINE_WRITES);
	else
		store_sched_init(&q->sched, 0, 0);
	return 0;
}

static void queue_fini(struct store_shared *s)
{
	pthread_mutex_destroy(&queue_of(s)->lock);
}

static const struct store_shared_kind queue_kind = {
	.bytes = sizeof(struct store_queue),
	.init = queue_init,
	.fini = queue_fini,
};

int store_queue_get(const struct backing *b, struct store_queue **ret)
{
	const struct data_conf *d = b->data;
	char how[STORE_SHARED_HOW_BYTES];
	struct store_shared *s;
	int err;

	if (d->sched == DATA_SCHED_NONE) {
		*ret = NULL;
		return 0;
	}
	(void)snprintf(how, sizeof(how), "%u %u %llu", d->sched, d->depth,
		       (unsigned long long)d->deadline_ns);
	err = store_shared_get(&queue_kind, b, how, &s);
	if (!err)
		*ret = queue_of(s);
	return err;
}

void store_queue_put(struct store_queue *q)
{
	if (q)
		store_shared_put(&q->shared);
}

/* ---- one request -------------------------------------------------------------------------- */

/* A slot is free: starts waiting requests. */
static void release(struct store_queue *q)
{
	struct sched_node *n;

	pthread_mutex_lock(&q->lock);
	q->out--;
	while (q->out < q->depth && (n = store_sched_take(&q->sched, clock_now_ns()))) {
		struct store_io *io = container_of(n, struct store_io, queue.node);

		q->out++;
		rpcrdma_engine_post(io->queue.store->loop->engine, &io->queue.msg);
	}
	pthread_mutex_unlock(&q->lock);
}

/* Releases the slot. After this the store may be gone. */
static void finish(struct store_io *io)
{
	struct store_queue *q = io->queue.store->queue;

	io->done = io->queue.done;
	release(q);
}

static void on_done(struct store_io *io)
{
	finish(io);
	io->done(io);
}

/* Return: 1 if it finished at once; then its slot is released. */
static int start(struct store_io *io)
{
	int now = store_begin(io->queue.store, io);

	if (now)
		finish(io);
	return now;
}

static void on_turn(struct rpcrdma_msg *msg)
{
	struct store_io *io = container_of(msg, struct store_io, queue.msg);

	if (io->queue.node.late)
		store_count(io->queue.store, sched_late);
	if (start(io))
		io->done(io);
}

static void count_wait(struct store *s, unsigned waiting)
{
	store_count(s, sched_waits);
	if (waiting > atomic_load_explicit(&s->counters->sched_wait_max, memory_order_relaxed))
		atomic_store_explicit(&s->counters->sched_wait_max, waiting, memory_order_relaxed);
}

int store_queue_submit(struct store *s, struct store_io *io)
{
	struct store_queue *q = s->queue;
	struct sched_node *n = &io->queue.node;
	unsigned waiting = 0;

	if (io->op == STORE_SYNC)
		return store_begin(s, io);
	n->dev = io->file->dev;
	n->ino = io->file->ino;
	n->off = io->off;
	n->end = io->off + io->bytes;
	n->write = store_op_changes(io->op);
	io->queue.store = s;
	io->queue.msg.fn = on_turn;
	io->queue.done = io->done;
	io->done = on_done;
	pthread_mutex_lock(&q->lock);
	if (q->out < q->depth) {
		q->out++;
		store_sched_pass(&q->sched, n);
	} else {
		store_sched_add(&q->sched, n, clock_now_ns());
		waiting = q->sched.n;
	}
	pthread_mutex_unlock(&q->lock);
	if (!waiting)
		return start(io);
	count_wait(s, waiting);
	return 0;
}
