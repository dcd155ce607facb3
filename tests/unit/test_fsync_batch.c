/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_fsync_batch.c - which callers share a sync, and which get its error
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/fs/fsync_batch.c"

#define FOLLOWERS 5u
#define DEV 1u

struct disk {
	struct fsync_batch *c;
	atomic_uint began, ended;
	sem_t go;
	int results[8]; /* of the first sync, the second ... */
	atomic_uint lost;
};

struct caller {
	pthread_t thread;
	struct disk *d;
	uint64_t ino;
	int err;
	unsigned ended; /* syncs that had ended when the call returned */
};

static int held_sync(const void *arg)
{
	struct disk *d = (struct disk *)(uintptr_t)arg;
	unsigned n = atomic_fetch_add(&d->began, 1);

	while (sem_wait(&d->go))
		;
	atomic_fetch_add(&d->ended, 1);
	return d->results[n];
}

static void *call(void *arg)
{
	struct caller *c = arg;

	c->err = fsync_batch_run(c->d->c, DEV, c->ino, held_sync, c->d);
	c->ended = atomic_load(&c->d->ended);
	return NULL;
}

static void start(struct disk *d, struct caller *c, uint64_t ino)
{
	*c = (struct caller){ .d = d, .ino = ino };
	assert_int_equal(pthread_create(&c->thread, NULL, call, c), 0);
}

static void until(const atomic_uint *v, unsigned n)
{
	while (atomic_load(v) < n)
		sched_yield();
}

static void on_lost(void *ctx, uint64_t dev)
{
	atomic_fetch_add(&((struct disk *)ctx)->lost, dev == DEV);
}

static int setup(void **state)
{
	struct disk *d = calloc(1, sizeof(*d));

	sem_init(&d->go, 0, 0);
	assert_int_equal(fsync_batch_create(on_lost, d, &d->c), 0);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct disk *d = *state;

	fsync_batch_destroy(d->c);
	sem_destroy(&d->go);
	free(d);
	return 0;
}

/* Waits until @n callers are in fsync_batch_run() for the file. */
static void until_users(struct disk *d, uint64_t ino, unsigned n)
{
	struct hash_node *node;
	unsigned have;

	do {
		sched_yield();
		pthread_mutex_lock(&d->c->lock);
		node = hash_first(&d->c->slots, dir_ctime_hash(1, ino));
		have = node ? container_of(node, struct slot, node)->users : 0;
		pthread_mutex_unlock(&d->c->lock);
	} while (have < n);
}

/* Callers that arrive during a sync need another one. They share it if they arrived before it began. */
static void shares(void **state)
{
	struct disk *d = *state;
	struct caller first, v[FOLLOWERS];
	uint64_t calls, syncs;

	start(d, &first, 7);
	until(&d->began, 1);
	for (unsigned i = 0; i < FOLLOWERS; i++)
		start(d, &v[i], 7);
	until_users(d, 7, FOLLOWERS + 1);
	assert_int_equal(atomic_load(&d->began), 1);
	sem_post(&d->go);
	pthread_join(first.thread, NULL);
	for (unsigned i = 0; i < FOLLOWERS; i++)
		sem_post(&d->go); /* more than the one sync needs */
	assert_int_equal(first.err, 0);
	for (unsigned i = 0; i < FOLLOWERS; i++) {
		pthread_join(v[i].thread, NULL);
		assert_int_equal(v[i].err, 0);
		assert_true(v[i].ended >= 2);
	}
	assert_int_equal(atomic_load(&d->began), 2);
	fsync_batch_count(d->c, &calls, &syncs);
	assert_int_equal(calls, FOLLOWERS + 1);
	assert_int_equal(syncs, 2);
	assert_int_equal(d->c->slots.n, 0);
}

/* Syncs of two files run at the same time. */
static void other_file(void **state)
{
	struct disk *d = *state;
	struct caller a, b;

	start(d, &a, 7);
	until(&d->began, 1);
	start(d, &b, 8);
	until(&d->began, 2);
	sem_post(&d->go);
	sem_post(&d->go);
	pthread_join(a.thread, NULL);
	pthread_join(b.thread, NULL);
	assert_int_equal(atomic_load(&d->began), 2);
}

/* A caller gets the error of its own sync only. */
static void failures(void **state)
{
	struct disk *d = *state;
	struct caller a, b;

	d->results[0] = -EIO;
	start(d, &a, 7);
	until(&d->began, 1);
	start(d, &b, 7);
	until_users(d, 7, 2);
	sem_post(&d->go);
	pthread_join(a.thread, NULL);
	assert_int_equal(a.err, -EIO);
	until(&d->began, 2);
	sem_post(&d->go);
	pthread_join(b.thread, NULL);
	assert_int_equal(b.err, 0);
	/* a later sync does not return the error again */
	sem_post(&d->go);
	assert_int_equal(fsync_batch_run(d->c, DEV, 7, held_sync, d), 0);
}

static void alone(void **state)
{
	struct disk *d = *state;

	d->results[0] = -EROFS;
	sem_post(&d->go);
	assert_int_equal(fsync_batch_run(NULL, DEV, 7, held_sync, d), -EROFS);
	fsync_batch_lost(NULL, DEV);
	fsync_batch_lost(d->c, DEV);
	assert_int_equal(atomic_load(&d->lost), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(shares, setup, teardown),
		cmocka_unit_test_setup_teardown(other_file, setup, teardown),
		cmocka_unit_test_setup_teardown(failures, setup, teardown),
		cmocka_unit_test_setup_teardown(alone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
