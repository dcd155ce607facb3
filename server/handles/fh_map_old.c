/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_map_old.c - removes nodes of files that other processes have removed
 *
 * Operation: leatd gets no notice of files that local processes remove. So for each node or name that is
 *            added, one older node is checked (by fh.c); for each one not found, four more. That suffices
 *            while less than a fifth of all nodes are dead; beyond that, the extra checks outpace
 *            removals. Checks proceed in the order of ids, which is the order in which directories were
 *            listed.
 *            A missing file may also have moved. If a client looks it up in its new place, it gets the
 *            same handle again, because its generation identifies it. So removing its node loses nothing.
 *            But a directory connects its content to the root, and a file without a generation would get
 *            another handle: these are removed only when they are missing in two successive rounds. The
 *            content of a removed directory has no path any more, and is removed in the next round.
 * Memory:    frees nodes and names.
 * Threads:   any; the map's lock, never held during a system call on files.
 * Errors:    none.
 */
#include "base/util.h"
#include "fh_map_int.h"

#define DUE_FOR_LOST 4u
#define DUE_AT_ONCE 4u
#define DUE_PART 16u /* maximum nodes checked per call */
#define HAND_STEPS 64u

static bool is_large(const struct fh_map *m)
{
	return m->by_id.n + m->nnames > m->keep;
}

static void add_due(struct fh_map *m, size_t n)
{
	if (is_large(m))
		m->due = MIN(m->due + n, m->by_id.n);
}

void fh_map_grown(struct fh_map *m)
{
	add_due(m, 1);
}

size_t fh_map_due(struct fh_map *m)
{
	size_t n;

	pthread_mutex_lock(&m->lock);
	if (!is_large(m))
		m->due = 0;
	n = MIN(m->due, DUE_AT_ONCE + m->due / DUE_PART);
	pthread_mutex_unlock(&m->lock);
	return n;
}

/* Return: the next node after the last checked one, in the current chain */
static struct fh_map_node *next_here(const struct fh_map *m)
{
	struct fh_map_node *best = NULL;

	for (struct hash_node *at = *hash_chain(&m->by_id, m->hand); at; at = at->next) {
		struct fh_map_node *n = container_of(at, struct fh_map_node, by_id);

		if (n->id > m->hand_id && (!best || n->id < best->id) && !n->is_root)
			best = n;
	}
	return best;
}

uint64_t fh_map_next(struct fh_map *m, uint64_t *ret_exp)
{
	struct fh_map_node *n = NULL;
	uint64_t id = 0;

	pthread_mutex_lock(&m->lock);
	for (unsigned i = 0; i < HAND_STEPS && m->due && !n; i++) {
		n = next_here(m);
		if (!n) {
			m->hand++;
			m->hand_id = 0;
		}
	}
	if (n) {
		m->due--;
		m->hand_id = id = n->id;
		*ret_exp = n->key.exp;
	}
	pthread_mutex_unlock(&m->lock);
	return id;
}

static void drop_wayless(struct fh_map *m, struct fh_map_node *n)
{
	for (struct fh_map_name **p = &n->names; *p;) {
		if ((*p)->parent->id)
			p = &(*p)->next;
		else
			fh_map_end_name(m, p);
	}
}

void fh_map_looked(struct fh_map *m, uint64_t id, bool found)
{
	struct fh_map_node *n;

	pthread_mutex_lock(&m->lock);
	n = fh_map_node(m, id);
	if (n && found) {
		n->missed = false;
		drop_wayless(m, n);
	} else if (n && !n->is_root) {
		add_due(m, DUE_FOR_LOST);
		if ((n->names_inside || n->serial) && !n->missed)
			n->missed = true;
		else
			fh_map_end_node(m, n);
	}
	pthread_mutex_unlock(&m->lock);
}
