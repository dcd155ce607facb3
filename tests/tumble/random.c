/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * random.c - repeatable numbers, lengths and places that like edges, bytes that tell their origin
 *
 * Operation:  A number depends on the seed and on how many were taken before, nothing else. A byte
 *             of data depends on the operation that wrote it and on its offset in the file, so
 *             that data of another time or from another place is never taken for the right one.
 * Memory:     The caller's.
 * Threads:    Any.
 * Errors:     None.
 */
#include <endian.h>
#include <string.h>

#include "base/util.h"
#include "tumble.h"

/* Where transports, pages and requests have their borders. */
static const uint64_t edges[] = { 512,	 1024,	 4096,	 8192,	 32768,
				  65536, 131072, 262144, 524288, 1048576 };

/** rnd_mix - a number that looks like neither @a nor @b */
uint64_t rnd_mix(uint64_t a, uint64_t b)
{
	uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b + UINT64_C(0x632be59bd9b4e019);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/** rnd_next - 64 random bits */
uint64_t rnd_next(struct rnd *r)
{
	r->state += UINT64_C(0x9e3779b97f4a7c15);
	return rnd_mix(r->state, 0);
}

/** rnd_below - 0 to @n - 1; 0 if @n is 0 */
uint64_t rnd_below(struct rnd *r, uint64_t n)
{
	uint64_t x = rnd_next(r);

	return n ? x % n : 0;
}

/** rnd_chance - true in @percent of all cases */
bool rnd_chance(struct rnd *r, unsigned percent)
{
	return rnd_below(r, 100) < percent;
}

/* @x moved by at most 9, and kept within [@low, @high] */
static uint64_t beside(struct rnd *r, uint64_t x, uint64_t low, uint64_t high)
{
	uint64_t step = rnd_below(r, 10);

	x = rnd_chance(r, 50) ? x + step : x > step ? x - step : 0;
	return x < low ? low : x > high ? high : x;
}

/** rnd_size - a length, 1 to @max: tiny ones, some beside an edge, else every magnitude as often */
uint64_t rnd_size(struct rnd *r, uint64_t max)
{
	unsigned bits = 0;

	switch (rnd_below(r, 8)) {
	case 0:
		return 1 + rnd_below(r, max < 9 ? max : 9);
	case 1:
	case 2:
		return beside(r, edges[rnd_below(r, ARRAY_SIZE(edges))], 1, max);
	default:
		while (bits < 40 && (UINT64_C(1) << bits) < max)
			bits++;
		/* from 16 bytes to all, by doubling */
		bits = bits > 4 ? 4 + (unsigned)rnd_below(r, bits - 3) : bits;
		return 1 + rnd_below(r, MIN(max, UINT64_C(1) << bits));
	}
}

/** rnd_place - an offset, 0 to @max: at either end, beside an edge or a page's, anywhere; most
 * within @size */
uint64_t rnd_place(struct rnd *r, uint64_t size, uint64_t max)
{
	switch (rnd_below(r, 8)) {
	case 0:
		return beside(r, 0, 0, max);
	case 1:
		return beside(r, size, 0, max);
	case 2:
		return beside(r, edges[rnd_below(r, ARRAY_SIZE(edges))], 0, max);
	case 3:
		return beside(r, rnd_below(r, size / 4096 + 1) * 4096, 0, max);
	case 4:
		return rnd_below(r, max + 1);
	default:
		return MIN(max, rnd_below(r, size + 1));
	}
}

static uint64_t pattern_word(uint64_t key, uint64_t at)
{
	uint64_t x = (key ^ (at * UINT64_C(0x9e3779b97f4a7c15))) * UINT64_C(0xbf58476d1ce4e5b9);

	/* no byte is zero, so that none is taken for a hole */
	return (x ^ (x >> 29)) | UINT64_C(0x0101010101010101);
}

/** pattern_byte - what the operation of @key writes at @off */
uint8_t pattern_byte(uint64_t key, uint64_t off)
{
	return (uint8_t)(pattern_word(key, off / 8) >> (off % 8 * 8));
}

/** pattern_fill - @len bytes of it, from offset @off on */
void pattern_fill(uint8_t *p, size_t len, uint64_t key, uint64_t off)
{
	uint64_t word;

	for (; len && off % 8; len--, off++)
		*p++ = pattern_byte(key, off);
	for (; len >= 8; len -= 8, off += 8, p += 8) {
		word = htole64(pattern_word(key, off / 8));
		memcpy(p, &word, 8);
	}
	for (; len; len--, off++)
		*p++ = pattern_byte(key, off);
}
