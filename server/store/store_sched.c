/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_sched.c - the order in which a disk gets the waiting requests
 *
 * Operation: A one-way elevator (C-SCAN): from where the last request ended to the next one in order of file and
 *            offset, and from the last one back to the first. A client that always asks for data just ahead would
 *            get all of the disk, so two modes keep it fair:
 *
 *            - sorted: a limited number of requests may join the current sweep. The others go into the next one,
 *              whatever their place. So no request waits for more than two sweeps. This mode uses no clock.
 *            - deadline: a request past its deadline goes first, the earliest deadline before others. Otherwise
 *              reads go before writes. The elevator continues from there, and deadlines are checked again only
 *              after STORE_SCHED_BATCH requests: when all requests are late, order of age alone would delay all
 *              of them further.
 *
 * Memory:    Nodes are the caller's. They are in a tree by place and in a list by age.
 * Threads:   The one that holds the caller's lock. The caller passes the time.
 * Errors:    None.
 */
#include "store_sched.h"

#include <string.h>
#include <sys/random.h>

/* ---- places ------------------------------------------------------------------------------ */

static struct sched_place place_of(const struct sched_node *n)
{
	return (struct sched_place){ n->sweep, n->dev, n->ino, n->off, n->serial };
}

/* No two nodes have the same place: of requests for the same offset the older one is first. */
static bool is_before(const struct sched_node *n, const struct sched_place *p)
{
	if (n->sweep != p->sweep)
		return n->sweep < p->sweep;
	if (n->dev != p->dev)
		return n->dev < p->dev;
	if (n->ino != p->ino)
		return n->ino < p->ino;
	if (n->off != p->off)
		return n->off < p->off;
	return n->serial < p->serial;
}

static struct sched_node *node_of(const struct treap_node *n)
{
	return container_of(n, struct sched_node, tree);
}

static bool before(const struct treap_node *a, const struct treap_node *b)
{
	const struct sched_place p = place_of(node_of(b));

	return is_before(node_of(a), &p);
}

/* Return: the first node at @p or behind it; if no node is there, the first of all */
static struct sched_node *find_from(const struct sched_set *set, const struct sched_place *p)
{
	struct treap_node *found = NULL;

	for (struct treap_node *n = set->places.root; n;) {
		if (is_before(node_of(n), p)) {
			n = n->right;
		} else {
			found = n;
			n = n->left;
		}
	}
	for (struct treap_node *n = found ? NULL : set->places.root; n; n = n->left)
		found = n;
	return found ? node_of(found) : NULL;
}

/* ---- the order ---------------------------------------------------------------------------- */

void store_sched_init(struct store_sched *s, uint64_t read_ns, uint64_t write_ns)
{
	memset(s, 0, sizeof(*s));
	s->read_ns = read_ns;
	s->write_ns = write_ns;
	for (unsigned i = 0; i < ARRAY_SIZE(s->sets); i++) {
		struct treap *places = &s->sets[i].places;
		ssize_t n = getrandom(&places->random, sizeof(places->random), 0);

		(void)n; /* without it the weights are known, and nothing else is wrong */
		places->before = before;
		list_init(&s->sets[i].fifo);
	}
	s->at = &s->sets[0];
}

static bool has_deadline(const struct store_sched *s)
{
	return s->read_ns || s->write_ns;
}

static struct sched_set *set_of(struct store_sched *s, const struct sched_node *n)
{
	return &s->sets[has_deadline(s) && n->write];
}

/* Without deadlines: chooses the sweep. With deadlines all are in the same sweep, and time keeps it fair. */
static void join_sweep(struct store_sched *s, struct sched_node *n)
{
	n->sweep = s->pos.sweep;
	if (has_deadline(s))
		return;
	if (is_before(n, &s->pos) || s->joined == STORE_SCHED_JOIN_MAX)
		n->sweep++;
	else
		s->joined++;
}

void store_sched_add(struct store_sched *s, struct sched_node *n, uint64_t now_ns)
{
	struct sched_set *set = set_of(s, n);

	n->serial = ++s->added;
	n->due_ns = now_ns + (n->write ? s->write_ns : s->read_ns);
	n->late = false;
	join_sweep(s, n);
	treap_insert(&set->places, &n->tree);
	list_add_tail(&set->fifo, &n->fifo);
	s->n++;
}

static struct sched_node *oldest(struct sched_set *set)
{
	return list_first_entry(&set->fifo, struct sched_node, fifo);
}

/* Return: the request with the earliest deadline that has passed, or NULL */
static struct sched_node *find_late(struct store_sched *s, uint64_t now_ns)
{
	struct sched_node *first = NULL;

	if (!has_deadline(s))
		return NULL;
	for (unsigned i = 0; i < ARRAY_SIZE(s->sets); i++) {
		struct sched_node *n = oldest(&s->sets[i]);

		if (n && n->due_ns <= now_ns && (!first || n->due_ns < first->due_ns))
			first = n;
	}
	return first;
}

/* In mode `sorted` the first node is the next one: only a request that overlaps with the last one can lie before the
 * position where that ended. */
static struct sched_node *next_by_place(const struct store_sched *s, const struct sched_set *set)
{
	static const struct sched_place start;

	return find_from(set, has_deadline(s) ? &s->pos : &start);
}

static struct sched_node *find_next(struct store_sched *s, uint64_t now_ns)
{
	struct sched_node *n, *late;

	if (s->batch && s->at->places.root)
		return next_by_place(s, s->at);
	n = next_by_place(s, &s->sets[!s->sets[0].places.root]);
	late = find_late(s, now_ns);
	s->batch = 0;
	if (!late || late == n)
		return n;
	s->batch = STORE_SCHED_BATCH;
	late->late = true;
	return late;
}

/* Records that the disk is where @n ends. */
static void move_to(struct store_sched *s, const struct sched_node *n)
{
	if (n->sweep > s->pos.sweep || !s->n)
		s->joined = 0;
	s->pos = (struct sched_place){ n->sweep, n->dev, n->ino, n->end, 0 };
}

struct sched_node *store_sched_take(struct store_sched *s, uint64_t now_ns)
{
	struct sched_node *n = find_next(s, now_ns);

	if (!n)
		return NULL;
	s->at = set_of(s, n);
	treap_remove(&s->at->places, &n->tree);
	list_del(&n->fifo);
	s->n--;
	s->batch -= s->batch > 0;
	move_to(s, n);
	return n;
}

void store_sched_pass(struct store_sched *s, struct sched_node *n)
{
	n->sweep = s->pos.sweep;
	n->late = false;
	move_to(s, n);
}
