/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_closing.c - which descriptors workers close, and in which line they wait
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "reactor.h"
#include "tmp_dir.h"

#include "server/closing.c"

#define FS 7u

static struct rig {
	struct tmp_dir dir;
	struct rpcrdma_domain *domain;
	struct reactor reactor;
	struct closing *c;
} g;

static int setup(void **state)
{
	(void)state;
	memset(&g, 0, sizeof(g));
	list_init(&g.reactor.openers);
	tmp_dir_create(&g.dir);
	assert_int_equal(rpcrdma_domain_create(NULL, &g.domain), 0);
	assert_int_equal(rpcrdma_engine_create(g.domain, NULL, &g.reactor.engine), 0);
	assert_int_equal(worker_pool_create(4, &g.reactor.workers), 0);
	assert_int_equal(closing_create(&g.reactor, &g.c), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	while (g.reactor.flushing)
		(void)rpcrdma_engine_wait(g.reactor.engine, -1);
	closing_destroy(g.c);
	worker_pool_destroy(g.reactor.workers);
	rpcrdma_engine_destroy(g.reactor.engine);
	rpcrdma_domain_destroy(g.domain);
	tmp_dir_destroy(&g.dir);
	return 0;
}

static struct store_file open_file(bool at_once)
{
	struct store_file f = { .fs = FS, .at_once = at_once };

	tmp_dir_write(&g.dir, "f", "x");
	f.fd = open(tmp_dir_path(&g.dir, "f"), O_RDWR | O_CLOEXEC);
	assert_true(f.fd >= 0);
	return f;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static unsigned waiting(uint64_t line)
{
	unsigned n;
	const struct batch *b = find(g.c, line, &n);

	return b ? b->n : 0;
}

static unsigned left(void)
{
	size_t all;

	assert_int_equal(closing_count(g.c, FS, &all), waiting(FS));
	assert_int_equal(all, waiting(FS));
	return waiting(AT_ONCE) + waiting(FS);
}

static void until_closed(void)
{
	while (!list_is_empty(&g.c->batches))
		(void)rpcrdma_engine_wait(g.reactor.engine, -1);
}

/* Each file system has a line for what may take long; what certainly does not is in none of them. */
static void lines(void **state)
{
	struct store_file named = open_file(true), unknown = open_file(false), removed = open_file(true),
			  written = open_file(true);
	size_t all;

	(void)state;
	closing_file(g.c, &named);
	assert_int_equal(waiting(AT_ONCE), 1);
	assert_int_equal(left(), 1);
	closing_file(g.c, &unknown);
	assert_int_equal(waiting(FS), 1);
	written.writable = true;
	closing_file(g.c, &written);
	assert_int_equal(waiting(FS), 2);
	assert_int_equal(unlink(tmp_dir_path(&g.dir, "f")), 0);
	closing_file(g.c, &removed);
	assert_int_equal(waiting(FS), 3);
	assert_int_equal(waiting(AT_ONCE), 1);
	assert_int_equal(left(), 4);
	assert_int_equal(closing_count(g.c, FS + 1, &all), 0);
	assert_int_equal(all, 3);
	assert_true(is_open(named.fd) && is_open(unknown.fd) && is_open(removed.fd) && is_open(written.fd));
	until_closed();
	assert_false(is_open(named.fd) || is_open(unknown.fd) || is_open(removed.fd) || is_open(written.fd));
}

/* both descriptors of a file, where it has two */
static void second_descriptors(void **state)
{
	struct store_file f = open_file(true);
	int null = open("/dev/null", O_RDONLY), was = dup(STDIN_FILENO);

	(void)state;
	assert_true(dup2(null, STDIN_FILENO) == STDIN_FILENO); /* descriptor 0 is there */
	closing_file(g.c, &f);
	assert_int_equal(left(), 1);
	f = open_file(true);
	f.direct = (struct store_direct){ .state = STORE_DIRECT_REFUSED, .fd = dup(f.fd) };
	closing_file(g.c, &f);
	assert_int_equal(left(), 3);
	until_closed();
	assert_false(is_open(f.fd) || is_open(f.direct.fd));
	assert_true(is_open(STDIN_FILENO));
	close(null);
	if (was >= 0) {
		(void)dup2(was, STDIN_FILENO);
		close(was);
	}
}

/* a reactor that ends closes what is left, and a batch that is full then is no worker's */
static void at_the_end(void **state)
{
	int fds[BATCH + 1];

	(void)state;
	g.reactor.stop = true;
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		closing_add(g.c, FS, fds[i]);
	assert_int_equal(g.reactor.flushing, 0);
	assert_false(is_open(fds[0]));
	assert_true(is_open(fds[BATCH]));
	closing_destroy(g.c);
	assert_false(is_open(fds[BATCH]));
	g.c = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines, setup, teardown),
		cmocka_unit_test_setup_teardown(second_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(at_the_end, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
