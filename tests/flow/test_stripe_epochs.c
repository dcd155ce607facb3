/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_stripe_epochs.c - epochs and tombstones of the objects of a stripe server
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "inside.h"
#include "stripe_object.h"
#include "stripe_vol.h"

/* ---- epochs ---- */

static void fences(void **state)
{
	struct stripe_client c;
	stripe_stat st;
	uint32_t n;
	bool eof;

	(void)state;
	object_start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 10000, true), STRIPE_OK);
	assert_int_equal(stripe_fence(&c, &object, 2, &(uint64_t){ 5000 }, &st), STRIPE_OK);
	assert_int_equal(st.epoch, 2);
	assert_int_equal(st.bytes, 5000);
	assert_true(st.exists && !st.removed && st.mtime && st.used);
	/* the old epoch */
	assert_int_equal(stripe_read(&c, 0, mem, 10, &n, &eof), STRIPE_ERR_FENCED);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_FENCED);
	assert_int_equal(stripe_commit(&c), STRIPE_ERR_FENCED);
	assert_int_equal(server_counters(stripe_rig.srv, "stripe_fenced"), 3);
	/* one that is not there yet */
	c.handle.epoch = 3;
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_NOTREADY);
	assert_int_equal(stripe_read(&c, 0, mem, 10, &n, &eof), STRIPE_ERR_NOTREADY);
	/* this one; what was cut does not return */
	c.handle.epoch = 2;
	object_see(&c, 0, data, 5000, 10000);
	assert_int_equal(stripe_write(&c, 9000, data, 1, false), STRIPE_OK);
	object_see(&c, 0, data, 5000, 5000);
	object_see(&c, 5000, (const uint8_t[4000]){ 0 }, 4000, 4000);
	/* the same again cuts nothing; an older one is refused */
	assert_int_equal(stripe_fence(&c, &object, 2, &(uint64_t){ 5000 }, &st), STRIPE_OK);
	assert_int_equal(st.bytes, 9001);
	assert_int_equal(stripe_fence(&c, &object, 5, NULL, &st), STRIPE_OK);
	assert_int_equal(st.bytes, 9001);
	assert_int_equal(stripe_fence(&c, &object, 4, NULL, &st), STRIPE_ERR_FENCED);
	/* and all of it is durable */
	object_restart(&c);
	assert_int_equal(object_stat(&c).epoch, 5);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_FENCED);
	c.handle.epoch = 5;
	object_see(&c, 0, data, 5000, 5000);
	object_stop(&c);
}

static void fences_nothing(void **state)
{
	struct stripe_client c;
	stripe_stat st;

	(void)state;
	object_start(&c);
	st = object_stat(&c);
	assert_false(st.exists);
	assert_int_equal(st.epoch, 1);
	assert_int_equal(stripe_fence(&c, &object, 2, &(uint64_t){ 0 }, &st), STRIPE_OK);
	assert_true(st.exists);
	object_restart(&c);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_FENCED);
	assert_int_equal(object_stat(&c).bytes, 0);
	object_stop(&c);
}

/* FENCE waits for what has begun, and nothing of the old epoch begins meanwhile */
static void fence_waits(void **state)
{
	struct stripe_client c, other, manager;
	struct stripe_rig_call late, fence = { .err = 0 };

	(void)state;
	object_start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	stripe_connect(&other, 2, 0, &object);
	stripe_connect(&manager, 3, 0, &object);
	object_hold_write(&c, &late, data + 1);
	object_count_from("stripe_fence_waits");
	fence.args.fence = (STRIPEFENCEargs){ .name = object, .epoch = 2, .cut = true, .bytes = 50 };
	stripe_begin(&manager, &fence, STRIPEPROC_FENCE, NULL, 0);
	object_wait_counted(&fence);
	assert_false(fence.done);
	assert_int_equal(stripe_write(&other, 0, data, 10, false), STRIPE_ERR_FENCED);
	other.handle.epoch = 2; /* the cut is yet to come */
	assert_int_equal(stripe_write(&other, 0, data, 10, false), STRIPE_ERR_NOTREADY);
	held_writes_end(1);
	assert_int_equal(stripe_end(&late), STRIPE_OK);
	assert_int_equal(stripe_end(&fence), STRIPE_OK);
	assert_int_equal(fence.res.stat.STRIPESTATres_u.stat.bytes, 50);
	object_see(&other, 0, data + 1, 50, 100);
	stripe_close(&other);
	stripe_close(&manager);
	object_stop(&c);
}

static void fence_times_out(void **state)
{
	struct stripe_client c, manager;
	struct stripe_rig_call late;
	stripe_stat st;

	(void)state;
	stripe_times.drain_ns = NS_PER_S / 20;
	object_start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	stripe_connect(&manager, 3, 0, &object);
	object_hold_write(&c, &late, data + 1);
	assert_int_equal(stripe_fence(&manager, &object, 2, &(uint64_t){ 50 }, &st), STRIPE_ERR_TIMEDOUT);
	/* the record is there, and the same again waits again */
	assert_int_equal(object_stat(&manager).epoch, 2);
	assert_int_equal(object_stat(&manager).bytes, 50);
	assert_int_equal(stripe_fence(&manager, &object, 2, &(uint64_t){ 50 }, &st), STRIPE_ERR_TIMEDOUT);
	held_writes_end(1);
	assert_int_equal(stripe_end(&late), STRIPE_OK);
	assert_int_equal(stripe_fence(&manager, &object, 2, &(uint64_t){ 50 }, &st), STRIPE_OK);
	assert_int_equal(st.bytes, 50);
	manager.handle.epoch = 2;
	object_see(&manager, 0, data + 1, 50, 100);
	stripe_close(&manager);
	object_stop(&c);
	stripe_times.drain_ns = 30 * NS_PER_S;
}

/* The next operation of the new epoch does the cut that a FENCE which timed out has left. */
static void cut_is_done_first(void **state)
{
	struct stripe_client c, manager;
	struct stripe_rig_call late;
	stripe_stat st;

	(void)state;
	stripe_times.drain_ns = NS_PER_S / 20;
	object_start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	stripe_connect(&manager, 3, 0, &object);
	object_hold_write(&c, &late, data);
	assert_int_equal(stripe_fence(&manager, &object, 2, &(uint64_t){ 50 }, &st), STRIPE_ERR_TIMEDOUT);
	/* a later one cuts less: the earlier one counts */
	assert_int_equal(stripe_fence(&manager, &object, 3, &(uint64_t){ 2000 }, &st), STRIPE_ERR_TIMEDOUT);
	held_writes_end(1);
	assert_int_equal(stripe_end(&late), STRIPE_OK);
	manager.handle.epoch = 3;
	assert_int_equal(stripe_write(&manager, 99, data, 1, false), STRIPE_OK);
	object_see(&manager, 0, data, 50, 50);
	object_see(&manager, 50, (const uint8_t[49]){ 0 }, 49, 49);
	assert_int_equal(object_stat(&manager).bytes, 100);
	stripe_close(&manager);
	object_stop(&c);
	stripe_times.drain_ns = 30 * NS_PER_S;
}

/* ---- tombstones ---- */

/* It goes without any call, when its directory's turn has come. */
static bool has_gone(void *path)
{
	return access(path, F_OK) != 0;
}

static void tombstones_are_swept(void **state)
{
	struct stripe_client c;
	char path[200];

	(void)state;
	stripe_times.sweep_ns = NS_PER_S / 10000;
	object_start(&c);
	(void)snprintf(path, sizeof(path), "%s", stripe_rig_path(&object));
	assert_int_equal(stripe_remove(&c, &object, (uint64_t)time(NULL) - 100, NULL), STRIPE_OK);
	stripe_run_until(has_gone, path);
	assert_false(object_stat(&c).exists);
	object_stop(&c);
	stripe_times.sweep_ns = 20 * NS_PER_S;
}

static void removes(void **state)
{
	struct stripe_client c;
	stripe_stat st;
	uint32_t n;
	bool eof;

	(void)state;
	object_start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 10000, false), STRIPE_OK);
	assert_int_equal(stripe_remove(&c, &object, object_soon(), &st), STRIPE_OK);
	assert_true(st.exists && st.removed);
	assert_int_equal(st.bytes, 0);
	assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_ERR_FENCED);
	assert_int_equal(stripe_read(&c, 0, mem, 10, &n, &eof), STRIPE_ERR_FENCED);
	assert_int_equal(stripe_fence(&c, &object, 9, NULL, &st), STRIPE_ERR_FENCED);
	object_restart(&c);
	assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_ERR_FENCED);
	assert_int_equal(stripe_remove(&c, &object, 1, &st), STRIPE_OK); /* again: the later time counts */
	assert_true(object_stat(&c).removed);
	/* one that was never written */
	object = stripe_rig_name(0xa7, 2);
	c.handle.name = object;
	assert_int_equal(stripe_remove(&c, &object, object_soon(), &st), STRIPE_OK);
	assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_ERR_FENCED);
	object_stop(&c);
}

static void remove_waits(void **state)
{
	struct stripe_client c, manager;
	struct stripe_rig_call late, rm = { .err = 0 };
	struct stat st;

	(void)state;
	object_start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	stripe_connect(&manager, 3, 0, &object);
	object_hold_write(&c, &late, data + 1);
	object_count_from("stripe_fence_waits");
	rm.args.remove = (STRIPEREMOVEargs){ .name = object, .until = object_soon() };
	stripe_begin(&manager, &rm, STRIPEPROC_REMOVE, NULL, 0);
	object_wait_counted(&rm);
	assert_false(rm.done);
	held_writes_end(1);
	assert_int_equal(stripe_end(&late), STRIPE_OK);
	assert_int_equal(stripe_end(&rm), STRIPE_OK);
	assert_int_equal(stat(stripe_rig_path(&object), &st), 0);
	assert_int_equal(st.st_size, 0);
	stripe_close(&manager);
	object_stop(&c);
}

static const char *aside_path(void)
{
	static char path[300];

	(void)snprintf(path, sizeof(path), "%s/lost+found/%s", tmp_dir_path(&stripe_rig.dir, "s"),
		       strrchr(stripe_rig_path(&object), '/') + 1);
	return path;
}

/* What it holds stays, and so does its record; a tombstone is in its place. */
static void sets_aside(void **state)
{
	struct stripe_client c, manager;
	struct stripe_rig_call late;
	stripe_stat st, old;
	struct stat file;

	(void)state;
	object_start(&c);
	assert_int_equal(stripe_set_aside(&c, &object, object_soon(), 0, &st), STRIPE_OK);
	assert_false(st.exists);
	assert_int_equal(stripe_fence(&c, &object, 3, NULL, &st), STRIPE_OK);
	c.handle.epoch = 3;
	assert_int_equal(stripe_write(&c, 0, data, 10000, false), STRIPE_OK);
	old = object_stat(&c);
	assert_int_equal(stripe_set_aside(&c, &object, object_soon(), old.mtime - 1, &st), STRIPE_ERR_FENCED);
	assert_int_equal(stripe_write(&c, 0, data, 10000, false), STRIPE_OK);
	old = object_stat(&c);
	stripe_connect(&manager, 3, 0, &object);
	object_hold_write(&c, &late, data);
	assert_int_equal(stripe_set_aside(&manager, &object, object_soon(), old.mtime, &st), STRIPE_ERR_TIMEDOUT);
	held_writes_end(1);
	assert_int_equal(stripe_end(&late), STRIPE_OK);
	old = object_stat(&c);
	assert_int_equal(stripe_set_aside(&manager, &object, object_soon(), old.mtime, &st), STRIPE_OK);
	stripe_close(&manager);
	assert_true(st.exists && st.removed && !st.bytes && st.epoch == 3);
	assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_ERR_FENCED);
	assert_int_equal(stat(aside_path(), &file), 0);
	assert_int_equal(file.st_size, 10000);
	assert_int_equal(file.st_nlink, 1);
	assert_int_equal(stripe_set_aside(&c, &object, object_soon(), old.mtime, &st), STRIPE_OK); /* again */
	object_restart(&c);
	assert_true(object_stat(&c).removed);
	/* back again, by hand */
	stripe_close(&c);
	stripe_rig_end_server();
	assert_int_equal(rename(aside_path(), stripe_rig_path(&object)), 0);
	assert_int_equal(stripe_rig_start(STRIPE_CACHED), 0);
	stripe_connect(&c, 9, 0, &object);
	st = object_stat(&c);
	assert_true(!st.removed && st.epoch == 3 && st.bytes == 10000);
	object_stop(&c);
}

/* A tombstone whose time is up has no handles any more: its file goes at the next LIST, or when it is opened. */
static void tombstones_go(void **state)
{
	struct stripe_client c;
	stripe_entry list[STRIPE_LIST_MAX];
	stripe_name second = stripe_rig_name(0xa7, 2);
	stripe_stat st;
	struct stat file;
	unsigned n = 9;
	bool eof = false;

	(void)state;
	object_start(&c);
	assert_int_equal(stripe_remove(&c, &object, (uint64_t)time(NULL) - 100, &st), STRIPE_OK);
	assert_int_equal(stripe_remove(&c, &second, (uint64_t)time(NULL) - 100, &st), STRIPE_OK);
	assert_int_equal(stat(stripe_rig_path(&object), &file), 0);
	object_restart(&c);
	assert_false(object_stat(&c).exists);
	assert_int_equal(stat(stripe_rig_path(&object), &file), -1);
	assert_int_equal(stat(stripe_rig_path(&second), &file), 0);
	assert_int_equal(stripe_list(&c, NULL, list, &n, &eof), STRIPE_OK);
	assert_int_equal(n, 0);
	assert_true(eof);
	assert_int_equal(stat(stripe_rig_path(&second), &file), -1);
	object_stop(&c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(fences),
		cmocka_unit_test(fences_nothing),
		cmocka_unit_test(fence_waits),
		cmocka_unit_test(fence_times_out),
		cmocka_unit_test(cut_is_done_first),
		cmocka_unit_test(tombstones_are_swept),
		cmocka_unit_test(removes),
		cmocka_unit_test(remove_waits),
		cmocka_unit_test(sets_aside),
		cmocka_unit_test(tombstones_go),
	};

	return cmocka_run_group_tests(tests, object_group, NULL);
}
