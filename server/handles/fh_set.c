/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_set.c - sets of file handles: selects the kind for each export, and holds the shared state
 *
 * Operation: an export gets kernel handles if they can be made and opened, else handles by name. The map
 *            of those is opened for the first export that needs it.
 * Memory:    a view shares keys and map with its base, which must outlive it.
 * Threads:   one at a time creates and destroys sets.
 * Errors:    -errno.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/kernel_handle.h"
#include "fh_inside.h"
#include "fh_int.h"
#include "fh_map.h"

static int probe_kernel(struct export *exp)
{
	union kernel_handle kh;
	int fd, err = kernel_handle_get(exp->root_fd, "", &kh, &exp->mount_id);

	if (err)
		return err;
	if (kh.h.handle_bytes > FH_KERNEL_MAX)
		return -EOVERFLOW;
	fd = open_by_handle_at(exp->root_fd, &kh.h, FH_WALK_FLAGS);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int choose_kind(struct export *exp, enum fh_kind kind)
{
	int err = kind == FH_MAP ? 0 : probe_kernel(exp);

	if (kind == FH_KERNEL && err)
		return -EOPNOTSUPP;
	exp->fh_kind = err || kind == FH_MAP ? FH_MAP : FH_KERNEL;
	return 0;
}

static int choose_kinds(struct export_table *t, enum fh_kind kind, bool *ret_map)
{
	int err = 0;

	*ret_map = false;
	for (size_t i = 0; i < t->n && !err; i++) {
		err = choose_kind(&t->v[i], kind);
		*ret_map |= t->v[i].fh_kind == FH_MAP;
	}
	return err;
}

/* Opens the map only when an export needs it, so that other processes can use the file otherwise. */
static int need_map(struct fh_set *base, bool must_keep, int *ret_map_err)
{
	int err = 0;

	if (base->map)
		return 0;
	if (base->map_dir)
		*ret_map_err = err = fh_map_open(base->map_dir, &base->map);
	if (err && must_keep)
		return err;
	return base->map ? 0 : fh_map_create(&base->map);
}

static int check_roots(struct fh_set *s)
{
	int err = 0;

	for (size_t i = 0; i < s->exports->n && !err; i++) {
		struct fh_obj root;

		err = fh_open_root(s, &s->exports->v[i], &root);
		if (!err)
			fh_close(&root);
	}
	return err;
}

/* Makes @s a set of handles of the exports of @t. @base: has the keys and the map of @s */
static int use_exports(struct fh_set *s, struct fh_set *base, struct export_table *t, enum fh_kind kind, bool must_keep,
		       int *ret_map_err)
{
	bool map;
	int err = choose_kinds(t, kind, &map);

	if (!err && map)
		err = need_map(base, must_keep, ret_map_err);
	s->map = base->map;
	s->exports = t;
	return err ? err : check_roots(s);
}

int fh_set_create(struct export_table *t, const struct fh_keys *keys, enum fh_kind kind,
		  const char *map_dir, int *ret_map_err, struct fh_set **ret)
{
	struct fh_set *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return -ENOMEM;
	s->keys = *keys;
	for (unsigned i = 0; i < keys->n; i++)
		s->key_ids[i] = (uint8_t)siphash(&keys->v[i], "key id", 6);
	s->proc_fd = fh_inside_open();
	if (s->proc_fd < 0)
		err = s->proc_fd;
	if (!err && map_dir) {
		s->map_dir = strdup(map_dir);
		err = s->map_dir ? 0 : -ENOMEM;
	}
	if (!err)
		err = use_exports(s, s, t, kind, false, ret_map_err);
	if (err) {
		fh_set_destroy(s);
		return err;
	}
	*ret = s;
	return 0;
}

int fh_set_view(struct fh_set *base, struct export_table *t, enum fh_kind kind, bool must_keep,
		int *ret_map_err, struct fh_set **ret)
{
	struct fh_set *s = malloc(sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	*s = *base;
	s->is_view = true;
	err = use_exports(s, base, t, kind, must_keep, ret_map_err);
	if (err) {
		fh_set_destroy(s);
		return err;
	}
	*ret = s;
	return 0;
}

void fh_set_destroy(struct fh_set *s)
{
	if (!s)
		return;
	if (!s->is_view) {
		fh_map_destroy(s->map);
		free(s->map_dir);
		if (s->proc_fd >= 0)
			close(s->proc_fd);
	}
	free(s);
}

const char *fh_kind_name(enum fh_kind kind)
{
	return kind == FH_KERNEL ? "kernel handles" : "handles by name";
}
