/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reactor.c - a thread with an engine, and the state that its connections share
 *
 * Operation: the thread only runs rpcrdma_engine_wait(), which calls the handlers of calls, completions,
 *            messages of workers and timers. At shutdown it drops new calls, and waits until calls in
 *            progress are answered or their time is up. Then it closes connections. The loop ends when
 *            the last connection has closed and no work is in progress.
 * Memory:    owns its use of the exports, its open files and its recycled requests.
 * Threads:   one; other threads use rpcrdma_engine_post().
 * Errors:    at creation only.
 */
#include "reactor.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "client.h"
#include "closing.h"
#include "nfs3_io.h"
#include "req.h"
#include "server_int.h"

#define EXPIRE_EVERY_NS (10 * NS_PER_S)
#define EXPIRE_AFTER_NS (30 * NS_PER_S)
#define EXPIRE_AGAIN_NS (20 * NS_PER_MS)
#define WRITABLE_EVERY_NS (500 * NS_PER_MS)
#define WRITABLE_AFTER_NS (1 * NS_PER_S) /* with WRITABLE_EVERY_NS: less than two seconds */
#define DRAIN_EVERY_NS (2 * NS_PER_MS)
#define PATHS_PART 4 /* of the descriptors of a reactor */
#define DIRTY_PART 8 /* of them: if as many files are dirty, the oldest are synced; one client may have twice as many */
#define LINES 4u

static void close_file(void *reactor, const struct store_file *f)
{
	closing_file(((struct reactor *)reactor)->closer, f);
}

static void on_cleaned(void *reactor, void *client)
{
	struct reactor *r = reactor;
	struct client *c = client;

	c->admission[r->idx].dirty--;
	client_put(c);
}

static const struct fdcache_ops file_ops = {
	.flush = nfs3_io_flush,
	.close = close_file,
	.cleaned = on_cleaned,
};

static void run_ask(struct worker_job *job)
{
	struct groups_entry *e = container_of(job, struct groups_entry, job);

	e->answer = groups_ask(e->uid);
}

static void done_ask(struct worker_job *job)
{
	groups_answered(container_of(job, struct groups_entry, job), clock_now_ns());
}

static void ask_groups(void *reactor, struct groups_entry *e)
{
	struct reactor *r = reactor;

	e->job.client = &e->client->workers;
	e->job.run = run_ask;
	e->job.done = done_ask;
	worker_submit(r->loop.workers, r->loop.engine, &e->job);
}

static const struct groups_ops group_ops = { .ask = ask_groups };

void reactor_trim(struct reactor *re)
{
	struct list *n;

	while (re->nreqs > re->taken_most && (n = list_pop(&re->free_reqs)) != NULL) {
		free(list_entry(n, struct req, link));
		re->nreqs--;
	}
	re->taken_most = re->taken;
}

static void free_reqs(struct reactor *re)
{
	struct list *n;

	while ((n = list_pop(&re->free_reqs)))
		free(list_entry(n, struct req, link));
}

static void on_expire(struct rpcrdma_timer *t)
{
	struct reactor *r = container_of(t, struct reactor, expire);
	uint64_t before_ns = clock_now_ns() - EXPIRE_AFTER_NS;
	bool files_left = fdcache_expire(r->files, before_ns) == FDCACHE_NOW;
	bool paths_left = fdcache_expire(r->paths, before_ns) == FDCACHE_NOW;

	if (files_left || paths_left) {
		rpcrdma_timer_set(r->loop.engine, t, EXPIRE_AGAIN_NS);
		return;
	}
	reactor_trim(r);
	place_pool_fini(r); /* few requests have more than one piece, so pieces are allocated again on demand */
	rpcrdma_timer_set(r->loop.engine, t, EXPIRE_EVERY_NS);
}

static void on_expire_writable(struct rpcrdma_timer *t)
{
	struct reactor *r = container_of(t, struct reactor, expire_writable);
	enum fdcache_left left = fdcache_expire_writable(r->files, clock_now_ns() - WRITABLE_AFTER_NS);

	atomic_store(&r->has_writable, left != FDCACHE_NONE);
	if (left != FDCACHE_NONE)
		rpcrdma_timer_set(r->loop.engine, t, left == FDCACHE_NOW ? EXPIRE_AGAIN_NS : WRITABLE_EVERY_NS);
}

struct fdcache_entry *reactor_keep_file(struct reactor *r, const struct fh *fh,
					const struct store_file *file, uint64_t dev, uint64_t ino)
{
	struct fdcache_entry *e = fdcache_insert(r->files, fh, file, dev, ino);

	if (e && e->file.writable && !atomic_load(&r->has_writable)) {
		atomic_store(&r->has_writable, true);
		rpcrdma_timer_set(r->loop.engine, &r->expire_writable, WRITABLE_EVERY_NS);
	}
	return e;
}

bool reactor_may_open(const struct reactor *r, const struct export *exp)
{
	size_t all, mine = closing_count(r->closer, exp->volume.dev, &all);

	return mine < r->files_max / 2 && (mine <= CLOSING_BATCH || all < r->files_max);
}

struct line { /* waiting requests of a file system */
	uint64_t fs;
	size_t room; /* number of requests that may resume */
};

/* Waiting requests are mostly for one or two file systems. With more than LINES, one may get its room twice. */
static struct line *find_line(struct reactor *r, const struct export *exp, size_t closed, struct line lines[LINES],
			      unsigned *next)
{
	struct line *l;
	size_t all;

	for (unsigned i = 0; i < LINES; i++)
		if (lines[i].fs == exp->volume.dev)
			return &lines[i];
	l = &lines[(*next)++ % LINES];
	l->fs = exp->volume.dev;
	if (!closing_count(r->closer, exp->volume.dev, &all)) /* no later close will resume them */
		l->room = SIZE_MAX;
	else
		l->room = reactor_may_open(r, exp) ? closed : 0;
	return l;
}

/* Files that are being opened are not counted. Without the limit of @closed, a file system could exceed its limit of
 * open files. */
void reactor_run_openers(struct reactor *r, size_t closed)
{
	struct list waiting = LIST_INIT(waiting), *n;
	struct line lines[LINES] = { { 0 } };
	unsigned next = 0;

	list_splice_tail(&waiting, &r->openers);
	while ((n = list_pop(&waiting)) != NULL) {
		struct req *req = list_entry(n, struct req, opener);
		struct line *l = find_line(r, req->exp, closed, lines, &next);

		if (l->room) {
			l->room--;
			req->running = false;
			req_run(req);
		} else {
			list_add_tail(&r->openers, n);
		}
	}
}

bool reactor_may_dirty(const struct reactor *r, const struct client *c)
{
	size_t most = r->files_max / 2, all = fdcache_dirty(r->files);

	return all < most && c->admission[r->idx].dirty < most - all;
}

void reactor_dirtied(struct reactor *r, struct fdcache_entry *e, struct client *c, uint64_t off, uint32_t bytes)
{
	/* Before this file becomes dirty: its data is not written yet. */
	if (!e->dirty && fdcache_dirty(r->files) >= r->files_max / DIRTY_PART)
		fdcache_flush_one(r->files);
	if (!fdcache_dirtied(e, off, bytes, c))
		return;
	client_hold(c);
	c->admission[r->idx].dirty++;
}

int reactor_create(struct server *srv, unsigned idx, enum rpcrdma_poll poll, size_t files_max,
		   bool manage_gids, struct reactor **ret)
{
	const struct rpcrdma_engine_attr attr = { .poll = poll };
	struct reactor *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->srv = srv;
	r->idx = idx;
	r->loop.workers = srv->workers;
	r->files_max = files_max;
	sem_init(&r->ended, 0, 0);
	list_init(&r->free_reqs);
	list_init(&r->openers);
	list_init(&r->free_pieces);
	fair_init(&r->admission);
	err = rpcrdma_engine_create(srv->domain, &attr, &r->loop.engine);
	if (!err)
		err = fdcache_create(files_max - files_max / PATHS_PART, &file_ops, r, &r->files);
	if (!err)
		err = fdcache_create(files_max / PATHS_PART, &file_ops, r, &r->paths);
	if (!err)
		err = closing_create(r, &r->closer);
	if (!err && manage_gids)
		err = groups_create(&group_ops, r, &r->groups);
	if (!err)
		err = exports_use_create(r, srv->exports, &r->exports);
	if (err) {
		reactor_destroy(r);
		return err;
	}
	r->expire.fn = on_expire;
	r->expire_writable.fn = on_expire_writable;
	*ret = r;
	return 0;
}

static void *reactor_main(void *arg)
{
	struct reactor *r = arg;

	creds_stay();
	rpcrdma_timer_set(r->loop.engine, &r->expire, EXPIRE_EVERY_NS);
	while (!r->loop.stop)
		(void)rpcrdma_engine_wait(r->loop.engine, -1);
	rpcrdma_timer_cancel(r->loop.engine, &r->expire);
	rpcrdma_timer_cancel(r->loop.engine, &r->expire_writable);
	sem_post(&r->ended);
	return NULL;
}

int reactor_run(struct reactor *r)
{
	int err = -pthread_create(&r->thread, NULL, reactor_main, r);

	r->running = !err;
	return err;
}

/* Runs one step of the shutdown at a time. Jobs on workers and operations of the transport cannot be cancelled:
 * reactor_join() stops waiting for them, this timer does not. */
static void on_drain(struct rpcrdma_timer *t)
{
	struct reactor *r = container_of(t, struct reactor, drain);
	/* work in progress that may have no request waiting for it */
	bool working = r->loop.flushing || groups_asking(r->groups);
	bool busy = r->taken > r->partial || working;

	if (!r->closing && (!busy || clock_now_ns() >= r->drain_until_ns)) {
		r->closing = true;
		(void)rpcrdma_engine_close_conns(r->loop.engine);
	}
	if (r->closing && !r->taken && !working && !atomic_load(&r->nconns))
		r->loop.stop = true;
	else
		rpcrdma_timer_set(r->loop.engine, t, DRAIN_EVERY_NS);
}

static void on_stop(struct rpcrdma_msg *msg)
{
	struct reactor *r = container_of(msg, struct reactor, stop_msg);

	r->draining = true;
	r->drain.fn = on_drain;
	on_drain(&r->drain);
}

void reactor_stop(struct reactor *r, uint64_t until_ns)
{
	r->drain_until_ns = until_ns;
	r->stop_msg.fn = on_stop;
	rpcrdma_engine_post(r->loop.engine, &r->stop_msg);
}

int reactor_join(struct reactor *r, uint64_t until_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(until_ns / NS_PER_S),
		.tv_nsec = (long)(until_ns % NS_PER_S),
	};

	if (!r->running)
		return 0;
	while (sem_clockwait(&r->ended, CLOCK_MONOTONIC, &ts)) {
		if (errno != EINTR)
			return -ETIMEDOUT;
	}
	pthread_join(r->thread, NULL);
	r->running = false;
	return 0;
}

void reactor_destroy(struct reactor *r)
{
	if (!r)
		return;
	r->loop.stop = true; /* if it never ran */
	/* process the messages that other threads have posted; there will be no more */
	while (r->loop.engine && rpcrdma_engine_poll(r->loop.engine) > 0)
		;
	free_reqs(r);
	place_pool_fini(r);
	fdcache_destroy(r->files);
	fdcache_destroy(r->paths);
	closing_destroy(r->closer);
	groups_destroy(r->groups);
	exports_use_put(r->exports); /* before the engine: its stores may have watches on it */
	rpcrdma_engine_destroy(r->loop.engine);
	sem_destroy(&r->ended);
	free(r);
}

/* A message about a file to another reactor; freed by its handler. */
struct file_msg {
	struct rpcrdma_msg msg;
	struct reactor *reactor;
	uint64_t dev, ino;
	uint64_t began_ns; /* beginning of the sync */
};

static void post_file(struct reactor *r, void (*fn)(struct rpcrdma_msg *msg), uint64_t dev,
		      uint64_t ino, uint64_t began_ns)
{
	struct file_msg *m = malloc(sizeof(*m));

	if (!m)
		return;
	*m = (struct file_msg){
		.msg.fn = fn,
		.reactor = r,
		.dev = dev,
		.ino = ino,
		.began_ns = began_ns,
	};
	rpcrdma_engine_post(r->loop.engine, &m->msg);
}

static void on_synced(struct rpcrdma_msg *msg)
{
	struct file_msg *m = container_of(msg, struct file_msg, msg);

	fdcache_synced(m->reactor->files, m->dev, m->ino, m->began_ns);
	free(m);
}

/* Without memory for the message, another reactor syncs the file again before it closes it. */
void reactor_file_synced(struct reactor *r, uint64_t dev, uint64_t ino, uint64_t began_ns)
{
	for (unsigned i = 0; i < r->srv->nreactors; i++) {
		struct reactor *other = r->srv->reactors[i];

		if (other != r && atomic_load(&other->has_writable))
			post_file(other, on_synced, dev, ino, began_ns);
	}
}

static void on_drop(struct rpcrdma_msg *msg)
{
	struct file_msg *m = container_of(msg, struct file_msg, msg);

	fdcache_drop_file(m->reactor->files, m->dev, m->ino);
	fdcache_drop_file(m->reactor->paths, m->dev, m->ino);
	free(m);
}

/* Without memory for the message, a reactor closes the file when it has not been used for a while. */
void reactor_drop_file(struct server *srv, uint64_t dev, uint64_t ino)
{
	for (unsigned i = 0; i < srv->nreactors; i++)
		post_file(srv->reactors[i], on_drop, dev, ino, 0);
}
