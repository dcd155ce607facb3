/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_sched.c - which request is next at the disk, by table; no request waits for ever; the tree
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"
#include "store_sched.h"

#define NODES 1024
#define BYTES 10u

static struct store_sched s;
static struct sched_node nodes[NODES];
static unsigned nnodes;
static uint64_t now;

static void begin(uint64_t read_ns, uint64_t write_ns)
{
	store_sched_init(&s, read_ns, write_ns);
	memset(nodes, 0, sizeof(nodes));
	nnodes = 0;
	now = 1000;
}

static struct sched_node *node(uint64_t ino, uint64_t off, bool write)
{
	struct sched_node *n = &nodes[nnodes++];

	assert_true(nnodes <= NODES);
	*n = (struct sched_node){
		.dev = 1, .ino = ino, .off = off, .end = off + BYTES, .write = write
	};
	return n;
}

static void add(uint64_t ino, uint64_t off, bool write)
{
	store_sched_add(&s, node(ino, off, write), now);
}

/* Steps of a script: "r7 " or "w7 " is a read or write at 7 that waits; "p7 " one that goes by; ">7 "
 * takes, and 7 is what must come, "!7 " too, and it must be late; "+7 " is later by 7; ">- " nothing
 * comes. Offsets from 1000 on are in file 2, and so on. */
static void step(const char *script, char op, uint64_t v)
{
	struct sched_node *n;

	switch (op) {
	case 'r':
	case 'w':
		add(v / 1000, v, op == 'w');
		return;
	case 'p':
		store_sched_pass(&s, node(v / 1000, v, false));
		return;
	case '+':
		now += v;
		return;
	default:
		n = store_sched_take(&s, now);
		if (!n || n->off != v || n->late != (op == '!'))
			fail_msg("%s: at %c%lu: %ld", script, op, (unsigned long)v,
				 n ? (long)n->off : -1L);
	}
}

static void play(const char *script)
{
	for (const char *at = script; *at; at++) {
		char op = *at++, *end;

		if (*at == '-') { /* the last word */
			assert_null(store_sched_take(&s, now));
			break;
		}
		step(script, op, strtoul(at, &end, 10));
		at = end;
		if (!*at)
			break;
	}
	assert_int_equal(s.n, 0);
	assert_null(s.sets[0].places.root);
	assert_null(s.sets[1].places.root);
	assert_true(list_is_empty(&s.sets[0].fifo) && list_is_empty(&s.sets[1].fifo));
}

static void sorted(void **state)
{
	static const char *const scripts[] = {
		">-",
		"r5 >5 >-",
		/* in order, whatever the order of coming; then from the start */
		"r50 r20 r80 r30 >20 >30 >50 >80 >-",
		/* from where the last one ended, not from where it began */
		"p40 r45 r20 r50 >50 >20 >45 >-",
		"p40 r30 r60 >60 >30 >-",
		/* joins a sweep ahead of it, misses one that is past */
		"r50 r90 >50 r70 r10 >70 >90 >10 >-",
		/* what was missed is in the next sweep, and what comes meanwhile joins that */
		"r50 r20 >20 r10 >50 r30 >10 >30 >-",
		/* files one after the other */
		"p1500 r2010 r1600 r510 >1600 >2010 >510 >-",
		"r1990 r2000 r1000 >1000 >1990 >2000 >-",
		/* reads and writes alike; those in one place in the order of coming */
		"w50 r20 w20 r20 w10 >10 >20 >20 >20 >50 >-",
		/* time is nothing */
		"r50 r90 >50 r10 +999999999999 r60 >60 >90 >10 >-",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		begin(0, 0);
		play(scripts[i]);
	}
	begin(0, 0); /* equals */
	for (unsigned i = 0; i < 100; i++)
		add(1, 7, i % 2);
	for (unsigned i = 0; i < 100; i++)
		assert_ptr_equal(store_sched_take(&s, now), &nodes[i]);
}

/* reads may wait 100, writes 1000 */
static void deadline(void **state)
{
	static const char *const scripts[] = {
		">-",
		"r50 r20 >20 >50 >-",
		/* reads first, each kind sorted */
		"w10 r50 w5 r20 >20 >50 >5 >10 >-",
		"w10 >10 r50 w40 >50 >40 >-",
		/* past what is behind, without a sweep that it could be in */
		"r50 r90 >50 r60 r10 r70 >60 >70 >90 >10 >-",
		/* time is up: at 100, not at 99 */
		"p40 r10 r60 +99 r70 >60 +1 !10 >70 >-",
		"p40 r10 +60 r60 +39 >60 >10 >-",
		/* on from there, and not the other one whose time is up */
		"p80 r60 r20 r90 +100 r70 r30 !60 >70 >90 >20 >30 >-",
		/* a write's time is longer */
		"w10 r50 +100 >50 r60 +899 >60 r90 +1 !10 >90 >-",
		/* whose time was up first goes first */
		"w10 +950 r50 +100 r60 !10 >50 >60 >-",
		"w10 +850 r50 +200 >50 >10 >-",
		/* the next one anyway is not late */
		"r10 r20 +200 >10 >20 >-",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		begin(100, 1000);
		play(scripts[i]);
	}
}

/* If all requests are late they still go in order of offset, except for one jump per batch. */
static void late_together(void **state)
{
	unsigned jumps = 0;
	uint64_t last = 0;

	(void)state;
	begin(100, 1000);
	for (unsigned i = 0; i < 160; i++)
		add(1, i * 77 % 160 * BYTES, false);
	now += 1000;
	for (unsigned i = 0; i < 160; i++) {
		struct sched_node *n = store_sched_take(&s, now);

		assert_non_null(n);
		jumps += n->off != last;
		last = n->end;
	}
	assert_true(jumps <= 2 * 160 / STORE_SCHED_BATCH);
}

/* A reader is always one ahead; another wants something that lies behind, or far ahead. */
static unsigned others_before(uint64_t where)
{
	struct sched_node *victim;
	uint64_t off = 1000;

	begin(0, 0);
	store_sched_pass(&s, node(1, 900, false));
	for (unsigned i = 0; i < 8; i++, off += BYTES)
		add(1, off, false);
	victim = node(1, where, false);
	store_sched_add(&s, victim, now);
	for (unsigned taken = 0; taken < 500; taken++, off += BYTES) {
		if (store_sched_take(&s, now) == victim)
			return taken;
		add(1, off, false);
	}
	fail_msg("%lu waits for ever", (unsigned long)where);
	return 0;
}

static void nobody_waits_for_ever(void **state)
{
	(void)state;
	/* those there, those that may join the sweep; behind it, and it begins the next one */
	assert_in_range(others_before(0), 8, 8 + STORE_SCHED_JOIN_MAX);
	assert_in_range(others_before(1000000), 8, 8 + STORE_SCHED_JOIN_MAX);
	assert_int_equal(others_before(1035), 4);
}

/* No request joins a full sweep. Requests join the next one again. */
static void sweeps(void **state)
{
	(void)state;
	begin(0, 0);
	for (unsigned i = 1; i <= STORE_SCHED_JOIN_MAX; i++)
		add(0, 100 * i, false);
	step("full", 'r', 50);
	for (unsigned i = 1; i <= STORE_SCHED_JOIN_MAX; i++)
		step("full", '>', 100 * i);
	play("r70 r20 >20 >50 r65 r10 >65 >70 >10 >-");
	begin(0, 0);
	for (unsigned i = 1; i <= STORE_SCHED_JOIN_MAX; i++)
		add(0, 100 * i, false);
	add(0, 50, false);
	for (unsigned i = 1; i <= STORE_SCHED_JOIN_MAX; i++)
		step("full", '>', 100 * i);
	play(">50 r70 r80 >70 r20 >80 >20 >-");
	begin(0, 0);
	for (unsigned i = 0; i <= STORE_SCHED_JOIN_MAX; i++)
		add(0, 100, false);
	add(0, 30, false);
	for (unsigned i = 0; i < STORE_SCHED_JOIN_MAX; i++)
		step("full", '>', 100);
	play(">30 r70 r20 >70 >100 >20 >-");
}

/* ... with a deadline, by time: each of the others takes 10 */
static void nor_with_a_deadline(void **state)
{
	struct sched_node *victim;
	uint64_t off = 1000;
	unsigned taken = 0;

	(void)state;
	begin(100, 1000);
	store_sched_pass(&s, node(1, 900, false));
	for (unsigned i = 0; i < 8; i++, off += BYTES)
		add(1, off, false);
	victim = node(1, 0, true);
	store_sched_add(&s, victim, now);
	for (; taken < 500; taken++, off += BYTES, now += 10) {
		if (store_sched_take(&s, now) == victim)
			break;
		add(1, off, false);
	}
	assert_in_range(taken, 100, 100 + STORE_SCHED_BATCH);
	assert_true(victim->late);
}

/* The tree gives what a search of everything gives. */
static void at_random(void **state)
{
	static bool waits[NODES];
	unsigned x = 1;

	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		begin(UINT64_C(1) << 60, UINT64_C(1) << 60); /* one sweep, no time */
		memset(waits, 0, sizeof(waits));
		while (nnodes < NODES || s.n) {
			struct sched_node *best = NULL, *first = NULL;

			x = x * 1103515245 + 12345;
			if (nnodes < NODES && (x >> 16) % 5 < 3) {
				waits[nnodes] = true;
				add(x >> 30, (x >> 20) % 200, false);
				continue;
			}
			for (unsigned i = 0; i < nnodes; i++) {
				struct sched_node *n = &nodes[i];
				uint64_t at = n->ino << 32 | n->off;

				if (!waits[i])
					continue;
				if (!first || at < (first->ino << 32 | first->off))
					first = n;
				if (at >= (s.pos.ino << 32 | s.pos.off) && n->dev >= s.pos.dev &&
				    (!best || at < (best->ino << 32 | best->off)))
					best = n;
			}
			best = best ? best : first;
			assert_ptr_equal(store_sched_take(&s, now), best);
			if (best)
				waits[best - nodes] = false;
		}
	}
}

static unsigned depth(const struct treap_node *n)
{
	unsigned left = n ? depth(n->left) : 0, right = n ? depth(n->right) : 0;

	return n ? 1 + MAX(left, right) : 0;
}

/* A client that knows the code asks for places in the order of the weights that a tree without a seed would give. */
static void places_of_an_attacker(void **state)
{
	uint64_t known = 0;

	(void)state;
	begin(100, 1000);
	for (unsigned i = 0; i < NODES; i++)
		add(1, (uint32_t)random_next(&known), false);
	assert_in_range(depth(s.sets[0].places.root), 10, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorted),	 cmocka_unit_test(deadline),
		cmocka_unit_test(late_together), cmocka_unit_test(nobody_waits_for_ever),
		cmocka_unit_test(sweeps),	 cmocka_unit_test(nor_with_a_deadline),
		cmocka_unit_test(at_random),	 cmocka_unit_test(places_of_an_attacker),
	};

	return cmocka_run_group_tests_name("store_sched", tests, NULL, NULL);
}
