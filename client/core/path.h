/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * path.h - cut paths into components; pure
 */
#ifndef LT_PATH_H
#define LT_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/util.h"

#define LT_NAME_MAX 255

enum lt_path_kind {
	LT_PATH_END,    /* nothing is left */
	LT_PATH_NAME,
	LT_PATH_DOT,
	LT_PATH_DOTDOT,
};

/* The next component of a path. */
struct lt_path_part {
	enum lt_path_kind kind;
	char name[LT_NAME_MAX + 1]; /* of LT_PATH_NAME, LT_PATH_DOT and LT_PATH_DOTDOT */
	size_t next;                /* where the text goes on: slashes behind it are skipped */
	bool last;                  /* nothing but slashes follows */
	bool slash;                 /* at least one slash follows: it must be a directory */
};

/** lt_path_next - the component that begins at or behind @at
 *
 * Return: 0; -ENAMETOOLONG: it is over LT_NAME_MAX bytes.
 */
must_check int lt_path_next(const char *path, size_t at, struct lt_path_part *ret);

/** lt_path_join - "A/B" in new memory, for a symbolic link @a with @b still to be walked
 * @b: NULL: just @a
 *
 * Return: 0, -ENAMETOOLONG (over LT_PATH_MAX with its NUL), -ENOMEM.
 */
must_check int lt_path_join(const char *a, const char *b, char **ret);

/** lt_path_trim - @path without '/' at either end, into @buf; Return: 0, -ENAMETOOLONG */
must_check int lt_path_trim(const char *path, char *buf, size_t cap);

/** lt_path_has_prefix - is @prefix @path itself or one of its parent directories?
 * Runs of slashes count as one, those at an end not at all; "/" is a prefix of everything.
 * @ret_rest: what of @path follows, without leading slashes
 */
bool lt_path_has_prefix(const char *path, const char *prefix, const char **ret_rest);

#endif
