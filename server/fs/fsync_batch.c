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
 * Threads:   workers. One lock protects the slots and all their members; it is not held while a sync runs.
 * Errors:    those of the sync.
 */
#include "fsync_batch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"
#include "dir_ctime.h"

#define CHAINS 64u

struct slot {
	struct hash_node node; /* fsync_batch->slots: hash of dev, ino */
	pthread_cond_t wake; /* a sync has ended */
	uint64_t dev, ino;
	unsigned users; /* freed when it becomes 0 */
	bool running;
	uint64_t begun, ended; /* counts of syncs; syncs of a slot run one after the other */
	uint64_t failed;       /* number of the last failed sync; 0: none */
	int err;	       /* error of that sync */
};

struct fsync_batch {
	void (*lost)(void *ctx, uint64_t dev);
	void *ctx;
	_Atomic uint64_t calls, syncs;
	pthread_mutex_t lock;
	struct hash slots;
};

int fsync_batch_create(void (*lost)(void *ctx, uint64_t dev), void *ctx, struct fsync_batch **ret)
{
	struct fsync_batch *c = calloc(1, sizeof(*c));

	if (!c || hash_init(&c->slots, CHAINS)) {
		free(c);
		return -ENOMEM;
	}
	c->lost = lost;
	c->ctx = ctx;
	pthread_mutex_init(&c->lock, NULL);
	*ret = c;
	return 0;
}

void fsync_batch_destroy(struct fsync_batch *c)
{
	if (!c)
		return;
	hash_fini(&c->slots);
	pthread_mutex_destroy(&c->lock);
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

static struct slot *get(struct fsync_batch *c, uint64_t dev, uint64_t ino)
{
	uint64_t hash = dir_ctime_hash(dev, ino);
	struct slot *s;

	hash_for_each_equal(n, &c->slots, hash) {
		s = container_of(n, struct slot, node);
		if (s->ino == ino && s->dev == dev) {
			s->users++;
			return s;
		}
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->dev = dev;
	s->ino = ino;
	s->users = 1;
	pthread_cond_init(&s->wake, NULL);
	hash_add(&c->slots, &s->node, hash);
	return s;
}

static void put(struct fsync_batch *c, struct slot *s)
{
	if (--s->users)
		return;
	hash_del(&c->slots, &s->node);
	pthread_cond_destroy(&s->wake);
	free(s);
}

/* Call with the lock held; it is released while the sync runs. */
static void run_next(struct fsync_batch *c, struct slot *s, int (*sync)(const void *arg), const void *arg)
{
	int err;

	atomic_fetch_add(&c->syncs, 1);
	s->begun++;
	s->running = true;
	pthread_mutex_unlock(&c->lock);
	err = sync(arg);
	pthread_mutex_lock(&c->lock);
	s->running = false;
	s->ended++;
	if (err) {
		s->failed = s->ended;
		s->err = err;
	}
	pthread_cond_broadcast(&s->wake);
}

int fsync_batch_run(struct fsync_batch *c, uint64_t dev, uint64_t ino, int (*sync)(const void *arg),
	       const void *arg)
{
	struct slot *s;
	uint64_t need;
	int err;

	if (!c)
		return sync(arg);
	atomic_fetch_add(&c->calls, 1);
	pthread_mutex_lock(&c->lock);
	s = get(c, dev, ino);
	if (!s) {
		pthread_mutex_unlock(&c->lock);
		return sync(arg);
	}
	need = s->begun + 1;
	while (s->ended < need) {
		if (s->running)
			pthread_cond_wait(&s->wake, &c->lock);
		else
			run_next(c, s, sync, arg);
	}
	err = s->failed >= need ? s->err : 0;
	put(c, s);
	pthread_mutex_unlock(&c->lock);
	return err;
}
