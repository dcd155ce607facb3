/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_reg_stale.c - memory that loses its pages between calls, and what a cache of registrations does
 *
 * The local fabric holds on to registered pages here as a device does (hook `pin`): with a cache that
 * is never invalidated, data is lost. That loss shows that the other runs prove something.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "kernel_has.h"
#include "leat_flow.h"
#include "stale_rounds.h"

LOG_DEFINE("test_reg_stale");

#define ROUNDS 20000u
#define FILE_BYTES (128 * 1024)

static struct leat_flow flow;
static int fd = -1;

static void run(const char *options, unsigned long rounds, struct stale_counts *ret,
		uint64_t *ret_regs)
{
	struct leat *m = leat_flow_mount(flow.local_url, options);
	struct leat_file *f;
	int rc;

	assert_int_equal(leat_open(m, "file", O_RDWR, 0, &f), 0);
	rc = stale_rounds(f, fd, rounds, 42, ret);
	if (rc)
		fail_msg("%s: %s: %s", options, strerror(-rc), leat_error(m));
	*ret_regs = leat_flow_stat(m, "regs");
	print_message("%s: %lu writes, %lu reads, %lu times other pages, %lu stale, %llu registrations\n",
		      options, ret->writes, ret->reads, ret->lost, ret->stale,
		      (unsigned long long)*ret_regs);
	assert_int_equal(ret->writes + ret->reads, rounds);
	assert_int_equal(leat_close(f), 0);
	leat_umount(m);
}

/* Each of them, and not by registering whatever comes. */
static void nothing_is_stale(void **state)
{
	static const struct {
		const char *options;
		unsigned long rounds;
	} runs[] = { { "registration=batch", ROUNDS }, { "registration=cache", ROUNDS / 10 } };
	struct stale_counts n;
	uint64_t regs;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		run(runs[i].options, runs[i].rounds, &n, &regs);
		assert_int_equal(n.stale, 0);
		assert_true(n.lost > runs[i].rounds / 2);
		assert_true(regs < runs[i].rounds);
	}
}

static void nothing_is_kept(void **state)
{
	struct stale_counts n;
	uint64_t regs;

	(void)state;
	run("registration=dynamic", ROUNDS / 20, &n, &regs);
	assert_int_equal(n.stale, 0);
	assert_true(regs >= ROUNDS / 20);
}

/* What would happen without a monitor. */
static void nobody_watches(void **state)
{
	struct stale_counts n;
	uint64_t regs;

	(void)state;
	run("registration=cache&monitor=none", ROUNDS / 20, &n, &regs);
	assert_true(n.stale > 0);
}

static int set_up(void **state)
{
	char path[128];

	(void)state;
	setenv("LEAT_TEST_PIN", "1", 1);
	leat_flow_create(&flow);
	snprintf(path, sizeof(path), "%s/file", flow.export);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	return fd < 0 ? -1 : ftruncate(fd, FILE_BYTES);
}

static int tear_down(void **state)
{
	(void)state;
	close(fd);
	leat_flow_destroy(&flow);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_stale),
		cmocka_unit_test(nothing_is_kept),
		cmocka_unit_test(nobody_watches),
	};
	struct io_uring_params par = { .flags = 0 };
	int ring = (int)syscall(SYS_io_uring_setup, 1u, &par);

	if (ring < 0) {
		printf("SKIP: no io_uring here, which holds on to pages as a device does: %s\n",
		       strerror(errno));
		return 77;
	}
	close(ring);
	if (!kernel_has_uffd())
		return 77;
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
