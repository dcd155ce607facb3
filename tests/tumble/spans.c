/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * spans.c - what each byte of a file may be, while several clients change it and servers fail
 *
 * Operation:  A byte is a register, and each change of it has a first and a last moment at which it may take effect. The
 *             candidates of a span are the changes whose bytes a read may return. A change that has ended for certain
 *             kills what ended before it began; so does a change that a read has returned, and that read kills what
 *             ended before itself. What has failed may take effect until the client that made it has had a reply to a
 *             later call by that stripe, or until a cut is complete on each server.
 *             Candidates that are dead stay for reads that began before.
 * Memory:     Changes are counted by candidates; spans with equal candidates are joined.
 * Threads:    One.
 * Errors:     -ENOMEM.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "shared.h"

/* ---- changes ----------------------------------------------------------------------------- */

/** change_create - a change that begins at @start; the caller has a reference. Return: NULL: no memory */
struct change *change_create(struct spans *s, uint64_t start)
{
	struct change *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->refs = 1;
	c->start = start;
	c->failed = c->end = NEVER;
	list_add_tail(&s->changes, &c->link);
	return c;
}

/** change_put - drops a reference; NULL is fine */
void change_put(struct change *c)
{
	if (!c || --c->refs)
		return;
	list_del(&c->link);
	free(c);
}

static uint8_t byte_of(const struct change *c, uint64_t off)
{
	return c->zero ? 0 : pattern_byte(c->key, off);
}

/* ---- spans ------------------------------------------------------------------------------- */

static void drop(struct span *sp)
{
	for (unsigned i = 0; i < sp->n; i++)
		change_put(sp->v[i].by);
	free(sp->v);
}

static int copy(const struct span *from, struct span *to)
{
	to->v = calloc(from->n + 1, sizeof(*to->v));
	if (!to->v)
		return -ENOMEM;
	memcpy(to->v, from->v, from->n * sizeof(*to->v));
	to->n = from->n;
	for (unsigned i = 0; i < to->n; i++)
		to->v[i].by->refs++;
	return 0;
}

static int add_candidate(struct span *sp, struct change *c)
{
	struct candidate *v = reallocarray(sp->v, sp->n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	sp->v = v;
	v[sp->n++] = (struct candidate){ c, NEVER };
	c->refs++;
	return 0;
}

/** spans_init - @max bytes that no one wrote. Return: 0, -ENOMEM */
int spans_init(struct spans *s, uint64_t max)
{
	*s = (struct spans){ .max = max, .n = 1, .room = 1 };
	list_init(&s->changes);
	s->v = calloc(1, sizeof(*s->v));
	s->hole = s->v ? change_create(s, 0) : NULL;
	if (!s->hole)
		return -ENOMEM;
	s->hole->zero = true;
	s->hole->end = 0;
	return add_candidate(&s->v[0], s->hole);
}

/** spans_fini - frees all; operations hold no changes any more */
void spans_fini(struct spans *s)
{
	for (size_t i = 0; i < s->n; i++)
		drop(&s->v[i]);
	free(s->v);
	if (s->changes.next)
		change_put(s->hole);
	*s = (struct spans){ 0 };
}

static uint64_t end_of(const struct spans *s, size_t i)
{
	return i + 1 < s->n ? s->v[i + 1].from : s->max;
}

/* The span that has the byte at @off */
static size_t find(const struct spans *s, uint64_t off)
{
	size_t low = 0, high = s->n;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (s->v[middle].from <= off)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Has a span begin at @off. Return: 0, -ENOMEM; @ret: which one; n behind the last byte */
static int split(struct spans *s, uint64_t off, size_t *ret)
{
	size_t i = find(s, off);
	struct span *v;

	*ret = off >= s->max ? s->n : i;
	if (off >= s->max || s->v[i].from == off)
		return 0;
	if (s->n == s->room) {
		v = reallocarray(s->v, s->room * 2, sizeof(*v));
		if (!v)
			return -ENOMEM;
		s->v = v;
		s->room *= 2;
	}
	memmove(&s->v[i + 2], &s->v[i + 1], (s->n - i - 1) * sizeof(*s->v));
	if (copy(&s->v[i], &s->v[i + 1])) {
		memmove(&s->v[i + 1], &s->v[i + 2], (s->n - i - 1) * sizeof(*s->v));
		return -ENOMEM;
	}
	s->v[i + 1].from = off;
	s->n++;
	*ret = i + 1;
	return 0;
}

/** spans_add - @c may change the bytes from @from to @to from now on. Return: 0, -ENOMEM */
int spans_add(struct spans *s, struct change *c, uint64_t from, uint64_t to)
{
	size_t i, end;
	int rc = split(s, from, &i);

	if (!rc)
		rc = split(s, to, &end);
	for (; !rc && i < end; i++)
		rc = add_candidate(&s->v[i], c);
	return rc;
}

static void kill_candidate(struct candidate *v, uint64_t now)
{
	v->dead = MIN(v->dead, now);
}

/* Had its client given @v up before @start? Later calls by the same lane are executed behind it. */
static bool is_given_up(const struct change *v, uint64_t lane, uint64_t start)
{
	return v->lane && v->lane == lane && v->failed < start;
}

/** spans_done - @c has ended: it has taken effect */
void spans_done(struct spans *s, const struct change *c, uint64_t from, uint64_t to, uint64_t now)
{
	for (size_t i = find(s, from); i < s->n && s->v[i].from < to; i++) {
		for (unsigned k = 0; k < s->v[i].n; k++) {
			struct candidate *v = &s->v[i].v[k];

			if (v->by != c && (v->by->end < c->start || is_given_up(v->by, c->lane, c->start)))
				kill_candidate(v, now);
		}
	}
}

/** spans_undone - @c has changed nothing */
void spans_undone(struct spans *s, const struct change *c, uint64_t now)
{
	for (size_t i = 0; i < s->n; i++)
		for (unsigned k = 0; k < s->v[i].n; k++)
			if (s->v[i].v[k].by == c)
				kill_candidate(&s->v[i].v[k], now);
}

/** spans_fenced - the cut @cut is complete on each server: what had failed before has no effect any more */
void spans_fenced(struct spans *s, const struct change *cut, uint64_t from, uint64_t now)
{
	size_t i = find(s, from);

	for (; i < s->n; i++) {
		for (unsigned k = 0; k < s->v[i].n && end_of(s, i) > from; k++) {
			struct candidate *v = &s->v[i].v[k];

			if (v->by != cut && (v->by->end < cut->start || v->by->failed < cut->start))
				kill_candidate(v, now);
		}
	}
	list_for_each(node, &s->changes) {
		struct change *c = list_entry(node, struct change, link);

		if (c->failed < cut->start)
			c->end = MIN(c->end, now);
	}
}

/* ---- reads ------------------------------------------------------------------------------- */

static bool may_see(const struct candidate *v, const struct look *look, uint64_t off)
{
	if (v->dead < look->start)
		return false;
	return !look->cut || off < look->cut_from || v->by == look->cut || v->by->end >= look->cut->start;
}

static uint64_t count_equal(const struct change *c, uint64_t off, const uint8_t *got, uint64_t len)
{
	uint64_t n = 0;

	while (n < len && got[n] == byte_of(c, off + n))
		n++;
	return n;
}

/* The candidate that has the longest beginning of @got. Return: NULL: none has its first byte */
static struct candidate *match(const struct span *sp, const struct look *look, uint64_t off, const uint8_t *got, uint64_t len,
			       uint64_t *ret_n, bool *ret_unique)
{
	struct candidate *best = NULL;
	uint64_t most = 0;

	*ret_unique = true;
	for (unsigned k = 0; k < sp->n; k++) {
		uint64_t n = may_see(&sp->v[k], look, off) ? count_equal(sp->v[k].by, off, got, len) : 0;

		if (n > most) {
			most = n;
			best = &sp->v[k];
			*ret_unique = true;
		} else if (n && n == most) {
			*ret_unique = false;
		}
	}
	*ret_n = most;
	return best;
}

static void learn(struct span *sp, const struct change *seen, const struct look *look)
{
	for (unsigned k = 0; k < sp->n; k++) {
		struct candidate *v = &sp->v[k];

		if (v->by == seen)
			continue;
		if (v->by->end < seen->start || v->by->end < look->start || is_given_up(v->by, look->lane, look->start))
			kill_candidate(v, look->now);
	}
}

/** spans_judge - a read has returned @got: may that be? If so, what it says is remembered
 * Return: 0; 1: not, and @ret_wrong is the first byte that may not be; -ENOMEM
 */
int spans_judge(struct spans *s, const struct look *look, uint64_t off, const uint8_t *got, uint64_t len, uint64_t *ret_wrong)
{
	uint64_t at = off, end = off + len;

	while (at < end) {
		size_t i = find(s, at), next;
		uint64_t room = MIN(end_of(s, i), end) - at, n;
		const struct candidate *v;
		struct change *seen;
		bool unique;
		int rc;

		/* a pending cut begins within the span */
		if (look->cut && at < look->cut_from)
			room = MIN(room, look->cut_from - at);
		v = match(&s->v[i], look, at, got + (at - off), room, &n, &unique);
		if (!v) {
			*ret_wrong = at;
			return 1;
		}
		seen = v->by;
		if (unique && s->v[i].n > 1) {
			rc = split(s, at, &i);
			if (!rc)
				rc = split(s, at + n, &next);
			if (rc)
				return rc;
			learn(&s->v[i], seen, look);
		}
		at += n;
	}
	return 0;
}

/* ---- tidying ----------------------------------------------------------------------------- */

static bool is_equal(const struct span *a, const struct span *b)
{
	return a->n == b->n && !memcmp(a->v, b->v, a->n * sizeof(*a->v));
}

/** spans_tidy - forgets what no read sees any more that began at @oldest or later */
void spans_tidy(struct spans *s, uint64_t oldest)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct span *sp = &s->v[i];
		unsigned n = 0;

		for (unsigned k = 0; k < sp->n; k++) {
			if (sp->v[k].dead < oldest)
				change_put(sp->v[k].by);
			else
				sp->v[n++] = sp->v[k];
		}
		sp->n = n;
		if (kept && is_equal(&s->v[kept - 1], sp))
			drop(sp);
		else
			s->v[kept++] = *sp;
	}
	s->n = kept;
}
