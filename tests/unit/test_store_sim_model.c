/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_sim_model.c - when modelled disks complete their requests: arithmetic
 *
 * A member moves a byte in 1 us here, so that a chunk of 4096 takes 4096 us; the latency is 1000 us.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "store_sim_model.h"

#define K 4096u

static struct sim_spec spec_of(uint32_t members)
{
	return (struct sim_spec){
		.members = members,
		.chunk = K,
		.rate = 1000000,
		.latency_ns = 1000 * NS_PER_US,
		.seed = 1,
	};
}

struct row {
	uint64_t now_us, ino, off;
	uint32_t bytes;
	uint64_t due_us;
	unsigned seeks;
};

/* @no_data: one bit for each row */
static void play(const struct sim_spec *spec, const struct row *rows, size_t n, unsigned no_data)
{
	struct sim_model m;

	sim_model_init(&m, spec);
	for (size_t i = 0; i < n; i++) {
		const struct sim_request rq = {
			.dev = 1,
			.ino = rows[i].ino,
			.off = rows[i].off,
			.bytes = rows[i].bytes,
			.no_data = no_data >> i & 1,
		};
		struct sim_answer a = sim_model_submit(&m, rows[i].now_us * NS_PER_US, &rq);

		if (a.due_ns != rows[i].due_us * NS_PER_US || a.seeks != rows[i].seeks)
			fail_msg("row %zu: due at %lu us, %u seeks", i,
				 (unsigned long)(a.due_ns / NS_PER_US), a.seeks);
	}
}

static void one_disk(void **state)
{
	static const struct row rows[] = {
		{ 0, 7, 0, 100, 1100, 1 },   /* the head was nowhere */
		{ 0, 7, 100, 100, 1200, 0 }, /* follows: no second latency, but its turn */
		{ 500, 7, 200, 100, 1300, 0 },
		{ 5000, 7, 300, 100, 5100, 0 }, /* idle in between: the head stays where it was */
		{ 5000, 7, 200, 100, 6200, 1 }, /* back */
		{ 5000, 8, 300, 100, 7300, 1 }, /* another file */
		{ 5000, 7, 300, 100, 8400, 1 }, /* which has moved the head */
		{ 9000, 7, 400, 0, 9000, 0 },	/* nothing takes no time, and goes nowhere */
		{ 9000, 7, 400, 10000, 19000, 0 }, /* many chunks of one member are one run */
		{ 9000, 7, 10400, 100, 19100, 0 },
	};
	struct sim_spec spec = spec_of(1);

	(void)state;
	play(&spec, rows, ARRAY_SIZE(rows), 0);
}

static void members(void **state)
{
	static const struct row rows[] = {
		/* half of the first chunk, the second, half of the third */
		{ 0, 7, 0, 2048, 1000 + 2048, 1 },
		{ 0, 7, K, K, 1000 + K, 1 },
		{ 0, 7, 2 * K, 2048, 1000 + 2048, 1 },
		/* the rest of the first: its member goes on where it is */
		{ 0, 7, 2048, 2048, 1000 + K, 0 },
		/* chunk 4 is on the first member too, behind chunk 0 */
		{ 0, 7, 4 * K, K, 1000 + 2 * K, 0 },
		/* a request of all members ends with the last of them: the first one is busy longest */
		{ 0, 7, 5 * K, 4 * K, 1000 + 3 * K, 2 },
		/* all are idle again; two rows of chunks, of which each member reads two on end */
		{ 90000, 7, 9 * K, 8 * K, 90000 + 2 * K, 0 },
	};
	struct sim_spec spec = spec_of(4);

	(void)state;
	play(&spec, rows, ARRAY_SIZE(rows), 0);
}

/* Without data a request costs its latency: once for each member that has a part of it. */
static void without_data(void **state)
{
	static const struct row rows[] = {
		{ 0, 7, 0, 2 * K, 1000, 2 },
		{ 0, 7, 0, 2 * K, 1000, 0 }, /* the heads are there */
		{ 0, 7, 0, K, 1000 + K, 0 }, /* data follows there */
		{ 0, 7, 0, 1u << 30, 2000 + K, 3 }, /* the first member has to go back, the second is there */
		{ 50000, 7, 2 * K + 100, 100, 51000, 1 },
		{ 50000, 7, 2 * K + 100, 0, 50000, 0 },
	};
	struct sim_spec spec = spec_of(4);

	(void)state;
	play(&spec, rows, ARRAY_SIZE(rows), ~(1u << 2));
}

/* A stream over all members pays one latency for each, however it is cut. */
static void cut_or_not(void **state)
{
	struct sim_spec spec = spec_of(8);
	struct sim_model whole, pieces;
	struct sim_request rq = { .dev = 1, .ino = 1, .bytes = 64 * K };
	struct sim_answer w, p = { 0 };
	unsigned seeks = 0;

	(void)state;
	sim_model_init(&whole, &spec);
	sim_model_init(&pieces, &spec);
	w = sim_model_submit(&whole, 5, &rq);
	assert_int_equal(w.seeks, 8);
	assert_int_equal(w.due_ns, 5 + (1000 + 8 * K) * NS_PER_US);
	rq.bytes = 1024;
	for (rq.off = 0; rq.off < 64 * K; rq.off += rq.bytes) {
		p = sim_model_submit(&pieces, 5, &rq);
		seeks += p.seeks;
	}
	assert_int_equal(seeks, 8);
	assert_int_equal(p.due_ns, w.due_ns);
	assert_int_equal(pieces.requests, 256);
}

/* Each member completes requests in the order of submission. */
static void fifo(void **state)
{
	struct sim_spec spec = spec_of(3);
	uint64_t last[3] = { 0 }, now = 0;
	struct sim_model m;
	unsigned x = 1;

	(void)state;
	spec.jitter_ns = 5000 * NS_PER_US;
	sim_model_init(&m, &spec);
	for (int i = 0; i < 3000; i++) {
		struct sim_request rq = { .dev = 1, .bytes = 512 };
		struct sim_answer a;
		unsigned chunk;

		x = x * 1103515245 + 12345;
		chunk = x >> 16;
		rq.ino = chunk % 5;
		rq.off = (uint64_t)chunk * K + x % 7 * 512;
		now += x % 1000 * NS_PER_US;
		a = sim_model_submit(&m, now, &rq);
		assert_true(a.due_ns >= now + 512 * NS_PER_US);
		assert_true(a.due_ns >= last[chunk % 3] + 512 * NS_PER_US);
		last[chunk % 3] = a.due_ns;
		assert_true(sim_model_idle(&m, now) >= a.due_ns);
	}
	assert_int_equal(sim_model_idle(&m, 0), MAX(MAX(last[0], last[1]), last[2]));
	assert_int_equal(sim_model_idle(&m, UINT64_MAX), UINT64_MAX);
}

/* Within its bounds, all over them, the same for one seed, another for another. */
static void jitters(void **state)
{
	struct sim_spec spec = spec_of(1), other;
	uint64_t lo = UINT64_MAX, hi = 0, before[3] = { 0 };
	struct sim_model m[3];
	unsigned differ = 0;

	(void)state;
	spec.jitter_ns = 50;
	other = spec;
	other.seed = 2;
	sim_model_init(&m[0], &spec);
	sim_model_init(&m[1], &spec);
	sim_model_init(&m[2], &other);
	for (unsigned i = 0; i < 2000; i++) {
		const struct sim_request rq = { .ino = 1, .off = i * 10, .bytes = 10 };
		uint64_t took[3];

		for (unsigned k = 0; k < 3; k++) {
			uint64_t due = sim_model_submit(&m[k], 0, &rq).due_ns;

			took[k] = due - before[k] - (i ? 10 : 1010) * NS_PER_US;
			before[k] = due;
		}
		assert_int_equal(took[0], took[1]);
		differ += took[0] != took[2];
		lo = MIN(lo, took[0]);
		hi = MAX(hi, took[0]);
	}
	assert_int_equal(lo, 0);
	assert_int_equal(hi, 50);
	assert_true(differ > 1000);
}

static void fails_once(void **state)
{
	const struct sim_request rq = { .ino = 1, .bytes = 10 };
	struct sim_spec spec = spec_of(1);
	struct sim_model m;

	(void)state;
	spec.fail = 3;
	sim_model_init(&m, &spec);
	for (int i = 1; i < 10; i++)
		assert_int_equal(sim_model_submit(&m, 0, &rq).fails, i == 3);
	spec.fail = 0;
	sim_model_init(&m, &spec);
	for (int i = 1; i < 10; i++)
		assert_false(sim_model_submit(&m, 0, &rq).fails);
}

/* The most that may be asked for, at the end of the largest file, on the slowest disk */
static void extremes(void **state)
{
	const struct sim_request rq = {
		.dev = UINT64_MAX,
		.ino = UINT64_MAX,
		.off = INT64_MAX - (4u << 20),
		.bytes = 4u << 20,
	};
	struct sim_spec spec = spec_of(SIM_MEMBERS_MAX);
	struct sim_model m;

	(void)state;
	spec.rate = 4096;
	sim_model_init(&m, &spec);
	assert_int_equal(sim_model_submit(&m, 0, &rq).seeks, SIM_MEMBERS_MAX);
	assert_int_equal(sim_model_idle(&m, 0), 32 * NS_PER_S + 1000 * NS_PER_US);
	spec.chunk = 1u << 30;
	sim_model_init(&m, &spec);
	assert_int_equal(sim_model_submit(&m, 0, &rq).due_ns, 1024 * NS_PER_S + 1000 * NS_PER_US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_disk), cmocka_unit_test(members), cmocka_unit_test(without_data),
		cmocka_unit_test(cut_or_not),
		cmocka_unit_test(fifo),	    cmocka_unit_test(jitters), cmocka_unit_test(fails_once),
		cmocka_unit_test(extremes),
	};

	return cmocka_run_group_tests_name("store_sim_model", tests, NULL, NULL);
}
