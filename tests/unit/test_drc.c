/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_drc.c - the duplicate request cache: what is the same call, who executes, who waits, what is kept
 *
 * Includes the file it tests, so that memory can be short. tests/flow/test_server_once.c has it in a
 * server, test_server_twins.c under many threads.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static unsigned mallocs;
static bool no_memory;

static void *counted_malloc(size_t n)
{
	mallocs++;
	return no_memory ? NULL : malloc(n);
}

#include "base/clock.h"

static uint64_t time_ns;

static int fake_clock(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	ts->tv_sec = (time_t)(time_ns / NS_PER_S);
	ts->tv_nsec = (long)(time_ns % NS_PER_S);
	return 0;
}

#define malloc counted_malloc
#define clock_gettime fake_clock
#include "drc.c"
#undef malloc
#undef clock_gettime

#include "base/wire.h"

static const uint8_t cred[DRC_CRED_MAX] = "stamp, machine, ids";
static unsigned woken;

static void on_wake(struct drc_call *c)
{
	(void)c;
	woken++;
}

static struct drc_call call(uint32_t xid)
{
	struct drc_call c = {
		.key = { .local = 1, .who = { 100, 1000 }, .xid = xid, .prog = 100003, .vers = 3,
			 .proc = 9, .args_bytes = 40, .args_hash = 77, .cred_flavor = 1,
			 .cred_bytes = 20 },
		.client = { .kind = RPCRDMA_CLIENT_USER, .key = 1000 },
		.cred = cred,
		.wake = on_wake,
	};

	return c;
}

static void answer(struct drc_call *c, uint32_t word)
{
	put_be32(c->res, word);
	c->res_bytes = 4;
}

static void assert_answer(const struct drc_call *c, uint32_t word)
{
	assert_int_equal(c->res_bytes, 4);
	assert_int_equal(get_be32(c->res), word);
}

static void execute(struct drc *d, uint32_t xid)
{
	struct drc_call c = call(xid);

	assert_int_equal(drc_enter(d, &c), DRC_EXECUTE);
	answer(&c, xid + 1);
	drc_done(d, &c);
}

static bool is_kept(struct drc *d, uint32_t xid)
{
	struct drc_call c = call(xid);

	if (drc_enter(d, &c) == DRC_REPLAY) {
		assert_answer(&c, xid + 1);
		return true;
	}
	drc_abandon(d, &c);
	return false;
}

static struct drc_stats stats(struct drc *d)
{
	struct drc_stats s = { 0 };

	drc_stats(d, &s);
	return s;
}

static struct drc *create_as(const struct drc_attr *attr)
{
	struct drc *d;

	assert_int_equal(drc_create(attr, &d), 0);
	woken = 0;
	return d;
}

static struct drc *create(size_t entries)
{
	const struct drc_attr attr = { .entries = entries, .bytes = 1u << 20, .keep_ns = DRC_KEEP_NS };

	return create_as(&attr);
}

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

/* Who joined may leave until the verdict is there, which may be before wake() runs. */
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
	/* nobody waits: it never was */
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

/* ---- shares ---- */

static struct drc_call call_of(uint64_t client, uint32_t xid)
{
	struct drc_call c = call(xid);

	c.key.who[1] = (uint32_t)client;
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

/* looks, and changes nothing: an entry of a new call might take the place of another */
static bool has(struct drc *d, uint64_t client, uint32_t xid)
{
	struct drc_call c = call_of(client, xid);
	uint64_t hash = hash_of(d, &c);

	return find(shard_of(d, hash), hash, &c);
}

/* However many calls a client makes, it takes no more of the cache than is over. */
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
	/* more than its share the first one may have as well, if nobody else wants it: two by two now */
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

/* Calls that begin, end and are given up, of clients of which one calls far more often: whoever loses an
 * entry to others has more than its share, those in progress counted. */
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

/* Who has been silent for long keeps its entries as long as there is room, and no longer. */
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
	execute_of(d, 1, 100); /* it is back: two that are old, and two from the other one */
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

/* More clients than entries: what is noted of them is bounded, too. */
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

/* WRITEs: a client that starts again may have the XIDs that it had, and other data. */
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
	/* one that takes long is waited for: the time counts from its end */
	assert_int_equal(drc_enter(d, &c), DRC_EXECUTE);
	time_ns += 2 * DRC_KEEP_WRITE_NS;
	assert_int_equal(drc_enter(d, &again), DRC_JOINED);
	answer(&c, 8);
	drc_done(d, &c);
	assert_int_equal(again.verdict, DRC_REPLAY);
	assert_true(is_kept(d, 7));
	assert_false(is_kept(d, 1));
	drc_destroy(d);
	/* the other cache has no such end */
	d = create(8);
	execute(d, 1);
	time_ns += 100 * DRC_KEEP_NS;
	assert_true(is_kept(d, 1));
	drc_destroy(d);
}

/* A large cache has several shards: together they keep what was asked for. */
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
		cmocka_unit_test(shares),
		cmocka_unit_test(shares_at_random),
		cmocka_unit_test(silent_clients),
		cmocka_unit_test(many_clients),
		cmocka_unit_test(entries_that_end),
		cmocka_unit_test(many_shards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
