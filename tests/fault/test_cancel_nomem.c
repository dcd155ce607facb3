/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_cancel_nomem.c - the Nth allocation of a session, its mounts, cancelled operations or the end of a mount fails,
 * for N from 1 until none is left to fail
 *
 * Only allocations of this thread, which runs the client's loop, are counted. Each operation runs its callback once, or
 * is refused; each mount and session ends. The sanitizers find leaks.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "leat_count.h"
#include "leat_flow.h"
#include "nomem.h"

LOG_DEFINE("test_cancel_nomem");

#define MANY 24u
#define BYTES ((size_t)64 << 10)

void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off);

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	if (!nomem_fails(0))
		return __real_mmap(at, n, prot, flags, fd, off);
	errno = ENOMEM;
	return MAP_FAILED;
}

static struct leat_flow flow;
static struct leat_session *session;
static struct leat *m;
static struct leat_file *f;
static uint8_t *mem;
static struct count counts[MANY];
static bool refused[MANY];

static struct leat *mount_in(struct leat_session *s, const char *url)
{
	struct leat *ret = NULL;

	if (leat_session_mount(s, url, NULL, &ret))
		fail_msg("%s", leat_error(NULL));
	return ret;
}

/* ---- what fails ---- */

static int make_session(const char *url)
{
	struct leat_session *s = NULL;
	struct leat *a = NULL, *b = NULL;
	int rc = leat_session_create(NULL, &s);

	if (!rc)
		rc = leat_session_mount(s, url, NULL, &a);
	if (!rc)
		rc = leat_session_mount(s, url, NULL, &b);
	nomem_countdown = 0;
	leat_umount(a);
	leat_umount(b);
	assert_int_equal(leat_session_free(s), 0);
	return rc;
}

static int start(unsigned i, struct stat *st)
{
	struct leat_cb cb = { count_fn, &counts[i], count_free };

	switch (i % 4) {
	case 0:
		return leat_aio_pread(f, mem + i * BYTES, BYTES, 0, cb);
	case 1:
		return leat_aio_pwrite(f, mem + i * BYTES, BYTES, 0, cb);
	case 2:
		return leat_aio_stat(m, "f", st, cb);
	default:
		return leat_aio_fsync(f, cb);
	}
}

static void start_all(void)
{
	static struct stat st;

	for (unsigned i = 0; i < MANY; i++) {
		int rc;

		counts[i] = (struct count){ 0 };
		rc = start(i, &st);
		refused[i] = rc != 0;
		if (rc && !(nomem_failed && rc == -ENOMEM))
			fail_msg("operation %u: %d", i, rc);
	}
}

static void check_all(void)
{
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(counts[i].fn, !refused[i]);
		assert_int_equal(counts[i].free, 1);
		if (counts[i].result < 0 && counts[i].result != -ECANCELED && counts[i].result != -EINPROGRESS && !nomem_failed)
			fail_msg("operation %u: %lld", i, (long long)counts[i].result);
	}
}

static int cancel_some(const char *url)
{
	(void)url;
	start_all();
	for (unsigned i = 0; i < MANY; i += 3)
		(void)leat_cancel(m, &counts[i]);
	(void)leat_poll(session, 0);
	(void)leat_cancel_all(m);
	for (unsigned i = 0; i < MANY; i++)
		while (!counts[i].free)
			assert_true(leat_poll(session, 1000) >= 0);
	nomem_countdown = 0;
	check_all();
	return 0;
}

/* Two files are open, and data is not stable. */
static int end_mount(const char *url)
{
	struct leat_file *g;
	int rc;

	if (nomem_countdown) {
		unsigned long n = nomem_countdown;

		nomem_countdown = 0;
		assert_int_equal(leat_pwrite(f, mem, BYTES, 0), BYTES);
		assert_int_equal(leat_open(m, "f", O_RDONLY, 0, &g), 0);
		nomem_countdown = n;
	}
	start_all();
	rc = leat_umount_within(m, 0);
	nomem_countdown = 0;
	assert_true(rc == 0 || rc == -ETIMEDOUT || (nomem_failed && rc == -ENOMEM));
	check_all();
	m = mount_in(session, url);
	assert_int_equal(leat_open(m, "f", O_RDWR, 0, &f), 0);
	return 0;
}

/* The same without operations in flight: its files are closed in time. */
static int end_idle(const char *url)
{
	unsigned long n = nomem_countdown;
	int rc;

	nomem_countdown = 0;
	assert_int_equal(leat_pwrite(f, mem, BYTES, 0), BYTES);
	nomem_countdown = n;
	rc = leat_umount_within(m, -1);
	nomem_countdown = 0;
	assert_true(rc == 0 || (nomem_failed && rc == -ENOMEM));
	m = mount_in(session, url);
	assert_int_equal(leat_open(m, "f", O_RDWR, 0, &f), 0);
	return 0;
}

/* ---- */

/* Return: number of failures */
static unsigned until_nothing_fails(const char *name, int (*fn)(const char *url), const char *url)
{
	unsigned long n = 0;

	do {
		int rc;

		nomem_failed = false;
		nomem_countdown = ++n;
		rc = fn(url);
		nomem_countdown = 0;
		if (rc && !nomem_failed)
			fail_msg("%s, allocation %lu: %d", name, n, rc);
		assert_in_range(n, 1, 2000);
	} while (nomem_failed);
	print_message("%s: %lu allocations\n", name, n - 1);
	return (unsigned)(n - 1);
}

static void each(const char *base)
{
	char url[512];

	snprintf(url, sizeof(url), "%s?cache=none&rsize=16k&wsize=16k", base);
	assert_true(until_nothing_fails("session", make_session, url) >= 10);
	assert_int_equal(leat_session_create(NULL, &session), 0);
	m = mount_in(session, url);
	mem = calloc(MANY, BYTES);
	assert_non_null(mem);
	assert_int_equal(leat_open(m, "f", O_RDWR | O_CREAT, 0600, &f), 0);
	assert_true(until_nothing_fails("cancel", cancel_some, url) >= 5);
	assert_true(until_nothing_fails("end", end_mount, url) >= 5);
	assert_true(until_nothing_fails("idle end", end_idle, url) >= 1);
	leat_umount(m);
	assert_int_equal(leat_session_free(session), 0);
	free(mem);
}

static void over_local(void **state)
{
	(void)state;
	each(flow.local_url);
}

static void over_tcp(void **state)
{
	(void)state;
	each(flow.tcp_url);
}

static int setup(void **state)
{
	(void)state;
	leat_flow_create(&flow);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_flow_destroy(&flow);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_local),
		cmocka_unit_test(over_tcp),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
