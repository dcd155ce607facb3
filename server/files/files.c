/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * files.c - the open files of one reactor: two caches, their limits, and what waits for room in them
 *
 * Operation: fdcache.c caches the files, closing.c closes their descriptors. This file expires what is not used, counts
 *            descriptors that wait to be closed and dirty files against their limits, and queues what has to wait.
 * Memory:    Embedded in its owner.
 * Threads:   The reactor's; files_tell_synced() and files_tell_removed() post to it.
 * Errors:    At creation only.
 */
#include "files.h"

#include <stdlib.h>

#include "base/clock.h"

#define EXPIRE_EVERY_NS (10 * NS_PER_S)
#define EXPIRE_AFTER_NS (30 * NS_PER_S)
#define EXPIRE_AGAIN_NS (20 * NS_PER_MS)
#define WRITABLE_EVERY_NS (500 * NS_PER_MS)
#define WRITABLE_AFTER_NS (1 * NS_PER_S) /* with WRITABLE_EVERY_NS: less than two seconds */
#define PATHS_PART 4 /* of the descriptors of a reactor */
#define DIRTY_PART 8 /* of them: if as many files are dirty, the oldest are synced; one client may have twice as many */
#define LINES 4u

static void flush_file(void *files, struct fdcache_entry *e)
{
	struct files *f = files;

	f->flush(f->ctx, e);
}

static void close_file(void *files, const struct store_file *file)
{
	closing_file(((struct files *)files)->closer, file);
}

static void on_cleaned(void *files, void *client)
{
	struct files *f = files;
	struct client *c = client;

	c->admission[f->reactor].dirty--;
	client_put(c);
}

static const struct fdcache_ops cache_ops = {
	.flush = flush_file,
	.close = close_file,
	.cleaned = on_cleaned,
};

/* ---- expiry ------------------------------------------------------------------------------- */

static void on_expire(struct rpcrdma_timer *t)
{
	struct files *f = container_of(t, struct files, expire);
	uint64_t before_ns = clock_now_ns() - EXPIRE_AFTER_NS;
	bool files_left = fdcache_expire(f->io, before_ns) == FDCACHE_NOW;
	bool paths_left = fdcache_expire(f->paths, before_ns) == FDCACHE_NOW;

	rpcrdma_timer_set(f->loop->engine, t, files_left || paths_left ? EXPIRE_AGAIN_NS : EXPIRE_EVERY_NS);
}

static void on_expire_writable(struct rpcrdma_timer *t)
{
	struct files *f = container_of(t, struct files, expire_writable);
	enum fdcache_left left = fdcache_expire_writable(f->io, clock_now_ns() - WRITABLE_AFTER_NS);

	atomic_store(&f->has_writable, left != FDCACHE_NONE);
	if (left != FDCACHE_NONE)
		rpcrdma_timer_set(f->loop->engine, t, left == FDCACHE_NOW ? EXPIRE_AGAIN_NS : WRITABLE_EVERY_NS);
}

struct fdcache_entry *files_keep(struct files *f, const struct fh *fh, const struct store_file *file)
{
	struct fdcache_entry *e = fdcache_insert(f->io, fh, file);

	if (e && e->file.writable && !atomic_load(&f->has_writable)) {
		atomic_store(&f->has_writable, true);
		rpcrdma_timer_set(f->loop->engine, &f->expire_writable, WRITABLE_EVERY_NS);
	}
	return e;
}

/* ---- limits ------------------------------------------------------------------------------- */

bool files_may_open(const struct files *f, uint64_t fs)
{
	size_t all, mine = closing_count(f->closer, fs, &all);

	return mine < f->max / 2 && (mine <= CLOSING_BATCH || all < f->max);
}

void files_wait(struct files *f, struct files_waiter *w)
{
	list_add_tail(&f->waiting, &w->link);
	closing_hurry(f->closer, w->fs);
}

bool files_leave(struct files_waiter *w)
{
	bool waits = list_is_linked(&w->link);

	list_del(&w->link);
	return waits;
}

struct line { /* what waits for a file system */
	uint64_t fs;
	size_t room; /* number of waiters that may resume */
};

/* Most waiters are for one or two file systems. With more than LINES, one may get its room twice. */
static struct line *find_line(struct files *f, uint64_t fs, size_t closed, struct line lines[LINES], unsigned *next)
{
	struct line *l;
	size_t all;

	for (unsigned i = 0; i < LINES; i++)
		if (lines[i].fs == fs)
			return &lines[i];
	l = &lines[(*next)++ % LINES];
	l->fs = fs;
	if (!closing_count(f->closer, fs, &all)) /* no later close will resume them */
		l->room = SIZE_MAX;
	else
		l->room = files_may_open(f, fs) ? closed : 0;
	return l;
}

/* Files that are being opened are not counted. Without the limit of @closed, a file system could exceed its limit of
 * open files. */
void files_resume(struct files *f, size_t closed)
{
	struct list waiting = LIST_INIT(waiting), *n;
	struct line lines[LINES] = { { 0 } };
	unsigned next = 0;

	list_splice_tail(&waiting, &f->waiting);
	while ((n = list_pop(&waiting)) != NULL) {
		struct files_waiter *w = list_entry(n, struct files_waiter, link);
		struct line *l = find_line(f, w->fs, closed, lines, &next);

		if (l->room) {
			l->room--;
			w->resume(w);
		} else {
			list_add_tail(&f->waiting, n);
		}
	}
}

static void on_closed(void *files, size_t closed)
{
	files_resume(files, closed);
}

bool files_may_dirty(const struct files *f, const struct client *c)
{
	size_t most = f->max / 2, all = fdcache_dirty(f->io);

	return all < most && c->admission[f->reactor].dirty < most - all;
}

void files_dirtied(struct files *f, struct fdcache_entry *e, struct client *c, uint64_t off, uint32_t bytes)
{
	/* Before this file becomes dirty: its data is not written yet. */
	if (!e->dirty && fdcache_dirty(f->io) >= f->max / DIRTY_PART)
		fdcache_flush_one(f->io);
	if (!fdcache_dirtied(e, off, bytes, c))
		return;
	client_hold(c);
	c->admission[f->reactor].dirty++;
}

/* ---- life --------------------------------------------------------------------------------- */

int files_create(struct files *f, struct loop *loop, unsigned reactor, size_t max,
		 void (*flush)(void *ctx, struct fdcache_entry *e), void *ctx)
{
	int err;

	*f = (struct files){ .loop = loop, .flush = flush, .ctx = ctx, .reactor = reactor, .max = max };
	list_init(&f->waiting);
	f->expire.fn = on_expire;
	f->expire_writable.fn = on_expire_writable;
	err = fdcache_create(max - max / PATHS_PART, &cache_ops, f, &f->io);
	if (!err)
		err = fdcache_create(max / PATHS_PART, &cache_ops, f, &f->paths);
	if (!err)
		err = closing_create(loop, on_closed, f, &f->closer);
	return err;
}

void files_start(struct files *f)
{
	rpcrdma_timer_set(f->loop->engine, &f->expire, EXPIRE_EVERY_NS);
}

void files_stop(struct files *f)
{
	rpcrdma_timer_cancel(f->loop->engine, &f->expire);
	rpcrdma_timer_cancel(f->loop->engine, &f->expire_writable);
}

void files_destroy(struct files *f)
{
	fdcache_destroy(f->io);
	fdcache_destroy(f->paths);
	closing_destroy(f->closer);
}

/* ---- messages ----------------------------------------------------------------------------- */

/* About a file; freed by its handler. */
struct file_msg {
	struct rpcrdma_msg msg;
	struct files *files;
	uint64_t dev, ino;
	uint64_t began_ns; /* beginning of the sync */
};

static void post_file(struct files *f, void (*fn)(struct rpcrdma_msg *msg), uint64_t dev, uint64_t ino,
		      uint64_t began_ns)
{
	struct file_msg *m = malloc(sizeof(*m));

	if (!m)
		return;
	*m = (struct file_msg){ .msg.fn = fn, .files = f, .dev = dev, .ino = ino, .began_ns = began_ns };
	rpcrdma_engine_post(f->loop->engine, &m->msg);
}

static void on_synced(struct rpcrdma_msg *msg)
{
	struct file_msg *m = container_of(msg, struct file_msg, msg);

	fdcache_synced(m->files->io, m->dev, m->ino, m->began_ns);
	free(m);
}

void files_tell_synced(struct files *f, uint64_t dev, uint64_t ino, uint64_t began_ns)
{
	if (atomic_load(&f->has_writable))
		post_file(f, on_synced, dev, ino, began_ns);
}

static void on_removed(struct rpcrdma_msg *msg)
{
	struct file_msg *m = container_of(msg, struct file_msg, msg);

	fdcache_drop_file(m->files->io, m->dev, m->ino);
	fdcache_drop_file(m->files->paths, m->dev, m->ino);
	free(m);
}

void files_tell_removed(struct files *f, uint64_t dev, uint64_t ino)
{
	post_file(f, on_removed, dev, ino, 0);
}
