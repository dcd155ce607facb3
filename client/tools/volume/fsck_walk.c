/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fsck_walk.c - leat volume fsck: reads all directories, and compares each file with its objects
 *
 * Operation:  What the list of objects says may be old: judge_stripe() asks again for an object that does not fit, between two
 *             layouts of one epoch. If nothing was pending for the file after the first one, all servers had had the
 *             epoch of it then, so that a difference is a fault.
 * Memory:     One path; the open directories from the root to the file.
 * Threads:    One.
 * Errors:     What cannot be read makes the check incomplete. What has gone meanwhile is no fault.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsck.h"

#define STALE_TRIES 3 /* the name leads to another file each time */
#define WRITER_S 60 /* a client has reported what it wrote long before */

/* Has the name gone? A file that has it and cannot be reached counts as unreadable, or its objects would seem to have no file. */
static bool is_gone(struct fsck *f, const char *path, int err)
{
	struct stat st;

	if (err == -ESTALE)
		err = leat_lstat(f->t.m, path, &st);
	return err == -ENOENT || err == -ENOTDIR;
}

static int fail_path(struct fsck *f, const char *path, int err)
{
	if (is_gone(f, path, err))
		return 0;
	if (tool_is_interruption(err) && tool_interrupted())
		return TOOL_FAILED;
	if (!f->again)
		fsck_incomplete(f, path, err == -ENAMETOOLONG ? "its path is too long" : leat_error(f->t.m));
	f->unreadable++;
	return 0;
}

/* ---- one stripe ------------------------------------------------------------------------------ */

struct sought {
	const unsigned char *object;
	bool found;
};

static int is_sought(void *ctx, const unsigned char object[16], enum leat_volume_todo todo)
{
	struct sought *s = ctx;
	int c = memcmp(object, s->object, FSCK_OBJECT_BYTES);

	(void)todo;
	s->found = !c;
	return c >= 0;
}

/* Return: 1, 0; -errno after fsck_incomplete() */
static int is_pending(struct fsck *f, const char *path, const unsigned char object[FSCK_OBJECT_BYTES])
{
	struct sought s = { .object = object };
	int rc = leat_volume_pending(f->t.m, f->key, is_sought, &s, NULL);

	if (rc < 0)
		fsck_incomplete(f, path, leat_error(f->t.m));
	return rc < 0 ? rc : s.found;
}

/* The size that the file has at least if its object has @bytes, at least 1 */
static uint64_t file_bytes(const struct leat_volume_layout *l, uint32_t stripe, uint64_t bytes)
{
	uint64_t unit = (bytes - 1) / l->stripe, size;

	if (__builtin_mul_overflow(unit, l->nstripes, &unit) || __builtin_add_overflow(unit, stripe, &unit) ||
	    __builtin_mul_overflow(unit, l->stripe, &size) || __builtin_add_overflow(size, (bytes - 1) % l->stripe + 1, &size))
		return UINT64_MAX;
	return size;
}

static void tell_long(struct fsck *f, const char *path, const struct leat_volume_layout *l, uint32_t stripe, uint64_t bytes)
{
	uint64_t size = file_bytes(l, stripe, bytes);

	fsck_fault(f, path, "the object of stripe %" PRIu32 " on server %" PRIu32 " is as long as that of a file of %" PRIu64
		   " bytes, and the file has %" PRIu64 ": a writer has not reported its end",
		   stripe, l->stripes[stripe]->server, size, l->bytes);
	if (size > INT64_MAX)
		fsck_outcome(f, 0, NULL);
	else
		fsck_outcome(f, f->repair ? leat_volume_raise(f->t.m, path, l, size) : 0, f->t.m);
}

/* @l: of after @o */
static void judge_object(struct fsck *f, const char *path, const struct leat_volume_layout *l, uint32_t stripe,
			 const struct fsck_server *s, const struct leat_volume_object *o)
{
	bool wrong = true;

	if (o->removed)
		fsck_fault(f, path, "the object of stripe %" PRIu32 " on server %" PRIu32 " was removed", stripe, s->is->id);
	else if (!o->exists && l->epoch > 1) /* a fence leaves a record where nothing was written, too */
		fsck_fault(f, path, "server %" PRIu32 " has lost the object of stripe %" PRIu32, s->is->id, stripe);
	else if (o->exists && o->epoch != l->epoch)
		fsck_fault(f, path, "the object of stripe %" PRIu32 " on server %" PRIu32 " has epoch %" PRIu64
			   ", and the file %" PRIu64 ": one of both is from a backup", stripe, s->is->id, o->epoch, l->epoch);
	else
		wrong = false;
	if (wrong)
		fsck_outcome(f, 0, NULL);
	else if (o->bytes > l->stripes[stripe]->bytes && fsck_age_s(s, o->mtime_ns / NS_PER_S) > WRITER_S)
		tell_long(f, path, l, stripe, o->bytes);
}

/* @l: of before; something looks wrong */
static void judge_stripe(struct fsck *f, const char *path, const struct leat_volume_layout *l, uint32_t stripe,
			 const struct fsck_server *s)
{
	struct leat_volume_layout *after = NULL;
	struct leat_volume_object o;
	int rc = is_pending(f, path, l->object);

	if (rc || fsck_object_stat(f, s, l->object, stripe, &o))
		return;
	rc = leat_volume_layout(f->t.m, path, &after);
	if (!rc && !memcmp(l->object, after->object, sizeof(l->object)) && l->epoch == after->epoch)
		judge_object(f, path, after, stripe, s, &o);
	else if (rc)
		(void)fail_path(f, path, rc);
	leat_volume_layout_free(after);
}

static bool looks_wrong(const struct leat_volume_layout *l, uint32_t stripe, const struct fsck_object *o)
{
	if (!o)
		return l->epoch > 1;
	return o->flags & FSCK_REMOVED || o->epoch != MIN(l->epoch, (uint64_t)UINT32_MAX) || o->bytes > l->stripes[stripe]->bytes;
}

/* The map may have got the server since it was read. */
static bool is_new_server(struct fsck *f, const char *path, uint32_t id)
{
	struct leat_volume_map *map;
	bool found = false;
	int rc = leat_volume_map(f->t.m, &map);

	if (rc) {
		fsck_incomplete(f, path, leat_error(f->t.m));
		return true;
	}
	for (size_t i = 0; i < map->nservers && !found; i++)
		found = map->servers[i]->id == id;
	leat_volume_map_free(map);
	return found;
}

static void check_stripe(struct fsck *f, const char *path, const struct leat_volume_layout *l, uint32_t stripe)
{
	struct fsck_server *s = fsck_server_find(f, l->stripes[stripe]->server);
	struct fsck_object *o = s ? fsck_object_find(s, l->object, stripe) : NULL;

	if (o)
		o->flags |= FSCK_FOUND;
	if (f->again || (s && !s->listed))
		return;
	if (!s && is_new_server(f, path, l->stripes[stripe]->server))
		return;
	if (!s) {
		fsck_fault(f, path, "stripe %" PRIu32 " is on server %" PRIu32 ", which the map does not have", stripe,
			   l->stripes[stripe]->server);
		fsck_outcome(f, 0, NULL);
		return;
	}
	if (!o && l->stripes[stripe]->bytes && l->epoch == 1)
		f->holes++;
	if (o && !o->epoch) {
		fsck_fault(f, path, "the record of the object of stripe %" PRIu32 " on server %" PRIu32 " is damaged", stripe,
			   s->is->id);
		fsck_outcome(f, 0, NULL);
		return;
	}
	if (looks_wrong(l, stripe, o))
		judge_stripe(f, path, l, stripe, s);
}

/* ---- files and directories ------------------------------------------------------------------- */

static int check_file(struct fsck *f, const char *path)
{
	struct leat_volume_layout *l;
	int rc = -ESTALE;

	for (unsigned i = 0; i < STALE_TRIES && rc == -ESTALE; i++)
		rc = leat_volume_layout(f->t.m, path, &l);
	if (rc == -EBADMSG) {
		f->layouts++;
		if (!f->again) {
			fsck_fault(f, path, "its layout is missing, damaged, or not signed for this file");
			fsck_outcome(f, 0, NULL);
		}
		return 0;
	}
	if (rc == -EINVAL) /* not a regular file any more */
		return 0;
	if (rc)
		return fail_path(f, path, rc);
	f->files += !f->again;
	for (uint32_t i = 0; i < l->nstripes; i++)
		check_stripe(f, path, l, i);
	leat_volume_layout_free(l);
	return 0;
}

static int walk_dir(struct fsck *f, struct tool_path *p);

static int walk_entry(struct fsck *f, struct tool_path *p, const struct tool_entry *e)
{
	size_t len = p->len;
	int rc = tool_path_push(p, e->name);

	if (rc)
		return fail_path(f, p->text, -ENAMETOOLONG);
	if (e->err)
		rc = fail_path(f, p->text, e->err);
	else if (S_ISDIR(e->st.st_mode))
		rc = walk_dir(f, p);
	else if (S_ISREG(e->st.st_mode))
		rc = check_file(f, p->text);
	tool_path_cut(p, len);
	return rc;
}

static int walk_dir(struct fsck *f, struct tool_path *p)
{
	const struct tool_entry *e;
	struct tool_dir *d;
	int rc = tool_dir_open(f->t.m, p->text, &d), got = 0;

	if (rc)
		return fail_path(f, p->text, rc);
	f->directories += !f->again;
	while (!rc && (got = tool_dir_next(d, &e)) == 1)
		rc = tool_interrupted() ? TOOL_FAILED : walk_entry(f, p, e);
	if (!rc && got < 0)
		rc = fail_path(f, p->text, got);
	tool_dir_close(d);
	return rc;
}

int fsck_walk(struct fsck *f)
{
	struct tool_path p;

	f->unreadable = f->layouts = 0;
	if (tool_path_init(&p, "/"))
		return TOOL_FAILED;
	return walk_dir(f, &p);
}
