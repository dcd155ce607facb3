/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_fdcache.c - open files by handle: which stay open, which are closed, and what dirty ones need first
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "fdcache.h"

struct ctx {
	struct fdcache *c;
	unsigned flushes;
	struct fdcache_entry *flushing;
};

static unsigned closed, cleaned;

static void on_flush(void *ctx, struct fdcache_entry *e)
{
	struct ctx *c = ctx;

	c->flushes++;
	c->flushing = e;
}

static void on_close(void *ctx, const struct store_file *f)
{
	(void)ctx;
	assert_int_equal(close(f->fd), 0);
	closed++;
}

static void on_cleaned(void *ctx, void *dirtier)
{
	assert_ptr_equal(ctx, dirtier);
	cleaned++;
}

static const struct fdcache_ops cache_ops = { .flush = on_flush, .close = on_close, .cleaned = on_cleaned };

static int setup(void **state)
{
	struct ctx *c = calloc(1, sizeof(*c));

	assert_int_equal(fdcache_create(4, &cache_ops, c, &c->c), 0);
	closed = cleaned = 0;
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	struct ctx *c = *state;

	fdcache_destroy(c->c);
	free(c);
	return 0;
}

static struct fh fh_of(unsigned n)
{
	struct fh fh = { .len = 20 };

	memcpy(fh.data, &n, sizeof(n));
	return fh;
}

static struct fdcache_entry *insert(struct ctx *c, unsigned n, bool writable)
{
	struct store_file f = { .fd = open("/dev/null", O_RDWR), .writable = writable, .dev = 1, .ino = n };
	struct fh fh = fh_of(n);

	assert_true(f.fd >= 0);
	return fdcache_insert(c->c, &fh, &f);
}

static void make_dirty(struct ctx *c, struct fdcache_entry *e)
{
	(void)fdcache_dirtied(e, 0, 1, c);
	fdcache_wrote(e);
}

static void expire_all(struct ctx *c, uint64_t before_ns)
{
	while (fdcache_expire(c->c, before_ns) == FDCACHE_NOW)
		;
}

static struct fdcache_entry *find(struct ctx *c, unsigned n, bool write)
{
	struct fh fh = fh_of(n);

	return fdcache_find(c->c, fh.data, fh.len, write);
}

static void find_and_hold(void **state)
{
	struct ctx *c = *state;
	struct fdcache_entry *e = insert(c, 1, false);
	uint8_t junk[100] = { 0 };

	assert_ptr_equal(find(c, 1, false), e);
	assert_null(find(c, 1, true)); /* cannot be written by */
	assert_null(find(c, 2, false));
	assert_null(fdcache_find(c->c, junk, 100, false));
	assert_null(fdcache_find(c->c, junk, 0, false));
	fdcache_put(e);
	fdcache_put(e);
	assert_int_equal(closed, 0);
}

static void upgrade(void **state)
{
	struct ctx *c = *state;
	struct fdcache_entry *r = insert(c, 1, false), *w = insert(c, 1, true);

	assert_ptr_not_equal(r, w);
	assert_int_equal(closed, 0); /* a READ uses it */
	fdcache_put(r);
	assert_int_equal(closed, 1);
	assert_ptr_equal(find(c, 1, false), w);
	/* a second opener finds it there */
	assert_ptr_equal(insert(c, 1, true), w);
	assert_ptr_equal(insert(c, 1, false), w);
	assert_int_equal(closed, 3);
	for (int i = 0; i < 4; i++)
		fdcache_put(w);
	assert_int_equal(fdcache_count(c->c), 1);
}

static void least_recent_goes(void **state)
{
	struct ctx *c = *state;

	for (unsigned i = 0; i < 4; i++)
		fdcache_put(insert(c, i, false));
	fdcache_put(find(c, 0, false));
	fdcache_put(insert(c, 10, false));
	assert_int_equal(closed, 1);
	assert_null(find(c, 1, false));
	fdcache_put(find(c, 0, false));
	assert_int_equal(fdcache_count(c->c), 4);
}

static void held_stay(void **state)
{
	struct ctx *c = *state;
	struct fdcache_entry *e[8];

	for (unsigned i = 0; i < 8; i++)
		e[i] = insert(c, i, false);
	assert_int_equal(closed, 0);
	for (unsigned i = 0; i < 8; i++)
		fdcache_put(e[i]);
	for (unsigned i = 20; i < 30; i++)
		fdcache_put(insert(c, i, false));
	assert_int_equal(closed, 10);
}

static void dirty_flushed_first(void **state)
{
	struct ctx *c = *state;
	struct fdcache_entry *e = insert(c, 0, true);
	uint64_t seq;

	make_dirty(c, e);
	seq = ++e->dirty_seq;
	fdcache_put(e);
	for (unsigned i = 1; i < 5; i++)
		fdcache_put(insert(c, i, false));
	assert_int_equal(c->flushes, 1);
	assert_ptr_equal(c->flushing, e);
	fdcache_put(insert(c, 9, false));
	assert_int_equal(c->flushes, 1); /* once is enough */
	/* written again while it was being synced: still dirty */
	e->dirty_seq++;
	fdcache_flushed(e, seq);
	assert_true(e->dirty);
	expire_all(c, UINT64_MAX);
	assert_int_equal(c->flushes, 2);
	/* a write under way when the sync began is not covered by it */
	e->writing = 1;
	fdcache_flushed(e, e->dirty_seq);
	assert_true(e->dirty);
	e->writing = 0;
	fdcache_cleaned(e, e->dirty_seq);
	assert_false(e->dirty);
	expire_all(c, UINT64_MAX);
	assert_int_equal(fdcache_count(c->c), 0);
}

static void expire(void **state)
{
	struct ctx *c = *state;
	uint64_t before;

	fdcache_put(insert(c, 1, false));
	before = clock_now_ns() + 1;
	while (clock_now_ns() <= before)
		;
	fdcache_put(insert(c, 2, false));
	expire_all(c, before);
	assert_null(find(c, 1, false));
	fdcache_put(find(c, 2, false));
}

static void dropped_file(void **state)
{
	struct ctx *c = *state;
	struct fdcache_entry *e = insert(c, 7, true);

	make_dirty(c, e); /* the file is gone: nothing to keep */
	fdcache_drop_file(c->c, 1, 7);
	assert_null(find(c, 7, false));
	assert_int_equal(closed, 0);
	fdcache_put(e);
	assert_int_equal(closed, 1);
	fdcache_drop_file(c->c, 2, 7);
}

static void permissions(void **state)
{
	struct ctx *c = *state;
	struct fdcache_entry *e = insert(c, 1, false);
	struct statx stx = { .stx_ctime = { .tv_sec = 5, .tv_nsec = 6 } };
	struct timespec looked = { .tv_sec = 5, .tv_nsec = 8 };

	assert_false(fdcache_may(e, 77, &stx, false));
	fdcache_learn(e, 77, &looked, &stx, false);
	assert_true(fdcache_may(e, 77, &stx, false));
	assert_false(fdcache_may(e, 77, &stx, true));
	assert_false(fdcache_may(e, 78, &stx, false));
	fdcache_learn(e, 77, &looked, &stx, true);
	assert_true(fdcache_may(e, 77, &stx, false));
	assert_true(fdcache_may(e, 77, &stx, true));
	stx.stx_ctime.tv_nsec++; /* chmod, perhaps: nothing is known any more */
	assert_false(fdcache_may(e, 77, &stx, false));
	fdcache_learn(e, 77, &looked, &stx, false);
	assert_false(fdcache_may(e, 77, &stx, true));
	for (uint64_t who = 100; who < 104; who++)
		fdcache_learn(e, who, &looked, &stx, false);
	assert_false(fdcache_may(e, 77, &stx, false));
	assert_true(fdcache_may(e, 103, &stx, false));
	fdcache_put(e);
}

static void rights(void **state)
{
	struct ctx *c = *state;
	struct fdcache_entry *e = insert(c, 1, false);
	struct statx stx = { .stx_ctime = { .tv_sec = 5, .tv_nsec = 6 } };
	struct timespec looked = { .tv_sec = 6 };
	unsigned got = 99;

	assert_false(fdcache_rights(e, 77, &stx, X_OK, &got));
	fdcache_learn_rights(e, 77, &looked, &stx, X_OK, X_OK);
	assert_true(fdcache_rights(e, 77, &stx, X_OK, &got));
	assert_int_equal(got, X_OK);
	/* what was not asked is not known; what was refused is */
	assert_false(fdcache_rights(e, 77, &stx, R_OK | X_OK, &got));
	fdcache_learn_rights(e, 77, &looked, &stx, R_OK | W_OK, R_OK);
	assert_true(fdcache_rights(e, 77, &stx, R_OK | W_OK | X_OK, &got));
	assert_int_equal(got, R_OK | X_OK);
	assert_false(fdcache_rights(e, 78, &stx, R_OK, &got));
	/* neither says anything of the other */
	assert_false(fdcache_may(e, 77, &stx, false));
	stx.stx_ctime.tv_sec++;
	assert_false(fdcache_rights(e, 77, &stx, R_OK, &got));
	fdcache_put(e);
}

/* A chmod in the same tick of the clock leaves the same ctime: rights that were checked in that tick are not cached. */
static void unsettled(void **state)
{
	const struct fs_limits fine = { .time_ns = 1 }, coarse = { .time_s = 2 };
	struct ctx *c = *state;
	struct fdcache_entry *e = insert(c, 1, false);
	struct statx stx = { .stx_ctime = { .tv_sec = 5, .tv_nsec = 6 } };
	const struct timespec too_early[] = { { 5, 6 }, { 5, 5 }, { 4, 999999999 }, { 0, 0 } };
	unsigned got;

	for (size_t i = 0; i < ARRAY_SIZE(too_early); i++) {
		fdcache_learn(e, 77, &too_early[i], &stx, true);
		assert_false(fdcache_may(e, 77, &stx, true));
		fdcache_learn_rights(e, 77, &too_early[i], &stx, R_OK, R_OK);
		assert_false(fdcache_rights(e, 77, &stx, R_OK, &got));
	}
	fdcache_learn(e, 77, &(struct timespec){ 5, 7 }, &stx, true);
	assert_true(fdcache_may(e, 77, &stx, true));
	fdcache_put(e);
	assert_true(fdcache_look(&fine).tv_sec > 0);
	assert_int_equal(fdcache_look(&coarse).tv_sec % 2, 0);
	assert_int_equal(fdcache_look(&coarse).tv_nsec, 0);
}

static bool is_odd(void *ctx, const struct fh *fh)
{
	(void)ctx;
	return fh->data[0] & 1;
}

/* Retired entries are not found any more. Holders keep them. Dirty ones are synced first. */
static void retired(void **state)
{
	struct ctx *c = *state;
	struct fdcache_entry *e, *again;

	for (unsigned i = 1; i <= 4; i++)
		fdcache_put(insert(c, i, true));
	e = find(c, 1, true);
	fdcache_retire(c->c, is_odd, NULL);
	assert_int_equal(closed, 1);
	assert_null(find(c, 1, false));
	assert_null(find(c, 3, false));
	fdcache_put(find(c, 2, true));

	/* the handle can be good again while an old holder is still there */
	again = insert(c, 1, true);
	assert_ptr_not_equal(again, e);
	assert_ptr_equal(find(c, 1, true), again);
	fdcache_put(again);
	fdcache_put(again);
	assert_int_equal(closed, 1);
	make_dirty(c, e);
	e->dirty_seq = 1;
	fdcache_put(e);
	assert_int_equal(c->flushes, 1);
	assert_ptr_equal(c->flushing, e);
	assert_int_equal(closed, 1);
	fdcache_flushed(e, e->dirty_seq);
	assert_int_equal(closed, 2);
	assert_int_equal(fdcache_count(c->c), 3);

	/* a flush that could not begin is not tried for ever */
	make_dirty(c, again);
	again->dirty_seq = 1;
	fdcache_retire(c->c, is_odd, NULL);
	assert_int_equal(c->flushes, 2);
	fdcache_flushed(again, 0);
	assert_int_equal(c->flushes, 2);
	assert_int_equal(closed, 2);
	expire_all(c, clock_now_ns() + 1);
	assert_int_equal(c->flushes, 3);
	fdcache_flushed(again, 1);
	assert_int_equal(closed, 5);
	assert_int_equal(fdcache_count(c->c), 0);
}

/* removed while it was being synced, and written to meanwhile: nothing is left of it */
static void retired_and_dropped(void **state)
{
	struct ctx *c = *state;
	struct fdcache_entry *e = insert(c, 1, true);

	make_dirty(c, e);
	e->dirty_seq = 1;
	fdcache_put(e);
	expire_all(c, UINT64_MAX);
	assert_ptr_equal(c->flushing, e);
	e->dirty_seq++;
	fdcache_retire(c->c, is_odd, NULL);
	fdcache_drop_file(c->c, 1, 1);
	fdcache_flushed(e, 1);
	assert_int_equal(closed, 1);
}

/* What can be written by is closed soon, read by or not, but never while it is dirty */
static void writable_goes_first(void **state)
{
	struct ctx *c = *state;
	struct fdcache_entry *r = insert(c, 1, false), *w = insert(c, 2, true), *again;
	uint64_t late = clock_now_ns() + 1000 * NS_PER_S;

	fdcache_put(r);
	/* a WRITE is under way: closed with the last reference, and not found until then */
	assert_int_equal(fdcache_expire_writable(c->c, 0), FDCACHE_LATER);
	assert_ptr_equal(find(c, 2, true), w);
	fdcache_put(w);
	assert_int_equal(fdcache_expire_writable(c->c, late), FDCACHE_LATER);
	assert_null(find(c, 2, false));
	again = insert(c, 2, false);
	assert_ptr_not_equal(again, w);
	fdcache_put(again);
	assert_int_equal(closed, 0);
	fdcache_put(w);
	assert_int_equal(closed, 1);
	assert_int_equal(fdcache_expire_writable(c->c, late), FDCACHE_NONE);

	/* dirty: not before it was synced; reading by it keeps it no longer */
	w = insert(c, 3, true);
	(void)fdcache_dirtied(w, 10, 20, c);
	fdcache_wrote(w);
	fdcache_put(w);
	assert_int_equal(fdcache_expire_writable(c->c, late), FDCACHE_LATER);
	assert_int_equal(closed, 1);
	assert_int_equal(c->flushes, 0);
	fdcache_put(find(c, 3, false));
	fdcache_cleaned(w, fdcache_sync_seq(w, 0, 0));
	assert_int_equal(fdcache_expire_writable(c->c, w->wrote_ns), FDCACHE_LATER);
	assert_int_equal(fdcache_expire_writable(c->c, w->wrote_ns + 1), FDCACHE_NONE);
	assert_int_equal(closed, 2);
	/* the others stay */
	fdcache_put(find(c, 1, false));
	assert_int_equal(fdcache_count(c->c), 2);
}

/* a sync of a range cleans what was written there, and only there */
static void ranges(void **state)
{
	static const struct {
		uint64_t off;
		uint32_t bytes;
		bool cleans;
	} v[] = {
		{ 0, 0, true },	     { 100, 300, true },	{ 0, 1000, true },
		{ 101, 400, false }, { 100, 299, false },	{ 0, 100, false },
		{ 400, 100, false }, { UINT64_MAX, 10, false },
	};
	struct ctx *c = *state;
	struct fdcache_entry *e = insert(c, 1, true);

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		(void)fdcache_dirtied(e, 300, 100, c);
		(void)fdcache_dirtied(e, 100, 50, c);
		fdcache_wrote(e);
		fdcache_wrote(e);
		fdcache_cleaned(e, fdcache_sync_seq(e, v[i].off, v[i].bytes));
		assert_int_equal(e->dirty, !v[i].cleans);
		fdcache_cleaned(e, fdcache_sync_seq(e, 0, 0));
		assert_false(e->dirty);
	}
	/* the range of what came before is forgotten */
	(void)fdcache_dirtied(e, 5000, 10, c);
	fdcache_wrote(e);
	fdcache_cleaned(e, fdcache_sync_seq(e, 5000, 10));
	assert_false(e->dirty);
	fdcache_put(e);
}

/* A handle that means another file now, whose entry does not serve. */
static void another_file(void **state)
{
	struct ctx *c = *state;
	struct fdcache_entry *first = insert(c, 1, true), *second;
	struct store_file f = { .fd = open("/dev/null", O_RDWR), .writable = true, .dev = 2, .ino = 1 };
	struct fh fh = fh_of(1);

	second = fdcache_insert(c->c, &fh, &f);
	assert_ptr_not_equal(first, second);
	assert_ptr_equal(find(c, 1, false), second);
	assert_int_equal(closed, 0);
	fdcache_put(first);
	assert_int_equal(closed, 1);
	fdcache_put(second);
	fdcache_put(second);
	f.fd = open("/dev/null", O_RDWR);
	f.ino = 2;
	fdcache_put(fdcache_insert(c->c, &fh, &f)); /* the one before has no reference */
	assert_int_equal(closed, 2);
	assert_int_equal(fdcache_count(c->c), 1);
}

/* What takes its time is begun for one in eight at once, and one at least. */
static void by_parts(void **state)
{
	struct ctx *c = *state;
	struct fdcache_entry *held = insert(c, 9, false);

	for (unsigned i = 1; i <= 3; i++)
		fdcache_put(insert(c, i, true));
	assert_int_equal(fdcache_expire_writable(c->c, UINT64_MAX), FDCACHE_NOW);
	assert_int_equal(closed, 1);
	assert_int_equal(fdcache_expire(c->c, UINT64_MAX), FDCACHE_NOW);
	assert_int_equal(closed, 2);
	assert_int_equal(fdcache_expire_writable(c->c, UINT64_MAX), FDCACHE_NONE);
	assert_int_equal(fdcache_expire(c->c, UINT64_MAX), FDCACHE_NONE);
	assert_int_equal(closed, 3);
	fdcache_put(held);
	assert_int_equal(fdcache_expire(c->c, 0), FDCACHE_LATER);
}

/* The callback of the client that made it dirty runs once, when it is clean or closed. */
static void dirtiers(void **state)
{
	struct ctx *c = *state;
	struct fdcache_entry *e = insert(c, 1, true);

	assert_int_equal(fdcache_dirty(c->c), 0);
	assert_true(fdcache_dirtied(e, 0, 10, c));
	assert_false(fdcache_dirtied(e, 0, 10, NULL));
	fdcache_wrote(e);
	fdcache_cleaned(e, fdcache_sync_seq(e, 0, 0));
	assert_int_equal(fdcache_dirty(c->c), 1); /* the other is under way */
	assert_int_equal(cleaned, 0);
	fdcache_wrote(e);
	fdcache_cleaned(e, fdcache_sync_seq(e, 0, 0));
	fdcache_cleaned(e, fdcache_sync_seq(e, 0, 0));
	assert_int_equal(fdcache_dirty(c->c), 0);
	assert_int_equal(cleaned, 1);

	/* a removed one stays dirty until the last reference is put */
	assert_true(fdcache_dirtied(e, 0, 10, c));
	fdcache_drop_file(c->c, 1, 1);
	assert_int_equal(fdcache_dirty(c->c), 1);
	fdcache_wrote(e);
	fdcache_put(e);
	assert_int_equal(fdcache_dirty(c->c), 0);
	assert_int_equal(cleaned, 2);

	e = insert(c, 7, true);
	assert_true(fdcache_dirtied(e, 0, 10, c));
	fdcache_wrote(e);
	fdcache_synced(c->c, 1, 7, e->dirty_ns + 1);
	assert_int_equal(cleaned, 3);
	assert_true(fdcache_dirtied(e, 0, 10, c));
	fdcache_wrote(e);
	fdcache_put(e); /* and the cache ends */
}

/* Dirty entries are flushed one by one in the order in which they became dirty, each again if it was written to
 * meanwhile. */
static void one_by_one(void **state)
{
	struct ctx *c = *state;
	struct fdcache_entry *e[3];

	fdcache_flush_one(c->c);
	assert_int_equal(c->flushes, 0);
	for (unsigned i = 0; i < 3; i++) {
		e[i] = insert(c, i + 1, true);
		make_dirty(c, e[i]);
	}
	fdcache_cleaned(e[1], e[1]->dirty_seq);
	fdcache_flush_one(c->c);
	assert_ptr_equal(c->flushing, e[0]);
	fdcache_flush_one(c->c);
	assert_ptr_equal(c->flushing, e[2]);
	fdcache_flush_one(c->c);
	assert_int_equal(c->flushes, 2); /* both are under way, and the third is clean */
	make_dirty(c, e[0]);
	make_dirty(c, e[1]);
	fdcache_flushed(e[0], e[0]->dirty_seq - 1);
	fdcache_flushed(e[2], e[2]->dirty_seq);
	fdcache_flush_one(c->c);
	assert_ptr_equal(c->flushing, e[1]);
	fdcache_flush_one(c->c);
	assert_ptr_equal(c->flushing, e[0]);
	fdcache_flushed(e[0], e[0]->dirty_seq);
	fdcache_flushed(e[1], e[1]->dirty_seq);
	assert_int_equal(fdcache_dirty(c->c), 0);
	/* one that becomes clean and dirty again while it is flushed */
	make_dirty(c, e[0]);
	fdcache_flush_one(c->c);
	fdcache_cleaned(e[0], e[0]->dirty_seq);
	make_dirty(c, e[0]);
	assert_int_equal(c->flushes, 5);
	fdcache_flush_one(c->c);
	assert_int_equal(c->flushes, 5);
	fdcache_flushed(e[0], e[0]->dirty_seq - 1);
	fdcache_flush_one(c->c);
	assert_int_equal(c->flushes, 6);
	fdcache_flushed(e[0], e[0]->dirty_seq);
	for (unsigned i = 0; i < 3; i++)
		fdcache_put(e[i]);
}

/* another descriptor was synced: what ended before is on disk, what is under way may not be */
static void synced_elsewhere(void **state)
{
	struct ctx *c = *state;
	struct fdcache_entry *e = insert(c, 7, true);
	uint64_t late = clock_now_ns() + 1000 * NS_PER_S;

	(void)fdcache_dirtied(e, 0, 10, c);
	fdcache_synced(c->c, 1, 7, late);
	assert_true(e->dirty);
	fdcache_wrote(e);
	fdcache_synced(c->c, 1, 7, e->dirty_ns);
	fdcache_synced(c->c, 1, 8, late);
	fdcache_synced(c->c, 2, 7, late);
	assert_true(e->dirty);
	fdcache_synced(c->c, 1, 7, e->dirty_ns + 1);
	assert_false(e->dirty);
	fdcache_put(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(find_and_hold, setup, teardown),
		cmocka_unit_test_setup_teardown(upgrade, setup, teardown),
		cmocka_unit_test_setup_teardown(least_recent_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(held_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(dirty_flushed_first, setup, teardown),
		cmocka_unit_test_setup_teardown(expire, setup, teardown),
		cmocka_unit_test_setup_teardown(writable_goes_first, setup, teardown),
		cmocka_unit_test_setup_teardown(synced_elsewhere, setup, teardown),
		cmocka_unit_test_setup_teardown(ranges, setup, teardown),
		cmocka_unit_test_setup_teardown(one_by_one, setup, teardown),
		cmocka_unit_test_setup_teardown(dirtiers, setup, teardown),
		cmocka_unit_test_setup_teardown(by_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(another_file, setup, teardown),
		cmocka_unit_test_setup_teardown(dropped_file, setup, teardown),
		cmocka_unit_test_setup_teardown(permissions, setup, teardown),
		cmocka_unit_test_setup_teardown(rights, setup, teardown),
		cmocka_unit_test_setup_teardown(unsettled, setup, teardown),
		cmocka_unit_test_setup_teardown(retired, setup, teardown),
		cmocka_unit_test_setup_teardown(retired_and_dropped, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
