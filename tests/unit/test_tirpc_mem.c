/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_mem.c - memory of calls: its limit, the order of those that wait, and what is kept
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cl_mem.h"
#include "rpcrdma_tirpc.h"

#define MIB ((size_t)1 << 20)
#define NEVER UINT64_MAX

static const struct rpcrdma_addr server = { .transport = RPCRDMA_LOCAL, .host = "/run/a" };

static struct rpcrdma_tirpc_stats stats(void)
{
	struct rpcrdma_tirpc_stats s;

	rpcrdma_tirpc_stats(&s);
	return s;
}

static void keeps_segments(void **state)
{
	struct rt_mem *m, *again;

	(void)state;
	rt_mem_limit(4 * MIB, 0);
	assert_int_equal(rt_mem_get(MIB, &server, NEVER, &m), 0);
	assert_true(m->bytes >= MIB + RT_MEM_HEAD);
	memset(m->addr, 7, m->bytes);
	assert_int_equal(stats().mem_used, MIB);
	rt_mem_put(m);
	assert_int_equal(stats().mem_used, 0);
	assert_int_equal(rt_mem_get(MIB, &server, NEVER, &again), 0);
	assert_ptr_equal(again, m);
	rt_mem_put(again);
	assert_int_equal(rt_mem_get(MIB / 4, &server, NEVER, &again), 0); /* too large for that */
	assert_ptr_not_equal(again, m);
	rt_mem_put(again);
	rt_mem_put(NULL);
}

/* A server keeps access to the memory that it has got. */
static void other_servers_get_others(void **state)
{
	static const struct rpcrdma_addr v[] = {
		{ .transport = RPCRDMA_LOCAL, .host = "/run/b" },
		{ .transport = RPCRDMA_RDMA, .host = "/run/a" },
		{ .transport = RPCRDMA_LOCAL, .host = "/run/a", .port = 1 },
	};
	struct rt_mem *first, *m;

	(void)state;
	assert_int_equal(rt_mem_get(MIB, &server, NEVER, &first), 0);
	rt_mem_put(first);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		assert_int_equal(rt_mem_get(MIB, &v[i], NEVER, &m), 0);
		assert_ptr_not_equal(m, first);
		rt_mem_put(m);
	}
	assert_true(stats().mem_pinned <= 4 * MIB);
}

static void evicts_what_is_kept(void **state)
{
	struct rt_mem *m[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(rt_mem_get(MIB, &server, NEVER, &m[i]), 0);
	for (int i = 0; i < 4; i++)
		rt_mem_put(m[i]);
	assert_int_equal(rt_mem_get(3 * MIB, &server, NEVER, &m[0]), 0);
	assert_true(stats().mem_pinned <= 4 * MIB + 65536);
	rt_mem_put(m[0]);
}

static void gives_up(void **state)
{
	struct rt_mem *m, *more;

	(void)state;
	assert_int_equal(rt_mem_get(4 * MIB + 1, &server, NEVER, &m), -EMSGSIZE);
	assert_int_equal(rt_mem_get(4 * MIB, &server, NEVER, &m), 0);
	assert_int_equal(rt_mem_get(1, &server, clock_now_ns() + NS_PER_MS, &more), -ETIMEDOUT);
	assert_int_equal(stats().mem_used, 4 * MIB);
	assert_int_equal(stats().mem_waits, 1);
	assert_false(rt_mem_is_short());
	rt_mem_put(m);
	assert_int_equal(rt_mem_get(1, &server, NEVER, &m), 0);
	rt_mem_put(m);
}

static atomic_uint order;
static unsigned turn[3];

static void *wait_for(void *arg)
{
	static const size_t bytes[] = { 3 * MIB, MIB, MIB };
	uintptr_t i = (uintptr_t)arg;
	struct rt_mem *m;

	if (rt_mem_get(bytes[i], &server, NEVER, &m))
		return NULL;
	turn[i] = ++order;
	rt_mem_put(m);
	return NULL;
}

/* A large one waits, then two that would fit: they do not overtake it. */
static void waits_in_order(void **state)
{
	uint64_t before = stats().mem_waits;
	struct rt_mem *a, *b;
	pthread_t thread[3];

	(void)state;
	assert_int_equal(rt_mem_get(2 * MIB, &server, NEVER, &a), 0);
	assert_int_equal(rt_mem_get(MIB, &server, NEVER, &b), 0);
	for (uintptr_t i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&thread[i], NULL, wait_for, (void *)i), 0);
		while (stats().mem_waits != before + i + 1)
			sched_yield();
	}
	assert_true(rt_mem_is_short());
	rt_mem_put(b); /* 2 MiB are free now: not enough for the first */
	assert_int_equal(order, 0);
	rt_mem_put(a);
	for (size_t i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(order, 3);
	assert_int_equal(stats().mem_used, 0);
}

static void child_has_its_own(void **state)
{
	struct rt_mem *m, *own;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(rt_mem_get(3 * MIB, &server, NEVER, &m), 0);
	pid = fork();
	if (pid == 0)
		_exit(rt_mem_get(3 * MIB, &server, NEVER, &own) || own->addr == m->addr ? 1 : 0);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rt_mem_put(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_segments),
		cmocka_unit_test(other_servers_get_others),
		cmocka_unit_test(evicts_what_is_kept),
		cmocka_unit_test(gives_up),
		cmocka_unit_test(waits_in_order),
		cmocka_unit_test(child_has_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
