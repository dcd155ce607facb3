/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tool_signals.c - which mounts a signal interrupts, and when
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

#include <cmocka.h>

struct leat {
	unsigned interrupted;
};

static int fake_setitimer(int which, const struct itimerval *to, struct itimerval *was)
{
	(void)which;
	(void)to;
	(void)was;
	return 0; /* the test is the timer */
}

static void fake_interrupt(struct leat *m)
{
	m->interrupted++;
}

#define setitimer(which, to, was) fake_setitimer(which, to, was)
#define leat_interrupt fake_interrupt
#include "client/tools/signals.c"

LOG_DEFINE("test_tool_signals");

static void mounts_are_interrupted(void **state)
{
	struct leat calls = { 0 }, creates = { 0 }, gone = { 0 }, late = { 0 };

	(void)state;
	signals_init();
	assert_true(signals_hold());
	signals_mount_add(&calls);
	signals_mount_add(&creates);
	signals_mount_add(&gone);
	signals_mount_del(&gone);
	signals_mount_del(NULL);
	signals_mount_defer(&creates, true);
	signals_mount_defer(NULL, true);
	assert_int_equal(raise(SIGINT), 0);
	assert_true(tool_interrupted());
	assert_int_equal(calls.interrupted, 1);
	assert_int_equal(creates.interrupted, 0);
	/* a mount that comes after the signal */
	signals_mount_add(&late);
	assert_int_equal(late.interrupted, 1);
	/* the cleanup has its time */
	for (unsigned ms = 0; ms < SIGNALS_CLEANUP_MS; ms += ALARM_MS)
		on_alarm(SIGALRM);
	assert_int_equal(calls.interrupted, 1);
	assert_int_equal(creates.interrupted, 0);
	/* then all calls end soon */
	on_alarm(SIGALRM);
	on_alarm(SIGALRM);
	assert_int_equal(calls.interrupted, 3);
	assert_int_equal(creates.interrupted, 2);
	assert_int_equal(gone.interrupted, 0);
	/* it was deferred; the next mount in its place is not */
	signals_mount_del(&creates);
	assert_int_equal(find_mount(&creates), -1);
	for (unsigned i = 0; i < MOUNTS_MAX; i++)
		assert_false(mounts[i].deferred);
}

static int add(enum signals_kind kind)
{
	const struct signals_file f = { .kind = kind, .dir = -1, .path = "f", .place = "f" };

	return signals_file_add(&f);
}

/* Another thread removes the file: its entry goes to no other file before that has ended. */
static void taken_file_stays(void **state)
{
	int slot;

	(void)state;
	slot = add(SIGNALS_STAYS);
	assert_int_equal(slot, 0);
	assert_true(take_file(0));
	signals_file_del(slot);
	assert_int_equal(files[0].state, FILE_TAKEN);
	assert_int_equal(add(SIGNALS_STAYS), 1);
	atomic_store(&files[0].state, FILE_DONE);
	signals_file_del(0);
	assert_int_equal(files[0].state, FILE_DONE);
	signals_file_del(1);
	assert_int_equal(files[1].state, FILE_FREE);
	/* in each state before */
	slot = add(SIGNALS_IN_PLACE);
	assert_int_equal(files[slot].state, FILE_FILLING);
	signals_file_del(slot);
	assert_int_equal(files[slot].state, FILE_FREE);
	slot = add(SIGNALS_REMOVE);
	assert_int_equal(files[slot].state, FILE_MAKING);
	signals_file_del(slot);
	assert_int_equal(files[slot].state, FILE_FREE);
	signals_file_del(-1);
	atomic_store(&files[0].state, FILE_FREE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken_file_stays),
		cmocka_unit_test(mounts_are_interrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
