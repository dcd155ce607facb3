/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_map.c - which names lead to a file, for handles where the kernel's own may not be opened
 *
 * Operation: fh.c adds what lookups find and asks for paths to open; it verifies every file that it
 *            gets to, so nothing here needs to be true, only recent: names go stale whenever a
 *            local process renames something, and come back when a client looks there again.
 * Memory:    nodes by id in an array that only grows, by key in a hash table; a name belongs to its
 *            node and counts a reference on its directory. A node that is gone stays, without id
 *            and key, until the last name in it has gone too.
 * Threads:   any; one mutex, never held over a system call on files.
 * Errors:    -ENOMEM leaves the map as it was.
 */
#include "fh_map.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "siphash.h"

#define DEPTH_MAX 4096u
#define BUCKETS_MIN 1024u

struct node;

struct name {
	struct name *next; /* of the same node, the one seen last first */
	struct node *parent;
	size_t len;
	char text[];
};

struct node {
	struct node *hash_next;
	struct fh_map_key key;
	uint64_t id; /* 0: gone */
	struct name *names;
	size_t names_inside; /* names of other nodes with this one as parent */
	bool is_root;
};

struct fh_map {
	pthread_mutex_t lock; /* over everything below */
	struct siphash_key hash_key;
	struct node **by_id; /* [id - 1] */
	size_t ids, ids_cap;
	struct node **buckets; /* by key */
	size_t nbuckets, nnodes;
};

/** fh_map_create - an empty map; Return: 0, -ENOMEM */
int fh_map_create(struct fh_map **ret)
{
	struct fh_map *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->nbuckets = BUCKETS_MIN;
	m->buckets = calloc(m->nbuckets, sizeof(*m->buckets));
	if (!m->buckets) {
		free(m);
		return -ENOMEM;
	}
	if (getrandom(&m->hash_key, sizeof(m->hash_key), 0) < 0)
		memset(&m->hash_key, 0x3c, sizeof(m->hash_key));
	pthread_mutex_init(&m->lock, NULL);
	*ret = m;
	return 0;
}

static size_t bucket_of(const struct fh_map *m, const struct fh_map_key *key)
{
	return siphash(&m->hash_key, key, sizeof(*key)) & (m->nbuckets - 1);
}

static bool key_equal(const struct fh_map_key *a, const struct fh_map_key *b)
{
	return a->ino == b->ino && a->gen == b->gen && a->dev == b->dev && a->exp == b->exp;
}

static struct node *find_key(const struct fh_map *m, const struct fh_map_key *key)
{
	struct node *n = m->buckets[bucket_of(m, key)];

	while (n && !key_equal(&n->key, key))
		n = n->hash_next;
	return n;
}

static struct node *find_id(const struct fh_map *m, uint64_t id)
{
	return id && id <= m->ids ? m->by_id[id - 1] : NULL;
}

/* a table that cannot grow works on, slower */
static void grow_buckets(struct fh_map *m)
{
	size_t old = m->nbuckets;
	struct node **from = m->buckets, **to = calloc(old * 2, sizeof(*to));

	if (!to)
		return;
	m->buckets = to;
	m->nbuckets = old * 2;
	for (size_t i = 0; i < old; i++) {
		for (struct node *n = from[i], *next; n; n = next) {
			size_t b = bucket_of(m, &n->key);

			next = n->hash_next;
			n->hash_next = to[b];
			to[b] = n;
		}
	}
	free(from);
}

static struct node *node_create(struct fh_map *m, const struct fh_map_key *key)
{
	struct node *n;
	size_t b;

	if (m->ids == m->ids_cap) {
		size_t cap = m->ids_cap ? m->ids_cap * 2 : BUCKETS_MIN;
		struct node **v = reallocarray(m->by_id, cap, sizeof(*v));

		if (!v)
			return NULL;
		m->by_id = v;
		m->ids_cap = cap;
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	if (m->nnodes >= m->nbuckets)
		grow_buckets(m);
	n->key = *key;
	m->by_id[m->ids++] = n;
	n->id = m->ids;
	b = bucket_of(m, key);
	n->hash_next = m->buckets[b];
	m->buckets[b] = n;
	m->nnodes++;
	return n;
}

static void free_if_unused(struct node *n)
{
	if (!n->id && !n->names_inside && !n->names)
		free(n);
}

static void name_free(struct name *name)
{
	struct node *parent = name->parent;

	free(name);
	parent->names_inside--;
	free_if_unused(parent);
}

static void drop_names(struct node *n)
{
	while (n->names) {
		struct name *name = n->names;

		n->names = name->next;
		name_free(name);
	}
}

static bool name_is(const struct name *name, const struct node *parent, const char *text,
		    size_t len)
{
	return name->parent == parent && name->len == len && !memcmp(name->text, text, len);
}

/* put (parent, text) first among the names of @n */
static int add_name(struct node *n, struct node *parent, const char *text, bool is_dir)
{
	size_t len = strlen(text);
	struct name *name = NULL;

	for (struct name **p = &n->names; *p; p = &(*p)->next) {
		if (name_is(*p, parent, text, len)) {
			name = *p;
			*p = name->next;
			break;
		}
	}
	if (!name) {
		name = malloc(sizeof(*name) + len + 1);
		if (!name)
			return -ENOMEM;
		name->parent = parent;
		name->len = len;
		memcpy(name->text, text, len + 1);
		parent->names_inside++;
	}
	if (is_dir)
		drop_names(n);
	name->next = n->names;
	n->names = name;
	return 0;
}

static void unhash(struct fh_map *m, struct node *n)
{
	struct node **p = &m->buckets[bucket_of(m, &n->key)];

	while (*p != n)
		p = &(*p)->hash_next;
	*p = n->hash_next;
	m->by_id[n->id - 1] = NULL;
	m->nnodes--;
	n->id = 0;
}

/** fh_map_root - see fh_map.h */
int fh_map_root(struct fh_map *m, const struct fh_map_key *key, uint64_t *ret_id)
{
	struct node *n;

	pthread_mutex_lock(&m->lock);
	n = find_key(m, key);
	if (!n)
		n = node_create(m, key);
	if (n) {
		n->is_root = true;
		*ret_id = n->id;
	}
	pthread_mutex_unlock(&m->lock);
	return n ? 0 : -ENOMEM;
}

/** fh_map_add - see fh_map.h */
int fh_map_add(struct fh_map *m, uint64_t parent, const char *name, bool is_dir,
	       const struct fh_map_key *key, uint64_t *ret_id)
{
	struct node *dir, *n;
	int err = 0;

	pthread_mutex_lock(&m->lock);
	dir = find_id(m, parent);
	n = find_key(m, key);
	if (!dir)
		err = -ESTALE;
	else if (!n && !(n = node_create(m, key)))
		err = -ENOMEM;
	else if (!n->is_root && n != dir)
		err = add_name(n, dir, name, is_dir);
	if (!err)
		*ret_id = n->id;
	pthread_mutex_unlock(&m->lock);
	return err;
}

/** fh_map_find - see fh_map.h */
uint64_t fh_map_find(struct fh_map *m, const struct fh_map_key *key)
{
	struct node *n;
	uint64_t id;

	pthread_mutex_lock(&m->lock);
	n = find_key(m, key);
	id = n ? n->id : 0;
	pthread_mutex_unlock(&m->lock);
	return id;
}

static const struct name *nth_name(const struct node *n, unsigned nth)
{
	const struct name *name = n->names;

	while (name && nth--)
		name = name->next;
	return name;
}

/* A first walk up measures, a second one writes from the end. Stale names could lead in a circle:
 * the depth is bounded. */
static int build_path(const struct node *n, unsigned nth, struct fh_map_path *path)
{
	const struct name *first = nth_name(n, nth), *name;
	size_t len = 0, depth = 0;
	char *at;

	if (n->is_root ? nth > 0 : !first)
		return -ENOENT;
	for (name = first; name; name = name->parent->names) {
		len += name->len + 1;
		if (++depth > DEPTH_MAX)
			return -ESTALE;
		if (!name->parent->is_root && !name->parent->names)
			return -ESTALE;
	}
	path->len = len ? len - 1 : 0;
	path->text = malloc(path->len + 1);
	if (!path->text)
		return -ENOMEM;
	at = path->text + path->len;
	*at = '\0';
	for (name = first; name; name = name->parent->names) {
		at -= name->len;
		memcpy(at, name->text, name->len);
		if (name == first)
			path->last = at;
		if (at > path->text)
			*--at = '/';
	}
	if (!first)
		path->last = path->text;
	path->parent = first ? first->parent->id : 0;
	path->key = n->key;
	return 0;
}

/** fh_map_path - see fh_map.h */
int fh_map_path(struct fh_map *m, uint64_t id, unsigned nth, struct fh_map_path *ret)
{
	struct fh_map_path path = { 0 };
	struct node *n;
	int err = -ESTALE;

	pthread_mutex_lock(&m->lock);
	n = find_id(m, id);
	if (n)
		err = build_path(n, nth, &path);
	pthread_mutex_unlock(&m->lock);
	if (!err)
		*ret = path;
	return err;
}

/** fh_map_parent - see fh_map.h */
uint64_t fh_map_parent(struct fh_map *m, uint64_t id)
{
	struct node *n;
	uint64_t parent = 0;

	pthread_mutex_lock(&m->lock);
	n = find_id(m, id);
	if (n && n->names)
		parent = n->names->parent->id;
	pthread_mutex_unlock(&m->lock);
	return parent;
}

/** fh_map_drop - see fh_map.h */
void fh_map_drop(struct fh_map *m, uint64_t id, uint64_t parent, const char *name)
{
	struct node *n, *dir;
	size_t len = strlen(name);

	pthread_mutex_lock(&m->lock);
	n = find_id(m, id);
	dir = find_id(m, parent);
	for (struct name **p = n && dir ? &n->names : NULL; p && *p; p = &(*p)->next) {
		if (name_is(*p, dir, name, len)) {
			struct name *old = *p;

			*p = old->next;
			name_free(old);
			break;
		}
	}
	pthread_mutex_unlock(&m->lock);
}

/** fh_map_gone - see fh_map.h */
void fh_map_gone(struct fh_map *m, uint64_t id)
{
	struct node *n;

	pthread_mutex_lock(&m->lock);
	n = find_id(m, id);
	if (n && !n->is_root) {
		unhash(m, n);
		n->names_inside++; /* keeps it while its own names go */
		drop_names(n);
		n->names_inside--;
		free_if_unused(n);
	}
	pthread_mutex_unlock(&m->lock);
}

/** fh_map_count - see fh_map.h */
size_t fh_map_count(struct fh_map *m)
{
	size_t n;

	pthread_mutex_lock(&m->lock);
	n = m->nnodes;
	pthread_mutex_unlock(&m->lock);
	return n;
}

/** fh_map_destroy - nobody uses it any more. NULL is fine. */
void fh_map_destroy(struct fh_map *m)
{
	if (!m)
		return;
	/* all names first: a node that is gone already goes with the last name in it */
	for (size_t i = 0; i < m->ids; i++) {
		if (m->by_id[i])
			drop_names(m->by_id[i]);
	}
	for (size_t i = 0; i < m->ids; i++)
		free(m->by_id[i]);
	free(m->by_id);
	free(m->buckets);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
