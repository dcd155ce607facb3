/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_client_scratch.c - memory for long replies, and workers for long jobs: what a client may hold of them
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/base/client.h"

#define PIECE ((size_t)1 << 20)
#define PIECES (CLIENT_SCRATCH_BYTES / PIECE)

static struct client *client_of(struct clients *all, uid_t uid)
{
	struct rpcrdma_peer peer = { .transport = RPCRDMA_LOCAL, .has_cred = true, .uid = uid };
	struct client *c;

	assert_int_equal(client_get(all, &peer, &c), 0);
	return c;
}

/* takes all that @c may have; Return: how much */
static unsigned fill(struct client *c, void **mem)
{
	unsigned n = 0;

	while (n < PIECES && (mem[n] = client_scratch_get(c, PIECE)) != NULL)
		n++;
	return n;
}

static void nobody_has_all(void **state)
{
	struct clients all = { 0 };
	void *greedy_has[PIECES], *other_has[PIECES], *mem;
	struct client *greedy, *other, *third;
	unsigned n, k;

	(void)state;
	clients_init(&all);
	greedy = client_of(&all, 1000);
	other = client_of(&all, 1001);
	third = client_of(&all, 1002);
	n = fill(greedy, greedy_has);
	assert_int_equal(n, PIECES / 2);
	k = fill(other, other_has);
	assert_int_equal(k, PIECES / 4);
	mem = client_scratch_get(third, PIECE);
	assert_non_null(mem);
	client_scratch_put(third, mem, PIECE);
	assert_null(client_scratch_get(third, CLIENT_SCRATCH_BYTES + 1));
	assert_null(client_scratch_get(third, SIZE_MAX));
	while (n)
		client_scratch_put(greedy, greedy_has[--n], PIECE);
	while (k)
		client_scratch_put(other, other_has[--k], PIECE);
	client_scratch_put(other, NULL, PIECE);
	assert_int_equal(fill(other, other_has), PIECES / 2); /* all of it came back */
	for (unsigned i = 0; i < PIECES / 2; i++)
		client_scratch_put(other, other_has[i], PIECE);
	client_put(greedy);
	client_put(other);
	client_put(third);
	clients_fini(&all);
}

static unsigned begin_all(struct client *c)
{
	unsigned n = 0;

	while (n < 100 && client_begin_long(c))
		n++;
	return n;
}

static void end_all(struct client *c, unsigned n)
{
	while (n--)
		client_end_long(c);
}

/* Clients in turn begin as many long jobs as they may. */
static void long_jobs(void **state)
{
	static const struct {
		unsigned threads, want[4];
	} cases[] = { { 1, { 1, 0, 0, 0 } }, { 7, { 1, 0, 0, 0 } }, { 16, { 2, 1, 1, 0 } }, { 64, { 8, 4, 2, 1 } } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct clients all = { 0 };
		struct client *c[4];

		assert_int_equal(worker_pool_create(cases[i].threads, &all.workers), 0);
		clients_init(&all);
		for (unsigned k = 0; k < 4; k++) {
			c[k] = client_of(&all, 1000 + k);
			assert_int_equal(begin_all(c[k]), cases[i].want[k]);
		}
		for (unsigned k = 0; k < 4; k++)
			end_all(c[k], cases[i].want[k]);
		assert_int_equal(begin_all(c[3]), cases[i].want[0]); /* all are free again */
		end_all(c[3], cases[i].want[0]);
		for (unsigned k = 0; k < 4; k++)
			client_put(c[k]);
		clients_fini(&all);
		worker_pool_destroy(all.workers);
	}
}

/* So of requests that wait for other servers. */
static void waits(void **state)
{
	struct clients all = { 0 };
	struct client *c[3];
	unsigned n[3] = { 0 };

	(void)state;
	clients_init(&all);
	for (unsigned k = 0; k < ARRAY_SIZE(c); k++) {
		c[k] = client_of(&all, 1000 + k);
		while (n[k] < 2 * CLIENT_WAITS && client_begin_wait(c[k]))
			n[k]++;
	}
	assert_int_equal(n[0], CLIENT_WAITS / 2);
	assert_int_equal(n[1], CLIENT_WAITS / 4);
	assert_int_equal(n[2], CLIENT_WAITS / 8);
	for (unsigned k = 0; k < ARRAY_SIZE(c); k++) {
		while (n[k]--)
			client_end_wait(c[k]);
		client_put(c[k]);
	}
	assert_int_equal(all.waits, 0);
	clients_fini(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_has_all),
		cmocka_unit_test(long_jobs),
		cmocka_unit_test(waits),
	};

	return cmocka_run_group_tests_name("client_scratch", tests, NULL, NULL);
}
