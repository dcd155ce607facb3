/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * drc.c - the duplicate request cache: returns the first reply to a retransmitted call
 *
 * A client that lost its connection cannot know whether its call was executed. It sends the call again,
 * with the same XID. If leatd executed a MKDIR twice, it would return EEXIST for the directory that this
 * call made.
 *
 * Operation: one cache for a server, for all its transports: a call may be retransmitted over another one.
 *
 *                     drc_enter                      drc_done
 *            (absent) ---------> IN PROGRESS --------------------> DONE --> (evicted)
 *                                  |   ^  |                         |
 *                     drc_abandon, |   |  | drc_abandon,            +- drc_enter: DRC_REPLAY
 *                     none joined  |   |  | a call joined: it is
 *                                  v   +--+ executed now
 *                              (absent)
 *
 *            A duplicate of a call in progress joins: it is linked to the entry. When the first call is
 *            done, the duplicate gets a copy of the results before the entry can be evicted. So the client
 *            gets the reply on whichever connection is still open.
 *
 *            Entries are shared between clients. When there is no room, the oldest entry is evicted from
 *            the client that has been idle for longest, if that is keep_ns; otherwise from the client with
 *            the most entries, including the new one. So a client within its share (the limit divided by
 *            the number of clients) loses none to others, however many calls they make. Entries in
 *            progress are never evicted. If that client has no other entries, the limits are exceeded, at
 *            most by the number of admitted requests, and drc_done() trims.
 *            The table is split into shards by the hash of the key, to reduce contention between reactors.
 *            A client has a share in each.
 * Memory:    an entry has room for its caller's credential and the longest results. Its memory is reused
 *            for the entry that replaces it. Callers are similar, so nothing is allocated once the cache
 *            is full. A share exists as long as its client has an entry. Limits are divided evenly among
 *            the shards.
 * Threads:   any. One mutex per shard protects it and the calls that joined its entries. It is held for a
 *            lookup and some copying, never during wake().
 * Errors:    without memory a new call is not entered; the caller must not execute it.
 * See:       drc_check.c, which calls this; doc/protocol.md section 3.3.
 */
#include "drc.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/siphash.h"

#define SHARDS_MAX 16u
#define SHARD_ENTRIES_MIN 1024u /* smaller caches have fewer shards, at least one */
#define SPARSE 4u		/* chains per entry: each further entry in a chain costs a cache miss */
#define WARM_BYTES 256u		/* usual size of credential and results */
#define ROOM_MIN DRC_RES_MAX
#define MALLOC_BYTES 16u	/* overhead of an allocation */

_Static_assert(sizeof(struct drc_key) == 64, "no padding");

/* The entries of a client in one shard. */
struct share {
	struct hash_node node; /* shard->shares */
	struct rpcrdma_client_id client;
	struct list done;    /* its entries, oldest first */
	struct list by_size; /* shard->by_size */
	struct list by_use;  /* shard->by_use */
	uint64_t used_ns;
	size_t n; /* entries, including those in progress */
};

struct drc_entry {
	struct hash_node node;	/* shard->table */
	struct list link;	/* done: in share->done; recycled: in shard->spare */
	struct list joined;	/* in progress: joined calls, in order of arrival */
	struct share *share;
	uint64_t done_ns;
	bool done;
	uint32_t room, res_bytes;
	struct drc_key key;
	uint8_t data[]; /* credential, results */
};

struct shard {
	pthread_mutex_t lock;
	struct hash table, shares;
	struct list *by_size;  /* shares with one entry, with two, ...; the last list: with that number or more */
	size_t largest;	       /* index of the last list that is not empty, or 0 */
	struct list by_use;    /* all shares, longest idle client first */
	struct list spare;     /* entries that are not in the table */
	size_t allocated, allocated_max;
	size_t bytes, bytes_max; /* of all allocated entries and shares */
	struct drc_stats stats;	 /* without bytes, entries and clients */
} __attribute__((aligned(64)));

struct drc {
	struct siphash_key hash_key;
	uint64_t keep_ns;
	bool ends;
	unsigned nshards; /* a power of two */
	struct shard *shards;
};

/* ---- keys --------------------------------------------------------------------------------- */

uint64_t drc_hash(const struct drc *d, const void *data, size_t bytes)
{
	return siphash(&d->hash_key, data, bytes);
}

void drc_key_peer(struct drc_key *key, const struct rpcrdma_peer *peer)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&peer->addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&peer->addr;

	memset(key->host, 0, sizeof(key->host));
	key->local = peer->transport == RPCRDMA_LOCAL;
	key->local_id[0] = key->local_id[1] = 0;
	if (key->local) {
		key->local_id[0] = (uint32_t)peer->pid;
		key->local_id[1] = peer->uid;
	} else if (peer->addr.ss_family == AF_INET6) {
		memcpy(key->host, &in6->sin6_addr, 16);
		key->local_id[0] = in6->sin6_scope_id;
	} else if (peer->addr.ss_family == AF_INET) {
		key->host[10] = key->host[11] = 0xff;
		memcpy(key->host + 12, &in->sin_addr, 4);
	}
}

static struct shard *shard_of(const struct drc *d, uint64_t hash)
{
	return &d->shards[(hash >> 48) & (d->nshards - 1)];
}

static bool is_same(const struct drc_entry *e, const struct drc_call *c)
{
	return !memcmp(&e->key, &c->key, sizeof(e->key)) &&
	       !memcmp(e->data, c->cred, c->key.cred_bytes);
}

static struct drc_entry *find(const struct shard *s, uint64_t hash, const struct drc_call *c)
{
	hash_for_each_equal(n, &s->table, hash) {
		struct drc_entry *e = container_of(n, struct drc_entry, node);

		if (is_same(e, c))
			return e;
	}
	return NULL;
}

/* ---- shares ------------------------------------------------------------------------------- */

static struct share *find_share(const struct drc *d, const struct shard *s,
				const struct rpcrdma_client_id *client)
{
	hash_for_each_equal(n, &s->shares, drc_hash(d, client, sizeof(*client))) {
		struct share *sh = container_of(n, struct share, node);

		if (!memcmp(&sh->client, client, sizeof(*client)))
			return sh;
	}
	return NULL;
}

/* Index in by_size, which has a list for each size up to a limit; only entries in progress can exceed it. */
static size_t size_of(const struct shard *s, const struct share *sh)
{
	return MIN(sh->n, s->allocated_max + 1);
}

static void resize_share(struct shard *s, struct share *sh, size_t n)
{
	size_t was = size_of(s, sh), now;

	sh->n = n;
	now = size_of(s, sh);
	if (was == now)
		return;
	list_del(&sh->by_size);
	if (now)
		list_add_tail(&s->by_size[now], &sh->by_size);
	if (now > s->largest || (was == s->largest && list_is_empty(&s->by_size[was])))
		s->largest = now; /* sizes change by one */
}

/* Counts one more entry for @client; Return: its share, or NULL without memory */
static struct share *grow_share(const struct drc *d, struct shard *s,
				const struct rpcrdma_client_id *client)
{
	struct share *sh = find_share(d, s, client);

	if (!sh) {
		sh = malloc(sizeof(*sh));
		if (!sh)
			return NULL;
		*sh = (struct share){ .client = *client };
		list_init(&sh->done);
		list_init(&sh->by_size);
		list_init(&sh->by_use);
		hash_add(&s->shares, &sh->node, drc_hash(d, client, sizeof(*client)));
		s->bytes += sizeof(*sh) + MALLOC_BYTES;
	}
	sh->used_ns = clock_coarse_ns();
	list_del(&sh->by_use);
	list_add_tail(&s->by_use, &sh->by_use);
	resize_share(s, sh, sh->n + 1);
	return sh;
}

static void shrink_share(struct shard *s, struct share *sh)
{
	resize_share(s, sh, sh->n - 1);
	if (sh->n)
		return;
	hash_del(&s->shares, &sh->node);
	list_del(&sh->by_use);
	s->bytes -= sizeof(*sh) + MALLOC_BYTES;
	free(sh);
}

/* Return: the next entry to be evicted, or NULL. */
static struct drc_entry *victim(const struct drc *d, const struct shard *s)
{
	struct list *silent = list_first(&s->by_use), *most = NULL, *n = NULL;

	if (silent) {
		struct share *sh = list_entry(silent, struct share, by_use);

		if (clock_coarse_ns() - sh->used_ns >= d->keep_ns)
			n = list_first(&sh->done);
	}
	if (!n && s->largest)
		most = list_first(&s->by_size[s->largest]);
	if (most)
		n = list_first(&list_entry(most, struct share, by_size)->done);
	return n ? list_entry(n, struct drc_entry, link) : NULL;
}

/* ---- memory ------------------------------------------------------------------------------- */

static size_t footprint(uint32_t room)
{
	return sizeof(struct drc_entry) + room + MALLOC_BYTES;
}

static void release(struct shard *s, struct drc_entry *e)
{
	s->allocated--;
	s->bytes -= footprint(e->room);
	free(e);
}

/* Removes an entry from the table and its share; adds it to no list. */
static void take_out(struct shard *s, struct drc_entry *e)
{
	list_del(&e->link);
	hash_del(&s->table, &e->node);
	shrink_share(s, e->share);
	e->share = NULL;
}

/* Return: an evicted entry; NULL: the candidates are in progress */
static struct drc_entry *evict(const struct drc *d, struct shard *s)
{
	struct drc_entry *e = victim(d, s);

	if (!e)
		return NULL;
	take_out(s, e);
	s->stats.evictions++;
	return e;
}

static struct drc_entry *take_spare(struct shard *s)
{
	struct list *n = list_pop(&s->spare);

	return n ? list_entry(n, struct drc_entry, link) : NULL;
}

/* Return: an entry that is in no list; NULL: no memory. */
static struct drc_entry *get_entry(const struct drc *d, struct shard *s, uint32_t room)
{
	struct drc_entry *e;

	while ((e = take_spare(s))) {
		if (e->room >= room)
			return e;
		release(s, e);
	}
	while (s->allocated >= s->allocated_max || s->bytes + footprint(room) > s->bytes_max) {
		e = evict(d, s);
		if (!e)
			break; /* over the limit, until the first of them is done */
		if (e->room >= room)
			return e;
		release(s, e);
	}
	e = malloc(sizeof(*e) + room);
	if (!e)
		return NULL;
	e->room = room;
	list_init(&e->link);
	s->allocated++;
	s->bytes += footprint(room);
	return e;
}

/* Prefetches the next entry to be evicted. It is the least recently used memory of the cache, and waiting for the
 * cache miss would cost more than everything else here. So it is prefetched one call ahead, in two steps: its links,
 * when the entry before it is evicted; the room to be written, when that call is done. Usually the calling client has
 * the most entries. */
static void send_for_next(const struct share *sh)
{
	__builtin_prefetch(list_entry(sh->done.next, struct drc_entry, link));
}

static void send_for_rest(const struct shard *s, const struct share *sh)
{
	const struct drc_entry *e = list_entry(sh->done.next, struct drc_entry, link);

	if (s->allocated < s->allocated_max || list_is_empty(&sh->done))
		return;
	__builtin_prefetch(hash_chain(&s->table, e->node.hash), 1);
	for (size_t at = 64; at < sizeof(*e) + WARM_BYTES; at += 64)
		__builtin_prefetch((const uint8_t *)e + at, 1);
}

static void trim(const struct drc *d, struct shard *s)
{
	while (s->allocated > s->allocated_max || s->bytes > s->bytes_max) {
		struct drc_entry *e = take_spare(s);

		if (!e)
			e = evict(d, s);
		if (!e)
			return;
		release(s, e);
	}
}

static int init_shard(struct shard *s, size_t entries, size_t bytes)
{
	pthread_mutex_init(&s->lock, NULL);
	list_init(&s->by_use);
	list_init(&s->spare);
	s->allocated_max = entries;
	s->bytes_max = bytes;
	s->by_size = calloc(entries + 2, sizeof(struct list));
	if (!s->by_size || hash_init(&s->table, entries * SPARSE) || hash_init(&s->shares, entries))
		return -ENOMEM;
	for (size_t i = 0; i < entries + 2; i++)
		list_init(&s->by_size[i]);
	return 0;
}

int drc_create(const struct drc_attr *attr, struct drc **ret)
{
	struct drc *d = calloc(1, sizeof(*d));
	unsigned n = 1;
	size_t entries;
	int err;

	if (!d)
		return -ENOMEM;
	/* tables are sized for the number of entries that fit into @bytes */
	entries = MAX(MIN(attr->entries, attr->bytes / footprint(ROOM_MIN)), 1);
	d->keep_ns = attr->keep_ns;
	d->ends = attr->ends;
	while (n < SHARDS_MAX && entries / (n * 2) >= SHARD_ENTRIES_MIN)
		n *= 2;
	err = siphash_key_random(&d->hash_key);
	d->shards = err ? NULL : aligned_alloc(64, n * sizeof(struct shard));
	if (!err && !d->shards)
		err = -ENOMEM;
	if (d->shards)
		memset(d->shards, 0, n * sizeof(struct shard));
	while (!err && d->nshards < n)
		err = init_shard(&d->shards[d->nshards++], MAX(entries / n, 1),
				 attr->bytes / n);
	if (err) {
		drc_destroy(d);
		return err;
	}
	*ret = d;
	return 0;
}

static void fini_shard(const struct drc *d, struct shard *s)
{
	struct drc_entry *e;

	while ((e = take_spare(s)) || (e = evict(d, s)))
		release(s, e);
	assert(!s->allocated);
	free(s->by_size);
	hash_fini(&s->shares);
	hash_fini(&s->table);
	pthread_mutex_destroy(&s->lock);
}

void drc_destroy(struct drc *d)
{
	if (!d)
		return;
	for (unsigned i = 0; i < d->nshards; i++)
		fini_shard(d, &d->shards[i]);
	free(d->shards);
	free(d);
}

/* ---- calls -------------------------------------------------------------------------------- */

/* Copies the cached reply to @c, before the entry can be evicted. */
static void hand_out(const struct drc_entry *e, struct drc_call *c)
{
	c->verdict = DRC_REPLAY;
	c->res_bytes = e->res_bytes;
	memcpy(c->res, e->data + e->key.cred_bytes, e->res_bytes);
}

static bool has_ended(const struct drc *d, const struct drc_entry *e)
{
	return d->ends && e->done && clock_coarse_ns() - e->done_ns >= d->keep_ns;
}

static enum drc_verdict found(struct shard *s, struct drc_entry *e, struct drc_call *c)
{
	if (!e->done) {
		s->stats.joins++;
		c->verdict = DRC_JOINED;
		list_add_tail(&e->joined, &c->link);
		return DRC_JOINED;
	}
	s->stats.hits++;
	hand_out(e, c);
	return DRC_REPLAY;
}

static enum drc_verdict enter_new(const struct drc *d, struct shard *s, uint64_t hash,
				  struct drc_call *c)
{
	uint32_t room = (uint32_t)round_up_pow2(c->key.cred_bytes + DRC_RES_MAX, 64);
	struct share *sh = grow_share(d, s, &c->client); /* first: the new one counts */
	struct drc_entry *e = sh ? get_entry(d, s, room) : NULL;

	if (sh && !e)
		shrink_share(s, sh);
	if (!e)
		return DRC_NO_MEMORY;
	e->share = sh;
	e->key = c->key;
	e->done = false;
	e->res_bytes = 0;
	list_init(&e->joined);
	memcpy(e->data, c->cred, c->key.cred_bytes);
	hash_add(&s->table, &e->node, hash);
	send_for_next(sh);
	s->stats.executing++;
	c->entry = e;
	return DRC_EXECUTE;
}

/* Hashes the whole key: if part of it were left out, a client could fill one bucket with calls that differ only in
 * that part. */
static uint64_t hash_of(const struct drc *d, const struct drc_call *c)
{
	uint8_t all[sizeof(c->key) + DRC_CRED_MAX];

	assert(c->key.cred_bytes <= DRC_CRED_MAX);
	memcpy(all, &c->key, sizeof(c->key));
	memcpy(all + sizeof(c->key), c->cred, c->key.cred_bytes);
	return drc_hash(d, all, sizeof(c->key) + c->key.cred_bytes);
}

enum drc_verdict drc_enter(struct drc *d, struct drc_call *c)
{
	uint64_t hash = hash_of(d, c);
	struct shard *s = shard_of(d, hash);
	enum drc_verdict v;
	struct drc_entry *e;

	c->entry = NULL;
	list_init(&c->link);
	pthread_mutex_lock(&s->lock);
	e = find(s, hash, c);
	if (e && has_ended(d, e)) {
		take_out(s, e);
		list_add_tail(&s->spare, &e->link);
		e = NULL;
	}
	v = e ? found(s, e, c) : enter_new(d, s, hash, c);
	pthread_mutex_unlock(&s->lock);
	return v;
}

/* a call that has its verdict may be in the list of wake_all() */
bool drc_leave(struct drc *d, struct drc_call *c)
{
	struct shard *s = shard_of(d, hash_of(d, c));
	bool joined;

	pthread_mutex_lock(&s->lock);
	joined = c->verdict == DRC_JOINED;
	if (joined)
		list_del(&c->link);
	pthread_mutex_unlock(&s->lock);
	return joined;
}

static void wake_all(struct list *calls)
{
	struct list *n;

	while ((n = list_pop(calls))) {
		struct drc_call *c = list_entry(n, struct drc_call, link);

		c->wake(c); /* @c may be freed when this returns */
	}
}

void drc_done(struct drc *d, struct drc_call *c)
{
	struct list woken = LIST_INIT(woken);
	struct drc_entry *e = c->entry;
	struct shard *s = shard_of(d, e->node.hash);

	assert(c->res_bytes <= DRC_RES_MAX);
	c->entry = NULL;
	pthread_mutex_lock(&s->lock);
	e->done = true;
	s->stats.executing--;
	e->res_bytes = c->res_bytes;
	memcpy(e->data + e->key.cred_bytes, c->res, c->res_bytes);
	list_for_each(n, &e->joined)
		hand_out(e, list_entry(n, struct drc_call, link));
	list_splice_tail(&woken, &e->joined);
	e->done_ns = clock_coarse_ns();
	list_add_tail(&e->share->done, &e->link);
	send_for_rest(s, e->share);
	trim(d, s);
	pthread_mutex_unlock(&s->lock);
	wake_all(&woken);
}

void drc_abandon(struct drc *d, struct drc_call *c)
{
	struct drc_entry *e = c->entry;
	struct shard *s = shard_of(d, e->node.hash);
	struct drc_call *heir = NULL;
	struct list *n;

	c->entry = NULL;
	pthread_mutex_lock(&s->lock);
	n = list_pop(&e->joined);
	if (n) {
		heir = list_entry(n, struct drc_call, link);
		heir->entry = e;
		heir->verdict = DRC_EXECUTE;
	} else {
		take_out(s, e);
		s->stats.executing--;
		list_add_tail(&s->spare, &e->link);
		trim(d, s);
	}
	pthread_mutex_unlock(&s->lock);
	if (heir)
		heir->wake(heir);
}

void drc_stats(struct drc *d, struct drc_stats *ret)
{
	for (unsigned i = 0; d && i < d->nshards; i++) {
		struct shard *s = &d->shards[i];

		pthread_mutex_lock(&s->lock);
		ret->hits += s->stats.hits;
		ret->joins += s->stats.joins;
		ret->evictions += s->stats.evictions;
		ret->entries += s->table.n;
		ret->clients += s->shares.n;
		ret->executing += s->stats.executing;
		ret->bytes += s->bytes;
		pthread_mutex_unlock(&s->lock);
	}
}
