/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_closing.c - which descriptors workers close, and when
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tmp_dir.h"
#include "worker.h"

/* Workers do not begin with what is held. */
static bool holds;
static struct worker_job *held[16];
static unsigned nheld;

static void submit_or_hold(struct worker_pool *p, struct rpcrdma_engine *engine, struct worker_job *job)
{
	if (holds)
		held[nheld++] = job;
	else
		worker_submit(p, engine, job);
}

#define worker_submit submit_or_hold
#include "server/files/closing.c"
#include "files.h"

#define FS 7u

static void on_closed_batch(void *files, size_t n)
{
	files_resume(files, n);
}

static struct rig {
	struct tmp_dir dir;
	struct rpcrdma_domain *domain;
	struct loop loop;
	struct files files; /* who_waits() */
	struct closing *c;
} g;

static int setup(void **state)
{
	(void)state;
	(void)alarm(20); /* what is never closed would be waited for */
	memset(&g, 0, sizeof(g));
	list_init(&g.files.waiting);
	tmp_dir_create(&g.dir);
	assert_int_equal(rpcrdma_domain_create(NULL, &g.domain), 0);
	assert_int_equal(rpcrdma_engine_create(g.domain, NULL, &g.loop.engine), 0);
	assert_int_equal(worker_pool_create(4, &g.loop.workers), 0);
	assert_int_equal(closing_create(&g.loop, on_closed_batch, &g.files, &g.c), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	while (g.loop.flushing)
		(void)rpcrdma_engine_wait(g.loop.engine, -1);
	closing_destroy(g.c);
	worker_pool_destroy(g.loop.workers);
	rpcrdma_engine_destroy(g.loop.engine);
	rpcrdma_domain_destroy(g.domain);
	tmp_dir_destroy(&g.dir);
	return 0;
}

static struct store_file open_file(void)
{
	struct store_file f = { .fs = FS };

	tmp_dir_write(&g.dir, "f", "x");
	f.fd = open(tmp_dir_path(&g.dir, "f"), O_RDWR | O_CLOEXEC);
	assert_true(f.fd >= 0);
	return f;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void add(uint64_t fs, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		closing_add(g.c, fs, open("/dev/null", O_RDONLY | O_CLOEXEC));
}

static size_t count(uint64_t fs)
{
	size_t all;

	return closing_count(g.c, fs, &all);
}

static void until_closed(void)
{
	while (!list_is_empty(&g.c->batches))
		(void)rpcrdma_engine_wait(g.loop.engine, -1);
}

/* Each file system has a line. */
static void lines(void **state)
{
	struct store_file one = open_file(), two = open_file(), three = open_file();

	(void)state;
	three.fs = FS + 1;
	closing_file(g.c, &one);
	closing_file(g.c, &two);
	closing_file(g.c, &three);
	assert_int_equal(count(FS), 2);
	assert_int_equal(count(FS + 1), 1);
	assert_int_equal(count(FS + 2), 0);
	assert_true(is_open(one.fd) && is_open(two.fd) && is_open(three.fd));
	until_closed();
	assert_int_equal(count(FS), 0);
	assert_false(is_open(one.fd) || is_open(two.fd) || is_open(three.fd));
}

/* An opener that waits for room does not wait for the timer. */
static void in_a_hurry(void **state)
{
	struct store_file f = open_file();

	(void)state;
	closing_file(g.c, &f);
	assert_int_equal(g.loop.flushing, 0);
	closing_hurry(g.c, FS + 1); /* another's */
	assert_int_equal(g.loop.flushing, 0);
	closing_hurry(g.c, FS);
	assert_int_equal(g.loop.flushing, 1);
	f = open_file();
	closing_file(g.c, &f);
	closing_hurry(g.c, FS); /* that of the first begins with it */
	assert_int_equal(g.loop.flushing, 1);
	assert_int_equal(count(FS), 2);
	until_closed();
}

/* While as many batches as may be are at workers, what comes is collected, and begun with when one of them ends. */
static void a_slow_line(void **state)
{
	struct store_file f;

	(void)state;
	for (unsigned i = 0; i < BATCHES_MAX * CLOSING_BATCH; i++) {
		f = open_file();
		closing_file(g.c, &f);
	}
	assert_int_equal(g.loop.flushing, BATCHES_MAX);
	assert_false(closing_has_room(g.c, FS));
	f = open_file();
	closing_file(g.c, &f);
	rpcrdma_timer_cancel(g.loop.engine, &g.c->timer);
	on_timer(&g.c->timer);
	assert_int_equal(g.loop.flushing, BATCHES_MAX);
	until_closed();
	assert_false(is_open(f.fd));
}

static unsigned gone_on;

static void count_resumed(struct files_waiter *w)
{
	assert_false(list_is_linked(&w->link));
	gone_on++;
}

static void wait_for_room(struct files_waiter *w, uint64_t fs)
{
	*w = (struct files_waiter){ .fs = fs, .resume = count_resumed };
	list_add_tail(&g.files.waiting, &w->link);
}

/* that worker is through */
static void close_held(unsigned i)
{
	run_batch(held[i]);
	done_batch(held[i]);
}

/* Requests that wait to open files go on when there is room, wherever it came from: as many as files were closed, or
 * all that wait for a line in which nothing is left. */
static void who_waits(void **state)
{
	static struct files_waiter w[5 * CLOSING_BATCH];

	(void)state;
	g.files.max = 4 * CLOSING_BATCH;
	g.files.closer = g.c;
	gone_on = nheld = 0;
	holds = true;
	add(FS, 100);
	add(FS + 1, 200);
	assert_int_equal(nheld, 4); /* one, and three of the other */
	assert_false(files_may_open(&g.files, FS)); /* all together are too many */
	assert_false(files_may_open(&g.files, FS + 1));
	wait_for_room(&w[0], FS);
	wait_for_room(&w[1], FS + 1);
	close_held(1);
	assert_int_equal(nheld, 5); /* ... and the rest of that line */
	assert_int_equal(gone_on, 1); /* there is room for the first; the other's own line is too long */
	gone_on = 0;
	for (unsigned i = 2; i < 2 + CLOSING_BATCH; i++)
		wait_for_room(&w[i], FS);
	wait_for_room(&w[100], FS);
	close_held(2);
	assert_int_equal(gone_on, CLOSING_BATCH + 1); /* as many of one line as were closed, and the only one of the other */
	gone_on = 0;
	for (unsigned i = 101; i < 101 + 2 * CLOSING_BATCH + 50; i++)
		wait_for_room(&w[i], FS + 1);
	wait_for_room(&w[0], FS);
	close_held(0); /* what was collected begins */
	assert_int_equal(nheld, 6);
	assert_int_equal(gone_on, 2 + CLOSING_BATCH);
	gone_on = 0;
	close_held(3);
	assert_int_equal(gone_on, CLOSING_BATCH);
	gone_on = 0;
	close_held(4);
	holds = false;
	assert_int_equal(count(FS + 1), 0);
	assert_int_equal(gone_on, 50);
	assert_true(list_is_empty(&g.files.waiting));
	close_held(5);
}

/* both descriptors of a file, where it has two */
static void second_descriptors(void **state)
{
	struct store_file f = open_file();
	int null = open("/dev/null", O_RDONLY), was = dup(STDIN_FILENO);

	(void)state;
	assert_true(dup2(null, STDIN_FILENO) == STDIN_FILENO); /* descriptor 0 is there */
	closing_file(g.c, &f);
	assert_int_equal(count(FS), 1);
	f = open_file();
	f.direct = (struct store_direct){ .state = STORE_DIRECT_REFUSED, .fd = dup(f.fd) };
	closing_file(g.c, &f);
	assert_int_equal(count(FS), 3);
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
	int fds[CLOSING_BATCH + 1];

	(void)state;
	g.loop.stop = true;
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		closing_add(g.c, FS, fds[i]);
	assert_int_equal(g.loop.flushing, 0);
	assert_false(is_open(fds[0]));
	assert_true(is_open(fds[CLOSING_BATCH]));
	closing_destroy(g.c);
	assert_false(is_open(fds[CLOSING_BATCH]));
	g.c = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines, setup, teardown),
		cmocka_unit_test_setup_teardown(in_a_hurry, setup, teardown),
		cmocka_unit_test_setup_teardown(a_slow_line, setup, teardown),
		cmocka_unit_test_setup_teardown(who_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(second_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(at_the_end, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
