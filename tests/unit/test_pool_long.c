/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_pool_long.c - the pool of data buffers: calls longer than any class
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "pool.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define DATA (&d->pools[RR_ZONE_DATA])
#define CALLS (&d->pools[RR_ZONE_CALLS])
#define LONGEST (16 * MIB + 64 * KIB)

void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);

static bool no_memory;

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (no_memory && flags & MAP_ANONYMOUS) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap(addr, len, prot, flags, fd, off);
}

static struct rpcrdma_domain *d;
static struct rpcrdma_engine *e;

/* Half of the pool is for calls. Small buffers, arenas and other uses are as without long calls. */
static void open_pool(size_t pool_bytes, bool arena)
{
	struct rpcrdma_domain_attr attr = { .pool_bytes_max = pool_bytes, .call_bytes_max = LONGEST, .pool_arena = arena };

	assert_int_equal(rpcrdma_domain_create(&attr, &d), 0);
	assert_int_equal(rpcrdma_engine_create(d, NULL, &e), 0);
}

static void close_pool(void)
{
	rpcrdma_engine_destroy(e);
	rpcrdma_domain_destroy(d);
}

static size_t long_get(size_t bytes, struct rpcrdma_buf **ret)
{
	assert_int_equal(rr_buf_get(e, RR_ZONE_CALLS, bytes, ret), 0);
	assert_true((*ret)->bytes >= bytes && (*ret)->bytes <= bytes + bytes / 8 + 4096);
	assert_int_equal((*ret)->bytes, rr_pool_round(CALLS, bytes));
	memset((*ret)->addr, 0x5a, (*ret)->bytes);
	return (*ret)->bytes;
}

static void long_buffers(bool arena)
{
	static const size_t sizes[] = { 4 * MIB + 1, 5 * MIB, 8 * MIB, 8 * MIB + 1, 16 * MIB, LONGEST };
	struct rpcrdma_buf *b, *c, *small;

	open_pool(80 * MIB, arena);
	assert_int_equal(CALLS->bytes_max, 40 * MIB);
	assert_int_equal(DATA->bytes_max, 30 * MIB);
	assert_int_equal(rr_pool_buf_max(CALLS), LONGEST);
	assert_int_equal(rr_pool_buf_max(DATA), 4 * MIB);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		(void)long_get(sizes[i], &b);
		rpcrdma_buf_put(e, b);
		assert_int_equal(CALLS->lent[RR_POOL_LONG], 0); /* not in a magazine */
	}
	assert_int_equal(rr_buf_get(e, RR_ZONE_CALLS, LONGEST + 1, &b), -EMSGSIZE);
	assert_int_equal(rpcrdma_buf_get(e, 4 * MIB + 1, &b), -EMSGSIZE);
	/* two of the longest, and memory of other sizes made room for them; the third waits */
	(void)long_get(LONGEST, &b);
	(void)long_get(LONGEST, &c);
	assert_int_equal(rr_buf_get(e, RR_ZONE_CALLS, LONGEST, &small), -ENOBUFS);
	assert_true(CALLS->bytes <= CALLS->bytes_max);
	assert_int_equal(rr_buf_get(e, RR_ZONE_CALLS, 64 * KIB, &small), 0);
	rpcrdma_buf_put(e, small);
	rpcrdma_buf_put(e, b);
	(void)long_get(LONGEST - 1, &b); /* the same segment, used again */
	rpcrdma_buf_put(e, b);
	rpcrdma_buf_put(e, c);
	(void)long_get(5 * MIB, &b); /* not one of those */
	rpcrdma_buf_put(e, b);
}

static void calls_longer_than_any_class(void **state)
{
	struct rpcrdma_pool_stats s;

	(void)state;
	long_buffers(false);
	rr_pool_drain(e);
	d->pool_idle_ns = 0;
	pthread_mutex_lock(&d->lock);
	assert_int_equal(rr_pool_trim(d), 0);
	pthread_mutex_unlock(&d->lock);
	rpcrdma_domain_pool_stats(d, &s);
	assert_int_equal(s.pinned, 0);
	close_pool();
}

static void calls_longer_than_any_class_in_an_arena(void **state)
{
	(void)state;
	long_buffers(true);
	close_pool();
}

/* A pool that cannot hold two of them does not accept such calls at all. */
static void too_small_for_long_calls(void **state)
{
	struct rpcrdma_domain_attr attr = { .pool_bytes_max = 72 * MIB - 1, .call_bytes_max = LONGEST };
	struct rpcrdma_domain *other;

	(void)state;
	assert_int_equal(rpcrdma_domain_create(&attr, &other), -EINVAL);
	attr.pool_bytes_max = 72 * MIB;
	assert_int_equal(rpcrdma_domain_create(&attr, &other), 0);
	rpcrdma_domain_destroy(other);
	attr = (struct rpcrdma_domain_attr){ .pool_bytes_max = 1024 * MIB, .call_bytes_max = RPCRDMA_CALL_BYTES_MAX + 1 };
	assert_int_equal(rpcrdma_domain_create(&attr, &other), -EINVAL);
}

/* Without memory for one, nothing is counted. */
static void no_memory_for_a_long_call(void **state)
{
	struct rpcrdma_buf *b;

	(void)state;
	open_pool(80 * MIB, false);
	no_memory = true;
	assert_int_equal(rr_buf_get(e, RR_ZONE_CALLS, LONGEST, &b), -ENOMEM);
	no_memory = false;
	assert_int_equal(CALLS->bytes, 0);
	(void)long_get(LONGEST, &b);
	rpcrdma_buf_put(e, b);
	close_pool();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_longer_than_any_class),
		cmocka_unit_test(calls_longer_than_any_class_in_an_arena),
		cmocka_unit_test(too_small_for_long_calls),
		cmocka_unit_test(no_memory_for_a_long_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
