/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_fh_race.c - clients walk while a local process moves what they walk on out of the export
 *
 * What lies outside is never found, whatever the moment. The mover makes a fixed number of rounds;
 * clients walk until it is done, and once more.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fh.h"
#include "kernel_has.h"
#include "tmp_dir.h"

#define ROUNDS 300
#define WALKERS 2

static bool may_mount;

struct ctx {
	enum fh_kind kind;
	struct tmp_dir dir;
	char exp[160], out[160];
	struct export_table t;
	struct fh_set *s;
	struct fh_obj root, held; /* held: exp/a, open all the time */
	struct fh a, b, f; /* exp/a, exp/a/b, exp/a/f */
	uint64_t canary, out_ino, above_ino;
	atomic_bool done;
	atomic_uint found, outside, odd, steps;
};

static uint64_t ino_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_ino;
}

static struct fh handle(struct ctx *c, const struct fh_obj *dir, const char *name)
{
	struct fh_obj o;
	struct fh fh;

	assert_int_equal(fh_lookup(c->s, dir, name, &o), 0);
	assert_int_equal(fh_make(c->s, &o, &fh), 0);
	fh_close(&o);
	return fh;
}

/*   exp/a/f  exp/a/b/  exp/s/f  exp/l -> ../out  exp/m/  exp/file     out/canary  out/f (the same) */
static void setup(struct ctx *c, enum fh_kind kind)
{
	struct fh_keys keys = { .n = 1 };
	struct export_conf conf;
	char why[256];
	struct fh_obj a;

	memset(c, 0, sizeof(*c));
	c->kind = kind;
	tmp_dir_create(&c->dir);
	for (size_t i = 0; i < 6; i++)
		tmp_dir_mkdir(&c->dir, (const char *[]){ "exp", "out", "exp/a", "exp/a/b", "exp/s",
							 "exp/m" }[i]);
	tmp_dir_write(&c->dir, "exp/a/f", "inside");
	tmp_dir_write(&c->dir, "exp/s/f", "inside");
	tmp_dir_write(&c->dir, "exp/file", "inside");
	tmp_dir_write(&c->dir, "out/canary", "outside");
	snprintf(c->exp, sizeof(c->exp), "%s/exp", c->dir.path);
	snprintf(c->out, sizeof(c->out), "%s/out", c->dir.path);
	assert_int_equal(chdir(c->dir.path), 0);
	assert_int_equal(link("out/canary", "out/f"), 0);
	assert_int_equal(symlink("../out", "exp/l"), 0);
	c->canary = ino_of("out/canary");
	c->out_ino = ino_of("out");
	c->above_ino = ino_of(".");
	export_conf_init(&conf);
	conf.name = (char[]){ "/e" };
	conf.path = c->exp;
	assert_int_equal(siphash_key_random(&keys.v[0]), 0);
	assert_int_equal(export_table_open(&conf, 1, &c->t, why, sizeof(why)), 0);
	if (kind == FH_KERNEL && !kernel_has_handles(c->dir.path))
		return; /* race() skips the test */
	assert_int_equal(fh_set_create(&c->t, &keys, kind, NULL, NULL, &c->s), 0);
	assert_int_equal(fh_open_root(c->s, &c->t.v[0], &c->root), 0);
	c->a = handle(c, &c->root, "a");
	assert_int_equal(fh_open(c->s, c->a.data, c->a.len, &a), 0);
	c->b = handle(c, &a, "b");
	c->f = handle(c, &a, "f");
	c->held = a;
}

static void teardown(struct ctx *c)
{
	if (c->s) {
		fh_close(&c->held);
		fh_close(&c->root);
	}
	fh_set_destroy(c->s);
	export_table_close(&c->t);
	assert_int_equal(chdir("/"), 0);
	tmp_dir_destroy(&c->dir);
}

/* ---- the local process ---------------------------------------------------------------------- */

/* no asserts: other threads than the first cannot report them */
static void must(struct ctx *c, int rc)
{
	if (rc)
		atomic_fetch_add(&c->odd, 1);
}

/* In every other round the walkers find things as they are now, in the others as they change. */
static void stay(struct ctx *c, int round)
{
	unsigned seen = atomic_load(&c->steps);

	while (round % 2 && atomic_load(&c->steps) - seen < 2 * WALKERS)
		(void)sched_yield();
}

static void *move(void *arg)
{
	struct ctx *c = arg;

	for (int i = 0; i < ROUNDS; i++) {
		/* what is in a directory only while it is outside */
		must(c, rename("exp/a", "out/a"));
		must(c, link("out/canary", "out/a/c"));
		stay(c, i);
		must(c, unlink("out/a/c"));
		must(c, rename("out/a", "exp/a"));
		/* what ".." leads to */
		must(c, rename("exp/a/b", "out/b"));
		stay(c, i);
		must(c, rename("out/b", "exp/a/b"));
		/* a directory, a link to one outside, and the directory again */
		must(c, renameat2(AT_FDCWD, "exp/s", AT_FDCWD, "exp/l", RENAME_EXCHANGE));
		stay(c, i);
		must(c, renameat2(AT_FDCWD, "exp/s", AT_FDCWD, "exp/l", RENAME_EXCHANGE));
		if (may_mount && i % 8 < 2) {
			must(c, mount("out", "exp/m", NULL, MS_BIND, NULL));
			must(c, mount("out/canary", "exp/file", NULL, MS_BIND, NULL));
			stay(c, i);
			must(c, umount2("exp/file", MNT_DETACH));
			must(c, umount2("exp/m", MNT_DETACH));
		}
	}
	atomic_store(&c->done, true);
	return NULL;
}

/* ---- clients -------------------------------------------------------------------------------- */

/* an answer: closes @o if there is one; Return: what it was, 0 without */
static uint64_t judge(struct ctx *c, int err, struct fh_obj *o)
{
	uint64_t ino;

	if (err) {
		if (err != -ESTALE && err != -ENOENT && err != -EACCES && err != -ENOTDIR)
			atomic_fetch_add(&c->odd, 1);
		return 0;
	}
	ino = o->stx.stx_ino;
	atomic_fetch_add(ino == c->canary || ino == c->out_ino || ino == c->above_ino ? &c->outside
										      : &c->found,
			 1);
	fh_close(o);
	return ino;
}

static void look_in(struct ctx *c, const struct fh *fh, const char *name)
{
	struct fh_obj dir, o;

	if (fh_open(c->s, fh->data, fh->len, &dir))
		return;
	(void)judge(c, fh_lookup(c->s, &dir, name, &o), &o);
	fh_close(&dir);
}

/* from what the system has in memory, in a directory that was found to be inside once */
static void look_quickly(struct ctx *c, const struct fh_obj *dir, const char *name)
{
	struct fh_obj o;

	if (!fh_lookup_cached(c->s, dir, name, &o))
		(void)judge(c, 0, &o);
	else
		fh_close(&o); /* it may be open */
}

/* by path, as a client does it */
static void look_for(struct ctx *c, const char *dir_name, const char *name)
{
	struct fh_obj dir, o;
	struct stat st;

	if (fh_lookup(c->s, &c->root, dir_name, &dir))
		return;
	if (S_ISDIR(dir.stx.stx_mode))
		(void)judge(c, fh_lookup(c->s, &dir, name, &o), &o);
	else if (!S_ISLNK(dir.stx.stx_mode) || fstat(dir.fd, &st) || !S_ISLNK(st.st_mode))
		atomic_fetch_add(&c->odd, 1);
	(void)judge(c, 0, &dir);
}

/* as a listing with handles does it */
static void list_mount(struct ctx *c, const char *name)
{
	struct statx stx;
	struct fh_obj o;
	struct fh fh;

	if (statx(c->root.fd, name, AT_SYMLINK_NOFOLLOW, FH_STATX_MASK, &stx) ||
	    fh_make_at(c->s, &c->root, name, &stx, &fh))
		return;
	(void)judge(c, fh_open(c->s, fh.data, fh.len, &o), &o);
}

static void *walk(void *arg)
{
	struct ctx *c = arg;
	bool last;

	do {
		struct fh_obj o;

		last = atomic_load(&c->done);
		look_in(c, &c->a, "c");
		look_in(c, &c->a, "f");
		look_quickly(c, &c->held, "c");
		look_quickly(c, &c->held, "f");
		look_quickly(c, &c->root, "l");
		look_quickly(c, &c->root, "m");
		look_quickly(c, &c->root, "file");
		look_in(c, &c->b, "..");
		look_in(c, &c->a, "..");
		look_for(c, "a", "c");
		look_for(c, "s", "canary");
		look_for(c, "s", "f");
		look_for(c, "l", "f");
		look_for(c, "m", "canary");
		list_mount(c, "m");
		list_mount(c, "file");
		(void)judge(c, fh_open(c->s, c->f.data, c->f.len, &o), &o);
		atomic_fetch_add(&c->steps, 1);
	} while (!last);
	return NULL;
}

static void race(enum fh_kind kind)
{
	pthread_t mover, walkers[WALKERS];
	struct ctx c;
	struct fh_obj o;

	setup(&c, kind);
	if (!c.s) {
		teardown(&c);
		skip();
	}
	for (int i = 0; i < WALKERS; i++)
		assert_int_equal(pthread_create(&walkers[i], NULL, walk, &c), 0);
	assert_int_equal(pthread_create(&mover, NULL, move, &c), 0);
	for (int i = 0; i < WALKERS; i++)
		pthread_join(walkers[i], NULL);
	pthread_join(mover, NULL);
	assert_int_equal(atomic_load(&c.outside), 0);
	assert_int_equal(atomic_load(&c.odd), 0);
	assert_true(atomic_load(&c.found) > 0);
	/* all is where it was: the handles are good */
	for (int i = 0; i < 3; i++) {
		const struct fh *fh = (const struct fh *[]){ &c.a, &c.b, &c.f }[i];

		if (c.kind == FH_MAP) /* which may have to see them again */
			(void)walk(&c);
		assert_int_equal(fh_open(c.s, fh->data, fh->len, &o), 0);
		fh_close(&o);
	}
	teardown(&c);
}

static void kernel_handles(void **state)
{
	(void)state;
	race(FH_KERNEL);
}

static void handles_by_name(void **state)
{
	(void)state;
	race(FH_MAP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_handles),
		cmocka_unit_test(handles_by_name),
	};

	may_mount = !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	if (!may_mount)
		puts("SKIP: bind mounts: not allowed here");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
