/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fsck_orphans.c - leat volume fsck: objects that no file has, and what is pending
 *
 * Operation:  An object that was listed and not found belonged to a file that has been removed, or that was missed, since a
 *             name moved while directories were read. So the manager says whether one has; then they are read again. If a file
 *             was removed, its objects are pending there, or tombstones when they are looked at again.
 *             An object that is younger than a handle can live is left alone.
 * Memory:     16 bytes for each object with pending work.
 * Threads:    One.
 * Errors:     As fsck.h says.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "fsck.h"

#define WALKS 3	 /* of all directories, at most */
#define SKEW_S 30 /* clocks of a volume's servers may differ by as much */

/* What the manager has to do. */
struct pending {
	struct fsck *f;
	unsigned char (*v)[FSCK_OBJECT_BYTES]; /* in order */
	size_t n, room;
	uint64_t cuts, removals;
};

/* ---- pending work ---------------------------------------------------------------------------- */

static void tell_damaged(struct fsck *f, const unsigned char object[FSCK_OBJECT_BYTES])
{
	char name[sizeof("pending/") + 2 * FSCK_OBJECT_BYTES] = "pending/";

	text_put_hex(object, FSCK_OBJECT_BYTES, name + strlen(name));
	fsck_fault(f, name, "the layout of this file of the manager is not valid, so the manager cannot complete what is pending");
	fsck_outcome(f, 0, NULL);
}

static int add_pending(void *ctx, const unsigned char object[16], enum leat_volume_todo todo)
{
	struct pending *p = ctx;

	if (p->n == p->room) {
		size_t room = p->room ? 2 * p->room : 64;
		void *v = reallocarray(p->v, room, sizeof(*p->v));

		if (!v)
			return -ENOMEM;
		p->v = v;
		p->room = room;
	}
	memcpy(p->v[p->n++], object, FSCK_OBJECT_BYTES);
	p->cuts += todo == LEAT_VOLUME_TODO_CUT;
	p->removals += todo == LEAT_VOLUME_TODO_REMOVE;
	if (todo == LEAT_VOLUME_TODO_DAMAGED && !p->f->again)
		tell_damaged(p->f, object);
	return 0;
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, FSCK_OBJECT_BYTES);
}

static bool is_pending(const struct pending *p, const unsigned char object[FSCK_OBJECT_BYTES])
{
	return p->n && bsearch(object, p->v, p->n, sizeof(*p->v), compare);
}

/* ---- objects --------------------------------------------------------------------------------- */

/* As far as the list knows. @lifetime_s: of handles */
static bool is_candidate(const struct fsck_server *s, const struct fsck_object *o, uint32_t lifetime_s)
{
	return !(o->flags & (FSCK_FOUND | FSCK_REMOVED)) && fsck_age_s(s, o->mtime_s) > (int64_t)lifetime_s + SKEW_S;
}

typedef void (*orphan_fn)(struct fsck *f, const struct fsck_server *s, const struct fsck_object *o, uint32_t lifetime_s);

/* Return: how many there are; @fn is called for each; NULL: only counts */
static uint64_t each_candidate(struct fsck *f, const struct pending *p, uint32_t lifetime_s, orphan_fn fn)
{
	uint64_t n = 0;

	for (size_t i = 0; i < f->map->nservers; i++) {
		const struct fsck_server *s = &f->servers[i];

		for (size_t k = 0; k < s->n && s->listed && !tool_interrupted(); k++) {
			if (!is_candidate(s, &s->v[k], lifetime_s) || is_pending(p, s->v[k].name))
				continue;
			n++;
			if (fn)
				fn(f, s, &s->v[k], lifetime_s);
		}
	}
	return n;
}

/* @now: as it was judged: it is not moved if it was written since */
static int set_aside(const struct fsck *f, const struct fsck_server *s, const struct fsck_object *o,
		     const struct leat_volume_object *now, uint32_t lifetime_s)
{
	struct leat_volume_command c = { .size = sizeof(c), .key = f->key, .server = s->is->id, .stripe = o->stripe };
	uint64_t until = (uint64_t)((int64_t)time(NULL) + s->skew_s) + lifetime_s + SKEW_S;

	memcpy(c.object, o->name, sizeof(c.object));
	return leat_volume_object_set_aside(s->m, &c, until, now->mtime_ns, NULL, NULL);
}

static void judge_orphan(struct fsck *f, const struct fsck_server *s, const struct fsck_object *o, uint32_t lifetime_s)
{
	struct leat_volume_object now;
	char text[FSCK_TEXT_BYTES];

	if (o->epoch && fsck_object_stat(f, s, o->name, o->stripe, &now))
		return;
	if (o->epoch && (!now.exists || now.removed || now.mtime_ns / NS_PER_S > o->mtime_s)) /* it is in use */
		return;
	fsck_fault(f, fsck_object_text(s, o->name, o->stripe, text), "no file has this object of %" PRIu64 " bytes", o->bytes);
	if (!o->epoch) /* its server does not serve it */
		fsck_outcome(f, 0, NULL);
	else
		fsck_outcome(f, f->repair ? set_aside(f, s, o, &now, lifetime_s) : 0, s->m);
}

static void tell_pending(struct fsck *f, const struct pending *p, const struct leat_volume_work *w)
{
	if (w->deposed) {
		fsck_fault(f, "the manager",
			   "another manager is at work, or was: this one cuts and removes nothing until leatd is started again");
		fsck_outcome(f, 0, NULL);
	}
	if (p->cuts || p->removals)
		printf("pending: %" PRIu64 " truncation%s, %" PRIu64 " removal%s; the manager completes them when each server is there\n",
		       p->cuts, tool_plural(p->cuts), p->removals, tool_plural(p->removals));
}

/* Return: 0; TOOL_FAILED after a message */
static int ask_manager(struct fsck *f, struct pending *p, struct leat_volume_work *ret)
{
	int rc;

	p->n = 0;
	p->cuts = p->removals = 0;
	*ret = (struct leat_volume_work){ .size = sizeof(*ret) };
	rc = leat_volume_pending(f->t.m, f->key, add_pending, p, ret);
	return rc ? tool_fail(f->t.m, f->t.path, rc) : 0;
}

static bool has_moved(const struct leat_volume_work *a, const struct leat_volume_work *b)
{
	return a->moving || b->moving || a->moves != b->moves;
}

/* Reads the directories again until no name moves, or there is nothing to look for. Return: 0; TOOL_FAILED */
static int walk_again(struct fsck *f, struct pending *p, struct leat_volume_work *before, struct leat_volume_work *after)
{
	int rc = 0;

	for (unsigned i = 1; i < WALKS && !rc && has_moved(before, after) && each_candidate(f, p, after->lifetime_s, NULL); i++) {
		*before = *after;
		f->again = true;
		rc = fsck_walk(f);
		if (!rc)
			rc = ask_manager(f, p, after);
	}
	return rc;
}

static void tell_uncertain(struct fsck *f, uint64_t n, const char *why)
{
	f->incomplete = true;
	printf("%" PRIu64 " object%s without a file that is known: %s\n", n, tool_plural(n), why);
}

int fsck_orphans(struct fsck *f, struct leat_volume_work before)
{
	struct pending p = { .f = f };
	struct leat_volume_work after;
	uint64_t n;
	int rc = ask_manager(f, &p, &after);

	if (!rc)
		rc = walk_again(f, &p, &before, &after);
	if (!rc) {
		n = each_candidate(f, &p, after.lifetime_s, NULL);
		if (n && f->unreadable)
			tell_uncertain(f, n, "not all files could be looked at");
		else if (n && f->layouts)
			tell_uncertain(f, n, "they may be those of files without a valid layout");
		else if (n && has_moved(&before, &after))
			tell_uncertain(f, n, "files were moved or linked meanwhile, so that some may have been missed: check again later");
		else
			(void)each_candidate(f, &p, after.lifetime_s, judge_orphan);
		tell_pending(f, &p, &after);
	}
	free(p.v);
	return rc;
}
