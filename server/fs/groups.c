/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * groups.c - the groups of a user from this host's database, instead of the 16 of AUTH_SYS
 *
 * Operation: a table of users by uid. A user without an entry, or with one that is too old, is looked up on
 *            a worker (the database may be a remote directory server). The calls of that user wait; those
 *            of other users continue. An entry that is a little old is used while it is looked up again,
 *            so that a busy user waits only once.
 *
 *                age   0 ......... ASK_AFTER ......... WAIT_AFTER ...
 *                      used        used, and asked     asked, and waited for
 *
 *            If the database does not respond, its last result stays in use. A user without a result has
 *            only the primary group of the call, until the next lookup RETRY_AFTER later.
 *
 *            Clients share the lookups and the table, because one client may claim any number of uids:
 *
 *            - Lookups are in a queue that is fair between clients. One client has at most half of the
 *              ASKING_MAX lookups in progress; the other half is left to others.
 *            - An entry belongs to the client that had it looked up last. If the table is full, entries
 *              older than WAIT_AFTER are evicted first, then the least recently used entry of the client
 *              with the most entries. So a client with less than an equal part loses none to others.
 *            - If another client uses the entry too, that client gets the entry instead.
 * Memory:    KNOWN_MAX users. Entries that are queued or being looked up do not count: there are at most
 *            as many as calls. A share exists as long as its client has an entry.
 * Threads:   the reactor's, except groups_ask(). ASKING_MAX lookups at once, so that a hanging database
 *            blocks some of the workers, not all of them.
 * Errors:    logged, with a rate limit.
 */
#include "groups.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/siphash.h"

#define KNOWN_MAX 1024u
#define ASKING_MAX 8u
#define ASK_AFTER_NS (60 * NS_PER_S)
#define WAIT_AFTER_NS (600 * NS_PER_S)
#define RETRY_AFTER_NS (5 * NS_PER_S)
#define RECORD_BYTES_MAX (1u << 20) /* limit of a user's record in the database */

struct groups {
	void (*ask)(void *ctx, struct groups_entry *e);
	void *ctx;
	struct siphash_key key;
	struct hash by_uid;
	struct list shares; /* a list is sufficient: it is searched at each lookup, not in each call */
	struct fair queue;  /* entries to be looked up */
	unsigned nidle, asking;
	struct log_limit said;
};

/* The entries of one client. */
struct groups_share {
	struct list link; /* groups->shares */
	struct groups *cache;
	struct rpcrdma_client_id client;
	unsigned refs;	  /* its entries, and callers of get_share() */
	struct list idle; /* entries neither queued nor being looked up, least recently used first */
	unsigned nidle;
	struct fair_client turn; /* in groups->queue */
	struct fair_flow queue;
	unsigned queued, asking;
};

int groups_create(void (*ask)(void *ctx, struct groups_entry *e), void *ctx, struct groups **ret)
{
	struct groups *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return -ENOMEM;
	err = siphash_key_random(&g->key);
	if (!err)
		err = hash_init(&g->by_uid, KNOWN_MAX);
	if (err) {
		free(g);
		return err;
	}
	g->ask = ask;
	g->ctx = ctx;
	g->said = (struct log_limit)LOG_LIMIT_INIT;
	list_init(&g->shares);
	fair_init(&g->queue);
	*ret = g;
	return 0;
}

/* ---- shares ------------------------------------------------------------------------------- */

static bool is_client(const struct groups_share *s, const struct rpcrdma_client_id *id)
{
	return !memcmp(&s->client, id, sizeof(*id));
}

/* The share of a client, with one more reference; NULL: no memory. */
static struct groups_share *get_share(struct groups *g, const struct rpcrdma_client_id *id)
{
	struct groups_share *s;

	list_for_each(n, &g->shares) {
		s = list_entry(n, struct groups_share, link);
		if (is_client(s, id)) {
			s->refs++;
			return s;
		}
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->cache = g;
	s->client = *id;
	s->refs = 1;
	list_init(&s->idle);
	fair_client_init(&s->turn);
	fair_flow_init(&s->queue, &s->turn);
	list_add_tail(&g->shares, &s->link);
	return s;
}

static void put_share(struct groups_share *s)
{
	if (--s->refs)
		return;
	list_del(&s->link);
	free(s);
}

static void note_other(struct groups_entry *e, const struct rpcrdma_client_id *id)
{
	e->other = *id;
	e->has_other = true;
}

/* Makes @s the owner of @e; takes the caller's reference to @s. */
static void set_owner(struct groups_entry *e, struct groups_share *s)
{
	if (e->share != s)
		note_other(e, &e->share->client);
	put_share(e->share);
	e->share = s;
}

static void set_idle(struct groups *g, struct groups_entry *e)
{
	list_add_tail(&e->share->idle, &e->link);
	e->share->nidle++;
	g->nidle++;
}

static void unset_idle(struct groups *g, struct groups_entry *e)
{
	list_del(&e->link);
	e->share->nidle--;
	g->nidle--;
}

/* ---- the table ---------------------------------------------------------------------------- */

static uint64_t hash_of(const struct groups *g, uint32_t uid)
{
	return siphash(&g->key, &uid, sizeof(uid));
}

static struct groups_entry *find(struct groups *g, uint32_t uid)
{
	hash_for_each_equal(n, &g->by_uid, hash_of(g, uid)) {
		struct groups_entry *e = container_of(n, struct groups_entry, node);

		if (e->uid == uid)
			return e;
	}
	return NULL;
}

static struct groups_entry *add(struct groups *g, const struct rpcrdma_client_id *owner, uint32_t uid)
{
	struct groups_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->share = get_share(g, owner);
	if (!e->share) {
		free(e);
		return NULL;
	}
	e->cache = g;
	e->uid = uid;
	list_init(&e->link);
	list_init(&e->waiting);
	hash_add(&g->by_uid, &e->node, hash_of(g, uid));
	return e;
}

/* Call only if @e is neither idle nor queued. */
static void drop(struct groups *g, struct groups_entry *e)
{
	hash_del(&g->by_uid, &e->node);
	put_share(e->share);
	free(e->groups);
	free(e);
}

void groups_destroy(struct groups *g)
{
	if (!g)
		return;
	while (!list_is_empty(&g->shares)) {
		struct groups_share *s = list_first_entry(&g->shares, struct groups_share, link);
		struct groups_entry *e = list_first_entry(&s->idle, struct groups_entry, link);

		unset_idle(g, e);
		drop(g, e);
	}
	hash_fini(&g->by_uid);
	free(g);
}

/* Return: the next entry to be evicted; there must be one. */
static struct groups_entry *find_victim(const struct groups *g, uint64_t now)
{
	const struct groups_share *most = NULL;

	list_for_each(n, &g->shares) {
		const struct groups_share *s = list_entry(n, struct groups_share, link);
		struct groups_entry *e;

		if (!s->nidle)
			continue;
		e = list_first_entry(&s->idle, struct groups_entry, link);
		if (now >= e->wait_ns) /* too old to be used without a new lookup */
			return e;
		if (!most || s->nidle > most->nidle)
			most = s;
	}
	return list_first_entry(&most->idle, struct groups_entry, link);
}

/* This ends, because an entry that is passed on has no other user then. */
static void trim(struct groups *g, uint64_t now)
{
	while (g->nidle > KNOWN_MAX) {
		struct groups_entry *e = find_victim(g, now);
		bool pass = e->has_other && now < e->wait_ns;
		struct groups_share *s = pass ? get_share(g, &e->other) : NULL;

		unset_idle(g, e);
		if (s) {
			set_owner(e, s);
			e->has_other = false;
			set_idle(g, e);
		} else {
			drop(g, e);
		}
	}
}

/* ---- lookups ------------------------------------------------------------------------------ */

/* As for slots (admit.c): a client may have as many lookups as are free. */
static bool client_may(const struct fair_client *f)
{
	const struct groups_share *s = container_of(f, struct groups_share, turn);

	return s->asking + s->cache->asking < ASKING_MAX;
}

static const struct fair_limits limits = { .client = client_may };

static void ask_some(struct groups *g)
{
	struct list *n;

	while ((n = fair_pop(&g->queue, &limits))) {
		struct groups_entry *e = list_entry(n, struct groups_entry, link);

		e->queued = false;
		e->share->queued--;
		e->asking = true;
		e->share->asking++;
		g->asking++;
		e->answer = (struct groups_answer){ 0 };
		g->ask(g->ctx, e);
	}
}

/* Holds a reference to @client: it may disconnect before its job has ended. */
static void enqueue(struct groups *g, struct groups_entry *e, struct client *client)
{
	client_hold(client);
	e->client = client;
	e->queued = true;
	e->share->queued++;
	fair_push(&g->queue, &e->share->queue, &e->link);
}

static void put_client(struct groups_entry *e)
{
	client_put(e->client);
	e->client = NULL;
}

static void dequeue(struct groups_entry *e)
{
	fair_del(&e->share->queue, &e->link);
	e->queued = false;
	e->share->queued--;
	put_client(e);
}

/* Has @e looked up for @client. An entry that waits in the queue of another client moves if this client's queue is
 * shorter. Otherwise a client that claims many uids would delay users of other clients. */
static void ask(struct groups *g, struct groups_entry *e, struct client *client)
{
	struct groups_share *s;

	if (e->asking)
		return;
	s = get_share(g, &client->id);
	if (!s) {
		s = e->share;
		s->refs++;
	}
	if (e->queued && s->queued >= e->share->queued) {
		put_share(s);
		return;
	}
	if (e->queued)
		dequeue(e);
	else if (e->known)
		unset_idle(g, e);
	set_owner(e, s);
	enqueue(g, e, client);
	ask_some(g);
}

bool groups_of(struct groups *g, uint64_t now, struct client *client, struct creds *c, struct groups_wait *w)
{
	struct groups_entry *e = find(g, c->uid);

	if (!e)
		e = add(g, &client->id, c->uid);
	if (!e) {
		c->ngroups = 0;
		return true;
	}
	if (!is_client(e->share, &client->id))
		note_other(e, &client->id);
	if (!e->known || now >= e->ask_ns)
		ask(g, e, client);
	if (e->known && now < e->wait_ns) {
		if (e->n)
			memcpy(c->groups, e->groups, e->n * sizeof(e->groups[0]));
		c->ngroups = e->n;
		if (!e->client) {
			unset_idle(g, e);
			set_idle(g, e);
		}
		return true;
	}
	if (!list_is_linked(&w->link)) {
		list_add_tail(&e->waiting, &w->link);
		w->entry = e;
	}
	return false;
}

void groups_leave(struct groups_wait *w)
{
	struct groups_entry *e = w->entry;
	struct groups *g = e->cache;

	list_del(&w->link);
	if (!e->queued || !list_is_empty(&e->waiting))
		return;
	dequeue(e);
	if (e->known)
		set_idle(g, e);
	else
		drop(g, e);
}

/* Stores the result in @e. */
static void learn(struct groups *g, struct groups_entry *e, uint64_t now)
{
	struct groups_answer *a = &e->answer;
	bool answered = !a->err || a->err == -ENOENT;

	if (!answered && log_limit_ok(&g->said))
		log_warn("groups of uid %u: %s; %s", e->uid,
			 a->err == -E2BIG ? "more than there is room for" : strerror(-a->err),
			 e->known ? "those that were found before count"
				  : "none but that of each call counts");
	if (answered || !e->known) {
		free(e->groups);
		e->groups = answered ? a->groups : NULL;
		e->n = answered && a->groups ? a->n : 0;
		a->groups = NULL;
	}
	free(a->groups);
	a->groups = NULL;
	e->known = true;
	e->ask_ns = now + (answered ? ASK_AFTER_NS : RETRY_AFTER_NS);
	e->wait_ns = now + WAIT_AFTER_NS;
}

void groups_answered(struct groups_entry *e, uint64_t now)
{
	struct groups *g = e->cache;
	struct list waiting, *n;

	learn(g, e, now);
	e->asking = false;
	e->share->asking--;
	g->asking--;
	put_client(e);
	set_idle(g, e);
	ask_some(g);
	list_init(&waiting);
	list_splice_tail(&waiting, &e->waiting);
	while ((n = list_pop(&waiting))) {
		struct groups_wait *w = list_entry(n, struct groups_wait, link);

		w->fn(w);
	}
	/* not before the waiting calls have run */
	trim(g, now);
}

unsigned groups_asking(const struct groups *g)
{
	return g ? g->asking : 0;
}

unsigned groups_count(const struct groups *g)
{
	return (unsigned)g->by_uid.n;
}

/* ---- the database ------------------------------------------------------------------------- */

static int find_user(uint32_t uid, struct passwd *pw, char **ret_buf)
{
	struct passwd *found;
	size_t bytes = 1024;
	char *buf = NULL;
	int err;

	do {
		free(buf);
		bytes *= 2;
		buf = malloc(bytes);
		if (!buf)
			return -ENOMEM;
		err = getpwuid_r(uid, pw, buf, bytes, &found);
	} while (err == ERANGE && bytes < RECORD_BYTES_MAX);
	/* errnos for "no such user" of different databases, see getpwuid(3) */
	if (!found && (!err || err == ENOENT || err == ESRCH || err == EBADF || err == EPERM))
		err = ENOENT;
	if (err) {
		free(buf);
		return -err;
	}
	*ret_buf = buf;
	return 0;
}

static int find_groups(const struct passwd *pw, struct groups_answer *ret)
{
	int n = 32, before;

	do {
		free(ret->groups);
		before = n;
		ret->groups = malloc((size_t)n * sizeof(ret->groups[0]));
		if (!ret->groups)
			return -ENOMEM;
		if (getgrouplist(pw->pw_name, pw->pw_gid, ret->groups, &n) >= 0) {
			ret->n = (uint32_t)MAX(n, 0);
			return 0;
		}
		n = MAX(n, 2 * before); /* not every libc returns the number */
	} while (before < (int)CREDS_GROUPS_MAX);
	return -E2BIG;
}

struct groups_answer groups_ask(uint32_t uid)
{
	struct groups_answer a = { 0 };
	struct passwd pw;
	char *buf = NULL;

	a.err = find_user(uid, &pw, &buf);
	if (a.err)
		return a;
	a.err = find_groups(&pw, &a);
	free(buf);
	if (a.err || a.n > CREDS_GROUPS_MAX) {
		free(a.groups);
		a = (struct groups_answer){ .err = a.err ? a.err : -E2BIG };
	}
	return a;
}
