/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_srv_probe.c - an idle RDMA connection is probed at each tick, and calls beside probes are no stalls
 *
 * The endpoint is a structure: what is posted to it ends when the test says so.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "srv_rdma.h"

static struct rpcrdma_domain *d;
static struct rpcrdma_engine *engine;
static struct rr_svc svc;
static struct rr_ep ep;
static struct rr_rconn c;
static struct rr_post *posted;
static unsigned posts, closes;

void __wrap_rr_ep_post(struct rr_ep *e, struct rr_post *post);
void __wrap_rr_ep_disconnect(struct rr_ep *e);
void __wrap_rr_srv_credit_tick(struct rpcrdma_conn *base);

void __wrap_rr_ep_post(struct rr_ep *e, struct rr_post *post)
{
	assert_ptr_equal(e, &ep);
	assert_int_equal(post->n, 1);
	assert_int_equal(post->first->op, RR_WR_WRITE);
	assert_int_equal(post->first->sge.len, 0);
	posted = post;
	posts++;
	ep.in_flight++;
}

void __wrap_rr_ep_disconnect(struct rr_ep *e)
{
	(void)e;
	closes++;
}

void __wrap_rr_srv_credit_tick(struct rpcrdma_conn *base)
{
	rr_rconn_of(base)->calls = 0;
}

static int setup(void **state)
{
	const struct rpcrdma_peer peer = { .transport = RPCRDMA_RDMA };

	(void)state;
	posts = closes = 0;
	memset(&c, 0, sizeof(c));
	memset(&ep, 0, sizeof(ep));
	list_init(&ep.waiting);
	svc.attr.stall_ms = 3600 * 1000; /* the test runs the timer */
	assert_int_equal(rpcrdma_domain_create(NULL, &d), 0);
	assert_int_equal(rpcrdma_engine_create(d, NULL, &engine), 0);
	rr_conn_init(&c.base, &svc, NULL, &rr_rconn_ops, engine, &peer, NULL);
	c.ep = &ep;
	rr_conn_heard(&c.base);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rpcrdma_timer_cancel(engine, &c.base.timer);
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(d);
	return 0;
}

static void run_tick(void)
{
	c.base.timer.fn(&c.base.timer);
}

static void end_probe(enum rr_wc_status status)
{
	ep.in_flight--;
	posted->fn(posted, status);
}

static void idle_ones_are_probed(void **state)
{
	(void)state;
	c.calls = 1;
	run_tick();
	assert_int_equal(posts, 0); /* it has just called */
	for (unsigned i = 1; i < 5; i++) {
		run_tick();
		assert_int_equal(posts, i);
		end_probe(RR_WC_OK);
	}
	ep.die_soon = true;
	run_tick();
	assert_int_equal(posts, 4);
	assert_int_equal(closes, 0);
}

/* Neither the device nor the peer says anything. */
static void silent_ones_are_closed(void **state)
{
	(void)state;
	run_tick();
	run_tick();
	assert_int_equal(posts, 1);
	assert_int_equal(closes, 1);
}

/* The tick comes while the first call after a probe is in progress. */
static void calls_beside_probes(void **state)
{
	(void)state;
	for (unsigned i = 1; i < 5; i++) {
		run_tick();
		assert_int_equal(posts, i);
		end_probe(RR_WC_OK);
		c.calls++;
		ep.in_flight++; /* its reply, or the RDMA Read of its data */
		run_tick();
		assert_int_equal(closes, 0);
		ep.in_flight--;
		rr_conn_progress(&c.base);
	}
	run_tick();
	end_probe(RR_WC_FLUSHED); /* of that the endpoint tells */
	assert_int_equal(closes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(idle_ones_are_probed), TEST(silent_ones_are_closed), TEST(calls_beside_probes) };

	return cmocka_run_group_tests_name("probes of idle connections", tests, NULL, NULL);
}
