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

#include "base/util.h"
#include "fh_map.h"
#include "fh_map_int.h"

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
	assert_int_equal(c->m->by_id.n, 4);
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

/* Of a file with very many names those are known that were seen last. */
static void many_links(void **state)
{
	struct ctx *c = *state;
	struct fh_map_path p;
	uint64_t file = 0;
	char name[16];

	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "link%u", i);
		file = add(c, c->root, name, false, 5);
	}
	assert_int_equal(add(c, c->root, "link50", false, 5), file); /* seen again */
	expect_path(c, file, 0, "link50");
	expect_path(c, file, 1, "link99");
	expect_path(c, file, 63, "link36");
	assert_int_equal(fh_map_path(c->m, file, 64, &p), -ENOENT);
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
	assert_int_equal(fh_map_path(c->m, f, 0, &p), -ENOTDIR);
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
	assert_int_equal(fh_map_path(c->m, a, 0, &p), -ENOTDIR);
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
	assert_int_equal(c->m->by_id.n, 10002);
}

/* Checks the entries that are due; without @living[] all exist. Return: the number of entries checked */
static unsigned look_around(struct ctx *c, const bool *living, size_t n)
{
	unsigned looked = 0;

	for (size_t due = fh_map_due(c->m); due; due--, looked++) {
		uint64_t exp, id = fh_map_next(c->m, &exp);

		if (!id)
			break;
		assert_int_equal(exp, 0);
		fh_map_looked(c->m, id, !living || (id < n && living[id]));
	}
	return looked;
}

/* What clients look up and others remove is forgotten as more comes, and takes nothing of what lives with it */
static void forgets(void **state)
{
	static bool living[4000];
	struct ctx *c = *state;
	unsigned looked = 0;
	char name[32];

	c->m->keep = 1000;
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "living%u", i);
		living[add(c, c->root, name, false, 10 + i)] = true;
	}
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "dead%u", i);
		(void)add(c, c->root, name, false, 5000 + i);
		looked += look_around(c, living, ARRAY_SIZE(living));
		assert_true(c->m->by_id.n < 1700);
	}
	/* two for each that came, as a node and a name, and four for each that was found dead */
	assert_true(looked < 6 * 20000 + 2000);
	for (unsigned i = 0; i < 1000; i++) {
		struct fh_map_key k = key(10 + i);

		assert_true(fh_map_find(c->m, &k, 0) != 0);
	}
	/* where nothing dies one look is enough for each node or name that comes */
	while (fh_map_due(c->m))
		(void)look_around(c, NULL, 0);
	looked = 0;
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "new%u", i);
		(void)add(c, c->root, name, true, 50000 + i);
		while (fh_map_due(c->m))
			looked += look_around(c, NULL, 0);
	}
	assert_int_equal(looked, 200);
}

/* A directory holds together what is in it: it may have moved, and is missed twice before it is forgotten. What was
 * in it has no way any more then. */
static void forgets_directories(void **state)
{
	struct ctx *c = *state;
	uint64_t d = add(c, c->root, "d", true, 10), f = add(c, d, "f", false, 11);
	struct fh_map_path p;
	struct fh_map_key k = { .ino = 77 };
	uint64_t id;

	fh_map_looked(c->m, d, false);
	expect_path(c, f, 0, "d/f");
	/* seen again, it is as it was */
	assert_true(add(c, c->root, "e", true, 10) == d);
	fh_map_looked(c->m, d, false);
	expect_path(c, f, 0, "e/f");
	fh_map_looked(c->m, d, true);
	fh_map_looked(c->m, d, false);
	expect_path(c, f, 0, "e/f");
	fh_map_looked(c->m, d, false);
	assert_int_equal(fh_map_path(c->m, d, 0, &p), -ESTALE);
	assert_int_equal(fh_map_path(c->m, f, 0, &p), -ENOTDIR);
	/* another name of it leads on, and the first is forgotten with the next look */
	assert_true(add(c, c->root, "g", false, 11) == f);
	expect_path(c, f, 0, "g");
	fh_map_looked(c->m, f, true);
	expect_path(c, f, 1, NULL);
	fh_map_looked(c->m, f, false);
	assert_int_equal(fh_map_path(c->m, f, 0, &p), -ESTALE);
	/* one that would get another handle */
	assert_int_equal(fh_map_add(c->m, c->root, "s", false, &k, &id), 0);
	fh_map_looked(c->m, id, false);
	expect_path(c, id, 0, "s");
	fh_map_looked(c->m, id, false);
	assert_int_equal(fh_map_path(c->m, id, 0, &p), -ESTALE);
	fh_map_looked(c->m, c->root, false);
	fh_map_looked(c->m, c->root, false);
	expect_path(c, c->root, 0, "");
	assert_int_equal(c->m->by_id.n, 1);
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
		cmocka_unit_test_setup_teardown(many_links, setup, teardown),
		cmocka_unit_test_setup_teardown(gone, setup, teardown),
		cmocka_unit_test_setup_teardown(serials, setup, teardown),
		cmocka_unit_test_setup_teardown(circle, setup, teardown),
		cmocka_unit_test_setup_teardown(many, setup, teardown),
		cmocka_unit_test_setup_teardown(forgets, setup, teardown),
		cmocka_unit_test_setup_teardown(forgets_directories, setup, teardown),
		cmocka_unit_test_setup_teardown(deep, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
