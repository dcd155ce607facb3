/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_leases.c - which clients may have written what the manager of a volume does not know yet
 *
 * Operation: A hash table has the objects, each with a list of its leases. All leases last equally long, so the list of
 *            those that have not lapsed is in the order of their ends: a renewed one goes to its tail. A lease that has
 *            lapsed stays with its object until the stripe servers were asked: it counts until then.
 *            Leases of unknown clients have instance 0: those of markers that were there at the start, and the ones that
 *            are merged because an object has too many. A merged one counts against the client whose call merged it.
 * Memory:    At most VOLUME_LEASES_MAX leases, and an object has one at least.
 * Threads:   Any, under the lock of the table. The lock of an inode comes before it.
 * Errors:    As volume_leases.h says for each function.
 */
#include "volume_leases.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/siphash.h"
#include "volume_pending.h"
#include "volume_todo.h"

#define BUCKETS 256u
#define UNKNOWN BUCKETS /* bucket of leases of markers that were there */
#define MARKER_TEXT (2 * FH_MAX)

struct object {
	struct hash_node node;
	struct list due; /* in table->due, or in no list */
	struct list leases;
	unsigned n;
	char name[STRIPE_OBJECT_BYTES];
	struct fh fh;
};

struct lease {
	struct list link;    /* object->leases */
	struct list by_time; /* table->by_time; in no list: it has lapsed */
	struct object *of;
	uint64_t instance, number, until_ns;
	unsigned bucket;
};

struct volume_leases {
	int dir;
	struct siphash_key key;
	pthread_mutex_t lock; /* over the next */
	struct hash objects;
	struct list by_time, due;
	unsigned n, ndue;
	uint64_t given, lapsed, refused;
	unsigned used[BUCKETS + 1]; /* by client; a few clients may share one */
};

/* ---- the table ------------------------------------------------------------------------------ */

/* Names of objects are random, and the manager's own. */
static uint64_t hash_of(const char name[STRIPE_OBJECT_BYTES])
{
	uint64_t hash;

	memcpy(&hash, name, sizeof(hash));
	return hash;
}

static struct object *find_object(const struct volume_leases *t, const char name[STRIPE_OBJECT_BYTES])
{
	hash_for_each_equal(n, &t->objects, hash_of(name)) {
		struct object *o = container_of(n, struct object, node);

		if (!memcmp(o->name, name, sizeof(o->name)))
			return o;
	}
	return NULL;
}

static struct lease *find_lease(const struct object *o, uint64_t instance)
{
	list_for_each(n, &o->leases) {
		struct lease *l = list_entry(n, struct lease, link);

		if (l->instance == instance)
			return l;
	}
	return NULL;
}

static struct object *add_object(struct volume_leases *t, const char name[STRIPE_OBJECT_BYTES], const struct fh *fh)
{
	struct object *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	memcpy(o->name, name, sizeof(o->name));
	o->fh = *fh;
	list_init(&o->due);
	list_init(&o->leases);
	hash_add(&t->objects, &o->node, hash_of(name));
	hash_grow(&t->objects);
	return o;
}

static void set_due(struct volume_leases *t, struct object *o, bool due)
{
	if (list_is_linked(&o->due) == due)
		return;
	if (due)
		list_add_tail(&t->due, &o->due);
	else
		list_del(&o->due);
	t->ndue += due ? 1u : -1u;
}

static void free_object(struct volume_leases *t, struct object *o)
{
	set_due(t, o, false);
	hash_del(&t->objects, &o->node);
	free(o);
}

static void free_lease(struct volume_leases *t, struct lease *l)
{
	list_del(&l->link);
	list_del(&l->by_time);
	l->of->n--;
	t->used[l->bucket]--;
	t->n--;
	free(l);
}

static void renew_lease(struct volume_leases *t, struct lease *l, uint64_t number)
{
	l->number = MAX(l->number, number);
	l->until_ns = clock_now_ns() + volume_lease_ns();
	list_del(&l->by_time);
	list_add_tail(&t->by_time, &l->by_time);
}

static struct lease *add_lease(struct volume_leases *t, struct object *o, uint64_t instance, unsigned bucket)
{
	struct lease *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->of = o;
	l->instance = instance;
	l->bucket = bucket;
	list_init(&l->by_time);
	list_add_tail(&o->leases, &l->link);
	o->n++;
	t->used[bucket]++;
	t->n++;
	return l;
}

static unsigned bucket_of(const struct volume_leases *t, const struct rpcrdma_client_id *id)
{
	uint64_t words[3] = { (uint64_t)id->kind, id->scope, id->key };

	return (unsigned)(siphash(&t->key, words, sizeof(words)) % BUCKETS);
}

/* Return: true: the client has no share left for another lease of @o, which may be NULL */
static bool is_refused(const struct volume_leases *t, const struct object *o, unsigned bucket)
{
	bool merges = o && o->n >= VOLUME_LEASES_OBJECT && !find_lease(o, 0);

	return t->n >= VOLUME_LEASES_MAX - 2 || t->used[bucket] + 1 + merges > VOLUME_LEASES_MAX - t->n;
}

/* The client of the lease that was renewed first becomes an unknown one. The lease of unknown ones is that of the caller's
 * share: it stays when the others of the object have ended. */
static int merge_leases(struct volume_leases *t, struct object *o, unsigned bucket)
{
	struct lease *unknown = find_lease(o, 0), *oldest = NULL;

	list_for_each(n, &o->leases) {
		struct lease *l = list_entry(n, struct lease, link);

		if (l->instance && (!oldest || l->until_ns < oldest->until_ns))
			oldest = l;
	}
	if (!unknown)
		unknown = add_lease(t, o, 0, bucket);
	if (!unknown)
		return -ENOMEM;
	renew_lease(t, unknown, 0);
	free_lease(t, oldest);
	return 0;
}

/* ---- markers -------------------------------------------------------------------------------- */

/* Return: 0; 1: there is one already; -errno */
static int make_marker(const struct volume_leases *t, const char object[STRIPE_OBJECT_BYTES], const struct fh *fh)
{
	char name[VOLUME_OBJECT_TEXT], text[MARKER_TEXT + 1];

	volume_object_text(object, name);
	text_put_hex(fh->data, fh->len, text);
	if (!symlinkat(text, t->dir, name))
		return 0;
	return errno == EEXIST ? 1 : -errno;
}

static void drop_marker(const struct volume_leases *t, const struct object *o)
{
	char name[VOLUME_OBJECT_TEXT];

	volume_object_text(o->name, name);
	(void)unlinkat(t->dir, name, 0); /* one that stays costs a question at the next start */
}

static int read_marker(int dir, const char *name, char object[STRIPE_OBJECT_BYTES], struct fh *ret)
{
	char text[MARKER_TEXT + 1];
	ssize_t n;

	if (volume_object_parse(name, object))
		return -EINVAL;
	n = readlinkat(dir, name, text, sizeof(text));
	if (n <= 0 || n > (ssize_t)MARKER_TEXT || n % 2)
		return -EINVAL;
	ret->len = (uint32_t)n / 2;
	return text_take_hex(text, ret->len, ret->data) ? 0 : -EINVAL;
}

static int load_marker(struct volume_leases *t, const char *name)
{
	char object[STRIPE_OBJECT_BYTES];
	struct object *o;
	struct lease *l;
	struct fh fh;

	if (t->n == VOLUME_LEASES_MAX || read_marker(t->dir, name, object, &fh))
		return 0; /* not one of ours */
	o = add_object(t, object, &fh);
	if (!o)
		return -ENOMEM;
	l = add_lease(t, o, 0, UNKNOWN);
	if (!l) {
		free_object(t, o);
		return -ENOMEM;
	}
	renew_lease(t, l, 0);
	return 0;
}

static int load_markers(struct volume_leases *t)
{
	DIR *dir = dir_list(t->dir, ".");
	const struct dirent *e;
	int err = 0;

	if (!dir)
		return -errno;
	while (!err && (e = readdir(dir)) != NULL)
		err = load_marker(t, e->d_name);
	closedir(dir);
	return err;
}

/* ---- clients -------------------------------------------------------------------------------- */

/* A marker that is there already stands for what is not known: it was not dropped, or not loaded. */
static int enter_object(struct volume_leases *t, const char name[STRIPE_OBJECT_BYTES], const struct fh *fh, struct object **ret)
{
	struct object *o = add_object(t, name, fh);
	struct lease *unknown = NULL;
	int rc;

	if (!o)
		return -ENOMEM;
	rc = make_marker(t, name, fh);
	if (rc == 1) {
		unknown = add_lease(t, o, 0, UNKNOWN);
		rc = unknown ? 0 : -ENOMEM;
	}
	if (rc) {
		free_object(t, o);
		return rc;
	}
	if (unknown)
		renew_lease(t, unknown, 0);
	*ret = o;
	return 0;
}

static void drop_if_unused(struct volume_leases *t, struct object *o)
{
	if (o->n)
		return;
	drop_marker(t, o);
	free_object(t, o);
}

static int take_lease(struct volume_leases *t, const char object[STRIPE_OBJECT_BYTES], const struct volume_lessee *by)
{
	struct object *o = find_object(t, object);
	struct lease *l = o ? find_lease(o, by->instance) : NULL;
	unsigned bucket = bucket_of(t, &by->client);
	bool was_empty = list_is_empty(&t->by_time);
	int err = 0;

	if (!l) {
		if (is_refused(t, o, bucket))
			return -EAGAIN;
		if (!o)
			err = enter_object(t, object, &by->fh, &o);
		else if (o->n >= VOLUME_LEASES_OBJECT)
			err = merge_leases(t, o, bucket);
		if (!err)
			o->fh = by->fh; /* that of a marker may be unknown here */
		if (!err) {
			l = add_lease(t, o, by->instance, bucket);
			if (!l)
				drop_if_unused(t, o);
		}
		if (err || !l)
			return err ? err : -ENOMEM;
		t->given++;
	}
	renew_lease(t, l, by->number);
	return was_empty;
}

int volume_lease_take(struct volume_leases *t, const char object[STRIPE_OBJECT_BYTES], const struct volume_lessee *by)
{
	int rc;

	pthread_mutex_lock(&t->lock);
	rc = take_lease(t, object, by);
	t->refused += rc == -EAGAIN;
	pthread_mutex_unlock(&t->lock);
	return rc;
}

void volume_lease_end(struct volume_leases *t, const char object[STRIPE_OBJECT_BYTES], const struct volume_lessee *by)
{
	struct object *o;
	struct lease *l;

	pthread_mutex_lock(&t->lock);
	o = find_object(t, object);
	l = o && by->instance ? find_lease(o, by->instance) : NULL;
	if (l && l->number <= by->number) {
		free_lease(t, l);
		drop_if_unused(t, o);
	}
	pthread_mutex_unlock(&t->lock);
}

bool volume_lease_others(struct volume_leases *t, const char object[STRIPE_OBJECT_BYTES], uint64_t instance)
{
	const struct object *o;
	bool others;

	pthread_mutex_lock(&t->lock);
	o = find_object(t, object);
	others = o && (o->n > 1 || !instance || !find_lease(o, instance));
	pthread_mutex_unlock(&t->lock);
	return others;
}

void volume_leases_count(struct volume_leases *t, struct volume_leases_stats *ret)
{
	pthread_mutex_lock(&t->lock);
	ret->now += t->n;
	ret->given += t->given;
	ret->lapsed += t->lapsed;
	ret->refused += t->refused;
	pthread_mutex_unlock(&t->lock);
}

/* ---- the thread of pending work ------------------------------------------------------------- */

uint64_t volume_leases_lapse(struct volume_leases *t)
{
	uint64_t now = clock_now_ns(), next = UINT64_MAX;
	struct lease *l;

	pthread_mutex_lock(&t->lock);
	while ((l = list_first_entry(&t->by_time, struct lease, by_time)) && l->until_ns <= now) {
		list_del(&l->by_time);
		t->lapsed++;
		set_due(t, l->of, true);
	}
	if (l)
		next = l->until_ns;
	pthread_mutex_unlock(&t->lock);
	return next;
}

unsigned volume_leases_due(struct volume_leases *t)
{
	unsigned n;

	pthread_mutex_lock(&t->lock);
	n = t->ndue;
	pthread_mutex_unlock(&t->lock);
	return n;
}

bool volume_leases_next(struct volume_leases *t, struct volume_due *ret)
{
	struct object *o;

	pthread_mutex_lock(&t->lock);
	o = list_first_entry(&t->due, struct object, due);
	if (o) {
		memcpy(ret->object, o->name, sizeof(ret->object));
		ret->fh = o->fh;
		list_del(&o->due);
		list_add_tail(&t->due, &o->due);
	}
	pthread_mutex_unlock(&t->lock);
	return o != NULL;
}

void volume_leases_settle(struct volume_leases *t, const struct volume_due *due)
{
	struct object *o;

	pthread_mutex_lock(&t->lock);
	o = find_object(t, due->object);
	if (o) {
		list_for_each_safe(n, &o->leases) {
			struct lease *l = list_entry(n, struct lease, link);

			if (!list_is_linked(&l->by_time))
				free_lease(t, l);
		}
		set_due(t, o, false);
		drop_if_unused(t, o);
	}
	pthread_mutex_unlock(&t->lock);
}

/* ---- creation ------------------------------------------------------------------------------- */

int volume_leases_create(int dir, struct volume_leases **ret)
{
	struct volume_leases *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->dir = dir;
	list_init(&t->by_time);
	list_init(&t->due);
	pthread_mutex_init(&t->lock, NULL);
	err = siphash_key_random(&t->key);
	if (!err)
		err = hash_init(&t->objects, 64);
	if (!err)
		err = load_markers(t);
	if (err)
		volume_leases_destroy(t);
	else
		*ret = t;
	return err;
}

void volume_leases_destroy(struct volume_leases *t)
{
	if (!t)
		return;
	for (struct hash_node *n; t->objects.n && (n = hash_step(&t->objects, NULL)) != NULL;) {
		struct object *o = container_of(n, struct object, node);

		while (!list_is_empty(&o->leases))
			free_lease(t, list_first_entry(&o->leases, struct lease, link));
		free_object(t, o);
	}
	hash_fini(&t->objects);
	pthread_mutex_destroy(&t->lock);
	free(t);
}
