/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_verfs.c - which changes of a volume are lost, by the verifiers of the replies
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "verfs.h"

static void change(struct lt_verfs *v, uint64_t verf, unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		lt_verfs_changed(v, verf);
}

static void nothing_lost(void **state)
{
	struct lt_verfs v = { 0 };

	(void)state;
	assert_int_equal(lt_verfs_synced(&v, 7, v.count, true), 0); /* nothing to lose */
	change(&v, 1, 3);
	assert_int_equal(lt_verfs_synced(&v, 1, v.count, false), 0); /* FUA covers itself only */
	assert_int_equal(v.n, 1);
	assert_int_equal(lt_verfs_synced(&v, 1, v.count, true), 0);
	assert_int_equal(v.n, 0);
	assert_int_equal(lt_verfs_synced(&v, 2, v.count, true), 0); /* a restart after the flush */
	change(&v, 2, 1);
	assert_int_equal(lt_verfs_synced(&v, 2, v.count, true), 0);
}

static void lost_for_ever(void **state)
{
	struct lt_verfs v = { 0 };

	(void)state;
	change(&v, 1, 1);
	assert_int_equal(lt_verfs_synced(&v, 2, v.count, true), -EIO);
	assert_int_equal(lt_verfs_synced(&v, 2, v.count, true), -EIO);
	change(&v, 2, 1);
	assert_int_equal(lt_verfs_synced(&v, 2, v.count, true), -EIO);
	assert_int_equal(lt_verfs_synced(&v, 2, v.count, false), -EIO);
}

static void fua_finds_out(void **state)
{
	struct lt_verfs v = { 0 };

	(void)state;
	change(&v, 1, 1);
	assert_int_equal(lt_verfs_synced(&v, 2, v.count, false), -EIO);
	assert_int_equal(lt_verfs_synced(&v, 1, v.count, true), -EIO);
}

/* A FLUSH says nothing of changes that were acknowledged while it was in flight. */
static void covers_what_came_before(void **state)
{
	struct lt_verfs v = { 0 };
	uint64_t upto;

	(void)state;
	change(&v, 1, 1);
	upto = v.count;
	change(&v, 1, 2);
	assert_int_equal(lt_verfs_synced(&v, 1, upto, true), 0);
	assert_int_equal(v.n, 1);
	assert_int_equal(v.of[0].first, 2);
	assert_int_equal(lt_verfs_synced(&v, 2, v.count, true), -EIO);

	/* ... but of what came before, although more of the same came later */
	v = (struct lt_verfs){ 0 };
	change(&v, 1, 1);
	upto = v.count;
	change(&v, 1, 1);
	assert_int_equal(lt_verfs_synced(&v, 2, upto, true), -EIO);
}

/* The server restarts after the sync, and a later change is acknowledged before the FLUSH is. */
static void flush_overtaken(void **state)
{
	struct lt_verfs v = { 0 };
	uint64_t upto;

	(void)state;
	change(&v, 1, 2);
	upto = v.count;
	change(&v, 2, 1);
	assert_int_equal(lt_verfs_synced(&v, 1, upto, true), 0);
	assert_int_equal(lt_verfs_synced(&v, 2, v.count, true), 0);

	/* ... but not before the sync */
	change(&v, 2, 1);
	change(&v, 3, 1);
	change(&v, 2, 1); /* replies have no order */
	assert_int_equal(lt_verfs_synced(&v, 3, v.count, true), -EIO);
}

static void many_restarts(void **state)
{
	struct lt_verfs v = { 0 };

	(void)state;
	for (unsigned i = 0; i < 3 * LT_VERFS_MAX; i++)
		change(&v, i, 1);
	assert_true(v.n <= LT_VERFS_MAX);
	assert_int_equal(lt_verfs_synced(&v, 3 * LT_VERFS_MAX - 1, v.count, true), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_lost), cmocka_unit_test(lost_for_ever), cmocka_unit_test(fua_finds_out),
		cmocka_unit_test(covers_what_came_before), cmocka_unit_test(flush_overtaken),
		cmocka_unit_test(many_restarts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
