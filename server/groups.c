/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * groups.c - the groups of a user as this host knows them, instead of the 16 that AUTH_SYS has room for
 *
 * Operation: a table of users by uid. Who is not in it, or was asked for too long ago, is asked for on
 *            a worker (the database may be a directory server on the other side of the world), and
 *            the calls of that user wait; those of others go on. What is a little old is used while
 *            it is asked for anew, so that a busy user waits once and never again.
 *
 *                 age   0 ......... ASK_AFTER ......... WAIT_AFTER ...
 *                       used        used, and asked     asked, and waited for
 *
 *            A database that does not answer does not change what it said before; a user of whom it
 *            never said anything has no groups but the one that he calls with, until it is asked
 *            again RETRY_AFTER later.
 * Memory:    KNOWN_MAX users, of whom those go first that were not seen for longest. Those that are
 *            being asked for do not count: there are not more of them than there are calls.
 * Threads:   the reactor's, groups_ask() excepted. ASKING_MAX at once, so that a database that hangs
 *            takes some of the workers away from files, not all of them.
 * Errors:    logged, a few of them.
 */
#include "groups.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "siphash.h"

#define KNOWN_MAX 1024u
#define BUCKETS 1024u
#define ASKING_MAX 4u
#define ASK_AFTER_NS (60 * NS_PER_S)
#define WAIT_AFTER_NS (600 * NS_PER_S)
#define RETRY_AFTER_NS (5 * NS_PER_S)
#define RECORD_BYTES_MAX (1u << 20) /* of a user in the database */

struct groups {
	const struct groups_ops *ops;
	void *ctx;
	struct siphash_key key;
	struct groups_entry *table[BUCKETS];
	struct list idle;  /* entries, the one that was not used for longest first */
	struct list queue; /* entries to be asked for */
	unsigned count, nidle, asking;
	struct log_limit said;
};

/** groups_create - see groups.h; Return: 0, -ENOMEM */
int groups_create(const struct groups_ops *ops, void *ctx, struct groups **ret)
{
	struct groups *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	if (getrandom(&g->key, sizeof(g->key), 0) != (ssize_t)sizeof(g->key))
		memset(&g->key, 0x5a, sizeof(g->key)); /* early boot: weaker, not broken */
	g->ops = ops;
	g->ctx = ctx;
	g->said = (struct log_limit)LOG_LIMIT_INIT;
	list_init(&g->idle);
	list_init(&g->queue);
	*ret = g;
	return 0;
}

static struct groups_entry **bucket(struct groups *g, uint32_t uid)
{
	return &g->table[siphash(&g->key, &uid, sizeof(uid)) % BUCKETS];
}

static void set_idle(struct groups *g, struct groups_entry *e)
{
	list_add_tail(&g->idle, &e->link);
	g->nidle++;
}

static void unset_idle(struct groups *g, struct groups_entry *e)
{
	list_del(&e->link);
	g->nidle--;
}

static void drop_oldest(struct groups *g)
{
	struct groups_entry *e = list_first_entry(&g->idle, struct groups_entry, link);
	struct groups_entry **at = bucket(g, e->uid);

	while (*at != e)
		at = &(*at)->hash_next;
	*at = e->hash_next;
	unset_idle(g, e);
	g->count--;
	free(e->groups);
	free(e);
}

/** groups_destroy - see groups.h */
void groups_destroy(struct groups *g)
{
	if (!g)
		return;
	while (g->nidle)
		drop_oldest(g);
	free(g);
}

static struct groups_entry *find(struct groups *g, uint32_t uid)
{
	struct groups_entry *e = *bucket(g, uid);

	while (e && e->uid != uid)
		e = e->hash_next;
	return e;
}

static struct groups_entry *add(struct groups *g, uint32_t uid)
{
	struct groups_entry **at = bucket(g, uid), *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->cache = g;
	e->uid = uid;
	list_init(&e->link);
	list_init(&e->waiting);
	e->hash_next = *at;
	*at = e;
	g->count++;
	return e;
}

static void ask_some(struct groups *g)
{
	while (g->asking < ASKING_MAX && !list_is_empty(&g->queue)) {
		struct groups_entry *e = list_entry(list_pop(&g->queue), struct groups_entry, link);

		g->asking++;
		e->answer = (struct groups_answer){ 0 };
		g->ops->ask(g->ctx, e);
	}
}

static void ask(struct groups *g, struct groups_entry *e)
{
	if (e->asking)
		return;
	if (e->known)
		unset_idle(g, e);
	e->asking = true;
	list_add_tail(&g->queue, &e->link);
	ask_some(g);
}

/** groups_of - see groups.h */
bool groups_of(struct groups *g, uint64_t now, struct creds *c, struct groups_wait *w)
{
	struct groups_entry *e = find(g, c->uid);

	if (!e)
		e = add(g, c->uid);
	if (!e) {
		c->ngroups = 0;
		return true;
	}
	if (!e->known || now >= e->ask_ns)
		ask(g, e);
	if (e->known && now < e->wait_ns) {
		if (e->n)
			memcpy(c->groups, e->groups, e->n * sizeof(e->groups[0]));
		c->ngroups = e->n;
		if (!e->asking) {
			unset_idle(g, e);
			set_idle(g, e);
		}
		return true;
	}
	if (!list_is_linked(&w->link))
		list_add_tail(&e->waiting, &w->link);
	return false;
}

/* what is known of @e now */
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

/** groups_answered - see groups.h */
void groups_answered(struct groups_entry *e, uint64_t now)
{
	struct groups *g = e->cache;
	struct list waiting, *n;

	learn(g, e, now);
	e->asking = false;
	g->asking--;
	set_idle(g, e);
	ask_some(g);
	list_init(&waiting);
	list_splice_tail(&waiting, &e->waiting);
	while ((n = list_pop(&waiting))) {
		struct groups_wait *w = list_entry(n, struct groups_wait, link);

		w->fn(w);
	}
	/* not before those who waited have had their answer */
	while (g->nidle > KNOWN_MAX)
		drop_oldest(g);
}

/** groups_asking - see groups.h */
unsigned groups_asking(const struct groups *g)
{
	return g ? g->asking : 0;
}

/** groups_count - see groups.h */
unsigned groups_count(const struct groups *g)
{
	return g->count;
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
	/* the words of different databases for "there is none", see getpwuid(3) */
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
		n = MAX(n, 2 * before); /* not every libc tells how many there are */
	} while (before < (int)CREDS_GROUPS_MAX);
	return -E2BIG;
}

/** groups_ask - see groups.h */
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
