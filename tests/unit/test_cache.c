/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_cache.c - what the client's cache believes, for how long, and in which order it takes replies
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cache.h"

static struct lt_cache *c;
static uint64_t now;

static nfs_fh3 handle(unsigned n)
{
	static char rooms[4][sizeof(n)];
	static unsigned next;
	char *room = rooms[next++ % 4];
	nfs_fh3 fh;

	memcpy(room, &n, sizeof(n));
	fh.data.data_len = sizeof(n);
	fh.data.data_val = room;
	return fh;
}

enum { DIR1 = 1, DIR2, FILE1 = 100, FILE2 };

static fattr3 attr(ftype3 type, uint64_t size, uint32_t ctime)
{
	fattr3 a = { .type = type, .size = size, .nlink = 1 };

	a.ctime.seconds = a.mtime.seconds = ctime;
	return a;
}

static struct lt_cache_call sent(bool ours)
{
	struct lt_cache_call call = { lt_cache_stamp(c), now, ours };

	return call;
}

static bool take(unsigned fh, const fattr3 *a, const struct lt_cache_call *call)
{
	return lt_cache_take_attr(c, handle(fh), a, NULL, call);
}

/* A call that was alone: sent, and answered. */
static void told(unsigned fh, ftype3 type, uint64_t size, uint32_t ctime)
{
	const struct lt_cache_call call = sent(false);
	const fattr3 a = attr(type, size, ctime);

	assert_true(take(fh, &a, &call));
}

/* Return: the size that is believed, or -1. */
static int64_t size_of(unsigned fh)
{
	fattr3 a;

	return lt_cache_attr(c, handle(fh), now, &a) ? (int64_t)a.size : -1;
}

static void looked_up(unsigned dir, const char *name, unsigned fh, const struct lt_cache_call *call)
{
	const nfs_fh3 h = handle(fh);

	lt_cache_take_name(c, handle(dir), name, fh ? LT_CACHE_THERE : LT_CACHE_MISSING, &h, call);
}

/* Return: the cached handle; 0: the name is cached as missing; -1: not cached. */
static int found(unsigned dir, const char *name)
{
	struct lt_fh fh;
	int n;

	switch (lt_cache_name(c, handle(dir), name, now, &fh)) {
	case LT_CACHE_UNKNOWN:
		return -1;
	case LT_CACHE_MISSING:
		return 0;
	case LT_CACHE_THERE:
		break;
	}
	assert_int_equal(fh.len, sizeof(n));
	memcpy(&n, fh.data, sizeof(n));
	return n;
}

static int setup(void **state)
{
	(void)state;
	now = 1000 * NS_PER_S;
	return lt_cache_create(0, &c);
}

static int teardown(void **state)
{
	(void)state;
	lt_cache_destroy(c);
	return 0;
}

static void pass(unsigned seconds)
{
	now += seconds * NS_PER_S;
}

/* As long as it has not changed, within bounds. */
static void lifetimes(void **state)
{
	static const struct {
		ftype3 type;
		unsigned unchanged, life;
	} rows[] = {
		{ NF3REG, 0, 3 }, { NF3REG, 2, 3 }, { NF3REG, 20, 20 }, { NF3REG, 60, 60 },
		{ NF3REG, 4000, 60 }, { NF3LNK, 7, 7 },
		{ NF3DIR, 0, 30 }, { NF3DIR, 20, 30 }, { NF3DIR, 45, 45 }, { NF3DIR, 900, 60 },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		told(FILE1 + i, rows[i].type, 5, 7);
		pass(rows[i].unchanged);
		told(FILE1 + i, rows[i].type, 5, 7);
		now += rows[i].life * NS_PER_S - 1;
		assert_int_equal(size_of(FILE1 + i), 5);
		now++;
		assert_int_equal(size_of(FILE1 + i), -1);
	}
	/* after a change the lifetime is the shortest again */
	told(FILE1 + 4, NF3REG, 5, 8);
	pass(3);
	assert_int_equal(size_of(FILE1 + 4), -1);
}

static void shorter_lives(void **state)
{
	(void)state;
	lt_cache_destroy(c);
	assert_int_equal(lt_cache_create(2, &c), 0);
	told(FILE1, NF3REG, 5, 7);
	told(DIR1, NF3DIR, 5, 7);
	pass(1);
	assert_int_equal(size_of(FILE1), 5);
	assert_int_equal(size_of(DIR1), 5);
	pass(1);
	assert_int_equal(size_of(FILE1), -1);
	assert_int_equal(size_of(DIR1), -1);
}

/* From when the call was sent, not from when its reply came. */
static void age_of_a_slow_reply(void **state)
{
	const struct lt_cache_call call = sent(false);
	const fattr3 a = attr(NF3REG, 5, 7);

	(void)state;
	pass(2);
	assert_true(take(FILE1, &a, &call));
	assert_int_equal(size_of(FILE1), 5);
	pass(1);
	assert_int_equal(size_of(FILE1), -1);
}

static void overlapping_replies(void **state)
{
	struct lt_cache_call one, two;
	fattr3 a;

	(void)state;
	/* two writes whose replies change places: the size does not go back */
	one = sent(true);
	two = sent(true);
	a = attr(NF3REG, 200, 9);
	assert_true(take(FILE1, &a, &two));
	a = attr(NF3REG, 100, 8);
	assert_false(take(FILE1, &a, &one));
	assert_int_equal(size_of(FILE1), 200);
	/* nor does it when a look from before the writes is late */
	one = sent(false);
	told(FILE1, NF3REG, 300, 10);
	a = attr(NF3REG, 200, 9);
	assert_false(take(FILE1, &a, &one));
	assert_int_equal(size_of(FILE1), 300);
	/* within one tick of the server's clock the order is unknown */
	one = sent(true);
	two = sent(true);
	a = attr(NF3REG, 500, 11);
	assert_true(take(FILE1, &a, &two));
	a = attr(NF3REG, 400, 11);
	assert_false(take(FILE1, &a, &one));
	assert_int_equal(size_of(FILE1), -1);
	told(FILE1, NF3REG, 500, 11);
	assert_int_equal(size_of(FILE1), 500);
	/* a request sent after the last reply has newer attributes, whatever their times are: the server's
	 * clock may have been set */
	told(FILE1, NF3REG, 50, 2);
	assert_int_equal(size_of(FILE1), 50);
}

/* Asked before a change of ours was answered: it may be from before it. */
static void looks_around_our_changes(void **state)
{
	struct lt_cache_call look, change;
	fattr3 a = attr(NF3REG, 5, 7);

	(void)state;
	told(FILE1, NF3REG, 5, 7);
	change = sent(true);
	look = sent(false);
	assert_false(take(FILE1, NULL, &change)); /* the server does not tell what came of it */
	assert_int_equal(size_of(FILE1), -1);
	assert_false(take(FILE1, &a, &look));
	assert_int_equal(size_of(FILE1), -1);
	told(FILE1, NF3REG, 6, 7);
	assert_int_equal(size_of(FILE1), 6);
	/* the same of a file that was not known */
	change = sent(true);
	look = sent(false);
	assert_false(take(FILE2, NULL, &change));
	assert_false(take(FILE2, &a, &look));
	assert_int_equal(size_of(FILE2), -1);
	/* of two changes of which neither tells, the second one counts too */
	change = sent(true);
	lt_cache_doubt(c, handle(FILE1));
	look = sent(false);
	assert_false(take(FILE1, &a, &change));
	assert_false(take(FILE1, &a, &look));
	assert_int_equal(size_of(FILE1), -1);
}

static void names_live_with_their_directory(void **state)
{
	struct lt_cache_call call;

	(void)state;
	assert_int_equal(found(DIR1, "a"), -1);
	told(DIR1, NF3DIR, 1, 7);
	call = sent(false);
	looked_up(DIR1, "a", FILE1, &call);
	looked_up(DIR1, "b", 0, &call);
	assert_int_equal(found(DIR1, "a"), FILE1);
	assert_int_equal(found(DIR1, "b"), 0);
	assert_int_equal(found(DIR1, "c"), -1);
	assert_int_equal(found(DIR2, "a"), -1);
	/* the directory is asked for again, and has not changed */
	pass(31);
	assert_int_equal(found(DIR1, "a"), -1);
	told(DIR1, NF3DIR, 1, 7);
	assert_int_equal(found(DIR1, "a"), FILE1);
	/* it has */
	told(DIR1, NF3DIR, 1, 8);
	assert_int_equal(found(DIR1, "a"), -1);
	assert_int_equal(found(DIR1, "b"), -1);
	/* and where it never seems to, names are not believed for ever */
	call = sent(false);
	looked_up(DIR1, "a", FILE1, &call);
	pass(40);
	told(DIR1, NF3DIR, 1, 8);
	assert_int_equal(found(DIR1, "a"), FILE1);
	pass(20);
	assert_int_equal(size_of(DIR1), 1);
	assert_int_equal(found(DIR1, "a"), -1);
}

static void names_and_our_changes(void **state)
{
	wcc_attr before = { .size = 1, .mtime = { 7, 0 }, .ctime = { 7, 0 } };
	struct lt_cache_call call, look, other;
	fattr3 a = attr(NF3DIR, 1, 8);

	(void)state;
	told(DIR1, NF3DIR, 1, 7);
	call = sent(false);
	looked_up(DIR1, "a", FILE1, &call);
	/* the wcc data shows no change by another client: the other names stay */
	look = sent(false);
	call = sent(true);
	assert_true(lt_cache_take_attr(c, handle(DIR1), &a, &before, &call));
	looked_up(DIR1, "n", FILE2, &call);
	assert_int_equal(found(DIR1, "a"), FILE1);
	assert_int_equal(found(DIR1, "n"), FILE2);
	/* a look from before does not find it, and does not count */
	looked_up(DIR1, "n", 0, &look);
	assert_int_equal(found(DIR1, "n"), FILE2);
	/* another client changed the directory: all names go, except ours */
	a = attr(NF3DIR, 1, 9);
	before.ctime.nseconds = 1;
	call = sent(true);
	assert_true(lt_cache_take_attr(c, handle(DIR1), &a, &before, &call));
	looked_up(DIR1, "n", 0, &call);
	assert_int_equal(found(DIR1, "a"), -1);
	assert_int_equal(found(DIR1, "n"), 0);
	/* two of ours at once, on one name: which was last? */
	call = sent(true);
	other = sent(true);
	a = attr(NF3DIR, 1, 10);
	assert_true(take(DIR1, &a, &call));
	looked_up(DIR1, "n", FILE2, &call);
	assert_true(take(DIR1, &a, &other));
	looked_up(DIR1, "n", 0, &other);
	assert_int_equal(found(DIR1, "n"), -1);
	/* both names of a rename belong to one call */
	call = sent(true);
	a = attr(NF3DIR, 1, 11);
	assert_true(take(DIR1, &a, &call));
	looked_up(DIR1, "n", 0, &call);
	looked_up(DIR1, "m", FILE2, &call);
	assert_int_equal(found(DIR1, "n"), 0);
	assert_int_equal(found(DIR1, "m"), FILE2);
}

static void doubts_by_name(void **state)
{
	struct lt_cache_call call;

	(void)state;
	told(DIR1, NF3DIR, 1, 7);
	told(FILE1, NF3REG, 5, 7);
	told(FILE2, NF3REG, 6, 7);
	call = sent(false);
	looked_up(DIR1, "a", FILE1, &call);
	lt_cache_doubt_name(c, handle(DIR1), "a", now);
	assert_int_equal(size_of(FILE1), -1);
	assert_int_equal(size_of(FILE2), 6);
	told(FILE1, NF3REG, 5, 7);
	/* it may be another name of any file, but a directory has but one */
	call = sent(false);
	lt_cache_doubt_name(c, handle(DIR1), "b", now);
	assert_int_equal(size_of(FILE1), -1);
	assert_int_equal(size_of(FILE2), -1);
	assert_int_equal(size_of(DIR1), 1);
	fattr3 a = attr(NF3REG, 5, 7);
	assert_false(take(FILE1, &a, &call));
	assert_false(take(FILE1 + 7, &a, &call));
	told(FILE1, NF3REG, 5, 7);
	assert_int_equal(size_of(FILE1), 5);
}

static void data(void **state)
{
	const struct lt_cache_call call = sent(true);
	fattr3 a = attr(NF3REG, 5, 7);
	uint64_t was;

	(void)state;
	/* never told of: believed as what is new */
	assert_int_equal(lt_cache_data(c, handle(FILE1)), 0);
	assert_true(lt_cache_data_holds(c, handle(FILE1), 0, now - 2 * NS_PER_S, now));
	assert_false(lt_cache_data_holds(c, handle(FILE1), 0, now - 3 * NS_PER_S, now));
	told(FILE1, NF3REG, 5, 7);
	was = lt_cache_data(c, handle(FILE1));
	assert_false(lt_cache_data_holds(c, handle(FILE1), 0, now, now));
	assert_true(lt_cache_data_holds(c, handle(FILE1), was, now - 100 * NS_PER_S, now));
	pass(3);
	assert_false(lt_cache_data_holds(c, handle(FILE1), was, now - 100 * NS_PER_S, now));
	told(FILE1, NF3REG, 5, 7);
	assert_true(lt_cache_data_holds(c, handle(FILE1), was, now - 100 * NS_PER_S, now));
	/* changed by others; and by us, in a way that does not show */
	told(FILE1, NF3REG, 5, 8);
	assert_false(lt_cache_data_holds(c, handle(FILE1), was, now, now));
	was = lt_cache_data(c, handle(FILE1));
	a = attr(NF3REG, 5, 8);
	assert_true(take(FILE1, &a, &call));
	assert_false(lt_cache_data_holds(c, handle(FILE1), was, now, now));
}

static void bounds(void **state)
{
	struct lt_cache_call early = sent(false), call;
	fattr3 a = attr(NF3REG, 5, 7);
	char name[16];

	(void)state;
	told(DIR1, NF3DIR, 1, 7);
	for (unsigned i = 0; i < 2 * LT_CACHE_ENTRIES; i++) {
		told(1000 + i, NF3REG, i, 7);
		assert_int_equal(size_of(DIR1), 1); /* in use, so it stays */
		call = sent(false);
		snprintf(name, sizeof(name), "%u", i);
		looked_up(DIR1, name, 1000 + i, &call);
		assert_int_equal(found(DIR1, "0"), 1000);
	}
	assert_int_equal(size_of(1000), -1);
	assert_int_equal(size_of(1000 + LT_CACHE_ENTRIES), -1);
	assert_int_equal(size_of(1000 + LT_CACHE_ENTRIES + 1), LT_CACHE_ENTRIES + 1);
	assert_int_equal(found(DIR1, "1"), -1);
	snprintf(name, sizeof(name), "%u", LT_CACHE_ENTRIES);
	assert_int_equal(found(DIR1, name), -1);
	snprintf(name, sizeof(name), "%u", LT_CACHE_ENTRIES + 1);
	assert_int_equal(found(DIR1, name), 1000 + LT_CACHE_ENTRIES + 1);
	/* what was thrown away may have been newer than this */
	assert_false(take(1000, &a, &early));
	assert_int_equal(size_of(1000), -1);
}

/* ---- names that others have made ---- */

#define PAIRS 12u /* of words of 8 bytes */
#define NAME_BYTES (16 * PAIRS)

/* The name whose number is the low bits of @i: in a hash without a key, what the first word of a pair changes is undone by
 * the second one. */
static void made_name(unsigned i, char *name)
{
	memset(name, 'a', NAME_BYTES);
	name[NAME_BYTES] = '\0';
	for (unsigned pair = 0; pair < PAIRS; pair++, name += 16, i >>= 1) {
		if (!(i & 1))
			continue;
		name[7] = (char)(name[7] ^ 0x80);
		name[12] ^= 0x04;
		name[15] = (char)(name[15] ^ 0x80);
	}
}

static void plain_name(unsigned i, char *name)
{
	snprintf(name, NAME_BYTES + 1, "%0*u", (int)NAME_BYTES, i);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Return: the processor time of storing and finding as many names in @dir */
static uint64_t store_names(unsigned dir, void (*make_name)(unsigned i, char *name))
{
	struct lt_cache_call call;
	char name[NAME_BYTES + 1];
	uint64_t start = cpu_ns();

	told(dir, NF3DIR, 1, 7);
	for (unsigned i = 0; i < 1u << PAIRS; i++) {
		make_name(i, name);
		call = sent(false);
		looked_up(dir, name, FILE1 + i, &call);
		assert_int_equal(found(dir, name), FILE1 + i);
	}
	return cpu_ns() - start;
}

/* Another user who creates files in a directory cannot make the cache slow by their names. */
static void names_of_others(void **state)
{
	uint64_t plain, made;

	(void)state;
	plain = store_names(DIR1, plain_name);
	made = store_names(DIR2, made_name);
	assert_in_range(made, 0, 8 * plain);
}

static void none(void **state)
{
	struct lt_cache *kept = c;

	(void)state;
	c = NULL;
	const struct lt_cache_call call = sent(false);
	fattr3 a = attr(NF3REG, 5, 7);
	assert_false(take(FILE1, &a, &call));
	looked_up(DIR1, "a", FILE1, &call);
	lt_cache_doubt(c, handle(FILE1));
	lt_cache_doubt_name(c, handle(DIR1), "a", now);
	assert_int_equal(size_of(FILE1), -1);
	assert_int_equal(found(DIR1, "a"), -1);
	c = kept;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(lifetimes),
		TEST(shorter_lives),
		TEST(age_of_a_slow_reply),
		TEST(overlapping_replies),
		TEST(looks_around_our_changes),
		TEST(names_live_with_their_directory),
		TEST(names_and_our_changes),
		TEST(doubts_by_name),
		TEST(data),
		TEST(bounds),
		TEST(names_of_others),
		TEST(none),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
