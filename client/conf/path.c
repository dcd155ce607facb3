/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * path.c - splits paths into components
 *
 * Operation:  walk.c takes one component after the other; mount.c finds exports by prefix. A component may
 *             contain any bytes except NUL and '/'. Paths are not normalized as text: "a/.." is the parent
 *             of the directory that `a` leads to, which only the server knows.
 * Memory:     lt_path_join() allocates, the other functions do not.
 * Threads:    Any.
 * Errors:     Only for lengths.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "path.h"
#include "url.h"

static size_t skip_slashes(const char *path, size_t at)
{
	while (path[at] == '/')
		at++;
	return at;
}

int lt_path_next(const char *path, size_t at, struct lt_path_part *ret)
{
	size_t start = skip_slashes(path, at);
	size_t len = strcspn(path + start, "/");
	size_t next = skip_slashes(path, start + len);

	if (len > LT_NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(ret->name, path + start, len);
	ret->name[len] = '\0';
	ret->next = next;
	ret->last = !path[next];
	ret->slash = path[start + len] == '/';
	if (!len)
		ret->kind = LT_PATH_END;
	else if (!strcmp(ret->name, "."))
		ret->kind = LT_PATH_DOT;
	else if (!strcmp(ret->name, ".."))
		ret->kind = LT_PATH_DOTDOT;
	else
		ret->kind = LT_PATH_NAME;
	return 0;
}

int lt_path_join(const char *a, const char *b, char **ret)
{
	size_t la = strlen(a), lb = b ? 1 + strlen(b) : 0;
	char *joined;

	if (la >= LT_PATH_MAX || lb >= LT_PATH_MAX - la)
		return -ENAMETOOLONG;
	joined = malloc(la + lb + 1);
	if (!joined)
		return -ENOMEM;
	snprintf(joined, la + lb + 1, "%s%s%s", a, b ? "/" : "", b ? b : "");
	*ret = joined;
	return 0;
}

int lt_path_trim(const char *path, char *buf, size_t cap)
{
	size_t start = skip_slashes(path, 0);
	size_t len = strlen(path + start);

	while (len && path[start + len - 1] == '/')
		len--;
	if (len >= cap)
		return -ENAMETOOLONG;
	memcpy(buf, path + start, len);
	buf[len] = '\0';
	return 0;
}

bool lt_path_has_prefix(const char *path, const char *prefix, const char **ret_rest)
{
	size_t p = skip_slashes(path, 0), q = skip_slashes(prefix, 0);

	while (prefix[q]) {
		size_t len = strcspn(prefix + q, "/");

		if (strcspn(path + p, "/") != len || memcmp(path + p, prefix + q, len) != 0)
			return false;
		p = skip_slashes(path, p + len);
		q = skip_slashes(prefix, q + len);
	}
	*ret_rest = path + p;
	return true;
}
