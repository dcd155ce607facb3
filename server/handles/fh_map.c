/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_map.c - maps files to names, for handles if kernel handles cannot be opened
 *
 * Operation: fh.c adds the results of lookups and requests paths to open. It verifies every file that it
 *            opens, so the map may be outdated: names become wrong when a local process renames something,
 *            and are added again by the next lookup. With a state directory each change is a record in a
 *            journal (fh_log.c), which is replayed at the next start.
 * Memory:    nodes by id and by key in hash tables; a name belongs to its node and counts a reference on
 *            its directory. Of a file with many names only those seen last are kept, to limit the search.
 *            A removed node stays, without id and key, until the last name in it has been removed too.
 * Threads:   any; one mutex, never held during a system call on files.
 * Errors:    -ENOMEM leaves the map unchanged.
 */
#include "fh_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "fh_log.h"
#include "fh_map_int.h"

#define DEPTH_MAX 4096u
#define NAMES_MAX 64u /* of a file */
#define CHAINS_MIN 1024u
#define KEEP 32768u /* some 5 MiB */

int fh_map_create(struct fh_map **ret)
{
	struct fh_map *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->keep = KEEP;
	err = siphash_key_random(&m->hash_key);
	if (!err)
		err = hash_init(&m->by_key, CHAINS_MIN);
	if (!err)
		err = hash_init(&m->by_id, CHAINS_MIN);
	if (err) {
		hash_fini(&m->by_key);
		free(m);
		return err;
	}
	pthread_mutex_init(&m->lock, NULL);
	*ret = m;
	return 0;
}

/* ---- journal ------------------------------------------------------------------------------- */

static struct fh_log_rec node_rec(const struct fh_map_node *n)
{
	return (struct fh_log_rec){
		.type = FH_LOG_NODE,
		.flags = n->is_root ? FH_LOG_ROOT : 0,
		.id = n->id,
		.key = n->key,
		.serial = n->serial,
	};
}

static void note(struct fh_map *m, struct fh_log_rec rec)
{
	if (m->log)
		fh_log_append(m->log, &rec);
}

static void note_node(struct fh_map *m, const struct fh_map_node *n)
{
	note(m, node_rec(n));
}

static void note_name(struct fh_map *m, enum fh_log_type type, const struct fh_map_node *n,
		      const struct fh_map_node *parent, const char *name, bool is_dir)
{
	note(m, (struct fh_log_rec){
		.type = type,
		.flags = is_dir ? FH_LOG_DIR : 0,
		.id = n->id,
		.parent = parent->id,
		.name = name,
		.name_len = strlen(name),
	});
}

void fh_map_keep(struct fh_map *m)
{
	if (m->log)
		fh_log_flush(m->log);
}

/* ---- nodes and names ----------------------------------------------------------------------- */

static uint64_t hash_of(const struct fh_map *m, const struct fh_map_key *key)
{
	return siphash(&m->hash_key, key, sizeof(*key));
}

static bool key_equal(const struct fh_map_key *a, const struct fh_map_key *b)
{
	return a->ino == b->ino && a->gen == b->gen && a->dev == b->dev && a->exp == b->exp;
}

static struct fh_map_node *find_key(const struct fh_map *m, const struct fh_map_key *key)
{
	hash_for_each_equal(at, &m->by_key, hash_of(m, key)) {
		struct fh_map_node *n = container_of(at, struct fh_map_node, by_key);

		if (key_equal(&n->key, key))
			return n;
	}
	return NULL;
}

static struct fh_map_node *node_of(struct hash_node *at)
{
	return at ? container_of(at, struct fh_map_node, by_id) : NULL;
}

struct fh_map_node *fh_map_node(const struct fh_map *m, uint64_t id)
{
	return id ? node_of(hash_first(&m->by_id, id)) : NULL;
}

/* Walks over all nodes, from NULL. Return: NULL at the end */
static struct fh_map_node *next_node(const struct fh_map *m, const struct fh_map_node *n)
{
	return node_of(hash_step(&m->by_id, n ? &n->by_id : NULL));
}

static struct fh_map_node *node_create(struct fh_map *m, const struct fh_map_key *key, uint64_t id,
				uint64_t serial)
{
	struct fh_map_node *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->key = *key;
	n->id = id;
	n->serial = serial;
	m->last_id = MAX(m->last_id, id);
	hash_add(&m->by_key, &n->by_key, hash_of(m, key));
	hash_add(&m->by_id, &n->by_id, id);
	hash_grow(&m->by_key);
	hash_grow(&m->by_id);
	return n;
}

static struct fh_map_node *node_new(struct fh_map *m, const struct fh_map_key *key, bool is_root)
{
	uint64_t serial = 0;
	struct fh_map_node *n;

	/* without random numbers, the serial is at least unique in this run */
	if (!key->gen && getrandom(&serial, sizeof(serial), 0) != (ssize_t)sizeof(serial))
		serial = m->last_id + 1;
	n = node_create(m, key, m->last_id + 1, serial);
	if (n) {
		n->is_root = is_root;
		note_node(m, n);
		fh_map_grown(m);
	}
	return n;
}

static void free_if_unused(struct fh_map_node *n)
{
	if (!n->id && !n->names_inside && !n->names)
		free(n);
}

static void name_free(struct fh_map *m, struct fh_map_name *name)
{
	struct fh_map_node *parent = name->parent;

	free(name);
	m->nnames--;
	parent->names_inside--;
	free_if_unused(parent);
}

static void drop_names(struct fh_map *m, struct fh_map_node *n)
{
	while (n->names) {
		struct fh_map_name *name = n->names;

		n->names = name->next;
		name_free(m, name);
	}
}

/* Return: the place of (@parent, @text) among the names of @n, or of their end */
static struct fh_map_name **find_name(struct fh_map_node *n, const struct fh_map_node *parent, const char *text,
				      size_t len)
{
	struct fh_map_name **p = &n->names, *name;

	while ((name = *p) && (name->parent != parent || name->len != len || memcmp(name->text, text, len)))
		p = &name->next;
	return p;
}

/* This is not written to the journal. A replay drops as many names, but perhaps others, as it does not know which
 * names were seen again. */
static void drop_oldest_name(struct fh_map *m, struct fh_map_node *n)
{
	struct fh_map_name **p = &n->names;

	for (unsigned i = 0; *p && i < NAMES_MAX; i++)
		p = &(*p)->next;
	if (*p)
		fh_map_end_name(m, p);
}

/* Puts (parent, text) first among the names of @n; Return: 0, 1: it was there already, -ENOMEM */
static int add_name(struct fh_map *m, struct fh_map_node *n, struct fh_map_node *parent,
		    const char *text, bool is_dir)
{
	size_t len = strlen(text);
	struct fh_map_name **at = find_name(n, parent, text, len), *name = *at;
	bool found = name != NULL;

	if (found) {
		*at = name->next;
	} else {
		name = malloc(sizeof(*name) + len + 1);
		if (!name)
			return -ENOMEM;
		name->parent = parent;
		name->len = len;
		memcpy(name->text, text, len + 1);
		parent->names_inside++;
		m->nnames++;
	}
	if (is_dir)
		drop_names(m, n);
	name->next = n->names;
	n->names = name;
	if (!found)
		drop_oldest_name(m, n);
	return found;
}

int fh_map_root(struct fh_map *m, const struct fh_map_key *key, uint64_t *ret_id)
{
	struct fh_map_node *n;

	pthread_mutex_lock(&m->lock);
	n = find_key(m, key);
	if (!n)
		n = node_new(m, key, true);
	if (n && !n->is_root) { /* it was known as a file until now */
		n->is_root = true;
		note_node(m, n);
	}
	if (n)
		*ret_id = n->id;
	pthread_mutex_unlock(&m->lock);
	return n ? 0 : -ENOMEM;
}

int fh_map_add(struct fh_map *m, uint64_t parent, const char *name, bool is_dir,
	       const struct fh_map_key *key, uint64_t *ret_id)
{
	struct fh_map_node *dir, *n;
	int err = 0;

	pthread_mutex_lock(&m->lock);
	dir = fh_map_node(m, parent);
	n = find_key(m, key);
	if (!dir)
		err = -ESTALE;
	else if (!n && !(n = node_new(m, key, false)))
		err = -ENOMEM;
	else if (!n->is_root && n != dir)
		err = add_name(m, n, dir, name, is_dir);
	if (err >= 0) {
		*ret_id = n->id;
		n->missed = false;
	}
	if (!err && !n->is_root && n != dir) {
		note_name(m, FH_LOG_NAME, n, dir, name, is_dir);
		fh_map_grown(m);
	}
	pthread_mutex_unlock(&m->lock);
	return err < 0 ? err : 0;
}

uint64_t fh_map_find(struct fh_map *m, const struct fh_map_key *key, uint64_t serial)
{
	struct fh_map_node *n;
	uint64_t id;

	pthread_mutex_lock(&m->lock);
	n = find_key(m, key);
	id = n && n->serial == serial ? n->id : 0;
	pthread_mutex_unlock(&m->lock);
	return id;
}

int fh_map_key_of(struct fh_map *m, uint64_t id, struct fh_map_key *ret, uint64_t *ret_serial)
{
	struct fh_map_node *n;

	pthread_mutex_lock(&m->lock);
	n = fh_map_node(m, id);
	if (n) {
		*ret = n->key;
		*ret_serial = n->serial;
	}
	pthread_mutex_unlock(&m->lock);
	return n ? 0 : -ESTALE;
}

static const struct fh_map_name *nth_name(const struct fh_map_node *n, unsigned nth)
{
	const struct fh_map_name *name = n->names;

	while (name && nth--)
		name = name->next;
	return name;
}

/* The first walk up measures the length, the second one writes from the end. Outdated names could form a cycle, so
 * the depth is limited. */
static int build_path(const struct fh_map_node *n, unsigned nth, struct fh_map_path *path)
{
	const struct fh_map_name *first = nth_name(n, nth), *name;
	size_t len = 0, depth = 0;
	char *at;

	if (n->is_root ? nth > 0 : !first)
		return -ENOENT;
	for (name = first; name; name = name->parent->names) {
		len += name->len + 1;
		if (++depth > DEPTH_MAX)
			return -ENOTDIR;
		if (!name->parent->is_root && !name->parent->names)
			return -ENOTDIR;
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

int fh_map_path(struct fh_map *m, uint64_t id, unsigned nth, struct fh_map_path *ret)
{
	struct fh_map_path path = { 0 };
	struct fh_map_node *n;
	int err = -ESTALE;

	pthread_mutex_lock(&m->lock);
	n = fh_map_node(m, id);
	if (n)
		err = build_path(n, nth, &path);
	pthread_mutex_unlock(&m->lock);
	if (!err)
		*ret = path;
	return err;
}

uint64_t fh_map_parent(struct fh_map *m, uint64_t id)
{
	struct fh_map_node *n;
	uint64_t parent = 0;

	pthread_mutex_lock(&m->lock);
	n = fh_map_node(m, id);
	if (n && n->names)
		parent = n->names->parent->id;
	pthread_mutex_unlock(&m->lock);
	return parent;
}

void fh_map_end_name(struct fh_map *m, struct fh_map_name **at)
{
	struct fh_map_name *old = *at;

	*at = old->next;
	name_free(m, old);
}

/* Return: did the name exist? */
static bool drop_name(struct fh_map *m, struct fh_map_node *n, const struct fh_map_node *dir,
		      const char *name, size_t len)
{
	struct fh_map_name **at = find_name(n, dir, name, len);

	if (!*at)
		return false;
	fh_map_end_name(m, at);
	return true;
}

void fh_map_drop(struct fh_map *m, uint64_t id, uint64_t parent, const char *name)
{
	struct fh_map_node *n, *dir;

	pthread_mutex_lock(&m->lock);
	n = fh_map_node(m, id);
	dir = fh_map_node(m, parent);
	if (n && dir && drop_name(m, n, dir, name, strlen(name)))
		note_name(m, FH_LOG_DROP, n, dir, name, false);
	pthread_mutex_unlock(&m->lock);
}

static void node_gone(struct fh_map *m, struct fh_map_node *n)
{
	hash_del(&m->by_key, &n->by_key);
	hash_del(&m->by_id, &n->by_id);
	n->id = 0;
	n->names_inside++; /* keeps the node while its own names are removed */
	drop_names(m, n);
	n->names_inside--;
	free_if_unused(n);
}

void fh_map_end_node(struct fh_map *m, struct fh_map_node *n)
{
	note(m, (struct fh_log_rec){ .type = FH_LOG_GONE, .id = n->id });
	node_gone(m, n);
}

void fh_map_gone(struct fh_map *m, uint64_t id)
{
	struct fh_map_node *n;

	pthread_mutex_lock(&m->lock);
	n = fh_map_node(m, id);
	if (n && !n->is_root)
		fh_map_end_node(m, n);
	pthread_mutex_unlock(&m->lock);
}

/* ---- replay and snapshot ------------------------------------------------------------------ */

static int replay_node(struct fh_map *m, const struct fh_log_rec *rec)
{
	struct fh_map_node *n = fh_map_node(m, rec->id), *old = find_key(m, &rec->key);

	if (!n) {
		if (old && !old->is_root) /* its GONE record was in a part that could not be written */
			node_gone(m, old);
		else if (old)
			return 0;
		n = node_create(m, &rec->key, rec->id, rec->serial);
	}
	if (!n)
		return -ENOMEM;
	n->is_root |= (rec->flags & FH_LOG_ROOT) != 0;
	return 0;
}

static int replay(void *ctx, const struct fh_log_rec *rec)
{
	struct fh_map *m = ctx;
	struct fh_map_node *n, *dir;
	char *name;
	int err = 0;

	if (rec->type == FH_LOG_NODE)
		return replay_node(m, rec);
	n = fh_map_node(m, rec->id);
	if (rec->type == FH_LOG_GONE) {
		if (n && !n->is_root)
			node_gone(m, n);
		return 0;
	}
	dir = fh_map_node(m, rec->parent);
	if (!n || !dir || n == dir || n->is_root)
		return 0;
	if (rec->type == FH_LOG_DROP) {
		(void)drop_name(m, n, dir, rec->name, rec->name_len);
		return 0;
	}
	name = strndup(rec->name, rec->name_len);
	if (!name)
		return -ENOMEM;
	err = add_name(m, n, dir, name, rec->flags & FH_LOG_DIR);
	free(name);
	return err < 0 ? err : 0;
}

/* Writes @name of node @id and those behind it, in reverse order: the name seen last must be replayed last. There are at
 * most NAMES_MAX. */
static int put_names(struct fh_log_buf *buf, uint64_t id, const struct fh_map_name *name)
{
	struct fh_log_rec rec = { .type = FH_LOG_NAME, .id = id };
	int err;

	if (!name)
		return 0;
	err = put_names(buf, id, name->next);
	rec.parent = name->parent->id;
	rec.name = name->text;
	rec.name_len = name->len;
	return err || !rec.parent ? err : fh_log_put(buf, &rec);
}

static int put_all(struct fh_map *m, struct fh_log_buf *buf)
{
	int err = 0;

	for (struct fh_map_node *n = NULL; !err && (n = next_node(m, n)) != NULL;) {
		const struct fh_log_rec rec = node_rec(n);

		err = fh_log_put(buf, &rec);
	}
	for (struct fh_map_node *n = NULL; !err && (n = next_node(m, n)) != NULL;)
		err = put_names(buf, n->id, n->names);
	return err;
}

static int snapshot(void *ctx, struct fh_log_buf *buf)
{
	struct fh_map *m = ctx;
	int err;

	pthread_mutex_lock(&m->lock);
	err = put_all(m, buf);
	pthread_mutex_unlock(&m->lock);
	return err;
}

int fh_map_open(const char *dir, struct fh_map **ret)
{
	struct fh_log_owner owner = { .replay = replay, .snapshot = snapshot };
	struct fh_log *log;
	struct fh_map *m;
	int err = fh_map_create(&m);

	if (err)
		return err;
	owner.ctx = m;
	err = fh_log_open(dir, &owner, &log);
	if (err) {
		fh_map_destroy(m);
		return err;
	}
	m->log = log;
	*ret = m;
	return 0;
}

void fh_map_destroy(struct fh_map *m)
{
	if (!m)
		return;
	fh_log_close(m->log);
	/* all names first: a node that is already removed is freed with the last name in it */
	for (struct fh_map_node *n = NULL; (n = next_node(m, n)) != NULL;)
		drop_names(m, n);
	for (struct fh_map_node *n = next_node(m, NULL), *next; n; n = next) {
		next = next_node(m, n);
		free(n);
	}
	hash_fini(&m->by_id);
	hash_fini(&m->by_key);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
