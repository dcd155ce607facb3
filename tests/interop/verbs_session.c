/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_session.c - sessions of two mounts over a real device, whose operations are cancelled at random
 *
 *   verbs_session URL DIR OPERATIONS PID
 *
 * Operation:  URL is an export without options, DIR is the directory behind it, PID the leatd, which is killed at the
 *             end. cancel_ops.h says what must hold.
 * Memory:     That of cancel_ops.h.
 * Threads:    Those of cancel_ops.h.
 * Errors:     cmocka's.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "cancel_ops.h"
#include "leat_count.h"

LOG_DEFINE("verbs_session");

#define MANY 50u
#define BYTES ((size_t)256 << 10)

static const char *url, *dir;
static unsigned ops;
static pid_t leatd;

static void run(const char *name, const char *first, const char *second)
{
	const char *const options[CANCEL_MOUNTS] = { first, second };
	char full_url[300], full_dir[300];
	struct cancel_test *t;

	snprintf(full_url, sizeof(full_url), "%s/%s", url, name);
	snprintf(full_dir, sizeof(full_dir), "%s/%s", dir, name);
	assert_int_equal(mkdir(full_dir, 0755), 0);
	t = cancel_test_create(full_url, options, full_dir, "1", ops);
	cancel_test_run(t, NULL);
	cancel_test_check(t);
	cancel_test_destroy(t);
}

static void registrations(void **state)
{
	(void)state;
	run("dynamic", "registration=dynamic", "registration=cache&bounce=0&rsize=64k");
}

static void windows(void **state)
{
	(void)state;
	run("window", "registration=window&bounce=0&wsize=64k", "registration=slab&credits=8");
}

static void connections(void **state)
{
	(void)state;
	run("conns", "conns=3&rsize=64k", "registration=batch&cache=none&credits=8");
}

static void killed(void **state)
{
	static struct count c[MANY];
	struct leat_session *s;
	struct leat_file *f;
	struct leat *m;
	uint8_t *mem = aligned_alloc(4096, MANY * BYTES);
	int rc;

	(void)state;
	assert_non_null(mem);
	assert_int_equal(leat_session_create(NULL, &s), 0);
	assert_int_equal(leat_session_mount(s, url, NULL, &m), 0);
	assert_int_equal(leat_open(m, "killed", O_RDWR | O_CREAT, 0600, &f), 0);
	memset(mem, 1, MANY * BYTES);
	assert_int_equal(leat_pwrite(f, mem, MANY * BYTES, 0), MANY * BYTES);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(leat_aio_pread(f, mem + i * BYTES, BYTES, i * BYTES,
						(struct leat_cb){ count_fn, &c[i], count_free }), 0);
	assert_int_equal(kill(leatd, SIGKILL), 0);
	rc = leat_umount_within(m, 100);
	assert_int_equal(rc, -ETIMEDOUT);
	memset(mem, 0xdb, MANY * BYTES);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(c[i].fn, 1);
		assert_int_equal(c[i].free, 1);
		assert_true(c[i].result == (int64_t)BYTES || c[i].result == -ECANCELED);
	}
	assert_int_equal(leat_session_free(s), 0);
	assert_memory_equal(mem, mem + 1, MANY * BYTES - 1);
	free(mem);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registrations),
		cmocka_unit_test(windows),
		cmocka_unit_test(connections),
		cmocka_unit_test(killed),
	};

	if (argc != 5) {
		fprintf(stderr, "usage: verbs_session URL DIR OPERATIONS PID\n");
		return 2;
	}
	url = argv[1];
	dir = argv[2];
	ops = (unsigned)strtoul(argv[3], NULL, 10);
	leatd = (pid_t)strtol(argv[4], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
