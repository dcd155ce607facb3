/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fdcache.c - cache of open files by handle, with the access rights of callers
 *
 * Operation: a READ or WRITE of a recently used file finds its descriptor and its permission here and
 *            needs no worker. Beyond `max` entries the least recently used one is evicted. A writable
 *            descriptor is closed soon after the last WRITE, once it is clean. Files that are not used
 *            for a while are closed, because an open file that another process removed keeps its space.
 * Memory:    entries are allocated and freed when files are opened and closed, never on a hit.
 * Threads:   each reactor has its own caches; no lock. Two reactors may have the same file open: the
 *            kernel keeps a loss of data until a descriptor of the file has reported it.
 * Errors:    without memory a file is not cached.
 */
#include "fdcache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define CLOSE_PART 8 /* a round of expiry closes at most max / CLOSE_PART + 1 entries */

struct fdcache {
	size_t max, dirty;
	const struct fdcache_ops *ops;
	void *ctx;
	struct siphash_key key;
	struct list lru; /* all entries in the table, least recently used first */
	struct list writable; /* the writable entries of lru, lowest wrote_ns first */
	struct list unsynced; /* dirty entries that are not flushing, longest in this state first */
	struct hash by_fh;
};

int fdcache_create(size_t max, const struct fdcache_ops *ops, void *ctx, struct fdcache **ret)
{
	struct fdcache *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	err = siphash_key_random(&c->key);
	if (!err)
		err = hash_init(&c->by_fh, MAX(max, 64));
	if (err) {
		free(c);
		return err;
	}
	c->max = max;
	c->ops = ops;
	c->ctx = ctx;
	list_init(&c->lru);
	list_init(&c->writable);
	list_init(&c->unsynced);
	*ret = c;
	return 0;
}

static struct fdcache_entry *find(struct fdcache *c, const void *fh, uint32_t len)
{
	if (len > FH_MAX)
		return NULL;
	hash_for_each_equal(n, &c->by_fh, siphash(&c->key, fh, len)) {
		struct fdcache_entry *e = container_of(n, struct fdcache_entry, node);

		if (!e->retired && e->fh.len == len && !memcmp(e->fh.data, fh, len))
			return e;
	}
	return NULL;
}

static void set_clean(struct fdcache_entry *e)
{
	struct fdcache *c = e->cache;

	if (!e->dirty)
		return;
	e->dirty = false;
	list_del(&e->unsynced);
	c->dirty--;
	c->ops->cleaned(c->ctx, e->dirtier);
}

static void entry_close(struct fdcache_entry *e)
{
	set_clean(e);
	e->cache->ops->close(e->cache->ctx, &e->file);
	free(e);
}

/* Removes @e from the table; frees it now or at its last fdcache_put(). */
static void drop(struct fdcache_entry *e)
{
	struct fdcache *c = e->cache;

	hash_del(&c->by_fh, &e->node);
	list_del(&e->lru);
	if (e->file.writable)
		list_del(&e->writable);
	e->dropped = true;
	if (!e->pins)
		entry_close(e);
}

static void flush(struct fdcache_entry *e)
{
	if (e->flushing)
		return;
	e->flushing = true;
	list_del(&e->unsynced);
	e->pins++;
	e->cache->ops->flush(e->cache->ctx, e);
}

/* @e is not held. */
static void let_go(struct fdcache_entry *e)
{
	if (e->dirty)
		flush(e);
	else
		drop(e);
}

static void retire(struct fdcache_entry *e)
{
	e->retired = true;
	if (!e->pins)
		let_go(e);
}

/* Makes room for one more entry, if there is a clean one that is not held. Flushes dirty ones on the way. */
static void trim(struct fdcache *c)
{
	if (c->by_fh.n < c->max)
		return;
	list_for_each_safe(n, &c->lru) {
		struct fdcache_entry *e = list_entry(n, struct fdcache_entry, lru);

		if (e->pins)
			continue;
		if (!e->dirty) {
			drop(e);
			return;
		}
		flush(e);
	}
}

struct fdcache_entry *fdcache_find(struct fdcache *c, const void *fh, uint32_t len, bool write)
{
	struct fdcache_entry *e = find(c, fh, len);

	if (!e || (write && !e->file.writable))
		return NULL;
	e->pins++;
	e->used_ns = clock_now_ns();
	list_del(&e->lru);
	list_add_tail(&c->lru, &e->lru);
	if (write) {
		e->wrote_ns = e->used_ns;
		list_del(&e->writable);
		list_add_tail(&c->writable, &e->writable);
	}
	return e;
}

static bool is_file(const struct fdcache_entry *e, uint64_t dev, uint64_t ino)
{
	return e->file.ino == ino && e->file.dev == dev;
}

struct fdcache_entry *fdcache_insert(struct fdcache *c, const struct fh *fh, const struct store_file *file)
{
	struct fdcache_entry *old = find(c, fh->data, fh->len), *e;

	if (old && !is_file(old, file->dev, file->ino)) { /* the handle means another file now */
		retire(old);
		old = NULL;
	}
	e = calloc(1, sizeof(*e));
	if (!e) {
		c->ops->close(c->ctx, file);
		return NULL;
	}
	e->cache = c;
	list_init(&e->unsynced);
	e->fh = *fh;
	e->file = *file;
	if (old && old->file.writable >= file->writable) {
		entry_close(e);
		return fdcache_find(c, fh->data, fh->len, file->writable);
	}
	trim(c);
	e->pins = 1;
	e->used_ns = e->wrote_ns = clock_now_ns();
	old = find(c, fh->data, fh->len);
	if (old)
		drop(old); /* it could not be written by, so it is not dirty */
	hash_add(&c->by_fh, &e->node, siphash(&c->key, fh->data, fh->len));
	list_add_tail(&c->lru, &e->lru);
	if (e->file.writable)
		list_add_tail(&c->writable, &e->writable);
	return e;
}

void fdcache_put(struct fdcache_entry *e)
{
	if (--e->pins)
		return;
	if (e->dropped)
		entry_close(e);
	else if (e->retired)
		let_go(e);
}

void fdcache_drop_file(struct fdcache *c, uint64_t dev, uint64_t ino)
{
	list_for_each_safe(n, &c->lru) {
		struct fdcache_entry *e = list_entry(n, struct fdcache_entry, lru);

		if (is_file(e, dev, ino))
			drop(e);
	}
}

void fdcache_retire(struct fdcache *c, bool (*gone)(void *ctx, const struct fh *fh), void *ctx)
{
	list_for_each_safe(n, &c->lru) {
		struct fdcache_entry *e = list_entry(n, struct fdcache_entry, lru);

		if (!e->retired && gone(ctx, &e->fh))
			retire(e);
	}
}

static size_t most_at_once(const struct fdcache *c)
{
	return c->max / CLOSE_PART + 1;
}

enum fdcache_left fdcache_expire(struct fdcache *c, uint64_t before_ns)
{
	size_t most = most_at_once(c);

	list_for_each_safe(n, &c->lru) {
		struct fdcache_entry *e = list_entry(n, struct fdcache_entry, lru);

		if (e->used_ns >= before_ns)
			return FDCACHE_LATER;
		if (e->pins)
			continue;
		if (!most--)
			return FDCACHE_NOW;
		let_go(e);
	}
	return FDCACHE_NONE;
}

enum fdcache_left fdcache_expire_writable(struct fdcache *c, uint64_t before_ns)
{
	size_t most = most_at_once(c);

	list_for_each_safe(n, &c->writable) {
		struct fdcache_entry *e = list_entry(n, struct fdcache_entry, writable);

		if (e->wrote_ns >= before_ns)
			break;
		if (e->dirty)
			continue;
		if (e->pins)
			e->retired = true; /* later requests open a new descriptor */
		else if (most--)
			drop(e);
		else
			return FDCACHE_NOW;
	}
	return list_is_empty(&c->writable) ? FDCACHE_NONE : FDCACHE_LATER;
}

/* If a flush is in progress, fdcache_flushed() queues the entry: that flush may have begun before it became dirty. */
static void wait_for_sync(struct fdcache_entry *e)
{
	if (e->dirty && !e->flushing)
		list_add_tail(&e->cache->unsynced, &e->unsynced);
}

void fdcache_flush_one(struct fdcache *c)
{
	if (!list_is_empty(&c->unsynced))
		flush(list_entry(list_first(&c->unsynced), struct fdcache_entry, unsynced));
}

bool fdcache_dirtied(struct fdcache_entry *e, uint64_t off, uint32_t bytes, void *dirtier)
{
	bool was_clean = !e->dirty;

	e->dirty_from = e->dirty ? MIN(e->dirty_from, off) : off;
	e->dirty_end = e->dirty ? MAX(e->dirty_end, off + bytes) : off + bytes;
	e->writing++;
	if (was_clean) {
		e->dirty = true;
		e->cache->dirty++;
		e->dirtier = dirtier;
		wait_for_sync(e);
	}
	return was_clean;
}

size_t fdcache_dirty(const struct fdcache *c)
{
	return c->dirty;
}

void fdcache_wrote(struct fdcache_entry *e)
{
	e->dirty_seq++;
	e->dirty_ns = clock_now_ns();
	e->writing--;
}

/* If the range does not cover all dirty data, the result never equals dirty_seq in fdcache_cleaned(). */
uint64_t fdcache_sync_seq(const struct fdcache_entry *e, uint64_t off, uint32_t bytes)
{
	bool all = !bytes || (off <= e->dirty_from && e->dirty_end <= off + bytes);

	return all ? e->dirty_seq : e->dirty_seq - 1;
}

void fdcache_cleaned(struct fdcache_entry *e, uint64_t seq)
{
	if (e->dirty_seq == seq && !e->writing)
		set_clean(e);
}

void fdcache_synced(struct fdcache *c, uint64_t dev, uint64_t ino, uint64_t began_ns)
{
	list_for_each_safe(n, &c->writable) {
		struct fdcache_entry *e = list_entry(n, struct fdcache_entry, writable);

		if (is_file(e, dev, ino) && !e->writing && e->dirty_ns < began_ns)
			set_clean(e);
	}
}

void fdcache_flushed(struct fdcache_entry *e, uint64_t seq)
{
	e->flushing = false;
	fdcache_cleaned(e, seq);
	wait_for_sync(e);
	/* A retired entry that is still dirty stays in the table for fdcache_expire(): retrying at once might
	 * never end. */
	if (e->retired && e->dirty && e->pins == 1 && !e->dropped)
		e->pins = 0;
	else
		fdcache_put(e);
}

/* ---- permission --------------------------------------------------------------------------- */

static bool is_of(const struct fdcache_perm *p, uint64_t user, const struct statx *stx)
{
	return p->user == user && p->ctime_s == stx->stx_ctime.tv_sec &&
	       p->ctime_ns == stx->stx_ctime.tv_nsec;
}

struct timespec fdcache_look(const struct fs_limits *fs)
{
	struct timespec now;

	if (clock_gettime(CLOCK_REALTIME_COARSE, &now))
		return (struct timespec){ 0 };
	if (fs->time_s) {
		now.tv_sec -= now.tv_sec % (time_t)fs->time_s;
		now.tv_nsec = 0;
	} else if (fs->time_ns) {
		now.tv_nsec -= now.tv_nsec % (long)fs->time_ns;
	}
	return now;
}

/* Return: true: the clock was past the file's ctime before @stx was read, so that a later change of mode also
 * changes the ctime */
static bool is_settled(const struct timespec *looked, const struct statx *stx)
{
	if (looked->tv_sec != stx->stx_ctime.tv_sec)
		return looked->tv_sec > stx->stx_ctime.tv_sec;
	return looked->tv_nsec > (long)stx->stx_ctime.tv_nsec;
}

/* Return: the slot for the rights of @user, or NULL: note nothing */
static struct fdcache_perm *perm_of(struct fdcache_entry *e, uint64_t user,
				    const struct timespec *looked, const struct statx *stx)
{
	struct fdcache_perm *p = NULL;

	if (!is_settled(looked, stx))
		return NULL;
	for (unsigned i = 0; i < FDCACHE_PERMS && !p; i++) {
		if (e->perms[i].user == user)
			p = &e->perms[i];
	}
	if (!p)
		p = &e->perms[e->perm_next++ % FDCACHE_PERMS];
	if (!is_of(p, user, stx))
		*p = (struct fdcache_perm){
			.user = user,
			.ctime_s = stx->stx_ctime.tv_sec,
			.ctime_ns = stx->stx_ctime.tv_nsec,
		};
	return p;
}

bool fdcache_rights(const struct fdcache_entry *e, uint64_t user, const struct statx *stx,
		    unsigned mask, unsigned *ret)
{
	for (unsigned i = 0; i < FDCACHE_PERMS; i++) {
		const struct fdcache_perm *p = &e->perms[i];

		if (is_of(p, user, stx) && (p->asked & mask) == mask) {
			*ret = p->rights & mask;
			return true;
		}
	}
	return false;
}

void fdcache_learn_rights(struct fdcache_entry *e, uint64_t user, const struct timespec *looked,
			  const struct statx *stx, unsigned asked, unsigned rights)
{
	struct fdcache_perm *p = perm_of(e, user, looked, stx);

	if (!p)
		return;
	p->asked |= (uint8_t)asked;
	p->rights = (uint8_t)((p->rights & ~asked) | (rights & asked));
}

size_t fdcache_count(const struct fdcache *c)
{
	return c->by_fh.n;
}

void fdcache_destroy(struct fdcache *c)
{
	if (!c)
		return;
	list_for_each_safe(n, &c->lru)
		drop(list_entry(n, struct fdcache_entry, lru));
	hash_fini(&c->by_fh);
	free(c);
}
