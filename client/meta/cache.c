/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cache.c - cache of attributes and names, and how long entries stay valid
 *
 * Operation:  Two tables. Objects, by handle: attributes, when they were valid, and since when they have
 *             not changed. Their lifetime is the time for which they had not changed, at least 3 seconds
 *             (30 for directories) and at most 60. Names, by directory and name: a handle, or that the
 *             name does not exist. A name is valid while the attributes of its directory are, and at most
 *             60 seconds after its lookup, since a directory that changes twice within a tick of the
 *             server's clock does not show it.
 *
 *             A directory has a unique number for its contents, `names`; its names are stored under it.
 *             When the directory has changed, a new number drops all its names. Changes by this client
 *             keep the number if the server reports no other change in between (weak cache consistency,
 *             RFC 1813 section 2.6). `data` is the same for readahead.
 *
 *             Replies come in any order. Each call gets a stamp when it is sent, each reply one when it is
 *             processed. If a call was sent after the reply to another, its attributes are newer. If the
 *             two overlapped, the ctime decides: older attributes are ignored. If the ctime is equal and
 *             other attributes differ, the object is invalid until the server is asked again. `floor`
 *             replaces the stamp for objects that are not in the table: replies to calls sent before it
 *             are ignored.
 * Memory:     Up to LT_CACHE_ENTRIES of each, about 7 MB; the least recently used entry is evicted first.
 *             An entry that cannot be allocated is not kept.
 * Threads:    The handle's owner.
 * Errors:     None: entries may be dropped at any time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/siphash.h"
#include "cache.h"

#define FIRST_CHAINS 64u /* a mount that is idle costs little */

struct obj {
	struct hash_node node; /* cache->obj_at */
	struct list lru;
	struct lt_fh fh;
	fattr3 attr;
	bool has_attr;         /* attr was received */
	bool doubted;          /* but may be outdated */
	uint64_t known;        /* stamp of the reply that set attr */
	uint64_t seen_ns;      /* attr was valid at this time */
	uint64_t since_ns;     /* and unchanged since this time */
	uint64_t names, data;  /* see the head of the file */
	uint64_t own;          /* stamp of this client's last change of names; own_call: stamp of its call */
	uint64_t own_call;
};

struct name {
	struct hash_node node; /* cache->name_at */
	struct list lru;
	uint64_t names;
	uint64_t seen_ns;
	struct lt_fh fh;
	bool missing;
	char text[];
};

struct lt_cache {
	uint64_t file_min_ns, dir_min_ns, max_ns;
	uint64_t stamp, numbers;
	uint64_t floor, files_floor; /* files_floor: of all objects that are not directories */
	struct list objs, names;     /* least recently used first */
	struct hash obj_at, name_at;
	struct siphash_key key;      /* of both: others choose handles and names */
};

int lt_cache_create(uint32_t max_s, struct lt_cache **ret)
{
	struct lt_cache *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	rc = siphash_key_random(&c->key);
	if (rc) {
		free(c);
		return rc;
	}
	list_init(&c->objs);
	list_init(&c->names);
	if (hash_init(&c->obj_at, FIRST_CHAINS) || hash_init(&c->name_at, FIRST_CHAINS)) {
		lt_cache_destroy(c);
		return -ENOMEM;
	}
	if (!max_s)
		max_s = LT_CACHE_MAX_S;
	c->max_ns = max_s * NS_PER_S;
	c->file_min_ns = MIN(LT_CACHE_FILE_MIN_S, max_s) * NS_PER_S;
	c->dir_min_ns = MIN(LT_CACHE_DIR_MIN_S, max_s) * NS_PER_S;
	*ret = c;
	return 0;
}

void lt_cache_destroy(struct lt_cache *c)
{
	if (!c)
		return;
	while (!list_is_empty(&c->objs))
		free(container_of(list_pop(&c->objs), struct obj, lru));
	while (!list_is_empty(&c->names))
		free(container_of(list_pop(&c->names), struct name, lru));
	hash_fini(&c->obj_at);
	hash_fini(&c->name_at);
	free(c);
}

uint64_t lt_cache_stamp(struct lt_cache *c)
{
	return c ? ++c->stamp : 0;
}

/* ---- objects ---- */

static void doubt(struct lt_cache *c, struct obj *o)
{
	o->doubted = true;
	o->known = ++c->stamp;
}

static uint64_t hash_fh(const struct lt_cache *c, nfs_fh3 fh)
{
	return siphash(&c->key, fh.data.data_val, fh.data.data_len);
}

static struct obj *find_obj(struct lt_cache *c, nfs_fh3 fh)
{
	hash_for_each_equal(n, &c->obj_at, hash_fh(c, fh)) {
		struct obj *o = container_of(n, struct obj, node);

		if (o->fh.len != fh.data.data_len ||
		    (o->fh.len && memcmp(o->fh.data, fh.data.data_val, o->fh.len) != 0))
			continue;
		if (o->known < c->files_floor && o->attr.type != NF3DIR) {
			o->doubted = true;
			o->known = c->files_floor;
		}
		list_del(&o->lru);
		list_add_tail(&c->objs, &o->lru);
		return o;
	}
	return NULL;
}

static void drop_obj(struct lt_cache *c, struct obj *o)
{
	hash_del(&c->obj_at, &o->node);
	list_del(&o->lru);
	c->floor = MAX(c->floor, o->known);
	free(o);
}

static struct obj *add_obj(struct lt_cache *c, nfs_fh3 fh)
{
	struct obj *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	if (c->obj_at.n >= LT_CACHE_ENTRIES)
		drop_obj(c, container_of(list_first(&c->objs), struct obj, lru));
	lt_fh_take(&o->fh, &fh);
	hash_add(&c->obj_at, &o->node, hash_fh(c, fh));
	hash_grow(&c->obj_at);
	list_add_tail(&c->objs, &o->lru);
	return o;
}

static int compare_times(const nfstime3 *a, const nfstime3 *b)
{
	if (a->seconds != b->seconds)
		return a->seconds < b->seconds ? -1 : 1;
	if (a->nseconds != b->nseconds)
		return a->nseconds < b->nseconds ? -1 : 1;
	return 0;
}

/* Compares attributes except atime, which is no change. */
static bool is_same(const fattr3 *a, const fattr3 *b)
{
	return a->type == b->type && a->size == b->size && a->fileid == b->fileid &&
	       a->fsid == b->fsid && a->mode == b->mode && a->nlink == b->nlink &&
	       a->uid == b->uid && a->gid == b->gid && !compare_times(&a->mtime, &b->mtime) &&
	       !compare_times(&a->ctime, &b->ctime);
}

static bool was_so(const wcc_attr *before, const fattr3 *a)
{
	return before->size == a->size && !compare_times(&before->mtime, &a->mtime) &&
	       !compare_times(&before->ctime, &a->ctime);
}

static void install(struct lt_cache *c, struct obj *o, const fattr3 *a, const wcc_attr *before,
		    const struct lt_cache_call *call)
{
	bool changed = !o->has_attr || !is_same(&o->attr, a);
	bool only_us = call->ours && before && o->has_attr && was_so(before, &o->attr);

	if (changed || call->ours)
		o->data = ++c->numbers;
	if (changed && !only_us)
		o->names = ++c->numbers;
	if (changed)
		o->since_ns = call->ns;
	o->attr = *a;
	o->has_attr = true;
	o->doubted = false;
	o->seen_ns = MAX(o->seen_ns, call->ns);
	o->known = ++c->stamp;
}

/* A change by this client with an unknown outcome. */
static void changed_somehow(struct lt_cache *c, struct obj *o)
{
	if (!o) {
		c->floor = ++c->stamp;
		return;
	}
	o->names = ++c->numbers;
	o->data = ++c->numbers;
	doubt(c, o);
}

bool lt_cache_take_attr(struct lt_cache *c, nfs_fh3 fh, const fattr3 *a, const wcc_attr *before,
			const struct lt_cache_call *call)
{
	struct obj *o;
	int order;

	if (!c)
		return false;
	o = find_obj(c, fh);
	if (!a || (!o && call->stamp < MAX(c->floor, a->type == NF3DIR ? 0 : c->files_floor))) {
		if (call->ours)
			changed_somehow(c, o);
		return false;
	}
	if (!o) {
		o = add_obj(c, fh);
		if (o)
			install(c, o, a, before, call);
		else if (call->ours)
			changed_somehow(c, NULL);
		return o != NULL;
	}
	if (call->stamp < o->known) {
		order = o->doubted ? 0 : compare_times(&a->ctime, &o->attr.ctime);
		if (order < 0)
			return false;
		if (o->doubted || (!order && !is_same(a, &o->attr))) {
			if (call->ours)
				changed_somehow(c, o);
			else if (!o->doubted)
				doubt(c, o);
			return false;
		}
	}
	install(c, o, a, before, call);
	return true;
}

static bool is_believed(const struct lt_cache *c, const struct obj *o, uint64_t now)
{
	uint64_t min = o->attr.type == NF3DIR ? c->dir_min_ns : c->file_min_ns;
	uint64_t life = MIN(MAX(o->seen_ns - o->since_ns, min), c->max_ns);

	return o->has_attr && !o->doubted && now - o->seen_ns < life;
}

bool lt_cache_attr(struct lt_cache *c, nfs_fh3 fh, uint64_t now, fattr3 *ret)
{
	struct obj *o = c ? find_obj(c, fh) : NULL;

	if (!o || !is_believed(c, o, now))
		return false;
	*ret = o->attr;
	return true;
}

void lt_cache_doubt(struct lt_cache *c, nfs_fh3 fh)
{
	struct obj *o = c ? find_obj(c, fh) : NULL;

	if (o)
		doubt(c, o);
}

uint64_t lt_cache_data(struct lt_cache *c, nfs_fh3 fh)
{
	struct obj *o = c ? find_obj(c, fh) : NULL;

	return o ? o->data : 0;
}

/* Data is valid as long as the attributes are. If no attributes were ever received, data is valid as long as
 * attributes received with it would have been. */
bool lt_cache_data_holds(struct lt_cache *c, nfs_fh3 fh, uint64_t data, uint64_t asked, uint64_t now)
{
	struct obj *o = c ? find_obj(c, fh) : NULL;

	if (!c)
		return true;
	if (data != (o ? o->data : 0))
		return false;
	return now - asked < c->file_min_ns || (o && is_believed(c, o, now));
}

/* ---- names ---- */

static uint64_t hash_name(const struct lt_cache *c, uint64_t names, const char *text)
{
	return siphash(&c->key, text, strlen(text)) + names; /* a number of ours */
}

static struct name *find_name(struct lt_cache *c, uint64_t names, const char *text)
{
	hash_for_each_equal(at, &c->name_at, hash_name(c, names, text)) {
		struct name *n = container_of(at, struct name, node);

		if (n->names == names && !strcmp(n->text, text))
			return n;
	}
	return NULL;
}

static void drop_name(struct lt_cache *c, struct name *n)
{
	hash_del(&c->name_at, &n->node);
	list_del(&n->lru);
	free(n);
}

static void add_name(struct lt_cache *c, uint64_t names, const char *text, const nfs_fh3 *fh,
		     uint64_t ns)
{
	size_t len = strlen(text) + 1;
	struct name *n = malloc(sizeof(*n) + len);

	if (!n)
		return;
	if (c->name_at.n >= LT_CACHE_ENTRIES)
		drop_name(c, container_of(list_first(&c->names), struct name, lru));
	n->names = names;
	n->seen_ns = ns;
	n->missing = !fh;
	if (fh)
		lt_fh_take(&n->fh, fh);
	memcpy(n->text, text, len);
	hash_add(&c->name_at, &n->node, hash_name(c, names, text));
	hash_grow(&c->name_at);
	list_add_tail(&c->names, &n->lru);
}

/* A reply is ignored if a change by this client in the same directory overlapped its call. The same holds for the
 * reply to a change that another change overlapped. */
void lt_cache_take_name(struct lt_cache *c, nfs_fh3 dir, const char *name,
			enum lt_cache_answer answer, const nfs_fh3 *fh,
			const struct lt_cache_call *call)
{
	struct obj *o = c ? find_obj(c, dir) : NULL;
	struct name *n;
	bool clear;

	if (!o)
		return;
	clear = call->stamp > o->own || (call->ours && call->stamp == o->own_call);
	if (call->ours) {
		o->own = ++c->stamp;
		o->own_call = clear ? call->stamp : 0;
	} else if (!clear) {
		return;
	}
	n = find_name(c, o->names, name);
	if (n)
		drop_name(c, n);
	if (clear && !o->doubted && answer != LT_CACHE_UNKNOWN)
		add_name(c, o->names, name, answer == LT_CACHE_THERE ? fh : NULL, call->ns);
}

enum lt_cache_answer lt_cache_name(struct lt_cache *c, nfs_fh3 dir, const char *name, uint64_t now,
				   struct lt_fh *ret)
{
	struct obj *o = c ? find_obj(c, dir) : NULL;
	struct name *n;

	if (!o || !is_believed(c, o, now))
		return LT_CACHE_UNKNOWN;
	n = find_name(c, o->names, name);
	if (!n)
		return LT_CACHE_UNKNOWN;
	if (now - n->seen_ns >= c->max_ns) {
		drop_name(c, n);
		return LT_CACHE_UNKNOWN;
	}
	list_del(&n->lru);
	list_add_tail(&c->names, &n->lru);
	if (n->missing)
		return LT_CACHE_MISSING;
	*ret = n->fh;
	return LT_CACHE_THERE;
}

/* unknown file: invalidate all files */
void lt_cache_doubt_name(struct lt_cache *c, nfs_fh3 dir, const char *name, uint64_t now)
{
	struct lt_fh fh;

	if (!c)
		return;
	switch (lt_cache_name(c, dir, name, now, &fh)) {
	case LT_CACHE_THERE:
		lt_cache_doubt(c, lt_fh_wire(&fh));
		break;
	case LT_CACHE_MISSING:
	case LT_CACHE_UNKNOWN:
		c->files_floor = ++c->stamp;
		break;
	}
}
