/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fsync_batch.c - several calls share one fsync, and how its failure is reported
 *
 * Operation: thirty calls that create names in one directory need thirty names on disk, not thirty syncs.
 *            Syncs of a file are numbered. A call needs the first sync that begins after its arrival:
 *            `begun + 1`. If no sync is running, the call runs it itself; otherwise it waits. When the
 *            running sync has ended, one of the waiting calls runs the next one for all of them. A single
 *            call does not wait for others: it syncs at once.
 *            A failed sync fails every call that it served, even if a later sync succeeds before such a
 *            call checks the result: the kernel reports each loss only once.
 * Memory:    a slot per file that is being synced, by malloc; without memory calls do not share syncs.
 * Threads:   workers. A lock per bucket protects its slots and all their members; it is not held while a sync runs.
 * Errors:    those of the sync.
 */
#include "fsync_batch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define BUCKETS 64u

struct slot {
	struct slot *next;
	uint64_t dev, ino;
	unsigned users; /* freed when it becomes 0 */
	bool running;
	uint64_t begun, ended; /* counts of syncs; syncs of a slot run one after the other */
	uint64_t failed;       /* number of the last failed sync; 0: none */
	int err;	       /* error of that sync */
};

struct bucket {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	struct slot *slots;
};

struct fsync_batch {
	void (*lost)(void *ctx, uint64_t dev);
	void *ctx;
	_Atomic uint64_t calls, syncs;
	struct bucket buckets[BUCKETS];
};

int fsync_batch_create(void (*lost)(void *ctx, uint64_t dev), void *ctx, struct fsync_batch **ret)
{
	struct fsync_batch *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->lost = lost;
	c->ctx = ctx;
	for (unsigned i = 0; i < BUCKETS; i++) {
		pthread_mutex_init(&c->buckets[i].lock, NULL);
		pthread_cond_init(&c->buckets[i].ended, NULL);
	}
	*ret = c;
	return 0;
}

void fsync_batch_destroy(struct fsync_batch *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < BUCKETS; i++) {
		pthread_cond_destroy(&c->buckets[i].ended);
		pthread_mutex_destroy(&c->buckets[i].lock);
	}
	free(c);
}

void fsync_batch_lost(const struct fsync_batch *c, uint64_t dev)
{
	if (c)
		c->lost(c->ctx, dev);
}

void fsync_batch_count(const struct fsync_batch *c, uint64_t *ret_calls, uint64_t *ret_syncs)
{
	*ret_calls = atomic_load(&c->calls);
	*ret_syncs = atomic_load(&c->syncs);
}

static struct slot *get(struct bucket *b, uint64_t dev, uint64_t ino)
{
	struct slot *s;

	for (s = b->slots; s; s = s->next) {
		if (s->ino == ino && s->dev == dev)
			break;
	}
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return NULL;
		s->dev = dev;
		s->ino = ino;
		s->next = b->slots;
		b->slots = s;
	}
	s->users++;
	return s;
}

static void put(struct bucket *b, struct slot *s)
{
	struct slot **p = &b->slots;

	if (--s->users)
		return;
	while (*p != s)
		p = &(*p)->next;
	*p = s->next;
	free(s);
}

/* Call with the lock held; it is released while the sync runs. */
static void run_next(struct fsync_batch *c, struct bucket *b, struct slot *s,
		     int (*sync)(const void *arg), const void *arg)
{
	int err;

	atomic_fetch_add(&c->syncs, 1);
	s->begun++;
	s->running = true;
	pthread_mutex_unlock(&b->lock);
	err = sync(arg);
	pthread_mutex_lock(&b->lock);
	s->running = false;
	s->ended++;
	if (err) {
		s->failed = s->ended;
		s->err = err;
	}
	pthread_cond_broadcast(&b->ended);
}

int fsync_batch_run(struct fsync_batch *c, uint64_t dev, uint64_t ino, int (*sync)(const void *arg),
	       const void *arg)
{
	struct bucket *b;
	struct slot *s;
	uint64_t need;
	int err;

	if (!c)
		return sync(arg);
	atomic_fetch_add(&c->calls, 1);
	b = &c->buckets[(ino ^ dev) % BUCKETS];
	pthread_mutex_lock(&b->lock);
	s = get(b, dev, ino);
	if (!s) {
		pthread_mutex_unlock(&b->lock);
		return sync(arg);
	}
	need = s->begun + 1;
	while (s->ended < need) {
		if (s->running)
			pthread_cond_wait(&b->ended, &b->lock);
		else
			run_next(c, b, s, sync, arg);
	}
	err = s->failed >= need ? s->err : 0;
	put(b, s);
	pthread_mutex_unlock(&b->lock);
	return err;
}
