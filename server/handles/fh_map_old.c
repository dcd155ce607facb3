/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_map_old.c - forgetting files that others have removed
 *
 * Operation: nobody tells leatd of files that local processes remove. So for each node or name that is
 *            added, one older node is looked at (fh.c does that); for each that is not found, four more.
 *            While less than a fifth of all is dead that is all; beyond, looking outruns dying. The hand
 *            goes round in the order of ids, which is the order in which directories were listed.
 *            A file that is not where it was may also have moved. If it is looked up there it gets the
 *            same node again, and the same handle: its generation tells it from others. So nothing is
 *            lost if its node is forgotten. A directory holds together what is in it, and a file without a generation
 *            would get another handle: they are forgotten when they are missed twice, a round apart. What was
 *            in a directory that is forgotten has no way any more, and is forgotten in the next round.
 * Memory:    frees nodes and names.
 * Threads:   any; the map's lock, never held over a system call on files.
 * Errors:    none.
 */
#include "base/util.h"
#include "fh_map_int.h"

#define DUE_FOR_LOST 4u
#define DUE_AT_ONCE 4u
#define DUE_PART 16u /* of what is due, with one call */
#define HAND_STEPS 64u

static bool is_large(const struct fh_map *m)
{
	return m->nnodes + m->nnames > m->keep;
}

static void add_due(struct fh_map *m, size_t n)
{
	if (is_large(m))
		m->due = MIN(m->due + n, m->nnodes);
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

/* in the bucket of the hand, the next after the last one */
static struct fh_map_node *next_here(const struct fh_map *m)
{
	struct fh_map_node *best = NULL;

	for (struct fh_map_node *n = m->by_id[m->hand & (m->nbuckets - 1)]; n; n = n->id_next) {
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
