/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_queue.c - one line for the requests of all reactors: depth, turns, hand-over
 *
 * The store below is here, and the test says when what it was given ends.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "export.h"
#include "reactor.h"
#include "store.h"

LOG_DEFINE("test_store_queue");

#define IOS 20
#define BYTES 10u

static struct rpcrdma_domain *domain;
static struct reactor reactors[2];
static struct store stores[2];
static struct export exp0;
static struct store_file file = { .fd = 3, .writable = true, .dev = 1, .ino = 1 };
static struct store_io ios[IOS];
static struct latency latency; /* not sampled */
static char below[64], done[64]; /* names of those that came there, in their order */
static bool at_once, inside;
static unsigned destroyed, begun;

static char name_of(const struct store_io *io)
{
	return (char)('a' + (io - ios));
}

static void note(char *where, const struct store_io *io)
{
	size_t n = strlen(where);

	assert_true(n < sizeof(below) - 1);
	where[n] = name_of(io);
	where[n + 1] = '\0';
}

static int fake_submit(struct store *s, struct store_io *io)
{
	assert_ptr_equal(io->store, s);
	note(below, io);
	assert_true(io->begun_ns && io->begun_ns <= clock_now_ns());
	io->res = (int32_t)io->bytes;
	return at_once;
}

static void fake_destroy(struct store *s)
{
	(void)s;
	destroyed++;
}

static const struct store_ops fake_ops = { .name = "fake",
					   .submit = fake_submit,
					   .destroy = fake_destroy };

static void on_done(struct store_io *io)
{
	assert_false(inside); /* store_submit() */
	assert_ptr_equal(io->done, on_done);
	note(done, io);
}

static void begin(const char *const *options)
{
	char why[128] = "";

	memset(&exp0, 0, sizeof(exp0));
	exp0.backing.ino = ++begun; /* a queue of its own, whatever became of the one before */
	exp0.backing.data = &exp0.conf.data;
	data_conf_init(&exp0.conf.data);
	for (; *options; options += 2) {
		if (data_conf_option(&exp0.conf.data, options[0], options[1], why, sizeof(why)))
			fail_msg("%s", why);
	}
	assert_int_equal(data_conf_check(&exp0.conf.data, why, sizeof(why)), 0);
	assert_int_equal(rpcrdma_domain_create(NULL, &domain), 0);
	for (unsigned i = 0; i < 2; i++) {
		memset(&reactors[i], 0, sizeof(reactors[i]));
		assert_int_equal(rpcrdma_engine_create(domain, NULL, &reactors[i].loop.engine), 0);
		stores[i] =
			(struct store){ .ops = &fake_ops, .loop = &reactors[i].loop, .counters = &reactors[i].counters.store,
					.backing = &exp0.backing };
		assert_int_equal(store_queue_get(&exp0.backing, &stores[i].queue), 0);
	}
	memset(ios, 0, sizeof(ios));
	below[0] = done[0] = '\0';
	at_once = false;
	destroyed = 0;
}

static void begin_sorted(const char *depth)
{
	const char *const options[] = { "sched", "sorted", "depth", depth, NULL };

	begin(options);
}

static void end(void)
{
	for (unsigned i = 0; i < 2; i++) {
		if (stores[i].ops)
			store_destroy(&stores[i]);
		rpcrdma_engine_destroy(reactors[i].loop.engine);
	}
	rpcrdma_domain_destroy(domain);
}

static void submit_op(char name, unsigned reactor, enum store_op op, uint64_t off, bool now)
{
	struct store_io *io = &ios[name - 'a'];
	size_t n = strlen(below);

	*io = (struct store_io){
		.op = op, .file = &file, .off = off, .bytes = BYTES, .latency = &latency, .done = on_done
	};
	inside = true;
	assert_int_equal(store_submit(&stores[reactor], io), now);
	inside = false;
	if (now)
		assert_ptr_equal(io->done, on_done);
	assert_int_equal(io->begun_ns > 0, strchr(below + n, name) != NULL); /* its turn has not come while it waits */
}

static void submit(char name, unsigned reactor, uint64_t off)
{
	submit_op(name, reactor, STORE_READ, off, false);
}

static void complete(char name)
{
	struct store_io *io = &ios[name - 'a'];

	io->done(io);
}

static void run(unsigned reactor)
{
	while (rpcrdma_engine_poll(reactors[reactor].loop.engine))
		;
}

static void depth_and_order(void **state)
{
	(void)state;
	begin_sorted("2");
	submit('a', 0, 500);
	submit('b', 0, 100);
	submit('c', 0, 50);
	submit('d', 0, 300);
	submit('e', 0, 200);
	assert_string_equal(below, "ab");
	complete('a');
	assert_string_equal(done, "a");
	assert_string_equal(below, "ab"); /* not inside another's completion */
	run(0);
	assert_string_equal(below, "abe"); /* the first one behind b */
	complete('e');
	complete('b');
	run(0);
	assert_string_equal(below, "abedc");
	complete('c');
	complete('d');
	run(0);
	assert_string_equal(done, "aebcd");
	assert_int_equal(atomic_load(&reactors[0].counters.store.sched_waits), 3);
	assert_int_equal(atomic_load(&reactors[0].counters.store.sched_wait_max), 3);
	assert_int_equal(atomic_load(&reactors[0].counters.store.sched_late), 0);
	submit('f', 0, 10); /* there is room again */
	assert_string_equal(below, "abedcf");
	complete('f');
	end();
}

static void across_reactors(void **state)
{
	(void)state;
	begin_sorted("1");
	assert_ptr_equal(stores[0].queue, stores[1].queue);
	submit('a', 0, 0);
	submit('b', 1, 20);
	submit('c', 0, 30);
	submit('d', 1, 10);
	complete('a');
	run(0);
	assert_string_equal(below, "a"); /* the next is of the other reactor */
	run(1);
	assert_string_equal(below, "ad");
	complete('d');
	run(1);
	complete('b');
	run(1);
	assert_string_equal(below, "adb");
	run(0);
	assert_string_equal(below, "adbc");
	complete('c');
	assert_int_equal(atomic_load(&reactors[0].counters.store.sched_waits), 1);
	assert_int_equal(atomic_load(&reactors[1].counters.store.sched_waits), 2);
	assert_int_equal(atomic_load(&reactors[1].counters.store.sched_wait_max), 3);
	end();
}

/* A store that needs no waiting: nothing is left behind, and no completion inside a submit. */
static void finished_at_once(void **state)
{
	(void)state;
	begin_sorted("1");
	at_once = true;
	submit_op('a', 0, STORE_READ, 0, true);
	submit_op('b', 0, STORE_WRITE, 0, true);
	at_once = false;
	submit('c', 0, 0);
	submit('d', 0, 40);
	submit('e', 1, 30);
	submit('f', 0, 20);
	at_once = true;
	complete('c');
	run(0);
	run(1);
	run(0);
	assert_string_equal(below, "abcfed");
	assert_string_equal(done, "cfed");
	submit_op('g', 0, STORE_READ, 0, true);
	end();
}

static void syncs_do_not_wait(void **state)
{
	(void)state;
	begin_sorted("1");
	submit('a', 0, 0);
	submit('b', 0, 0);
	submit_op('s', 0, STORE_SYNC, 0, false);
	submit_op('t', 1, STORE_SYNC, 0, false);
	assert_string_equal(below, "ast");
	complete('s');
	run(0);
	assert_string_equal(below, "ast"); /* and give nothing on */
	complete('a');
	run(0);
	complete('b');
	complete('t');
	assert_string_equal(done, "sabt");
	end();
}

/* Operations that move no data have a place on the disk too. */
static void ranges_wait(void **state)
{
	(void)state;
	begin_sorted("1");
	submit('a', 0, 0);
	submit_op('b', 0, STORE_ZERO, 30, false);
	submit_op('c', 1, STORE_EXTENTS, 20, false);
	submit_op('d', 0, STORE_DISCARD, 10, false);
	assert_string_equal(below, "a");
	assert_true(ios[1].queue.node.write && ios[3].queue.node.write);
	assert_false(ios[2].queue.node.write);
	complete('a');
	run(0);
	complete('d');
	run(1);
	complete('c');
	run(0);
	complete('b');
	assert_string_equal(below, "adcb");
	assert_string_equal(done, "adcb");
	end();
}

static void late_ones_are_counted(void **state)
{
	const char *const options[] = {
		"sched", "deadline", "depth", "1", "deadline", "1ms", NULL
	};

	(void)state;
	begin(options);
	submit('a', 0, 50);
	submit('b', 1, 10);
	submit_op('c', 0, STORE_WRITE, 60, false);
	/* ten times as long may a write wait, and it came later */
	assert_true(ios[2].queue.node.due_ns >= ios[1].queue.node.due_ns + 9 * NS_PER_MS);
	ios[1].queue.node.due_ns = 1; /* its time is up */
	submit('d', 0, 60);
	complete('a');
	run(1);
	assert_string_equal(below, "ab");
	assert_int_equal(atomic_load(&reactors[1].counters.store.sched_late), 1);
	complete('b');
	run(0);
	complete('d');
	run(0);
	complete('c');
	assert_int_equal(atomic_load(&reactors[0].counters.store.sched_late), 0);
	end();
}

static void destroy_it(struct store_io *io)
{
	note(done, io);
	store_destroy(&stores[0]);
	memset(&stores[0], 0, sizeof(stores[0]));
}

static void ends_with_its_last(void **state)
{
	(void)state;
	begin_sorted("1");
	submit('a', 0, 0);
	submit('b', 0, 0);
	ios[1].queue.done = destroy_it;
	complete('a');
	run(0);
	complete('b');
	run(0);
	assert_int_equal(destroyed, 1);
	submit('c', 1, 0); /* the queue is still the other one's */
	complete('c');
	assert_string_equal(done, "abc");
	end();
}

static void none(void **state)
{
	const char *const options[] = { "sched", "none", NULL };

	(void)state;
	begin(options);
	assert_null(stores[0].queue);
	for (char c = 'a'; c < 'a' + IOS; c++)
		submit(c, 0, 0);
	assert_int_equal(strlen(below), IOS);
	complete('a');
	assert_string_equal(done, "a");
	end();
}

static void options(void **state)
{
	static const struct {
		const char *key, *value, *why; /* why: of the check, if the option is taken */
	} rows[] = {
		{ "sched", "elevator", "must be none, sorted or deadline" },
		{ "sched", NULL, "sched" },
		{ "depth", "0", "1 to 1024" },
		{ "depth", "1025", "1 to 1024" },
		{ "depth", "8", "nothing without sched" },
		{ "deadline", "0", "1ms" },
		{ "deadline", "500", "1ms" },
		{ "deadline", "999us", "1ms" },
		{ "deadline", "61s", "60s" },
		{ "deadline", "1s", "nothing without sched deadline" },
	};
	char why[160], said[DATA_CONF_PRINT_BYTES];
	struct data_conf d;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int err;

		data_conf_init(&d);
		why[0] = '\0';
		err = data_conf_option(&d, rows[i].key, rows[i].value, why, sizeof(why));
		if (!err)
			err = data_conf_check(&d, why, sizeof(why));
		if (err != -EINVAL || !strstr(why, rows[i].why))
			fail_msg("%s=%s: %s", rows[i].key, rows[i].value, why);
	}
	data_conf_init(&d);
	assert_int_equal(data_conf_option(&d, "sched", "deadline", why, sizeof(why)), 0);
	assert_int_equal(data_conf_option(&d, "depth", "64", why, sizeof(why)), 0);
	assert_int_equal(data_conf_option(&d, "deadline", "20ms", why, sizeof(why)), 0);
	assert_int_equal(data_conf_option(&d, "deadline", "20000us", why, sizeof(why)), 0);
	assert_int_equal(data_conf_option(&d, "deadline", "21ms", why, sizeof(why)), -EINVAL);
	assert_int_equal(data_conf_check(&d, why, sizeof(why)), 0);
	assert_string_equal(data_conf_print(&d, said, sizeof(said)),
			    ", sched deadline, depth 64, deadline 20ms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(depth_and_order),
		cmocka_unit_test(across_reactors),
		cmocka_unit_test(finished_at_once),
		cmocka_unit_test(syncs_do_not_wait),
		cmocka_unit_test(ranges_wait),
		cmocka_unit_test(late_ones_are_counted),
		cmocka_unit_test(ends_with_its_last),
		cmocka_unit_test(none),
		cmocka_unit_test(options),
	};

	return cmocka_run_group_tests_name("store_queue", tests, NULL, NULL);
}
