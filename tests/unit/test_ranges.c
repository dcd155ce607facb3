/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_ranges.c - the range allocator (ranges.c) against a map of its bytes; and the pool built on it
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hooks.h"
#include "local.h"
#include "pool.h"
#include "lab.h"

#define SPACE 200
#define MIB ((size_t)1 << 20)

static void random_model(void **state)
{
	static char map[SPACE + 1];
	size_t len[SPACE] = { 0 };
	unsigned taken = 0;
	struct rr_ranges p;

	(void)state;
	srandom(3);
	memset(map, '.', SPACE);
	rr_ranges_init(&p, SPACE);
	for (int round = 0; round < 20000; round++) {
		size_t n = 1 + (size_t)random() % 20, off = (size_t)random() % SPACE;
		char gap[24] = { 0 };
		const char *found;

		if (random() % 2) { /* the first gap that is wide enough */
			memset(gap, '.', n);
			found = strstr(map, gap);
			off = SPACE;
			assert_int_equal(rr_ranges_alloc(&p, n, 1, &off), found ? 0 : -ENOBUFS);
			if (!found)
				continue;
			assert_int_equal(off, found - map);
			memset(map + off, '#', n);
			len[off] = n;
			taken++;
		} else {
			assert_int_equal(rr_ranges_free(&p, off), len[off] > 0);
			memset(map + off, '.', len[off]);
			taken -= len[off] > 0;
			len[off] = 0;
		}
		assert_int_equal(p.n, taken);
	}
	assert_true(taken > 0); /* whose nodes are freed */
	rr_ranges_fini(&p);
	rr_ranges_fini(&p); /* does nothing */
	rr_ranges_init(&p, SPACE);
	assert_int_equal(rr_ranges_alloc(&p, SPACE + 1, 1, &(size_t){ 0 }), -ENOBUFS);
	assert_int_equal(rr_ranges_alloc(&p, SIZE_MAX, 1, &(size_t){ 0 }), -ENOBUFS);
	assert_int_equal(rr_ranges_alloc(&p, SPACE, 1, &(size_t){ 0 }), 0);
	rr_ranges_fini(&p);
}

static void aligned(void **state)
{
	struct rr_ranges p;
	size_t off = 99;

	(void)state;
	rr_ranges_init(&p, 16);
	assert_int_equal(rr_ranges_alloc(&p, 1, 1, &off), 0);
	assert_int_equal(rr_ranges_alloc(&p, 4, 4, &off), 0);
	assert_int_equal(off, 4);
	assert_int_equal(rr_ranges_alloc(&p, 2, 2, &off), 0);
	assert_int_equal(off, 2);
	assert_int_equal(rr_ranges_alloc(&p, 8, 8, &off), 0);
	assert_int_equal(off, 8);
	assert_int_equal(rr_ranges_alloc(&p, 2, 2, &off), -ENOBUFS);
	assert_int_equal(rr_ranges_alloc(&p, 1, 1, &off), 0);
	assert_int_equal(off, 1);
	rr_ranges_fini(&p);
}

/* ---- the pool ------------------------------------------------------------------------------- */

static struct rpcrdma_domain *d;
static struct rpcrdma_engine *e;
static struct rr_dev *dev;

static int setup(void **state)
{
	const struct rpcrdma_domain_attr attr = { .pool_bytes_max = 64 * MIB,
						  .msg_bytes_max = 8 * MIB, .pool_arena = true };

	(void)state;
	assert_int_equal(rpcrdma_domain_create(&attr, &d), 0);
	assert_int_equal(rpcrdma_engine_create(d, NULL, &e), 0);
	assert_int_equal(rr_domain_dev(d, RPCRDMA_LOCAL, &dev), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rpcrdma_engine_destroy(e);
	rpcrdma_domain_destroy(d);
	return 0;
}

static void one_registration(void **state)
{
	struct rpcrdma_buf *bufs[200] = { 0 };
	struct rpcrdma_pool_stats s;
	struct rr_mr *mr = NULL;

	(void)state;
	assert_int_equal(rr_local_counters(dev->fabric).regs, 1);
	rpcrdma_domain_pool_stats(d, &s);
	assert_int_equal(s.pinned, s.limit);
	assert_int_equal(s.msgs, s.msgs_limit);
	for (int round = 0; round < 4000; round++) {
		size_t i = (size_t)random() % ARRAY_SIZE(bufs);
		size_t bytes = (size_t)4096 << random() % 10;

		if (bufs[i]) {
			assert_int_equal(*(uint8_t *)bufs[i]->addr, i);
			rpcrdma_buf_put(e, bufs[i]);
			bufs[i] = NULL;
		} else if (!rpcrdma_buf_get(e, bytes, &bufs[i])) {
			memset(bufs[i]->addr, (int)i, bufs[i]->bytes);
			if (!mr)
				mr = rr_buf_mr(bufs[i], dev);
			assert_ptr_equal(rr_buf_mr(bufs[i], dev), mr);
			assert_true((char *)bufs[i]->addr >= (char *)mr->addr &&
				    (char *)bufs[i]->addr + bufs[i]->bytes <=
					    (char *)mr->addr + mr->len);
			assert_int_equal(mr->rkey, 0); /* no remote access */
		}
	}
	assert_int_equal(rr_local_counters(dev->fabric).regs, 1);
	for (size_t i = 0; i < ARRAY_SIZE(bufs); i++)
		if (bufs[i])
			rpcrdma_buf_put(e, bufs[i]);
	rr_pool_drain(e);
	/* however it was cut up, with all of it free there is room for what is largest */
	for (size_t i = 0; i < 12; i++)
		assert_int_equal(rpcrdma_buf_get(e, 4 * MIB, &bufs[i]), 0);
	assert_int_equal(rpcrdma_buf_get(e, 4 * MIB, &bufs[12]), -ENOBUFS);
	for (size_t i = 0; i < 12; i++)
		rpcrdma_buf_put(e, bufs[i]);
	rpcrdma_domain_pool_stats(d, &s);
	assert_int_equal(s.pinned, s.limit);
}

/* What lies between buffers that are held serves others of up to its size. */
static void gaps_are_used(void **state)
{
	static struct rpcrdma_buf *small[800], *large[400];
	const size_t zone = 48 * MIB;
	unsigned n = 0, m = 0;

	(void)state;
	while (!rpcrdma_buf_get(e, 64 << 10, &small[n]))
		n++;
	assert_int_equal(n, zone / (64 << 10));
	for (unsigned i = 0; i < n; i++)
		if (i % 16)
			rpcrdma_buf_put(e, small[i]);
	rr_pool_drain(e);
	assert_int_equal(rpcrdma_buf_get(e, MIB, &large[0]), -ENOBUFS);
	while (!rpcrdma_buf_get(e, 256 << 10, &large[m]))
		m++;
	assert_int_equal(m, zone / MIB * 3);
	assert_int_equal(rpcrdma_buf_get(e, 4096, &large[m]), 0);
	rpcrdma_buf_put(e, large[m]);
	while (m > 0)
		rpcrdma_buf_put(e, large[--m]);
	for (unsigned i = 0; i < n; i += 16)
		rpcrdma_buf_put(e, small[i]);
}

/* A device that does not bear it is not opened, and nothing is left of the attempt. */
static void too_much(void **state)
{
	struct rr_local_attr local = { .filters = HOOKS(.fail_reg = 1) };
	const struct rpcrdma_domain_attr attr = { .pool_arena = true, .lab = LAB(.local = &local),
						  .pool_bytes_max = 8 * MIB };
	struct rpcrdma_domain *other;
	struct rr_dev *none;

	(void)state;
	assert_int_equal(rpcrdma_domain_create(&attr, &other), 0);
	assert_int_equal(rr_domain_dev(other, RPCRDMA_LOCAL, &none), -ENOMEM);
	local.filters = NULL;
	assert_int_equal(rr_domain_dev(other, RPCRDMA_LOCAL, &none), 0);
	rpcrdma_domain_destroy(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_model),
		cmocka_unit_test(aligned),
		cmocka_unit_test_setup_teardown(one_registration, setup, teardown),
		cmocka_unit_test_setup_teardown(gaps_are_used, setup, teardown),
		cmocka_unit_test_setup_teardown(too_much, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
