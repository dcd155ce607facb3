/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_account.c - which connections are one client, and what a client may hold
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>

#include <cmocka.h>

#include "account.h"

static struct rpcrdma_client_id id_of(const char *addr)
{
	struct rpcrdma_peer peer = { .transport = RPCRDMA_TCP };
	struct sockaddr_in *in = (void *)&peer.addr;
	struct sockaddr_in6 *in6 = (void *)&peer.addr;
	struct rpcrdma_client_id id;

	if (inet_pton(AF_INET, addr, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(700);
	} else {
		assert_int_equal(inet_pton(AF_INET6, addr, &in6->sin6_addr), 1);
		in6->sin6_family = AF_INET6;
		in6->sin6_scope_id = 3;
	}
	rpcrdma_client_id_of(&peer, &id);
	return id;
}

static struct rpcrdma_client_id id_of_user(uid_t uid, pid_t pid)
{
	struct rpcrdma_peer peer = { .transport = RPCRDMA_LOCAL, .has_cred = true, .uid = uid, .pid = pid };
	struct rpcrdma_client_id id;

	rpcrdma_client_id_of(&peer, &id);
	return id;
}

static bool is_same(struct rpcrdma_client_id a, struct rpcrdma_client_id b)
{
	return !memcmp(&a, &b, sizeof(a));
}

static void test_identity(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} cases[] = {
		{ "127.0.0.1", "127.255.0.9", true },
		{ "127.0.0.1", "::1", true },
		{ "127.0.0.1", "::ffff:127.0.0.2", true },
		{ "127.0.0.1", "128.0.0.1", false },
		{ "192.0.2.1", "::ffff:192.0.2.1", true },
		{ "192.0.2.1", "192.0.2.2", false },
		{ "2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true },
		{ "2001:db8:0:1::1", "2001:db8:0:2::1", false },
		{ "::2", "::1", false },
		{ "0.0.0.2", "::2", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(is_same(id_of(cases[i].a), id_of(cases[i].b)), cases[i].same);
	assert_true(is_same(id_of_user(1000, 7), id_of_user(1000, 8)));
	assert_false(is_same(id_of_user(1000, 7), id_of_user(1001, 7)));
	assert_int_equal(id_of("2001:db8::1").scope, 0); /* only a link-local address needs it */
	assert_int_equal(id_of("fe80::1").scope, 3);
}

static void check_print(struct rpcrdma_client_id id, const char *want)
{
	char buf[64];

	assert_string_equal(rpcrdma_client_id_print(&id, buf, sizeof(buf)), want);
}

static void test_print(void **state)
{
	struct rpcrdma_peer nobody = { .transport = RPCRDMA_LOCAL };
	struct rpcrdma_client_id id;

	(void)state;
	check_print(id_of_user(4294967294u, 1), "uid 4294967294");
	check_print(id_of("127.3.2.1"), "loopback");
	check_print(id_of("192.0.2.255"), "192.0.2.255");
	check_print(id_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
	check_print(id_of("fe80::1"), "fe80::%3/64");
	rpcrdma_client_id_of(&nobody, &id);
	check_print(id, "unknown");
}

static struct rr_client *get(struct rr_clients *all, uid_t uid)
{
	struct rpcrdma_client_id id = id_of_user(uid, 1);
	struct rr_client *c;

	assert_int_equal(rr_client_get(all, &id, &c), 0);
	return c;
}

static void test_references(void **state)
{
	struct rr_client *a, *b, *c;
	struct rr_clients all;

	(void)state;
	rr_clients_init(&all);
	a = get(&all, 1);
	b = get(&all, 1);
	c = get(&all, 2);
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, c);
	assert_int_equal(all.n, 2);
	rr_client_hold(c);
	rr_client_put(c);
	rr_client_put(a);
	assert_int_equal(all.n, 2);
	rr_client_put(b);
	assert_int_equal(all.n, 1);
	rr_client_put(c);
	assert_int_equal(all.n, 0);
	assert_null(all.tree);
	rr_client_put(NULL);
	rr_clients_fini(&all);
}

/* takes units of one until there are no more for this client */
static size_t take_all(struct rr_client *c)
{
	size_t n = 0;

	while (!rr_client_charge(c, RR_SHARE_CONNS, 1))
		n++;
	return n;
}

static void test_shares(void **state)
{
	struct rr_client *a, *b, *c;
	struct rr_clients all;

	(void)state;
	rr_clients_init(&all);
	all.budgets[RR_SHARE_CONNS].max = 1000;
	a = get(&all, 1);
	b = get(&all, 2);
	c = get(&all, 3);
	assert_int_equal(rr_client_fair(&all, RR_SHARE_CONNS), 333);
	assert_int_equal(take_all(a), 500); /* half of it, alone */
	assert_int_equal(take_all(b), 250); /* and there is always something left */
	assert_int_equal(take_all(c), 125);
	assert_int_equal(take_all(a), 0);
	rr_client_uncharge(a, RR_SHARE_CONNS, 500);
	assert_int_equal(rr_client_used(a, RR_SHARE_CONNS), 0);
	assert_int_equal(take_all(b) + take_all(c) > 0, 1);
	rr_client_uncharge(b, RR_SHARE_CONNS, rr_client_used(b, RR_SHARE_CONNS));
	rr_client_uncharge(c, RR_SHARE_CONNS, rr_client_used(c, RR_SHARE_CONNS));
	assert_int_equal(all.budgets[RR_SHARE_CONNS].used, 0);

	all.budgets[RR_SHARE_CONNS].factor = 3;
	assert_int_equal(take_all(a), 750);
	rr_client_uncharge(a, RR_SHARE_CONNS, 750);

	/* no sum wraps */
	assert_int_equal(rr_client_charge(a, RR_SHARE_CONNS, SIZE_MAX), -ENOBUFS);
	assert_int_equal(rr_client_charge(a, RR_SHARE_MSGS, SIZE_MAX), 0);
	assert_int_equal(rr_client_charge(b, RR_SHARE_MSGS, 1), -ENOBUFS);
	rr_client_uncharge(a, RR_SHARE_MSGS, SIZE_MAX);
	all.budgets[RR_SHARE_CONNS].max = 1;
	assert_int_equal(take_all(a), 1); /* the last unit is not unreachable */
	rr_client_uncharge(a, RR_SHARE_CONNS, 1);
	rr_client_put(a);
	rr_client_put(b);
	rr_client_put(c);
	rr_clients_fini(&all);
}

#define CHARGES 100000

struct refused {
	struct rr_client *c;
	size_t amount;
	_Atomic unsigned tries;
	atomic_bool stop;
	unsigned served;
};

/* Takes all that it gets. Return: how much that is */
static size_t grab(struct rr_client *c)
{
	size_t n = 0;

	while (!rr_client_charge(c, RR_SHARE_RECVS, 4096))
		n += 4096;
	return n;
}

/* Clients that arrive one by one and keep what they get leave memory to those that arrive later. */
static void test_one_after_the_other(void **state)
{
	enum { GREEDY = 6, LATE = 8 };
	const size_t max = (size_t)64 << 20;
	struct rr_client *c[GREEDY + LATE];
	size_t got[GREEDY + LATE], all = 0;
	struct rr_clients clients;

	(void)state;
	rr_clients_init(&clients);
	clients.budgets[RR_SHARE_RECVS] = (struct rr_budget){ .max = max, .factor = 3, .kept = 4 };
	for (unsigned i = 0; i < ARRAY_SIZE(c); i++) {
		struct rpcrdma_client_id id = id_of_user(i, 1);

		assert_int_equal(rr_client_get(&clients, &id, &c[i]), 0);
	}
	/* one alone has three quarters; eight more a thirty-second part each, and a ninth nothing */
	got[0] = grab(c[0]);
	assert_int_equal(got[0], max / 4 * 3);
	for (unsigned i = GREEDY; i < GREEDY + LATE; i++) {
		got[i] = grab(c[i]);
		assert_int_equal(got[i], max / 32);
	}
	assert_int_equal(grab(c[1]), 0);
	rr_client_uncharge(c[0], RR_SHARE_RECVS, got[0]);
	for (unsigned i = GREEDY; i < GREEDY + LATE; i++)
		rr_client_uncharge(c[i], RR_SHARE_RECVS, got[i]);
	/* the reserve is only for clients that hold little */
	rr_client_add(c[0], RR_SHARE_RECVS, max / 4);
	rr_client_add(c[1], RR_SHARE_RECVS, max / 2);
	assert_int_equal(grab(c[0]), 0);
	assert_int_equal(rr_client_charge(c[2], RR_SHARE_RECVS, max / 32 + 4096), -ENOBUFS);
	assert_int_equal(rr_client_charge(c[2], RR_SHARE_RECVS, max / 32), 0);
	rr_client_uncharge(c[0], RR_SHARE_RECVS, max / 4);
	rr_client_uncharge(c[1], RR_SHARE_RECVS, max / 2);
	rr_client_uncharge(c[2], RR_SHARE_RECVS, max / 32);
	/* idle memory that cannot be allocated counts as used */
	clients.budgets[RR_SHARE_RECVS].idle = max / 2;
	assert_false(rr_client_leaves(c[0], RR_SHARE_RECVS, max / 8 + 4096));
	assert_true(rr_client_leaves(c[0], RR_SHARE_RECVS, max / 8));
	assert_int_equal(rr_client_room(c[0], RR_SHARE_RECVS, 2), max / 2);
	got[0] = grab(c[0]);
	assert_int_equal(got[0], max / 4);
	assert_false(rr_client_fits(c[0], RR_SHARE_RECVS, 4096));
	assert_true(rr_client_fits(c[1], RR_SHARE_RECVS, max / 32));
	rr_client_uncharge(c[0], RR_SHARE_RECVS, got[0]);
	clients.budgets[RR_SHARE_RECVS].idle = 0;
	/* of a small budget, what a connection begins with is little */
	clients.budgets[RR_SHARE_RECVS].max = 1 << 20;
	for (unsigned i = 0; i < GREEDY; i++) {
		got[i] = grab(c[i]);
		all += got[i];
		assert_true(i > 4 || got[i] >= 48 << 10);
	}
	assert_in_range(all, (1 << 20) - 4096, 1 << 20);
	for (unsigned i = 0; i < ARRAY_SIZE(c); i++) {
		if (i < GREEDY)
			rr_client_uncharge(c[i], RR_SHARE_RECVS, got[i]);
		rr_client_put(c[i]);
	}
	rr_clients_fini(&clients);
}

static void *be_refused(void *arg)
{
	struct refused *r = arg;

	while (!atomic_load(&r->stop)) {
		if (!rr_client_charge(r->c, RR_SHARE_CONNS, r->amount)) {
			rr_client_uncharge(r->c, RR_SHARE_CONNS, r->amount);
			r->served++;
		}
		atomic_fetch_add(&r->tries, 1);
	}
	return NULL;
}

/* Charges that are refused at the same time change nothing for those that fit. */
static void beside_refused(struct rr_client *mine, struct rr_client *other)
{
	struct refused r = { .c = other, .amount = 60 };
	unsigned refused = 0;
	pthread_t thread;

	assert_int_equal(rr_client_charge(other, RR_SHARE_CONNS, 30), 0);
	assert_int_equal(pthread_create(&thread, NULL, be_refused, &r), 0);
	while (!atomic_load(&r.tries))
		sched_yield();
	for (unsigned i = 0; i < CHARGES || atomic_load(&r.tries) < CHARGES; i++) {
		if (rr_client_charge(mine, RR_SHARE_CONNS, 40))
			refused++;
		else
			rr_client_uncharge(mine, RR_SHARE_CONNS, 40);
	}
	atomic_store(&r.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(refused, 0);
	assert_int_equal(r.served, 0);
	rr_client_uncharge(other, RR_SHARE_CONNS, 30);
	assert_int_equal(mine->all->budgets[RR_SHARE_CONNS].used, 0);
}

static void test_refused_changes_nothing(void **state)
{
	struct rr_client *a, *b;
	struct rr_clients all;

	(void)state;
	rr_clients_init(&all);
	all.budgets[RR_SHARE_CONNS].max = 100; /* of which 30 are held: 40 more fit, 60 more do not */
	a = get(&all, 1);
	b = get(&all, 2);
	beside_refused(a, b);
	beside_refused(a, a);
	rr_client_put(a);
	rr_client_put(b);
	rr_clients_fini(&all);
}

/* what one of two threads took, one by one, until there was no more */
static void *take_until_full(void *arg)
{
	return (void *)take_all(arg);
}

/* Threads that race for the rest of a share get one more than it each at most. */
static void test_race_for_the_rest(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		struct rr_client *c;
		struct rr_clients all;
		pthread_t thread;
		void *theirs;
		size_t n;

		rr_clients_init(&all);
		all.budgets[RR_SHARE_CONNS].max = 2000;
		all.budgets[RR_SHARE_CONNS].factor = 3;
		c = get(&all, 1);
		assert_int_equal(pthread_create(&thread, NULL, take_until_full, c), 0);
		n = take_all(c);
		pthread_join(thread, &theirs);
		assert_int_equal(n + (size_t)theirs, rr_client_used(c, RR_SHARE_CONNS));
		assert_in_range(n + (size_t)theirs, 1500, 1502);
		rr_client_uncharge(c, RR_SHARE_CONNS, n + (size_t)theirs);
		assert_int_equal(all.budgets[RR_SHARE_CONNS].used, 0);
		rr_client_put(c);
		rr_clients_fini(&all);
	}
}

static void add_conns(struct rr_client *c, struct rr_client_conn *conns, unsigned n, uint64_t heard_ns)
{
	for (unsigned i = 0; i < n; i++) {
		list_init(&conns[i].link);
		conns[i].going = conns[i].msg_out = false;
		atomic_init(&conns[i].heard_ns, heard_ns + i);
		rr_client_conn_add(c, &conns[i]);
		rr_client_add(c, RR_SHARE_CONNS, 1);
	}
}

/* Only a client above an equal share loses connections, and only those above it. */
static void test_idlest(void **state)
{
	struct rr_client_conn of_a[4], of_b[4];
	struct rr_client *a, *b;
	struct rr_clients all;

	(void)state;
	rr_clients_init(&all);
	all.budgets[RR_SHARE_CONNS].max = 6;
	all.budgets[RR_SHARE_CONNS].factor = 6;
	b = get(&all, 2);
	add_conns(b, of_b, 2, 10); /* longest */
	a = get(&all, 1);
	add_conns(a, of_a, 4, 100);
	atomic_store(&of_a[0].heard_ns, 1000);
	assert_ptr_equal(rr_client_idlest(&all), &of_a[1]);
	assert_null(rr_client_idlest(&all)); /* when that one has gone it has three of six */
	assert_false(rr_client_conn_del(a, &of_a[1]));
	rr_client_conn_told(a, &of_a[1]);
	assert_null(rr_client_idlest(&all));
	assert_true(rr_client_conn_del(a, &of_a[1]));
	rr_client_conn_left(a, true);
	assert_null(rr_client_idlest(&all));
	add_conns(b, of_b + 2, 2, 5);
	assert_ptr_equal(rr_client_idlest(&all), &of_b[2]);
	rr_client_conn_told(b, &of_b[2]);
	assert_true(rr_client_conn_del(b, &of_b[2]));
	rr_client_conn_left(b, true);
	assert_true(rr_client_conn_del(b, &of_b[3]));
	rr_client_conn_left(b, false);
	assert_int_equal(rr_client_used(b, RR_SHARE_CONNS), 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(rr_client_conn_del(b, &of_b[i]));
		assert_true(rr_client_conn_del(b, &of_b[i]));
	}
	assert_true(rr_client_conn_del(a, &of_a[0]));
	assert_true(rr_client_conn_del(a, &of_a[2]));
	assert_true(rr_client_conn_del(a, &of_a[3]));
	rr_client_uncharge(a, RR_SHARE_CONNS, 3);
	rr_client_uncharge(b, RR_SHARE_CONNS, 2);
	rr_client_put(a);
	rr_client_put(b);
	rr_clients_fini(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_print),
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_refused_changes_nothing),
		cmocka_unit_test(test_race_for_the_rest),
		cmocka_unit_test(test_idlest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
