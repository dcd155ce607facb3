/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_drc.c - the duplicate request cache: which calls are the same, which call executes, which
 * calls wait, what is kept
 *
 * Includes the file it tests, so that memory can be short. tests/flow/test_server_once.c has it in a
 * server, test_server_twins.c under many threads.
 */
#include "test_drc.h"

static void once(void **state)
{
	struct drc *d = create(8);
	struct drc_call c = call(1), again = call(1);

	(void)state;
	assert_int_equal(drc_enter(d, &c), DRC_EXECUTE);
	memset(c.res, 0x5a, sizeof(c.res)); /* the longest there is */
	c.res_bytes = sizeof(c.res);
	drc_done(d, &c);
	assert_null(c.entry);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(drc_enter(d, &again), DRC_REPLAY);
		assert_null(again.entry);
		assert_int_equal(again.res_bytes, sizeof(c.res));
		assert_memory_equal(again.res, c.res, sizeof(c.res));
		memset(again.res, 0, sizeof(again.res));
	}
	assert_int_equal(stats(d).hits, 3);
	assert_int_equal(stats(d).entries, 1);
	drc_destroy(d);
}

/* whatever of the key differs makes another call */
static void all_of_the_key(void **state)
{
	struct drc *d = create(100);
	uint8_t other[DRC_CRED_MAX];
	struct drc_call c;

	(void)state;
	execute(d, 1);
	for (size_t i = 0; i < sizeof(c.key); i++) {
		if (i >= offsetof(struct drc_key, cred_bytes))
			break; /* a length: below */
		c = call(1);
		((uint8_t *)&c.key)[i] ^= 0x80;
		assert_int_equal(drc_enter(d, &c), DRC_EXECUTE);
		drc_abandon(d, &c);
	}
	memcpy(other, cred, sizeof(other));
	for (uint32_t i = 0; i < 20; i++) {
		other[i] ^= 1;
		c = call(1);
		c.cred = other;
		assert_int_equal(drc_enter(d, &c), DRC_EXECUTE);
		drc_abandon(d, &c);
		other[i] ^= 1;
	}
	c = call(1);
	c.key.cred_bytes--;
	assert_int_equal(drc_enter(d, &c), DRC_EXECUTE);
	drc_abandon(d, &c);
	assert_true(is_kept(d, 1));
	drc_destroy(d);
}

/* The same hash is not the same call. */
static void equal_hashes(void **state)
{
	struct drc *d = create(8);
	struct drc_call c = call(2);
	struct drc_entry *e;

	(void)state;
	execute(d, 1);
	e = victim(d, &d->shards[0]);
	assert_non_null(e);
	hash_del(&d->shards[0].table, &e->node);
	hash_add(&d->shards[0].table, &e->node, hash_of(d, &c));
	assert_int_equal(drc_enter(d, &c), DRC_EXECUTE);
	drc_abandon(d, &c);
	drc_destroy(d);
}

static struct drc_key key_of_peer(const struct rpcrdma_peer *peer)
{
	struct drc_key k;

	memset(&k, 0x55, sizeof(k));
	drc_key_peer(&k, peer);
	return k;
}

static struct rpcrdma_peer inet_peer(enum rpcrdma_transport transport, const char *addr,
				     uint16_t port)
{
	struct rpcrdma_peer p = { .transport = transport };
	struct sockaddr_in *in = (struct sockaddr_in *)&p.addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&p.addr;

	if (strchr(addr, ':')) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		assert_int_equal(inet_pton(AF_INET6, addr, &in6->sin6_addr), 1);
	} else {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		assert_int_equal(inet_pton(AF_INET, addr, &in->sin_addr), 1);
	}
	return p;
}

static struct rpcrdma_peer local_peer(pid_t pid, uid_t uid)
{
	return (struct rpcrdma_peer){
		.transport = RPCRDMA_LOCAL, .has_cred = true, .pid = pid, .uid = uid
	};
}

static void who_is_calling(void **state)
{
	const struct {
		struct rpcrdma_peer a, b;
		bool same;
	} rows[] = {
		/* a reconnect has another port, perhaps another transport */
		{ inet_peer(RPCRDMA_TCP, "10.0.0.1", 700), inet_peer(RPCRDMA_TCP, "10.0.0.1", 701),
		  true },
		{ inet_peer(RPCRDMA_TCP, "10.0.0.1", 700), inet_peer(RPCRDMA_RDMA, "10.0.0.1", 9),
		  true },
		{ inet_peer(RPCRDMA_TCP, "10.0.0.1", 700),
		  inet_peer(RPCRDMA_TCP, "::ffff:10.0.0.1", 700), true },
		{ inet_peer(RPCRDMA_TCP, "fd00::1", 1), inet_peer(RPCRDMA_RDMA, "fd00::1", 2), true },
		{ inet_peer(RPCRDMA_TCP, "10.0.0.1", 1), inet_peer(RPCRDMA_TCP, "10.0.0.2", 1), false },
		{ inet_peer(RPCRDMA_TCP, "fd00::1", 1), inet_peer(RPCRDMA_TCP, "fd01::1", 1), false },
		{ local_peer(1, 2), local_peer(1, 2), true },
		{ local_peer(1, 2), local_peer(3, 2), false },
		{ local_peer(1, 2), local_peer(1, 3), false },
		{ local_peer(0, 0), inet_peer(RPCRDMA_TCP, "::", 0), false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct drc_key a = key_of_peer(&rows[i].a), b = key_of_peer(&rows[i].b);

		if (!memcmp(&a, &b, sizeof(a)) != rows[i].same)
			fail_msg("row %zu", i);
	}
}

static void joined(void **state)
{
	struct drc *d = create(1); /* what is done is evicted by the next */
	struct drc_call first = call(1), more[3] = { call(1), call(1), call(1) };

	(void)state;
	assert_int_equal(drc_enter(d, &first), DRC_EXECUTE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(drc_enter(d, &more[i]), DRC_JOINED);
	assert_int_equal(woken, 0);
	answer(&first, 42);
	drc_done(d, &first);
	assert_int_equal(woken, 3);
	execute(d, 2);
	assert_false(is_kept(d, 1));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(more[i].verdict, DRC_REPLAY);
		assert_null(more[i].entry);
		assert_answer(&more[i], 42);
	}
	assert_int_equal(stats(d).joins, 3);
	drc_destroy(d);
}

/* A joined call may leave until it has a verdict, which may be before wake() runs. */
static void left(void **state)
{
	struct drc *d = create(8);
	struct drc_call first = call(1), second = call(1), third = call(1);

	(void)state;
	assert_int_equal(drc_enter(d, &first), DRC_EXECUTE);
	assert_int_equal(drc_enter(d, &second), DRC_JOINED);
	assert_int_equal(drc_enter(d, &third), DRC_JOINED);
	assert_true(drc_leave(d, &second));
	drc_abandon(d, &first);
	assert_int_equal(woken, 1);
	assert_int_equal(third.verdict, DRC_EXECUTE);
	assert_false(drc_leave(d, &third));
	assert_int_equal(drc_enter(d, &second), DRC_JOINED);
	answer(&third, 9);
	drc_done(d, &third);
	assert_int_equal(woken, 2);
	assert_false(drc_leave(d, &second));
	assert_answer(&second, 9);
	drc_destroy(d);
}

static void not_executed(void **state)
{
	struct drc *d = create(8);
	struct drc_call first = call(1), second = call(1), third = call(1), fourth = call(1);

	(void)state;
	assert_int_equal(drc_enter(d, &first), DRC_EXECUTE);
	assert_int_equal(drc_enter(d, &second), DRC_JOINED);
	assert_int_equal(drc_enter(d, &third), DRC_JOINED);
	drc_abandon(d, &first); /* one of the others it must be, and the other waits on */
	assert_int_equal(woken, 1);
	assert_int_equal(second.verdict, DRC_EXECUTE);
	assert_non_null(second.entry);
	assert_int_equal(drc_enter(d, &fourth), DRC_JOINED);
	answer(&second, 9);
	drc_done(d, &second);
	assert_int_equal(woken, 3);
	assert_int_equal(third.verdict, DRC_REPLAY);
	assert_answer(&third, 9);
	assert_answer(&fourth, 9);
	/* no call waits: the entry is removed */
	first = call(2);
	assert_int_equal(drc_enter(d, &first), DRC_EXECUTE);
	drc_abandon(d, &first);
	assert_false(is_kept(d, 2));
	assert_int_equal(stats(d).entries, 1);
	assert_int_equal(stats(d).executing, 0);
	drc_destroy(d);
}

/* Few bytes for many entries: tables for all of them would take more than the entries ever can. */
static void tables_within_bytes(void **state)
{
	const struct drc_attr attr = {
		.entries = DRC_ENTRIES_MAX, .bytes = DRC_BYTES_MIN, .keep_ns = DRC_KEEP_NS
	};
	size_t chains = 0;
	struct drc *d;

	(void)state;
	assert_int_equal(drc_create(&attr, &d), 0);
	for (unsigned i = 0; i < d->nshards; i++)
		chains += d->shards[i].table.mask + 1;
	assert_true(chains * sizeof(struct hash_node *) <= DRC_BYTES_MIN / 4);
	for (uint32_t i = 0; i < 1000; i++)
		execute(d, i);
	assert_true(stats(d).bytes <= DRC_BYTES_MIN);
	assert_true(is_kept(d, 999));
	drc_destroy(d);
}

static void so_many_entries(void **state)
{
	struct drc *d = create(8);

	(void)state;
	for (uint32_t xid = 0; xid < 20; xid++) {
		execute(d, xid);
		assert_true(stats(d).entries <= 8);
	}
	assert_int_equal(stats(d).evictions, 12);
	for (uint32_t xid = 12; xid < 20; xid++)
		assert_true(is_kept(d, xid));
	assert_false(is_kept(d, 11)); /* and takes the place of one */
	drc_destroy(d);
}

static void so_many_bytes(void **state)
{
	const struct drc_attr attr = { .entries = 1000, .bytes = 10000, .keep_ns = DRC_KEEP_NS };
	struct drc *d = create_as(&attr);
	struct drc_call c;

	(void)state;
	for (uint32_t xid = 0; xid < 100; xid++) {
		execute(d, xid);
		assert_true(stats(d).bytes <= 10000);
	}
	assert_in_range(stats(d).entries, 10, 30);
	assert_true(is_kept(d, 99));
	/* long credentials need more, and several give way to one */
	for (uint32_t xid = 200; xid < 300; xid++) {
		c = call(xid);
		c.key.cred_bytes = DRC_CRED_MAX;
		assert_int_equal(drc_enter(d, &c), DRC_EXECUTE);
		answer(&c, 1);
		drc_done(d, &c);
		assert_true(stats(d).bytes <= 10000);
	}
	assert_int_equal(drc_enter(d, &c), DRC_REPLAY);
	drc_destroy(d);
}

static void in_progress_stays(void **state)
{
	struct drc *d = create(4);
	struct drc_call out[10], twin[10];

	(void)state;
	execute(d, 100);
	for (uint32_t i = 0; i < 10; i++) {
		out[i] = call(i);
		assert_int_equal(drc_enter(d, &out[i]), DRC_EXECUTE);
	}
	assert_int_equal(stats(d).entries, 10);
	assert_int_equal(stats(d).executing, 10);
	assert_int_equal(stats(d).evictions, 1); /* the one that was done */
	for (uint32_t i = 0; i < 10; i++) {
		twin[i] = call(i);
		assert_int_equal(drc_enter(d, &twin[i]), DRC_JOINED);
	}
	for (uint32_t i = 0; i < 10; i++) {
		answer(&out[i], i + 1);
		drc_done(d, &out[i]);
		assert_answer(&twin[i], i + 1);
	}
	assert_int_equal(woken, 10);
	assert_int_equal(stats(d).entries, 4);
	assert_int_equal(stats(d).executing, 0);
	for (uint32_t i = 6; i < 10; i++)
		assert_true(is_kept(d, i));
	drc_destroy(d);
}

static void recycled(void **state)
{
	struct drc *d = create(16);
	unsigned before;

	(void)state;
	for (uint32_t xid = 0; xid < 16; xid++)
		execute(d, xid);
	before = mallocs;
	for (uint32_t xid = 16; xid < 1000; xid++)
		execute(d, xid);
	for (uint32_t xid = 2000; xid < 2100; xid++)
		assert_false(is_kept(d, xid)); /* given up, again and again */
	assert_int_equal(mallocs, before);
	drc_destroy(d);
}

static void without_memory(void **state)
{
	struct drc *d = create(16);
	struct drc_call c = call(1);

	(void)state;
	no_memory = true;
	assert_int_equal(drc_enter(d, &c), DRC_NO_MEMORY);
	assert_null(c.entry);
	assert_int_equal(stats(d).entries, 0);
	no_memory = false;
	execute(d, 1);
	no_memory = true; /* the client has a share, and an entry needs memory all the same */
	c = call(2);
	assert_int_equal(drc_enter(d, &c), DRC_NO_MEMORY);
	assert_null(c.entry);
	assert_int_equal(stats(d).entries, 1);
	c = call(1); /* what is kept needs none */
	assert_int_equal(drc_enter(d, &c), DRC_REPLAY);
	no_memory = false;
	drc_destroy(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(once),
		cmocka_unit_test(all_of_the_key),
		cmocka_unit_test(equal_hashes),
		cmocka_unit_test(who_is_calling),
		cmocka_unit_test(joined),
		cmocka_unit_test(left),
		cmocka_unit_test(not_executed),
		cmocka_unit_test(tables_within_bytes), cmocka_unit_test(so_many_entries),
		cmocka_unit_test(so_many_bytes),
		cmocka_unit_test(in_progress_stays),
		cmocka_unit_test(recycled),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
