/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stale_rounds.c - reads and writes of memory that keeps losing its pages, each compared
 *
 * Operation:  Each round writes some of an arena to a file, or reads a file into it, and compares what
 *             arrived with what the file shows past leat. Then, two times out of three, some of the
 *             arena has other pages. So that other pages are other bytes, the pattern that fills the arena
 *             depends on the round. Every eighth round is with memory of malloc(), and freed.
 *             A registration of what was there before loses what it should move: such a round is stale.
 * Memory:     The arena, and as much for comparison.
 * Threads:    The caller's.
 * Errors:     -ENOMEM, -EIO for a file or arena that does not do as told; else the first failure of a read
 *             or write.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lose_pages.h"
#include "stale_rounds.h"

#define ARENA_PAGES 64u
#define ARENA_BYTES (ARENA_PAGES * LOSE_PAGE)
#define LEN_MIN 16384u /* what is less is sent with the message */
#define LEN_MAX 65536u
#define LOST_PAGES_MAX 4u
#define MALLOC_BYTES 262144u
#define MALLOC_EACH 8u

struct run {
	struct leat_file *f;
	int fd;
	uint64_t seed;
	uint8_t *arena, *other;
	struct stale_counts n;
};

/* Bytes of the round, other ones for each. */
static void fill(struct run *r, uint8_t *p, size_t len)
{
	uint64_t x = r->seed | 1;

	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p[i] = (uint8_t)(x >> 32);
	}
	(void)lose_rand(&r->seed, 2);
}

static int write_one(struct run *r, uint8_t *at, size_t len)
{
	ssize_t n;

	fill(r, at, len);
	n = leat_pwrite(r->f, at, len, 0);
	if (n != (ssize_t)len)
		return n < 0 ? (int)n : -EIO;
	if (pread(r->fd, r->other, len, 0) != (ssize_t)len)
		return -EIO;
	r->n.writes++;
	r->n.stale += memcmp(at, r->other, len) != 0;
	return 0;
}

static int read_one(struct run *r, uint8_t *at, size_t len)
{
	ssize_t n;

	fill(r, r->other, len);
	if (pwrite(r->fd, r->other, len, 0) != (ssize_t)len)
		return -EIO;
	n = leat_pread(r->f, at, len, 0);
	if (n != (ssize_t)len)
		return n < 0 ? (int)n : -EIO;
	r->n.reads++;
	r->n.stale += memcmp(at, r->other, len) != 0;
	return 0;
}

static int move(struct run *r, uint8_t *at, size_t len)
{
	return lose_rand(&r->seed, 2) ? write_one(r, at, len) : read_one(r, at, len);
}

static int round_of_malloc(struct run *r)
{
	size_t len = LEN_MIN + lose_rand(&r->seed, LEN_MAX - LEN_MIN);
	uint8_t *p = malloc(MALLOC_BYTES);
	int rc;

	if (!p)
		return -ENOMEM;
	rc = move(r, p + lose_rand(&r->seed, MALLOC_BYTES - LEN_MAX), len);
	free(p);
	r->n.lost++;
	return rc;
}

static int round_of_arena(struct run *r)
{
	size_t len = LEN_MIN + lose_rand(&r->seed, LEN_MAX - LEN_MIN);
	unsigned pages = 1 + lose_rand(&r->seed, LOST_PAGES_MAX);
	uint8_t *lose = r->arena + lose_rand(&r->seed, ARENA_PAGES - pages) * LOSE_PAGE;
	int rc;

	rc = move(r, r->arena + lose_rand(&r->seed, ARENA_BYTES - LEN_MAX), len);
	if (rc || !lose_rand(&r->seed, 3))
		return rc;
	r->n.lost++;
	return lose_pages(lose, pages * LOSE_PAGE, (enum lose_how)lose_rand(&r->seed, LOSE_WAYS))
		       ? 0 : -EIO;
}

int stale_rounds(struct leat_file *f, int fd, unsigned long rounds, uint64_t seed,
		 struct stale_counts *ret)
{
	struct run r = { .f = f, .fd = fd, .seed = seed, .other = malloc(LEN_MAX) };
	int rc = 0;

	r.arena = lose_map(NULL, ARENA_BYTES, 0);
	if (r.arena == MAP_FAILED || !r.other) {
		if (r.arena != MAP_FAILED)
			munmap(r.arena, ARENA_BYTES);
		free(r.other);
		return -ENOMEM;
	}
	for (unsigned long i = 0; i < rounds && !rc; i++)
		rc = i % MALLOC_EACH == MALLOC_EACH - 1 ? round_of_malloc(&r) : round_of_arena(&r);
	munmap(r.arena, ARENA_BYTES);
	free(r.other);
	*ret = r.n;
	return rc;
}
