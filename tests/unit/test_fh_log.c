/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_fh_log.c - the journal of the map of names: killed, cut short, damaged, full, used twice
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/siphash.h"
#include "base/wire.h"
#include "fh_log.h"
#include "fh_map_int.h"
#include "tmp_dir.h"

struct ctx {
	struct tmp_dir dir;
	uint64_t root; /* of the map opened last */
};

static int setup(void **state)
{
	struct ctx *c = calloc(1, sizeof(*c));

	tmp_dir_create(&c->dir);
	log_state.level = LOG_LEVEL_ERR;
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	struct ctx *c = *state;

	tmp_dir_destroy(&c->dir);
	free(c);
	return 0;
}

static struct fh_map_key key(uint64_t ino)
{
	return (struct fh_map_key){ .ino = ino, .gen = ino * 7, .exp = 3 };
}

static struct fh_map *reopen(struct ctx *c, struct fh_map *old)
{
	struct fh_map_key k = key(2);
	struct fh_map *m;

	fh_map_destroy(old);
	assert_int_equal(fh_map_open(c->dir.path, &m), 0);
	assert_int_equal(fh_map_root(m, &k, &c->root), 0);
	return m;
}

static uint64_t add(struct fh_map *m, uint64_t parent, const char *name, bool is_dir, uint64_t ino)
{
	struct fh_map_key k = key(ino);
	uint64_t id;

	assert_int_equal(fh_map_add(m, parent, name, is_dir, &k, &id), 0);
	return id;
}

static uint64_t find(struct fh_map *m, uint64_t ino)
{
	struct fh_map_key k = key(ino);

	return fh_map_find(m, &k, 0);
}

/* @want NULL: there is no nth way to it, or it is not known at all */
static void expect(struct fh_map *m, uint64_t ino, unsigned nth, const char *want)
{
	struct fh_map_path p;
	int err = fh_map_path(m, find(m, ino), nth, &p);

	if (!want) {
		assert_int_not_equal(err, 0);
		return;
	}
	assert_int_equal(err, 0);
	assert_string_equal(p.text, want);
	free(p.text);
}

/* what fill() leaves; shorter prefixes of its journal may know less, but nothing else */
static void fill(struct fh_map *m, uint64_t root)
{
	uint64_t a = add(m, root, "a", true, 10), b = add(m, a, "bb", true, 11);
	uint64_t f = add(m, b, "file", false, 12), g = add(m, a, "gone", false, 13);

	add(m, root, "link", false, 12);
	fh_map_gone(m, g);
	add(m, root, "z", true, 10);
	fh_map_drop(m, f, root, "link");
	add(m, a, "second", false, 12);
	fh_map_keep(m);
}

static void expect_filled(struct fh_map *m)
{
	expect(m, 2, 0, "");
	expect(m, 10, 0, "z");
	expect(m, 10, 1, NULL);
	expect(m, 11, 0, "z/bb");
	expect(m, 12, 0, "z/second");
	expect(m, 12, 1, "z/bb/file");
	expect(m, 12, 2, NULL);
	expect(m, 13, 0, NULL);
	assert_int_equal(m->by_id.n, 4);
}

static void restarts(void **state)
{
	struct ctx *c = *state;
	struct fh_map *m = reopen(c, NULL);

	fill(m, c->root);
	for (int i = 0; i < 3; i++) {
		expect_filled(m);
		m = reopen(c, m);
	}
	/* ids of this run do not take those of the last one */
	add(m, c->root, "new", false, 20);
	m = reopen(c, m);
	expect(m, 20, 0, "new");
	expect(m, 12, 0, "z/second");
	fh_map_destroy(m);
}

static void killed(void **state)
{
	struct ctx *c = *state;
	struct fh_map *m;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		m = reopen(c, NULL);
		fill(m, c->root);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	m = reopen(c, NULL);
	expect_filled(m);
	fh_map_destroy(m);
}

static void used_twice(void **state)
{
	struct ctx *c = *state;
	struct fh_map *m = reopen(c, NULL), *other;

	assert_int_equal(fh_map_open(c->dir.path, &other), -EBUSY);
	assert_int_equal(fh_log_user(c->dir.path), getpid());
	fill(m, c->root);
	m = reopen(c, m);
	expect_filled(m);
	fh_map_destroy(m);
}

static size_t slurp(struct ctx *c, uint8_t *buf, size_t cap)
{
	FILE *f = fopen(tmp_dir_path(&c->dir, "handles.map"), "re");
	size_t n;

	assert_non_null(f);
	n = fread(buf, 1, cap, f);
	fclose(f);
	return n;
}

static void spill(struct ctx *c, const uint8_t *buf, size_t n)
{
	FILE *f = fopen(tmp_dir_path(&c->dir, "handles.map"), "we");

	assert_non_null(f);
	assert_int_equal(fwrite(buf, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	(void)unlink(tmp_dir_path(&c->dir, "handles.map.bad"));
}

static bool has_bad(struct ctx *c)
{
	return !access(tmp_dir_path(&c->dir, "handles.map.bad"), F_OK);
}

/* whatever a path says was true once */
static void expect_nothing_wrong(struct fh_map *m)
{
	static const char *const true_once[] = { "a/bb/file", "z/bb/file", "link", "a/second",
						 "z/second" };
	struct fh_map_path p;

	for (unsigned nth = 0; !fh_map_path(m, find(m, 12), nth, &p); nth++) {
		bool known = false;

		for (size_t i = 0; i < sizeof(true_once) / sizeof(*true_once); i++)
			known |= !strcmp(p.text, true_once[i]);
		assert_true(known);
		free(p.text);
	}
}

static void cut_short(void **state)
{
	struct ctx *c = *state;
	static uint8_t whole[65536];
	struct fh_map *m = reopen(c, NULL);
	unsigned clean = 0;
	size_t n;

	fill(m, c->root);
	fh_map_destroy(m);
	n = slurp(c, whole, sizeof(whole));
	for (size_t cut = 0; cut <= n; cut++) {
		spill(c, whole, cut);
		m = reopen(c, NULL);
		expect_nothing_wrong(m);
		if (cut == n)
			expect_filled(m);
		clean += !has_bad(c);
		if (cut % 16 == 0) { /* it goes on from there */
			fill(m, c->root);
			m = reopen(c, m);
			expect_filled(m);
		}
		fh_map_destroy(m);
	}
	/* nothing, the magic alone, and then one more for each record: root, 4 nodes and their names,
	 * and 5 changes */
	assert_int_equal(clean, 2 + 1 + 8 + 5);
}

/* A file with valid checksums whose records no leatd would write. */
static void crafted(void **state)
{
	enum { NODE = 50, NAME = 18 + 1025 };
	static const size_t bytes[] = { NODE, NAME };
	const struct siphash_key plain = { 0x6c656174, 0x6d6170 };
	static uint8_t whole[65536];
	struct ctx *c = *state;
	struct fh_map *m = reopen(c, NULL);
	size_t n;

	fill(m, c->root);
	fh_map_destroy(m);
	n = slurp(c, whole, sizeof(whole));
	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
		uint8_t *payload = whole + n + 12;

		memset(payload, 'n', bytes[i]);
		payload[0] = bytes[i] == NODE ? FH_LOG_NODE : FH_LOG_NAME;
		payload[1] = 0;
		put_be64(payload + 2, bytes[i] == NODE ? UINT64_MAX : 2); /* the last number; a name that is too long */
		put_be64(payload + 10, 1);
		put_be32(payload - 12, (uint32_t)bytes[i]);
		put_be64(payload - 8, siphash(&plain, payload, bytes[i]));
		spill(c, whole, n + 12 + bytes[i]);
		m = reopen(c, NULL);
		assert_true(has_bad(c));
		expect_filled(m);
		assert_int_not_equal(add(m, c->root, "new", false, 20 + i), 0); /* numbers go on */
		fh_map_destroy(m);
	}
}

static void damaged(void **state)
{
	struct ctx *c = *state;
	static uint8_t whole[65536];
	struct fh_map *m = reopen(c, NULL);
	size_t n;

	fill(m, c->root);
	fh_map_destroy(m);
	n = slurp(c, whole, sizeof(whole));
	for (size_t at = 0; at < n; at += at < 64 ? 1 : 5) {
		whole[at] ^= 0x41;
		spill(c, whole, n);
		if (at < 8) {
			static uint8_t now[65536];

			assert_int_equal(fh_map_open(c->dir.path, &m), -EINVAL);
			assert_int_equal(slurp(c, now, sizeof(now)), n); /* as it was */
			assert_memory_equal(now, whole, n);
		} else {
			m = reopen(c, NULL);
			expect_nothing_wrong(m);
			assert_true(has_bad(c));
			fh_map_destroy(m);
		}
		whole[at] ^= 0x41;
	}
}

static void full(void **state)
{
	struct ctx *c = *state;
	struct rlimit was, rl;
	struct fh_map *m;
	char name[32];

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	rl = was;
	rl.rlim_cur = 2000;
	signal(SIGXFSZ, SIG_IGN);
	m = reopen(c, NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &rl), 0);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "%u", i);
		add(m, c->root, name, false, 100 + i);
		fh_map_keep(m);
	}
	expect(m, 199, 0, "99"); /* found in memory, though the log is full */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	m = reopen(c, m); /* at the end at the latest it is tried again */
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "%u", i);
		expect(m, 100 + i, 0, name);
	}
	fh_map_destroy(m);

	/* full, and killed: what had been written is there, and no half of anything */
	assert_int_equal(unlink(tmp_dir_path(&c->dir, "handles.map")), 0);
	if (!fork()) {
		m = reopen(c, NULL);
		fill(m, c->root);
		rl.rlim_cur = 900;
		if (setrlimit(RLIMIT_FSIZE, &rl))
			_exit(1);
		for (unsigned i = 0; i < 100; i++) {
			snprintf(name, sizeof(name), "%u", i);
			add(m, c->root, name, false, 100 + i);
			fh_map_keep(m);
		}
		kill(getpid(), SIGKILL);
	}
	assert_true(wait(NULL) > 0);
	m = reopen(c, NULL);
	assert_false(has_bad(c));
	expect(m, 12, 0, "z/second");
	expect(m, 100, 0, "0");
	fh_map_destroy(m);
}

static void stays_short(void **state)
{
	enum { ROUNDS = 300000, KEPT = 1000 };
	struct ctx *c = *state;
	struct fh_map *m = reopen(c, NULL);
	struct stat st;
	char name[32];

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t id;

		snprintf(name, sizeof(name), "%u", i);
		id = add(m, c->root, name, false, 100 + i);
		if (i % (ROUNDS / KEPT))
			fh_map_gone(m, id);
		fh_map_keep(m);
	}
	fh_map_destroy(m);
	m = reopen(c, NULL);
	assert_int_equal(stat(tmp_dir_path(&c->dir, "handles.map"), &st), 0);
	assert_true(st.st_size < 5 << 20); /* of 40 MB that were written */
	assert_int_equal(m->by_id.n, KEPT + 1);
	for (unsigned i = 0; i < ROUNDS; i += ROUNDS / KEPT) {
		snprintf(name, sizeof(name), "%u", i);
		expect(m, 100 + i, 0, name);
	}
	fh_map_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(restarts, setup, teardown),
		cmocka_unit_test_setup_teardown(killed, setup, teardown),
		cmocka_unit_test_setup_teardown(used_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(cut_short, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(crafted, setup, teardown),
		cmocka_unit_test_setup_teardown(full, setup, teardown),
		cmocka_unit_test_setup_teardown(stays_short, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
