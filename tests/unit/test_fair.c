/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_fair.c - whose turn it is: clients first, then their connections
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <string.h>

#include <cmocka.h>

#include "fair.h"

#define FLOWS 6u
#define ITEMS 400u

/* Flows 0, 1 and 2 are of client 0; 3 of client 1; 4 and 5 of client 2. */
static const unsigned owners[FLOWS] = { 0, 0, 0, 1, 2, 2 };

static struct fair q;
static struct client_of {
	struct fair_client fair;
	unsigned out, max;
} clients[3];
static struct flow_of {
	struct fair_flow fair;
	unsigned out, max;
} flows[FLOWS];
static struct item {
	struct list link;
	unsigned flow, nth;
} items[ITEMS];
static unsigned nitems;

static bool client_may(const struct fair_client *c)
{
	const struct client_of *o = container_of(c, struct client_of, fair);

	return o->out < o->max;
}

static bool flow_may(const struct fair_flow *f)
{
	const struct flow_of *o = container_of(f, struct flow_of, fair);

	return o->out < o->max;
}

static const struct fair_limits none, limits = { client_may, flow_may };

static int setup(void **state)
{
	(void)state;
	fair_init(&q);
	for (unsigned i = 0; i < ARRAY_SIZE(clients); i++) {
		fair_client_init(&clients[i].fair);
		clients[i].out = 0;
		clients[i].max = ITEMS;
	}
	for (unsigned i = 0; i < FLOWS; i++) {
		fair_flow_init(&flows[i].fair, &clients[owners[i]].fair);
		flows[i].out = 0;
		flows[i].max = ITEMS;
	}
	nitems = 0;
	return 0;
}

static struct item *push(unsigned flow)
{
	struct item *it = &items[nitems++];

	it->flow = flow;
	it->nth = nitems;
	list_init(&it->link);
	fair_push(&q, &flows[flow].fair, &it->link);
	return it;
}

static void push_n(unsigned flow, unsigned n)
{
	while (n-- > 0)
		push(flow);
}

static struct item *pop(const struct fair_limits *l)
{
	struct list *n = fair_pop(&q, l);
	struct item *it = n ? list_entry(n, struct item, link) : NULL;

	if (it) {
		assert_false(list_is_linked(&it->link));
		flows[it->flow].out++;
		clients[owners[it->flow]].out++;
	}
	return it;
}

static void expect_flow(unsigned flow)
{
	struct item *it = pop(&none);

	assert_non_null(it);
	assert_int_equal(it->flow, flow);
}

static void test_first_come_in_a_flow(void **state)
{
	unsigned last = 0;

	(void)state;
	assert_true(fair_is_empty(&q));
	assert_null(pop(&none));
	push_n(0, 10);
	assert_false(fair_is_empty(&q));
	for (unsigned i = 0; i < 10; i++) {
		struct item *it = pop(&none);

		assert_non_null(it);
		assert_true(it->nth > last);
		last = it->nth;
	}
	assert_true(fair_is_empty(&q));
	assert_null(pop(&none));
}

static void test_flows_take_turns(void **state)
{
	(void)state;
	push_n(0, 100);
	push_n(1, 2);
	push_n(2, 1);
	expect_flow(0);
	expect_flow(1);
	expect_flow(2);
	expect_flow(0);
	expect_flow(1);
	for (unsigned i = 0; i < 98; i++)
		expect_flow(0);
	assert_true(fair_is_empty(&q));
}

/* However many connections a client has, another client's turn is every second one. */
static void test_clients_take_turns(void **state)
{
	(void)state;
	push_n(0, 50);
	push_n(1, 50);
	push_n(2, 50);
	push_n(3, 3);
	expect_flow(0);
	expect_flow(3);
	expect_flow(1);
	expect_flow(3);
	expect_flow(2);
	expect_flow(3);
	expect_flow(0);
	expect_flow(1);
}

static void test_who_comes_back_is_last(void **state)
{
	(void)state;
	push_n(0, 2);
	push_n(3, 1);
	push_n(4, 1);
	expect_flow(0);
	expect_flow(3);
	push(3); /* client 1 had its turn: client 2 has not */
	expect_flow(4);
	expect_flow(0);
	expect_flow(3);
	assert_true(fair_is_empty(&q));
}

static void test_shares(void **state)
{
	unsigned got[FLOWS] = { 0 };
	struct item *it;

	(void)state;
	for (unsigned i = 0; i < FLOWS; i++)
		push_n(i, 20);
	clients[0].max = 10;
	clients[1].max = 0;
	flows[1].max = 2;
	flows[4].max = 1;
	while ((it = pop(&limits)) != NULL)
		got[it->flow]++;
	assert_int_equal(got[0] + got[1] + got[2], 10);
	assert_int_equal(got[0], 4);
	assert_int_equal(got[1], 2);
	assert_int_equal(got[2], 4);
	assert_int_equal(got[3], 0);
	assert_int_equal(got[4], 1);
	assert_int_equal(got[5], 20);
	assert_false(fair_is_empty(&q));
	clients[1].max = 1;
	it = pop(&limits);
	assert_non_null(it);
	assert_int_equal(it->flow, 3);
	assert_null(pop(&limits));
	clients[0].out--; /* one of client 0's is done */
	flows[2].out--;
	it = pop(&limits);
	assert_non_null(it);
	assert_int_equal(owners[it->flow], 0);
	assert_null(pop(&limits));
}

static void test_items_go(void **state)
{
	struct item *a, *b, *c, *d;

	(void)state;
	a = push(0);
	b = push(0);
	c = push(1);
	d = push(3);
	fair_del(&flows[0].fair, &a->link);
	fair_del(&flows[3].fair, &d->link);
	assert_ptr_equal(pop(&none), b);
	fair_del(&flows[1].fair, &c->link);
	assert_true(fair_is_empty(&q));
	assert_null(pop(&none));
	push(3);
	expect_flow(3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_first_come_in_a_flow, setup),
		cmocka_unit_test_setup(test_flows_take_turns, setup),
		cmocka_unit_test_setup(test_clients_take_turns, setup),
		cmocka_unit_test_setup(test_who_comes_back_is_last, setup),
		cmocka_unit_test_setup(test_shares, setup),
		cmocka_unit_test_setup(test_items_go, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
