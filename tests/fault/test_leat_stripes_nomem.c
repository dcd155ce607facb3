/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_stripes_nomem.c - the Nth allocation of a client of a striped volume fails, for N from 1 until none is left to fail
 *
 * Only allocations of this thread, the client's, are counted: the servers have threads of their own. Each function returns
 * success or -ENOMEM, and works afterwards. The sanitizers find leaks.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "nomem.h"
#include "volume_rig.h"

LOG_DEFINE("test_leat_stripes_nomem");

#define UNIT 65536u
#define BYTES (6 * UNIT)

static uint8_t data[BYTES], to[BYTES];
static struct leat *m;

static int whole(ssize_t n)
{
	return n < 0 ? (int)n : n == BYTES ? 0 : -ENOMEM; /* the first part may have been written */
}

/* The first use of a file: its layout, the servers, the calls */
static int do_read(void)
{
	struct leat_file *f;
	int rc = leat_open(m, "file", O_RDONLY, 0, &f), rc2;

	if (rc)
		return rc;
	memset(to, 0, sizeof(to));
	rc = whole(leat_pread(f, to, BYTES, 0));
	if (!rc)
		assert_memory_equal(to, data, BYTES);
	rc2 = leat_close(f);
	return rc ? rc : rc2;
}

/* Writes, commits and reports */
static int do_write(void)
{
	struct leat_file *f;
	int rc = leat_open(m, "file", O_RDWR, 0, &f), rc2;

	if (rc)
		return rc;
	rc = whole(leat_pwrite(f, data, BYTES, 0));
	if (!rc)
		rc = leat_fsync(f);
	if (rc) {
		nomem_countdown = 0;
		/* what could not be noted counts as lost, until the file is closed */
		rc2 = leat_close(f);
		assert_true(!rc2 || rc2 == -EIO);
		return rc == -EIO ? -ENOMEM : rc;
	}
	return leat_close(f);
}

static int do_sync_write(void)
{
	struct leat_file *f;
	int rc = leat_open(m, "file", O_RDWR | O_DSYNC, 0, &f), rc2;

	if (rc)
		return rc;
	rc = whole(leat_pwrite(f, data, BYTES, 0));
	rc2 = leat_close(f);
	return rc ? rc : rc2;
}

/* Reserves a range, and writes there */
static int do_append(void)
{
	struct leat_file *f;
	int rc = leat_open(m, "log", O_WRONLY | O_CREAT | O_APPEND, 0644, &f), rc2;

	if (rc)
		return rc;
	rc = whole(leat_write(f, data, BYTES));
	nomem_countdown = rc ? 0 : nomem_countdown;
	rc2 = leat_close(f);
	return rc ? rc : rc2;
}

static int do_mount(void)
{
	struct leat *other;
	int rc = leat_mount(volume_rig.url, NULL, &other);

	if (!rc)
		leat_umount(other);
	return rc;
}

static int (*const functions[])(void) = { do_read, do_write, do_sync_write, do_append, do_mount };

/* Calls the function on a mount that has not used the volume, with the Nth allocation failing. Return: false: none failed */
static bool try_with(int (*fn)(void), unsigned long nth)
{
	int rc;

	m = volume_rig_mount(NULL);
	nomem_failed = false;
	nomem_countdown = nth;
	rc = fn();
	nomem_countdown = 0;
	if (rc && (rc != -ENOMEM || !nomem_failed))
		fail_msg("allocation %lu: %s: %s", nth, strerror(-rc), leat_error(m));
	rc = fn();
	if (rc)
		fail_msg("after allocation %lu: %s: %s", nth, strerror(-rc), leat_error(m));
	leat_umount(m);
	return nomem_failed;
}

static void each_allocation(bool tcp)
{
	struct leat_file *f;

	volume_rig_start(tcp, "stripe=64K");
	m = volume_rig_mount(NULL);
	assert_int_equal(leat_creat(m, "file", 0644, &f), 0);
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (uint8_t)(i / 7);
	assert_int_equal(leat_pwrite(f, data, BYTES, 0), BYTES);
	assert_int_equal(leat_close(f), 0);
	leat_umount(m);
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		unsigned long nth = 1;

		while (try_with(functions[i], nth))
			nth++;
		assert_true(nth > 1);
	}
	volume_rig_stop();
}

static void over_local(void **state)
{
	(void)state;
	each_allocation(false);
}

static void over_tcp(void **state)
{
	(void)state;
	each_allocation(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(over_local), cmocka_unit_test(over_tcp) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
