/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_power.c - a block volume on a disk with a volatile cache, whose power is cut
 *
 * Each block that is written has its number and a version in every word. The test keeps the changes of each block since
 * the last one that a FLUSH or FUA has made durable: after a cut the block must be as one of them left it. A call that was
 * not acknowledged before the cut may have happened or not. LEAT_TEST_SEED sets the seed, which is printed.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "block_rig.h"
#include "store_sim.h"

#define CUTS 120
#define BLOCKS 48u
#define BLOCK 4096u
#define WORDS (BLOCK / 8)
#define CALLS 6
#define STEPS 60u /* changes of a round, at most */
#define PARTS 4u  /* blocks of a change, at most */
#define SPEC "vol=a,block=4096,store=sim:members=2:chunk=16K:rate=1G:volatile"

static uint64_t seed;
static int fd; /* of the file below the volume */

struct change {
	uint64_t version; /* of the round, growing */
	uint32_t proc;	  /* WRITE, ZERO; DISCARD: leaves anything */
};

/* The first change is durable; the others came later. */
static struct history {
	struct change v[STEPS + 1];
	unsigned n;
	uint64_t acked; /* newest change that was acknowledged */
} histories[BLOCKS];

/* A call in flight */
static struct flight {
	struct block_rig_call call;
	uint32_t proc, first, n;
	uint64_t version;
	bool fua, on;
	uint64_t covers[BLOCKS]; /* FLUSH: what was acknowledged when it was sent */
	uint64_t mem[PARTS * WORDS];
} flights[CALLS];

static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

/* ---- what a block may contain ---- */

static void add_change(uint32_t block, uint64_t version, uint32_t proc)
{
	struct history *h = &histories[block];

	assert_true(h->n < ARRAY_SIZE(h->v));
	h->v[h->n++] = (struct change){ version, proc };
}

/* All changes up to @version are durable. */
static void make_durable(uint32_t block, uint64_t version)
{
	struct history *h = &histories[block];
	unsigned drop = 0;

	while (drop + 1 < h->n && h->v[drop + 1].version <= version)
		drop++;
	memmove(h->v, h->v + drop, (h->n - drop) * sizeof(h->v[0]));
	h->n -= drop;
}

static void fill(uint64_t *mem, uint32_t block, uint64_t version)
{
	for (unsigned i = 0; i < WORDS; i++)
		mem[i] = (uint64_t)(block + 1) << 40 | version;
}

static bool is_left_by(const struct change *c, const uint64_t *mem, uint32_t block)
{
	uint64_t want[WORDS] = { 0 };

	if (c->proc == BLOCKPROC_DISCARD)
		return true;
	if (c->proc == BLOCKPROC_WRITE)
		fill(want, block, c->version);
	return !memcmp(want, mem, BLOCK);
}

static bool is_kept(uint32_t block)
{
	const struct history *h = &histories[block];
	uint64_t mem[WORDS];

	assert_int_equal(pread(fd, mem, BLOCK, (off_t)block * BLOCK), BLOCK);
	for (unsigned i = 0; i < h->n; i++) {
		if (is_left_by(&h->v[i], mem, block))
			return true;
	}
	return false;
}

/* ---- calls ---- */

static bool is_free(uint32_t first, uint32_t n)
{
	for (unsigned i = 0; i < CALLS; i++) {
		const struct flight *f = &flights[i];

		if (f->on && f->proc != BLOCKPROC_FLUSH && first < f->first + f->n && f->first < first + n)
			return false;
	}
	return true;
}

static void begin_flush(struct block_client *c, struct flight *f)
{
	f->proc = BLOCKPROC_FLUSH;
	for (uint32_t b = 0; b < BLOCKS; b++)
		f->covers[b] = histories[b].acked;
	block_begin(c, &f->call, BLOCKPROC_FLUSH, NULL, 0);
	f->on = true;
}

/* No other call in flight changes the same blocks: the order of two is not defined. */
static void begin_change(struct block_client *c, struct flight *f, uint64_t version)
{
	f->n = 1 + (uint32_t)draw(PARTS);
	f->first = (uint32_t)draw(BLOCKS - f->n + 1);
	f->version = version;
	if (!is_free(f->first, f->n))
		return;
	f->proc = draw(6) ? BLOCKPROC_WRITE : draw(2) ? BLOCKPROC_ZERO : BLOCKPROC_DISCARD;
	f->fua = f->proc == BLOCKPROC_WRITE && !draw(4);
	for (uint32_t i = 0; i < f->n; i++) {
		fill(f->mem + i * WORDS, f->first + i, version);
		add_change(f->first + i, version, f->proc);
	}
	f->on = true;
	if (f->proc == BLOCKPROC_WRITE) {
		block_write_begin_at(c, &f->call, (uint64_t)f->first * BLOCK, f->mem, f->n * BLOCK, f->fua);
		return;
	}
	f->call = (struct block_rig_call){
		.args.zero = { .offset = (uint64_t)f->first * BLOCK, .length = (uint64_t)f->n * BLOCK, .keep = draw(2) == 1 },
	};
	block_begin(c, &f->call, f->proc, NULL, 0);
}

static void end(struct flight *f)
{
	block_status status = block_end(&f->call);

	while (status == BLOCK_ERR_LATER) { /* as many ZEROs and DISCARDs are in progress as one client may have */
		block_begin(f->call.client, &f->call, f->proc, NULL, 0);
		status = block_end(&f->call);
	}
	assert_int_equal(status, BLOCK_OK);
	f->on = false;
	if (f->proc == BLOCKPROC_FLUSH) {
		for (uint32_t b = 0; b < BLOCKS; b++)
			make_durable(b, f->covers[b]);
		return;
	}
	for (uint32_t b = f->first; b < f->first + f->n; b++) {
		histories[b].acked = f->version;
		if (f->fua)
			make_durable(b, f->version);
	}
}

/* ---- rounds ---- */

/* All blocks are zeroes, durably. */
static void begin_round(struct block_client *c)
{
	struct block_rig_call zero = { .args.zero = { .length = BLOCKS * BLOCK } };

	block_begin(c, &zero, BLOCKPROC_ZERO, NULL, 0);
	assert_int_equal(block_end(&zero), BLOCK_OK);
	assert_int_equal(block_flush(c), BLOCK_OK);
	for (uint32_t b = 0; b < BLOCKS; b++)
		histories[b] = (struct history){ .v[0] = { 0, BLOCKPROC_ZERO }, .n = 1 };
}

/* @lie: the test believes in FLUSHes that it does not send. Return: blocks that are not as they must be */
static unsigned run_round(struct block_client *c, bool lie)
{
	uint64_t steps = 8 + draw(STEPS - 8);
	unsigned lost = 0;
	size_t bytes;

	begin_round(c);
	for (uint64_t step = 1; step <= steps; step++) {
		struct flight *f = &flights[draw(CALLS)];

		if (f->on)
			end(f);
		if (draw(6))
			begin_change(c, f, step);
		else if (!lie)
			begin_flush(c, f);
		else
			for (uint32_t b = 0; b < BLOCKS; b++)
				make_durable(b, histories[b].acked);
	}
	assert_int_equal(store_sim_cut(tmp_dir_path(&block_rig.dir, "a"), &bytes), 0);
	for (unsigned i = 0; i < CALLS; i++) { /* what happens after the cut counts for nothing */
		if (flights[i].on)
			(void)block_end(&flights[i].call);
		flights[i].on = false;
	}
	for (uint32_t b = 0; b < BLOCKS; b++)
		lost += !is_kept(b);
	return lost;
}

static unsigned run_rounds(bool lie)
{
	struct block_client c;
	unsigned lost = 0;

	assert_int_equal(block_rig_start((const char *const[]){ SPEC, NULL }), 0);
	fd = block_rig_open("a");
	block_connect(&c, 1, 0);
	assert_int_equal(block_attach(&c, "vol", "me", 0, NULL), BLOCK_OK);
	for (int i = 0; i < CUTS; i++) {
		unsigned n = run_round(&c, lie);

		if (n && !lie)
			fail_msg("cut %d: %u blocks are older than what was promised", i, n);
		lost += n;
	}
	block_close(&c);
	close(fd);
	block_rig_stop();
	return lost;
}

static void keeps_promises(void **state)
{
	(void)state;
	assert_int_equal(run_rounds(false), 0);
}

/* The test can fail: without FLUSHes, blocks are lost. */
static void notices_losses(void **state)
{
	(void)state;
	assert_true(run_rounds(true) > 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_promises),
		cmocka_unit_test(notices_losses),
	};
	const char *given = getenv("LEAT_TEST_SEED");

	seed = given ? strtoull(given, NULL, 0) : clock_now_ns() | 1;
	printf("seed %llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests_name("block power", tests, NULL, NULL);
}
