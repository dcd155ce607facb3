/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tool_dir.c - directories on a server, for the `leat` commands
 *
 * Operation:  An entry for which the server sends no attributes is looked up by its path. An entry that was removed
 *             meanwhile is skipped.
 * Memory:     A directory: that of libleat, one page. Copied entries own their names; their number is bounded over all
 *             lists, since a server chooses how long directories are and how deep they are nested.
 * Threads:    One; the bound is that of all.
 * Errors:     -errno, never reported here.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

#define RESTARTS_MAX 3u

static size_t entries_max = TOOL_ENTRIES_MAX; /* only the test changes it */
static atomic_size_t held;                    /* entries in all lists */

struct tool_dir {
	struct leat *m;
	struct leat_dir *dir;
	struct tool_path full; /* of the directory, and for a moment of an entry */
	struct tool_entry entry;
};

/* ---- copied entries ---- */

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct tool_entry *)a)->name, ((const struct tool_entry *)b)->name);
}

static int add_entry(struct tool_entries *e, const struct tool_entry *entry)
{
	if (e->count == e->room) {
		size_t room = e->room ? 2 * e->room : 64;
		struct tool_entry *v = reallocarray(e->v, room, sizeof(*v));

		if (!v)
			return -ENOMEM;
		e->v = v;
		e->room = room;
	}
	e->v[e->count] = *entry;
	e->v[e->count].name = strdup(entry->name);
	if (!e->v[e->count].name)
		return -ENOMEM;
	e->count++;
	return 0;
}

int tool_entries_add(struct tool_entries *e, const struct tool_entry *entry)
{
	int rc = atomic_fetch_add(&held, 1) < entries_max ? add_entry(e, entry) : TOOL_TOO_MANY;

	if (rc) {
		atomic_fetch_sub(&held, 1);
		errno = -rc;
	}
	return rc;
}

void tool_entries_fini(struct tool_entries *e)
{
	for (size_t i = 0; i < e->count; i++)
		free((void *)(uintptr_t)e->v[i].name);
	atomic_fetch_sub(&held, e->count);
	free(e->v);
	*e = (struct tool_entries){ 0 };
}

/* ---- a directory ---- */

int tool_dir_open(struct leat *m, const char *path, struct tool_dir **ret)
{
	struct tool_dir *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return -ENOMEM;
	d->m = m;
	rc = tool_path_init(&d->full, path);
	if (!rc)
		rc = leat_opendir(m, path, &d->dir);
	if (rc) {
		free(d);
		return rc;
	}
	*ret = d;
	return 0;
}

static int get_stat(struct tool_dir *d, const struct leat_dirent *ent)
{
	size_t len = d->full.len;
	int rc;

	d->entry.st = ent->st;
	if (ent->has_stat)
		return 0;
	rc = tool_path_push(&d->full, ent->name);
	if (!rc)
		rc = leat_lstat(d->m, d->full.text, &d->entry.st);
	tool_path_cut(&d->full, len);
	return rc;
}

/* Would the next entry fail in the same way? */
static bool concerns_all(int err)
{
	return tool_is_interruption(err) || err == -ETIMEDOUT || err == -ENOMEM;
}

int tool_dir_next(struct tool_dir *d, const struct tool_entry **ret)
{
	const struct leat_dirent *ent;
	int rc;

	for (;;) {
		rc = leat_readdir(d->dir, &ent);
		if (rc <= 0)
			return rc;
		if (!strcmp(ent->name, ".") || !strcmp(ent->name, ".."))
			continue;
		rc = get_stat(d, ent);
		if (rc == -ENOENT)
			continue;
		if (concerns_all(rc))
			return rc;
		d->entry.name = ent->name;
		d->entry.err = rc;
		*ret = &d->entry;
		return 1;
	}
}

void tool_dir_close(struct tool_dir *d)
{
	leat_closedir(d->dir);
	free(d);
}

/* Return: 1: more than @max entries; 0: the directory has ended; -errno */
static int collect(struct tool_dir *d, size_t max, struct tool_entries *e)
{
	const struct tool_entry *ent;
	int rc = 1, added = 0;

	while (rc == 1 && !added && e->count <= max) {
		rc = tool_dir_next(d, &ent);
		if (rc == 1)
			added = tool_entries_add(e, ent);
	}
	return added ? added : rc;
}

int tool_dir_list(struct tool_dir *d, size_t max, struct tool_entries *ret)
{
	int rc;

	*ret = (struct tool_entries){ 0 };
	rc = collect(d, max, ret);
	for (unsigned i = 0; rc == -ESTALE && i < RESTARTS_MAX; i++) {
		tool_entries_fini(ret);
		rc = leat_rewinddir(d->dir);
		if (!rc)
			rc = collect(d, max, ret);
	}
	if (!rc && ret->count)
		qsort(ret->v, ret->count, sizeof(*ret->v), compare_entries);
	return rc;
}

int tool_list(struct leat *m, const char *path, struct tool_entries *ret)
{
	struct tool_dir *d;
	int rc;

	rc = tool_dir_open(m, path, &d);
	if (rc)
		return rc;
	rc = tool_dir_list(d, SIZE_MAX, ret);
	tool_dir_close(d);
	if (rc)
		tool_entries_fini(ret);
	return rc;
}
