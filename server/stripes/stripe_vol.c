/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_vol.c - the stripes of a volume that this server keeps: objects in memory, and which calls may work on them
 *
 * Operation: An object is in memory while calls refer to it, and for a while afterwards, so that the next call needs no
 *            worker. It then has its record and its open files. One call at a time has the turn: it alone loads, creates,
 *            changes and cuts the object, on a worker, and calls that want to begin wait for it.
 * Memory:    Objects belong to the table. Idle ones are limited; a worker that loads one closes the oldest of them.
 * Threads:   Any, under the lock of the volume.
 * Errors:    A text for the user, or -errno.
 */
#include "stripe_vol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/opt.h"
#include "fsync_batch.h"
#include "small_file.h"

struct stripe_times stripe_times = { .close_ns = 2 * NS_PER_S, .drain_ns = 30 * NS_PER_S,
				      .sweep_ns = 20 * NS_PER_S };

uint64_t stripe_now(void)
{
	struct timespec now;

	return clock_gettime(CLOCK_REALTIME_COARSE, &now) ? 0 : (uint64_t)now.tv_sec;
}

/* ---- the volume ----------------------------------------------------------------------------- */

/* Data that was acknowledged may be lost: the verifier changes. */
static void on_lost(void *ctx, uint64_t dev)
{
	struct stripe_vol *v = ctx;
	struct siphash_key random;

	(void)dev;
	atomic_fetch_add(&v->verf, siphash_key_random(&random) ? 1 : random.k0 | 1);
	if (log_limit_ok_under(&v->lock, &v->losses))
		log_err("stripes %s: a sync failed: data written before it may be lost; the clients that wrote it see that", v->name);
}

static int open_memory(struct stripe_vol *v)
{
	struct siphash_key random;
	int err = siphash_key_random(&random);

	if (err)
		return err;
	atomic_init(&v->verf, random.k0);
	err = siphash_key_random(&v->hash_key);
	if (!err)
		err = hash_init(&v->objects, v->idle_max);
	return err ? err : fsync_batch_create(on_lost, v, &v->fsyncs);
}

static int open_all(struct stripe_vol *v, const char *path, uint64_t volume, uint32_t server, char *why, size_t why_bytes)
{
	int err = v->name ? open_memory(v) : -ENOMEM;

	if (err)
		return opt_fail(err, why, why_bytes, "%s", strerror(-err));
	err = stripe_dir_open(path, volume, server, &v->dir, why, why_bytes);
	if (err)
		return err;
	err = term_load(v->dir.fd, &v->manager.era);
	return err ? opt_fail(err, why, why_bytes, "%s/term: %s", path, strerror(-err)) : 0;
}

int stripe_vol_open(const char *name, const char *path, uint64_t volume, uint32_t server, unsigned nreactors,
		    struct stripe_vol **ret, char *why, size_t why_bytes)
{
	struct stripe_vol *v = calloc(1, sizeof(*v));
	int err;

	if (!v)
		return opt_fail(-ENOMEM, why, why_bytes, "out of memory");
	atomic_init(&v->refs, 1);
	v->name = strdup(name);
	v->dir.fd = v->dir.objects = -1;
	v->nreactors = nreactors;
	v->idle_max = MAX(STRIPE_FILES_IDLE / (nreactors + 1), 64u); /* each has one more for itself */
	v->losses = v->damages = (struct log_limit)LOG_LIMIT_INIT;
	pthread_mutex_init(&v->lock, NULL);
	list_init(&v->idle);
	list_init(&v->term_waiters);
	stripe_ops_init(&v->manager);
	err = open_all(v, path, volume, server, why, why_bytes);
	if (err)
		stripe_vol_put(v);
	else
		*ret = v;
	return err;
}

struct stripe_vol *stripe_vol_hold(struct stripe_vol *v)
{
	atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
	return v;
}

static void destroy_object(struct stripe_vol *v, struct stripe_object *o)
{
	stripe_disk_close(v, o);
	free(o);
}

void stripe_vol_put(struct stripe_vol *v)
{
	struct list *n;

	if (!v || atomic_fetch_sub(&v->refs, 1) != 1)
		return;
	while ((n = list_pop(&v->idle)) != NULL) {
		struct stripe_object *o = list_entry(n, struct stripe_object, idle);

		hash_del(&v->objects, &o->node);
		destroy_object(v, o);
	}
	hash_fini(&v->objects);
	fsync_batch_destroy(v->fsyncs);
	stripe_dir_close(&v->dir);
	pthread_mutex_destroy(&v->lock);
	free(v->name);
	free(v);
}

/* ---- objects -------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct stripe_vol *v, const stripe_name *name)
{
	uint8_t key[STRIPE_OBJECT_BYTES + 4];

	memcpy(key, name->object, STRIPE_OBJECT_BYTES);
	put_be32(key + STRIPE_OBJECT_BYTES, name->stripe);
	return siphash(&v->hash_key, key, sizeof(key));
}

static void hold(struct stripe_vol *v, struct stripe_object *o)
{
	if (o->refs++)
		return;
	list_del(&o->idle);
	v->nidle--;
}

/* Return: held; NULL: it is not in memory */
static struct stripe_object *find_object(struct stripe_vol *v, const stripe_name *name)
{
	hash_for_each_equal(n, &v->objects, hash_of(v, name)) {
		struct stripe_object *o = container_of(n, struct stripe_object, node);

		if (memcmp(o->name.object, name->object, STRIPE_OBJECT_BYTES) || o->name.stripe != name->stripe)
			continue;
		hold(v, o);
		return o;
	}
	return NULL;
}

struct stripe_object *stripe_object_get(struct stripe_vol *v, const stripe_name *name)
{
	struct stripe_object *o = find_object(v, name);

	if (o)
		return o;
	o = calloc(1, sizeof(*o) + v->nreactors * sizeof(struct store_file *));
	if (!o)
		return NULL;
	o->name = *name;
	o->refs = 1;
	o->fd = -1;
	o->rec = stripe_record_none();
	list_init(&o->idle);
	list_init(&o->waiters);
	stripe_ops_init(&o->ops);
	hash_grow(&v->objects);
	hash_add(&v->objects, &o->node, hash_of(v, name));
	return o;
}

void stripe_object_put(struct stripe_vol *v, struct stripe_object *o)
{
	if (--o->refs)
		return;
	if (o->exists) { /* of others nothing is open */
		list_add_tail(&v->idle, &o->idle);
		v->nidle++;
		return;
	}
	hash_del(&v->objects, &o->node);
	free(o);
}

struct stripe_object *stripe_object_pop_idle(struct stripe_vol *v)
{
	struct stripe_object *o;

	if (v->nidle <= v->idle_max)
		return NULL;
	o = list_first_entry(&v->idle, struct stripe_object, idle);
	list_del(&o->idle);
	v->nidle--;
	hash_del(&v->objects, &o->node);
	return o;
}

void stripe_object_release(struct stripe_object *o)
{
	o->busy = false;
	req_wake(&o->waiters);
}

void stripe_object_set(struct stripe_object *o, const struct stripe_record *rec)
{
	if (rec->epoch != o->rec.epoch || rec->removed != o->rec.removed)
		o->ops.era++;
	o->rec = *rec;
}

struct stripe_object *stripe_object_try(struct stripe_vol *v, const stripe_name *name)
{
	struct stripe_object *o;

	pthread_mutex_lock(&v->lock);
	o = stripe_object_get(v, name);
	if (o && (o->busy || stripe_ops_any(&o->ops))) {
		stripe_object_put(v, o);
		o = NULL;
	}
	if (o)
		o->busy = true;
	pthread_mutex_unlock(&v->lock);
	return o;
}

void stripe_object_done(struct stripe_vol *v, struct stripe_object *o)
{
	pthread_mutex_lock(&v->lock);
	stripe_object_release(o);
	stripe_object_put(v, o);
	pthread_mutex_unlock(&v->lock);
}
