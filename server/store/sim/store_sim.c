/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_sim.c - a store that is as slow as a modelled disk
 *
 * Operation: The contents are in the files, by way of store_cached.c; only time is modelled. When a request arrives,
 *            the model (store_sim_model.c) says when it completes. It waits in a list ordered by that time. A timer of
 *            this reactor runs when the first one is due. Only then are its bytes moved, so that they do not appear
 *            in the file before a disk would have written them. A sync waits for all requests that the disk got before.
 *            If files are in memory, the requests of a reactor end in the order in which they are due. Otherwise
 *            moving the bytes takes additional time, on a worker.
 *            With a volatile cache, the data that an unstable write overwrites is saved first (store_sim_cache.c).
 *            DISCARD and ZERO are writes without transfer. EXTENTS is a question to the file system, and takes no time.
 * Memory:    A request waits inside its store_io. All reactors share the model and the cache of a disk
 *            (store_shared.c).
 * Threads:   The reactor's. The disk's lock protects model and cache. It is held for arithmetic, and for copies in
 *            memory if there is a volatile cache.
 * Errors:    EIO for the request that is configured to fail; none of its bytes are moved. All others are of the store
 *            below.
 */
#include "store_sim.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "store.h"
#include "store_file.h"
#include "store_shared.h"
#include "store_sim_cache.h"
#include "store_sim_model.h"

struct sim_disk {
	struct store_shared shared;
	pthread_mutex_t lock; /* over the rest */
	struct sim_model model;
	struct sim_cache cache; /* empty unless the model forgets */
};

struct sim_store {
	struct store store;
	struct store *below; /* moves the bytes */
	struct sim_disk *disk;
	struct rpcrdma_watch alarm;
	bool watched; /* from the first request on: a store without requests may be destroyed on any thread */
	struct list due; /* store_io.link, ordered by due time */
};

static struct sim_store *sim_of(struct store *s)
{
	return container_of(s, struct sim_store, store);
}

static struct sim_disk *disk_of(struct store_shared *s)
{
	return container_of(s, struct sim_disk, shared);
}

/* ---- the disk ----------------------------------------------------------------------------- */

static int disk_init(struct store_shared *s, const struct backing *b)
{
	struct sim_disk *d = disk_of(s);

	pthread_mutex_init(&d->lock, NULL);
	sim_model_init(&d->model, &b->data->store.sim);
	sim_cache_init(&d->cache, SIM_CACHE_BYTES);
	return 0;
}

static void disk_fini(struct store_shared *s)
{
	struct sim_disk *d = disk_of(s);

	sim_cache_fini(&d->cache);
	pthread_mutex_destroy(&d->lock);
}

static const struct store_shared_kind disk_kind = {
	.bytes = sizeof(struct sim_disk),
	.init = disk_init,
	.fini = disk_fini,
};

/* The result of store_sim_cut() */
struct cut {
	size_t bytes;
	bool can;
};

static void cut_disk(struct store_shared *s, void *ctx)
{
	struct sim_disk *d = disk_of(s);
	struct cut *cut = ctx;

	pthread_mutex_lock(&d->lock);
	cut->can |= d->model.spec.forgets;
	cut->bytes += sim_cache_cut(&d->cache);
	pthread_mutex_unlock(&d->lock);
}

int store_sim_cut(const char *dir, size_t *ret_bytes)
{
	int fd = open(dir, O_PATH | O_CLOEXEC), err;
	struct cut cut = { 0 };
	uint64_t dev, ino;

	if (fd < 0)
		return -errno;
	err = store_file_identify(fd, &dev, &ino);
	close(fd);
	if (err)
		return err;
	store_shared_each(&disk_kind, dev, ino, cut_disk, &cut);
	if (!cut.can)
		return -ENOENT;
	*ret_bytes = cut.bytes;
	return 0;
}

/* ---- due time ----------------------------------------------------------------------------- */

/* Sets the reactor's timer. If @due_ns has passed, the timer expires at once. */
static void set_alarm(struct sim_store *s, uint64_t due_ns)
{
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(due_ns / NS_PER_S),
					       .tv_nsec = (long)(due_ns % NS_PER_S) } };

	(void)timerfd_settime(s->alarm.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Searches from the end: most requests belong there, since the members take turns. */
static void enqueue(struct sim_store *s, struct store_io *io)
{
	struct list *at = s->due.prev;

	while (at != &s->due &&
	       list_entry(at, struct store_io, link)->sim.due_ns > io->sim.due_ns)
		at = at->prev;
	list_insert_between(&io->link, at, at->next);
	if (list_first(&s->due) == &io->link)
		set_alarm(s, io->sim.due_ns);
}

static int watch_alarm(struct sim_store *s)
{
	int err;

	if (s->watched)
		return 0;
	err = rpcrdma_engine_watch(s->store.loop->engine, &s->alarm, EPOLLIN);
	s->watched = !err;
	return err;
}

static int sim_submit(struct store *store, struct store_io *io)
{
	struct sim_store *s = sim_of(store);
	struct sim_disk *d = s->disk;
	const struct sim_request rq = {
		.dev = io->file->dev,
		.ino = io->file->ino,
		.off = io->off,
		.bytes = io->bytes,
		.no_data = io->op != STORE_READ && io->op != STORE_WRITE,
	};
	const bool is_request = io->op == STORE_READ || store_op_changes(io->op);
	struct sim_answer a = { .due_ns = clock_now_ns() };

	io->res = watch_alarm(s);
	if (io->res)
		return 1;
	pthread_mutex_lock(&d->lock);
	if (io->op == STORE_SYNC)
		a.due_ns = sim_model_idle(&d->model, a.due_ns);
	else if (is_request)
		a = sim_model_submit(&d->model, a.due_ns, &rq);
	pthread_mutex_unlock(&d->lock);
	if (is_request)
		store_count(store, sim_requests);
	store_count_n(store, sim_seeks, a.seeks);
	io->sim.due_ns = a.due_ns;
	io->sim.fails = a.fails;
	enqueue(s, io);
	return 0;
}

/* ---- completion --------------------------------------------------------------------------- */

static void move(struct store_io *io)
{
	if (store_submit_below(sim_of(io->store)->below, io))
		io->done(io);
}

/* Updates the cache. Reads from the file the data that a write overwrites; Return: 0 or -errno */
static int remember(struct store_io *io)
{
	struct sim_disk *d = sim_of(io->store)->disk;
	uint64_t dev = io->file->dev, ino = io->file->ino;
	int err = 0;

	pthread_mutex_lock(&d->lock);
	if (io->op == STORE_SYNC && !io->bytes)
		sim_cache_sync(&d->cache, dev, ino);
	else if (store_op_changes(io->op) && io->stable == STORE_UNSTABLE)
		err = sim_cache_write(&d->cache, io->file->fd, dev, ino, io->off, io->bytes);
	else
		sim_cache_stable(&d->cache, dev, ino, io->off, io->bytes);
	pthread_mutex_unlock(&d->lock);
	return err;
}

static void run_remember(struct worker_job *job)
{
	struct store_io *io = container_of(job, struct store_io, job);

	io->res = remember(io);
}

static void remembered(struct store_io *io)
{
	if (io->res)
		io->done(io);
	else
		move(io);
}

static void on_remembered(struct worker_job *job)
{
	remembered(container_of(job, struct store_io, job));
}

static void deliver(struct store_io *io)
{
	struct sim_store *s = sim_of(io->store);

	if (io->sim.fails) {
		io->res = -EIO;
		io->done(io);
	} else if (io->op == STORE_READ || io->op == STORE_EXTENTS || !s->disk->model.spec.forgets) {
		move(io);
	} else if (io->file->in_memory && io->bytes <= RPCRDMA_BUF_MAX) {
		io->res = remember(io);
		remembered(io);
	} else {
		store_file_run(io, run_remember, on_remembered);
	}
}

/* The last completion may destroy the store. */
static void on_alarm(struct rpcrdma_watch *w, uint32_t events)
{
	struct sim_store *s = container_of(w, struct sim_store, alarm);
	struct list now_due = LIST_INIT(now_due);
	struct store_io *io;
	uint64_t now, n;

	(void)events;
	if (read(w->fd, &n, sizeof(n)) < 0)
		return; /* it was set again in between */
	now = clock_now_ns();
	while ((io = list_first_entry(&s->due, struct store_io, link)) &&
	       io->sim.due_ns <= now) {
		list_del(&io->link);
		list_add_tail(&now_due, &io->link);
	}
	if (io)
		set_alarm(s, io->sim.due_ns);
	while ((io = list_first_entry(&now_due, struct store_io, link))) {
		list_del(&io->link);
		deliver(io);
	}
}

/* ---- the store ---------------------------------------------------------------------------- */

static void sim_destroy(struct store *store)
{
	struct sim_store *s = sim_of(store);

	if (s->watched)
		rpcrdma_engine_unwatch(store->loop->engine, &s->alarm);
	if (s->alarm.fd >= 0)
		close(s->alarm.fd);
	store_destroy(s->below);
	if (s->disk)
		store_shared_put(&s->disk->shared);
	free(s);
}

static int get_disk(struct sim_store *s, const struct backing *b)
{
	char how[STORE_SPEC_PRINT_BYTES];
	struct store_shared *shared;
	int err;

	err = store_shared_get(&disk_kind, b,
			       store_spec_print(&b->data->store, how, sizeof(how)), &shared);
	if (!err)
		s->disk = disk_of(shared);
	return err;
}

static int sim_create(const struct store_env *env, struct backing *b, struct store **ret)
{
	struct sim_store *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->store = (struct store){ .ops = &store_sim_ops, .loop = env->loop, .counters = env->counters, .backing = b };
	s->alarm = (struct rpcrdma_watch){ .fd = -1, .fn = on_alarm };
	list_init(&s->due);
	err = store_create(&store_cached_ops, env, b, &s->below);
	if (!err)
		err = get_disk(s, b);
	s->alarm.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (!err && s->alarm.fd < 0)
		err = -errno;
	if (err) {
		sim_destroy(&s->store);
		return err;
	}
	*ret = &s->store;
	return 0;
}

const struct store_ops store_sim_ops = {
	.name = "sim",
	.create = sim_create,
	.destroy = sim_destroy,
	.open = store_adopt,
	.submit = sim_submit,
};
