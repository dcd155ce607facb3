/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_path.c - paths and their components
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "path.h"
#include "url.h"

/* Components as one string: "a", "b" and so on, D for ".", U for "..", then '/' if a slash follows
 * and '!' for the last. */
static void cut(const char *path, const char *want)
{
	struct lt_path_part p;
	char got[128] = "";
	size_t at = 0;

	for (;;) {
		assert_int_equal(lt_path_next(path, at, &p), 0);
		if (p.kind == LT_PATH_END)
			break;
		assert_true(p.next > at);
		at = p.next;
		strcat(got, p.kind == LT_PATH_DOT ? "D" : p.kind == LT_PATH_DOTDOT ? "U" : p.name);
		strcat(got, p.slash ? "/" : "");
		strcat(got, p.last ? "!" : "");
		strcat(got, " ");
	}
	assert_string_equal(got, want);
}

static void components(void **state)
{
	(void)state;
	cut("", "");
	cut("/", "");
	cut("///", "");
	cut("a", "a! ");
	cut("/a", "a! ");
	cut("a/", "a/! ");
	cut("//a//b///", "a/ b/! ");
	cut("/a/./b/../c", "a/ D/ b/ U/ c! ");
	cut(".", "D! ");
	cut("..", "U! ");
	cut("../", "U/! ");
	cut("...", "...! ");
	cut(".a/..b", ".a/ ..b! ");
}

static void long_names(void **state)
{
	struct lt_path_part p;
	char path[300];

	(void)state;
	memset(path, 'n', sizeof(path));
	path[LT_NAME_MAX] = '\0';
	assert_int_equal(lt_path_next(path, 0, &p), 0);
	assert_int_equal(strlen(p.name), LT_NAME_MAX);
	path[LT_NAME_MAX] = '/';
	path[LT_NAME_MAX + 1] = '\0';
	assert_int_equal(lt_path_next(path, 0, &p), 0);
	path[LT_NAME_MAX] = 'n';
	assert_int_equal(lt_path_next(path, 0, &p), -ENAMETOOLONG);
}

static void any_bytes(void **state)
{
	char name[256], *at = name;
	struct lt_path_part p;

	(void)state;
	for (int c = 1; c < 256; c++) {
		if (c != '/')
			*at++ = (char)c;
	}
	*at = '\0';
	assert_int_equal(lt_path_next(name, 0, &p), 0);
	assert_string_equal(p.name, name);
}

static void joining(void **state)
{
	char *text, big[LT_PATH_MAX + 1];

	(void)state;
	assert_int_equal(lt_path_join("a/b", "c", &text), 0);
	assert_string_equal(text, "a/b/c");
	free(text);
	assert_int_equal(lt_path_join("a", "", &text), 0);
	assert_string_equal(text, "a/");
	free(text);
	assert_int_equal(lt_path_join("a", NULL, &text), 0);
	assert_string_equal(text, "a");
	free(text);
	memset(big, 'x', sizeof(big));
	big[LT_PATH_MAX - 3] = '\0';
	assert_int_equal(lt_path_join(big, "y", &text), 0);
	assert_int_equal(strlen(text), LT_PATH_MAX - 1);
	free(text);
	assert_int_equal(lt_path_join(big, "yz", &text), -ENAMETOOLONG);
	big[LT_PATH_MAX - 3] = 'x';
	big[LT_PATH_MAX] = '\0';
	assert_int_equal(lt_path_join(big, NULL, &text), -ENAMETOOLONG);
	assert_int_equal(lt_path_join("a", big, &text), -ENAMETOOLONG);
}

static void trimming(void **state)
{
	char buf[8];

	(void)state;
	assert_int_equal(lt_path_trim("//a//b//", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "a//b");
	assert_int_equal(lt_path_trim("///", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "");
	assert_int_equal(lt_path_trim("/1234567/", buf, sizeof(buf)), 0);
	assert_int_equal(lt_path_trim("/12345678", buf, sizeof(buf)), -ENAMETOOLONG);
}

static void prefixes(void **state)
{
	static const struct {
		const char *path, *prefix, *rest; /* NULL: no prefix */
	} rows[] = {
		{ "/srv/data/x/y", "/srv/data", "x/y" },
		{ "/srv//data/", "/srv/data//", "" },
		{ "/srv/data", "/srv/data", "" },
		{ "/srv/data2", "/srv/data", NULL },
		{ "/srv/dat", "/srv/data", NULL },
		{ "/srv", "/srv/data", NULL },
		{ "/a/b", "/", "a/b" },
		{ "/", "/", "" },
		{ "/", "/a", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *rest = NULL;

		assert_int_equal(lt_path_has_prefix(rows[i].path, rows[i].prefix, &rest),
				 rows[i].rest != NULL);
		if (rows[i].rest)
			assert_string_equal(rest, rows[i].rest);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(components),
		cmocka_unit_test(long_names),
		cmocka_unit_test(any_bytes),
		cmocka_unit_test(joining),
		cmocka_unit_test(trimming),
		cmocka_unit_test(prefixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
