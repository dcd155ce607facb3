/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_dir_watch.c - when is it proved what a directory was like before a change, and when not
 */
#include "test_dir_watch.h"

#define PAIRS_MAX 60000u
#define PAIRS_DIFFER 300u
#define OTHER 8u

static int setup_tmpfs(void **state)
{
	return enter(state, "/dev/shm");
}

static bool same_ctime(const struct statx *a, const struct statx *b)
{
	return dir_ctime_ns(a) == dir_ctime_ns(b);
}

static void proves(void **state)
{
	struct rig *r = *state;
	struct dir_wcc a = known(r), b = create(r, &r->d, OTHER, "b", NULL, NULL), c;

	assert_true(a.proved && b.proved);
	assert_true(same_ctime(&a.after, &b.before));
	assert_true(dir_ctime_ns(&b.after) > dir_ctime_ns(&b.before));
	c = create_not(r, NULL, "c");
	assert_true(c.proved);
	assert_true(same_ctime(&c.before, &c.after));
}

/* ---- others ---- */

static void local_create(struct rig *r)
{
	make(&r->d, "other");
}

static void local_unlink(struct rig *r)
{
	assert_int_equal(unlinkat(r->d.fd, "known", 0), 0);
}

static void local_rename(struct rig *r)
{
	assert_int_equal(renameat(r->d.fd, "known", r->d.fd, "unknown"), 0);
}

static void local_rename_out(struct rig *r)
{
	assert_int_equal(renameat(r->d.fd, "known", r->e.fd, "out"), 0);
}

static void local_mkdir(struct rig *r)
{
	assert_int_equal(mkdirat(r->d.fd, "dir", 0755), 0);
}

static void local_chmod(struct rig *r)
{
	assert_int_equal(chmod(tmp_dir_path(&r->tmp, "d"), 0711), 0);
}

static void local_utimes(struct rig *r)
{
	assert_int_equal(utimensat(AT_FDCWD, tmp_dir_path(&r->tmp, "d"), NULL, 0), 0);
}

static void local_move(struct rig *r)
{
	const char *from = tmp_dir_path(&r->tmp, "d"), *to = tmp_dir_path(&r->tmp, "e/d");

	assert_int_equal(rename(from, to), 0);
	assert_int_equal(rename(to, from), 0);
}

static local_fn *const locals[] = { local_create, local_unlink, local_rename, local_rename_out,
				    local_mkdir,  local_chmod,	local_utimes, local_move };

static void undo(struct rig *r)
{
	static const char *const names[] = { "other", "known", "unknown", "b", "c", "x" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)unlinkat(r->d.fd, names[i], 0);
	(void)unlinkat(r->d.fd, "dir", AT_REMOVEDIR);
	(void)unlinkat(r->e.fd, "out", 0);
}

/* After a change by another process between the two stat() calls nothing is proved. The next change proves nothing
 * either: its `before` may have the ctime of a state that no client knows. */
static void others_meanwhile(void **state)
{
	struct rig *r = *state;

	for (size_t i = 0; i < 3 * ARRAY_SIZE(locals); i++) {
		local_fn *fn = locals[i / 3];
		struct dir_wcc w;

		(void)known(r);
		if (i % 3 == 0)
			w = create(r, &r->d, ME, "b", fn, NULL);
		else if (i % 3 == 1)
			w = create(r, &r->d, ME, "b", NULL, fn);
		else
			w = create_not(r, fn, "b");
		assert_false(w.proved);
		w = create(r, &r->d, ME, "c", NULL, NULL);
		assert_false(w.proved);
		wait_tick();
		w = create(r, &r->d, ME, "x", NULL, NULL);
		assert_true(w.proved);
		undo(r);
		wait_tick();
		/* so was this */
		assert_false(create(r, &r->d, ME, "b", NULL, NULL).proved);
		undo(r);
		wait_tick();
		(void)create(r, &r->d, ME, "b", NULL, NULL);
		undo(r);
		wait_tick();
	}
}

static void others_between(void **state)
{
	struct rig *r = *state;

	for (size_t i = 0; i < ARRAY_SIZE(locals); i++) {
		(void)known(r);
		locals[i](r);
		assert_false(create(r, &r->d, ME, "b", NULL, NULL).proved);
		wait_tick();
		(void)create(r, &r->d, ME, "c", NULL, NULL);
		wait_tick();
		assert_true(create(r, &r->d, ME, "x", NULL, NULL).proved);
		undo(r);
	}
}

static void local_same(struct rig *r)
{
	make(&r->d, "b");
}

/* another process does the same operation */
static void same_by_others(void **state)
{
	struct rig *r = *state;

	(void)known(r);
	assert_false(create_not(r, local_same, "b").proved);
}

static void local_attributes(struct rig *r)
{
	assert_int_equal(fchmodat(r->d.fd, "known", 0600, 0), 0);
}

/* what happens to a file in it does not happen to the directory */
static void of_a_file(void **state)
{
	struct rig *r = *state;

	(void)known(r);
	assert_true(create(r, &r->d, ME, "b", local_attributes, NULL).proved);
	local_attributes(r);
	assert_true(create(r, &r->d, ME, "c", NULL, local_attributes).proved);
}

static atomic_bool stop;

static void *change_names(void *arg)
{
	const struct rig *r = arg;

	while (!atomic_load(&stop)) {
		if (mkdirat(r->d.fd, "busy", 0755))
			(void)unlinkat(r->d.fd, "busy", AT_REMOVEDIR);
		for (volatile unsigned i = 0; i < 2000; i++)
			;
	}
	return NULL;
}

/* statx() shows a change before its event is in the queue. Of thousands of pairs of statx() on a directory that
 * another thread changes all the time, some meet just that: then nothing is proved either. */
static void late_events(void **state)
{
	struct dir_step step = { .event = IN_CREATE, .name = "b" };
	unsigned pairs, differ = 0, wrong = 0;
	struct rig *r = *state;
	struct dir_wcc wcc;
	struct dir_turn t;
	pthread_t thread;

	need_watches(r);
	step.dir = &r->d;
	r->d.wcc = &wcc;
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, change_names, r), 0);
	for (pairs = 0; pairs < PAIRS_MAX && differ < PAIRS_DIFFER; pairs++) {
		wcc = (struct dir_wcc){ .client = ME };
		dir_watch_begin(&t, &step, 1);
		/* what was before this is not what is asked here */
		t.parts[0].dir->run = (struct dir_run){ true, dir_ctime_ns(&t.parts[0].before), 0 };
		dir_watch_end(&t, false);
		if (!same_ctime(&t.parts[0].before, &t.parts[0].after)) {
			differ++;
			wrong += wcc.proved ? 1 : 0;
		}
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	print_message("%u of %u pairs differ, %u of them were taken for equal\n", differ, pairs, wrong);
	assert_int_equal(wrong, 0);
}

/* ---- RENAME ---- */

static void rename_both(struct rig *r, struct fh_obj *from, struct fh_obj *to, local_fn *after,
			struct dir_wcc *from_wcc, struct dir_wcc *to_wcc)
{
	struct fh_obj moved;
	struct dir_step steps[] = { { .dir = from, .event = IN_MOVED_FROM, .name = "known" },
				    { .dir = to, .event = IN_MOVED_TO, .name = "b", .moved = &moved } };
	struct dir_turn t;

	*from_wcc = *to_wcc = (struct dir_wcc){ .client = ME };
	from->wcc = from_wcc;
	to->wcc = to_wcc;
	assert_int_equal(statx(from->fd, "known", 0, FH_STATX_MASK, &moved.stx), 0);
	dir_watch_begin(&t, steps, 2);
	assert_int_equal(renameat(from->fd, "known", to->fd, "b"), 0);
	if (after)
		after(r);
	dir_watch_end(&t, true);
	from->wcc = to->wcc = NULL;
}

/* The queue holds one event of two moves to one name: inotify merges them. */
static void local_move_over(struct rig *r)
{
	assert_int_equal(renameat(AT_FDCWD, tmp_dir_path(&r->tmp, "local/f"), r->e.fd, "b"), 0);
}

static void renames(void **state)
{
	struct rig *r = *state;
	struct fh_obj again;
	struct dir_wcc a, b;
	int fd;

	(void)known(r);
	assert_true(create(r, &r->e, ME, "known", NULL, NULL).proved);
	assert_int_equal(unlinkat(r->e.fd, "known", 0), 0);
	assert_false(create(r, &r->e, ME, "y", NULL, NULL).proved);
	wait_tick();
	(void)create(r, &r->e, ME, "z", NULL, NULL);
	wait_tick();
	rename_both(r, &r->d, &r->e, NULL, &a, &b);
	assert_true(a.proved && b.proved);
	assert_true(dir_ctime_ns(&a.after) > dir_ctime_ns(&a.before));
	wait_tick();

	/* within one directory, of which there are two descriptors */
	look(r, "d", &again);
	assert_true(create(r, &r->d, ME, "known", NULL, NULL).proved);
	wait_tick();
	rename_both(r, &r->d, &again, NULL, &a, &b);
	assert_true(a.proved && b.proved && same_ctime(&a.before, &b.before));
	close(again.fd);
	wait_tick();

	assert_true(create(r, &r->d, ME, "known", NULL, NULL).proved);
	fd = creat(tmp_dir_path(&r->tmp, "local/f"), 0644);
	assert_true(fd >= 0);
	close(fd);
	wait_tick();
	rename_both(r, &r->d, &r->e, local_move_over, &a, &b);
	assert_true(a.proved);
	assert_false(b.proved);
}

/* ---- what is known of a ctime ---- */

static void runs(void **state)
{
	struct dir_run r = { .known = true, .ctime_ns = 100 };

	(void)state;
	assert_true(dir_run_allows(&r, ME, 100) && dir_run_allows(&r, OTHER, 100));
	assert_false(dir_run_allows(&r, ME, 99)); /* changed without a note */
	dir_run_go_on(&r, ME, true, 100, 200);
	assert_true(dir_run_allows(&r, ME, 200) && dir_run_allows(&r, OTHER, 200));
	/* a second change within the tick is known to the client that made it */
	dir_run_go_on(&r, ME, true, 200, 200);
	assert_true(dir_run_allows(&r, ME, 200));
	assert_false(dir_run_allows(&r, OTHER, 200));
	dir_run_go_on(&r, ME, false, 200, 200);
	assert_true(dir_run_allows(&r, ME, 200));
	dir_run_go_on(&r, OTHER, true, 200, 200);
	assert_false(dir_run_allows(&r, ME, 200) || dir_run_allows(&r, OTHER, 200));
	dir_run_go_on(&r, ME, true, 200, 200);
	assert_false(dir_run_allows(&r, ME, 200));
	dir_run_go_on(&r, OTHER, true, 200, 300);
	assert_true(dir_run_allows(&r, ME, 300) && dir_run_allows(&r, OTHER, 300));
	/* a clock that was set back */
	dir_run_go_on(&r, ME, true, 300, 250);
	assert_false(dir_run_allows(&r, ME, 250));
	dir_run_go_on(&r, ME, true, 250, 250);
	assert_false(dir_run_allows(&r, ME, 250));
	dir_run_go_on(&r, ME, true, 250, 260);
	assert_true(dir_run_allows(&r, OTHER, 260));
	/* its times were changed, its names were not */
	dir_run_go_on(&r, ME, false, 260, 270);
	assert_false(dir_run_allows(&r, OTHER, 260) || dir_run_allows(&r, OTHER, 270));
}

/* Waits until the clock has left the tick of its ctime. */
static void wait_old(const struct fh_obj *o)
{
	struct statx stx;

	assert_int_equal(statx(o->fd, "", AT_EMPTY_PATH, FH_STATX_MASK, &stx), 0);
	while (dir_ctime_tick() <= dir_ctime_ns(&stx) + TICK_NS_MAX)
		;
}

/* The first change since it is watched. */
static void first_changes(void **state)
{
	struct rig *r = *state;

	need_watches(r);
	wait_tick();
	start(r, true, false, 16); /* no client has a handle yet */
	assert_true(create(r, &r->d, ME, "a", NULL, NULL).proved);
	wait_tick();
	start(r, false, false, 16); /* clients of a server before this one may have been told anything */
	assert_false(create(r, &r->d, ME, "b", NULL, NULL).proved);
	wait_tick();
	assert_true(create(r, &r->d, ME, "c", NULL, NULL).proved);
	wait_old(&r->d);
	start(r, false, true, 16); /* but no ctime twice */
	assert_true(create(r, &r->d, ME, "d", NULL, NULL).proved);
	wait_old(&r->d);
	start(r, false, false, 16);
	wait_tick();
	make(&r->e, "new"); /* since this server has started, and no client has looked at it since */
	wait_old(&r->e);
	assert_true(create(r, &r->e, ME, "a", NULL, NULL).proved);
}

/* A client was told the ctime while another change could still get the same one. */
static void told_too_early(void **state)
{
	struct rig *r = *state;
	struct statx stx;

	need_watches(r);
	make(&r->d, "new");
	assert_int_equal(vfs_stat(r->d.fd, &stx), 0);
	wait_tick(); /* the answer may be late: what counts is when it was looked at */
	assert_false(create(r, &r->d, ME, "a", NULL, NULL).proved);
	wait_tick();
	assert_true(create(r, &r->d, ME, "b", NULL, NULL).proved);

	make(&r->e, "new");
	wait_old(&r->e);
	assert_int_equal(vfs_stat(r->e.fd, &stx), 0); /* when that tick was over */
	assert_true(create(r, &r->e, ME, "a", NULL, NULL).proved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(proves),	      CASE(others_meanwhile), CASE(others_between),
		CASE(same_by_others), CASE(of_a_file),	      CASE(renames),
		CASE(runs),	      CASE(first_changes),    CASE(told_too_early),
		cmocka_unit_test_setup_teardown(late_events, setup_tmpfs, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
