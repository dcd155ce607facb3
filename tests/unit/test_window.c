/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_window.c - what the first bind of a window says about its device
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "window.h"

void __wrap_rr_ep_post(struct rr_ep *ep, struct rr_post *post);

static struct rr_post *posted[2]; /* the bind, and the invalidation behind it */
static unsigned nposted;

void __wrap_rr_ep_post(struct rr_ep *ep, struct rr_post *post)
{
	assert_true(nposted < 2);
	post->ep = ep;
	posted[nposted++] = post;
}

static int make_mw(struct rr_pd *pd, struct rr_mw **ret)
{
	*ret = calloc(1, sizeof(**ret));
	assert_non_null(*ret);
	(*ret)->pd = pd;
	(*ret)->rkey = 0x100;
	return 0;
}

static void free_mw(struct rr_mw *mw)
{
	free(mw);
}

struct ctx {
	struct rpcrdma_engine engine;
	struct rr_fabric fabric;
	struct rr_pd pd;
	struct rr_dev dev;
	struct rr_ep ep;
	struct rr_mr mr;
	struct rr_windows *windows;
	unsigned ready;
};

static void on_ready(void *arg)
{
	((struct ctx *)arg)->ready++;
}

static int setup(void **state)
{
	static const struct rr_fabric_ops ops = { .mw_create = make_mw, .mw_destroy = free_mw };
	static char memory[64];
	struct ctx *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->fabric.ops = &ops;
	c->pd.fabric = &c->fabric;
	c->ep.dev = &c->dev;
	c->mr.addr = memory;
	c->mr.len = sizeof(memory);
	atomic_store(&c->dev.windows, RR_WINDOWS_UNTRIED);
	nposted = 0;
	assert_int_equal(rr_windows_create(&c->engine, &c->pd, false, &c->windows), 0);
	rr_windows_on(c->windows, &c->ep);
	assert_int_equal(rr_windows_try(c->windows, &c->mr, on_ready, c), 0);
	assert_int_equal(nposted, 2);
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	struct ctx *c = *state;

	rr_windows_destroy(c->windows);
	free(c);
	return 0;
}

static void works(void **state)
{
	struct ctx *c = *state;

	posted[0]->fn(posted[0], RR_WC_OK);
	assert_int_equal(atomic_load(&c->dev.windows), RR_WINDOWS_WORK);
	assert_int_equal(c->ready, 0);
	posted[1]->fn(posted[1], RR_WC_OK);
	assert_int_equal(c->ready, 1);
}

static void is_broken(void **state)
{
	struct ctx *c = *state;

	posted[0]->fn(posted[0], RR_WC_LOCAL);
	posted[1]->fn(posted[1], RR_WC_FLUSHED);
	assert_int_equal(atomic_load(&c->dev.windows), RR_WINDOWS_BROKEN);
	assert_int_equal(c->ready, 0);
}

static void cannot_invalidate(void **state)
{
	struct ctx *c = *state;

	posted[0]->fn(posted[0], RR_WC_OK);
	posted[1]->fn(posted[1], RR_WC_LOCAL);
	assert_int_equal(atomic_load(&c->dev.windows), RR_WINDOWS_BROKEN);
	assert_int_equal(c->ready, 0);
}

/* A broken connection, or a client that ends while the bind is in flight: the device is tried again. */
static void says_nothing(void **state)
{
	struct ctx *c = *state;

	posted[0]->fn(posted[0], RR_WC_FLUSHED);
	assert_int_equal(atomic_load(&c->dev.windows), RR_WINDOWS_UNTRIED);
	rr_windows_revoke(c->windows);
	posted[0]->fn(posted[0], RR_WC_LOCAL);
	posted[1]->fn(posted[1], RR_WC_LOCAL);
	assert_int_equal(atomic_load(&c->dev.windows), RR_WINDOWS_UNTRIED);
	assert_int_equal(c->ready, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(works, setup, teardown),
		cmocka_unit_test_setup_teardown(is_broken, setup, teardown),
		cmocka_unit_test_setup_teardown(cannot_invalidate, setup, teardown),
		cmocka_unit_test_setup_teardown(says_nothing, setup, teardown),
	};

	return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
