/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_drc_shares.c - the shares of clients in the duplicate request cache, and how long entries are kept
 */
#include "test_drc.h"

static struct drc_call call_of(uint64_t client, uint32_t xid)
{
	struct drc_call c = call(xid);

	c.key.local_id[1] = (uint32_t)client;
	c.client.key = client;
	return c;
}

static void execute_of(struct drc *d, uint64_t client, uint32_t xid)
{
	struct drc_call c = call_of(client, xid);

	assert_int_equal(drc_enter(d, &c), DRC_EXECUTE);
	answer(&c, xid + 1);
	drc_done(d, &c);
}

/* Looks for an entry without drc_enter(), which might evict another one. */
static bool has(struct drc *d, uint64_t client, uint32_t xid)
{
	struct drc_call c = call_of(client, xid);
	uint64_t hash = hash_of(d, &c);

	return find(shard_of(d, hash), hash, &c);
}

/* A client with many calls does not evict entries of a client that has no more than its share. */
static void shares(void **state)
{
	struct drc *d = create(8);
	uint32_t xid = 0;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		execute_of(d, 1, i);
	while (xid < 100)
		execute_of(d, 2, xid++);
	assert_int_equal(stats(d).clients, 2);
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(has(d, 1, i));
		assert_true(has(d, 2, xid - 1 - i));
	}
	assert_false(has(d, 2, xid - 5));
	/* a client may exceed its share while there is room; with four clients each has two entries */
	for (uint64_t client = 3; client < 5; client++) {
		for (uint32_t i = 0; i < 100; i++)
			execute_of(d, client, i);
	}
	for (uint64_t client = 1; client < 5; client++) {
		uint32_t last = client == 1 ? 3 : 99;

		assert_true(has(d, client, last));
		assert_true(has(d, client, last - 1));
		assert_false(has(d, client, last - 2));
	}
	assert_int_equal(stats(d).entries, 8);
	drc_destroy(d);
}

static size_t size_in(struct drc *d, uint64_t client)
{
	const struct rpcrdma_client_id id = call_of(client, 0).client;
	const struct share *sh = find_share(d, &d->shards[0], &id);

	return sh ? sh->n : 0;
}

/* Calls of several clients begin, end and are abandoned; one client makes far more of them. Only a client with more
 * than its share, calls in progress included, loses an entry to others. */
static void shares_at_random(void **state)
{
	enum { ENTRIES = 24, CLIENTS = 6, SHARE = ENTRIES / CLIENTS, OUT = 3 };
	struct drc_call out[CLIENTS][OUT];
	bool is_out[CLIENTS][OUT] = { 0 };
	struct drc *d = create(ENTRIES);
	uint64_t random = 1;
	unsigned lost = 0;

	(void)state;
	for (uint32_t xid = 1; xid < 20000; xid++) {
		unsigned client, slot;
		size_t want[CLIENTS];

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
		client = (unsigned)(random >> 33) % CLIENTS;
		client = client && random >> 62 ? 1 : client;
		slot = (unsigned)(random >> 40) % OUT;
		for (unsigned c = 0; c < CLIENTS; c++)
			want[c] = size_in(d, c);
		if (!is_out[client][slot]) {
			want[client]++;
			out[client][slot] = call_of(client, xid);
			assert_int_equal(drc_enter(d, &out[client][slot]), DRC_EXECUTE);
		} else if (random >> 60 & 1) {
			want[client]--;
			drc_abandon(d, &out[client][slot]);
		} else {
			answer(&out[client][slot], 1);
			drc_done(d, &out[client][slot]);
		}
		is_out[client][slot] = !is_out[client][slot];
		for (unsigned c = 0; c < CLIENTS; c++) {
			size_t n = size_in(d, c);

			assert_true(n == want[c] || (n < want[c] && n >= SHARE));
			lost += n < want[c];
		}
		assert_true(stats(d).entries <= ENTRIES);
	}
	assert_int_equal(stats(d).evictions, lost);
	assert_int_equal(stats(d).clients, CLIENTS);
	for (unsigned c = 0; c < CLIENTS; c++) {
		for (unsigned i = 0; i < OUT; i++) {
			if (is_out[c][i])
				drc_abandon(d, &out[c][i]);
		}
	}
	drc_destroy(d);
}

/* The entries of a client that was idle for DRC_KEEP_NS are evicted when there is no room. */
static void silent_clients(void **state)
{
	struct drc *d = create(8);

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		execute_of(d, 1, i);
	time_ns += DRC_KEEP_NS - 1;
	for (uint32_t i = 0; i < 20; i++)
		execute_of(d, 2, i);
	assert_true(has(d, 1, 0));
	time_ns += 1;
	assert_true(has(d, 1, 0));
	execute_of(d, 2, 20);
	assert_false(has(d, 1, 0));
	assert_true(has(d, 1, 1));
	execute_of(d, 1, 100); /* the client is active again, and its old entries are kept */
	for (uint32_t i = 21; i < 40; i++)
		execute_of(d, 2, i);
	assert_true(has(d, 1, 1));
	time_ns += DRC_KEEP_NS;
	for (uint32_t i = 40; i < 48; i++)
		execute_of(d, 2, i);
	assert_false(has(d, 1, 100));
	assert_int_equal(stats(d).clients, 1);
	for (uint32_t i = 40; i < 48; i++)
		assert_true(has(d, 2, i));
	drc_destroy(d);
}

/* The memory for clients is bounded as well. */
static void many_clients(void **state)
{
	const struct drc_attr attr = { .entries = 1000, .bytes = 20000, .keep_ns = DRC_KEEP_NS };
	struct drc *d = create_as(&attr);

	(void)state;
	for (uint32_t i = 0; i < 5000; i++) {
		execute_of(d, i, 1);
		assert_true(stats(d).bytes <= attr.bytes);
		assert_int_equal(stats(d).clients, stats(d).entries);
		assert_true(has(d, i, 1));
	}
	assert_in_range(stats(d).entries, 20, 40);
	drc_destroy(d);
}

/* Entries of WRITEs expire: a restarted client may reuse XIDs with other data. */
static void entries_that_end(void **state)
{
	const struct drc_attr attr = {
		.entries = 8, .bytes = 1u << 20, .keep_ns = DRC_KEEP_WRITE_NS, .ends = true
	};
	struct drc *d = create_as(&attr);
	struct drc_call c = call(7), again = call(7);

	(void)state;
	execute(d, 1);
	time_ns += DRC_KEEP_WRITE_NS - 1;
	assert_true(is_kept(d, 1));
	time_ns += 1;
	assert_false(is_kept(d, 1));
	assert_int_equal(stats(d).entries, 0);
	execute(d, 1);
	assert_true(is_kept(d, 1));
	/* the time starts at the end of the call: a retransmission joins a call in progress */
	assert_int_equal(drc_enter(d, &c), DRC_EXECUTE);
	time_ns += 2 * DRC_KEEP_WRITE_NS;
	assert_int_equal(drc_enter(d, &again), DRC_JOINED);
	answer(&c, 8);
	drc_done(d, &c);
	assert_int_equal(again.verdict, DRC_REPLAY);
	assert_true(is_kept(d, 7));
	assert_false(is_kept(d, 1));
	drc_destroy(d);
	/* entries of the other cache do not expire */
	d = create(8);
	execute(d, 1);
	time_ns += 100 * DRC_KEEP_NS;
	assert_true(is_kept(d, 1));
	drc_destroy(d);
}

/* A large cache has several shards, whose entries add up to the configured number. */
static void many_shards(void **state)
{
	const struct drc_attr attr = { .entries = 32768, .bytes = (32u << 20) };
	struct drc *d = create_as(&attr);
	unsigned kept = 0;

	(void)state;
	assert_int_equal(d->nshards, SHARDS_MAX);
	for (uint32_t xid = 0; xid < 40000; xid++)
		execute(d, xid);
	assert_true(stats(d).entries <= 32768);
	assert_true(stats(d).bytes <= (32u << 20));
	for (unsigned i = 0; i < d->nshards; i++)
		kept += d->shards[i].allocated > 1500;
	assert_int_equal(kept, SHARDS_MAX); /* evenly filled */
	for (uint32_t xid = 39000; xid < 40000; xid++)
		assert_true(is_kept(d, xid));
	drc_destroy(d);
	drc_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares),
		cmocka_unit_test(shares_at_random),
		cmocka_unit_test(silent_clients),
		cmocka_unit_test(many_clients),
		cmocka_unit_test(entries_that_end),
		cmocka_unit_test(many_shards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
