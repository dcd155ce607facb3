/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_slab.c - the pool of data buffers
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine_int.h"

#define MIB ((size_t)1 << 20)

static struct rpcrdma_domain *d;
static struct rpcrdma_engine *e, *e2;

static int set_up(void **state)
{
	struct rpcrdma_domain_attr attr = { .pool_bytes_max = 8 * MIB };

	(void)state;
	return rpcrdma_domain_create(&attr, &d) || rpcrdma_engine_create(d, NULL, &e) ||
	       rpcrdma_engine_create(d, NULL, &e2);
}

static int tear_down(void **state)
{
	(void)state;
	rpcrdma_engine_destroy(e);
	rpcrdma_engine_destroy(e2);
	rpcrdma_domain_destroy(d);
	return 0;
}

static void poll_both(void)
{
	while (rpcrdma_engine_poll(e) + rpcrdma_engine_poll(e2))
		;
}

static void smallest_class_that_fits(void **state)
{
	static const size_t sizes[][2] = { { 1, 4096 }, { 4096, 4096 }, { 4097, 16384 },
					   { 65536, 65536 }, { 65537, 262144 },
					   { MIB, MIB }, { MIB + 1, 4 * MIB }, { 4 * MIB, 4 * MIB } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct rpcrdma_buf *b;

		assert_int_equal(rpcrdma_buf_get(e, sizes[i][0], &b), 0);
		assert_int_equal(b->bytes, sizes[i][1]);
		assert_int_equal((uintptr_t)b->addr % 4096, 0);
		memset(b->addr, 0x5a, b->bytes);
		rpcrdma_buf_put(e, b);
		rr_pool_drain(e);
	}
	assert_int_equal(rpcrdma_buf_get(e, 4 * MIB + 1, &(struct rpcrdma_buf *){ NULL }), -ENOMEM);
}

static void buffers_do_not_overlap(void **state)
{
	struct rpcrdma_buf *b[64];

	(void)state;
	for (int i = 0; i < 64; i++) {
		assert_int_equal(rpcrdma_buf_get(i % 2 ? e : e2, 65536, &b[i]), 0);
		memset(b[i]->addr, i, b[i]->bytes);
	}
	for (int i = 0; i < 64; i++) {
		const uint8_t *p = b[i]->addr;

		for (size_t k = 0; k < b[i]->bytes; k++)
			if (p[k] != i)
				fail_msg("buffer %d byte %zu", i, k);
		rpcrdma_buf_put(e, b[i]); /* on any engine */
	}
}

/* The limit holds, and free memory of one class serves another. */
static void the_limit_holds(void **state)
{
	struct rpcrdma_buf *b[16], *more;
	int n = 0;

	(void)state;
	while (n < 16 && rpcrdma_buf_get(e, MIB, &b[n]) == 0)
		n++;
	assert_int_equal(n, 8);
	assert_int_equal(rpcrdma_buf_get(e, MIB, &more), -ENOBUFS);
	assert_int_equal(rpcrdma_buf_get(e2, 4096, &more), -ENOBUFS);
	assert_true(d->pool.bytes <= d->pool.bytes_max);
	while (n > 0)
		rpcrdma_buf_put(e, b[--n]);
	rr_pool_drain(e);
	assert_int_equal(rpcrdma_buf_get(e2, 4096, &more), 0);
	assert_true(d->pool.bytes <= d->pool.bytes_max);
	rpcrdma_buf_put(e2, more);
}

struct waiter {
	struct rpcrdma_buf_waiter w;
	struct rpcrdma_engine *e;
	struct rpcrdma_buf *buf;
	int order;
};

static int turns;

static void on_turn(struct rpcrdma_buf_waiter *w)
{
	struct waiter *me = container_of(w, struct waiter, w);

	if (rpcrdma_buf_get(me->e, MIB, &me->buf))
		rpcrdma_buf_wait(me->e, w);
	else
		me->order = ++turns;
}

static void shortage_is_a_queue(void **state)
{
	struct rpcrdma_buf *b[8];
	struct waiter w[6] = { 0 };

	(void)state;
	turns = 0;
	for (int i = 0; i < 8; i++)
		assert_int_equal(rpcrdma_buf_get(e, MIB, &b[i]), 0);
	for (int i = 0; i < 6; i++) {
		w[i].e = e;
		w[i].w.fn = on_turn;
		rpcrdma_buf_wait(e, &w[i].w);
	}
	poll_both();
	assert_int_equal(turns, 0);
	rpcrdma_buf_unwait(e, &w[2].w);
	for (int i = 0; i < 5; i++) {
		rpcrdma_buf_put(i % 2 ? e : e2, b[i]); /* each serves exactly one */
		poll_both();
		assert_int_equal(turns, i + 1);
	}
	assert_int_equal(w[0].order, 1);
	assert_int_equal(w[1].order, 2);
	assert_int_equal(w[2].order, 0);
	assert_int_equal(w[3].order, 3);
	assert_int_equal(w[4].order, 4);
	assert_int_equal(w[5].order, 5);
	assert_int_equal(d->pool.waiting, 0);
	for (int i = 0; i < 6; i++)
		if (w[i].buf)
			rpcrdma_buf_put(e, w[i].buf);
	for (int i = 5; i < 8; i++)
		rpcrdma_buf_put(e, b[i]);
}

/* What another engine keeps in its magazine is not lost to those who wait. */
static void magazines_are_given_up(void **state)
{
	struct rpcrdma_buf *b[8];
	struct waiter w = { .e = e2, .w.fn = on_turn };

	(void)state;
	turns = 0;
	for (int i = 0; i < 8; i++)
		assert_int_equal(rpcrdma_buf_get(e, MIB, &b[i]), 0);
	for (int i = 0; i < 4; i++)
		rpcrdma_buf_put(e, b[i]);
	assert_true(e->in_magazine[4] > 0);
	for (int i = 4; i < 8; i++) { /* the rest is taken by others */
		rpcrdma_buf_put(e, b[i]);
		if (e->in_magazine[4] < 4)
			assert_int_equal(rpcrdma_buf_get(e2, MIB, &b[i]), 0);
	}
	while (rpcrdma_buf_get(e2, MIB, &b[0]) == 0)
		b[0] = NULL, turns++;
	turns = 0;
	rpcrdma_buf_wait(e2, &w.w);
	poll_both();
	assert_int_equal(turns, 1);
	assert_int_equal(e->in_magazine[4], 0);
}

#define slab_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		slab_test(smallest_class_that_fits),
		slab_test(buffers_do_not_overlap),
		slab_test(the_limit_holds),
		slab_test(shortage_is_a_queue),
		slab_test(magazines_are_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
