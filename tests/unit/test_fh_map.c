/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_fh_map.c - the map of names: paths, moves, hard links, and what is gone
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fh_map.h"

struct ctx {
	struct fh_map *m;
	uint64_t root;
};

static struct fh_map_key key(uint64_t ino)
{
	return (struct fh_map_key){ .dev = 1, .ino = ino, .gen = ino * 7 };
}

static int setup(void **state)
{
	struct ctx *c = calloc(1, sizeof(*c));
	struct fh_map_key k = key(2);

	assert_int_equal(fh_map_create(&c->m), 0);
	assert_int_equal(fh_map_root(c->m, &k, &c->root), 0);
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	struct ctx *c = *state;

	fh_map_destroy(c->m);
	free(c);
	return 0;
}

static uint64_t add(struct ctx *c, uint64_t parent, const char *name, bool is_dir, uint64_t ino)
{
	struct fh_map_key k = key(ino);
	uint64_t id = 0;

	assert_int_equal(fh_map_add(c->m, parent, name, is_dir, &k, &id), 0);
	assert_true(id != 0);
	return id;
}

static void expect_path(struct ctx *c, uint64_t id, unsigned nth, const char *want)
{
	struct fh_map_path p;
	int err = fh_map_path(c->m, id, nth, &p);

	if (!want) {
		assert_int_equal(err, -ENOENT);
		return;
	}
	assert_int_equal(err, 0);
	assert_string_equal(p.text, want);
	assert_int_equal(p.len, strlen(want));
	assert_string_equal(p.last, strrchr(want, '/') ? strrchr(want, '/') + 1 : want);
	free(p.text);
}

static void paths(void **state)
{
	struct ctx *c = *state;
	uint64_t a = add(c, c->root, "a", true, 10), b = add(c, a, "bb", true, 11);
	uint64_t f = add(c, b, "file", false, 12);

	expect_path(c, c->root, 0, "");
	expect_path(c, a, 0, "a");
	expect_path(c, f, 0, "a/bb/file");
	expect_path(c, f, 1, NULL);
	assert_true(add(c, b, "file", false, 12) == f);
	expect_path(c, f, 1, NULL);
	assert_true(fh_map_parent(c->m, f) == b);
	assert_true(fh_map_parent(c->m, c->root) == 0);
	assert_int_equal(fh_map_count(c->m), 4);
}

static void moves(void **state)
{
	struct ctx *c = *state;
	uint64_t a = add(c, c->root, "a", true, 10), f = add(c, a, "f", false, 11);

	/* a directory has one name: the last */
	assert_true(add(c, c->root, "z", true, 10) == a);
	expect_path(c, a, 0, "z");
	expect_path(c, a, 1, NULL);
	expect_path(c, f, 0, "z/f");
	/* a file any number, the last first */
	assert_true(add(c, c->root, "link", false, 11) == f);
	expect_path(c, f, 0, "link");
	expect_path(c, f, 1, "z/f");
	expect_path(c, f, 2, NULL);
	fh_map_drop(c->m, f, c->root, "link");
	expect_path(c, f, 0, "z/f");
	fh_map_drop(c->m, f, a, "f");
	expect_path(c, f, 0, NULL); /* known, and lost until it is seen again */
	assert_true(add(c, a, "g", false, 11) == f);
	expect_path(c, f, 0, "z/g");
}

static void gone(void **state)
{
	struct ctx *c = *state;
	uint64_t a = add(c, c->root, "a", true, 10), f = add(c, a, "f", false, 11);
	struct fh_map_key k = key(11);
	struct fh_map_path p;
	uint64_t id;

	assert_true(fh_map_find(c->m, &k, 0) == f);
	fh_map_gone(c->m, f);
	assert_int_equal(fh_map_path(c->m, f, 0, &p), -ESTALE);
	assert_true(fh_map_find(c->m, &k, 0) == 0);
	assert_true(add(c, a, "f", false, 11) != f); /* an id is never given twice */
	/* a directory that goes before what was in it */
	f = add(c, a, "f", false, 11);
	fh_map_gone(c->m, a);
	assert_int_equal(fh_map_path(c->m, f, 0, &p), -ESTALE);
	assert_int_equal(fh_map_add(c->m, a, "x", false, &k, &id), -ESTALE);
	fh_map_gone(c->m, f);
	fh_map_gone(c->m, c->root); /* never */
	expect_path(c, c->root, 0, "");
	assert_int_equal(fh_map_path(c->m, 0, 0, &p), -ESTALE);
	assert_int_equal(fh_map_path(c->m, UINT64_MAX, 0, &p), -ESTALE);
}

/* where files have no generation a number alone must not lead to the next file that has it */
static void serials(void **state)
{
	struct ctx *c = *state;
	struct fh_map_key k = { .ino = 77 }, got;
	uint64_t id, again, serial, other;

	assert_int_equal(fh_map_add(c->m, c->root, "f", false, &k, &id), 0);
	assert_int_equal(fh_map_key_of(c->m, id, &got, &serial), 0);
	assert_memory_equal(&got, &k, sizeof(k));
	assert_true(serial != 0);
	assert_true(fh_map_find(c->m, &k, serial) == id);
	assert_true(fh_map_find(c->m, &k, serial + 1) == 0);
	fh_map_gone(c->m, id);
	assert_int_equal(fh_map_key_of(c->m, id, &got, &other), -ESTALE);
	assert_int_equal(fh_map_add(c->m, c->root, "f", false, &k, &again), 0);
	assert_true(fh_map_find(c->m, &k, serial) == 0);
	k = key(12);
	id = add(c, c->root, "g", false, 12);
	assert_int_equal(fh_map_key_of(c->m, id, &got, &serial), 0);
	assert_true(serial == 0);
}

static void circle(void **state)
{
	struct ctx *c = *state;
	uint64_t a = add(c, c->root, "a", true, 10), b = add(c, a, "b", true, 11);
	struct fh_map_path p;

	/* stale news may contradict each other, and must not keep us for ever */
	assert_true(add(c, b, "a", true, 10) == a);
	assert_int_equal(fh_map_path(c->m, a, 0, &p), -ESTALE);
	assert_true(add(c, c->root, "a", true, 10) == a);
	expect_path(c, b, 0, "a/b");
}

static void many(void **state)
{
	struct ctx *c = *state;
	static uint64_t ids[20000];
	char name[32], want[40];
	uint64_t d = add(c, c->root, "d", true, 3);

	for (unsigned i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "%u", i);
		ids[i] = add(c, d, name, false, 100 + i);
	}
	for (unsigned i = 0; i < 20000; i += 2)
		fh_map_gone(c->m, ids[i]);
	for (unsigned i = 1; i < 20000; i += 2) {
		struct fh_map_key k = key(100 + i);

		assert_true(fh_map_find(c->m, &k, 0) == ids[i]);
		snprintf(want, sizeof(want), "d/%u", i);
		expect_path(c, ids[i], 0, want);
	}
	assert_int_equal(fh_map_count(c->m), 10002);
}

static void deep(void **state)
{
	struct ctx *c = *state;
	uint64_t id = c->root;
	struct fh_map_path p;

	for (unsigned i = 0; i < 4000; i++)
		id = add(c, id, "d", true, 100 + i);
	assert_int_equal(fh_map_path(c->m, id, 0, &p), 0);
	assert_int_equal(p.len, 2 * 4000 - 1);
	free(p.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(paths, setup, teardown),
		cmocka_unit_test_setup_teardown(moves, setup, teardown),
		cmocka_unit_test_setup_teardown(gone, setup, teardown),
		cmocka_unit_test_setup_teardown(serials, setup, teardown),
		cmocka_unit_test_setup_teardown(circle, setup, teardown),
		cmocka_unit_test_setup_teardown(many, setup, teardown),
		cmocka_unit_test_setup_teardown(deep, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
