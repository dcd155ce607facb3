/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * path.h - splits paths into components; pure functions
 */
#ifndef LT_PATH_H
#define LT_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/util.h"

#define LT_NAME_MAX 255

enum lt_path_kind {
	LT_PATH_END,    /* no component left */
	LT_PATH_NAME,
	LT_PATH_DOT,
	LT_PATH_DOTDOT,
};

/* One component of a path. */
struct lt_path_part {
	enum lt_path_kind kind;
	char name[LT_NAME_MAX + 1]; /* also set for LT_PATH_DOT and LT_PATH_DOTDOT */
	size_t next;                /* index of the next component, after any slashes */
	bool last;                  /* only slashes follow */
	bool slash;                 /* at least one slash follows: the component must be a directory */
};

/** lt_path_next - finds the first component at or after index @at
 *
 * Return: 0; -ENAMETOOLONG: it exceeds LT_NAME_MAX bytes.
 */
must_check int lt_path_next(const char *path, size_t at, struct lt_path_part *ret);

/** lt_path_join - allocates "A/B", for the target @a of a symbolic link and the rest @b of a path
 * @b: NULL: just @a
 *
 * Return: 0, -ENAMETOOLONG (over LT_PATH_MAX with its NUL), -ENOMEM.
 */
must_check int lt_path_join(const char *a, const char *b, char **ret);

/** lt_path_trim - copies @path without '/' at either end to @buf; Return: 0, -ENAMETOOLONG */
must_check int lt_path_trim(const char *path, char *buf, size_t cap);

/** lt_path_has_prefix - is @prefix equal to @path or one of its parent directories?
 * Several slashes count as one, slashes at either end are ignored; "/" is a prefix of every path.
 * @ret_rest: the remainder of @path, without leading slashes
 */
bool lt_path_has_prefix(const char *path, const char *prefix, const char **ret_rest);

#endif
